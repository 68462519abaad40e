/* A concat of concats becomes one of their parts, where what reads each of them, but for further
 * concats, is one multiplication by a vector, as in a DenseNet:
 *
 *     c1 = concat(a, b)     y1 = c1 scale1          c1 = concat(a, b)        y1 = c1 scale1
 *     c2 = concat(c1, d)    y2 = c2 scale2    ->    c2 = concat(a, b, d)     y2 = c2 scale2
 *
 * Then each of them is read once, and a kernel that reads the parts need not write it. */
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { MOST = 30 /* parts: a kernel reads so many as bfloat16 (concat_affine.c) */ };

typedef struct leaves {
    const sx_value *v; /* [n] */
    int n;
} leaves;

typedef struct joining {
    const sx_graph *g;
    sx_arena arena;
    bool *joined;       /* [n_nodes]: concats that are read once, by a multiplication by a vector,
                           but for further ones of these */
    int *other_readers; /* [n_values]: that are not joined */
    bool *scaled;       /* [n_values]: one of them multiplies it by a vector */
    leaves *parts;      /* [n_nodes] */
} joining;

static bool is_concat(const sx_graph *g, const sx_node *n)
{
    const sx_type *y = sx_graph_type(g, n->first_output);
    return n->op->id == SX_OPID_concat && y->dtype == SX_F32 && y->rank > 1 &&
           ((const sx_axis_attrs *)n->attrs)->axis == y->rank - 1;
}

/* Whether `n` multiplies input `i` by one number for each of its channels. */
static bool is_scaling(const sx_graph *g, const sx_node *n, int i)
{
    const sx_type *x = sx_graph_type(g, n->inputs[i]);
    return n->op->id == SX_OPID_mul && x->rank > 1 &&
           sx_is_channels(g, n->inputs[1 - i], x->dims[x->rank - 1]);
}

/* From the end, where a concat's readers are before it. */
static void find_joined(joining *j)
{
    const sx_graph *g = j->g;
    for (int i = 0; i < g->n_results; i++) {
        j->other_readers[g->results[i].value.id]++;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const uint32_t y = n->first_output.id;
        j->joined[k] = is_concat(g, n) && j->other_readers[y] == 1 && j->scaled[y];
        for (int i = 0; i < n->n_inputs; i++) {
            const uint32_t v = n->inputs[i].id;
            j->other_readers[v] += !j->joined[k];
            j->scaled[v] = j->scaled[v] || is_scaling(g, n, i);
        }
    }
}

static sx_status find_parts(joining *j)
{
    const sx_graph *g = j->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (!j->joined[k]) {
            continue;
        }
        sx_value found[MOST];
        int count = 0;
        for (int i = 0; i < n->n_inputs && count <= MOST; i++) {
            const uint32_t maker = g->values[n->inputs[i].id].node;
            const leaves own = {&n->inputs[i], 1}, *of = j->joined[maker] ? &j->parts[maker] : &own;
            for (int l = 0; l < of->n && count + l < MOST; l++) {
                found[count + l] = of->v[l];
            }
            count += of->n;
        }
        const bool fits = count <= MOST;
        j->parts[k] = (leaves){
            fits ? sx_arena_memdup(&j->arena, found, sizeof(*found) * (size_t)count) : n->inputs,
            fits ? count : n->n_inputs};
        if (j->parts[k].v == NULL) {
            return sx_no_memory("joining concats");
        }
    }
    return SX_OK;
}

static void join_node(sx_rewrite *rw, const sx_node *n)
{
    const joining *j = rw->user;
    const int k = (int)(n - rw->from->nodes);
    if (!j->joined[k] || j->parts[k].n == n->n_inputs) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_value in[MOST];
    for (int i = 0; i < j->parts[k].n; i++) {
        in[i] = rw->map[j->parts[k].v[i].id];
    }
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, n->op, n->attrs, in, j->parts[k].n);
}

sx_status sx_pass_join_concats(const sx_graph *g, sx_graph **out)
{
    joining j = {.g = g};
    sx_arena_init(&j.arena, 0);
    j.joined = sx_arena_array(&j.arena, g->n_nodes + 1, bool);
    j.other_readers = sx_arena_array(&j.arena, g->n_values + 1, int);
    j.scaled = sx_arena_array(&j.arena, g->n_values + 1, bool);
    j.parts = sx_arena_array(&j.arena, g->n_nodes + 1, leaves);
    sx_status status = SX_OK;
    if (j.joined == NULL || j.other_readers == NULL || j.scaled == NULL || j.parts == NULL) {
        status = sx_no_memory("joining concats");
    }
    if (status == SX_OK) {
        find_joined(&j);
        status = find_parts(&j);
    }
    status = status == SX_OK ? sx_rewrite_run(g, 0, join_node, &j, out) : status;
    sx_arena_deinit(&j.arena);
    return status;
}
