/* Imports loops: the functions of While become regions (import_library_regions.h). */
#include "savedmodel/import_library_regions.h"
#include "savedmodel/names.h"

#include <string.h>

typedef const Tensorflow__FunctionDef function_def;

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

static bool holds_lists(const sx_tf_thing *things, int n)
{
    bool lists = false;
    for (int i = 0; i < n && !lists; i++) {
        lists = things[i].kind == SX_TF_LIST || holds_lists(things[i].items, things[i].n_items);
    }
    return lists;
}

/* Finds which of the state's tensors, whose sizes are not all known, change their shape: the body
 * is tried for sizes that nothing else has. */
static sx_status find_reshaped(const sx_tf_op_node *x, function_def *body, const sx_tf_thing *args,
                               int n, bool *reshaped)
{
    enum { ODD = 7919 };
    sx_arena *arena = &x->im->arena;
    sx_tf_thing *leaves = NULL, *inner = sx_arena_array(arena, n + 1, sx_tf_thing),
                *results = sx_arena_array(arena, n + 1, sx_tf_thing);
    int n_leaves = 0, n_order = 0;
    SX_TRY(sx_tf_leaves(arena, args, n, &leaves, &n_leaves));
    SX_TRY(sx_tf_join_all(x, leaves, n_leaves));
    sx_type *types = sx_arena_array(arena, n_leaves + 1, sx_type);
    int *order = sx_arena_array(arena, n_leaves + 1, int);
    if (inner == NULL || results == NULL || types == NULL || order == NULL) {
        return sx_import_memory();
    }
    for (int k = 0; k < n_leaves; k++) {
        types[k] = sx_tf_type_in(x->b, &leaves[k]);
        for (int d = 0; d < types[k].rank && leaves[k].kind == SX_TF_VALUE; d++) {
            const bool open = types[k].dims[d] < 0 && !sx_dim_is_batch(types[k].dims[d]);
            types[k].dims[d] = open ? ODD : types[k].dims[d];
        }
        if (sx_tf_has_value(&leaves[k])) {
            order[n_order++] = k;
        }
    }
    sx_tf_region r;
    const int refused = x->im->refused.n;
    sx_tf_trips *outside = x->im->trips;
    sx_status status = sx_tf_region_begin(x, leaves, types, n_leaves, order, n_order, &r);
    if (status == SX_OK) {
        status = sx_tf_from_leaves(arena, args, n, r.args, inner);
    }
    if (status == SX_OK) {
        sx_tf_op_node inside = *x;
        inside.b = r.b;
        x->im->trips = &r.trips;
        status = sx_tf_try_function(&inside, body, inner, n, results);
        x->im->trips = outside;
    }
    for (int i = 0; i < n && status == SX_OK && x->im->refused.n == refused; i++) {
        if (results[i].kind == SX_TF_VALUE && inner[i].kind == SX_TF_VALUE) {
            const sx_type before = sx_type_of_value(r.b, inner[i].value),
                          after = sx_type_of_value(r.b, results[i].value);
            reshaped[i] = reshaped[i] || sx_tf_is_open(&before) || !sx_type_equal(&before, &after);
        }
    }
    x->im->refused.n = refused;
    sx_status_free(status); /* sizes that are not the right ones may be refused */
    sx_builder_destroy(r.b);
    return SX_OK;
}

/* Tries the body: results[n] have the types of every trip. reshaped[n]: whether a tensor of the
 * state changes its shape, as far as that matters to a list in it. */
static sx_status try_trips(const sx_tf_op_node *x, function_def *body, const sx_tf_thing *args,
                           int n, sx_tf_thing *results, bool *reshaped)
{
    sx_tf_thing *state = sx_arena_memdup(&x->im->arena, args, ((size_t)n + 1) * sizeof(*state));
    sx_tf_trips here = {.b = x->b, .arena = &x->im->arena}, *outside = x->im->trips;
    const bool lists = holds_lists(args, n);
    bool open = false, again = true;
    if (state == NULL) {
        return sx_import_memory();
    }
    if (!lists) {
        return sx_tf_try_function(x, body, args, n, results);
    }
    for (int i = 0; i < n; i++) {
        const bool changes = args[i].kind == SX_TF_VALUE && !returns_as_is(body, i);
        const sx_type type = changes ? sx_type_of_value(x->b, args[i].value) : (sx_type){0};
        open = open || (changes && sx_tf_is_open(&type));
    }
    if (open) {
        SX_TRY(find_reshaped(x, body, args, n, reshaped));
    }
    sx_status status = SX_OK;
    sx_tf_trips *trips = outside != NULL && outside->b == x->b ? outside : &here;
    for (int pass = 0; pass < 2 && again && status == SX_OK; pass++) {
        for (int i = 0; i < n && status == SX_OK; i++) {
            if (args[i].kind != SX_TF_VALUE || returns_as_is(body, i)) {
                continue;
            }
            const sx_type type = sx_type_of_value(x->b, state[i].value);
            state[i].value =
                sx_tf_build_as(x, &sx_op_identity, NULL, &state[i].value, 1, NULL, 0, &type);
            state[i].known = NULL;
            status = sx_tf_trips_note(trips, state[i].value,
                                      SX_TF_DIFFERENT_VALUE |
                                          (reshaped[i] ? SX_TF_DIFFERENT_SHAPE : 0u));
        }
        x->im->trips = trips;
        status = status != SX_OK ? status : sx_tf_try_function(x, body, state, n, results);
        x->im->trips = outside;
        again = false;
        for (int i = 0; i < n && status == SX_OK; i++) {
            if (results[i].kind != SX_TF_VALUE || state[i].kind != SX_TF_VALUE) {
                continue;
            }
            const sx_type before = sx_type_of_value(x->b, state[i].value),
                          after = sx_type_of_value(x->b, results[i].value),
                          both = sx_tf_join_types(before, &after);
            if (before.dtype == after.dtype && !sx_type_equal(&both, &before)) {
                again = reshaped[i] = true;
                state[i].value =
                    sx_tf_build_as(x, &sx_op_identity, NULL, &state[i].value, 1, NULL, 0, &both);
            }
        }
    }
    return status;
}

/* Lists get from those that the body returns, tried before, what their tensors are like: a shape
 * that is not known before the loop, or that they have none in common. */
static sx_status fill_lists(sx_tf_op_node *x, function_def *body, sx_tf_thing *args, int n,
                            bool *reshaped)
{
    if (!holds_lists(args, n)) {
        return SX_OK;
    }
    sx_tf_thing *results = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    if (results == NULL) {
        return sx_import_memory();
    }
    const int refused = x->im->refused.n;
    SX_TRY(try_trips(x, body, args, n, results, reshaped));
    x->im->refused.n = refused; /* the region is to say it again */
    for (int i = 0; i < n; i++) {
        if (args[i].kind == SX_TF_LIST && sx_tf_has_shape(&results[i])) {
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
    bool *reshaped; /* [n]: what may have another shape in each trip */
    int *order;     /* the arguments that have a value; those that the body changes come first */
    int n_values, n_state;
} loop;

/* Imports the condition or the body: *out are the leaves of its n_results results, NULL if nodes in
 * it are refused. Those of the body are as many as the loop has; what is passed follows them. */
static sx_status import_state(const sx_tf_op_node *x, const loop *l, function_def *function,
                              sx_tf_region *r, int n_results, sx_tf_thing **out)
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
    for (int k = 0; k < l->n_values; k++) {
        const int i = l->order[k];
        SX_TRY(sx_tf_trips_note(&r->trips, r->args[i].value,
                                (l->kept[i] ? 0u : SX_TF_DIFFERENT_VALUE) |
                                    (l->reshaped[i] ? SX_TF_DIFFERENT_SHAPE : 0u)));
    }
    sx_tf_trips *outside = x->im->trips;
    x->im->trips = &r->trips;
    sx_status status =
        sx_tf_import_passing(x, function, r->b, given, l->n_given, &l->passed, passed, results);
    x->im->trips = outside;
    SX_TRY(status);
    if (!sx_tf_region_is_whole(x, r, results, n_results)) {
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
        sx_tf_region r;
        sx_status status = sx_tf_region_begin(x, l->args, l->types, n, l->order, l->n_values, &r);
        if (status == SX_OK) {
            status = sx_tf_keep_constants(x, l->args, l->kept, n, &r);
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
        status = sx_tf_join_all(&inside, results, n);
        bool holds = true, same = true;
        for (int i = 0; i < n && status == SX_OK; i++) {
            const sx_type made = sx_tf_type_in(r.b, &results[i]),
                          both = sx_tf_join_types(l->types[i], &made);
            l->kept[i] = results[i].value.id == r.args[i].value.id;
            if (results[i].kind != r.args[i].kind ||
                sx_tf_has_value(&results[i]) != sx_tf_has_value(&r.args[i])) {
                status = sx_tf_unsupported("state %d is %s", i,
                                           results[i].kind == SX_TF_LIST
                                               ? "a list of tensors whose shape is unknown"
                                               : "a variable's handle that changes");
            } else if (sx_tf_lacks_shape(&results[i]) &&
                       !sx_tf_are_as_long(&results[i], &r.args[i])) {
                status = sx_tf_unsupported("state %d is a list whose tensors are not set, of "
                                           "another length in each trip",
                                           i);
            } else if (results[i].uneven != SX_DTYPE_NONE && l->args[i].uneven == SX_DTYPE_NONE) {
                status = sx_tf_list_to_uneven(x, &l->args[i]);
                l->types[i] = sx_tf_type_in(x->b, &l->args[i]);
                holds = false;
            } else if (made.dtype != l->types[i].dtype) {
                status = sx_error(SX_DATA_LOSS, "state %d is %s, the body gives %s", i,
                                  sx_dtype_name(l->types[i].dtype), sx_dtype_name(made.dtype));
            } else if (!sx_type_equal(&both, &l->types[i])) {
                l->types[i] =
                    attempt < EXACT_ATTEMPTS ? both : sx_tf_unknown_shape(l->types[i].dtype);
                l->reshaped[i] = l->reshaped[i] || l->args[i].kind == SX_TF_VALUE;
                holds = false;
            }
        }
        if (status == SX_OK) {
            const int n_before = l->n_state;
            l->n_state = changing_first(l->kept, l->order, l->n_values, &same);
            holds = holds && same && l->n_state == n_before;
        }
        if (status == SX_OK && holds) {
            status = sx_tf_region_end(&inside, &r, results, l->order, l->n_state, out);
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
    sx_tf_region r;
    sx_status status = sx_tf_region_begin(x, l->args, l->types, l->n, l->order, l->n_values, &r);
    sx_tf_op_node inside = *x;
    inside.b = r.b;
    if (status == SX_OK) {
        status = sx_tf_keep_constants(x, l->args, l->kept, l->n, &r);
    }
    if (status == SX_OK) {
        status = sx_status_annotate(import_state(x, l, l->condition, &r, 1, &test), __FILE__,
                                    __LINE__, "cond \"%.100s\"", l->condition->signature->name);
    }
    if (status == SX_OK && test != NULL) {
        status = sx_tf_to_bool(&inside, test->value, &test->value);
        status = status != SX_OK ? status : sx_tf_region_end(&inside, &r, test, first, 1, out);
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
    SX_TRY(sx_tf_make_room(x, l.body, &n_out));
    if (n_out != n_given) {
        return sx_error(SX_DATA_LOSS, "the loop has %d inputs, its body gives %d", n_given, n_out);
    }
    SX_TRY(sx_tf_check_signature(l.condition, n_given, 1));
    SX_TRY(sx_tf_check_signature(l.body, n_given, n_given));
    const int64_t trips = sx_tf_read_int(&x->tf.head, SX_TF_WHILE_TRIPS, 0);
    if (trips < 0) {
        return sx_error(SX_DATA_LOSS, "its bound, %s, is %lld", SX_TF_WHILE_TRIPS,
                        (long long)trips);
    }
    sx_arena *arena = &x->im->arena;
    sx_tf_thing *given = NULL, *before = NULL, *out = NULL;
    SX_TRY(sx_tf_copy_args(x, 0, &given));
    bool *reshaped = sx_arena_array(arena, n_given + 1, bool);
    if (reshaped == NULL) {
        return sx_import_memory();
    }
    if (x->im->trials > 0) {
        return try_trips(x, l.body, given, n_given, x->n->out, reshaped);
    }
    SX_TRY(sx_tf_only_read(x, (function_def *[]){l.condition, l.body}, 2, given, n_given));
    SX_TRY(sx_tf_join_all(x, given, n_given));
    SX_TRY(fill_lists(x, l.body, given, n_given, reshaped));
    l.given = given;
    sx_tf_thing *leaves = NULL;
    SX_TRY(sx_tf_gradient_reads(x, (function_def *[]){l.body}, 1, &l.passed));
    SX_TRY(sx_tf_leaves(arena, given, n_given, &leaves, &l.n_leaves));
    SX_TRY(sx_tf_join_all(x, leaves, l.n_leaves));
    const int n = l.n = l.n_leaves + l.passed.n;
    if (n > SX_TF_MAX_INPUTS) {
        return sx_tf_unsupported("it has %d inputs; at most %d are supported", n, SX_TF_MAX_INPUTS);
    }
    /* what it gives for state that the body returns as it is: handles, not what they read */
    SX_TRY(sx_tf_copy_args(x, 0, &before));
    sx_value *in = sx_arena_array(arena, n + 1, sx_value);
    l.args = sx_arena_array(arena, n + 1, sx_tf_thing);
    l.types = sx_arena_array(arena, n + 1, sx_type);
    l.order = sx_arena_array(arena, n + 1, int);
    l.kept = sx_arena_array(arena, n + 1, bool);
    l.reshaped = sx_arena_array(arena, n + 1, bool);
    if (l.args == NULL || l.types == NULL || in == NULL || l.order == NULL || l.kept == NULL ||
        l.reshaped == NULL) {
        return sx_import_memory();
    }
    memcpy(l.args, leaves, (size_t)l.n_leaves * sizeof(*l.args));
    for (int i = 0, k = 0; i < n_given; i++) {
        int n_leaves = 0;
        sx_tf_thing *of = NULL;
        SX_TRY(sx_tf_leaves(arena, &given[i], 1, &of, &n_leaves));
        before[i] = n_leaves == 1 && given[i].n_items == 0 ? before[i] : given[i];
        for (int leaf = 0; leaf < n_leaves; leaf++, k++) {
            l.types[k] = sx_tf_type_in(x->b, &l.args[k]);
            l.kept[k] = returns_as_is(l.body, i);
            l.reshaped[k] = reshaped[i];
            if (sx_tf_has_value(&l.args[k])) {
                l.order[l.n_values++] = k;
            }
        }
    }
    for (int i = 0; i < l.passed.n; i++) {
        const int k = l.n_leaves + i;
        l.args[k] = l.passed.things[i];
        l.types[k] = sx_tf_type_in(x->b, &l.args[k]);
        l.kept[k] = true;
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
        *leaf = (sx_tf_thing){.kind = arg->kind,
                              .value = made,
                              .of_complex = arg->of_complex,
                              .uneven = arg->uneven,
                              .apart = arg->apart};
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

const sx_tf_op_row sx_tf_loop_rows[] = {
    {"While", import_while, NULL},
    {"StatelessWhile", import_while, NULL},
    {NULL, NULL, NULL},
};
