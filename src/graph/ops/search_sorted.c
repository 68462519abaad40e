/* search_sorted: where each value would be inserted in its row of ascending numbers.
 *
 *   sorted   [rows, n]; values [rows, m]: one dtype, any number
 *   upper    after elements that are equal to the value; otherwise before them
 *   returns  int32 or int64 [rows, m], in [0, n]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) the rows differ
 * Numbers  exact; of rows that do not ascend the steps of a binary search
 * Source   TensorFlow LowerBound, UpperBound */
#ifdef SX_ATTRS
typedef struct sx_search_sorted_attrs {
    bool upper;
    sx_dtype out_type;
} sx_search_sorted_attrs;
#endif

#include "graph/ops/host_ops.h"

static const sx_attr_def search_sorted_attrs[] = {
    SX_ATTR(sx_search_sorted_attrs, upper, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_search_sorted_attrs, out_type, SX_ATTR_DTYPE, .tf_number = SX_I32),
};

static sx_status search_sorted_infer(sx_infer_context *c)
{
    const sx_search_sorted_attrs *attrs = c->attrs;
    const sx_type *sorted = &c->inputs[0], *values = &c->inputs[1];
    SX_TRY(sx_require_number("sorted", sorted));
    SX_TRY(sx_require_maybe("sorted", sorted, sorted->dtype, 2, "[rows, n]"));
    SX_TRY(sx_require_maybe("values", values, sorted->dtype, 2, "[rows, m]"));
    if (attrs->out_type != SX_I32 && attrs->out_type != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "out_type is %s, expected int32 or int64",
                        sx_dtype_name(attrs->out_type));
    }
    c->outputs[0] =
        values->rank == 2 ? *values : sx_type_of(SX_I32, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    c->outputs[0].dtype = attrs->out_type;
    return SX_OK;
}

static sx_status search_sorted_host(const sx_kernel_call *c)
{
    const sx_search_sorted_attrs *attrs = c->attrs;
    const sx_host_tensor *sorted = &c->in[0], *values = &c->in[1];
    const int64_t n = sorted->type.dims[1], m = values->type.dims[1];
    if (sorted->type.dims[0] != values->type.dims[0]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "sorted is %s and values are %s, expected equally "
                        "many rows",
                        SX_TEXT(&sorted->type), SX_TEXT(&values->type));
    }
#define SEARCH(T, field)                                                                        \
    for (int64_t k = 0, end = sx_type_elems(&values->type); k < end; k++) {                     \
        const T *row = sorted->field + k / m * n, v = values->field[k];                         \
        int64_t first = 0;                                                                      \
        for (int64_t left = n; left > 0;) {                                                     \
            const int64_t half = left / 2;                                                      \
            const bool after = attrs->upper ? !(v < row[first + half]) : row[first + half] < v; \
            first = after ? first + half + 1 : first;                                           \
            left = after ? left - half - 1 : half;                                              \
        }                                                                                       \
        c->out[0].i[k] = first;                                                                 \
    }
    SX_HOST_BY_NUMBER(sorted->type.dtype, SEARCH)
    return SX_OK;
}

static void search_sorted_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_search_sorted_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_search_sorted, attrs->upper ? "UpperBound" : "LowerBound",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static sx_status upper_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_search_sorted_attrs *)out)->upper = true;
    return SX_OK;
}

static const double row[] = {0, 1, 1, 4}, values[] = {-1, 1, 4, 0, 9, 2};
static const sx_op_sample search_sorted_samples[] = {
    {.name = "lower",
     .inputs = {SX_SAMPLE_LIST(SX_F32, row, 3, 4), SX_SAMPLE_LIST(SX_F32, values, 3, 3)},
     .n_inputs = 2,
     .attrs = &(const sx_search_sorted_attrs){.out_type = SX_I32}},
    {.name = "upper",
     .inputs = {SX_SAMPLE_LIST(SX_I64, row, 2, 4), SX_SAMPLE_LIST(SX_I64, values, 2, 3)},
     .n_inputs = 2,
     .attrs = &(const sx_search_sorted_attrs){.upper = true, .out_type = SX_I64}},
};

const sx_op_def sx_op_search_sorted = {
    SX_OP_NAMED(search_sorted),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_search_sorted_attrs, search_sorted_attrs),
    .infer = search_sorted_infer,
    .host = search_sorted_host,
    .to_tf = search_sorted_to_tf,
    SX_FROM_TF({.op = "LowerBound"}, {.op = "UpperBound", .attrs = upper_from_tf}),
    SX_OP_SAMPLES(search_sorted_samples),
};
