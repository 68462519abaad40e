/* Single elements of a data set by record number: the example behind a row of predictions. */
#ifndef SX_DATA_ELEMENT_H
#define SX_DATA_ELEMENT_H

#include "data/plan.h"

/* {0} may be deinitialized. One thread at a time. */
typedef struct sx_element_reader {
    sx_plan plan;
    sx_producer producer;
    bool begun; /* the producer is initialized */
    sx_tensor tensors[SX_MAX_COMPONENTS];
} sx_element_reader;

/* `data` is not batched; the reader keeps a reference. */
SX_MUST_USE sx_status sx_element_reader_init(sx_element_reader *reader, sx_dataset *data);
void sx_element_reader_deinit(sx_element_reader *reader);

/* Reads the record and applies the maps, as in epoch 0. *out_tensors: one for each component of the
 * data's schema; valid until the next call. Errors name the record. */
SX_MUST_USE sx_status sx_element_read(sx_element_reader *reader, int64_t record,
                                      const sx_tensor **out_tensors);

/* Appends the file that the record is or was made from: a path, or an Example's image/filename.
 * False if it has none. */
bool sx_record_file(const sx_dataset *data, int64_t record, sx_buf *out);

#endif
