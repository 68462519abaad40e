/* See preprocess_graph.h. */
#include "nn/preprocess_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ir.h"
#include "graph/passes/passes.h"
#include "graph/spmd.h"
#include "nn/layer.h"
#include "nn/model_program.h"
#include "nn/params.h"
#include "runtime/session.h"

/* "census.c:12: one_hot "one_hot_1"", as far as it is known. */
static const char *name_node(const sx_node *n, char *buffer, size_t size)
{
    const char *slash = strrchr(n->file, '/');
    if (n->file[0] != '\0') {
        snprintf(buffer, size, "%.64s:%d: %.32s \"%.100s\"", slash != NULL ? slash + 1 : n->file,
                 n->line, n->op->name, n->name);
    } else {
        snprintf(buffer, size, "%.32s \"%.100s\"", n->op->name, n->name);
    }
    return buffer;
}

static sx_status check_examples(const sx_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const sx_division division = sx_node_division(g, &g->nodes[i]);
        char node[256];
        if (division == SX_COMBINED || division == SX_GATHERED ||
            (division == SX_COMMON && sx_reads_batch(g, &g->nodes[i]))) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s depends on all examples of a batch; preprocessing computes each "
                            "example from that example alone",
                            name_node(&g->nodes[i], node, sizeof(node)));
        }
    }
    return SX_OK;
}

sx_status sx_preprocess_graph_check(const sx_graph *g, const sx_model_inputs *declared,
                                    const sx_model_inputs *inputs)
{
    SX_TRY(sx_program_check_inputs(g, SX_EVAL, declared));
    for (int i = 0; i < g->n_args; i++) {
        if (g->args[i].kind == SX_ARG_VARIABLE || strcmp(g->args[i].name, SX_SEED_INPUT) == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "preprocessing has no %s%s%s; use it in the model's function",
                            g->args[i].kind == SX_ARG_VARIABLE ? "variables: \"" : "random numbers",
                            g->args[i].kind == SX_ARG_VARIABLE ? g->args[i].name : "",
                            g->args[i].kind == SX_ARG_VARIABLE ? "\"" : "");
        }
    }
    for (int i = 0; i < inputs->n; i++) {
        const sx_model_input *input = &inputs->items[i], *was;
        const int found = sx_graph_find_output(g, input->name);
        was = sx_model_inputs_label(declared, input->name);
        const bool kept = input->kind == SX_INPUT_WEIGHT ||
                          (was != NULL && found < 0 && sx_type_equal(&was->type, &input->type));
        if (!kept && (found < 0 ||
                      !sx_type_equal(sx_graph_type(g, g->results[found].value), &input->type))) {
            char has[SX_TYPE_TEXT] = "missing", wants[SX_TYPE_TEXT];
            if (found >= 0) {
                sx_type_format(sx_graph_type(g, g->results[found].value), has, sizeof(has));
            }
            return sx_error(SX_INVALID_ARGUMENT,
                            "the %s \"%s\" of preprocessing is %s, expected %s",
                            sx_input_kind_names[input->kind], input->name, has,
                            sx_type_format(&input->type, wants, sizeof(wants)));
        }
    }
    return check_examples(g);
}

/* The graph's outputs as a model's features and labels. */
static sx_status list_outputs(const sx_graph *g, sx_component *out)
{
    if (g->n_results < 1 || g->n_results > SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d outputs, expected 1 to %d: the model's features, each an sx_output()",
                        g->n_results, (int)SX_MAX_COMPONENTS);
    }
    for (int i = 0; i < g->n_results; i++) {
        out[i] = (sx_component){g->results[i].name, *sx_graph_type(g, g->results[i].value)};
    }
    return SX_OK;
}

/* Which of a graph's outputs depend on a label: out[n_results]. */
static sx_status find_labelled(const sx_graph *g, bool *out)
{
    bool *from_label = sx_alloc((size_t)g->n_values, sizeof(bool));
    if (from_label == NULL) {
        return sx_no_memory("for preprocessing");
    }
    for (int i = 0; i < g->n_args; i++) {
        from_label[g->args[i].value.id] =
            strncmp(g->args[i].name, SX_LABELS "/", strlen(SX_LABELS "/")) == 0;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        bool any = from_label[g->nodes[k].first_output.id];
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            any = any || from_label[g->nodes[k].inputs[i].id];
        }
        for (int i = 0; i < g->nodes[k].n_outputs; i++) {
            from_label[sx_node_output(&g->nodes[k], i).id] = any;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        out[i] = from_label[g->results[i].value.id];
    }
    sx_free(from_label);
    return SX_OK;
}

/* The function's graph; with the labels as inputs in SX_TRAIN, without them in SX_PREDICT. */
static sx_status build(const sx_model_def *def, const sx_params *params,
                       const sx_model_inputs *declared, sx_mode mode, sx_graph **out)
{
    sx_named_value features[SX_MAX_MODEL_INPUTS], labels[SX_MAX_MODEL_INPUTS];
    sx_batch in = {.mode = mode, .feature_map = features, .label_map = labels};
    sx_builder *b = NULL;
    sx_status status;
    SX_TRY_GOTO(status, sx_builder_create(&b), done);
    sx_builder_set_mode(b, SX_PREDICT);
    for (int i = 0; i < declared->n; i++) {
        const sx_model_input *input = &declared->items[i];
        if (input->kind == SX_INPUT_FEATURE) {
            features[in.n_features++] =
                (sx_named_value){input->name, sx_input(b, input->program_name, input->type)};
        } else if (input->kind == SX_INPUT_LABEL && mode == SX_TRAIN) {
            labels[in.n_labels++] =
                (sx_named_value){input->name, sx_input(b, input->program_name, input->type)};
        }
    }
    in.features = features[0].value;
    in.labels = in.n_labels > 0 ? labels[0].value : SX_NO_VALUE;
    def->preprocess(b, &in, params);
    sx_builder_at(b, "", 0);
    SX_TRY_GOTO(status, sx_params_status(params), done);
    SX_TRY_GOTO(status, sx_builder_finish(b, out), done);
done:
    sx_builder_destroy(b);
    return status;
}

sx_status sx_preprocess_features(const sx_graph *g, const sx_model_inputs *declared, sx_graph **out)
{
    bool keep[SX_MAX_COMPONENTS] = {false};
    for (int i = 0; i < g->n_results && i < SX_MAX_COMPONENTS; i++) {
        keep[i] = sx_model_inputs_label(declared, g->results[i].name) == NULL;
    }
    return sx_pass_keep_outputs(g, keep, out);
}

sx_status sx_build_preprocess(const sx_model_def *def, const sx_params *params,
                              const sx_model_inputs *declared, sx_arena *arena,
                              sx_graph **out_graph, sx_model_inputs *out_inputs)
{
    sx_component outputs[SX_MAX_COMPONENTS];
    bool labelled[SX_MAX_COMPONENTS] = {false}, any = false;
    sx_graph *g = NULL;
    sx_status status;
    SX_TRY_GOTO(status, build(def, params, declared, SX_TRAIN, &g), done);
    SX_TRY_GOTO(status, list_outputs(g, outputs), done);
    SX_TRY_GOTO(status, find_labelled(g, labelled), done);
    for (int i = 0; i < g->n_results; i++) {
        any = any || labelled[i];
        if (labelled[i] && sx_model_inputs_label(declared, outputs[i].name) == NULL) {
            status =
                sx_error(SX_INVALID_ARGUMENT,
                         "the feature \"%s\" is computed from a label, which is not there when "
                         "the model is served",
                         outputs[i].name);
            goto done;
        }
        if (!labelled[i] && sx_model_inputs_label(declared, outputs[i].name) != NULL) {
            status = sx_error(SX_INVALID_ARGUMENT,
                              "label \"%s\": the name is used twice: an output of that name is not "
                              "computed from a label",
                              outputs[i].name);
            goto done;
        }
    }
    if (!any) { /* the labels are taken as they are */
        sx_graph_destroy(g);
        g = NULL;
        SX_TRY_GOTO(status, build(def, params, declared, SX_PREDICT, &g), done);
        SX_TRY_GOTO(status, list_outputs(g, outputs), done);
    }
    SX_TRY_GOTO(status, sx_model_inputs_given(declared, outputs, g->n_results, arena, out_inputs),
                done);
    SX_TRY_GOTO(status, sx_preprocess_graph_check(g, declared, out_inputs), done);
    *out_graph = g;
    g = NULL;
done:
    sx_graph_destroy(g);
    return sx_status_annotate(status, __FILE__, __LINE__, "model \"%s\": preprocessing", def->name);
}
