/* Finds the first non-finite value of a step: runs the same program again, with a probe on every
 * floating-point value, in program order. The step's update was withheld, so variables and inputs
 * are unchanged. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/host.h"
#include "graph/passes/rewrite.h"
#include "runtime/program.h"

static sx_status not_finite(const char *what, const char *name, const char *file, int line)
{
    if (file[0] == '\0') {
        return sx_error(SX_DATA_LOSS, "%s \"%s\" is not finite", what, name);
    }
    const char *slash = strrchr(file, '/');
    return sx_error(SX_DATA_LOSS, "%s \"%s\" (%s:%d) is not finite", what, name,
                    slash != NULL ? slash + 1 : file, line);
}

/* ---- Arguments: read back and checked on the host ---- */

static sx_status check_bytes(const sx_type *type, const void *bytes, bool *out_finite)
{
    int64_t n = sx_type_elems(type);
    sx_host_tensor t = {.type = *type, .f = sx_alloc((size_t)n + 1, sizeof(double))};
    if (t.f == NULL) {
        return sx_no_memory("replaying a step");
    }
    sx_host_load(&t, bytes);
    *out_finite = true;
    for (int64_t i = 0; i < n; i++) {
        *out_finite = *out_finite && isfinite(t.f[i]);
    }
    sx_free(t.f);
    return SX_OK;
}

static sx_status check_arg(const sx_arg *arg, sx_device_buffer *buffer)
{
    if (!sx_dtype_is_float(buffer->type.dtype)) {
        return SX_OK;
    }
    void *bytes = sx_alloc((size_t)sx_type_bytes(&buffer->type) + 1, 1);
    if (bytes == NULL) {
        return sx_no_memory("replaying a step");
    }
    bool finite = true;
    sx_status status = sx_device_buffer_read(buffer, bytes);
    if (status == SX_OK) {
        status = check_bytes(&buffer->type, bytes, &finite);
    }
    sx_free(bytes);
    if (status == SX_OK && !finite) {
        return not_finite(arg->kind == SX_ARG_VARIABLE ? "variable" : "input", arg->name, "", 0);
    }
    return status;
}

/* ---- Nodes: probed on the device ---- */

typedef struct probes {
    const sx_node **nodes; /* [count]: the node that probe i watches */
    int count;
} probes;

static void copy_and_probe(sx_rewrite *rw, const sx_node *node)
{
    probes *p = rw->user;
    sx_rewrite_keep(rw, node, NULL);
    for (int i = 0; i < node->n_outputs && !sx_builder_failed(rw->to); i++) {
        sx_value v = sx_node_output(node, i), mapped = rw->map[v.id];
        if (!sx_dtype_is_float(sx_graph_type(rw->from, v)->dtype)) {
            continue;
        }
        char name[32];
        snprintf(name, sizeof(name), "_probe_%d", p->count);
        sx_output(rw->to, name, sx_build(rw->to, &sx_op_all_finite, NULL, &mapped, 1));
        p->nodes[p->count++] = node;
    }
}

/* Buffers of the probing executable's own outputs. */
static sx_status make_outputs(sx_device *device, const sx_executable *e, sx_device_buffer **outputs)
{
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            SX_TRY(sx_device_buffer_create(device, &e->result_types[i], &outputs[i]));
        }
    }
    return SX_OK;
}

/* Probes are the first results, in program order. */
static sx_status read_probes(const probes *p, sx_device_buffer *const *outputs)
{
    for (int i = 0; i < p->count; i++) {
        uint8_t finite = 0;
        SX_TRY(sx_device_buffer_read(outputs[i], &finite));
        if (!finite) {
            const sx_node *n = p->nodes[i];
            return not_finite(n->op->name, n->name, n->file, n->line);
        }
    }
    return SX_OK;
}

static sx_status run_probes(sx_program *p, const sx_graph *probed, const probes *found)
{
    sx_device *device = p->last->args[0]->device;
    sx_executable *e = NULL;
    sx_device_buffer **outputs = sx_alloc((size_t)probed->n_results + 1, sizeof(*outputs));
    sx_status status = outputs == NULL ? sx_no_memory("replaying a step") : SX_OK;
    if (status == SX_OK) {
        status = sx_compile(device->platform, probed,
                            &(sx_compile_options){.batch = p->last->batch, .any_batch = true}, &e);
    }
    if (status == SX_OK) {
        status = make_outputs(device, e, outputs);
    }
    if (status == SX_OK) {
        status = sx_execute(e, p->last->args, outputs);
    }
    if (status == SX_OK) {
        status = read_probes(found, outputs);
    }
    for (int i = 0; outputs != NULL && i < probed->n_results; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    sx_free(outputs);
    sx_executable_release(e);
    return status;
}

sx_status sx_program_find_nonfinite(sx_program *p)
{
    if (p->last == NULL || p->graph->n_args == 0) {
        return sx_error(SX_FAILED_PRECONDITION, "there is no step to replay");
    }
    for (int i = 0; i < p->graph->n_args; i++) {
        SX_TRY(check_arg(&p->graph->args[i], p->last->args[i]));
    }
    probes found = {.nodes = sx_alloc((size_t)p->graph->n_values, sizeof(sx_node *))};
    if (found.nodes == NULL) {
        return sx_no_memory("replaying a step");
    }
    sx_graph *probed = NULL;
    sx_status status = sx_rewrite_run(p->graph, 0, copy_and_probe, &found, &probed);
    if (status == SX_OK) {
        status = run_probes(p, probed, &found);
        sx_graph_destroy(probed);
    }
    sx_free(found.nodes);
    return status;
}
