/* Managed prediction: models and versions that clients create, default versions, named outputs. */
#include "harness.h"

#include "base/clock.h"
#include "io/path.h"
#include "net/client.h"
#include "serve/fake_model.h"
#include "serve/server.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_server *server;
};

static void start(struct scene *scene, const char *storage)
{
    char managed[100];
    snprintf(managed, sizeof(managed), "%s/managed", scene->base);
    const sx_server_config config = {.host = "127.0.0.1",
                                     .rest_api_port = SX_ANY_PORT,
                                     .managed_models_dir = managed,
                                     .managed_storage = storage,
                                     .file_system_poll_wait_seconds = 0.05,
                                     .ops = &fake_ops,
                                     .ops_user = &scene->runtime};
    assert_ok(sx_server_create(&config, &scene->server));
    assert_ok(sx_server_start(scene->server));
}

/* Models of the runtime that look like SavedModels. */
static void open_scene(struct scene *scene)
{
    char storage[100], path[200];
    memset(scene, 0, sizeof(*scene));
    fake_base_path(scene->base);
    snprintf(storage, sizeof(storage), "%s/storage", scene->base);
    assert_ok(sx_dir_create(storage));
    for (int i = 2; i <= 3; i++) {
        char name[20];
        snprintf(name, sizeof(name), "%d", i);
        fake_publish(storage, name, i, 0, 0, 0);
        snprintf(path, sizeof(path), "%s/%d/saved_model.pb", storage, i);
        fclose(fopen(path, "w"));
    }
    start(scene, storage);
}

static struct answer ask(const struct scene *scene, const char *method, const char *path,
                         const char *body)
{
    char request[1000];
    const int size = snprintf(request, sizeof(request),
                              "%s /v1/projects/p/models%s HTTP/1.1\r\nHost: a\r\n"
                              "Content-Length: %zu\r\n\r\n%s",
                              method, path, strlen(body), body);
    return client_exchange(sx_server_rest_port(scene->server), request, (size_t)size);
}

static void assert_says(struct answer answer, int status, const char *part)
{
    if (answer.status != status || strstr(answer.body, part) == NULL) {
        fail_msg("got %d %s\nexpected %d with %s", answer.status, answer.body, status, part);
    }
}

static void wait_says(const struct scene *scene, const char *path, const char *part)
{
    const int64_t begin = sx_now_ns();
    while (strstr(ask(scene, "GET", path, "").body, part) == NULL) {
        if (sx_now_ns() - begin > (int64_t)5 * 1000000000) {
            fail_msg("%s is %s, expected %s", path, ask(scene, "GET", path, "").body, part);
        }
        fake_sleep(5);
    }
}

static void create_version(const struct scene *scene, int version)
{
    char body[300], path[100];
    snprintf(body, sizeof(body), "{\"name\": \"v%d\", \"deploymentUri\": \"%s/storage/%d\"}",
             version, scene->base, version);
    assert_says(ask(scene, "POST", "/m/versions", body), 200,
                "\"name\": \"projects/p/operations/m-v");
    snprintf(path, sizeof(path), "/m/versions/v%d", version);
    wait_says(scene, path, "\"state\": \"READY\"");
}

static void test_serve_managed__clients_create_models(void **state)
{
    (void)state;
    static const char one[] = "{\"instances\": [1]}";
    struct scene scene;
    open_scene(&scene);
    assert_says(ask(&scene, "GET", "", ""), 200, "{\"models\": []}");
    assert_says(ask(&scene, "POST", "", "{\"name\": \"m\"}"), 200, "\"projects/p/models/m\"");
    assert_says(ask(&scene, "POST", "", "{\"name\": \"m\"}"), 409,
                "\"status\": \"ALREADY_EXISTS\"");
    assert_says(ask(&scene, "POST", "", "{\"name\": "), 400, "JSON Parse error");
    assert_says(ask(&scene, "POST", "/m:predict", one), 503, "\"status\": \"UNAVAILABLE\"");
    assert_says(ask(&scene, "POST", "/m/versions", "{\"name\": \"v-0\"}"), 400, "expected v and a");
    assert_says(ask(&scene, "POST", "/m/versions", "{\"name\": \"v 1\"}"), 400, "expected v and a");
    create_version(&scene, 2);
    create_version(&scene, 3);
    assert_says(ask(&scene, "POST", "/m:predict", one), 200, "\"y\": 2.0"); /* the first: default */
    assert_says(ask(&scene, "POST", "/m/versions/v3:predict", one), 200, "\"y\": 3.0");
    assert_says(ask(&scene, "POST", "/m:predict", "{\"instances\": [}"), 200,
                "\"error\": \"Prediction failed: JSON Parse error");
    assert_says(ask(&scene, "POST", "/m:predict", "{\"inputs\": [1]}"), 200,
                "\"error\": \"Prediction failed: expected ");
    assert_says(ask(&scene, "POST", "/m/versions/v3:setDefault", "{}"), 200, "\"isDefault\": true");
    assert_says(ask(&scene, "POST", "/m:predict", one), 200, "\"y\": 3.0");
    assert_says(ask(&scene, "DELETE", "/m/versions/v3", ""), 400, "is the default of model m");
    assert_says(ask(&scene, "DELETE", "/m", ""), 400, "delete them first");
    assert_says(ask(&scene, "DELETE", "/m/versions/v2", ""), 200, "\"done\": true");
    assert_says(ask(&scene, "DELETE", "/m/versions/v2", ""), 404, "Could not find version v2");
    wait_says(&scene, "/m/versions/v2", "DELETING");

    sx_server_destroy(scene.server); /* and again: it is all still there */
    start(&scene, "/");
    wait_says(&scene, "/m/versions/v3", "READY");
    create_version(&scene, 2);
    assert_says(ask(&scene, "DELETE", "/m/versions/v2", ""), 200, "\"done\": true");
    assert_says(ask(&scene, "GET", "/m", ""), 200,
                "\"defaultVersion\": {\"name\": "
                "\"projects/p/models/m/versions/v3\"");
    assert_says(ask(&scene, "DELETE", "/m/versions/v3", ""), 200, "\"done\": true");
    assert_says(ask(&scene, "DELETE", "/m", ""), 200, "\"done\": true");
    assert_says(ask(&scene, "GET", "/m", ""), 404, "Could not find model m");
    sx_server_destroy(scene.server);
    assert_int_equal(atomic_load(&scene.runtime.loads), atomic_load(&scene.runtime.unloads));
    assert_ok(sx_dir_remove(scene.base));
}

/* Lets storage/N be a link to a directory outside, which has a model like it. */
static void lead_out(const struct scene *scene, const char *version)
{
    char inside[200], outside[200], moved[300];
    snprintf(inside, sizeof(inside), "%s/storage/%s", scene->base, version);
    snprintf(outside, sizeof(outside), "%s/outside", scene->base);
    snprintf(moved, sizeof(moved), "%s/%s", outside, version);
    assert_ok(sx_dir_create(outside));
    assert_int_equal(rename(inside, moved), 0);
    assert_int_equal(symlink(moved, inside), 0);
}

/* A version is checked when it is served, not only when it is created. */
static void test_serve_managed__versions_stay_in_the_storage(void **state)
{
    (void)state;
    static const char one[] = "{\"instances\": [1]}";
    struct scene scene;
    char storage[100];
    open_scene(&scene);
    assert_says(ask(&scene, "POST", "", "{\"name\": \"m\"}"), 200, "\"projects/p/models/m\"");
    create_version(&scene, 2);
    create_version(&scene, 3);
    sx_server_destroy(scene.server);
    lead_out(&scene, "2");
    snprintf(storage, sizeof(storage), "%s/storage", scene.base);
    start(&scene, storage);
    wait_says(&scene, "/m/versions/v3", "READY");
    assert_says(ask(&scene, "POST", "/m/versions/v2:predict", one), 404, "Servable not found");
    assert_says(ask(&scene, "POST", "/m/versions/v3:predict", one), 200, "\"y\": 3.0");
    lead_out(&scene, "3");
    sx_server_reload(scene.server);
    assert_says(ask(&scene, "POST", "/m/versions/v3:predict", one), 404, "Servable not found");
    sx_server_destroy(scene.server);
    assert_int_equal(atomic_load(&scene.runtime.loads), atomic_load(&scene.runtime.unloads));
    assert_ok(sx_dir_remove(scene.base));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_managed__clients_create_models),
    cmocka_unit_test(test_serve_managed__versions_stay_in_the_storage),
};
SX_TEST_MAIN(tests)
