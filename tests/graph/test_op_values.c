/* What operators do at the edges of their domains: ties, NaN, indices outside, withheld updates,
 * random bits; and training batch norm, whose gradient spans two operators. Expected numbers are
 * worked out by hand. */
#include "harness.h"

#include "graph/builder.h"
#include "graph/op_samples.h"
#include "graph/ops/attrs.h"
#include "graph/ops/linear_algebra.h"

enum { MAX_ELEMS = 256 };

/* An input of any dtype, its elements as doubles. */
typedef struct given {
    sx_type type;
    double *data;
} given;

typedef struct results {
    double data[SX_MAX_OUTPUTS][MAX_ELEMS];
    sx_type types[SX_MAX_OUTPUTS];
    int n;
} results;

/* Infers, runs, rounds. */
static void run(const sx_op_def *op, const void *attrs, const given *in, int n_in, results *out)
{
    sx_host_tensor host_in[SX_SAMPLE_MAX_INPUTS], host_out[SX_MAX_OUTPUTS];
    sx_type types_in[SX_SAMPLE_MAX_INPUTS];
    *out = (results){.n = op->n_out};
    for (int i = 0; i < n_in; i++) {
        int64_t n = sx_type_elems(&in[i].type);
        types_in[i] = in[i].type;
        host_in[i] = op_sample_tensor(in[i].type);
        for (int64_t k = 0; k < n; k++) {
            sx_host_set(&host_in[i], k, in[i].data[k]);
        }
    }
    sx_infer_context c = {.attrs = attrs,
                          .inputs = types_in,
                          .n_inputs = n_in,
                          .outputs = out->types,
                          .n_outputs = op->n_out};
    assert_ok(op->infer(&c));
    out->n = c.n_outputs;
    for (int k = 0; k < out->n; k++) {
        assert_in_range(sx_type_elems(&out->types[k]), 0, MAX_ELEMS);
        host_out[k] = op_sample_tensor(out->types[k]);
    }
    assert_ok(sx_host_run_carried(op, attrs, host_in, n_in, host_out, out->n, NULL, false));
    for (int k = 0; k < out->n; k++) {
        int64_t n = sx_type_elems(&out->types[k]);
        for (int64_t i = 0; i < n; i++) {
            out->data[k][i] = sx_host_get(&host_out[k], i);
        }
        sx_free(host_out[k].data);
    }
    for (int i = 0; i < n_in; i++) {
        sx_free(host_in[i].data);
    }
}

static void expect(const results *got, int output, int n, const double *want)
{
    assert_int_equal(sx_type_elems(&got->types[output]), n);
    for (int i = 0; i < n; i++) {
        double a = got->data[output][i], b = want[i];
        if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 1e-6 * fmax(1, fabs(b)))) {
            fail_msg("element %d is %g, expected %g", i, a, b);
        }
    }
}
#define EXPECT(got, output, ...)                                                     \
    expect((got), (output), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
           (double[]){__VA_ARGS__})

static void test_graph_op_values__labels_outside_give_nan(void **state)
{
    (void)state;
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {3, 2}},
         .data = (double[]){0, 0, 1, 1, 2, 2}},
        {.type = {.dtype = SX_I32, .rank = 1, .dims = {3}}, .data = (double[]){1, 2, -1}},
    };
    results r;
    run(&sx_op_sparse_softmax_cross_entropy, NULL, in, 2, &r);
    EXPECT(&r, 0, log(2), NAN, NAN);
    EXPECT(&r, 1, 0.5, -0.5, NAN, NAN, NAN, NAN);
}

static void test_graph_op_values__nan_and_infinity_pass_or_are_seen(void **state)
{
    (void)state;
    const given x = {.type = {.dtype = SX_F32, .rank = 1, .dims = {4}},
                     .data = (double[]){NAN, -1, INFINITY, 2}};
    const given y = {.type = {.dtype = SX_F32}, .data = (double[]){0}};
    const given pair[] = {x, y};
    results r;
    run(&sx_op_relu, NULL, &x, 1, &r);
    EXPECT(&r, 0, NAN, 0, INFINITY, 2);
    run(&sx_op_maximum, NULL, pair, 2, &r);
    EXPECT(&r, 0, NAN, 0, INFINITY, 2);
    run(&sx_op_minimum, NULL, pair, 2, &r);
    EXPECT(&r, 0, NAN, -1, 0, 0);
    run(&sx_op_clip, &(sx_clip_attrs){.low = 0, .high = 1}, &x, 1, &r);
    EXPECT(&r, 0, NAN, 0, 1, 1);
    run(&sx_op_reduce_max, &(sx_reduce_attrs){.axes = {1, {0}}}, &x, 1, &r);
    EXPECT(&r, 0, NAN);
    run(&sx_op_all_finite, NULL, &x, 1, &r);
    EXPECT(&r, 0, 0);
    run(&sx_op_all_finite, NULL, &y, 1, &r);
    EXPECT(&r, 0, 1);
}

static void test_graph_op_values__the_first_of_equals_wins(void **state)
{
    (void)state;
    const given x = {.type = {.dtype = SX_F32, .rank = 2, .dims = {1, 4}},
                     .data = (double[]){1, 3, 3, 2}};
    results r;
    run(&sx_op_argmax, &(sx_argmax_attrs){.axis = 1, .dtype = SX_I32}, &x, 1, &r);
    EXPECT(&r, 0, 1);
    run(&sx_op_top_k, &(sx_top_k_attrs){.k = 3}, &x, 1, &r);
    EXPECT(&r, 0, 3, 3, 2);
    EXPECT(&r, 1, 1, 2, 3);
    /* unsorted, as a heap has them: of {1 0 4} with 3 it keeps {1 3 4}, with 2 then {2 4 3} */
    const given unsorted = {.type = {.dtype = SX_F32, .rank = 1, .dims = {5}},
                            .data = (double[]){1, 0, 4, 3, 2}};
    run(&sx_op_top_k, &(sx_top_k_attrs){.k = 3, .unsorted = true}, &unsorted, 1, &r);
    EXPECT(&r, 0, 2, 4, 3);
    EXPECT(&r, 1, 4, 2, 3);
    /* pooling: windows {3, 3} and {2, 2}: the first of each gets the gradient */
    const sx_pool2d_attrs pool = {.window = {2, {1, 2}}};
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 4, .dims = {1, 1, 4, 1}},
         .data = (double[]){3, 3, 2, 2}},
        {.type = {.dtype = SX_F32, .rank = 4, .dims = {1, 1, 2, 1}}, .data = (double[]){3, 2}},
        {.type = {.dtype = SX_F32, .rank = 4, .dims = {1, 1, 2, 1}}, .data = (double[]){10, 20}},
    };
    run(&sx_op_max_pool2d_grad, &pool, in, 3, &r);
    EXPECT(&r, 0, 10, 0, 20, 0);
}

static void test_graph_op_values__in_top_k_counts_ties_in_and_nan_out(void **state)
{
    (void)state;
    const sx_top_k_attrs two = {.k = 2};
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {4, 3}},
         .data = (double[]){1, 2, 2, 3, 2, 1, NAN, 1, 0, 1, 2, 3}},
        {.type = {.dtype = SX_I32, .rank = 1, .dims = {4}}, .data = (double[]){0, 1, 1, 3}},
    };
    results r;
    run(&sx_op_in_top_k, &two, in, 2, &r);
    EXPECT(&r, 0, 0, 1, 0, 0);
    const given tied[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {1, 3}}, .data = (double[]){2, 2, 2}},
        {.type = {.dtype = SX_I32, .rank = 1, .dims = {1}}, .data = (double[]){2}},
    };
    run(&sx_op_in_top_k, &(sx_top_k_attrs){.k = 1}, tied, 2, &r);
    EXPECT(&r, 0, 1);
}

static void test_graph_op_values__indices_outside_give_zeros(void **state)
{
    (void)state;
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {2, 2}}, .data = (double[]){1, 2, 3, 4}},
        {.type = {.dtype = SX_I32, .rank = 1, .dims = {3}}, .data = (double[]){1, 2, -1}},
    };
    results r;
    run(&sx_op_gather, &(sx_gather_attrs){.axis = 0}, in, 2, &r);
    EXPECT(&r, 0, 3, 4, 0, 0, 0, 0);
    run(&sx_op_one_hot, &(sx_one_hot_attrs){.depth = 2, .on = 1, .dtype = SX_F32}, &in[1], 1, &r);
    EXPECT(&r, 0, 0, 1, 0, 0, 0, 0);
}

static void test_graph_op_values__convolution_of_a_hand_example(void **state)
{
    (void)state;
    /* 3x3 image 1..9, filter [[1,2],[3,4]]: 1*1+2*2+4*3+5*4 = 37, ... */
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 4, .dims = {1, 3, 3, 1}},
         .data = (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {.type = {.dtype = SX_F32, .rank = 4, .dims = {2, 2, 1, 1}},
         .data = (double[]){1, 2, 3, 4}},
    };
    results r;
    run(&sx_op_conv2d, &(sx_conv2d_attrs){0}, in, 2, &r);
    EXPECT(&r, 0, 37, 47, 67, 77);
    /* same: the odd padding comes after; stride 2 reads rows and columns 0, 2 */
    const sx_conv2d_attrs same = {.padding = SX_SAME, .strides = {2, {2, 2}}};
    run(&sx_op_conv2d, &same, in, 2, &r);
    EXPECT(&r, 0, 37, 3 * 1 + 6 * 3, 7 * 1 + 8 * 2, 9);
}

/* --- Optimizers --------------------------------------------------------------------------------
 */

typedef struct update {
    const sx_op_def *op;
    const void *attrs;
    int slots, n_in;
} update;

static const update updates[] = {
    {&sx_op_apply_sgd, NULL, 0, 4},
    {&sx_op_apply_momentum, &(sx_momentum_attrs){.momentum = 0.9}, 1, 5},
    {&sx_op_apply_rmsprop, &(sx_rmsprop_attrs){.rho = 0.9, .momentum = 0.5, .centered = true}, 3,
     7},
    {&sx_op_apply_adam, &(sx_adam_attrs){.beta1 = 0.9, .beta2 = 0.999}, 2, 7},
};

/* Inputs: variable 1, slots 2, 3, 4, gradient `g`, rate 0.1, [step 0], ok. */
static void fill_update(const update *u, double g, double ok, double *data, given *in)
{
    int n = 0;
    for (; n < u->slots + 2; n++) {
        data[n] = n == u->slots + 1 ? g : n + 1;
        in[n] = (given){{.dtype = SX_F32, .rank = 1, .dims = {1}}, &data[n]};
    }
    data[n] = 0.1;
    in[n] = (given){{.dtype = SX_F32}, &data[n]};
    for (n++; n < u->n_in - 1; n++) {
        data[n] = 0;
        in[n] = (given){{.dtype = SX_I64}, &data[n]};
    }
    data[n] = ok;
    in[n] = (given){{.dtype = SX_BOOL}, &data[n]};
}

static void test_graph_op_values__a_withheld_update_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(updates) / sizeof(updates[0]); k++) {
        double data[SX_SAMPLE_MAX_INPUTS];
        given in[SX_SAMPLE_MAX_INPUTS];
        results r;
        fill_update(&updates[k], NAN, 0, data, in);
        run(updates[k].op, updates[k].attrs, in, updates[k].n_in, &r);
        assert_int_equal(r.n, updates[k].slots + 1);
        for (int i = 0; i < r.n; i++) {
            assert_true(r.data[i][0] == i + 1);
        }
        fill_update(&updates[k], NAN, 1, data, in);
        run(updates[k].op, updates[k].attrs, in, updates[k].n_in, &r);
        assert_true(isnan(r.data[0][0]));
    }
}

static void test_graph_op_values__updates_by_hand(void **state)
{
    (void)state;
    double data[SX_SAMPLE_MAX_INPUTS];
    given in[SX_SAMPLE_MAX_INPUTS];
    results r;
    fill_update(&updates[0], 5, 1, data, in);
    run(updates[0].op, updates[0].attrs, in, 4, &r);
    EXPECT(&r, 0, 1 - 0.1 * 5);
    fill_update(&updates[1], 5, 1, data, in);
    run(updates[1].op, updates[1].attrs, in, 5, &r);
    EXPECT(&r, 1, 0.9 * 2 + 5);
    EXPECT(&r, 0, 1 - 0.1 * (0.9 * 2 + 5));
    run(updates[1].op, &(sx_momentum_attrs){.momentum = 0.9, .nesterov = true}, in, 5, &r);
    EXPECT(&r, 0, 1 - 0.1 * (5 + 0.9 * (0.9 * 2 + 5)));
    fill_update(&updates[2], 5, 1, data, in);
    run(updates[2].op, updates[2].attrs, in, 7, &r); /* slots rms 2, mean 3, mom 4 */
    double rms = 0.9 * 2 + 0.1 * 25, mean = 0.9 * 3 + 0.1 * 5;
    EXPECT(&r, 1, rms);
    EXPECT(&r, 2, mean);
    EXPECT(&r, 3, rms < mean * mean ? NAN : 0.5 * 4 + 0.1 * 5 / sqrt(rms - mean * mean));
    fill_update(&updates[3], 5, 1, data, in);
    run(updates[3].op, updates[3].attrs, in, 7, &r); /* slots m 2, v 3; first step */
    double m = 2 + 3 * 0.1, v = 3 + 22 * 0.001, alpha = 0.1 * sqrt(0.001) / 0.1;
    EXPECT(&r, 1, m);
    EXPECT(&r, 2, v);
    EXPECT(&r, 0, 1 - alpha * m / sqrt(v));
}

/* --- Dropout -----------------------------------------------------------------------------------
 */

static void drop(int64_t examples, double rate, double step, double seed, results *out)
{
    double ones[MAX_ELEMS];
    for (int i = 0; i < MAX_ELEMS; i++) {
        ones[i] = 1;
    }
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {examples, 25}}, .data = ones},
        {.type = {.dtype = SX_U32, .rank = 1, .dims = {2}}, .data = (double[]){seed, 0xffffffff}},
        {.type = {.dtype = SX_I64}, .data = (double[]){step}},
    };
    const sx_dropout_attrs attrs = {.rate = rate, .key_hi = 0x12345678, .key_lo = 0x9abcdef0};
    run(&sx_op_dropout, &attrs, in, 3, out);
}

static int differing(const results *a, const results *b, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += a->data[0][i] != b->data[0][i];
    }
    return count;
}

static void test_graph_op_values__dropout_depends_on_seed_step_and_place_only(void **state)
{
    (void)state;
    results ten, four, other;
    drop(10, 0.4, 7, 3, &ten);
    drop(4, 0.4, 7, 3, &four);
    assert_int_equal(differing(&ten, &four, 100), 0);
    drop(10, 0.4, 8, 3, &other);
    assert_in_range(differing(&ten, &other, 250), 60, 190);
    drop(10, 0.4, 7, 4, &other);
    assert_in_range(differing(&ten, &other, 250), 60, 190);
    int kept = 0;
    for (int i = 0; i < 250; i++) {
        kept += ten.data[0][i] != 0;
        assert_true(ten.data[0][i] == 0 || fabs(ten.data[0][i] - 1 / 0.6) < 1e-6);
    }
    assert_in_range(kept, 120, 180); /* 150 expected, sd 8 */
    drop(10, 0, 7, 3, &other);
    for (int i = 0; i < 250; i++) {
        assert_true(other.data[0][i] == 1);
    }
}

/* --- Composed -----------------------------------------------------------------------------------
 */

/* loss = sum of w batch_norm_train(x, scale, offset, moments(x)) */
static sx_graph *batch_norm_graph(int64_t n, int64_t c)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2, c));
    sx_value scale = sx_input(b, "scale", sx_type_of(SX_F32, c));
    sx_value offset = sx_input(b, "offset", sx_type_of(SX_F32, c));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, SX_BATCH, 2, c));
    sx_value mean = sx_moments(b, x, .axes = SX_AXES(0, 1));
    sx_value y = sx_nn_batch_norm_train(b, x, scale, offset, mean, sx_output_at(mean, 1), 1e-3);
    sx_value loss = sx_reduce_sum(b, sx_mul(b, w, y), .keep_dims = false);
    sx_value dx[3];
    sx_gradients(b, loss, (const sx_value[]){x, scale, offset}, 3, dx);
    sx_output(b, "loss", loss);
    for (int i = 0; i < 3; i++) {
        sx_output(b, (const char *[]){"dx", "dscale", "doffset"}[i], dx[i]);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_graph *fixed;
    assert_ok(sx_pass_fix_batch(g, n, &fixed));
    sx_graph_destroy(g);
    return fixed;
}

static int nodes_of(const sx_graph *g, const sx_op_def *op)
{
    int count = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        count += g->nodes[i].op == op;
    }
    return count;
}

static void test_graph_op_values__batch_norm_differentiates_through_moments(void **state)
{
    (void)state;
    op_sample_values v = {.graph = batch_norm_graph(3, 2)};
    v.values = sx_alloc((size_t)v.graph->n_values, sizeof(*v.values));
    assert_non_null(v.values);
    for (int i = 1; i < v.graph->n_values; i++) {
        v.values[i] = op_sample_tensor(v.graph->values[i].type);
    }
    for (int i = 0; i < v.graph->n_args; i++) {
        op_sample_fill_weights(&v.values[v.graph->args[i].value.id], (uint32_t)i);
    }
    const double *loss = v.values[v.graph->results[0].value.id].f;
    for (int k = 0; k < 3; k++) {
        const sx_host_tensor *input = &v.values[v.graph->args[k].value.id];
        const double *dx = v.values[v.graph->results[k + 1].value.id].f;
        for (int64_t i = 0; i < sx_type_elems(&input->type); i++) {
            double kept = input->f[i];
            input->f[i] = kept + 1e-5;
            op_sample_evaluate(&v);
            double above = *loss;
            input->f[i] = kept - 1e-5;
            op_sample_evaluate(&v);
            double below = *loss;
            input->f[i] = kept;
            op_sample_evaluate(&v);
            assert_true(fabs((above - below) / 2e-5 - dx[i]) < 1e-6 * fmax(1, fabs(dx[i])));
        }
    }
    assert_int_equal(nodes_of(v.graph, &sx_op_batch_norm_train_grad_sums), 1);
    assert_int_equal(nodes_of(v.graph, &sx_op_batch_norm_train_grad_input), 1);
    op_sample_values_end(&v);
}

/* As TensorFlow: all elements that equal the maximum get the same share. */
static void test_graph_op_values__reduce_max_divides_its_gradient_among_ties(void **state)
{
    (void)state;
    static const double x[] = {1, 3, 3, 2, /**/ 5, 5, 5, 5, /**/ -1, -4, -2, -3};
    static const double rows[] = {0, 3, 3, 0, /**/ 1, 1, 1, 1, /**/ 2, 0, 0, 0};
    static const double all[] = {0, 0, 0, 0, /**/ 3, 3, 3, 3, /**/ 0, 0, 0, 0};
    for (int over_all = 0; over_all < 2; over_all++) {
        sx_builder *b;
        sx_graph *g;
        sx_value dx;
        assert_ok(sx_builder_create(&b));
        sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 3, 4));
        sx_value y = over_all ? sx_reduce_max(b, in, .keep_dims = false)
                              : sx_reduce_max(b, in, .axes = SX_AXES(1));
        sx_value w = sx_input(b, "w", sx_type_of_value(b, y));
        sx_gradients(b, sx_reduce_sum(b, sx_mul(b, y, w), .keep_dims = false), &in, 1, &dx);
        sx_output(b, "dx", dx);
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        op_sample_values v = {g, sx_alloc((size_t)g->n_values, sizeof(sx_host_tensor))};
        assert_non_null(v.values);
        for (int i = 1; i < g->n_values; i++) {
            v.values[i] = op_sample_tensor(g->values[i].type);
        }
        memcpy(v.values[g->args[0].value.id].data, x, sizeof(x));
        memcpy(v.values[g->args[1].value.id].data, over_all ? (double[]){12} : (double[]){6, 4, 2},
               over_all ? sizeof(double) : 3 * sizeof(double));
        op_sample_evaluate(&v);
        assert_memory_equal(v.values[g->results[0].value.id].data, over_all ? all : rows,
                            sizeof(x));
        op_sample_values_end(&v);
    }
}

static void test_graph_op_values__a_mean_counts_the_batch_only_when_it_must(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_BF16, SX_BATCH, 3));
    sx_value rows = sx_reduce_mean(b, x, .axes = SX_AXES(-1));
    sx_value all = sx_reduce_mean(b, x, .keep_dims = true);
    sx_type rows_type = sx_type_of_value(b, rows), all_type = sx_type_of_value(b, all);
    assert_true(sx_type_equal(&rows_type, &(sx_type){SX_BF16, 1, {SX_BATCH}}));
    assert_true(sx_type_equal(&all_type, &(sx_type){SX_BF16, 2, {1, 1}}));
    sx_output(b, "rows", rows);
    sx_output(b, "all", all);
    sx_graph *g;
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_int_equal(nodes_of(g, &sx_op_size), 1);
    sx_graph_destroy(g);
}

/* Elementwise operators on each kind of number, where the kinds differ: at the ends of their
 * ranges integers wrap, and unsigned ones have no sign. y is one number, or as many as x. */
static const struct {
    const sx_op_def *op;
    sx_dtype dtype;
    double x[3];
    int n_y;
    double y[3], want[3];
} kinds[] = {
    {&sx_op_add, SX_I32, {0x7fffffff, -5, 0}, 1, {1}, {-0x1p31, -4, 1}},
    {&sx_op_add, SX_U32, {0xffffffff, 0x80000000, 5}, 1, {2}, {1, 0x80000002, 7}},
    {&sx_op_add, SX_U8, {255, 128, 0}, 3, {1, 128, 7}, {0, 0, 7}},
    {&sx_op_add, SX_F16, {60000, 2048, -1}, 1, {10000}, {INFINITY, 12048, 10000}},
    {&sx_op_add, SX_BF16, {256, 0.5, -1}, 1, {1}, {256, 1.5, 0}},
    {&sx_op_sub, SX_I64, {-0x1p53, 4, 0}, 1, {5}, {-0x1p53 - 5, -1, -5}},
    {&sx_op_sub, SX_U32, {0, 0xffffffff, 3}, 3, {1, 1, 3}, {0xffffffff, 0xfffffffe, 0}},
    {&sx_op_sub, SX_U8, {0, 200, 3}, 1, {3}, {253, 197, 0}},
    {&sx_op_mul, SX_I32, {0x10000, -3, 2}, 3, {0x10000, 7, -4}, {0, -21, -8}},
    {&sx_op_mul, SX_U32, {0x10001, 3, 2}, 3, {0x10000, 7, 0xffffffff}, {0x10000, 21, 0xfffffffe}},
    {&sx_op_maximum, SX_I32, {-1, -7, 3}, 1, {-4}, {-1, -4, 3}},
    {&sx_op_maximum, SX_U32, {0xffffffff, 1, 3}, 1, {2}, {0xffffffff, 2, 3}},
    {&sx_op_minimum, SX_I32, {-1, -7, 3}, 1, {-4}, {-4, -7, -4}},
    {&sx_op_minimum, SX_U32, {0xffffffff, 1, 3}, 3, {2, 2, 0x80000000}, {2, 1, 3}},
    {&sx_op_less, SX_I32, {-1, 1, 0}, 1, {0}, {1, 0, 0}},
    {&sx_op_less, SX_U32, {0xffffffff, 0, 7}, 1, {7}, {0, 1, 0}},
    {&sx_op_greater, SX_I64, {-1, 1, 0}, 1, {0}, {0, 1, 0}},
    {&sx_op_greater, SX_U32, {0xffffffff, 0, 7}, 1, {7}, {1, 0, 0}},
    {&sx_op_equal, SX_I32, {-1, 1, 0}, 3, {-1, 2, 0}, {1, 0, 1}},
    {&sx_op_equal, SX_U8, {255, 1, 0}, 1, {255}, {1, 0, 0}},
    {&sx_op_logical_and, SX_BOOL, {1, 0, 1}, 3, {1, 1, 0}, {1, 0, 0}},
    {&sx_op_neg, SX_I32, {-0x1p31, 5, 0}, 0, {0}, {-0x1p31, -5, 0}},
    {&sx_op_neg, SX_U32, {1, 0xffffffff, 0}, 0, {0}, {0xffffffff, 1, 0}},
    {&sx_op_abs, SX_I32, {-5, 5, -0x1p31}, 0, {0}, {5, 5, -0x1p31}},
    {&sx_op_abs, SX_U32, {0xffffffff, 5, 0}, 0, {0}, {0xffffffff, 5, 0}},
    {&sx_op_sign, SX_I32, {-5, 5, 0}, 0, {0}, {-1, 1, 0}},
    {&sx_op_sign, SX_U32, {0xffffffff, 5, 0}, 0, {0}, {1, 1, 0}},
    {&sx_op_square, SX_U8, {16, 15, 255}, 0, {0}, {0, 225, 1}},
    {&sx_op_add, SX_U64, {0x1p63, 0x1.fffffp63, 5}, 1, {0x1p63}, {0, 0x1.ffffep62, 0x1p63}},
    {&sx_op_sub, SX_U64, {0x1p40, 0x1p63, 0}, 1, {0x1p63}, {0x1p63 + 0x1p40, 0, 0x1p63}},
    {&sx_op_mul, SX_U64, {0x1p63, 3, 2}, 3, {2, 7, 0x1p62}, {0, 21, 0x1p63}},
    {&sx_op_maximum, SX_U64, {0x1p63, 1, 3}, 1, {2}, {0x1p63, 2, 3}},
    {&sx_op_minimum, SX_U64, {0x1p63, 1, 3}, 1, {2}, {2, 1, 2}},
    {&sx_op_less, SX_U64, {0x1p63, 0, 7}, 1, {7}, {0, 1, 0}},
    {&sx_op_greater, SX_U64, {0x1p63, 0, 7}, 1, {7}, {1, 0, 0}},
    {&sx_op_equal, SX_U64, {0x1p63, 0, 7}, 1, {7}, {0, 0, 1}},
    {&sx_op_neg, SX_U64, {0x1p63, 0, 0x1p62}, 0, {0}, {0x1p63, 0, 0x1.8p63}},
    {&sx_op_abs, SX_U64, {0x1p63, 0, 7}, 0, {0}, {0x1p63, 0, 7}},
    {&sx_op_sign, SX_U64, {0x1p63, 0, 7}, 0, {0}, {1, 0, 1}},
    {&sx_op_square, SX_U64, {0x1p31, 0x1p32, 7}, 0, {0}, {0x1p62, 0, 49}},
};

static void test_graph_op_values__each_kind_of_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        double x[3], y[3];
        memcpy(x, kinds[i].x, sizeof(x));
        memcpy(y, kinds[i].y, sizeof(y));
        const given in[] = {
            {.type = sx_type_of(kinds[i].dtype, 3), .data = x},
            {.type = sx_type_of(kinds[i].dtype, kinds[i].n_y), .data = y},
        };
        results r;
        run(kinds[i].op, NULL, in, kinds[i].n_y > 0 ? 2 : 1, &r);
        for (int k = 0; k < 3; k++) {
            if (r.data[0][k] != kinds[i].want[k]) {
                fail_msg("%s of %s: element %d is %.17g, expected %.17g", kinds[i].op->name,
                         sx_dtype_name(kinds[i].dtype), k, r.data[0][k], kinds[i].want[k]);
            }
        }
    }
}

/* The quadrants and the axes, with the signs of zero; the limits of softsign. */
static void test_graph_op_values__atan2_and_softsign(void **state)
{
    (void)state;
    const double pi = 3.14159265358979323846;
    double x[] = {1, 1, -1, -1, 0, -0.0, 0, 2, -2, NAN}, y[] = {1, -1, -1, 1, -1, -1, 1, 0, 0, 1};
    const double angle[] = {pi / 4, 3 * pi / 4, -3 * pi / 4, -pi / 4, pi, -pi, 0, pi / 2, -pi / 2};
    const sx_type type = sx_type_of(SX_F64, 10);
    results r;
    run(&sx_op_atan2, NULL, (const given[]){{type, x}, {type, y}}, 2, &r);
    for (size_t i = 0; i < SX_COUNT(angle); i++) {
        assert_true(fabs(r.data[0][i] - angle[i]) <= 1e-15);
    }
    assert_true(isnan(r.data[0][9]));
    double far[] = {0, 1, -1, 3, -3, 1e300, -INFINITY, NAN, 0.25, -0.0};
    const double near[] = {0, 0.5, -0.5, 0.75, -0.75, 1};
    run(&sx_op_softsign, NULL, (const given[]){{type, far}}, 1, &r);
    for (size_t i = 0; i < SX_COUNT(near); i++) {
        assert_true(r.data[0][i] == near[i]);
    }
    assert_true(isnan(r.data[0][6]) && isnan(r.data[0][7]) && r.data[0][8] == 0.2); /* inf / inf */
}

/* Quotients and remainders of integers round down or towards 0; the least divided by -1 is itself;
 * by 0 is an error. */
static void test_graph_op_values__integer_division(void **state)
{
    (void)state;
    double x[] = {7, -7, 7, -7, -128, 6}, y[] = {2, 2, -2, -2, -1, 3}, zero[] = {1, 1, 0, 1, 1, 1};
    const sx_type type = sx_type_of(SX_I8, 6), wide = sx_type_of(SX_I64, 1);
    const given in[] = {{type, x}, {type, y}};
    results r;
    run(&sx_op_floor_div, NULL, in, 2, &r);
    EXPECT(&r, 0, 3, -4, -4, 3, -128, 2);
    run(&sx_op_floor_mod, NULL, in, 2, &r);
    EXPECT(&r, 0, 1, 1, -1, -1, 0, 0);
    run(&sx_op_truncate_div, NULL, in, 2, &r);
    EXPECT(&r, 0, 3, -3, -3, 3, -128, 2);
    run(&sx_op_truncate_mod, NULL, in, 2, &r);
    EXPECT(&r, 0, 1, -1, 1, -1, 0, 0);
    double least = -0x1p63, minus = -1;
    run(&sx_op_floor_div, NULL, (const given[]){{wide, &least}, {wide, &minus}}, 2, &r);
    EXPECT(&r, 0, -0x1p63);
    const sx_op_def *const ops[] = {&sx_op_floor_div, &sx_op_floor_mod, &sx_op_truncate_div,
                                    &sx_op_truncate_mod};
    for (size_t i = 0; i < SX_COUNT(ops); i++) {
        sx_host_tensor a[2] = {op_sample_tensor(type), op_sample_tensor(type)};
        sx_host_tensor z = op_sample_tensor(type);
        for (int k = 0; k < 6; k++) {
            a[0].i[k] = (int64_t)x[k];
            a[1].i[k] = (int64_t)zero[k];
        }
        assert_error(sx_host_run_carried(ops[i], NULL, a, 2, &z, 1, NULL, false),
                     SX_INVALID_ARGUMENT, "integer division by zero");
        sx_free(a[0].data);
        sx_free(a[1].data);
        sx_free(z.data);
    }
}

/* Of no elements the neutral one; NaN goes through the least. */
static void test_graph_op_values__reductions_of_nothing(void **state)
{
    (void)state;
    const sx_reduce_attrs all = {.axes = {1, {0}}};
    double none[1] = {0}, some[] = {3, NAN, 1};
    results r;
    run(&sx_op_reduce_prod, &all, (const given[]){{sx_type_of(SX_F32, 0), none}}, 1, &r);
    EXPECT(&r, 0, 1);
    run(&sx_op_reduce_all, &all, (const given[]){{sx_type_of(SX_BOOL, 0), none}}, 1, &r);
    EXPECT(&r, 0, 1);
    run(&sx_op_reduce_any, &all, (const given[]){{sx_type_of(SX_BOOL, 0), none}}, 1, &r);
    EXPECT(&r, 0, 0);
    run(&sx_op_reduce_min, &all, (const given[]){{sx_type_of(SX_F32, 3), some}}, 1, &r);
    EXPECT(&r, 0, NAN);
}

/* Numbers from a request: what does not fit is refused before a row is written. */
static void test_graph_op_values__segments_outside_are_refused(void **state)
{
    static const struct {
        int64_t n_segments, segments[3], count;
        bool fits;
    } cases[] = {
        {3, {0, 1, 1}, 2, true},  {3, {0, 1, 1}, 4, true},   {3, {0, 1, 2}, 2, false},
        {3, {0, 2, 1}, 3, false}, {3, {-1, 0, 1}, 3, false}, {3, {0, 1, INT64_MAX}, 3, false},
        {1, {0}, 3, false},
    };
    const float table[4] = {1, 2, 3, 4};
    const int64_t indices[3] = {3, 0, 1};
    (void)state;
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        const sx_tensor in[] = {
            {sx_type_of(SX_F32, 4), (void *)(uintptr_t)table},
            {sx_type_of(SX_I64, 3), (void *)(uintptr_t)indices},
            {sx_type_of(SX_I64, cases[i].n_segments), (void *)(uintptr_t)cases[i].segments},
            {sx_scalar_type(SX_I64), (void *)(uintptr_t)&cases[i].count}};
        const int32_t how = 0; /* sum */
        sx_arena arena;
        sx_type type;
        sx_arena_init(&arena, 0);
        sx_status status = sx_host_types(&sx_op_sparse_segment, &how, in, SX_COUNT(in), &type, 1,
                                         &(sx_host_context){.arena = &arena});
        if (cases[i].fits) {
            assert_ok(status);
            assert_int_equal(type.dims[0], cases[i].count);
        } else {
            assert_error(status, SX_INVALID_ARGUMENT, "segments");
        }
        sx_arena_deinit(&arena);
    }
}

/* The rank of what data decide is checked before its dimensions are written. */
static void test_graph_op_values__results_of_too_many_dimensions_are_refused(void **state)
{
    static const int64_t ones[SX_MAX_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const float number = 7;
    const int32_t zero = 0, one = 1;
    const uint64_t key[2] = {5, 17};
    const sx_bytes text = {"a", 1};
    const sx_tensor data = {sx_type_make(SX_F32, SX_MAX_RANK, ones), (void *)(uintptr_t)&number},
                    texts = {sx_type_make(SX_STRING, SX_MAX_RANK, ones), (void *)(uintptr_t)&text},
                    at = {sx_scalar_type(SX_I32), (void *)(uintptr_t)&zero},
                    count = {sx_scalar_type(SX_I32), (void *)(uintptr_t)&one},
                    shape = {sx_type_of(SX_I64, SX_MAX_RANK + 1), (void *)(uintptr_t)ones},
                    key_of = {sx_type_of(SX_U64, 1), (void *)(uintptr_t)key},
                    counter = {sx_type_of(SX_U64, 2), (void *)(uintptr_t)key};
    const sx_random_values_attrs uniform = {SX_VALUES_UNIFORM, SX_F32};
    const sx_dynamic_partition_attrs parts = {1};
    const char *const separator = NULL;
    const struct {
        const sx_op_def *op;
        const void *attrs;
        sx_tensor in[4];
        int n_in;
        const char *what;
    } rows[] = {
        {&sx_op_dynamic_partition, &parts, {data, at}, 2, "partitions is int32[]"},
        {&sx_op_dynamic_stitch, NULL, {at, data}, 2, "indices is int32[]"},
        {&sx_op_unsorted_segment_join, &separator, {texts, at, count}, 3, "segments is int32[]"},
        {&sx_op_random_values, &uniform, {shape, key_of, counter, count}, 4, "shape is int64[9]"},
    };
    (void)state;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_type out[2] = {{0}, {.rank = 77}};
        sx_arena arena;
        sx_arena_init(&arena, 0);
        assert_error(sx_host_types(rows[i].op, rows[i].attrs, rows[i].in, rows[i].n_in, out, 1,
                                   &(sx_host_context){.arena = &arena}),
                     SX_INVALID_ARGUMENT, rows[i].what);
        assert_int_equal(out[1].rank, 77);
        sx_arena_deinit(&arena);
    }
}

/* A double put into an element of each kind: what does not fit takes the nearest end. */
static void test_graph_op_values__elements_are_set_by_kind(void **state)
{
    (void)state;
    static const struct {
        sx_dtype dtype;
        double set, get;
    } rows[] = {
        {SX_F32, -1.5, -1.5},      {SX_F64, 1e300, 1e300},
        {SX_I32, -7, -7},          {SX_I64, 1e300, 0x1p63},
        {SX_I64, -1e300, -0x1p63}, {SX_I64, 2.9, 2},
        {SX_I64, -2.9, -2},        {SX_U64, 7, 7},
        {SX_U64, -7, 0},           {SX_U64, 0x1p63, 0x1p63},
        {SX_U64, 1e300, 0x1p64},   {SX_BOOL, 2, 1},
        {SX_BOOL, -0.5, 1},        {SX_BOOL, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_host_tensor t = op_sample_tensor(sx_type_of(rows[i].dtype, 3));
        sx_host_set(&t, 0, 1);
        sx_host_set(&t, 2, 0);
        sx_host_set(&t, 1, rows[i].set);
        if (sx_host_get(&t, 1) != rows[i].get) {
            fail_msg("%g of %s is %g, expected %g", rows[i].set, sx_dtype_name(rows[i].dtype),
                     sx_host_get(&t, 1), rows[i].get);
        }
        assert_true(sx_host_get(&t, 0) == 1 && sx_host_get(&t, 2) == 0);
        sx_free(t.data);
    }
}

/* What an assertion that fails says: its message and the first three elements of each value. */
static void test_graph_op_values__assertions_show_their_values(void **state)
{
    (void)state;
    const double small[] = {1, 0, 3, 4};
    const sx_bytes strings[] = {{"hi", 2}, {"", 0}};
    sx_host_tensor in[7], out;
    static const sx_dtype dtypes[] = {SX_BOOL, SX_U64, SX_I32, SX_F32, SX_BOOL};
    for (int i = 0; i < 5; i++) {
        in[i] = op_sample_tensor(i == 0 ? sx_scalar_type(SX_BOOL) : sx_type_of(dtypes[i], 4));
        for (int64_t k = 0; k < sx_type_elems(&in[i].type); k++) {
            sx_host_set(&in[i], k, i == 0 ? 0 : i == 3 ? small[k] / 2 : small[k]);
        }
    }
    sx_host_set(&in[2], 0, -7);
    sx_host_set(&in[1], 2, 0x1p63);
    in[5] = (sx_host_tensor){.type = sx_type_of(SX_STRING, 2), .data = (void *)(uintptr_t)strings};
    in[6] = op_sample_tensor(sx_type_of(SX_I32, 0));
    out = op_sample_tensor(sx_scalar_type(SX_BOOL));
    static const struct {
        const char *message;
        int first, n; /* values, after the condition */
        const char *says;
    } rows[] = {
        {"why", 0, 0, "assertion failed: why"},
        {"u", 1, 1, "assertion failed: u [1 0 9223372036854775808 ...]"},
        {"i", 2, 1, "assertion failed: i [-7 0 3 ...]"},
        {"f", 3, 1, "assertion failed: f [0.5 0 1.5 ...]"},
        {"b", 4, 1, "assertion failed: b [1 0 1 ...]"},
        {"s", 5, 1, "assertion failed: s [hi ]"},
        {"", 2, 1, "assertion failed: [-7 0 3 ...]"},
        {"all", 2, 5, "all [-7 0 3 ...] [0.5 0 1.5 ...] [1 0 1 ...] [hi ] []"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_assert_attrs attrs = {.message = rows[i].message};
        sx_host_tensor with[8] = {in[0]};
        memcpy(&with[1], &in[rows[i].first], (size_t)rows[i].n * sizeof(in[0]));
        sx_status status =
            sx_host_run_carried(&sx_op_assert, &attrs, with, 1 + rows[i].n, &out, 1, NULL, false);
        assert_int_equal(sx_status_code(status), SX_INVALID_ARGUMENT);
        const char *message = sx_status_message(status);
        const size_t size = strlen(message), tail = strlen(rows[i].says);
        if (size < tail || strcmp(message + size - tail, rows[i].says) != 0) {
            fail_msg("\"%s\", expected \"%s\"", message, rows[i].says);
        }
        sx_status_free(status);
    }
    sx_host_set(&in[0], 0, 1);
    assert_ok(sx_host_run_carried(&sx_op_assert, &(sx_assert_attrs){.message = "no"}, in, 6, &out,
                                  1, NULL, false));
    assert_int_equal(out.b[0], 1);
    for (int i = 0; i < 7; i++) {
        if (i != 5) {
            sx_free(in[i].data);
        }
    }
    sx_free(out.data);
}

/* An error in a region ends the operator: of an if, in the branch that runs alone. */
static void test_graph_op_values__errors_in_regions_are_returned(void **state)
{
    (void)state;
    static const char text[] =
        "sextant-graph 2\ninput %1 bool[] \"c\"\ninput %2 bool[] \"x\"\n"
        "%3 = if(%1, %2) bool[] \"if\"\n"
        "then\ninput %1 bool[] \"x\"\n%2 = assert(%1) {message=\"in then\"} bool[] \"a\"\n"
        "output \"y\" %2\nend\n"
        "else\ninput %1 bool[] \"x\"\n%2 = logical_not(%1) bool[] \"n\"\n"
        "output \"y\" %2\nend\n"
        "output \"y\" %3\n";
    sx_graph *g = NULL;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    const sx_node *n = &g->nodes[g->n_nodes - 1];
    for (int bits = 0; bits < 4; bits++) {
        sx_host_tensor in[2], out = op_sample_tensor(sx_scalar_type(SX_BOOL));
        for (int i = 0; i < 2; i++) {
            in[i] = op_sample_tensor(sx_scalar_type(SX_BOOL));
            in[i].b[0] = bits >> i & 1;
        }
        sx_arena arena;
        sx_arena_init(&arena, 0);
        sx_status status = sx_host_run_carried(n->op, n->attrs, in, 2, &out, 1, &arena, false);
        if (bits == 1) { /* then, with false */
            assert_error(status, SX_INVALID_ARGUMENT, "assert \"a\": assertion failed: in then");
        } else {
            assert_ok(status);
            assert_int_equal(out.b[0], bits == 3 || bits == 0);
        }
        sx_arena_deinit(&arena);
        sx_free(in[0].data);
        sx_free(in[1].data);
        sx_free(out.data);
    }
    sx_graph_destroy(g);
}

/* Bytes: every operand and output once, but for operators that read a part of an operand. */
static void test_graph_op_values__costs(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value t = sx_input(b, "t", sx_type_of(SX_F32, 1000, 4));
    sx_value i = sx_input(b, "i", sx_type_of(SX_I32, 3));
    const sx_slice_attrs part = {.begin = {2, {0, 0}}, .size = {2, {2, 4}}};
    const struct {
        sx_value y;
        double bytes, flops;
    } rows[] = {
        {sx_build_op(b, square, NULL, t), 2 * 16000, 4000},
        {sx_build_op(b, gather, NULL, t, i), 3 * 4 + 2 * 3 * 16, 4000},
        {sx_build_op(b, slice, &part, t), 2 * 32, 4000},
        {sx_build_op(b, matmul, (&(sx_matmul_attrs){.transpose_a = true}), t, t),
         2 * 16000 + 4 * 16, 2 * 1000 * 4 * 4},
    };
    for (size_t k = 0; k < SX_COUNT(rows); k++) {
        const sx_cost cost = sx_node_cost(b->graph, sx_builder_maker(b, rows[k].y));
        assert_true(cost.bytes == rows[k].bytes);
        assert_true(cost.flops == rows[k].flops);
    }
    sx_builder_destroy(b);
}

/* A node whose bool attributes, in order, are these. */
static sx_value with_flags(sx_builder *b, const sx_op_def *op, bool first, bool second, sx_value x)
{
    _Alignas(8) unsigned char attrs[64] = {0};
    memcpy(attrs + op->attrs[0].offset, &first, sizeof(first));
    if (op->n_attrs > 1) {
        memcpy(attrs + op->attrs[1].offset, &second, sizeof(second));
    }
    return sx_build(b, op, attrs, &x, 1);
}

/* u diag(s)^2 vᵀ, and the products of the vectors that full matrices add: the signs do not matter.
 */
static sx_value of_svd(sx_builder *b, sx_value x, int64_t m, int64_t n, bool full, sx_value *extra)
{
    const int64_t p = SX_MIN(m, n);
    const sx_value s = with_flags(b, &sx_op_svd, true, full, x);
    sx_value u = sx_output_of(s, 1), v = sx_output_of(s, 2);
    if (full && m != n) {
        const sx_value last = m > n ? sx_columns(b, u, n, 1) : sx_columns(b, v, m, 1);
        *extra = sx_product(b, last, false, last, true);
        u = sx_columns(b, u, 0, p);
        v = sx_columns(b, v, 0, p);
    }
    u = sx_mul(b, u, sx_as_row(b, sx_square(b, s)));
    return sx_product(b, u, false, v, true);
}

static void test_graph_op_values__decompositions_have_the_gradients_of_their_products(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n;
        bool eig, full;
    } forms[] = {{3, 3, true, false},  {3, 3, false, false}, {4, 2, false, false},
                 {2, 4, false, false}, {3, 4, false, true},  {4, 3, false, true}};
    for (size_t k = 0; k < SX_COUNT(forms); k++) {
        const int64_t m = forms[k].m, n = forms[k].n;
        sx_builder *b;
        sx_graph *g;
        sx_value dx, y, extra = SX_NO_VALUE;
        assert_ok(sx_builder_create(&b));
        const sx_value x = sx_input(b, "x", sx_type_of(SX_F64, 2, m, n));
        if (forms[k].eig) {
            const sx_value a = sx_add(b, x, sx_transposed(b, x));
            const sx_value e = with_flags(b, &sx_op_self_adjoint_eig, true, false, a);
            y = sx_mul(b, sx_output_of(e, 1), sx_as_row(b, sx_exp(b, e)));
            y = sx_product(b, y, false, sx_output_of(e, 1), true);
        } else {
            y = of_svd(b, x, m, n, forms[k].full, &extra);
        }
        const sx_value w = sx_input(b, "w", sx_type_of_value(b, y));
        sx_value loss = sx_reduce_sum(b, sx_mul(b, y, w), .keep_dims = false);
        if (sx_value_is(extra)) {
            const sx_value w2 = sx_input(b, "w2", sx_type_of_value(b, extra));
            loss = sx_add(b, loss, sx_reduce_sum(b, sx_mul(b, extra, w2), .keep_dims = false));
        }
        sx_gradients(b, loss, &x, 1, &dx);
        sx_output(b, "loss", loss);
        sx_output(b, "dx", dx);
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        op_sample_values v = {g, sx_alloc((size_t)g->n_values, sizeof(sx_host_tensor))};
        assert_non_null(v.values);
        for (int i = 1; i < g->n_values; i++) {
            v.values[i] = op_sample_tensor(g->values[i].type);
        }
        for (int i = 0; i < g->n_args; i++) {
            op_sample_fill_weights(&v.values[g->args[i].value.id], (uint32_t)(7 * k) + (uint32_t)i);
        }
        const sx_host_tensor *input = &v.values[g->args[0].value.id];
        const double *at = v.values[g->results[0].value.id].f;
        const double *slope = v.values[g->results[1].value.id].f;
        for (int64_t i = 0; i < sx_type_elems(&input->type); i++) {
            const double kept = input->f[i];
            input->f[i] = kept + 1e-5;
            op_sample_evaluate(&v);
            const double above = *at;
            input->f[i] = kept - 1e-5;
            op_sample_evaluate(&v);
            const double below = *at;
            input->f[i] = kept;
            op_sample_evaluate(&v);
            if (!(fabs((above - below) / 2e-5 - slope[i]) < 1e-5 * fmax(1, fabs(slope[i])))) {
                fail_msg("form %zu, dx[%d] is %g, expected %g", k, (int)i, slope[i],
                         (above - below) / 2e-5);
            }
        }
        op_sample_values_end(&v);
    }
}

static void test_graph_op_values__lengths_outside_count_as_the_nearest(void **state)
{
    (void)state;
    const given in[] = {
        {.type = {.dtype = SX_F32, .rank = 2, .dims = {3, 3}},
         .data = (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {.type = {.dtype = SX_I32, .rank = 1, .dims = {3}}, .data = (double[]){-5, 7, 2}},
    };
    results r;
    run(&sx_op_reverse_sequence, &(sx_reverse_sequence_attrs){.seq_axis = 1}, in, 2, &r);
    EXPECT(&r, 0, 1, 2, 3, 6, 5, 4, 8, 7, 9);
}

static void test_graph_op_values__quantized_edges(void **state)
{
    (void)state;
    const given in[] = {{.type = {.dtype = SX_F32, .rank = 1, .dims = {5}},
                         .data = (double[]){NAN, -INFINITY, INFINITY, 0, 0.4}},
                        {.type = {.dtype = SX_F32}, .data = (double[]){-1}},
                        {.type = {.dtype = SX_F32}, .data = (double[]){2}}};
    const sx_quantize_dequantize_attrs two_bits = {
        .num_bits = 2, .axis = -1, .signed_input = true, .range_given = true};
    results r;
    run(&sx_op_fake_quant, &(sx_fake_quant_attrs){.num_bits = 2}, in, 3, &r); /* steps of 1 */
    EXPECT(&r, 0, NAN, -1, 2, 0, 0);
    run(&sx_op_quantize_dequantize, &two_bits, in, 3, &r); /* integers -2 to 1, in steps of 2 */
    EXPECT(&r, 0, NAN, -4, 2, 0, 0);
}

/* As many unique candidates as can be drawn are no more than classes whose weight counts beside the
 * others'; of the largest range each is a class. */
static void test_graph_op_values__candidates_of_odd_weights_and_ranges(void **state)
{
    (void)state;
    double truth = 1, key = 7, counter[2] = {0}, weights[3] = {3e38, 1e-45, 2e38};
    sx_candidate_sampler_attrs attrs = {
        .distribution = SX_CANDIDATES_UNIGRAM, .range_max = 3, .unique = true};
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (attrs.num_sampled = 2; attrs.num_sampled <= 3; attrs.num_sampled++) {
        const given in[] = {{sx_type_of(SX_I64, 1, 1), &truth},
                            {sx_type_of(SX_F32, 3), weights},
                            {sx_type_of(SX_U64, 1), &key},
                            {sx_type_of(SX_U64, 2), counter}};
        const sx_type types[] = {sx_type_of(SX_I64, attrs.num_sampled), sx_type_of(SX_F32, 1, 1),
                                 sx_type_of(SX_F32, attrs.num_sampled)};
        sx_host_tensor host_in[4], out[3];
        for (int i = 0; i < 4; i++) {
            host_in[i] = op_sample_tensor(in[i].type);
            for (int64_t k = 0; k < sx_type_elems(&in[i].type); k++) {
                sx_host_set(&host_in[i], k, in[i].data[k]);
            }
        }
        for (int i = 0; i < 3; i++) {
            out[i] = op_sample_tensor(types[i]);
        }
        sx_status status = sx_host_run_carried(&sx_op_candidate_sampler, &attrs, host_in, 4, out, 3,
                                               &arena, false);
        if (attrs.num_sampled == 2) {
            assert_ok(status);
            assert_int_equal(out[0].i[0] + out[0].i[1], 2);
        } else {
            assert_error(status, SX_INVALID_ARGUMENT, "2 classes have a weight");
        }
        for (int i = 0; i < 4; i++) {
            sx_free(host_in[i].data);
        }
        for (int i = 0; i < 3; i++) {
            sx_free(out[i].data);
        }
    }
    sx_arena_deinit(&arena);
    attrs = (sx_candidate_sampler_attrs){
        .distribution = SX_CANDIDATES_LOG_UNIFORM, .num_sampled = 64, .range_max = INT64_MAX};
    const given in[] = {{sx_type_of(SX_I64, 1, 1), &truth},
                        {sx_type_of(SX_F32, 0), weights},
                        {sx_type_of(SX_U64, 1), &key},
                        {sx_type_of(SX_U64, 2), counter}};
    results r;
    run(&sx_op_candidate_sampler, &attrs, in, 4, &r);
    for (int i = 0; i < 64; i++) {
        assert_true(r.data[0][i] >= 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_op_values__assertions_show_their_values),
    cmocka_unit_test(test_graph_op_values__errors_in_regions_are_returned),
    cmocka_unit_test(test_graph_op_values__each_kind_of_number),
    cmocka_unit_test(test_graph_op_values__elements_are_set_by_kind),
    cmocka_unit_test(test_graph_op_values__labels_outside_give_nan),
    cmocka_unit_test(test_graph_op_values__nan_and_infinity_pass_or_are_seen),
    cmocka_unit_test(test_graph_op_values__the_first_of_equals_wins),
    cmocka_unit_test(test_graph_op_values__in_top_k_counts_ties_in_and_nan_out),
    cmocka_unit_test(test_graph_op_values__indices_outside_give_zeros),
    cmocka_unit_test(test_graph_op_values__convolution_of_a_hand_example),
    cmocka_unit_test(test_graph_op_values__a_withheld_update_changes_nothing),
    cmocka_unit_test(test_graph_op_values__updates_by_hand),
    cmocka_unit_test(test_graph_op_values__dropout_depends_on_seed_step_and_place_only),
    cmocka_unit_test(test_graph_op_values__batch_norm_differentiates_through_moments),
    cmocka_unit_test(test_graph_op_values__reduce_max_divides_its_gradient_among_ties),
    cmocka_unit_test(test_graph_op_values__a_mean_counts_the_batch_only_when_it_must),
    cmocka_unit_test(test_graph_op_values__costs),
    cmocka_unit_test(test_graph_op_values__atan2_and_softsign),
    cmocka_unit_test(test_graph_op_values__integer_division),
    cmocka_unit_test(test_graph_op_values__reductions_of_nothing),
    cmocka_unit_test(test_graph_op_values__segments_outside_are_refused),
    cmocka_unit_test(test_graph_op_values__results_of_too_many_dimensions_are_refused),
    cmocka_unit_test(test_graph_op_values__decompositions_have_the_gradients_of_their_products),
    cmocka_unit_test(test_graph_op_values__lengths_outside_count_as_the_nearest),
    cmocka_unit_test(test_graph_op_values__quantized_edges),
    cmocka_unit_test(test_graph_op_values__candidates_of_odd_weights_and_ranges),
};
SX_TEST_MAIN(tests)
