/* The text configurations of tensorflow_model_server: what they say, where mistakes are, reloading.
 */
#include "harness.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "serve/config_watch.h"
#include "serve/fake_model.h"
#include "serve/model_config.h"

static sx_status parse(sx_arena *arena, const char *text, sx_model_config **models, size_t *count)
{
    return sx_model_config_parse((sx_bytes){text, strlen(text)}, "models.config", arena, models,
                                 count);
}

/* The example of TensorFlow Serving's documentation, and every kind of policy. */
static void test_serve_model_config__reads_models(void **state)
{
    (void)state;
    static const char text[] =
        "# models\n"
        "model_config_list {\n"
        "  config {\n"
        "    name: 'my_first_model'\n"
        "    base_path: '/tmp/my_first_model/'\n"
        "    model_platform: 'tensorflow'\n"
        "  }\n"
        "  config: {\n"
        "    name: \"second\", base_path: \"/tmp/second\"\n"
        "    model_type: TENSORFLOW\n"
        "    model_version_policy { specific { versions: 42 versions: 43 } }\n"
        "    version_labels { key: 'stable' value: 42 }\n"
        "    version_labels { key: 'canary' value: 43 }\n"
        "  }\n"
        "  config { name: 'c' base_path: 'c' model_version_policy: { all: {} } }\n"
        "  config { name: 'd' base_path: 'd'\n"
        "    model_version_policy { latest { num_versions: 3 } } }\n"
        "}\n";
    sx_arena arena;
    sx_model_config *m = NULL;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    assert_ok(parse(&arena, text, &m, &count));
    assert_int_equal(count, 4);
    assert_string_equal(m[0].name, "my_first_model");
    assert_string_equal(m[0].base_path, "/tmp/my_first_model/");
    assert_int_equal(m[0].policy.kind, SX_VERSIONS_LATEST);
    assert_int_equal(m[0].policy.latest, 0);
    assert_int_equal(m[1].policy.kind, SX_VERSIONS_SPECIFIC);
    assert_int_equal(m[1].policy.specific_count, 2);
    assert_int_equal(m[1].policy.specific[1], 43);
    assert_int_equal(m[1].label_count, 2);
    assert_string_equal(m[1].labels[1].label, "canary");
    assert_int_equal(m[1].labels[1].version, 43);
    assert_string_equal(m[1].where, "models.config:8: model_config_list.config[1]");
    assert_int_equal(m[2].policy.kind, SX_VERSIONS_ALL);
    assert_int_equal(m[3].policy.latest, 3);
    assert_ok(parse(&arena, "model_config_list {}", &m, &count));
    assert_int_equal(count, 0);
    sx_arena_deinit(&arena);
}

static void test_serve_model_config__names_file_line_and_field(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"model_config_list {\n  config {\n    nmae: 'm'\n",
         "models.config:3:5: ModelConfig has no "
         "field 'nmae'"},
        {"model_config_list {\n  config {\n    name: m\n", "models.config:3:11: name: expected a "
                                                           "quoted string"},
        {"model_config_list {\n\n  config {\n    name: 'm'\n  }\n}",
         "models.config:3: model_config_list.config[0]: base_path: model m needs one"},
        {"model_config_list {\n config { name: 'm' base_path: 'b' }\n config { base_path: 'b' }\n}",
         "models.config:3: model_config_list.config[1]: name: a model needs one"},
        {"model_config_list {\n config [\n{ name: 'm' base_path: 'b' },\n{ name: 'n' }]}",
         "models.config:4: model_config_list.config[1]: base_path"},
        {"model_config_list { config { name: 'm' base_path: 'b' model_platform: 'x' } }",
         "models.config:1: model_config_list.config[0]: model_platform: \"x\", expected "
         "\"tensorflow\""},
        {"model_config_list { config { name: 'm' base_path: 'b' model_type: OTHER } }",
         "model_type: expected TENSORFLOW"},
        {"model_config_list { config { name: 'm' base_path: 'b' model_type: TENSORFLOW "
         "model_platform: 'tensorflow' } }",
         "model_type: illegal setting both"},
        {"model_config_list { config { name: 'm' base_path: 'b' model_version_policy { specific {} "
         "} } }",
         "model_version_policy.specific.versions: the list is empty"},
        {"model_config_list { config { name: 'm' base_path: 'b' model_version_policy { specific { "
         "versions: -3 } } } }",
         "model_version_policy.specific.versions: -3 is no version"},
        {"model_config_list { config { name: 'm' base_path: 'b' model_version_policy { latest {} "
         "all {} } } }",
         "all is given after latest of the same oneof"},
        {"model_config_list { config { name: 'm' base_path: 'b' version_labels { key: 'a' value: 1 "
         "} "
         "version_labels { key: 'a' value: 2 } } }",
         "version_labels: \"a\" is given twice"},
        {"", "models.config: there is no model_config_list"},
        {"custom_model_config {}", "models.config: custom_model_config is not supported"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_arena arena;
        sx_model_config *m = NULL;
        size_t count = 0;
        sx_arena_init(&arena, 0);
        assert_error(parse(&arena, rows[i].text, &m, &count), SX_INVALID_ARGUMENT, rows[i].error);
        sx_arena_deinit(&arena);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_serve_model_config__reads_where_the_metrics_are(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
    } rows[] = {{"prometheus_config { enable: true, path: '/figures' }", "/figures"},
                {"prometheus_config: { enable: true }", "/monitoring/prometheus/metrics"},
                {"prometheus_config { path: '/figures' }", ""},
                {"", ""}};
    char base[64], path[100];
    const char *url_path = NULL;
    sx_arena arena;
    fake_base_path(base);
    snprintf(path, sizeof(path), "%s/monitoring.config", base);
    sx_arena_init(&arena, 0);
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        write_file(path, rows[i].text);
        assert_ok(sx_monitoring_config_read(path, &arena, &url_path));
        assert_string_equal(url_path, rows[i].path);
    }
    write_file(path, "\n prometheus { }");
    assert_error(sx_monitoring_config_read(path, &arena, &url_path), SX_INVALID_ARGUMENT,
                 "monitoring.config:2:2: MonitoringConfig has no field 'prometheus'");
    unlink(path);
    assert_error(sx_monitoring_config_read(path, &arena, &url_path), SX_NOT_FOUND,
                 "monitoring.config");
    sx_arena_deinit(&arena);
    rmdir(base);
}

/* ---- Reloading ---- */

struct scene {
    char base[64], path[100];
    struct fake_runtime runtime;
    sx_manager *manager;
    sx_config_watch *watch;
};

static void write_models(const struct scene *scene, const char *names)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "model_config_list {\n");
    for (; *names != '\0'; names++) {
        sx_buf_printf(&text, "config { name: '%c' base_path: '%s' }\n", *names, scene->base);
    }
    sx_buf_puts(&text, "}\n");
    write_file(scene->path, sx_buf_text(&text));
    sx_buf_deinit(&text);
}

static sx_code ask(struct scene *scene, const char *name)
{
    sx_served *servable = NULL;
    const sx_model_spec spec = {.name = name, .version = SX_LATEST_VERSION};
    sx_status status = sx_manager_acquire(scene->manager, &spec, &servable);
    const sx_code code = sx_status_code(status);
    if (status == SX_OK) {
        sx_served_release(servable);
    }
    sx_status_free(status);
    return code;
}

static void wait_code(struct scene *scene, const char *name, sx_code code)
{
    const int64_t begin = sx_now_ns();
    while (ask(scene, name) != code) {
        assert_true(sx_now_ns() - begin < (int64_t)5 * 1000000000);
        fake_sleep(2);
    }
}

static void open_scene(struct scene *scene, double poll_seconds)
{
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    snprintf(scene->path, sizeof(scene->path), "%s/models.config", scene->base);
    fake_publish(scene->base, "1", 1, 0, 0, 0);
    const sx_manager_config config = {.lifecycle = {.ops = &fake_ops,
                                                    .ops_user = &scene->runtime,
                                                    .poll_wait_seconds = 0.05,
                                                    .settle_ms = 20}};
    assert_ok(sx_manager_create(&config, &scene->manager));
    write_models(scene, "a");
    assert_ok(sx_config_watch_create(&sx_config_models, scene->path, poll_seconds, scene->manager,
                                     &scene->watch));
    assert_ok(sx_manager_start(scene->manager));
    assert_ok(sx_config_watch_start(scene->watch));
    wait_code(scene, "a", SX_CODE_OK);
}

static void close_scene(struct scene *scene)
{
    sx_config_watch_destroy(scene->watch);
    assert_true(sx_manager_destroy(scene->manager));
    unlink(scene->path);
    fake_remove_version(scene->base, "1");
    rmdir(scene->base);
}

static void count_mistakes(void *user, sx_log_level level, const char *file, int line,
                           const char *message)
{
    (void)level, (void)file, (void)line;
    const bool mistake =
        strstr(message, "the models stay as they are") != NULL &&
        strstr(message, "models.config:2:1: ModelServerConfig has no field") != NULL;
    atomic_fetch_add((atomic_int *)user, mistake);
}

static void test_serve_model_config__reloads_when_the_file_changes(void **state)
{
    (void)state;
    struct scene scene;
    atomic_int mistakes = 0;
    char text[200];
    sx_log_set_sink(count_mistakes, &mistakes, SX_LOG_ERROR);
    open_scene(&scene, 0.02);
    write_models(&scene, "ab");
    wait_code(&scene, "b", SX_CODE_OK);
    snprintf(text, sizeof(text), "\nmodels { config { name: 'c' base_path: '%s' } }", scene.base);
    write_file(scene.path, text);
    for (int i = 0; i < 1000 && atomic_load(&mistakes) == 0; i++) {
        fake_sleep(5);
    }
    fake_sleep(200);
    assert_int_equal(atomic_load(&mistakes), 1); /* not at each look */
    assert_int_equal(ask(&scene, "a"), SX_CODE_OK);
    assert_int_equal(ask(&scene, "b"), SX_CODE_OK);
    write_models(&scene, "b");
    wait_code(&scene, "a", SX_NOT_FOUND);
    assert_int_equal(ask(&scene, "b"), SX_CODE_OK);
    close_scene(&scene);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
}

static void test_serve_model_config__reloads_when_asked(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 0);
    write_models(&scene, "b");
    fake_sleep(100);
    assert_int_equal(ask(&scene, "b"), SX_NOT_FOUND);
    sx_config_watch_reload(scene.watch);
    wait_code(&scene, "b", SX_CODE_OK);
    wait_code(&scene, "a", SX_NOT_FOUND);
    sx_config_watch *other = NULL;
    assert_error(
        sx_config_watch_create(&sx_config_models, "/nonexistent.config", 0, scene.manager, &other),
        SX_NOT_FOUND, "/nonexistent.config");
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_model_config__reads_models),
    cmocka_unit_test(test_serve_model_config__names_file_line_and_field),
    cmocka_unit_test(test_serve_model_config__reads_where_the_metrics_are),
    cmocka_unit_test(test_serve_model_config__reloads_when_the_file_changes),
    cmocka_unit_test(test_serve_model_config__reloads_when_asked),
};
SX_TEST_MAIN(tests)
