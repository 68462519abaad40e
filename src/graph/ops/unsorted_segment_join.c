/* unsorted_segment_join: the strings of each segment, joined in order.
 *
 *   x             strings of shape segments' shape, then any
 *   segments      int32 or int64: the segment of each
 *   num_segments  int32 or int64 scalar
 *   separator     after what is not empty
 *   returns       strings [num_segments, the rest of x's shape]
 *
 * Errors   INVALID_ARGUMENT    dtypes, shapes; (running) a segment out of range
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow UnsortedSegmentJoin */
#include "graph/ops/host_ops.h"

static const sx_attr_def unsorted_segment_join_attrs[] = {
    SX_ATTR_TF(sx_separator_attrs, separator, SX_ATTR_STRING)};

static sx_status unsorted_segment_join_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_STRING));
    SX_TRY(sx_require_integers("segments", &c->inputs[1], -1, ""));
    SX_TRY(sx_require_integers("num_segments", &c->inputs[2], 0, "a scalar"));
    c->outputs[0] = sx_unknown_shape(SX_STRING);
    return SX_OK;
}

static sx_status unsorted_segment_join_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *x = &c->in[0].type, *segments = &c->in[1].type;
    const int64_t n = c->in[2].i[0];
    if (n < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "num_segments is %lld, expected at least 0",
                        (long long)n);
    }
    SX_TRY(sx_infer_items("segments", segments, "x", x, n, &out_types[0]));
    return sx_require_made("the result", &out_types[0]);
}

static sx_status unsorted_segment_join_host(const sx_kernel_call *c)
{
    const sx_separator_attrs *attrs = c->attrs;
    const char *separator = attrs->separator != NULL ? attrs->separator : "";
    const int64_t n = sx_type_elems(&c->in[1].type), made = sx_type_elems(&c->out[0].type),
                  n_segments = c->in[2].i[0],
                  width = sx_dims_product(&c->in[0].type, c->in[1].type.rank, c->in[0].type.rank);
    /* the parts of a result are a list: first and last by result, next by part */
    int64_t *first = sx_arena_array(c->arena, made + 1, int64_t),
            *last = sx_arena_array(c->arena, made + 1, int64_t),
            *next = sx_arena_array(c->arena, n * width + 1, int64_t);
    if (first == NULL || last == NULL || next == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t segment = c->in[1].i[k];
        if (segment < 0 || segment >= n_segments) {
            return sx_error(SX_INVALID_ARGUMENT, "segment %lld of element %lld, expected 0 to %lld",
                            (long long)segment, (long long)k, (long long)n_segments - 1);
        }
        for (int64_t j = 0; j < width; j++) {
            const int64_t to = segment * width + j, part = k * width + j + 1;
            if (first[to] == 0) {
                first[to] = part;
            } else {
                next[last[to]] = part;
            }
            last[to] = part;
        }
    }
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0; k < made && status == SX_OK; k++) {
        for (int64_t part = first[k]; part != 0; part = next[part]) {
            const sx_bytes *s = &c->in[0].s[part - 1];
            sx_buf_puts(&text, text.size > 0 ? separator : "");
            sx_buf_append(&text, s->data, s->size);
        }
        status = sx_string_put(c, 0, k, &text);
    }
    sx_buf_deinit(&text);
    return status;
}

const sx_op_def sx_op_unsorted_segment_join = {
    SX_OP_NAMED(unsorted_segment_join),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_separator_attrs, unsorted_segment_join_attrs),
    .infer = unsorted_segment_join_infer,
    .host = unsorted_segment_join_host,
    .host_types = unsorted_segment_join_host_types,
    SX_FROM_TF({.op = "UnsortedSegmentJoin"}),
};
