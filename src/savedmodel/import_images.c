/* Imports preprocessing of encoded images, which export marks (export.h), as one node. */
#include <jansson.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "image/preprocess.h"
#include "savedmodel/export.h"
#include "savedmodel/import_library_internal.h"

const ProtobufCBinaryData *sx_tf_preprocessing_of(const Tensorflow__NodeDef *node)
{
    const Tensorflow__AttrValue *mark = sx_tf_node_attr(node, SX_PREPROCESS_ATTRIBUTE);
    return mark != NULL && mark->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S ? &mark->s : NULL;
}

/* The only strings that lead to a node, of those that are fed: inputs of the signature, or
 * arguments of the function. */
static sx_status find_strings(const sx_tf_body *body, int node, sx_tf_thing *out)
{
    int *stack = sx_alloc(body->n_nodes + 1, sizeof(*stack)), depth = 0, n_found = 0;
    bool *seen = sx_alloc(body->n_nodes + 1, sizeof(*seen));
    sx_status status = stack == NULL || seen == NULL ? sx_import_memory() : SX_OK;
    if (status == SX_OK) {
        stack[depth++] = node;
        seen[node] = true;
    }
    while (depth > 0) {
        const Tensorflow__NodeDef *at = body->nodes[stack[--depth]];
        for (size_t i = 0; i < at->n_input; i++) {
            sx_tf_ref ref;
            const bool parsed = sx_tf_ref_parse(at->input[i], &ref) && !ref.control;
            const int arg = parsed ? sx_tf_body_find_arg(body, &ref) : -1;
            const int from = parsed && arg < 0 ? sx_tf_body_find_node(body, &ref) : -1;
            const sx_tf_thing *fed = arg >= 0    ? &body->args[arg]
                                     : from >= 0 ? body->results[from]
                                                 : NULL;
            if (fed != NULL && fed->kind == SX_TF_VALUE &&
                sx_type_of_value(body->b, fed->value).dtype == SX_STRING &&
                (n_found == 0 || out->value.id != fed->value.id)) {
                *out = *fed;
                n_found++;
            } else if (fed == NULL && from >= 0 && !seen[from]) {
                seen[from] = true;
                stack[depth++] = from;
            }
        }
    }
    sx_free(stack);
    sx_free(seen);
    SX_TRY(status);
    return n_found == 1 ? SX_OK
                        : sx_error(SX_UNIMPLEMENTED,
                                   "it decodes images, but %d inputs of strings lead to it, "
                                   "expected one",
                                   n_found);
}

sx_status sx_tf_import_images(sx_tf_body *body, int node, const ProtobufCBinaryData *text,
                              sx_tf_import_node *n)
{
    sx_tf_thing strings = {0};
    sx_preprocess pre;
    json_error_t error;
    SX_TRY(find_strings(body, node, &strings));
    json_t *json = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, SX_PREPROCESS_ATTRIBUTE ": %s", error.text);
    }
    sx_status status = sx_preprocess_from_json(json, &pre);
    json_decref(json);
    SX_TRY(status, SX_PREPROCESS_ATTRIBUTE);
    const sx_preprocess_image_attrs attrs = {.height = pre.height,
                                             .width = pre.width,
                                             .channels = pre.channels,
                                             .resize = (int32_t)pre.resize,
                                             .extra_height = pre.extra_height,
                                             .extra_width = pre.extra_width,
                                             .scale = (int32_t)pre.scale,
                                             .mean_0 = (double)pre.mean[0],
                                             .mean_1 = (double)pre.mean[1],
                                             .mean_2 = (double)pre.mean[2],
                                             .std_0 = (double)pre.std[0],
                                             .std_1 = (double)pre.std[1],
                                             .std_2 = (double)pre.std[2]};
    const sx_type in = sx_type_of_value(body->b, strings.value);
    sx_type out[SX_MAX_OUTPUTS] = {{.dtype = SX_F32, .rank = SX_UNKNOWN_RANK}};
    int n_out = 1;
    if (in.rank != SX_UNKNOWN_RANK) {
        SX_TRY(sx_infer_types(&sx_op_preprocess_image, &attrs, &in, 1, out, &n_out));
    }
    n->out[0] =
        (sx_tf_thing){.kind = SX_TF_VALUE,
                      .value = sx_build_node(body->b, &(sx_node_spec){.op = &sx_op_preprocess_image,
                                                                      .attrs = &attrs,
                                                                      .inputs = &strings.value,
                                                                      .n_inputs = 1,
                                                                      .types = out,
                                                                      .n_types = 1,
                                                                      .device = "",
                                                                      .file = ""})};
    return SX_OK;
}
