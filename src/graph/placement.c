/* See placement.h. */
#include "graph/placement.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/device_name.h"
#include "graph/node_label.h"
#include "graph/ops/attrs.h"
#include "graph/passes/rewrite.h"

enum { OPEN = -1 };

typedef struct placing {
    const sx_graph *g;
    const sx_placement_options *o;
    sx_device_name *names; /* [n_devices] */
    int *at;               /* [n_nodes]: a device, or OPEN */
    int *owner;            /* [n_nodes]: the variable's node that the value is assigned to, or -1 */
    int node;              /* of the rewriting */
} placing;

/* ---- What a scope says ---- */

/* "matmul "dense/matmul" (net.c:14) <why>; the devices are …" */
static sx_status refuse(const placing *p, sx_code code, const sx_node *n, const char *why)
{
    const char *slash = strrchr(n->file, '/');
    char label[SX_NODE_LABEL], place[100] = ""; /* a SavedModel's nodes have none */
    sx_buf names;
    if (n->file[0] != '\0') {
        snprintf(place, sizeof(place), " (%.80s:%d)", slash != NULL ? slash + 1 : n->file, n->line);
    }
    sx_buf_init(&names, 1 << 16);
    for (int i = 0; i < p->o->n_devices; i++) {
        sx_buf_printf(&names, "%s%s", i > 0 ? ", " : "", p->o->devices[i].name);
    }
    sx_status status = sx_error(
        code, "%s \"%s\"%s%s%s%s; the devices are %s", n->op->name, sx_node_label(n->name, label),
        place, n->device[0] != '\0' ? " is to run on " : "", n->device, why, sx_buf_text(&names));
    sx_buf_deinit(&names);
    return status;
}

static bool can(const placing *p, int device, const sx_node *n)
{
    return p->o->devices[device].runs == NULL || p->o->devices[device].runs(n);
}

/* The first device that `name` means and that has the operator; *out_named: the first that it
 * means. OPEN: none. */
static int find(const placing *p, const sx_device_name *name, const sx_node *n, int *out_named)
{
    *out_named = OPEN;
    for (int i = 0; i < p->o->n_devices; i++) {
        if (sx_device_name_fits(name, &p->names[i])) {
            *out_named = *out_named == OPEN ? i : *out_named;
            if (can(p, i, n)) {
                return i;
            }
        }
    }
    return OPEN;
}

static sx_status any_device(const placing *p, const sx_node *n, int *out)
{
    int named;
    *out = find(p, &SX_ANY_DEVICE, n, &named);
    return *out != OPEN ? SX_OK
                        : refuse(p, SX_UNIMPLEMENTED, n, ", but no device has this operator");
}

static sx_status said_device(const placing *p, const sx_node *n, int *out)
{
    sx_device_name name, of_type = SX_ANY_DEVICE;
    int named;
    SX_TRY(sx_device_name_parse(n->device, &name), "%s \"%s\"", n->op->name, n->name);
    *out = find(p, &name, n, &named);
    if (*out == OPEN && p->o->strict) {
        return refuse(p, SX_INVALID_ARGUMENT, n,
                      named == OPEN ? ", which is not there (and soft placement is off)"
                                    : ", which does not have this operator (and soft placement is "
                                      "off)");
    }
    if (*out == OPEN) {
        memcpy(of_type.type, name.type, sizeof(of_type.type));
        *out = find(p, &of_type, n, &named);
    }
    return *out != OPEN ? SX_OK : any_device(p, n, out);
}

/* ---- The rules ---- */

static bool is_of_types(const sx_node *n)
{
    return n->op->batch_rule == SX_RULE_TYPES && n->n_inputs > 0;
}

static sx_status place_said(placing *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const sx_node *n = &p->g->nodes[k];
        if (n->device[0] != '\0') {
            SX_TRY(said_device(p, n, &p->at[k]));
        }
    }
    return SX_OK;
}

/* By program order, the first reader that has a device decides where a source lies. */
static void place_sources(placing *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const sx_node *n = &p->g->nodes[k];
        for (int i = 0; i < n->n_inputs && p->at[k] != OPEN; i++) {
            const uint32_t maker = p->g->values[n->inputs[i].id].node;
            if (p->at[maker] == OPEN && sx_node_is_source(&p->g->nodes[maker]) &&
                can(p, p->at[k], &p->g->nodes[maker])) {
                p->at[maker] = p->at[k];
            }
        }
    }
}

static sx_status place_rest(placing *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const sx_node *n = &p->g->nodes[k];
        if (p->at[k] == OPEN && is_of_types(n)) {
            const int near = p->at[p->g->values[n->inputs[0].id].node];
            p->at[k] = near != OPEN && can(p, near, n) ? near : OPEN;
        }
        if (p->at[k] == OPEN) {
            SX_TRY(any_device(p, n, &p->at[k]));
        }
    }
    return SX_OK;
}

static sx_status choose(placing *p)
{
    const sx_graph *g = p->g;
    SX_TRY(place_said(p));
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].arg != SX_RESULT_IS_OUTPUT) {
            const uint32_t owner = g->values[g->args[g->results[i].arg].value.id].node;
            p->owner[g->values[g->results[i].value.id].node] = (int)owner;
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        const int owner = p->owner[k];
        if (p->at[k] == OPEN && !sx_node_is_source(n) && !is_of_types(n)) {
            if (owner >= 0 && p->at[owner] != OPEN && can(p, p->at[owner], n)) {
                p->at[k] = p->at[owner];
            } else {
                SX_TRY(any_device(p, n, &p->at[k]));
            }
        }
    }
    place_sources(p);
    return place_rest(p);
}

/* ---- The graph ---- */

static const char *device_of(const placing *p, const sx_node *n)
{
    return p->o->devices[p->at[n - p->g->nodes]].name;
}

static void place_node(sx_rewrite *rw, const sx_node *n)
{
    sx_node placed = *n;
    placed.device = device_of(rw->user, n);
    sx_rewrite_keep(rw, &placed, NULL);
}

static bool place_arg(sx_rewrite *rw, const sx_arg *arg)
{
    const sx_node *n = sx_graph_maker(rw->from, arg->value);
    rw->map[arg->value.id] =
        sx_build_arg_on(rw->to, arg, *sx_graph_type(rw->from, arg->value), device_of(rw->user, n));
    return true;
}

sx_status sx_pass_place(const sx_graph *g, const sx_placement_options *options, sx_graph **out)
{
    const size_t nodes = (size_t)g->n_nodes + 1, devices = (size_t)options->n_devices + 1;
    placing p = {.g = g, .o = options};
    p.names = sx_alloc(devices, sizeof(*p.names));
    p.at = sx_alloc(nodes, sizeof(*p.at));
    p.owner = sx_alloc(nodes, sizeof(*p.owner));
    sx_status status = p.names == NULL || p.at == NULL || p.owner == NULL
                           ? sx_no_memory("placing a program")
                           : SX_OK;
    for (int i = 0; i < options->n_devices && status == SX_OK; i++) {
        status = sx_device_name_parse(options->devices[i].name, &p.names[i]);
    }
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        p.at[k] = p.owner[k] = OPEN;
    }
    status = status == SX_OK ? choose(&p) : status;
    if (status == SX_OK) {
        const sx_rewrite_hooks hooks = {.node = place_node, .arg = place_arg};
        status = sx_rewrite_run_hooks(g, &hooks, &p, out);
    }
    sx_free(p.names);
    sx_free(p.at);
    sx_free(p.owner);
    return status;
}

void sx_placement_print(const sx_graph *placed, sx_buf *out)
{
    for (int k = 0; k < placed->n_nodes; k++) {
        const sx_node *n = &placed->nodes[k];
        const sx_tf_form *form = n->op->from_tf;
        sx_buf_printf(out, "%s: (%s): %s\n", n->name,
                      form != NULL && form->op != NULL ? form->op : n->op->name, n->device);
    }
}
