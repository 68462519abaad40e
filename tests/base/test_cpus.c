#include "harness.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/ram.h"

/* A made-up /proc/self/cgroup and hierarchy in a temporary directory. */
typedef struct sandbox {
    char root[64];
    char self[128];
} sandbox;

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static sandbox make_sandbox(const char *self)
{
    sandbox s = {.root = "/tmp/sextant-cpus-XXXXXX"};
    assert_non_null(mkdtemp(s.root));
    snprintf(s.self, sizeof(s.self), "%s/self", s.root);
    write_file(s.root, "self", self);
    return s;
}

static void remove_sandbox(const sandbox *s)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", s->root);
    assert_int_equal(system(command), 0);
}

static void test_base_cpus__version_2_takes_the_smallest_group(void **state)
{
    (void)state;
    sandbox s = make_sandbox("0::/user/job\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 0);
    write_file(s.root, "user/job/cpu.max", "max 100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 0);
    write_file(s.root, "user/cpu.max", "250000 100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 3);
    write_file(s.root, "user/job/cpu.max", "400000 100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 3);
    write_file(s.root, "cpu.max", "50000 100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 1);
    remove_sandbox(&s);
}

static void test_base_cpus__version_1_reads_quota_and_period(void **state)
{
    (void)state;
    sandbox s = make_sandbox("5:memory:/m\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/x\n");
    write_file(s.root, "cpu/cpu.cfs_quota_us", "200000\n");
    write_file(s.root, "cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 2);
    write_file(s.root, "cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    write_file(s.root, "cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sx_cpu_quota(s.self, s.root), 2);
    remove_sandbox(&s);
}

static void test_base_cpus__memory_takes_the_smallest_group(void **state)
{
    (void)state;
    sandbox s = make_sandbox("0::/user/job\n4:memory:/docker\n5:cpu,cpuacct:/m\n");
    assert_int_equal(sx_ram_quota(s.self, s.root), 0);
    write_file(s.root, "user/job/memory.max", "max\n");
    write_file(s.root, "memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(sx_ram_quota(s.self, s.root), 9223372036854771712);
    assert_true(sx_ram_bytes() > 0 && sx_ram_bytes() < 9223372036854771712);
    write_file(s.root, "user/memory.max", "268435456\n");
    assert_int_equal(sx_ram_quota(s.self, s.root), 268435456);
    write_file(s.root, "memory/memory.limit_in_bytes", "1000000\n");
    assert_int_equal(sx_ram_quota(s.self, s.root), 1000000);
    write_file(s.root, "memory/m/memory.limit_in_bytes", "5\n"); /* another controller's group */
    assert_int_equal(sx_ram_quota(s.self, s.root), 1000000);
    remove_sandbox(&s);
}

static void test_base_cpus__garbage_means_no_quota(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "\n", "0", "::", "0::", "x:cpu", "0:cpu:", "0::/../../x\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        sandbox s = make_sandbox(texts[i]);
        write_file(s.root, "cpu.max", "nonsense");
        write_file(s.root, "memory.max", "-5");
        assert_int_equal(sx_cpu_quota(s.self, s.root), 0);
        assert_int_equal(sx_ram_quota(s.self, s.root), 0);
        remove_sandbox(&s);
    }
    assert_int_equal(sx_cpu_quota("/nonexistent", "/nonexistent"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_cpus__version_2_takes_the_smallest_group),
    cmocka_unit_test(test_base_cpus__version_1_reads_quota_and_period),
    cmocka_unit_test(test_base_cpus__memory_takes_the_smallest_group),
    cmocka_unit_test(test_base_cpus__garbage_means_no_quota),
};

SX_TEST_MAIN(tests)
