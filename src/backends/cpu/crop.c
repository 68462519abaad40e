/* Avoids computing borders that are never read.
 *
 *   p' = max_pool2d(..)   [13,13]  only [12,12] is read
 *   r  = relu(conv2d 3x3) [11,11]  only [10,10] is read
 *   p  = max_pool2d 2x2   [5,5]
 *
 * A VALID pool that does not divide its input ignores a border; the convolution before it need not
 * compute that border, nor the pool before that the elements only needed for it. In the backward
 * pass, the gradients of these elements are zero and not needed. This saves a sixth of mnist_cnn's
 * second convolution.
 *
 * This pass shrinks the types of these values and keeps the nodes. A convolution of a smaller input
 * has the smaller output by its own rule; only the pool p' and its gradient must take the size from
 * the type of their output, which their kernels do. If another kernel would get such a node, the
 * planner plans again without this pass. */
#include "backends/cpu/planner.h"

typedef struct reader_set {
    const sx_node *node[4];
    int n; /* more than 4, or a result among them: -1 */
} reader_set;

static reader_set readers_of(const sx_graph *g, sx_value v)
{
    reader_set set = {.n = 0};
    for (int k = 0; k < g->n_nodes; k++) {
        bool reads = false;
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            reads |= g->nodes[k].inputs[i].id == v.id;
        }
        if (reads && set.n == 4) {
            return (reader_set){.n = -1};
        }
        if (reads) {
            set.node[set.n++] = &g->nodes[k];
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].value.id == v.id) {
            return (reader_set){.n = -1};
        }
    }
    return set;
}

static const sx_node *of_op(const reader_set *set, int op)
{
    for (int i = 0; i < set->n; i++) {
        if (set->node[i]->op->id == op) {
            return set->node[i];
        }
    }
    return NULL;
}

/* The only reader of `v`, if it is an `op`. */
static const sx_node *only_reader(const sx_graph *g, sx_value v, int op)
{
    reader_set set = readers_of(g, v);
    return set.n == 1 ? of_op(&set, op) : NULL;
}

/* The nodes around one convolution; the backward ones NULL in a forward graph. */
typedef struct site {
    const sx_node *pool_before, *conv, *bias, *relu, *pool;
    const sx_node *pool_grad, *relu_grad, *filter_grad, *input_grad, *pool_before_grad;
} site;

static bool find_forward(const sx_graph *g, const sx_node *conv, site *s)
{
    if (conv->op->id != SX_OPID_conv2d) {
        return false;
    }
    *s = (site){.conv = conv, .pool_before = sx_graph_maker(g, conv->inputs[0])};
    if (s->pool_before->op->id != SX_OPID_max_pool2d) {
        return false;
    }
    s->bias = only_reader(g, conv->first_output, SX_OPID_bias_add);
    s->relu = s->bias != NULL ? only_reader(g, s->bias->first_output, SX_OPID_relu) : NULL;
    return s->relu != NULL;
}

/* Finds the readers of the relu: a pool, and in a backward graph the two gradients. */
static bool find_pool(const sx_graph *g, site *s)
{
    reader_set r = readers_of(g, s->relu->first_output);
    s->pool = of_op(&r, SX_OPID_max_pool2d);
    s->pool_grad = of_op(&r, SX_OPID_max_pool2d_grad);
    s->relu_grad = of_op(&r, SX_OPID_relu_grad);
    if (s->pool == NULL || r.n == 1) {
        return s->pool != NULL;
    }
    return r.n == 3 && s->pool_grad != NULL && s->relu_grad != NULL &&
           s->pool_grad->inputs[1].id == s->pool->first_output.id &&
           s->relu_grad->inputs[1].id == s->relu->first_output.id &&
           only_reader(g, s->pool_grad->first_output, SX_OPID_relu_grad) == s->relu_grad;
}

static bool sums_to_channels(const sx_node *n)
{
    const sx_reduce_attrs *a = n->attrs;
    return n->op->id == SX_OPID_reduce_sum && a->axes.n == 3 && a->axes.v[2] == 2;
}

/* Finds the readers of the gradient at the convolution's output: its two gradients and that of the
 * bias. */
static bool find_backward(const sx_graph *g, site *s)
{
    if (s->relu_grad == NULL) {
        return only_reader(g, s->conv->inputs[0], SX_OPID_conv2d) == s->conv;
    }
    reader_set d = readers_of(g, s->relu_grad->first_output);
    reader_set x = readers_of(g, s->conv->inputs[0]);
    s->filter_grad = of_op(&d, SX_OPID_conv2d_grad_filter);
    s->input_grad = of_op(&d, SX_OPID_conv2d_grad_input);
    s->pool_before_grad = of_op(&x, SX_OPID_max_pool2d_grad);
    for (int i = 0; i < d.n; i++) {
        if (d.node[i] != s->filter_grad && d.node[i] != s->input_grad &&
            !sums_to_channels(d.node[i])) {
            return false;
        }
    }
    return d.n > 0 && x.n == 3 && s->filter_grad != NULL && s->input_grad != NULL &&
           s->pool_before_grad != NULL && of_op(&x, SX_OPID_conv2d) == s->conv &&
           of_op(&x, SX_OPID_conv2d_grad_filter) == s->filter_grad &&
           only_reader(g, s->input_grad->first_output, SX_OPID_max_pool2d_grad) ==
               s->pool_before_grad &&
           s->pool_before_grad->inputs[1].id == s->conv->inputs[0].id;
}

/* The extent of its input that a window reads; -1 with padding. */
static int64_t needed(const sx_window *w, int64_t out)
{
    bool padded = w->pad_before != 0 || w->pad_after != 0;
    return padded ? -1 : (out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
}

/* The sizes that are read of the relu's output [0..1] and the convolution's input [2..3]. */
static bool sizes_of(const sx_graph *g, const site *s, int64_t size[4])
{
    sx_conv_geometry c;
    sx_pool_geometry p;
    sx_status status =
        sx_pool_geometry_of(s->pool->attrs, sx_graph_type(g, s->relu->first_output), &p);
    if (status == SX_OK) {
        status = sx_conv_geometry_of(s->conv->attrs, sx_graph_type(g, s->conv->inputs[0]),
                                     sx_graph_type(g, s->conv->inputs[1]), &c);
    }
    bool ok = status == SX_OK;
    sx_status_free(status);
    if (!ok) {
        return false;
    }
    size[0] = needed(&p.h, p.h.out);
    size[1] = needed(&p.w, p.w.out);
    size[2] = needed(&c.h, size[0]);
    size[3] = needed(&c.w, size[1]);
    return size[0] > 0 && size[1] > 0 && size[2] > 0 && size[3] > 0 &&
           (size[0] < p.h.in || size[1] < p.w.in);
}

static void shrink(sx_graph *g, const sx_node *n, const int64_t size[2], bool *cropped)
{
    if (n != NULL) {
        sx_type *t = &g->values[n->first_output.id].type;
        t->dims[1] = size[0];
        t->dims[2] = size[1];
        cropped[n - g->nodes] = true;
    }
}

/* Marks the nodes whose output types no longer follow from their attributes and inputs. */
void sx_cpu_crop(sx_graph *g, bool *cropped)
{
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        site s;
        int64_t size[4];
        if (!find_forward(g, &g->nodes[k], &s) || !find_pool(g, &s) || !find_backward(g, &s) ||
            !sizes_of(g, &s, size)) {
            continue;
        }
        shrink(g, s.conv, size, cropped);
        shrink(g, s.bias, size, cropped);
        shrink(g, s.relu, size, cropped);
        shrink(g, s.pool_grad, size, cropped);
        shrink(g, s.relu_grad, size, cropped);
        shrink(g, s.pool_before, size + 2, cropped);
        shrink(g, s.input_grad, size + 2, cropped);
        if (s.pool_before_grad != NULL) {
            cropped[s.pool_before_grad - g->nodes] = true;
        }
    }
}
