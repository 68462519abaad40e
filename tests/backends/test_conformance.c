/* Every backend against the reference: each sample of each operator, whole and in shards, and whole
 * training programs of the zoo. A failing sample is named. */
#include "harness.h"

#include "../graph/op_samples.h"
#include "pjrt_plugin.h"

#include <sextant/ops.h>

#include "backends/backend.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"

static char wrong[512];

/* --- Operators -----------------------------------------------------------------------------------
 */

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
    for (int i = 0; i < run->n_in; i++) {
        sx_device_buffer_release(args[i]);
    }
}

typedef struct setting {
    const char *backend;
    int threads, shards; /* on pjrt: replicas, steps of one execution */
    sx_dtype precision;
} setting;

static sx_platform_options options_of(const setting *s)
{
    bool pjrt = strcmp(s->backend, "pjrt") == 0;
    return (sx_platform_options){.cpu.threads = pjrt ? 0 : s->threads,
                                 .pjrt.replicas = pjrt ? s->threads : 0,
                                 .pjrt.plugin_path = pjrt ? pjrt_plugin() : NULL};
}

/* The backends that need nothing but this build; pjrt's tests are their own, and skip aloud. */
static bool is_built_in(const sx_backend *backend)
{
    return backend != NULL && strcmp(backend->name, "pjrt") != 0;
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
        for (int k = 0; k < op->n_samples && op->host != NULL; k++) {
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

/* --- Programs ------------------------------------------------------------------------------------
 */

enum { BATCH = 6, STEPS = 4 };

typedef struct trained {
    float **weights; /* [variables], as floats or raw bytes */
    int64_t *bytes;
    int n;
} trained;

static void fill_inputs(sx_program *p, int step, void **data)
{
    for (int i = 0; i < sx_program_input_count(p); i++) {
        sx_type t = sx_type_with_batch(*sx_program_input_type(p, i), BATCH);
        int64_t n = sx_type_elems(&t);
        data[i] = sx_alloc((size_t)sx_type_bytes(&t), 1);
        assert_non_null(data[i]);
        for (int64_t e = 0; e < n; e++) {
            uint32_t word =
                sx_threefry2x32((sx_u32x2){(uint32_t)step, (uint32_t)i}, (sx_u32x2){(uint32_t)e, 0})
                    .a;
            if (t.dtype == SX_F32) {
                ((float *)data[i])[e] = sx_uniform_f32(word);
            } else {
                ((int32_t *)data[i])[e] = (int32_t)(word % 10);
            }
        }
    }
}

static void run_steps(sx_program *program)
{
    for (int step = 0; step < STEPS; step++) {
        void *inputs[8];
        fill_inputs(program, step, inputs);
        assert_ok(sx_program_run(program, BATCH, (const void *const *)inputs));
        for (int i = 0; i < sx_program_input_count(program); i++) {
            sx_free(inputs[i]);
        }
    }
}

/* Superbatches of all inputs: [STEPS, BATCH, ...]. */
static void fill_superbatches(sx_program *program, void **data)
{
    int n = sx_program_input_count(program);
    for (int step = 0; step < STEPS; step++) {
        void *one[8];
        fill_inputs(program, step, one);
        for (int i = 0; i < n; i++) {
            sx_type t = sx_type_with_batch(*sx_program_input_type(program, i), BATCH);
            size_t bytes = (size_t)sx_type_bytes(&t);
            data[i] = step == 0 ? sx_alloc(STEPS, bytes) : data[i];
            assert_non_null(data[i]);
            memcpy((char *)data[i] + (size_t)step * bytes, one[i], bytes);
            sx_free(one[i]);
        }
    }
}

/* What argument i of the loop starts with: a variable of the session, an input, the seed, the
 * count. */
static const void *loop_argument(sx_session *session, const sx_graph *g, int i, void *const *inputs,
                                 void *scratch)
{
    static const int64_t steps = STEPS;
    static const uint32_t seed[2] = {7, 0};
    if (i == g->n_args) {
        return &steps;
    }
    const sx_arg *arg = &g->args[i];
    if (arg->kind == SX_ARG_VARIABLE) {
        assert_ok(sx_session_read_variable(session, sx_session_find_variable(session, arg->name),
                                           scratch));
        return scratch;
    }
    if (!sx_type_has_batch(sx_graph_type(g, arg->value))) {
        return seed;
    }
    int place = 0;
    for (int k = 0; k < i; k++) {
        bool fed = g->args[k].kind == SX_ARG_INPUT;
        place += fed && sx_type_has_batch(sx_graph_type(g, g->args[k].value));
    }
    return inputs[place];
}

/* All steps in one execution; the variables go back to the session. */
static void run_loop(sx_session *session, sx_program *program, const sx_graph *g, const setting *s)
{
    enum { MAX = 256, SCRATCH = 64 << 20 };
    static sx_device_buffer *args[MAX], *outputs[MAX];
    sx_platform_options options = options_of(s);
    sx_platform *platform;
    sx_executable *e;
    void *inputs[8], *scratch = sx_alloc(SCRATCH, 1);
    assert_true(scratch != NULL && g->n_args + 1 < MAX && g->n_results + 1 < MAX);
    fill_superbatches(program, inputs);
    assert_ok(sx_platform_open("pjrt", &options, &platform));
    sx_compile_options how = {.batch = BATCH, .steps = STEPS, .ok_output = SX_OK_OUTPUT};
    assert_ok(sx_compile(platform, g, &how, &e));
    for (int i = 0; i < e->n_args; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(
            sx_device_buffer_write(args[i], loop_argument(session, g, i, inputs, scratch), false));
    }
    for (int i = 0; i < e->n_results; i++) {
        outputs[i] = NULL;
        if (e->result_args[i] < 0) {
            assert_ok(
                sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
        }
    }
    assert_ok(sx_execute(e, args, outputs));
    int64_t ran;
    assert_ok(sx_device_buffer_read(outputs[g->n_results], &ran));
    assert_int_equal(ran, STEPS);
    for (int i = 0; i < e->n_args; i++) {
        if (i < g->n_args && g->args[i].kind == SX_ARG_VARIABLE) {
            int v = sx_session_find_variable(session, g->args[i].name);
            assert_ok(sx_device_buffer_read(args[i], scratch));
            assert_ok(sx_session_write_variable(session, v, scratch));
        }
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < e->n_results; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    for (int i = 0; i < sx_program_input_count(program); i++) {
        sx_free(inputs[i]);
    }
    sx_free(scratch);
    sx_executable_release(e);
    sx_platform_close(platform);
}

/* Trains a zoo model for some steps; the variables afterwards. */
static trained train(const char *model, const setting *s)
{
    sx_session *session;
    sx_program *program;
    sx_graph *graph;
    sx_params *params;
    const sx_model_def *def = sx_zoo_find(model);
    assert_non_null(def);
    assert_ok(sx_params_create(&params));
    sx_program_request request = {.def = def, .params = params, .mode = SX_TRAIN};
    request.precision = s->precision;
    assert_ok(sx_build_program(&request, &graph));
    assert_ok(sx_session_create(
        &(sx_session_options){
            .device = s->backend,
            .seed = 7,
            .shards = strcmp(s->backend, "pjrt") == 0 ? 0 : s->shards, /* there: of the loop */
            .platform = options_of(s)},
        &session));
    assert_ok(sx_session_add_program(session, graph, &program));
    if (strcmp(s->backend, "pjrt") == 0 && s->shards > 1) {
        run_loop(session, program, graph, s);
    } else {
        run_steps(program);
    }
    trained t = {.n = sx_session_variable_count(session)};
    t.weights = sx_alloc((size_t)t.n, sizeof(*t.weights));
    t.bytes = sx_alloc((size_t)t.n, sizeof(*t.bytes));
    for (int i = 0; i < t.n; i++) {
        t.bytes[i] = sx_type_bytes(&sx_session_variable_at(session, i)->type);
        t.weights[i] = sx_alloc((size_t)t.bytes[i], 1);
        assert_ok(sx_session_read_variable(session, i, t.weights[i]));
    }
    sx_session_destroy(session);
    sx_graph_destroy(graph);
    sx_params_destroy(params);
    return t;
}

static void trained_end(trained *t)
{
    for (int i = 0; i < t->n; i++) {
        sx_free(t->weights[i]);
    }
    sx_free(t->weights);
    sx_free(t->bytes);
}

/* Adam's first steps divide by the root of tiny second moments: an update has the learning rate's
 * size whatever its gradient's, so what differs by rounding differs by a share of it. In bfloat16
 * that share is large: which of two numbers in a pool is the greater depends on when they were
 * rounded, and first moments over so few examples move with it (measured: up to 0.11). */
static void compare_trained(const char *model, const setting *s, const trained *ref)
{
    double share = s->precision == SX_BF16 ? 0.2 : 1e-3;
    trained got = train(model, s);
    assert_int_equal(got.n, ref->n);
    for (int v = 0; v < ref->n; v++) {
        double sum = 0, square = 0;
        for (int64_t e = 0; e < ref->bytes[v] / 4; e++) {
            double d = (double)got.weights[v][e] - (double)ref->weights[v][e];
            sum += d * d;
            square += (double)ref->weights[v][e] * (double)ref->weights[v][e];
        }
        if (!(sum <= share * share * square + 1e-12)) {
            fail_msg("%s on %s, %d threads, %d shards: variable %d differs by %.3g of %.3g", model,
                     s->backend, s->threads, s->shards, v, sqrt(sum), sqrt(square));
        }
    }
    trained_end(&got);
}

static void check_program(const char *model, sx_dtype precision)
{
    trained ref = train(model, &(setting){"host", 1, 1, precision});
    for (int i = 0; is_built_in(sx_backends[i]); i++) {
        for (int shards = 1; shards <= 4; shards += 3) {
            compare_trained(model, &(setting){sx_backends[i]->name, 2, shards, precision}, &ref);
        }
    }
    trained_end(&ref);
}

static void check_program_on_pjrt(const char *model, sx_dtype precision)
{
    trained ref = train(model, &(setting){"host", 1, 1, precision});
    for (int replicas = 1; replicas <= 3; replicas++) {
        compare_trained(model, &(setting){"pjrt", replicas, 1, precision}, &ref);
        compare_trained(model, &(setting){"pjrt", replicas, STEPS, precision}, &ref);
    }
    trained_end(&ref);
}

static void test_backends_conformance__mlp_trains_as_the_reference(void **state)
{
    (void)state;
    check_program("mlp", SX_F32);
}

static void test_backends_conformance__cnn_trains_as_the_reference(void **state)
{
    (void)state;
    check_program("mnist_cnn", SX_F32);
}

static void test_backends_conformance__cnn_trains_in_bfloat16(void **state)
{
    (void)state;
    check_program("mnist_cnn", SX_BF16);
}

/* --- Borders that nobody reads (cpu/crop.c)
 * ------------------------------------------------------
 */

typedef struct border_case {
    const char *name;
    int64_t size;
    int filters, groups;
    bool first; /* the pool before is behind a convolution too */
} border_case;

/* pool -> conv, bias, relu -> pool, with excess borders; outputs: sum and gradients */
static sx_graph *border_graph(const border_case *c)
{
    sx_builder *b;
    sx_graph *g;
    sx_value dx[3];
    int64_t channels = c->first ? 32 : 4;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, c->size, c->size, c->first ? 1 : 4));
    sx_value stem = sx_input(b, "stem", sx_type_of(SX_F32, 3, 3, 1, 32));
    sx_value vector = sx_input(b, "vector", sx_type_of(SX_F32, 32));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, channels / c->groups, c->filters));
    sx_value bias = sx_input(b, "bias", sx_type_of(SX_F32, c->filters));
    sx_value y = x;
    if (c->first) {
        y = sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, x, stem), vector));
    }
    y = sx_nn_max_pool2d(b, y, .window = {2});
    y = sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, y, w, .groups = c->groups), bias));
    y = sx_nn_max_pool2d(b, y, .window = {2});
    sx_value loss = sx_reduce_sum(b, sx_square(b, y), .axes = SX_AXES(0, 1, 2, 3));
    sx_output(b, "loss", loss);
    sx_gradients(b, loss, (const sx_value[]){w, bias, c->first ? stem : x}, 3, dx);
    for (int i = 0; i < 3; i++) {
        sx_output(b, i == 0 ? "dw" : i == 1 ? "dbias" : "dx", dx[i]);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

enum { BORDER_OUTPUTS = 4 };

static void run_borders(const sx_graph *g, const setting *s, float *out[BORDER_OUTPUTS],
                        int64_t elems[BORDER_OUTPUTS])
{
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *args[8], *outputs[8];
    assert_ok(
        sx_platform_open(s->backend, &(sx_platform_options){.cpu.threads = s->threads}, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 5, .shards = s->shards}, &e));
    for (int i = 0; i < e->n_args; i++) {
        int64_t n = sx_type_elems(&e->arg_types[i]);
        float *data = sx_alloc((size_t)n, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            data[k] =
                sx_uniform_f32(
                    sx_threefry2x32((sx_u32x2){9, (uint32_t)i}, (sx_u32x2){(uint32_t)k, 0}).a) -
                0.5F;
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data, false));
        sx_free(data);
    }
    for (int i = 0; i < e->n_results; i++) {
        elems[i] = sx_type_elems(&e->result_types[i]);
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    assert_ok(sx_execute(e, args, outputs));
    for (int i = 0; i < e->n_results; i++) {
        out[i] = sx_alloc((size_t)elems[i], sizeof(float));
        assert_non_null(out[i]);
        assert_ok(sx_device_buffer_read(outputs[i], out[i]));
        sx_device_buffer_release(outputs[i]);
    }
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
}

static void check_borders(const border_case *c, const setting *s)
{
    float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
    int64_t elems[BORDER_OUTPUTS];
    sx_graph *g = border_graph(c);
    run_borders(g, &(setting){"host", 1, 1, SX_F32}, expected, elems);
    run_borders(g, s, got, elems);
    for (int i = 0; i < BORDER_OUTPUTS; i++) {
        double greatest = 0, worst = 0;
        for (int64_t k = 0; k < elems[i]; k++) {
            greatest = fmax(greatest, fabs((double)expected[i][k]));
            worst = fmax(worst, fabs((double)got[i][k] - (double)expected[i][k]));
        }
        if (!(greatest > 0 && worst <= 1e-4 * greatest)) {
            fail_msg("%s, %d shards: output %d differs by %.3g of %.3g", c->name, s->shards, i,
                     worst, greatest);
        }
        sx_free(got[i]);
        sx_free(expected[i]);
    }
    sx_graph_destroy(g);
}

static void test_backends_conformance__borders_that_nobody_reads(void **state)
{
    (void)state;
    static const border_case cases[] = {
        {"one pool", 15, 16, 1, false},     {"no excess", 16, 16, 1, false},
        {"behind a stem", 28, 64, 1, true}, {"odd filters", 15, 6, 1, false},
        {"grouped", 15, 16, 2, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int shards = 1; shards <= 2; shards++) {
            check_borders(&cases[i], &(setting){"cpu", 2, shards, SX_F32});
        }
    }
}

/* --- One example, much work: oneDNN's own team ----------------------------------- */

static void test_backends_conformance__one_large_example(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
    int64_t elems[BORDER_OUTPUTS];
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, 28, 28, 32));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 32, 64));
    sx_value bias = sx_input(b, "bias", sx_type_of(SX_F32, 64));
    sx_output(b, "y", sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, x, w), bias)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    run_borders(g, &(setting){"host", 1, 0, SX_F32}, expected, elems);
    run_borders(g, &(setting){"cpu", 2, 0, SX_F32}, got, elems);
    for (int64_t k = 0; k < elems[0]; k++) {
        assert_true(fabsf(got[0][k] - expected[0][k]) <= 1e-4F);
    }
    sx_free(got[0]);
    sx_free(expected[0]);
    sx_graph_destroy(g);
}

static void test_backends_conformance__mlp_trains_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_program_on_pjrt("mlp", SX_F32);
}

static void test_backends_conformance__cnn_trains_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_program_on_pjrt("mnist_cnn", SX_F32);
}

static void test_backends_conformance__cnn_trains_in_bfloat16_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_program_on_pjrt("mnist_cnn", SX_BF16);
}

/* A fixed number of shards, whatever the threads, and run after run, gives the same bits. */
static void test_backends_conformance__strict_shards_give_the_same_bits(void **state)
{
    (void)state;
    trained first = train("mnist_cnn", &(setting){"cpu", 1, 4, SX_F32});
    for (int threads = 1; threads <= 4; threads++) {
        trained again = train("mnist_cnn", &(setting){"cpu", threads, 4, SX_F32});
        for (int v = 0; v < first.n; v++) {
            assert_memory_equal(first.weights[v], again.weights[v], (size_t)first.bytes[v]);
        }
        trained_end(&again);
    }
    trained_end(&first);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_conformance__operators_whole),
    cmocka_unit_test(test_backends_conformance__operators_in_shards),
    cmocka_unit_test(test_backends_conformance__operators_on_pjrt),
    cmocka_unit_test(test_backends_conformance__operators_on_pjrt_replicas),
    cmocka_unit_test(test_backends_conformance__gradients_built_in),
    cmocka_unit_test(test_backends_conformance__gradients_on_pjrt),
    cmocka_unit_test(test_backends_conformance__mlp_trains_as_the_reference),
    cmocka_unit_test(test_backends_conformance__cnn_trains_as_the_reference),
    cmocka_unit_test(test_backends_conformance__mlp_trains_on_pjrt),
    cmocka_unit_test(test_backends_conformance__cnn_trains_on_pjrt),
    cmocka_unit_test(test_backends_conformance__cnn_trains_in_bfloat16),
    cmocka_unit_test(test_backends_conformance__cnn_trains_in_bfloat16_on_pjrt),

    cmocka_unit_test(test_backends_conformance__borders_that_nobody_reads),
    cmocka_unit_test(test_backends_conformance__one_large_example),
    cmocka_unit_test(test_backends_conformance__strict_shards_give_the_same_bits),
};
SX_TEST_MAIN(tests)
