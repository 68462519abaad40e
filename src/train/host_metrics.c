/* See host_metrics.h. */
#include "train/host_metrics.h"

#include <string.h>

#include "base/memory.h"

bool sx_is_host_metric(const char *output_name)
{
    return strncmp(output_name, SX_EVAL_METRICS_PREFIX, sizeof(SX_EVAL_METRICS_PREFIX) - 1) == 0;
}

sx_status sx_host_metrics_init(sx_host_metrics *m, const sx_host_functions *functions)
{
    *m = (sx_host_metrics){.functions = functions};
    for (int i = 0; i < functions->n_metrics; i++) {
        m->states[i] = sx_alloc(functions->metrics[i].state_bytes + 1, 1); /* zeroed */
        if (m->states[i] == NULL) {
            sx_host_metrics_deinit(m);
            return sx_no_memory("for eval_metrics \"%s\"", functions->metrics[i].name);
        }
    }
    return SX_OK;
}

void sx_host_metrics_deinit(sx_host_metrics *m)
{
    for (int i = 0; i < SX_MAX_METRICS; i++) {
        sx_free(m->states[i]);
    }
    *m = (sx_host_metrics){0};
}

void sx_host_metrics_add_output(sx_host_metrics *m, int output, const char *name,
                                const sx_type *row_type)
{
    if (m->n_values < SX_MAX_HOST_TENSORS && sx_is_host_metric(name)) {
        m->values[m->n_values] =
            (sx_host_value){name + sizeof(SX_EVAL_METRICS_PREFIX) - 1, *row_type, NULL};
        m->outputs[m->n_values++] = output;
    }
}

void sx_host_metrics_add(sx_host_metrics *m, const void *const *rows)
{
    for (int k = 0; k < m->n_values; k++) {
        m->values[k].data = rows[m->outputs[k]];
    }
    for (int i = 0; i < m->functions->n_metrics; i++) {
        const sx_host_metric *metric = &m->functions->metrics[i];
        metric->add(m->states[i], m->values, metric->user);
    }
}

double sx_host_metrics_result(const sx_host_metrics *m, int i)
{
    const sx_host_metric *metric = &m->functions->metrics[i];
    return metric->result(m->states[i], metric->user);
}
