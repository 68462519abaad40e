/* Models built of functions (sx_call_function) in the trainer: an LSTM that is a loop, a
 * transformer block that is called twice. In strict mode the bits are the same on 1, 2 and 4
 * threads, and on 1, 2 and 4 replicas of virtual devices. */
#include "child.h"
#include "run.h"

#include <sextant/function.h>

#include "../backends/pjrt_plugin.h"

#include "../../examples/lstm.c"

enum { PARTS = 4, SEQUENCES = 24, LIMIT = 8 };

/* ---- A transformer block ---- */

enum { WORDS = 5, WIDTH = 4 };

static sx_value in_block(sx_builder *b, const char *block, const char *name)
{
    char full[32];
    snprintf(full, sizeof(full), "%s/%s", block, name);
    return sx_variable(b, &(sx_variable_spec){.name = full,
                                              .type = sx_type_of(SX_F32, WIDTH, WIDTH),
                                              .init = SX_INIT_GLOROT_UNIFORM});
}

/* Layer normalization over the last axis: a function that the block calls. */
static sx_status add_normalize(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, WORDS, WIDTH));
    sx_value mean = sx_reduce_mean(b, x, .axes = SX_AXES(2), .keep_dims = true);
    sx_value off = sx_sub(b, x, mean);
    sx_value variance = sx_reduce_mean(b, sx_square(b, off), .axes = SX_AXES(2), .keep_dims = true);
    sx_output(b, "y", sx_mul(b, off, sx_rsqrt(b, sx_add(b, variance, sx_constant_f32(b, 1e-5)))));
    sx_status status = sx_library_add(library, "normalize", b);
    sx_builder_destroy(b);
    return status;
}

/* x [N,T,D]: projections of [N*T,D]; attention; what goes in and what comes out, normalized. */
static sx_status add_block(sx_library *library, const char *name)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, WORDS, WIDTH);
    sx_value x = sx_input(b, "x", type), rows = sx_reshape(b, x, -WORDS, WIDTH);
    sx_value query = sx_matmul(b, rows, in_block(b, name, "query"));
    sx_value key = sx_matmul(b, rows, in_block(b, name, "key"));
    sx_value value = sx_matmul(b, rows, in_block(b, name, "value"));
    sx_value scores = sx_mul(b, sx_reshape(b, query, SX_BATCH, WORDS, 1, WIDTH),
                             sx_reshape(b, key, SX_BATCH, 1, WORDS, WIDTH));
    sx_value share = sx_softmax(b, sx_reduce_sum(b, scores, .axes = SX_AXES(3)));
    sx_value attended = sx_mul(b, sx_reshape(b, share, SX_BATCH, WORDS, WORDS, 1),
                               sx_reshape(b, value, SX_BATCH, 1, WORDS, WIDTH));
    sx_value sum = sx_add(b, x, sx_reduce_sum(b, attended, .axes = SX_AXES(2)));
    sx_output(b, "y",
              sx_function_node(b, "call", "function=\"normalize\"", &sum, 1, NULL, 0, &type, 1));
    sx_status status = sx_library_add(library, name, b);
    sx_builder_destroy(b);
    return status;
}

/* Two blocks: the second one is the same function, or has weights of its own. */
static sx_spec make_transformer(sx_builder *b, const sx_batch *in, const char *second)
{
    sx_library *library = NULL;
    assert_ok(sx_library_create(&library));
    assert_ok(add_normalize(library));
    assert_ok(add_block(library, "block"));
    assert_ok(add_block(library, "other"));
    assert_ok(sx_library_finish(library));
    sx_value x = in->features;
    sx_call_function(b, library, "block", &x, 1, &x, 1);
    x = sx_dropout(b, x, 0.1);
    sx_call_function(b, library, second, &x, 1, &x, 1);
    sx_library_destroy(library);
    sx_value logits = sx_dense(b, sx_reduce_mean(b, x, .axes = SX_AXES(1)), CLASSES);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-2));
}

static sx_spec shared(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    return make_transformer(b, in, "block");
}

static sx_spec separate(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    return make_transformer(b, in, "other");
}

static const sx_model_def shared_model = SX_MODEL_DEF(.name = "transformer", .build = shared),
                          separate_model = SX_MODEL_DEF(.name = "transformer", .build = separate),
                          lstm_model = SX_MODEL_DEF(.name = "lstm", .build = lstm);

/* ---- Training ---- */

static sx_dataset *sequences(int64_t rows, int64_t columns)
{
    static float x[SEQUENCES][STEPS * INPUTS];
    static int32_t label[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++) {
        label[i] = i % CLASSES;
        for (int k = 0; k < STEPS * INPUTS; k++) {
            x[i][k] = (float)((i * 13 + k * 7) % 11) / 11 + (k % CLASSES == label[i] ? 1.0f : 0.0f);
        }
    }
    const char *names[] = {"features", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, SEQUENCES, rows, columns), x},
                                 {sx_type_of(SX_I32, SEQUENCES), label}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

static uint64_t train_on(const sx_model_def *def, int64_t rows, int64_t columns, const char *device,
                         int workers, double *out_loss)
{
    seen s = {0};
    sx_run_config config = tiny_config(NULL, &s);
    const bool pjrt = strcmp(device, "pjrt") == 0;
    config.device = device;
    config.shards = PARTS;
    config.threads = pjrt ? 1 : workers;
    config.pjrt_plugin = pjrt ? pjrt_plugin() : NULL;
    config.virtual_devices = pjrt ? 4 : 0;
    config.replicas = pjrt ? workers : 0;
    sx_dataset *data = sequences(rows, columns);
    sx_trainer *t = NULL;
    assert_ok(
        sx_trainer_create(&(sx_trainer_options){.config = &config, .def = def, .data = data}, &t));
    assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = LIMIT}));
    const uint64_t hash = hash_variables(t);
    *out_loss = s.final_loss;
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    return hash;
}

static void check_bits(const sx_model_def *def, int64_t rows, int64_t columns, const char *device)
{
    double first = 0, loss = 0;
    const uint64_t one = train_on(def, rows, columns, device, 1, &first);
    assert_true(isfinite(first) && first < 1.3);
    for (int workers = 2; workers <= 4; workers += 2) {
        assert_true(train_on(def, rows, columns, device, workers, &loss) == one);
        assert_true(loss == first);
    }
}

static void test_train_function_model__lstm_on_threads(void **state)
{
    (void)state;
    check_bits(&lstm_model, STEPS, INPUTS, "cpu");
}

static void test_train_function_model__lstm_on_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(&lstm_model, STEPS, INPUTS, "pjrt");
}

static void test_train_function_model__transformer_on_threads(void **state)
{
    (void)state;
    check_bits(&shared_model, WORDS, WIDTH, "cpu");
    check_bits(&separate_model, WORDS, WIDTH, "cpu");
}

static void test_train_function_model__transformer_on_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_bits(&shared_model, WORDS, WIDTH, "pjrt");
    check_bits(&separate_model, WORDS, WIDTH, "pjrt");
}

/* ---- What cannot be part of a model's graph ---- */

static const char odd_functions[] =
    "sextant-library 2\n"
    "function \"host\"\n  input %1 float32[N] \"x\"\n"
    "  %2 = reduce_max(%1) {axes=[0]} float32[] \"most\"\n"
    "  %3 = less(%2, %2) bool[] \"small\"\n"
    "  %4 = assert(%3) {message=\"too large\"} bool[] \"check\"\n"
    "  output \"y\" %1\nend\n"
    "function \"late\"\n  input %1 float32[N] \"x\"\n"
    "  %2 = where(%1) int64[?,1] \"places\"\n"
    "  %3 = cast(%2) {dtype=float32} float32[?,1] \"floats\"\n"
    "  %4 = exp(%3) float32[?,1] \"exp\"\n"
    "  output \"y\" %4\nend\n"
    "function \"fixed\"\n  input %1 float32[3] \"x\"\n  output \"y\" %1\nend\n"
    "function \"one\"\n  input %1 float32[N] \"x\"\n"
    "  %2 = shape(%1) {dtype=int64} int64[1] \"shape\"\n"
    "  %3 = constant() {value=tensor(int64[1] \"0100000000000000\")} int64[1] \"one\"\n"
    "  %4 = equal(%2, %3) bool[1] \"is_one\"\n"
    "  %5 = cast(%4) {dtype=float32} float32[1] \"number\"\n"
    "  %6 = add(%1, %5) float32[N] \"sum\"\n"
    "  output \"y\" %6\nend\n";

static void test_train_function_model__refuses(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int n_outputs;
        sx_code code;
        const char *message;
    } rows[] = {
        {"host", 1, SX_UNIMPLEMENTED, "assert \"check\" runs on the host"},
        {"late", 1, SX_UNIMPLEMENTED, "where \"places\" runs on the host"},
        {"fixed", 1, SX_INVALID_ARGUMENT, "is float32[N], but is declared as float32[3]"},
        {"one", 1, SX_UNIMPLEMENTED, "for a batch of 1 it is another program"},
        {"gone", 1, SX_NOT_FOUND, "function \"gone\": the library has no such function"},
        {"host", 2, SX_INVALID_ARGUMENT, "1 inputs and 1 outputs, but the call has 1 and 2"},
    };
    sx_library *library = NULL;
    assert_ok(sx_library_parse(odd_functions, strlen(odd_functions), &library));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_builder *b = NULL;
        sx_graph *g = NULL;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH)), y[2];
        sx_call_function(b, library, rows[i].function, &x, 1, y, rows[i].n_outputs);
        assert_false(sx_value_is(y[0]));
        assert_error(sx_builder_finish(b, &g), rows[i].code, rows[i].message);
        sx_builder_destroy(b);
    }
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_function_model__lstm_on_threads),
    cmocka_unit_test(test_train_function_model__lstm_on_replicas),
    cmocka_unit_test(test_train_function_model__transformer_on_threads),
    cmocka_unit_test(test_train_function_model__transformer_on_replicas),
    cmocka_unit_test(test_train_function_model__refuses),
};
SX_TEST_MAIN(tests)
