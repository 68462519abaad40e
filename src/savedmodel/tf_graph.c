#include "savedmodel/tf_graph.h"

#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/digest.h"
#include "base/map.h"
#include "base/memory.h"
#include "savedmodel/tf_attrs.h"

enum { MAX_NODES = 1 << 20, MAX_NAME_BYTES = 4096 };

/* ---- The table of operators ---- */

struct op_row {
    const char *name;
    bool stateful;
    const char *outputs;
};

static const struct op_row op_rows[] = {
#define SX_TF_OP(op, stateful, outputs) {#op, stateful, outputs},
#include "savedmodel/tf_ops.def"
#undef SX_TF_OP
};

/* The rows are sorted by name, as strcmp sorts. */
static const struct op_row *find_op(const char *name)
{
    size_t low = 0, high = SX_COUNT(op_rows);
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, op_rows[mid].name);
        if (order == 0) {
            return &op_rows[mid];
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

/* The output argument that holds output `k`, and its place in it; false if there is none. */
static bool output_arg(const struct op_row *op, int k, sx_bytes *out_arg, int *out_index)
{
    const char *at = op->outputs;
    for (int i = 0; *at != '\0'; i++) {
        size_t length = strcspn(at, ",");
        bool list = at[length - 1] == '*';
        if (i == k || list) {
            *out_arg = (sx_bytes){at, length - (list ? 1 : 0)};
            *out_index = list ? k - i : 0;
            return true;
        }
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return false;
}

int sx_tf_op_output(const char *op, sx_bytes arg, int index)
{
    const struct op_row *row = find_op(op);
    const char *at = row == NULL ? "" : row->outputs;
    for (int first = 0; *at != '\0'; first++) {
        size_t length = strcspn(at, ","), name = length - (at[length - 1] == '*' ? 1 : 0);
        if (name == arg.size && memcmp(at, arg.data, name) == 0) {
            return first + index;
        }
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return index;
}

int sx_tf_op_outputs(const char *op)
{
    const struct op_row *row = find_op(op);
    if (row == NULL || strchr(row->outputs, '*') != NULL) {
        return -1;
    }
    int n = row->outputs[0] != '\0';
    for (const char *at = row->outputs; (at = strchr(at, ',')) != NULL; at++) {
        n++;
    }
    return n;
}

/* ---- The graph and its bodies ---- */

struct tf_node {
    const struct op_row *op; /* NULL: argument of a function */
    Tensorflow__NodeDef *message;
    bool runs; /* of a function: whether or not a result depends on it */
};

/* A writer: the graph's own, or a function's body. */
struct body {
    sx_tf_writer writer; /* first: the interface */
    sx_tf_graph *graph;
    struct body *next;    /* of the graph's open bodies */
    const char *function; /* NULL for the graph */
    const int *arg_types;
    int n_args;
    struct tf_node *nodes; /* [n_nodes], a function's arguments first */
    size_t n_nodes, capacity;
    sx_map names;
    sx_buf scope;        /* "a/b/" */
    sx_buf scope_starts; /* size_t each: the length of `scope` before each push */
    const char *device;  /* of the nodes that are written; NULL or "": none */
};

struct sx_tf_graph {
    sx_arena arena;
    sx_status error;
    struct body main;
    struct body *open;
    sx_map function_names;
    Tensorflow__FunctionDef **functions; /* in the arena when finished, in the heap till then */
    size_t n_functions, functions_capacity;
    sx_tf_vocabulary_table *vocabularies;
};

static const sx_tf_writer_class writer_class;

static void fail(sx_tf_graph *graph, sx_status status)
{
    if (graph->error == SX_OK) {
        graph->error = status;
    } else {
        sx_status_free(status);
    }
}

static void fail_memory(sx_tf_graph *graph)
{
    fail(graph, sx_no_memory("for a TensorFlow graph"));
}

static struct body *body_of(sx_tf_writer *w)
{
    return (struct body *)w;
}

static void body_init(struct body *body, sx_tf_graph *graph)
{
    *body = (struct body){.writer = {&writer_class}, .graph = graph};
    sx_map_init(&body->names);
    sx_buf_init(&body->scope, MAX_NAME_BYTES);
    sx_buf_init(&body->scope_starts, MAX_NAME_BYTES);
}

static void body_deinit(struct body *body)
{
    sx_free(body->nodes);
    sx_map_deinit(&body->names);
    sx_buf_deinit(&body->scope);
    sx_buf_deinit(&body->scope_starts);
}

sx_status sx_tf_graph_create(sx_tf_graph **out_graph)
{
    sx_tf_graph *graph = sx_alloc(1, sizeof(*graph));
    if (graph == NULL) {
        return sx_no_memory("for a TensorFlow graph");
    }
    sx_arena_init(&graph->arena, 0);
    sx_map_init(&graph->function_names);
    body_init(&graph->main, graph);
    *out_graph = graph;
    return SX_OK;
}

void sx_tf_graph_destroy(sx_tf_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    while (graph->open != NULL) {
        struct body *body = graph->open;
        graph->open = body->next;
        body_deinit(body);
        sx_free(body);
    }
    body_deinit(&graph->main);
    sx_map_deinit(&graph->function_names);
    sx_free(graph->functions);
    sx_status_free(graph->error);
    sx_arena_deinit(&graph->arena);
    sx_free(graph);
}

sx_tf_writer *sx_tf_graph_writer(sx_tf_graph *graph)
{
    return &graph->main.writer;
}

sx_arena *sx_tf_graph_arena(sx_tf_graph *graph)
{
    return &graph->arena;
}

/* Grows a heap array for one more item. */
static bool grow(void **items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 32 : *capacity * 2;
    void *grown = wanted > MAX_NODES ? NULL : sx_realloc(*items, wanted, item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

/* ---- Names ---- */

/* TensorFlow's rule for node names: [A-Za-z0-9.][A-Za-z0-9_.\\/>-]* */
static char *clean_name(sx_arena *arena, const char *scope, const char *name)
{
    char *text = sx_arena_printf(arena, "%s%s", scope, name);
    for (char *c = text; c != NULL && *c != '\0'; c++) {
        bool first = c == text;
        if (!isalnum((unsigned char)*c) && *c != '.' && (first || strchr("_-/", *c) == NULL)) {
            *c = first ? '.' : '_';
        }
    }
    return text;
}

/* `name`, or name_1, name_2 … if taken; takes it. NULL after an error. */
static const char *unique_name(sx_tf_graph *graph, sx_map *taken, const char *name)
{
    const char *unique = name;
    for (int i = 1; unique != NULL && sx_map_has(taken, unique); i++) {
        unique = sx_arena_printf(&graph->arena, "%s_%d", name, i);
    }
    sx_status status = unique == NULL ? SX_OK : sx_map_put(taken, unique, graph);
    if (unique == NULL || status != SX_OK) {
        sx_status_free(status);
        fail_memory(graph);
        return NULL;
    }
    return unique;
}

/* How `value` is written as an input of a node of `body`; NULL after an error. */
static char *spell(struct body *body, sx_tf_value value)
{
    sx_tf_graph *graph = body->graph;
    if (value.node < 0 || (size_t)value.node >= body->n_nodes || value.output < 0) {
        fail(graph,
             sx_error(SX_INVALID_ARGUMENT,
                      "TensorFlow graph: value (%d, %d) does not belong to this %s", value.node,
                      value.output, body->function != NULL ? "function" : "graph"));
        return NULL;
    }
    const struct tf_node *node = &body->nodes[value.node];
    char *text;
    sx_bytes arg;
    int index;
    if (node->op == NULL) {
        text = sx_arena_printf(&graph->arena, "arg%d", value.node);
    } else if (!output_arg(node->op, value.output, &arg, &index)) {
        fail(graph, sx_error(SX_INVALID_ARGUMENT, "TensorFlow graph: %s \"%s\" has no output %d",
                             node->op->name, node->message->name, value.output));
        return NULL;
    } else if (body->function != NULL) {
        text = sx_arena_printf(&graph->arena, "%s:%.*s:%d", node->message->name, (int)arg.size,
                               (const char *)arg.data, index);
    } else if (value.output == 0) {
        text = node->message->name;
    } else {
        text = sx_arena_printf(&graph->arena, "%s:%d", node->message->name, value.output);
    }
    if (text == NULL) {
        fail_memory(graph);
    }
    return text;
}

const char *sx_tf_graph_node_name(sx_tf_graph *graph, sx_tf_value value)
{
    bool known = value.node >= 0 && (size_t)value.node < graph->main.n_nodes;
    return known ? graph->main.nodes[value.node].message->name : "";
}

const char *sx_tf_graph_tensor_name(sx_tf_graph *graph, sx_tf_value value)
{
    const char *node = sx_tf_graph_node_name(graph, value);
    return *node == '\0' ? "" : sx_arena_printf(&graph->arena, "%s:%d", node, value.output);
}

/* ---- The writer ---- */

static const sx_tf_value no_value = {-1, 0};

static sx_tf_value append_node(struct body *body, const struct op_row *op,
                               Tensorflow__NodeDef *message)
{
    void *nodes = body->nodes;
    if (!grow(&nodes, body->n_nodes, &body->capacity, sizeof(*body->nodes))) {
        fail_memory(body->graph);
        return no_value;
    }
    body->nodes = nodes;
    body->nodes[body->n_nodes] = (struct tf_node){.op = op, .message = message};
    return (sx_tf_value){(int)body->n_nodes++, 0};
}

static bool set_inputs(struct body *body, Tensorflow__NodeDef *node, sx_tf_values in)
{
    node->input = sx_arena_array(&body->graph->arena, in.count + 1, char *);
    if (node->input == NULL) {
        fail_memory(body->graph);
        return false;
    }
    for (int i = 0; i < in.count; i++) {
        node->input[i] = spell(body, in.items[i]);
        if (node->input[i] == NULL) {
            return false;
        }
    }
    node->n_input = (size_t)in.count;
    return true;
}

static sx_tf_value write_node(sx_tf_writer *w, const char *op, const char *name, sx_tf_values in,
                              sx_tf_attr_list attrs)
{
    struct body *body = body_of(w);
    sx_tf_graph *graph = body->graph;
    if (graph->error != SX_OK) {
        return no_value;
    }
    const struct op_row *row = find_op(op);
    if (row == NULL) {
        fail(graph, sx_error(SX_UNIMPLEMENTED,
                             "TensorFlow graph: operator %s has no row in tf_ops.def", op));
        return no_value;
    }
    Tensorflow__NodeDef *message = sx_arena_new(&graph->arena, Tensorflow__NodeDef);
    char *wanted = clean_name(&graph->arena, sx_buf_text(&body->scope), name != NULL ? name : op);
    if (message == NULL || wanted == NULL) {
        fail_memory(graph);
        return no_value;
    }
    tensorflow__node_def__init(message);
    const char *unique = unique_name(graph, &body->names, wanted);
    if (unique == NULL || !set_inputs(body, message, in)) {
        return no_value;
    }
    message->name = (char *)(uintptr_t)unique;
    message->op = (char *)(uintptr_t)row->name;
    if (body->device != NULL && body->device[0] != '\0') {
        message->device = sx_arena_strdup(&graph->arena, body->device);
        if (message->device == NULL) {
            fail_memory(graph);
            return no_value;
        }
    }
    if (!sx_tf_set_attrs(&graph->arena, message, attrs)) {
        fail_memory(graph);
        return no_value;
    }
    return append_node(body, row, message);
}

static sx_tf_value write_constant(sx_tf_writer *w, const char *name, const sx_tensor *value)
{
    return write_node(w, "Const", name, SX_TF_NO_IN,
                      sx_tf_attrs(sx_tf_attr_type("dtype", value->type.dtype),
                                  sx_tf_attr_tensor("value", value)));
}

static void control(sx_tf_writer *w, sx_tf_value value, sx_tf_values after)
{
    struct body *body = body_of(w);
    sx_tf_graph *graph = body->graph;
    if (graph->error != SX_OK) {
        return;
    }
    struct tf_node *node = &body->nodes[value.node];
    Tensorflow__NodeDef *message = node->message;
    size_t n = message->n_input;
    char **inputs = sx_arena_array(&graph->arena, n + (size_t)after.count + 1, char *);
    if (inputs == NULL) {
        fail_memory(graph);
        return;
    }
    memcpy(inputs, message->input, n * sizeof(*inputs));
    for (int i = 0; i < after.count; i++) {
        inputs[n] =
            sx_arena_printf(&graph->arena, "^%s", body->nodes[after.items[i].node].message->name);
        if (inputs[n++] == NULL) {
            fail_memory(graph);
            return;
        }
    }
    message->input = inputs;
    message->n_input = n;
    node->runs = true;
}

void sx_tf_graph_set_device(sx_tf_writer *w, const char *device)
{
    body_of(w)->device = device;
}

static void scope_push(sx_tf_writer *w, const char *name)
{
    struct body *body = body_of(w);
    size_t start = body->scope.size;
    sx_buf_append(&body->scope_starts, &start, sizeof(start));
    sx_buf_printf(&body->scope, "%s/", name);
    if (body->scope.failed != 0 || body->scope_starts.failed != 0) {
        fail_memory(body->graph);
    }
}

static void scope_pop(sx_tf_writer *w)
{
    struct body *body = body_of(w);
    size_t start;
    if (body->scope_starts.size < sizeof(start)) {
        return;
    }
    body->scope_starts.size -= sizeof(start);
    memcpy(&start, body->scope_starts.data + body->scope_starts.size, sizeof(start));
    if (start < body->scope.size) {
        body->scope.size = start;
        body->scope.data[start] = '\0';
    }
}

static void fail_writer(sx_tf_writer *w, sx_status status)
{
    if (status != SX_OK) {
        fail(body_of(w)->graph, status);
    }
}

/* ---- Functions ---- */

/* Takes the calls made after an error: an empty body. */
static sx_tf_writer *function_begin(sx_tf_writer *w, const char *name, int n_args, const int *types)
{
    struct body *outer = body_of(w);
    sx_tf_graph *graph = outer->graph;
    struct body *body = sx_alloc(1, sizeof(*body));
    char *wanted = clean_name(&graph->arena, sx_buf_text(&outer->scope), name);
    int *copy = sx_arena_memdup(&graph->arena, types, (size_t)n_args * sizeof(*types));
    if (body == NULL || wanted == NULL || (copy == NULL && n_args > 0)) {
        sx_free(body);
        fail_memory(graph);
        return &graph->main.writer; /* which ends no function */
    }
    for (char *c = wanted; *c != '\0'; c++) {
        *c = *c == '/' ? '_' : *c;
    }
    body_init(body, graph);
    body->next = graph->open;
    graph->open = body;
    body->function = unique_name(graph, &graph->function_names, wanted);
    body->arg_types = copy;
    body->n_args = n_args;
    for (int i = 0; i < n_args; i++) {
        (void)append_node(body, NULL, NULL);
    }
    return &body->writer;
}

static Tensorflow__OpDef__ArgDef **arg_messages(sx_arena *arena, const char *prefix, int n,
                                                const int *types)
{
    Tensorflow__OpDef__ArgDef **list = sx_arena_array(arena, n + 1, Tensorflow__OpDef__ArgDef *);
    for (int i = 0; list != NULL && i < n; i++) {
        Tensorflow__OpDef__ArgDef *arg = sx_arena_new(arena, Tensorflow__OpDef__ArgDef);
        char *name = sx_arena_printf(arena, "%s%d", prefix, i);
        if (arg == NULL || name == NULL) {
            return NULL;
        }
        tensorflow__op_def__arg_def__init(arg);
        arg->name = name;
        arg->type = (Tensorflow__DataType)types[i];
        list[i] = arg;
    }
    return list;
}

static Tensorflow__OpDef *signature_message(struct body *body, int n_results, const int *types)
{
    sx_arena *arena = &body->graph->arena;
    Tensorflow__OpDef *signature = sx_arena_new(arena, Tensorflow__OpDef);
    if (signature == NULL) {
        return NULL;
    }
    tensorflow__op_def__init(signature);
    signature->name = (char *)(uintptr_t)body->function;
    signature->n_input_arg = (size_t)body->n_args;
    signature->input_arg = arg_messages(arena, "arg", body->n_args, body->arg_types);
    signature->n_output_arg = (size_t)n_results;
    signature->output_arg = arg_messages(arena, "out", n_results, types);
    for (size_t i = (size_t)body->n_args; i < body->n_nodes; i++) {
        signature->is_stateful |= body->nodes[i].op->stateful;
    }
    return signature->input_arg != NULL && signature->output_arg != NULL ? signature : NULL;
}

static bool set_results(struct body *body, Tensorflow__FunctionDef *function, sx_tf_values results)
{
    sx_arena *arena = &body->graph->arena;
    function->ret = sx_arena_array(arena, results.count + 1, Tensorflow__FunctionDef__RetEntry *);
    for (int i = 0; function->ret != NULL && i < results.count; i++) {
        Tensorflow__FunctionDef__RetEntry *entry =
            sx_arena_new(arena, Tensorflow__FunctionDef__RetEntry);
        char *key = sx_arena_printf(arena, "out%d", i);
        char *value = spell(body, results.items[i]);
        if (entry == NULL || key == NULL || value == NULL) {
            return false;
        }
        tensorflow__function_def__ret_entry__init(entry);
        entry->key = key;
        entry->value = value;
        function->ret[function->n_ret++] = entry;
    }
    return function->ret != NULL;
}

/* The nodes that run in any case, each by its own name. */
static bool set_control_outputs(struct body *body, Tensorflow__FunctionDef *function)
{
    sx_arena *arena = &body->graph->arena;
    size_t n = 0;
    for (size_t i = (size_t)body->n_args; i < body->n_nodes; i++) {
        n += body->nodes[i].runs;
    }
    function->control_ret =
        sx_arena_array(arena, n + 1, Tensorflow__FunctionDef__ControlRetEntry *);
    function->signature->control_output = sx_arena_array(arena, n + 1, char *);
    if (function->control_ret == NULL || function->signature->control_output == NULL) {
        return false;
    }
    for (size_t i = (size_t)body->n_args; i < body->n_nodes; i++) {
        if (!body->nodes[i].runs) {
            continue;
        }
        Tensorflow__FunctionDef__ControlRetEntry *entry =
            sx_arena_new(arena, Tensorflow__FunctionDef__ControlRetEntry);
        if (entry == NULL) {
            return false;
        }
        tensorflow__function_def__control_ret_entry__init(entry);
        entry->key = entry->value = body->nodes[i].message->name;
        function->control_ret[function->n_control_ret++] = entry;
        function->signature->control_output[function->signature->n_control_output++] = entry->key;
    }
    return true;
}

static bool set_nodes(struct body *body, size_t first, size_t *out_count,
                      Tensorflow__NodeDef ***out_nodes)
{
    size_t n = body->n_nodes - first;
    Tensorflow__NodeDef **list = sx_arena_array(&body->graph->arena, n + 1, Tensorflow__NodeDef *);
    for (size_t i = 0; list != NULL && i < n; i++) {
        list[i] = body->nodes[first + i].message;
    }
    *out_count = n;
    *out_nodes = list;
    return list != NULL;
}

static Tensorflow__FunctionDef *function_message(struct body *body, sx_tf_values results,
                                                 const int *types)
{
    Tensorflow__FunctionDef *function = sx_arena_new(&body->graph->arena, Tensorflow__FunctionDef);
    if (function == NULL) {
        return NULL;
    }
    tensorflow__function_def__init(function);
    function->signature = signature_message(body, results.count, types);
    bool ok = function->signature != NULL && set_results(body, function, results) &&
              set_control_outputs(body, function) &&
              set_nodes(body, (size_t)body->n_args, &function->n_node_def, &function->node_def);
    return ok ? function : NULL;
}

static void unlink_body(sx_tf_graph *graph, struct body *body)
{
    for (struct body **at = &graph->open; *at != NULL; at = &(*at)->next) {
        if (*at == body) {
            *at = body->next;
            return;
        }
    }
}

static const char *function_end(sx_tf_writer *w, sx_tf_values results, const int *types)
{
    struct body *body = body_of(w);
    sx_tf_graph *graph = body->graph;
    if (body->function == NULL) { /* the graph itself, handed out after an error */
        return "";
    }
    const char *name = body->function;
    void *functions = graph->functions;
    Tensorflow__FunctionDef *message =
        graph->error == SX_OK ? function_message(body, results, types) : NULL;
    if (message != NULL && grow(&functions, graph->n_functions, &graph->functions_capacity,
                                sizeof(*graph->functions))) {
        graph->functions = functions;
        graph->functions[graph->n_functions++] = message;
    } else if (graph->error == SX_OK) {
        fail_memory(graph);
    }
    unlink_body(graph, body);
    body_deinit(body);
    sx_free(body);
    return graph->error == SX_OK ? name : "";
}

/* By its content: a server may keep the tables of several models under their names. */
static const char *name_vocabulary(sx_tf_graph *graph, const sx_bytes *lines, int64_t first_id)
{
    sx_digest digest = {{0}};
    uint64_t id = 0;
    sx_status status = sx_digest_of(lines->data, lines->size, &digest);
    if (status != SX_OK) {
        sx_status_free(status);
        return NULL;
    }
    for (int i = 0; i < 8; i++) {
        id = id << 8 | digest.bytes[i];
    }
    return first_id == 0
               ? sx_arena_printf(&graph->arena, "vocabulary_%016llx", (unsigned long long)id)
               : sx_arena_printf(&graph->arena, "vocabulary_%016llx_%lld", (unsigned long long)id,
                                 (long long)first_id);
}

static sx_tf_value write_vocabulary(sx_tf_writer *w, const sx_tensor *words, int64_t first_id)
{
    sx_tf_graph *graph = body_of(w)->graph;
    sx_buf lines;
    sx_buf_init(&lines, 0);
    for (int64_t i = 0, n = sx_type_elems(&words->type); i < n; i++) {
        const sx_bytes *word = (const sx_bytes *)words->data + i;
        sx_buf_append(&lines, word->data, word->size);
        sx_buf_putc(&lines, '\n');
    }
    sx_status status = sx_buf_status(&lines);
    sx_tf_vocabulary_table *t = graph->vocabularies;
    while (t != NULL && (t->first_id != first_id || t->lines.size != lines.size ||
                         memcmp(t->lines.data, lines.data, lines.size) != 0)) {
        t = t->next;
    }
    if (status == SX_OK && t == NULL) {
        t = sx_arena_new(&graph->arena, sx_tf_vocabulary_table);
        const void *copy = sx_arena_memdup(&graph->arena, lines.data, lines.size);
        status = t == NULL || copy == NULL ? sx_no_memory("for a TensorFlow graph") : SX_OK;
        if (status == SX_OK) {
            *t = (sx_tf_vocabulary_table){
                .next = graph->vocabularies, .lines = {copy, lines.size}, .first_id = first_id};
            t->shared_name = name_vocabulary(graph, &t->lines, first_id);
            graph->vocabularies = t;
            status = t->shared_name == NULL ? sx_no_memory("for a TensorFlow graph") : SX_OK;
        }
        if (status == SX_OK) {
            t->handle = sx_tf_add(&graph->main.writer, "HashTableV2", "vocabulary", SX_TF_NO_IN,
                                  sx_tf_attrs(sx_tf_attr_type("key_dtype", SX_STRING),
                                              sx_tf_attr_type("value_dtype", SX_I64),
                                              sx_tf_attr_string("shared_name", t->shared_name)));
        }
    }
    sx_buf_deinit(&lines);
    if (status != SX_OK) {
        fail(graph, status);
        return (sx_tf_value){-1, 0};
    }
    if (w != &graph->main.writer) {
        fail(graph, sx_error(SX_UNIMPLEMENTED, "a function's vocabulary is no argument of it"));
        return (sx_tf_value){-1, 0};
    }
    return t->handle;
}

const sx_tf_vocabulary_table *sx_tf_graph_vocabularies(const sx_tf_graph *graph)
{
    return graph->vocabularies;
}

static const sx_tf_writer_class writer_class = {
    .node = write_node,
    .constant = write_constant,
    .function_begin = function_begin,
    .function_end = function_end,
    .control = control,
    .scope_push = scope_push,
    .scope_pop = scope_pop,
    .fail = fail_writer,
    .vocabulary = write_vocabulary,
};

/* ---- The whole ---- */

static Tensorflow__FunctionDefLibrary *library_message(sx_tf_graph *graph)
{
    Tensorflow__FunctionDefLibrary *library =
        sx_arena_new(&graph->arena, Tensorflow__FunctionDefLibrary);
    if (library != NULL) {
        tensorflow__function_def_library__init(library);
        library->n_function = graph->n_functions;
        library->function = graph->functions;
    }
    return library;
}

static Tensorflow__VersionDef *versions_message(sx_tf_graph *graph)
{
    Tensorflow__VersionDef *versions = sx_arena_new(&graph->arena, Tensorflow__VersionDef);
    if (versions != NULL) {
        tensorflow__version_def__init(versions);
        versions->producer = SX_TF_GRAPH_PRODUCER;
        versions->min_consumer = SX_TF_GRAPH_MIN_CONSUMER;
    }
    return versions;
}

sx_status sx_tf_graph_finish(sx_tf_graph *graph, Tensorflow__GraphDef **out_message)
{
    Tensorflow__GraphDef *message = sx_arena_new(&graph->arena, Tensorflow__GraphDef);
    if (graph->error == SX_OK && message != NULL) {
        tensorflow__graph_def__init(message);
        message->library = graph->n_functions > 0 ? library_message(graph) : NULL;
        message->versions = versions_message(graph);
        if (!set_nodes(&graph->main, 0, &message->n_node, &message->node) ||
            message->versions == NULL || (graph->n_functions > 0 && message->library == NULL)) {
            message = NULL;
        }
    }
    if (graph->error == SX_OK && message == NULL) {
        fail_memory(graph);
    }
    if (graph->error != SX_OK) {
        sx_status error = graph->error;
        graph->error = SX_OK;
        return error;
    }
    *out_message = message;
    return SX_OK;
}
