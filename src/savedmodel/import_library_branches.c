/* Imports branches: the functions of If and Case become regions (import_library_regions.h). */
#include "savedmodel/import_library_regions.h"

#include <string.h>

typedef const Tensorflow__FunctionDef function_def;

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
    if (a->kind != b->kind || sx_tf_has_value(a) != sx_tf_has_value(b)) {
        return sx_tf_unsupported("output %d is a list of tensors, which one branch does not set",
                                 i);
    }
    if (sx_tf_lacks_shape(a) && !sx_tf_are_as_long(a, b)) {
        return sx_tf_unsupported("output %d is a list whose tensors are not set, of another length "
                                 "in each branch",
                                 i);
    }
    if (a->uneven != b->uneven || (sx_tf_has_value(a) && type->dtype != other->dtype)) {
        return sx_error(SX_DATA_LOSS, "output %d is %s in one branch and %s in the other", i,
                        sx_dtype_name(type->dtype), sx_dtype_name(other->dtype));
    }
    *type = sx_tf_join_types(*type, other);
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
    sx_tf_region regions[2];
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
    sx_tf_region *r = &s->regions[side];
    sx_value index = SX_NO_VALUE;
    SX_TRY(sx_tf_region_begin(x, args, arg_types, c->n, order, n_order, r));
    s->inside[side] = *x;
    s->inside[side].b = r->b;
    SX_TRY(sx_tf_keep_constants(x, args, NULL, c->n, r));
    if (c->by_index) {
        index = sx_input(r->b, "index", sx_type_of_value(x->b, selector));
    }
    sx_tf_trips *outside = x->im->trips;
    x->im->trips = outside != NULL ? &r->trips : NULL;
    x->im->depth++; /* a branch counts as a call, as deep as it is nested */
    sx_status status = choose(&s->inside[side], c, from, to, index, r->args, s->given[side]);
    x->im->depth--;
    x->im->trips = outside;
    s->whole[side] = status == SX_OK && sx_tf_region_is_whole(x, r, s->given[side], c->n_out);
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
        SX_TRY(sx_tf_join_all(&s->inside[side], s->leaves[side], n[side]));
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
        sx_type type = sx_tf_type_in(s->inside[0].b, a), other = sx_tf_type_in(s->inside[1].b, b);
        SX_TRY(join_results(a, b, k, &type, &other));
        leaves[k] = *a;
        leaves[k].known = NULL;
        leaves[k].length = SX_NO_VALUE; /* a value of the region */
        SX_TRY(held_by_condition(x, s->inside, a, b, in[0], &leaves[k].value));
        if (!sx_tf_has_value(a) || sx_value_is(leaves[k].value)) {
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
        status = sx_tf_region_end(&s->inside[side], &s->regions[side], s->leaves[side], order,
                                  n_given, &bodies[side]);
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
        SX_TRY(sx_tf_import_passing(x, c->branches[first], x->b, given, c->n_given, &c->passed,
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
        SX_TRY(sx_tf_to_bool(x, selector, &in[n_in++]));
    }
    for (int i = 0; i < c->n; i++) {
        arg_types[i] = sx_tf_type_in(x->b, &args[i]);
        if (sx_tf_has_value(&args[i]) && sx_tf_small_constant(x, &args[i]) == NULL) {
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
    SX_TRY(sx_tf_join_all(x, leaves, n_leaves));
    sx_value *in = sx_arena_array(arena, n_leaves + 2, sx_value);
    sx_type *types = sx_arena_array(arena, n_leaves + 1, sx_type);
    int *order = sx_arena_array(arena, n_leaves + 1, int);
    if (in == NULL || types == NULL || order == NULL) {
        return sx_import_memory();
    }
    in[n_in++] = condition;
    for (int k = 0; k < n_leaves; k++) {
        types[k] = sx_tf_type_in(x->b, &leaves[k]);
        if (sx_tf_has_value(&leaves[k])) {
            order[n_in - 1] = k;
            in[n_in++] = leaves[k].value;
        }
    }
    sx_status status = SX_OK;
    for (int side = 0; side < 2 && status == SX_OK; side++) {
        status = sx_tf_region_begin(x, leaves, types, n_leaves, order, n_in - 1, &s.regions[side]);
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
        SX_TRY(sx_tf_try_function(x, c->branches[k], args, c->n_given,
                                  results + (size_t)k * c->n_out));
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
    if (one->kind != also.kind || sx_tf_lacks_shape(one) != sx_tf_lacks_shape(&also)) {
        return SX_OK;
    }
    SX_TRY(sx_tf_match(x, one, x, &also));
    SX_TRY(sx_tf_leaves(&x->im->arena, one, 1, &leaves, &n));
    SX_TRY(sx_tf_leaves(&x->im->arena, &also, 1, &others, &n_others));
    for (int k = 0; k < n && k < n_others; k++) {
        const bool plain = leaves[k].kind == SX_TF_VALUE || leaves[k].kind == SX_TF_LIST;
        if (!plain || !sx_tf_has_value(&leaves[k]) || !sx_tf_has_value(&others[k])) {
            continue;
        }
        const sx_type type = sx_type_of_value(x->b, leaves[k].value),
                      types = sx_type_of_value(x->b, others[k].value),
                      both = sx_tf_join_types(type, &types);
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
        for (int k = 0; k < c->n_branches && sx_tf_has_shape(set); k++) {
            const sx_tf_thing *passed = &results[k * c->n_out + at % c->n_out];
            for (int j = 0; j < c->n_given && sx_tf_lacks_shape(passed); j++) {
                if (sx_tf_lacks_shape(&args[j]) && args[j].list == passed->list) {
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
    SX_TRY(sx_tf_make_room(x, c->branches[0], &c->n_out));
    for (int k = 0; k < c->n_branches; k++) {
        SX_TRY(sx_tf_check_signature(c->branches[k], c->n_given, c->n_out));
    }
    SX_TRY(sx_tf_operand(x, 0, &selector));
    SX_TRY(sx_tf_copy_args(x, 1, &args));
    if (x->im->trials > 0) { /* each output as the first branch knows it */
        SX_TRY(try_branches(x, c, args, &tried));
        for (int at = c->n_out * c->n_branches - 1; at >= 0; at--) {
            sx_tf_thing *out = &x->n->out[at % c->n_out];
            const bool last = at >= c->n_out * (c->n_branches - 1);
            if (!last) {
                SX_TRY(join_tried(x, &tried[at], out));
            }
            if (!sx_tf_lacks_shape(&tried[at]) || last) {
                *out = tried[at];
            }
        }
        return SX_OK;
    }
    SX_TRY(sx_tf_only_read(x, c->branches, c->n_branches, args, c->n_given));
    SX_TRY(sx_tf_join_all(x, args, c->n_given));
    for (int i = 0; i < c->n_given; i++) {
        shaped = shaped && !sx_tf_lacks_shape(&args[i]);
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
    SX_TRY(sx_tf_join_all(x, leaves, n_leaves));
    c->n = n_leaves + c->passed.n;
    all = sx_arena_array(&x->im->arena, c->n + 1, sx_tf_thing);
    if (all == NULL) {
        return sx_import_memory();
    }
    memcpy(all, leaves, (size_t)n_leaves * sizeof(*all));
    memcpy(all + n_leaves, c->passed.things, (size_t)c->passed.n * sizeof(*all));
    SX_TRY(choose(x, c, 0, c->n_branches, selector, all, x->n->out));
    for (int i = 0; i < c->n_out; i++) { /* a list that all branches return as it is */
        for (int j = 0; j < c->n_given && sx_tf_lacks_shape(&x->n->out[i]); j++) {
            if (sx_tf_lacks_shape(&args[j]) && args[j].list == x->n->out[i].list &&
                !x->n->out[i].resized) {
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

/* ---- The table ---- */

const sx_tf_op_row sx_tf_branch_rows[] = {
    {"If", import_if, NULL},     {"StatelessIf", import_if, NULL},
    {"Case", import_case, NULL}, {"StatelessCase", import_case, NULL},
    {NULL, NULL, NULL},
};
