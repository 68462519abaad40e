#include "savedmodel/saved_model_read.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sextant/complex.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/guard.h"
#include "proto/trackable_object_graph.pb-c.h"

#define TAG_SERVE        "serve"
#define OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

enum {
    MAX_MODEL_BYTES = 1 << 30,
    MAX_OBJECT_GRAPH_BYTES = 64 << 20,
    BUDGET_FACTOR = 4,
    BUDGET_SLACK = 64 << 20,
};

struct sx_saved_model {
    sx_arena arena;
    const char *dir;
    ProtobufCMessage *message; /* the SavedModel, which owns strings and nodes */
    const Tensorflow__MetaGraphDef *meta;
    sx_signature *signatures;
    size_t n_signatures;
    sx_bundle *bundle;
    size_t budget_bytes;
    sx_budget *memory; /* while it is opened; NULL = no limit */
    bool dropped;      /* the bytes of constants */
    sx_map nodes;      /* of the graph: name -> NodeDef */
    sx_map ops;        /* name -> OpDef */
    sx_map variables;  /* VarHandleOp's name -> checkpoint key */
    sx_map parts;      /* the same -> part of the tensor, if it is not all of it */
    sx_map tables;     /* a table node's name -> sx_saved_table */
};

/* ---- Pieces of graphs ---- */

const Tensorflow__AttrValue *sx_tf_node_attr(const Tensorflow__NodeDef *node, const char *name)
{
    for (size_t i = node->n_attr; i-- > 0;) {
        if (strcmp(node->attr[i]->key, name) == 0) {
            return node->attr[i]->value;
        }
    }
    return NULL;
}

bool sx_tf_ref_parse(const char *text, sx_tf_ref *out)
{
    sx_tf_ref ref = {.control = *text == '^'};
    ref.node = text + (ref.control ? 1 : 0);
    ref.node_bytes = strcspn(ref.node, ":");
    const char *rest = ref.node + ref.node_bytes, *last = strrchr(ref.node, ':');
    if (*rest == ':') {
        const char *digits = last + 1;
        size_t n = strlen(digits);
        if (n == 0 || n > 6 || strspn(digits, "0123456789") != n) {
            return false;
        }
        ref.output = (int)strtol(digits, NULL, 10); /* at most six digits */
        if (last > rest) {
            ref.arg = rest + 1;
            ref.arg_bytes = (size_t)(last - rest) - 1;
        }
    }
    *out = ref;
    return ref.node_bytes > 0;
}

/* Nodes by name, of a graph or a function's body. */
static sx_status index_nodes(Tensorflow__NodeDef *const *nodes, size_t n, sx_map *out)
{
    for (size_t i = 0; i < n; i++) {
        SX_TRY(sx_map_put(out, nodes[i]->name, nodes[i]));
    }
    return SX_OK;
}

static const Tensorflow__NodeDef *find_ref(const sx_map *nodes, const char *text, int *out_output)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref) || ref.control) {
        return NULL;
    }
    *out_output = ref.output;
    return sx_map_get_bytes(nodes, ref.node, ref.node_bytes);
}

/* ---- Opening ---- */

static size_t budget_of(size_t file_bytes)
{
    return file_bytes * BUDGET_FACTOR + BUDGET_SLACK;
}

/* What files begin with that are found in the place of a SavedModel. */
static const struct {
    const char *begin, *what;
} not_models[] = {
    /* a node, field 1 of a GraphDef; field 1 of a SavedModel is a number */
    {"\x0a", "is a graph (GraphDef), not a SavedModel: in TensorFlow, "
             "tf.compat.v1.saved_model.simple_save makes a SavedModel of an imported graph"},
    {"version https://git-lfs.",
     "stands for a file that Git LFS stores, and is no SavedModel: get that with git lfs pull"},
    {"<", "is a text, perhaps the page of an error, not a SavedModel: download the model again"},
    {"", "is damaged, or is no SavedModel: copy it again, or export the model again"},
};

static sx_status unpack_within(size_t max_bytes, sx_bytes bytes, const char *name,
                               ProtobufCMessage **out)
{
    if (bytes.size == 0) {
        return sx_error(SX_DATA_LOSS,
                        "%s is an empty file: copy it again, or export the model again", name);
    }
    const sx_proto_limits limits = {.max_bytes = max_bytes,
                                    .max_messages = SX_MAX(bytes.size, 1000000u)};
    sx_status status =
        sx_proto_unpack(&tensorflow__saved_model__descriptor, bytes, &limits, name, out);
    if (sx_status_code(status) != SX_DATA_LOSS) {
        return status;
    }
    size_t row = 0;
    while (bytes.size < strlen(not_models[row].begin) ||
           memcmp(bytes.data, not_models[row].begin, strlen(not_models[row].begin)) != 0) {
        row++; /* the last begins any file */
    }
    const char *where = sx_status_message(status);
    where += strncmp(where, name, strlen(name)) == 0 ? strlen(name) + strlen(": ") : 0;
    sx_status why = sx_error(SX_DATA_LOSS, "%s %s (%s)", name, not_models[row].what, where);
    sx_status_free(status);
    return why;
}

static sx_status unpack(sx_saved_model *m, sx_bytes bytes, const char *name)
{
    m->budget_bytes = budget_of(bytes.size);
    size_t max_bytes = m->budget_bytes;
    if (m->memory != NULL && m->memory->limit_bytes > 0) {
        max_bytes = SX_MIN(max_bytes, m->memory->limit_bytes - sx_budget_used(m->memory));
    }
    sx_status status = unpack_within(max_bytes, bytes, name, &m->message);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && max_bytes < m->budget_bytes &&
        !sx_budget_charge(m->memory, max_bytes + 1)) {
        char *what = sx_arena_printf(&m->arena, "unpacking %s", name);
        sx_status_free(status);
        status = sx_budget_over(m->memory, what != NULL ? what : name, 0);
    }
    return status;
}

/* ---- Tags ---- */

static size_t count_tags(const Tensorflow__MetaGraphDef *graph)
{
    return graph->meta_info_def != NULL ? graph->meta_info_def->n_tags : 0;
}

/* The next tag of a list, without the blanks around it; NULL: there is none. */
static const char *next_tag(const char **list, size_t *out_bytes)
{
    *list += strspn(*list, ", ");
    const char *tag = *list;
    *list += strcspn(*list, ",");
    *out_bytes = (size_t)(*list - tag);
    while (*out_bytes > 0 && tag[*out_bytes - 1] == ' ') {
        --*out_bytes;
    }
    return *out_bytes > 0 ? tag : NULL;
}

/* Whether the graph has all tags of the list, and no other; they may be repeated. */
static bool has_tags(const Tensorflow__MetaGraphDef *graph, const char *list)
{
    const size_t n = count_tags(graph);
    char *const *own = n > 0 ? graph->meta_info_def->tags : NULL;
    size_t bytes;
    const char *tag, *rest = list;
    while ((tag = next_tag(&rest, &bytes)) != NULL) {
        size_t i = 0;
        while (i < n && (strlen(own[i]) != bytes || memcmp(own[i], tag, bytes) != 0)) {
            i++;
        }
        if (i == n) {
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        rest = list;
        do {
            tag = next_tag(&rest, &bytes);
        } while (tag != NULL && (strlen(own[i]) != bytes || memcmp(own[i], tag, bytes) != 0));
        if (tag == NULL) {
            return false;
        }
    }
    return true;
}

sx_status sx_saved_model_tagged(const Tensorflow__SavedModel *model, const char *tags,
                                const Tensorflow__MetaGraphDef **out)
{
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        const Tensorflow__MetaGraphDef *graph = model->meta_graphs[i];
        if (has_tags(graph, tags)) {
            *out = graph;
            return SX_OK;
        }
    }
    sx_buf known;
    sx_buf_init(&known, 4096);
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        const size_t n = count_tags(model->meta_graphs[i]);
        sx_buf_printf(&known, "%s%s", i > 0 ? ", " : "", n > 0 ? "\"" : "one without tags");
        for (size_t k = 0; k < n; k++) {
            const char *tag = model->meta_graphs[i]->meta_info_def->tags[k];
            sx_buf_puts(&known, k > 0 ? "," : ""); /* as the option takes them */
            sx_buf_put_visible(&known, tag, strlen(tag), "");
        }
        sx_buf_puts(&known, n > 0 ? "\"" : "");
    }
    sx_status status = sx_error(SX_NOT_FOUND, "no graph has the tags \"%s\"; the model has %s",
                                tags, model->n_meta_graphs > 0 ? sx_buf_text(&known) : "no graph");
    sx_buf_deinit(&known);
    return status;
}

static sx_status pick_meta(sx_saved_model *m, const char *tags, const char *path)
{
    SX_TRY(sx_saved_model_tagged((const Tensorflow__SavedModel *)m->message,
                                 tags != NULL ? tags : TAG_SERVE, &m->meta),
           "%s", path);
    if (m->meta->graph_def == NULL) {
        return sx_error(SX_DATA_LOSS, "%s has no graph", path);
    }
    return SX_OK;
}

/* ---- Signatures ---- */

bool sx_tf_type(int tf_dtype, const Tensorflow__TensorShapeProto *shape, sx_type *out)
{
    const size_t rank = shape == NULL ? 0 : shape->n_dim;
    const sx_dtype dtype = sx_tf_plain_dtype(tf_dtype);
    const bool known = sx_dtype_is_data(dtype) || sx_dtype_is_complex(dtype);
    *out = sx_scalar_type(known ? dtype : SX_DTYPE_NONE);
    if (rank > SX_MAX_RANK || (shape != NULL && shape->unknown_rank)) {
        return false;
    }
    for (size_t i = 0; i < rank; i++) {
        const int64_t size = shape->dim[i]->size;
        out->dims[i] = size >= 0 ? size : i == 0 ? SX_BATCH : SX_UNKNOWN_DIM;
    }
    out->rank = (int)rank;
    return true;
}

static sx_signature_tensor signature_tensor(const char *key, const Tensorflow__TensorInfo *info)
{
    sx_signature_tensor t = {.key = key,
                             .tensor = info->name,
                             .tf_dtype = (int)info->dtype,
                             .no_shape = info->tensor_shape == NULL};
    t.unknown_rank = !sx_tf_type(t.tf_dtype, info->tensor_shape, &t.type);
    return t;
}

static int by_tensor_key(const void *a, const void *b)
{
    return strcmp(((const sx_signature_tensor *)a)->key, ((const sx_signature_tensor *)b)->key);
}

/* ---- Sparse, ragged: several tensors by one key ---- */

enum { SPARSE = 1, RAGGED = 3 }; /* TypeSpecProto.TypeSpecClass */
enum { COO_PARTS = 3 };
static const char *const coo_parts[COO_PARTS] = {"indices", "values", "dense_shape"};

/* How many tensors the entry stands for. */
static size_t n_parts(const Tensorflow__TensorInfo *info)
{
    return info->composite_tensor != NULL ? info->composite_tensor->n_components
           : info->coo_sparse != NULL     ? COO_PARTS
                                          : 1;
}

/* "key.indices"; "" means no memory. */
static const char *part_key(sx_arena *arena, const char *key, int of, size_t k)
{
    const char *made = of == SPARSE && k < COO_PARTS
                           ? sx_arena_printf(arena, "%s.%s", key, coo_parts[k])
                       : of == RAGGED && k == 0 ? sx_arena_printf(arena, "%s.flat_values", key)
                       : of == RAGGED && k == 1 ? sx_arena_printf(arena, "%s.row_splits", key)
                       : of == RAGGED ? sx_arena_printf(arena, "%s.row_splits_%zu", key, k - 1)
                                      : sx_arena_printf(arena, "%s.component_%zu", key, k);
    return made != NULL ? made : "";
}

/* Appends the tensors of an entry to `out`; false = no memory. */
static bool add_parts(sx_arena *arena, const char *key, const Tensorflow__TensorInfo *info,
                      sx_signature_tensor *out)
{
    const Tensorflow__TensorInfo__CooSparse *coo = info->coo_sparse;
    const Tensorflow__TensorInfo__CompositeTensor *composite = info->composite_tensor;
    if (composite == NULL && coo == NULL) {
        *out = signature_tensor(key, info);
        return true;
    }
    bool named = true;
    for (size_t k = 0; k < n_parts(info); k++) {
        if (composite != NULL) {
            out[k] = signature_tensor(key, composite->components[k]);
        } else {
            const char *const tensors[COO_PARTS] = {
                coo->indices_tensor_name, coo->values_tensor_name, coo->dense_shape_tensor_name};
            Tensorflow__TensorShapeProto__Dim rows = TENSORFLOW__TENSOR_SHAPE_PROTO__DIM__INIT,
                                              sizes = rows;
            Tensorflow__TensorShapeProto__Dim *dims[] = {&rows, &sizes};
            Tensorflow__TensorShapeProto shape = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
            Tensorflow__TensorInfo part = TENSORFLOW__TENSOR_INFO__INIT;
            rows.size = sizes.size = -1;
            shape.dim = dims;
            shape.n_dim = k == 0 ? 2 : 1;
            part.name = (char *)(uintptr_t)tensors[k];
            part.dtype = k == 1 ? info->dtype : TENSORFLOW__DATA_TYPE__DT_INT64;
            part.tensor_shape = &shape;
            out[k] = signature_tensor(key, &part);
        }
        const int of = composite == NULL              ? SPARSE
                       : composite->type_spec != NULL ? composite->type_spec->type_spec_class
                                                      : 0;
        out[k].key = part_key(arena, key, of, k);
        named = named && out[k].key[0] != '\0';
    }
    return named;
}

static int by_signature_key(const void *a, const void *b)
{
    return strcmp(((const sx_signature *)a)->key, ((const sx_signature *)b)->key);
}

static bool read_signature(sx_arena *arena, const char *key, const Tensorflow__SignatureDef *def,
                           sx_signature *out)
{
    size_t n_inputs = 0, n_outputs = 0;
    for (size_t i = 0; i < def->n_inputs; i++) {
        n_inputs += n_parts(def->inputs[i]->value);
    }
    for (size_t i = 0; i < def->n_outputs; i++) {
        n_outputs += n_parts(def->outputs[i]->value);
    }
    sx_signature_tensor *inputs = sx_arena_array(arena, n_inputs + 1, sx_signature_tensor);
    sx_signature_tensor *outputs = sx_arena_array(arena, n_outputs + 1, sx_signature_tensor);
    bool whole = inputs != NULL && outputs != NULL;
    for (size_t i = 0, at = 0; i < def->n_inputs && whole; i++) {
        whole = add_parts(arena, def->inputs[i]->key, def->inputs[i]->value, inputs + at);
        at += n_parts(def->inputs[i]->value);
    }
    for (size_t i = 0, at = 0; i < def->n_outputs && whole; i++) {
        whole = add_parts(arena, def->outputs[i]->key, def->outputs[i]->value, outputs + at);
        at += n_parts(def->outputs[i]->value);
    }
    if (!whole) {
        return false;
    }
    qsort(inputs, n_inputs, sizeof(*inputs), by_tensor_key);
    qsort(outputs, n_outputs, sizeof(*outputs), by_tensor_key);
    *out = (sx_signature){key, def->method_name, inputs, outputs, n_inputs, n_outputs};
    return true;
}

static sx_status read_signatures(sx_saved_model *m)
{
    size_t n = m->meta->n_signature_def;
    m->signatures = sx_arena_array(&m->arena, n + 1, sx_signature);
    if (m->signatures == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    for (size_t i = 0; i < n; i++) {
        const Tensorflow__MetaGraphDef__SignatureDefEntry *e = m->meta->signature_def[i];
        if (!read_signature(&m->arena, e->key, e->value, &m->signatures[i])) {
            return sx_no_memory("for a SavedModel");
        }
    }
    m->n_signatures = n;
    qsort(m->signatures, n, sizeof(*m->signatures), by_signature_key);
    return SX_OK;
}

/* ---- Which key fills which variable ---- */

/* A body in which variables are restored: the graph itself, or the function that the restore
 * operation calls, with the call whose inputs are its arguments. */
struct restorer {
    sx_saved_model *model;
    const sx_map *nodes;
    sx_map args; /* of the function: name -> number + 1 */
    const Tensorflow__FunctionDef *function;
    const Tensorflow__NodeDef *call;
};

static const Tensorflow__NodeDef *skip_identity(const struct restorer *r, const char *ref,
                                                int *out_output)
{
    const Tensorflow__NodeDef *node = find_ref(r->nodes, ref, out_output);
    for (int hops = 0;
         node != NULL && hops < 8 && strcmp(node->op, "Identity") == 0 && node->n_input > 0;
         hops++) {
        node = find_ref(r->nodes, node->input[0], out_output);
    }
    return node;
}

/* The graph's variable or table for a handle in this body; through the call if it is an argument.
 */
static const Tensorflow__NodeDef *find_handle(const struct restorer *r, const char *ref)
{
    int output = 0;
    const Tensorflow__NodeDef *node = find_ref(r->nodes, ref, &output);
    if (node == NULL && r->function != NULL) {
        const size_t arg = (size_t)(uintptr_t)sx_map_get(&r->args, ref);
        if (arg > 0 && arg <= r->call->n_input) {
            node = find_ref(&r->model->nodes, r->call->input[arg - 1], &output);
        }
    }
    return node;
}

bool sx_tf_is_variable(const Tensorflow__NodeDef *node)
{
    return strcmp(node->op, "VarHandleOp") == 0 || strcmp(node->op, "VariableV2") == 0 ||
           strcmp(node->op, "Variable") == 0;
}

/* String k of a Const of strings. */
static const ProtobufCBinaryData *const_string(const Tensorflow__NodeDef *node, int k)
{
    const Tensorflow__AttrValue *value = node == NULL ? NULL : sx_tf_node_attr(node, "value");
    if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR ||
        value->tensor == NULL || (size_t)k >= value->tensor->n_string_val) {
        return NULL;
    }
    return &value->tensor->string_val[k];
}

/* The key that input `input` of a node is restored from, in the model's arena; NULL: it is not. */
static sx_status restored_key(const struct restorer *r, const Tensorflow__NodeDef *node,
                              size_t input, const char **out)
{
    int output = 0, unused;
    const Tensorflow__NodeDef *restore = skip_identity(r, node->input[input], &output);
    *out = NULL;
    if (restore == NULL || strcmp(restore->op, "RestoreV2") != 0 || restore->n_input < 2) {
        return SX_OK;
    }
    const ProtobufCBinaryData *key =
        const_string(find_ref(r->nodes, restore->input[1], &unused), output);
    if (key != NULL && key->len > 0) { /* an empty key has no bytes to point to */
        *out = sx_arena_strndup(&r->model->arena, (const char *)key->data, key->len);
        return *out == NULL ? sx_no_memory("for a SavedModel") : SX_OK;
    }
    return SX_OK;
}

/* LookupTableImport(table, keys, values) */
static sx_status note_table(const struct restorer *r, const Tensorflow__NodeDef *import)
{
    const Tensorflow__NodeDef *handle =
        import->n_input < 3 ? NULL : find_handle(r, import->input[0]);
    if (handle == NULL || !sx_tf_is_table(handle->op)) {
        return SX_OK;
    }
    sx_saved_table *table = sx_arena_new(&r->model->arena, sx_saved_table);
    if (table == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    SX_TRY(restored_key(r, import, 1, &table->keys));
    SX_TRY(restored_key(r, import, 2, &table->values));
    return table->keys == NULL || table->values == NULL
               ? SX_OK
               : sx_map_put(&r->model->tables, handle->name, table);
}

static sx_status note_assignment(const struct restorer *r, const Tensorflow__NodeDef *assign)
{
    int output = 0, unused;
    const char *key = NULL;
    const Tensorflow__NodeDef *handle =
        assign->n_input < 2 ? NULL : find_handle(r, assign->input[0]);
    if (handle == NULL || !sx_tf_is_variable(handle)) {
        return SX_OK;
    }
    SX_TRY(restored_key(r, assign, 1, &key));
    if (key == NULL) {
        return SX_OK;
    }
    const Tensorflow__NodeDef *restore = skip_identity(r, assign->input[1], &output);
    const ProtobufCBinaryData *part =
        restore->n_input < 3 ? NULL
                             : const_string(find_ref(r->nodes, restore->input[2], &unused), output);
    if (part != NULL && part->len > 0) {
        char *text = sx_arena_strndup(&r->model->arena, (const char *)part->data, part->len);
        if (text == NULL) {
            return sx_no_memory("for a SavedModel");
        }
        SX_TRY(sx_map_put(&r->model->parts, handle->name, text));
    }
    return sx_map_put(&r->model->variables, handle->name, (void *)(uintptr_t)key);
}

static sx_status note_assignments(const struct restorer *r, Tensorflow__NodeDef *const *nodes,
                                  size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(nodes[i]->op, "AssignVariableOp") == 0 || strcmp(nodes[i]->op, "Assign") == 0) {
            SX_TRY(note_assignment(r, nodes[i]));
        } else if (strncmp(nodes[i]->op, "LookupTableImport", strlen("LookupTableImport")) == 0) {
            SX_TRY(note_table(r, nodes[i]));
        }
    }
    return SX_OK;
}

static const Tensorflow__FunctionDef *find_function(const Tensorflow__GraphDef *graph,
                                                    const char *name)
{
    for (size_t i = 0; graph->library != NULL && i < graph->library->n_function; i++) {
        const Tensorflow__OpDef *signature = graph->library->function[i]->signature;
        if (signature != NULL && strcmp(signature->name, name) == 0) {
            return graph->library->function[i];
        }
    }
    return NULL;
}

/* Names of the function's nodes and arguments. */
static sx_status index_function(struct restorer *r, sx_map *out_nodes)
{
    const Tensorflow__OpDef *signature = r->function->signature;
    SX_TRY(index_nodes(r->function->node_def, r->function->n_node_def, out_nodes));
    r->nodes = out_nodes;
    for (size_t i = 0; i < signature->n_input_arg; i++) {
        SX_TRY(sx_map_put(&r->args, signature->input_arg[i]->name, (void *)(uintptr_t)(i + 1)));
    }
    return SX_OK;
}

static sx_status read_restorer(sx_saved_model *m)
{
    const Tensorflow__GraphDef *graph = m->meta->graph_def;
    struct restorer r = {.model = m, .nodes = &m->nodes};
    sx_map body;
    int output;
    const Tensorflow__NodeDef *restore =
        m->meta->saver_def == NULL
            ? NULL
            : find_ref(&m->nodes, m->meta->saver_def->restore_op_name, &output);
    const Tensorflow__AttrValue *f = restore == NULL ? NULL : sx_tf_node_attr(restore, "f");
    if (f != NULL && f->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && f->func != NULL) {
        r.function = find_function(graph, f->func->name);
        r.call = restore;
    }
    sx_map_init_borrowed(&body);
    sx_map_init_borrowed(&r.args);
    sx_status status = r.function != NULL ? index_function(&r, &body) : SX_OK;
    if (status == SX_OK) {
        status = r.function != NULL
                     ? note_assignments(&r, r.function->node_def, r.function->n_node_def)
                     : note_assignments(&r, graph->node, graph->n_node);
    }
    sx_map_deinit(&r.args);
    sx_map_deinit(&body);
    return status;
}

/* A variable of Keras is two in the graph: one that functions use, and one that is restored, which
 * its initializer copies from the former. Both have the key of the latter. */
static sx_status note_copies(sx_saved_model *m)
{
    const Tensorflow__GraphDef *graph = m->meta->graph_def;
    const struct restorer r = {.model = m, .nodes = &m->nodes};
    int output;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Tensorflow__NodeDef *node = graph->node[i];
        if (strcmp(node->op, "AssignVariableOp") != 0 || node->n_input < 2) {
            continue;
        }
        const Tensorflow__NodeDef *restored = find_handle(&r, node->input[0]);
        const Tensorflow__NodeDef *read = skip_identity(&r, node->input[1], &output);
        const Tensorflow__NodeDef *used =
            read != NULL && strcmp(read->op, "ReadVariableOp") == 0 && read->n_input > 0
                ? find_handle(&r, read->input[0])
                : NULL;
        const char *key = restored == NULL ? NULL : sx_map_get(&m->variables, restored->name);
        if (key != NULL && used != NULL && sx_tf_is_variable(used) &&
            !sx_map_has(&m->variables, used->name)) {
            SX_TRY(sx_map_put(&m->variables, used->name, (void *)(uintptr_t)key));
        }
    }
    return SX_OK;
}

/* The variables that the restore operation does not fill, by the object graph of the checkpoint:
 * TensorFlow 2 restores objects, and some variables are in the graph under another name. A name
 * that several objects have is no key. */
static sx_status read_object_graph(sx_saved_model *m)
{
    static char several;
    const Tensorflow__GraphDef *graph = m->meta->graph_def;
    const sx_bundle_entry *e =
        m->bundle != NULL ? sx_bundle_find(m->bundle, OBJECT_GRAPH_KEY) : NULL;
    bool lacks = false;
    for (size_t i = 0; i < graph->n_node; i++) {
        lacks = lacks || (strcmp(graph->node[i]->op, "VarHandleOp") == 0 &&
                          !sx_map_has(&m->variables, graph->node[i]->name));
    }
    if (!lacks || e == NULL || e->type.dtype != SX_STRING || e->type.rank != 0) {
        return SX_OK;
    }
    sx_arena arena;
    sx_tensor text;
    ProtobufCMessage *message = NULL;
    sx_map keys; /* full name -> key */
    sx_arena_init(&arena, MAX_OBJECT_GRAPH_BYTES);
    sx_map_init(&keys);
    sx_status status = sx_bundle_read_strings(m->bundle, OBJECT_GRAPH_KEY, &arena, &text);
    if (status == SX_OK) {
        status = sx_proto_unpack(&tensorflow__trackable_object_graph__descriptor,
                                 *(const sx_bytes *)text.data, NULL, OBJECT_GRAPH_KEY, &message);
    }
    const Tensorflow__TrackableObjectGraph *objects =
        (const Tensorflow__TrackableObjectGraph *)message;
    for (size_t i = 0; status == SX_OK && i < objects->n_nodes; i++) {
        const Tensorflow__TrackableObjectGraph__TrackableObject *o = objects->nodes[i];
        for (size_t k = 0; status == SX_OK && k < o->n_attributes; k++) {
            const char *name = o->attributes[k]->full_name;
            const char *key = o->attributes[k]->checkpoint_key;
            if (name[0] != '\0' && key[0] != '\0') {
                status = sx_map_put(&keys, name,
                                    sx_map_has(&keys, name) ? &several : (void *)(uintptr_t)key);
            }
        }
    }
    for (size_t i = 0; status == SX_OK && i < graph->n_node; i++) {
        const Tensorflow__NodeDef *node = graph->node[i];
        const Tensorflow__AttrValue *a = sx_tf_node_attr(node, "shared_name");
        const bool named = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S;
        const char *key =
            named && strcmp(node->op, "VarHandleOp") == 0 && !sx_map_has(&m->variables, node->name)
                ? sx_map_get_bytes(&keys, (const char *)a->s.data, a->s.len)
                : NULL;
        if (key != NULL && key != &several) {
            char *copy = sx_arena_strdup(&m->arena, key);
            status = copy == NULL ? sx_no_memory("for a SavedModel")
                                  : sx_map_put(&m->variables, node->name, copy);
        }
    }
    sx_proto_free(message);
    sx_map_deinit(&keys);
    sx_arena_deinit(&arena);
    return status;
}

static sx_status open_variables(sx_saved_model *m)
{
    char *prefix = sx_arena_printf(&m->arena, "%s/variables/variables", m->dir);
    char *index = sx_arena_printf(&m->arena, "%s/variables/variables.index", m->dir);
    if (prefix == NULL || index == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    struct stat info;
    if (stat(index, &info) != 0) { /* a model may have no variables, but not hide them */
        return errno == ENOENT ? SX_OK : sx_errno_status(errno, "open", index);
    }
    return sx_bundle_open_within(prefix, m->memory, &m->bundle);
}

static sx_status parse(sx_saved_model *m, sx_bytes bytes, const char *tags, const char *name)
{
    SX_TRY(unpack(m, bytes, name));
    SX_TRY(pick_meta(m, tags, name));
    SX_TRY(read_signatures(m));
    SX_TRY(index_nodes(m->meta->graph_def->node, m->meta->graph_def->n_node, &m->nodes));
    const Tensorflow__OpList *ops =
        m->meta->meta_info_def != NULL ? m->meta->meta_info_def->stripped_op_list : NULL;
    for (size_t i = 0; ops != NULL && i < ops->n_op; i++) {
        SX_TRY(sx_map_put(&m->ops, ops->op[i]->name, ops->op[i]));
    }
    SX_TRY(read_restorer(m));
    return note_copies(m);
}

static sx_status read_file(sx_saved_model *m, const char *tags)
{
    char *path = sx_arena_printf(&m->arena, "%s/" SX_SAVED_MODEL_FILE, m->dir), *data = NULL;
    size_t size = 0;
    if (path == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    struct stat info;
    const size_t charged = stat(path, &info) == 0 && S_ISREG(info.st_mode) && m->memory != NULL
                               ? (size_t)info.st_size
                               : 0;
    if (!sx_budget_charge(m->memory, charged)) {
        return sx_budget_over(m->memory, path, charged);
    }
    sx_status status = sx_file_read(path, MAX_MODEL_BYTES, &data, &size);
    if (status == SX_OK) {
        status = parse(m, (sx_bytes){data, size}, tags, path);
    }
    sx_free(data);
    sx_budget_release(m->memory, charged);
    return status;
}

static sx_status create(const char *dir, sx_saved_model **out_model)
{
    sx_saved_model *m = sx_alloc(1, sizeof(*m));
    if (m == NULL) {
        return sx_no_memory("for a SavedModel");
    }
    sx_arena_init(&m->arena, 0);
    sx_map_init_borrowed(&m->nodes); /* names are the message's */
    sx_map_init_borrowed(&m->ops);
    sx_map_init(&m->variables);
    sx_map_init(&m->parts);
    sx_map_init(&m->tables);
    m->dir = sx_arena_strdup(&m->arena, dir);
    if (m->dir == NULL) {
        sx_saved_model_close(m);
        return sx_no_memory("for a SavedModel");
    }
    *out_model = m;
    return SX_OK;
}

sx_status sx_saved_model_open(const char *dir, sx_saved_model **out_model)
{
    return sx_saved_model_open_within(dir, NULL, NULL, out_model);
}

sx_status sx_saved_model_open_within(const char *dir, const char *tags, sx_budget *memory,
                                     sx_saved_model **out_model)
{
    sx_saved_model *m = NULL;
    SX_TRY(create(dir, &m));
    m->memory = memory;
    sx_status status = read_file(m, tags);
    if (status == SX_OK) {
        status = open_variables(m);
    }
    if (status == SX_OK) {
        status = read_object_graph(m);
    }
    m->memory = NULL;
    if (status != SX_OK) {
        sx_saved_model_close(m);
        return status;
    }
    *out_model = m;
    return SX_OK;
}

sx_status sx_saved_model_unpack(const char *dir, Tensorflow__SavedModel **out)
{
    ProtobufCMessage *message = NULL;
    sx_arena arena;
    char *data = NULL;
    size_t size = 0;
    sx_arena_init(&arena, 0);
    char *path = sx_arena_printf(&arena, "%s/" SX_SAVED_MODEL_FILE, dir);
    sx_status status = path == NULL ? sx_no_memory("for a SavedModel")
                                    : sx_file_read(path, MAX_MODEL_BYTES, &data, &size);
    if (status == SX_OK) {
        status = unpack_within(budget_of(size), (sx_bytes){data, size}, path, &message);
    }
    sx_free(data);
    sx_arena_deinit(&arena);
    *out = (Tensorflow__SavedModel *)message;
    return status;
}

sx_status sx_saved_model_parse(sx_bytes bytes, sx_saved_model **out_model)
{
    sx_saved_model *m = NULL;
    SX_TRY(create("", &m));
    sx_status status = parse(m, bytes, NULL, SX_SAVED_MODEL_FILE);
    if (status != SX_OK) {
        sx_saved_model_close(m);
        return status;
    }
    *out_model = m;
    return SX_OK;
}

void sx_saved_model_close(sx_saved_model *m)
{
    if (m == NULL) {
        return;
    }
    sx_bundle_close(m->bundle);
    sx_proto_free(m->message);
    sx_map_deinit(&m->nodes);
    sx_map_deinit(&m->ops);
    sx_map_deinit(&m->variables);
    sx_map_deinit(&m->parts);
    sx_map_deinit(&m->tables);
    sx_arena_deinit(&m->arena);
    sx_free(m);
}

const char *sx_saved_model_dir(const sx_saved_model *m)
{
    return m->dir;
}

const sx_signature *sx_saved_model_signatures(const sx_saved_model *m, size_t *out_count)
{
    *out_count = m->n_signatures;
    return m->signatures;
}

sx_status sx_saved_model_find_signature(const sx_saved_model *m, const char *key,
                                        const sx_signature **out_signature)
{
    sx_buf names;
    sx_buf_init(&names, 4096);
    for (size_t i = 0; i < m->n_signatures; i++) {
        if (strcmp(m->signatures[i].key, key) == 0) {
            *out_signature = &m->signatures[i];
            sx_buf_deinit(&names);
            return SX_OK;
        }
        if (strcmp(m->signatures[i].key, SX_INIT_SIGNATURE) != 0) { /* loading the model runs it */
            sx_buf_printf(&names, "%s\"%s\"", names.size > 0 ? ", " : "", m->signatures[i].key);
        }
    }
    sx_status status = sx_error(SX_NOT_FOUND, "%s has no signature \"%s\"; it has %s", m->dir, key,
                                names.size > 0 ? sx_buf_text(&names) : "none");
    sx_buf_deinit(&names);
    return status;
}

size_t sx_saved_model_budget(const sx_saved_model *m)
{
    return m->budget_bytes;
}

const Tensorflow__GraphDef *sx_saved_model_graph(const sx_saved_model *m)
{
    return m->meta->graph_def;
}

const Tensorflow__OpDef *sx_saved_model_find_op(const sx_saved_model *m, const char *op)
{
    return sx_map_get(&m->ops, op);
}

static void drop_constants(Tensorflow__NodeDef *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nodes[i]->n_attr; k++) {
            const Tensorflow__AttrValue *a = nodes[i]->attr[k]->value;
            if (a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TENSOR &&
                a->tensor != NULL) {
                sx_proto_free_bytes(&a->tensor->tensor_content);
            }
        }
    }
}

void sx_saved_model_drop_constants(sx_saved_model *m)
{
    const Tensorflow__GraphDef *graph = m->meta->graph_def;
    const Tensorflow__FunctionDefLibrary *library = graph->library;
    drop_constants(graph->node, graph->n_node);
    for (size_t i = 0; library != NULL && i < library->n_function; i++) {
        drop_constants(library->function[i]->node_def, library->function[i]->n_node_def);
    }
    m->dropped = true;
}

bool sx_saved_model_has_constants(const sx_saved_model *m)
{
    return !m->dropped;
}

const sx_bundle *sx_saved_model_variables(const sx_saved_model *m)
{
    return m->bundle;
}

const char *sx_saved_model_variable_key(const sx_saved_model *m, const char *node)
{
    return sx_map_get(&m->variables, node);
}

const char *sx_saved_model_variable_part(const sx_saved_model *m, const char *node)
{
    return sx_map_get(&m->parts, node);
}

const sx_saved_table *sx_saved_model_table(const sx_saved_model *m, const char *node)
{
    return sx_map_get(&m->tables, node);
}

const Tensorflow__MetaGraphDef *sx_saved_model_meta(const sx_saved_model *m)
{
    return m->meta;
}
