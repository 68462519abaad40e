#include "harness.h"

#include "base/checked.h"
#include "base/clock.h"
#include "serve/fake_model.h"
#include "serve/lifecycle.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_lifecycle *lifecycle;
};

static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
}

static void start(struct scene *scene)
{
    const sx_lifecycle_config config = {.name = "m",
                                        .base_path = scene->base,
                                        .ops = &fake_ops,
                                        .ops_user = &scene->runtime,
                                        .poll_wait_seconds = 0.05,
                                        .settle_ms = 20,
                                        .load_retry_seconds = 0.1,
                                        .max_load_retries = 2};
    assert_ok(sx_lifecycle_create(&config, &scene->lifecycle));
    assert_ok(sx_lifecycle_start(scene->lifecycle));
}

static void close_scene(struct scene *scene)
{
    char command[200];
    sx_lifecycle_destroy(scene->lifecycle);
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    for (int version = 0; version < 100; version++) {
        snprintf(command, sizeof(command), "%d", version);
        fake_remove_version(scene->base, command);
        snprintf(command, sizeof(command), "%04d", version);
        fake_remove_version(scene->base, command);
    }
    rmdir(scene->base);
}

/* The version served now, -1 if none. */
static int64_t served(struct scene *scene)
{
    sx_served *servable = NULL;
    sx_status status = sx_lifecycle_acquire(scene->lifecycle, SX_LATEST_VERSION, &servable);
    if (status != SX_OK) {
        sx_status_free(status);
        return -1;
    }
    const int64_t version = sx_served_version(servable);
    sx_served_release(servable);
    return version;
}

static void wait_served(struct scene *scene, int64_t version)
{
    const int64_t begin = sx_now_ns();
    while (served(scene) != version) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("version %lld is not served, but %lld", (long long)version,
                     (long long)served(scene));
        }
        fake_sleep(2);
    }
}

/* Waits until a version has that state, and checks its message. */
static void wait_state(struct scene *scene, int64_t version, sx_version_state state,
                       const char *message)
{
    const int64_t begin = sx_now_ns();
    for (;;) {
        sx_arena arena;
        sx_version_status *rows = NULL;
        size_t count = 0;
        bool found = false;
        sx_arena_init(&arena, 0);
        sx_status_free(sx_lifecycle_status(scene->lifecycle, &arena, &rows, &count));
        for (size_t i = 0; i < count; i++) {
            assert_true(i == 0 || rows[i - 1].version > rows[i].version);
            found |= rows[i].version == version && rows[i].state == state &&
                     strstr(rows[i].message, message) != NULL;
        }
        sx_arena_deinit(&arena);
        if (found) {
            return;
        }
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("version %lld never was %s", (long long)version, sx_version_state_name(state));
        }
        fake_sleep(2);
    }
}

static void test_serve_lifecycle__serves_the_newest(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    fake_publish(scene.base, "0003", 3, 0, 0, 0);
    start(&scene);
    assert_true(sx_lifecycle_wait_ready(scene.lifecycle, 5000));
    assert_int_equal(served(&scene), 3);
    sx_served *servable = NULL;
    assert_error(sx_lifecycle_acquire(scene.lifecycle, 1, &servable), SX_NOT_FOUND,
                 "Servable not found for request: Specific(m, 1)");
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 3, &servable));
    fake_publish(scene.base, "4", 4, 0, 0, 0);
    wait_served(&scene, 4);
    /* A request in flight keeps its version; it is unloaded when that ends. */
    wait_state(&scene, 3, SX_VERSION_UNLOADING, "");
    assert_int_equal(atomic_load(&scene.runtime.unloads), 0);
    assert_int_equal(sx_served_version(servable), 3);
    sx_served_release(servable);
    wait_state(&scene, 3, SX_VERSION_END, "");
    assert_int_equal(atomic_load(&scene.runtime.unloads), 1);
    wait_state(&scene, 4, SX_VERSION_AVAILABLE, "");
    close_scene(&scene);
}

static void test_serve_lifecycle__bad_versions_displace_nothing(void **state)
{
    (void)state;
    struct scene scene;
    char path[200];
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    fake_publish(scene.base, "2", 2, 0, 0, 1);
    wait_state(&scene, 2, SX_VERSION_END, "model.txt is corrupt");
    snprintf(path, sizeof(path), "%s/3", scene.base); /* half copied: its file is not there yet */
    assert_int_equal(mkdir(path, 0777), 0);
    wait_state(&scene, 3, SX_VERSION_END, "model.txt is missing");
    assert_int_equal(served(&scene), 1);
    /* The rest of the copy arrives: no need to wait for a retry. */
    snprintf(path, sizeof(path), "%s/3/model.txt", scene.base);
    FILE *file = fopen(path, "w");
    fprintf(file, "scale=3 load_ms=0 run_ms=0 fail=0\n");
    fclose(file);
    wait_served(&scene, 3);
    wait_state(&scene, 3, SX_VERSION_AVAILABLE, "");
    close_scene(&scene);
}

/* Files that go on changing are not loaded; nothing is ever loaded half. */
static void test_serve_lifecycle__waits_for_copies_to_settle(void **state)
{
    (void)state;
    struct scene scene;
    char path[200];
    open_scene(&scene);
    start(&scene);
    snprintf(path, sizeof(path), "%s/1", scene.base);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/1/model.txt", scene.base);
    FILE *file = fopen(path, "w");
    static const char text[] = "scale=3 load_ms=0 run_ms=0 fail=0\n";
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        fputc(text[i], file);
        fflush(file);
        fake_sleep(4);
        assert_int_equal(served(&scene), -1);
    }
    fclose(file);
    wait_served(&scene, 1);
    close_scene(&scene);
}

static void test_serve_lifecycle__falls_back_and_rolls_back(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    fake_publish(scene.base, "2", 2, 0, 0, 1);
    start(&scene);
    wait_served(&scene, 1); /* the newest does not load: an older one serves */
    wait_state(&scene, 2, SX_VERSION_END, "corrupt");
    fake_publish(scene.base, "5", 5, 0, 0, 0);
    wait_served(&scene, 5);
    fake_remove_version(scene.base, "5");
    wait_served(&scene, 1); /* its directory is gone: back to the highest that works */
    fake_remove_version(scene.base, "2");
    fake_remove_version(scene.base, "1");
    fake_sleep(200);
    assert_int_equal(served(&scene), 1); /* nothing is left on disk: it serves on */
    close_scene(&scene);
}

static void test_serve_lifecycle__retries_failed_loads(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    atomic_store(&scene.runtime.failing_loads, 3);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene); /* two retries: three failures in all, then it rests */
    wait_state(&scene, 1, SX_VERSION_END, "no memory just now");
    fake_sleep(600);
    assert_int_equal(atomic_load(&scene.runtime.failing_loads), 0);
    assert_int_equal(served(&scene), -1);
    fake_remove_version(scene.base, "1");
    atomic_store(&scene.runtime.failing_loads, 2);
    fake_publish(scene.base, "1", 1, 0, 0, 0); /* other files: a fresh count */
    wait_served(&scene, 1);
    assert_int_equal(atomic_load(&scene.runtime.loads), 1);
    close_scene(&scene);
}

static void test_serve_lifecycle__explains_missing_paths(void **state)
{
    (void)state;
    struct scene scene;
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    open_scene(&scene);
    sx_lifecycle *none = NULL;
    assert_error(sx_lifecycle_create(&(sx_lifecycle_config){.name = "m", .ops = &fake_ops}, &none),
                 SX_INVALID_ARGUMENT, "model_base_path");
    rmdir(scene.base);
    start(&scene);
    sx_arena_init(&arena, 0);
    assert_false(sx_lifecycle_wait_ready(scene.lifecycle, 5000));
    assert_error(sx_lifecycle_status(scene.lifecycle, &arena, &rows, &count), SX_NOT_FOUND,
                 "Could not find base path");
    mkdir(scene.base, 0777);
    fake_sleep(200);
    assert_error(sx_lifecycle_status(scene.lifecycle, &arena, &rows, &count), SX_NOT_FOUND,
                 "No versions of servable m found under base path");
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    wait_served(&scene, 1);
    sx_arena_deinit(&arena);
    close_scene(&scene);
}

/* An inotify event, not the poll, brings a new version in. */
static void test_serve_lifecycle__notices_new_versions_soon(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    const sx_lifecycle_config config = {.name = "m",
                                        .base_path = scene.base,
                                        .ops = &fake_ops,
                                        .ops_user = &scene.runtime,
                                        .poll_wait_seconds = 60};
    assert_ok(sx_lifecycle_create(&config, &scene.lifecycle));
    assert_ok(sx_lifecycle_start(scene.lifecycle));
    wait_served(&scene, 1);
    fake_publish(scene.base, "2", 2, 0, 0, 0);
    wait_served(&scene, 2);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_lifecycle__serves_the_newest),
    cmocka_unit_test(test_serve_lifecycle__bad_versions_displace_nothing),
    cmocka_unit_test(test_serve_lifecycle__waits_for_copies_to_settle),
    cmocka_unit_test(test_serve_lifecycle__falls_back_and_rolls_back),
    cmocka_unit_test(test_serve_lifecycle__retries_failed_loads),
    cmocka_unit_test(test_serve_lifecycle__explains_missing_paths),
    cmocka_unit_test(test_serve_lifecycle__notices_new_versions_soon),
};
SX_TEST_MAIN(tests)
