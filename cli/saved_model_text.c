#include "saved_model_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "dir_hint.h"
#include "proto/guard.h"
#include "proto/saved_object_graph.pb-c.h"
#include "python_text.h"
#include "savedmodel/saved_model_read.h"

enum { MAX_DEPTH = 32 };

/* Text from the file, for a terminal. */
static void put_foreign(sx_buf *out, const char *text)
{
    sx_buf_put_visible(out, text, strlen(text), "");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "{'Add', 'MatMul'}"; Python prints the empty set as "set()" */
static void put_set(sx_buf *out, const char **texts, size_t n)
{
    qsort(texts, n, sizeof(*texts), by_text);
    sx_buf_puts(out, n == 0 ? "set()" : "{");
    for (size_t i = 0; i < n; i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        sx_put_python_repr(out, texts[i]);
    }
    sx_buf_puts(out, n == 0 ? "" : "}");
}

/* ---- Tags ---- */

static size_t count_tags(const Tensorflow__MetaGraphDef *graph)
{
    return graph->meta_info_def != NULL ? graph->meta_info_def->n_tags : 0;
}

/* "serve, gpu" */
static void put_tags(sx_buf *out, const Tensorflow__MetaGraphDef *graph)
{
    for (size_t i = 0; i < count_tags(graph); i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        put_foreign(out, graph->meta_info_def->tags[i]);
    }
}

/* "['serve', 'gpu']" */
static void put_tag_list(sx_buf *out, const Tensorflow__MetaGraphDef *graph)
{
    sx_buf_putc(out, '[');
    for (size_t i = 0; i < count_tags(graph); i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        sx_put_python_repr(out, graph->meta_info_def->tags[i]);
    }
    sx_buf_putc(out, ']');
}

static int by_tags(const void *a, const void *b)
{
    const Tensorflow__MetaGraphDef *x = *(const Tensorflow__MetaGraphDef *const *)a,
                                   *y = *(const Tensorflow__MetaGraphDef *const *)b;
    const size_t nx = count_tags(x), ny = count_tags(y);
    for (size_t i = 0; i < nx && i < ny; i++) {
        const int order = strcmp(x->meta_info_def->tags[i], y->meta_info_def->tags[i]);
        if (order != 0) {
            return order;
        }
    }
    return (nx > ny) - (nx < ny);
}

void sx_put_tag_sets(sx_buf *out, const Tensorflow__SavedModel *model)
{
    sx_buf_puts(out, "The given SavedModel contains the following tag-sets:\n");
    qsort(model->meta_graphs, model->n_meta_graphs, sizeof(*model->meta_graphs), by_tags);
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        const Tensorflow__MetaGraphDef *graph = model->meta_graphs[i];
        sx_buf tags;
        sx_buf_init(&tags, 0);
        if (count_tags(graph) > 0) {
            qsort(graph->meta_info_def->tags, count_tags(graph), sizeof(char *), by_text);
        }
        put_tags(&tags, graph);
        sx_put_python_repr(out, sx_buf_text(&tags));
        sx_buf_putc(out, '\n');
        sx_buf_deinit(&tags);
    }
}

/* ---- Signatures ---- */

static int by_entry_key(const void *a, const void *b) /* of all maps from strings: key is first */
{
    const Tensorflow__MetaGraphDef__SignatureDefEntry
        *x = *(const Tensorflow__MetaGraphDef__SignatureDefEntry *const *)a,
        *y = *(const Tensorflow__MetaGraphDef__SignatureDefEntry *const *)b;
    return strcmp(x->key, y->key);
}

void sx_put_signature_keys(sx_buf *out, const Tensorflow__MetaGraphDef *graph)
{
    sx_buf_puts(out, "The given SavedModel MetaGraphDef contains SignatureDefs with the following "
                     "keys:\n");
    qsort(graph->signature_def, graph->n_signature_def, sizeof(*graph->signature_def),
          by_entry_key);
    for (size_t i = 0; i < graph->n_signature_def; i++) {
        sx_buf_puts(out, "SignatureDef key: \"");
        put_foreign(out, graph->signature_def[i]->key);
        sx_buf_puts(out, "\"\n");
    }
}

static void put_tensor(sx_buf *out, const Tensorflow__TensorInfo *info, int indent)
{
    const Tensorflow__TensorShapeProto *shape = info->tensor_shape;
    const char *dtype = sx_tf_dtype_enum_text((int)info->dtype);
    sx_buf_printf(out, "%*s    dtype: %s\n%*s    shape: ", indent, "",
                  dtype != NULL ? dtype : "unknown", indent, "");
    if (shape != NULL && shape->unknown_rank) {
        sx_buf_puts(out, "unknown_rank");
    } else {
        sx_buf_putc(out, '(');
        for (size_t i = 0; shape != NULL && i < shape->n_dim; i++) {
            sx_buf_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)shape->dim[i]->size);
        }
        sx_buf_putc(out, ')');
    }
    sx_buf_printf(out, "\n%*s    name: ", indent, "");
    put_foreign(out, info->name);
    sx_buf_putc(out, '\n');
}

static void put_inputs_and_outputs(sx_buf *out, const Tensorflow__SignatureDef *def, int indent)
{
    qsort(def->inputs, def->n_inputs, sizeof(*def->inputs), by_entry_key);
    qsort(def->outputs, def->n_outputs, sizeof(*def->outputs), by_entry_key);
    sx_buf_printf(out, "%*sThe given SavedModel SignatureDef contains the following input(s):\n",
                  indent, "");
    for (size_t i = 0; i < def->n_inputs; i++) {
        sx_buf_printf(out, "%*s  inputs['", indent, "");
        put_foreign(out, def->inputs[i]->key);
        sx_buf_puts(out, "'] tensor_info:\n");
        put_tensor(out, def->inputs[i]->value, indent + 2);
    }
    sx_buf_printf(out, "%*sThe given SavedModel SignatureDef contains the following output(s):\n",
                  indent, "");
    for (size_t i = 0; i < def->n_outputs; i++) {
        sx_buf_printf(out, "%*s  outputs['", indent, "");
        put_foreign(out, def->outputs[i]->key);
        sx_buf_puts(out, "'] tensor_info:\n");
        put_tensor(out, def->outputs[i]->value, indent + 2);
    }
    sx_buf_printf(out, "%*sMethod name is: ", indent, "");
    put_foreign(out, def->method_name);
    sx_buf_putc(out, '\n');
}

sx_status sx_put_signature(sx_buf *out, const Tensorflow__MetaGraphDef *graph, const char *key)
{
    sx_buf known;
    sx_buf_init(&known, 4096);
    for (size_t i = 0; i < graph->n_signature_def; i++) {
        if (strcmp(graph->signature_def[i]->key, key) == 0) {
            put_inputs_and_outputs(out, graph->signature_def[i]->value, 0);
            sx_buf_deinit(&known);
            return SX_OK;
        }
        sx_buf_printf(&known, "%s\"%s\"", i > 0 ? ", " : "", graph->signature_def[i]->key);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "no signature \"%s\"; the graph has %s", key,
                                graph->n_signature_def > 0 ? sx_buf_text(&known) : "none");
    sx_buf_deinit(&known);
    return status;
}

/* ---- Operators ---- */

/* The operators of a graph, and the functions whose nodes are still to be looked at. */
struct used {
    sx_map functions; /* name -> FunctionDef */
    sx_map ops;       /* name -> any; also the names of functions */
};

static sx_status use(struct used *u, const char *op)
{
    return sx_map_has(&u->ops, op) ? SX_OK : sx_map_put(&u->ops, op, u);
}

static sx_status use_nodes(struct used *u, Tensorflow__NodeDef *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SX_TRY(use(u, nodes[i]->op));
        const bool calls = strcmp(nodes[i]->op, "PartitionedCall") == 0 ||
                           strcmp(nodes[i]->op, "StatefulPartitionedCall") == 0;
        for (size_t k = 0; calls && k < nodes[i]->n_attr; k++) {
            const Tensorflow__AttrValue *f = nodes[i]->attr[k]->value;
            if (strcmp(nodes[i]->attr[k]->key, "f") == 0 &&
                f->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && f->func != NULL) {
                SX_TRY(use(u, f->func->name));
            }
        }
    }
    return SX_OK;
}

/* The operators of the graph, and of the functions that are operators or called ones: an array in
 * `arena`. */
static sx_status find_operators(const Tensorflow__MetaGraphDef *graph, sx_arena *arena,
                                const char ***out, size_t *out_n)
{
    const Tensorflow__GraphDef *def = graph->graph_def;
    const Tensorflow__FunctionDefLibrary *library = def != NULL ? def->library : NULL;
    struct used u;
    sx_status status = SX_OK;
    sx_map_init(&u.functions);
    sx_map_init(&u.ops);
    for (size_t i = 0; library != NULL && i < library->n_function && status == SX_OK; i++) {
        Tensorflow__FunctionDef *f = library->function[i];
        status = f->signature != NULL ? sx_map_put(&u.functions, f->signature->name, f) : SX_OK;
    }
    if (status == SX_OK && def != NULL) {
        status = use_nodes(&u, def->node, def->n_node);
    }
    size_t n = 0;
    for (size_t i = 0; i < u.ops.count && status == SX_OK; i++) { /* the map grows meanwhile */
        const Tensorflow__FunctionDef *f = sx_map_get(&u.functions, u.ops.entries[i].key);
        n += f == NULL;
        status = f != NULL ? use_nodes(&u, f->node_def, f->n_node_def) : SX_OK;
    }
    const char **ops = sx_arena_array(arena, n + 1, const char *);
    if (status == SX_OK && ops == NULL) {
        status = sx_no_memory("for the operators");
    }
    n = 0;
    for (size_t i = 0; i < u.ops.count && status == SX_OK; i++) {
        if (!sx_map_has(&u.functions, u.ops.entries[i].key)) {
            ops[n++] = sx_arena_strdup(arena, u.ops.entries[i].key);
            status = ops[n - 1] == NULL ? sx_no_memory("for the operators") : SX_OK;
        }
    }
    sx_map_deinit(&u.functions);
    sx_map_deinit(&u.ops);
    *out = ops;
    *out_n = n;
    return status;
}

sx_status sx_put_operators(sx_buf *out, const Tensorflow__MetaGraphDef *graph)
{
    sx_arena arena;
    const char **ops = NULL;
    size_t n = 0;
    sx_arena_init(&arena, 0);
    sx_status status = find_operators(graph, &arena, &ops, &n);
    if (status == SX_OK) {
        sx_buf_puts(out, "The MetaGraph with tag set ");
        put_tag_list(out, graph);
        sx_buf_puts(out, " contains the following ops: ");
        put_set(out, ops, n);
        sx_buf_putc(out, '\n');
    }
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_put_scan(sx_buf *out, const Tensorflow__MetaGraphDef *graph, const char *denied)
{
    sx_arena arena;
    const char **ops = NULL;
    size_t n = 0, n_names = 0, n_found = 0;
    sx_arena_init(&arena, 0);
    sx_status status = find_operators(graph, &arena, &ops, &n);
    const char **names = sx_arena_array(&arena, strlen(denied) + 1, const char *),
               **found = sx_arena_array(&arena, strlen(denied) + 1, const char *);
    if (status == SX_OK && (names == NULL || found == NULL)) {
        status = sx_no_memory("for the operators");
    }
    for (const char *name = denied; *name != '\0' && status == SX_OK;) {
        const size_t bytes = strcspn(name, ","), blanks = strspn(name, " ");
        size_t end = bytes;
        while (end > blanks && name[end - 1] == ' ') {
            end--;
        }
        if (end > blanks) {
            const char *op = sx_arena_strndup(&arena, name + blanks, end - blanks);
            status = op == NULL ? sx_no_memory("for the operators") : SX_OK;
            bool has = false;
            for (size_t i = 0; i < n && status == SX_OK; i++) {
                has = has || strcmp(ops[i], op) == 0;
            }
            names[n_names++] = op;
            found[n_found] = op;
            n_found += has;
        }
        name += bytes + (name[bytes] == ',');
    }
    if (status == SX_OK) {
        sx_buf_puts(out, "MetaGraph with tag set ");
        put_tag_list(out, graph);
        sx_buf_puts(out, n_found > 0 ? " contains the following denylisted ops: "
                                     : " does not contain the default denylisted ops: ");
        put_set(out, n_found > 0 ? found : names, n_found > 0 ? n_found : n_names);
        sx_buf_putc(out, '\n');
    }
    sx_arena_deinit(&arena);
    return status;
}

/* ---- Functions ---- */

/* The items of a list or a tuple; 0 if it is neither. */
static size_t items_of(const Tensorflow__StructuredValue *v,
                       Tensorflow__StructuredValue *const **out)
{
    if (v->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE) {
        *out = v->list_value->values;
        return v->list_value->n_values;
    }
    if (v->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE) {
        *out = v->tuple_value->values;
        return v->tuple_value->n_values;
    }
    *out = NULL;
    return 0;
}

/* The original ends lists with ", " and two backspaces. */
static void put_argument(sx_buf *out, const Tensorflow__StructuredValue *v)
{
    Tensorflow__StructuredValue *const *items;
    const size_t n = items_of(v, &items);
    switch (v->kind_case) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE:
        sx_buf_puts(out, "          ");
        put_foreign(out, v->string_value);
        sx_buf_putc(out, '\n');
        return;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE:
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE: {
        const bool bounded =
            v->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE;
        const char *name =
            bounded ? v->bounded_tensor_spec_value->name : v->tensor_spec_value->name;
        sx_buf_puts(out, "          ");
        put_foreign(out, *name != '\0' ? name : "None");
        sx_buf_puts(out, ": ");
        sx_put_structured_repr(out, v);
        sx_buf_putc(out, '\n');
        return;
    }
    default:
        break;
    }
    sx_buf_puts(out, "          DType: ");
    sx_put_structured_type(out, v);
    sx_buf_puts(out, "\n          Value: ");
    switch (v->kind_case) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE:
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE:
        sx_buf_putc(out, '[');
        for (size_t i = 0; i < n; i++) {
            sx_put_structured_repr(out, items[i]);
            sx_buf_puts(out, ", ");
        }
        sx_buf_puts(out, "\b\b]");
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE:
        qsort(v->dict_value->fields, v->dict_value->n_fields, sizeof(*v->dict_value->fields),
              by_entry_key);
        sx_buf_putc(out, '{');
        for (size_t i = 0; i < v->dict_value->n_fields; i++) {
            sx_buf_putc(out, '\'');
            put_foreign(out, v->dict_value->fields[i]->key);
            sx_buf_puts(out, "': ");
            sx_put_structured_repr(out, v->dict_value->fields[i]->value);
            sx_buf_puts(out, ", ");
        }
        sx_buf_puts(out, "\b\b}");
        break;
    default:
        sx_put_structured_repr(out, v);
        break;
    }
    sx_buf_putc(out, '\n');
}

/* The arguments of one of a function's FunctionDefs: a tuple of the positional ones, a dict of the
 * others, of which the original prints only the names. */
static void put_arguments(sx_buf *out, const Tensorflow__SavedConcreteFunction *f, int option)
{
    Tensorflow__StructuredValue *const *signature, *const *args = NULL;
    const Tensorflow__StructuredValue *whole = f->canonicalized_input_signature;
    const size_t n_signature = whole != NULL ? items_of(whole, &signature) : 0,
                 n_args = n_signature > 0 ? items_of(signature[0], &args) : 0;
    if (n_args > 0) {
        sx_buf_printf(out, "    Option #%d\n      Callable with:\n", option);
    }
    for (size_t i = 0; i < n_args; i++) {
        sx_buf_printf(out, "        Argument #%zu\n", i + 1);
        put_argument(out, args[i]);
    }
    const Tensorflow__DictValue *named =
        n_signature > 1 && signature[1]->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE
            ? signature[1]->dict_value
            : NULL;
    if (named != NULL) {
        qsort(named->fields, named->n_fields, sizeof(*named->fields), by_entry_key);
    }
    for (size_t i = 0; named != NULL && i < named->n_fields; i++) {
        sx_buf_printf(out, "        Named Argument #%zu\n          ", i + 1);
        put_foreign(out, named->fields[i]->key);
        sx_buf_putc(out, '\n');
    }
}

static const Tensorflow__SavedConcreteFunction *
find_concrete(const Tensorflow__SavedObjectGraph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_concrete_functions; i++) {
        if (strcmp(graph->concrete_functions[i]->key, name) == 0) {
            return graph->concrete_functions[i]->value;
        }
    }
    return NULL;
}

/* FunctionDefs are numbered as they were made: "__inference_g_9" before "__inference_g_21". */
static int by_number(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const char *nx = strrchr(x, '_'), *ny = strrchr(y, '_');
    const size_t bytes_x = nx != NULL ? (size_t)(nx - x) : strlen(x),
                 bytes_y = ny != NULL ? (size_t)(ny - y) : strlen(y);
    if (bytes_x != bytes_y || memcmp(x, y, bytes_x) != 0 || nx == NULL || ny == NULL ||
        strlen(nx) == strlen(ny)) {
        return strcmp(x, y);
    }
    return strlen(nx) < strlen(ny) ? -1 : 1;
}

static int by_local_name(const void *a, const void *b)
{
    const Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference
        *x = *(Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *const *)a,
        *y = *(Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *const *)b;
    return strcmp(x->local_name, y->local_name);
}

static void put_functions(sx_buf *out, const Tensorflow__SavedObjectGraph *graph)
{
    if (graph->n_nodes == 0) {
        return;
    }
    Tensorflow__SavedObject *root = graph->nodes[0];
    qsort(root->children, root->n_children, sizeof(*root->children), by_local_name);
    for (size_t i = 0; i < root->n_children; i++) {
        const int32_t id = root->children[i]->node_id;
        const Tensorflow__SavedObject *child =
            id >= 0 && (size_t)id < graph->n_nodes ? graph->nodes[id] : root;
        char **names = NULL;
        size_t n = 0;
        if (child->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION) {
            names = child->function->concrete_functions;
            n = child->function->n_concrete_functions;
        } else if (child->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION) {
            names = &child->bare_concrete_function->concrete_function_name;
            n = 1;
        } else {
            continue;
        }
        sx_buf_puts(out, "\n  Function Name: '");
        put_foreign(out, root->children[i]->local_name);
        sx_buf_puts(out, "'\n");
        if (n > 1) {
            qsort(names, n, sizeof(*names), by_number);
        }
        for (size_t k = 0; k < n; k++) {
            const Tensorflow__SavedConcreteFunction *f = find_concrete(graph, names[k]);
            if (f != NULL) {
                put_arguments(out, f, (int)k + 1);
            }
        }
    }
}

sx_status sx_put_saved_model(sx_buf *out, const Tensorflow__SavedModel *model)
{
    const ProtobufCBinaryData *objects = NULL;
    qsort(model->meta_graphs, model->n_meta_graphs, sizeof(*model->meta_graphs), by_tags);
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        const Tensorflow__MetaGraphDef *graph = model->meta_graphs[i];
        sx_buf_puts(out, "\nMetaGraphDef with tag-set: '");
        put_tags(out, graph);
        sx_buf_puts(out, "' contains the following SignatureDefs:\n");
        qsort(graph->signature_def, graph->n_signature_def, sizeof(*graph->signature_def),
              by_entry_key);
        for (size_t k = 0; k < graph->n_signature_def; k++) {
            sx_buf_puts(out, "\nsignature_def['");
            put_foreign(out, graph->signature_def[k]->key);
            sx_buf_puts(out, "']:\n");
            put_inputs_and_outputs(out, graph->signature_def[k]->value, 2);
        }
        SX_TRY(sx_put_operators(out, graph));
        if (graph->object_graph_def.len > 0) {
            objects = &graph->object_graph_def;
        }
    }
    if (objects == NULL) {
        return SX_OK;
    }
    ProtobufCMessage *graph = NULL;
    const sx_proto_limits limits = {.max_depth = MAX_DEPTH};
    sx_status status = sx_proto_unpack(&tensorflow__saved_object_graph__descriptor,
                                       (sx_bytes){objects->data, objects->len}, &limits,
                                       "the object graph", &graph);
    if (status == SX_OK) {
        sx_buf_puts(out, "\nConcrete Functions:");
        put_functions(out, (const Tensorflow__SavedObjectGraph *)graph);
    }
    sx_proto_free(graph);
    return status;
}

/* ---- Printing ---- */

sx_status sx_print_saved_model(sx_arena *arena, const char *path, sx_put_model_fn *put,
                               const void *user)
{
    Tensorflow__SavedModel *model = NULL;
    const char *dir = NULL;
    sx_buf text;
    SX_TRY(sx_dir_find_saved_model(arena, path, &dir));
    SX_TRY(sx_saved_model_unpack(dir, &model));
    sx_buf_init(&text, 0);
    sx_status status = put(&text, model, user);
    if (status == SX_OK) {
        status = sx_buf_status(&text);
    }
    if (status == SX_OK) {
        fwrite(sx_buf_text(&text), 1, text.size, stdout);
    }
    sx_buf_deinit(&text);
    sx_proto_free(model);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s", dir);
}
