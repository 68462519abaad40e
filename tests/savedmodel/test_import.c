/* Import and predictor: our own exports round trip, what cannot be imported is said at once, and
 * damaged models are errors. TensorFlow's opinion of the same: tests/interop/test_savedmodel.py. */
#include "io/scratch.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include <sextant/ops.h>

#include "graph/ir.h"
#include "savedmodel/export.h"
#include "savedmodel/predictor.h"

#include "imported.h"

static const float kernel[6] = {1, -1, 0, 2, 3, 0};

static sx_status give_kernel(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    memcpy(out, kernel, (size_t)sx_type_bytes(type));
    return SX_OK;
}

/* y = softmax(x·kernel), classid = argmax(y) */
static sx_graph *small_graph(void)
{
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "features", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_value w = sx_variable(
        b, &(sx_variable_spec){.name = "dense/kernel", .type = sx_type_of(SX_F32, 3, 2)});
    sx_value y = sx_softmax(b, sx_matmul(b, x, w));
    sx_output(b, "probabilities", y);
    sx_output(b, "classid", sx_argmax(b, y, .axis = 1));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    return graph;
}

static void export_small(const char *version)
{
    static const char *const names[] = {"no", "yes"};
    sx_graph *graph = small_graph();
    char *dir = NULL;
    const sx_export_request request = {.graph = graph,
                                       .read_variable = give_kernel,
                                       .class_names = names,
                                       .n_classes = 2,
                                       .base = scratch("m"),
                                       .version = version};
    assert_ok(sx_export_saved_model(&request, &dir));
    sx_free(dir);
    sx_graph_destroy(graph);
}

static void test_savedmodel_import__round_trip(void **state)
{
    (void)state;
    export_small("0007");
    sx_saved_model *model = NULL;
    imported import;
    assert_ok(sx_saved_model_open(scratch("m/0007"), &model));
    assert_ok(import_signature(model, "serving_default", &import));
    assert_non_null(import.graph);
    assert_int_equal(import.graph->n_args, 2);
    assert_true(sx_graph_find_arg(import.graph, "features") >= 0);
    assert_true(sx_graph_find_arg(import.graph, "dense/kernel") >= 0);
    assert_true(sx_graph_find_output(import.graph, "classid") >= 0);
    /* names of classes are looked up on the host, after the device */
    assert_int_equal(import.program->n_steps, 2);
    assert_true(import.program->steps[1].kind == SX_STEP_HOST &&
                import.program->steps[1].node->op == &sx_op_gather);
    imported_end(&import);
    assert_error(import_signature(model, "tensors", &import), SX_NOT_FOUND, "\"serving_default\"");
    sx_saved_model_close(model);
}

static void test_savedmodel_import__predicts_any_batch(void **state)
{
    (void)state;
    export_small(NULL);
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    assert_ok(sx_predictor_load(scratch("m/1"), NULL, &p));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &s));
    static float x[200 * 3];
    for (int i = 0; i < 200 * 3; i++) {
        x[i] = (float)((i * 37) % 11) - 5;
    }
    for (int64_t n = 0; n <= 200; n = n * 2 + 1) { /* 0, 1, 3, 7 … 127 */
        sx_arena arena;
        sx_tensor outputs[3];
        sx_arena_init(&arena, 0);
        const sx_tensor input = {sx_type_of(SX_F32, n, 3), x};
        assert_ok(sx_predictor_run(p, s, &input, NULL, &arena, outputs));
        assert_string_equal(s->outputs[0].key, "class");
        for (int64_t i = 0; i < n; i++) {
            const float *row = x + 3 * i;
            float no = row[0] + 3 * row[2], yes = -row[0] + 2 * row[1];
            const sx_bytes *name = (const sx_bytes *)outputs[0].data + i;
            assert_int_equal(((const int32_t *)outputs[1].data)[i], yes > no);
            assert_memory_equal(name->data, yes > no ? "yes" : "no", name->size);
            assert_float_equal(((const float *)outputs[2].data)[2 * i], 1 / (1 + expf(yes - no)),
                               1e-6);
        }
        assert_int_equal(outputs[2].type.dims[0], n);
        sx_arena_deinit(&arena);
    }
    sx_predictor_unload(p);
}

static void test_savedmodel_import__says_what_does_not_fit(void **state)
{
    (void)state;
    export_small(NULL);
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    sx_arena arena;
    sx_tensor outputs[3];
    float x[8] = {0};
    sx_arena_init(&arena, 0);
    assert_ok(sx_predictor_load(scratch("m/1"), NULL, &p));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &s));
    const sx_tensor wide = {sx_type_of(SX_F32, 2, 4), x}, whole = {sx_type_of(SX_I32, 2, 3), x};
    assert_error(sx_predictor_run(p, s, &wide, NULL, &arena, outputs), SX_INVALID_ARGUMENT,
                 "\"features\" is float32[2,4], expected float32[N,3]");
    assert_error(sx_predictor_run(p, s, &whole, NULL, &arena, outputs), SX_INVALID_ARGUMENT,
                 "int32");
    size_t n = 0;
    const sx_signature *all = sx_saved_model_signatures(sx_predictor_model(p), &n);
    const sx_signature other = all[0];
    const sx_tensor fits = {sx_type_of(SX_F32, 2, 3), x};
    assert_error(sx_predictor_run(p, &other, &fits, NULL, &arena, outputs), SX_INVALID_ARGUMENT,
                 "the signature does not belong to this model");
    assert_error(sx_predictor_run(p, all + n, &fits, NULL, &arena, outputs), SX_INVALID_ARGUMENT,
                 "the signature does not belong to this model");
    assert_ok(sx_predictor_run(p, all + n - 1, &fits, NULL, &arena, outputs));
    sx_predictor_unload(p);
    sx_arena_deinit(&arena);
}

/* Whoever loads a model must not hang on a named pipe in the place of one of its files. */
static void test_savedmodel_import__refuses_pipes_for_files(void **state)
{
    (void)state;
    static const char *const files[] = {"m/1/saved_model.pb", "m/1/variables/variables.index",
                                        "m/1/variables/variables.data-00000-of-00001"};
    export_small(NULL);
    alarm(20); /* opening a pipe waits for a writer, for ever */
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        sx_predictor *p = NULL;
        assert_int_equal(rename(scratch(files[i]), scratch("kept")), 0);
        assert_int_equal(mkfifo(scratch(files[i]), 0600), 0);
        assert_error(sx_predictor_load(scratch("m/1"), NULL, &p), SX_INVALID_ARGUMENT,
                     "expected a regular file, got a named pipe");
        assert_int_equal(rename(scratch("kept"), scratch(files[i])), 0);
    }
    alarm(0);
    sx_predictor *p = NULL;
    assert_ok(sx_predictor_load(scratch("m/1"), NULL, &p));
    sx_predictor_unload(p);
}

/* Variables that cannot be reached are not taken for a model without variables. */
static void test_savedmodel_import__says_why_variables_cannot_be_read(void **state)
{
    (void)state;
    sx_predictor *p = NULL;
    export_small(NULL);
    assert_int_equal(rename(scratch("m/1/variables"), scratch("away")), 0);
    assert_error(sx_predictor_load(scratch("m/1"), NULL, &p), SX_DATA_LOSS,
                 "the model has no variables/variables.index");
    assert_int_equal(symlink("variables", scratch("m/1/variables")), 0);
    sx_status status = sx_predictor_load(scratch("m/1"), NULL, &p);
    assert_non_null(
        strstr(sx_status_message(status), "/variables/variables.index: Too many levels"));
    sx_status_free(status);
    assert_int_equal(unlink(scratch("m/1/variables")), 0);
    write_file(scratch("m/1/variables"), "a file", 6);
    status = sx_predictor_load(scratch("m/1"), NULL, &p);
    assert_non_null(
        strstr(sx_status_message(status), "/variables/variables.index: Not a directory"));
    sx_status_free(status);
}

static void test_savedmodel_import__refuses_all_at_once(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 3);
    sx_saved_model_writer *m = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", SX_F32));
    sx_tf_value x =
        sx_tf_add(w, "Placeholder", "x", SX_TF_NO_IN,
                  sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &type)));
    sx_tf_value y = sx_tf_add(w, "ShardedFilename", "first", sx_tf_in(x), t);
    y = sx_tf_add(w, "Relu", NULL, sx_tf_in(y), t);
    y = sx_tf_add(w, "RestoreV2", "second", sx_tf_in(y), t);
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "x", x, &type);
    sx_saved_model_output(m, "y", y, &type);
    assert_ok(sx_saved_model_write(m, scratch("m/1"), NULL, NULL));
    sx_saved_model_writer_destroy(m);
    sx_predictor *p = NULL;
    assert_error(sx_predictor_load(scratch("m/1"), NULL, &p), SX_UNIMPLEMENTED,
                 "unsupported operators: ShardedFilename (1 node: \"first\"), RestoreV2 (1 node: "
                 "\"second\")");
}

/* Writes the model of one float input x [N,2] and the output `y`. */
static void write_unary(sx_saved_model_writer *m, const char *dir, sx_tf_value x, sx_tf_value y)
{
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 2);
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "x", x, &type);
    sx_saved_model_output(m, "y", y, &type);
    assert_ok(sx_saved_model_write(m, scratch(dir), NULL, NULL));
    sx_saved_model_writer_destroy(m);
}

static sx_tf_value placeholder(sx_tf_writer *w)
{
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 2);
    return sx_tf_add(
        w, "Placeholder", "x", SX_TF_NO_IN,
        sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &type)));
}

/* Output k of an IdentityN of twelve is (k + 1) x. */
static void test_savedmodel_import__takes_any_number_of_outputs(void **state)
{
    (void)state;
    enum { N = 12 };
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", SX_F32));
    sx_saved_model_writer *m = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    sx_tf_value x = placeholder(w), in[N], sum = x;
    int types[N];
    for (int i = 0; i < N; i++) {
        in[i] = sum;
        types[i] = SX_F32;
        sum = sx_tf_add(w, "AddV2", NULL, sx_tf_in(sum, x), t);
    }
    sx_tf_value all = sx_tf_add(w, "IdentityN", NULL, (sx_tf_values){in, N},
                                sx_tf_attrs(sx_tf_attr_types("T", N, types)));
    write_unary(
        m, "m/1", x,
        sx_tf_add(w, "Sub", NULL, sx_tf_in(sx_tf_output(all, 11), sx_tf_output(all, 8)), t));

    assert_false(sx_path_exists(scratch("m/1/assets"))); /* folders only for what is there */
    assert_false(sx_path_exists(scratch("m/1/variables")));
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    sx_arena arena;
    sx_tensor output;
    float values[2] = {1, -2};
    sx_arena_init(&arena, 0);
    assert_ok(sx_predictor_load(scratch("m/1"), NULL, &p));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &s));
    assert_ok(sx_predictor_run(p, s, &(sx_tensor){sx_type_of(SX_F32, 1, 2), values}, NULL, &arena,
                               &output));
    assert_true(((const float *)output.data)[0] == 3 && ((const float *)output.data)[1] == -6);
    sx_predictor_unload(p);
    sx_arena_deinit(&arena);
}

/* An output that exists in TensorFlow, but that we do not compute. */
static void test_savedmodel_import__names_an_output_that_it_lacks(void **state)
{
    (void)state;
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", SX_F32));
    static const int32_t k = 1;
    sx_saved_model_writer *m = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    sx_tf_value x = placeholder(w), relu = sx_tf_add(w, "Relu", "on", sx_tf_in(x), t);
    sx_tf_value one = sx_tf_const_i32(w, "axis", k);
    sx_tf_value top = sx_tf_add(w, "TensorListPopBack", "top", sx_tf_in(relu, one), t);
    write_unary(m, "m/1", x, sx_tf_add(w, "Neg", "less", sx_tf_in(sx_tf_output(top, 1)), t));
    sx_predictor *p = NULL;
    assert_error(sx_predictor_load(scratch("m/1"), NULL, &p), SX_UNIMPLEMENTED,
                 "unsupported operator: TensorListPopBack (1 node: \"top\"");

    assert_ok(sx_saved_model_writer_create(&m));
    w = sx_saved_model_nodes(m);
    x = placeholder(w);
    float four[4] = {1, 1, 1, 1};
    const sx_type image_type = sx_type_of(SX_F32, 1, 1, 1, 2), two = sx_type_of(SX_F32, 2);
    sx_tf_value image = sx_tf_const(w, "image", &(sx_tensor){image_type, four});
    sx_tf_value vector = sx_tf_const(w, "vector", &(sx_tensor){two, four});
    sx_tf_value norm = sx_tf_add(
        w, "FusedBatchNormGradV3", "norm", sx_tf_in(image, image, vector, vector, vector, vector),
        sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("U", SX_F32),
                    sx_tf_attr_bool("is_training", true)));
    sx_tf_value sum = sx_tf_add(w, "AddV2", "sum", sx_tf_in(x, sx_tf_output(norm, 3)), t);
    write_unary(m, "m/2", x, sum);
    assert_error(sx_predictor_load(scratch("m/2"), NULL, &p), SX_UNIMPLEMENTED,
                 "unsupported operator: AddV2 (1 node: \"sum\": \"norm:3\": output 3 of "
                 "FusedBatchNormGradV3 is not supported)");
}

static void test_savedmodel_import__says_which_axis_is_wrong(void **state)
{
    (void)state;
    sx_saved_model_writer *m = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    sx_tf_value x = placeholder(w);
    sx_tf_value axis = sx_tf_const_i32(w, "axis", 3);
    write_unary(m, "m/1", x,
                sx_tf_add(w, "ExpandDims", "wide", sx_tf_in(x, axis),
                          sx_tf_attrs(sx_tf_attr_type("T", SX_F32))));
    sx_predictor *p = NULL;
    assert_error(sx_predictor_load(scratch("m/1"), NULL, &p), SX_DATA_LOSS,
                 "ExpandDims \"wide\": axis 3 out of range for rank 2");
}

static void test_savedmodel_import__inlines_functions(void **state)
{
    (void)state;
    static const int f32[] = {SX_F32};
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 2);
    sx_saved_model_writer *m = NULL;
    assert_ok(sx_saved_model_writer_create(&m));
    sx_tf_writer *w = sx_saved_model_nodes(m);
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", SX_F32));
    sx_tf_writer *inner = sx_tf_function_begin(w, "double", 1, f32);
    sx_tf_value doubled = sx_tf_add(inner, "AddV2", NULL, sx_tf_in(sx_tf_arg(0), sx_tf_arg(0)), t);
    const char *twice = sx_tf_function_end(inner, sx_tf_in(doubled), f32);
    sx_tf_writer *outer = sx_tf_function_begin(w, "quadruple", 1, f32);
    const sx_tf_attr_list call =
        sx_tf_attrs(sx_tf_attr_types("Tin", 1, f32), sx_tf_attr_types("Tout", 1, f32),
                    sx_tf_attr_func("f", twice));
    sx_tf_value once = sx_tf_add(outer, "PartitionedCall", NULL, sx_tf_in(sx_tf_arg(0)), call);
    sx_tf_value again = sx_tf_add(outer, "PartitionedCall", NULL, sx_tf_in(once), call);
    const char *four = sx_tf_function_end(outer, sx_tf_in(again), f32);
    sx_tf_value x =
        sx_tf_add(w, "Placeholder", "x", SX_TF_NO_IN,
                  sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &type)));
    sx_tf_value y =
        sx_tf_add(w, "StatefulPartitionedCall", NULL, sx_tf_in(x),
                  sx_tf_attrs(sx_tf_attr_types("Tin", 1, f32), sx_tf_attr_types("Tout", 1, f32),
                              sx_tf_attr_func("f", four)));
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "x", x, &type);
    sx_saved_model_output(m, "y", y, &type);
    assert_ok(sx_saved_model_write(m, scratch("m/1"), NULL, NULL));
    sx_saved_model_writer_destroy(m);

    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    sx_arena arena;
    sx_tensor output;
    float values[2] = {1.5f, -2};
    sx_arena_init(&arena, 0);
    assert_ok(sx_predictor_load(scratch("m/1"), NULL, &p));
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), "serving_default", &s));
    assert_ok(sx_predictor_run(p, s, &(sx_tensor){sx_type_of(SX_F32, 1, 2), values}, NULL, &arena,
                               &output));
    assert_true(((const float *)output.data)[0] == 6 && ((const float *)output.data)[1] == -8);
    sx_predictor_unload(p);
    sx_arena_deinit(&arena);
}

/* Every cut, and every byte set to two other values: an error or a model, never a crash. */
static void test_savedmodel_import__survives_damage(void **state)
{
    (void)state;
    export_small(NULL);
    char path[700], *bytes = NULL;
    size_t size = 0, refused = 0;
    snprintf(path, sizeof(path), "%s/m/1/saved_model.pb", scratch_dir);
    assert_ok(sx_file_read(path, 1 << 20, &bytes, &size));
    int file = open(path, O_WRONLY | O_CLOEXEC); /* in place: writing it anew each time is slow */
    assert_true(file >= 0);
    for (size_t i = 0; i < 3 * size; i++) {
        size_t at = i / 3;
        char old = bytes[at], other = i % 3 == 0 ? (char)~old : (char)(old + (i % 3 == 1 ? 1 : -1));
        assert_int_equal(pwrite(file, &other, 1, (off_t)at), 1);
        sx_saved_model *model = NULL;
        imported import;
        sx_status status = sx_saved_model_open(scratch("m/1"), &model);
        if (status == SX_OK) {
            status = import_signature(model, "serving_default", &import);
            imported_end(&import);
            sx_saved_model_close(model);
        }
        refused += status != SX_OK;
        sx_status_free(status);
        assert_int_equal(pwrite(file, &old, 1, (off_t)at), 1);
    }
    assert_true(refused > size); /* most of it does matter */
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(ftruncate(file, (off_t)cut), 0);
        sx_saved_model *model = NULL;
        sx_status status = sx_saved_model_open(scratch("m/1"), &model);
        assert_int_not_equal(sx_status_code(status), SX_CODE_OK);
        sx_status_free(status);
    }
    close(file);
    sx_free(bytes);
}

static void test_savedmodel_import__export_refuses(void **state)
{
    (void)state;
    sx_graph *graph = small_graph();
    const sx_preprocess pre = {.height = 8, .width = 8, .channels = 3};
    char *dir = NULL;
    sx_export_request request = {
        .graph = graph, .read_variable = give_kernel, .base = scratch("m"), .preprocess = &pre};
    assert_error(sx_export_saved_model(&request, &dir), SX_INVALID_ARGUMENT,
                 "\"features\" is float32[N,3], but preprocessing produces float32[N,8,8,3]");
    request.preprocess = NULL;
    request.version = "latest";
    assert_error(sx_export_saved_model(&request, &dir), SX_INVALID_ARGUMENT, "latest");
    assert_false(sx_path_exists(scratch("m")));
    sx_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_import__round_trip),
    scratch_test(test_savedmodel_import__predicts_any_batch),
    scratch_test(test_savedmodel_import__says_what_does_not_fit),
    scratch_test(test_savedmodel_import__refuses_pipes_for_files),
    scratch_test(test_savedmodel_import__says_why_variables_cannot_be_read),
    scratch_test(test_savedmodel_import__refuses_all_at_once),
    scratch_test(test_savedmodel_import__takes_any_number_of_outputs),
    scratch_test(test_savedmodel_import__names_an_output_that_it_lacks),
    scratch_test(test_savedmodel_import__says_which_axis_is_wrong),
    scratch_test(test_savedmodel_import__inlines_functions),
    scratch_test(test_savedmodel_import__survives_damage),
    scratch_test(test_savedmodel_import__export_refuses),
};
SX_TEST_MAIN(tests)
