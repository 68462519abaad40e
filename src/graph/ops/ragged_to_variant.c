/* ragged_to_variant: a ragged tensor, or each of its rows, in one string (ragged_variant.h): an
 * element of a list of ragged tensors.
 *
 *   splits...  int32 or int64 [rows + 1] of each ragged dimension, from the outermost on; may be
 *              none
 *   values     [k, ...] of any dtype, the last input
 *   batched    one string for each row
 *   returns    a string, or [rows]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) splits that contradict each other
 *          RESOURCE_EXHAUSTED  (running) a string that is too large
 * Source   TensorFlow RaggedTensorToVariant */
#ifdef SX_ATTRS
typedef struct sx_ragged_to_variant_attrs {
    bool batched;
} sx_ragged_to_variant_attrs;
#endif

#include "graph/ops/ragged_variant.h"

static const sx_attr_def ragged_to_variant_attrs[] = {
    SX_ATTR(sx_ragged_to_variant_attrs, batched, SX_ATTR_BOOL)};

static sx_status ragged_to_variant_infer(sx_infer_context *c)
{
    const sx_ragged_to_variant_attrs *a = c->attrs;
    const int n_splits = c->n_inputs - 1;
    if (n_splits < 0 || n_splits >= SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected splits and values", c->n_inputs);
    }
    for (int i = 0; i < n_splits; i++) {
        SX_TRY(sx_require_integers("splits", &c->inputs[i], 1, "[rows + 1]"));
    }
    const sx_type *values = &c->inputs[n_splits];
    if (sx_carrier_of(values->dtype) == SX_CARRIER_NONE ||
        (values->rank == 0 && (a->batched || n_splits > 0))) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected [k, ...]", SX_TEXT(values));
    }
    c->outputs[0] = sx_scalar_type(SX_STRING);
    if (a->batched) {
        const int64_t splits = n_splits > 0 ? sx_vector_size(&c->inputs[0]) : 0;
        const int64_t rows = splits > 0                          ? splits - 1
                             : n_splits == 0 && values->rank > 0 ? values->dims[0]
                                                                 : SX_UNKNOWN_DIM;
        c->outputs[0] = sx_type_of(SX_STRING, rows >= 0 ? rows : SX_UNKNOWN_DIM);
    }
    return SX_OK;
}

static sx_status ragged_to_variant_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_ragged_to_variant_attrs *a = c->attrs;
    const int n_splits = c->n_in - 1;
    const sx_type *values = &c->in[n_splits].type;
    if (values->rank == 0 && (a->batched || n_splits > 0)) {
        return sx_error(SX_INVALID_ARGUMENT, "values are a scalar, expected [k, ...]");
    }
    SX_TRY(sx_require_splits(c, n_splits, values->dims[0]));
    out_types[0] = !a->batched    ? sx_scalar_type(SX_STRING)
                   : n_splits > 0 ? sx_type_of(SX_STRING, sx_type_elems(&c->in[0].type) - 1)
                                  : sx_type_of(SX_STRING, values->dims[0]);
    return SX_OK;
}

static sx_status ragged_to_variant_host(const sx_kernel_call *c)
{
    const sx_ragged_to_variant_attrs *a = c->attrs;
    const int n_splits = c->n_in - 1;
    const sx_host_tensor *values = &c->in[n_splits];
    int64_t first[SX_MAX_RANK] = {0}, n[SX_MAX_RANK] = {0};
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    if (!a->batched) {
        for (int i = 0; i < n_splits; i++) {
            n[i] = sx_type_elems(&c->in[i].type) - 1;
        }
        sx_ragged_put(c->in, n_splits, first, n, values, 0, -1, &text);
        status = sx_string_put(c, 0, 0, &text);
    }
    const int64_t rows = a->batched ? sx_type_elems(&c->out[0].type) : 0;
    for (int64_t row = 0; row < rows && status == SX_OK; row++) {
        int64_t from = row, count = 1; /* of what the splits below, or the values, have */
        if (n_splits > 0) {
            from = c->in[0].i[row];
            count = c->in[0].i[row + 1] - from;
        }
        for (int i = 1; i < n_splits; i++) {
            first[i] = from;
            n[i] = count;
            const int64_t end = c->in[i].i[from + count];
            from = c->in[i].i[from];
            count = end - from;
        }
        if (n_splits > 0) {
            sx_ragged_put(c->in + 1, n_splits - 1, first + 1, n + 1, values, from, count, &text);
        } else { /* a dense element, of one dimension less */
            const sx_type *x = &values->type;
            const sx_type item = sx_type_make(x->dtype, x->rank - 1, x->dims + 1);
            const size_t bytes = (size_t)sx_type_elems(&item) * sx_carrier_bytes(x->dtype);
            const sx_host_tensor part = {.type = item, .data = values->b + (size_t)row * bytes};
            sx_ragged_put(NULL, 0, NULL, NULL, &part, 0, -1, &text);
        }
        status = sx_string_put(c, 0, row, &text);
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status ragged_to_variant_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_ragged_to_variant_attrs *)out)->batched = sx_tf_read_bool(n, "batched_input", false);
    return SX_OK;
}

const sx_op_def sx_op_ragged_to_variant = {
    SX_OP_NAMED(ragged_to_variant),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_ragged_to_variant_attrs, ragged_to_variant_attrs),
    .infer = ragged_to_variant_infer,
    .host = ragged_to_variant_host,
    .host_types = ragged_to_variant_host_types,
    SX_FROM_TF({.op = "RaggedTensorToVariant", .attrs = ragged_to_variant_from_tf}),
};
