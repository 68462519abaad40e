/* The inputs of a signature as saved_model_cli run takes them: --inputs, --input_exprs,
 * --input_examples, each `key=value;key=value`. */
#ifndef SX_CLI_RUN_INPUTS_H
#define SX_CLI_RUN_INPUTS_H

#include <sextant/infer.h>

#include "base/arena.h"

typedef struct sx_run_inputs {
    const char *files, *expressions, *examples; /* the options; NULL = not given */
} sx_run_inputs;

/* Sets out[s->n_inputs]. A file is .npy, .npz (with one array, or [its name]), an image, or, after
 * "@", a text file with a string a line. Later options override earlier ones. Numbers are converted
 * to the input's dtype. Data are in `arena`. Errors name the option and the key; NOT_FOUND lists
 * the signature's inputs. */
SX_MUST_USE sx_status sx_run_inputs_read(const sx_run_inputs *given, const sx_signature_info *s,
                                         sx_arena *arena, sx_tensor *out);

/* The number of the signature's input of that name. NOT_FOUND lists the inputs. */
SX_MUST_USE sx_status sx_run_inputs_find(const sx_signature_info *s, const char *name, int *out);

#endif
