/* See partition.h. */
#include "graph/partition.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/passes/rewrite.h"

enum { NONE = -1 };

typedef struct cutting {
    const sx_graph *g;
    const sx_partition_options *o;
    sx_partition *out;
    sx_arena scratch;
    int *device, *level,
        *segment; /* [n_nodes]; of sources: NONE, in each segment that reads them */
    int *border;  /* [n_values]: its number, or NONE */
    bool *reads;  /* [n_segments * n_args] */
    bool *waits;  /* [n_segments * n_segments]: [a, b]: a after b */
} cutting;

static sx_status no_memory(void)
{
    return sx_no_memory("dividing a program among devices");
}

static uint32_t maker_of(const cutting *c, sx_value v)
{
    return c->g->values[v.id].node;
}

/* The variable or input that the value is, or NONE. */
static int arg_of(const cutting *c, sx_value v)
{
    int low = 0, high = c->g->n_args - 1; /* they are in the order of their values */
    while (low <= high) {
        const int mid = (low + high) / 2;
        const uint32_t id = c->g->args[mid].value.id;
        if (id == v.id) {
            return mid;
        }
        *(id < v.id ? &low : &high) = id < v.id ? mid + 1 : mid - 1;
    }
    return NONE;
}

/* ---- Devices and levels ---- */

static int find_device(const cutting *c, const sx_node *n)
{
    for (int i = 0; i < c->o->n_devices; i++) {
        if (strcmp(c->o->devices[i], n->device) == 0) {
            return i;
        }
    }
    return NONE;
}

/* Where the largest operand is made, by its elements for one example. */
static int nearest(const cutting *c, const sx_node *n)
{
    int best = NONE;
    int64_t most = -1;
    for (int i = 0; i < n->n_inputs; i++) {
        const int device = c->device[maker_of(c, n->inputs[i])];
        const sx_type type = sx_type_with_batch(*sx_graph_type(c->g, n->inputs[i]), 1);
        if (device != NONE && sx_type_elems(&type) > most) {
            most = sx_type_elems(&type);
            best = device;
        }
    }
    return best != NONE ? best : 0;
}

/* The part of the batch that a node computes, from 1; 0: none of its own. */
static int part_of(const cutting *c, const sx_node *n)
{
    return c->o->part != NULL && n->n_outputs > 0 ? c->o->part[n->first_output.id] : 0;
}

static void find_levels(cutting *c)
{
    for (int k = 0; k < c->g->n_nodes; k++) {
        const sx_node *n = &c->g->nodes[k];
        c->device[k] = find_device(c, n);
        if (c->device[k] == NONE && !sx_node_is_source(n)) {
            c->device[k] = nearest(c, n);
        }
        for (int i = 0; i < n->n_inputs; i++) {
            const uint32_t maker = maker_of(c, n->inputs[i]);
            if (!sx_node_is_source(&c->g->nodes[maker])) {
                const int step = c->device[maker] != c->device[k] ||
                                 part_of(c, &c->g->nodes[maker]) != part_of(c, n);
                c->level[k] = SX_MAX(c->level[k], c->level[maker] + 2 * step);
            }
        }
    }
}

/* What follows from constants alone is computed where it is read first, if it all is on one device
 * and of one part. */
static sx_status raise_constants(cutting *c)
{
    const sx_graph *g = c->g;
    bool *constant = sx_arena_array(&c->scratch, g->n_nodes + 1, bool);
    int *lowest = sx_arena_array(&c->scratch, g->n_nodes + 1, int);
    if (constant == NULL || lowest == NULL) {
        return no_memory();
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        constant[k] = (n->op->flags & SX_OP_NO_HOST) == 0; /* not an argument */
        lowest[k] = NONE;
        for (int i = 0; i < n->n_inputs; i++) {
            constant[k] = constant[k] && constant[maker_of(c, n->inputs[i])];
        }
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        c->level[k] = constant[k] && lowest[k] != NONE ? lowest[k] : c->level[k];
        for (int i = 0; i < n->n_inputs; i++) {
            const uint32_t maker = maker_of(c, n->inputs[i]);
            const bool near =
                c->device[maker] == c->device[k] && part_of(c, &g->nodes[maker]) == part_of(c, n);
            const int level = near ? c->level[k] : 0;
            lowest[maker] = lowest[maker] == NONE ? level : SX_MIN(lowest[maker], level);
        }
    }
    return SX_OK;
}

/* The segment of that device, level and part, which is added the first time. */
static int segment_at(cutting *c, int device, int level, int part)
{
    sx_partition *p = c->out;
    int i = 0;
    while (i < p->n_segments && (p->segments[i].device != device || p->segments[i].level != level ||
                                 p->segments[i].part != part)) {
        i++;
    }
    if (i == p->n_segments) {
        p->segments[p->n_segments++] = (sx_segment){.device = device, .level = level, .part = part};
    }
    return i;
}

/* The segment that gives a result: a source's is the first of its device. */
static int segment_of_result(cutting *c, const sx_result *r)
{
    const uint32_t maker = maker_of(c, r->value);
    return sx_node_is_source(&c->g->nodes[maker]) ? segment_at(c, SX_MAX(c->device[maker], 0), 0, 0)
                                                  : c->segment[maker];
}

/* In order of levels, as a segment only waits for lower ones. */
static void number_segments(cutting *c)
{
    const sx_graph *g = c->g;
    int highest = 0;
    c->out->n_segments = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        highest = SX_MAX(highest, c->level[k]);
    }
    for (int i = 0; i < g->n_results; i++) {
        const uint32_t maker = maker_of(c, g->results[i].value);
        if (sx_node_is_source(&g->nodes[maker])) {
            (void)segment_of_result(c, &g->results[i]);
        }
    }
    for (int level = 0; level <= highest; level++) {
        for (int k = 0; k < g->n_nodes; k++) {
            if (!sx_node_is_source(&g->nodes[k]) && c->level[k] == level) {
                c->segment[k] = segment_at(c, c->device[k], level, part_of(c, &g->nodes[k]));
            }
        }
    }
}

/* Sets goes[n_nodes]: what other devices or parts need of a node's segment. */
static void find_urgent(const cutting *c, bool *goes)
{
    const sx_graph *g = c->g;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_inputs; i++) {
            const uint32_t maker = maker_of(c, n->inputs[i]);
            const bool other =
                c->device[maker] != c->device[k] || part_of(c, &g->nodes[maker]) != part_of(c, n);
            goes[maker] = goes[maker] || other || (goes[k] && c->segment[maker] == c->segment[k]);
        }
    }
}

/* Products that no other device waits for, as those of weights' gradients, and what follows them,
 * come after what one waits for: in a segment of their own, between two levels. */
static sx_status put_off_products(cutting *c)
{
    const sx_graph *g = c->g;
    bool *goes = sx_arena_array(&c->scratch, g->n_nodes + 1, bool);
    bool *urgent = sx_arena_array(&c->scratch, c->out->n_segments + 1, bool);
    bool *products = sx_arena_array(&c->scratch, c->out->n_segments + 1, bool);
    if (goes == NULL || urgent == NULL || products == NULL) {
        return no_memory();
    }
    find_urgent(c, goes);
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_op_def *op = g->nodes[k].op;
        if (c->segment[k] != NONE) {
            urgent[c->segment[k]] |= goes[k];
            products[c->segment[k]] |= !goes[k] && (op->flops != NULL || sx_op_has_regions(op));
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const int s = c->segment[k];
        c->level[k] += s != NONE && !goes[k] && urgent[s] && products[s];
    }
    number_segments(c);
    return SX_OK;
}

static sx_status make_segments(cutting *c)
{
    c->out->segments = sx_arena_array(&c->out->arena, c->g->n_nodes + 1, sx_segment);
    if (c->out->segments == NULL) {
        return no_memory();
    }
    number_segments(c);
    return put_off_products(c);
}

/* ---- Borders and order ---- */

static void wait_for(cutting *c, int segment, int before)
{
    if (segment != before) {
        c->waits[(size_t)segment * (size_t)c->out->n_segments + (size_t)before] = true;
    }
}

static bool *read_at(const cutting *c, int segment, int arg)
{
    return &c->reads[(size_t)segment * (size_t)c->g->n_args + (size_t)arg];
}

/* Segment `segment` reads `v`. */
static void note_use(cutting *c, int segment, sx_value v)
{
    const uint32_t maker = maker_of(c, v);
    const int arg = arg_of(c, v);
    if (arg != NONE) {
        *read_at(c, segment, arg) = true;
    } else if (!sx_node_is_source(&c->g->nodes[maker]) && c->segment[maker] != segment) {
        if (c->border[v.id] == NONE) {
            c->border[v.id] = c->out->n_borders;
            c->out->borders[c->out->n_borders++] =
                (sx_border){.type = *sx_graph_type(c->g, v), .segment = c->segment[maker]};
        }
        wait_for(c, segment, c->segment[maker]);
    }
}

static sx_status find_uses(cutting *c)
{
    const sx_graph *g = c->g;
    const size_t n = (size_t)c->out->n_segments;
    size_t reads, waits;
    if (!sx_mul_size(n, (size_t)g->n_args, &reads) || !sx_mul_size(n, n, &waits)) {
        return no_memory();
    }
    c->reads = sx_arena_alloc(&c->scratch, reads + 1, sizeof(bool));
    c->waits = sx_arena_alloc(&c->scratch, waits + 1, sizeof(bool));
    c->out->borders = sx_arena_array(&c->out->arena, g->n_values, sx_border);
    if (c->reads == NULL || c->waits == NULL || c->out->borders == NULL) {
        return no_memory();
    }
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            note_use(c, c->segment[k], g->nodes[k].inputs[i]);
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        note_use(c, segment_of_result(c, &g->results[i]), g->results[i].value);
    }
    return SX_OK;
}

/* Whether segment s may assign the variable in its own buffer: it lies on that device, and all
 * others that read it do so before. These are waited for then. */
static bool updates_here(cutting *c, int s, int arg)
{
    const sx_segment *segments = c->out->segments;
    const int home = c->device[maker_of(c, c->g->args[arg].value)];
    bool here = home == segments[s].device;
    for (int r = 0; r < c->out->n_segments && here; r++) {
        here = r == s || !*read_at(c, r, arg) || segments[r].level < segments[s].level;
    }
    for (int r = 0; r < c->out->n_segments && here; r++) {
        if (*read_at(c, r, arg)) {
            wait_for(c, s, r);
        }
    }
    return here;
}

/* ---- Graphs ---- */

typedef struct making {
    cutting *c;
    int s;
    sx_rewrite rw;
    sx_arena *arena;
    int n_in, n_out;
} making;

static void add_in(making *m, sx_end_kind kind, int index)
{
    m->c->out->segments[m->s].in[m->n_in++] = (sx_segment_end){kind, index};
}

static void need_arg(making *m, int arg)
{
    const sx_graph *g = m->c->g;
    const sx_arg *a = &g->args[arg];
    if (!sx_value_is(m->rw.map[a->value.id])) {
        const sx_node *n = sx_graph_maker(g, a->value);
        sx_builder_at(m->rw.to, n->file, n->line);
        m->rw.map[a->value.id] = sx_build_arg_on(m->rw.to, a, *sx_graph_type(g, a->value), "");
        add_in(m, SX_END_ARG, arg);
    }
}

/* Sets the value's form in the segment. */
static void need(making *m, sx_value v)
{
    const cutting *c = m->c;
    const sx_node *n = sx_graph_maker(c->g, v);
    const int arg = arg_of(c, v);
    if (sx_value_is(m->rw.map[v.id]) || sx_builder_failed(m->rw.to)) {
        return;
    }
    if (arg != NONE) {
        need_arg(m, arg);
    } else if (sx_node_is_source(n)) {
        sx_rewrite_keep(&m->rw, n, NULL);
    } else {
        const int border = c->border[v.id];
        const char *name = sx_arena_printf(m->arena, "%s:%d", n->name, c->g->values[v.id].output);
        const sx_arg in = {.kind = SX_ARG_INPUT, .name = name};
        if (name == NULL) {
            sx_builder_fail(m->rw.to, no_memory());
            return;
        }
        m->rw.map[v.id] = sx_build_arg_on(m->rw.to, &in, c->out->borders[border].type, "");
        add_in(m, SX_END_BORDER, border);
    }
}

static void add_output(making *m, sx_end_kind kind, int index, sx_value v)
{
    static const char *const kinds[] = {"arg", "border", "output", "update", "later"};
    char name[32];
    snprintf(name, sizeof(name), "%s:%d", kinds[kind], index);
    need(m, v);
    sx_output(m->rw.to, name, m->rw.map[v.id]);
    m->c->out->segments[m->s].out[m->n_out++] = (sx_segment_end){kind, index};
}

static void add_result(making *m, int i)
{
    cutting *c = m->c;
    const sx_result *r = &c->g->results[i];
    if (r->arg == SX_RESULT_IS_OUTPUT) {
        add_output(m, SX_END_OUTPUT, i, r->value);
    } else if (updates_here(c, m->s, r->arg)) {
        need_arg(m, r->arg);
        need(m, r->value);
        sx_assign(m->rw.to, r->name, m->rw.map[r->value.id]);
        c->out->segments[m->s].out[m->n_out++] = (sx_segment_end){SX_END_UPDATE, i};
    } else {
        add_output(m, SX_END_LATER, i, r->value);
    }
}

static void add_nodes(making *m)
{
    cutting *c = m->c;
    const sx_graph *g = c->g;
    for (int k = 0; k < g->n_nodes && !sx_builder_failed(m->rw.to); k++) {
        const sx_node *n = &g->nodes[k];
        if (c->segment[k] == m->s) {
            for (int i = 0; i < n->n_inputs; i++) {
                need(m, n->inputs[i]);
            }
            sx_rewrite_keep(&m->rw, n, NULL);
        }
    }
    for (uint32_t v = 1; v < (uint32_t)g->n_values; v++) {
        if (c->border[v] != NONE && c->out->borders[c->border[v]].segment == m->s) {
            add_output(m, SX_END_BORDER, c->border[v], (sx_value){v});
        }
    }
    for (int i = 0; i < g->n_results && !sx_builder_failed(m->rw.to); i++) {
        if (segment_of_result(c, &g->results[i]) == m->s) {
            add_result(m, i);
        }
    }
}

static sx_status make_graph(cutting *c, int s)
{
    const sx_graph *g = c->g;
    sx_segment *segment = &c->out->segments[s];
    making m = {.c = c, .s = s, .rw = {.from = g}, .arena = &c->scratch};
    segment->in = sx_arena_array(&c->out->arena, g->n_args + c->out->n_borders + 1, sx_segment_end);
    segment->out =
        sx_arena_array(&c->out->arena, g->n_results + c->out->n_borders + 1, sx_segment_end);
    m.rw.map = sx_alloc((size_t)g->n_values, sizeof(sx_value));
    sx_status status =
        segment->in == NULL || segment->out == NULL || m.rw.map == NULL ? no_memory() : SX_OK;
    status = status == SX_OK ? sx_builder_create_like(g, &m.rw.to) : status;
    if (status == SX_OK) {
        add_nodes(&m);
        status = sx_builder_finish(m.rw.to, &segment->graph);
        sx_builder_destroy(m.rw.to);
    }
    sx_free(m.rw.map);
    return status;
}

static sx_status list_waits(cutting *c)
{
    const int n = c->out->n_segments;
    for (int s = 0; s < n; s++) {
        sx_segment *segment = &c->out->segments[s];
        segment->after = sx_arena_array(&c->out->arena, n, int);
        if (segment->after == NULL) {
            return no_memory();
        }
        for (int b = 0; b < n; b++) {
            if (c->waits[(size_t)s * (size_t)n + (size_t)b]) {
                segment->after[segment->n_after++] = b;
            }
        }
    }
    return SX_OK;
}

/* ---- All of it ---- */

static sx_status cut(cutting *c)
{
    const size_t nodes = (size_t)c->g->n_nodes + 1;
    c->device = sx_arena_alloc(&c->scratch, nodes, sizeof(int));
    c->level = sx_arena_alloc(&c->scratch, nodes, sizeof(int));
    c->segment = sx_arena_alloc(&c->scratch, nodes, sizeof(int));
    c->border = sx_arena_array(&c->scratch, c->g->n_values, int);
    if (c->device == NULL || c->level == NULL || c->segment == NULL || c->border == NULL) {
        return no_memory();
    }
    for (size_t k = 0; k < nodes; k++) {
        c->segment[k] = NONE;
    }
    for (int v = 0; v < c->g->n_values; v++) {
        c->border[v] = NONE;
    }
    find_levels(c);
    SX_TRY(raise_constants(c));
    SX_TRY(make_segments(c));
    SX_TRY(find_uses(c));
    for (int s = 0; s < c->out->n_segments; s++) {
        SX_TRY(make_graph(c, s));
    }
    return list_waits(c);
}

sx_status sx_partition_create(const sx_graph *g, const sx_partition_options *options,
                              sx_partition *out)
{
    cutting c = {.g = g, .o = options, .out = out};
    *out = (sx_partition){.n_segments = 0};
    sx_arena_init(&out->arena, 0);
    sx_arena_init(&c.scratch, 0);
    sx_status status = cut(&c);
    sx_arena_deinit(&c.scratch);
    if (status != SX_OK) {
        sx_partition_deinit(out);
    }
    return status;
}

void sx_partition_deinit(sx_partition *p)
{
    for (int s = 0; s < p->n_segments; s++) {
        sx_graph_destroy(p->segments[s].graph);
    }
    sx_arena_deinit(&p->arena);
    *p = (sx_partition){.n_segments = 0};
}
