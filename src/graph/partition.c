/* See partition.h. */
#include "graph/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

enum { NONE = -1 };

/* Things by their keys: those of key k are items[start[k]] to items[start[k + 1] - 1]. */
typedef struct grouped {
    int *start, *items;
} grouped;

/* A list of segments. */
typedef struct link {
    int segment;
    struct link *next;
} link;

/* With many parts there are many segments: nothing here takes time or memory by pairs of them. */
typedef struct cutting {
    const sx_graph *g;
    const sx_partition_options *o;
    sx_partition *out;
    sx_arena scratch;
    bool full; /* memory is missing */
    int *device, *level,
        *segment;             /* [n_nodes]; of sources: NONE, in each segment that reads them */
    int *result_segment;      /* [n_results]: that gives it */
    int *border;              /* [n_values]: its number, or NONE */
    const sx_node **rounding; /* [n_values]: by which it is rounded; NULL = it is not */
    grouped nodes, results, borders; /* by segment; borders are values */
    int *n_ends;                     /* [n_segments]: arguments at most */
    link **readers;                  /* [n_args]: the segments that read it, the last one first */
    link **waits;                    /* [n_segments]: those that must have ended */
    int *noted, turn;                /* [n_segments]: the last turn in which it was noted */
    sx_value *map;                   /* [n_values]: of the rewriting; zeros between segments */
} cutting;

/* Nothing is taken after what did not fit: a budget tells why by its last charge. */
static void *take(cutting *c, sx_arena *arena, size_t count, size_t elem_bytes)
{
    void *taken = c->full ? NULL : sx_arena_alloc(arena, count, elem_bytes);
    c->full = taken == NULL;
    return taken;
}

#define take_array(c, arena, count, type) \
    ((type *)take((c), (arena), (size_t)(count), sizeof(type)))

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

static sx_status group(cutting *c, const int *keys, int n, int n_keys, grouped *out)
{
    out->start = take_array(c, &c->scratch, n_keys + 2, int);
    out->items = take_array(c, &c->scratch, n + 1, int);
    if (out->start == NULL || out->items == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n; i++) { /* two further on: what fills the groups moves it by one */
        if (keys[i] != NONE) {
            out->start[keys[i] + 2]++;
        }
    }
    for (int k = 2; k <= n_keys + 1; k++) {
        out->start[k] += out->start[k - 1];
    }
    for (int i = 0; i < n; i++) {
        if (keys[i] != NONE) {
            out->items[out->start[keys[i] + 1]++] = i;
        }
    }
    return SX_OK;
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

/* What follows from constants, and from variables that nothing assigns, is computed where it is
 * read first, if it all is on one device and of one part: a product's segment rounds and packs its
 * matrix once. */
static sx_status raise_frozen(cutting *c)
{
    const sx_graph *g = c->g;
    bool *frozen = take_array(c, &c->scratch, g->n_values, bool);
    int *lowest = take_array(c, &c->scratch, g->n_nodes + 1, int);
    if (frozen == NULL || lowest == NULL) {
        return no_memory();
    }
    sx_mark_frozen(g, frozen);
    for (int k = 0; k < g->n_nodes; k++) {
        lowest[k] = NONE;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        if (n->n_outputs > 0 && frozen[n->first_output.id]) {
            c->level[k] = SX_MAX(c->level[k], lowest[k]);
        }
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

/* The segment of that device, level and part, which is added the first time. `latest`: of each
 * device and part; levels do not fall. */
static int segment_at(cutting *c, int *latest, int device, int level, int part)
{
    sx_partition *p = c->out;
    int *last = &latest[part * c->o->n_devices + device];
    if (*last == NONE || p->segments[*last].level != level) {
        *last = p->n_segments;
        p->segments[p->n_segments++] = (sx_segment){.device = device, .level = level, .part = part};
    }
    return *last;
}

/* In order of levels, as a segment only waits for lower ones. A result that is a source is in the
 * first segment of its device. */
static sx_status number_segments(cutting *c)
{
    const sx_graph *g = c->g;
    grouped levels;
    int highest = 0, n_parts = 0;
    int *keys = take_array(c, &c->scratch, g->n_nodes + 1, int);
    if (keys == NULL) {
        return no_memory();
    }
    for (int k = 0; k < g->n_nodes; k++) {
        keys[k] = sx_node_is_source(&g->nodes[k]) ? NONE : c->level[k];
        highest = SX_MAX(highest, c->level[k]);
        n_parts = SX_MAX(n_parts, part_of(c, &g->nodes[k]));
    }
    int *latest =
        take_array(c, &c->scratch, ((size_t)n_parts + 1) * (size_t)c->o->n_devices + 1, int);
    if (latest == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < ((size_t)n_parts + 1) * (size_t)c->o->n_devices; i++) {
        latest[i] = NONE;
    }
    SX_TRY(group(c, keys, g->n_nodes, highest + 1, &levels));
    c->out->n_segments = 0;
    for (int i = 0; i < g->n_results; i++) {
        const uint32_t maker = maker_of(c, g->results[i].value);
        if (sx_node_is_source(&g->nodes[maker])) {
            c->result_segment[i] = segment_at(c, latest, SX_MAX(c->device[maker], 0), 0, 0);
        }
    }
    for (int i = levels.start[0]; i < levels.start[highest + 1]; i++) {
        const int k = levels.items[i];
        c->segment[k] = segment_at(c, latest, c->device[k], c->level[k], part_of(c, &g->nodes[k]));
    }
    for (int i = 0; i < g->n_results; i++) {
        const uint32_t maker = maker_of(c, g->results[i].value);
        if (!sx_node_is_source(&g->nodes[maker])) {
            c->result_segment[i] = c->segment[maker];
        }
    }
    return SX_OK;
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
    bool *goes = take_array(c, &c->scratch, g->n_nodes + 1, bool);
    bool *urgent = take_array(c, &c->scratch, c->out->n_segments + 1, bool);
    bool *products = take_array(c, &c->scratch, c->out->n_segments + 1, bool);
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
    return number_segments(c);
}

/* Whether the node rounds to bfloat16, or to small integers of a constant range: rounded twice, a
 * value is the same. */
static bool rounds(const sx_graph *g, const sx_node *n)
{
    if (n->op->id != SX_OPID_quantize_dequantize) {
        return n->op->id == SX_OPID_round_bf16;
    }
    const sx_quantize_dequantize_attrs *attrs = n->attrs;
    return attrs->axis < 0 && attrs->range_given && attrs->num_bits <= 8 &&
           sx_graph_maker(g, n->inputs[1])->op->id == SX_OPID_constant &&
           sx_graph_maker(g, n->inputs[2])->op->id == SX_OPID_constant;
}

/* The node that rounds all that is joined, if it is bfloat16: that is the same for all parts. */
static const sx_node *rounding_of_parts(const cutting *c, const sx_node *concat)
{
    const sx_node *all = c->rounding[concat->inputs[0].id];
    for (int i = 0; i < concat->n_inputs; i++) {
        const sx_node *one = c->rounding[concat->inputs[i].id];
        all = one != NULL && one->op->id == SX_OPID_round_bf16 ? all : NULL;
    }
    return all;
}

/* What is viewed, joined, or of which maxima are taken, is still rounded. */
static sx_status find_roundings(cutting *c)
{
    const sx_graph *g = c->g;
    c->rounding = take_array(c, &c->scratch, g->n_values, const sx_node *);
    if (c->rounding == NULL) {
        return no_memory();
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (rounds(g, n)) {
            c->rounding[n->first_output.id] = n;
        } else if (n->op->id == SX_OPID_concat && n->n_inputs > 0) {
            c->rounding[n->first_output.id] = rounding_of_parts(c, n);
        } else if (((n->op->flags & SX_OP_VIEW) != 0 || n->op->id == SX_OPID_max_pool2d) &&
                   sx_graph_type(g, n->first_output)->dtype ==
                       sx_graph_type(g, n->inputs[0])->dtype) {
            c->rounding[n->first_output.id] = c->rounding[n->inputs[0].id];
        }
    }
    return SX_OK;
}

static sx_status make_segments(cutting *c)
{
    c->out->segments = take_array(c, &c->out->arena, c->g->n_nodes + 1, sx_segment);
    c->result_segment = take_array(c, &c->scratch, c->g->n_results + 1, int);
    if (c->out->segments == NULL || c->result_segment == NULL) {
        return no_memory();
    }
    SX_TRY(number_segments(c));
    return put_off_products(c);
}

/* ---- Borders and order ---- */

static sx_status add_link(cutting *c, link **list, int segment)
{
    link *l = take_array(c, &c->scratch, 1, link);
    if (l == NULL) {
        return no_memory();
    }
    *l = (link){segment, *list};
    *list = l;
    return SX_OK;
}

/* A turn, in which it is noted once what segment `s` waits for. */
static void begin_turn(cutting *c, int s)
{
    c->turn++;
    c->noted[s] = c->turn;
    for (const link *l = c->waits[s]; l != NULL; l = l->next) {
        c->noted[l->segment] = c->turn;
    }
}

static sx_status wait_for(cutting *c, int segment, int before)
{
    if (c->noted[before] == c->turn) {
        return SX_OK;
    }
    c->noted[before] = c->turn;
    return add_link(c, &c->waits[segment], before);
}

/* Segment `segment` reads `v`. */
static sx_status note_use(cutting *c, int segment, sx_value v)
{
    const uint32_t maker = maker_of(c, v);
    const int arg = arg_of(c, v);
    if (arg != NONE) {
        link **readers = &c->readers[arg];
        const bool noted = *readers != NULL && (*readers)->segment == segment;
        return noted ? SX_OK : add_link(c, readers, segment);
    }
    if (sx_node_is_source(&c->g->nodes[maker]) || c->segment[maker] == segment) {
        return SX_OK;
    }
    if (c->border[v.id] == NONE) {
        c->border[v.id] = c->out->n_borders;
        c->out->borders[c->out->n_borders++] =
            (sx_border){.type = *sx_graph_type(c->g, v), .segment = c->segment[maker]};
    }
    return wait_for(c, segment, c->segment[maker]);
}

static sx_status note_uses(cutting *c, int s)
{
    const sx_graph *g = c->g;
    begin_turn(c, s);
    for (int i = c->nodes.start[s]; i < c->nodes.start[s + 1]; i++) {
        const sx_node *n = &g->nodes[c->nodes.items[i]];
        for (int k = 0; k < n->n_inputs; k++) {
            SX_TRY(note_use(c, s, n->inputs[k]));
        }
        c->n_ends[s] += n->n_inputs;
    }
    for (int i = c->results.start[s]; i < c->results.start[s + 1]; i++) {
        SX_TRY(note_use(c, s, g->results[c->results.items[i]].value));
        c->n_ends[s] += 2; /* its value, and the variable that it is assigned to */
    }
    return SX_OK;
}

static sx_status find_uses(cutting *c)
{
    const sx_graph *g = c->g;
    const int n = c->out->n_segments;
    c->n_ends = take_array(c, &c->scratch, n + 1, int);
    c->readers = take_array(c, &c->scratch, g->n_args + 1, link *);
    c->waits = take_array(c, &c->scratch, n + 1, link *);
    c->noted = take_array(c, &c->scratch, n + 1, int);
    c->out->borders = take_array(c, &c->out->arena, g->n_values, sx_border);
    int *keys = take_array(c, &c->scratch, g->n_values, int);
    if (c->n_ends == NULL || c->readers == NULL || c->waits == NULL || c->noted == NULL ||
        c->out->borders == NULL || keys == NULL) {
        return no_memory();
    }
    SX_TRY(group(c, c->segment, g->n_nodes, n, &c->nodes));
    SX_TRY(group(c, c->result_segment, g->n_results, n, &c->results));
    for (int s = 0; s < n; s++) {
        SX_TRY(note_uses(c, s));
    }
    for (int v = 0; v < g->n_values; v++) {
        const int border = c->border[v];
        keys[v] = border != NONE ? c->out->borders[border].segment : NONE;
    }
    return group(c, keys, g->n_values, n, &c->borders);
}

/* Whether segment s may assign the variable in its own buffer: it lies on that device, and all
 * others that read it do so before. These are waited for then. */
static sx_status updates_here(cutting *c, int s, int arg, bool *out)
{
    const sx_segment *segments = c->out->segments;
    const int home = c->device[maker_of(c, c->g->args[arg].value)];
    *out = home == segments[s].device;
    for (const link *r = c->readers[arg]; r != NULL && *out; r = r->next) {
        *out = r->segment == s || segments[r->segment].level < segments[s].level;
    }
    for (const link *r = c->readers[arg]; r != NULL && *out; r = r->next) {
        SX_TRY(wait_for(c, s, r->segment));
    }
    return SX_OK;
}

/* ---- Graphs ---- */

typedef struct making {
    cutting *c;
    int s;
    sx_rewrite rw;
    sx_arena *arena;
    int n_in, n_out;
} making;

static void need(making *m, sx_value v);

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

/* A value from another segment is rounded here again: a product must see that its operand is. */
static void round_again(making *m, sx_value v, const sx_node *rounding)
{
    sx_value inputs[3] = {m->rw.map[v.id]};
    for (int i = 1; i < rounding->n_inputs; i++) {
        need(m, rounding->inputs[i]);
        inputs[i] = m->rw.map[rounding->inputs[i].id];
    }
    m->rw.map[v.id] = sx_rewrite_beside(&m->rw, rounding, rounding->op, rounding->attrs, inputs,
                                        rounding->n_inputs, ".again%u", v.id);
}

/* Sets the value's form in the segment, which gets an argument for it if it has none. */
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
        if (c->rounding[v.id] != NULL) {
            round_again(m, v, c->rounding[v.id]);
        }
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
    bool here = false;
    if (r->arg == SX_RESULT_IS_OUTPUT) {
        add_output(m, SX_END_OUTPUT, i, r->value);
        return;
    }
    sx_status status = updates_here(c, m->s, r->arg, &here);
    if (status != SX_OK) {
        sx_builder_fail(m->rw.to, status);
    } else if (here) {
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
    const int s = m->s;
    begin_turn(c, s);
    for (int i = c->nodes.start[s]; i < c->nodes.start[s + 1] && !sx_builder_failed(m->rw.to);
         i++) {
        const sx_node *n = &c->g->nodes[c->nodes.items[i]];
        for (int k = 0; k < n->n_inputs; k++) {
            need(m, n->inputs[k]);
        }
        sx_rewrite_keep(&m->rw, n, NULL);
    }
    for (int i = c->borders.start[s]; i < c->borders.start[s + 1]; i++) {
        const int v = c->borders.items[i];
        add_output(m, SX_END_BORDER, c->border[v], (sx_value){(uint32_t)v});
    }
    for (int i = c->results.start[s]; i < c->results.start[s + 1] && !sx_builder_failed(m->rw.to);
         i++) {
        add_result(m, c->results.items[i]);
    }
}

static void forget(cutting *c, sx_value v)
{
    const sx_node *n = sx_graph_maker(c->g, v), *rounding = c->rounding[v.id];
    for (int i = 1; rounding != NULL && i < rounding->n_inputs; i++) {
        c->map[rounding->inputs[i].id] = SX_NO_VALUE;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        c->map[sx_node_output(n, i).id] = SX_NO_VALUE;
    }
}

/* Clears what the segment has set in the map. */
static void forget_all(cutting *c, int s)
{
    const sx_graph *g = c->g;
    for (int i = c->nodes.start[s]; i < c->nodes.start[s + 1]; i++) {
        const sx_node *n = &g->nodes[c->nodes.items[i]];
        for (int k = 0; k < n->n_inputs; k++) {
            forget(c, n->inputs[k]);
        }
        for (int k = 0; k < n->n_outputs; k++) {
            c->map[sx_node_output(n, k).id] = SX_NO_VALUE;
        }
    }
    for (int i = c->results.start[s]; i < c->results.start[s + 1]; i++) {
        const sx_result *r = &g->results[c->results.items[i]];
        forget(c, r->value);
        if (r->arg != SX_RESULT_IS_OUTPUT) {
            forget(c, g->args[r->arg].value);
        }
    }
}

static sx_status make_graph(cutting *c, int s)
{
    sx_segment *segment = &c->out->segments[s];
    making m = {.c = c, .s = s, .rw = {.from = c->g, .map = c->map}, .arena = &c->scratch};
    const int n_out = c->results.start[s + 1] - c->results.start[s] + c->borders.start[s + 1] -
                      c->borders.start[s];
    segment->in = take_array(c, &c->out->arena, c->n_ends[s] + 1, sx_segment_end);
    segment->out = take_array(c, &c->out->arena, n_out + 1, sx_segment_end);
    if (segment->in == NULL || segment->out == NULL) {
        return no_memory();
    }
    SX_TRY(sx_builder_create_like(c->g, &m.rw.to));
    add_nodes(&m);
    sx_status status = sx_builder_finish(m.rw.to, &segment->graph);
    sx_builder_destroy(m.rw.to);
    forget_all(c, s);
    return status;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static sx_status list_waits(cutting *c)
{
    for (int s = 0; s < c->out->n_segments; s++) {
        sx_segment *segment = &c->out->segments[s];
        int n = 0;
        for (const link *l = c->waits[s]; l != NULL; l = l->next) {
            n++;
        }
        segment->after = take_array(c, &c->out->arena, n + 1, int);
        if (segment->after == NULL) {
            return no_memory();
        }
        for (const link *l = c->waits[s]; l != NULL; l = l->next) {
            segment->after[segment->n_after++] = l->segment;
        }
        qsort(segment->after, (size_t)n, sizeof(int), by_number);
    }
    return SX_OK;
}

/* ---- All of it ---- */

static sx_status cut(cutting *c)
{
    const size_t nodes = (size_t)c->g->n_nodes + 1;
    c->device = take_array(c, &c->scratch, nodes, int);
    c->level = take_array(c, &c->scratch, nodes, int);
    c->segment = take_array(c, &c->scratch, nodes, int);
    c->border = take_array(c, &c->scratch, c->g->n_values, int);
    c->map = take_array(c, &c->scratch, c->g->n_values, sx_value);
    if (c->device == NULL || c->level == NULL || c->segment == NULL || c->border == NULL ||
        c->map == NULL) {
        return no_memory();
    }
    for (size_t k = 0; k < nodes; k++) {
        c->segment[k] = NONE;
    }
    for (int v = 0; v < c->g->n_values; v++) {
        c->border[v] = NONE;
    }
    find_levels(c);
    SX_TRY(raise_frozen(c));
    SX_TRY(find_roundings(c));
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
    out->arena.budget = c.scratch.budget = options->memory;
    sx_status status = sx_budget_explain(options->memory, "dividing a program", cut(&c));
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
