/* An operator is one file (src/graph/ops/NAME.c) and one row (ops.def). This header is what the
 * file fills in: the descriptor sx_op_def and the contexts of its functions.
 *
 *   infer      types of the outputs from attributes and input types
 *   grad       adds the nodes of the gradient; never touches data
 *   host       computes it, any shape and dtype: the oracle of every backend (host.h)
 *   to_tf      the TensorFlow nodes that say the same (SavedModel export)
 *   from_tf    the TensorFlow operators that are this one (SavedModel import)
 *   samples    shapes and attributes on which all of the above are tested
 *
 * A facet that does not exist is declared by a flag, never left silently NULL. How other targets
 * write it is not here: tables by operator in the targets' folders (lower/stablehlo/rows.def,
 * backends/cpu/kernels.def). */
#ifndef SX_GRAPH_OP_DEF_H
#define SX_GRAPH_OP_DEF_H

#include <sextant/graph.h>

#include "graph/lower/tf_reader.h"
#include "graph/lower/tf_writer.h"

/* ---- Attributes: one row per field of the operator's attribute struct ---- */

/* A short list of integers: strides, axes, a shape. */
typedef struct sx_ints {
    int n;
    int64_t v[SX_MAX_RANK];
} sx_ints;

typedef enum sx_attr_kind {
    SX_ATTR_INT,    /* int64_t */
    SX_ATTR_FLOAT,  /* double */
    SX_ATTR_BOOL,   /* bool */
    SX_ATTR_ENUM,   /* int32_t, names in .names */
    SX_ATTR_DTYPE,  /* sx_dtype */
    SX_ATTR_INTS,   /* sx_ints: numbers, also where one is -1 */
    SX_ATTR_SHAPE,  /* sx_ints: dimensions, one of which may be c·N */
    SX_ATTR_STRING, /* const char *, NULL = "" */
    SX_ATTR_TENSOR, /* sx_tensor of a static type; deep-copied into the graph */
    SX_ATTR_BODY,   /* const sx_graph *: a region, deep-copied into the graph (ir.h) */
} sx_attr_kind;

/* The special meanings that numbers have in TensorFlow's form of it: what a model computes, and
 * the importer finds, is read so (attr_operands.h). */
typedef enum sx_attr_meaning {
    SX_MEANS_PLAIN = 0,
    SX_MEANS_SHAPE_REST, /* -1: the remaining elements */
    SX_MEANS_TO_THE_END, /* -1: to the end of the axis, from the attribute `begin` before it */
    SX_MEANS_AXES,       /* negative: counted from the end; sorted, without duplicates */
    SX_MEANS_AXIS,
    SX_MEANS_ORDER, /* of axes; negative: counted from the end */
    SX_MEANS_SIZES, /* the output's shape, as numbers */
} sx_attr_meaning;

typedef struct sx_attr_def {
    const char *name;
    sx_attr_kind kind;
    sx_attr_meaning means;
    size_t offset;
    const char *const *names; /* SX_ATTR_ENUM: NULL-terminated; index = value */
    /* TensorFlow's nodes have an attribute of this name and kind: read by every form of from_tf,
     * written by sx_tf_same(). Its default there: */
    bool tf;
    double tf_number;    /* INT, FLOAT, BOOL, DTYPE (0 = it has none) */
    const char *tf_text; /* STRING, NULL = "" */
} sx_attr_def;

#define SX_ATTR(struct_type, field, kind_)                                      \
    {                                                                           \
        .name = #field, .kind = (kind_), .offset = offsetof(struct_type, field) \
    }
#define SX_ATTR_MEANS(struct_type, field, kind_, means_)                                           \
    {                                                                                              \
        .name = #field, .kind = (kind_), .means = (means_), .offset = offsetof(struct_type, field) \
    }
/* SX_ATTR_TF(sx_as_string_attrs, width, SX_ATTR_INT, .tf_number = -1) */
#define SX_ATTR_TF(struct_type, field, kind_, ...)                                           \
    {                                                                                        \
        .name = #field, .kind = (kind_), .offset = offsetof(struct_type, field), .tf = true, \
        __VA_ARGS__                                                                          \
    }
#define SX_ATTR_NAMES(struct_type, field, names_)                                     \
    {                                                                                 \
        .name = #field, .kind = SX_ATTR_ENUM, .offset = offsetof(struct_type, field), \
        .names = (names_)                                                             \
    }

/* ---- Contexts ---- */

/* Infer: fill outputs[0 .. n_outputs). n_outputs is preset to op->n_out; a variadic operator sets
 * it (at most SX_MAX_OUTPUTS). An error says expected and actual; the builder adds layer and line.
 */
enum { SX_MAX_OUTPUTS = 256 };
typedef struct sx_infer_context {
    const void *attrs;
    const sx_type *inputs;
    int n_inputs;
    sx_type *outputs;
    int n_outputs;
} sx_infer_context;

/* Grad: set dx[i] for each i with needed[i]; left SX_NO_VALUE it means zero. dy[i] is SX_NO_VALUE
 * where no gradient comes in. Nodes are added through `b`, which keeps errors. */
typedef struct sx_grad {
    sx_builder *b;
    const void *attrs;
    const sx_value *x, *y, *dy; /* the node's inputs, its outputs, gradients of the outputs */
    sx_value *dx;
    const bool *needed;
    int n_inputs, n_outputs;
} sx_grad;

/* Host: computes the outputs on the host (host.h). An error is the data's: INVALID_ARGUMENT for an
 * integer divided by zero. */
typedef struct sx_host_tensor sx_host_tensor;
typedef struct sx_kernel_call sx_kernel_call;

/* ---- Samples ---- */

/* Each sample is run a second time with the inputs that `bf16` names in bfloat16. That has 8
 * significant bits: a result that is rounded once is within 2^-9 of itself, and one that two
 * backends round apart within 2^-8 of the greatest of |value| and of the sum of its terms. */

/* How a sample's input is filled, drawn from Threefry keyed by the sample's name. */
typedef enum sx_fill {
    SX_FILL_NORMAL = 0,
    SX_FILL_POSITIVE, /* uniform in [0.5, 2) */
    SX_FILL_UNIFORM,  /* uniform in (-0.9, 0.9) */
    SX_FILL_DISTINCT, /* normal-like; elements at least 1e-2 apart and from 0: no kinks, no ties */
    SX_FILL_INDEX,    /* integers in [0, limit) */
    SX_FILL_BOOL,
    SX_FILL_BITS, /* any 32 bits: seeds */
    SX_FILL_TRUE, /* all 1 */
    SX_FILL_FAR,  /* 10000 + normal: differences of such lose the digits that are not kept */
    SX_FILL_LIST, /* `numbers` in turn */
    SX_FILL_TEXT, /* `texts` in turn; NULL = empty, blank, long, in UTF-8 and not in UTF-8 */
} sx_fill;

enum { SX_SAMPLE_MAX_INPUTS = 8 };

typedef struct sx_sample_input {
    sx_type type; /* may have the batch */
    sx_fill fill;
    int64_t limit; /* SX_FILL_INDEX; how many `numbers` there are */
    union {
        const double *numbers;
        const char *const *texts; /* NULL-terminated */
    };
} sx_sample_input;

/* One case of the forward, gradient, TensorFlow and timing tests. */
typedef struct sx_op_sample {
    const char *name;
    sx_sample_input inputs[SX_SAMPLE_MAX_INPUTS];
    int n_inputs;
    const void *attrs;  /* NULL = all zero */
    int64_t batch;      /* what SX_BATCH is compiled to; 0 = 5, a size that divides by nothing */
    bool no_grad_check; /* a comment says why */
    double tolerance;   /* 0 = the project's 1e-5; a looser one says why beside it */
} sx_op_sample;

/* {T, dims} of a float32 / int32 sample input: SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4). */
#define SX_TYPE_LITERAL_(dtype_, ...)                                                         \
    {                                                                                         \
        .dtype = (dtype_), .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        .dims = {                                                                             \
            __VA_ARGS__                                                                       \
        }                                                                                     \
    }
#define SX_SAMPLE_F32(fill_, ...)                                      \
    {                                                                  \
        .type = SX_TYPE_LITERAL_(SX_F32, __VA_ARGS__), .fill = (fill_) \
    }
#define SX_SAMPLE_I32(limit_, ...)                                                              \
    {                                                                                           \
        .type = SX_TYPE_LITERAL_(SX_I32, __VA_ARGS__), .fill = SX_FILL_INDEX, .limit = (limit_) \
    }

/* A string input of the usual texts; one of given texts, or numbers, in turn. */
#define SX_SAMPLE_TEXT(...)                                                    \
    {                                                                          \
        .type = SX_TYPE_LITERAL_(SX_STRING, __VA_ARGS__), .fill = SX_FILL_TEXT \
    }
#define SX_SAMPLE_TEXTS(texts_, ...)                                                              \
    {                                                                                             \
        .type = SX_TYPE_LITERAL_(SX_STRING, __VA_ARGS__), .fill = SX_FILL_TEXT, .texts = (texts_) \
    }
#define SX_SAMPLE_LIST(dtype_, numbers_, ...)                                        \
    {                                                                                \
        .type = SX_TYPE_LITERAL_(dtype_, __VA_ARGS__), .fill = SX_FILL_LIST,         \
        .numbers = (numbers_), .limit = (int64_t)(sizeof(numbers_) / sizeof(double)) \
    }

/* A scalar input of the number in numbers[1]. */
#define SX_SAMPLE_ONE(dtype_, numbers_)                                                      \
    {                                                                                        \
        .type = {.dtype = (dtype_)}, .fill = SX_FILL_LIST, .numbers = (numbers_), .limit = 1 \
    }

/* ---- The descriptor ---- */

/* The batch rule: what a node computes from a part of the batch, some examples of every operand
 * that has the batch, wherever its type says. The rule alone decides how a program is divided
 * (spmd.h). */
typedef enum sx_batch_rule {
    SX_RULE_NONE = 0, /* examples depend on one another: the operands are needed whole */
    SX_RULE_TYPES,    /* only types matter, those of the whole batch: size */
    SX_RULE_EXAMPLES, /* those examples of the outputs, all of which have the batch */
    /* The same; the place of the first row in the whole batch matters, and is an additional last
     * operand, uint32, of a node that computes a part: dropout */
    SX_RULE_ROWS,
    SX_RULE_REGIONS, /* what the nodes of its regions compute from theirs */
    /* The same; of an output without the batch a partial result, and those of all parts give the
     * whole by */
    SX_RULE_SUM, /* their sum, in a fixed tree */
    SX_RULE_MAX,
    SX_RULE_MIN,
    SX_RULE_AND,
    SX_RULE_OR,
    SX_RULE_PROD,
    SX_RULE_MOMENTS, /* outputs mean, variance: Chan's parallel formula */
} sx_batch_rule;

/* Parts: which part of its operands a node needs for a part of its outputs. A part is of each axis
 * the first elements, and given as a type with the value's dimensions or smaller ones. */
typedef struct sx_parts {
    const void *attrs;
    int n_inputs;
    const sx_type *in, *out;
    const sx_type *in_nonzero; /* elements of the operands beyond these are zero */
    const sx_type *out_used;   /* the parts of the outputs that are needed */
    /* Whole; the operator lowers dimensions. Operands may be larger parts than it needs; what the
     * part of an output contains does not depend on the elements beyond. */
    sx_type *in_used;     /* depends on in_nonzero and out_used: what is zero need not be read */
    sx_type *out_nonzero; /* depends on in_nonzero: elements beyond are zero */
} sx_parts;

typedef enum sx_op_flags {
    SX_OP_NO_GRAD = 1 << 0,     /* gradient zero by nature; or in no graph that is differentiated */
    SX_OP_NO_TF = 1 << 1,       /* never exported: training only */
    SX_OP_ELEMENTWISE = 1 << 2, /* output element i depends on input elements i (broadcast) only */
    SX_OP_SUM = 1 << 3, /* a sum of products of inputs: tests bound the error by Σ|terms| */
    /* Never on a device: strings, shapes that data decide. Its infer takes unknown ranks and
     * dimensions, too, and says of the outputs what is known. */
    SX_OP_HOST = 1 << 5,
    /* Reads what a loaded model keeps between runs (graph/tables.h): not folded. With SX_OP_EFFECT:
     * writes it. Its attributes begin with sx_table_attrs. */
    SX_OP_STATE = 1 << 6,
    SX_OP_NO_HOST = 1 << 7,     /* nothing to compute: parameter */
    SX_OP_FUNCTION = 1 << 9,    /* in function bodies only: sx_specialize() resolves it */
    SX_OP_EFFECT = 1 << 10,     /* does something beside its outputs: keeps program order */
    SX_OP_BY_REPLICA = 1 << 11, /* replicas differ in it though its operands do not: not folded */
    SX_OP_VIEW = 1 << 12,       /* the output is the bytes of input 0, as another type */
    /* Results in a float dtype are numbers of the operands, their negatives, or small integers:
     * nothing is rounded. */
    SX_OP_EXACT = 1 << 13,
    /* The outputs have the rank of input 0, whatever the attributes; with an attribute keep_dims,
     * where that is true. */
    SX_OP_KEEPS_RANK = 1 << 14,
    /* A number that decides a shape is looked for up to its result and not in its operands: only
     * their types matter, or it is one of many and worth waiting for (the longest of ragged rows)
     */
    SX_OP_SHAPE_SOURCE = 1 << 15,
    /* It has a gradient, which nobody has written: an error where one is asked for. */
    SX_OP_REFUSES_GRAD = 1 << 16,
    /* Its outputs are its first operands; it only says what their gradient is. Left out where none
     * is asked for: of a function that is not differentiated, of a compiled graph. */
    SX_OP_FOR_GRADIENT = 1 << 17,
} sx_op_flags;

enum { SX_VARIADIC = -1 };
#define SX_MOVES_ALL (~0u)

/* To TensorFlow: emit nodes for in[], set out[i]. Types may have SX_BATCH. The writer keeps errors.
 */
typedef struct sx_tf_op {
    const void *attrs;
    const char *name; /* of our node */
    const sx_tf_value *in;
    sx_tf_value *out;
    const sx_type *in_types, *out_types;
    int n_in, n_out;
} sx_tf_op;

typedef struct sx_op_def {
    int id; /* SX_OPID_<name> */
    const char *name;
    int n_in, n_out; /* SX_VARIADIC */
    unsigned bf16;   /* bit i: input i may be bfloat16 (a float32 input's, in the samples) */
    unsigned flags;
    sx_batch_rule batch_rule;
    /* The bool attribute that, where replicas share the batch, makes a node compute with the
     * statistics of its replica's part instead of those of the whole batch; NULL: none. Moments
     * that such nodes read combine as means. */
    const sx_attr_def *own_part;
    /* The bool attribute that says: the operands are float32 of bfloat16's precision, which a
     * device may use (sx_pass_widen_bf16); NULL: none. */
    const sx_attr_def *bf16_operands;
    unsigned moved; /* bit i: elements of input i are moved to the outputs as they are (host.h) */
    const sx_attr_def *attrs;
    int n_attrs;
    size_t attrs_bytes;
    sx_status (*infer)(sx_infer_context *c);
    /* Of outputs 0 and 1, where neither input 0 nor an attribute has it, and infer says it only for
     * shapes that fit. SX_DTYPE_NONE: infer says it for shapes of ones. */
    sx_dtype out_dtypes[2];
    void (*grad)(sx_grad *g);
    sx_status (*host)(const sx_kernel_call *c);
    /* Where data decide the outputs' shapes: their types, from the call's inputs (c->out is NULL);
     * `host` is called with room for those. NULL: infer says them. */
    sx_status (*host_types)(const sx_kernel_call *c, sx_type *out_types);
    /* Where small inputs may take long, or much memory: refuses them by what is quickly read
     * (headers), and says how much memory `host` allocates at most, beside the call's arena, which
     * the caller charges to its budget before. Computed piece by piece, it is called first with the
     * whole batch. NULL: nothing to check. */
    sx_status (*host_check)(const sx_kernel_call *c, size_t *out_bytes);
    /* NULL: needs its operands whole, but for an elementwise operator, which needs of them what is
     * needed of the output. */
    void (*parts)(const sx_parts *p);
    /* Whether parts of these sizes, which infer refuses, are a pair that a kernel can compute,
     * taking the sizes from the types and not from its attributes: kernels with `parts` do. NULL:
     * never. */
    bool (*parts_fit)(const void *attrs, const sx_type *in, const sx_type *out);
    /* SX_OP_EXACT with these attributes only; NULL: with any. */
    bool (*exact_if)(const void *attrs);
    unsigned zero_of; /* elementwise: bit i: where input i is zero, so is the output */
    /* Multiplications and additions, from the types of inputs and outputs. NULL: one for each
     * element of the largest. */
    double (*flops)(const sx_type *in, const sx_type *out);
    /* Bytes read and written. NULL: every operand once and every output once. */
    double (*bytes)(const sx_type *in, const sx_type *out);
    void (*to_tf)(sx_tf_writer *w, const sx_tf_op *op);
    const sx_tf_form *from_tf; /* SX_FROM_TF(); NULL: none, or composed by the importer */
    const sx_op_sample *samples;
    int n_samples;
    double bf16_tolerance; /* of the samples in bfloat16; 0 = 2^-8, a looser one says why */
} sx_op_def;

#define SX_OP_NAMED(op_name) .id = SX_OPID_##op_name, .name = #op_name
#define SX_OP_ATTRS(struct_type, rows)                                   \
    .attrs = (rows), .n_attrs = (int)(sizeof(rows) / sizeof((rows)[0])), \
    .attrs_bytes = sizeof(struct_type)
#define SX_OP_SAMPLES(rows) .samples = (rows), .n_samples = (int)(sizeof(rows) / sizeof((rows)[0]))

/* The table, expanded from ops.def: enum, descriptors, array. */
typedef enum sx_op_id {
#define SX_OP(op_name) SX_OPID_##op_name,
#include "graph/ops/ops.def"
#undef SX_OP
    SX_OPID_COUNT
} sx_op_id;

#define SX_OP(op_name) extern const sx_op_def sx_op_##op_name;
#include "graph/ops/ops.def"
#undef SX_OP

extern const sx_op_def *const sx_op_table[SX_OPID_COUNT]; /* by id */
const sx_op_def *sx_op_find(const char *name);            /* NULL if unknown */
bool sx_op_has_regions(const sx_op_def *op);              /* attributes of SX_ATTR_BODY */

/* ---- Attributes, by their rows ---- */

bool sx_attrs_equal(const sx_op_def *op, const void *a, const void *b);
uint64_t sx_attrs_hash(const sx_op_def *op, const void *attrs);

#endif
