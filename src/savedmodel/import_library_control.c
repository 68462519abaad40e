/* Imports branches and loops: the functions that they call become regions.
 *
 * A region sees only its operands, and these are values: a variable that no branch or body assigns
 * is read before, and a list of tensors (import_library_lists.c) whose shape is not known gets it
 * from a trial, which imports the functions once beside the node, for the types of their results.
 * No result reads these nodes, so they do not run; a trial leaves out effects. */
#include "savedmodel/import_library_ops.h"
#include "savedmodel/names.h"

#include <stdio.h>
#include <string.h>

typedef const Tensorflow__FunctionDef function_def;

static bool has_value(const sx_tf_thing *t)
{
    return t->kind != SX_TF_NOTHING && t->kind != SX_TF_REFUSED && sx_value_is(t->value);
}

static bool is_variable(const sx_tf_thing *t)
{
    return t->kind == SX_TF_HANDLE || t->kind == SX_TF_REF;
}

static bool lacks_shape(const sx_tf_thing *t)
{
    return t->kind == SX_TF_LIST && !sx_value_is(t->value) && t->element == NULL;
}

/* Whether it is a list that could give its shape to another. */
static bool has_shape(const sx_tf_thing *t)
{
    return t->kind == SX_TF_LIST && (has_value(t) || t->element != NULL);
}

static sx_status copy_args(const sx_tf_op_node *x, int first, sx_tf_thing **out)
{
    sx_tf_thing *args =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*args));
    if (args == NULL) {
        return sx_import_memory();
    }
    *out = args + first;
    return SX_OK;
}

/* Values in place of handles, unless one of the functions assigns variables. */
static sx_status only_read(const sx_tf_op_node *x, function_def *const *functions, int n_functions,
                           sx_tf_thing *args, int n)
{
    bool assigns = false;
    for (int i = 0; i < n_functions && !assigns; i++) {
        SX_TRY(sx_tf_assigns(x->im, functions[i], &assigns));
    }
    for (int i = 0; i < n && !assigns; i++) {
        if (is_variable(&args[i])) {
            const bool ref = args[i].kind == SX_TF_REF;
            SX_TRY(sx_tf_read_handle(x, &args[i], &args[i].value));
            args[i].kind = ref ? SX_TF_VALUE : SX_TF_READ;
        }
    }
    return SX_OK;
}

/* A region takes and gives a complex tensor as one of real numbers: its value, while the regions
 * are built. */
static sx_status join_all(const sx_tf_op_node *x, sx_tf_thing *things, int n)
{
    for (int i = 0; i < n; i++) {
        if (things[i].kind == SX_TF_COMPLEX && !sx_value_is(things[i].value)) {
            SX_TRY(sx_tf_join_complex(x, &things[i], &things[i].value));
        }
    }
    return SX_OK;
}

/* What both types have in common. */
static sx_type join(sx_type a, const sx_type *b)
{
    if (a.rank != b->rank) {
        return sx_tf_unknown_shape(a.dtype);
    }
    for (int d = 0; d < a.rank; d++) {
        a.dims[d] = a.dims[d] == b->dims[d] ? a.dims[d] : SX_UNKNOWN_DIM;
    }
    return a;
}

/* Values in place of the variables of TensorFlow 1 that a function gives. */
static sx_status read_refs(const sx_tf_op_node *x, sx_tf_thing *things, int n)
{
    for (int i = 0; i < n; i++) {
        if (things[i].kind == SX_TF_REF) {
            SX_TRY(sx_tf_read_handle(x, &things[i], &things[i].value));
            things[i].kind = SX_TF_VALUE;
        }
    }
    return SX_OK;
}

/* Imports a function in place, without its effects. */
static sx_status try_function(const sx_tf_op_node *x, function_def *function,
                              const sx_tf_thing *args, int n, sx_tf_thing *results)
{
    x->im->trials++;
    sx_status status = sx_tf_import_body(x->im, function, x->b, args, n, results);
    x->im->trials--;
    return status;
}

/* Imports the body of a loop, or a branch, into `b`. `things`: what `passed` is there. */
static sx_status import_passing(const sx_tf_op_node *x, function_def *function, sx_builder *b,
                                const sx_tf_thing *args, int n_args, const sx_tf_passed *passed,
                                const sx_tf_thing *things, sx_tf_thing *results)
{
    const sx_tf_passed inside = {.ids = passed->ids, .things = things, .n = passed->n, .b = b},
                       *outside = x->im->passed;
    x->im->passed = &inside;
    sx_status status = sx_tf_import_body(x->im, function, b, args, n_args, results);
    x->im->passed = outside;
    return status;
}

static sx_status check_signature(function_def *function, int n_args, int n_results)
{
    const Tensorflow__OpDef *s = function->signature;
    return s->n_output_arg == (size_t)n_results && s->n_input_arg == (size_t)n_args
               ? SX_OK
               : sx_error(SX_DATA_LOSS,
                          "function \"%.100s\" has %zu arguments and %zu results, expected %d and "
                          "%d",
                          s->name, s->n_input_arg, s->n_output_arg, n_args, n_results);
}

/* Room for the function's results as outputs, and how many there are. */
static sx_status make_room(sx_tf_op_node *x, function_def *function, int *out_n)
{
    const size_t n = function->signature->n_output_arg;
    if ((size_t)x->n->n_out < n + 1) {
        x->n->n_out = (int)n + 1;
        x->n->out = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    }
    *out_n = (int)n;
    return x->n->out == NULL ? sx_import_memory() : SX_OK;
}

/* A condition that is a number is true if it is not 0. */
static sx_status to_bool(const sx_tf_op_node *x, sx_value v, sx_value *out)
{
    const sx_dtype dtype = sx_type_of_value(x->b, v).dtype;
    sx_value zero = SX_NO_VALUE, equal = SX_NO_VALUE;
    *out = v;
    if (dtype == SX_BOOL) {
        return SX_OK;
    }
    if (dtype == SX_STRING || dtype == SX_RESOURCE) {
        return sx_tf_unsupported("the condition is a %s", sx_dtype_name(dtype));
    }
    SX_TRY(sx_tf_number(x, dtype, 0, &zero));
    SX_TF_BUILD(x, &equal, equal, NULL, v, zero);
    SX_TF_BUILD(x, out, logical_not, NULL, equal);
    return SX_OK;
}

/* ---- Regions ---- */

/* A region under construction. */
typedef struct region {
    sx_builder *b;
    sx_tf_thing *args; /* the node's arguments as they are inside */
    int refused;       /* nodes, before */
} region;

static sx_type type_in(const sx_builder *b, const sx_tf_thing *t)
{
    return is_variable(t) ? sx_scalar_type(SX_RESOURCE) : sx_type_of_value(b, t->value);
}

/* The region takes the arguments order[n_order], all of which have values. Destroy out->b. */
static sx_status region_begin(const sx_tf_op_node *x, const sx_tf_thing *args, const sx_type *types,
                              int n, const int *order, int n_order, region *out)
{
    *out = (region){.refused = x->im->refused.n};
    out->args = sx_arena_memdup(&x->im->arena, args, ((size_t)n + 1) * sizeof(*args));
    if (out->args == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n; i++) { /* values of another builder mean nothing here */
        out->args[i].known = NULL;
        out->args[i].value = out->args[i].length = SX_NO_VALUE;
    }
    SX_TRY(sx_tf_create_builder(x->im, &out->b));
    for (int k = 0; k < n_order; k++) {
        char name[32];
        snprintf(name, sizeof(name), "x%d", order[k]);
        sx_tf_thing *arg = &out->args[order[k]];
        arg->value = sx_input(out->b, name, types[order[k]]);
        if (arg->kind == SX_TF_COMPLEX) {
            const sx_value both = arg->value;
            sx_tf_op_node inside = *x;
            inside.b = out->b;
            SX_TRY(sx_tf_split_complex(&inside, both, arg));
            arg->value = both;
        }
    }
    return SX_OK;
}

/* Whether no node of it was refused. */
static bool is_whole(const sx_tf_op_node *x, const region *r, const sx_tf_thing *results, int n)
{
    bool whole = x->im->refused.n == r->refused;
    for (int i = 0; i < n; i++) {
        whole = whole && results[i].kind != SX_TF_REFUSED;
    }
    return whole;
}

/* The region gives the results order[n_order] that have values; one without results, which runs
 * for what it assigns, gives true. The caller destroys *out. */
static sx_status region_end(const sx_tf_op_node *inside, const region *r,
                            const sx_tf_thing *results, const int *order, int n_order,
                            sx_graph **out)
{
    if (n_order == 0) {
        sx_value yes = SX_NO_VALUE;
        SX_TRY(sx_tf_number(inside, SX_BOOL, 1, &yes));
        sx_output(r->b, "done", yes);
    }
    for (int k = 0; k < n_order; k++) {
        char name[32];
        snprintf(name, sizeof(name), "y%d", order[k]);
        if (has_value(&results[order[k]])) {
            sx_output(r->b, name, results[order[k]].value);
        }
    }
    return sx_builder_finish(r->b, out);
}

/* ---- Branches ---- */

/* The value of an argument that is a constant inside a region, too: of axes, strides, shapes. */
static const sx_tensor *small_constant(const sx_tf_op_node *x, const sx_tf_thing *arg)
{
    enum { MOST_ELEMS = 64 };
    const sx_tensor *known =
        (arg->kind == SX_TF_VALUE || arg->kind == SX_TF_TUPLE) && has_value(arg)
            ? sx_tf_constant_of(x->b, arg->value)
            : NULL;
    return known != NULL && sx_dtype_bytes(known->type.dtype) > 0 &&
                   sx_type_is_static(&known->type) && sx_type_elems(&known->type) <= MOST_ELEMS
               ? known
               : NULL;
}

/* Arguments that are small constants, of those that are `chosen` (NULL: of all), are constants of
 * the region. */
static sx_status keep_constants(const sx_tf_op_node *x, const sx_tf_thing *args, const bool *chosen,
                                int n, region *r)
{
    sx_tf_op_node inside = *x;
    inside.b = r->b;
    for (int i = 0; i < n; i++) {
        const sx_tensor *known = chosen == NULL || chosen[i] ? small_constant(x, &args[i]) : NULL;
        if (known != NULL) {
            SX_TRY(sx_tf_constant(&inside, known->type, known->data, &r->args[i].value));
            r->args[i].known = sx_tf_constant_of(r->b, r->args[i].value);
        }
    }
    return SX_OK;
}

enum { MAX_BRANCHES = 32 };

/* The branches of a node, and what they are given. */
typedef struct choice {
    function_def *branches[MAX_BRANCHES];
    int n_branches;
    bool by_index;            /* k chooses branch k, else the last; false: true chooses the first */
    const sx_tf_thing *given; /* [n_given]: the arguments */
    int n_given, n_out;       /* n_out: results */
    sx_tf_passed passed;
    int n; /* leaves of the arguments, then what is passed beside them */
} choice;

static sx_status join_results(const sx_tf_thing *a, const sx_tf_thing *b, int i, sx_type *type,
                              const sx_type *other)
{
    if (a->kind == SX_TF_HANDLE || b->kind == SX_TF_HANDLE) {
        return sx_tf_unsupported("output %d is a variable's handle", i);
    }
    if (a->kind != b->kind || has_value(a) != has_value(b)) {
        return sx_tf_unsupported("output %d is a list of tensors, which one branch does not set",
                                 i);
    }
    if (a->uneven != b->uneven) {
        return sx_tf_unsupported("output %d is a list of tensors of one shape in one branch, of "
                                 "several in the other",
                                 i);
    }
    if (has_value(a) && type->dtype != other->dtype) {
        return sx_error(SX_DATA_LOSS, "output %d is %s in one branch and %s in the other", i,
                        sx_dtype_name(type->dtype), sx_dtype_name(other->dtype));
    }
    *type = join(*type, other);
    return SX_OK;
}

/* Whether a tuple of the node's results is held, where the condition says so: it is a constant of
 * either region. No value if it does not. */
static sx_status held_by_condition(const sx_tf_op_node *x, const sx_tf_op_node inside[2],
                                   const sx_tf_thing *a, const sx_tf_thing *b, sx_value condition,
                                   sx_value *out)
{
    const bool tuples = a->kind == SX_TF_TUPLE && b->kind == SX_TF_TUPLE;
    const sx_tensor *held[2] = {tuples ? sx_tf_constant_of(inside[0].b, a->value) : NULL,
                                tuples ? sx_tf_constant_of(inside[1].b, b->value) : NULL};
    *out = SX_NO_VALUE;
    if (held[0] == NULL || held[1] == NULL) {
        return SX_OK;
    }
    const bool first = *(const uint8_t *)held[0]->data != 0,
               second = *(const uint8_t *)held[1]->data != 0;
    if (first == second) {
        return sx_tf_number(x, SX_BOOL, first, out);
    }
    *out = condition;
    return first ? SX_OK : sx_tf_build(x, &sx_op_logical_not, NULL, out, 1, &condition);
}

static sx_status choose(const sx_tf_op_node *x, const choice *c, int first, int end,
                        sx_value selector, const sx_tf_thing *args, sx_tf_thing *results);

/* The two regions of an `if` under construction. */
typedef struct sides {
    region regions[2];
    sx_tf_op_node inside[2];
    bool whole[2];         /* no node of it was refused */
    sx_tf_thing *given[2]; /* [n_out]: the results */
    sx_tf_thing *leaves[2];
    int n_leaves;
} sides;

/* Region `side`, which chooses among the branches [from, to). */
static sx_status import_side(const sx_tf_op_node *x, const choice *c, sides *s, int side, int from,
                             int to, sx_value selector, const sx_tf_thing *args,
                             const sx_type *arg_types, const int *order, int n_order)
{
    region *r = &s->regions[side];
    sx_value index = SX_NO_VALUE;
    SX_TRY(region_begin(x, args, arg_types, c->n, order, n_order, r));
    s->inside[side] = *x;
    s->inside[side].b = r->b;
    SX_TRY(keep_constants(x, args, NULL, c->n, r));
    if (c->by_index) {
        index = sx_input(r->b, "index", sx_type_of_value(x->b, selector));
    }
    x->im->depth++; /* a branch counts as a call, as deep as it is nested */
    sx_status status = choose(&s->inside[side], c, from, to, index, r->args, s->given[side]);
    x->im->depth--;
    s->whole[side] = status == SX_OK && is_whole(x, r, s->given[side], c->n_out);
    return to - from > 1 ? status
                         : sx_status_annotate(status, __FILE__, __LINE__, "branch %d \"%.100s\"",
                                              from, c->branches[from]->signature->name);
}

/* Makes the results of both regions correspond, leaf by leaf. */
static sx_status match_sides(const sx_tf_op_node *x, const choice *c, sides *s)
{
    int n[2] = {0, 0};
    for (int i = 0; i < c->n_out; i++) {
        SX_TRY(sx_tf_match(&s->inside[0], &s->given[0][i], &s->inside[1], &s->given[1][i]),
               "output %d", i);
    }
    for (int side = 0; side < 2; side++) {
        SX_TRY(sx_tf_leaves(&x->im->arena, s->given[side], c->n_out, &s->leaves[side], &n[side]));
        SX_TRY(join_all(&s->inside[side], s->leaves[side], n[side]));
    }
    s->n_leaves = n[0];
    return n[0] == n[1] ? SX_OK : sx_tf_unsupported("its branches give different variants");
}

/* The `if` of two whole regions, with these operands; results[n_out]. */
static sx_status build_if(const sx_tf_op_node *x, const choice *c, sides *s, const sx_value *in,
                          int n_in, sx_tf_thing *results)
{
    SX_TRY(match_sides(x, c, s));
    const int n = s->n_leaves;
    sx_arena *arena = &x->im->arena;
    sx_type *types = sx_arena_array(arena, SX_MAX_OUTPUTS, sx_type);
    sx_tf_thing *leaves = sx_arena_array(arena, n + 1, sx_tf_thing);
    int *order = sx_arena_array(arena, n + 1, int), n_given = 0;
    if (types == NULL || leaves == NULL || order == NULL) {
        return sx_import_memory();
    }
    for (int k = 0; k < n; k++) {
        const sx_tf_thing *a = &s->leaves[0][k], *b = &s->leaves[1][k];
        sx_type type = type_in(s->inside[0].b, a), other = type_in(s->inside[1].b, b);
        SX_TRY(join_results(a, b, k, &type, &other));
        leaves[k] = *a;
        leaves[k].known = NULL;
        SX_TRY(held_by_condition(x, s->inside, a, b, in[0], &leaves[k].value));
        if (!has_value(a) || sx_value_is(leaves[k].value)) {
            continue;
        }
        if (n_given == SX_MAX_OUTPUTS) {
            return sx_tf_unsupported("it has more than %d outputs", SX_MAX_OUTPUTS);
        }
        order[n_given] = k;
        types[n_given++] = type;
    }
    sx_graph *bodies[2] = {NULL, NULL};
    sx_status status = SX_OK;
    for (int side = 0; side < 2 && status == SX_OK; side++) {
        status = region_end(&s->inside[side], &s->regions[side], s->leaves[side], order, n_given,
                            &bodies[side]);
    }
    if (n_given == 0) {
        types[0] = sx_scalar_type(SX_BOOL);
    }
    const sx_value y =
        status != SX_OK
            ? SX_NO_VALUE
            : sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_if,
                                                  .attrs = &(sx_if_attrs){bodies[0], bodies[1]},
                                                  .inputs = in,
                                                  .n_inputs = n_in,
                                                  .types = types,
                                                  .n_types = SX_MAX(n_given, 1),
                                                  .device = "",
                                                  .file = ""});
    for (int k = 0; k < n_given && status == SX_OK; k++) {
        sx_tf_thing *leaf = &leaves[order[k]];
        const sx_value made = sx_output_of(y, k);
        leaf->value = made;
        leaf->variable = sx_type_of_value(x->b, made);
        if (leaf->kind == SX_TF_COMPLEX) {
            status = sx_tf_split_complex(x, made, leaf);
        }
    }
    sx_graph_destroy(bodies[0]);
    sx_graph_destroy(bodies[1]);
    SX_TRY(status);
    return sx_tf_from_leaves(arena, s->given[0], c->n_out, leaves, results);
}

/* Adds the nodes that choose among the branches [first, end): an `if`, each of whose regions
 * chooses among half of them. With by_index, `selector` is in that range. args[n] are leaves,
 * results[n_out] are of x->b. */
static sx_status choose(const sx_tf_op_node *x, const choice *c, int first, int end,
                        sx_value selector, const sx_tf_thing *args, sx_tf_thing *results)
{
    const int middle = first + (end - first) / 2;
    sx_arena *arena = &x->im->arena;
    if (first == end - 1) {
        sx_tf_thing *given = sx_arena_array(arena, c->n_given + 1, sx_tf_thing);
        if (given == NULL) {
            return sx_import_memory();
        }
        SX_TRY(sx_tf_from_leaves(arena, c->given, c->n_given, args, given));
        SX_TRY(import_passing(x, c->branches[first], x->b, given, c->n_given, &c->passed,
                              args + (c->n - c->passed.n), results));
        return read_refs(x, results, c->n_out);
    }
    sides s = {.given = {sx_arena_array(arena, c->n_out + 1, sx_tf_thing),
                         sx_arena_array(arena, c->n_out + 1, sx_tf_thing)}};
    sx_type *arg_types = sx_arena_array(arena, c->n + 1, sx_type);
    sx_value *in = sx_arena_array(arena, c->n + 2, sx_value), number = SX_NO_VALUE;
    int *order = sx_arena_array(arena, c->n + 1, int), n_in = 0, n_order = 0;
    if (s.given[0] == NULL || s.given[1] == NULL || arg_types == NULL || in == NULL ||
        order == NULL) {
        return sx_import_memory();
    }
    if (c->by_index) { /* the regions need the index, too: it is the last argument */
        SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, selector).dtype, middle, &number));
        SX_TF_BUILD(x, &in[n_in++], less, NULL, selector, number);
    } else {
        SX_TRY(to_bool(x, selector, &in[n_in++]));
    }
    for (int i = 0; i < c->n; i++) {
        arg_types[i] = type_in(x->b, &args[i]);
        if (has_value(&args[i]) && small_constant(x, &args[i]) == NULL) {
            order[n_order++] = i;
            in[n_in++] = args[i].value;
        }
    }
    if (c->by_index) {
        in[n_in++] = selector;
    }
    sx_status status = SX_OK;
    for (int side = 0; side < 2 && status == SX_OK; side++) {
        status = import_side(x, c, &s, side, side == 0 ? first : middle, side == 0 ? middle : end,
                             selector, args, arg_types, order, n_order);
    }
    if (status == SX_OK && s.whole[0] && s.whole[1]) {
        status = build_if(x, c, &s, in, n_in, results);
    } else {
        for (int i = 0; i < c->n_out; i++) {
            results[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
        }
    }
    sx_builder_destroy(s.regions[0].b);
    sx_builder_destroy(s.regions[1].b);
    return status;
}

sx_status sx_tf_choose(const sx_tf_op_node *x, sx_value condition, const sx_tf_thing *then_things,
                       const sx_tf_thing *else_things, int n, sx_tf_thing *out)
{
    sx_arena *arena = &x->im->arena;
    const choice c = {.n_out = n};
    sx_tf_thing *both = sx_arena_array(arena, 2 * n + 1, sx_tf_thing), *leaves = NULL;
    sides s = {.given = {sx_arena_array(arena, 2 * n + 1, sx_tf_thing),
                         sx_arena_array(arena, 2 * n + 1, sx_tf_thing)}};
    int n_leaves = 0, n_in = 0;
    if (both == NULL || s.given[0] == NULL || s.given[1] == NULL) {
        return sx_import_memory();
    }
    memcpy(both, then_things, (size_t)n * sizeof(*both));
    memcpy(both + n, else_things, (size_t)n * sizeof(*both));
    SX_TRY(sx_tf_leaves(arena, both, 2 * n, &leaves, &n_leaves));
    SX_TRY(join_all(x, leaves, n_leaves));
    sx_value *in = sx_arena_array(arena, n_leaves + 2, sx_value);
    sx_type *types = sx_arena_array(arena, n_leaves + 1, sx_type);
    int *order = sx_arena_array(arena, n_leaves + 1, int);
    if (in == NULL || types == NULL || order == NULL) {
        return sx_import_memory();
    }
    in[n_in++] = condition;
    for (int k = 0; k < n_leaves; k++) {
        types[k] = type_in(x->b, &leaves[k]);
        if (has_value(&leaves[k])) {
            order[n_in - 1] = k;
            in[n_in++] = leaves[k].value;
        }
    }
    sx_status status = SX_OK;
    for (int side = 0; side < 2 && status == SX_OK; side++) {
        status = region_begin(x, leaves, types, n_leaves, order, n_in - 1, &s.regions[side]);
        s.inside[side] = *x;
        s.inside[side].b = s.regions[side].b;
        if (status == SX_OK) {
            status = sx_tf_from_leaves(arena, both, 2 * n, s.regions[side].args, s.given[side]);
        }
    }
    if (status == SX_OK) {
        memcpy(s.given[1], s.given[1] + n, (size_t)n * sizeof(*both));
        status = build_if(x, &c, &s, in, n_in, out);
    }
    sx_builder_destroy(s.regions[0].b);
    sx_builder_destroy(s.regions[1].b);
    return status;
}

/* A trial of the branches: results[k * n_out + i]. */
static sx_status try_branches(const sx_tf_op_node *x, const choice *c, const sx_tf_thing *args,
                              sx_tf_thing **out_results)
{
    sx_tf_thing *results =
        sx_arena_array(&x->im->arena, (size_t)c->n_out * c->n_branches + 1, sx_tf_thing);
    if (results == NULL) {
        return sx_import_memory();
    }
    for (int k = 0; k < c->n_branches; k++) {
        SX_TRY(try_function(x, c->branches[k], args, c->n_given, results + (size_t)k * c->n_out));
    }
    *out_results = results;
    return SX_OK;
}

/* Makes a result that one branch gives in a trial one that another could give: with what both may
 * hold, its types what they have in common. */
static sx_status join_tried(const sx_tf_op_node *x, sx_tf_thing *one, const sx_tf_thing *other)
{
    sx_tf_thing also = *other, *leaves = NULL, *others = NULL;
    int n = 0, n_others = 0;
    if (one->kind != also.kind || lacks_shape(one) != lacks_shape(&also)) {
        return SX_OK;
    }
    SX_TRY(sx_tf_match(x, one, x, &also));
    SX_TRY(sx_tf_leaves(&x->im->arena, one, 1, &leaves, &n));
    SX_TRY(sx_tf_leaves(&x->im->arena, &also, 1, &others, &n_others));
    for (int k = 0; k < n && k < n_others; k++) {
        const bool plain = leaves[k].kind == SX_TF_VALUE || leaves[k].kind == SX_TF_LIST;
        if (!plain || !has_value(&leaves[k]) || !has_value(&others[k])) {
            continue;
        }
        const sx_type type = sx_type_of_value(x->b, leaves[k].value),
                      types = sx_type_of_value(x->b, others[k].value), both = join(type, &types);
        if (type.dtype == types.dtype && !sx_type_equal(&type, &both)) {
            leaves[k].value =
                sx_tf_build_as(x, &sx_op_identity, NULL, &leaves[k].value, 1, NULL, 0, &both);
            leaves[k].known = NULL;
        }
    }
    const sx_tf_thing like = *one;
    return sx_tf_from_leaves(&x->im->arena, &like, 1, leaves, one);
}

/* Gives a shape to lists that some branches set and others return as they are. */
static sx_status shape_lists(const sx_tf_op_node *x, const choice *c, sx_tf_thing *args)
{
    const int refused = x->im->refused.n;
    sx_tf_thing *results = NULL;
    SX_TRY(try_branches(x, c, args, &results));
    x->im->refused.n = refused; /* the regions are to say it again */
    for (int at = 0; at < c->n_out * c->n_branches; at++) {
        const sx_tf_thing *set = &results[at];
        for (int k = 0; k < c->n_branches && has_shape(set); k++) {
            const sx_tf_thing *passed = &results[k * c->n_out + at % c->n_out];
            for (int j = 0; j < c->n_given && lacks_shape(passed); j++) {
                if (lacks_shape(&args[j]) && args[j].list == passed->list) {
                    SX_TRY(sx_tf_list_become(x, &args[j], set));
                }
            }
        }
    }
    return SX_OK;
}

/* An index that names no branch is the last's. */
static sx_status to_index(const sx_tf_op_node *x, int n_branches, sx_value *selector)
{
    const sx_dtype dtype = sx_type_of_value(x->b, *selector).dtype;
    sx_value zero, end, last, from_zero, before_end, inside;
    SX_TRY(sx_tf_number(x, dtype, 0, &zero));
    SX_TRY(sx_tf_number(x, dtype, n_branches, &end));
    SX_TRY(sx_tf_number(x, dtype, n_branches - 1, &last));
    SX_TF_BUILD(x, &from_zero, less_equal, NULL, zero, *selector);
    SX_TF_BUILD(x, &before_end, less, NULL, *selector, end);
    SX_TF_BUILD(x, &inside, logical_and, NULL, from_zero, before_end);
    SX_TF_BUILD(x, selector, select, NULL, inside, *selector, last);
    return SX_OK;
}

/* Input 0 is the selector. */
static sx_status import_choice(sx_tf_op_node *x, choice *c)
{
    sx_value selector = SX_NO_VALUE;
    sx_tf_thing *args = NULL, *leaves = NULL, *all = NULL, *tried = NULL;
    int n_leaves = 0;
    bool shaped = true;
    c->n_given = x->n->n_in - 1;
    if (c->n_given < 0) {
        return sx_error(SX_DATA_LOSS, "the condition is missing");
    }
    SX_TRY(make_room(x, c->branches[0], &c->n_out));
    for (int k = 0; k < c->n_branches; k++) {
        SX_TRY(check_signature(c->branches[k], c->n_given, c->n_out));
    }
    SX_TRY(sx_tf_operand(x, 0, &selector));
    SX_TRY(copy_args(x, 1, &args));
    if (x->im->trials > 0) { /* each output as the first branch knows it */
        SX_TRY(try_branches(x, c, args, &tried));
        for (int at = c->n_out * c->n_branches - 1; at >= 0; at--) {
            sx_tf_thing *out = &x->n->out[at % c->n_out];
            const bool last = at >= c->n_out * (c->n_branches - 1);
            if (!last) {
                SX_TRY(join_tried(x, &tried[at], out));
            }
            if (!lacks_shape(&tried[at]) || last) {
                *out = tried[at];
            }
        }
        return SX_OK;
    }
    SX_TRY(only_read(x, c->branches, c->n_branches, args, c->n_given));
    SX_TRY(join_all(x, args, c->n_given));
    for (int i = 0; i < c->n_given; i++) {
        shaped = shaped && !lacks_shape(&args[i]);
    }
    if (!shaped) {
        SX_TRY(shape_lists(x, c, args));
    }
    if (c->by_index) {
        SX_TRY(to_index(x, c->n_branches, &selector));
    }
    c->given = args;
    SX_TRY(sx_tf_gradient_reads(x, c->branches, c->n_branches, &c->passed));
    SX_TRY(sx_tf_leaves(&x->im->arena, args, c->n_given, &leaves, &n_leaves));
    SX_TRY(join_all(x, leaves, n_leaves));
    c->n = n_leaves + c->passed.n;
    all = sx_arena_array(&x->im->arena, c->n + 1, sx_tf_thing);
    if (all == NULL) {
        return sx_import_memory();
    }
    memcpy(all, leaves, (size_t)n_leaves * sizeof(*all));
    memcpy(all + n_leaves, c->passed.things, (size_t)c->passed.n * sizeof(*all));
    SX_TRY(choose(x, c, 0, c->n_branches, selector, all, x->n->out));
    for (int i = 0; i < c->n_out; i++) { /* a list that all branches return as it is */
        for (int j = 0; j < c->n_given && lacks_shape(&x->n->out[i]); j++) {
            if (lacks_shape(&args[j]) && args[j].list == x->n->out[i].list) {
                x->n->out[i] = args[j];
                break;
            }
        }
    }
    return SX_OK;
}

static sx_status import_if(sx_tf_op_node *x)
{
    choice c = {.n_branches = 2};
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, "then_branch", &c.branches[0]));
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, "else_branch", &c.branches[1]));
    return import_choice(x, &c);
}

static sx_status import_case(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "branches");
    const bool lists =
        a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
    const size_t n = lists ? a->list->n_func : 0;
    choice c = {.n_branches = (int)n, .by_index = true};
    if (n == 0 || n > MAX_BRANCHES) {
        return sx_tf_unsupported("it has %zu branches; 1 to %d are supported", n, MAX_BRANCHES);
    }
    for (size_t i = 0; i < n; i++) {
        c.branches[i] = sx_map_get(&x->im->defs, a->list->func[i]->name);
        if (c.branches[i] == NULL) {
            return sx_error(SX_DATA_LOSS, "branch %zu names no function of the model", i);
        }
    }
    return import_choice(x, &c);
}

/* ---- Loops ---- */

/* Whether result i of a function is argument i, through nothing but Identity. A first guess, not
 * made of large functions: what the import gives decides. */
static bool returns_as_is(function_def *function, int i)
{
    enum { MOST = 1 << 20 };
    const Tensorflow__OpDef *s = function->signature;
    const char *text = NULL;
    sx_tf_ref ref;
    if ((function->n_node_def + function->n_ret) * s->n_output_arg > MOST) {
        return false;
    }
    for (size_t k = 0; k < function->n_ret; k++) {
        if (strcmp(function->ret[k]->key, s->output_arg[i]->name) == 0) {
            text = function->ret[k]->value;
        }
    }
    for (int steps = 0; steps < 8 && text != NULL && sx_tf_ref_parse(text, &ref); steps++) {
        if (sx_import_find_arg(s, &ref) >= 0) {
            return sx_import_find_arg(s, &ref) == i;
        }
        text = NULL;
        for (size_t k = 0; k < function->n_node_def && text == NULL; k++) {
            const Tensorflow__NodeDef *node = function->node_def[k];
            if (strlen(node->name) == ref.node_bytes &&
                memcmp(node->name, ref.node, ref.node_bytes) == 0 &&
                strcmp(node->op, "Identity") == 0 && node->n_input > 0) {
                text = node->input[0];
            }
        }
    }
    return false;
}

/* Sorts the arguments: those that the body changes come first. Returns how many they are. */
static int changing_first(const bool *kept, int *order, int n, bool *out_same)
{
    int n_changing = 0, k = 0;
    int sorted[SX_TF_MAX_INPUTS];
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            if (kept[order[i]] == (pass == 1)) {
                sorted[k++] = order[i];
            }
        }
        n_changing = pass == 0 ? k : n_changing;
    }
    *out_same = memcmp(sorted, order, (size_t)n * sizeof(*order)) == 0;
    memcpy(order, sorted, (size_t)n * sizeof(*order));
    return n_changing;
}

/* Lists whose tensors' shape is not known before the loop get that of the lists that the body
 * returns, tried once. */
static sx_status fill_lists(sx_tf_op_node *x, function_def *body, sx_tf_thing *args, int n)
{
    bool lacks = false;
    for (int i = 0; i < n; i++) {
        lacks = lacks || lacks_shape(&args[i]);
    }
    if (!lacks) {
        return SX_OK;
    }
    sx_tf_thing *results = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    if (results == NULL) {
        return sx_import_memory();
    }
    const int refused = x->im->refused.n;
    SX_TRY(try_function(x, body, args, n, results));
    x->im->refused.n = refused; /* the region is to say it again */
    for (int i = 0; i < n; i++) {
        if (lacks_shape(&args[i]) && has_shape(&results[i])) {
            SX_TRY(sx_tf_list_become(x, &args[i], &results[i]));
        }
    }
    return SX_OK;
}

/* A loop under construction. */
typedef struct loop {
    function_def *condition, *body;
    const sx_tf_thing *given; /* [n_given]: the state of TensorFlow's loop */
    int n_given;
    sx_tf_thing *args; /* [n]: its leaves, then what is passed beside them */
    int n, n_leaves;
    sx_tf_passed passed;
    sx_type *types; /* [n]: of every iteration */
    bool *kept;     /* [n]: what the body returns as it is */
    int *order;     /* the arguments that have a value; those that the body changes come first */
    int n_values, n_state;
} loop;

/* Imports the condition or the body: *out are the leaves of its n_results results, NULL if nodes in
 * it are refused. Those of the body are as many as the loop has; what is passed follows them. */
static sx_status import_state(const sx_tf_op_node *x, const loop *l, function_def *function,
                              const region *r, int n_results, sx_tf_thing **out)
{
    sx_arena *arena = &x->im->arena;
    sx_tf_thing *given = sx_arena_array(arena, l->n_given + 1, sx_tf_thing),
                *results = sx_arena_array(arena, n_results + 1, sx_tf_thing), *leaves = NULL;
    const sx_tf_thing *passed = r->args + l->n_leaves;
    int n = 0;
    *out = NULL;
    if (given == NULL || results == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_from_leaves(arena, l->given, l->n_given, r->args, given));
    SX_TRY(import_passing(x, function, r->b, given, l->n_given, &l->passed, passed, results));
    if (!is_whole(x, r, results, n_results)) {
        return SX_OK;
    }
    for (int i = 0; i < n_results && function == l->body; i++) {
        sx_tf_thing now = results[i], before = given[i];
        sx_tf_op_node inside = *x;
        inside.b = r->b;
        SX_TRY(sx_tf_match(&inside, &before, &inside, &now), "state %d", i);
        results[i] = now;
    }
    SX_TRY(sx_tf_leaves(arena, results, n_results, &leaves, &n));
    if (function != l->body) {
        *out = leaves;
        return SX_OK;
    }
    if (n != l->n_leaves) {
        return sx_tf_unsupported("its state has variants that change what they hold");
    }
    sx_tf_thing *all = sx_arena_array(arena, l->n + 1, sx_tf_thing);
    if (all == NULL) {
        return sx_import_memory();
    }
    memcpy(all, leaves, (size_t)n * sizeof(*all));
    memcpy(all + n, passed, (size_t)l->passed.n * sizeof(*all));
    *out = all;
    return SX_OK;
}

/* The body, imported until the types hold for every iteration and what does not change comes last.
 * *out stays NULL if nodes in it are refused. */
static sx_status import_loop_body(const sx_tf_op_node *x, loop *l, sx_graph **out)
{
    enum { ATTEMPTS = 8, EXACT_ATTEMPTS = 3 };
    const int n = l->n;
    sx_tf_thing *results = NULL;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        region r;
        sx_status status = region_begin(x, l->args, l->types, n, l->order, l->n_values, &r);
        if (status == SX_OK) {
            status = keep_constants(x, l->args, l->kept, n, &r);
        }
        if (status == SX_OK) {
            status =
                sx_status_annotate(import_state(x, l, l->body, &r, l->n_given, &results), __FILE__,
                                   __LINE__, "body \"%.100s\"", l->body->signature->name);
        }
        if (status != SX_OK || results == NULL) {
            sx_builder_destroy(r.b);
            return status;
        }
        for (int i = 0; i < n; i++) { /* what is as it was needs no joining */
            if (results[i].kind == SX_TF_COMPLEX && r.args[i].kind == SX_TF_COMPLEX) {
                const bool same_parts = results[i].parts[0].id == r.args[i].parts[0].id &&
                                        results[i].parts[1].id == r.args[i].parts[1].id;
                results[i].value = same_parts ? r.args[i].value : SX_NO_VALUE;
            }
        }
        sx_tf_op_node inside = *x;
        inside.b = r.b;
        status = join_all(&inside, results, n);
        bool holds = true, same = true;
        for (int i = 0; i < n && status == SX_OK; i++) {
            const sx_type made = type_in(r.b, &results[i]), both = join(l->types[i], &made);
            l->kept[i] = results[i].value.id == r.args[i].value.id;
            if (results[i].kind != r.args[i].kind ||
                has_value(&results[i]) != has_value(&r.args[i])) {
                status = sx_tf_unsupported("state %d is %s", i,
                                           results[i].kind == SX_TF_LIST
                                               ? "a list of tensors whose shape is unknown"
                                               : "a variable's handle that changes");
            } else if (results[i].uneven != r.args[i].uneven) {
                status = sx_tf_unsupported("state %d is a list of tensors of one shape, which get "
                                           "several",
                                           i);
            } else if (made.dtype != l->types[i].dtype) {
                status = sx_error(SX_DATA_LOSS, "state %d is %s, the body gives %s", i,
                                  sx_dtype_name(l->types[i].dtype), sx_dtype_name(made.dtype));
            } else if (!sx_type_equal(&both, &l->types[i])) {
                l->types[i] =
                    attempt < EXACT_ATTEMPTS ? both : sx_tf_unknown_shape(l->types[i].dtype);
                holds = false;
            }
        }
        if (status == SX_OK) {
            const int n_before = l->n_state;
            l->n_state = changing_first(l->kept, l->order, l->n_values, &same);
            holds = holds && same && l->n_state == n_before;
        }
        if (status == SX_OK && holds) {
            status = region_end(&inside, &r, results, l->order, l->n_state, out);
        }
        sx_builder_destroy(r.b);
        if (status != SX_OK || holds) {
            return status;
        }
    }
    return sx_tf_unsupported("the types of the loop's state do not settle");
}

/* The condition; *out stays NULL if nodes in it are refused. */
static sx_status import_loop_condition(const sx_tf_op_node *x, const loop *l, sx_graph **out)
{
    static const int first[] = {0};
    sx_tf_thing *test = NULL;
    region r;
    sx_status status = region_begin(x, l->args, l->types, l->n, l->order, l->n_values, &r);
    sx_tf_op_node inside = *x;
    inside.b = r.b;
    if (status == SX_OK) {
        status = keep_constants(x, l->args, l->kept, l->n, &r);
    }
    if (status == SX_OK) {
        status = sx_status_annotate(import_state(x, l, l->condition, &r, 1, &test), __FILE__,
                                    __LINE__, "cond \"%.100s\"", l->condition->signature->name);
    }
    if (status == SX_OK && test != NULL) {
        status = to_bool(&inside, test->value, &test->value);
        status = status != SX_OK ? status : region_end(&inside, &r, test, first, 1, out);
    }
    sx_builder_destroy(r.b);
    return status;
}

/* The state of TensorFlow's loop is all of its inputs; those that the body returns as they are
 * become operands of ours that do not change, after the others. */
static sx_status import_while(sx_tf_op_node *x)
{
    const int n_given = x->n->n_in;
    int n_out = 0;
    loop l = {.n_given = n_given};
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, "cond", &l.condition));
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, "body", &l.body));
    SX_TRY(make_room(x, l.body, &n_out));
    if (n_out != n_given) {
        return sx_error(SX_DATA_LOSS, "the loop has %d inputs, its body gives %d", n_given, n_out);
    }
    SX_TRY(check_signature(l.condition, n_given, 1));
    SX_TRY(check_signature(l.body, n_given, n_given));
    const int64_t trips = sx_tf_read_int(&x->tf.head, SX_TF_WHILE_TRIPS, 0);
    if (trips < 0) {
        return sx_error(SX_DATA_LOSS, "its bound, %s, is %lld", SX_TF_WHILE_TRIPS,
                        (long long)trips);
    }
    sx_arena *arena = &x->im->arena;
    sx_tf_thing *given = NULL, *before = NULL, *out = NULL;
    SX_TRY(copy_args(x, 0, &given));
    if (x->im->trials > 0) { /* the types of an iteration are those of all */
        return try_function(x, l.body, given, n_given, x->n->out);
    }
    SX_TRY(only_read(x, (function_def *[]){l.condition, l.body}, 2, given, n_given));
    SX_TRY(join_all(x, given, n_given));
    SX_TRY(fill_lists(x, l.body, given, n_given));
    l.given = given;
    sx_tf_thing *leaves = NULL;
    SX_TRY(sx_tf_gradient_reads(x, (function_def *[]){l.body}, 1, &l.passed));
    SX_TRY(sx_tf_leaves(arena, given, n_given, &leaves, &l.n_leaves));
    SX_TRY(join_all(x, leaves, l.n_leaves));
    const int n = l.n = l.n_leaves + l.passed.n;
    if (n > SX_TF_MAX_INPUTS) {
        return sx_tf_unsupported("it has %d inputs; at most %d are supported", n, SX_TF_MAX_INPUTS);
    }
    /* what it gives for state that the body returns as it is: handles, not what they read */
    SX_TRY(copy_args(x, 0, &before));
    sx_value *in = sx_arena_array(arena, n + 1, sx_value);
    l.args = sx_arena_array(arena, n + 1, sx_tf_thing);
    l.types = sx_arena_array(arena, n + 1, sx_type);
    l.order = sx_arena_array(arena, n + 1, int);
    l.kept = sx_arena_array(arena, n + 1, bool);
    if (l.args == NULL || l.types == NULL || in == NULL || l.order == NULL || l.kept == NULL) {
        return sx_import_memory();
    }
    memcpy(l.args, leaves, (size_t)l.n_leaves * sizeof(*l.args));
    for (int i = 0; i < l.passed.n; i++) {
        const int k = l.n_leaves + i;
        l.args[k] = l.passed.things[i];
        l.types[k] = type_in(x->b, &l.args[k]);
        l.kept[k] = true;
    }
    for (int i = 0, k = 0; i < n_given; i++) {
        int n_leaves = 0;
        sx_tf_thing *of = NULL;
        SX_TRY(sx_tf_leaves(arena, &given[i], 1, &of, &n_leaves));
        before[i] = n_leaves == 1 && given[i].n_items == 0 ? before[i] : given[i];
        for (int leaf = 0; leaf < n_leaves; leaf++, k++) {
            l.types[k] = type_in(x->b, &l.args[k]);
            l.kept[k] = returns_as_is(l.body, i);
            if (has_value(&l.args[k])) {
                l.order[l.n_values++] = k;
            }
        }
    }
    for (int k = l.n_leaves; k < n; k++) {
        l.order[l.n_values++] = k;
    }
    SX_TRY(sx_tf_leaves(arena, before, n_given, &out, &n_out));
    bool same = true;
    l.n_state = changing_first(l.kept, l.order, l.n_values, &same);
    sx_graph *condition = NULL, *body = NULL;
    sx_status status = import_loop_body(x, &l, &body);
    if (status == SX_OK && body != NULL && (l.n_state == 0 || l.n_state > SX_MAX_OUTPUTS)) {
        status = sx_tf_unsupported("its body changes %d values; 1 to %d are supported", l.n_state,
                                   SX_MAX_OUTPUTS);
    }
    if (status == SX_OK) { /* also of a body that was refused: to name all nodes */
        status = import_loop_condition(x, &l, &condition);
    }
    sx_value y = SX_NO_VALUE;
    if (status == SX_OK && condition != NULL && body != NULL) {
        sx_type state[SX_MAX_OUTPUTS];
        for (int i = 0; i < l.n_values; i++) {
            in[i] = l.args[l.order[i]].value;
        }
        for (int i = 0; i < l.n_state; i++) {
            state[i] = l.types[l.order[i]];
        }
        y = sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_while,
                                                .attrs = &(sx_while_attrs){condition, body, trips},
                                                .inputs = in,
                                                .n_inputs = l.n_values,
                                                .types = state,
                                                .n_types = l.n_state,
                                                .device = "",
                                                .file = ""});
    }
    for (int k = 0; k < l.n_state && sx_value_is(y); k++) {
        const sx_tf_thing *arg = &l.args[l.order[k]];
        sx_tf_thing *leaf = &out[l.order[k]];
        const sx_value made = sx_output_of(y, k);
        *leaf = (sx_tf_thing){
            .kind = arg->kind, .value = made, .of_complex = arg->of_complex, .uneven = arg->uneven};
        leaf->variable = sx_type_of_value(x->b, made);
        if (leaf->kind == SX_TF_COMPLEX && status == SX_OK) {
            status = sx_tf_split_complex(x, made, leaf);
        }
    }
    if (status == SX_OK && sx_value_is(y)) {
        status = sx_tf_from_leaves(arena, before, n_given, out, x->n->out);
    }
    for (int i = 0; i < n_given && !sx_value_is(y); i++) {
        x->n->out[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
    }
    sx_graph_destroy(condition);
    sx_graph_destroy(body);
    return status;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_control_rows[] = {
    {"If", import_if, NULL},
    {"StatelessIf", import_if, NULL},
    {"Case", import_case, NULL},
    {"StatelessCase", import_case, NULL},
    {"While", import_while, NULL},
    {"StatelessWhile", import_while, NULL},
    {NULL, NULL, NULL},
};
