/* See import_library_regions.h. */
#include "savedmodel/import_library_regions.h"

#include <stdio.h>
#include <string.h>

typedef const Tensorflow__FunctionDef function_def;

bool sx_tf_has_value(const sx_tf_thing *t)
{
    return t->kind != SX_TF_NOTHING && t->kind != SX_TF_REFUSED && sx_value_is(t->value);
}

static bool is_variable(const sx_tf_thing *t)
{
    return t->kind == SX_TF_HANDLE || t->kind == SX_TF_REF;
}

bool sx_tf_lacks_shape(const sx_tf_thing *t)
{
    return t->kind == SX_TF_LIST && !sx_value_is(t->value) && t->element == NULL;
}

bool sx_tf_are_as_long(const sx_tf_thing *a, const sx_tf_thing *b)
{
    const int64_t n = a->variable.dims[0];
    return (a->list == b->list && !a->resized && !b->resized) ||
           (n >= 0 && n == b->variable.dims[0]);
}

bool sx_tf_has_shape(const sx_tf_thing *t)
{
    return t->kind == SX_TF_LIST && (sx_tf_has_value(t) || t->element != NULL);
}

sx_status sx_tf_copy_args(const sx_tf_op_node *x, int first, sx_tf_thing **out)
{
    sx_tf_thing *args =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*args));
    if (args == NULL) {
        return sx_import_memory();
    }
    *out = args + first;
    return SX_OK;
}

sx_status sx_tf_only_read(const sx_tf_op_node *x, function_def *const *functions, int n_functions,
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

sx_status sx_tf_join_all(const sx_tf_op_node *x, sx_tf_thing *things, int n)
{
    for (int i = 0; i < n; i++) {
        if (things[i].kind == SX_TF_COMPLEX && !sx_value_is(things[i].value)) {
            SX_TRY(sx_tf_join_complex(x, &things[i], &things[i].value));
        }
    }
    return SX_OK;
}

sx_type sx_tf_join_types(sx_type a, const sx_type *b)
{
    if (a.rank != b->rank) {
        return sx_tf_unknown_shape(a.dtype);
    }
    for (int d = 0; d < a.rank; d++) {
        a.dims[d] = a.dims[d] == b->dims[d] ? a.dims[d] : SX_UNKNOWN_DIM;
    }
    return a;
}

sx_status sx_tf_try_function(const sx_tf_op_node *x, function_def *function,
                             const sx_tf_thing *args, int n, sx_tf_thing *results)
{
    const bool within = x->b->trial;
    x->im->trials++;
    x->b->trial = true;
    sx_status status = sx_tf_import_body(x->im, function, x->b, args, n, results);
    x->b->trial = within;
    x->im->trials--;
    return status;
}

sx_status sx_tf_import_passing(const sx_tf_op_node *x, function_def *function, sx_builder *b,
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

sx_status sx_tf_check_signature(function_def *function, int n_args, int n_results)
{
    const Tensorflow__OpDef *s = function->signature;
    return s->n_output_arg == (size_t)n_results && s->n_input_arg == (size_t)n_args
               ? SX_OK
               : sx_error(SX_DATA_LOSS,
                          "function \"%.100s\" has %zu arguments and %zu results, expected %d and "
                          "%d",
                          s->name, s->n_input_arg, s->n_output_arg, n_args, n_results);
}

sx_status sx_tf_make_room(sx_tf_op_node *x, function_def *function, int *out_n)
{
    const size_t n = function->signature->n_output_arg;
    if ((size_t)x->n->n_out < n + 1) {
        x->n->n_out = (int)n + 1;
        x->n->out = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    }
    *out_n = (int)n;
    return x->n->out == NULL ? sx_import_memory() : SX_OK;
}

sx_status sx_tf_to_bool(const sx_tf_op_node *x, sx_value v, sx_value *out)
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

sx_type sx_tf_type_in(const sx_builder *b, const sx_tf_thing *t)
{
    return is_variable(t) ? sx_scalar_type(SX_RESOURCE) : sx_type_of_value(b, t->value);
}

sx_status sx_tf_region_begin(const sx_tf_op_node *x, const sx_tf_thing *args, const sx_type *types,
                             int n, const int *order, int n_order, sx_tf_region *out)
{
    *out = (sx_tf_region){.refused = x->im->refused.n};
    out->args = sx_arena_memdup(&x->im->arena, args, ((size_t)n + 1) * sizeof(*args));
    if (out->args == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n; i++) { /* values of another builder mean nothing here */
        out->args[i].known = NULL;
        out->args[i].value = out->args[i].length = SX_NO_VALUE;
    }
    SX_TRY(sx_tf_create_builder(x->im, &out->b));
    out->trips = (sx_tf_trips){.b = out->b, .arena = &x->im->arena};
    for (int k = 0; k < n_order; k++) {
        char name[32];
        snprintf(name, sizeof(name), "x%d", order[k]);
        sx_tf_thing *arg = &out->args[order[k]];
        unsigned differs = 0;
        arg->value = sx_input(out->b, name, types[order[k]]);
        SX_TRY(sx_tf_differs(x->im, x->b, args[order[k]].value, &differs));
        SX_TRY(sx_tf_trips_note(&out->trips, arg->value, differs));
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

bool sx_tf_region_is_whole(const sx_tf_op_node *x, const sx_tf_region *r,
                           const sx_tf_thing *results, int n)
{
    bool whole = x->im->refused.n == r->refused;
    for (int i = 0; i < n; i++) {
        whole = whole && results[i].kind != SX_TF_REFUSED;
    }
    return whole;
}

sx_status sx_tf_region_end(const sx_tf_op_node *inside, const sx_tf_region *r,
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
        if (sx_tf_has_value(&results[order[k]])) {
            sx_output(r->b, name, results[order[k]].value);
        }
    }
    return sx_builder_finish(r->b, out);
}

const sx_tensor *sx_tf_small_constant(const sx_tf_op_node *x, const sx_tf_thing *arg)
{
    enum { MOST_ELEMS = 64 };
    const sx_tensor *known =
        (arg->kind == SX_TF_VALUE || arg->kind == SX_TF_TUPLE) && sx_tf_has_value(arg)
            ? sx_tf_constant_of(x->b, arg->value)
            : NULL;
    return known != NULL && sx_dtype_bytes(known->type.dtype) > 0 &&
                   sx_type_is_static(&known->type) && sx_type_elems(&known->type) <= MOST_ELEMS
               ? known
               : NULL;
}

sx_status sx_tf_keep_constants(const sx_tf_op_node *x, const sx_tf_thing *args, const bool *chosen,
                               int n, sx_tf_region *r)
{
    sx_tf_op_node inside = *x;
    inside.b = r->b;
    for (int i = 0; i < n; i++) {
        const sx_tensor *known =
            chosen == NULL || chosen[i] ? sx_tf_small_constant(x, &args[i]) : NULL;
        if (known != NULL) {
            SX_TRY(sx_tf_constant(&inside, known->type, known->data, &r->args[i].value));
            r->args[i].known = sx_tf_constant_of(r->b, r->args[i].value);
        }
    }
    return SX_OK;
}
