/* Every operator of the table, on its samples: facets, inference, gradient against central
 * differences in double, text form; and random types into every infer. A failing sample is named.
 */
#include "graph/op_samples.h"

#include <sextant/ops.h>

#include "graph/passes/passes.h"

static char wrong[512];

/* --- Facets ---------------------------------------------------------------------------------- */

static bool declared_by(const sx_op_def *op, bool has_facet, unsigned flag)
{
    return has_facet != ((op->flags & flag) != 0);
}

static void test_graph_ops__every_facet_is_there_or_declared_missing(void **state)
{
    (void)state;
    int failed = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        bool no_ref = (op->flags & (SX_OP_NO_REF | SX_OP_HOST)) != 0;
        bool right = op->id == id && sx_op_find(op->name) == op && op->infer != NULL &&
                     declared_by(op, op->grad != NULL, SX_OP_NO_GRAD) &&
                     declared_by(op, op->to_tf != NULL, SX_OP_NO_TF) &&
                     (op->ref != NULL) != no_ref && (op->n_samples > 0 || no_ref);
        if (!right) {
            print_error("%s: a facet is missing without its flag, or there in spite of it\n",
                        op->name);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

/* --- Inference ------------------------------------------------------------------------------- */

static sx_status infer(const sx_op_def *op, const void *attrs, const sx_type *in, int n_in,
                       sx_type out[SX_MAX_OUTPUTS], int *out_n)
{
    sx_infer c = {
        .attrs = attrs, .inputs = in, .n_inputs = n_in, .outputs = out, .n_outputs = op->n_out};
    sx_status status = op->infer(&c);
    *out_n = c.n_outputs;
    return status;
}

/* With the batch symbolic and with it fixed, the types agree. */
static const char *check_inference(const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run run;
    op_sample_begin(op, sample, &run);
    sx_type in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {0};
    void *zeros = sx_alloc(1, op->attrs_bytes + 1);
    assert_non_null(zeros);
    for (int i = 0; i < run.n_in; i++) {
        in[i] = sample->inputs[i].type;
    }
    int n_out;
    sx_status status =
        infer(op, sample->attrs != NULL ? sample->attrs : zeros, in, run.n_in, out, &n_out);
    const char *result = NULL;
    if (status != SX_OK || n_out != run.n_out) {
        snprintf(wrong, sizeof(wrong), "symbolic: %d outputs, fixed: %d; %s", n_out, run.n_out,
                 sx_status_message(status));
        result = wrong;
    }
    for (int i = 0; result == NULL && i < n_out; i++) {
        sx_type fixed = sx_type_with_batch(out[i], op_sample_batch(sample));
        if (!sx_type_equal(&fixed, &run.out[i].type)) {
            result = "the output's type with symbolic batch is not that with a fixed one";
        }
    }
    sx_status_free(status);
    sx_free(zeros);
    op_sample_end(&run);
    return result;
}

static void test_graph_ops__types_agree_with_symbolic_and_fixed_batch(void **state)
{
    (void)state;
    op_samples_check(check_inference);
}

/* --- Graphs of one sample --------------------------------------------------------------------- */

/* inputs "x0".., weights "w0".. of the outputs, loss = sum of all w y, outputs "dx0".. where there
 * is a gradient. Without gradients: outputs "y0".. only. */
static void build_sample(const sx_op_def *op, const sx_op_sample *sample, bool gradients,
                         sx_graph **out_graph)
{
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x[SX_SAMPLE_MAX_INPUTS], floats[SX_SAMPLE_MAX_INPUTS], dx[SX_SAMPLE_MAX_INPUTS];
    int n_floats = 0, float_index[SX_SAMPLE_MAX_INPUTS];
    char name[16];
    for (int i = 0; i < sample->n_inputs; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = sx_input(b, name, sample->inputs[i].type);
        if (sx_dtype_is_float(sample->inputs[i].type.dtype)) {
            float_index[n_floats] = i;
            floats[n_floats++] = x[i];
        }
    }
    sx_value y = sx_build(b, op, sample->attrs, x, sample->n_inputs), loss = SX_NO_VALUE;
    const sx_node *node = sx_builder_maker(b, y);
    int n_out = node == NULL ? 0 : node->n_outputs;
    for (int k = 0; k < n_out; k++) {
        sx_value yk = sx_output_of(y, k);
        sx_type type = sx_type_of_value(b, yk);
        snprintf(name, sizeof(name), gradients ? "w%d" : "y%d", k);
        if (!gradients) {
            sx_output(b, name, yk);
            continue;
        }
        sx_value term = sx_build_op(b, mul, NULL, yk, sx_input(b, name, type));
        sx_value sum = sx_reduce_sum(b, term, .keep_dims = false);
        loss = sx_value_is(loss) ? sx_add(b, loss, sum) : sum;
    }
    if (gradients && !sx_builder_failed(b)) {
        sx_gradients(b, loss, floats, n_floats, dx);
        for (int i = 0; i < n_floats; i++) {
            snprintf(name, sizeof(name), "dx%d", float_index[i]);
            if (sx_value_is(dx[i])) {
                sx_output(b, name, dx[i]);
            }
        }
    }
    assert_ok(sx_builder_finish(b, out_graph));
    sx_builder_destroy(b);
    assert_ok(sx_graph_validate(*out_graph));
}

static const char *check_text(const sx_op_def *op, const sx_op_sample *sample)
{
    sx_graph *graph, *again;
    char *text, *second;
    build_sample(op, sample, false, &graph);
    assert_ok(sx_graph_print(graph, &text));
    sx_status status = sx_graph_parse(text, strlen(text), &again);
    if (status != SX_OK) {
        snprintf(wrong, sizeof(wrong), "its text does not parse: %s", sx_status_message(status));
        sx_status_free(status);
        sx_graph_destroy(graph);
        sx_text_free(text);
        return wrong;
    }
    assert_ok(sx_graph_print(again, &second));
    bool same = strcmp(text, second) == 0;
    sx_graph_destroy(graph);
    sx_graph_destroy(again);
    sx_text_free(text);
    sx_text_free(second);
    return same ? NULL : "printing what was parsed gives another text";
}

static void test_graph_ops__text_round_trip(void **state)
{
    (void)state;
    op_samples_check(check_text);
}

/* --- Gradients -------------------------------------------------------------------------------- */

/* Evaluates a graph of fixed batch in double; values[id] are allocated, args' are filled. */
static void evaluate(const sx_graph *g, sx_ref_tensor *values)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        sx_ref_tensor in[SX_SAMPLE_MAX_INPUTS];
        assert_true(n->n_inputs <= SX_SAMPLE_MAX_INPUTS);
        if (n->op->flags & SX_OP_NO_REF) {
            continue;
        }
        for (int i = 0; i < n->n_inputs; i++) {
            in[i] = values[n->inputs[i].id];
        }
        sx_ref r = {n->attrs, in, &values[n->first_output.id], n->n_inputs, n->n_outputs};
        sx_ref_run(n->op, &r, true);
    }
}

static void fill_weights(const sx_ref_tensor *t, uint32_t key)
{
    op_sample_words words = {.key = {key, 77}};
    int64_t n = sx_type_elems(&t->type);
    for (int64_t i = 0; i < n; i++) {
        t->data[i] = 2 * op_sample_uniform(&words) - 1;
    }
}

/* sum of w y over all outputs, by the reference in double; *magnitude: of |w y|. */
static double weighted_sum(const op_sample_run *run, const sx_ref_tensor *weights,
                           double *magnitude)
{
    double sum = 0;
    op_sample_forward(run, true);
    *magnitude = 0;
    for (int k = 0; k < run->n_out; k++) {
        int64_t n = sx_type_elems(&run->out[k].type);
        for (int64_t i = 0; i < n; i++) {
            sum += weights[k].data[i] * run->out[k].data[i];
            *magnitude += fabs(weights[k].data[i] * run->out[k].data[i]);
        }
    }
    return sum;
}

/* Central differences of one input against `dx` (NULL = zeros). */
static const char *compare_input(const op_sample_run *run, int index, const sx_ref_tensor *weights,
                                 const double *dx)
{
    const double h = 1e-5;
    double *x = run->in[index].data, greatest = 0, worst = 0, magnitude = 0;
    int64_t n = sx_type_elems(&run->in[index].type), worst_at = 0;
    double tolerance = run->sample->tolerance == 0 ? 1e-5 : run->sample->tolerance;
    for (int64_t i = 0; i < n; i++) {
        double kept = x[i];
        x[i] = kept + h;
        double above = weighted_sum(run, weights, &magnitude);
        x[i] = kept - h;
        double below = weighted_sum(run, weights, &magnitude);
        x[i] = kept;
        double numeric = (above - below) / (2 * h), analytic = dx == NULL ? 0 : dx[i];
        double error = fabs(numeric - analytic);
        if (!(error <= worst)) {
            worst = error;
            worst_at = i;
        }
        greatest = fmax(greatest, fabs(numeric));
    }
    if (worst <= tolerance * fmax(greatest, 1e-3)) {
        return NULL;
    }
    snprintf(wrong, sizeof(wrong), "dx%d[%lld] is off by %g, where the greatest is %g", index,
             (long long)worst_at, worst, greatest);
    return wrong;
}

static const char *check_gradient(const sx_op_def *op, const sx_op_sample *sample)
{
    if ((op->flags & SX_OP_NO_GRAD) || sample->no_grad_check) {
        return NULL;
    }
    op_sample_run run;
    op_sample_begin(op, sample, &run);
    for (int k = 0; k < run.n_out; k++) {
        if (!sx_dtype_is_float(run.out[k].type.dtype)) {
            op_sample_end(&run);
            return NULL; /* a cast to integers: nothing flows back */
        }
    }
    sx_graph *symbolic, *g;
    build_sample(op, sample, true, &symbolic);
    assert_ok(sx_pass_fix_batch(symbolic, op_sample_batch(sample), &g));
    sx_ref_tensor *values = sx_alloc((size_t)g->n_values, sizeof(*values)), weights[SX_MAX_OUTPUTS];
    assert_non_null(values);
    for (int i = 1; i < g->n_values; i++) {
        values[i] = op_sample_tensor(g->values[i].type);
    }
    for (int i = 0; i < g->n_args; i++) {
        const sx_ref_tensor *value = &values[g->args[i].value.id];
        int at = atoi(g->args[i].name + 1);
        if (g->args[i].name[0] == 'w') {
            fill_weights(value, (uint32_t)at);
            weights[at] = *value;
        } else {
            memcpy(value->data, run.in[at].data,
                   (size_t)sx_type_elems(&value->type) * sizeof(double));
        }
    }
    evaluate(g, values);
    const char *result = NULL;
    for (int i = 0; result == NULL && i < run.n_in; i++) {
        char name[16];
        snprintf(name, sizeof(name), "dx%d", i);
        int at = sx_graph_find_output(g, name);
        if (sx_dtype_is_float(run.in[i].type.dtype)) {
            result = compare_input(&run, i, weights,
                                   at < 0 ? NULL : values[g->results[at].value.id].data);
        }
    }
    for (int i = 1; i < g->n_values; i++) {
        sx_free(values[i].data);
    }
    sx_free(values);
    sx_graph_destroy(symbolic);
    sx_graph_destroy(g);
    op_sample_end(&run);
    return result;
}

static void test_graph_ops__gradients_equal_central_differences(void **state)
{
    (void)state;
    op_samples_check(check_gradient);
}

/* --- Anything into infer ------------------------------------------------------------------------
 */

static int64_t random_dim(op_sample_words *w)
{
    static const int64_t dims[] = {0, 1, 1, 2, 3, 3, 5, 7, 1 << 20, (int64_t)1 << 40, INT64_MAX};
    return dims[op_sample_word(w) % (sizeof(dims) / sizeof(dims[0]))];
}

static sx_type random_type(op_sample_words *w, const sx_type *like)
{
    static const sx_dtype dtypes[] = {SX_F32, SX_F32, SX_F64,    SX_BF16, SX_F16, SX_I32,
                                      SX_I64, SX_U8,  SX_STRING, SX_BOOL, SX_U32};
    if (like != NULL && op_sample_word(w) % 2 == 0) {
        sx_type t = *like;
        if (op_sample_word(w) % 2 == 0 && t.rank > 0) {
            t.dims[op_sample_word(w) % (uint32_t)t.rank] = random_dim(w);
        }
        return t;
    }
    sx_type t = {.dtype = dtypes[op_sample_word(w) % (sizeof(dtypes) / sizeof(dtypes[0]))],
                 .rank = (int)(op_sample_word(w) % (SX_MAX_RANK + 1))};
    for (int i = 0; i < t.rank; i++) {
        bool batch = i == 0 && op_sample_word(w) % 2 == 0;
        t.dims[i] = batch ? SX_BATCH : random_dim(w);
    }
    return t;
}

static void random_ints(op_sample_words *w, sx_ints *list)
{
    static const int64_t values[] = {0, 1, 2, 3, 4, 5, 7, -1, -2, 1 << 20, INT64_MAX, INT64_MIN};
    list->n = (int)(op_sample_word(w) % (SX_MAX_RANK + 1));
    for (int i = 0; i < list->n; i++) {
        list->v[i] = values[op_sample_word(w) % (sizeof(values) / sizeof(values[0]))];
    }
}

static void mutate_attrs(op_sample_words *w, const sx_op_def *op, char *attrs)
{
    for (int i = 0; i < op->n_attrs; i++) {
        char *field = attrs + op->attrs[i].offset;
        if (op_sample_word(w) % 4 != 0) {
            continue;
        }
        switch (op->attrs[i].kind) {
        case SX_ATTR_INTS:
            random_ints(w, (sx_ints *)(void *)field);
            break;
        case SX_ATTR_INT:
            *(int64_t *)(void *)field = random_dim(w) - 2;
            break;
        case SX_ATTR_FLOAT:
            *(double *)(void *)field =
                op_sample_word(w) % 3 == 0 ? NAN : op_sample_uniform(w) * 4 - 2;
            break;
        case SX_ATTR_BOOL:
            *(bool *)field = op_sample_word(w) % 2;
            break;
        case SX_ATTR_DTYPE:
            *(sx_dtype *)(void *)field = random_type(w, NULL).dtype;
            break;
        default: /* enumerations come from names, tensors from a checked parser */
            break;
        }
    }
}

/* Dynamic dimensions come from arguments only. */
static bool is_sound(const sx_type *t, bool dynamic)
{
    if (t->rank < 0 || t->rank > SX_MAX_RANK || sx_dtype_name(t->dtype)[0] == '?') {
        return false;
    }
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] < (i == 0 ? SX_BATCH : 0) && !(dynamic && t->dims[i] == SX_DYNAMIC)) {
            return false;
        }
    }
    return true;
}

static void infer_random(const sx_op_def *op, op_sample_words *w)
{
    const sx_op_sample *like =
        op->n_samples == 0 ? NULL : &op->samples[op_sample_word(w) % (uint32_t)op->n_samples];
    sx_type in[SX_SAMPLE_MAX_INPUTS] = {0}, out[SX_MAX_OUTPUTS] = {0};
    char *attrs = sx_alloc(1, op->attrs_bytes + 1);
    assert_non_null(attrs);
    if (like != NULL && like->attrs != NULL && op_sample_word(w) % 4 != 0) {
        memcpy(attrs, like->attrs, op->attrs_bytes);
    }
    mutate_attrs(w, op, attrs);
    int n_in = op->n_in == SX_VARIADIC ? (int)(op_sample_word(w) % SX_SAMPLE_MAX_INPUTS) : op->n_in;
    for (int i = 0; i < n_in; i++) {
        bool known = like != NULL && i < like->n_inputs;
        in[i] = random_type(w, known ? &like->inputs[i].type : NULL);
    }
    int n_out = 0;
    sx_status status = infer(op, attrs, in, n_in, out, &n_out);
    if (status == SX_OK) {
        assert_in_range(n_out, 1, SX_MAX_OUTPUTS);
        for (int i = 0; i < n_out; i++) {
            if (!is_sound(&out[i], op->id == SX_OPID_parameter)) {
                char text[SX_TYPE_TEXT];
                fail_msg("%s accepts, and gives %s", op->name,
                         sx_type_format(&out[i], text, sizeof(text)));
            }
        }
    } else {
        assert_int_not_equal(sx_status_code(status), SX_INTERNAL);
        assert_true(strlen(sx_status_message(status)) > 10);
    }
    sx_status_free(status);
    sx_free(attrs);
}

static void test_graph_ops__infer_survives_any_types_and_attributes(void **state)
{
    (void)state;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        op_sample_words words = {.key = {op_sample_hash(op->name, 1), 1}};
        for (int round = 0; round < 3000 && op->id != SX_OPID_constant; round++) {
            infer_random(op, &words);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_ops__every_facet_is_there_or_declared_missing),
    cmocka_unit_test(test_graph_ops__types_agree_with_symbolic_and_fixed_batch),
    cmocka_unit_test(test_graph_ops__text_round_trip),
    cmocka_unit_test(test_graph_ops__gradients_equal_central_differences),
    cmocka_unit_test(test_graph_ops__infer_survives_any_types_and_attributes),
};
SX_TEST_MAIN(tests)
