/* See aot_layers.h. */
#include "backends/pjrt/aot_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/pjrt/layouts.h"
#include "base/checked.h"
#include "base/memory.h"

enum { MAX_LAYERS = 4096 };

typedef struct sums {
    const sx_graph *graph;
    sx_aot_result *out;
    sx_aot_layer *layers; /* [MAX_LAYERS] */
    int n;
} sums;

/* ---- Names ---- */

/* The length of the name without its last component; the full length if it has only one. */
static size_t parent(const char *name, size_t size)
{
    for (size_t i = size; i > 0; i--) {
        if (name[i - 1] == '/') {
            return i - 1;
        }
    }
    return size;
}

static size_t layer_of_variable(const sx_arg *arg)
{
    size_t size = parent(arg->name, strlen(arg->name));
    return arg->role == SX_ROLE_SLOT ? parent(arg->name, size) : size;
}

static bool begins_with(const char *text, size_t size, const char *prefix)
{
    size_t n = strlen(prefix);
    return size >= n && memcmp(text, prefix, n) == 0;
}

/* Whether an operator was added by the trainer: backward pass, update, loss. */
static bool is_no_layer(const char *op, size_t size)
{
    return size == 0 || begins_with(op, size, "gradients/") || begins_with(op, size, "training/") ||
           memchr(op, '/', size) == NULL;
}

static sx_aot_layer *find_layer(sums *s, const char *name, size_t size)
{
    size = SX_MIN(size, (size_t)SX_AOT_NAME - 1);
    for (int i = 0; i < s->n; i++) {
        if (strlen(s->layers[i].name) == size && memcmp(s->layers[i].name, name, size) == 0) {
            return &s->layers[i];
        }
    }
    if (s->n == MAX_LAYERS) {
        return NULL;
    }
    memcpy(s->layers[s->n].name, name, size);
    return &s->layers[s->n++];
}

/* ---- Sums ---- */

static void add(sx_aot_bytes *sum, const sx_layout_array *array)
{
    sum->bytes += array->bytes;
    sum->padded += array->padded;
}

/* Keeps the rows with the most padding, in descending order. */
static void rank_waste(sx_aot_result *out, const sx_layout_array *array, const char *name,
                       size_t size)
{
    int64_t waste = array->padded - array->bytes;
    int at = out->n_wasteful;
    while (at > 0 && out->wasteful[at - 1].size.padded - out->wasteful[at - 1].size.bytes < waste) {
        at--;
    }
    if (waste <= 0 || at == SX_AOT_ROWS) {
        return;
    }
    out->n_wasteful += out->n_wasteful < SX_AOT_ROWS;
    memmove(out->wasteful + at + 1, out->wasteful + at,
            (size_t)(out->n_wasteful - at - 1) * sizeof(out->wasteful[0]));
    sx_aot_array *row = &out->wasteful[at];
    *row = (sx_aot_array){.size = {array->bytes, array->padded}};
    snprintf(row->name, sizeof(row->name), "%.*s", (int)SX_MIN(size, sizeof(row->name)), name);
    snprintf(row->type, sizeof(row->type), "%s", array->text);
}

static void visit_argument(sums *s, const sx_layout_array *array)
{
    const sx_graph *g = s->graph;
    add(&s->out->arguments, array);
    if (array->parameter >= g->n_args) {
        return;
    }
    const sx_arg *arg = &g->args[array->parameter];
    rank_waste(s->out, array, arg->name, strlen(arg->name));
    if (arg->kind == SX_ARG_VARIABLE && strchr(arg->name, '/') != NULL) {
        sx_aot_layer *layer = find_layer(s, arg->name, layer_of_variable(arg));
        if (layer != NULL) {
            add(&layer->parameters, array);
        }
    }
}

static void visit_array(void *user, const sx_layout_array *array)
{
    sums *s = user;
    if (array->parameter >= 0) {
        visit_argument(s, array);
        return;
    }
    add(&s->out->activations, array);
    rank_waste(s->out, array, array->op, array->op_size);
    if (!is_no_layer(array->op, array->op_size)) {
        sx_aot_layer *layer = find_layer(s, array->op, parent(array->op, array->op_size));
        if (layer != NULL) {
            add(&layer->activations, array);
        }
    }
}

/* ---- The largest batch ---- */

static int64_t padded_bytes(const sx_aot_layer *l)
{
    return l->parameters.padded + l->activations.padded;
}

static int by_bytes(const void *a, const void *b)
{
    int64_t x = padded_bytes(a), y = padded_bytes(b);
    return x != y ? (x < y) - (x > y)
                  : strcmp(((const sx_aot_layer *)a)->name, ((const sx_aot_layer *)b)->name);
}

sx_status sx_aot_sum_layouts(const sx_graph *graph, const void *code, size_t size,
                             sx_aot_result *out)
{
    sums s = {graph, out, sx_alloc(MAX_LAYERS, sizeof(*s.layers)), 0};
    if (s.layers == NULL) {
        return sx_no_memory("for the layers");
    }
    sx_status status = sx_layouts_visit(code, size, visit_array, &s);
    if (status == SX_OK) {
        qsort(s.layers, (size_t)s.n, sizeof(*s.layers), by_bytes);
        out->n_layers = SX_MIN(s.n, SX_AOT_ROWS);
        memcpy(out->layers, s.layers, (size_t)out->n_layers * sizeof(*s.layers));
    }
    sx_free(s.layers);
    return status;
}
