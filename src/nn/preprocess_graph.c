/* See preprocess_graph.h. */
#include "nn/preprocess_graph.h"

#include <stdio.h>
#include <string.h>

#include "graph/builder.h"
#include "graph/ir.h"
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
    SX_TRY(sx_program_check_inputs(g, SX_PREDICT, declared));
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
        const sx_model_input *input = &inputs->items[i];
        const int found = sx_graph_find_output(g, input->name);
        if (input->kind == SX_INPUT_FEATURE &&
            (found < 0 ||
             !sx_type_equal(sx_graph_type(g, g->results[found].value), &input->type))) {
            char has[SX_TYPE_TEXT] = "missing", wants[SX_TYPE_TEXT];
            if (found >= 0) {
                sx_type_format(sx_graph_type(g, g->results[found].value), has, sizeof(has));
            }
            return sx_error(SX_INVALID_ARGUMENT,
                            "the feature \"%s\" of preprocessing is %s, expected %s", input->name,
                            has, sx_type_format(&input->type, wants, sizeof(wants)));
        }
    }
    return check_examples(g);
}

/* The graph's outputs as a model's features. */
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

sx_status sx_build_preprocess(const sx_model_def *def, const sx_params *params,
                              const sx_model_inputs *declared, sx_arena *arena,
                              sx_graph **out_graph, sx_model_inputs *out_inputs)
{
    sx_named_value features[SX_MAX_MODEL_INPUTS];
    sx_component outputs[SX_MAX_COMPONENTS];
    sx_batch in = {.mode = SX_PREDICT, .feature_map = features};
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    sx_status status;
    SX_TRY_GOTO(status, sx_builder_create(&b), done);
    sx_builder_set_mode(b, SX_PREDICT);
    for (int i = 0; i < declared->n; i++) {
        const sx_model_input *input = &declared->items[i];
        if (input->kind == SX_INPUT_FEATURE) {
            features[in.n_features++] =
                (sx_named_value){input->name, sx_input(b, input->program_name, input->type)};
        }
    }
    in.features = features[0].value;
    def->preprocess(b, &in, params);
    sx_builder_at(b, "", 0);
    SX_TRY_GOTO(status, sx_params_status(params), done);
    SX_TRY_GOTO(status, sx_builder_finish(b, &g), done);
    SX_TRY_GOTO(status, list_outputs(g, outputs), done);
    SX_TRY_GOTO(status,
                sx_model_inputs_with_features(declared, outputs, g->n_results, arena, out_inputs),
                done);
    SX_TRY_GOTO(status, sx_preprocess_graph_check(g, declared, out_inputs), done);
    *out_graph = g;
    g = NULL;
done:
    sx_graph_destroy(g);
    sx_builder_destroy(b);
    return sx_status_annotate(status, __FILE__, __LINE__, "model \"%s\": preprocessing", def->name);
}
