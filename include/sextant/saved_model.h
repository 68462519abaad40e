/* Exporting functions: a library (sextant/function.h) as a SavedModel that TensorFlow runs.
 *
 *     const sx_signature_function signatures[] = {{"serving_default", "classify"}};
 *     char *dir;
 *     SX_TRY(sx_functions_export(library, functions, signatures, 1, "models/text", NULL, &dir));
 *     sx_text_free(dir);
 *
 * A signature is written with the nodes of what it calls, branches and loops as functions of
 * TensorFlow's graph; variables with the values that they have now. Strings and unknown shapes stay
 * what they are. Where functions call others again and again, nodes of calls beyond 20,000 are
 * functions, too. TensorFlow's tape goes through it, but not through these, functions with effects
 * (assignments, asserts, prints) or custom gradients, which come back only when the model is read
 * here. To load it again: sextant/infer.h, `sextant run`. */
#ifndef SEXTANT_SAVED_MODEL_H
#define SEXTANT_SAVED_MODEL_H

#include <sextant/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A signature of the model: its inputs and outputs are the function's, by name. */
typedef struct sx_signature_function {
    const char *name;     /* "serving_default" */
    const char *function; /* of the library */
} sx_signature_function;

/* Writes base/<version>. `version` is a number, "0001", or NULL: the highest below `base` + 1.
 * `functions` has the variables' values: opened with `library`; NULL if the exported functions use
 * none. No run may be in progress. The path of the directory goes to *out_dir (sx_text_free),
 * unless that is NULL. Errors: NOT_FOUND: no such function; INVALID_ARGUMENT: no signatures, two of
 * one name, a function without outputs, or with resources as inputs or outputs, a function that
 * calls itself; UNIMPLEMENTED: operators that TensorFlow has no form of, all named; ALREADY_EXISTS:
 * the version. */
SX_API SX_MUST_USE sx_status sx_functions_export(const sx_library *library, sx_functions *functions,
                                                 const sx_signature_function *signatures,
                                                 int n_signatures, const char *base,
                                                 const char *version, char **out_dir);

#ifdef __cplusplus
}
#endif
#endif
