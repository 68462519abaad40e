/* Several models: found by name, version and label; exchanged as a whole; bad ones alone. */
#include "harness.h"

#include <pthread.h>

#include "base/checked.h"
#include "base/clock.h"
#include "serve/fake_model.h"
#include "serve/manager.h"

enum { MODELS = 3 };

struct scene {
    char base[MODELS][64];
    struct fake_runtime runtime;
    sx_manager *manager;
};

static void open_scene(struct scene *scene, bool allow_labels)
{
    memset(scene, 0, sizeof(*scene));
    for (int i = 0; i < MODELS; i++) {
        fake_base_path(scene->base[i]);
    }
    const sx_manager_config config = {.lifecycle = {.ops = &fake_ops,
                                                    .ops_user = &scene->runtime,
                                                    .poll_wait_seconds = 0.05,
                                                    .settle_ms = 20},
                                      .allow_labels_for_unavailable_models = allow_labels};
    assert_ok(sx_manager_create(&config, &scene->manager));
    assert_ok(sx_manager_start(scene->manager));
}

static void close_scene(struct scene *scene)
{
    assert_true(sx_manager_destroy(scene->manager));
    assert_int_equal(atomic_load(&scene->runtime.loads), atomic_load(&scene->runtime.unloads));
    for (int i = 0; i < MODELS; i++) {
        for (int version = 0; version < 200; version++) {
            char name[20];
            snprintf(name, sizeof(name), "%d", version);
            fake_remove_version(scene->base[i], name);
        }
        rmdir(scene->base[i]);
    }
}

/* The version that answers, or the code of the error, negative. */
static int64_t ask(struct scene *scene, const char *name, int64_t version, const char *label)
{
    sx_served *servable = NULL;
    const sx_model_spec spec = {.name = name, .version = version, .label = label};
    sx_status status = sx_manager_acquire(scene->manager, &spec, &servable);
    if (status != SX_OK) {
        const int64_t code = -(int64_t)sx_status_code(status);
        sx_status_free(status);
        return code;
    }
    assert_string_equal(sx_served_name(servable), name);
    const int64_t got = sx_served_version(servable);
    sx_served_release(servable);
    return got;
}

static void wait_for(struct scene *scene, const char *name, int64_t version, const char *label,
                     int64_t wanted)
{
    const int64_t begin = sx_now_ns();
    while (ask(scene, name, version, label) != wanted) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("%s: got %lld, expected %lld", name,
                     (long long)ask(scene, name, version, label), (long long)wanted);
        }
        fake_sleep(2);
    }
}

static void assert_refuses(struct scene *scene, sx_model_spec spec, sx_code code, const char *text)
{
    sx_served *servable = NULL;
    sx_status status = sx_manager_acquire(scene->manager, &spec, &servable);
    assert_string_equal(sx_status_message(status), text);
    assert_error(status, code, "");
}

static void test_serve_manager__finds_versions_and_labels(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, false);
    for (int version = 1; version <= 3; version++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(scene.base[0], name, version, 0, 0, 0);
    }
    fake_publish(scene.base[1], "7", 7, 0, 0, 0);
    const sx_model_label labels[] = {{"stable", 1}, {"canary", 3}, {"next", 9}};
    const sx_model_config models[] = {{.name = "a",
                                       .base_path = scene.base[0],
                                       .policy = {.kind = SX_VERSIONS_ALL},
                                       .labels = labels,
                                       .label_count = SX_COUNT(labels)},
                                      {.name = "b", .base_path = scene.base[1]}};
    assert_ok(sx_manager_set_models(scene.manager, models, SX_COUNT(models)));
    assert_true(sx_manager_wait_ready(scene.manager, 5000));
    wait_for(&scene, "a", 1, NULL, 1);
    wait_for(&scene, "a", SX_LATEST_VERSION, NULL, 3);
    wait_for(&scene, "a", SX_LATEST_VERSION, "stable", 1);
    wait_for(&scene, "a", SX_LATEST_VERSION, "canary", 3);
    wait_for(&scene, "b", SX_LATEST_VERSION, "", 7);
    enum { LATEST = SX_LATEST_VERSION };
    assert_refuses(&scene, (sx_model_spec){.name = "c", .version = LATEST}, SX_NOT_FOUND,
                   "Servable not found for request: Latest(c)");
    assert_refuses(&scene, (sx_model_spec){.name = "c", .version = 5}, SX_NOT_FOUND,
                   "Servable not found for request: Specific(c, 5)");
    assert_refuses(&scene, (sx_model_spec){.name = "a", .version = 5}, SX_NOT_FOUND,
                   "Servable not found for request: Specific(a, 5)");
    assert_refuses(&scene, (sx_model_spec){.name = "a", .version = LATEST, .label = "next"},
                   SX_NOT_FOUND, "Servable not found for request: Specific(a, 9)");
    assert_refuses(&scene, (sx_model_spec){.name = "a", .version = LATEST, .label = "none"},
                   SX_INVALID_ARGUMENT, "Unrecognized servable version label: none");
    assert_refuses(&scene, (sx_model_spec){.name = "b", .version = LATEST, .label = "stable"},
                   SX_INVALID_ARGUMENT, "Unrecognized servable version label: stable");
    assert_refuses(&scene, (sx_model_spec){.version = LATEST}, SX_INVALID_ARGUMENT,
                   "ModelSpec has no name specified.");
    assert_refuses(&scene, (sx_model_spec){.name = "a", .version = LATEST, .signature = "no"},
                   SX_FAILED_PRECONDITION, "Serving signature key \"no\" not found.");
    sx_served *servable = NULL;
    assert_ok(sx_manager_acquire(scene.manager,
                                 &(sx_model_spec){.name = "a", .version = LATEST, .signature = ""},
                                 &servable));
    sx_served_release(servable);
    fake_publish(scene.base[0], "9", 9, 0, 0, 0); /* the label was there before its version */
    wait_for(&scene, "a", SX_LATEST_VERSION, "next", 9);
    close_scene(&scene);
}

/* A model that cannot be loaded is an error of its own. */
static void test_serve_manager__bad_models_stop_no_others(void **state)
{
    (void)state;
    struct scene scene;
    sx_arena arena;
    sx_version_status *rows;
    size_t count;
    open_scene(&scene, false);
    fake_publish(scene.base[0], "1", 1, 0, 0, 0);
    fake_publish(scene.base[1], "1", 1, 0, 0, 1);
    fake_publish(scene.base[2], "1", 1, -1, 0, 0); /* hangs */
    atomic_store(&scene.runtime.hanging, true);
    const sx_model_config models[] = {{.name = "missing", .base_path = "/nonexistent/models"},
                                      {.name = "broken", .base_path = scene.base[1]},
                                      {.name = "hanging", .base_path = scene.base[2]},
                                      {.name = "good", .base_path = scene.base[0]}};
    assert_ok(sx_manager_set_models(scene.manager, models, SX_COUNT(models)));
    wait_for(&scene, "good", SX_LATEST_VERSION, NULL, 1);
    assert_false(sx_manager_ready(scene.manager));
    assert_false(sx_manager_wait_ready(scene.manager, 100));
    assert_error(sx_manager_error(scene.manager), SX_NOT_FOUND, "/nonexistent/models");
    wait_for(&scene, "broken", SX_LATEST_VERSION, NULL, -SX_UNAVAILABLE);
    sx_arena_init(&arena, 0);
    assert_error(
        sx_manager_status(scene.manager, "missing", SX_LATEST_VERSION, &arena, &rows, &count),
        SX_NOT_FOUND, "Could not find any versions of model missing");
    assert_error(sx_manager_status(scene.manager, "good", 2, &arena, &rows, &count), SX_NOT_FOUND,
                 "Could not find version 2 of model good");
    assert_ok(sx_manager_status(scene.manager, "good", 1, &arena, &rows, &count));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].state, SX_VERSION_AVAILABLE);
    sx_arena_deinit(&arena);
    atomic_store(&scene.runtime.hanging, false);
    wait_for(&scene, "hanging", SX_LATEST_VERSION, NULL, 1);
    close_scene(&scene);
}

/* A configuration with a mistake changes nothing at all. */
static void test_serve_manager__takes_all_models_or_none(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, false);
    fake_publish(scene.base[0], "1", 1, 0, 0, 0);
    fake_publish(scene.base[0], "2", 2, 0, 0, 0);
    fake_publish(scene.base[1], "5", 5, 0, 0, 0);
    const sx_model_label stable = {"stable", 1};
    sx_model_config models[] = {{.name = "a",
                                 .base_path = scene.base[0],
                                 .policy = {.latest = 2},
                                 .labels = &stable,
                                 .label_count = 1},
                                {.name = "b", .base_path = scene.base[1]},
                                {.name = "c", .base_path = scene.base[1], .where = "x.config:9"}};
    assert_ok(sx_manager_set_models(scene.manager, models, 1));
    wait_for(&scene, "a", SX_LATEST_VERSION, "stable", 1);
    wait_for(&scene, "a", SX_LATEST_VERSION, NULL, 2);
    /* Twice the same name; a path that is missing: the models before them are not taken either. */
    models[2].name = "b";
    models[0].base_path = scene.base[1];
    assert_error(sx_manager_set_models(scene.manager, models, 3), SX_INVALID_ARGUMENT,
                 "x.config:9: model b is given twice");
    models[2].name = "c";
    models[2].base_path = "";
    assert_error(sx_manager_set_models(scene.manager, models, 3), SX_INVALID_ARGUMENT,
                 "x.config:9: a model needs a name and a base path");
    models[0].base_path = "";
    assert_error(sx_manager_set_models(scene.manager, models, 1), SX_INVALID_ARGUMENT,
                 "model a has no base path");
    /* A label may move to an available version only. */
    models[0].base_path = scene.base[0];
    models[0].labels = &(sx_model_label){"stable", 3};
    assert_error(sx_manager_set_models(scene.manager, models, 2), SX_FAILED_PRECONDITION,
                 "Request to assign label to version 3 of model a, which is not currently "
                 "available for inference");
    models[0].labels = &(sx_model_label){"new", 3};
    assert_error(sx_manager_set_models(scene.manager, models, 2), SX_FAILED_PRECONDITION, "new");
    fake_sleep(100);
    assert_int_equal(ask(&scene, "b", SX_LATEST_VERSION, NULL), -SX_NOT_FOUND);
    assert_int_equal(ask(&scene, "a", SX_LATEST_VERSION, NULL), 2);
    assert_int_equal(ask(&scene, "a", SX_LATEST_VERSION, "stable"), 1);
    models[0].labels = &(sx_model_label){"stable", 2};
    assert_ok(sx_manager_set_models(scene.manager, models, 2));
    assert_int_equal(ask(&scene, "a", SX_LATEST_VERSION, "stable"), 2);
    wait_for(&scene, "b", SX_LATEST_VERSION, NULL, 5);
    close_scene(&scene);
}

/* With the option, a label that is not in use may wait for its version; one in use may not. */
static void test_serve_manager__new_labels_may_wait(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, true);
    fake_publish(scene.base[0], "1", 1, 0, 0, 0);
    const sx_model_label labels[] = {{"stable", 1}, {"canary", 2}};
    sx_model_config model = {.name = "a", .base_path = scene.base[0], .policy = {.latest = 2}};
    assert_ok(sx_manager_set_models(scene.manager, &model, 1));
    wait_for(&scene, "a", SX_LATEST_VERSION, NULL, 1);
    model.labels = labels;
    model.label_count = 2;
    assert_ok(sx_manager_set_models(scene.manager, &model, 1));
    model.labels = &(sx_model_label){"stable", 4};
    model.label_count = 1;
    assert_error(sx_manager_set_models(scene.manager, &model, 1), SX_FAILED_PRECONDITION, "");
    assert_int_equal(ask(&scene, "a", SX_LATEST_VERSION, "canary"), -SX_NOT_FOUND);
    fake_publish(scene.base[0], "2", 2, 0, 0, 0);
    wait_for(&scene, "a", SX_LATEST_VERSION, "canary", 2);
    close_scene(&scene);
}

/* A model that is left out is found no more at once; its request ends as it began. */
static void test_serve_manager__removes_models(void **state)
{
    (void)state;
    struct scene scene;
    sx_served *held = NULL;
    open_scene(&scene, false);
    fake_publish(scene.base[0], "1", 1, 0, 0, 0);
    fake_publish(scene.base[1], "1", 1, 0, 0, 0);
    const sx_model_config models[] = {{.name = "a", .base_path = scene.base[0]},
                                      {.name = "b", .base_path = scene.base[1]}};
    assert_ok(sx_manager_set_models(scene.manager, models, 2));
    assert_true(sx_manager_wait_ready(scene.manager, 5000));
    assert_ok(
        sx_manager_acquire(scene.manager, &(sx_model_spec){.name = "a", .version = 1}, &held));
    assert_ok(sx_manager_set_models(scene.manager, &models[1], 1));
    assert_int_equal(ask(&scene, "a", SX_LATEST_VERSION, NULL), -SX_NOT_FOUND);
    assert_int_equal(ask(&scene, "b", SX_LATEST_VERSION, NULL), 1);
    assert_ok(sx_manager_set_models(scene.manager, models, 2)); /* it returns, while it drains */
    wait_for(&scene, "a", SX_LATEST_VERSION, NULL, 1);
    fake_sleep(50);
    assert_int_equal(atomic_load(&scene.runtime.unloads), 0);
    assert_string_equal(sx_served_name(held), "a");
    sx_served_release(held);
    for (int i = 0; i < 1000 && atomic_load(&scene.runtime.unloads) == 0; i++) {
        fake_sleep(5);
    }
    assert_int_equal(atomic_load(&scene.runtime.unloads), 1);
    assert_ok(sx_manager_set_models(scene.manager, NULL, 0));
    assert_int_equal(ask(&scene, "b", SX_LATEST_VERSION, NULL), -SX_NOT_FOUND);
    close_scene(&scene);
}

struct load {
    struct scene *scene;
    atomic_bool stop;
    atomic_int answered, lost;
};

static void *run_client(void *user)
{
    struct load *load = user;
    while (!atomic_load(&load->stop)) {
        const bool lost = ask(load->scene, "a", SX_LATEST_VERSION, NULL) < 0 ||
                          ask(load->scene, "a", SX_LATEST_VERSION, "stable") != 1;
        atomic_fetch_add(&load->lost, lost);
        atomic_fetch_add(&load->answered, 1);
    }
    return NULL;
}

/* Reloads and new versions at once, under load: nobody is turned away. */
static void test_serve_manager__reloads_under_load(void **state)
{
    (void)state;
    enum { CLIENTS = 4, ROUNDS = 20 };
    struct scene scene;
    struct load load = {.scene = &scene};
    pthread_t clients[CLIENTS];
    static const int64_t specific[] = {1, 4, 6, 8};
    const sx_model_label stable = {"stable", 1};
    sx_model_config models[] = {
        {.name = "a", .base_path = scene.base[0], .labels = &stable, .label_count = 1},
        {.name = "b", .base_path = scene.base[1]}};
    const sx_version_policy policies[] = {
        {.kind = SX_VERSIONS_ALL},
        {.kind = SX_VERSIONS_SPECIFIC, .specific = specific, .specific_count = 4}};
    open_scene(&scene, false);
    fake_publish(scene.base[0], "1", 1, 0, 0, 0);
    models[0].policy = policies[0];
    assert_ok(sx_manager_set_models(scene.manager, models, 1));
    wait_for(&scene, "a", SX_LATEST_VERSION, "stable", 1);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i], NULL, run_client, &load), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", 2 + i);
        fake_publish(scene.base[0], name, 2 + i, 1, 0, i % 5 == 4);
        models[0].policy = policies[i % 2];
        assert_ok(sx_manager_set_models(scene.manager, models, 1 + (size_t)i % 2));
        fake_sleep(20);
    }
    atomic_store(&load.stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    assert_int_equal(atomic_load(&load.lost), 0);
    assert_true(atomic_load(&load.answered) > 100);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_manager__finds_versions_and_labels),
    cmocka_unit_test(test_serve_manager__bad_models_stop_no_others),
    cmocka_unit_test(test_serve_manager__takes_all_models_or_none),
    cmocka_unit_test(test_serve_manager__new_labels_may_wait),
    cmocka_unit_test(test_serve_manager__removes_models),
    cmocka_unit_test(test_serve_manager__reloads_under_load),
};
SX_TEST_MAIN(tests)
