/* See import_library_ops.h: nodes of ours with the types that they are declared with. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "graph/batch_fit.h"
#include "graph/host.h"

/* ---- Operands ---- */

sx_status sx_tf_operand(const sx_tf_op_node *x, int i, sx_value *out)
{
    if (i >= x->n->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", i);
    }
    const sx_tf_thing *in = &x->n->in[i];
    if (in->kind != SX_TF_VALUE) {
        return sx_tf_unsupported("input %d is %s", i,
                                 in->kind == SX_TF_LIST || in->kind == SX_TF_ARRAY
                                     ? "a list of tensors"
                                 : in->kind == SX_TF_COMPLEX ? "complex"
                                                             : "a variable's handle");
    }
    *out = in->value;
    return SX_OK;
}

void sx_tf_set(sx_tf_op_node *x, int output, sx_value value)
{
    x->n->out[output] =
        (sx_tf_thing){.kind = SX_TF_VALUE, .value = value, .known = sx_tf_constant_of(x->b, value)};
}

sx_status sx_tf_operand_ints(const sx_tf_op_node *x, int i, sx_ints *out)
{
    const sx_tensor *t = NULL;
    SX_TRY(sx_tf_read_value(&x->tf.head, i, &t));
    return sx_import_ints(t, i, out);
}

sx_status sx_tf_require_rank(const sx_tf_op_node *x, int i)
{
    return x->tf.head.types[i].rank == SX_UNKNOWN_RANK
               ? sx_tf_unsupported("the rank of input %d is unknown", i)
               : SX_OK;
}

/* ---- Types ---- */

static bool is_known(const sx_type *t)
{
    bool known = t->rank != SX_UNKNOWN_RANK;
    for (int d = 0; d < t->rank; d++) {
        known = known && (t->dims[d] >= 0 || sx_dim_is_batch(t->dims[d]));
    }
    return known;
}

sx_type sx_tf_unknown_shape(sx_dtype dtype)
{
    return (sx_type){.dtype = dtype, .rank = SX_UNKNOWN_RANK};
}

/* What is known of an output when nothing is known of the shapes: inferred for shapes of ones. Its
 * dtype, else an attribute, or that of input 0; and its rank if every rank that an input may have
 * gives the same. `open`: attributes are operands. */
static sx_type output_of_any_rank(const sx_op_def *op, const void *attrs, bool open, int output,
                                  const sx_type *inputs, int n_inputs)
{
    enum { MOST = 8 };
    sx_type ones[MOST], out[SX_MAX_OUTPUTS],
        type = sx_tf_unknown_shape(output < 2 ? op->out_dtypes[output] : SX_DTYPE_NONE);
    int n_out = 0, fits = 0, unknown = 0;
    for (int i = 0; i < n_inputs; i++) {
        unknown += inputs[i].rank == SX_UNKNOWN_RANK;
    }
    const bool one = !open && unknown == 1;
    for (int rank = 0; rank <= SX_MAX_RANK && n_inputs <= MOST && (one || fits == 0); rank++) {
        for (int i = 0; i < n_inputs; i++) { /* what is unknown is 1 */
            ones[i] = inputs[i];
            ones[i].rank = inputs[i].rank == SX_UNKNOWN_RANK ? rank : inputs[i].rank;
            for (int d = 0; d < ones[i].rank; d++) {
                const bool known = inputs[i].rank != SX_UNKNOWN_RANK && inputs[i].dims[d] >= 0;
                ones[i].dims[d] = known ? inputs[i].dims[d] : 1;
            }
        }
        sx_status status = sx_infer_types(op, attrs, ones, n_inputs, out, &n_out);
        if (status == SX_OK && output < n_out) {
            type.dtype = type.dtype == SX_DTYPE_NONE ? out[output].dtype : type.dtype;
            type.rank =
                fits == 0 || type.rank == out[output].rank ? out[output].rank : SX_UNKNOWN_RANK;
            fits++;
        }
        sx_status_free(status);
    }
    for (int i = 0; i < op->n_attrs && type.dtype == SX_DTYPE_NONE; i++) {
        if (op->attrs[i].kind == SX_ATTR_DTYPE) {
            type.dtype =
                *(const sx_dtype *)(const void *)((const char *)attrs + op->attrs[i].offset);
        }
    }
    if (type.dtype == SX_DTYPE_NONE && n_inputs > 0) {
        type.dtype = inputs[0].dtype;
    }
    type.rank = one && fits == SX_MAX_RANK + 1 ? type.rank : SX_UNKNOWN_RANK;
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    return type;
}

/* Infers as if each unknown dimension (and, if `batch`, N) had size `size`. */
static sx_status probe(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                       const sx_type *in, int n_in, int64_t size, bool batch, sx_type *out,
                       int *out_n)
{
    sx_type *types = sx_arena_memdup(&x->im->arena, in, ((size_t)n_in + 1) * sizeof(*in));
    if (types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            const bool unknown = types[i].dims[d] < 0 && !sx_dim_is_batch(types[i].dims[d]);
            types[i].dims[d] = unknown ? size : types[i].dims[d];
        }
    }
    return batch ? sx_infer_with_batch(op, attrs, types, n_in, size, out, out_n)
                 : sx_infer_types(op, attrs, types, n_in, out, out_n);
}

static void forget_dims(sx_type *types, int n)
{
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            types[i].dims[d] = SX_UNKNOWN_DIM;
        }
    }
}

/* A size of N, and of each unknown dimension, for which the node is right; 0: none was found. */
static int64_t size_that_fits(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                              const sx_type *in, int n_in)
{
    sx_type *types = sx_arena_memdup(&x->im->arena, in, ((size_t)n_in + 1) * sizeof(*in));
    for (int i = 0; i < n_in && types != NULL; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            const bool unknown = types[i].dims[d] < 0 && !sx_dim_is_batch(types[i].dims[d]);
            types[i].dims[d] = unknown ? SX_BATCH : types[i].dims[d];
        }
    }
    return types == NULL ? 0 : sx_batch_that_fits(op, attrs, types, n_in);
}

/* Infers as if N and each unknown dimension had the size that another input of this rank has there,
 * or else were 1. */
static sx_status probe_alike(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                             const sx_type *in, int n_in, sx_type *out, int *out_n)
{
    sx_type *types = sx_arena_memdup(&x->im->arena, in, ((size_t)n_in + 1) * sizeof(*in));
    if (types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            for (int k = 0; k < n_in && types[i].dims[d] < 0; k++) {
                types[i].dims[d] = in[k].rank == in[i].rank ? in[k].dims[d] : SX_UNKNOWN_DIM;
            }
        }
    }
    return probe(x, op, attrs, types, n_in, 1, true, out, out_n);
}

/* The types that a node's outputs are declared with: inferred where the inputs' types are known,
 * else as much as two guesses of what is unknown have in common. `open`: attributes are operands.
 */
static sx_status declare(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs, bool open,
                         const sx_type *in, int n_in, sx_type out[SX_MAX_OUTPUTS], int *out_n)
{
    if ((op->flags & SX_OP_HOST) != 0 && !open) { /* their infer takes unknown parts */
        sx_status status = sx_infer_types(op, attrs, in, n_in, out, out_n);
        const int64_t fits = status == SX_OK ? 0 : size_that_fits(x, op, attrs, in, n_in);
        if (status == SX_OK || fits == 0) {
            sx_status refused =
                status == SX_OK ? SX_OK : sx_tf_unsupported("%s", sx_status_message(status));
            sx_status_free(status);
            return refused;
        }
        sx_status_free(status);
        SX_TRY(probe(x, op, attrs, in, n_in, fits, true, out, out_n));
        forget_dims(out, *out_n);
        return SX_OK;
    }
    /* sizes that divide by nothing, so far apart that no window's stride takes one for the other */
    enum { ODD = 7919, FAR = 20011 };
    sx_type other[SX_MAX_OUTPUTS];
    bool all = !open, ranks = !open;
    int n_other = 0;
    for (int i = 0; i < n_in; i++) {
        all = all && is_known(&in[i]);
        ranks = ranks && in[i].rank != SX_UNKNOWN_RANK;
    }
    *out_n = op->n_out == SX_VARIADIC ? 1 : op->n_out;
    if (!ranks) {
        for (int i = 0; i < *out_n; i++) {
            out[i] = output_of_any_rank(op, attrs, open, i, in, n_in);
        }
        return SX_OK;
    }
    sx_status status = all ? sx_infer_types(op, attrs, in, n_in, out, out_n)
                           : probe(x, op, attrs, in, n_in, 1, false, out, out_n);
    if (status == SX_OK && all) {
        return SX_OK;
    }
    sx_status odd = probe(x, op, attrs, in, n_in, ODD, true, other, &n_other);
    if (status != SX_OK && odd == SX_OK) { /* it takes no 1 there: another guess beside it */
        sx_status_free(status);
        status = probe(x, op, attrs, in, n_in, FAR, true, out, out_n);
    }
    if (status != SX_OK && odd != SX_OK) { /* sizes that fit, or it is wrong for every batch */
        const int64_t fits = size_that_fits(x, op, attrs, in, n_in);
        if (fits == 0 && all) {
            sx_status refused = sx_tf_unsupported("%s", sx_status_message(status));
            sx_status_free(status);
            sx_status_free(odd);
            return refused;
        }
        sx_status_free(status);
        status = fits > 0 ? probe(x, op, attrs, in, n_in, fits, true, out, out_n)
                          : probe_alike(x, op, attrs, in, n_in, out, out_n);
    }
    const bool both = status == SX_OK && odd == SX_OK && n_other == *out_n;
    const bool some = status == SX_OK;
    sx_status_free(status);
    sx_status_free(odd);
    *out_n = some ? *out_n : op->n_out == SX_VARIADIC ? 1 : op->n_out;
    for (int i = 0; i < *out_n; i++) {
        if (!some || (both && other[i].rank != out[i].rank)) {
            out[i] = output_of_any_rank(op, attrs, open, i, in, n_in);
        }
        for (int d = 0; d < out[i].rank; d++) {
            const bool same = both && other[i].dims[d] == out[i].dims[d];
            out[i].dims[d] = same ? out[i].dims[d] : SX_UNKNOWN_DIM;
        }
    }
    return SX_OK;
}

/* ---- Building ---- */

/* Whether the outputs have the rank of the first input, whatever the other attributes are. */
static bool keeps_rank(const sx_op_def *op, const void *attrs)
{
    for (int i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, "keep_dims") == 0 &&
            !*(const bool *)((const char *)attrs + op->attrs[i].offset)) {
            return false;
        }
    }
    return (op->flags & SX_OP_KEEPS_RANK) != 0;
}

/* Adds a node whose types are declared; returns its first output. */
sx_status sx_tf_add_node(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                         const sx_value *in, int n_in, const sx_attr_operand *operands,
                         int n_operands, sx_value *out_first, int *out_n)
{
    sx_type types[SX_MAX_OUTPUTS], *in_types = sx_arena_array(&x->im->arena, n_in + 1, sx_type);
    if (in_types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        in_types[i] = sx_type_of_value(x->b, in[i]);
    }
    void *zero = attrs != NULL ? NULL : sx_arena_alloc(&x->im->arena, op->attrs_bytes + 1, 1);
    attrs = attrs != NULL ? attrs : zero;
    if (attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_known_attrs(x, op, &attrs, in_types, n_in, &operands, &n_operands));
    SX_TRY(declare(x, op, attrs, n_operands > 0, in_types, n_in, types, out_n));
    if (n_operands == 0 && *out_n == 1) {
        bool folded = false;
        SX_TRY(sx_tf_fold(x, op, attrs, in, n_in, &types[0], out_first, &folded));
        if (folded) {
            return SX_OK;
        }
    }
    for (int i = 0; n_operands > 0 && n_in > 0 && keeps_rank(op, attrs) && i < *out_n; i++) {
        types[i].rank = in_types[0].rank;
        for (int d = 0; d < types[i].rank; d++) {
            types[i].dims[d] = SX_UNKNOWN_DIM;
        }
    }
    for (int i = 0; i < n_operands; i++) { /* a shape of known length says at least the rank */
        const sx_type shape = sx_type_of_value(x->b, operands[i].value);
        const sx_attr_def *row = &op->attrs[operands[i].row];
        const bool of_output = row->means == SX_MEANS_SIZES ||
                               (row->kind == SX_ATTR_SHAPE && row->means != SX_MEANS_TO_THE_END);
        if (of_output && shape.rank == 1 && shape.dims[0] >= 0 && shape.dims[0] <= SX_MAX_RANK) {
            types[0].rank = (int)shape.dims[0];
            for (int d = 0; d < types[0].rank; d++) {
                int64_t dim = 0;
                bool is_dim = false;
                const bool known = sx_tf_peek(x->b, operands[i].value, d, &is_dim, &dim);
                types[0].dims[d] = known && (is_dim || dim >= 0) ? dim : SX_UNKNOWN_DIM;
            }
        }
    }
    *out_first = sx_build_node(x->b, &(sx_node_spec){.op = op,
                                                     .attrs = attrs,
                                                     .inputs = in,
                                                     .n_inputs = n_in,
                                                     .attr_operands = operands,
                                                     .n_attr_operands = n_operands,
                                                     .types = types,
                                                     .n_types = *out_n,
                                                     .device = "",
                                                     .file = ""});
    return SX_OK;
}

sx_value sx_tf_build_as(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                        const sx_value *in, int n_in, const sx_attr_operand *operands,
                        int n_operands, const sx_type *type)
{
    return sx_build_node(x->b, &(sx_node_spec){.op = op,
                                               .attrs = attrs,
                                               .inputs = in,
                                               .n_inputs = n_in,
                                               .attr_operands = operands,
                                               .n_attr_operands = n_operands,
                                               .types = type,
                                               .n_types = 1,
                                               .device = "",
                                               .file = ""});
}

/* A node of one output: *y = op(in...) {attrs}. */
sx_status sx_tf_build(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs, sx_value *y,
                      int n_in, const sx_value *in)
{
    int n = 0;
    return sx_tf_add_node(x, op, attrs, in, n_in, NULL, 0, y, &n);
}
#define SX_TF_BUILD(x, y, op_name, attrs, ...)                                      \
    SX_TRY(sx_tf_build((x), &sx_op_##op_name, (attrs), (y),                         \
                       (int)(sizeof((sx_value[]){__VA_ARGS__}) / sizeof(sx_value)), \
                       (const sx_value[]){__VA_ARGS__}))

sx_status sx_tf_charge_constant(const sx_tf_op_node *x, int64_t bytes)
{
    x->im->constant_bytes += SX_MAX(bytes, 0);
    return x->im->constant_bytes <= x->im->limits.constant_bytes
               ? SX_OK
               : sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld bytes of constants",
                          (long long)x->im->limits.constant_bytes);
}

sx_status sx_tf_constant(const sx_tf_op_node *x, sx_type type, const void *data, sx_value *out)
{
    const sx_constant_attrs attrs = {.value = {type, (void *)(uintptr_t)data}};
    return sx_tf_build(x, &sx_op_constant, &attrs, out, 0, NULL);
}

sx_status sx_tf_number(const sx_tf_op_node *x, sx_dtype dtype, double value, sx_value *out)
{
    uint64_t bytes = 0;
    if (sx_dtype_bytes(dtype) == 0) {
        return sx_tf_unsupported("of %s", sx_dtype_name(dtype));
    }
    sx_host_store_element(dtype, value, &bytes);
    return sx_tf_constant(x, sx_scalar_type(dtype), &bytes, out);
}

sx_status sx_tf_with_number(const sx_tf_op_node *x, const sx_op_def *op, sx_value v, double number,
                            sx_value *out)
{
    sx_value in[2] = {v, SX_NO_VALUE};
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, v).dtype, number, &in[1]));
    return sx_tf_build(x, op, NULL, out, 2, in);
}

sx_status sx_tf_require(const sx_tf_op_node *x, sx_value holds, const char *what, sx_value shown)
{
    const sx_assert_attrs attrs = {.message = what};
    sx_value y = SX_NO_VALUE;
    return x->im->trials > 0 /* it never runs */
               ? SX_OK
               : sx_tf_build(x, &sx_op_assert, &attrs, &y, 2, (const sx_value[]){holds, shown});
}

sx_status sx_tf_axis_from_0(const sx_tf_op_node *x, sx_value axis, sx_value rank, const char *what,
                            sx_value *out)
{
    sx_value below, above;
    SX_TF_BUILD(x, &below, less, NULL, axis, rank);
    SX_TF_BUILD(x, &above, neg, NULL, axis);
    SX_TF_BUILD(x, &above, less_equal, NULL, above, rank);
    SX_TF_BUILD(x, &below, logical_and, NULL, below, above);
    SX_TRY(sx_tf_require(x, below, what, axis));
    return sx_tf_build(x, &sx_op_floor_mod, NULL, out, 2, (const sx_value[]){axis, rank});
}

sx_status sx_tf_count_to(const sx_tf_op_node *x, sx_value n, sx_dtype dtype, sx_value *out)
{
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_iota, "shape"), n};
    int n_out = 0;
    return sx_tf_add_node(x, &sx_op_iota, &(sx_iota_attrs){.dtype = dtype}, NULL, 0, &open, 1, out,
                          &n_out);
}

sx_status sx_tf_int64s(const sx_tf_op_node *x, const sx_ints *list, sx_value *out)
{
    return sx_tf_constant(x, sx_type_of(SX_I64, list->n), list->v, out);
}

int sx_tf_attr_row(const sx_op_def *op, const char *name)
{
    int k = 0;
    while (k < op->n_attrs && strcmp(op->attrs[k].name, name) != 0) {
        k++;
    }
    return k;
}

/* op(v) with attribute `name` an operand. */
sx_status sx_tf_build_open(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                           sx_value v, const char *name, sx_value operand_value, sx_value *out)
{
    int n = 0;
    const sx_attr_operand open = {sx_tf_attr_row(op, name), operand_value};
    return sx_tf_add_node(x, op, attrs, &v, 1, &open, 1, out, &n);
}

sx_status sx_tf_reshape_as(const sx_tf_op_node *x, sx_value v, sx_value shape, const sx_type *type,
                           sx_value *out)
{
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_reshape, "shape"), shape};
    *out = sx_tf_build_as(x, &sx_op_reshape, NULL, &v, 1, &open, 1, type);
    return SX_OK;
}

/* v with dimension k that of `from[k]`, or 1 where that is -1; the elements stay. */
sx_status sx_tf_reshape_dims(const sx_tf_op_node *x, sx_value v, const sx_ints *from, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_shape_attrs attrs = {.shape = {.n = from->n}};
    sx_type made = {.dtype = type.dtype, .rank = from->n};
    int n_unknown = 0;
    for (int k = 0; k < from->n; k++) {
        attrs.shape.v[k] = made.dims[k] = from->v[k] < 0 ? 1 : type.dims[from->v[k]];
        n_unknown += attrs.shape.v[k] < 0 && !sx_dim_is_batch(attrs.shape.v[k]);
    }
    if (n_unknown == 0) {
        return sx_tf_build(x, &sx_op_reshape, &attrs, out, 1, &v);
    }
    /* a row of the shape, followed by a 1, for each dimension */
    static const int64_t one_data[1] = {1};
    sx_value shape = SX_NO_VALUE, one = SX_NO_VALUE, at = SX_NO_VALUE, dims = SX_NO_VALUE;
    sx_ints places = *from;
    for (int k = 0; k < places.n; k++) {
        places.v[k] = places.v[k] < 0 ? type.rank : places.v[k];
    }
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_constant(x, sx_type_of(SX_I64, 1), one_data, &one));
    SX_TF_BUILD(x, &dims, concat, (&(sx_axis_attrs){0}), shape, one);
    SX_TRY(sx_tf_int64s(x, &places, &at));
    SX_TF_BUILD(x, &shape, gather, NULL, dims, at);
    return sx_tf_reshape_as(x, v, shape, &made, out);
}
