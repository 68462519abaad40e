/* Python literals, as the options of `run` take them: numbers (also complex: 1+2j), strings, bytes,
 * True, False, None, lists, tuples, dicts, and a few of NumPy's names:
 *
 *   np.array(VALUE), np.asarray(VALUE)
 *   np.zeros(SHAPE), np.ones(SHAPE), np.full(SHAPE, VALUE)
 *   np.arange([START,] STOP[, STEP])
 *   ARRAY.reshape(SHAPE), ARRAY.astype(DTYPE)      of those
 *   np.float32(NUMBER), ...
 *   np.nan, np.inf, np.pi, np.e
 *
 * Nothing is evaluated: there are no variables, and no operators but signs, and the one of a
 * complex number. */
#ifndef SX_CLI_PYTHON_LITERAL_H
#define SX_CLI_PYTHON_LITERAL_H

#include <stdbool.h>

#include "base/arena.h"

typedef enum sx_literal_kind {
    SX_LITERAL_NONE,
    SX_LITERAL_BOOL,    /* integer: 0 or 1 */
    SX_LITERAL_INT,     /* integer */
    SX_LITERAL_FLOAT,   /* number */
    SX_LITERAL_COMPLEX, /* number and imaginary */
    SX_LITERAL_TEXT,    /* text: a str as UTF-8, or bytes */
    SX_LITERAL_LIST,    /* items; also a tuple */
    SX_LITERAL_DICT,    /* items and keys */
} sx_literal_kind;

typedef struct sx_literal {
    sx_literal_kind kind;
    int64_t integer;
    bool above; /* INT: more than INT64_MAX, the bits of a uint64_t */
    double number, imaginary;
    sx_bytes text;
    int n;
    /* [n]; the items of an empty list are NULL, or, of an array such as np.zeros((0, 3)), one that
     * tells the shape of the others. */
    struct sx_literal *items, *keys;
} sx_literal;

/* Parses the whole text; the result is in `arena`. INVALID_ARGUMENT: where, and what is expected;
 * RESOURCE_EXHAUSTED: nested more than 32 deep, more than 16 Mi items. */
SX_MUST_USE sx_status sx_literal_parse(const char *text, sx_arena *arena, sx_literal *out);

/* Whether it is a real number or a boolean, and its value. */
bool sx_literal_is_number(const sx_literal *literal);
double sx_literal_number(const sx_literal *literal);

/* The array that a literal stands for, of a given dtype: numbers are converted to it, to integers
 * by dropping the fraction, to complex ones with an imaginary part of 0. INVALID_ARGUMENT: lists of
 * different lengths, strings for numbers or the reverse, a number that the dtype cannot hold. */
SX_MUST_USE sx_status sx_literal_tensor(const sx_literal *literal, sx_dtype dtype, sx_arena *arena,
                                        sx_tensor *out);

/* A list of dicts, each from names to lists of numbers or strings, as serialized tf.train.Examples:
 * strings, [n]. */
SX_MUST_USE sx_status sx_literal_examples(const sx_literal *literal, sx_arena *arena,
                                          sx_tensor *out);

#endif
