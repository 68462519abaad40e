#include "checkpoint/object_graph.h"

#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "proto/trackable_object_graph.pb-c.h"

#define GRAPH_KEY       "_CHECKPOINTABLE_OBJECT_GRAPH"
#define COUNTER_NAME    "save_counter"
#define VALUE_ATTRIBUTE "VARIABLE_VALUE"

enum { MAX_OBJECTS = 1 << 20 };

typedef Tensorflow__TrackableObjectGraph__TrackableObject object_message;
typedef Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference reference_message;
typedef Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor tensor_message;

struct object {
    struct object *parent, *next; /* in order of creation */
    const char *local_name;
    const char *full_name; /* of the variable at this node, or NULL */
    const char *key;       /* likewise */
    int id;
    size_t n_children;
    object_message message;
};

struct tree {
    sx_arena arena;
    sx_map by_path; /* escaped path -> object */
    struct object root;
    struct object *last;
    int count;
};

/* '.' becomes "..", '/' cannot occur. */
static void put_escaped(sx_buf *out, const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        sx_buf_puts(out, part[i] == '.' ? "." : "");
        sx_buf_putc(out, part[i]);
    }
}

/* The object at `path`, made as a child of `parent` if it is new. */
static sx_status child(struct tree *t, struct object *parent, const char *path, const char *part,
                       size_t length, struct object **out)
{
    *out = sx_map_get(&t->by_path, path);
    if (*out != NULL) {
        return SX_OK;
    }
    struct object *o = sx_arena_new(&t->arena, struct object);
    char *name = sx_arena_strndup(&t->arena, part, length);
    if (o == NULL || name == NULL || t->count == MAX_OBJECTS) {
        return sx_no_memory("for an object graph");
    }
    *o = (struct object){.parent = parent, .local_name = name, .id = t->count++};
    parent->n_children++;
    t->last->next = o;
    t->last = o;
    *out = o;
    return sx_map_put(&t->by_path, path, o);
}

static sx_status add_variable(struct tree *t, const char *name)
{
    sx_buf path;
    sx_buf_init(&path, 1 << 16);
    struct object *at = &t->root;
    sx_status status = SX_OK;
    for (const char *part = name; status == SX_OK;) {
        size_t length = strcspn(part, "/");
        if (length == 0) {
            status =
                sx_error(SX_INVALID_ARGUMENT, "variable name \"%s\" has an empty component", name);
            break;
        }
        sx_buf_puts(&path, path.size > 0 ? "/" : "");
        put_escaped(&path, part, length);
        status = sx_buf_status(&path);
        if (status == SX_OK) {
            status = child(t, at, sx_buf_text(&path), part, length, &at);
        }
        if (part[length] == '\0') {
            break;
        }
        part += length + 1;
    }
    if (status == SX_OK) {
        at->full_name = sx_arena_strdup(&t->arena, name);
        at->key = sx_arena_printf(&t->arena, "%s/.ATTRIBUTES/" VALUE_ATTRIBUTE, sx_buf_text(&path));
        status =
            at->full_name == NULL || at->key == NULL ? sx_no_memory("for an object graph") : SX_OK;
    }
    sx_buf_deinit(&path);
    return status;
}

static sx_status set_attribute(sx_arena *arena, struct object *o)
{
    tensor_message *tensor = sx_arena_new(arena, tensor_message);
    tensor_message **list = sx_arena_new(arena, tensor_message *);
    if (tensor == NULL || list == NULL) {
        return sx_no_memory("for an object graph");
    }
    tensorflow__trackable_object_graph__trackable_object__serialized_tensor__init(tensor);
    tensor->name = (char *)(uintptr_t)VALUE_ATTRIBUTE;
    tensor->full_name = (char *)(uintptr_t)o->full_name;
    tensor->checkpoint_key = (char *)(uintptr_t)o->key;
    *list = tensor;
    o->message.n_attributes = 1;
    o->message.attributes = list;
    return SX_OK;
}

static sx_status attach(sx_arena *arena, struct object *o)
{
    reference_message *reference = sx_arena_new(arena, reference_message);
    if (reference == NULL) {
        return sx_no_memory("for an object graph");
    }
    tensorflow__trackable_object_graph__trackable_object__object_reference__init(reference);
    reference->node_id = o->id;
    reference->local_name = (char *)(uintptr_t)o->local_name;
    object_message *parent = &o->parent->message;
    parent->children[parent->n_children++] = reference;
    return SX_OK;
}

/* Turns the tree into messages; objects come in order of creation, parents first. */
static sx_status fill_messages(struct tree *t, Tensorflow__TrackableObjectGraph *out)
{
    out->nodes = sx_arena_array(&t->arena, t->count, object_message *);
    if (out->nodes == NULL) {
        return sx_no_memory("for an object graph");
    }
    for (struct object *o = &t->root; o != NULL; o = o->next) {
        tensorflow__trackable_object_graph__trackable_object__init(&o->message);
        o->message.children = sx_arena_array(&t->arena, o->n_children + 1, reference_message *);
        if (o->message.children == NULL) {
            return sx_no_memory("for an object graph");
        }
        out->nodes[out->n_nodes++] = &o->message;
        if (o->full_name != NULL) {
            SX_TRY(set_attribute(&t->arena, o));
        }
        if (o->parent != NULL) {
            SX_TRY(attach(&t->arena, o));
        }
    }
    return SX_OK;
}

static sx_status add_graph_tensor(struct tree *t, sx_bundle_writer *w)
{
    Tensorflow__TrackableObjectGraph graph = TENSORFLOW__TRACKABLE_OBJECT_GRAPH__INIT;
    SX_TRY(fill_messages(t, &graph));
    size_t size = tensorflow__trackable_object_graph__get_packed_size(&graph);
    uint8_t *packed = sx_arena_alloc(&t->arena, size + 1, 1);
    if (packed == NULL) {
        return sx_no_memory("for an object graph");
    }
    tensorflow__trackable_object_graph__pack(&graph, packed);
    return sx_bundle_add(w, GRAPH_KEY,
                         &(sx_tensor){sx_scalar_type(SX_STRING), &(sx_bytes){packed, size}});
}

static sx_status add_all(struct tree *t, sx_bundle_writer *w, const char *const *names, size_t n,
                         int64_t save_counter)
{
    for (size_t i = 0; i < n; i++) {
        SX_TRY(add_variable(t, names[i]));
    }
    bool own_counter = !sx_map_has(&t->by_path, COUNTER_NAME);
    if (own_counter) {
        SX_TRY(add_variable(t, COUNTER_NAME));
    }
    for (struct object *o = t->root.next; o != NULL; o = o->next) {
        if (o->key != NULL && !(own_counter && o == t->last)) {
            SX_TRY(sx_bundle_alias(w, o->key, o->full_name));
        }
    }
    if (own_counter) {
        SX_TRY(sx_bundle_add(w, t->last->key, &(sx_tensor){sx_scalar_type(SX_I64), &save_counter}));
    }
    return add_graph_tensor(t, w);
}

sx_status sx_object_graph_add(sx_bundle_writer *w, const char *const *names, size_t n,
                              int64_t save_counter)
{
    struct tree t = {.count = 1};
    t.last = &t.root;
    sx_arena_init(&t.arena, 0);
    sx_map_init(&t.by_path);
    sx_status status = add_all(&t, w, names, n, save_counter);
    sx_map_deinit(&t.by_path);
    sx_arena_deinit(&t.arena);
    return status;
}
