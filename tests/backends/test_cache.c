/* The cache of compiled programs: its files, and compiling through it. */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt/cache.h"
#include "base/memory.h"
#include "io/crc32c.h"
#include "pjrt_plugin.h"
#include "torture.h"

static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/sextant-cache-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* The path of the directory's only entry, or of the n-th by name; counts them. */
static int entries(char path[512], int n)
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, alphasort), seen = 0;
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.' && seen++ == n && path != NULL) {
            snprintf(path, 512, "%s/%s", dir, names[i]->d_name);
        }
        free(names[i]);
    }
    free(names);
    return seen;
}

static sx_pjrt_cache_key key_of(const char *text)
{
    const sx_bytes part = {text, strlen(text)};
    sx_pjrt_cache_key key;
    assert_ok(sx_pjrt_cache_key_of(&part, 1, &key));
    return key;
}

static void write_entry(const char *name, size_t size, uint64_t max_bytes)
{
    sx_pjrt_cache_key key = key_of(name);
    char *bytes = sx_alloc(size + 1, 1);
    memset(bytes, name[0], size);
    const sx_pjrt_cache_entry entry = {
        .bytes = bytes, .size = size, .facts = {.argument_bytes = 7, .flops = 2.5}};
    assert_ok(sx_pjrt_cache_write(dir, &key, &entry, max_bytes));
    sx_free(bytes);
}

static bool has_entry(const char *name)
{
    sx_pjrt_cache_key key = key_of(name);
    sx_pjrt_cache_entry entry = {0};
    sx_status status = sx_pjrt_cache_read(dir, &key, &entry);
    bool found = status == SX_OK;
    assert_true(found || sx_status_code(status) == SX_NOT_FOUND);
    sx_status_free(status);
    sx_free(entry.bytes);
    return found;
}

/* ---- Files ---- */

static void test_backends_cache__keeps_bytes_and_facts(void **state)
{
    (void)state;
    make_dir();
    sx_pjrt_cache_key key = key_of("a");
    sx_pjrt_cache_entry entry;
    write_entry("a", 1000, 1 << 20);
    assert_ok(sx_pjrt_cache_read(dir, &key, &entry));
    assert_int_equal(entry.size, 1000);
    assert_int_equal(entry.bytes[999], 'a');
    assert_int_equal(entry.facts.argument_bytes, 7);
    assert_float_equal(entry.facts.flops, 2.5, 0);
    sx_free(entry.bytes);
    assert_false(has_entry("b"));
    sx_pjrt_cache_remove(dir, &key);
    assert_false(has_entry("a"));
    remove_dir();
}

static void test_backends_cache__keys_know_where_parts_end(void **state)
{
    (void)state;
    const sx_bytes one[] = {{"ab", 2}, {"c", 1}}, other[] = {{"a", 1}, {"bc", 2}};
    sx_pjrt_cache_key a, b;
    assert_ok(sx_pjrt_cache_key_of(one, 2, &a));
    assert_ok(sx_pjrt_cache_key_of(other, 2, &b));
    assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
}

static void test_backends_cache__the_oldest_go_first(void **state)
{
    (void)state;
    make_dir();
    const uint64_t room = 3 * (1000 + SX_PJRT_CACHE_HEADER_BYTES);
    write_entry("a", 1000, room);
    usleep(20000);
    write_entry("b", 1000, room);
    usleep(20000);
    write_entry("c", 1000, room);
    usleep(20000);
    assert_true(has_entry("a")); /* it is the youngest now */
    usleep(20000);
    write_entry("d", 1000, room);
    assert_false(has_entry("b"));
    assert_true(has_entry("a") && has_entry("c") && has_entry("d"));
    write_entry("e", 5000, room); /* never fits: nothing happens */
    assert_false(has_entry("e"));
    assert_true(has_entry("a") && has_entry("c") && has_entry("d"));
    remove_dir();
}

/* Every flip and every truncation of a small entry is noticed. */
static void test_backends_cache__notices_damage(void **state)
{
    (void)state;
    char data[SX_PJRT_CACHE_HEADER_BYTES + 9], copy[sizeof(data)], path[512] = "";
    sx_pjrt_cache_key key = key_of("x");
    sx_pjrt_cache_entry entry;
    make_dir();
    write_entry("x", 9, 1 << 20);
    assert_int_equal(entries(path, 0), 1);
    int fd = open(path, O_RDWR);
    assert_int_equal(read(fd, data, sizeof(data)), sizeof(data));
    memcpy(copy, data, sizeof(data));
    assert_ok(sx_pjrt_cache_parse(&key, copy, sizeof(copy), &entry));
    for (size_t i = 0; i < sizeof(data); i++) {
        copy[i] = (char)(data[i] ^ 0x10);
        assert_error(sx_pjrt_cache_parse(&key, copy, sizeof(copy), &entry), SX_DATA_LOSS,
                     "compiled program");
        copy[i] = data[i];
        assert_error(sx_pjrt_cache_parse(&key, copy, i, &entry), SX_DATA_LOSS, "compiled program");
    }
    assert_int_equal(pwrite(fd, "!", 1, 50), 1);
    close(fd);
    assert_error(sx_pjrt_cache_read(dir, &key, &entry), SX_DATA_LOSS, path);
    assert_int_equal(entries(NULL, 0), 0); /* it is gone */
    remove_dir();
}

static void test_backends_cache__a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    sx_pjrt_cache_key key = key_of("x");
    const sx_pjrt_cache_entry entry = {.bytes = (char[]){0}, .size = 1};
    assert_error(sx_pjrt_cache_write("/proc/nowhere", &key, &entry, 1 << 20), SX_NOT_FOUND,
                 "/proc/nowhere");
}

/* ---- Compiling through it ---- */

/* y = x w + `bias` */
static sx_graph *small_graph(double bias)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 4, 2)});
    sx_output(b, "y", sx_add(b, sx_matmul(b, x, w), sx_constant_f32(b, bias)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

typedef struct compiling {
    const char *plugin;
    int replicas;
    int64_t batch;
    double bias;
    const char *cache_dir;
} compiling;

/* Compiles and runs on x = 1 …, w = 1: y is 4 + bias. Whether it came from the cache. */
static bool compile_and_run(const compiling *c)
{
    float x[32], w[8], y[16];
    sx_platform *p;
    sx_executable *e;
    sx_executable_info info;
    sx_device_buffer *args[2], *out[1];
    sx_graph *g = small_graph(c->bias);
    for (int i = 0; i < 32; i++) {
        x[i] = 1;
        w[i % 8] = 1;
    }
    const sx_platform_options where = {.pjrt.plugin_path = c->plugin,
                                       .pjrt.replicas = c->replicas,
                                       .pjrt.cache_dir = c->cache_dir};
    assert_ok(sx_platform_open("pjrt", &where, &p));
    assert_ok(sx_compile(p, g, &(sx_compile_options){.batch = c->batch}, &e));
    assert_ok(sx_executable_get_info(e, &info));
    assert_int_equal(info.argument_bytes, (c->batch / c->replicas) * 16 + 32);
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_device_buffer_create(p->devices[0], &e->arg_types[i], &args[i]));
        bool is_x = e->arg_types[i].dims[0] == c->batch && e->arg_types[i].dims[1] == 4;
        assert_ok(sx_device_buffer_write(args[i], is_x ? x : w, false));
    }
    assert_ok(sx_device_buffer_create(p->devices[0], &e->result_types[0], &out[0]));
    assert_ok(sx_execute(e, args, out));
    assert_ok(sx_device_buffer_read(out[0], y));
    for (int i = 0; i < c->batch * 2; i++) {
        assert_float_equal(y[i], 4 + c->bias, 0);
    }
    sx_device_buffer_release(args[0]);
    sx_device_buffer_release(args[1]);
    sx_device_buffer_release(out[0]);
    sx_executable_release(e);
    sx_platform_close(p);
    sx_graph_destroy(g);
    return info.from_cache;
}

static void test_backends_cache__a_program_is_compiled_once(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    make_dir();
    compiling c = {pjrt_plugin(), 1, 8, 0.5, dir};
    assert_false(compile_and_run(&c));
    assert_true(compile_and_run(&c));
    c.bias = 0.25;
    assert_false(compile_and_run(&c)); /* another program */
    c.replicas = 2;
    assert_false(compile_and_run(&c)); /* other options */
    assert_true(compile_and_run(&c));
    assert_int_equal(entries(NULL, 0), 3);
    setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false", 1);
    assert_false(compile_and_run(&c)); /* other flags */
    unsetenv("XLA_FLAGS");
    c.cache_dir = NULL;
    assert_false(compile_and_run(&c));
    remove_dir();
}

static void test_backends_cache__a_damaged_entry_is_compiled_anew(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    char path[512] = "";
    make_dir();
    const compiling c = {pjrt_plugin(), 1, 8, 0.5, dir};
    assert_false(compile_and_run(&c));
    assert_int_equal(entries(path, 0), 1);
    assert_int_equal(truncate(path, 300), 0);
    assert_false(compile_and_run(&c));
    assert_true(compile_and_run(&c));
    remove_dir();
}

/* Our own plugin misbehaves: what it refuses to load is compiled anew; what it cannot
 * write is not kept. */
static void test_backends_cache__a_refused_entry_is_compiled_anew(void **state)
{
    (void)state;
    make_dir();
    const compiling c = {ref_plugin(), 1, 8, 0.5, dir};
    setenv("SX_PJRT_REF_FAULT", "serialize", 1);
    assert_false(compile_and_run(&c));
    assert_int_equal(entries(NULL, 0), 0);
    setenv("SX_PJRT_REF_FAULT", "", 1);
    assert_false(compile_and_run(&c));
    assert_true(compile_and_run(&c));
    setenv("SX_PJRT_REF_FAULT", "deserialize", 1);
    assert_false(compile_and_run(&c));
    assert_int_equal(entries(NULL, 0), 1); /* it was written again */
    unsetenv("SX_PJRT_REF_FAULT");
    remove_dir();
}

static void test_backends_cache__a_folder_that_cannot_be_written_changes_nothing(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    const compiling c = {pjrt_plugin(), 1, 8, 0.5, "/proc/nowhere"};
    assert_false(compile_and_run(&c));
    assert_false(compile_and_run(&c));
}

/* The file, byte for byte as cache.h draws it: what an older build wrote is read. */
static void test_backends_cache__files_have_this_layout(void **state)
{
    (void)state;
    char path[512] = "", data[SX_PJRT_CACHE_HEADER_BYTES + 4];
    const sx_pjrt_cache_key key = key_of("layout");
    sx_pjrt_cache_entry entry = {
        .bytes = (char[]){'c', 'o', 'd', 'e'}, .size = 4, .facts = {1, 2, 3, 4, 5, 6.5}};
    const int64_t facts[5] = {1, 2, 3, 4, 5};
    const double flops = 6.5;
    const uint64_t size = 4;
    make_dir();
    assert_ok(sx_pjrt_cache_write(dir, &key, &entry, 1 << 20));
    assert_int_equal(entries(path, 0), 1);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, data, sizeof(data)), sizeof(data));
    close(fd);
    assert_memory_equal(data, "sxpjrt01", 8);
    assert_memory_equal(data + 8, key.bytes, 32);
    assert_memory_equal(data + 40, &size, 8);
    assert_memory_equal(data + 48, facts, 40);
    assert_memory_equal(data + 88, &flops, 8);
    uint32_t crc = sx_crc32c_mask(sx_crc32c(sx_crc32c(0, data, 96), "code", 4));
    assert_memory_equal(data + 96, &crc, 4);
    assert_memory_equal(data + 100, "code", 4);
    for (int i = 0; i < 32; i++) { /* the name is the key in hexadecimal */
        char hex[3];
        snprintf(hex, sizeof(hex), "%02x", key.bytes[i]);
        assert_memory_equal(path + strlen(dir) + 1 + 2 * i, hex, 2);
    }
    assert_string_equal(path + strlen(dir) + 1 + 64, ".exe");
    memset(&entry, 0, sizeof(entry));
    assert_ok(sx_pjrt_cache_read(dir, &key, &entry));
    assert_memory_equal(&entry.facts, ((const sx_pjrt_facts[]){{1, 2, 3, 4, 5, 6.5}}),
                        sizeof(entry.facts));
    sx_free(entry.bytes);
    remove_dir();
}

/* As many entries as fit to the byte stay; files of other names are nobody's business. */
static void test_backends_cache__room_is_counted_to_the_byte(void **state)
{
    (void)state;
    const uint64_t each = 1000 + SX_PJRT_CACHE_HEADER_BYTES;
    for (int less = 0; less < 2; less++) {
        char other[128];
        make_dir();
        snprintf(other, sizeof(other), "%s/notes.exe", dir);
        FILE *file = fopen(other, "w");
        fputs("not an entry", file);
        fclose(file);
        write_entry("a", 1000, 2 * each);
        usleep(20000);
        write_entry("b", 1000, 2 * each - (uint64_t)less);
        assert_int_equal(has_entry("a"), less == 0);
        assert_true(has_entry("b"));
        assert_int_equal(access(other, F_OK), 0);
        write_entry("c", 1000, each - (uint64_t)less); /* one that just fits, or does not */
        assert_int_equal(has_entry("c"), less == 0);
        assert_int_equal(access(other, F_OK), 0);
        remove_dir();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_cache__keeps_bytes_and_facts),
    cmocka_unit_test(test_backends_cache__keys_know_where_parts_end),
    cmocka_unit_test(test_backends_cache__the_oldest_go_first),
    cmocka_unit_test(test_backends_cache__notices_damage),
    cmocka_unit_test(test_backends_cache__a_folder_that_cannot_be_made_is_an_error),
    cmocka_unit_test(test_backends_cache__a_program_is_compiled_once),
    cmocka_unit_test(test_backends_cache__a_damaged_entry_is_compiled_anew),
    cmocka_unit_test(test_backends_cache__a_refused_entry_is_compiled_anew),
    cmocka_unit_test(test_backends_cache__a_folder_that_cannot_be_written_changes_nothing),
    cmocka_unit_test(test_backends_cache__files_have_this_layout),
    cmocka_unit_test(test_backends_cache__room_is_counted_to_the_byte),
};
SX_TEST_MAIN(tests)
