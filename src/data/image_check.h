/* Checks images of class folders before they are used: read, recognized, decoded. */
#ifndef SX_DATA_IMAGE_CHECK_H
#define SX_DATA_IMAGE_CHECK_H

#include "data/classed.h"
#include "data/fileset.h"
#include "image/format.h"
#include "image/image.h"

/* Checks one file: JPEG or PNG, within sx_image_limits_default, and if `decode`, that it decodes.
 * `scratch` and `pixels` are reused from call to call. Errors name the file. */
SX_MUST_USE sx_status sx_image_check(const sx_fileset *files, const sx_class_item *item,
                                     bool decode, sx_scratch *scratch, sx_image *pixels,
                                     sx_image_info *out_info, int64_t *out_bytes);

/* Whether that image cannot be used and others can: it is not an image, damaged, too large,
 * unreadable; not if memory ran out. */
bool sx_image_is_faulty(sx_status status);

/* The faulty images of a list: how many, and the first 20 by name and reason, a line each. */
typedef struct sx_image_faults {
    int64_t count;
    sx_buf text;
} sx_image_faults;

void sx_image_faults_init(sx_image_faults *faults);
void sx_image_faults_deinit(sx_image_faults *faults);
void sx_image_faults_add(sx_image_faults *faults, sx_status status);
/* After the last: "and 5 more". */
void sx_image_faults_end(sx_image_faults *faults);

/* Decodes every image of the list, on all processors, and removes the faulty ones. Errors:
 * DATA_LOSS: none is good; those of reading. */
SX_MUST_USE sx_status sx_class_list_drop_faulty(sx_class_list *list, const sx_fileset *files,
                                                sx_image_faults *faults);

/* Appends the line "WHERE: 12 images in 3 class folders; skipped ...": `images` are the good ones.
 */
void sx_class_list_describe(const sx_class_list *list, const char *where, int64_t images,
                            const sx_image_faults *faults, sx_buf *out);

#endif
