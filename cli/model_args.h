/* The model named on the command line, from the zoo or a C file, and its parameters: --param
 * NAME=VALUE, and the words after `--`. */
#ifndef SX_CLI_MODEL_ARGS_H
#define SX_CLI_MODEL_ARGS_H

#include "command.h"
#include "model_file.h"
#include "nn/params.h"

typedef struct sx_model_args {
    sx_model_file file;
    const sx_model_def *def;
    sx_params *params;
} sx_model_args;

/* Call sx_model_args_end() also after an error. Errors: NOT_FOUND: no such model (with the nearest
 * names); those of sx_model_file_load(); a usage error for a parameter without a value. */
SX_MUST_USE sx_status sx_model_args_read(sx_invocation *inv, const char *name,
                                         const sx_words *params, sx_model_args *out);
void sx_model_args_end(sx_model_args *args);

#endif
