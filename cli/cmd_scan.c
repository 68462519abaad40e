/* sextant scan: whether a SavedModel has operators that read or write files, as saved_model_cli
 * prints it. */
#include "command.h"
#include "saved_model_text.h"
#include "savedmodel/saved_model_read.h"

typedef struct options {
    const char *dir, *tag_set, *op_denylist;
} options;

static const sx_option rows[] = {
    {"dir", SX_OPTION_STRING, SX_OPT(options, dir), "directory of the SavedModel", "MODEL_DIR",
     .required = true},
    {"tag-set", SX_OPTION_STRING, SX_OPT(options, tag_set),
     "only the graph with these tags, comma-separated; default: all graphs", "TAGS"},
    {"op-denylist", SX_OPTION_STRING, SX_OPT(options, op_denylist),
     "operators to look for, comma-separated", "OPS"},
};

static const options defaults = {.op_denylist = "WriteFile,ReadFile,PrintV2"};

static sx_status put_graphs(sx_buf *out, const Tensorflow__SavedModel *model, const void *given)
{
    const options *o = given;
    const Tensorflow__MetaGraphDef *graph = NULL;
    if (o->tag_set != NULL) {
        SX_TRY(sx_saved_model_tagged(model, o->tag_set, &graph));
        return sx_put_scan(out, graph, o->op_denylist);
    }
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        SX_TRY(sx_put_scan(out, model->meta_graphs[i], o->op_denylist));
    }
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    return sx_print_saved_model(&inv->arena, o->dir, put_graphs, o);
}

const sx_command sx_command_scan = {
    .name = "scan",
    .summary = "look for operators in a SavedModel that read or write files",
    .words = "",
    .about =
        "As TensorFlow's saved_model_cli scan: for each graph, says whether it has operators "
        "from the list. Sextant itself runs no operator that writes files; ReadFile may read the "
        "assets of its model, and no other file.",
    .examples = "  sextant scan --dir models/flowers/1\n"
                "  sextant scan --dir models/flowers/1 --tag_set serve --op_denylist MatMul,PyFunc",
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
