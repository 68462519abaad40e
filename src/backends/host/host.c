/* The host backend: runs every operator's host kernel, one node after another, with every value in
 * its own dtype. Slow but simple: the reference for the other backends in the conformance suite. A
 * float64 graph runs in double throughout. */
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

typedef struct host_platform {
    sx_platform head;
    sx_device device;
    sx_device *devices[1];
} host_platform;

typedef struct host_buffer {
    sx_device_buffer head;
    void *bytes; /* row-major */
} host_buffer;

typedef struct host_executable {
    sx_executable head;
    sx_graph *graph;       /* batch fixed */
    int widest;            /* inputs of a node */
    int64_t carrier_bytes; /* maximum over the nodes */
    int64_t value_bytes;   /* of a run: values and carriers */
} host_executable;

typedef struct host_run {
    sx_run head;
    sx_tensor *values; /* [n_values] */
    sx_tensor *inputs; /* [widest]: scratch */
    void *carriers;    /* scratch */
} host_run;

/* ---- Platform and buffers ---- */

static sx_status host_open(const sx_platform_options *options, sx_platform **out)
{
    (void)options;
    host_platform *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for the platform");
    }
    p->device = (sx_device){.platform = &p->head,
                            .name = "/device:CPU:0",
                            .kind = "host kernels",
                            .n_memories = 1,
                            .memories = {{.kind = "device"}}};
    p->devices[0] = &p->device;
    p->head = (sx_platform){.backend = &sx_backend_host, .devices = p->devices, .n_devices = 1};
    *out = &p->head;
    return SX_OK;
}

static void host_close(sx_platform *platform)
{
    sx_free(platform);
}

static sx_status host_buffer_create(sx_device *device, int memory, const sx_type *type,
                                    sx_device_buffer **out)
{
    (void)memory; /* there is one */
    host_buffer *buffer = sx_alloc(1, sizeof(*buffer));
    void *bytes = sx_alloc((size_t)sx_type_bytes(type) + 1, 1);
    if (buffer == NULL || bytes == NULL) {
        sx_free(buffer);
        sx_free(bytes);
        return sx_no_memory("for a buffer");
    }
    buffer->head.device = device;
    buffer->head.type = *type;
    atomic_init(&buffer->head.refs, 1);
    buffer->bytes = bytes;
    *out = &buffer->head;
    return SX_OK;
}

static void host_buffer_destroy(sx_device_buffer *head)
{
    host_buffer *buffer = (host_buffer *)head;
    sx_free(buffer->bytes);
    sx_free(buffer);
}

static sx_status host_buffer_write(sx_device_buffer *buffer, const void *data, bool borrow)
{
    (void)borrow;
    memcpy(((host_buffer *)buffer)->bytes, data, (size_t)sx_type_bytes(&buffer->type));
    return SX_OK;
}

static sx_status host_buffer_read(sx_device_buffer *buffer, void *data, int64_t deadline_ns)
{
    (void)deadline_ns; /* it is here */
    memcpy(data, ((host_buffer *)buffer)->bytes, (size_t)sx_type_bytes(&buffer->type));
    return SX_OK;
}

/* ---- Compile ---- */

static void host_destroy(sx_executable *head)
{
    host_executable *e = (host_executable *)head;
    sx_executable_deinit(head);
    sx_graph_destroy(e->graph);
    sx_free(e);
}

static sx_status too_large(const sx_node *n)
{
    return sx_error(SX_RESOURCE_EXHAUSTED,
                    "host: %s \"%s\" needs more memory than can be addressed", n->op->name,
                    n->name);
}

/* Charges the memory of a run: all values, and the maximum carriers of a node. */
static sx_status charge_values(host_executable *e)
{
    const sx_graph *g = e->graph;
    int largest = 0;
    e->value_bytes = e->carrier_bytes;
    for (int i = 1; i < g->n_values; i++) {
        const sx_node *n = sx_graph_maker(g, (sx_value){(uint32_t)i});
        const int64_t bytes = sx_type_bytes(&g->values[i].type);
        if (bytes < 0 || !sx_add_i64(e->value_bytes, bytes, &e->value_bytes)) {
            return too_large(n);
        }
        largest = largest == 0 || bytes > sx_type_bytes(&g->values[largest].type) ? i : largest;
    }
    char type[SX_TYPE_TEXT], text[SX_TYPE_TEXT + 200] = "none";
    if (largest != 0) {
        const sx_node *n = sx_graph_maker(g, (sx_value){(uint32_t)largest});
        snprintf(text, sizeof(text), "%s of %s \"%.100s\"",
                 sx_type_format(&g->values[largest].type, type, sizeof(type)), n->op->name,
                 n->name);
    }
    return sx_executable_charge(&e->head, e->value_bytes, 0, text);
}

/* Computes the memory of a run. */
static sx_status measure(host_executable *e)
{
    const sx_graph *g = e->graph;
    e->widest = 1;
    for (int k = 0; k < g->n_nodes; k++) {
        e->widest = SX_MAX(e->widest, g->nodes[k].n_inputs);
    }
    sx_type *types = sx_alloc((size_t)e->widest + SX_MAX_OUTPUTS, sizeof(*types));
    sx_status status = types == NULL ? sx_no_memory("for values") : SX_OK;
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        const sx_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_inputs + n->n_outputs; i++) {
            types[i] = *sx_graph_type(g, i < n->n_inputs ? n->inputs[i]
                                                         : sx_node_output(n, i - n->n_inputs));
        }
        int64_t bytes =
            sx_host_scratch_bytes(n->op, types, n->n_inputs, types + n->n_inputs, n->n_outputs);
        e->carrier_bytes = SX_MAX(e->carrier_bytes, bytes);
        if (n->op->flags & SX_OP_HOST) {
            status =
                sx_error(SX_UNIMPLEMENTED, "host: %s \"%s\" cannot be part of a device program",
                         n->op->name, n->name);
        } else if (bytes < 0) {
            status = too_large(n);
        }
    }
    sx_free(types);
    SX_TRY(status);
    return charge_values(e);
}

static sx_status host_compile(sx_platform *platform, const sx_graph *graph,
                              const sx_compile_options *options, sx_executable **out)
{
    host_executable *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for an executable");
    }
    e->head.platform = platform;
    e->head.memory = options->memory;
    atomic_init(&e->head.refs, 1);
    sx_status status = sx_pass_fix_batch(graph, options->batch, &e->graph);
    if (status == SX_OK) {
        status = measure(e);
    }
    if (status == SX_OK) {
        status = sx_executable_describe(&e->head, e->graph, options->batch);
    }
    if (status != SX_OK) {
        sx_executable_release(&e->head);
        return status;
    }
    *out = &e->head;
    return SX_OK;
}

static sx_status host_info(const sx_executable *head, sx_executable_info *out)
{
    out->temporary_bytes = ((const host_executable *)head)->value_bytes;
    return SX_OK;
}

/* ---- Runs ---- */

static void host_run_destroy(sx_run *head)
{
    host_run *r = (host_run *)head;
    const host_executable *e = (const host_executable *)head->executable;
    for (int i = 0; r->values != NULL && i < e->graph->n_values; i++) {
        sx_free(r->values[i].data);
    }
    sx_free(r->values);
    sx_free(r->inputs);
    sx_free(r->carriers);
    sx_run_deinit(head);
    sx_free(r);
}

static sx_status allocate_values(host_run *r, const host_executable *e)
{
    const sx_graph *g = e->graph;
    r->values = sx_alloc((size_t)g->n_values, sizeof(*r->values));
    r->inputs = sx_alloc((size_t)e->widest, sizeof(*r->inputs));
    r->carriers = sx_alloc((size_t)e->carrier_bytes + 1, 1);
    if (r->values == NULL || r->inputs == NULL || r->carriers == NULL) {
        return sx_no_memory("for values");
    }
    for (int i = 1; i < g->n_values; i++) {
        r->values[i].type = g->values[i].type;
        r->values[i].data = sx_alloc((size_t)sx_type_bytes(&g->values[i].type) + 1, 1);
        if (r->values[i].data == NULL) {
            return sx_no_memory("for a value");
        }
    }
    return SX_OK;
}

static sx_status host_run_create(sx_executable *executable, sx_run **out)
{
    host_run *r = sx_alloc(1, sizeof(*r));
    if (r == NULL) {
        return sx_no_memory("for a run");
    }
    sx_status status = sx_run_init(&r->head, executable);
    if (status != SX_OK) {
        sx_free(r);
        return status;
    }
    status = allocate_values(r, (const host_executable *)executable);
    if (status != SX_OK) {
        host_run_destroy(&r->head);
        return status;
    }
    *out = &r->head;
    return SX_OK;
}

static sx_status run_nodes(host_run *r, sx_device_buffer *const *args,
                           sx_device_buffer *const *outputs)
{
    const host_executable *e = (const host_executable *)r->head.executable;
    const sx_graph *g = e->graph;
    for (int i = 0; i < g->n_args; i++) {
        const sx_tensor *value = &r->values[g->args[i].value.id];
        memcpy(value->data, ((host_buffer *)args[i])->bytes, (size_t)sx_type_bytes(&value->type));
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        sx_arena arena;
        if (n->op->flags & SX_OP_NO_HOST) {
            continue;
        }
        for (int i = 0; i < n->n_inputs; i++) {
            r->inputs[i] = r->values[n->inputs[i].id];
        }
        sx_arena_init(&arena, 0);
        arena.budget = e->head.memory;
        const sx_host_context context = {.arena = &arena, .cancel = r->head.cancel};
        sx_status status =
            sx_host_run_within(n->op, n->attrs, r->inputs, n->n_inputs,
                               &r->values[n->first_output.id], n->n_outputs, r->carriers, &context);
        sx_arena_deinit(&arena);
        SX_TRY(status, "%s \"%s\"", n->op->name, n->name);
    }
    for (int i = 0; i < g->n_results; i++) {
        sx_device_buffer *to =
            e->head.result_args[i] >= 0 ? args[e->head.result_args[i]] : outputs[i];
        const sx_tensor *value = &r->values[g->results[i].value.id];
        memcpy(((host_buffer *)to)->bytes, value->data, (size_t)sx_type_bytes(&value->type));
    }
    return SX_OK;
}

static sx_status host_submit(sx_run *run, sx_device_buffer *const *args,
                             sx_device_buffer *const *outputs)
{
    sx_run_end(run, run_nodes((host_run *)run, args, outputs));
    return SX_OK;
}

const sx_backend sx_backend_host = {
    .name = "host",
    .about = "host kernels: slow, exact",
    .capabilities = SX_CAN_TRAIN | SX_CAN_BF16 | SX_IS_EXACT_F64,
    .open = host_open,
    .close = host_close,
    .buffer_create = host_buffer_create,
    .buffer_destroy = host_buffer_destroy,
    .buffer_write = host_buffer_write,
    .buffer_read = host_buffer_read,
    .compile = host_compile,
    .executable_destroy = host_destroy,
    .info = host_info,
    .run_create = host_run_create,
    .run_destroy = host_run_destroy,
    .submit = host_submit,
};
