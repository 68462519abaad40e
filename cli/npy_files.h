/* The files of --input: NAME=x.npy, or just x.npy if there is only one input. */
#ifndef SX_CLI_NPY_FILES_H
#define SX_CLI_NPY_FILES_H

#include "option.h"

typedef struct sx_npy_file {
    const char *name; /* of the input, in the arena; NULL = not given */
    const char *path;
    sx_tensor tensor;
} sx_npy_file;

/* Reads the files; [words->count] rows in the invocation's arena, freed with sx_npy_files_free. */
SX_MUST_USE sx_status sx_npy_files_read(sx_invocation *inv, const sx_words *words,
                                        sx_npy_file **out_files);
void sx_npy_files_free(sx_npy_file *files, int count);

#endif
