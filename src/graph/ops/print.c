/* print: logs values when the run comes to it, in the order of the program's effects.
 *
 *   x          of any type; the result
 *   data...    of any type: the values to log, scalars as they are, others in brackets
 *   message    the text before them
 *   elements   how many elements of each are shown, the first; 0 = 3, -1 = all
 *   returns    x
 *
 * The line goes to the library's log (sextant/log.h) with level INFO; line breaks become spaces,
 * other control characters '?'. Source   TensorFlow Print, PrintV2 */
#ifdef SX_ATTRS
typedef struct sx_print_attrs {
    const char *message;
    int64_t elements; /* of each value that are shown; 0 = 3, -1 = all */
} sx_print_attrs;
#endif

#include "base/buffer.h"
#include "base/checked.h"
#include "base/log.h"
#include "graph/ops/common.h"

static const sx_attr_def print_attrs[] = {
    SX_ATTR(sx_print_attrs, message, SX_ATTR_STRING),
    SX_ATTR(sx_print_attrs, elements, SX_ATTR_INT),
};

static sx_status print_infer(sx_infer_context *c)
{
    const sx_print_attrs *attrs = c->attrs;
    if (c->n_inputs < 1 || attrs->elements < -1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d operands, and %lld elements are to be shown; expected at least 1 "
                        "operand, and -1 or a count",
                        c->n_inputs, (long long)attrs->elements);
    }
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static void print_grad(sx_grad *g)
{
    g->dx[0] = g->dy[0];
}

static sx_status print_host(const sx_kernel_call *c)
{
    enum { SHOWN = 3, MOST_BYTES = 4096 };
    const sx_print_attrs *attrs = c->attrs;
    const int64_t most = attrs->elements == -1  ? INT64_MAX
                         : attrs->elements == 0 ? SHOWN
                                                : attrs->elements;
    sx_buf text, line;
    sx_buf_init(&text, MOST_BYTES);
    sx_buf_puts(&text, attrs->message != NULL ? attrs->message : "");
    for (int i = 1; i < c->n_in && sx_buf_status(&text) == SX_OK; i++) {
        const bool scalar = c->in[i].type.rank == 0;
        sx_buf_puts(&text, text.size == 0 ? "" : " ");
        sx_buf_puts(&text, scalar ? "" : "[");
        sx_host_print(&c->in[i], most, &text);
        sx_buf_puts(&text, scalar ? "" : "]");
    }
    for (size_t i = 0; i < text.size; i++) {
        text.data[i] = (char)(text.data[i] == '\n' || text.data[i] == '\r' ? ' ' : text.data[i]);
    }
    sx_buf_init(&line, MOST_BYTES);
    sx_buf_put_visible(&line, sx_buf_text(&text), text.size, "");
    sx_log(SX_LOG_INFO, "%s", sx_buf_text(&line));
    sx_buf_deinit(&line);
    sx_buf_deinit(&text);
    return sx_host_copy(c);
}

const sx_op_def sx_op_print = {
    SX_OP_NAMED(print),   .n_in = SX_VARIADIC,
    .n_out = 1,           .flags = SX_OP_HOST | SX_OP_EFFECT | SX_OP_NO_TF,
    .moved = 0x1,         SX_OP_ATTRS(sx_print_attrs, print_attrs),
    .infer = print_infer, .grad = print_grad,
    .host = print_host,
};
