/* string_strip: without ASCII white space at both ends.
 *
 *   x        strings
 *   returns  strings of x's shape
 *
 * Source   TensorFlow StringStrip */
#include <string.h>

#include "graph/ops/host_ops.h"

static sx_status string_strip_host(const sx_kernel_call *c)
{
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const uint8_t *text = c->in[0].s[k].data;
        size_t begin = 0, end = c->in[0].s[k].size;
        while (begin < end && sx_is_ascii_space(text[begin])) {
            begin++;
        }
        while (end > begin && sx_is_ascii_space(text[end - 1])) {
            end--;
        }
        SX_TRY(sx_string_copy(c, text + begin, end - begin, &c->out[0].s[k]));
    }
    return SX_OK;
}

static void string_strip_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_strip, "StringStrip", SX_TF_NO_ATTRS);
}

static const sx_op_sample string_strip_samples[] = {SX_SAMPLES_STRING_MAP()};

const sx_op_def sx_op_string_strip = {
    SX_OP_NAMED(string_strip),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = sx_infer_string_map,
    .host = string_strip_host,
    .to_tf = string_strip_to_tf,
    SX_FROM_TF({.op = "StringStrip"}),
    SX_OP_SAMPLES(string_strip_samples),
};
