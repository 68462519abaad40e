/* sextant zoo */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/planner.h"
#include "command.h"
#include "graph/passes/passes.h"
#include "image/preprocess.h"
#include "model_args.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "terminal.h"

/* "8.5 M": counts of parameters and operations of one forward pass. */
static void format_count(double n, char *out, size_t capacity)
{
    static const char *const units[] = {"", " K", " M", " G", " T"};
    size_t unit = 0;
    while (n >= 1000 && unit + 1 < SX_COUNT(units)) {
        n /= 1000;
        unit++;
    }
    snprintf(out, capacity, unit == 0 ? "%.0f%s" : "%.3g%s", n, units[unit]);
}

typedef struct facts {
    char input[32], weights[32], flops[32];
} facts;

/* Builds the model for `mode` and measures its prediction graph for the table. */
static sx_status measure(const sx_model_def *def, const sx_params *params, sx_mode mode, facts *out)
{
    const sx_program_request request = {.def = def, .mode = mode, .params = params};
    sx_graph *graph = NULL, *one = NULL;
    SX_TRY(sx_build_program(&request, &graph));
    sx_status status = mode == SX_PREDICT ? sx_pass_fix_batch(graph, 1, &one) : SX_OK;
    if (one != NULL) {
        sx_buf weights;
        sx_buf_init(&weights, 64);
        sx_put_grouped(&weights, (double)sx_graph_count_elems(graph, SX_ROLE_WEIGHT));
        snprintf(out->weights, sizeof(out->weights), "%s", sx_buf_text(&weights));
        sx_buf_deinit(&weights);
        format_count(sx_cpu_graph_flops(one), out->flops, sizeof(out->flops));
        if (def->image[0] > 0) {
            snprintf(out->input, sizeof(out->input), "%dx%dx%d", def->image[0], def->image[1],
                     def->image[2]);
        } else if (def->features > 0) {
            snprintf(out->input, sizeof(out->input), "%d", def->features);
        } else {
            int n = 0;
            while (n < SX_MAX_FEATURES && def->inputs[n].name != NULL) {
                n++;
            }
            snprintf(out->input, sizeof(out->input), "%d features", n);
        }
    }
    sx_graph_destroy(one);
    sx_graph_destroy(graph);
    return status;
}

static sx_status print_table(void)
{
    printf("%-14s %-11s %12s %9s  %s\n", "name", "input", "parameters", "FLOPs", "layers");
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        facts f = {0};
        SX_TRY(measure(sx_zoo[i], NULL, SX_PREDICT, &f), "%s", sx_zoo[i]->name);
        printf("%-14s %-11s %12s %9s  %s\n", sx_zoo[i]->name, f.input, f.weights, f.flops,
               sx_zoo[i]->about);
    }
    return SX_OK;
}

/* One model and its parameters. */
static sx_status print_model(const sx_model_args *model)
{
    const sx_model_def *def = model->def;
    facts f = {0};
    int n;
    SX_TRY(measure(def, model->params, SX_PREDICT, &f));
    SX_TRY(measure(def, model->params, SX_TRAIN, &f));
    SX_TRY(sx_params_check_used(model->params));
    printf("%s%s%s\n\n", def->name, def->about != NULL ? ": " : "",
           def->about != NULL ? def->about : "");
    printf("  input    %s\n", f.input);
    if (def->image[0] > 0) {
        sx_preprocess pre;
        sx_buf augment;
        SX_TRY(sx_preprocess_make(SX_PREPROCESS_WISH(def), &pre));
        sx_buf_init(&augment, 1 << 10);
        sx_preprocess_put_augment(&pre, &augment);
        printf("  augment  %s\n", sx_buf_text(&augment));
        sx_buf_deinit(&augment);
    }
    printf("  weights  %s\n  FLOPs    %s\n", f.weights, f.flops);
    const sx_asked_param *asked = sx_params_asked(model->params, &n);
    if (n == 0) {
        printf("\nIt has no parameters.\n");
        return SX_OK;
    }
    printf("\nParameters (--param NAME=VALUE) and their defaults:\n\n");
    for (int i = 0; i < n; i++) {
        const sx_asked_param *a = &asked[i];
        bool classes = strcmp(a->name, "num_classes") == 0;
        printf("  %-14s %s", a->name, a->otherwise != NULL ? a->otherwise : "none");
        printf("%s%s%s\n", a->choices != NULL ? "  (" : "", a->choices != NULL ? a->choices : "",
               a->choices != NULL ? ")"
               : classes && def->num_classes == 0
                   ? "  (or the number of classes in the data, if known)"
                   : "");
    }
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    static const sx_words none = {0};
    if (inv->words.count == 0) {
        return print_table();
    }
    sx_model_args model;
    sx_status status = sx_model_args_read(inv, inv->words.items[0], &none, &model);
    if (status == SX_OK) {
        status = print_model(&model);
    }
    sx_model_args_end(&model);
    return status;
}

const sx_command sx_command_zoo = {
    .name = "zoo",
    .summary = "list the built-in models, or the parameters of one",
    .words = "[MODEL|./model.c]",
    .about = "FLOPs: multiplications and additions in the prediction of one example.",
    .examples = "  sextant zoo\n  sextant zoo resnet50",
    .max_words = 1,
    .run = run,
};
