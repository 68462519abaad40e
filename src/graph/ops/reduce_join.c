/* reduce_join: the strings along some axes, one after the other.
 *
 *   x          strings
 *   axes       int32 or int64: the order in which they are joined, the first one fastest; negative:
 *              counted from the end
 *   keep_dims  the axes stay, with size 1
 *   separator  between two strings
 *   returns    strings
 *
 * Errors   INVALID_ARGUMENT  dtypes; (running) an axis out of range or there twice
 * Source   TensorFlow ReduceJoin */
#include "graph/ops/host_ops.h"

typedef struct sx_reduce_join_attrs {
    bool keep_dims;
    const char *separator;
} sx_reduce_join_attrs;

static const sx_attr_def reduce_join_attrs[] = {
    SX_ATTR_TF(sx_reduce_join_attrs, keep_dims, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_reduce_join_attrs, separator, SX_ATTR_STRING),
};

static sx_status reduce_join_infer(sx_infer_context *c)
{
    const sx_reduce_join_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_dtype("x", x, SX_STRING));
    SX_TRY(sx_require_integers("axes", &c->inputs[1], -1, ""));
    c->outputs[0] = sx_unknown_shape(SX_STRING);
    if (x->rank >= 0 && attrs->keep_dims) {
        c->outputs[0].rank = x->rank;
    } else if (x->rank >= 0 && c->inputs[1].rank == 0) {
        c->outputs[0].rank = SX_MAX(x->rank - 1, 0);
    } else if (x->rank >= 0 && sx_vector_size(&c->inputs[1]) >= 0) {
        c->outputs[0].rank = (int)SX_MAX(x->rank - c->inputs[1].dims[0], 0);
    }
    for (int d = 0; d < c->outputs[0].rank; d++) {
        c->outputs[0].dims[d] = SX_UNKNOWN_DIM;
    }
    return SX_OK;
}

/* The axes, from the front. */
static sx_status read_axes(const sx_kernel_call *c, sx_ints *out)
{
    const sx_type *x = &c->in[0].type;
    bool there[SX_MAX_RANK] = {false};
    const int64_t n = sx_type_elems(&c->in[1].type);
    out->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = c->in[1].i[i] + (c->in[1].i[i] < 0 ? x->rank : 0);
        if (axis < 0 || axis >= x->rank || there[axis]) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %lld of %s is out of range or given twice",
                            (long long)c->in[1].i[i], SX_TEXT(x));
        }
        there[axis] = true;
        out->v[out->n++] = axis;
    }
    return SX_OK;
}

static sx_status reduce_join_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_reduce_join_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    sx_type y = {.dtype = SX_STRING};
    sx_ints axes;
    SX_TRY(read_axes(c, &axes));
    for (int d = 0; d < x->rank; d++) {
        bool joined = false;
        for (int i = 0; i < axes.n; i++) {
            joined = joined || axes.v[i] == d;
        }
        if (!joined || attrs->keep_dims) {
            y.dims[y.rank++] = joined ? 1 : x->dims[d];
        }
    }
    out_types[0] = y;
    return SX_OK;
}

static sx_status reduce_join_host(const sx_kernel_call *c)
{
    const sx_reduce_join_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    sx_ints axes;
    int64_t joined = 1, strides[SX_MAX_RANK], stride = 1;
    SX_TRY(read_axes(c, &axes));
    for (int d = x->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= x->dims[d];
    }
    for (int i = 0; i < axes.n; i++) {
        joined *= x->dims[axes.v[i]];
    }
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->out[0].type); k < n && status == SX_OK; k++) {
        int64_t first = 0; /* the element whose coordinates along the axes are 0 */
        for (int64_t d = x->rank - 1, rest = k; d >= 0; d--) {
            bool along = false;
            for (int i = 0; i < axes.n; i++) {
                along = along || axes.v[i] == d;
            }
            if (!along) {
                first += rest % x->dims[d] * strides[d];
                rest /= x->dims[d];
            }
        }
        for (int64_t j = 0; j < joined; j++) {
            int64_t at = first, rest = j;
            for (int i = 0; i < axes.n; i++) {
                at += rest % x->dims[axes.v[i]] * strides[axes.v[i]];
                rest /= x->dims[axes.v[i]];
            }
            sx_buf_puts(&buf, j > 0 && attrs->separator != NULL ? attrs->separator : "");
            sx_buf_append(&buf, c->in[0].s[at].data, c->in[0].s[at].size);
        }
        status = sx_string_put(c, 0, k, &buf);
    }
    sx_buf_deinit(&buf);
    return status;
}

static void reduce_join_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_reduce_join, "ReduceJoin", SX_TF_NO_ATTRS);
}

static const double last[] = {-1}, both[] = {1, 0};
static const sx_op_sample reduce_join_samples[] = {
    {.name = "last",
     .inputs = {SX_SAMPLE_TEXT(2, 5), SX_SAMPLE_LIST(SX_I32, last, 1)},
     .n_inputs = 2,
     .attrs = &(const sx_reduce_join_attrs){.separator = " "}},
    {.name = "both",
     .inputs = {SX_SAMPLE_TEXT(2, 2, 2), SX_SAMPLE_LIST(SX_I32, both, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_reduce_join_attrs){.keep_dims = true, .separator = "+"}},
};

const sx_op_def sx_op_reduce_join = {
    SX_OP_NAMED(reduce_join),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_reduce_join_attrs, reduce_join_attrs),
    .infer = reduce_join_infer,
    .host = reduce_join_host,
    .host_types = reduce_join_host_types,
    .to_tf = reduce_join_to_tf,
    SX_FROM_TF({.op = "ReduceJoin"}),
    SX_OP_SAMPLES(reduce_join_samples),
};
