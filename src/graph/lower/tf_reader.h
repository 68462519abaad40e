/* Reading TensorFlow's nodes: an operator's `from_tf` is a list of forms, each a TensorFlow
 * operator that is the same as ours, node for node. Where one of TensorFlow's is several of ours,
 * the importer composes them (src/savedmodel/import_library_*.c).
 *
 *     SX_FROM_TF({.op = "Slice", .operands = {{1, "begin"}, {2, "size"}}})
 *
 *     Slice(x, begin, size)  ->  slice(x) {begin, size}
 *
 * Attributes that a node lacks, or has of another kind, have TensorFlow's default. */
#ifndef SX_GRAPH_LOWER_TF_READER_H
#define SX_GRAPH_LOWER_TF_READER_H

#include "base/arena.h"
#include "graph/lower/tf_writer.h"

struct sx_op_def;

/* A node of TensorFlow as its reader sees it. Implementations embed this as their first field. */
typedef struct sx_tf_node sx_tf_node;
struct sx_tf_node {
    /* Sets *out to the attribute of that name; false if there is none. */
    bool (*attr)(const sx_tf_node *n, const char *name, sx_tf_attr *out);
    const sx_type *types;           /* [n_in] of the data inputs */
    const sx_tensor *const *values; /* [n_in]: those that are known, else NULL */
    int n_in;
    sx_arena *arena; /* for what sx_tf_form.attrs makes */
};

enum { SX_TF_FORM_OPERANDS = 4, SX_TF_MAX_INPUTS = 4096 };

typedef struct sx_tf_form {
    const char *op; /* TensorFlow's name */
    /* TensorFlow's inputs that are attributes of ours; the other inputs are ours, in order. */
    struct {
        int input;        /* -1 = the last */
        const char *attr; /* its row; "" if `attrs` reads it; NULL ends the list */
    } operands[SX_TF_FORM_OPERANDS];
    /* Sets the attributes that follow from the node's; NULL = none. UNIMPLEMENTED: TensorFlow means
     * something else than our operator. */
    sx_status (*attrs)(const sx_tf_node *n, void *attrs);
} sx_tf_form;

/* The field from_tf of a descriptor. */
#define SX_FROM_TF(...)             \
    .from_tf = (const sx_tf_form[]) \
    {                               \
        __VA_ARGS__,                \
        {                           \
            .op = NULL              \
        }                           \
    }

/* The operator that reads a TensorFlow operator, and the form; NULL if none does. */
const struct sx_op_def *sx_op_find_tf(const char *tf_op, const sx_tf_form **out_form);

/* An attribute that is an operand: its row, and the node's input that is its value. */
typedef struct sx_tf_open_attr {
    int row, input;
} sx_tf_open_attr;

/* Fills in the zeroed attributes of `op` from a node of that form, of a function's body, whose
 * types may have unknown parts: an attribute that depends on what is not known stays open.
 * open[SX_TF_FORM_OPERANDS]; inputs[SX_TF_MAX_INPUTS]: the node's inputs that are the operator's.
 * Errors: UNIMPLEMENTED, DATA_LOSS (an input is missing). */
SX_MUST_USE sx_status sx_tf_read_open_node(const struct sx_op_def *op, const sx_tf_form *form,
                                           const sx_tf_node *n, void *attrs, int *inputs,
                                           int *out_n_inputs, sx_tf_open_attr *open,
                                           int *out_n_open);

/* ---- Attributes of a node, for sx_tf_form.attrs ---- */

bool sx_tf_read_bool(const sx_tf_node *n, const char *name, bool otherwise);
int64_t sx_tf_read_int(const sx_tf_node *n, const char *name, int64_t otherwise);
double sx_tf_read_float(const sx_tf_node *n, const char *name, double otherwise);
sx_dtype sx_tf_read_dtype(const sx_tf_node *n, const char *name, sx_dtype otherwise);
/* Whether it is that text. */
bool sx_tf_read_is(const sx_tf_node *n, const char *name, const char *text, bool otherwise);
/* A list of `count` integers; false if it is absent or of another length. */
bool sx_tf_read_ints(const sx_tf_node *n, const char *name, int count, int64_t *out);
/* The known value of an input; UNIMPLEMENTED if it is not known. */
SX_MUST_USE sx_status sx_tf_read_value(const sx_tf_node *n, int input, const sx_tensor **out);

#endif
