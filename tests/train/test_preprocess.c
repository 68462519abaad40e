/* Preprocessing of a model's own: what it computes, that runs keep it, what it may not do. */
#include "named.h"

#include "graph/library.h"

#include <sextant/function.h>
#include <sextant/ops.h>

static uint64_t train_for(sx_dataset *data, const char *dir, int64_t batch, int64_t steps)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.train_batch_size = batch;
    config.no_shuffle = true;
    sx_trainer *t = open_prepared(&config);
    const sx_fit_request request = {.train = data, .max_steps = steps};
    assert_ok(sx_trainer_fit(t, &request));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

/* Outputs of the same types, other values. */
static void named_prepare_f32(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value age = sx_feature(b, in, "age");
    sx_value gain = sx_cast(b, sx_feature(b, in, "gain"), SX_F32);
    sx_output(b, "age", sx_mul(b, age, sx_constant_f32(b, sx_param_float(p, "mean", 40))));
    sx_output(b, "old", sx_feature(b, in, "city"));
    sx_output(b, "city", sx_one_hot(b, sx_feature(b, in, "city"), .depth = 4));
    sx_output(b, "gain", gain);
}

/* Batches that hold the features already are the same as elements that go through the function. */
static void test_train_preprocess__computes_what_the_function_says(void **state)
{
    (void)state;
    sx_dataset *raw = named_rows(0, NAMED_ROWS, false), *ready = named_rows(0, NAMED_ROWS, true);
    assert_ok(sx_dataset_batch(&ready, .size = 8));
    assert_ok(sx_dataset_repeat(&ready, 0));
    assert_true(train_for(raw, NULL, 8, 20) == train_for(ready, NULL, 8, 20));
    sx_dataset_release(raw);
    sx_dataset_release(ready);
}

static void test_train_preprocess__is_part_of_the_run(void **state)
{
    (void)state;
    char *dir = scratch("run"), path[700];
    sx_dataset *data = named_rows(0, NAMED_ROWS, false);
    uint64_t expected = train_for(data, NULL, 8, 20);
    (void)train_for(data, dir, 8, 9);
    assert_true(train_for(data, dir, 8, 20) == expected);

    /* without the model; a damaged graph is read from its copy */
    sx_run_config config = tiny_config(dir, NULL);
    sx_eval_result first, second;
    sx_trainer *t = NULL;
    for (int i = 0; i < 2; i++) {
        config.eval_batch_size = i == 0 ? 16 : 7;
        assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
        const sx_run_info *info = sx_trainer_info(t);
        assert_int_equal(info->declared.n, 5);
        assert_int_equal(info->inputs.n, 6);
        assert_string_equal(info->inputs.items[1].program_name, "features/old");
        assert_ok(sx_trainer_restore(t, NULL));
        assert_ok(sx_trainer_evaluate(t, data, 0, i == 0 ? &first : &second));
        sx_trainer_destroy(t);
        snprintf(path, sizeof(path), "%s/graphs/preprocess.graph", dir);
        write_file(path, "sextant-graph 1\n", 16);
    }
    assert_true(first.loss == second.loss);

    /* and without both, it is named */
    snprintf(path, sizeof(path), "%s/.backup/preprocess.graph", dir);
    write_file(path, "x", 1);
    assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t), SX_DATA_LOSS,
                 "preprocess.graph");
    sx_dataset_release(data);
}

/* ---- Strings to classes ---- */

static void from_texts(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char *const words[] = {"red", "green", "blue"}, *const kinds[] = {"c", "a", "b"};
    (void)p;
    sx_value parts = sx_string_split_padded(b, sx_feature(b, in, "text"), .length = 2);
    sx_output(b, "ids",
              sx_vocabulary_lookup(b, parts, .words = words, .n_words = 3, .first_id = 1));
    sx_value kind = sx_vocabulary_lookup(b, sx_label(b, in, "kind"), .words = kinds, .n_words = 3,
                                         .default_value = 7);
    sx_output(b, "kind", sx_cast(b, kind, SX_I32));
}

static sx_spec ids_net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_one_hot(b, sx_feature(b, in, "ids"), .depth = 4);
    sx_value logits = sx_dense(b, sx_reshape(b, x, SX_BATCH, 8), 3);
    return sx_classifier_spec(b, logits, sx_label(b, in, "kind"),
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

#define TEXT_INPUTS .inputs = {{.name = "text", SX_STRING}}, .labels = {{.name = "kind", SX_STRING}}

/* Rows as they come, or as preprocessing gives them. */
static sx_dataset *text_rows(bool after, bool odd)
{
    enum { ROWS = 24 };
    static const char *const texts[] = {"red green blue", "", " blue  red ", "green pink"},
                             *const kinds[] = {"a", "b", "c"};
    static const int64_t wanted[][2] = {{1, 2}, {0, 0}, {3, 1}, {2, 0}};
    static const int32_t numbers[] = {1, 2, 0};
    static sx_bytes text[ROWS], kind[ROWS];
    static int64_t ids[ROWS][2];
    static int32_t label[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const char *t = texts[i * 7 % 4], *k = odd && i == 5 ? "d" : kinds[i % 3];
        text[i] = (sx_bytes){t, strlen(t)};
        kind[i] = (sx_bytes){k, strlen(k)};
        memcpy(ids[i], wanted[i * 7 % 4], sizeof(ids[i]));
        label[i] = numbers[i % 3];
    }
    const char *raw[] = {"kind", "text"}, *ready[] = {"ids", "kind"};
    const sx_tensor raw_tensors[] = {{sx_type_of(SX_STRING, ROWS), kind},
                                     {sx_type_of(SX_STRING, ROWS), text}};
    const sx_tensor ready_tensors[] = {{sx_type_of(SX_I64, ROWS, 2), ids},
                                       {sx_type_of(SX_I32, ROWS), label}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, after ? ready : raw, after ? ready_tensors : raw_tensors,
                                      NULL, NULL, &data));
    return data;
}

static sx_status train_texts(sx_dataset *data, const char *dir, uint64_t *out)
{
    static const sx_model_def def =
        SX_MODEL_DEF(.name = "texts", .build = ids_net, .preprocess = from_texts, TEXT_INPUTS);
    sx_run_config config = tiny_config(dir, NULL);
    config.no_shuffle = true;
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &def}, &t));
    sx_status status = sx_trainer_fit(t, &(sx_fit_request){.train = data, .max_steps = 9});
    *out = hash_variables(t);
    sx_trainer_destroy(t);
    return status;
}

/* Strings are split and looked up, labels by their names, as if the data had the numbers. */
static void test_train_preprocess__looks_up_words_and_labels(void **state)
{
    (void)state;
    char *dir = scratch("texts");
    uint64_t from_raw = 0, from_ready = 1;
    sx_dataset *raw = text_rows(false, false), *ready = text_rows(true, false);
    assert_ok(train_texts(raw, dir, &from_raw));
    assert_ok(sx_dataset_batch(&ready, .size = 8));
    assert_ok(sx_dataset_repeat(&ready, 0));
    assert_ok(train_texts(ready, NULL, &from_ready));
    assert_true(from_raw == from_ready);
    sx_dataset_release(ready);

    /* the run without the model: labels are of the data's kind, the program's of its own */
    sx_run_config config = tiny_config(dir, NULL);
    sx_eval_result result;
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
    const sx_run_info *info = sx_trainer_info(t);
    assert_int_equal(info->declared.items[1].type.dtype, SX_STRING);
    assert_int_equal(info->inputs.items[1].type.dtype, SX_I32);
    assert_ok(sx_trainer_restore(t, NULL));
    assert_ok(sx_trainer_evaluate(t, raw, 0, &result));
    assert_int_equal(result.examples, 24);
    sx_trainer_destroy(t);
    sx_dataset_release(raw);

    sx_dataset *odd = text_rows(false, true);
    assert_error(train_texts(odd, NULL, &from_raw), SX_INVALID_ARGUMENT, "7");
    sx_dataset_release(odd);
}

static void leaks(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    from_texts(b, in, p);
    sx_output(b, "answer",
              sx_cast(b, sx_string_to_hash_bucket(b, sx_label(b, in, "kind"), 9), SX_I32));
}

static void forgets_the_label(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "ids", sx_string_to_hash_bucket(b, sx_feature(b, in, "text"), 4));
}

static void has_no_file(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "ids", sx_vocabulary_lookup(b, sx_feature(b, in, "text"), .file = "no/words.txt"));
}

static void has_a_word_twice(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char *const words[] = {"x", "yes", "x"};
    (void)p;
    sx_output(b, "ids",
              sx_vocabulary_lookup(b, sx_feature(b, in, "text"), .words = words, .n_words = 3));
}

static void has_an_empty_word(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char *const words[] = {"x", ""};
    (void)p;
    sx_output(b, "ids",
              sx_vocabulary_lookup(b, sx_feature(b, in, "text"), .words = words, .n_words = 2));
}

static void has_no_words(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "ids", sx_vocabulary_lookup(b, sx_feature(b, in, "text")));
}

/* The words of a text: data decide how many. */
static void splits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char text[] =
        "sextant-library 2\nfunction \"words\"\n  input %1 string[N] \"text\"\n"
        "  %2 = constant() {value=tensor(string[] \"\")} string[] \"spaces\"\n"
        "  %3, %4, %5 = string_split_v2(%1, %2) {maxsplit=-1} int64[?,2], string[?], int64[2] "
        "\"split\"\n"
        "  %6 = string_to_hash_bucket(%4) {num_buckets=10} int64[?] \"ids\"\n"
        "  output \"ids\" %6\nend\n";
    sx_library *library = NULL;
    sx_value in_text = sx_feature(b, in, "text"), ids = SX_NO_VALUE;
    (void)p;
    assert_ok(sx_library_parse(text, strlen(text), &library));
    sx_call_function(b, library, "words", &in_text, 1, &ids, 1);
    sx_output(b, "ids", ids);
    sx_library_destroy(library);
}

static void gives_an_unknown_size(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    const sx_type types[] = {sx_type_of(SX_I64, SX_UNKNOWN_DIM, 1)};
    sx_value x = sx_cast(b, sx_string_to_hash_bucket(b, sx_feature(b, in, "text"), 2), SX_F32);
    (void)p;
    sx_output(b, "ids", sx_function_node(b, "where", NULL, &x, 1, NULL, 0, types, 1));
}

static void test_train_preprocess__refuses_labels_and_vocabularies(void **state)
{
    (void)state;
    static const struct {
        sx_preprocess_fn *fn;
        const char *message;
        sx_code code;
    } rows[] = {
        {leaks, "the feature \"answer\" is computed from a label", SX_INVALID_ARGUMENT},
        {forgets_the_label, "label \"kind\" is a string", SX_INVALID_ARGUMENT},
        {has_no_file, "no/words.txt", SX_NOT_FOUND},
        {has_a_word_twice, "the vocabulary has \"x\" twice", SX_INVALID_ARGUMENT},
        {has_an_empty_word, "line 2 of the vocabulary is empty", SX_INVALID_ARGUMENT},
        {has_no_words, "a vocabulary is a .file, or .words and .n_words", SX_INVALID_ARGUMENT},
        {splits, "known size in .preprocess, such as sx_string_split_padded()", SX_UNIMPLEMENTED},
        {gives_an_unknown_size,
         "where gives int64[?,1]; in the graph of a model or of its .preprocess",
         SX_INVALID_ARGUMENT},
        {NULL, "input \"text\" is a string", SX_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_model_def def =
            SX_MODEL_DEF(.name = "m", .build = ids_net, .preprocess = rows[i].fn, TEXT_INPUTS);
        sx_run_config config = tiny_config(NULL, NULL);
        sx_trainer *t = NULL;
        assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &def}, &t),
                     rows[i].code, rows[i].message);
    }
}

/* ---- What it may not do ---- */

static void none(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)b, (void)in, (void)p;
}

static void couples(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_feature(b, in, "age");
    sx_output(b, "age", sx_sub(b, age, sx_reduce_max(b, age, .axes = SX_AXES(0))));
}

static void loses_the_batch(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)in, (void)p;
    sx_output(b, "age", sx_constant_f32(b, 1));
}

static void learns(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_output(b, "age", sx_dense(b, age, 2));
}

static void unknown(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "age", sx_feature(b, in, "agee"));
}

static void twice(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "kind", sx_feature(b, in, "age"));
}

static void wrong_number(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value scale = sx_constant_f32(b, sx_param_float(p, "scale", 1));
    sx_output(b, "age", sx_mul(b, sx_feature(b, in, "age"), scale));
}

static void test_train_preprocess__refuses_what_one_example_does_not_decide(void **state)
{
    (void)state;
    static const struct {
        sx_preprocess_fn *fn;
        const char *message;
        sx_code code;
    } rows[] = {
        {none, "model \"m\": preprocessing: 0 outputs, expected 1 to 64", SX_INVALID_ARGUMENT},
        {couples, "reduce_max \"reduce_max\" depends on all examples of a batch",
         SX_INVALID_ARGUMENT},
        {loses_the_batch,
         "feature \"age\" is float32[]; expected numbers for each example, [N, ...]",
         SX_INVALID_ARGUMENT},
        {learns, "preprocessing has no variables: \"dense/kernel\"", SX_INVALID_ARGUMENT},
        {unknown, "the model has no feature \"agee\"", SX_NOT_FOUND},
        {twice, "label \"kind\": the name is used twice", SX_INVALID_ARGUMENT},
        {wrong_number, "scale", SX_INVALID_ARGUMENT},
    };
    sx_params *params = NULL;
    assert_ok(sx_params_create(&params));
    assert_ok(sx_params_set(params, "scale", "x"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_model_def def =
            SX_MODEL_DEF(.name = "m", .build = named_net, .preprocess = rows[i].fn, NAMED_INPUTS);
        sx_run_config config = tiny_config(NULL, NULL);
        sx_trainer *t = NULL;
        assert_error(
            sx_trainer_create(
                &(sx_trainer_options){.config = &config,
                                      .def = &def,
                                      .params = rows[i].fn == wrong_number ? params : NULL},
                &t),
            rows[i].code, rows[i].message);
    }
    sx_params_destroy(params);
    const sx_model_def bare = SX_MODEL_DEF(.name = "m", .build = named_net,
                                           .preprocess = named_prepare, .features = 3),
                       strings = SX_MODEL_DEF(.name = "m", .build = named_net,
                                              .inputs = {{.name = "city", SX_STRING}});
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = NULL;
    assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &bare}, &t),
                 SX_INVALID_ARGUMENT, "sets .preprocess but not .inputs");
    assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config, .def = &strings}, &t),
                 SX_INVALID_ARGUMENT, "make numbers of it in a function, .preprocess");
}

/* A run keeps its preprocessing, and says so if the model has another one now. */
static void test_train_preprocess__of_a_run_is_kept(void **state)
{
    (void)state;
    char *dir = scratch("run");
    sx_dataset *data = named_rows(0, NAMED_ROWS, false);
    uint64_t expected = train_for(data, NULL, 8, 20);
    (void)train_for(data, dir, 8, 3);
    sx_model_def other = named_model;
    other.preprocess = named_prepare_f32;
    for (int i = 0; i < 2; i++) {
        seen s = {0};
        sx_run_config config = tiny_config(dir, &s);
        sx_params *params = NULL;
        sx_trainer *t = NULL;
        config.no_shuffle = true;
        assert_ok(sx_params_create(&params));
        if (i == 0) {
            assert_ok(sx_params_set(params, "mean", "39"));
        }
        assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config,
                                                          .def = i == 0 ? &named_model : &other,
                                                          .params = params},
                                    &t));
        const sx_fit_request request = {.train = data, .max_steps = i == 0 ? 9 : 20};
        assert_ok(sx_trainer_fit(t, &request));
        assert_non_null(strstr(s.warning, "a different preprocessing function"));
        assert_true(i == 0 || hash_variables(t) == expected);
        sx_trainer_destroy(t);
        sx_params_destroy(params);
    }
    sx_dataset_release(data);
}

static void test_train_preprocess__data_that_do_not_fit_are_named(void **state)
{
    (void)state;
    const char *names[] = {"age", "kind"};
    float ages[2] = {1, 2};
    int32_t kinds[2] = {0, 1};
    double wide[2] = {1, 2};
    const struct {
        sx_tensor age;
        const char *message;
    } rows[] = {
        {{sx_type_of(SX_F32, 2), ages},
         "the data has no component \"city\", a feature of model \"named\""},
        {{sx_type_of(SX_F64, 2), wide},
         "component \"age\" of the data is float64[], but the preprocessing of model \"named\" "
         "takes "
         "float32[N] of a batch"},
    };
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_prepared(&config);
    for (int i = 0; i < 2; i++) {
        sx_dataset *data = NULL;
        const sx_tensor tensors[] = {rows[i].age, {sx_type_of(SX_I32, 2), kinds}};
        assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
        const sx_fit_request request = {.train = data, .max_steps = 1};
        assert_error(sx_trainer_fit(t, &request), SX_INVALID_ARGUMENT, rows[i].message);
        sx_dataset_release(data);
    }
    sx_trainer_destroy(t);
}

static const struct CMUnitTest tests[] = {
    in_memory_test(test_train_preprocess__computes_what_the_function_says),
    in_memory_test(test_train_preprocess__is_part_of_the_run),
    in_memory_test(test_train_preprocess__refuses_what_one_example_does_not_decide),
    in_memory_test(test_train_preprocess__of_a_run_is_kept),
    in_memory_test(test_train_preprocess__data_that_do_not_fit_are_named),
    scratch_test(test_train_preprocess__looks_up_words_and_labels),
    scratch_test(test_train_preprocess__refuses_labels_and_vocabularies),
};
SX_TEST_MAIN(tests)
