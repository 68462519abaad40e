/* sextant ops: the operators and what each has; which of a SavedModel's are supported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernel.h"
#include "backends/cpu/typed/typed.h"
#include "base/map.h"
#include "base/memory.h"
#include "command.h"
#include "dir_hint.h"
#include "graph/lower/stablehlo/lower.h"
#include "graph/op_def.h"
#include "savedmodel/import_common.h"
#include "savedmodel/import_library.h"

/* ---- The table ---- */

/* "yes": a kernel of its own, or none is needed; "host": its host kernel; "-": a host step, whose
 * kernel is the host's. */
static const char *on_cpu(const sx_op_def *op)
{
    if (sx_typed_has(op)) {
        return "yes";
    }
    if (op->flags & (SX_OP_HOST | SX_OP_FUNCTION | SX_OP_NO_HOST)) {
        return "-";
    }
    return sx_cpu_has_kernel(op) ? "yes" : "host";
}

static const char *gradient(const sx_op_def *op)
{
    return op->grad != NULL ? "yes" : op->flags & SX_OP_NO_GRAD ? "zero" : "no";
}

static void print_row(const sx_op_def *op)
{
    printf("%-30s %-5s %-5s %-5s %-8s %-6s", op->name, op->host != NULL ? "yes" : "-", on_cpu(op),
           sx_hlo_rows[op->id].lower != NULL ? "yes" : "-", gradient(op),
           op->to_tf != NULL ? "yes" : "-");
    for (const sx_tf_form *f = op->from_tf; f != NULL && f->op != NULL; f++) {
        printf(" %s", f->op);
    }
    putchar('\n');
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const sx_op_def *const *)a)->name, (*(const sx_op_def *const *)b)->name);
}

static void print_table(void)
{
    const sx_op_def *sorted[SX_OPID_COUNT];
    memcpy(sorted, sx_op_table, sizeof(sorted));
    qsort(sorted, SX_OPID_COUNT, sizeof(*sorted), by_name);
    printf("%-30s %-5s %-5s %-5s %-8s %-6s %s\n", "operator", "host", "cpu", "pjrt", "gradient",
           "to TF", "from TensorFlow");
    for (int i = 0; i < SX_OPID_COUNT; i++) {
        print_row(sorted[i]);
    }
    printf("\nTensorFlow operators that are read as several of these, or as parts of the graph:\n");
    int column = 0;
    for (size_t i = 0; sx_tf_import_op_name(i) != NULL; i++) {
        const int width = (int)strlen(sx_tf_import_op_name(i)) + 1;
        if (column + width > 79) {
            putchar('\n');
            column = 0;
        }
        column += printf("%s%s", column > 0 ? " " : "", sx_tf_import_op_name(i));
    }
    putchar('\n');
}

/* ---- A SavedModel ---- */

typedef struct count {
    const char *op;
    int64_t nodes;
} count;

/* The nodes that signatures need: those of the graph that their outputs depend on, and all of the
 * functions that these call. Not those that are imported as one operator (sx_tf_composed_op). */
struct walk {
    const Tensorflow__GraphDef *graph;
    sx_arena arena;
    sx_map nodes, functions; /* of the graph, by name: -> NodeDef, FunctionDef */
    sx_map seen;             /* nodes of the graph that are needed */
    sx_map called;           /* functions that are: name -> FunctionDef */
    sx_map counts;           /* operator -> count */
};

static sx_status note_call(struct walk *w, const char *name)
{
    Tensorflow__FunctionDef *f = sx_map_get(&w->functions, name);
    return f == NULL || sx_map_has(&w->called, name) ? SX_OK : sx_map_put(&w->called, name, f);
}

static sx_status count_node(struct walk *w, const Tensorflow__NodeDef *node)
{
    count *c = sx_map_get(&w->counts, node->op);
    if (c == NULL) {
        c = sx_arena_new(&w->arena, count);
        if (c == NULL) {
            return sx_no_memory("for the operators");
        }
        *c = (count){.op = node->op};
        SX_TRY(sx_map_put(&w->counts, node->op, c));
    }
    c->nodes++;
    SX_TRY(note_call(w, node->op));
    for (size_t i = 0; i < node->n_attr; i++) {
        const Tensorflow__AttrValue *value = node->attr[i]->value;
        if (value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && value->func != NULL) {
            SX_TRY(note_call(w, value->func->name));
        }
        const Tensorflow__AttrValue__ListValue *list =
            value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST ? value->list : NULL;
        for (size_t k = 0; list != NULL && k < list->n_func; k++) { /* the branches of Case */
            SX_TRY(note_call(w, list->func[k]->name));
        }
    }
    return SX_OK;
}

static sx_status see_signature(struct walk *w, const sx_signature *s)
{
    const Tensorflow__NodeDef **open =
        sx_arena_array(&w->arena, w->graph->n_node + 1, const Tensorflow__NodeDef *);
    size_t n = 0, next = 0;
    if (open == NULL) {
        return sx_no_memory("for the operators");
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        sx_tf_ref ref;
        Tensorflow__NodeDef *node = sx_tf_ref_parse(s->outputs[i].tensor, &ref)
                                        ? sx_map_get_bytes(&w->nodes, ref.node, ref.node_bytes)
                                        : NULL;
        if (node != NULL && sx_map_get(&w->seen, node->name) != node) {
            SX_TRY(sx_map_put(&w->seen, node->name, node));
            open[n++] = node;
        }
    }
    while (next < n) {
        const Tensorflow__NodeDef *node = open[next++];
        SX_TRY(count_node(w, node));
        const sx_tf_form *form = NULL;
        const size_t n_input = sx_tf_composed_op(node, &form) != NULL ? 0 : node->n_input;
        for (size_t i = 0; i < n_input; i++) {
            sx_tf_ref ref;
            Tensorflow__NodeDef *input = sx_tf_ref_parse(node->input[i], &ref)
                                             ? sx_map_get_bytes(&w->nodes, ref.node, ref.node_bytes)
                                             : NULL;
            if (input != NULL && sx_map_get(&w->seen, input->name) != input) {
                SX_TRY(sx_map_put(&w->seen, input->name, input));
                open[n++] = input; /* each node once: there is room */
            }
        }
    }
    return SX_OK;
}

static sx_status see_model(struct walk *w, const sx_saved_model *model)
{
    size_t n = 0;
    const sx_signature *signatures = sx_saved_model_signatures(model, &n);
    const Tensorflow__FunctionDefLibrary *library = w->graph->library;
    for (size_t i = 0; i < w->graph->n_node; i++) {
        SX_TRY(sx_map_put(&w->nodes, w->graph->node[i]->name, w->graph->node[i]));
    }
    for (size_t i = 0; library != NULL && i < library->n_function; i++) {
        if (library->function[i]->signature != NULL) {
            SX_TRY(sx_map_put(&w->functions, library->function[i]->signature->name,
                              library->function[i]));
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(signatures[i].key, SX_INIT_SIGNATURE) != 0) {
            SX_TRY(see_signature(w, &signatures[i]));
        }
    }
    for (size_t i = 0; i < w->called.count; i++) { /* they call others: the map grows */
        const Tensorflow__FunctionDef *f = w->called.entries[i].value;
        for (size_t k = 0; k < f->n_node_def; k++) {
            SX_TRY(count_node(w, f->node_def[k]));
        }
    }
    return SX_OK;
}

static bool is_supported(const struct walk *w, const char *op)
{
    return sx_tf_import_has_op(op) || sx_map_has(&w->functions, op) || sx_import_is_call(op);
}

static int by_op(const void *a, const void *b)
{
    return strcmp(((const sx_map_entry *)a)->key, ((const sx_map_entry *)b)->key);
}

static void print_operators(const struct walk *w)
{
    int64_t nodes = 0, good_nodes = 0, good = 0;
    qsort(w->counts.entries, w->counts.count, sizeof(*w->counts.entries), by_op);
    printf("%-40s %8s  %s\n", "operator", "nodes", "supported");
    for (size_t i = 0; i < w->counts.count; i++) {
        const count *c = w->counts.entries[i].value;
        const bool supported = is_supported(w, c->op);
        sx_buf line;
        sx_buf_init(&line, 0);
        sx_buf_printf(&line, "%-40s %8lld  %s\n", c->op, (long long)c->nodes,
                      supported ? "yes" : "no");
        sx_print_visible(stdout, sx_buf_text(&line));
        sx_buf_deinit(&line);
        nodes += c->nodes;
        good += supported;
        good_nodes += supported ? c->nodes : 0;
    }
    printf("%lld of %zu operator%s, %lld of %lld node%s\n", (long long)good, w->counts.count,
           w->counts.count == 1 ? "" : "s", (long long)good_nodes, (long long)nodes,
           nodes == 1 ? "" : "s");
}

/* Which signatures run, and why the others do not: a signature needs only some of the nodes, and an
 * operator may be supported, but not as a node has it. */
static sx_status print_signatures(const sx_saved_model *model, sx_arena *arena)
{
    size_t n = 0;
    const sx_signature *signatures = sx_saved_model_signatures(model, &n);
    sx_status *refused = sx_arena_array(arena, n + 1, sx_status);
    sx_library *library = NULL;
    if (refused == NULL) {
        return sx_no_memory("for the signatures");
    }
    SX_TRY(sx_import_library(model, NULL, &library, refused));
    int run = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        sx_buf line;
        if (strcmp(signatures[i].key, SX_INIT_SIGNATURE) == 0) { /* loading the model runs it */
            sx_status_free(refused[i]);
            continue;
        }
        all++;
        run += refused[i] == SX_OK;
        sx_buf_init(&line, 0);
        sx_buf_printf(&line, "signature %s: %s\n", signatures[i].key,
                      refused[i] == SX_OK ? "supported" : sx_status_message(refused[i]));
        sx_print_visible(stdout, sx_buf_text(&line));
        sx_buf_deinit(&line);
        sx_status_free(refused[i]);
    }
    printf("%d of %d signature%s can be run\n", run, all, all == 1 ? "" : "s");
    sx_library_destroy(library);
    return SX_OK;
}

static sx_status print_model(const sx_saved_model *model)
{
    struct walk w = {.graph = sx_saved_model_graph(model)};
    sx_arena_init(&w.arena, 0);
    sx_map_init(&w.nodes);
    sx_map_init(&w.functions);
    sx_map_init(&w.seen);
    sx_map_init(&w.called);
    sx_map_init(&w.counts);
    sx_status status = see_model(&w, model);
    if (status == SX_OK) {
        print_operators(&w);
        status = print_signatures(model, &w.arena);
    }
    sx_map_deinit(&w.counts);
    sx_map_deinit(&w.called);
    sx_map_deinit(&w.seen);
    sx_map_deinit(&w.functions);
    sx_map_deinit(&w.nodes);
    sx_arena_deinit(&w.arena);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    sx_saved_model *model = NULL;
    const char *dir = NULL;
    if (inv->words.count == 0) {
        print_table();
        return SX_OK;
    }
    sx_status found = sx_dir_find_saved_model(&inv->arena, inv->words.items[0], &dir);
    if (found != SX_OK && sx_op_find(inv->words.items[0]) != NULL) {
        found = sx_status_annotate(found, __FILE__, __LINE__,
                                   "%s is an operator, described by sextant-operators(7)",
                                   inv->words.items[0]);
    }
    SX_TRY(found);
    SX_TRY(sx_saved_model_open(dir, &model));
    sx_status status = print_model(model);
    sx_saved_model_close(model);
    return status;
}

const sx_command sx_command_ops = {
    .name = "ops",
    .summary = "list the operators, or those of a SavedModel",
    .words = "[MODEL_DIR]",
    .about =
        "For each operator: whether it has a host kernel, a kernel of its own on cpu (host: "
        "its host kernel is used), a StableHLO form for pjrt, a gradient (zero: it is zero; "
        "no: differentiating it is an error), a form in exported SavedModels, and the "
        "TensorFlow operators that are read as it. Of a SavedModel: the operators that its "
        "signatures need, how often each occurs, whether it is supported in any form, and which "
        "signatures can be run. For each of the others, prints what is not supported.",
    .examples = "  sextant ops\n  sextant ops models/flowers/1",
    .max_words = 1,
    .run = run,
};
