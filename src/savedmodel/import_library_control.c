/* Imports branches and loops: the functions that they call become regions. */
#include "savedmodel/import_library_ops.h"

/* ---- Control flow ---- */

/* The arguments of branches or bodies that do not assign variables: values in place of handles. */
static sx_status only_read(sx_tf_op_node *x, const char *const *attrs, int first, sx_tf_thing **out)
{
    bool assigns = false;
    for (int i = 0; i < 2; i++) {
        const Tensorflow__FunctionDef *function = NULL;
        bool some = false;
        SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attrs[i], &function));
        SX_TRY(sx_tf_import_assigns(x->im, function, &some));
        assigns = assigns || some;
    }
    sx_tf_thing *args =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*args));
    if (args == NULL) {
        return sx_import_memory();
    }
    for (int i = first; i < x->n->n_in && !assigns; i++) {
        if (args[i].kind == SX_TF_HANDLE) {
            SX_TRY(sx_tf_read_handle(x, &args[i], &args[i].value));
            args[i].kind = SX_TF_READ;
        }
    }
    *out = args + first;
    return SX_OK;
}

static sx_type declared_type(const sx_tf_op_node *x, const sx_tf_thing *arg)
{
    return arg->kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE)
                                     : sx_type_of_value(x->b, arg->value);
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

/* A region that holds a function's body over arguments of these types. Parameter k of the region is
 * argument order[k], and its first n_ends results are results order[k], order NULL: as they are;
 * kept[i], unless NULL, says whether result i is argument i. On success the caller destroys
 * *out_graph, which is NULL if a node of it was refused. */
static sx_status make_region(sx_tf_op_node *x, const char *attr, const sx_tf_thing *args,
                             const sx_type *types, int n, const int *order, int n_ends,
                             sx_tf_thing *results, sx_type *result_types, int n_results, bool *kept,
                             sx_graph **out_graph)
{
    const Tensorflow__FunctionDef *function = NULL;
    sx_builder *b = NULL;
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attr, &function));
    const Tensorflow__OpDef *signature = function->signature;
    sx_tf_thing *inner = sx_arena_memdup(&x->im->arena, args, ((size_t)n + 1) * sizeof(*inner));
    if (inner == NULL) {
        return sx_import_memory();
    }
    if (signature->n_output_arg != (size_t)n_results || signature->n_input_arg != (size_t)n) {
        return sx_error(SX_DATA_LOSS,
                        "function \"%.100s\" has %zu arguments and %zu results, expected %d and %d",
                        signature->name, signature->n_input_arg, signature->n_output_arg, n,
                        n_results);
    }
    SX_TRY(sx_builder_create_function(&b));
    const int refused = x->im->refused.n;
    for (int k = 0; k < n; k++) {
        const int i = order != NULL ? order[k] : k;
        inner[i].known = NULL;
        inner[i].value = sx_input(b, signature->input_arg[i]->name, types[i]);
    }
    sx_status status = sx_tf_import_body(x->im, function, b, inner, n, results);
    bool whole = x->im->refused.n == refused;
    for (int i = 0; i < n_results && status == SX_OK && whole; i++) {
        whole = results[i].kind != SX_TF_REFUSED;
    }
    for (int i = 0; i < n_results && status == SX_OK && whole; i++) {
        result_types[i] = results[i].kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE)
                                                          : sx_type_of_value(b, results[i].value);
        if (kept != NULL) {
            kept[i] = results[i].value.id == inner[i].value.id;
        }
    }
    for (int k = 0; k < n_ends && status == SX_OK && whole; k++) {
        const int i = order != NULL && n_results == n ? order[k] : k;
        sx_output(b, signature->output_arg[i]->name, results[i].value);
    }
    if (status == SX_OK && whole) {
        status = sx_builder_finish(b, out_graph);
    }
    sx_builder_destroy(b);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s \"%.100s\"", attr, signature->name);
}

static void refuse_outputs(sx_tf_op_node *x)
{
    for (int i = 0; i < x->n->n_out; i++) {
        x->n->out[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
    }
}

/* Room for the outputs, and how many there are. */
static sx_status make_room(sx_tf_op_node *x, const char *attr, int *out_n)
{
    const Tensorflow__FunctionDef *function = NULL;
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attr, &function));
    const size_t n = function->signature->n_output_arg;
    if (n == 0 || n > SX_MAX_OUTPUTS) {
        return sx_tf_unsupported("it has %zu outputs; 1 to %d are supported", n, SX_MAX_OUTPUTS);
    }
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

static sx_status import_if(sx_tf_op_node *x)
{
    static const char *const attrs[] = {"then_branch", "else_branch"};
    const int n = x->n->n_in - 1;
    int n_out = 0;
    sx_graph *regions[2] = {NULL, NULL};
    sx_type types[2][SX_MAX_OUTPUTS];
    sx_tf_thing results[2][SX_MAX_OUTPUTS] = {{{.kind = SX_TF_NOTHING}}}, *args = NULL;
    if (n < 0) {
        return sx_error(SX_DATA_LOSS, "the condition is missing");
    }
    SX_TRY(make_room(x, "then_branch", &n_out));
    SX_TRY(only_read(x, attrs, 1, &args));
    sx_value *in = sx_arena_array(&x->im->arena, n + 2, sx_value), condition = SX_NO_VALUE;
    sx_type *in_types = sx_arena_array(&x->im->arena, n + 1, sx_type);
    if (in == NULL || in_types == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_operand(x, 0, &condition));
    SX_TRY(to_bool(x, condition, &in[0]));
    for (int i = 0; i < n; i++) {
        in[1 + i] = args[i].value;
        in_types[i] = declared_type(x, &args[i]);
    }
    sx_status status = SX_OK;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = make_region(x, attrs[i], args, in_types, n, NULL, n_out, results[i], types[i],
                             n_out, NULL, &regions[i]);
    }
    const bool whole = status == SX_OK && regions[0] != NULL && regions[1] != NULL;
    for (int i = 0; i < n_out && whole && status == SX_OK; i++) {
        const sx_type *other = &types[1][i];
        types[0][i] = join(types[0][i], other);
        if (results[0][i].kind != SX_TF_VALUE || results[1][i].kind != SX_TF_VALUE) {
            status = sx_tf_unsupported("output %d is a variable's handle", i);
        } else if (types[0][i].dtype != other->dtype) {
            status = sx_error(SX_DATA_LOSS, "output %d is %s in one branch and %s in the other", i,
                              sx_dtype_name(types[0][i].dtype), sx_dtype_name(other->dtype));
        }
    }
    if (whole && status == SX_OK) {
        const sx_value y =
            sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_if,
                                                .attrs = &(sx_if_attrs){regions[0], regions[1]},
                                                .inputs = in,
                                                .n_inputs = n + 1,
                                                .types = types[0],
                                                .n_types = n_out,
                                                .device = "",
                                                .file = ""});
        for (int i = 0; i < n_out; i++) {
            sx_tf_set(x, i, sx_output_of(y, i));
        }
    } else if (status == SX_OK) {
        refuse_outputs(x);
    }
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return status;
}

/* The state of TensorFlow's loop is all of its inputs; those that the body returns as they are
 * become operands of ours that do not change, after the others. */
static sx_status import_while(sx_tf_op_node *x)
{
    static const char *const attrs[] = {"cond", "body"};
    enum { ATTEMPTS = 4 };
    const int n = x->n->n_in;
    int n_out = 0, order[SX_MAX_OUTPUTS] = {0}, n_state = n;
    bool kept[SX_MAX_OUTPUTS] = {false}, holds = false;
    sx_graph *condition = NULL, *body = NULL;
    sx_type types[SX_MAX_OUTPUTS], made[SX_MAX_OUTPUTS], flag = {.dtype = SX_DTYPE_NONE};
    sx_tf_thing results[SX_MAX_OUTPUTS] = {{.kind = SX_TF_NOTHING}}, test = {.kind = SX_TF_NOTHING},
                *args = NULL;
    SX_TRY(make_room(x, "body", &n_out));
    if (n_out != n) {
        return sx_error(SX_DATA_LOSS, "the loop has %d inputs, its body gives %d", n, n_out);
    }
    SX_TRY(only_read(x, attrs, 0, &args));
    for (int i = 0; i < n; i++) {
        types[i] = declared_type(x, &args[i]);
        order[i] = i;
    }
    /* Until the types hold for every iteration, and what does not change comes last. */
    sx_status status = SX_OK;
    for (int attempt = 0; attempt < ATTEMPTS && !holds && status == SX_OK; attempt++) {
        sx_graph_destroy(body);
        body = NULL;
        status =
            make_region(x, "body", args, types, n, order, n_state, results, made, n, kept, &body);
        if (status != SX_OK || body == NULL) {
            break;
        }
        holds = true;
        for (int i = 0; i < n && status == SX_OK; i++) {
            const sx_type both = join(types[i], &made[i]);
            if (made[i].dtype != types[i].dtype) {
                status = sx_error(SX_DATA_LOSS, "state %d is %s, the body gives %s", i,
                                  sx_dtype_name(types[i].dtype), sx_dtype_name(made[i].dtype));
            }
            if (!sx_type_equal(&both, &types[i])) {
                types[i] = attempt < ATTEMPTS - 2 ? both : sx_tf_unknown_shape(types[i].dtype);
                holds = false;
            }
        }
        int k = 0, changing = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < n; i++) {
                if (kept[i] == (pass == 1)) {
                    holds = holds && order[k] == i;
                    order[k++] = i;
                }
            }
            changing = pass == 0 ? k : changing;
        }
        holds = holds && n_state == changing;
        n_state = changing;
    }
    if (status == SX_OK && body != NULL && !holds) {
        status = sx_tf_unsupported("the types of the loop's state do not settle");
    }
    if (status == SX_OK && body != NULL && n_state == 0) {
        status = sx_tf_unsupported("its body changes nothing");
    }
    if (status == SX_OK) { /* also of a body that was refused: to name all nodes */
        status =
            make_region(x, "cond", args, types, n, order, 1, &test, &flag, 1, NULL, &condition);
    }
    if (status == SX_OK && condition != NULL && flag.dtype != SX_BOOL) {
        status = sx_tf_unsupported("the condition is a %s", sx_dtype_name(flag.dtype));
    }
    if (status == SX_OK && (condition == NULL || body == NULL)) {
        refuse_outputs(x);
    } else if (status == SX_OK) {
        sx_value in[SX_MAX_OUTPUTS];
        sx_type state[SX_MAX_OUTPUTS];
        for (int i = 0; i < n; i++) {
            in[i] = args[order[i]].value;
            state[i] = types[order[i]];
        }
        const sx_value y =
            sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_while,
                                                .attrs = &(sx_while_attrs){condition, body, 0},
                                                .inputs = in,
                                                .n_inputs = n,
                                                .types = state,
                                                .n_types = n_state,
                                                .device = "",
                                                .file = ""});
        for (int i = 0; i < n; i++) {
            x->n->out[order[i]] = x->n->in[order[i]];
            if (i < n_state) {
                sx_tf_set(x, order[i], sx_output_of(y, i));
            }
        }
    }
    sx_graph_destroy(condition);
    sx_graph_destroy(body);
    return status;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_control_rows[] = {
    {"If", import_if, NULL},
    {"StatelessIf", import_if, NULL},
    {"While", import_while, NULL},
    {"StatelessWhile", import_while, NULL},
    {NULL, NULL, NULL},
};
