/* The pjrt backend: programs' texts, the bytes of compile options, finding and trying plugins,
 * buffers, donation, replicas, faults. What it computes: test_conformance.c. */
#include "io/scratch.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt/client.h"
#include "backends/pjrt/compile_options.h"
#include "backends/pjrt/plugin.h"
#include "backends/pjrt/module.h"
#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_plugin.h"
#include "torture.h"

/* w <- w - x' (x w - y) ; outputs the sum of squares: a program with the batch, a variable, a
 * result of each kind. x [N,2], w [2,1], y [N,1] */
static sx_graph *step_graph(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 2, 1)});
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value y = sx_input(b, "y", sx_type_of(SX_F32, SX_BATCH, 1));
    sx_scope_begin(b, "dense", NULL);
    sx_value error = sx_sub(b, sx_matmul(b, x, w), y);
    sx_value dw = sx_matmul(b, x, error, .transpose_a = true);
    sx_scope_end(b);
    sx_assign(b, "w", sx_sub(b, w, dw));
    sx_output(b, "errors", error);
    sx_output(b, "loss", sx_reduce_sum(b, sx_square(b, error), .keep_dims = false));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static sx_platform *open_platform(const char *plugin, int replicas)
{
    sx_platform *p;
    assert_ok(sx_platform_open(
        "pjrt", &(sx_platform_options){.pjrt.plugin_path = plugin, .pjrt.replicas = replicas}, &p));
    return p;
}

static sx_device_buffer *buffer_of(sx_platform *p, const sx_type *type, const void *data)
{
    sx_device_buffer *b;
    assert_ok(sx_device_buffer_create(p->devices[0], type, &b));
    if (data != NULL) {
        assert_ok(sx_device_buffer_write(b, data, false));
    }
    return b;
}

/* ---- Texts and bytes ---- */

static void test_backends_pjrt__compile_options(void **state)
{
    (void)state;
    static const uint8_t one[] = {0x20, 0x01, 0x1a, 0x0f, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0x01, 0x20, 0x01, 0x28, 0x01};
    static const uint8_t four[] = {0x1a, 0x1d, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                   0xff, 0x01, 0x20, 0x04, 0x28, 0x01, 0x4a, 0x0c, 0x08, 0x04, 0x10,
                                   0x01, 0x1a, 0x06, 0x0a, 0x04, 0x00, 0x01, 0x02, 0x03};
    static const int ids[] = {0, 1, 2, 3};
    sx_buf buf;
    sx_buf_init(&buf, 0);
    sx_pjrt_put_compile_options(&buf, 1, ids, NULL, false);
    assert_int_equal(buf.size, sizeof(one));
    assert_memory_equal(buf.data, one, sizeof(one));
    sx_buf_reset(&buf);
    sx_pjrt_put_compile_options(&buf, 4, ids, NULL, false);
    assert_int_equal(buf.size, sizeof(four));
    assert_memory_equal(buf.data, four, sizeof(four));
    sx_buf_reset(&buf);
    sx_pjrt_put_compile_options(&buf, 1, ids, NULL, true);
    static const char unfused[] = "\x3a\x22\x0a\x16xla_disable_hlo_passes\x12\x08\x0a\x06"
                                  "fusion";
    assert_int_equal(buf.size, sizeof(one) + sizeof(unfused) - 1);
    assert_memory_equal(buf.data, one, sizeof(one));
    assert_memory_equal((const char *)buf.data + sizeof(one), unfused, sizeof(unfused) - 1);
    sx_buf_deinit(&buf);
}

/* Each type has its own field of OptionOverrideProto. */
static void test_backends_pjrt__xla_options(void **state)
{
    (void)state;
    static const char expected[] = "\x3a\x0b\x0a\x05xla_a\x12\x02\x10\x01"
                                   "\x3a\x0b\x0a\x05xla_b\x12\x02\x18\x07"
                                   "\x3a\x12\x0a\x05xla_c\x12\x09\x21\0\0\0\0\0\0\xe0\x3f"
                                   "\x3a\x0d\x0a\x05xla_d\x12\x04\x0a\x02on";
    static const int ids[] = {0};
    sx_arena arena;
    sx_buf plain, buf;
    sx_pjrt_settings settings;
    sx_arena_init(&arena, 0);
    sx_buf_init(&plain, 0);
    sx_buf_init(&buf, 0);
    assert_ok(
        sx_pjrt_read_settings("o", "xla_a=true,xla_b=7,xla_c=0.5,xla_d=on", &arena, &settings));
    sx_pjrt_put_compile_options(&plain, 1, ids, NULL, false);
    sx_pjrt_put_compile_options(&buf, 1, ids, &settings, false);
    assert_int_equal(buf.size, plain.size + sizeof(expected) - 1);
    assert_memory_equal((const char *)buf.data + plain.size, expected, sizeof(expected) - 1);
    sx_buf_deinit(&plain);
    sx_buf_deinit(&buf);
    sx_arena_deinit(&arena);
}

static void test_backends_pjrt__settings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error; /* NULL: none */
    } rows[] = {
        {"a", "\"a\": expected NAME=VALUE"},
        {"a=", "\"a=\": expected NAME=VALUE"},
        {"=1", "\"=1\": expected NAME=VALUE"},
        {"a b=1", "\"a b=1\": expected NAME=VALUE"},
        {"a=1,,b=2", "\"\": expected NAME=VALUE"},
        {"a=1,a=2", "a is given twice"},
        {"a=[1,x]", "a is \"[1,x]\", expected at most 256 whole numbers such as [0,1]"},
        {"a=[]", "a is \"[]\", expected at most 256 whole numbers such as [0,1]"},
        {"a=[1", "a is \"[1\", expected at most 256 whole numbers such as [0,1]"},
        {"a=[99999999999999999999]",
         "a is \"[99999999999999999999]\", expected at most 256 whole numbers such as [0,1]"},
    };
    sx_arena arena;
    sx_pjrt_settings s;
    sx_arena_init(&arena, 0);
    assert_ok(sx_pjrt_read_settings("o", NULL, &arena, &s));
    assert_int_equal(s.n, 0);
    assert_ok(sx_pjrt_read_settings("o", "a=true,b=-3,c=.5,d=[0,1],e=\"x,y\",f=bfc,g=\"1\",h=1e400",
                                    &arena, &s));
    assert_int_equal(s.n, 8);
    static const int types[] = {SX_PJRT_BOOL,   SX_PJRT_INT64,  SX_PJRT_FLOAT,  SX_PJRT_INT64_LIST,
                                SX_PJRT_STRING, SX_PJRT_STRING, SX_PJRT_STRING, SX_PJRT_STRING};
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(s.rows[i].type, types[i]);
    }
    assert_true(s.rows[0].boolean);
    assert_int_equal(s.rows[1].int64, -3);
    assert_true(s.rows[2].real == 0.5F);
    assert_int_equal(s.rows[3].value_size, 2);
    assert_int_equal(s.rows[3].int64_list[1], 1);
    assert_string_equal(s.rows[4].string, "x,y");
    assert_int_equal(s.rows[4].value_size, 3);
    assert_string_equal(s.rows[6].string, "1");
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        assert_error(sx_pjrt_read_settings("o", rows[i].text, &arena, &s), SX_INVALID_ARGUMENT,
                     rows[i].error);
    }
    assert_ok(sx_pjrt_read_settings("o", "memory_fraction=1", &arena, &s));
    assert_ok(sx_pjrt_check_settings(SX_PJRT_CUDA, "o", &s));
    assert_int_equal(s.rows[0].type, SX_PJRT_FLOAT);
    assert_ok(sx_pjrt_check_settings(SX_PJRT_OTHER, "o", &s));
    assert_error(sx_pjrt_check_settings(SX_PJRT_CPU, "o", &s), SX_INVALID_ARGUMENT,
                 "this plugin has no option memory_fraction (it has \"cpu_device_count\"");
    assert_ok(sx_pjrt_read_settings("o", "preallocate=yes", &arena, &s));
    assert_error(sx_pjrt_check_settings(SX_PJRT_CUDA, "o", &s), SX_INVALID_ARGUMENT,
                 "preallocate takes true or false");
    sx_arena_deinit(&arena);
}

static void test_backends_pjrt__program_text(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    sx_pjrt_module p, again;
    assert_ok(sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 4}, &p));
    assert_ok(sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 4}, &again));
    assert_string_equal(p.text, again.text);
    assert_non_null(strstr(
        p.text, "@main(%0: tensor<2x1xf32> {tf.aliasing_output = 0 : i32}, %1: "
                "tensor<4x2xf32>, %2: tensor<4x1xf32>) -> (tensor<2x1xf32>, tensor<4x1xf32>, "
                "tensor<f32>)"));
    assert_non_null(strstr(p.text, "loc(\"dense/matmul\")"));
    assert_null(strstr(p.text, "all_reduce"));
    sx_pjrt_module_destroy(&again);
    sx_pjrt_module_destroy(&p);
    assert_ok(
        sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 4, .donate_inputs = true}, &p));
    assert_non_null(strstr(p.text, "{tf.aliasing_output = 0 : i32}, %1: tensor<4x2xf32> "
                                   "{jax.buffer_donor = true}, %2: tensor<4x1xf32> "
                                   "{jax.buffer_donor = true}) -> "));
    sx_pjrt_module_destroy(&p);
    sx_graph_destroy(g);
}

/* The weights' gradient and the loss meet; the errors of examples do not. */
static void test_backends_pjrt__program_of_replicas(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    sx_pjrt_module p;
    assert_ok(sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 8, .replicas = 4}, &p));
    int count = 0;
    for (const char *at = p.text; (at = strstr(at, "\"stablehlo.all_reduce\"")) != NULL; at++) {
        count++;
    }
    assert_int_equal(count, 2);
    assert_non_null(strstr(p.text, "%1: tensor<2x2xf32>"));
    assert_non_null(strstr(p.text, "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, "
                                   "channel_handle = #stablehlo.channel_handle<handle = 2, "
                                   "type = 0>, use_global_device_ids = unit"));
    sx_pjrt_module_destroy(&p);
    assert_error(
        sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 1026, .replicas = 4}, &p),
        SX_INVALID_ARGUMENT, "the nearest are 1024 and 1028");
    sx_graph_destroy(g);
}

/* Of several processes, each reads its own replicas alone: results are whole on each. */
static void test_backends_pjrt__program_of_processes(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    sx_pjrt_module p;
    for (int64_t steps = 1; steps <= 3; steps += 2) {
        assert_ok(sx_pjrt_module_create(
            g,
            &(sx_pjrt_module_options){
                .batch = 8, .replicas = 4, .whole_results = true, .steps = steps},
            &p));
        assert_non_null(
            strstr(p.text, steps == 1 ? "%1: tensor<2x2xf32>" : "%1: tensor<3x2x2xf32>"));
        assert_non_null(strstr(p.text, "\"stablehlo.all_gather\""));
        const char *results = strstr(p.text, "-> (");
        const char *errors = steps == 1 ? "tensor<8x1xf32>" : "tensor<3x8x1xf32>";
        assert_non_null(results);
        assert_true(strstr(results, errors) != NULL &&
                    strstr(results, errors) < strchr(results, '{'));
        sx_pjrt_module_destroy(&p);
    }
    sx_graph_destroy(g);
}

static void test_backends_pjrt__messages_name_nodes(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    const sx_node *n =
        sx_pjrt_node_of_message(g, "loc(\"dense/matmul_1\"): error: something about shapes");
    assert_non_null(n);
    assert_string_equal(n->name, "dense/matmul_1");
    assert_null(sx_pjrt_node_of_message(g, "out of memory in dense/matmul"));
    sx_graph_destroy(g);
}

static sx_status lower_once(void *user)
{
    sx_graph *g = user;
    sx_pjrt_module p;
    SX_TRY(sx_pjrt_module_create(
        g, &(sx_pjrt_module_options){.batch = 8, .replicas = 2, .steps = 3}, &p));
    sx_pjrt_module_destroy(&p);
    return SX_OK;
}

static void test_backends_pjrt__lowering_survives_failing_allocations(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    assert_true(sx_torture_some(lower_once, g) > 10);
    sx_graph_destroy(g);
}

/* A loop of a program that assigns nothing: each output is a ring of its steps. */
static void test_backends_pjrt__a_loop_of_outputs(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    for (int i = 0; i < 3; i++) {
        sx_output(b, (const char *[]){"a", "b", "c"}[i], sx_neg(b, x));
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_pjrt_module p;
    assert_ok(sx_pjrt_module_create(g, &(sx_pjrt_module_options){.batch = 4, .steps = 5}, &p));
    assert_non_null(strstr(p.text, "@main(%0: tensor<5x4x2xf32>, %1: tensor<i64>) -> "
                                   "(tensor<5x4x2xf32>, tensor<5x4x2xf32>, tensor<5x4x2xf32>, "
                                   "tensor<i64>)"));
    sx_pjrt_module_destroy(&p);
    assert_true(sx_torture(lower_once, g) > 10);
    sx_graph_destroy(g);
}

/* ---- Finding, trying ---- */

static void clear_environment(void)
{
    unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
    unsetenv("TPU_LIBRARY_PATH");
    unsetenv("VIRTUAL_ENV");
    unsetenv("SX_PJRT_REF");
    unsetenv("SX_PJRT_REF_FAULT");
}

static void test_backends_pjrt__finds_plugins(void **state)
{
    (void)state;
    char path[SX_PJRT_PATH_BYTES];
    clear_environment();
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){.path = "/x/y.so"}, path));
    assert_string_equal(path, "/x/y.so");
    setenv("TPU_LIBRARY_PATH", "/t/libtpu.so", 1);
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){.name = "tpu"}, path));
    assert_string_equal(path, "/t/libtpu.so");
    setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "neuron:/n/libneuron.so,tpu:/u/libtpu.so", 1);
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){.name = "tpu"}, path));
    assert_string_equal(path, "/u/libtpu.so");
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){0}, path));
    assert_string_equal(path, "/n/libneuron.so");
    assert_error(sx_pjrt_find(&(sx_pjrt_wish){.name = "neuro"}, path), SX_UNAVAILABLE,
                 "no PJRT plugin for neuro");
    clear_environment();
}

static void test_backends_pjrt__finds_packages_of_an_interpreter(void **state)
{
    (void)state;
    char root[] = "/tmp/sextant-pjrt-XXXXXX", path[SX_PJRT_PATH_BYTES], file[256], python[256];
    static const char *const parts[] = {"/lib", "/lib/python3.11", "/lib/python3.11/site-packages",
                                        "/lib/python3.11/site-packages/libtpu"};
    clear_environment();
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(file, sizeof(file), "%s%s", root, parts[i]);
        assert_int_equal(mkdir(file, 0700), 0);
    }
    snprintf(file, sizeof(file), "%s%s/libtpu.so", root, parts[3]);
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    fclose(f);
    snprintf(python, sizeof(python), "%s/bin/python3", root);
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){.python = python}, path));
    assert_string_equal(path, file);
    assert_error(sx_pjrt_find(&(sx_pjrt_wish){.python = python, .name = "cpu"}, path),
                 SX_UNAVAILABLE, python);
    setenv("VIRTUAL_ENV", root, 1);
    assert_ok(sx_pjrt_find(&(sx_pjrt_wish){.name = "tpu"}, path));
    unlink(file);
    for (size_t i = sizeof(parts) / sizeof(parts[0]); i-- > 0;) {
        snprintf(file, sizeof(file), "%s%s", root, parts[i]);
        rmdir(file);
    }
    rmdir(root);
    clear_environment();
}

static void test_backends_pjrt__says_what_to_install(void **state)
{
    (void)state;
    sx_platform *p;
    clear_environment();
    assert_error(sx_platform_open("pjrt", NULL, &p), SX_UNAVAILABLE,
                 "no PJRT plugin: pip install libtpu (tpu) or jax-cuda13-pjrt (cuda) or "
                 "jax-cuda12-pjrt (cuda) or xla-cpu-pjrt (cpu) in the active virtual environment");
    assert_error(sx_platform_open("pjrt", NULL, &p), SX_UNAVAILABLE,
                 "PJRT_NAMES_AND_LIBRARY_PATHS (not set), TPU_LIBRARY_PATH (not set), VIRTUAL_ENV "
                 "(not set)");
}

typedef struct load_case {
    const char *mode;
    sx_code code;
    const char *part;
} load_case;

static void test_backends_pjrt__plugins_that_fail_to_load(void **state)
{
    (void)state;
    static const load_case cases[] = {
        {"abort", SX_UNAVAILABLE, "crashed (Aborted); output: F0817 Check failed: chips > 0"},
        {"exit", SX_UNAVAILABLE, "exited with code 3; output: no licence"},
        {"null", SX_FAILED_PRECONDITION, "returned NULL"},
        {"version:0:0.40", SX_FAILED_PRECONDITION,
         "has PJRT version 0.40; supported: 0.57 to 0.116"},
        {"version:0:1.81", SX_FAILED_PRECONDITION, "has PJRT version 1.81; supported: 0.57"},
        {"initialize", SX_FAILED_PRECONDITION, "PJRT Plugin_Initialize: the chips are asleep"},
    };
    sx_platform *p;
    clear_environment();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("SX_PJRT_REF_FAULT", cases[i].mode, 1);
        assert_error(
            sx_platform_open("pjrt", &(sx_platform_options){.pjrt.plugin_path = ref_plugin()}, &p),
            cases[i].code, cases[i].part);
    }
    clear_environment();
}

static void test_backends_pjrt__libraries_that_are_no_plugins(void **state)
{
    (void)state;
    const sx_pjrt_plugin *plugin;
    assert_error(sx_pjrt_load("/nowhere/plugin.so", &plugin), SX_NOT_FOUND, "No such file");
    assert_error(sx_pjrt_load("/etc/passwd", &plugin), SX_FAILED_PRECONDITION, "/etc/passwd");
}

static void test_backends_pjrt__no_client(void **state)
{
    (void)state;
    sx_platform *p;
    clear_environment();
    setenv("SX_PJRT_REF_FAULT", "client", 1);
    assert_error(
        sx_platform_open("pjrt", &(sx_platform_options){.pjrt.plugin_path = ref_plugin()}, &p),
        SX_UNAVAILABLE, "PJRT Client_Create: no chip in this machine");
    clear_environment();
}

/* One client for each number of devices, shared by those who ask for it, in any order. */
static void test_backends_pjrt__clients_are_shared(void **state)
{
    (void)state;
    enum { OPEN = 9 };
    const sx_pjrt_plugin *plugin;
    sx_pjrt_client *clients[OPEN], *again;
    clear_environment();
    assert_ok(sx_pjrt_load(ref_plugin(), &plugin));
    for (int i = 0; i < OPEN; i++) {
        assert_ok(sx_pjrt_client_open(plugin, &(sx_pjrt_options){.virtual_devices = 1 + i % 3},
                                      &clients[i]));
        assert_int_equal(clients[i]->n_devices, 1 + i % 3);
        for (int k = 0; k < i; k++) {
            assert_int_equal(clients[k] == clients[i], k % 3 == i % 3);
        }
    }
    static const int order[OPEN] = {1, 0, 2, 4, 3, 8, 7, 5, 6}; /* closes 2, 1, then 3 */
    for (int i = 0; i < OPEN; i++) {
        sx_pjrt_client_close(clients[order[i]]);
        if (i == OPEN - 2) { /* one user is left of the client of one device */
            assert_ok(
                sx_pjrt_client_open(plugin, &(sx_pjrt_options){.virtual_devices = 1}, &again));
            assert_ptr_equal(again, clients[6]);
            sx_pjrt_client_close(again);
            const sx_pjrt_options other = {.virtual_devices = 1, .xla_options = "xla_a=1"};
            assert_ok(sx_pjrt_client_open(plugin, &other, &again));
            assert_ptr_not_equal(again, clients[6]);
            sx_pjrt_client_close(again);
        }
    }
}

static void copy_file(const char *from, const char *to)
{
    char *data = NULL, *parent = NULL;
    size_t size;
    assert_ok(sx_file_read(from, 1 << 28, &data, &size));
    assert_ok(sx_path_dirname(to, &parent));
    assert_ok(sx_dir_create(parent));
    write_file(to, data, size);
    sx_free(parent);
    sx_free(data);
}

/* The CUDA libraries that pip installs beside jax's plugin are loaded before it, which does not
 * find them by itself; those of another CUDA version are not. */
static void test_backends_pjrt__companions_are_loaded_first(void **state)
{
    (void)state;
    const sx_pjrt_plugin *plugin;
    clear_environment();
    copy_file(ref_plugin(), scratch("jax_plugins/xla_cuda13/pjrt_ref.so"));
    copy_file(ref_plugin(), scratch("nvidia/cu13/lib/libcudart.so.13"));
    copy_file(ref_plugin(), scratch("nvidia/cu13/lib/libcudart.so.12"));
    copy_file(ref_plugin(), scratch("nvidia/cudnn/lib/libcudnn.so.9"));
    copy_file(ref_plugin(), scratch("other/lib/libnccl.so.2"));
    assert_ok(sx_pjrt_load(scratch("jax_plugins/xla_cuda13/pjrt_ref.so"), &plugin));
    static const struct {
        const char *path;
        bool loaded;
    } rows[] = {
        {"nvidia/cu13/lib/libcudart.so.13", true},
        {"nvidia/cu13/lib/libcudart.so.12", false},
        {"nvidia/cudnn/lib/libcudnn.so.9", true},
        {"other/lib/libnccl.so.2", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *library = dlopen(scratch(rows[i].path), RTLD_NOW | RTLD_NOLOAD);
        if ((library != NULL) != rows[i].loaded) {
            fail_msg("%s", rows[i].path);
        }
        if (library != NULL) {
            dlclose(library);
        }
    }
}

/* ---- On XLA's CPU ---- */

static void test_backends_pjrt__lists_devices(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    sx_platform *p = open_platform(pjrt_plugin(), 0), *same = open_platform(pjrt_plugin(), 0);
    assert_int_equal(p->n_devices, 4);
    assert_string_equal(p->devices[3]->name, "/device:CPU:3");
    assert_string_equal(p->devices[3]->kind, "cpu");
    sx_platform_close(same); /* the client is shared, and still there */
    sx_memory_stats stats;
    assert_ok(p->backend->memory(p->devices[0], &stats));
    sx_platform_close(p);
    assert_ok(sx_platform_open("pjrt",
                               &(sx_platform_options){.pjrt.plugin_path = pjrt_plugin(),
                                                      .pjrt.virtual_devices = 6,
                                                      .pjrt.replicas = 6},
                               &p));
    assert_int_equal(p->n_devices, 1);
    assert_string_equal(p->devices[0]->name, "/device:CPU:0..5");
    sx_platform_close(p);
    assert_error(sx_platform_open(
                     "pjrt",
                     &(sx_platform_options){.pjrt.plugin_path = pjrt_plugin(), .pjrt.replicas = 5},
                     &p),
                 SX_INVALID_ARGUMENT, "5 replicas requested, but");
}

static void test_backends_pjrt__buffers_hold_every_type(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const sx_dtype dtypes[] = {SX_F32,  SX_F64,  SX_I32, SX_U8,  SX_I16, SX_I8, SX_I64,
                                      SX_BOOL, SX_BF16, SX_U16, SX_F16, SX_U32, SX_U64};
    for (int replicas = 1; replicas <= 2; replicas++) {
        sx_platform *p = open_platform(pjrt_plugin(), replicas);
        for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
            uint8_t in[3 * 5 * 8], out[3 * 5 * 8], zero[3 * 5 * 8] = {0};
            sx_type type = sx_type_of(dtypes[k], 3, 5);
            size_t bytes = (size_t)sx_type_bytes(&type);
            sx_device_buffer *b = buffer_of(p, &type, NULL);
            assert_ok(sx_device_buffer_read(b, out));
            assert_memory_equal(out, zero, bytes);
            for (size_t i = 0; i < bytes; i++) {
                in[i] = (uint8_t)(dtypes[k] == SX_BOOL ? i % 2 : i * 7);
            }
            assert_ok(sx_device_buffer_write(b, in, true));
            assert_ok(sx_device_buffer_read(b, out));
            assert_memory_equal(in, out, bytes);
            sx_device_buffer_release(b);
        }
        sx_platform_close(p);
    }
}

typedef struct step_run {
    sx_platform *platform;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[3], *outputs[3];
} step_run;

static void step_begin_with(step_run *s, const char *plugin, int replicas, bool donate_inputs)
{
    static const float w[2] = {0.5f, -1}, x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {1, 0, -1, 2};
    sx_graph *g = step_graph();
    s->platform = open_platform(plugin, replicas);
    const sx_compile_options options = {.batch = 4, .donate_inputs = donate_inputs};
    assert_ok(sx_compile(s->platform, g, &options, &s->executable));
    assert_ok(sx_run_create(s->executable, &s->run));
    const void *data[3] = {w, x, y};
    for (int i = 0; i < 3; i++) {
        s->args[i] = buffer_of(s->platform, &s->executable->arg_types[i], data[i]);
        s->outputs[i] = s->executable->result_args[i] < 0
                            ? buffer_of(s->platform, &s->executable->result_types[i], NULL)
                            : NULL;
    }
    sx_graph_destroy(g);
}

static void step_begin(step_run *s, const char *plugin, int replicas)
{
    step_begin_with(s, plugin, replicas, false);
}

static void step_end(step_run *s)
{
    for (int i = 0; i < 3; i++) {
        sx_device_buffer_release(s->args[i]);
        sx_device_buffer_release(s->outputs[i]);
    }
    sx_run_destroy(s->run);
    sx_executable_release(s->executable);
    sx_platform_close(s->platform);
}

/* errors = x w - y = -2.5 … -6.5; dw = x' errors */
static void test_backends_pjrt__a_step_updates_its_variable_in_place(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        step_run s;
        float errors[4], loss, w[2];
        static const float expected[4] = {-2.5f, -2.5f, -2.5f, -6.5f};
        step_begin(&s, pjrt_plugin(), replicas);
        assert_ok(sx_run_execute(s.run, s.args, s.outputs));
        assert_ok(sx_device_buffer_read(s.outputs[1], errors));
        assert_ok(sx_device_buffer_read(s.outputs[2], &loss));
        assert_ok(sx_device_buffer_read(s.args[0], w));
        assert_memory_equal(errors, expected, sizeof(errors));
        assert_float_equal(loss, 3 * 6.25 + 42.25, 0);
        assert_float_equal(w[0], 0.5 + 2.5 * 9 + 6.5 * 7, 0);
        assert_float_equal(w[1], -1 + 2.5 * 12 + 6.5 * 8, 0);
        assert_ok(sx_run_execute(s.run, s.args, s.outputs)); /* from the new value */
        assert_ok(sx_device_buffer_read(s.outputs[1], errors));
        assert_float_equal(errors[0], 68.5 + 2 * 81 - 1, 0);
        step_end(&s);
    }
}

/* They are written anew for each execution, whether parts of the batch or all of it. */
static void test_backends_pjrt__an_execution_takes_donated_inputs(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        step_run s, kept;
        float x[8], y[4], errors[2][4], w[2][2];
        step_begin_with(&s, pjrt_plugin(), replicas, true);
        step_begin(&kept, pjrt_plugin(), replicas);
        assert_ok(sx_device_buffer_read(kept.args[1], x));
        assert_ok(sx_device_buffer_read(kept.args[2], y));
        for (int k = 0; k < 3; k++) {
            assert_ok(sx_run_execute(s.run, s.args, s.outputs));
            assert_ok(sx_run_execute(kept.run, kept.args, kept.outputs));
            assert_error(sx_device_buffer_read(s.args[1], x), SX_FAILED_PRECONDITION,
                         "given to an execution");
            assert_error(sx_run_execute(s.run, s.args, s.outputs), SX_FAILED_PRECONDITION,
                         "argument 1");
            assert_ok(sx_device_buffer_write(s.args[1], x, true));
            assert_ok(sx_device_buffer_write(s.args[2], y, true));
        }
        assert_ok(sx_device_buffer_read(s.outputs[1], errors[0]));
        assert_ok(sx_device_buffer_read(kept.outputs[1], errors[1]));
        assert_ok(sx_device_buffer_read(s.args[0], w[0]));
        assert_ok(sx_device_buffer_read(kept.args[0], w[1]));
        assert_memory_equal(errors[0], errors[1], sizeof(errors[0]));
        assert_memory_equal(w[0], w[1], sizeof(w[0]));
        step_end(&s);
        step_end(&kept);
    }
}

static void test_backends_pjrt__says_what_a_program_needs(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    step_run s;
    sx_executable_info info;
    step_begin(&s, pjrt_plugin(), 1);
    assert_ok(sx_executable_get_info(s.executable, &info));
    assert_int_equal(info.argument_bytes, 8 + 32 + 16);
    assert_int_equal(info.shards, 1);
    assert_non_null(strstr(info.numerics, "pjrt cpu"));
    step_end(&s);
}

/* The scalar, the variable, and what is cut over replicas. */
static void read_each(step_run *s, float one_by_one[7], float at_once[7])
{
    sx_device_buffer *const buffers[] = {s->outputs[2], s->args[0], s->outputs[1]};
    static const int at[] = {0, 1, 3};
    void *into[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_device_buffer_read(buffers[i], one_by_one + at[i]));
        into[i] = at_once + at[i];
    }
    assert_ok(sx_device_buffers_read(3, buffers, into));
}

static void test_backends_pjrt__buffers_are_read_at_once(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    for (int replicas = 1; replicas <= 2; replicas++) {
        step_run s;
        float x[7] = {0}, y[7] = {0};
        step_begin(&s, pjrt_plugin(), replicas);
        assert_ok(sx_run_execute(s.run, s.args, s.outputs));
        read_each(&s, x, y);
        assert_true(x[0] > 0 && x[6] != 0);
        assert_memory_equal(x, y, sizeof(x));
        step_end(&s);
    }
}

static void test_backends_pjrt__steps_do_not_allocate(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    step_run s;
    float x[8] = {0};
    step_begin(&s, pjrt_plugin(), 2);
    assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    long before = sx_alloc_count();
    for (int i = 0; i < 5; i++) {
        assert_ok(sx_device_buffer_write(s.args[1], x, true));
        assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    }
    assert_int_equal(sx_alloc_count(), before);
    step_end(&s);
}

static void test_backends_pjrt__dumps_programs(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    char dir[] = "/tmp/sextant-pjrt-XXXXXX", command[128];
    sx_platform *p;
    sx_executable *e;
    sx_graph *g = step_graph();
    assert_non_null(mkdtemp(dir));
    assert_ok(sx_platform_open(
        "pjrt", &(sx_platform_options){.pjrt.plugin_path = pjrt_plugin(), .pjrt.dump_dir = dir},
        &p));
    assert_ok(sx_compile(p, g, &(sx_compile_options){.batch = 4}, &e));
    sx_executable_release(e);
    sx_platform_close(p);
    snprintf(command, sizeof(command), "grep -q stablehlo.dot_general %s/program-*.mlir", dir);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    sx_graph_destroy(g);
}

/* --- The step loop -----------------------------------------------------------------------------
 */

enum { LOOP_STEPS = 3, LOOP_BATCH = 4 };

/* w += sum of x; outputs: sums of examples, the sum of the batch, whether it is below 50. */
static sx_graph *loop_graph(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_scalar_type(SX_F32)});
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value scale = sx_input(b, "scale", sx_scalar_type(SX_F32));
    sx_value sums = sx_mul(b, sx_reduce_sum(b, x, .axes = SX_AXES(1)), scale);
    sx_value sum = sx_reduce_sum(b, sums, .keep_dims = false);
    sx_value next = sx_add(b, w, sum);
    sx_assign(b, "w", next);
    sx_output(b, "sums", sums);
    sx_output(b, "w_after", next);
    sx_output(b, "ok", sx_less(b, next, sx_constant_f32(b, 50)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* x[step][example] = (10 step + example, 0); scale 1; starts at w = 1. After step k, w is
 * 1 + sum over steps of 40 step + 6: 7, 53, 139. */
static void run_loop(int replicas, int64_t steps, const char *ok_output, float *out_w,
                     float sums[LOOP_STEPS * LOOP_BATCH], float w_after[LOOP_STEPS],
                     int64_t *out_ran)
{
    float x[LOOP_STEPS * LOOP_BATCH * 2] = {0};
    const float one = 1;
    sx_graph *g = loop_graph();
    sx_executable *e;
    sx_device_buffer *args[4], *outputs[5];
    sx_platform *p = open_platform(pjrt_plugin(), replicas);
    assert_ok(sx_compile(
        p, g,
        &(sx_compile_options){.batch = LOOP_BATCH, .steps = LOOP_STEPS, .ok_output = ok_output},
        &e));
    assert_int_equal(e->n_args, 4);
    assert_int_equal(e->n_results, 5);
    for (int i = 0; i < LOOP_STEPS * LOOP_BATCH; i++) {
        x[2 * i] = (float)(10 * (i / LOOP_BATCH) + i % LOOP_BATCH);
    }
    const void *data[4] = {&one, x, &one, &steps};
    for (int i = 0; i < 4; i++) {
        args[i] = buffer_of(p, &e->arg_types[i], data[i]);
    }
    for (int i = 0; i < 5; i++) {
        outputs[i] = e->result_args[i] < 0 ? buffer_of(p, &e->result_types[i], NULL) : NULL;
    }
    assert_ok(sx_execute(e, args, outputs));
    assert_ok(sx_device_buffer_read(args[0], out_w));
    assert_ok(sx_device_buffer_read(outputs[1], sums));
    assert_ok(sx_device_buffer_read(outputs[2], w_after));
    assert_ok(sx_device_buffer_read(outputs[4], out_ran));
    for (int i = 0; i < 4; i++) {
        sx_device_buffer_release(args[i]);
    }
    for (int i = 0; i < 5; i++) {
        sx_device_buffer_release(outputs[i]);
    }
    sx_executable_release(e);
    sx_platform_close(p);
    sx_graph_destroy(g);
}

static void test_backends_pjrt__the_loop_runs_steps_over_a_superbatch(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        float w, sums[LOOP_STEPS * LOOP_BATCH], after[LOOP_STEPS];
        int64_t ran;
        run_loop(replicas, 3, NULL, &w, sums, after, &ran);
        assert_int_equal(ran, 3);
        assert_float_equal(w, 139, 0);
        for (int i = 0; i < LOOP_STEPS * LOOP_BATCH; i++) {
            assert_float_equal(sums[i], 10 * (i / LOOP_BATCH) + i % LOOP_BATCH, 0);
        }
        assert_float_equal(after[0], 7, 0);
        assert_float_equal(after[1], 53, 0);
        assert_float_equal(after[2], 139, 0);
    }
}

/* One executable serves every length; rows of steps that did not run are zero. */
static void test_backends_pjrt__the_loop_runs_as_long_as_told(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    float w, sums[LOOP_STEPS * LOOP_BATCH], after[LOOP_STEPS];
    int64_t ran;
    run_loop(2, 1, NULL, &w, sums, after, &ran);
    assert_int_equal(ran, 1);
    assert_float_equal(w, 7, 0);
    assert_float_equal(sums[LOOP_BATCH + 1], 0, 0);
    assert_float_equal(after[2], 0, 0);
}

/* After step 2, w = 53 is not below 50: the third does not run. */
static void test_backends_pjrt__the_loop_leaves_when_not_ok(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    float w, sums[LOOP_STEPS * LOOP_BATCH], after[LOOP_STEPS];
    int64_t ran;
    run_loop(1, 3, "ok", &w, sums, after, &ran);
    assert_int_equal(ran, 2);
    assert_float_equal(w, 53, 0);
    sx_graph *g = loop_graph();
    sx_executable *e;
    sx_platform *p = open_platform(pjrt_plugin(), 1);
    sx_compile_options o = {.batch = 4, .steps = 2, .ok_output = "w_after"};
    assert_error(sx_compile(p, g, &o, &e), SX_INVALID_ARGUMENT, "no bool output \"w_after\"");
    sx_platform_close(p);
    assert_ok(sx_platform_open("host", NULL, &p));
    assert_error(sx_compile(p, g, &o, &e), SX_UNIMPLEMENTED, "host runs one step at a time");
    sx_platform_close(p);
    sx_graph_destroy(g);
}

/* --- Faults on the way: our own plugin -------------------------------
 */

static void test_backends_pjrt__rejected_programs_name_the_node(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    sx_executable *e;
    clear_environment();
    sx_platform *p = open_platform(ref_plugin(), 1);
    setenv("SX_PJRT_REF_FAULT",
           "compile:0:loc(\"dense/matmul\"): error: 'stablehlo.dot_general' is not for me", 1);
    assert_error(sx_compile(p, g, &(sx_compile_options){.batch = 4}, &e), SX_INVALID_ARGUMENT,
                 "matmul \"dense/matmul\": PJRT Client_Compile: loc(\"dense/matmul\"): error: "
                 "'stablehlo.dot_general' is not for me");
    clear_environment();
    sx_platform_close(p);
    sx_graph_destroy(g);
}

static void test_backends_pjrt__a_refused_step_leaves_the_variables(void **state)
{
    (void)state;
    step_run s;
    float w[2];
    clear_environment();
    step_begin(&s, ref_plugin(), 1);
    setenv("SX_PJRT_REF_FAULT", "oom", 1);
    assert_error(sx_run_execute(s.run, s.args, s.outputs), SX_RESOURCE_EXHAUSTED,
                 "executing on /device:CPU:0: PJRT LoadedExecutable_Execute: Out of memory");
    assert_ok(sx_device_buffer_read(s.args[0], w)); /* nothing was consumed */
    assert_float_equal(w[0], 0.5, 0);
    clear_environment();
    assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    step_end(&s);
}

static void test_backends_pjrt__a_step_that_fails_later_is_that_step(void **state)
{
    (void)state;
    step_run s;
    float w[2] = {0};
    clear_environment();
    step_begin(&s, ref_plugin(), 1);
    setenv("SX_PJRT_REF_FAULT", "later", 1);
    assert_error(sx_run_execute(s.run, s.args, s.outputs), SX_UNAVAILABLE, "device lost");
    clear_environment();
    /* The variable went with it; a new value brings all back. */
    assert_error(sx_run_execute(s.run, s.args, s.outputs), SX_UNAVAILABLE, "device lost");
    assert_error(sx_device_buffer_read(s.args[0], w), SX_UNAVAILABLE, "device lost");
    assert_ok(sx_device_buffer_write(s.args[0], w, false));
    assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    step_end(&s);
}

/* Another read is under way when the second is refused. */
static void test_backends_pjrt__a_refused_read_waits_for_the_others(void **state)
{
    (void)state;
    step_run s;
    float x[7], y[7];
    clear_environment();
    step_begin(&s, ref_plugin(), 1);
    assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    sx_device_buffer *const buffers[] = {s.outputs[2], s.args[0]};
    setenv("SX_PJRT_REF_FAULT", "get:2", 1);
    assert_error(sx_device_buffers_read(2, buffers, (void *[]){x, x + 1}), SX_UNAVAILABLE,
                 "the transfer from the device failed");
    clear_environment();
    read_each(&s, x, y);
    assert_memory_equal(x, y, sizeof(x));
    step_end(&s);
}

/* The copy to the first replica has begun when that to the second is refused; then the caller's
 * memory is the caller's again. */
static void test_backends_pjrt__a_refused_write_waits_for_its_copies(void **state)
{
    (void)state;
    enum { PAGE = 4096, PUTS_BEFORE = 6 };
    step_run s;
    clear_environment();
    setenv("SX_PJRT_REF", "delay=20000", 1);
    step_begin(&s, ref_plugin(), 2);
    assert_ok(sx_run_execute(s.run, s.args, s.outputs));
    char *data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    char fault[16];
    snprintf(fault, sizeof(fault), "put:%d", PUTS_BEFORE + 2);
    setenv("SX_PJRT_REF_FAULT", fault, 1);
    assert_error(sx_device_buffer_write(s.args[0], data, true), SX_UNAVAILABLE,
                 "the transfer to the device failed");
    assert_int_equal(munmap(data, PAGE), 0);
    clear_environment();
    step_end(&s); /* what is under way is done first */
}

static void test_backends_pjrt__batches_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    sx_graph *g = step_graph();
    sx_executable *e;
    sx_platform *p = open_platform(pjrt_plugin(), 4);
    assert_error(sx_compile(p, g, &(sx_compile_options){.batch = 6}, &e), SX_INVALID_ARGUMENT,
                 "batch size 6 is not a multiple of 4 replicas; the nearest are 4 and 8");
    sx_platform_close(p);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_pjrt__compile_options),
    cmocka_unit_test(test_backends_pjrt__xla_options),
    cmocka_unit_test(test_backends_pjrt__settings),
    cmocka_unit_test(test_backends_pjrt__program_text),
    cmocka_unit_test(test_backends_pjrt__program_of_replicas),
    cmocka_unit_test(test_backends_pjrt__program_of_processes),
    cmocka_unit_test(test_backends_pjrt__messages_name_nodes),
    cmocka_unit_test(test_backends_pjrt__lowering_survives_failing_allocations),
    cmocka_unit_test(test_backends_pjrt__finds_plugins),
    cmocka_unit_test(test_backends_pjrt__finds_packages_of_an_interpreter),
    cmocka_unit_test(test_backends_pjrt__says_what_to_install),
    cmocka_unit_test(test_backends_pjrt__plugins_that_fail_to_load),
    cmocka_unit_test(test_backends_pjrt__libraries_that_are_no_plugins),
    cmocka_unit_test(test_backends_pjrt__no_client),
    cmocka_unit_test(test_backends_pjrt__a_loop_of_outputs),
    cmocka_unit_test(test_backends_pjrt__clients_are_shared),
    scratch_test(test_backends_pjrt__companions_are_loaded_first),
    cmocka_unit_test(test_backends_pjrt__lists_devices),
    cmocka_unit_test(test_backends_pjrt__buffers_hold_every_type),
    cmocka_unit_test(test_backends_pjrt__an_execution_takes_donated_inputs),
    cmocka_unit_test(test_backends_pjrt__a_step_updates_its_variable_in_place),
    cmocka_unit_test(test_backends_pjrt__says_what_a_program_needs),
    cmocka_unit_test(test_backends_pjrt__buffers_are_read_at_once),
    cmocka_unit_test(test_backends_pjrt__steps_do_not_allocate),
    cmocka_unit_test(test_backends_pjrt__dumps_programs),
    cmocka_unit_test(test_backends_pjrt__the_loop_runs_steps_over_a_superbatch),
    cmocka_unit_test(test_backends_pjrt__the_loop_runs_as_long_as_told),
    cmocka_unit_test(test_backends_pjrt__the_loop_leaves_when_not_ok),
    cmocka_unit_test(test_backends_pjrt__rejected_programs_name_the_node),
    cmocka_unit_test(test_backends_pjrt__a_refused_step_leaves_the_variables),
    cmocka_unit_test(test_backends_pjrt__a_step_that_fails_later_is_that_step),
    cmocka_unit_test(test_backends_pjrt__a_refused_read_waits_for_the_others),
    cmocka_unit_test(test_backends_pjrt__a_refused_write_waits_for_its_copies),
    cmocka_unit_test(test_backends_pjrt__batches_that_do_not_divide_are_refused),
};
SX_TEST_MAIN(tests)
