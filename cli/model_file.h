/* A model in a C or C++ file: compiled by $CC or cc, $CXX or c++; loaded, its descriptor checked.
 *
 *   model.c --cc -E--> text --SHA-256 of text, compiler, flags, our version--> cache/<hash>.so
 *
 * The preprocessed text is the key, so that a change in any header that it includes counts. The
 * cache is $XDG_CACHE_HOME/sextant/models (~/.cache by default). The loaded code calls the public
 * functions that this program exports. */
#ifndef SX_CLI_MODEL_FILE_H
#define SX_CLI_MODEL_FILE_H

#include <sextant/model.h>

typedef struct sx_model_file {
    void *library;    /* of dlopen */
    sx_model_def def; /* fields that the file's header did not have yet are zero */
} sx_model_file;

/* `color`: let the compiler use colours. Errors: NOT_FOUND no such file, no compiler;
 * INVALID_ARGUMENT with the compiler's own words, or no SX_MODEL in it; FAILED_PRECONDITION made
 * for another version of SX_MODEL. */
SX_MUST_USE sx_status sx_model_file_load(const char *path, bool color, sx_model_file *out_file);
/* The descriptor and all that it points to are gone. A zeroed one is fine. */
void sx_model_file_unload(sx_model_file *file);

/* Is it a C file, and not a model of the zoo? */
bool sx_model_file_is(const char *name);

#endif
