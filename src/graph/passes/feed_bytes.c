/* Feeds an input as bytes, which the graph casts and scales.
 *
 * The result must be what the host computes: the product, rounded, and then the sum, rounded. A
 * device's compiler may fuse a product and the sum that takes it, and round once, or join what is
 * added here to what the model adds. So each is followed by a bound that it does not exceed, which
 * changes nothing, but which compilers do not know to be one:
 *
 *     y = max(min(x·mul, 255·mul) + add, add)      0 <= x <= 255, mul > 0 */
#include <string.h>

#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { MOST_CHANNELS = 4, LARGEST = 255 };

typedef struct feeding {
    const char *input;
    int channels;
    const float *mul, *add;
    float most[MOST_CHANNELS]; /* of a product */
} feeding;

/* Generated names could be those of nodes of the old graph. */
static sx_value node(sx_rewrite *rw, const sx_op_def *op, const void *attrs, const char *name,
                     sx_value x, sx_value y)
{
    const sx_value inputs[] = {x, y};
    return sx_build_node(rw->to, &(sx_node_spec){.op = op,
                                                 .attrs = attrs,
                                                 .inputs = inputs,
                                                 .n_inputs = (int)sx_value_is(x) + sx_value_is(y),
                                                 .name = name,
                                                 .device = "",
                                                 .file = ""});
}

static sx_value per_channel(sx_rewrite *rw, const char *name, const float *values)
{
    const feeding *f = rw->user;
    const sx_tensor tensor = {sx_type_of(SX_F32, f->channels), (void *)(uintptr_t)values};
    return node(rw, &sx_op_constant, &(sx_constant_attrs){.value = tensor}, name, SX_NO_VALUE,
                SX_NO_VALUE);
}

static bool all_equal(const float *values, int n, float value)
{
    bool equal = true;
    for (int i = 0; i < n; i++) {
        equal = equal && values[i] == value;
    }
    return equal;
}

static bool feed_arg(sx_rewrite *rw, const sx_arg *arg)
{
    const feeding *f = rw->user;
    sx_type bytes = *sx_graph_type(rw->from, arg->value);
    if (arg->kind != SX_ARG_INPUT || strcmp(arg->name, f->input) != 0) {
        return false;
    }
    bytes.dtype = SX_U8;
    sx_value y = node(rw, &sx_op_cast, &(sx_cast_attrs){.dtype = SX_F32}, "_bytes/cast",
                      sx_build_arg(rw->to, arg, bytes), SX_NO_VALUE);
    if (!all_equal(f->mul, f->channels, 1)) {
        const sx_value factor = per_channel(rw, "_bytes/factor", f->mul),
                       most = per_channel(rw, "_bytes/most", f->most);
        y = node(rw, &sx_op_mul, NULL, "_bytes/mul", y, factor);
        y = node(rw, &sx_op_minimum, NULL, "_bytes/product", y, most);
    }
    if (!all_equal(f->add, f->channels, 0)) {
        const sx_value term = per_channel(rw, "_bytes/term", f->add);
        y = node(rw, &sx_op_add, NULL, "_bytes/add", y, term);
        y = node(rw, &sx_op_maximum, NULL, "_bytes/sum", y, term);
    }
    rw->map[arg->value.id] = y;
    return true;
}

static void keep(sx_rewrite *rw, const sx_node *n)
{
    sx_rewrite_keep(rw, n, NULL);
}

sx_status sx_pass_feed_bytes(const sx_graph *g, const char *input, int channels, const float *mul,
                             const float *add, sx_graph **out)
{
    feeding f = {.input = input, .channels = channels, .mul = mul, .add = add};
    const int arg = sx_graph_find_arg(g, input);
    const sx_type *type = arg < 0 ? NULL : sx_graph_type(g, g->args[arg].value);
    if (type == NULL || type->dtype != SX_F32 || type->rank == 0 || channels > MOST_CHANNELS ||
        type->dims[type->rank - 1] != channels) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the graph has no input \"%s\" that is float32 [..., %d]", input, channels);
    }
    for (int c = 0; c < channels; c++) {
        f.most[c] = LARGEST * mul[c];
    }
    return sx_rewrite_run_hooks(g, &(sx_rewrite_hooks){.node = keep, .arg = feed_arg}, &f, out);
}
