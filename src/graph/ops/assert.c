/* assert: ends the run with the model's message if a condition is false.
 *
 *   condition   bool of any shape, all of which must hold
 *   data...     of any type: the error shows the first elements of each
 *   message     the text of the error
 *   returns     the condition
 *
 * Errors   INVALID_ARGUMENT  (running) the condition is false: message, data
 * Source   TensorFlow Assert */
#ifdef SX_ATTRS
typedef struct sx_assert_attrs {
    const char *message;
} sx_assert_attrs;
#endif

#include "base/buffer.h"
#include "graph/ops/common.h"

static const sx_attr_def assert_attrs[] = {SX_ATTR(sx_assert_attrs, message, SX_ATTR_STRING)};

static sx_status assert_infer(sx_infer_context *c)
{
    if (c->n_inputs < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "the condition is missing");
    }
    SX_TRY(sx_require_dtype("the condition", &c->inputs[0], SX_BOOL));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static sx_status assert_host(const sx_kernel_call *c)
{
    const sx_assert_attrs *attrs = c->attrs;
    enum { SHOWN = 3 };
    bool holds = true;
    for (int64_t i = 0, n = sx_type_elems(&c->in[0].type); i < n; i++) {
        c->out[0].b[i] = c->in[0].b[i];
        holds = holds && c->in[0].b[i];
    }
    if (holds) {
        return SX_OK;
    }
    sx_buf text;
    sx_buf_init(&text, 16 << 10);
    sx_buf_puts(&text, attrs->message != NULL ? attrs->message : "");
    for (int i = 1; i < c->n_in; i++) {
        sx_buf_puts(&text, i == 1 && text.size == 0 ? "[" : " [");
        sx_host_print(&c->in[i], SHOWN, &text);
        sx_buf_puts(&text, "]");
    }
    sx_status status = sx_error(SX_INVALID_ARGUMENT, "assertion failed: %s", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

const sx_op_def sx_op_assert = {
    SX_OP_NAMED(assert),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_assert_attrs, assert_attrs),
    .infer = assert_infer,
    .host = assert_host,
};
