/* The first convolution of a network, fused with what surrounds it (vec/stem.inc):
 *
 *   forward    max_pool2d(relu(bias_add(conv2d(x, w), b)))            -> pooled, which
 *   backward   conv2d_grad_filter(x, relu_grad(max_pool2d_grad(r, pooled, dy), r)), and the bias'
 *              reduce_sum, from `which`: the index of the pooled element, a value that is not in
 *              the graph (the match asks for it at the pool's node). r, the relu's output, is not
 *              computed
 *   backward   conv2d_grad_filter(x, dy) of any other, where oneDNN 2.6 reaches a third of the rate
 */
#include "backends/cpu/kernel.h"

enum { MAX_CHANNELS = 4, MAX_TAPS = 160 };

static const sx_node *maker(const sx_cpu_match *m, sx_value v)
{
    return sx_graph_maker(m->graph, v);
}

static int index_of(const sx_cpu_match *m, const sx_node *n)
{
    return (int)(n - m->graph->nodes);
}

static bool conv_fits(const sx_node *n, const sx_type *x, const sx_type *filter, int width,
                      sx_conv_geometry *g)
{
    sx_status status = sx_conv_geometry_of(n->attrs, x, filter, g);
    bool ok = status == SX_OK && x->dtype == SX_F32 && g->groups == 1 && g->c <= MAX_CHANNELS &&
              g->h.dilation == 1 && g->w.dilation == 1 && g->o % width == 0 &&
              g->c * g->h.kernel * g->w.kernel <= MAX_TAPS;
    sx_status_free(status);
    return ok;
}

static bool is_2x2(const sx_conv_window *w)
{
    return w->kernel == 2 && w->stride == 2 && w->pad_before == 0 && 2 * w->out <= w->in;
}

static bool pool_fits(const sx_graph *g, const sx_node *pool)
{
    sx_pool_geometry p;
    sx_status status = sx_pool_geometry_of(pool->attrs, sx_graph_type(g, pool->inputs[0]), &p);
    bool ok = status == SX_OK && is_2x2(&p.h) && is_2x2(&p.w);
    sx_status_free(status);
    return ok;
}

/* The nodes from a pool back to its convolution. */
typedef struct stem {
    const sx_node *pool, *relu, *bias, *conv;
} stem;

static bool find_stem(const sx_cpu_match *m, const sx_node *pool, stem *s)
{
    sx_conv_geometry g;
    s->pool = pool;
    s->relu = maker(m, pool->inputs[0]);
    if (pool->op->id != SX_OPID_max_pool2d || s->relu->op->id != SX_OPID_relu) {
        return false;
    }
    s->bias = maker(m, s->relu->inputs[0]);
    if (s->bias->op->id != SX_OPID_bias_add || m->uses[s->relu->inputs[0].id] != 1) {
        return false;
    }
    s->conv = maker(m, s->bias->inputs[0]);
    return s->conv->op->id == SX_OPID_conv2d && m->uses[s->bias->inputs[0].id] == 1 &&
           m->sharded[index_of(m, s->conv)] == m->sharded[m->root] && pool_fits(m->graph, pool) &&
           conv_fits(s->conv, sx_graph_type(m->graph, s->conv->inputs[0]),
                     sx_graph_type(m->graph, s->conv->inputs[1]), m->vec->stem_width, &g);
}

/* in: x, filter, bias; out: pooled, and which if a gradient asked for it */
static bool match_forward(sx_cpu_match *m)
{
    stem s;
    const sx_node *pool = &m->graph->nodes[m->root];
    bool asked = m->hidden[m->root] != 0;
    if (!find_stem(m, pool, &s) || (!asked && m->uses[pool->inputs[0].id] != 1)) {
        return false;
    }
    sx_cpu_claim(m, index_of(m, s.relu));
    sx_cpu_claim(m, index_of(m, s.bias));
    sx_cpu_claim(m, index_of(m, s.conv));
    m->in[0] = s.conv->inputs[0];
    m->in[1] = s.conv->inputs[1];
    m->in[2] = s.bias->inputs[1];
    m->n_in = 3;
    return true;
}

/* The bias gradient: the sum of `dy` over all but its channels; NULL if there is none. */
static const sx_node *bias_gradient(const sx_cpu_match *m, sx_value dy)
{
    for (int k = 0; k < m->graph->n_nodes; k++) {
        const sx_node *n = &m->graph->nodes[k];
        const sx_reduce_attrs *a = n->attrs;
        if (n->op->id == SX_OPID_reduce_sum && n->inputs[0].id == dy.id && !m->claimed[k] &&
            m->uses[n->first_output.id] > 0 && a->axes.n == 3 && a->axes.v[2] == 2 &&
            !a->keep_dims) {
            return n;
        }
    }
    return NULL;
}

/* in: x, pooled, dy (and which); out: filter, bias */
static bool match_backward_pooled(sx_cpu_match *m)
{
    stem s;
    const sx_node *root = &m->graph->nodes[m->root];
    sx_value d = root->inputs[1];
    const sx_node *relu_grad = maker(m, d), *sum = bias_gradient(m, d);
    if (relu_grad->op->id != SX_OPID_relu_grad || sum == NULL || m->uses[d.id] != 2) {
        return false;
    }
    sx_value r = relu_grad->inputs[1];
    const sx_node *pool_grad = maker(m, relu_grad->inputs[0]);
    if (pool_grad->op->id != SX_OPID_max_pool2d_grad || m->uses[relu_grad->inputs[0].id] != 1 ||
        pool_grad->inputs[0].id != r.id || m->uses[r.id] != 3 ||
        !find_stem(m, maker(m, pool_grad->inputs[1]), &s) || s.pool->inputs[0].id != r.id ||
        s.conv->inputs[0].id != root->inputs[0].id) {
        return false;
    }
    sx_cpu_claim(m, index_of(m, relu_grad));
    sx_cpu_claim(m, index_of(m, pool_grad));
    sx_cpu_claim(m, index_of(m, sum));
    m->in[1] = pool_grad->inputs[1];
    m->in[2] = pool_grad->inputs[2];
    m->n_in = 3;
    m->out[m->n_out++] = sum->first_output;
    m->hidden_node = index_of(m, s.pool);
    m->hidden_bytes = sx_type_elems(sx_graph_type(m->graph, s.pool->first_output));
    return true;
}

/* in: x, dy; out: filter, bias if it is wanted */
static bool match_backward_plain(sx_cpu_match *m)
{
    sx_conv_geometry g;
    const sx_node *root = &m->graph->nodes[m->root];
    const sx_node *sum = bias_gradient(m, root->inputs[1]);
    if (!conv_fits(root, sx_graph_type(m->graph, root->inputs[0]),
                   sx_graph_type(m->graph, root->first_output), m->vec->stem_width, &g)) {
        return false;
    }
    if (sum != NULL) {
        sx_cpu_claim(m, index_of(m, sum));
        m->out[m->n_out++] = sum->first_output;
    }
    return true;
}

/* ---- Running ---- */

typedef struct stem_data {
    const sx_cpu_vec *vec;
    sx_vec_stem stem;
    bool pads;
    int64_t image_bytes; /* of the padded image in the scratch; then room for a bias gradient */
} stem_data;

static float *padded_of(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const stem_data *d = step->data;
    return d->pads ? sx_cpu_at(call, step->scratch) : NULL;
}

static void run_forward(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const stem_data *d = step->data;
    d->vec->stem_forward(&d->stem, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                         sx_cpu_in(step, call, 2), sx_cpu_out(step, call, 0),
                         step->n_out > 1 ? sx_cpu_out(step, call, 1) : NULL, padded_of(step, call));
}

static void run_backward(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const stem_data *d = step->data;
    bool pooled = step->n_in == 4;
    float *bias = step->n_out > 1
                      ? sx_cpu_out(step, call, 1)
                      : (void *)((char *)sx_cpu_at(call, step->scratch) + d->image_bytes);
    d->vec->stem_backward(
        &d->stem, sx_cpu_in(step, call, 0), pooled ? sx_cpu_in(step, call, 1) : NULL,
        sx_cpu_in(step, call, pooled ? 2 : 1), pooled ? sx_cpu_in(step, call, 3) : NULL,
        sx_cpu_out(step, call, 0), bias, padded_of(step, call));
}

static sx_status fill_stem(const sx_cpu_site *site, const sx_conv_geometry *g,
                           const sx_type *pooled, stem_data *d)
{
    sx_vec_stem *s = &d->stem;
    int64_t before_h = g->h.pad_before, before_w = g->w.pad_before;
    d->pads = before_h > 0 || before_w > 0 || g->h.pad_after > 0 || g->w.pad_after > 0;
    *s = (sx_vec_stem){.n = g->n,
                       .h = g->h.in,
                       .w = g->w.in,
                       .c = g->c,
                       .o = g->o,
                       .top = before_h,
                       .left = before_w,
                       .padded_h = g->h.in + before_h + g->h.pad_after,
                       .padded_w = g->w.in + before_w + g->w.pad_after,
                       .stride_h = g->h.stride,
                       .stride_w = g->w.stride,
                       .out_h = g->h.out,
                       .out_w = g->w.out,
                       .taps = g->h.kernel * g->w.kernel * g->c};
    if (pooled != NULL) {
        s->pool_h = pooled->dims[1];
        s->pool_w = pooled->dims[2];
    }
    int64_t *offset = sx_arena_array(&site->plan->arena, s->taps, int64_t);
    if (offset == NULL) {
        return sx_cpu_no_memory();
    }
    for (int64_t t = 0; t < s->taps; t++) {
        int64_t c = t % g->c, j = t / g->c % g->w.kernel, i = t / g->c / g->w.kernel;
        offset[t] = (i * s->padded_w + j) * g->c + c;
    }
    s->offset = offset;
    d->image_bytes = d->pads ? sx_cpu_round_up(s->padded_h * s->padded_w * s->c * 4) : 0;
    return SX_OK;
}

/* `node`: the convolution, or its filter's gradient */
static sx_status prepare(const sx_cpu_site *site, sx_cpu_step *step, const sx_node *node,
                         const sx_type *filter, const sx_type *pooled, sx_cpu_run_fn *run)
{
    sx_conv_geometry g;
    stem_data *d = sx_cpu_new(site, stem_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    SX_TRY(sx_conv_geometry_of(node->attrs, &site->in[0], filter, &g));
    SX_TRY(fill_stem(site, &g, pooled, d));
    step->run = run;
    step->data = d;
    step->scratch_bytes = d->image_bytes + g.o * (int64_t)sizeof(float);
    return SX_OK;
}

static sx_status prepare_forward(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare(site, step, site->nodes[3], &site->in[1], &site->out[0], run_forward);
}

static sx_status prepare_backward(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *pooled = site->n_in == 4 ? &site->in[1] : NULL;
    return prepare(site, step, site->nodes[0], &site->out[0], pooled, run_backward);
}

const sx_cpu_kernel sx_cpu_kernel_stem_forward = {.name = "stem: conv2d, relu, max_pool2d",
                                                  .op = SX_OPID_max_pool2d,
                                                  .match = match_forward,
                                                  .prepare = prepare_forward,
                                                  .parts = true};
const sx_cpu_kernel sx_cpu_kernel_stem_backward_pooled = {.name = "stem: gradient behind the pool",
                                                          .op = SX_OPID_conv2d_grad_filter,
                                                          .match = match_backward_pooled,
                                                          .prepare = prepare_backward,
                                                          .parts = true};
const sx_cpu_kernel sx_cpu_kernel_stem_backward_plain = {.name = "stem: gradient",
                                                         .op = SX_OPID_conv2d_grad_filter,
                                                         .match = match_backward_plain,
                                                         .prepare = prepare_backward};
