/* See model_program.h. */
#include "nn/model_program.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "nn/layer.h"
#include "nn/params.h"
#include "nn/preprocess_graph.h"
#include "nn/train_step.h"
#include "runtime/session.h"

/* ---- What the model returned, checked ---- */

static sx_status bad_output(const sx_builder *b, const char *what, sx_value v, const char *expected)
{
    char text[SX_TYPE_TEXT] = "nothing";
    sx_type type = sx_type_of_value(b, v);
    if (sx_value_is(v)) {
        sx_type_format(&type, text, sizeof(text));
    }
    return sx_error(SX_INVALID_ARGUMENT, "the model returned %s for %s, expected %s", text, what,
                    expected);
}

static bool is_per_example(const sx_builder *b, sx_value v)
{
    sx_type type = sx_type_of_value(b, v);
    return type.dtype == SX_F32 && type.rank == 1 && type.dims[0] == SX_BATCH;
}

/* Losses, metrics and predictions are float32 whatever the layers compute in. */
static void widen_spec(sx_builder *b, sx_spec *spec)
{
    spec->loss = sx_widen(b, spec->loss);
    spec->regularization = sx_widen(b, spec->regularization);
    for (int i = 0; i < SX_MAX_METRICS; i++) {
        spec->metrics[i].value = sx_widen(b, spec->metrics[i].value);
    }
    for (int i = 0; i < SX_MAX_PREDICTIONS; i++) {
        spec->predictions[i].value = sx_widen(b, spec->predictions[i].value);
    }
    for (int i = 0; i < SX_MAX_HOST_TENSORS; i++) {
        sx_named_value *metric = &spec->eval_metrics.tensors[i];
        sx_named_value *call = &spec->host_call.tensors[i];
        metric->value = sx_widen(b, metric->value);
        call->value = sx_widen(b, call->value);
    }
}

static void check_spec(sx_builder *b, sx_mode mode, const sx_spec *spec)
{
    if (sx_builder_failed(b)) {
        return;
    }
    if (mode == SX_PREDICT && !sx_value_is(spec->predictions[0].value)) {
        sx_builder_fail(b, bad_output(b, "its first prediction", SX_NO_VALUE, "a value [N,...]"));
    }
    if (mode != SX_PREDICT && !is_per_example(b, spec->loss)) {
        sx_builder_fail(
            b, bad_output(b, "its loss", spec->loss, "float32[N], one number for each example"));
    }
    for (int i = 0; mode != SX_PREDICT && i < SX_MAX_METRICS && sx_value_is(spec->metrics[i].value);
         i++) {
        if (!is_per_example(b, spec->metrics[i].value) && !sx_builder_failed(b)) {
            sx_builder_fail(
                b, bad_output(b, spec->metrics[i].name, spec->metrics[i].value, "float32[N]"));
        }
    }
}

/* ---- What the programs give ---- */

/* Outputs for host functions, named with the prefix; in evaluation they must have one row per
 * example, because batches are padded. */
static void put_host_tensors(sx_builder *b, sx_mode mode, const char *prefix,
                             const sx_named_value *tensors)
{
    for (int i = 0; i < SX_MAX_HOST_TENSORS && tensors[i].name != NULL; i++) {
        const char *name = sx_arena_printf(sx_builder_arena(b), "%s%s", prefix, tensors[i].name);
        if (name == NULL) {
            sx_builder_fail(b, sx_no_memory("building a model"));
            return;
        }
        if (!sx_value_is(tensors[i].value) && !sx_builder_failed(b)) {
            sx_builder_fail(b, bad_output(b, name, SX_NO_VALUE, "a value"));
        }
        sx_type type = sx_type_of_value(b, tensors[i].value);
        if (mode == SX_EVAL && (type.rank == 0 || type.dims[0] != SX_BATCH) &&
            !sx_builder_failed(b)) {
            sx_builder_fail(b, bad_output(b, name, tensors[i].value,
                                          "a row for each example, [N,...], in evaluation"));
        }
        sx_output(b, name, sx_widen(b, tensors[i].value));
    }
}

static void build_eval(sx_builder *b, const sx_spec *spec)
{
    sx_output(b, SX_LOSS, spec->loss);
    for (int i = 0; i < SX_MAX_METRICS && sx_value_is(spec->metrics[i].value); i++) {
        sx_output(b, spec->metrics[i].name, spec->metrics[i].value);
    }
    put_host_tensors(b, SX_EVAL, SX_EVAL_METRICS_PREFIX, spec->eval_metrics.tensors);
    put_host_tensors(b, SX_EVAL, SX_HOST_CALL_PREFIX, spec->host_call.tensors);
}

static void build_predict(sx_builder *b, const sx_spec *spec)
{
    for (int i = 0; i < SX_MAX_PREDICTIONS && sx_value_is(spec->predictions[i].value); i++) {
        sx_output(b, spec->predictions[i].name, spec->predictions[i].value);
    }
}

/* ---- Functions on the host ---- */

enum { MAX_HOST_STATE = 1 << 24 };

static sx_status check_metric(const sx_host_metric *m)
{
    if (m->add == NULL || m->result == NULL || m->state_bytes > MAX_HOST_STATE) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "eval_metrics: \"%s\" needs add, result and a state of at most %d bytes",
                        m->name, (int)MAX_HOST_STATE);
    }
    return SX_OK;
}

static int count_metrics(const sx_spec *spec)
{
    int n = 0;
    while (n < SX_MAX_METRICS && sx_value_is(spec->metrics[n].value)) {
        n++;
    }
    return n;
}

static sx_status take_metrics(const sx_spec *spec, sx_host_functions *out)
{
    const sx_host_metric *metrics = spec->eval_metrics.metrics;
    for (int i = 0; i < SX_MAX_METRICS && metrics[i].name != NULL; i++) {
        SX_TRY(check_metric(&metrics[i]));
        out->metrics[out->n_metrics++] = metrics[i];
    }
    if (out->n_metrics > 0 && spec->eval_metrics.tensors[0].name == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "eval_metrics has metrics but no tensors");
    }
    if (count_metrics(spec) + out->n_metrics > SX_MAX_METRICS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d metrics, expected at most %d",
                        count_metrics(spec) + out->n_metrics, (int)SX_MAX_METRICS);
    }
    return SX_OK;
}

static sx_status take_host(const sx_program_request *r, const sx_spec *spec)
{
    sx_host_functions host = {0};
    SX_TRY(take_metrics(spec, &host));
    if (spec->host_call.tensors[0].name != NULL && spec->host_call.fn == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "host_call has tensors but no function");
    }
    if (r->out_host != NULL && r->mode != SX_PREDICT) {
        r->out_host->calls[r->mode] = spec->host_call;
    }
    if (r->out_host != NULL && r->mode == SX_EVAL) {
        r->out_host->n_metrics = host.n_metrics;
        memcpy(r->out_host->metrics, host.metrics, sizeof(host.metrics));
    }
    return SX_OK;
}

/* All values of a step are on the device: none may be computed on the host. */
static void check_device_values(sx_builder *b)
{
    const sx_graph *g = b->graph;
    for (int i = 0; i < g->n_nodes && !sx_builder_failed(b); i++) {
        const sx_node *n = &g->nodes[i];
        bool host = (n->op->flags & SX_OP_HOST) != 0;
        for (int k = 0; k < n->n_outputs; k++) {
            host = host || sx_graph_type(g, sx_node_output(n, k))->dtype == SX_STRING;
        }
        if (host) {
            char line[16];
            snprintf(line, sizeof(line), ":%d: ", n->line);
            sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                        "%s%s%s \"%s\" is computed on the host (a string, or a "
                                        "shape known only at run time) and cannot be used on a "
                                        "device",
                                        n->file, n->file[0] != '\0' ? line : "", n->op->name,
                                        n->name));
        }
    }
}

/* ---- Inputs ---- */

static sx_status unexpected_input(const char *name, sx_mode mode, const sx_model_inputs *inputs)
{
    sx_buf names;
    sx_buf_init(&names, 1 << 14);
    int n = 0, total = 0;
    for (int i = 0; i < inputs->n; i++) {
        total += sx_mode_takes(mode, &inputs->items[i]);
    }
    for (int i = 0; i < inputs->n; i++) {
        if (sx_mode_takes(mode, &inputs->items[i])) {
            sx_buf_printf(&names, "%s\"%s\"",
                          n == 0          ? ""
                          : n + 1 < total ? ", "
                                          : " and ",
                          inputs->items[i].program_name);
            n++;
        }
    }
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT,
                 "unexpected input \"%s\": the inputs of a program are %s; pass other values as "
                 "part of the features, or declare them in .inputs",
                 name, sx_buf_text(&names));
    sx_buf_deinit(&names);
    return status;
}

sx_status sx_program_check_inputs(const sx_graph *g, sx_mode mode, const sx_model_inputs *inputs)
{
    const sx_type seed = sx_type_of(SX_U32, 2);
    for (int i = 0; i < g->n_args; i++) {
        const sx_arg *arg = &g->args[i];
        if (arg->kind != SX_ARG_INPUT) {
            continue;
        }
        const sx_type *type = sx_graph_type(g, arg->value), *wanted = NULL;
        int k = sx_model_inputs_find(inputs, arg->name);
        if (k >= 0 && sx_mode_takes(mode, &inputs->items[k])) {
            wanted = &inputs->items[k].type;
        } else if (strcmp(arg->name, SX_SEED_INPUT) == 0) {
            wanted = &seed;
        } else {
            return unexpected_input(arg->name, mode, inputs);
        }
        if (!sx_type_equal(type, wanted)) {
            char has[SX_TYPE_TEXT], wants[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is %s, expected %s", arg->name,
                            sx_type_format(type, has, sizeof(has)),
                            sx_type_format(wanted, wants, sizeof(wants)));
        }
    }
    return SX_OK;
}

/* ---- All together ---- */

static void end_of_user_code(sx_builder *b, sx_mode mode, const sx_model_inputs *inputs)
{
    sx_builder_at(b, "", 0);
    if (!sx_builder_failed(b)) {
        sx_builder_fail(b, sx_program_check_inputs(b->graph, mode, inputs));
    }
}

/* A step function instead of the model's. */
static void build_step(sx_builder *b, const sx_program_request *r, const sx_batch *in,
                       const sx_model_inputs *inputs)
{
    r->step(b, in, r->params);
    end_of_user_code(b, r->mode, inputs);
    check_device_values(b);
    if (r->step_trains_run) {
        sx_check_train_step(b);
    } else if (!sx_builder_failed(b) && b->graph->n_results == 0) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "the step has no outputs, so that nothing of it can be "
                                    "fetched: call sx_output(b, \"name\", value)"));
    }
}

static void build_all(sx_builder *b, const sx_program_request *r, const sx_model_inputs *inputs)
{
    sx_named_value features[SX_MAX_MODEL_INPUTS], labels[SX_MAX_MODEL_INPUTS];
    sx_batch in = {.mode = r->mode, .feature_map = features, .label_map = labels};
    sx_builder_set_mode(b, r->mode);
    sx_builder_set_precision(b, r->precision);
    b->request = r;
    for (int i = 0; i < inputs->n; i++) {
        const sx_model_input *input = &inputs->items[i];
        if (sx_mode_takes(r->mode, input)) {
            const sx_named_value v = {input->name, sx_input(b, input->program_name, input->type)};
            if (input->kind == SX_INPUT_FEATURE) {
                features[in.n_features++] = v;
            } else if (input->kind == SX_INPUT_LABEL) {
                labels[in.n_labels++] = v;
            } else {
                in.example_weights = v.value;
            }
        }
    }
    in.features = in.n_features > 0 ? features[0].value : SX_NO_VALUE;
    in.labels = in.n_labels > 0 ? labels[0].value : SX_NO_VALUE;
    if (r->step != NULL) {
        build_step(b, r, &in, inputs);
        return;
    }
    sx_spec spec = r->def->build(b, &in, r->params);
    end_of_user_code(b, r->mode, inputs);
    widen_spec(b, &spec);
    check_spec(b, r->mode, &spec);
    sx_status status = take_host(r, &spec);
    if (status != SX_OK) {
        sx_builder_fail(b, status);
        return;
    }
    check_device_values(b);
    if (r->mode == SX_TRAIN) {
        sx_build_train(b, &spec, in.example_weights);
        put_host_tensors(b, SX_TRAIN, SX_HOST_CALL_PREFIX, spec.host_call.tensors);
    } else if (r->mode == SX_EVAL) {
        build_eval(b, &spec);
    } else {
        build_predict(b, &spec);
    }
}

/* Drops the narrow gradients that were replaced by float32 ones. */
static sx_status drop_replaced(sx_graph **graph)
{
    sx_graph *whole = *graph;
    sx_status status = sx_pass_drop_dead(whole, graph);
    sx_graph_destroy(whole);
    return status;
}

sx_status sx_build_program(const sx_program_request *request, sx_graph **out_graph)
{
    sx_arena arena;
    sx_model_inputs own;
    const sx_model_inputs *inputs = request->inputs;
    sx_builder *b = NULL;
    sx_graph *preprocess = NULL;
    sx_arena_init(&arena, 0);
    sx_status status = SX_OK;
    if (inputs == NULL) {
        SX_TRY_GOTO(status, sx_model_inputs_of(request->def, &arena, &own), done);
        inputs = &own;
        if (request->def->preprocess != NULL) {
            const sx_model_inputs declared = own;
            SX_TRY_GOTO(status,
                        sx_build_preprocess(request->def, request->params, &declared, &arena,
                                            &preprocess, &own),
                        done);
        }
    }
    SX_TRY_GOTO(status, sx_builder_create(&b), done);
    build_all(b, request, inputs);
    status = sx_params_status(request->params);
    if (status == SX_OK) {
        status = sx_builder_finish(b, out_graph);
    }
    if (status == SX_OK && sx_precision_is_narrow(b)) {
        status = drop_replaced(out_graph);
    }
    if (status != SX_OK) {
        char fed[SX_TYPE_TEXT];
        status =
            inputs->named
                ? sx_status_annotate(status, __FILE__, __LINE__, "model \"%s\"", request->def->name)
                : sx_status_annotate(status, __FILE__, __LINE__, "model \"%s\" on %s",
                                     request->def->name,
                                     sx_type_format(&inputs->items[0].type, fed, sizeof(fed)));
    }
done:
    sx_builder_destroy(b);
    sx_graph_destroy(preprocess);
    sx_arena_deinit(&arena);
    return status;
}

int64_t sx_graph_count_elems(const sx_graph *g, sx_variable_role role)
{
    int64_t total = 0;
    for (int i = 0; i < g->n_args; i++) {
        if (g->args[i].kind == SX_ARG_VARIABLE && g->args[i].role == role) {
            total += sx_type_elems(sx_graph_type(g, g->args[i].value));
        }
    }
    return total;
}
