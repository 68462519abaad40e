/* The source of a predicted example: its file, true label and picture. */
#ifndef SX_CLI_ORIGIN_H
#define SX_CLI_ORIGIN_H

#include "data/element.h"
#include "image/image.h"

/* {0} may be deinitialized. */
typedef struct sx_origin {
    sx_element_reader reader;
    const sx_dataset *data; /* owned by the reader */
    int image, label;       /* components; -1 = none */
    bool label_is_integer;  /* else it is a float */
    sx_buf file;
} sx_origin;

/* `data` is not batched, and is retained. Labels that are not scalars are ignored. */
SX_MUST_USE sx_status sx_origin_init(sx_origin *o, sx_dataset *data);
void sx_origin_deinit(sx_origin *o);

/* The file's name in UTF-8, with U+FFFD for bytes that are not; NULL if there is none. Borrowed
 * until the next call. */
const char *sx_origin_file(sx_origin *o, int64_t record);

/* The label of a record, if there are any: *out_class when label_is_integer, else *out_value. */
SX_MUST_USE sx_status sx_origin_label(sx_origin *o, int64_t record, int64_t *out_class,
                                      float *out_value);

/* The image as uint8 pixels, in `image` or borrowed from the reader until the next call. NOT_FOUND
 * if the data has no images; errors of decoding. */
SX_MUST_USE sx_status sx_origin_picture(sx_origin *o, int64_t record, sx_image *image);

#endif
