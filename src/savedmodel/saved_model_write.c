#include "savedmodel/saved_model_write.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/path.h"
#include "proto/guard.h"
#include "proto/saved_model.pb-c.h"
#include "proto/variable.pb-c.h"
#include "checkpoint/bundle.h"
#include "io/dir_commit.h"
#include "savedmodel/tf_attrs.h"
#include "savedmodel/versions.h"

#define PREDICT_METHOD "tensorflow/serving/predict"
#define ASSET_TYPE_URL "type.googleapis.com/tensorflow.AssetFileDef"

struct variable {
    struct variable *next;
    const char *name;
    sx_type type;
    bool trainable;
    sx_tf_value handle, read, assign;
};

struct asset {
    struct asset *next;
    const char *filename;
    sx_bytes contents;
    sx_tf_value path;
};

struct port { /* an input or output of a signature */
    struct port *next;
    const char *key;
    sx_tf_value value;
    sx_type type;
};

struct signature {
    struct signature *next;
    const char *key;
    struct port *inputs, *outputs;
};

struct sx_saved_model_writer {
    sx_tf_graph *graph;
    sx_arena *arena; /* the graph's */
    sx_status error;
    struct variable *variables, **variables_end;
    struct asset *assets, **assets_end;
    struct signature *signatures, **signatures_end, *open;
    size_t n_variables, n_assets, n_signatures;
    sx_tf_value prefix, save, restore_all, init;
    bool has_saver, has_init;
};

static void fail(sx_saved_model_writer *w, sx_status status)
{
    if (w->error == SX_OK) {
        w->error = status;
    } else {
        sx_status_free(status);
    }
}

sx_status sx_saved_model_writer_create(sx_saved_model_writer **out_writer)
{
    sx_saved_model_writer *w = sx_alloc(1, sizeof(*w));
    if (w == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    sx_status status = sx_tf_graph_create(&w->graph);
    if (status != SX_OK) {
        sx_free(w);
        return status;
    }
    w->arena = sx_tf_graph_arena(w->graph);
    w->variables_end = &w->variables;
    w->assets_end = &w->assets;
    w->signatures_end = &w->signatures;
    *out_writer = w;
    return SX_OK;
}

void sx_saved_model_writer_destroy(sx_saved_model_writer *w)
{
    if (w != NULL) {
        sx_tf_graph_destroy(w->graph);
        sx_status_free(w->error);
        sx_free(w);
    }
}

sx_tf_writer *sx_saved_model_nodes(sx_saved_model_writer *w)
{
    return sx_tf_graph_writer(w->graph);
}

/* ---- What the model has ---- */

sx_tf_value sx_saved_model_handle(sx_saved_model_writer *w, const char *name)
{
    for (const struct variable *v = w->variables; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            return v->handle;
        }
    }
    return (sx_tf_value){-1, 0};
}

sx_tf_value sx_saved_model_variable(sx_saved_model_writer *w, const char *name, const sx_type *type,
                                    bool trainable)
{
    sx_tf_writer *nodes = sx_saved_model_nodes(w);
    struct variable *v = sx_arena_new(w->arena, struct variable);
    char *copy = sx_arena_strdup(w->arena, name);
    if (v == NULL || copy == NULL) {
        fail(w, sx_no_memory("for a SavedModel"));
        return (sx_tf_value){-1, 0};
    }
    *v = (struct variable){.name = copy, .type = *type, .trainable = trainable};
    v->handle = sx_tf_add(nodes, "VarHandleOp", name, SX_TF_NO_IN,
                          sx_tf_attrs(sx_tf_attr_type("dtype", type->dtype),
                                      sx_tf_attr_shape("shape", type),
                                      sx_tf_attr_string("shared_name", name)));
    sx_tf_scope_push(nodes, name);
    v->read = sx_tf_add(nodes, "ReadVariableOp", "Read/ReadVariableOp", sx_tf_in(v->handle),
                        sx_tf_attrs(sx_tf_attr_type("dtype", type->dtype)));
    sx_tf_scope_pop(nodes);
    *w->variables_end = v;
    w->variables_end = &v->next;
    w->n_variables++;
    return v->read;
}

sx_tf_value sx_saved_model_asset(sx_saved_model_writer *w, const char *filename, sx_bytes contents)
{
    struct asset *a = sx_arena_new(w->arena, struct asset);
    char *copy = sx_arena_strdup(w->arena, filename);
    void *bytes = sx_arena_memdup(w->arena, contents.data, contents.size);
    if (a == NULL || copy == NULL || bytes == NULL) {
        fail(w, sx_no_memory("for a SavedModel"));
        return (sx_tf_value){-1, 0};
    }
    if (!sx_path_is_safe(filename, strlen(filename)) || strchr(filename, '/') != NULL) {
        fail(w, sx_error(SX_INVALID_ARGUMENT, "asset \"%s\" is not a plain file name", filename));
    }
    *a = (struct asset){.filename = copy, .contents = {bytes, contents.size}};
    sx_bytes path = {filename, strlen(filename)};
    a->path = sx_tf_const(sx_saved_model_nodes(w), "asset_path",
                          &(sx_tensor){sx_scalar_type(SX_STRING), &path});
    *w->assets_end = a;
    w->assets_end = &a->next;
    w->n_assets++;
    return a->path;
}

void sx_saved_model_signature(sx_saved_model_writer *w, const char *key)
{
    struct signature *s = sx_arena_new(w->arena, struct signature);
    char *copy = sx_arena_strdup(w->arena, key);
    if (s == NULL || copy == NULL) {
        fail(w, sx_no_memory("for a SavedModel"));
        w->open = NULL;
        return;
    }
    s->key = copy;
    *w->signatures_end = s;
    w->signatures_end = &s->next;
    w->n_signatures++;
    w->open = s;
}

static void add_port(sx_saved_model_writer *w, struct port **list, const char *key,
                     sx_tf_value value, const sx_type *type)
{
    struct port *p = sx_arena_new(w->arena, struct port);
    char *copy = sx_arena_strdup(w->arena, key);
    if (p == NULL || copy == NULL) {
        fail(w, sx_no_memory("for a SavedModel"));
        return;
    }
    *p = (struct port){*list, copy, value, *type};
    *list = p;
}

void sx_saved_model_input(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                          const sx_type *type)
{
    if (w->open != NULL) {
        add_port(w, &w->open->inputs, key, value, type);
    }
}

void sx_saved_model_output(sx_saved_model_writer *w, const char *key, sx_tf_value value,
                           const sx_type *type)
{
    if (w->open != NULL) {
        add_port(w, &w->open->outputs, key, value, type);
    }
}

/* ---- Saving and restoring ---- */

static sx_tf_value string_vector(sx_saved_model_writer *w, const char *name, const sx_bytes *items)
{
    sx_tensor tensor = {sx_type_of(SX_STRING, (int64_t)w->n_variables), (void *)(uintptr_t)items};
    return sx_tf_const(sx_saved_model_nodes(w), name, &tensor);
}

/* The nodes save/...: the prefix placeholder, SaveV2, RestoreV2, one assignment per variable. */
static sx_status add_saver(sx_saved_model_writer *w)
{
    size_t n = w->n_variables;
    sx_tf_writer *nodes = sx_saved_model_nodes(w);
    sx_bytes *names = sx_arena_array(w->arena, n, sx_bytes);
    sx_bytes *slices = sx_arena_array(w->arena, n, sx_bytes);
    int *types = sx_arena_array(w->arena, n, int);
    sx_tf_value *saved = sx_arena_array(w->arena, n + 3, sx_tf_value);
    sx_tf_value *assigns = sx_arena_array(w->arena, n, sx_tf_value);
    if (names == NULL || slices == NULL || types == NULL || saved == NULL || assigns == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    size_t i = 0;
    for (const struct variable *v = w->variables; v != NULL; v = v->next, i++) {
        names[i] = (sx_bytes){v->name, strlen(v->name)};
        slices[i] = (sx_bytes){"", 0};
        types[i] = (int)v->type.dtype;
        saved[3 + i] = v->read;
    }
    sx_tf_attr_list dtypes = sx_tf_attrs(sx_tf_attr_types("dtypes", (int)n, types));
    sx_bytes model = {"model", 5};
    sx_tf_scope_push(nodes, "save");
    w->prefix = sx_tf_const(nodes, "Const", &(sx_tensor){sx_scalar_type(SX_STRING), &model});
    saved[0] = w->prefix;
    saved[1] = string_vector(w, "SaveV2/tensor_names", names);
    saved[2] = string_vector(w, "SaveV2/shape_and_slices", slices);
    sx_tf_value save = sx_tf_add(nodes, "SaveV2", NULL, (sx_tf_values){saved, (int)n + 3}, dtypes);
    w->save = sx_tf_add(nodes, "Identity", "control_dependency", sx_tf_in(w->prefix),
                        sx_tf_attrs(sx_tf_attr_type("T", SX_STRING)));
    sx_tf_value restore =
        sx_tf_add(nodes, "RestoreV2", NULL,
                  sx_tf_in(w->prefix, string_vector(w, "RestoreV2/tensor_names", names),
                           string_vector(w, "RestoreV2/shape_and_slices", slices)),
                  dtypes);
    i = 0;
    for (struct variable *v = w->variables; v != NULL; v = v->next, i++) {
        v->assign = sx_tf_add(nodes, "AssignVariableOp", NULL,
                              sx_tf_in(v->handle, sx_tf_output(restore, (int)i)),
                              sx_tf_attrs(sx_tf_attr_type("dtype", v->type.dtype)));
        assigns[i] = v->assign;
    }
    w->restore_all = sx_tf_add(nodes, "NoOp", "restore_all", SX_TF_NO_IN, SX_TF_NO_ATTRS);
    sx_tf_scope_pop(nodes);
    sx_tf_control(nodes, w->save, sx_tf_in(save));
    sx_tf_control(nodes, w->restore_all, (sx_tf_values){assigns, (int)n});
    return SX_OK;
}

/* ---- Initialization ---- */

/* The vocabularies' assets, what fills the tables from them, and the operation that runs all of it
 * when the model is loaded. */
static sx_status add_init(sx_saved_model_writer *w)
{
    sx_tf_writer *nodes = sx_saved_model_nodes(w);
    const sx_tf_vocabulary_table *first = sx_tf_graph_vocabularies(w->graph);
    int n = 0;
    for (const sx_tf_vocabulary_table *t = first; t != NULL; t = t->next) {
        n++;
    }
    sx_tf_value *fills = sx_arena_array(w->arena, n + 1, sx_tf_value);
    if (fills == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    n = 0;
    sx_tf_scope_push(nodes, "init");
    for (const sx_tf_vocabulary_table *t = first; t != NULL; t = t->next) {
        const char *file = sx_arena_printf(w->arena, "%s.txt", t->shared_name);
        if (file == NULL) {
            return sx_no_memory("for a SavedModel");
        }
        const sx_tf_attr offset = sx_tf_attr_int("offset", t->first_id);
        const sx_tf_value path = sx_saved_model_asset(w, file, t->lines);
        const sx_tf_attr attrs[] = {sx_tf_attr_int("key_index", -2),
                                    sx_tf_attr_int("value_index", -1), offset};
        fills[n++] =
            sx_tf_add(nodes, "InitializeTableFromTextFileV2", NULL, sx_tf_in(t->handle, path),
                      (sx_tf_attr_list){attrs, t->first_id != 0 ? 3 : 2});
    }
    w->init = sx_tf_add(nodes, "NoOp", "all", SX_TF_NO_IN, SX_TF_NO_ATTRS);
    sx_tf_scope_pop(nodes);
    sx_tf_control(nodes, w->init, (sx_tf_values){fills, n});
    return SX_OK;
}

/* ---- Messages ---- */

/* A new message of a protobuf-c type, in the arena. */
#define NEW(w, type, init) ((type *)new_message((w)->arena, sizeof(type), (void (*)(void *))(init)))

static void *new_message(sx_arena *arena, size_t bytes, void (*init)(void *))
{
    void *message = sx_arena_alloc(arena, bytes, 1);
    if (message != NULL) {
        init(message);
    }
    return message;
}

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

static Tensorflow__TensorInfo *tensor_info(sx_saved_model_writer *w, sx_tf_value value,
                                           const sx_type *type)
{
    Tensorflow__TensorInfo *info = NEW(w, Tensorflow__TensorInfo, tensorflow__tensor_info__init);
    if (info == NULL) {
        return NULL;
    }
    info->name = text(sx_tf_graph_tensor_name(w->graph, value));
    info->dtype = (Tensorflow__DataType)type->dtype;
    info->tensor_shape = sx_tf_shape_message(w->arena, type);
    return info->name == NULL || info->tensor_shape == NULL ? NULL : info;
}

static size_t count_ports(const struct port *p)
{
    size_t n = 0;
    for (; p != NULL; p = p->next) {
        n++;
    }
    return n;
}

/* Inputs and outputs are maps with two generated types of the same layout. */
#define FILL_PORTS(Entry, entry_init, list, out_items, out_count)                            \
    do {                                                                                     \
        (out_items) = sx_arena_array(w->arena, count_ports(list) + 1, Entry *);              \
        for (const struct port *p = (list); (out_items) != NULL && p != NULL; p = p->next) { \
            Entry *e = NEW(w, Entry, entry_init);                                            \
            Tensorflow__TensorInfo *info = tensor_info(w, p->value, &p->type);               \
            if (e == NULL || info == NULL) {                                                 \
                return NULL;                                                                 \
            }                                                                                \
            e->key = text(p->key);                                                           \
            e->value = info;                                                                 \
            (out_items)[(out_count)++] = e;                                                  \
        }                                                                                    \
    } while (0)

static Tensorflow__SignatureDef *signature_message(sx_saved_model_writer *w,
                                                   const struct signature *s)
{
    Tensorflow__SignatureDef *m = NEW(w, Tensorflow__SignatureDef, tensorflow__signature_def__init);
    if (m == NULL) {
        return NULL;
    }
    FILL_PORTS(Tensorflow__SignatureDef__InputsEntry, tensorflow__signature_def__inputs_entry__init,
               s->inputs, m->inputs, m->n_inputs);
    FILL_PORTS(Tensorflow__SignatureDef__OutputsEntry,
               tensorflow__signature_def__outputs_entry__init, s->outputs, m->outputs,
               m->n_outputs);
    m->method_name = text(PREDICT_METHOD);
    return m->inputs != NULL && m->outputs != NULL ? m : NULL;
}

static bool fill_signatures(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta)
{
    meta->signature_def = sx_arena_array(w->arena, w->n_signatures + 1,
                                         Tensorflow__MetaGraphDef__SignatureDefEntry *);
    if (meta->signature_def == NULL) {
        return false;
    }
    for (const struct signature *s = w->signatures; s != NULL; s = s->next) {
        Tensorflow__MetaGraphDef__SignatureDefEntry *e =
            NEW(w, Tensorflow__MetaGraphDef__SignatureDefEntry,
                tensorflow__meta_graph_def__signature_def_entry__init);
        if (e == NULL || (e->value = signature_message(w, s)) == NULL) {
            return false;
        }
        e->key = text(s->key);
        meta->signature_def[meta->n_signature_def++] = e;
    }
    return true;
}

/* Packs a message into arena bytes. */
static bool pack(sx_arena *arena, const ProtobufCMessage *message, ProtobufCBinaryData *out)
{
    out->len = protobuf_c_message_get_packed_size(message);
    out->data = sx_arena_alloc(arena, out->len + 1, 1);
    if (out->data != NULL) {
        protobuf_c_message_pack(message, out->data);
    }
    return out->data != NULL;
}

static bool add_collection(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta,
                           const char *key, Tensorflow__CollectionDef *value)
{
    Tensorflow__MetaGraphDef__CollectionDefEntry *e =
        NEW(w, Tensorflow__MetaGraphDef__CollectionDefEntry,
            tensorflow__meta_graph_def__collection_def_entry__init);
    if (e == NULL || value == NULL) {
        return false;
    }
    e->key = text(key);
    e->value = value;
    meta->collection_def[meta->n_collection_def++] = e;
    return true;
}

static bool variable_bytes(sx_saved_model_writer *w, const struct variable *v,
                           ProtobufCBinaryData *out)
{
    Tensorflow__VariableDef def = TENSORFLOW__VARIABLE_DEF__INIT;
    def.variable_name = text(sx_tf_graph_tensor_name(w->graph, v->handle));
    def.initializer_name = text(sx_tf_graph_node_name(w->graph, v->assign));
    def.snapshot_name = text(sx_tf_graph_tensor_name(w->graph, v->read));
    def.is_resource = true;
    def.trainable = v->trainable;
    return def.variable_name != NULL && def.snapshot_name != NULL && pack(w->arena, &def.base, out);
}

static Tensorflow__CollectionDef *variables_collection(sx_saved_model_writer *w,
                                                       bool trainable_only)
{
    Tensorflow__CollectionDef *c =
        NEW(w, Tensorflow__CollectionDef, tensorflow__collection_def__init);
    Tensorflow__CollectionDef__BytesList *list =
        NEW(w, Tensorflow__CollectionDef__BytesList, tensorflow__collection_def__bytes_list__init);
    ProtobufCBinaryData *items = sx_arena_array(w->arena, w->n_variables + 1, ProtobufCBinaryData);
    if (c == NULL || list == NULL || items == NULL) {
        return NULL;
    }
    for (const struct variable *v = w->variables; v != NULL; v = v->next) {
        if ((v->trainable || !trainable_only) && !variable_bytes(w, v, &items[list->n_value++])) {
            return NULL;
        }
    }
    list->value = items;
    c->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
    c->bytes_list = list;
    return c;
}

static Tensorflow__AssetFileDef *asset_message(sx_saved_model_writer *w, const struct asset *a)
{
    const sx_type scalar = sx_scalar_type(SX_STRING);
    Tensorflow__AssetFileDef *m =
        NEW(w, Tensorflow__AssetFileDef, tensorflow__asset_file_def__init);
    if (m == NULL || (m->tensor_info = tensor_info(w, a->path, &scalar)) == NULL) {
        return NULL;
    }
    m->filename = text(a->filename);
    return m;
}

/* Assets are written twice: in the field, and in the collection that older loaders read. */
static bool fill_assets(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta)
{
    Tensorflow__CollectionDef *c =
        NEW(w, Tensorflow__CollectionDef, tensorflow__collection_def__init);
    Tensorflow__CollectionDef__AnyList *list =
        NEW(w, Tensorflow__CollectionDef__AnyList, tensorflow__collection_def__any_list__init);
    meta->asset_file_def = sx_arena_array(w->arena, w->n_assets + 1, Tensorflow__AssetFileDef *);
    if (c == NULL || list == NULL || meta->asset_file_def == NULL) {
        return false;
    }
    list->value = sx_arena_array(w->arena, w->n_assets + 1, Tensorflow__Any *);
    for (const struct asset *a = w->assets; a != NULL; a = a->next) {
        Tensorflow__AssetFileDef *m = asset_message(w, a);
        Tensorflow__Any *any = NEW(w, Tensorflow__Any, tensorflow__any__init);
        if (m == NULL || any == NULL || list->value == NULL ||
            !pack(w->arena, &m->base, &any->value)) {
            return false;
        }
        any->type_url = text(ASSET_TYPE_URL);
        list->value[list->n_value++] = any;
        meta->asset_file_def[meta->n_asset_file_def++] = m;
    }
    c->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_ANY_LIST;
    c->any_list = list;
    return add_collection(w, meta, "saved_model_assets", c);
}

static bool fill_saver(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta)
{
    Tensorflow__SaverDef *saver = NEW(w, Tensorflow__SaverDef, tensorflow__saver_def__init);
    if (saver == NULL) {
        return false;
    }
    saver->filename_tensor_name = text(sx_tf_graph_tensor_name(w->graph, w->prefix));
    saver->save_tensor_name = text(sx_tf_graph_tensor_name(w->graph, w->save));
    saver->restore_op_name = text(sx_tf_graph_node_name(w->graph, w->restore_all));
    saver->version = TENSORFLOW__SAVER_DEF__CHECKPOINT_FORMAT_VERSION__V2;
    if (saver->filename_tensor_name == NULL || saver->save_tensor_name == NULL) {
        return false;
    }
    meta->saver_def = saver;
    return add_collection(w, meta, "variables", variables_collection(w, false)) &&
           add_collection(w, meta, "trainable_variables", variables_collection(w, true));
}

/* The operation that loaders run once. */
static bool fill_init(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta)
{
    Tensorflow__CollectionDef *c =
        NEW(w, Tensorflow__CollectionDef, tensorflow__collection_def__init);
    Tensorflow__CollectionDef__NodeList *list =
        NEW(w, Tensorflow__CollectionDef__NodeList, tensorflow__collection_def__node_list__init);
    char **names = sx_arena_new(w->arena, char *);
    if (c == NULL || list == NULL || names == NULL) {
        return false;
    }
    *names = text(sx_tf_graph_node_name(w->graph, w->init));
    list->n_value = 1;
    list->value = names;
    c->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST;
    c->node_list = list;
    return *names != NULL && add_collection(w, meta, "saved_model_main_op", c);
}

static bool fill_info(sx_saved_model_writer *w, Tensorflow__MetaGraphDef *meta)
{
    Tensorflow__MetaGraphDef__MetaInfoDef *info = NEW(
        w, Tensorflow__MetaGraphDef__MetaInfoDef, tensorflow__meta_graph_def__meta_info_def__init);
    char **tags = sx_arena_new(w->arena, char *);
    if (info == NULL || tags == NULL) {
        return false;
    }
    *tags = text("serve");
    info->n_tags = 1;
    info->tags = tags;
    info->stripped_default_attrs = true;
    meta->meta_info_def = info;
    return true;
}

enum { MAX_COLLECTIONS = 4 };

static sx_status pack_model(sx_saved_model_writer *w, sx_buf *out)
{
    Tensorflow__SavedModel model = TENSORFLOW__SAVED_MODEL__INIT;
    Tensorflow__MetaGraphDef meta = TENSORFLOW__META_GRAPH_DEF__INIT, *metas[] = {&meta};
    Tensorflow__MetaGraphDef__CollectionDefEntry *collections[MAX_COLLECTIONS];
    meta.collection_def = collections;
    SX_TRY(sx_tf_graph_finish(w->graph, &meta.graph_def));
    bool ok = fill_info(w, &meta) && fill_signatures(w, &meta) &&
              (w->n_variables == 0 || fill_saver(w, &meta)) &&
              (w->n_assets == 0 || fill_assets(w, &meta)) && (!w->has_init || fill_init(w, &meta));
    if (!ok) {
        return sx_no_memory("for a SavedModel");
    }
    model.saved_model_schema_version = 1;
    model.n_meta_graphs = 1;
    model.meta_graphs = metas;
    return sx_proto_pack(&model.base, out);
}

/* ---- Files ---- */

static sx_status put_variable(sx_bundle_writer *bundle, const struct variable *v,
                              sx_read_variable_fn *read, void *user)
{
    int64_t bytes = sx_type_bytes(&v->type);
    if (bytes < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "variable \"%s\" does not have a fixed size", v->name);
    }
    void *data = sx_alloc((size_t)bytes + 1, 1);
    if (data == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    sx_status status = read(user, v->name, &v->type, data);
    if (status == SX_OK) {
        status = sx_bundle_add(bundle, v->name, &(sx_tensor){v->type, data});
    }
    sx_free(data);
    return status;
}

static sx_status write_variables(sx_saved_model_writer *w, const char *dir,
                                 sx_read_variable_fn *read, void *user)
{
    char *folder = sx_arena_printf(w->arena, "%s/variables", dir);
    char *prefix = sx_arena_printf(w->arena, "%s/variables/variables", dir);
    if (folder == NULL || prefix == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    SX_TRY(sx_dir_create(folder));
    sx_bundle_writer *bundle = NULL;
    SX_TRY(sx_bundle_writer_create(prefix, &bundle));
    sx_status status = SX_OK;
    for (const struct variable *v = w->variables; v != NULL && status == SX_OK; v = v->next) {
        status = put_variable(bundle, v, read, user);
    }
    if (status == SX_OK) {
        status = sx_bundle_writer_finish(bundle);
    }
    sx_bundle_writer_destroy(bundle);
    return status;
}

static sx_status write_assets(sx_saved_model_writer *w, const char *dir)
{
    char *folder = sx_arena_printf(w->arena, "%s/assets", dir);
    if (folder == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    SX_TRY(sx_dir_create(folder));
    for (const struct asset *a = w->assets; a != NULL; a = a->next) {
        char *path = sx_arena_printf(w->arena, "%s/%s", folder, a->filename);
        if (path == NULL) {
            return sx_no_memory("for a SavedModel");
        }
        SX_TRY(sx_commit_bytes(path, a->contents.data, a->contents.size));
    }
    return SX_OK;
}

/* saved_model.pb last: its commit syncs the directory that holds the other two. */
static sx_status write_files(sx_saved_model_writer *w, const char *dir, const sx_buf *model,
                             sx_read_variable_fn *read, void *user)
{
    char *path = sx_arena_printf(w->arena, "%s/" SX_SAVED_MODEL_FILE, dir);
    if (path == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    if (w->n_variables > 0) {
        SX_TRY(write_variables(w, dir, read, user));
    }
    if (w->n_assets > 0) {
        SX_TRY(write_assets(w, dir));
    }
    return sx_commit_bytes(path, model->data, model->size);
}

static sx_status write_directory(sx_saved_model_writer *w, const char *dir, const sx_buf *model,
                                 sx_read_variable_fn *read, void *user)
{
    sx_dir_commit commit = {.lock_fd = -1};
    SX_TRY(sx_dir_commit_begin(dir, &commit));
    sx_status status = write_files(w, commit.temp_path, model, read, user);
    if (status == SX_OK) {
        status = sx_dir_commit_finish(&commit);
    }
    sx_dir_commit_deinit(&commit);
    return status;
}

sx_status sx_saved_model_write(sx_saved_model_writer *w, const char *dir, sx_read_variable_fn *read,
                               void *user)
{
    if (w->n_variables > 0 && !w->has_saver) {
        SX_TRY(add_saver(w));
        w->has_saver = true;
    }
    if (sx_tf_graph_vocabularies(w->graph) != NULL && !w->has_init) {
        SX_TRY(add_init(w));
        w->has_init = true;
    }
    sx_status status = w->error;
    w->error = SX_OK;
    if (status != SX_OK) {
        return sx_status_annotate(status, __FILE__, __LINE__, "exporting %s", dir);
    }
    sx_buf model;
    sx_buf_init(&model, 0);
    status = pack_model(w, &model);
    if (status == SX_OK) {
        status = write_directory(w, dir, &model, read, user);
    }
    sx_buf_deinit(&model);
    return sx_status_annotate(status, __FILE__, __LINE__, "exporting %s", dir);
}

sx_status sx_saved_model_write_version(sx_saved_model_writer *w, const char *base,
                                       const char *version, sx_read_variable_fn *read, void *user,
                                       char **out_dir)
{
    enum { MAX_TRIES = 100 };
    for (int i = 1;; i++) {
        const char *dir = NULL;
        SX_TRY(sx_version_directory(base, version, w->arena, &dir));
        sx_status status = sx_saved_model_write(w, dir, read, user);
        if (status == SX_OK) {
            *out_dir = sx_strdup(dir);
            return *out_dir != NULL ? SX_OK : sx_no_memory("for a SavedModel");
        }
        const bool taken = sx_status_code(status) == SX_ALREADY_EXISTS && version == NULL;
        if (!taken || i == MAX_TRIES) {
            return status;
        }
        sx_status_free(status); /* another export took that number meanwhile: use the next one */
    }
}
