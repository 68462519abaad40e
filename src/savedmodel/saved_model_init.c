/* What runs when a model is loaded, as its graph says it: see saved_model_read.h. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "proto/guard.h"
#include "savedmodel/saved_model_read.h"

#define ASSETS_DIR "assets"

static const Tensorflow__CollectionDef *find_collection(const sx_saved_model *m, const char *name)
{
    const Tensorflow__MetaGraphDef *meta = sx_saved_model_meta(m);
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        if (strcmp(meta->collection_def[i]->key, name) == 0) {
            return meta->collection_def[i]->value;
        }
    }
    return NULL;
}

const char *sx_saved_model_init_op(const sx_saved_model *m)
{
    static const char *const collections[] = {"saved_model_main_op", "legacy_init_op"};
    size_t n;
    const sx_signature *signatures = sx_saved_model_signatures(m, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(signatures[i].key, SX_INIT_SIGNATURE) == 0 && signatures[i].n_outputs == 1) {
            return signatures[i].outputs[0].tensor;
        }
    }
    for (size_t i = 0; i < SX_COUNT(collections); i++) {
        const Tensorflow__CollectionDef *c = find_collection(m, collections[i]);
        if (c != NULL && c->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST &&
            c->node_list->n_value == 1) {
            return c->node_list->value[0];
        }
    }
    return "";
}

static sx_status add_asset(const Tensorflow__AssetFileDef *def, sx_arena *arena,
                           sx_saved_asset *out)
{
    if (def->tensor_info == NULL || def->filename[0] == '\0' ||
        strchr(def->filename, '/') != NULL) {
        return sx_error(SX_DATA_LOSS, "an asset is \"%.100s\", expected the name of a file",
                        def->filename);
    }
    out->tensor = sx_arena_strdup(arena, def->tensor_info->name);
    out->path = sx_arena_printf(arena, ASSETS_DIR "/%s", def->filename);
    return out->tensor != NULL && out->path != NULL ? SX_OK : sx_no_memory("for a SavedModel");
}

sx_status sx_saved_model_assets(const sx_saved_model *m, sx_arena *arena, sx_saved_asset **out,
                                size_t *out_n)
{
    const Tensorflow__MetaGraphDef *meta = sx_saved_model_meta(m);
    const Tensorflow__CollectionDef *c = find_collection(m, "saved_model_assets");
    const bool listed = c != NULL && c->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_ANY_LIST;
    const size_t n = meta->n_asset_file_def > 0 ? meta->n_asset_file_def
                     : listed                   ? c->any_list->n_value
                                                : 0;
    *out = sx_arena_array(arena, n + 1, sx_saved_asset);
    *out_n = n;
    if (*out == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    for (size_t i = 0; i < n; i++) {
        if (meta->n_asset_file_def > 0) {
            SX_TRY(add_asset(meta->asset_file_def[i], arena, &(*out)[i]));
            continue;
        }
        const ProtobufCBinaryData *bytes = &c->any_list->value[i]->value;
        ProtobufCMessage *message = NULL;
        SX_TRY(sx_proto_unpack(&tensorflow__asset_file_def__descriptor,
                               (sx_bytes){bytes->data, bytes->len}, NULL, "an asset", &message));
        sx_status status = add_asset((const Tensorflow__AssetFileDef *)message, arena, &(*out)[i]);
        sx_proto_free(message);
        SX_TRY(status);
    }
    return SX_OK;
}

bool sx_tf_is_table(const char *tf_op)
{
    static const char *const names[] = {
        "HashTable",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "MutableDenseHashTable",
        "HashTableV2",
        "MutableHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableDenseHashTableV2",
    };
    bool is = false;
    for (size_t i = 0; i < SX_COUNT(names) && !is; i++) {
        is = strcmp(names[i], tf_op) == 0;
    }
    return is;
}

const char *sx_tf_table_name(const Tensorflow__NodeDef *node, sx_arena *arena)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(node, "shared_name");
    const bool shared =
        a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S && a->s.len > 0;
    return shared ? sx_arena_strndup(arena, (const char *)a->s.data, a->s.len)
                  : sx_arena_printf(arena, "node %s", node->name);
}
