/* See preprocess_map.h. */
#include "train/preprocess_map.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/map.h"
#include "base/memory.h"
#include "graph/interpret.h"
#include "graph/ir.h"
#include "graph/passes/passes.h"
#include "nn/preprocess_graph.h"
#include "train/feed.h"
#include "train/misfit.h"

struct program {
    sx_arena arena;                      /* names */
    sx_graph *graph;                     /* for one example; constants folded */
    int from[SX_MAX_COMPONENTS];         /* [graph's args]: components of the data */
    int n_kept, kept[SX_MAX_COMPONENTS]; /* components that follow the graph's results */
};

static void destroy(void *user)
{
    struct program *p = user;
    sx_graph_destroy(p->graph);
    sx_arena_deinit(&p->arena);
    sx_free(p);
}

/* ---- Running ---- */

/* Integers of another width as the int32 that is declared. */
static sx_status convert(const sx_map_call *call, const sx_tensor *in, const char *name, void **out)
{
    const int64_t n = sx_type_elems(&in->type);
    int32_t *values = sx_scratch_alloc(call->scratch, (size_t)n * sizeof(*values) + 1);
    if (values == NULL) {
        return sx_no_memory("for preprocessing");
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = sx_integer_at(in, (size_t)i);
        if (value < INT32_MIN || value > INT32_MAX) {
            return sx_error(SX_INVALID_ARGUMENT, "\"%s\" is %" PRId64 ", which is not an int32",
                            name, value);
        }
        values[i] = (int32_t)value;
    }
    *out = values;
    return SX_OK;
}

static sx_status run(const sx_map_call *call, void *user)
{
    const struct program *p = user;
    const sx_graph *g = p->graph;
    sx_host_tensor args[SX_MAX_COMPONENTS], results[SX_MAX_COMPONENTS];
    for (int i = 0; i < g->n_args; i++) {
        const sx_tensor *in = &call->in[p->from[i]];
        args[i] = (sx_host_tensor){.type = *sx_graph_type(g, g->args[i].value), .data = in->data};
        if (args[i].type.dtype != in->type.dtype) {
            SX_TRY(convert(call, in, strchr(g->args[i].name, '/') + 1, &args[i].data));
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        results[i] = (sx_host_tensor){.type = *sx_graph_type(g, g->results[i].value),
                                      .data = call->out[i].data};
    }
    for (int i = 0; i < p->n_kept; i++) {
        const sx_tensor *in = &call->in[p->kept[i]];
        memcpy(call->out[g->n_results + i].data, in->data, (size_t)sx_type_bytes(&in->type));
    }
    const sx_kernel_call like = {.attrs = NULL};
    return sx_interpret(&like, g, args, results);
}

/* ---- Creation ---- */

/* The declared feature or label that the graph's argument is, in the data. */
static sx_status find_input(const sx_dataset *data, const sx_run_info *info, const sx_arg *arg,
                            int *out)
{
    const sx_model_input *wanted =
        &info->declared.items[sx_model_inputs_find(&info->declared, arg->name)];
    const int found = sx_dataset_find(data, wanted->name);
    if (found < 0) {
        return sx_missing_input(data, info, wanted);
    }
    const sx_type *has = &sx_dataset_schema(data)->components[found].type;
    sx_type one = *has;
    one.dtype = wanted->type.dtype == SX_I32 && sx_feed_converts(has->dtype) ? SX_I32 : has->dtype;
    bool fits =
        one.dtype == wanted->type.dtype && one.rank == wanted->type.rank - 1 &&
        memcmp(one.dims, wanted->type.dims + 1, (size_t)one.rank * sizeof(one.dims[0])) == 0;
    if (!fits) {
        char is[SX_TYPE_TEXT], wants[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT,
                        "component \"%s\" of the data is %s, but the preprocessing of model \"%s\" "
                        "takes %s of a batch",
                        wanted->name, sx_type_format(has, is, sizeof(is)), info->model,
                        sx_type_format(&wanted->type, wants, sizeof(wants)));
    }
    *out = found;
    return SX_OK;
}

static sx_status fingerprint(const sx_graph *g, uint64_t *out)
{
    char *text = NULL;
    SX_TRY(sx_graph_print(g, &text));
    *out = sx_hash64(text, strlen(text));
    sx_text_free(text);
    return SX_OK;
}

/* The graph for one example; `served`: without labels. */
static sx_status specialize(const sx_graph *graph, const sx_run_info *info, bool served,
                            sx_graph **out)
{
    sx_graph *features = NULL, *one = NULL, *folded = NULL;
    if (served) {
        SX_TRY(sx_preprocess_features(graph, &info->declared, &features));
    }
    sx_status status = sx_pass_fix_batch(served ? features : graph, 1, &one);
    sx_graph_destroy(features);
    SX_TRY(status);
    status = sx_pass_fold_constants(one, &folded);
    sx_graph_destroy(one);
    if (status == SX_OK) {
        status = sx_pass_drop_dead(folded, out);
    }
    sx_graph_destroy(folded);
    return status;
}

static sx_status add_map(sx_dataset **dataset, const sx_graph *graph, const sx_run_info *info,
                         sx_mode mode, struct program *p)
{
    const sx_schema *schema = sx_dataset_schema(*dataset);
    sx_component components[SX_MAX_COMPONENTS];
    uint64_t hash;
    SX_TRY(fingerprint(graph, &hash));
    SX_TRY(specialize(graph, info, mode == SX_PREDICT, &p->graph));
    for (int i = 0; i < p->graph->n_args; i++) {
        SX_TRY(find_input(*dataset, info, &p->graph->args[i], &p->from[i]));
    }
    int count = 0;
    for (; count < p->graph->n_results; count++) {
        const sx_type *batch = sx_graph_type(p->graph, p->graph->results[count].value);
        sx_component *c = &components[count];
        *c = (sx_component){sx_arena_strdup(&p->arena, p->graph->results[count].name),
                            {.dtype = batch->dtype, .rank = batch->rank - 1}};
        memcpy(c->type.dims, batch->dims + 1, (size_t)c->type.rank * sizeof(c->type.dims[0]));
        if (c->name == NULL) {
            return sx_no_memory("for preprocessing");
        }
    }
    for (int i = 0; i < info->declared.n; i++) {
        const sx_model_input *input = &info->declared.items[i];
        const int found = sx_dataset_find(*dataset, input->name);
        if (input->kind != SX_INPUT_FEATURE && sx_mode_feeds(mode, input) && found >= 0 &&
            sx_graph_find_output(p->graph, input->name) < 0) {
            SX_TRY(sx_check_for_device(&schema->components[found]));
            components[count++] = schema->components[found];
            p->kept[p->n_kept++] = found;
        }
    }
    return sx_dataset_map(dataset, .name = "preprocess", .fn = run, .count = count,
                          .components = components, .user = p, .release = destroy,
                          .fingerprint = hash);
}

sx_status sx_dataset_run_preprocess(sx_dataset **dataset, const sx_graph *graph,
                                    const sx_run_info *info, sx_mode mode)
{
    struct program *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for preprocessing");
    }
    sx_arena_init(&p->arena, 0);
    sx_status status = add_map(dataset, graph, info, mode, p);
    if (status != SX_OK) {
        destroy(p);
    }
    return status;
}
