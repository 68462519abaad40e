/* SavedModels written as text in a test, imported as libraries of functions, and run on the host's
 * kernels and on the cpu backend. */
#ifndef SX_TESTS_SAVEDMODEL_FUNCTION_MODEL_H
#define SX_TESTS_SAVEDMODEL_FUNCTION_MODEL_H

#include "proto/pack_text.h"

#include "proto/saved_model.pb-c.h"
#include "runtime/function_run.h"
#include "savedmodel/import_library.h"

static const char *const devices[] = {"host", "cpu"};

#define ATTR(key, value) "attr { key: '" key "' value { " value " } } "
#define FUNC(key, name)  ATTR(key, "func { name: '" name "' }")
#define BODY(name, op, inputs, attrs) \
    "node_def { name: '" name "' op: '" op "' input: [" inputs "] " attrs " }\n"
#define NODE(name, op, inputs, attrs) \
    "node { name: '" name "' op: '" op "' input: [" inputs "] " attrs " }\n"
#define CONST_ATTRS(type, dims, values) \
    ATTR("value", "tensor { dtype: " type " tensor_shape { " dims " } " values " }")
#define INT(value)            CONST_ATTRS("DT_INT32", "", "int_val: " value)
#define INTS(n, list)         CONST_ATTRS("DT_INT32", "dim { size: " n " }", "int_val: [" list "]")
#define FLOAT(value)          CONST_ATTRS("DT_FLOAT", "", "float_val: " value)
#define ARG(kind, name, type) kind "_arg { name: '" name "' type: " type " }"
#define IN(name)              ARG("input", name, "DT_FLOAT")
#define OUT(name)             ARG("output", name, "DT_FLOAT")
#define ANY                   "dim { size: -1 } "
#define DIM(n)                "dim { size: " n " } "
#define RET(name, ref)        "ret { key: '" name "' value: '" ref "' }"
#define FUNCTION(name, args, body, ends) \
    "function { signature { name: '" name "' " args " } " body ends " }\n"

/* A model of input x, float32 of the given dimensions, and output y; `rest`: more of its library's
 * text and, after "} }", of the MetaGraphDef's. */
static inline sx_status parse_model_with(const char *dims, const char *nodes, const char *functions,
                                         const char *rest, sx_saved_model **out)
{
    sx_buf text, packed;
    sx_buf_init(&text, 0);
    sx_buf_init(&packed, 0);
    sx_buf_printf(&text,
                  "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } "
                  "graph_def { node { name: 'x' op: 'Placeholder' }\n%s library { %s %s "
                  "signature_def { key: 'f' value { inputs { key: 'x' value { name: 'x:0' dtype: "
                  "DT_FLOAT tensor_shape { %s } } } outputs { key: 'y' value { name: 'y:0' "
                  "tensor_shape { unknown_rank: true } } } } } }",
                  nodes, functions, rest, dims);
    pack_text(&tensorflow__saved_model__descriptor, sx_buf_text(&text), &packed);
    sx_status status = sx_saved_model_parse((sx_bytes){packed.data, packed.size}, out);
    sx_buf_deinit(&text);
    sx_buf_deinit(&packed);
    return status;
}

static inline sx_status parse_model(const char *dims, const char *nodes, const char *functions,
                                    sx_saved_model **out)
{
    return parse_model_with(dims, nodes, functions, "} }", out);
}

static inline sx_library *import(const char *dims, const char *nodes, const char *functions)
{
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1];
    assert_ok(parse_model(dims, nodes, functions, &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    sx_saved_model_close(model);
    return library;
}

/* "float32[2,3] 1 2 ..." of y = f(x), x = 1, -2, 3, -4, ...; or the error. */
static inline void check(const sx_library *library, const char *device, sx_type type,
                         const char *expected)
{
    float x[64];
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_arena arena;
    sx_tensor y;
    sx_buf got;
    sx_buf_init(&got, 0);
    sx_arena_init(&arena, 0);
    for (int i = 0; i < 64; i++) {
        x[i] = (float)(i % 2 == 0 ? i + 1 : -i - 1);
    }
    assert_ok(sx_platform_open(device, &(sx_platform_options){.cpu.threads = 1}, &platform));
    const sx_runner_options options = {.library = library, .platform = platform, .seed = 1};
    assert_ok(sx_runner_create(&options, &runner));
    sx_status status = sx_runner_run(runner, "f", &(sx_tensor){type, x}, 1, &y, 1, &arena, NULL);
    if (status == SX_OK) {
        char words[SX_TYPE_TEXT];
        sx_buf_puts(&got, sx_type_format(&y.type, words, sizeof(words)));
        for (int64_t i = 0; i < sx_type_elems(&y.type); i++) {
            sx_buf_printf(&got, " %g",
                          y.type.dtype == SX_I32   ? ((const int32_t *)y.data)[i]
                          : y.type.dtype == SX_I64 ? (double)((const int64_t *)y.data)[i]
                                                   : (double)((const float *)y.data)[i]);
        }
    } else {
        sx_buf_printf(&got, "%s: %s", sx_code_name(sx_status_code(status)),
                      sx_status_message(status));
    }
    sx_status_free(status);
    const bool right = status == SX_OK ? strcmp(sx_buf_text(&got), expected) == 0
                                       : strstr(sx_buf_text(&got), expected) != NULL;
    if (!right) {
        fail_msg("on %s: gave %s\nexpected %s", device, sx_buf_text(&got), expected);
    }
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_arena_deinit(&arena);
    sx_buf_deinit(&got);
}

/* Importing the model fails, or its signature is refused. */
static inline void refuses(const char *nodes, const char *functions, const sx_import_limits *limits,
                           const char *expected)
{
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    assert_ok(parse_model(ANY, nodes, functions, &model));
    sx_status status = sx_import_library(model, limits, &library, refused);
    status = status == SX_OK ? refused[0] : status;
    sx_saved_model_close(model);
    sx_library_destroy(library);
    if (!harness_is(status, expected)) {
        print_error("%s\ngave %s: %s\nnot  %s\n", nodes, sx_code_name(sx_status_code(status)),
                    sx_status_message(status), expected);
        fail();
    }
    sx_status_free(status);
}

#endif
