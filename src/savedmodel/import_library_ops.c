/* Imports the nodes of functions: see import_library.h. A node that is one of our operators is read
 * by that operator's `from_tf` (graph/lower/tf_reader.h); what it has as a tensor and we as an
 * attribute becomes an attribute where it is known, else an operand. Other nodes have rows: at the
 * end of this file, and in import_library_*.c. */
#include "savedmodel/import_library_ops.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/name_index.h"
#include "graph/host.h"

/* ---- One to one ---- */

sx_status sx_tf_import_one(sx_tf_op_node *x)
{
    const char *tf_op = x->row->same_as != NULL ? x->row->same_as : x->n->node->op;
    const sx_tf_form *form = NULL;
    const sx_op_def *op = sx_op_find_tf(tf_op, &form);
    sx_tf_open_attr open[SX_TF_FORM_OPERANDS];
    sx_attr_operand operands[SX_TF_FORM_OPERANDS];
    int n_in = 0, n_open = 0, n_out = 0;
    int *from = sx_arena_array(&x->im->arena, x->n->n_in + 1, int);
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value);
    void *attrs = sx_arena_alloc(&x->im->arena, op->attrs_bytes + 1, 1);
    if (from == NULL || in == NULL || attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_read_open_node(op, form, &x->tf.head, attrs, from, &n_in, open, &n_open));
    for (int i = 0; i < n_in; i++) {
        SX_TRY(sx_tf_operand(x, from[i], &in[i]));
    }
    for (int i = 0; i < n_open; i++) {
        const sx_attr_kind kind = op->attrs[open[i].row].kind;
        const sx_type *type = &x->tf.head.types[open[i].input];
        char text[SX_TYPE_TEXT];
        if (kind == SX_ATTR_FLOAT || kind == SX_ATTR_BOOL) { /* never part of what is bound */
            return sx_tf_unsupported("input %d is not a constant", open[i].input);
        }
        if (!sx_dtype_is_integer(type->dtype) || type->rank > 1) {
            return sx_tf_unsupported("input %d is %s, expected a list of integers", open[i].input,
                                     sx_type_format(type, text, sizeof(text)));
        }
        operands[i].row = open[i].row;
        SX_TRY(sx_tf_operand(x, open[i].input, &operands[i].value));
    }
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_add_node(x, op, attrs, in, n_in, operands, n_open, &y, &n_out));
    for (int i = 0; i < n_out && i < x->n->n_out; i++) {
        sx_tf_set(x, i, sx_output_of(y, i));
    }
    return SX_OK;
}

/* ---- The program around ---- */

static sx_status import_const(sx_tf_op_node *x)
{
    bool complex = false;
    SX_TRY(sx_tf_import_complex_const(x, &complex));
    if (complex) {
        return SX_OK;
    }
    sx_tensor *t = sx_arena_new(&x->im->arena, sx_tensor);
    if (t == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_import_const_value(x->n->node, &x->im->arena, t));
    SX_TRY(sx_tf_charge_constant(x, sx_host_bytes(&t->type)));
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_constant(x, t->type, t->data, &y));
    sx_tf_set(x, 0, y);
    x->n->out[0].known = t;
    return SX_OK;
}

/* The signature does not feed it. */
static sx_status import_placeholder(sx_tf_op_node *x)
{
    (void)x;
    return sx_error(
        SX_DATA_LOSS,
        "an output depends on this placeholder, which is not an input of the signature");
}

static sx_status import_identity(sx_tf_op_node *x)
{
    for (int i = 0; i < x->n->n_in && i < x->n->n_out; i++) {
        x->n->out[i] = x->n->in[i];
    }
    return SX_OK;
}

/* Of a variable of TensorFlow 1 a tensor that shares its memory. */
static sx_status import_one_identity(sx_tf_op_node *x)
{
    SX_TRY(import_identity(x));
    x->n->out[0].shared = x->n->out[0].kind == SX_TF_REF;
    return SX_OK;
}

static sx_status import_stop_gradient(sx_tf_op_node *x)
{
    const bool ours = x->n->n_in > 0 && x->n->in[0].kind == SX_TF_VALUE &&
                      sx_dtype_is_float(x->tf.head.types[0].dtype);
    return ours ? sx_tf_import_one(x) : import_identity(x);
}

/* Strings that are added are joined. */
static sx_status import_add(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    if (x->n->n_in != 2 || x->tf.head.types[0].dtype != SX_STRING) {
        return sx_tf_import_one(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(sx_tf_build(x, &sx_op_string_join, NULL, &y, 2, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* EnsureShape(value) {shape}: what is not known of its sizes is checked, and holds for what reads
 * it. */
static sx_status import_ensure_shape(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "shape");
    const char *name = x->n->node->name;
    sx_value v = SX_NO_VALUE;
    sx_type wanted;
    if (x->n->n_in > 0 && x->n->in[0].kind != SX_TF_VALUE) { /* complex, lists: as they are */
        return import_identity(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    const sx_type given = sx_type_of_value(x->b, v);
    sx_type type = given;
    if (a == NULL || a->value_case != TENSORFLOW__ATTR_VALUE__VALUE_SHAPE ||
        !sx_tf_type((int)given.dtype, a->shape, &wanted)) {
        return import_identity(x);
    }
    for (int d = 0; d < wanted.rank; d++) {
        wanted.dims[d] = wanted.dims[d] >= 0 ? wanted.dims[d] : SX_UNKNOWN_DIM;
    }
    if (given.rank == SX_UNKNOWN_RANK) {
        type = wanted;
    }
    sx_ints axes = {0}, sizes = {0};
    for (int d = 0; d < wanted.rank && type.rank == wanted.rank; d++) {
        if (wanted.dims[d] >= 0 && (given.rank < 0 || given.dims[d] != wanted.dims[d])) {
            axes.v[axes.n++] = d;
            sizes.v[sizes.n++] = wanted.dims[d];
            /* a batch stays one */
            type.dims[d] = sx_dim_is_batch(type.dims[d]) ? type.dims[d] : wanted.dims[d];
        }
    }
    if (axes.n == 0 && given.rank == wanted.rank) {
        return import_identity(x);
    }
    if (x->im->trials == 0) {
        sx_value shape = SX_NO_VALUE, part = SX_NO_VALUE, expected = SX_NO_VALUE,
                 holds = SX_NO_VALUE;
        const sx_reduce_attrs all = {.axes = {1, {0}}};
        const sx_assert_attrs attrs = {
            .message = sx_arena_printf(
                &x->im->arena, "EnsureShape %s: expected %s, got a tensor of the sizes", name,
                sx_type_format(&wanted, (char[SX_TYPE_TEXT]){0}, SX_TYPE_TEXT))};
        if (attrs.message == NULL) {
            return sx_import_memory();
        }
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
        if (given.rank != wanted.rank) {
            SX_TF_BUILD(x, &part, shape, (&(sx_cast_attrs){SX_I64}), shape);
            SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {wanted.rank}}, &expected));
            SX_TF_BUILD(x, &holds, equal, NULL, part, expected);
            SX_TF_BUILD(x, &holds, reduce_all, &all, holds);
            SX_TF_BUILD(x, &holds, assert, &attrs, holds, shape);
        }
        if (axes.n > 0) {
            SX_TRY(sx_tf_int64s(x, &axes, &expected));
            SX_TF_BUILD(x, &part, gather, NULL, shape, expected);
            SX_TRY(sx_tf_int64s(x, &sizes, &expected));
            SX_TF_BUILD(x, &holds, equal, NULL, part, expected);
            SX_TF_BUILD(x, &holds, reduce_all, &all, holds);
            SX_TF_BUILD(x, &holds, assert, &attrs, holds, shape);
        }
    }
    sx_tf_set(x, 0, sx_tf_build_as(x, &sx_op_identity, NULL, &v, 1, NULL, 0, &type));
    return SX_OK;
}

/* DeviceIndex {device_names}: which of them is the processor, or how many there are. */
static sx_status import_device_index(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "device_names");
    const bool listed =
        a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
    const size_t n = listed ? a->list->n_s : 0;
    size_t at = 0;
    while (at < n && !(a->list->s[at].len == 3 && memcmp(a->list->s[at].data, "CPU", 3) == 0)) {
        at++;
    }
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, SX_I32, (double)at, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* FakeParam {dtype, shape}: what a branch gives in place of values that only the other has, and
 * nothing reads: zeros, none of which there are along unknown axes. */
static sx_status import_fake_param(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "shape");
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "dtype", SX_DTYPE_NONE);
    sx_value zero = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_shape_attrs shape = {{0}};
    sx_type type;
    if (a == NULL || a->value_case != TENSORFLOW__ATTR_VALUE__VALUE_SHAPE ||
        !sx_tf_type((int)dtype, a->shape, &type)) {
        return sx_tf_unsupported("its dtype or its shape");
    }
    for (int d = 0; d < type.rank; d++) {
        shape.shape.v[shape.shape.n++] = SX_MAX(type.dims[d], (int64_t)0);
    }
    SX_TRY(sx_tf_nothing_of(x, dtype, &zero));
    SX_TF_BUILD(x, &y, broadcast_to, &shape, zero);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_nothing(sx_tf_op_node *x)
{
    (void)x;
    return SX_OK;
}

/* ---- The table ---- */

static const sx_tf_op_row program_rows[] = {
    {"Const", import_const, NULL},
    {"Placeholder", import_placeholder, NULL},
    {"PlaceholderWithDefault", import_identity, NULL},
    {"Identity", import_one_identity, NULL},
    {"RefIdentity", import_identity, NULL},
    {"IdentityN", import_identity, NULL},
    {"StopGradient", import_stop_gradient, NULL},
    {"PreventGradient", import_identity, NULL},
    {"EnsureShape", import_ensure_shape, NULL},
    {"GuaranteeConst", import_identity, NULL},
    {"Snapshot", import_identity, NULL},
    {"DeepCopy", import_identity, NULL},
    {"Copy", import_identity, NULL},
    {"CopyHost", import_identity, NULL},
    {"CheckPinned", import_identity, NULL},
    {"DebugIdentity", import_identity, NULL},
    {"DebugIdentityV2", import_identity, NULL},
    {"DebugGradientIdentity", import_identity, NULL},
    {"HostConst", import_const, NULL},
    {"ControlTrigger", import_nothing, NULL},
    {"NoOp", import_nothing, NULL},
    {"DeviceIndex", import_device_index, NULL},
    {"FakeParam", import_fake_param, NULL},
    {"Add", import_add, "AddV2"},
    {"AddV2", import_add, NULL},
    {"ConjugateTranspose", sx_tf_import_one, "Transpose"},
    {"ScatterNdNonAliasingAdd", sx_tf_import_one, "TensorScatterAdd"},
    {NULL, NULL, NULL},
};

static const sx_tf_op_row *const tables[] = {
    program_rows,       sx_tf_variable_rows,  sx_tf_branch_rows,  sx_tf_loop_rows,
    sx_tf_shape_rows,   sx_tf_part_rows,      sx_tf_slice_rows,   sx_tf_list_rows,
    sx_tf_number_rows,  sx_tf_einsum_rows,    sx_tf_image_rows,   sx_tf_random_rows,
    sx_tf_window_rows,  sx_tf_index_rows,     sx_tf_norm_rows,    sx_tf_table_rows,
    sx_tf_complex_rows, sx_tf_fourier_rows,   sx_tf_scatter_rows, sx_tf_gradient_rows,
    sx_tf_example_rows, sx_tf_quantized_rows, sx_tf_patch_rows,   sx_tf_optimizer_rows,
    sx_tf_cell_rows,    sx_tf_variant_rows,   sx_tf_fused_rows,   sx_tf_sparse_gradient_rows,
    sx_tf_uniform_rows};

/* What the operators read themselves. */
static const sx_tf_op_row one_to_one = {"", sx_tf_import_one, NULL};

static sx_name_index rows_by_op;

static void index_rows(void)
{
    for (size_t t = 0; t < SX_COUNT(tables); t++) {
        for (const sx_tf_op_row *row = tables[t]; row->tf_op != NULL; row++) {
            sx_name_index_add(&rows_by_op, row->tf_op, row);
        }
    }
}

static const sx_tf_op_row *find_row(const char *tf_op)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, index_rows);
    const sx_tf_form *form = NULL;
    const sx_tf_op_row *row = sx_name_index_find(&rows_by_op, tf_op);
    return row == NULL && sx_op_find_tf(tf_op, &form) != NULL ? &one_to_one : row;
}

bool sx_tf_import_has_op(const char *tf_op)
{
    return find_row(tf_op) != NULL;
}

/* Operators that stay out: what their names begin with, and why. */
static const struct {
    const char *begins, *why;
} left_out[] = {
#define OF_QUEUES \
    "threads of TensorFlow fill it; save a signature that takes the examples as inputs"
#define OF_FILES  "it uses files of the machine that runs it; let an input take what they contain"
#define OF_PYTHON "it runs Python code, which no SavedModel contains"
    {"FIFOQueue", OF_QUEUES},
    {"PaddingFIFOQueue", OF_QUEUES},
    {"RandomShuffleQueue", OF_QUEUES},
    {"PriorityQueue", OF_QUEUES},
    {"Queue", OF_QUEUES},
    {"Barrier", OF_QUEUES},
    {"WriteFile", OF_FILES},
    {"MatchingFiles", OF_FILES},
    {"PyFunc", OF_PYTHON},
    {"EagerPyFunc", OF_PYTHON},
    {"Stack",
     "loops of TensorFlow 1 keep values in it for their gradient; save the signature without "
     "its training step, or with control flow v2"},
    {"TensorArrayGrad",
     "loops of TensorFlow 1 keep gradients in it; save the signature without its "
     "training step, or with control flow v2"},
    {"TensorListPushBackBatch", "only what TensorFlow vectorizes when it runs has it"},
    {"LearnedUnigramCandidateSampler", "what it draws depends on all calls before"},
    {"ThreadUnsafeUnigramCandidateSampler", "what it draws depends on all calls before"},
    {"XlaCallModule",
     "it holds a program of StableHLO; convert the model to TensorFlow's operators, "
     "in jax2tf with native_serialization=False"},
#undef OF_QUEUES
#undef OF_FILES
#undef OF_PYTHON
};

const char *sx_tf_import_why_not(const char *tf_op)
{
    if (strstr(tf_op, "Dataset") != NULL || strstr(tf_op, "Iterator") != NULL) {
        return "it is part of an input pipeline (tf.data), which is not supported; save a "
               "signature that takes the examples as inputs";
    }
    for (size_t i = 0; i < SX_COUNT(left_out); i++) {
        if (strncmp(tf_op, left_out[i].begins, strlen(left_out[i].begins)) == 0) {
            return left_out[i].why;
        }
    }
    return "";
}

bool sx_tf_import_keeps(const Tensorflow__NodeDef *node)
{
    static const sx_tf_op_row *const keeping[] = {
        sx_tf_variable_rows, sx_tf_branch_rows,  sx_tf_loop_rows,   sx_tf_list_rows,
        sx_tf_table_rows,    sx_tf_variant_rows, sx_tf_example_rows};
    const sx_tf_op_row *row = find_row(node->op);
    bool keeps = row == NULL || sx_tf_node_attr(node, "_gradient_op_type") != NULL;
    for (size_t t = 0; t < SX_COUNT(keeping) && !keeps; t++) {
        for (const sx_tf_op_row *r = keeping[t]; r->tf_op != NULL && !keeps; r++) {
            keeps = r == row;
        }
    }
    return keeps;
}

const char *sx_tf_import_op_name(size_t i)
{
    for (size_t t = 0; t < SX_COUNT(tables); t++) {
        for (const sx_tf_op_row *row = tables[t]; row->tf_op != NULL; row++) {
            if (i-- == 0) {
                return row->tf_op;
            }
        }
    }
    return NULL;
}

/* Whether the operator does not read variables of TensorFlow 1: it hands them on, Identity and
 * those into which import_v1_control.c turns control flow, which read tensors that share memory
 * first, or it asks whether they have a value. */
static bool passes_ref(const char *tf_op, const sx_tf_thing *ref)
{
    return strcmp(tf_op, "Identity") == 0 || strcmp(tf_op, "RefIdentity") == 0 ||
           strcmp(tf_op, "IsVariableInitialized") == 0 ||
           (!ref->shared && (strcmp(tf_op, "If") == 0 || strcmp(tf_op, "While") == 0 ||
                             strcmp(tf_op, "IdentityN") == 0));
}

sx_status sx_tf_import_op(sx_library_importer *im, sx_tf_body *body, sx_tf_import_node *n)
{
    sx_tf_op_node x = {.tf = sx_import_reader_of(n->node, &im->arena, body->b),
                       .im = im,
                       .body = body,
                       .b = body->b,
                       .n = n,
                       .row = find_row(n->node->op)};
    sx_tf_thing *in = sx_arena_memdup(&im->arena, n->in, ((size_t)n->n_in + 1) * sizeof(*in));
    sx_type *types = sx_arena_array(&im->arena, n->n_in + 1, sx_type);
    const sx_tensor **values = sx_arena_array(&im->arena, n->n_in + 1, const sx_tensor *);
    if (in == NULL || types == NULL || values == NULL) {
        return sx_import_memory();
    }
    n->in = in;
    const int assigned = sx_tf_assigned_inputs(n->node->op);
    bool complex = false;
    for (int i = 0; i < n->n_in; i++) {
        if (in[i].kind == SX_TF_REF && i >= assigned && !passes_ref(n->node->op, &in[i])) {
            SX_TRY(sx_tf_read_handle(&x, &in[i], &in[i].value));
            in[i].kind = SX_TF_VALUE;
        }
        complex = complex || in[i].kind == SX_TF_COMPLEX;
        types[i] = sx_type_of_value(body->b, n->in[i].value);
        const sx_tensor *known = n->in[i].known == NULL && n->in[i].kind == SX_TF_VALUE
                                     ? sx_tf_constant_of(body->b, n->in[i].value)
                                     : n->in[i].known;
        values[i] = known != NULL && known->type.dtype != SX_STRING ? known : NULL;
    }
    x.tf.head.n_in = n->n_in;
    x.tf.head.types = types;
    x.tf.head.values = values;
    if (sx_tf_reads_variants(&x)) {
        return sx_tf_import_variants(&x);
    }
    if (complex) {
        SX_TRY(sx_tf_import_complex(&x));
        return sx_tf_import_gradient(&x);
    }
    if (assigned > 0 && im->trials > 0) {
        n->out[0] = n->n_in > 0 ? in[0] : n->out[0];
        return SX_OK;
    }
    SX_TRY(x.row->import(&x));
    if (assigned > 0 && in[0].kind == SX_TF_REF) { /* the operator gives the variable */
        n->out[0] = in[0];
    }
    return sx_tf_import_gradient(&x);
}

/* The node as operator `tf_op` with the inputs given[n_in]. */
static sx_status import_node_as(const sx_tf_op_node *x, const char *tf_op, sx_tf_thing *given,
                                int n_in, sx_tf_thing *out, int n_out)
{
    Tensorflow__NodeDef *node = sx_arena_memdup(&x->im->arena, x->n->node, sizeof(*x->n->node));
    char *name = sx_arena_memdup(&x->im->arena, tf_op, strlen(tf_op) + 1);
    sx_tf_import_node of = *x->n;
    if (node == NULL || name == NULL || given == NULL || out == NULL) {
        return sx_import_memory();
    }
    node->op = name;
    of.node = node;
    of.in = given;
    of.n_in = n_in;
    of.out = out;
    of.n_out = n_out;
    return sx_tf_import_op(x->im, x->body, &of);
}

static sx_tf_thing thing_of(const sx_tf_op_node *x, sx_value v)
{
    return (sx_tf_thing){.kind = SX_TF_VALUE, .value = v, .known = sx_tf_constant_of(x->b, v)};
}

static sx_status require_real(const char *tf_op, const sx_tf_thing *y, sx_value *out)
{
    *out = y->value;
    return y->kind == SX_TF_VALUE ? SX_OK
                                  : sx_tf_unsupported("%s gives no tensor of real numbers", tf_op);
}

sx_status sx_tf_import_as(const sx_tf_op_node *x, const char *tf_op, const sx_value *in, int n,
                          sx_value *out)
{
    const int n_in = x->n->n_in;
    sx_tf_thing *things =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)n_in + 1) * sizeof(*things));
    sx_tf_thing *made = sx_arena_array(&x->im->arena, x->n->n_out + 1, sx_tf_thing);
    for (int i = 0; i < n && i < n_in && things != NULL; i++) {
        things[i] = thing_of(x, in[i]);
    }
    SX_TRY(import_node_as(x, tf_op, things, n_in, made, x->n->n_out));
    return require_real(tf_op, &made[0], out);
}

sx_status sx_tf_import_outputs_as(const sx_tf_op_node *x, const char *tf_op, const sx_value *in,
                                  int n, sx_value *out, int n_out)
{
    sx_tf_thing *things = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    sx_tf_thing *made = sx_arena_array(&x->im->arena, n_out + 1, sx_tf_thing);
    for (int i = 0; i < n && things != NULL; i++) {
        things[i] = thing_of(x, in[i]);
    }
    SX_TRY(import_node_as(x, tf_op, things, n, made, n_out));
    for (int i = 0; i < n_out; i++) {
        SX_TRY(require_real(tf_op, &made[i], &out[i]));
    }
    return SX_OK;
}
