/* sx_tf_writer: receives an operator's TensorFlow nodes from its `to_tf` function.
 *
 * A writer is one body of TensorFlow nodes: a GraphDef, or a FunctionDef of its library. An
 * operator emits nodes, constants and sub-functions through it and gets handles back; the writer
 * chooses the spelling of a handle (`node:1` in a graph, `node:output_arg:0` in a function), so the
 * same `to_tf` serves both. This is only the interface; src/savedmodel/tf_graph.h implements it.
 *
 *     sx_tf_value axis = sx_tf_const_i32(w, "axis", -1);
 *     n->out[0] = sx_tf_add(w, "Max", NULL, sx_tf_in(n->in[0], axis),
 *                           sx_tf_attrs(sx_tf_attr_type("T", n->in_types[0].dtype),
 *                                       sx_tf_attr_type("Tidx", SX_I32),
 *                                       sx_tf_attr_bool("keep_dims", true)));
 *
 * Errors: as in the builder, the writer keeps the first one, which is returned when the writer is
 * finished; later calls do nothing. So `to_tf` needs no checks, and returns an error only for what
 * TensorFlow cannot express.
 *
 * Attributes: write those without a default, and those that differ from it. Never write an
 * attribute that equals the operator's default: older runtimes reject attributes that they do not
 * know. Attributes that TensorFlow infers (T, Tidx, N) have no default: write them.
 *
 * Everything passed in (names, shapes, data) is copied before the call returns. */
#ifndef SX_GRAPH_LOWER_TF_WRITER_H
#define SX_GRAPH_LOWER_TF_WRITER_H

#include <string.h>

#include <sextant/types.h>

typedef struct sx_tf_writer sx_tf_writer;

/* Output `output` of node `node` of one writer; valid in that writer only. {-1, 0} is no value
 * (returned by a failed writer). */
typedef struct sx_tf_value {
    int node;
    int output;
} sx_tf_value;

/* TensorFlow types that Sextant's tensors do not have; for attributes that are types. */
enum { SX_TF_RESOURCE = 20, SX_TF_VARIANT = 21 };

typedef enum sx_tf_attr_kind {
    SX_TF_ATTR_TYPE,
    SX_TF_ATTR_TYPES,
    SX_TF_ATTR_SHAPE,
    SX_TF_ATTR_SHAPES,
    SX_TF_ATTR_TENSOR,
    SX_TF_ATTR_INT,
    SX_TF_ATTR_INTS,
    SX_TF_ATTR_FLOAT,
    SX_TF_ATTR_BOOL,
    SX_TF_ATTR_STRING,
    SX_TF_ATTR_FUNC,
    SX_TF_ATTR_STRINGS, /* `count` strings, joined by commas in `s` */
    SX_TF_ATTR_FLOATS,
} sx_tf_attr_kind;

/* One attribute of a node; made by the functions below. */
typedef struct sx_tf_attr {
    const char *name;
    sx_tf_attr_kind kind;
    int count; /* of the list kinds; STRING: bytes */
    union {
        int64_t i; /* INT, and TYPE as a DataType number */
        float f;
        bool b;
        const char *s; /* STRING, and FUNC as the function's name */
        const int64_t *ints;
        const float *floats;
        const int *types;
        const sx_type *shapes;
        const sx_tensor *tensor;
    };
} sx_tf_attr;

typedef struct sx_tf_values {
    const sx_tf_value *items;
    int count;
} sx_tf_values;

typedef struct sx_tf_attr_list {
    const sx_tf_attr *items;
    int count;
} sx_tf_attr_list;

/* sx_tf_in(x, w) and sx_tf_attrs(...): the arguments of a node; SX_TF_NO_IN, SX_TF_NO_ATTRS if
 * none. */
#define sx_tf_in(...)                                   \
    ((sx_tf_values){(const sx_tf_value[]){__VA_ARGS__}, \
                    (int)(sizeof((sx_tf_value[]){__VA_ARGS__}) / sizeof(sx_tf_value))})
#define sx_tf_attrs(...)                                  \
    ((sx_tf_attr_list){(const sx_tf_attr[]){__VA_ARGS__}, \
                       (int)(sizeof((sx_tf_attr[]){__VA_ARGS__}) / sizeof(sx_tf_attr))})
#define SX_TF_NO_IN    ((sx_tf_values){NULL, 0})
#define SX_TF_NO_ATTRS ((sx_tf_attr_list){NULL, 0})

/* The contract between operators and the implementation. Call it through the functions below. */
typedef struct sx_tf_writer_class {
    sx_tf_value (*node)(sx_tf_writer *w, const char *op, const char *name, sx_tf_values in,
                        sx_tf_attr_list attrs);
    sx_tf_value (*constant)(sx_tf_writer *w, const char *name, const sx_tensor *value);
    sx_tf_writer *(*function_begin)(sx_tf_writer *w, const char *name, int n_args,
                                    const int *types);
    const char *(*function_end)(sx_tf_writer *body, sx_tf_values results, const int *types);
    void (*control)(sx_tf_writer *w, sx_tf_value node, sx_tf_values after);
    void (*scope_push)(sx_tf_writer *w, const char *name);
    void (*scope_pop)(sx_tf_writer *w);
    void (*fail)(sx_tf_writer *w, sx_status status);
    sx_tf_value (*vocabulary)(sx_tf_writer *w, const sx_tensor *words, int64_t first_id);
} sx_tf_writer_class;

/* Implementations embed this as their first field. */
struct sx_tf_writer {
    const sx_tf_writer_class *cls;
};

/* Adds a node of TensorFlow operator `op` and returns its output 0.
 *
 *   name     its last name part, NULL for `op` itself; the full name is the current scope's path,
 *            `/`, and this, made unique with _1, _2 …
 *   in       data inputs in TensorFlow's order
 *
 * Errors (kept by the writer)
 *   UNIMPLEMENTED     `op` is not in the writer's table of operators (src/savedmodel/tf_ops.def)
 *   INVALID_ARGUMENT  an input from another writer, an output that `op` does not have */
static inline sx_tf_value sx_tf_add(sx_tf_writer *w, const char *op, const char *name,
                                    sx_tf_values in, sx_tf_attr_list attrs)
{
    return w->cls->node(w, op, name, in, attrs);
}

/* Output `k` of the node whose output 0 is `value`. */
static inline sx_tf_value sx_tf_output(sx_tf_value value, int k)
{
    return (sx_tf_value){value.node, k};
}

/* A Const node. `value` is borrowed for the call; strings are sx_bytes. */
static inline sx_tf_value sx_tf_const(sx_tf_writer *w, const char *name, const sx_tensor *value)
{
    return w->cls->constant(w, name, value);
}
static inline sx_tf_value sx_tf_const_i32(sx_tf_writer *w, const char *name, int32_t value)
{
    return sx_tf_const(w, name, &(sx_tensor){sx_scalar_type(SX_I32), &value});
}
static inline sx_tf_value sx_tf_const_f32(sx_tf_writer *w, const char *name, float value)
{
    return sx_tf_const(w, name, &(sx_tensor){sx_scalar_type(SX_F32), &value});
}
/* A vector of int32, [n]: shapes, axes, paddings' rows. */
static inline sx_tf_value sx_tf_const_i32s(sx_tf_writer *w, const char *name, int n,
                                           const int32_t *values)
{
    return sx_tf_const(w, name, &(sx_tensor){sx_type_of(SX_I32, n), (void *)(uintptr_t)values});
}

/* Starts a function of the library and returns the writer of its body. Its argument i is
 * sx_tf_arg(i), of DataType types[i]. `name` is made unique. The body is borrowed and is closed by
 * sx_tf_function_end(), which returns the function's name for sx_tf_attr_func() (owned by the
 * writer; "" if it failed). Bodies may nest. types[i] of the end is the DataType of
 * results.items[i]. */
static inline sx_tf_writer *sx_tf_function_begin(sx_tf_writer *w, const char *name, int n_args,
                                                 const int *types)
{
    return w->cls->function_begin(w, name, n_args, types);
}
static inline const char *sx_tf_function_end(sx_tf_writer *body, sx_tf_values results,
                                             const int *types)
{
    return body->cls->function_end(body, results, types);
}
/* Argument i of a function's body, as a value of that body. */
static inline sx_tf_value sx_tf_arg(int i)
{
    return (sx_tf_value){i, 0};
}

/* Makes `node` run after the nodes `after`, through control inputs. In a function it runs whether
 * or not a result depends on it. */
static inline void sx_tf_control(sx_tf_writer *w, sx_tf_value node, sx_tf_values after)
{
    w->cls->control(w, node, after);
}

/* Later nodes are named in the scope `name`, until the pop. */
static inline void sx_tf_scope_push(sx_tf_writer *w, const char *name)
{
    w->cls->scope_push(w, name);
}
static inline void sx_tf_scope_pop(sx_tf_writer *w)
{
    w->cls->scope_pop(w);
}

/* The handle of a static table from strings to int64: the model's initialization fills it from an
 * asset with words[V], strings without line breaks, each on a line; the first has the value
 * `first_id`, the others follow. Equal vocabularies are one table. */
static inline sx_tf_value sx_tf_vocabulary(sx_tf_writer *w, const sx_tensor *words,
                                           int64_t first_id)
{
    return w->cls->vocabulary(w, words, first_id);
}

/* Records `status` (taken) as the writer's error if it is the first; for operators that TensorFlow
 * cannot express. */
static inline void sx_tf_fail(sx_tf_writer *w, sx_status status)
{
    (w->cls->fail)(w, status); /* parentheses: cmocka has a macro fail() */
}

/* Attributes. `types` are DataType numbers: sx_dtype values, SX_TF_RESOURCE, SX_TF_VARIANT. In
 * shapes, all dimensions that are not counts are unknown; the dtype is ignored. */
static inline sx_tf_attr sx_tf_attr_type(const char *name, int type)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_TYPE, .i = type};
}
static inline sx_tf_attr sx_tf_attr_types(const char *name, int count, const int *types)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_TYPES, .count = count, .types = types};
}
static inline sx_tf_attr sx_tf_attr_shape(const char *name, const sx_type *shape)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_SHAPE, .count = 1, .shapes = shape};
}
static inline sx_tf_attr sx_tf_attr_shapes(const char *name, int count, const sx_type *shapes)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_SHAPES, .count = count, .shapes = shapes};
}
static inline sx_tf_attr sx_tf_attr_tensor(const char *name, const sx_tensor *tensor)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_TENSOR, .tensor = tensor};
}
static inline sx_tf_attr sx_tf_attr_int(const char *name, int64_t value)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_INT, .i = value};
}
static inline sx_tf_attr sx_tf_attr_ints(const char *name, int count, const int64_t *values)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_INTS, .count = count, .ints = values};
}
static inline sx_tf_attr sx_tf_attr_floats(const char *name, int count, const float *values)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_FLOATS, .count = count, .floats = values};
}
/* `count` strings, joined by commas. */
static inline sx_tf_attr sx_tf_attr_strings(const char *name, int count, const char *joined)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_STRINGS, .count = count, .s = joined};
}
static inline sx_tf_attr sx_tf_attr_float(const char *name, float value)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_FLOAT, .f = value};
}
static inline sx_tf_attr sx_tf_attr_bool(const char *name, bool value)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_BOOL, .b = value};
}
static inline sx_tf_attr sx_tf_attr_string(const char *name, const char *value)
{
    return (sx_tf_attr){
        .name = name, .kind = SX_TF_ATTR_STRING, .count = (int)strlen(value), .s = value};
}
static inline sx_tf_attr sx_tf_attr_func(const char *name, const char *function)
{
    return (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_FUNC, .s = function};
}

#endif
