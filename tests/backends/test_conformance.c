/* Every backend against the reference: each sample of each operator, whole and in shards, blocking
 * and asynchronous, and its gradients. A failing sample is named. Whole programs: test_training.c.
 */
#include "harness.h"

#include "../graph/op_samples.h"
#include "setting.h"

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/clock.h"

static char wrong[512];

static sx_status sample_graph(const op_sample_run *run, sx_graph **out)
{
    sx_builder *b;
    sx_value inputs[SX_SAMPLE_MAX_INPUTS];
    char name[16];
    SX_TRY(sx_builder_create(&b));
    for (int i = 0; i < run->n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        inputs[i] = sx_input(b, name, run->sample->inputs[i].type);
    }
    sx_value first =
        sx_build(b, run->op, run->sample->attrs != NULL ? run->sample->attrs : run->attrs, inputs,
                 run->n_in);
    for (int i = 0; i < run->n_out; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, sx_output_of(first, i));
    }
    sx_status status = sx_builder_finish(b, out);
    sx_builder_destroy(b);
    return status;
}

static void *bytes_of(const sx_host_tensor *t)
{
    void *bytes = sx_alloc((size_t)sx_type_bytes(&t->type) + 1, 1);
    assert_non_null(bytes);
    sx_host_store(t, bytes);
    return bytes;
}

/* The sum of |terms| behind each element of output k: of a sum of products that with the inputs'
 * absolute values; of another operator Σ |x ∂y/∂x| over its inputs, by differences in double. */
static void add_terms(const op_sample_run *run, int k, double *terms)
{
    op_sample_run a, b;
    const int64_t n = sx_type_elems(&run->out[k].type);
    op_sample_begin(run->op, run->sample, &a);
    if ((run->op->flags & SX_OP_SUM) != 0) {
        for (int i = 0; i < a.n_in; i++) {
            for (int64_t e = 0; e < sx_type_elems(&a.in[i].type); e++) {
                sx_host_set(&a.in[i], e, fabs(sx_host_get(&a.in[i], e)));
            }
        }
        op_sample_forward(&a, true);
        for (int64_t e = 0; e < n; e++) {
            terms[e] += fabs(sx_host_get(&a.out[k], e));
        }
        op_sample_end(&a);
        return;
    }
    op_sample_begin(run->op, run->sample, &b);
    op_sample_forward(&a, true);
    for (int i = 0; i < b.n_in; i++) {
        for (int64_t at = 0;
             sx_dtype_is_float(b.in[i].type.dtype) && at < sx_type_elems(&b.in[i].type); at++) {
            static const double step = 1e-6; /* relative */
            const double x = sx_host_get(&b.in[i], at);
            sx_host_set(&b.in[i], at, x * (1 + step));
            op_sample_forward(&b, true);
            sx_host_set(&b.in[i], at, x);
            for (int64_t e = 0; e < n; e++) {
                const double d = sx_host_get(&b.out[k], e) - sx_host_get(&a.out[k], e);
                terms[e] += isfinite(d) ? fabs(d) / step : 0;
            }
        }
    }
    op_sample_end(&a);
    op_sample_end(&b);
}

/* The bound on |a - b| of each element: tolerance times the greater of its own value and the sum of
 * its own |terms|, but not more than the greatest element, or sum, gives. In bfloat16, where a
 * device may round constants and intermediate values, four times that. */
static double *bounds_of(const op_sample_run *run, const sx_host_tensor *expected, int k)
{
    const double tolerance = run->sample->tolerance > 0 ? run->sample->tolerance : 1e-5;
    const double roundings = run->sample->tolerance > 0 ? 4 : 1;
    const int64_t n = sx_type_elems(&expected->type);
    double *bounds = sx_alloc((size_t)n + 1, sizeof(*bounds)), greatest = 0;
    assert_non_null(bounds);
    if (!sx_dtype_is_float(expected->type.dtype)) {
        return bounds;
    }
    add_terms(run, k, bounds);
    for (int64_t e = 0; e < n; e++) {
        const double value = fabs(sx_host_get(expected, e));
        const bool is_sum = (run->op->flags & SX_OP_SUM) != 0;
        greatest = fmax(greatest, fmax(value, is_sum ? bounds[e] : 0));
        bounds[e] = fmax(value, bounds[e]);
    }
    for (int64_t e = 0; e < n; e++) {
        bounds[e] = tolerance * fmin(roundings * bounds[e], greatest);
    }
    return bounds;
}

static const char *compare(const op_sample_run *run, int k, sx_device_buffer *got)
{
    const sx_host_tensor *expected = &run->out[k];
    sx_host_tensor t = op_sample_tensor(expected->type);
    void *bytes = bytes_of(&t);
    const char *result = NULL;
    assert_ok(sx_device_buffer_read(got, bytes));
    sx_host_load(&t, bytes);
    double *bounds = bounds_of(run, expected, k);
    for (int64_t e = 0; e < sx_type_elems(&t.type) && result == NULL; e++) {
        double a = sx_host_get(&t, e), b = sx_host_get(expected, e);
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= bounds[e];
        if (!same) {
            snprintf(wrong, sizeof(wrong),
                     "output %d element %lld is %.9g, expected %.9g within %.2g", k, (long long)e,
                     a, b, bounds[e]);
            result = wrong;
        }
    }
    sx_free(bytes);
    sx_free(bounds);
    sx_free(t.data);
    return result;
}

static void count(sx_run *run, void *user)
{
    (void)run;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* The same execution with on_done and a deadline, which a thread of the backend ends: the same
 * bits.
 */
static void check_asynchronous(sx_executable *e, const op_sample_run *run,
                               sx_device_buffer *const *args, sx_device_buffer *const *expected)
{
    sx_device_buffer *outputs[SX_MAX_OUTPUTS];
    atomic_int done = 0;
    sx_run *r;
    assert_ok(sx_run_create(e, &r));
    for (int i = 0; i < run->n_out; i++) {
        assert_ok(sx_device_buffer_create(expected[i]->device, &run->out[i].type, &outputs[i]));
    }
    assert_ok(sx_run_submit(r, args, outputs));
    assert_ok(sx_run_on_done(r, count, &done));
    assert_ok(sx_run_await(r, sx_now_ns() + 600000000000));
    for (int i = 0; i < run->n_out; i++) {
        const size_t bytes = (size_t)sx_type_bytes(&run->out[i].type);
        char *a = sx_alloc(2 * bytes + 1, 1);
        assert_non_null(a);
        assert_ok(sx_device_buffer_read(expected[i], a));
        assert_ok(sx_device_buffer_read(outputs[i], a + bytes));
        if (memcmp(a, a + bytes, bytes) != 0) {
            fail_msg("%s/%s: output %d of an asynchronous execution has other bits", run->op->name,
                     run->sample->name, i);
        }
        sx_free(a);
        sx_device_buffer_release(outputs[i]);
    }
    sx_run_destroy(r);
    while (atomic_load(&done) == 0) { /* it may be called after await has returned */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void run_sample(sx_platform *platform, sx_executable *e, const op_sample_run *run,
                       sx_device_buffer **outputs)
{
    sx_device_buffer *args[SX_SAMPLE_MAX_INPUTS];
    for (int i = 0; i < run->n_in; i++) {
        void *bytes = bytes_of(&run->in[i]);
        assert_ok(sx_device_buffer_create(platform->devices[0], &run->in[i].type, &args[i]));
        assert_ok(sx_device_buffer_write(args[i], bytes, false));
        sx_free(bytes);
    }
    for (int i = 0; i < run->n_out; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &run->out[i].type, &outputs[i]));
    }
    assert_ok(sx_execute(e, args, outputs));
    check_asynchronous(e, run, args, outputs);
    for (int i = 0; i < run->n_in; i++) {
        sx_device_buffer_release(args[i]);
    }
}

static const char *check_on(sx_platform *platform, int shards, const sx_op_def *op,
                            const sx_op_sample *sample)
{
    op_sample_run run;
    sx_graph *graph = NULL;
    sx_executable *e = NULL;
    sx_device_buffer *outputs[SX_MAX_OUTPUTS];
    const char *result = NULL;
    op_sample_begin(op, sample, &run);
    op_sample_forward(&run, false);
    assert_ok(sample_graph(&run, &graph));
    sx_compile_options o = {.batch = op_sample_batch(sample), .shards = shards};
    sx_status status = sx_compile(platform, graph, &o, &e);
    if (status != SX_OK) {
        snprintf(wrong, sizeof(wrong), "%s", sx_status_message(status));
        sx_status_free(status);
        result = wrong;
    } else {
        run_sample(platform, e, &run, outputs);
        for (int i = 0; i < run.n_out; i++) {
            result = result == NULL ? compare(&run, i, outputs[i]) : result;
            sx_device_buffer_release(outputs[i]);
        }
    }
    sx_executable_release(e);
    sx_graph_destroy(graph);
    op_sample_end(&run);
    return result;
}

/* How far each element of each result moves for the relative change `step` of every input, up or
 * down at random, divided by the step: the greatest of several draws, an estimate of the sum of the
 * |terms| behind the element. terms[n_results] are allocated. */
static void gradient_terms(const op_sample_values *v, double **terms)
{
    enum { DRAWS = 8 };
    static const double step = 1e-6;
    const sx_graph *g = v->graph;
    double *kept[2 * SX_SAMPLE_MAX_INPUTS] = {NULL}, *base[2 * SX_SAMPLE_MAX_INPUTS] = {NULL};
    op_sample_words words = {.key = {77, 1}};
    for (int k = 0; k < g->n_args + g->n_results; k++) {
        const bool is_arg = k < g->n_args;
        const sx_value at = is_arg ? g->args[k].value : g->results[k - g->n_args].value;
        const sx_host_tensor *t = &v->values[at.id];
        const int64_t n = sx_type_elems(&t->type);
        double *copy = sx_alloc((size_t)n + 1, sizeof(double));
        assert_non_null(copy);
        for (int64_t e = 0; e < n; e++) {
            copy[e] = sx_host_get(t, e);
        }
        *(is_arg ? &kept[k] : &base[k - g->n_args]) = copy;
        if (!is_arg) {
            terms[k - g->n_args] = sx_alloc((size_t)n + 1, sizeof(double));
            assert_non_null(terms[k - g->n_args]);
        }
    }
    for (int draw = 0; draw <= DRAWS; draw++) { /* the last restores the values */
        for (int k = 0; k < g->n_args; k++) {
            const sx_host_tensor *t = &v->values[g->args[k].value.id];
            for (int64_t e = 0; sx_dtype_is_float(t->type.dtype) && e < sx_type_elems(&t->type);
                 e++) {
                const double sign = op_sample_word(&words) % 2 == 0 ? step : -step;
                sx_host_set(t, e, kept[k][e] * (1 + (draw < DRAWS ? sign : 0)));
            }
        }
        op_sample_evaluate(v);
        for (int k = 0; k < g->n_results; k++) {
            const sx_host_tensor *t = &v->values[g->results[k].value.id];
            for (int64_t e = 0; e < sx_type_elems(&t->type); e++) {
                const double moved = fabs(sx_host_get(t, e) - base[k][e]) / step;
                terms[k][e] = isfinite(moved) ? fmax(terms[k][e], moved) : terms[k][e];
            }
        }
    }
    for (int k = 0; k < 2 * SX_SAMPLE_MAX_INPUTS; k++) {
        sx_free(kept[k]);
        sx_free(base[k]);
    }
}

/* The gradients of a weighted sum of the sample's outputs, as a program of the backend, against the
 * same graph by the host kernels in double: each element within 1e-4 of the greater of its value
 * and of its own terms, but of no more than the greatest value; in bfloat16, where each node on the
 * way rounds what it keeps, within four roundings of the greatest. */
static const char *compare_gradient(const sx_host_tensor *expected, const double *terms,
                                    sx_device_buffer *got, const char *name, double tolerance)
{
    enum { MARGIN = 4 }; /* of the draws below the sum of |terms| */
    const bool narrow = tolerance > 1e-4;
    sx_host_tensor t = op_sample_tensor(expected->type);
    void *bytes = bytes_of(&t);
    double greatest = 0;
    const char *result = NULL;
    assert_ok(sx_device_buffer_read(got, bytes));
    sx_host_load(&t, bytes);
    for (int64_t e = 0; e < sx_type_elems(&t.type); e++) {
        greatest = fmax(greatest, fabs(sx_host_get(expected, e)));
    }
    for (int64_t e = 0; e < sx_type_elems(&t.type) && result == NULL; e++) {
        double a = sx_host_get(&t, e), b = sx_host_get(expected, e);
        const double own = narrow ? greatest : fmin(fmax(fabs(b), MARGIN * terms[e]), greatest);
        if (!(fabs(a - b) <= tolerance * own + 1e-30 || (isnan(a) && isnan(b)))) {
            snprintf(wrong, sizeof(wrong), "%s element %lld is %.9g, expected %.9g", name,
                     (long long)e, a, b);
            result = wrong;
        }
    }
    sx_free(bytes);
    sx_free(t.data);
    return result;
}

static const char *run_gradients(sx_platform *platform, const op_sample_values *v, sx_executable *e,
                                 double tolerance)
{
    enum { MAX = 2 * SX_SAMPLE_MAX_INPUTS };
    sx_device_buffer *args[MAX] = {NULL}, *outputs[MAX] = {NULL};
    double *terms[MAX] = {NULL};
    const sx_graph *g = v->graph;
    const char *result = NULL;
    assert_true(g->n_args <= MAX && g->n_results <= MAX);
    for (int i = 0; i < g->n_args; i++) {
        const sx_host_tensor *value = &v->values[g->args[i].value.id];
        void *bytes = bytes_of(value);
        assert_ok(sx_device_buffer_create(platform->devices[0], &value->type, &args[i]));
        assert_ok(sx_device_buffer_write(args[i], bytes, false));
        sx_free(bytes);
    }
    for (int i = 0; i < g->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    assert_ok(sx_execute(e, args, outputs));
    gradient_terms(v, terms);
    for (int i = 0; i < g->n_results && result == NULL; i++) {
        result = compare_gradient(&v->values[g->results[i].value.id], terms[i], outputs[i],
                                  g->results[i].name, tolerance);
    }
    for (int i = 0; i < MAX; i++) {
        sx_device_buffer_release(args[i]);
        sx_device_buffer_release(outputs[i]);
        sx_free(terms[i]);
    }
    return result;
}

static const char *check_gradients_on(sx_platform *platform, int shards, const sx_op_def *op,
                                      const sx_op_sample *sample)
{
    op_sample_run run;
    op_sample_values v;
    sx_graph *symbolic;
    sx_executable *e = NULL;
    const char *result = NULL;
    op_sample_begin(op, sample, &run);
    if (op_sample_is_differentiable(&run)) {
        op_sample_backward(&run, &v);
        op_sample_graph(op, sample, OP_SAMPLE_GRADIENT, &symbolic);
        sx_compile_options o = {.batch = op_sample_batch(sample), .shards = shards};
        sx_status status = sx_compile(platform, symbolic, &o, &e);
        if (status != SX_OK) {
            snprintf(wrong, sizeof(wrong), "%s", sx_status_message(status));
            sx_status_free(status);
            result = wrong;
        } else {
            double rounding = sample->tolerance;
            result = run_gradients(platform, &v, e, fmax(1e-4, 4 * rounding));
        }
        sx_executable_release(e);
        sx_graph_destroy(symbolic);
        op_sample_values_end(&v);
    }
    op_sample_end(&run);
    return result;
}

typedef const char *(*sample_check)(sx_platform *platform, int shards, const sx_op_def *op,
                                    const sx_op_sample *sample);

static int check_sample(sx_platform *platform, const setting *s, sample_check check,
                        const sx_op_def *op, const sx_op_sample *sample)
{
    const char *why = check(platform, s->shards, op, sample);
    if (why != NULL) {
        print_error("%s, %d threads, %d shards: %s/%s: %s\n", s->backend, s->threads, s->shards,
                    op->name, sample->name, why);
    }
    return why != NULL;
}

/* Every sample, and in bfloat16 where the backend can: of pjrt, where compiling takes long, the
 * first of each operator. */
static void check_samples(const setting *s, sample_check check, bool replicas_divide)
{
    sx_platform *platform;
    sx_platform_options options = options_of(s);
    int failed = 0, narrow_ones = 0;
    assert_ok(sx_platform_open(s->backend, &options, &platform));
    /* replicas change nothing about it */
    bool can_bf16 = (platform->backend->capabilities & SX_CAN_BF16) != 0 && !replicas_divide;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples && op->host != NULL && (op->flags & SX_OP_HOST) == 0;
             k++) {
            sx_op_sample sample = op->samples[k], narrow;
            char name[OP_SAMPLE_NAME];
            sample.batch = replicas_divide ? 3 * s->threads : sample.batch;
            failed += check_sample(platform, s, check, op, &sample);
            if (can_bf16 && (k == 0 || is_built_in(platform->backend)) &&
                op_sample_narrow(op, &sample, name, &narrow)) {
                failed += check_sample(platform, s, check, op, &narrow);
                narrow_ones++;
            }
        }
    }
    int least = is_built_in(platform->backend) ? 150 : 50;
    sx_platform_close(platform);
    assert_int_equal(failed, 0);
    assert_true(!can_bf16 || narrow_ones > least);
}

static void test_backends_conformance__operators_whole(void **state)
{
    (void)state;
    for (int i = 0; is_built_in(sx_backends[i]); i++) {
        check_samples(&(setting){sx_backends[i]->name, 2, 1, SX_F32}, check_on, false);
    }
}

static void test_backends_conformance__operators_in_shards(void **state)
{
    (void)state;
    for (int i = 0; is_built_in(sx_backends[i]); i++) {
        for (int shards = 2; shards <= 3 && (sx_backends[i]->capabilities & SX_CAN_SHARD);
             shards++) {
            check_samples(&(setting){sx_backends[i]->name, 2, shards, SX_F32}, check_on, false);
        }
    }
}

static void test_backends_conformance__operators_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_samples(&(setting){"pjrt", 1, 1, SX_F32}, check_on, false);
}

static void test_backends_conformance__operators_on_pjrt_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_samples(&(setting){"pjrt", 2, 1, SX_F32}, check_on, true);
}

static void test_backends_conformance__gradients_built_in(void **state)
{
    (void)state;
    for (int i = 0; is_built_in(sx_backends[i]); i++) {
        check_samples(&(setting){sx_backends[i]->name, 1, 1, SX_F32}, check_gradients_on, false);
    }
}

static void test_backends_conformance__gradients_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_samples(&(setting){"pjrt", 1, 1, SX_F32}, check_gradients_on, false);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_conformance__operators_whole),
    cmocka_unit_test(test_backends_conformance__operators_in_shards),
    cmocka_unit_test(test_backends_conformance__operators_on_pjrt),
    cmocka_unit_test(test_backends_conformance__operators_on_pjrt_replicas),
    cmocka_unit_test(test_backends_conformance__gradients_built_in),
    cmocka_unit_test(test_backends_conformance__gradients_on_pjrt),
};
SX_TEST_MAIN(tests)
