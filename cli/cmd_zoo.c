/* sextant zoo */
#include <stdio.h>

#include "backends/cpu/planner.h"
#include "command.h"
#include "graph/passes/passes.h"
#include "nn/program.h"
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

static sx_status print_graph(const sx_model_def *def, const sx_graph *graph)
{
    sx_graph *one = NULL;
    char image[32], flops[32];
    sx_buf parameters;
    SX_TRY(sx_pass_fix_batch(graph, 1, &one));
    format_count(sx_cpu_graph_flops(one), flops, sizeof(flops));
    sx_graph_destroy(one);
    if (def->image[0] > 0) {
        snprintf(image, sizeof(image), "%dx%dx%d", def->image[0], def->image[1], def->image[2]);
    } else {
        snprintf(image, sizeof(image), "%d", def->features);
    }
    sx_buf_init(&parameters, 64);
    sx_put_grouped(&parameters, (double)sx_graph_count_elems(graph, SX_ROLE_WEIGHT));
    printf("%-14s %-11s %12s %9s  %s\n", def->name, image, sx_buf_text(&parameters), flops,
           def->about);
    sx_buf_deinit(&parameters);
    return SX_OK;
}

static sx_status print_model(const sx_model_def *def)
{
    sx_program_request request = {.def = def, .mode = SX_PREDICT};
    sx_graph *graph = NULL;
    SX_TRY(sx_model_features(def, &request.features));
    SX_TRY(sx_build_program(&request, &graph));
    sx_status status = print_graph(def, graph);
    sx_graph_destroy(graph);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    (void)inv;
    printf("%-14s %-11s %12s %9s  %s\n", "name", "input", "parameters", "FLOPs", "layers");
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        SX_TRY(print_model(sx_zoo[i]), "%s", sx_zoo[i]->name);
    }
    return SX_OK;
}

const sx_command sx_command_zoo = {
    .name = "zoo",
    .summary = "list the built-in models",
    .words = "",
    .about = "FLOPs: multiplications and additions in the prediction of one example.",
    .run = run,
};
