/* What test_savedmodel.py runs:
 *   saved_model_tool dense DIR    softmax(x·w + b) with variables, class names in an asset and a
 * constant, and a second signature saved_model_tool images DIR RULE SIZE EXTRA CHANNELS SCALE
 *                                 encoded images through the preprocessing nodes; a second
 * signature takes the float images */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threefry.h"
#include "graph/op_def.h"
#include "graph/ops/preprocess_image.h"
#include "io/file.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"
#include "savedmodel/export.h"
#include "savedmodel/predictor.h"
#include "savedmodel/saved_model_write.h"

static sx_tf_value placeholder(sx_tf_writer *w, const char *name, const sx_type *type)
{
    return sx_tf_add(
        w, "Placeholder", name, SX_TF_NO_IN,
        sx_tf_attrs(sx_tf_attr_type("dtype", type->dtype), sx_tf_attr_shape("shape", type)));
}

static sx_tf_value unary(sx_tf_writer *w, const char *op, sx_tf_value x)
{
    return sx_tf_add(w, op, NULL, sx_tf_in(x), sx_tf_attrs(sx_tf_attr_type("T", SX_F32)));
}

static sx_tf_value class_of(sx_tf_writer *w, sx_tf_value classid)
{
    sx_bytes names[2] = {{"rose", 4}, {"tulip", 5}};
    sx_tf_value table =
        sx_tf_const(w, "class_names", &(sx_tensor){sx_type_of(SX_STRING, 2), names});
    return sx_tf_add(
        w, "GatherV2", "class", sx_tf_in(table, classid, sx_tf_const_i32(w, "axis", 0)),
        sx_tf_attrs(sx_tf_attr_type("Tparams", SX_STRING), sx_tf_attr_type("Tindices", SX_I64),
                    sx_tf_attr_type("Taxis", SX_I32)));
}

static sx_status give(void *user, const char *name, const sx_type *type, void *out)
{
    (void)user;
    static const float kernel[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {10, -10};
    const float *values = strcmp(name, "dense/kernel") == 0 ? kernel : bias;
    memcpy(out, values, (size_t)sx_type_bytes(type));
    return SX_OK;
}

static sx_status dense(sx_saved_model_writer *m, const char *dir)
{
    const sx_type x_type = sx_type_of(SX_F32, SX_BATCH, 3),
                  y_type = sx_type_of(SX_F32, SX_BATCH, 2);
    const sx_type kernel_type = sx_type_of(SX_F32, 3, 2), bias_type = sx_type_of(SX_F32, 2);
    const sx_type id_type = sx_type_of(SX_I64, SX_BATCH),
                  name_type = sx_type_of(SX_STRING, SX_BATCH);
    sx_tf_writer *w = sx_saved_model_nodes(m);
    sx_tf_value x = placeholder(w, "x", &x_type);
    sx_tf_value kernel = sx_saved_model_variable(m, "dense/kernel", &kernel_type, true);
    sx_tf_value bias = sx_saved_model_variable(m, "dense/bias", &bias_type, false);
    const sx_tf_attr t[] = {sx_tf_attr_type("T", SX_F32)};
    sx_tf_value y = sx_tf_add(w, "MatMul", NULL, sx_tf_in(x, kernel), (sx_tf_attr_list){t, 1});
    y = sx_tf_add(w, "BiasAdd", NULL, sx_tf_in(y, bias), (sx_tf_attr_list){t, 1});
    sx_tf_value p = unary(w, "Softmax", y);
    sx_tf_value id = sx_tf_add(w, "ArgMax", "classid", sx_tf_in(p, sx_tf_const_i32(w, "axis", -1)),
                               sx_tf_attrs(t[0], sx_tf_attr_type("Tidx", SX_I32)));
    (void)sx_saved_model_asset(m, "classes.txt", (sx_bytes){"rose\ntulip\n", 11});
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "x", x, &x_type);
    sx_saved_model_output(m, "probabilities", p, &y_type);
    sx_saved_model_output(m, "classid", id, &id_type);
    sx_saved_model_output(m, "class", class_of(w, id), &name_type);
    sx_saved_model_signature(m, "logits");
    sx_saved_model_input(m, "x", x, &x_type);
    sx_saved_model_output(m, "logits", y, &y_type);
    return sx_saved_model_write(m, dir, give, NULL);
}

static sx_status images(sx_saved_model_writer *m, char **args)
{
    sx_preprocess pre = {
        .height = atoi(args[2]), .width = atoi(args[2]) + 3, .channels = atoi(args[4])};
    pre.extra_height = pre.extra_width = atoi(args[3]);
    pre.crop = pre.extra_height > 0 ? SX_CROP_RANDOM : SX_CROP_NONE;
    pre.scale = (sx_scale)atoi(args[5]);
    for (int c = 0; c < 3; c++) {
        pre.mean[c] = 0.4f + 0.05f * (float)c;
        pre.std[c] = 0.2f + 0.01f * (float)c;
    }
    if (!sx_resize_rule_parse(args[1], &pre.resize)) {
        return sx_error(SX_INVALID_ARGUMENT, "no resize rule %s", args[1]);
    }
    SX_TRY(sx_preprocess_check(&pre));
    const sx_type bytes_type = sx_type_of(SX_STRING, SX_BATCH);
    const sx_type image_type = sx_type_of(SX_F32, SX_BATCH, pre.height, pre.width, pre.channels);
    sx_tf_writer *w = sx_saved_model_nodes(m);
    sx_tf_value bytes = placeholder(w, "image_bytes", &bytes_type);
    const sx_preprocess_image_attrs attrs = sx_preprocess_image_attrs_of(&pre);
    sx_tf_value decoded = {-1, 0};
    sx_tf_scope_push(w, "preprocess");
    sx_op_preprocess_image.to_tf(w, &(sx_tf_op){.attrs = &attrs,
                                                .name = "preprocess",
                                                .in = &bytes,
                                                .out = &decoded,
                                                .in_types = &bytes_type,
                                                .out_types = &image_type,
                                                .n_in = 1,
                                                .n_out = 1});
    sx_tf_scope_pop(w);
    sx_tf_value image = sx_tf_add(
        w, "PlaceholderWithDefault", "image", sx_tf_in(decoded),
        sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_shape("shape", &image_type)));
    sx_tf_value y = unary(w, "Identity", image);
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_input(m, "image_bytes", bytes, &bytes_type);
    sx_saved_model_output(m, "y", y, &image_type);
    sx_saved_model_signature(m, "tensors");
    sx_saved_model_input(m, "image", image, &image_type);
    sx_saved_model_output(m, "y", y, &image_type);
    return sx_saved_model_write(m, args[0], NULL, NULL);
}

/* Weights that leave no term of the model idle: small and random, variances positive. */
static sx_status fresh(void *user, const char *name, const sx_type *type, void *out)
{
    sx_session *session = user;
    int i = sx_session_find_variable(session, name);
    SX_TRY(sx_session_read_variable(session, i, out));
    bool variance = strstr(name, "variance") != NULL || strstr(name, "gamma") != NULL;
    for (int64_t k = 0; type->rank == 1 && k < sx_type_elems(type); k++) {
        sx_u32x2 bits = sx_threefry2x32((sx_u32x2){1, (uint32_t)i}, (sx_u32x2){0, (uint32_t)k});
        ((float *)out)[k] =
            variance ? 0.5f + sx_uniform_f32(bits.a) : 0.2f * (sx_uniform_f32(bits.a) - 0.5f);
    }
    return SX_OK;
}

static sx_status export_graph(const sx_graph *graph, char **args, int channels)
{
    static const char *const names[] = {"daisy", "dandelion", "roses", "sunflowers", "tulips",
                                        "six",   "seven",     "eight", "nine",       "ten"};
    const sx_preprocess pre = {.height = atoi(args[3]),
                               .width = atoi(args[4]),
                               .channels = channels,
                               .scale = SX_MINUS1_1};
    sx_session *session = NULL;
    sx_program *program = NULL;
    char *dir = NULL;
    SX_TRY(sx_session_create(&(sx_session_options){.seed = 3}, &session));
    sx_status status = sx_session_add_program(session, graph, &program);
    const sx_export_request request = {.graph = graph,
                                       .read_variable = fresh,
                                       .user = session,
                                       .preprocess = channels > 0 ? &pre : NULL,
                                       .class_names = names,
                                       .n_classes = atoi(args[2]),
                                       .base = args[0]};
    status = status == SX_OK ? sx_export_saved_model(&request, &dir) : status;
    if (status == SX_OK) {
        printf("%s\n", dir);
    }
    sx_free(dir);
    sx_session_destroy(session);
    return status;
}

static sx_status export_model(char **args)
{
    sx_model_def def = *sx_zoo_find(args[1]);
    int channels = atoi(args[5]);
    if (channels > 0) {
        def.image[0] = atoi(args[3]);
        def.image[1] = atoi(args[4]);
        def.image[2] = channels;
    } else {
        def.image[0] = 0;
        def.features = atoi(args[3]);
    }
    sx_params *params = NULL;
    sx_graph *graph = NULL;
    SX_TRY(sx_params_create(&params));
    sx_status status = sx_params_set(params, "num_classes", args[2]);
    const sx_program_request request = {.def = &def, .params = params, .mode = SX_PREDICT};
    status = status == SX_OK ? sx_build_program(&request, &graph) : status;
    status = status == SX_OK ? export_graph(graph, args, channels) : status;
    sx_graph_destroy(graph);
    sx_params_destroy(params);
    return status;
}

static sx_status load_inputs(const sx_signature_tensor *want, char **files, int n, sx_arena *arena,
                             sx_tensor *out)
{
    sx_bytes *views = sx_arena_array(arena, n, sx_bytes);
    for (int i = 0; i < n; i++) {
        char *data = NULL;
        size_t size = 0;
        SX_TRY(sx_file_read(files[i], 1 << 28, &data, &size));
        views[i] = (sx_bytes){sx_arena_memdup(arena, data, size), size};
        sx_free(data);
    }
    if (want->type.dtype == SX_STRING) {
        *out = (sx_tensor){sx_type_of(SX_STRING, n), views};
        return SX_OK;
    }
    sx_type one = sx_type_with_batch(want->type, 1);
    *out = (sx_tensor){sx_type_with_batch(want->type, (int64_t)views[0].size / sx_type_bytes(&one)),
                       (void *)(uintptr_t)views[0].data};
    return SX_OK;
}

static void print_output(const char *key, const sx_tensor *t)
{
    printf("%s", key);
    for (int64_t i = 0; i < sx_type_elems(&t->type); i++) {
        if (t->type.dtype == SX_STRING) {
            const sx_bytes *s = (const sx_bytes *)t->data + i;
            printf(" %.*s", (int)s->size, (const char *)s->data);
        } else if (t->type.dtype == SX_F32) {
            printf(" %.9g", (double)((const float *)t->data)[i]);
        } else if (t->type.dtype == SX_I64) {
            printf(" %lld", (long long)((const int64_t *)t->data)[i]);
        } else {
            printf(" %d", ((const int32_t *)t->data)[i]);
        }
    }
    printf("\n");
}

static sx_status predict(char **args, int n_files)
{
    sx_predictor *p = NULL;
    const sx_signature *s = NULL;
    sx_arena arena;
    sx_tensor input, outputs[8];
    SX_TRY(sx_predictor_load(args[0], NULL, &p));
    sx_arena_init(&arena, 0);
    sx_status status = sx_saved_model_find_signature(sx_predictor_model(p), args[1], &s);
    status =
        status == SX_OK ? load_inputs(&s->inputs[0], args + 2, n_files, &arena, &input) : status;
    status = status == SX_OK ? sx_predictor_run(p, s, &input, NULL, &arena, outputs) : status;
    for (size_t i = 0; status == SX_OK && i < s->n_outputs; i++) {
        print_output(s->outputs[i].key, &outputs[i]);
    }
    sx_arena_deinit(&arena);
    sx_predictor_unload(p);
    return status;
}

int main(int argc, char **argv)
{
    sx_saved_model_writer *m = NULL;
    sx_status status = sx_saved_model_writer_create(&m);
    if (status == SX_OK && argc == 3 && strcmp(argv[1], "dense") == 0) {
        status = dense(m, argv[2]);
    } else if (status == SX_OK && argc == 8 && strcmp(argv[1], "images") == 0) {
        status = images(m, argv + 2);
    } else if (status == SX_OK && argc == 8 && strcmp(argv[1], "export") == 0) {
        status = export_model(argv + 2);
    } else if (status == SX_OK && argc >= 5 && strcmp(argv[1], "predict") == 0) {
        status = predict(argv + 2, argc - 4);
    } else if (status == SX_OK) {
        status = sx_error(SX_INVALID_ARGUMENT, "usage: see the head of saved_model_tool.c");
    }
    sx_saved_model_writer_destroy(m);
    if (status != SX_OK) {
        fprintf(stderr, "%s\n", sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
