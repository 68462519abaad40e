/* Constructors of the sources that sx_data_open chooses from. Each appends lines to `text` that
 * describe what was found and assumed. On failure, *out_dataset is unchanged. */
#ifndef SX_DATA_SOURCES_H
#define SX_DATA_SOURCES_H

#include "data/dataset.h"

/* sx_dataset_from_tensors() with additional information from files. Everything except `names` is
 * owned by the user and must be valid until release(user). */
typedef struct sx_memory_args {
    int count;
    const char *const *names; /* copied */
    const sx_tensor *tensors;
    const char *where;  /* the file, for record names; NULL = none */
    char **class_names; /* [class_count], or NULL */
    int class_count;
    void (*release)(void *user);
    void *user;
} sx_memory_args;

SX_MUST_USE sx_status sx_source_memory(const sx_memory_args *args, sx_dataset **out_dataset);

/* A folder or archive of class folders. Components: image (string), label (int64). */
SX_MUST_USE sx_status sx_source_classed(const char *path, const sx_data_options *options,
                                        sx_buf *text, sx_dataset **out_dataset);

/* TFRecord files of Examples. Components: image (string; uint8 [H,W,C] for raw pixels), label
 * (int64) where the records have one. */
SX_MUST_USE sx_status sx_source_examples(const char *const *paths, size_t count,
                                         const sx_data_options *options, sx_buf *text,
                                         sx_dataset **out_dataset);

/* TFRecord files of Examples; or .npy files <name>.npy with as many rows each, alone or in .npz
 * archives: as the features that the options declare. */
SX_MUST_USE sx_status sx_source_named_examples(const char *const *paths, size_t count,
                                               const sx_data_options *options, sx_buf *text,
                                               sx_dataset **out_dataset);
SX_MUST_USE sx_status sx_source_named_npy(const char *const *paths, size_t count,
                                          const sx_data_options *options, sx_buf *text,
                                          sx_dataset **out_dataset);

/* CSV files with a header, as the features that the options declare, or all columns as strings. */
SX_MUST_USE sx_status sx_source_csv(const char *const *paths, size_t count,
                                    const sx_data_options *options, sx_buf *text,
                                    sx_dataset **out_dataset);

/* JSON lines. Component: line (string), each line that is not blank. */
SX_MUST_USE sx_status sx_source_lines(const char *const *paths, size_t count,
                                      const sx_data_options *options, sx_buf *text,
                                      sx_dataset **out_dataset);

/* An IDX file of images [n,H,W] or [n,H,W,C] uint8 and, unless NULL, one of labels [n]. Components:
 * image (uint8 [H,W,C]), label (int64). */
SX_MUST_USE sx_status sx_source_idx(const char *images, const char *labels,
                                    const sx_data_options *options, sx_buf *text,
                                    sx_dataset **out_dataset);

/* .npy arrays with the same number of rows: features and, unless NULL, labels. Components: image
 * for uint8 rows of rank 2 or 3, features for all others; label. */
SX_MUST_USE sx_status sx_source_npy(const char *features, const char *labels,
                                    const sx_data_options *options, sx_buf *text,
                                    sx_dataset **out_dataset);

/* "digits?n=60000&seed=1": generated images. Components: image (uint8 [H,W,C]), label (int64). */
SX_MUST_USE sx_status sx_source_generated(const char *spec, const sx_data_options *options,
                                          sx_buf *text, sx_dataset **out_dataset);

#endif
