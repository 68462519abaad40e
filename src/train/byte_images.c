/* See byte_images.h. */
#include "train/byte_images.h"

#include "graph/passes/passes.h"
#include "train/feed.h"

const sx_model_input *sx_byte_image(const sx_run_info *info)
{
    if (!info->has_preprocess || info->has_program) { /* whose graph takes floats */
        return NULL;
    }
    return info->inputs.named ? sx_model_inputs_image(&info->inputs)
                              : sx_model_inputs_first(&info->inputs, SX_INPUT_FEATURE);
}

static bool has_bytes(const sx_run_info *info, sx_mode mode, const sx_dataset *data)
{
    int image, labels;
    sx_feed_components(data, &image, &labels);
    if (info->inputs.named) {
        image = sx_dataset_find(data, sx_byte_image(info)->name);
    }
    if (image < 0 || sx_dataset_batch_size(data) > 0) {
        return false;
    }
    const sx_type *type = &sx_dataset_schema(data)->components[image].type;
    const bool encoded = type->dtype == SX_STRING;
    return (encoded || (type->dtype == SX_U8 && type->rank >= 2)) &&
           sx_preprocess_is_whole(&info->preprocess, mode == SX_TRAIN, encoded ? NULL : type);
}

bool sx_can_feed_bytes(const sx_trainer *t, sx_mode mode, sx_dataset *const *data, int n)
{
    const sx_backend *backend =
        sx_session_device(sx_trainer_session_of(t, mode))->platform->backend;
    bool can = (backend->capabilities & SX_HAS_MEMORY) && sx_byte_image(&t->info) != NULL;
    for (int i = 0; i < n; i++) {
        can = can && has_bytes(&t->info, mode, data[i]);
    }
    return can;
}

sx_status sx_trainer_feed_bytes(sx_trainer *t, sx_mode mode, bool bytes)
{
    sx_graph *graph = NULL;
    if ((t->byte_graphs[mode] != NULL) == bytes) {
        return SX_OK;
    }
    if (bytes) {
        sx_affine scale;
        sx_preprocess_affine(&t->info.preprocess, &scale);
        SX_TRY(sx_run_graph_lost(&t->graphs, mode));
        SX_TRY(sx_pass_feed_bytes(t->graphs.by_mode[mode], sx_byte_image(&t->info)->program_name,
                                  t->info.preprocess.channels, scale.mul, scale.add, &graph));
    }
    if (t->programs[mode] != NULL) {
        sx_session_drop_program(sx_trainer_session_of(t, mode), t->programs[mode]);
    }
    t->programs[mode] = NULL;
    t->compiled[mode] = 0;
    sx_graph_destroy(t->byte_graphs[mode]);
    t->byte_graphs[mode] = graph;
    return SX_OK;
}
