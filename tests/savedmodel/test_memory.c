/* Every allocation failing in turn, on the whole paths: save and read a checkpoint, export and
 * import a model. */
#include "io/scratch.h"
#include <sextant/infer.h>
#include "torture.h"

#include "graph/ir.h"
#include "io/path.h"
#include "graph/ops/attrs.h"
#include "checkpoint/bundle.h"
#include "checkpoint/checkpoint_state.h"
#include "savedmodel/export.h"
#include "checkpoint/object_graph.h"

#include "imported.h"

static sx_status fill(sx_bundle_writer *w)
{
    static const char *const names[] = {"a/kernel", "b"};
    float x[4] = {1, 2, 3, 4};
    sx_bytes words[2] = {{"one", 3}, {"two", 3}};
    SX_TRY(sx_bundle_add(w, "a/kernel", &(sx_tensor){sx_type_of(SX_F32, 4), x}));
    SX_TRY(sx_bundle_add(w, "b", &(sx_tensor){sx_type_of(SX_STRING, 2), words}));
    SX_TRY(sx_object_graph_add(w, names, 2, 1));
    return sx_bundle_writer_finish(w);
}

static sx_status save(void *user)
{
    sx_bundle_writer *w = NULL;
    SX_TRY(sx_bundle_writer_create(scratch("model.ckpt-1"), &w));
    sx_status status = fill(w);
    sx_bundle_writer_destroy(w);
    (void)user;
    return status != SX_OK ? status
                           : sx_checkpoint_register(scratch_dir, "model.ckpt-1", 1,
                                                    &(sx_checkpoint_retention){.keep_max = 2});
}

static sx_status load(void *user)
{
    float x[4];
    const sx_type type = sx_type_of(SX_F32, 4);
    sx_bundle *b = NULL;
    sx_arena arena;
    sx_tensor words;
    SX_TRY(sx_bundle_open(scratch("model.ckpt-1"), &b));
    sx_arena_init(&arena, 0);
    sx_status status = sx_bundle_read(b, "a/kernel", &type, x);
    status = status == SX_OK ? sx_bundle_read_strings(b, "b", &arena, &words) : status;
    status = status == SX_OK ? sx_bundle_verify(b) : status;
    sx_arena_deinit(&arena);
    sx_bundle_close(b);
    (void)user;
    return status;
}

static void test_savedmodel_memory__checkpoints(void **state)
{
    (void)state;
    assert_true(sx_torture(save, NULL) > 20);
    assert_true(sx_torture(load, NULL) > 10);
}

static sx_status give_ones(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    (void)name;
    for (int64_t i = 0; i < sx_type_elems(type); i++) {
        ((float *)out)[i] = 1;
    }
    return SX_OK;
}

static sx_graph *image_graph(void)
{
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "features", sx_type_of(SX_F32, SX_BATCH, 4, 4, 3));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 4, 4, 3, 2)});
    sx_value y = sx_build_op(b, conv2d, (&(sx_conv2d_attrs){.strides = {2, {1, 1}}}), x, w);
    y = sx_build_op(b, reshape, (&(sx_shape_attrs){.shape = {2, {SX_BATCH, 2}}}), y);
    sx_output(b, "probabilities", sx_build_op(b, softmax, NULL, y));
    sx_output(b, "classid",
              sx_build_op(b, argmax, (&(sx_argmax_attrs){.axis = 1, .dtype = SX_I32}), y));
    assert_ok(sx_builder_finish(b, &graph));
    sx_builder_destroy(b);
    return graph;
}

static sx_status export(void *user)
{
    static const char *const names[] = {"no", "yes"};
    const sx_preprocess pre = {.height = 4, .width = 4, .channels = 3, .scale = SX_0_1};
    const sx_export_request request = {.graph = user,
                                       .read_variable = give_ones,
                                       .preprocess = &pre,
                                       .class_names = names,
                                       .n_classes = 2,
                                       .base = scratch("m"),
                                       .version = "1"};
    char *dir = NULL;
    sx_status status = sx_export_saved_model(&request, &dir);
    if (status == SX_OK) { /* so that it can be done again */
        status = sx_dir_remove(dir);
    }
    sx_free(dir);
    return status;
}

static sx_status import(void *user)
{
    sx_saved_model *model = NULL;
    imported result;
    SX_TRY(sx_saved_model_open(user, &model));
    sx_status status = import_signature(model, "serving_default", &result);
    imported_end(&result);
    sx_saved_model_close(model);
    return status;
}

/* The constant that input `i` of a node is. */
/* Gives the variable, and the first time makes base/1, as another export that ends meanwhile. */
struct other_export {
    const char *dir;
    bool made;
};

static sx_status give_ones_late(void *user, const char *name, const sx_type *type, void *out)
{
    struct other_export *other = user;
    if (!other->made) {
        other->made = true;
        SX_TRY(sx_dir_create(other->dir));
    }
    return give_ones(NULL, name, type, out);
}

/* An export without a version takes the next number if the one that it chose is taken meanwhile;
 * a version that was asked for is not replaced. */
static void test_savedmodel_memory__exports_take_the_next_free_version(void **state)
{
    (void)state;
    sx_graph *graph = image_graph();
    const sx_preprocess pre = {.height = 4, .width = 4, .channels = 3, .scale = SX_0_1};
    struct other_export other = {.dir = scratch("v/1")};
    sx_export_request request = {.graph = graph,
                                 .read_variable = give_ones_late,
                                 .user = &other,
                                 .preprocess = &pre,
                                 .base = scratch("v")};
    char *dir = NULL;
    assert_ok(sx_export_saved_model(&request, &dir));
    assert_string_equal(strrchr(dir, '/'), "/2");
    sx_free(dir);
    other = (struct other_export){.dir = scratch("v/7")};
    request.version = "7";
    assert_error(sx_export_saved_model(&request, &dir), SX_ALREADY_EXISTS, "v/7 already exists");
    sx_graph_destroy(graph);
}

static const Tensorflow__TensorProto *constant_of(const Tensorflow__GraphDef *graph,
                                                  const Tensorflow__NodeDef *node, size_t i)
{
    assert_true(i < node->n_input);
    for (size_t k = 0; k < graph->n_node; k++) {
        if (strcmp(graph->node[k]->name, node->input[i]) == 0) {
            assert_string_equal(graph->node[k]->op, "Const");
            return sx_tf_node_attr(graph->node[k], "value")->tensor;
        }
    }
    fail_msg("%s: no node \"%s\"", node->name, node->input[i]);
    return NULL;
}

/* What TensorFlow asks of the nodes around an image model: the slice that counts the images has a
 * begin, an end and a stride for one dimension, each constant the bytes of its shape. */
static void test_savedmodel_memory__image_models_are_well_formed(void **state)
{
    (void)state;
    sx_graph *graph = image_graph();
    const sx_preprocess pre = {.height = 4, .width = 4, .channels = 3, .scale = SX_0_1};
    const sx_export_request request = {
        .graph = graph, .read_variable = give_ones, .preprocess = &pre, .base = scratch("w")};
    char *dir = NULL;
    sx_saved_model *model = NULL;
    assert_ok(sx_export_saved_model(&request, &dir));
    assert_ok(sx_saved_model_open(dir, &model));
    const Tensorflow__GraphDef *g = sx_saved_model_graph(model);
    int slices = 0;
    for (size_t k = 0; k < g->n_node; k++) {
        const Tensorflow__AttrValue *value = sx_tf_node_attr(g->node[k], "value");
        if (strcmp(g->node[k]->op, "Const") == 0) {
            int64_t elems = 1;
            for (size_t d = 0; d < value->tensor->tensor_shape->n_dim; d++) {
                elems *= value->tensor->tensor_shape->dim[d]->size;
            }
            if (value->tensor->dtype == TENSORFLOW__DATA_TYPE__DT_INT32) {
                assert_int_equal(value->tensor->tensor_content.len, elems * 4);
            }
        }
        for (size_t i = 1; strcmp(g->node[k]->op, "StridedSlice") == 0 && i < 4; i++) {
            const Tensorflow__TensorProto *at = constant_of(g, g->node[k], i);
            assert_int_equal(at->tensor_shape->n_dim, 1);
            assert_int_equal(at->tensor_shape->dim[0]->size, 1);
            assert_memory_equal(at->tensor_content.data, i == 1 ? "\0\0\0" : "\1\0\0", 4);
            slices++;
        }
    }
    assert_int_equal(slices, 3);
    sx_saved_model_close(model);
    sx_free(dir);
    sx_graph_destroy(graph);
}

static void test_savedmodel_memory__models(void **state)
{
    (void)state;
    static const char *const names[] = {"no", "yes"};
    sx_graph *graph = image_graph();
    assert_true(sx_torture(export, graph) > 20);
    assert_int_equal(count_entries(scratch("m")), 0);
    const sx_preprocess pre = {.height = 4, .width = 4, .channels = 3, .scale = SX_0_1};
    const sx_export_request request = {.graph = graph,
                                       .read_variable = give_ones,
                                       .preprocess = &pre,
                                       .class_names = names,
                                       .n_classes = 2,
                                       .base = scratch("n")};
    char *dir = NULL;
    assert_ok(sx_export_saved_model(&request, &dir));
    assert_true(sx_torture_some(import, dir) > 20);
    sx_free(dir);
    sx_graph_destroy(graph);
}

/* Loads the model, runs its signature of tensors, and lets go of everything. */
static sx_status serve(void *dir)
{
    static float image[2 * 4 * 4 * 3];
    sx_servable *s = NULL;
    sx_outputs *outputs = NULL;
    const sx_servable_options options = {.struct_size = sizeof(options), .threads = 1};
    const sx_tensor x = {sx_type_of(SX_F32, 2, 4, 4, 3), image};
    SX_TRY(sx_servable_load(dir, &options, &s));
    sx_status status = sx_servable_run(s, "tensors", &x, &outputs);
    sx_outputs_free(outputs);
    sx_servable_release(s);
    return status;
}

static void test_savedmodel_memory__servables(void **state)
{
    (void)state;
    sx_graph *graph = image_graph();
    const sx_preprocess pre = {.height = 4, .width = 4, .channels = 3, .scale = SX_0_1};
    const sx_export_request request = {
        .graph = graph, .read_variable = give_ones, .preprocess = &pre, .base = scratch("s")};
    char *dir = NULL;
    assert_ok(sx_export_saved_model(&request, &dir));
    assert_true(sx_torture_some(serve, dir) > 50);
    sx_free(dir);
    sx_graph_destroy(graph);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_memory__checkpoints),
    scratch_test(test_savedmodel_memory__exports_take_the_next_free_version),
    scratch_test(test_savedmodel_memory__image_models_are_well_formed),
    scratch_test(test_savedmodel_memory__models),
    scratch_test(test_savedmodel_memory__servables),
};
SX_TEST_MAIN(tests)
