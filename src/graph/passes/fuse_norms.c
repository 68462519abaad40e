/* Batch norms by the moments of their own input, as Keras and TensorFlow write them in training,
 * become moments and batch_norm_train, which have gradients of their own: of the ten nodes of a
 * form (norm_form.h), the gradient would read and write the image some twenty times.
 *
 * The first gradient is the same, since the sum of x - mean is 0. TensorFlow's variance hides that
 * its mean depends on x (stop_gradient), so its gradient's gradient lacks that part: a graph that
 * is differentiated twice is not for this pass. */
#include "base/memory.h"
#include "graph/norm_form.h"
#include "graph/ops/common.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* What becomes of a node. */
typedef struct fused {
    const sx_norm_form *norm;    /* of its root; NULL: it is none */
    const sx_norm_form *moments; /* of a mean and of a variance, those of that norm */
} fused;

typedef struct fusing {
    fused *nodes;      /* [n_nodes] */
    sx_value *moments; /* [n_values]: what a mean's division became */
} fusing;

/* ---- Which ---- */

static bool is_vector(const sx_graph *g, sx_value v, const sx_type *whole, const sx_type *x)
{
    if (!sx_value_is(v)) {
        return true;
    }
    const sx_type *t = sx_graph_type(g, v);
    const int64_t channels = x->dims[x->rank - 1];
    return t->dtype == SX_F32 && sx_type_equal(whole, x) && t->rank >= 1 &&
           t->dims[t->rank - 1] == channels && sx_type_elems(t) == channels;
}

/* Over all axes but the last, with a scale and an offset for each channel or without. */
static bool is_batch_norm(const sx_graph *g, sx_value y, sx_norm_form *out)
{
    if (!sx_find_norm(g, y, out) || !sx_value_is(out->mean) || out->stops_gradient) {
        return false;
    }
    const sx_type *x = sx_graph_type(g, out->x);
    bool leading = out->axes->n == x->rank - 1 && x->rank >= 2 && x->dims[x->rank - 1] > 0;
    for (int i = 0; i < out->axes->n; i++) {
        leading = leading && out->axes->v[i] == i;
    }
    return leading && x->dtype == SX_F32 && sx_type_equal(x, sx_graph_type(g, y)) &&
           out->epsilon >= 0 && is_vector(g, out->gamma, out->gamma_type, x) &&
           is_vector(g, out->beta, out->beta_type, x);
}

/* Sets what becomes of the nodes, from the last on: the scale and the offset of a norm are part of
 * it. */
static sx_status find(const sx_graph *g, sx_arena *arena, fused *nodes, bool *out_any)
{
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        sx_norm_form norm;
        if (n->n_outputs != 1 || !is_batch_norm(g, n->first_output, &norm)) {
            continue;
        }
        const sx_norm_form *kept = sx_arena_memdup(arena, &norm, sizeof(norm));
        if (kept == NULL) {
            return sx_no_memory("rewriting a graph");
        }
        nodes[k].norm = kept;
        nodes[sx_graph_maker(g, norm.mean) - g->nodes].moments = kept;
        nodes[sx_graph_maker(g, norm.variance) - g->nodes].moments = kept;
        *out_any = true;
    }
    return SX_OK;
}

/* ---- Rewriting ---- */

/* The division of a mean or of a variance: what it was, of the moments. */
static void add_moments(sx_rewrite *rw, const sx_node *n, const sx_norm_form *norm)
{
    fusing *f = rw->user;
    sx_value *moments = &f->moments[norm->mean.id];
    if (!sx_value_is(*moments)) {
        const sx_axes_attrs axes = {.axes = *norm->axes};
        *moments =
            sx_rewrite_beside(rw, n, &sx_op_moments, &axes, &rw->map[norm->x.id], 1, ".moments");
    }
    const sx_type *type = sx_graph_type(rw->from, n->first_output);
    const sx_shape_attrs shape = {.shape = sx_ints_of(type->rank, type->dims)};
    const sx_value moment = sx_output_of(*moments, n->first_output.id == norm->mean.id ? 0 : 1);
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_reshape, &shape, &moment, 1);
}

/* The scale or the offset as a vector; the same number everywhere without one. */
static sx_value vector_of(sx_rewrite *rw, const sx_node *n, const char *suffix, sx_value v,
                          float otherwise, int64_t channels)
{
    const sx_shape_attrs shape = {.shape = {1, {channels}}};
    if (sx_value_is(v)) {
        return sx_graph_type(rw->from, v)->rank == 1
                   ? rw->map[v.id]
                   : sx_rewrite_beside(rw, n, &sx_op_reshape, &shape, &rw->map[v.id], 1, "%s",
                                       suffix);
    }
    float *numbers = sx_arena_array(sx_builder_arena(rw->to), channels, float);
    if (numbers == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return SX_NO_VALUE;
    }
    for (int64_t i = 0; i < channels; i++) {
        numbers[i] = otherwise;
    }
    const sx_constant_attrs constant = {.value = {sx_type_of(SX_F32, channels), numbers}};
    return sx_rewrite_beside(rw, n, &sx_op_constant, &constant, NULL, 0, "%s", suffix);
}

static void fuse(sx_rewrite *rw, const sx_node *n, const sx_norm_form *norm)
{
    const sx_type *x = sx_graph_type(rw->from, norm->x);
    const int64_t channels = x->dims[x->rank - 1];
    const sx_batch_norm_attrs attrs = {.epsilon = norm->epsilon};
    const sx_value moments = ((fusing *)rw->user)->moments[norm->mean.id];
    const sx_value in[] = {
        rw->map[norm->x.id], vector_of(rw, n, ".scale", norm->gamma, 1, channels),
        vector_of(rw, n, ".offset", norm->beta, 0, channels), moments, sx_output_of(moments, 1)};
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_batch_norm_train, &attrs, in, 5);
}

static void fuse_node(sx_rewrite *rw, const sx_node *n)
{
    const fused *f = &((fusing *)rw->user)->nodes[n - rw->from->nodes];
    if (sx_builder_failed(rw->to)) {
        /* has the first error */
    } else if (f->moments != NULL) {
        add_moments(rw, n, f->moments);
    } else if (f->norm != NULL) {
        fuse(rw, n, f->norm);
    } else {
        sx_rewrite_keep(rw, n, NULL);
    }
}

sx_status sx_pass_fuse_norms(const sx_graph *g, sx_graph **out)
{
    fusing f = {0};
    sx_graph *whole = NULL;
    sx_arena arena;
    bool any = false;
    *out = NULL;
    sx_arena_init(&arena, 0);
    f.nodes = sx_arena_array(&arena, g->n_nodes + 1, fused);
    f.moments = sx_arena_array(&arena, g->n_values + 1, sx_value);
    sx_status status = f.nodes == NULL || f.moments == NULL ? sx_no_memory("rewriting a graph")
                                                            : find(g, &arena, f.nodes, &any);
    if (status == SX_OK && any) {
        status = sx_rewrite_run(g, 0, fuse_node, &f, &whole);
    }
    if (status == SX_OK && any) {
        status = sx_pass_drop_dead(whole, out);
    }
    sx_graph_destroy(whole);
    sx_arena_deinit(&arena);
    return status;
}
