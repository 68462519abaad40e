/* What an operator writes as TensorFlow's nodes is read back: each sample of each operator with a
 * `to_tf` is written as a SavedModel, imported, and computes what the operator itself does. If it
 * wrote one node, that becomes the same operator with the same attributes. Samples
 * whose batch is not a signature's, the first dimension and N, are written with its size. */
#include "io/scratch.h"

#include "../graph/op_samples.h"
#include "runtime/function_run.h"
#include "savedmodel/saved_model_write.h"

#include "imported.h"

static char wrong[1024];

/* The nodes of the graph's one operator, between placeholders and a signature. */
static sx_status write_model(const sx_graph *g, const char *dir)
{
    sx_saved_model_writer *model;
    sx_tf_value in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {{0}};
    sx_type in_types[SX_SAMPLE_MAX_INPUTS], out_types[SX_MAX_OUTPUTS];
    SX_TRY(sx_saved_model_writer_create(&model));
    sx_tf_writer *w = sx_saved_model_nodes(model);
    const sx_node *n = &g->nodes[g->n_nodes - 1];
    assert_true(n->n_inputs == g->n_args && n->n_outputs == g->n_results);
    for (int i = 0; i < g->n_args; i++) {
        in_types[i] = *sx_graph_type(g, g->args[i].value);
        in[i] = sx_tf_add(w, "Placeholder", g->args[i].name, SX_TF_NO_IN,
                          sx_tf_attrs(sx_tf_attr_type("dtype", (int)in_types[i].dtype),
                                      sx_tf_attr_shape("shape", &in_types[i])));
    }
    for (int i = 0; i < n->n_outputs; i++) {
        out_types[i] = *sx_graph_type(g, sx_node_output(n, i));
    }
    sx_tf_scope_push(w, "op");
    n->op->to_tf(w, &(sx_tf_op){.attrs = n->attrs,
                                .name = n->name,
                                .in = in,
                                .out = out,
                                .in_types = in_types,
                                .out_types = out_types,
                                .n_in = n->n_inputs,
                                .n_out = n->n_outputs});
    sx_tf_scope_pop(w);
    sx_saved_model_signature(model, "serving_default");
    for (int i = 0; i < g->n_args; i++) {
        sx_saved_model_input(model, g->args[i].name, in[i], &in_types[i]);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        sx_saved_model_output(model, g->results[i].name, out[i], &out_types[i]);
    }
    sx_status status = sx_saved_model_write(model, dir, NULL, NULL);
    sx_saved_model_writer_destroy(model);
    return status;
}

/* Runs the imported graph on the inputs of `run` and compares its outputs with the run's. */
static const char *compare_graph(const op_sample_run *run, const sx_graph *graph, int64_t batch)
{
    op_sample_values v;
    const char *result = NULL;
    /* attributes become constants of the operands' dtype */
    const double tolerance = run->in[0].type.dtype == SX_BF16 ? 0x1p-8 : 1e-6;
    assert_ok(sx_pass_fix_batch(graph, batch, &v.graph));
    v.values = sx_alloc((size_t)v.graph->n_values, sizeof(*v.values));
    assert_non_null(v.values);
    for (int i = 1; i < v.graph->n_values; i++) {
        v.values[i] = op_sample_tensor(v.graph->values[i].type);
    }
    for (int i = 0; i < run->n_in; i++) { /* an input that nothing reads is gone */
        const sx_host_tensor *x = op_sample_value(&v, "x", i);
        if (x != NULL) {
            memcpy(x->data, run->in[i].data,
                   (size_t)sx_type_elems(&x->type) * sx_carrier_bytes(x->type.dtype));
        }
    }
    op_sample_evaluate(&v);
    for (int k = 0; k < run->n_out && result == NULL; k++) {
        const sx_host_tensor *y = op_sample_value(&v, "y", k), *want = &run->out[k];
        if (y == NULL || !sx_type_equal(&y->type, &want->type)) {
            result = "an output has another type than before";
        }
        for (int64_t i = 0; result == NULL && i < sx_type_elems(&want->type); i++) {
            double a = sx_host_get(y, i), b = sx_host_get(want, i);
            /* equal infinities have no difference */
            if (a != b && !(fabs(a - b) <= tolerance * fmax(1, fabs(b)))) {
                snprintf(wrong, sizeof(wrong), "y%d[%lld] is %g, expected %g", k, (long long)i, a,
                         b);
                result = wrong;
            }
        }
    }
    op_sample_values_end(&v);
    return result;
}

/* The same of a function that is no single program: it is run on the host. Runs it on the inputs of
 * `run` and compares its results with the run's. */
static const char *compare_run(const op_sample_run *run, const sx_library *library)
{
    const char *result = NULL;
    /* attributes become constants of the operands' dtype */
    const double tolerance = run->in[0].type.dtype == SX_BF16 ? 0x1p-8 : 1e-6;
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_arena arena;
    sx_tensor in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {{.data = NULL}};
    sx_arena_init(&arena, 0);
    for (int i = 0; i < run->n_in; i++) {
        const size_t bytes = (size_t)sx_host_bytes(&run->in[i].type);
        in[i] = (sx_tensor){run->in[i].type, sx_arena_alloc(&arena, bytes + 1, 1)};
        assert_non_null(in[i].data);
        sx_host_store(&run->in[i], in[i].data);
    }
    assert_ok(sx_platform_open("host", &(sx_platform_options){.cpu.threads = 1}, &platform));
    assert_ok(
        sx_runner_create(&(sx_runner_options){.library = library, .platform = platform}, &runner));
    sx_status status =
        sx_runner_run(runner, "serving_default", in, run->n_in, out, run->n_out, &arena, NULL);
    if (status != SX_OK) {
        snprintf(wrong, sizeof(wrong), "%s", sx_status_message(status));
        result = wrong;
    }
    sx_status_free(status);
    for (int k = 0; k < run->n_out && result == NULL; k++) {
        const sx_host_tensor *want = &run->out[k];
        if (!sx_type_equal(&out[k].type, &want->type)) {
            result = "an output has another type than before";
            break;
        }
        const size_t bytes = sx_carrier_bytes(want->type.dtype);
        sx_host_tensor y = {.type = want->type};
        y.data = sx_arena_alloc(&arena, (size_t)sx_type_elems(&want->type) + 1, bytes);
        assert_non_null(y.data);
        sx_host_load(&y, out[k].data);
        for (int64_t i = 0; result == NULL && i < sx_type_elems(&want->type); i++) {
            double a = sx_host_get(&y, i), b = sx_host_get(want, i);
            /* equal infinities have no difference */
            if (a != b && !(fabs(a - b) <= tolerance * fmax(1, fabs(b)))) {
                snprintf(wrong, sizeof(wrong), "y%d[%lld] is %g, expected %g", k, (long long)i, a,
                         b);
                result = wrong;
            }
        }
    }
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_arena_deinit(&arena);
    return result;
}

/* The one node that an operator wrote, besides constants; NULL if it wrote several. */
static const Tensorflow__NodeDef *written_node(const sx_saved_model *model)
{
    const Tensorflow__GraphDef *graph = sx_saved_model_graph(model);
    const Tensorflow__NodeDef *found = NULL;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Tensorflow__NodeDef *n = graph->node[i];
        if (strncmp(n->name, "op/", 3) == 0 && strcmp(n->op, "Const") != 0) {
            if (found != NULL) {
                return NULL;
            }
            found = n;
        }
    }
    return found;
}

/* Is the node's one operator in the graph what was written? Numbers are rounded to the operands'
 * dtype and lists that a sample leaves empty are filled in: those are compared by value only. */
static const char *compare_nodes(const sx_op_def *op, const void *attrs, const sx_graph *graph,
                                 const char *tf_op)
{
    const sx_tf_form *form = NULL;
    const sx_op_def *reader = sx_op_find_tf(tf_op, &form);
    if (reader == NULL) {
        return "no operator reads what it writes (from_tf)";
    }
    if (reader == &sx_op_identity || reader == &sx_op_stop_gradient || reader == &sx_op_shape) {
        return NULL; /* the importer resolves these: no node is left */
    }
    if (graph == NULL) {
        return "it is no single program for a device";
    }
    const sx_node *last = &graph->nodes[graph->n_nodes - 1];
    /* whose moments they are is not written: it matters to the gradient alone */
    op = op == &sx_op_batch_norm_train ? &sx_op_batch_norm : op;
    if (reader != op || last->op != op) {
        snprintf(wrong, sizeof(wrong), "%s is read as %s", tf_op, last->op->name);
        return wrong;
    }
    for (int k = 0; k < graph->n_nodes - 1; k++) {
        const sx_op_def *other = graph->nodes[k].op;
        if (other != &sx_op_parameter) {
            snprintf(wrong, sizeof(wrong), "%s is read with another node, %s", tf_op, other->name);
            return wrong;
        }
    }
    _Alignas(int64_t) char copy[1024] = {0};
    assert_true(op->attrs_bytes <= sizeof(copy));
    for (int i = 0; i < op->n_attrs; i++) {
        const sx_attr_def *row = &op->attrs[i];
        const void *mine = (const char *)attrs + row->offset,
                   *theirs = (const char *)last->attrs + row->offset;
        static const size_t bytes[] = {
            [SX_ATTR_INT] = sizeof(int64_t),    [SX_ATTR_FLOAT] = sizeof(double),
            [SX_ATTR_BOOL] = sizeof(bool),      [SX_ATTR_ENUM] = sizeof(int32_t),
            [SX_ATTR_DTYPE] = sizeof(sx_dtype), [SX_ATTR_INTS] = sizeof(sx_ints),
            [SX_ATTR_SHAPE] = sizeof(sx_ints)};
        assert_true((size_t)row->kind < SX_COUNT(bytes));
        const bool filled = (row->kind == SX_ATTR_INTS && ((const sx_ints *)mine)->n == 0) ||
                            (row->kind == SX_ATTR_INT && *(const int64_t *)mine == 0);
        const bool near =
            row->kind == SX_ATTR_FLOAT && fabs(*(const double *)mine - *(const double *)theirs) <=
                                              0x1p-8 * fabs(*(const double *)mine);
        memcpy(copy + row->offset, filled || near ? theirs : mine, bytes[row->kind]);
    }
    return sx_attrs_equal(op, copy, last->attrs) ? NULL : "its attributes are other ones";
}

/* Has a signature these shapes: the batch, if any, in front? */
static bool is_symbolic(const sx_graph *g)
{
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        const sx_type *type = sx_graph_type(g, v);
        int axis = sx_batch_axis(type);
        if (axis > 0 || (axis == 0 && i < g->n_args && type->dims[0] != SX_BATCH)) {
            return false;
        }
    }
    return true;
}

static const char *check(const sx_op_def *op, const sx_op_sample *sample)
{
    if (!op_sample_is_exported(op, sample) || (op->flags & (SX_OP_HOST | SX_OP_FUNCTION)) != 0) {
        return NULL;
    }
    int64_t batch = op_sample_batch(sample);
    op_sample_run run;
    sx_graph *g;
    sx_saved_model *model = NULL;
    imported import = {.library = NULL};
    const char *result = NULL;
    op_sample_begin(op, sample, &run);
    op_sample_forward(&run, true);
    op_sample_graph(op, sample, OP_SAMPLE_FORWARD, &g);
    /* these two have a TensorFlow form only for sizes that are numbers */
    if (!is_symbolic(g) || op == &sx_op_broadcast_to || op == &sx_op_stateless_random) {
        sx_graph *fixed;
        assert_ok(sx_pass_fix_batch(g, batch, &fixed));
        sx_graph_destroy(g);
        g = fixed;
    }
    const char *dir = scratch("model");
    sx_status status = write_model(g, dir);
    status = status == SX_OK ? sx_saved_model_open(dir, &model) : status;
    status = status == SX_OK ? import_signature(model, "serving_default", &import) : status;
    if (status != SX_OK) {
        snprintf(wrong, sizeof(wrong), "%s", sx_status_message(status));
        result = wrong;
        sx_status_free(status);
    } else {
        const Tensorflow__NodeDef *node = written_node(model);
        result = import.graph != NULL ? compare_graph(&run, import.graph, batch)
                                      : compare_run(&run, import.library);
        if (result == NULL && node != NULL) {
            result = compare_nodes(op, g->nodes[g->n_nodes - 1].attrs, import.graph, node->op);
        }
    }
    imported_end(&import);
    sx_saved_model_close(model);
    sx_status_free(sx_dir_remove(dir));
    sx_graph_destroy(g);
    op_sample_end(&run);
    return result;
}

static void test_savedmodel_read_back__every_sample(void **state)
{
    (void)state;
    assert_int_equal(op_samples_failing(check), 0);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_read_back__every_sample),
};
SX_TEST_MAIN(tests)
