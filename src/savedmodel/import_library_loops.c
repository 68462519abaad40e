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

/* Lists whose tensors' shape is not known before the loop get that of the lists that the body
 * returns, tried once. */
static sx_status fill_lists(sx_tf_op_node *x, function_def *body, sx_tf_thing *args, int n)
{
    bool lacks = false;
    for (int i = 0; i < n; i++) {
        lacks = lacks || sx_tf_lacks_shape(&args[i]);
    }
    if (!lacks) {
        return SX_OK;
    }
    sx_tf_thing *results = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    if (results == NULL) {
        return sx_import_memory();
    }
    const int refused = x->im->refused.n;
    SX_TRY(sx_tf_try_function(x, body, args, n, results));
    x->im->refused.n = refused; /* the region is to say it again */
    for (int i = 0; i < n; i++) {
        if (sx_tf_lacks_shape(&args[i]) && sx_tf_has_shape(&results[i])) {
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
                              const sx_tf_region *r, int n_results, sx_tf_thing **out)
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
    SX_TRY(sx_tf_import_passing(x, function, r->b, given, l->n_given, &l->passed, passed, results));
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
    if (x->im->trials > 0) { /* the types of an iteration are those of all */
        return sx_tf_try_function(x, l.body, given, n_given, x->n->out);
    }
    SX_TRY(sx_tf_only_read(x, (function_def *[]){l.condition, l.body}, 2, given, n_given));
    SX_TRY(sx_tf_join_all(x, given, n_given));
    SX_TRY(fill_lists(x, l.body, given, n_given));
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
    if (l.args == NULL || l.types == NULL || in == NULL || l.order == NULL || l.kept == NULL) {
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

const sx_tf_op_row sx_tf_loop_rows[] = {
    {"While", import_while, NULL},
    {"StatelessWhile", import_while, NULL},
    {NULL, NULL, NULL},
};
