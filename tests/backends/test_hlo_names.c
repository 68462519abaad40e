/* Reading the names in an optimised program. */
#include "harness.h"

#include "backends/pjrt/client.h"
#include "backends/pjrt/hlo_names.h"
#include "base/memory.h"
#include "pjrt_plugin.h"
#include "proto/wire.h"

static void put_instruction(sx_buf *out, const char *name, const char *op_name)
{
    const size_t at = sx_wire_begin(out, 2);
    sx_wire_append_text(out, 1, name);
    sx_wire_append_text(out, 2, "fusion");
    if (op_name != NULL) {
        const size_t metadata = sx_wire_begin(out, 7);
        sx_wire_append_text(out, 1, "op_type");
        sx_wire_append_text(out, 2, op_name);
        sx_wire_end(out, metadata);
    }
    sx_wire_end(out, at);
}

/* A module of two computations. */
static void write_program(sx_buf *out)
{
    const size_t module = sx_wire_begin(out, 1);
    sx_wire_append_number(out, 6, 7);
    size_t computation = sx_wire_begin(out, 3);
    put_instruction(out, "fusion.3", "conv2d/relu");
    put_instruction(out, "copy.1", NULL);
    sx_wire_end(out, computation);
    computation = sx_wire_begin(out, 3);
    put_instruction(out, "add.9", "dense/bias_add");
    sx_wire_append_number(out, 5, 7);
    sx_wire_end(out, computation);
    sx_wire_end(out, module);
}

typedef struct seen {
    int n, most;
    char text[8][80];
} seen;

static bool look(void *user, sx_bytes name, sx_bytes op_name)
{
    seen *s = user;
    if (s->n < 8) {
        snprintf(s->text[s->n], sizeof(s->text[0]), "%.*s|%.*s", (int)name.size,
                 (const char *)name.data, (int)op_name.size, (const char *)op_name.data);
    }
    return ++s->n < s->most;
}

static void test_backends_hlo_names__reads_all_computations(void **state)
{
    sx_buf program;
    seen all = {.most = 100}, one = {.most = 1};
    (void)state;
    sx_buf_init(&program, 0);
    write_program(&program);
    assert_ok(sx_hlo_names_visit(sx_buf_text(&program), program.size, look, &all));
    assert_int_equal(all.n, 3);
    assert_string_equal(all.text[0], "fusion.3|conv2d/relu");
    assert_string_equal(all.text[1], "copy.1|");
    assert_string_equal(all.text[2], "add.9|dense/bias_add");
    assert_ok(sx_hlo_names_visit(sx_buf_text(&program), program.size, look, &one));
    assert_int_equal(one.n, 1); /* no more are wanted */
    sx_buf_deinit(&program);
}

/* Cut or flipped anywhere it is an error or other names, never a crash. */
static void test_backends_hlo_names__survives_damage(void **state)
{
    sx_buf program;
    (void)state;
    sx_buf_init(&program, 0);
    write_program(&program);
    char *copy = sx_alloc(program.size, 1);
    assert_non_null(copy);
    for (size_t cut = 1; cut < program.size; cut++) {
        seen s = {.most = 100};
        assert_error(sx_hlo_names_visit(sx_buf_text(&program), cut, look, &s), SX_DATA_LOSS,
                     "HloModuleProto");
    }
    for (size_t i = 0; i < program.size * 8; i++) {
        seen s = {.most = 100};
        memcpy(copy, sx_buf_text(&program), program.size);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        sx_status_free(sx_hlo_names_visit(copy, program.size, look, &s));
    }
    sx_free(copy);
    sx_buf_deinit(&program);
}

/* ---- XLA's ---- */

static bool find_node(void *user, sx_bytes name, sx_bytes op_name)
{
    static const char node[] = "layer/exponential";
    bool *found = user;
    *found = *found || (name.size > 0 && op_name.size == strlen(node) &&
                        memcmp(op_name.data, node, op_name.size) == 0);
    return true;
}

/* What XLA makes of an operation has the name that our text gave it. */
static void test_backends_hlo_names__xla_keeps_names_of_nodes_on_pjrt(void **state)
{
    static const char text[] =
        "module {\n"
        "  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %0 = \"stablehlo.exponential\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32> "
        "loc(\"layer/exponential\")\n"
        "    return %0 : tensor<4xf32>\n"
        "  }\n"
        "}\n";
    const sx_pjrt_plugin *plugin;
    sx_pjrt_client *client;
    void *loaded, *executable;
    int id;
    bool found = false;
    (void)state;
    SKIP_WITHOUT_PJRT();
    assert_ok(sx_pjrt_load(pjrt_plugin(), &plugin));
    assert_ok(sx_pjrt_client_open(plugin, &(sx_pjrt_options){.virtual_devices = 1}, &client));
    assert_ok(sx_pjrt_device_id(client, 0, &id));
    assert_ok(sx_pjrt_compile(client, text, strlen(text), 1, &id, false, &loaded));
    assert_ok(sx_pjrt_executable_of(client, loaded, &executable));
    sx_pjrt_program_text program = {.struct_size = SX_PJRT_INNER_SIZE(plugin, program_text)};
    sx_pjrt_optimized args = SX_PJRT_ARGS(optimized, .executable = executable, .program = &program);
    assert_ok(sx_pjrt_call(plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args));
    char *code = sx_alloc(program.code_size + 1, 1);
    assert_non_null(code);
    program.code = code;
    assert_ok(sx_pjrt_call(plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args));
    assert_ok(sx_hlo_names_visit(code, program.code_size, find_node, &found));
    assert_true(found);
    sx_free(code);
    sx_pjrt_end(plugin, SX_PJRT_EXECUTABLE_DESTROY, executable);
    sx_pjrt_end(plugin, SX_PJRT_LOADED_DESTROY, loaded);
    sx_pjrt_client_close(client);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_hlo_names__reads_all_computations),
    cmocka_unit_test(test_backends_hlo_names__survives_damage),
    cmocka_unit_test(test_backends_hlo_names__xla_keeps_names_of_nodes_on_pjrt),
};
SX_TEST_MAIN(tests)
