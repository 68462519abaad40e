/* Shared by commands that run a SavedModel: --precision, and the examples that int8 needs. */
#ifndef SX_CLI_PRECISION_ARGS_H
#define SX_CLI_PRECISION_ARGS_H

#include <sextant/infer.h>

#include "command.h"

typedef struct sx_precision_args {
    const char *precision;
    sx_words calibration;
    int64_t examples;
} sx_precision_args;

/* The rows, for a command whose options struct has the field `precision_args`. */
#define SX_PRECISION_ARGS_ROWS(type)                                                            \
    {"precision", SX_OPTION_CHOICE, SX_OPT(type, precision_args.precision),                     \
     "arithmetic of convolutions and matrix products; int8 is faster and slightly less exact, " \
     "and so is bfloat16 on processors that multiply it fast; default: float32",                \
     .choices = "float32|bfloat16|int8"},                                                       \
        {"calibration", SX_OPTION_LIST, SX_OPT(type, precision_args.calibration),               \
         "with --precision int8: examples of what the model will be given: data, if it takes "  \
         "encoded images, else arrays of the inputs",                                           \
         "DATA|[NAME=]X.npy"},                                                                  \
    {                                                                                           \
        "calibration-examples", SX_OPTION_INT, SX_OPT(type, precision_args.examples),           \
            "how many examples to use, drawn at random from data; default: 256", "N",           \
            .min = 1, .max = 1 << 20                                                            \
    }

/* A usage error if one of the options needs another. Says on stderr if bfloat16 gains nothing. */
SX_MUST_USE sx_status sx_precision_args_check(sx_invocation *inv, const sx_precision_args *args);
bool sx_precision_args_want_bfloat16(const sx_precision_args *args);
/* The message of sx_precision_args_check(): that this processor is no faster in bfloat16. */
void sx_say_bfloat16(void);

/* Reads the examples for a signature (NULL = serving_default) of the SavedModel in `dir`, which may
 * have versions, and sets *out to a calibration in the invocation's arena that prints its report to
 * stderr; to NULL without --precision int8. Errors name the file or the input; NOT_FOUND: no model
 * yet. */
SX_MUST_USE sx_status sx_precision_args_read(sx_invocation *inv, const sx_precision_args *args,
                                             const char *dir, const char *tags,
                                             const char *signature,
                                             const sx_int8_calibration **out);

#endif
