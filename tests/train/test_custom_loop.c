/* Custom training loops (sextant/runtime.h): step functions on all replicas, distributed data,
 * reductions, metric objects; they have fit's bits, and their mistakes are named by line. */
#include "run.h"

#include <sextant/log.h>
#include <sextant/runtime.h>

#include "../backends/pjrt_plugin.h"
#include "io/file.h"
#include "io/path.h"

enum { STEPS = 2 * STEPS_PER_EPOCH };

static void tiny_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    sx_value loss = sx_compute_average_loss(b, spec.loss);
    sx_output(b, "loss", loss);
    sx_output(b, "accuracy", sx_compute_average_loss(b, spec.metrics[0].value));
    sx_output(b, "losses", spec.loss);
    sx_output(b, "labels", in->labels);
    sx_minimize(b, loss, .optimizer = spec.optimizer);
}

static void test_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    sx_output(b, "losses", spec.loss);
    sx_output(b, "mean", sx_compute_average_loss(b, spec.loss));
    sx_output(b, "labels", in->labels);
}

static sx_strategy *mirrored(int devices)
{
    sx_strategy *strategy = NULL;
    assert_ok(sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = devices));
    return strategy;
}

static sx_run_config config_on(sx_strategy *strategy, const char *dir)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.device = NULL;
    config.train_distribute = strategy;
    return config;
}

static sx_training *open_custom(const sx_run_config *config)
{
    sx_training *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    assert_ok(sx_training_open(&tiny, &t, .config = config, .data = data, .train_step = tiny_step));
    sx_dataset_release(data);
    return t;
}

static sx_distributed *distribute(sx_strategy *strategy, int64_t first, int64_t count, sx_mode mode)
{
    sx_distributed *d = NULL;
    sx_dataset *data = tiny_data(first, count);
    assert_ok(sx_distribute_dataset(strategy, data, &d, .global_batch_size = BATCH, .mode = mode));
    sx_dataset_release(data);
    return d;
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char *paths[2], *bytes[2];
    size_t sizes[2];
    const char *dirs[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_path_join(dirs[i], name, &paths[i]));
        assert_ok(sx_file_read(paths[i], SIZE_MAX, &bytes[i], &sizes[i]));
        sx_free(paths[i]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    sx_free(bytes[0]);
    sx_free(bytes[1]);
}

/* The checkpoint of fit, to the byte, on any number of replicas. */
static void test_train_custom_loop__writes_the_checkpoint_of_fit(void **state)
{
    (void)state;
    for (int devices = 1; devices <= 4; devices *= 2) {
        sx_strategy *strategy = mirrored(devices);
        char a[16], b[16];
        snprintf(a, sizeof(a), "fit%d", devices);
        snprintf(b, sizeof(b), "loop%d", devices);
        const char *fit_path = scratch(a), *loop_path = scratch(b);
        sx_run_config config = config_on(strategy, fit_path);
        sx_trainer *trainer = open_tiny(&config);
        assert_ok(fit_tiny(trainer, STEPS, false));
        sx_trainer_destroy(trainer);

        config.model_dir = loop_path;
        sx_training *t = open_custom(&config);
        sx_distributed *data = distribute(strategy, 0, EXAMPLES, SX_TRAIN);
        sx_metric_object *mean = NULL, *of_examples = NULL;
        sx_step_program *step = sx_training_train_step(t);
        bool more;
        double loss, sum, average;
        assert_ok(sx_metric_create(&mean, .name = "loss"));
        assert_ok(sx_metric_create(&of_examples, .name = "losses"));
        assert_ok(sx_training_begin_distributed(t, data));
        while (sx_training_global_step(t) < STEPS) {
            assert_ok(sx_step_run(step, data, &more));
            assert_true(more);
            assert_ok(sx_step_reduce(step, SX_REDUCE_SUM, "loss", &loss));
            assert_ok(sx_step_reduce(step, SX_REDUCE_MEAN, "losses", &average));
            assert_ok(sx_step_reduce(step, SX_REDUCE_SUM, "losses", &sum));
            assert_true(fabs(loss - average) < 1e-6 && sum > average);
            assert_ok(sx_metric_update_step(mean, step));
            assert_ok(sx_metric_update_step(of_examples, step));
        }
        assert_true(fabs(sx_metric_result(mean) - sx_metric_result(of_examples)) < 1e-6);
        assert_ok(sx_training_save(t));
        sx_metric_free(mean);
        sx_metric_free(of_examples);
        sx_training_free(t);
        sx_distributed_free(data);
        sx_strategy_release(strategy);
        assert_same_file(fit_path, loop_path, "model.ckpt-14.data-00000-of-00001");
        assert_same_file(fit_path, loop_path, "model.ckpt-14.index");
    }
}

/* On PJRT devices the batch is really cut; launches of several steps compute the same. */
static void test_train_custom_loop__on_replicas_of_a_plugin(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    uint64_t hash[2];
    sx_strategy *strategy = NULL;
    assert_ok(sx_mirrored_strategy(&strategy, .device = "pjrt", .pjrt_plugin = pjrt_plugin(),
                                   .virtual_devices = 2, .replicas = 2));
    sx_run_config config = config_on(strategy, NULL);
    config.iterations_per_loop = 3;
    sx_trainer *trainer = open_tiny(&config);
    assert_ok(fit_tiny(trainer, STEPS, false));
    hash[0] = hash_variables(trainer);
    sx_trainer_destroy(trainer);

    sx_training *t = open_custom(&config);
    sx_distributed *data = distribute(strategy, 0, EXAMPLES, SX_TRAIN);
    sx_step_program *step = sx_training_train_step(t);
    double loss, average;
    bool more;
    assert_ok(sx_training_begin_distributed(t, data));
    while (sx_training_global_step(t) < STEPS / 2) {
        assert_ok(sx_step_run(step, data, &more));
        assert_ok(sx_step_reduce(step, SX_REDUCE_SUM, "loss", &loss));
        assert_ok(sx_step_reduce(step, SX_REDUCE_MEAN, "losses", &average));
        assert_true(fabs(loss - average) < 1e-6);
    }
    while (sx_training_global_step(t) < STEPS) {
        assert_ok(sx_training_run(t, 3, NULL));
    }
    sx_variable_info v;
    hash[1] = 0;
    for (int i = 0; i < sx_training_variable_count(t); i++) {
        assert_ok(sx_training_variable_at(t, i, &v));
        size_t bytes = (size_t)sx_type_bytes(&v.type);
        char *value = sx_alloc(bytes + 1, 1);
        assert_ok(sx_training_read_variable(t, v.name, value, bytes));
        hash[1] = hash[1] * 1099511628211u ^ sx_hash64(v.name, strlen(v.name));
        hash[1] = hash[1] * 1099511628211u ^ sx_hash64(value, bytes);
        sx_free(value);
    }
    assert_true(hash[0] == hash[1]);
    sx_training_free(t);
    sx_distributed_free(data);
    sx_strategy_release(strategy);
}

/* ---- Other steps ---- */

/* Counts the examples of each class: a metric of the caller's. */
static void count_label(void *state, const sx_host_value *values, void *user)
{
    int64_t *counts = state;
    assert_ptr_equal(user, &tiny);
    assert_string_equal(values[0].name, "labels");
    assert_int_equal(values[0].type.rank, 0);
    counts[*(const int32_t *)values[0].data]++;
}

static double most_common(const void *state, void *user)
{
    (void)user;
    const int64_t *counts = state;
    return (double)(counts[0] + 100 * counts[1] + 10000 * counts[2]);
}

static void test_train_custom_loop__a_step_of_its_own_evaluates(void **state)
{
    (void)state;
    enum { TESTED = 41 };
    sx_strategy *strategy = mirrored(2);
    sx_run_config config = config_on(strategy, NULL);
    sx_training *t = open_custom(&config);
    sx_distributed *data = distribute(strategy, 0, EXAMPLES, SX_TRAIN);
    sx_distributed *test = distribute(strategy, 100, TESTED, SX_EVAL);
    sx_dataset *tested = tiny_data(100, TESTED);
    sx_step_program *step = NULL;
    sx_metric_object *losses = NULL, *means = NULL, *sum = NULL, *counts = NULL;
    const sx_host_metric host = {"counts", CLASSES * sizeof(int64_t), (void *)(uintptr_t)&tiny,
                                 count_label, most_common};
    sx_eval_result expected;
    bool more;
    assert_ok(sx_training_add_step(t, test_step, &step, .name = "test", .mode = SX_EVAL));
    assert_error(sx_step_run(step, test, &more), SX_FAILED_PRECONDITION, "has not begun");
    assert_ok(sx_training_begin_distributed(t, data));
    assert_ok(sx_training_run(t, 5, NULL));
    assert_ok(sx_training_evaluate(t, tested, &expected));
    assert_ok(sx_metric_create(&losses, .name = "losses"));
    assert_ok(sx_metric_create(&means, .name = "mean"));
    assert_ok(sx_metric_create(&sum, .name = "losses", .kind = SX_METRIC_SUM));
    assert_ok(sx_metric_create(&counts, .name = "counts", .host = &host, .outputs = {"labels"}));
    for (int pass = 0; pass < 2; pass++) { /* the second begins anew */
        int64_t batches = 0;
        assert_ok(sx_step_run(step, test, &more));
        while (more) {
            assert_ok(sx_metric_update_step(losses, step));
            assert_ok(sx_metric_update_step(means, step));
            assert_ok(sx_metric_update_step(sum, step));
            assert_ok(sx_metric_update_step(counts, step));
            batches++;
            assert_ok(sx_step_run(step, test, &more));
        }
        assert_int_equal(batches, (TESTED + BATCH - 1) / BATCH);
        assert_true(fabs(sx_metric_result(losses) - expected.loss) < 1e-6);
        assert_true(fabs(sx_metric_result(means) - expected.loss) < 1e-6);
        assert_true(fabs(sx_metric_result(sum) - TESTED * expected.loss) < 1e-4);
        assert_true(sx_metric_result(counts) >= 10000);
        sx_metric_reset(losses);
        sx_metric_reset(means);
        sx_metric_reset(sum);
        sx_metric_reset(counts);
        assert_true(sx_metric_result(losses) == 0 && sx_metric_result(counts) == 0);
    }
    float row[TESTED % BATCH];
    assert_ok(sx_training_run(t, 1, NULL)); /* training goes on where it was */
    assert_int_equal(sx_training_global_step(t), 6);
    assert_ok(sx_step_run(step, test, &more));
    assert_error(sx_step_read(step, "losses", row, sizeof(row)), SX_INVALID_ARGUMENT,
                 "output \"losses\" of step \"test\" is float32[8], 32 bytes; got 4");
    sx_metric_free(losses);
    sx_metric_free(means);
    sx_metric_free(sum);
    sx_metric_free(counts);
    sx_dataset_release(tested);
    sx_training_free(t);
    sx_distributed_free(test);
    sx_distributed_free(data);
    sx_strategy_release(strategy);
}

static void second_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 1, .name = "second");
    sx_value loss = sx_compute_average_loss(b, sx_square(b, sx_reshape(b, x, SX_BATCH)));
    sx_output(b, "loss", loss);
    sx_minimize(b, loss, .optimizer = sx_sgd(.learning_rate = 0.1));
}

/* Two steps that train in turns share global_step and the checkpoint. */
static void test_train_custom_loop__two_steps_train_in_turns(void **state)
{
    (void)state;
    sx_strategy *strategy = mirrored(2);
    sx_run_config config = config_on(strategy, scratch("turns"));
    sx_distributed *data = distribute(strategy, 0, EXAMPLES, SX_TRAIN);
    float kernel[FEATURES], again[FEATURES], other[FEATURES];
    double first = 0, last = 0;
    for (int round = 0; round < 2; round++) {
        sx_training *t = open_custom(&config);
        sx_step_program *second = NULL;
        bool more;
        assert_ok(sx_training_add_step(t, second_build, &second, .name = "second"));
        assert_ok(sx_training_begin_distributed(t, data));
        assert_ok(sx_training_read_variable(t, "second/kernel", again, sizeof(again)));
        if (round == 1) {
            assert_memory_equal(again, kernel, sizeof(kernel));
        }
        for (int i = 0; i < 4; i++) {
            assert_ok(sx_step_run(sx_training_train_step(t), data, &more));
            assert_ok(sx_step_run(second, data, &more));
            assert_ok(sx_step_reduce(second, SX_REDUCE_MEAN, "loss", &last));
            first = round == 0 && i == 0 ? last : first;
        }
        assert_ok(sx_training_read_variable(t, "second/kernel", other, sizeof(other)));
        assert_memory_not_equal(other, again, sizeof(other));
        memcpy(kernel, other, sizeof(kernel));
        assert_ok(sx_training_save(t));
        sx_training_free(t);
    }
    assert_true(last < first);
    sx_distributed_free(data);
    sx_strategy_release(strategy);
}

/* ---- Data ---- */

static char logged[4096];
static void keep_log(void *user, sx_log_level level, const char *file, int line, const char *text)
{
    (void)user;
    (void)file;
    (void)line;
    if (level == SX_LOG_WARN) {
        snprintf(logged, sizeof(logged), "%s", text);
    }
}

typedef struct asked {
    int calls;
    bool ignores_size, ignores_index;
} asked;

static sx_status part(void *user, const sx_input_context *context, sx_dataset **out)
{
    asked *a = user;
    a->calls++;
    *out = tiny_data(0, 48);
    if (!a->ignores_index) {
        SX_TRY(sx_dataset_shard(out, context->num_invocations, context->invocation_index));
    }
    return sx_dataset_batch(out, .size = a->ignores_size ? BATCH : context->batch_size);
}

static void test_train_custom_loop__data_of_a_function(void **state)
{
    (void)state;
    static const struct {
        asked a;
        sx_input_config input;
        int calls;
        int64_t examples;
        const char *warning;
    } rows[] = {
        {{0, false, false}, 0, 1, BATCH, ""},
        {{0, false, false}, SX_PER_SHARD_V1, 4, BATCH, ""},
        {{0, true, false},
         0,
         1,
         4 * BATCH,
         "the function's batches have 8 examples, but context->batch_size is 2: it ignores its "
         "context; a step takes 32 examples instead of 8"},
        {{0, false, true},
         SX_PER_SHARD_V1,
         4,
         BATCH,
         "the function gave inputs 0 and 1 the same data: it ignores its context; each example is "
         "read 4 times an epoch"},
    };
    sx_strategy *strategy = mirrored(4);
    sx_log_set_sink(keep_log, NULL, SX_LOG_WARN);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        asked a = rows[i].a;
        sx_run_config config = config_on(strategy, NULL);
        sx_training *t = open_custom(&config);
        sx_distributed *data = NULL;
        sx_training_step step;
        logged[0] = '\0';
        assert_ok(sx_distribute_datasets_from_function(
            strategy, part, &a, &data, .global_batch_size = BATCH, .input = rows[i].input));
        assert_int_equal(a.calls, rows[i].calls);
        assert_true(rows[i].warning[0] == '\0' ? logged[0] == '\0'
                                               : strstr(logged, rows[i].warning) != NULL);
        assert_true(logged[0] == '\0' || strncmp(logged, "test_custom_loop.c:", 19) == 0);
        assert_ok(sx_training_begin_distributed(t, data));
        assert_ok(sx_training_run(t, 1, &step));
        assert_int_equal(step.examples, rows[i].examples);
        sx_training_free(t);
        sx_distributed_free(data);
    }
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    sx_strategy_release(strategy);
}

/* A batch of the caller's between two of the data does not move them, nor does one that is
 * refused. */
static void test_train_custom_loop__the_data_keep_their_place(void **state)
{
    (void)state;
    int32_t labels[2][4][BATCH];
    float x[2][FEATURES] = {{.5f}};
    int64_t y[] = {1, 2};
    const char *names[] = {"features", "label"};
    const sx_tensor two[] = {{sx_type_of(SX_F32, 2, FEATURES), x}, {sx_type_of(SX_I64, 2), y}};
    const int64_t most = (int64_t)1 << 24; /* examples of a batch */
    const sx_tensor too_many[] = {{sx_type_of(SX_F32, most + 1, FEATURES), x},
                                  {sx_type_of(SX_I64, most + 1), y}};
    sx_strategy *strategy = mirrored(2);
    sx_run_config config = config_on(strategy, NULL);
    for (int k = 0; k < 2; k++) {
        sx_training *t = open_custom(&config);
        sx_distributed *data = distribute(strategy, 0, EXAMPLES, SX_TRAIN);
        sx_training_step step;
        assert_ok(sx_training_begin_distributed(t, data));
        for (int i = 0; i < 4; i++) {
            assert_ok(sx_training_run(t, 1, &step));
            assert_ok(sx_step_read(sx_training_train_step(t), "labels", labels[k][i],
                                   sizeof(labels[k][i])));
            if (k == 1 && i == 0) {
                assert_error(sx_training_run_batch(t, 2, names, too_many, &step),
                             SX_INVALID_ARGUMENT, "batch size 16777217");
            }
            if (k == 1 && i == 1) {
                assert_ok(sx_training_run_batch(t, 2, names, two, &step));
            }
        }
        sx_training_free(t);
        sx_distributed_free(data);
    }
    assert_memory_equal(labels[0], labels[1], sizeof(labels[0]));
    assert_memory_not_equal(labels[0][0], labels[0][1], sizeof(labels[0][0]));
    sx_strategy_release(strategy);
}

/* ---- The graph's functions ---- */

static sx_value average_of(sx_builder *b, sx_value x, sx_value w, int64_t batch)
{
    return sx_compute_average_loss(b, x, .sample_weight = w, .global_batch_size = batch);
}

static void test_train_custom_loop__average_loss(void **state)
{
    (void)state;
    enum { N = 4 };
    float x[N] = {1, 2, 3, 6}, w[N] = {1, 0, 2, .5f}, y[3];
    static const float expected[3] = {3, 2.5f, 1};
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    sx_devices *devices = NULL;
    sx_compiled_graph *program = NULL;
    sx_buffer *in[2], *out[3];
    assert_ok(sx_builder_create(&b));
    sx_value values = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH));
    sx_value weights = sx_input(b, "w", sx_type_of(SX_F32, SX_BATCH));
    sx_output(b, "mean", sx_compute_average_loss(b, values));
    sx_output(b, "weighted", average_of(b, values, weights, 0));
    sx_output(b, "of 10", average_of(b, values, weights, 10));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_devices_open(&devices, .device = "host"));
    assert_ok(sx_compile_graph(devices, g, N, &program));
    assert_ok(sx_buffer_create(devices, 0, &(sx_tensor){sx_type_of(SX_F32, N), x}, &in[0]));
    assert_ok(sx_buffer_create(devices, 0, &(sx_tensor){sx_type_of(SX_F32, N), w}, &in[1]));
    assert_ok(sx_compiled_graph_run(program, in, 2, out, 3, 0));
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_buffer_read(out[i], &y[i], sizeof(y[i])));
        assert_true(fabsf(y[i] - expected[i]) < 1e-6f);
        sx_buffer_free(out[i]);
    }
    sx_buffer_free(in[0]);
    sx_buffer_free(in[1]);
    sx_compiled_graph_free(program);
    sx_devices_close(devices);
    sx_graph_destroy(g);
}

static void test_train_custom_loop__metrics_of_numbers(void **state)
{
    (void)state;
    const float x[] = {1, 2, 4}, w[] = {1, 0, 3};
    sx_metric_object *m = NULL;
    assert_error(sx_metric_create(&m), SX_INVALID_ARGUMENT, "name is NULL");
    assert_error(sx_metric_create(&m, .name = "f1", .host = &(sx_host_metric){.name = "f1"}),
                 SX_INVALID_ARGUMENT, "metric \"f1\": a host metric needs add, result and outputs");
    assert_ok(sx_metric_create(&m, .name = "x"));
    assert_true(sx_metric_result(m) == 0);
    sx_metric_update(m, 3, x, w);
    assert_true(sx_metric_result(m) == 13. / 4);
    sx_metric_update(m, 1, x, NULL);
    assert_true(sx_metric_result(m) == 14. / 5);
    sx_metric_reset(m);
    assert_true(sx_metric_result(m) == 0);
    sx_metric_free(m);
    sx_metric_free(NULL);
    assert_ok(sx_metric_create(&m, .name = "x", .kind = SX_METRIC_SUM));
    sx_metric_update(m, 3, x, NULL);
    assert_true(sx_metric_result(m) == 7);
    sx_metric_free(m);
}

/* ---- Mistakes ---- */

/* The message begins with this file, and the line of the call. */
#define assert_error_here(call, code, text)                                          \
    do {                                                                             \
        char here_[64];                                                              \
        sx_status status_ = (call);                                                  \
        snprintf(here_, sizeof(here_), "test_custom_loop.c:%d: ", __LINE__);         \
        assert_true(strncmp(sx_status_message(status_), here_, strlen(here_)) == 0); \
        assert_error(status_, code, text);                                           \
    } while (0)

static void test_train_custom_loop__mistakes_are_named_by_line(void **state)
{
    (void)state;
    sx_strategy *two = mirrored(2), *four = mirrored(4);
    sx_run_config config = config_on(two, NULL);
    sx_training *t = open_custom(&config);
    sx_step_program *step = sx_training_train_step(t), *test = NULL;
    sx_distributed *data = distribute(two, 0, EXAMPLES, SX_TRAIN);
    sx_distributed *others = distribute(four, 0, EXAMPLES, SX_TRAIN), *wide = NULL, *none = NULL;
    sx_metric_object *metric = NULL;
    double value;
    bool more;
    float x[12][5] = {{0}};
    int64_t y[12] = {0};
    const char *names[] = {"features", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, 12, 5), x}, {sx_type_of(SX_I64, 12), y}};
    sx_dataset *shaped = NULL, *odd = tiny_data(0, 12);
    assert_ok(sx_metric_create(&metric, .name = "f1"));

    /* Strategies are mixed. */
    assert_error_here(sx_training_begin_distributed(t, others), SX_INVALID_ARGUMENT,
                      "over \"mirrored: 4 virtual devices on cpu\", but the training runs under "
                      "\"mirrored: 2 virtual devices on cpu\"");
    assert_error_here(sx_step_run(step, others, &more), SX_INVALID_ARGUMENT,
                      "the data were distributed at test_custom_loop.c:");

    /* An output is asked for before a run, or is not there. */
    assert_error_here(sx_step_reduce(step, SX_REDUCE_SUM, "loss", &value), SX_FAILED_PRECONDITION,
                      "the step has not run");
    assert_ok(sx_step_run(step, data, &more));
    assert_error_here(sx_step_reduce(step, SX_REDUCE_SUM, "los", &value), SX_NOT_FOUND,
                      "step \"train\" has no output \"los\"");
    assert_error_here(sx_metric_update_step(metric, step), SX_NOT_FOUND,
                      "to fetch it, add sx_output(b, \"f1\", value) to");
    assert_ok(sx_training_add_step(t, test_step, &test, .name = "test", .mode = SX_EVAL));
    assert_ok(sx_step_run(test, data, &more));
    assert_error_here(sx_step_reduce(test, SX_REDUCE_SUM, "accuracy", &value), SX_NOT_FOUND,
                      "value) to the function of test_custom_loop.c:");

    /* Another shape, another size. */
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &shaped));
    assert_ok(sx_distribute_dataset(two, shaped, &wide, .global_batch_size = 4));
    assert_error_here(sx_step_run(step, wide, &more), SX_INVALID_ARGUMENT,
                      "\"features\" of the data is float32[N,5], but model \"tiny\" expects "
                      "float32[N,6]");
    assert_error_here(sx_step_run(test, wide, &more), SX_INVALID_ARGUMENT, "float32[N,5]");
    assert_error_here(sx_distribute_dataset(four, odd, &none, .global_batch_size = 6),
                      SX_INVALID_ARGUMENT, "the nearest are 4 and 8");
    assert_ok(sx_dataset_batch(&odd, .size = 4));
    assert_error_here(sx_distribute_dataset(four, odd, &none, .global_batch_size = 8),
                      SX_INVALID_ARGUMENT, "has batches of 4, but global_batch_size is 8");
    assert_error_here(sx_distribute_datasets_from_function(four, part, NULL, &none),
                      SX_INVALID_ARGUMENT, "global_batch_size is missing");

    assert_ok(sx_step_run(step, data, &more)); /* none of it has done any harm */
    assert_int_equal(sx_training_global_step(t), 2);
    sx_training_close(t);
    assert_null(sx_training_train_step(t));
    assert_null(sx_training_strategy(t));
    assert_error_here(sx_step_run(step, data, &more), SX_FAILED_PRECONDITION, "is closed");
    sx_training_free(t);
    sx_metric_free(metric);
    sx_distributed_free(data);
    sx_distributed_free(others);
    sx_distributed_free(wide);
    sx_dataset_release(shaped);
    sx_dataset_release(odd);
    sx_strategy_release(two);
    sx_strategy_release(four);
}

static void without_loss(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    sx_minimize(b, sx_compute_average_loss(b, spec.loss));
}
static void without_minimize(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    sx_output(b, "loss", sx_compute_average_loss(b, spec.loss));
}
static void twice(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    tiny_step(b, in, p);
    sx_minimize(b, sx_constant_f32(b, 1));
}
static void of_examples(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    sx_minimize(b, spec.loss);
}
static void of_logits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "loss", sx_compute_average_loss(b, in->features));
}
static void nothing(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)b;
    (void)in;
    (void)p;
}

static void test_train_custom_loop__wrong_steps(void **state)
{
    (void)state;
    static const struct {
        sx_step_build_fn *fn;
        const char *message;
    } rows[] = {
        {without_loss, "the first output of a training step is its loss"},
        {without_minimize, "the training step calls no sx_minimize()"},
        {twice, "minimize \"minimize_1\": a step has one sx_minimize()"},
        {of_examples, "minimize \"minimize\": the loss is float32[N], expected a float32 scalar"},
        {of_logits, "per_example_loss is float32[N,6], expected float32[N]"},
        {nothing, "the first output"},
    };
    sx_run_config config = tiny_config(NULL, NULL);
    sx_training *t = NULL;
    sx_step_program *step = NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_error(sx_training_open(&tiny, &t, .config = &config, .train_step = rows[i].fn),
                     SX_INVALID_ARGUMENT, rows[i].message);
    }
    t = open_custom(&config);
    assert_error_here(sx_training_add_step(t, nothing, &step), SX_INVALID_ARGUMENT,
                      "nothing of it can be fetched");
    assert_error_here(sx_training_add_step(t, tiny_step, &step, .mode = SX_EVAL),
                      SX_INVALID_ARGUMENT, "is not one of mode SX_TRAIN");
    sx_training_free(t);
}

static void infinite(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_reshape(b, sx_dense(b, in->features, 1, .name = "second"), SX_BATCH);
    sx_value loss = sx_compute_average_loss(b, sx_div(b, x, sx_sub(b, x, x)));
    sx_output(b, "loss", loss);
    sx_minimize(b, loss);
}

static void test_train_custom_loop__a_step_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    sx_run_config config = tiny_config(NULL, NULL);
    sx_training *t = open_custom(&config);
    sx_distributed *data = distribute(sx_training_strategy(t), 0, EXAMPLES, SX_TRAIN);
    sx_step_program *step = NULL;
    float before[FEATURES], after[FEATURES];
    bool more;
    assert_ok(sx_training_add_step(t, infinite, &step, .name = "infinite"));
    assert_ok(sx_training_begin_distributed(t, data));
    assert_ok(sx_training_read_variable(t, "second/kernel", before, sizeof(before)));
    assert_error_here(sx_step_run(step, data, &more), SX_ABORTED, "step \"infinite\": div");
    assert_ok(sx_training_read_variable(t, "second/kernel", after, sizeof(after)));
    assert_memory_equal(before, after, sizeof(before));
    sx_training_free(t);
    sx_distributed_free(data);
}

static const struct CMUnitTest tests[] = {
    in_memory_test(test_train_custom_loop__writes_the_checkpoint_of_fit),
    scratch_test(test_train_custom_loop__on_replicas_of_a_plugin),
    scratch_test(test_train_custom_loop__a_step_of_its_own_evaluates),
    in_memory_test(test_train_custom_loop__two_steps_train_in_turns),
    scratch_test(test_train_custom_loop__data_of_a_function),
    scratch_test(test_train_custom_loop__the_data_keep_their_place),
    scratch_test(test_train_custom_loop__average_loss),
    scratch_test(test_train_custom_loop__metrics_of_numbers),
    scratch_test(test_train_custom_loop__mistakes_are_named_by_line),
    scratch_test(test_train_custom_loop__wrong_steps),
    scratch_test(test_train_custom_loop__a_step_that_is_not_finite_changes_nothing),
};
SX_TEST_MAIN(tests)
