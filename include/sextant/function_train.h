/* Training functions: a model whose inputs are strings, or whose shapes only the data decide.
 *
 * The model is a function of a library (sextant/function.h) whose first output is the loss. What
 * has no gradient, such as splitting texts and padding them, is a function of its own, and gives
 * the model's inputs:
 *
 *     sx_library_add_training(library, "train", "model", .features = "prepare",
 *                             .optimizer = sx_adam());
 *     sx_library_finish(library);
 *     sx_functions_open(library, NULL, &functions);
 *     for (...) {
 *         sx_functions_run(functions, "train", batch, 2, 0, &results);      one step
 *     }
 *     sx_functions_save(library, functions, "run1/model.ckpt-100");
 *
 * A step runs on one device, in one shard: where sizes are only known when it is reached, there is
 * no batch dimension to divide. It compiles nothing for shapes that it has seen. With the same
 * seed, batches and threads, the variables have the same bits, also where a run goes on from saved
 * variables. */
#ifndef SEXTANT_FUNCTION_TRAIN_H
#define SEXTANT_FUNCTION_TRAIN_H

#include <sextant/nn.h>
#include <sextant/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_training_function_args {
    size_t struct_size;
    sx_optimizer optimizer;
    const char *features; /* NULL: the model's inputs are what the new function takes */
} sx_training_function_args;

/* Adds function `name`, which makes one step of training of function `model`, whose first output is
 * the loss, a float32 scalar. It takes what `features` takes, and the inputs of `model` that
 * `features` does not give, in order: labels. It gives the model's outputs and "ok", a bool: if the
 * loss or a gradient is not finite, it is false, and no variable changes. The variables of role
 * SX_ROLE_WEIGHT that the model reads, by itself or in functions that it calls, are trained; the
 * library gets the optimizer's, and `global_step`, which counts the steps.
 *
 * Errors: NOT_FOUND: no such function; INVALID_ARGUMENT: a loss of another type, an input of the
 * model that `features` gives with another dtype, a model that reads no weights, the optimizer's
 * parameters; UNIMPLEMENTED: an optimizer with l2, but for LARS, or with a reference batch size.
 * A gradient that does not exist is an error of the first run: strings, assignments and shapes that
 * depend on data belong into `features`. */
SX_API SX_MUST_USE sx_status sx_library_add_training_at(sx_library *library, const char *name,
                                                        const char *model,
                                                        const sx_training_function_args *args);
#define sx_library_add_training(library, name, model, ...) \
    sx_library_add_training_at((library), (name), (model), \
                               SX_ARGS_(sx_training_function_args, __VA_ARGS__))

/* Writes all variables as a checkpoint that TensorFlow reads: <prefix>.index, <prefix>.data-….
 * `functions` was opened with `library`; no run may be in progress. Directories are created. */
SX_API SX_MUST_USE sx_status sx_functions_save(const sx_library *library, sx_functions *functions,
                                               const char *prefix);
/* Reads them back. Errors: NOT_FOUND, DATA_LOSS; INVALID_ARGUMENT: a variable is missing, or has
 * another type: then none has changed. */
SX_API SX_MUST_USE sx_status sx_functions_restore(const sx_library *library,
                                                  sx_functions *functions, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
