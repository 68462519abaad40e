/* The training of functions (sextant/function_train.h) on the example's model of sentences: strings
 * are split, made ragged, padded to a length that the batch decides, hashed, embedded; a block of
 * attention; classes. Each batch is a late call. It learns; a run that goes on from its variables
 * on disk ends with the bits of one that was not interrupted, on any number of threads; exported
 * and loaded, it answers as the library does. */
#include "io/scratch.h"

#include <math.h>

#include "torture.h"

#define main text_attention_main
int text_attention_main(int argc, char **argv);
#include "../../examples/text_attention.c"
#undef main

#include "base/checked.h"
#include "graph/library.h"

typedef struct training {
    sx_library *library;
    sx_functions *functions;
} training;

static void begin(training *t, int threads)
{
    *t = (training){.library = NULL};
    assert_ok(sx_library_create(&t->library));
    assert_ok(build(t->library));
    const sx_functions_options options = {
        .struct_size = sizeof(options), .seed = 5, .threads = threads};
    assert_ok(sx_functions_open(t->library, &options, &t->functions));
}

static void end(training *t)
{
    sx_functions_close(t->functions);
    sx_library_destroy(t->library);
}

static float loss_of(training *t, uint64_t seed)
{
    char lines[BATCH][LINE_BYTES];
    sx_bytes text[BATCH];
    int32_t label[BATCH];
    sx_results *results;
    for (int i = 0; i < BATCH; i++) {
        label[i] = make_sentence(&seed, lines[i]);
        text[i] = (sx_bytes){lines[i], strlen(lines[i])};
    }
    const sx_tensor batch[] = {{sx_type_of(SX_STRING, BATCH), text},
                               {sx_type_of(SX_I32, BATCH), label}};
    assert_ok(sx_functions_run(t->functions, "train", batch, 2, 0, &results));
    assert_int_equal(*(uint8_t *)sx_results_find(results, "ok")->data, 1);
    const float loss = *(float *)sx_results_find(results, "loss")->data;
    sx_results_free(results);
    return loss;
}

/* Same names, types and bits of all variables. */
static void assert_same_bits(const training *a, const training *b)
{
    assert_int_equal(a->library->n_variables, b->library->n_variables);
    for (int i = 0; i < a->library->n_variables; i++) {
        const sx_variable_spec *v = &a->library->variables[i];
        const size_t bytes = (size_t)sx_type_bytes(&v->type);
        void *x = sx_alloc(bytes, 1), *y = sx_alloc(bytes, 1);
        assert_ok(sx_functions_read_variable(a->functions, v->name, x, bytes));
        assert_ok(sx_functions_read_variable(b->functions, v->name, y, bytes));
        if (memcmp(x, y, bytes) != 0) {
            fail_msg("variable \"%s\" has other bits", v->name);
        }
        sx_free(x);
        sx_free(y);
    }
}

static void test_train_function_train__learns(void **state)
{
    (void)state;
    training t;
    begin(&t, 1);
    const float first = loss_of(&t, 99);
    for (uint64_t seed = 1; seed < 40; seed++) {
        (void)loss_of(&t, seed);
    }
    const float last = loss_of(&t, 99);
    assert_true(isfinite(first) && first > 0.4F);
    assert_true(last < first / 4);
    assert_int_equal(steps_so_far(t.functions), 41);
    end(&t);
}

static void test_train_function_train__resumes_to_the_bit(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 4};
    training whole, part;
    begin(&whole, 1);
    assert_ok(train(whole.functions, 12));
    for (size_t i = 0; i < SX_COUNT(threads); i++) {
        begin(&part, threads[i]);
        assert_ok(train(part.functions, 5));
        assert_ok(sx_functions_save(part.library, part.functions, scratch("run/model.ckpt")));
        end(&part);
        begin(&part, threads[i]);
        assert_ok(sx_functions_restore(part.library, part.functions, scratch("run/model.ckpt")));
        assert_int_equal(steps_so_far(part.functions), 5);
        assert_ok(train(part.functions, 12));
        assert_same_bits(&whole, &part);
        end(&part);
    }
    end(&whole);
}

static void test_train_function_train__comes_back(void **state)
{
    (void)state;
    static const char *const sentences[] = {"a good day", "the film was awful", "", "fun"};
    sx_bytes text[4];
    training t;
    sx_servable *servable;
    sx_results *want;
    sx_outputs *got;
    char *dir;
    begin(&t, 1);
    assert_ok(train(t.functions, 8));
    assert_ok(sx_functions_export(t.library, t.functions,
                                  &(sx_signature_function){"serving_default", "classify"}, 1,
                                  scratch("models"), NULL, &dir));
    assert_ok(sx_servable_load(dir, NULL, &servable));
    for (int n = 1; n <= 4; n++) { /* of 3, 4, 0 and 1 words */
        for (int i = 0; i < n; i++) {
            text[i] = (sx_bytes){sentences[i], strlen(sentences[i])};
        }
        const sx_tensor in = {sx_type_of(SX_STRING, n), text};
        assert_ok(sx_functions_run(t.functions, "classify", &in, 1, 0, &want));
        assert_ok(sx_servable_run(servable, NULL, &in, &got));
        const sx_tensor *p = sx_results_find(want, "probabilities"),
                        *q = sx_outputs_find(got, "probabilities");
        assert_true(sx_type_equal(&p->type, &q->type) && p->type.dims[0] == n);
        for (int i = 0; i < n * CLASSES; i++) {
            assert_true(fabsf(((float *)p->data)[i] - ((float *)q->data)[i]) < 1e-6F);
        }
        sx_results_free(want);
        sx_outputs_free(got);
    }
    sx_servable_release(servable);
    sx_text_free(dir);
    end(&t);
}

/* A step whose loss is not finite changes nothing. */
static void test_train_function_train__keeps_variables_of_bad_steps(void **state)
{
    (void)state;
    training t, untouched;
    sx_results *results;
    sx_bytes text = {"good", 4};
    const int32_t label = 0;
    float table[BUCKETS][WIDTH];
    begin(&t, 1);
    begin(&untouched, 1);
    assert_ok(sx_functions_read_variable(t.functions, "embedding", table, sizeof(table)));
    for (int i = 0; i < BUCKETS; i++) {
        table[i][0] = NAN;
    }
    assert_ok(sx_functions_write_variable(t.functions, "embedding", table, sizeof(table)));
    assert_ok(sx_functions_write_variable(untouched.functions, "embedding", table, sizeof(table)));
    const sx_tensor batch[] = {{sx_type_of(SX_STRING, 1), &text},
                               {sx_type_of(SX_I32, 1), (void *)(uintptr_t)&label}};
    assert_ok(sx_functions_run(t.functions, "train", batch, 2, 0, &results));
    assert_int_equal(*(uint8_t *)sx_results_find(results, "ok")->data, 0);
    sx_results_free(results);
    assert_same_bits(&t, &untouched);
    end(&t);
    end(&untouched);
}

static void test_train_function_train__refuses(void **state)
{
    (void)state;
    static const struct {
        const char *model, *features;
        sx_optimizer optimizer;
        sx_code code;
        const char *message;
    } cases[] = {
        {"missing", NULL, {.kind = 0}, SX_NOT_FOUND, "no function \"missing\""},
        {"model", "missing", {.kind = 0}, SX_NOT_FOUND, "no function \"missing\""},
        {"classify",
         NULL,
         {.kind = 0},
         SX_INVALID_ARGUMENT,
         "is float32[?,2], expected a float32 scalar"},
        {"nothing", NULL, {.kind = 0}, SX_INVALID_ARGUMENT, "reads no weights"},
        {"model",
         "wrong",
         {.kind = 0},
         SX_INVALID_ARGUMENT,
         "takes \"ids\" as int64[?,?], but function \"wrong\" gives string[?,?]"},
        {"model", NULL, {.learning_rate = -1}, SX_INVALID_ARGUMENT, "learning_rate"},
        {"model", NULL, {.l2 = 1}, SX_UNIMPLEMENTED, "l2"},
    };
    sx_library *library;
    sx_builder *b;
    assert_ok(sx_library_create(&library));
    assert_ok(add_prepare(library));
    assert_ok(add_network(library));
    assert_ok(add_model(library));
    assert_ok(add_classify(library));
    assert_ok(sx_builder_create_function(&b));
    sx_output(b, "loss", sx_square(b, sx_input(b, "x", sx_scalar_type(SX_F32))));
    assert_ok(sx_library_add(library, "nothing", b));
    sx_builder_destroy(b);
    assert_ok(sx_builder_create_function(&b));
    sx_output(b, "ids", sx_input(b, "text", matrix(SX_STRING)));
    assert_ok(sx_library_add(library, "wrong", b));
    sx_builder_destroy(b);
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        assert_error(sx_library_add_training(library, "train", cases[i].model,
                                             .features = cases[i].features,
                                             .optimizer = cases[i].optimizer),
                     cases[i].code, cases[i].message);
    }
    sx_library_destroy(library);
}

static sx_status build_all(void *user)
{
    (void)user;
    sx_library *library = NULL;
    SX_TRY(sx_library_create(&library));
    sx_status status = build(library);
    sx_library_destroy(library);
    return status;
}

static sx_status save_and_restore(void *user)
{
    const training *t = user;
    SX_TRY(sx_functions_save(t->library, t->functions, scratch("saved/model.ckpt")));
    return sx_functions_restore(t->library, t->functions, scratch("saved/model.ckpt"));
}

static void test_train_function_train__torture(void **state)
{
    (void)state;
    training t;
    assert_true(sx_torture(build_all, NULL) > 100);
    begin(&t, 1);
    assert_true(sx_torture(save_and_restore, &t) > 20);
    end(&t);
}

static void test_train_function_train__restores_all_or_nothing(void **state)
{
    (void)state;
    training t, other;
    sx_library *small;
    sx_functions *few;
    sx_builder *b;
    begin(&t, 1);
    begin(&other, 1);
    assert_ok(sx_library_create(&small));
    assert_ok(sx_builder_create_function(&b));
    sx_output(b, "y", weight(b, "embedding", BUCKETS));
    assert_ok(sx_library_add(small, "f", b));
    sx_builder_destroy(b);
    assert_ok(sx_library_finish(small));
    assert_ok(sx_functions_open(small, NULL, &few));
    assert_ok(sx_functions_save(small, few, scratch("few")));
    assert_error(sx_functions_restore(t.library, t.functions, scratch("few")), SX_INVALID_ARGUMENT,
                 "is missing");
    assert_error(sx_functions_restore(t.library, t.functions, scratch("none")), SX_NOT_FOUND,
                 "none");
    assert_same_bits(&t, &other);
    sx_functions_close(few);
    sx_library_destroy(small);
    end(&t);
    end(&other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_function_train__learns),
    scratch_test(test_train_function_train__resumes_to_the_bit),
    scratch_test(test_train_function_train__comes_back),
    cmocka_unit_test(test_train_function_train__keeps_variables_of_bad_steps),
    cmocka_unit_test(test_train_function_train__refuses),
    scratch_test(test_train_function_train__torture),
    scratch_test(test_train_function_train__restores_all_or_nothing),
};
SX_TEST_MAIN(tests)
