/* See sextant/graph.h and builder.h. */
#include "graph/builder.h"

#include <sextant/complex.h>
#include <sextant/function.h>

#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/device_name.h"
#include "graph/library.h"
#include "graph/node_label.h"
#include "graph/ops/attrs.h"

/* ---- Errors ---- */

void sx_builder_fail(sx_builder *b, sx_status status)
{
    if (b == NULL || b->error != SX_OK) {
        sx_status_free(status);
        return;
    }
    b->error = status;
}

bool sx_builder_failed(const sx_builder *b)
{
    return b == NULL || b->error != SX_OK;
}

bool sx_builder_take_args(sx_builder *b, const char *name, const void *args, size_t size, void *out)
{
    sx_status status = sx_take_args(name, args, size, out);
    if (status != SX_OK) {
        sx_builder_fail(b, status);
    }
    return status == SX_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Keeps the error of a node: "flowers.c:14: matmul "dense_1/matmul": <message>". */
static void fail_at(sx_builder *b, const char *file, int line, const char *what, const char *name,
                    sx_status status)
{
    char text[SX_NODE_LABEL];
    name = sx_node_label(name, text);
    if (file[0] == '\0') {
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"", what, name);
    } else {
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: %s \"%s\"", base_name(file),
                                    line, what, name);
    }
    sx_builder_fail(b, status);
}

static void fail_memory(sx_builder *b)
{
    sx_builder_fail(b, sx_budget_over(b->graph->arena.budget, "a graph", 0));
}

/* ---- Life cycle ---- */

sx_status sx_builder_create(sx_builder **out_builder)
{
    SX_NEED(out_builder);
    sx_builder *b = sx_alloc(1, sizeof(*b));
    sx_graph *g = sx_alloc(1, sizeof(*g));
    sx_status spent = sx_error(SX_FAILED_PRECONDITION, "this builder has finished its graph");
    if (b == NULL || g == NULL || sx_status_code(spent) == SX_RESOURCE_EXHAUSTED) {
        sx_free(b);
        sx_free(g);
        sx_status_free(spent);
        return sx_no_memory("for a graph builder");
    }
    b->spent = spent;
    sx_arena_init(&g->arena, 0);
    g->arena.first_bytes = 256; /* a library may have 65,536 functions, most of them small */
    g->n_values = 1;            /* value 0 is "none" */
    b->graph = g;
    b->file = b->device = b->scopes[0] = "";
    sx_map_init_borrowed(&b->node_names); /* names are in the graph's arena */
    sx_map_init_borrowed(&b->scope_names);
    *out_builder = b;
    return SX_OK;
}

sx_status sx_builder_create_function(sx_builder **out_builder)
{
    SX_TRY(sx_builder_create(out_builder));
    (*out_builder)->graph->general = true;
    return SX_OK;
}

sx_status sx_builder_create_like(const sx_graph *g, sx_builder **out_builder)
{
    SX_TRY(sx_builder_create(out_builder));
    (*out_builder)->graph->arena.budget = g->arena.budget;
    return SX_OK;
}

void sx_builder_destroy(sx_builder *b)
{
    if (b == NULL) {
        return;
    }
    sx_graph_destroy(b->graph);
    sx_map_deinit(&b->node_names);
    sx_map_deinit(&b->scope_names);
    sx_free(b->current);
    sx_free(b->variables);
    sx_status_free(b->error);
    sx_status_free(b->spent);
    sx_free(b);
}

void sx_graph_destroy(sx_graph *g)
{
    if (g == NULL) {
        return;
    }
    sx_free(g->nodes);
    sx_free(g->values);
    sx_free(g->args);
    sx_free(g->results);
    sx_budget_release(g->arena.budget, g->array_bytes);
    sx_arena_deinit(&g->arena);
    sx_free(g);
}

sx_arena *sx_builder_arena(sx_builder *b)
{
    return &b->graph->arena;
}

/* Makes room for `extra` more elements of a growing array; false and the error kept otherwise. */
static bool reserve(sx_builder *b, void **array, int *capacity, int count, int extra,
                    size_t elem_bytes)
{
    if (count + extra <= *capacity) {
        return true;
    }
    const int had = *capacity, wanted = SX_MAX(had * 2, SX_MAX(count + extra, 2));
    if (!sx_budget_grow(b->graph->arena.budget, array, capacity, wanted, elem_bytes)) {
        fail_memory(b);
        return false;
    }
    b->graph->array_bytes += (size_t)(wanted - had) * elem_bytes;
    return true;
}

/* ---- Names and scopes ---- */

/* "base", "base_1", "base_2", …: the first that is free in `taken`, which then holds it. Counters
 * of the names asked for are the map's values, so that this is not quadratic. */
static const char *unique_name(sx_builder *b, sx_map *taken, const char *base)
{
    if (base == NULL) { /* a copy that there was no memory for */
        fail_memory(b);
        return "";
    }
    uintptr_t count = (uintptr_t)sx_map_get(taken, base);
    const char *name = base;
    while (name != NULL && sx_map_has(taken, name)) {
        name = sx_arena_printf(&b->graph->arena, "%s_%zu", base, (size_t)++count);
    }
    sx_status status = name == NULL ? SX_OK : sx_map_put(taken, name, NULL);
    if (status == SX_OK && name != base && name != NULL) {
        status = sx_map_put(taken, base, (void *)count);
    }
    if (name == NULL || status != SX_OK) {
        sx_builder_fail(b, status);
        fail_memory(b);
        return "";
    }
    return name;
}

const char *sx_scoped_name(sx_builder *b, const char *leaf)
{
    const char *scope = b->scopes[b->depth];
    const char *name = scope[0] == '\0' ? sx_arena_strdup(&b->graph->arena, leaf)
                                        : sx_arena_printf(&b->graph->arena, "%s/%s", scope, leaf);
    if (name == NULL) {
        fail_memory(b);
        return "";
    }
    return name;
}

const char *sx_scope_begin(sx_builder *b, const char *base, const char *name)
{
    if (b->depth + 1 == SX_SCOPE_MAX_DEPTH) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "scopes nest deeper than %d at \"%s\"",
                                    SX_SCOPE_MAX_DEPTH, b->scopes[b->depth]));
        return "";
    }
    const char *full = sx_scoped_name(b, name != NULL ? name : base);
    if (name != NULL && sx_map_has(&b->scope_names, full)) {
        fail_at(b, b->file, b->line, base, full,
                sx_error(SX_ALREADY_EXISTS, "this name is in use; each layer needs its own"));
    }
    b->scopes[++b->depth] = unique_name(b, &b->scope_names, full);
    return b->scopes[b->depth];
}

void sx_scope_end(sx_builder *b)
{
    if (b->depth > 0) {
        b->depth--;
    }
}

/* The name of a device scope inside the current one; NULL after an error. */
static const char *device_within(sx_builder *b, const char *device)
{
    sx_device_name name = SX_ANY_DEVICE, inner = SX_ANY_DEVICE;
    char text[SX_DEVICE_NAME_BYTES];
    sx_status status = sx_device_name_parse(b->device, &name);
    status = status == SX_OK ? sx_device_name_parse(device, &inner) : status;
    if (status != SX_OK) {
        fail_at(b, b->file, b->line, "device scope",
                sx_device_text_show(device, strlen(device), text), status);
        return NULL;
    }
    sx_device_name_merge(&name, &inner);
    const char *kept = sx_arena_strdup(&b->graph->arena, sx_device_name_print(&name, text));
    if (kept == NULL) {
        fail_memory(b);
    }
    return kept;
}

void sx_device_scope_begin(sx_builder *b, const char *device)
{
    if (sx_builder_failed(b)) {
        return;
    }
    if (b->n_devices == SX_SCOPE_MAX_DEPTH) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "device scopes nest deeper than %d at \"%.100s\"",
                                    SX_SCOPE_MAX_DEPTH, device != NULL ? device : ""));
        return;
    }
    const char *inner = device != NULL ? device_within(b, device) : "";
    if (inner != NULL) {
        b->devices[b->n_devices++] = b->device;
        b->device = inner;
    }
}

void sx_device_scope_end(sx_builder *b)
{
    if (!sx_builder_failed(b) && b->n_devices > 0) {
        b->device = b->devices[--b->n_devices];
    }
}

void sx_builder_at(sx_builder *b, const char *file, int line)
{
    if (b != NULL) {
        b->file = file != NULL ? file : "";
        b->line = line;
    }
}

/* ---- Nodes ---- */

sx_type sx_type_of_value(const sx_builder *b, sx_value v)
{
    bool known = !sx_builder_failed(b) && sx_value_is(v) && v.id < (uint32_t)b->graph->n_values;
    return known ? b->graph->values[v.id].type : (sx_type){0};
}

const sx_node *sx_builder_maker(const sx_builder *b, sx_value v)
{
    return sx_value_is(v) ? sx_graph_maker(b->graph, v) : NULL;
}

void sx_builder_know_rank(sx_builder *b, sx_value v, int rank)
{
    const sx_node *maker = sx_builder_maker(b, v);
    if (maker != NULL && maker->op != &sx_op_parameter && b->graph->general &&
        b->graph->values[v.id].type.rank == SX_UNKNOWN_RANK) {
        sx_type *type = &b->graph->values[v.id].type;
        type->rank = rank;
        for (int d = 0; d < rank; d++) {
            type->dims[d] = SX_UNKNOWN_DIM;
        }
    }
}

sx_status sx_infer_types(const sx_op_def *op, const void *attrs, const sx_type *inputs,
                         int n_inputs, sx_type outputs[SX_MAX_OUTPUTS], int *out_n)
{
    if (op->n_in != SX_VARIADIC && op->n_in != n_inputs) {
        return sx_error(SX_INVALID_ARGUMENT, "got %d inputs, expected %d", n_inputs, op->n_in);
    }
    sx_infer_context c = {
        .attrs = attrs, .inputs = inputs, .n_inputs = n_inputs, .outputs = outputs};
    c.n_outputs = op->n_out == SX_VARIADIC ? 0 : op->n_out;
    SX_TRY(op->infer(&c));
    for (int i = 0; i < c.n_outputs; i++) {
        const sx_type *out = &outputs[i];
        if (sx_dtype_is_complex(out->dtype)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "output %d would be %s; a graph has the real and the imaginary part "
                            "as two values",
                            i, sx_dtype_name(out->dtype));
        }
        for (int d = sx_batch_axis(out) + 1; d > 0 && d < out->rank; d++) {
            if (sx_dim_is_batch(out->dims[d])) {
                char text[SX_TYPE_TEXT];
                return sx_error(SX_INVALID_ARGUMENT,
                                "output %d would be %s, every example with every other; a value "
                                "has the batch N in one dimension at most",
                                i, sx_type_format(out, text, sizeof(text)));
            }
        }
    }
    *out_n = c.n_outputs;
    return SX_OK;
}

enum { FEW_INPUTS = 8 };

/* Types of the inputs, in `few` or, if they are more, in the arena; NULL after an error (which is
 * kept). */
static sx_type *input_types(sx_builder *b, const sx_node_spec *spec, sx_type few[FEW_INPUTS])
{
    if (spec->n_inputs > SX_NODE_MAX_INPUTS || b->graph->n_nodes >= SX_GRAPH_MAX_NODES) {
        sx_builder_fail(b, sx_error(SX_RESOURCE_EXHAUSTED,
                                    "more than %d nodes, or more than %d inputs of a node",
                                    SX_GRAPH_MAX_NODES, SX_NODE_MAX_INPUTS));
        return NULL;
    }
    sx_type *types = spec->n_inputs <= FEW_INPUTS
                         ? few
                         : sx_arena_array(&b->graph->arena, spec->n_inputs, sx_type);
    for (int i = 0; types != NULL && i < spec->n_inputs; i++) {
        sx_value v = spec->inputs[i];
        if (!sx_value_is(v) || v.id >= (uint32_t)b->graph->n_values) {
            fail_at(b, spec->file, spec->line, spec->op->name, spec->name,
                    sx_error(SX_INVALID_ARGUMENT, "input %d is not a value of this graph", i));
            return NULL;
        }
        types[i] = b->graph->values[v.id].type;
    }
    if (types == NULL) {
        fail_memory(b);
    }
    return types;
}

sx_status sx_check_declared(const sx_op_def *op, int n_inputs, const sx_type *types, int n_types)
{
    if (op->n_in != SX_VARIADIC && op->n_in != n_inputs) {
        return sx_error(SX_INVALID_ARGUMENT, "got %d inputs, expected %d", n_inputs, op->n_in);
    }
    if ((op->n_out != SX_VARIADIC && op->n_out != n_types) || n_types > SX_MAX_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d outputs are declared, expected %d", n_types,
                        op->n_out != SX_VARIADIC ? op->n_out : SX_MAX_OUTPUTS);
    }
    for (int i = 0; i < n_types; i++) {
        const sx_type *t = &types[i];
        if (sx_dtype_name(t->dtype)[0] == '?' || sx_dtype_is_complex(t->dtype) ||
            t->rank < SX_UNKNOWN_RANK || t->rank > SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "output %d is declared with dtype %d and rank %d, which do not exist",
                            i, (int)t->dtype, t->rank);
        }
    }
    return SX_OK;
}

/* The types as far as they follow from inputs with unknown dimensions: inference with two numbers
 * in their place, of which what differs is unknown. Dimensions that are unknown are taken to be
 * equal; running the function checks them. */
static sx_status infer_open(const sx_node_spec *spec, const void *attrs, const sx_type *inputs,
                            sx_type outputs[SX_MAX_OUTPUTS], int *out_n)
{
    static const int64_t sizes[2] = {10007, 20011};
    sx_type types[2][SX_MAX_OUTPUTS], *tried = sx_alloc((size_t)spec->n_inputs + 1, sizeof(*tried));
    sx_status status = tried == NULL ? sx_no_memory("building a function") : SX_OK;
    for (int k = 0; k < 2 && status == SX_OK; k++) {
        for (int i = 0; i < spec->n_inputs; i++) {
            tried[i] = inputs[i];
            for (int d = 0; d < tried[i].rank; d++) {
                const bool known = tried[i].dims[d] >= 0 || sx_dim_is_batch(tried[i].dims[d]);
                tried[i].dims[d] = known ? tried[i].dims[d] : sizes[k];
            }
        }
        status = sx_infer_types(spec->op, attrs, tried, spec->n_inputs, types[k], out_n);
    }
    sx_free(tried);
    if (status != SX_OK) {
        return sx_status_annotate(status, __FILE__, __LINE__,
                                  "with %d for unknown dimensions (sx_function_node() takes sizes "
                                  "that depend on them as operands)",
                                  (int)sizes[0]);
    }
    for (int i = 0; i < *out_n; i++) {
        outputs[i] = types[0][i];
        for (int d = 0; d < outputs[i].rank; d++) {
            outputs[i].dims[d] =
                types[0][i].dims[d] == types[1][i].dims[d] ? outputs[i].dims[d] : SX_UNKNOWN_DIM;
        }
    }
    return status;
}

static bool has_unknown(const sx_type *types, int n)
{
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            if (types[i].dims[d] < 0 && !sx_dim_is_batch(types[i].dims[d])) {
                return true;
            }
        }
    }
    return false;
}

/* In a static graph, of a node whose outputs' shapes data decide: those that are known already. */
static sx_status narrow_types(const sx_node_spec *spec, int n, sx_type *outputs)
{
    if (spec->types == NULL || spec->op->host_types == NULL) {
        return SX_OK;
    }
    for (int i = 0; i < n && n == spec->n_types; i++) {
        if (!sx_type_may_be(&spec->types[i], &outputs[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT, "output %d is declared as %s, expected %s", i,
                            sx_type_format(&spec->types[i], a, sizeof(a)),
                            sx_type_format(&outputs[i], b, sizeof(b)));
        }
        outputs[i] = spec->types[i];
    }
    return SX_OK;
}

/* The types of a node's outputs: inferred, or, in a function body, as declared. */
static sx_status output_types(const sx_builder *b, const sx_node_spec *spec, const void *attrs,
                              const sx_type *inputs, sx_type outputs[SX_MAX_OUTPUTS], int *out_n)
{
    const bool general = b->graph->general;
    if (!general && (spec->n_attr_operands > 0 || (spec->op->flags & SX_OP_FUNCTION))) {
        return sx_error(
            SX_INVALID_ARGUMENT, "%s is allowed only in a function, not in a static graph",
            spec->n_attr_operands > 0 ? "an attribute that is an operand" : "this operator");
    }
    for (int i = 0; i < spec->n_attr_operands; i++) {
        const sx_attr_operand *o = &spec->attr_operands[i];
        if (!sx_value_is(o->value) || o->value.id >= (uint32_t)b->graph->n_values) {
            return sx_error(SX_INVALID_ARGUMENT, "attribute %s is not a value of this graph",
                            spec->op->attrs[o->row].name);
        }
    }
    if (spec->types == NULL || !general) {
        if (spec->n_attr_operands > 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "its types depend on an attribute that is an operand: declare them");
        }
        if (general && (spec->op->flags & SX_OP_HOST) == 0 && has_unknown(inputs, spec->n_inputs)) {
            return infer_open(spec, attrs, inputs, outputs, out_n);
        }
        SX_TRY(sx_infer_types(spec->op, attrs, inputs, spec->n_inputs, outputs, out_n));
        return narrow_types(spec, *out_n, outputs);
    }
    SX_TRY(sx_check_declared(spec->op, spec->n_inputs, spec->types, spec->n_types));
    memcpy(outputs, spec->types, (size_t)spec->n_types * sizeof(*outputs));
    *out_n = spec->n_types;
    return SX_OK;
}

static sx_value append_node(sx_builder *b, const sx_node_spec *spec, const sx_type *outputs,
                            int n_outputs)
{
    sx_graph *g = b->graph;
    /* nothing is allocated after what did not fit: a budget tells why by its last charge */
    void *attrs = sx_attrs_copy(&g->arena, spec->op, spec->attrs);
    sx_value *inputs = attrs == NULL ? NULL
                                     : sx_arena_memdup(&g->arena, spec->inputs,
                                                       (size_t)spec->n_inputs * sizeof(sx_value));
    sx_attr_operand *attr_operands =
        inputs == NULL
            ? NULL
            : sx_arena_memdup(&g->arena, spec->attr_operands,
                              (size_t)spec->n_attr_operands * sizeof(*spec->attr_operands));
    if (attr_operands == NULL) {
        fail_memory(b);
        return SX_NO_VALUE;
    }
    if (!reserve(b, (void **)&g->nodes, &b->node_capacity, g->n_nodes, 1, sizeof(sx_node)) ||
        !reserve(b, (void **)&g->values, &b->value_capacity, g->n_values, n_outputs + 1,
                 sizeof(sx_value_info))) {
        return SX_NO_VALUE;
    }
    sx_value first = {(uint32_t)g->n_values};
    for (int i = 0; i < n_outputs; i++) {
        g->values[g->n_values++] = (sx_value_info){outputs[i], (uint32_t)g->n_nodes, (uint16_t)i};
    }
    g->nodes[g->n_nodes++] = (sx_node){
        .op = spec->op,
        .attrs = attrs,
        .inputs = inputs,
        .n_inputs = spec->n_inputs,
        .attr_operands = attr_operands,
        .n_attr_operands = spec->n_attr_operands,
        .first_output = first,
        .n_outputs = n_outputs,
        .name = spec->name,
        .device = spec->device,
        .file = spec->file,
        .line = spec->line,
        .trial = b->trial,
    };
    return first;
}

/* Name, device and file copied into the graph; the name made unique, or an error if given and
 * taken. */
static bool settle_names(sx_builder *b, sx_node_spec *spec)
{
    sx_arena *arena = &b->graph->arena;
    if (spec->name == NULL) {
        spec->name = unique_name(b, &b->node_names, sx_scoped_name(b, spec->op->name));
    } else {
        const size_t names = b->node_names.count;
        const char *name = sx_arena_strdup(arena, spec->name);
        const sx_status status = name == NULL ? SX_OK : sx_map_put(&b->node_names, name, NULL);
        if (name == NULL || status != SX_OK) {
            sx_builder_fail(b, status);
            fail_memory(b);
        } else if (b->node_names.count == names) {
            fail_at(b, spec->file, spec->line, spec->op->name, spec->name,
                    sx_error(SX_ALREADY_EXISTS, "this name is in use"));
        } else {
            spec->name = name;
        }
    }
    spec->device = spec->device[0] != '\0' ? sx_arena_strdup(arena, spec->device) : "";
    spec->file = spec->file[0] != '\0' ? sx_arena_strdup(arena, spec->file) : "";
    if (spec->device == NULL || spec->file == NULL) {
        fail_memory(b);
    }
    return b->error == SX_OK;
}

sx_value sx_build_node(sx_builder *b, const sx_node_spec *asked)
{
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    sx_node_spec spec = *asked;
    spec.device = spec.device[0] != '\0' ? spec.device : b->device;
    if (!settle_names(b, &spec)) {
        return SX_NO_VALUE;
    }
    sx_type few[FEW_INPUTS], outputs[SX_MAX_OUTPUTS];
    const sx_type *inputs = input_types(b, &spec, few);
    if (inputs == NULL) {
        return SX_NO_VALUE;
    }
    void *zero_attrs = spec.attrs != NULL ? NULL : sx_attrs_copy(&b->graph->arena, spec.op, NULL);
    const void *attrs = spec.attrs != NULL ? spec.attrs : zero_attrs;
    int n_outputs = 0;
    if (attrs == NULL) {
        fail_memory(b);
        return SX_NO_VALUE;
    }
    sx_status status = sx_check_bodies(spec.op, attrs, b->graph->general);
    status = status != SX_OK ? status : output_types(b, &spec, attrs, inputs, outputs, &n_outputs);
    if (status != SX_OK) {
        fail_at(b, spec.file, spec.line, spec.op->name, spec.name, status);
        return SX_NO_VALUE;
    }
    return append_node(b, &spec, outputs, n_outputs);
}

sx_value sx_build(sx_builder *b, const sx_op_def *op, const void *attrs, const sx_value *inputs,
                  int n_inputs)
{
    return sx_build_node(b, &(sx_node_spec){.op = op,
                                            .attrs = attrs,
                                            .inputs = inputs,
                                            .n_inputs = n_inputs,
                                            .device = b->device,
                                            .file = b->file,
                                            .line = b->line});
}

/* ---- Arguments and results ---- */

/* An argument's node has its name. */
static int find_arg(const sx_builder *b, const char *name)
{
    return sx_map_has(&b->node_names, name) ? sx_graph_find_arg(b->graph, name) : -1;
}

sx_value sx_build_arg(sx_builder *b, const sx_arg *arg, sx_type type)
{
    return sx_builder_failed(b) ? SX_NO_VALUE : sx_build_arg_on(b, arg, type, b->device);
}

sx_value sx_build_arg_on(sx_builder *b, const sx_arg *arg, sx_type type, const char *device)
{
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    sx_graph *g = b->graph;
    if (arg->name == NULL) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "an input or a variable has no name"));
        return SX_NO_VALUE;
    }
    if ((unsigned)arg->init >= SX_INIT_COUNT_ || (unsigned)arg->role > SX_ROLE_STEP) {
        fail_at(b, b->file, b->line, "variable", arg->name,
                sx_error(SX_INVALID_ARGUMENT, "initializer %d or role %d does not exist",
                         (int)arg->init, (int)arg->role));
        return SX_NO_VALUE;
    }
    if (find_arg(b, arg->name) >= 0) {
        fail_at(b, b->file, b->line, "argument", arg->name,
                sx_error(SX_ALREADY_EXISTS, "the graph already has an argument of this name"));
        return SX_NO_VALUE;
    }
    int capacity = b->arg_capacity;
    if (!reserve(b, (void **)&g->args, &b->arg_capacity, g->n_args, 1, sizeof(sx_arg)) ||
        !reserve(b, (void **)&b->current, &capacity, g->n_args, 1, sizeof(sx_value))) {
        return SX_NO_VALUE;
    }
    sx_parameter_attrs attrs = {.dtype = type.dtype, .shape = {.n = SX_MAX(type.rank, 0)}};
    memcpy(attrs.shape.v, type.dims, sizeof(type.dims));
    sx_value v = sx_build_node(b, &(sx_node_spec){.op = &sx_op_parameter,
                                                  .attrs = &attrs,
                                                  .types = b->graph->general ? &type : NULL,
                                                  .n_types = 1,
                                                  .name = arg->name,
                                                  .device = device,
                                                  .file = b->file,
                                                  .line = b->line});
    sx_arg kept = *arg;
    kept.name = sx_arena_strdup(&g->arena, arg->name);
    kept.value = v;
    if (kept.name == NULL) {
        fail_memory(b);
    }
    if (b->error != SX_OK) {
        return SX_NO_VALUE;
    }
    b->current[g->n_args] = v;
    g->args[g->n_args++] = kept;
    return v;
}

/* A variable asked for again: its current value if the type agrees. */
static sx_value existing_variable(sx_builder *b, int arg, const sx_variable_spec *spec)
{
    char had[SX_TYPE_TEXT], asked[SX_TYPE_TEXT];
    const sx_type *type = sx_graph_type(b->graph, b->graph->args[arg].value);
    if (b->graph->args[arg].kind == SX_ARG_VARIABLE && sx_type_equal(type, &spec->type)) {
        return b->current[arg];
    }
    fail_at(b, b->file, b->line, "variable", spec->name,
            sx_error(SX_INVALID_ARGUMENT, "requested as %s, but it is %s",
                     sx_type_format(&spec->type, asked, sizeof(asked)),
                     sx_type_format(type, had, sizeof(had))));
    return SX_NO_VALUE;
}

/* ---- Variables of a function ---- */

/* The function's variable of that name, which it gets here if it has none. NULL after an error. */
static sx_builder_variable *declare_variable(sx_builder *b, const sx_variable_spec *spec)
{
    for (int i = 0; i < b->n_variables; i++) {
        sx_builder_variable *v = &b->variables[i];
        if (strcmp(v->spec.name, spec->name) == 0) {
            if (sx_type_equal(&v->spec.type, &spec->type)) {
                return v;
            }
            char had[SX_TYPE_TEXT], asked[SX_TYPE_TEXT];
            fail_at(b, b->file, b->line, "variable", spec->name,
                    sx_error(SX_INVALID_ARGUMENT, "requested as %s, but it is %s",
                             sx_type_format(&spec->type, asked, sizeof(asked)),
                             sx_type_format(&v->spec.type, had, sizeof(had))));
            return NULL;
        }
    }
    sx_variable_spec kept = *spec;
    kept.name = sx_arena_strdup(&b->graph->arena, spec->name);
    if (kept.name == NULL) {
        fail_memory(b);
        return NULL;
    }
    if (!reserve(b, (void **)&b->variables, &b->variable_capacity, b->n_variables, 1,
                 sizeof(*b->variables))) {
        return NULL;
    }
    b->variables[b->n_variables] = (sx_builder_variable){.spec = kept};
    return &b->variables[b->n_variables++];
}

void sx_builder_take_variables(sx_builder *b, const sx_builder *region)
{
    for (int i = 0; i < region->n_variables && !sx_builder_failed(b); i++) {
        (void)declare_variable(b, &region->variables[i].spec);
    }
}

static sx_value function_variable(sx_builder *b, const sx_variable_spec *spec)
{
    sx_builder_variable *v = declare_variable(b, spec);
    if (v == NULL || sx_value_is(v->value)) {
        return v != NULL ? v->value : SX_NO_VALUE;
    }
    sx_node_spec node = {.op = &sx_op_variable_handle,
                         .attrs = &(sx_variable_handle_attrs){v->spec.name},
                         .device = b->device,
                         .file = b->file,
                         .line = b->line};
    v->handle = sx_build_node(b, &node);
    node = (sx_node_spec){.op = &sx_op_read_variable,
                          .inputs = &v->handle,
                          .n_inputs = 1,
                          .types = &v->spec.type,
                          .n_types = 1,
                          .device = b->device,
                          .file = b->file,
                          .line = b->line};
    v->value = sx_build_node(b, &node);
    return v->value;
}

static void assign_in_function(sx_builder *b, const char *name, sx_value value)
{
    for (int i = 0; i < b->n_variables; i++) {
        sx_builder_variable *v = &b->variables[i];
        if (strcmp(v->spec.name, name) == 0 && sx_value_is(v->handle)) {
            const sx_type type = sx_type_of_value(b, value);
            if (!sx_type_equal(&type, &v->spec.type)) {
                char had[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
                fail_at(b, b->file, b->line, "assign", name,
                        sx_error(SX_INVALID_ARGUMENT, "the variable is %s, the value %s",
                                 sx_type_format(&v->spec.type, had, sizeof(had)),
                                 sx_type_format(&type, got, sizeof(got))));
                return;
            }
            v->value =
                sx_build_node(b, &(sx_node_spec){.op = &sx_op_assign_variable,
                                                 .inputs = (const sx_value[]){v->handle, value},
                                                 .n_inputs = 2,
                                                 .types = &v->spec.type,
                                                 .n_types = 1,
                                                 .device = b->device,
                                                 .file = b->file,
                                                 .line = b->line});
            return;
        }
    }
    fail_at(b, b->file, b->line, "assign", name,
            sx_error(SX_NOT_FOUND, "no variable has this name; create it with sx_variable()"));
}

sx_value sx_variable(sx_builder *b, const sx_variable_spec *spec)
{
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    if (spec == NULL || spec->name == NULL) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "a variable has no name"));
        return SX_NO_VALUE;
    }
    int arg = find_arg(b, spec->name);
    if (arg >= 0 && !b->graph->general) {
        return existing_variable(b, arg, spec);
    }
    if (!sx_type_is_static(&spec->type)) {
        char text[SX_TYPE_TEXT];
        fail_at(b, b->file, b->line, "variable", spec->name,
                sx_error(SX_INVALID_ARGUMENT,
                         "type %s is not static; a variable cannot depend on the batch",
                         sx_type_format(&spec->type, text, sizeof(text))));
        return SX_NO_VALUE;
    }
    if (b->graph->general) {
        return function_variable(b, spec);
    }
    sx_initializer init = spec->init == SX_INIT_DEFAULT ? SX_INIT_ZEROS : spec->init;
    return sx_build_arg(b,
                        &(sx_arg){.kind = SX_ARG_VARIABLE,
                                  .name = spec->name,
                                  .role = spec->role,
                                  .init = init,
                                  .init_value = spec->init_value},
                        spec->type);
}

sx_value sx_input(sx_builder *b, const char *name, sx_type type)
{
    return sx_build_arg(b, &(sx_arg){.kind = SX_ARG_INPUT, .name = name}, type);
}

static void append_result(sx_builder *b, const char *name, sx_value value, int arg)
{
    sx_graph *g = b->graph;
    const char *kept = sx_arena_strdup(&g->arena, name);
    if (kept == NULL) {
        fail_memory(b);
    } else if (reserve(b, (void **)&g->results, &b->result_capacity, g->n_results, 1,
                       sizeof(sx_result))) {
        g->results[g->n_results++] = (sx_result){kept, value, arg};
    }
}

void sx_output(sx_builder *b, const char *name, sx_value value)
{
    if (sx_builder_failed(b)) {
        return;
    }
    if (name == NULL) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "an output has no name"));
        return;
    }
    const bool known = sx_value_is(value) && value.id < (uint32_t)b->graph->n_values;
    if (!known || sx_graph_find_output(b->graph, name) >= 0) {
        fail_at(b, b->file, b->line, "output", name,
                sx_error(SX_INVALID_ARGUMENT, known ? "the graph already has an output of this name"
                                                    : "it is not a value of this graph"));
        return;
    }
    append_result(b, name, value, SX_RESULT_IS_OUTPUT);
}

static sx_result *find_assignment(sx_graph *g, int arg)
{
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].arg == arg) {
            return &g->results[i];
        }
    }
    return NULL;
}

void sx_assign(sx_builder *b, const char *variable_name, sx_value value)
{
    if (sx_builder_failed(b)) {
        return;
    }
    sx_graph *g = b->graph;
    variable_name = variable_name != NULL ? variable_name : "";
    if (g->general) {
        assign_in_function(b, variable_name, value);
        return;
    }
    int arg = find_arg(b, variable_name);
    if (arg < 0 || g->args[arg].kind != SX_ARG_VARIABLE) {
        fail_at(b, b->file, b->line, "assign", variable_name,
                sx_error(SX_NOT_FOUND, "no variable has this name; create it with sx_variable()"));
        return;
    }
    sx_type type = sx_type_of_value(b, value);
    if (!sx_type_equal(&type, sx_graph_type(g, g->args[arg].value))) {
        char had[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
        fail_at(b, b->file, b->line, "assign", variable_name,
                sx_error(SX_INVALID_ARGUMENT, "the variable is %s, the value %s",
                         sx_type_format(sx_graph_type(g, g->args[arg].value), had, sizeof(had)),
                         sx_type_format(&type, got, sizeof(got))));
        return;
    }
    b->current[arg] = value;
    sx_result *before = find_assignment(g, arg);
    if (before != NULL) {
        before->value = value;
    } else {
        append_result(b, variable_name, value, arg);
    }
}

/* Gives back what an array has beyond its [count] elements; false if out of memory. */
static bool trim(void **array, int count, size_t elem_bytes)
{
    void *exact = count > 0 ? sx_realloc(*array, (size_t)count, elem_bytes) : *array;
    *array = exact != NULL ? exact : *array;
    return exact != NULL || count == 0;
}

sx_status sx_builder_finish(sx_builder *b, sx_graph **out_graph)
{
    SX_NEED(b);
    SX_NEED(out_graph);
    if (b->error == SX_OK && b->depth > 0) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "scope \"%s\" is still open; end it with sx_scope_end()",
                                    b->scopes[b->depth]));
    }
    if (b->error == SX_OK && b->n_devices > 0) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "device scope \"%s\" is still open; end it with "
                                    "sx_device_scope_end()",
                                    b->device));
    }
    if (b->error == SX_OK) {
        sx_builder_fail(b, sx_status_annotate(sx_graph_validate(b->graph), __FILE__, __LINE__,
                                              "the graph that was built is not valid"));
    }
    if (b->error == SX_OK) {
        sx_graph *g = b->graph;
        const bool trimmed = trim((void **)&g->nodes, g->n_nodes, sizeof(*g->nodes)) &&
                             trim((void **)&g->values, g->n_values, sizeof(*g->values)) &&
                             trim((void **)&g->args, g->n_args, sizeof(*g->args)) &&
                             trim((void **)&g->results, g->n_results, sizeof(*g->results));
        if (!trimmed) {
            fail_memory(b);
        }
        const size_t exact =
            (size_t)g->n_nodes * sizeof(*g->nodes) + (size_t)g->n_values * sizeof(*g->values) +
            (size_t)g->n_args * sizeof(*g->args) + (size_t)g->n_results * sizeof(*g->results);
        if (exact < g->array_bytes) {
            sx_budget_release(g->arena.budget, g->array_bytes - exact);
            g->array_bytes = exact;
        }
    }
    if (b->error != SX_OK) {
        sx_status status = b->error;
        b->error =
            sx_error(SX_FAILED_PRECONDITION, "this builder has failed, and has reported why");
        return status;
    }
    *out_graph = b->graph;
    b->graph = NULL;
    b->error = b->spent;
    b->spent = NULL;
    return SX_OK;
}
