/* See misfit.h. */
#include "train/misfit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/nearest.h"
#include "graph/ir.h"
#include "io/path.h"
#include "nn/model_program.h"
#include "train/feed.h"

/* ---- Layers ---- */

enum { LAYER_TEXT = 256 };

/* layer "dense_1" (flowers.c:19): the node's scope, and its line in the user's source. */
static const char *describe_layer(const sx_node *n, char *buffer)
{
    const char *leaf = n != NULL ? strrchr(n->name, '/') : NULL;
    int length = leaf != NULL ? (int)(leaf - n->name) : n != NULL ? (int)strlen(n->name) : 0;
    int used = snprintf(buffer, LAYER_TEXT, "layer \"%.*s\"", SX_MIN(length, LAYER_TEXT / 2),
                        n != NULL ? n->name : "");
    if (n != NULL && n->file[0] != '\0') {
        snprintf(buffer + used, (size_t)(LAYER_TEXT - used), " (%.64s:%d)",
                 sx_path_basename(n->file), n->line);
    }
    return buffer;
}

/* The first node that reads an input; NULL if none does. */
static const sx_node *first_taker(const sx_graph *g, const char *input)
{
    int arg = g != NULL ? sx_graph_find_arg(g, input) : -1;
    for (int i = 0; arg >= 0 && i < g->n_nodes; i++) {
        for (int k = 0; k < g->nodes[i].n_inputs; k++) {
            if (g->nodes[i].inputs[k].id == g->args[arg].value.id) {
                return &g->nodes[i];
            }
        }
    }
    return NULL;
}

static bool is_in_classifier(const sx_node *n)
{
    return strncmp(n->name, "classifier/", strlen("classifier/")) == 0;
}

/* The logits of a model made by sx_classifier_spec(); of other models the probabilities. */
static sx_value find_logits(const sx_graph *g, sx_value probabilities)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (is_in_classifier(&g->nodes[i]) && g->nodes[i].n_inputs > 0) {
            return g->nodes[i].inputs[0];
        }
    }
    return probabilities;
}

/* ---- Features and labels ---- */

/* Equal except for the batch dimension. */
static bool same_rows(const sx_type *a, const sx_type *b)
{
    sx_type x = sx_type_with_batch(*a, 1), y = sx_type_with_batch(*b, 1);
    return sx_type_equal(&x, &y);
}

sx_status sx_check_for_device(const sx_component *c)
{
    char has[SX_TYPE_TEXT];
    return c->type.dtype != SX_STRING
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "component \"%s\" of the data is %s, and strings cannot be sent to a "
                          "device; map it to numbers or drop it",
                          c->name, sx_type_format(&c->type, has, sizeof(has)));
}

sx_status sx_check_input(const sx_component *c, const sx_run_info *info,
                         const sx_model_input *input, const sx_graph *program)
{
    const sx_type *wanted = &input->type;
    sx_type type = c->type;
    SX_TRY(sx_check_for_device(c));
    if (wanted->dtype == SX_I32 && sx_feed_converts(type.dtype)) {
        type.dtype = SX_I32;
    }
    if (same_rows(&type, wanted)) {
        return SX_OK;
    }
    char has[SX_TYPE_TEXT], wants[SX_TYPE_TEXT], layer[LAYER_TEXT];
    const sx_node *taker = first_taker(program, input->program_name);
    const bool images = !info->inputs.named && wanted->rank == 4 && c->type.rank == 4;
    const char *advice =
        input->kind == SX_INPUT_LABEL ? "map the labels to this type"
        : images ? "map the data to this shape (unbatched encoded images and uint8 pixels are "
                   "resized automatically) or change the model"
                 : "map the data to this shape or change the model";
    return sx_error(SX_INVALID_ARGUMENT,
                    "component \"%s\" of the data is %s, but model \"%s\" expects %s%s%s; %s",
                    c->name, sx_type_format(&c->type, has, sizeof(has)), info->model,
                    sx_type_format(wanted, wants, sizeof(wants)), taker != NULL ? " for its " : "",
                    taker != NULL ? describe_layer(taker, layer) : "", advice);
}

sx_status sx_missing_input(const sx_dataset *data, const sx_run_info *info,
                           const sx_model_input *input)
{
    const sx_schema *schema = sx_dataset_schema(data);
    const char *names[SX_MAX_COMPONENTS];
    sx_buf known;
    sx_buf_init(&known, 1 << 14);
    for (int i = 0; i < schema->count; i++) {
        names[i] = schema->components[i].name;
    }
    sx_nearest_list(input->name, names, (size_t)schema->count, &known);
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT, "the data has no component \"%s\", a %s of model \"%s\" %s",
                 input->name, sx_input_kind_names[input->kind], info->model, sx_buf_text(&known));
    sx_buf_deinit(&known);
    return status;
}

/* ---- Classes ---- */

/* The "probabilities" of a predict program, [N,C]; empty if there are none. */
static sx_value find_probabilities(const sx_graph *g)
{
    int i = g != NULL ? sx_graph_find_output(g, "probabilities") : -1;
    if (i < 0 || sx_graph_type(g, g->results[i].value)->rank != 2) {
        return SX_NO_VALUE;
    }
    return g->results[i].value;
}

int64_t sx_program_classes(const sx_graph *predict)
{
    sx_value v = find_probabilities(predict);
    return sx_value_is(v) ? sx_graph_type(predict, v)->dims[1] : 0;
}

sx_status sx_check_classes(const sx_run_info *info, const sx_graph *predict, bool has_param)
{
    char layer[LAYER_TEXT], gives[SX_TYPE_TEXT], advice[128];
    int64_t classes = sx_program_classes(predict);
    if (classes == 0 || info->n_classes <= classes) {
        return SX_OK;
    }
    sx_value logits = find_logits(predict, find_probabilities(predict));
    const sx_type *type = sx_graph_type(predict, logits);
    bool yes_or_no = type->rank == 2 && type->dims[1] == 1;
    if (yes_or_no) {
        snprintf(advice, sizeof(advice),
                 "it is a binary classifier; use a model for several classes");
    } else if (has_param) {
        snprintf(advice, sizeof(advice), "set its parameter num_classes to %d", info->n_classes);
    } else {
        snprintf(advice, sizeof(advice),
                 "the model has a fixed number: use sx_param_int(p, \"num_classes\", %d) there",
                 info->n_classes);
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "the data has %d classes, the model \"%s\" has outputs for %" PRId64
                    ": its %s gives %s; %s",
                    info->n_classes, info->model, classes,
                    describe_layer(sx_graph_maker(predict, logits), layer),
                    sx_type_format(type, gives, sizeof(gives)), advice);
}

sx_status sx_check_class_names(const sx_dataset *data, const sx_run_info *info)
{
    int found = 0;
    const char *const *names = sx_dataset_class_names(data, &found);
    if (info->n_classes == 0 || found == 0) {
        return SX_OK;
    }
    for (int i = 0; i < SX_MIN(info->n_classes, found); i++) {
        if (strcmp(info->class_names[i], names[i]) != 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "class %d is \"%s\", but the run was trained with \"%s\"", i, names[i],
                            info->class_names[i]);
        }
    }
    return found <= info->n_classes
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "the data has %d classes, but the run was trained with %d", found,
                          info->n_classes);
}
