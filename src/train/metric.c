/* Metric objects (sextant/runtime.h): what is added to them over many batches. */
#include <string.h>

#include "base/args.h"
#include "base/memory.h"
#include "graph/host.h"
#include "nn/model_program.h"
#include "train/distributed.h"
#include "train/step.h"

struct sx_metric_object {
    sx_metric_kind kind;
    char *name;
    double sum, weight;
    bool has_host;
    sx_host_metric host;
    int n_outputs;
    char *outputs[SX_MAX_HOST_TENSORS];
    void *state; /* of the host metric */
};

static sx_status fill(sx_metric_object *m, const sx_metric_args *args)
{
    m->kind = args->kind;
    m->name = sx_strdup(args->name);
    m->has_host = args->host != NULL;
    bool made = m->name != NULL;
    if (m->has_host) {
        m->host = *args->host;
        m->state = sx_alloc(m->host.state_bytes + 1, 1);
        made = made && m->state != NULL;
    }
    for (; made && m->n_outputs < SX_MAX_HOST_TENSORS && args->outputs[m->n_outputs] != NULL;
         m->n_outputs++) {
        m->outputs[m->n_outputs] = sx_strdup(args->outputs[m->n_outputs]);
        made = m->outputs[m->n_outputs] != NULL;
    }
    return made ? SX_OK : sx_no_memory("for a metric");
}

sx_status sx_metric_create_at(const sx_metric_args *args, sx_metric_object **out_metric)
{
    SX_NEED(out_metric);
    SX_TAKE_ARGS(sx_metric_args, args);
    SX_NEED(args->name);
    if (args->host != NULL &&
        (args->host->add == NULL || args->host->result == NULL || args->outputs[0] == NULL)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "metric \"%s\": a host metric needs add, result and outputs", args->name);
    }
    sx_metric_object *m = sx_alloc(1, sizeof(*m));
    if (m == NULL) {
        return sx_no_memory("for a metric");
    }
    sx_status status = fill(m, args);
    if (status != SX_OK) {
        sx_metric_free(m);
        return status;
    }
    sx_metric_reset(m);
    *out_metric = m;
    return SX_OK;
}

void sx_metric_free(sx_metric_object *m)
{
    if (m == NULL) {
        return;
    }
    for (int i = 0; i < SX_MAX_HOST_TENSORS; i++) {
        sx_free(m->outputs[i]);
    }
    sx_free(m->state);
    sx_free(m->name);
    sx_free(m);
}

void sx_metric_reset(sx_metric_object *m)
{
    m->sum = m->weight = 0;
    if (m->has_host) {
        memset(m->state, 0, m->host.state_bytes);
    }
}

static void add(sx_metric_object *m, double value, double weight)
{
    m->sum += value * weight;
    m->weight += weight;
}

void sx_metric_update(sx_metric_object *m, int64_t n, const float *values, const float *weights)
{
    for (int64_t i = 0; i < n; i++) {
        add(m, (double)values[i], weights != NULL ? (double)weights[i] : 1);
    }
}

double sx_metric_result(const sx_metric_object *m)
{
    return m->has_host                ? m->host.result(m->state, m->host.user)
           : m->kind == SX_METRIC_SUM ? m->sum
           : m->weight != 0           ? m->sum / m->weight
                                      : 0;
}

/* ---- From a step ---- */

/* What a scalar output counts in a mean. */
static sx_status batch_weight(sx_step_program *step, double *out)
{
    sx_tensor t;
    *out = (double)sx_step_batch(step);
    if (!sx_step_has_output(step, SX_WEIGHT_SUM)) { /* the examples count the same */
        return SX_OK;
    }
    SX_TRY(sx_step_fetch(step, SX_WEIGHT_SUM, &t));
    *out = sx_host_load_element(t.type.dtype, t.data);
    sx_free(t.data);
    return SX_OK;
}

static sx_status update_plain(sx_metric_object *m, sx_step_program *step)
{
    sx_tensor t;
    double weight = 1;
    SX_TRY(sx_step_fetch(step, m->name, &t));
    sx_status status =
        t.type.rank == 0 && m->kind == SX_METRIC_MEAN ? batch_weight(step, &weight) : SX_OK;
    const size_t size = sx_dtype_bytes(t.type.dtype);
    for (int64_t i = 0; i < sx_type_elems(&t.type) && status == SX_OK; i++) {
        add(m, sx_host_load_element(t.type.dtype, (const char *)t.data + (size_t)i * size), weight);
    }
    sx_free(t.data);
    return status;
}

static sx_status fetch_rows(const sx_metric_object *m, sx_step_program *step, sx_tensor *tensors,
                            sx_host_value *values)
{
    for (int k = 0; k < m->n_outputs; k++) {
        char text[SX_TYPE_TEXT];
        SX_TRY(sx_step_fetch(step, m->outputs[k], &tensors[k]));
        const sx_type *type = &tensors[k].type;
        if (type->rank == 0 || type->dims[0] != sx_step_batch(step)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "metric \"%s\": output \"%s\" is %s, expected a row for each example",
                            m->name, m->outputs[k], sx_type_format(type, text, sizeof(text)));
        }
        values[k] =
            (sx_host_value){.name = m->outputs[k],
                            .type = sx_type_make(type->dtype, type->rank - 1, type->dims + 1)};
    }
    return SX_OK;
}

static sx_status update_host(sx_metric_object *m, sx_step_program *step)
{
    sx_tensor tensors[SX_MAX_HOST_TENSORS] = {{.data = NULL}};
    sx_host_value values[SX_MAX_HOST_TENSORS];
    sx_status status = fetch_rows(m, step, tensors, values);
    for (int64_t i = 0; status == SX_OK && i < sx_step_batch(step); i++) {
        for (int k = 0; k < m->n_outputs; k++) {
            values[k].data =
                (const char *)tensors[k].data + (size_t)(i * sx_type_bytes(&values[k].type));
        }
        m->host.add(m->state, values, m->host.user);
    }
    for (int k = 0; k < m->n_outputs; k++) {
        sx_free(tensors[k].data);
    }
    return status;
}

sx_status sx_metric_update_step_at(sx_metric_object *m, sx_step_program *step, const char *file,
                                   int line)
{
    SX_NEED(m);
    SX_NEED(step);
    return sx_at_user_line(m->has_host ? update_host(m, step) : update_plain(m, step), file, line);
}
