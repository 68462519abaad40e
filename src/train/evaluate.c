/* Evaluation. The device returns one value per example; they are added up here, so that
 * results do not depend on the batch size. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "nn/model_program.h"
#include "train/data_pass.h"
#include "train/host_call.h"
#include "train/host_metrics.h"
#include "train/lockstep.h"
#include "train/sum.h"

/* The number of examples to evaluate; 0 = unknown. */
static int64_t count_examples(const sx_dataset *data, int64_t limit)
{
    int64_t n = sx_dataset_count(data);
    if (sx_dataset_batch_size(data) > 0) {
        n = 0; /* the last batch may be smaller */
    }
    if (n == SX_ENDLESS) {
        n = 0;
    }
    return limit > 0 && (n == 0 || n > limit) ? limit : n;
}

/* The number of examples in the data; 0 = unknown. For batched data it is known only at the end. */
static int64_t available(const sx_dataset *data, int64_t done, int64_t limit)
{
    int64_t n = sx_dataset_batch_size(data) > 0 ? SX_ENDLESS : sx_dataset_count(data);
    return n != SX_ENDLESS ? n : limit == 0 || done < limit ? done : 0;
}

/* What an evaluation accumulates: means of the program's outputs, the model's own metrics, and
 * calls of its host_call. */
typedef struct scores {
    int64_t step; /* being evaluated */
    const sx_host_call *call;
    int weights; /* the run's input; -1 = none */
    sx_sum weight;
    sx_sum sums[SX_MAX_DATA_PASS_OUTPUTS];
    bool is_sum[SX_MAX_DATA_PASS_OUTPUTS];
    sx_host_metrics host;
} scores;

static sx_status add_rows(sx_data_pass *p, const sx_feed_batch *batch, void *user)
{
    scores *s = user;
    const float *weights = s->weights >= 0 ? batch->inputs[s->weights] : NULL;
    for (int k = 0; k < p->n_outputs; k++) {
        const float *values = p->outputs[k];
        for (int64_t i = 0; i < batch->size && s->is_sum[k]; i++) {
            double value = values[i];
            sx_sum_add(&s->sums[k], weights != NULL ? value * (double)weights[i] : value);
        }
    }
    for (int64_t i = 0; i < batch->size; i++) {
        sx_sum_add(&s->weight, weights != NULL ? (double)weights[i] : 1);
    }
    for (int64_t i = 0; i < batch->size && s->host.functions->n_metrics > 0; i++) {
        const void *rows[SX_MAX_DATA_PASS_OUTPUTS];
        for (int k = 0; k < p->n_outputs; k++) {
            rows[k] = (const char *)p->outputs[k] + (size_t)i * p->row_bytes[k];
        }
        sx_host_metrics_add(&s->host, rows);
    }
    return s->call->fn == NULL
               ? SX_OK
               : sx_host_call_batch(s->call, p->program, s->step, p->outputs, batch->size);
}

static void add_metric(sx_eval_result *out, const char *name, double value)
{
    if (out->n_metrics < SX_MAX_METRICS) {
        out->metrics[out->n_metrics++] = (sx_metric){name, value};
    }
}

static void fill_result(const sx_data_pass *p, const scores *s, sx_eval_result *out)
{
    double weight = sx_sum_value(&s->weight);
    *out = (sx_eval_result){.step = s->step, .examples = p->done};
    for (int k = 0; k < p->n_outputs; k++) {
        const char *name = sx_program_output_name(p->program, k);
        double mean = weight > 0 ? sx_sum_value(&s->sums[k]) / weight : 0;
        if (strcmp(name, SX_LOSS) == 0) {
            out->loss = mean;
        } else if (s->is_sum[k]) {
            add_metric(out, name, mean);
        }
    }
    for (int i = 0; i < s->host.functions->n_metrics; i++) {
        add_metric(out, s->host.functions->metrics[i].name, sx_host_metrics_result(&s->host, i));
    }
}

/* Decides which outputs are averaged and which go to the model's functions. */
static sx_status sort_outputs(sx_data_pass *p, scores *s)
{
    bool metrics = false, call = false;
    for (int k = 0; k < p->n_outputs; k++) {
        const char *name = sx_program_output_name(p->program, k);
        bool is_metric = sx_is_host_metric(name), is_call = sx_is_host_call(name);
        s->is_sum[k] = !is_metric && !is_call;
        if (s->is_sum[k] && (p->row_types[k].rank != 0 || p->row_types[k].dtype != SX_F32)) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "output \"%s\" of the evaluation graph has rows of %s, expected a float32", name,
                sx_dtype_name(p->row_types[k].dtype));
        }
        metrics = metrics || is_metric;
        call = call || is_call;
        sx_host_metrics_add_output(&s->host, k, name, &p->row_types[k]);
    }
    if (metrics && s->host.functions->n_metrics == 0) {
        sx_trainer_warn(p->t, "eval_metrics are omitted: they need the model's source");
    }
    if (call && s->call->fn == NULL) {
        sx_trainer_warn(p->t, "host_call is omitted: it needs the model's source");
    }
    return SX_OK;
}

static sx_status score(sx_data_pass *p, sx_dataset *data, int64_t examples, sx_eval_result *out)
{
    scores s = {.step = sx_trainer_step(p->t),
                .call = &p->t->host.calls[SX_EVAL],
                .weights = sx_model_inputs_find(&p->t->info.inputs, SX_WEIGHTS)};
    SX_TRY(sx_host_metrics_init(&s.host, &p->t->host));
    sx_status status = sort_outputs(p, &s);
    if (status == SX_OK) {
        sx_trainer_emit(p->t, &(sx_train_event){.kind = SX_EVENT_EVAL_BEGIN,
                                                .step = s.step,
                                                .examples = count_examples(data, examples)});
        status = sx_data_pass_run(p, add_rows, &s);
    }
    if (status == SX_OK) {
        fill_result(p, &s, out);
    }
    sx_host_metrics_deinit(&s.host);
    return status;
}

sx_status sx_trainer_evaluate(sx_trainer *t, sx_dataset *data, int64_t examples,
                              sx_eval_result *out_result)
{
    sx_eval_result result = {0};
    int64_t compiling = t->times.compile_ns, start = sx_now_ns();
    sx_data_pass p;
    sx_status status = sx_data_pass_open(&p, t, SX_EVAL, data, examples);
    if (status == SX_OK) {
        status = score(&p, data, examples, &result);
    }
    t->times.eval_ns += sx_now_ns() - start - (t->times.compile_ns - compiling);
    if (status == SX_OK) {
        result.available = available(data, result.examples, examples);
        *out_result = result;
    }
    sx_data_pass_close(&p);
    if (sx_status_code(status) != SX_CANCELLED) {
        status = sx_lockstep_explain(t, status);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "evaluating");
}

sx_status sx_trainer_evaluate_at_most(sx_trainer *t, sx_dataset *data, int64_t examples,
                                      int64_t steps, sx_eval_result *out_result)
{
    int64_t batch = sx_dataset_batch_size(data);
    if (examples < 0 || steps < 0 || (examples > 0 && steps > 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "evaluate: examples and steps must not be negative and cannot be combined");
    }
    if (steps > 0 && !sx_mul_i64(steps, batch > 0 ? batch : t->config.eval_batch_size, &examples)) {
        return sx_error(SX_INVALID_ARGUMENT, "evaluating: %" PRId64 " steps are too many", steps);
    }
    SX_TRY(sx_trainer_evaluate(t, data, examples, out_result));
    out_result->steps = steps;
    return SX_OK;
}
