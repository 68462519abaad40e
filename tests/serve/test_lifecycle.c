#include "harness.h"

#include <pthread.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "serve/fake_model.h"
#include "serve/lifecycle.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_lifecycle *lifecycle;
    sx_lifecycle_config config; /* zeros: what start() sets */
};

static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
}

static void start(struct scene *scene)
{
    sx_lifecycle_config config = scene->config;
    config.name = "m";
    config.base_path = scene->base;
    config.ops = &fake_ops;
    config.ops_user = &scene->runtime;
    config.poll_wait_seconds = 0.05;
    config.settle_ms = config.settle_ms != 0 ? config.settle_ms : 20;
    config.load_retry_seconds = 0.1;
    config.max_load_retries = 2;
    assert_ok(sx_lifecycle_create(&config, &scene->lifecycle));
    assert_ok(sx_lifecycle_start(scene->lifecycle));
}

static void close_scene(struct scene *scene)
{
    char command[200];
    assert_true(sx_lifecycle_destroy(scene->lifecycle));
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
        if (sx_now_ns() - begin > (int64_t)30 * 1000000000) {
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
        if (sx_now_ns() - begin > (int64_t)30 * 1000000000) {
            fail_msg("version %lld never was %s", (long long)version, sx_version_state_name(state));
        }
        fake_sleep(2);
    }
}

/* Waits until exactly these versions, given as digits, are available. */
static void wait_available(struct scene *scene, const char *versions)
{
    char found[16] = "";
    const int64_t begin = sx_now_ns();
    while (sx_now_ns() - begin < (int64_t)30 * 1000000000) {
        sx_arena arena;
        sx_version_status *rows = NULL;
        size_t count = 0, n = 0;
        sx_arena_init(&arena, 0);
        sx_status_free(sx_lifecycle_status(scene->lifecycle, &arena, &rows, &count));
        for (size_t i = 0; i < count; i++) {
            if (rows[i].state == SX_VERSION_AVAILABLE) {
                found[n++] = (char)('0' + rows[i].version);
            }
        }
        found[n] = '\0';
        sx_arena_deinit(&arena);
        if (strcmp(found, versions) == 0) {
            return;
        }
        fake_sleep(2);
    }
    fail_msg("versions %s are available, expected %s", found, versions);
}

/* Which of the scale's multiples version `version` answers; -1: it is not served. */
static float answer_of(struct scene *scene, int64_t version)
{
    sx_served *servable = NULL;
    sx_arena arena;
    size_t count;
    float x = 1, y = -1;
    sx_tensor in = {{SX_F32, 1, {1}}, &x}, out = {0};
    sx_status status = sx_lifecycle_acquire(scene->lifecycle, version, &servable);
    if (status == SX_OK) {
        sx_arena_init(&arena, 0);
        assert_ok(sx_served_run(servable, sx_served_signatures(servable, &count), &in, NULL, &arena,
                                &out));
        y = *(float *)out.data;
        sx_arena_deinit(&arena);
        sx_served_release(servable);
    }
    sx_status_free(status);
    return y;
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
    static const sx_code codes[] = {SX_RESOURCE_EXHAUSTED, SX_UNAVAILABLE};
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        open_scene(&scene);
        scene.runtime.failing_code = codes[i];
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
}

struct failure_lines {
    atomic_int named, again, gave_up, other;
};

static void count_failures(void *user, sx_log_level level, const char *file, int line,
                           const char *text)
{
    struct failure_lines *lines = user;
    int again = 0, gave_up = 0;
    (void)level;
    (void)file;
    (void)line;
    if (strstr(text, "cannot load version") != NULL) {
        lines->named++;
    } else if (sscanf(text,
                      "model m: %d retries to load a version failed with the same errors; %d "
                      "will be tried again only if their files change",
                      &again, &gave_up) >= 1) {
        lines->again += again;
        lines->gave_up += gave_up;
    } else {
        lines->other++;
    }
}

/* Each broken version is named once, however often it is tried, at twice the distance each time. */
static void test_serve_lifecycle__names_a_broken_version_once(void **state)
{
    (void)state;
    enum { BROKEN = 20 };
    struct scene scene;
    struct failure_lines lines = {0};
    char name[20];
    open_scene(&scene);
    for (int version = 2; version < 2 + BROKEN; version++) {
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(scene.base, name, 1, 0, 0, 1);
    }
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    sx_log_set_sink(count_failures, &lines, SX_LOG_WARN);
    scene.config.remind_seconds = 1.5;
    scene.config.settle_ms = 1;
    start(&scene); /* two retries, after 0.1 s and 0.2 s */
    const int64_t begin_ns = sx_now_ns();
    wait_served(&scene, 1);
    while (atomic_load(&lines.gave_up) < BROKEN) {
        assert_true(sx_now_ns() - begin_ns < (int64_t)20 * 1000000000);
        fake_sleep(5);
    }
    assert_true(sx_now_ns() - begin_ns > 300 * 1000000);
    /* other files with the same error: tried three times more, but not named again */
    char path[200];
    snprintf(path, sizeof(path), "%s/5/more", scene.base);
    FILE *file = fopen(path, "w");
    fclose(file);
    while (atomic_load(&lines.gave_up) < BROKEN + 1) {
        assert_true(sx_now_ns() - begin_ns < (int64_t)20 * 1000000000);
        fake_sleep(5);
    }
    unlink(path);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    assert_int_equal(atomic_load(&lines.named), BROKEN);
    assert_int_equal(atomic_load(&lines.again), 2 * BROKEN + 3);
    assert_int_equal(atomic_load(&lines.gave_up), BROKEN + 1);
    assert_int_equal(atomic_load(&lines.other), 0);
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
    static const char *const missing[][2] = {{NULL, "/b"}, {"", "/b"}, {"m", ""}, {"", ""}};
    for (int i = 0; i < 4; i++) {
        assert_error(sx_lifecycle_create(&(sx_lifecycle_config){.name = missing[i][0],
                                                                .base_path = missing[i][1],
                                                                .ops = &fake_ops},
                                         &none),
                     SX_INVALID_ARGUMENT, "a model needs a name and a base path");
    }
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

static size_t count_rows(struct scene *scene)
{
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    sx_status_free(sx_lifecycle_status(scene->lifecycle, &arena, &rows, &count));
    sx_arena_deinit(&arena);
    return count;
}

/* Half-copied versions come and go, each seen: nothing is left of them, and the next one loads. */
static void test_serve_lifecycle__forgets_versions_that_are_gone(void **state)
{
    (void)state;
    struct scene scene;
    char path[200], name[20];
    open_scene(&scene);
    scene.config.settle_ms = 150;
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    for (int version = 200; version < 270; version++) {
        snprintf(name, sizeof(name), "%d", version);
        snprintf(path, sizeof(path), "%s/%s", scene.base, name);
        assert_int_equal(mkdir(path, 0777), 0);
        wait_state(&scene, version, SX_VERSION_START, "");
        fake_remove_version(scene.base, name);
    }
    fake_publish(scene.base, "50", 5, 0, 0, 0);
    wait_served(&scene, 50);
    wait_state(&scene, 1, SX_VERSION_END, "");
    assert_int_equal(count_rows(&scene), 2);
    close_scene(&scene);
}

/* A version that is served, displaced and on its way out, then asked for again. */
static void test_serve_lifecycle__a_version_comes_back_while_it_drains(void **state)
{
    (void)state;
    struct scene scene;
    sx_served *first = NULL, *second = NULL;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 1, &first));
    fake_publish(scene.base, "2", 2, 0, 0, 0);
    wait_served(&scene, 2);
    wait_state(&scene, 1, SX_VERSION_UNLOADING, "");
    fake_remove_version(scene.base, "2");
    wait_served(&scene, 1);
    wait_state(&scene, 2, SX_VERSION_END, "");
    /* Loaded anew: another servable than the one that the request holds. */
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 1, &second));
    assert_ptr_not_equal(first, second);
    assert_int_equal(atomic_load(&scene.runtime.loads), 3);
    const int unloads = atomic_load(&scene.runtime.unloads);
    sx_served_release(first);
    const int64_t begin = sx_now_ns();
    while (atomic_load(&scene.runtime.unloads) == unloads) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(1);
    }
    fake_sleep(20);
    wait_state(&scene, 1, SX_VERSION_AVAILABLE, ""); /* the one that is served, not the one gone */
    assert_int_equal(served(&scene), 1);
    sx_served_release(second);
    close_scene(&scene);
}

/* A version is unloaded, and served again when it is the highest once more. */
static void test_serve_lifecycle__an_unloaded_version_comes_back(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    for (int round = 0; round < 3; round++) {
        fake_publish(scene.base, "2", 2, 0, 0, 0);
        wait_served(&scene, 2);
        wait_state(&scene, 1, SX_VERSION_END, "");
        wait_state(&scene, 2, SX_VERSION_AVAILABLE, "");
        fake_remove_version(scene.base, "2");
        wait_served(&scene, 1);
        wait_state(&scene, 2, SX_VERSION_END, "");
        wait_state(&scene, 1, SX_VERSION_AVAILABLE, "");
    }
    assert_int_equal(atomic_load(&scene.runtime.loads), 7);
    close_scene(&scene);
}

/* A load that never returns is given up; later versions load, and destroy does not wait for it. */
static void test_serve_lifecycle__gives_up_loads_that_hang(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    scene.config.load_timeout_seconds = 0.2;
    atomic_store(&scene.runtime.hanging, true);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    fake_publish(scene.base, "2", 2, -1, 0, 0);
    wait_state(&scene, 2, SX_VERSION_END, "did not finish within 0.2 s");
    assert_int_equal(served(&scene), 1);
    fake_sleep(300); /* beyond the retry interval: it is not begun a second time */
    assert_int_equal(atomic_load(&scene.runtime.hung), 1);
    fake_publish(scene.base, "3", 3, 0, 0, 0);
    wait_served(&scene, 3);
    wait_state(&scene, 1, SX_VERSION_END, "");
    /* What comes too late is unloaded; it displaces nothing. */
    atomic_store(&scene.runtime.hanging, false);
    const int64_t begin = sx_now_ns();
    while (atomic_load(&scene.runtime.unloads) < 2) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(1);
    }
    assert_int_equal(served(&scene), 3);
    atomic_store(&scene.runtime.hanging, true);
    fake_publish(scene.base, "4", 4, -1, 0, 0);
    while (atomic_load(&scene.runtime.hung) == 0) {
        fake_sleep(1);
    }
    alarm(30); /* destroy would wait for ever */
    assert_false(sx_lifecycle_destroy(scene.lifecycle));
    alarm(0);
    scene.lifecycle = NULL;
    atomic_store(&scene.runtime.hanging, false);
    while (atomic_load(&scene.runtime.unloads) < atomic_load(&scene.runtime.loads) ||
           atomic_load(&scene.runtime.hung) > 0) {
        fake_sleep(1);
    }
    close_scene(&scene);
}

/* A load that heeds its token ends when it is given up, and destroy waits for it. */
static void test_serve_lifecycle__stops_loads_that_it_gives_up(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    scene.config.load_timeout_seconds = 0.2;
    atomic_store(&scene.runtime.hanging, true);
    atomic_store(&scene.runtime.heeding, true);
    fake_publish(scene.base, "1", 1, -1, 0, 0);
    start(&scene);
    wait_state(&scene, 1, SX_VERSION_END, "did not finish within 0.2 s");
    while (atomic_load(&scene.runtime.hung) > 0) {
        fake_sleep(1);
    }
    /* it is loaded again */
    atomic_store(&scene.runtime.hanging, false);
    wait_served(&scene, 1);
    close_scene(&scene);
}

/* The files of the highest version change for ever: the one below it is served all the same. */
static void test_serve_lifecycle__a_version_that_never_settles_holds_back_nobody(void **state)
{
    (void)state;
    struct scene scene;
    char path[200];
    open_scene(&scene);
    scene.config.max_settle_seconds = 0.1;
    scene.config.settle_ms = 60;
    start(&scene);
    snprintf(path, sizeof(path), "%s/9", scene.base);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/9/log", scene.base);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    const int64_t begin = sx_now_ns();
    while (served(&scene) != 1) {
        FILE *file = fopen(path, "a");
        fputs("one more line\n", file);
        fclose(file);
        fake_sleep(5);
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
    }
    unlink(path);
    fake_remove_version(scene.base, "9");
    close_scene(&scene);
}

/* Writes to the file `user` every millisecond until it is told to stop. */
struct writer {
    pthread_t thread;
    char path[200];
    atomic_bool stop;
};

static void *run_writer(void *user)
{
    struct writer *writer = user;
    while (!atomic_load(&writer->stop)) {
        FILE *file = fopen(writer->path, "a");
        fputs("x", file);
        fclose(file);
        fake_sleep(1);
    }
    return NULL;
}

static void count_slow(void *user, sx_log_level level, const char *file, int line,
                       const char *message)
{
    (void)level;
    (void)file;
    (void)line;
    atomic_fetch_add((atomic_int *)user, strstr(message, "keep changing") != NULL);
}

/* The same if looking at it takes longer than settling, as with a link to /proc: said once. */
static void test_serve_lifecycle__a_large_version_that_never_settles_holds_back_nobody(void **state)
{
    (void)state;
    enum { LINKS = 3 };
    static struct writer writer;
    static atomic_int said;
    struct scene scene;
    char path[200];
    open_scene(&scene);
    scene.config.max_settle_seconds = 0.1;
    scene.config.settle_ms = 2;
    snprintf(path, sizeof(path), "%s/9", scene.base);
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 0; i < LINKS; i++) { /* to itself: 3^8 directories */
        snprintf(path, sizeof(path), "%s/9/%d", scene.base, i);
        assert_int_equal(symlink(".", path), 0);
    }
    snprintf(writer.path, sizeof(writer.path), "%s/9/log", scene.base);
    fclose(fopen(writer.path, "w"));
    assert_int_equal(pthread_create(&writer.thread, NULL, run_writer, &writer), 0);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    sx_log_set_sink(count_slow, &said, SX_LOG_INFO);
    start(&scene);
    wait_served(&scene, 1);
    fake_sleep(500); /* some more looks */
    assert_int_equal(atomic_load(&said), 1);
    atomic_store(&writer.stop, true);
    pthread_join(writer.thread, NULL);
    sx_lifecycle_destroy(scene.lifecycle);
    scene.lifecycle = NULL;
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    unlink(writer.path);
    for (int i = 0; i < LINKS; i++) {
        snprintf(path, sizeof(path), "%s/9/%d", scene.base, i);
        unlink(path);
    }
    fake_remove_version(scene.base, "9");
    close_scene(&scene);
}

static void count_missing(void *user, sx_log_level level, const char *file, int line,
                          const char *message)
{
    (void)level;
    (void)file;
    (void)line;
    atomic_fetch_add((atomic_int *)user, strstr(message, ": No versions of servable m") != NULL);
}

/* That there is no version is not said each time that a directory comes and goes. */
static void test_serve_lifecycle__says_once_that_there_is_no_version(void **state)
{
    (void)state;
    static atomic_int said;
    struct scene scene;
    char path[200];
    open_scene(&scene);
    scene.config.settle_ms = 10000;
    snprintf(path, sizeof(path), "%s/7", scene.base);
    sx_log_set_sink(count_missing, &said, SX_LOG_INFO);
    start(&scene);
    for (int i = 0; i < 5; i++) {
        sx_arena arena;
        sx_version_status *rows = NULL;
        size_t count = 0;
        const int64_t begin = sx_now_ns();
        assert_int_equal(mkdir(path, 0777), 0);
        for (int there = 1; there >= 0; there--) { /* until the manager has seen both */
            do {
                sx_arena_init(&arena, 0);
                count = 0;
                sx_status_free(sx_lifecycle_status(scene.lifecycle, &arena, &rows, &count));
                sx_arena_deinit(&arena);
                fake_sleep(1);
                assert_true(sx_now_ns() - begin < (int64_t)10 * 1000000000);
            } while ((int)count != there);
            if (there) {
                rmdir(path);
            }
        }
    }
    assert_int_equal(atomic_load(&said), 1);
    sx_lifecycle_destroy(scene.lifecycle);
    scene.lifecycle = NULL;
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    close_scene(&scene);
}

static void keep_many(void *user, sx_log_level level, const char *file, int line,
                      const char *message)
{
    (void)level;
    (void)file;
    (void)line;
    if (strstr(message, "none of the highest") != NULL) {
        snprintf(user, 300, "%s", message);
    }
}

/* More bad versions than are tried: those left out are named. */
static void test_serve_lifecycle__names_the_versions_that_are_not_tried(void **state)
{
    (void)state;
    static char said[300];
    struct scene scene;
    char name[20];
    open_scene(&scene);
    for (int version = 1; version <= 70; version++) {
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(scene.base, name, version, 0, 0, version > 6);
    }
    sx_log_set_sink(keep_many, said, SX_LOG_INFO);
    start(&scene);
    assert_false(sx_lifecycle_wait_ready(scene.lifecycle, 20000));
    sx_lifecycle_destroy(scene.lifecycle);
    scene.lifecycle = NULL;
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    assert_string_equal(said,
                        "model m: none of the highest 64 versions (70 to 7) can be loaded; the "
                        "6 below them (6 to 1) are not tried; remove some of the former");
    close_scene(&scene);
}

struct lines {
    atomic_int advices, reminders, full;
};

static void count_lines(void *user, sx_log_level level, const char *file, int line,
                        const char *message)
{
    struct lines *lines = user;
    (void)level;
    (void)file;
    (void)line;
    atomic_fetch_add(&lines->advices, strstr(message, "did you mean its parent") != NULL);
    atomic_fetch_add(&lines->full, strstr(message, "32 versions do not respond") != NULL);
    atomic_fetch_add(&lines->reminders, strstr(message, "still nothing to serve: No versions "
                                                        "of servable m found") != NULL);
}

/* Waits until one version is available and no other one has failed: a load that was given up is
 * known until it returns. */
static void wait_settled(struct scene *scene)
{
    const int64_t begin = sx_now_ns();
    for (bool settled = false; !settled;) {
        sx_arena arena;
        sx_version_status *rows = NULL;
        size_t count = 0;
        int available = 0;
        sx_arena_init(&arena, 0);
        sx_status_free(sx_lifecycle_status(scene->lifecycle, &arena, &rows, &count));
        settled = true;
        for (size_t i = 0; i < count; i++) {
            available += rows[i].state == SX_VERSION_AVAILABLE;
            settled &= rows[i].state == SX_VERSION_AVAILABLE ||
                       (rows[i].state == SX_VERSION_END && rows[i].code == SX_CODE_OK);
        }
        settled &= available == 1;
        sx_arena_deinit(&arena);
        assert_true(sx_now_ns() - begin < (int64_t)30 * 1000000000);
        fake_sleep(1);
    }
}

static void wait_count(atomic_int *count, int wanted)
{
    const int64_t begin = sx_now_ns();
    while (atomic_load(count) < wanted) {
        assert_true(sx_now_ns() - begin < (int64_t)30 * 1000000000);
        fake_sleep(1);
    }
}

/* With 32 loads that hang, nothing else is read, and that is logged once, until one returns. A busy
 * machine may take longer than a load may last for any of them: only a load that is meant to hang
 * decides what is tested. */
static void test_serve_lifecycle__bounds_the_loads_that_hang(void **state)
{
    (void)state;
    enum { MAX_HUNG = 32 };
    static struct lines lines;
    struct scene scene;
    char name[20];
    open_scene(&scene);
    scene.config.load_timeout_seconds = 0.01;
    scene.config.look_timeout_seconds = 30;
    scene.config.settle_ms = 1;
    atomic_store(&scene.runtime.hanging, true);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    for (int version = 2; version <= 1 + MAX_HUNG; version++) {
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(scene.base, name, version, -1, 0, 0);
    }
    sx_log_set_sink(count_lines, &lines, SX_LOG_INFO);
    start(&scene);
    wait_count(&scene.runtime.hung, MAX_HUNG);
    wait_count(&lines.full, 1);
    wait_state(&scene, 2, SX_VERSION_END, "did not finish within 0.01 s");
    fake_sleep(200); /* some scans */
    assert_int_equal(atomic_load(&scene.runtime.hung), MAX_HUNG);
    assert_int_equal(served(&scene), -1);
    assert_int_equal(atomic_load(&lines.full), 1);
    atomic_store(&scene.runtime.hanging, false);
    wait_count(&scene.runtime.loads, MAX_HUNG + 1); /* what came too late, and one that is served */
    while (served(&scene) < 1) {
        fake_sleep(1);
    }
    wait_count(&scene.runtime.unloads, MAX_HUNG); /* what came too late */
    /* Others may be tried once more, and be late again. */
    const int64_t last = served(&scene);
    for (int64_t version = 1; version <= 1 + MAX_HUNG; version++) {
        snprintf(name, sizeof(name), "%d", (int)version);
        if (version != last) {
            fake_remove_version(scene.base, name);
        }
    }
    wait_settled(&scene);
    close_scene(&scene);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
}

/* One version given as the base path: said once, then a line at each interval. */
static void test_serve_lifecycle__a_version_is_no_base_path(void **state)
{
    (void)state;
    static struct lines lines;
    struct scene scene;
    char model[80], base_path[90], file[120];
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    open_scene(&scene);
    snprintf(model, sizeof(model), "%s/1", scene.base);
    snprintf(file, sizeof(file), "%s/saved_model.pb", model);
    assert_int_equal(mkdir(model, 0777), 0);
    fclose(fopen(file, "w"));
    snprintf(base_path, sizeof(base_path), "%s/.//1/./", scene.base);
    sx_log_set_sink(count_lines, &lines, SX_LOG_INFO);
    const sx_lifecycle_config config = {.name = "m",
                                        .base_path = base_path,
                                        .ops = &fake_ops,
                                        .ops_user = &scene.runtime,
                                        .poll_wait_seconds = 0.02,
                                        .remind_seconds = 0.1};
    assert_ok(sx_lifecycle_create(&config, &scene.lifecycle));
    assert_ok(sx_lifecycle_start(scene.lifecycle));
    const int64_t begin = sx_now_ns();
    while (atomic_load(&lines.reminders) < 3) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(5);
    }
    assert_true(sx_now_ns() - begin > (int64_t)250 * 1000000);
    assert_int_equal(atomic_load(&lines.advices), 1);
    sx_arena_init(&arena, 0);
    snprintf(file, sizeof(file), "did you mean its parent, %s?", scene.base);
    assert_error(sx_lifecycle_status(scene.lifecycle, &arena, &rows, &count), SX_NOT_FOUND, file);
    sx_arena_deinit(&arena);
    sx_lifecycle_destroy(scene.lifecycle);
    scene.lifecycle = NULL;
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    snprintf(file, sizeof(file), "%s/saved_model.pb", model);
    unlink(file);
    close_scene(&scene);
}

/* Between the moment that a version is found and the moment that something is known about it, the
 * status has a reason to give, too. */
static void test_serve_lifecycle__always_has_a_reason(void **state)
{
    (void)state;
    enum { LINKS = 3 };
    struct scene scene;
    char beside[100], path[160];
    open_scene(&scene);
    start(&scene);
    assert_false(sx_lifecycle_wait_ready(scene.lifecycle, 5000));
    fake_publish(scene.base, "x", 1, 0, 0, 0); /* no version: completed beside, then renamed */
    snprintf(beside, sizeof(beside), "%s/x", scene.base);
    for (int i = 0; i < LINKS;
         i++) { /* to itself: 3^8 directories, which take a while to look at */
        snprintf(path, sizeof(path), "%s/%d", beside, i);
        assert_int_equal(symlink(".", path), 0);
    }
    snprintf(path, sizeof(path), "%s/2", scene.base);
    assert_int_equal(rename(beside, path), 0);
    while (served(&scene) != 2) {
        sx_arena arena;
        sx_version_status *rows = NULL;
        size_t count = 0;
        sx_arena_init(&arena, 0);
        sx_status status = sx_lifecycle_status(scene.lifecycle, &arena, &rows, &count);
        assert_true(status == SX_OK ? count > 0
                                    : strstr(sx_status_message(status), scene.base) != NULL);
        sx_status_free(status);
        sx_arena_deinit(&arena);
    }
    for (int i = 0; i < LINKS; i++) {
        snprintf(path, sizeof(path), "%s/2/%d", scene.base, i);
        unlink(path);
    }
    close_scene(&scene);
}

static void test_serve_lifecycle__serves_the_latest_two(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    scene.config.policy.latest = 2;
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    fake_publish(scene.base, "2", 2, 0, 0, 0);
    fake_publish(scene.base, "3", 3, 0, 0, 0);
    start(&scene);
    wait_available(&scene, "32");
    assert_int_equal(served(&scene), 3);
    assert_true(answer_of(&scene, 3) == 3 && answer_of(&scene, 2) == 2 && answer_of(&scene, 1) < 0);
    fake_publish(scene.base, "4", 4, 0, 0, 1); /* cannot be loaded: displaces nothing */
    wait_state(&scene, 4, SX_VERSION_END, "corrupt");
    wait_available(&scene, "32");
    fake_publish(scene.base, "5", 5, 0, 0, 0);
    wait_available(&scene, "53");
    fake_remove_version(scene.base, "5");
    wait_available(&scene, "32");
    assert_int_equal(served(&scene), 3);
    close_scene(&scene);
}

static void test_serve_lifecycle__serves_all_or_those_that_are_named(void **state)
{
    (void)state;
    static const int64_t named[] = {2, 7, 3};
    struct scene scene;
    open_scene(&scene);
    scene.config.policy.kind = SX_VERSIONS_ALL;
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    fake_publish(scene.base, "2", 2, 0, 0, 0);
    fake_publish(scene.base, "3", 3, 0, 0, 0);
    start(&scene);
    wait_available(&scene, "321");
    fake_publish(scene.base, "4", 4, 0, 0, 0);
    wait_available(&scene, "4321");
    fake_remove_version(scene.base, "1");
    wait_available(&scene, "432");
    assert_ok(sx_lifecycle_set_source(scene.lifecycle, scene.base,
                                      &(sx_version_policy){.kind = SX_VERSIONS_SPECIFIC,
                                                           .specific = named,
                                                           .specific_count = 3}));
    wait_available(&scene, "32");
    fake_publish(scene.base, "7", 7, 0, 0, 0);
    wait_available(&scene, "732");
    /* None that is named exists: the others serve on. */
    const int64_t missing[] = {9};
    assert_ok(sx_lifecycle_set_source(scene.lifecycle, scene.base,
                                      &(sx_version_policy){.kind = SX_VERSIONS_SPECIFIC,
                                                           .specific = missing,
                                                           .specific_count = 1}));
    fake_sleep(200);
    wait_available(&scene, "732");
    fake_publish(scene.base, "9", 9, 0, 0, 0);
    wait_available(&scene, "9");
    close_scene(&scene);
}

/* Versions of another base path are others, though their numbers are the same; there is always one
 * that serves. */
static void test_serve_lifecycle__moves_to_another_base_path(void **state)
{
    (void)state;
    struct scene scene;
    char other[64];
    open_scene(&scene);
    fake_base_path(other);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_available(&scene, "1");
    assert_ok(sx_lifecycle_set_source(scene.lifecycle, other, &scene.config.policy));
    for (int i = 0; i < 20; i++) {
        assert_true(answer_of(&scene, SX_LATEST_VERSION) == 1);
        fake_sleep(5);
    }
    fake_publish(other, "1", 8, 0, 0, 0);
    const int64_t begin = sx_now_ns();
    for (float y = 1; y != 8; y = answer_of(&scene, 1)) {
        assert_true(y == 1);
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
    }
    fake_publish(scene.base, "2", 2, 0, 0, 0); /* not looked at any more */
    fake_publish(other, "0", 0, 0, 0, 0);
    fake_sleep(200);
    wait_available(&scene, "1");
    fake_remove_version(other, "1");
    fake_remove_version(other, "0");
    rmdir(other);
    close_scene(&scene);
}

static void keep_outages(void *user, sx_log_level level, const char *file, int line,
                         const char *message)
{
    (void)level, (void)file, (void)line;
    int *seen = user;
    *seen |= (strstr(message, "is not served until version 2 has been loaded") != NULL) |
             (strstr(message, "model m: was not served for 0.") != NULL) << 1;
}

/* The old version is gone before the new one is loaded, and the outage is logged. */
static void test_serve_lifecycle__preserves_resources(void **state)
{
    (void)state;
    struct scene scene;
    sx_served *held = NULL;
    int seen = 0;
    open_scene(&scene);
    scene.config.resource_preserving = true;
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    sx_log_set_sink(keep_outages, &seen, SX_LOG_INFO);
    start(&scene);
    wait_served(&scene, 1);
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 1, &held));
    fake_publish(scene.base, "2", 2, 20, 0, 0);
    wait_state(&scene, 1, SX_VERSION_UNLOADING, "");
    fake_sleep(100);
    assert_int_equal(atomic_load(&scene.runtime.loads), 1); /* waits for the request */
    sx_served_release(held);
    wait_served(&scene, 2);
    assert_int_equal(atomic_load(&scene.runtime.most_loaded), 1);
    close_scene(&scene);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    assert_int_equal(seen, 3);
}

struct slow_run {
    sx_served *servable;
    sx_status status;
};

static void *run_slowly(void *user)
{
    struct slow_run *slow = user;
    sx_arena arena;
    size_t count;
    float x = 1;
    sx_tensor in = {{SX_F32, 1, {1}}, &x}, out = {0};
    sx_arena_init(&arena, 0);
    slow->status = sx_served_run(slow->servable, sx_served_signatures(slow->servable, &count), &in,
                                 NULL, &arena, &out);
    sx_arena_deinit(&arena);
    sx_served_release(slow->servable);
    return NULL;
}

/* A request that goes on and on does not keep an old version in memory for ever. */
static void test_serve_lifecycle__drains_for_a_while_only(void **state)
{
    (void)state;
    struct scene scene;
    struct slow_run slow = {0};
    pthread_t thread;
    open_scene(&scene);
    scene.config.drain_timeout_seconds = 0.1;
    fake_publish(scene.base, "1", 1, 0, 20000, 0);
    start(&scene);
    wait_served(&scene, 1);
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 1, &slow.servable));
    pthread_create(&thread, NULL, run_slowly, &slow);
    fake_publish(scene.base, "2", 2, 0, 0, 0);
    wait_served(&scene, 2);
    pthread_join(thread, NULL);
    assert_error(slow.status, SX_UNAVAILABLE, "version 1 of model m is being unloaded");
    wait_state(&scene, 1, SX_VERSION_END, "");
    close_scene(&scene);
}

static void test_serve_lifecycle__closes(void **state)
{
    (void)state;
    struct scene scene;
    sx_served *held = NULL, *none = NULL;
    open_scene(&scene);
    fake_publish(scene.base, "1", 1, 0, 0, 0);
    start(&scene);
    wait_served(&scene, 1);
    assert_ok(sx_lifecycle_acquire(scene.lifecycle, 1, &held));
    sx_lifecycle_close(scene.lifecycle);
    wait_state(&scene, 1, SX_VERSION_UNLOADING, "");
    assert_error(sx_lifecycle_acquire(scene.lifecycle, SX_LATEST_VERSION, &none), SX_NOT_FOUND,
                 "Servable not found for request: Latest(m)");
    assert_false(sx_lifecycle_closed(scene.lifecycle));
    sx_served_release(held);
    wait_state(&scene, 1, SX_VERSION_END, "");
    for (int i = 0; i < 1000 && !sx_lifecycle_closed(scene.lifecycle); i++) {
        fake_sleep(5);
    }
    assert_true(sx_lifecycle_closed(scene.lifecycle));
    close_scene(&scene);
}

struct waiting {
    sx_awaited awaited; /* must be first: converted by address */
    int place;          /* among those that were woken; -1: it was not */
};

static atomic_int woken;

static void note_wake(sx_awaited *awaited)
{
    ((struct waiting *)awaited)->place = atomic_fetch_add(&woken, 1);
}

/* Requests that wait for the model go on in the order in which they came. */
static void test_serve_lifecycle__requests_wait_in_order(void **state)
{
    (void)state;
    enum { REQUESTS = 500 };
    struct scene scene;
    static struct waiting requests[REQUESTS];
    sx_residency *residency = NULL;
    sx_served *servable = NULL;
    open_scene(&scene);
    assert_ok(sx_residency_create(1 << 30, &residency));
    scene.config.residency = residency;
    fake_publish(scene.base, "1", 1, 300, 0, 0);
    start(&scene);
    assert_true(sx_lifecycle_wait_ready(scene.lifecycle, 5000));
    for (int i = 0; i < REQUESTS; i++) {
        const sx_version_choice latest = {SX_THIS_VERSION, SX_LATEST_VERSION};
        struct waiting *w = &requests[i];
        assert_ok(sx_lifecycle_choose(scene.lifecycle, latest, &servable, &w->awaited));
        assert_null(servable);
        w->place = -1;
        w->awaited.wake = note_wake;
        assert_false(sx_lifecycle_await(&w->awaited));
    }
    const int64_t begin = sx_now_ns();
    while (atomic_load(&woken) < REQUESTS) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(2);
    }
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(requests[i].place, i);
        assert_ok(requests[i].awaited.status);
        sx_lifecycle_end_await(&requests[i].awaited);
        sx_served_release(requests[i].awaited.servable);
    }
    close_scene(&scene);
    sx_residency_destroy(residency);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_lifecycle__serves_the_newest),
    cmocka_unit_test(test_serve_lifecycle__bad_versions_displace_nothing),
    cmocka_unit_test(test_serve_lifecycle__waits_for_copies_to_settle),
    cmocka_unit_test(test_serve_lifecycle__falls_back_and_rolls_back),
    cmocka_unit_test(test_serve_lifecycle__retries_failed_loads),
    cmocka_unit_test(test_serve_lifecycle__names_a_broken_version_once),
    cmocka_unit_test(test_serve_lifecycle__explains_missing_paths),
    cmocka_unit_test(test_serve_lifecycle__notices_new_versions_soon),
    cmocka_unit_test(test_serve_lifecycle__forgets_versions_that_are_gone),
    cmocka_unit_test(test_serve_lifecycle__a_version_comes_back_while_it_drains),
    cmocka_unit_test(test_serve_lifecycle__an_unloaded_version_comes_back),
    cmocka_unit_test(test_serve_lifecycle__gives_up_loads_that_hang),
    cmocka_unit_test(test_serve_lifecycle__stops_loads_that_it_gives_up),
    cmocka_unit_test(test_serve_lifecycle__bounds_the_loads_that_hang),
    cmocka_unit_test(test_serve_lifecycle__a_version_that_never_settles_holds_back_nobody),
    cmocka_unit_test(test_serve_lifecycle__a_large_version_that_never_settles_holds_back_nobody),
    cmocka_unit_test(test_serve_lifecycle__says_once_that_there_is_no_version),
    cmocka_unit_test(test_serve_lifecycle__names_the_versions_that_are_not_tried),
    cmocka_unit_test(test_serve_lifecycle__a_version_is_no_base_path),
    cmocka_unit_test(test_serve_lifecycle__always_has_a_reason),
    cmocka_unit_test(test_serve_lifecycle__serves_the_latest_two),
    cmocka_unit_test(test_serve_lifecycle__serves_all_or_those_that_are_named),
    cmocka_unit_test(test_serve_lifecycle__moves_to_another_base_path),
    cmocka_unit_test(test_serve_lifecycle__preserves_resources),
    cmocka_unit_test(test_serve_lifecycle__drains_for_a_while_only),
    cmocka_unit_test(test_serve_lifecycle__closes),
    cmocka_unit_test(test_serve_lifecycle__requests_wait_in_order),
};
SX_TEST_MAIN(tests)
