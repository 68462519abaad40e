/* A parsed StableHLO function: what parse.c makes of a text, and run.c runs.
 *
 *   program   values (by SSA number), the function's block
 *   block     arguments, operations in order, results: the function's, or a region's
 *   op        its row (ops.h), operands, results, attributes, regions
 *
 * All of it lies in the program's arena and never changes after parsing, so that any number of
 * threads run it. Every program that parse.c hands out has been checked: operands are defined
 * before they are used, each op's row has accepted its attributes and types. run.c relies on it.
 *
 * Values die: after the last op of their block that reads them (itself or in its regions), run.c
 * lets them go. Each op lists the values whose last reader it is. */
#ifndef PJRT_REF_PROGRAM_H
#define PJRT_REF_PROGRAM_H

#include <sextant/types.h>

#include "base/arena.h"

/* Bounds on texts from outside. */
enum {
    REF_MAX_DEPTH = 16,       /* of regions, and of lists in attributes */
    REF_MAX_VALUES = 1 << 20, /* SSA numbers */
    REF_MAX_OPERANDS = 4096,  /* of an op, arguments of a block, numbers in a list */
    REF_MAX_ATTRS = 32,       /* of an op, fields of a record */
    REF_MAX_REPLICAS = 1024,
};
#define REF_MAX_TEXT ((size_t)1 << 30)
#define REF_MAX_ELEMS                                                           \
    ((int64_t)1 << 40) /* of one value, as written; memory is bounded elsewhere \
                        */

typedef struct ref_op ref_op;
typedef struct ref_block ref_block;
typedef struct ref_program ref_program;
struct ref_row;

typedef enum ref_attr_kind {
    REF_UNIT,   /* unit, or a name alone */
    REF_INTS,   /* 3 : i64, true, array<i64: 1, 2>, [1, 2], dense<[[1, 2]]> : tensor<1x2xi64> */
    REF_WORD,   /* #stablehlo<comparison_direction EQ> */
    REF_DENSE,  /* dense<…> : tensor<…> of an operation's `value` */
    REF_RECORD, /* #stablehlo.dot<name = […], …> */
    REF_LIST,   /* […] of anything else: only looked over */
} ref_attr_kind;

typedef struct ref_attr {
    ref_attr_kind kind;
    const char *name; /* NUL-terminated */
    const char *word;
    int64_t *ints;
    int n_ints;
    struct ref_attr *fields;
    int n_fields;
    sx_type type;     /* of dense values */
    const void *data; /* of type's dtype: all elements, or one that stands for all */
    bool is_splat;
} ref_attr;

typedef struct ref_value {
    sx_type type;
    ref_block *block; /* where it is defined */
    ref_op *definer;  /* NULL = an argument of its block */
    ref_op *last;     /* its last reader, in its block; NULL = none */
    bool is_result;   /* of its block */
} ref_value;

struct ref_op {
    const struct ref_row *row;
    ref_op *next;
    int *in, *out; /* values */
    int n_in, n_out;
    ref_attr *attrs;
    int n_attrs;
    ref_block *regions;
    int n_regions;
    int *dies; /* values to let go of afterwards */
    int n_dies;
    const char *loc; /* "" = none */
    int line;
    void *plan; /* what the row's check keeps for its run */
};

struct ref_block {
    ref_block *outer;
    ref_op *owner; /* whose region it is; NULL = the function */
    int *args;
    int n_args;
    ref_op *first, *last;
    int *results;
    int n_results;
    int *unread; /* arguments that nobody reads */
    int n_unread;
};

struct ref_program {
    sx_arena arena;
    ref_value **values; /* by SSA number; NULL = none */
    int n_values;
    ref_block main;
    int *aliases; /* of main's args: the result that takes its memory; -1 none */
    bool *donors; /* of main's args: the execution may use its memory */
    int replicas; /* what collectives may be written for */
    double flops; /* of products and elementwise operations, each once */
    int n_ops;
};

static inline const sx_type *ref_type_of(const ref_program *p, int value)
{
    return &p->values[value]->type;
}

/* "f32", "ui8": StableHLO's name; NULL if it has none. */
const char *ref_dtype_text(sx_dtype dtype);

#endif
