/* A model in a C or C++ file: compiled by $CC or cc, $CXX or c++; loaded, its descriptor checked.
 *
 *   model.c --cc -E--> text --SHA-256 of text, compiler, flags, version--> cache/<hash>.so
 *
 * The key is made from the preprocessed text, so that a change in an included header counts. The
 * cache is $XDG_CACHE_HOME/sextant/models (~/.cache by default). The loaded code calls the public
 * functions that this program exports. */
#ifndef SX_CLI_MODEL_FILE_H
#define SX_CLI_MODEL_FILE_H

#include <sextant/model.h>

typedef struct sx_model_file {
    void *library;    /* of dlopen */
    sx_model_def def; /* fields unknown to the file's header are zero */
} sx_model_file;

/* `color`: let the compiler use colors. Errors: NOT_FOUND: no such file or no compiler;
 * INVALID_ARGUMENT with the compiler's output, or no SX_MODEL in the file; FAILED_PRECONDITION
 * compiled for another version of SX_MODEL. */
SX_MUST_USE sx_status sx_model_file_load(const char *path, bool color, sx_model_file *out_file);
/* Invalidates the descriptor and everything that it points to. May be zeroed. */
void sx_model_file_unload(sx_model_file *file);

/* Whether it is a C or C++ file, not a zoo model. */
bool sx_model_file_is(const char *name);

#endif
