/* sextant zoo */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "nn/program.h"
#include "nn/zoo/zoo.h"

static sx_status print_model(const sx_model_def *def)
{
    sx_program_request request = {.def = def, .mode = SX_PREDICT};
    sx_graph *graph = NULL;
    SX_TRY(sx_model_features(def, &request.features));
    SX_TRY(sx_build_program(&request, &graph));
    printf("%-14s %3dx%dx%-3d %11" PRId64 "  %s\n", def->name, def->image[0], def->image[1],
           def->image[2], sx_graph_count_elems(graph, SX_ROLE_WEIGHT), def->about);
    sx_graph_destroy(graph);
    return SX_OK;
}

static sx_status run(const sx_invocation *inv)
{
    (void)inv;
    printf("%-14s %-9s %13s  %s\n", "name", "image", "parameters", "layers");
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        SX_TRY(print_model(sx_zoo[i]));
    }
    return SX_OK;
}

const sx_command sx_command_zoo = {
    .name = "zoo",
    .summary = "ready models with their parameters",
    .words = "",
    .run = run,
};
