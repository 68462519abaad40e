/* A hundred versions of two models swapped in under load, some of them bad, with reloads of the
 * configuration between them: no request is lost, and memory does not grow. */
#include "harness.h"

#include <malloc.h>
#include <pthread.h>

#include "base/clock.h"
#include "serve/fake_model.h"
#include "serve/manager.h"

enum { CLIENTS = 4, SWAPS = 100, MODELS = 2 };

struct load {
    sx_manager *manager;
    atomic_bool stop;
    atomic_int answered, lost, newest[MODELS];
};

static const char *const names[MODELS] = {"a", "b"};

/* Asks each model in turn: an answer must be that of a version. */
static void *run_client(void *user)
{
    struct load *load = user;
    for (int i = 0; !atomic_load(&load->stop); i++) {
        sx_served *servable = NULL;
        sx_arena arena;
        size_t count;
        float x = 1;
        sx_tensor in = {{SX_F32, 1, {1}}, &x}, out = {0};
        const sx_model_spec spec = {.name = names[i % MODELS], .version = SX_LATEST_VERSION};
        sx_status status = sx_manager_acquire(load->manager, &spec, &servable);
        sx_arena_init(&arena, 0);
        if (status == SX_OK) {
            status = sx_served_run(servable, sx_served_signatures(servable, &count), &in, NULL,
                                   &arena, &out);
            const int64_t version = sx_served_version(servable);
            const bool right = status == SX_OK && *(float *)out.data == (float)version;
            atomic_fetch_add(&load->lost, !right);
            atomic_store(&load->newest[i % MODELS], (int)version);
            sx_served_release(servable);
        } else {
            atomic_fetch_add(&load->lost, 1);
        }
        sx_arena_deinit(&arena);
        sx_status_free(status);
        atomic_fetch_add(&load->answered, 1);
    }
    return NULL;
}

static void wait_newest(struct load *load, int model, int version)
{
    const int64_t begin = sx_now_ns();
    while (atomic_load(&load->newest[model]) != version) {
        assert_true(sx_now_ns() - begin < (int64_t)60 * 1000000000);
        fake_sleep(1);
    }
}

static void test_serve_swaps__a_hundred_under_load(void **state)
{
    (void)state;
    char base[MODELS][64];
    static struct fake_runtime runtime;
    static struct load load;
    pthread_t clients[CLIENTS];
    const sx_manager_config config = {
        .lifecycle = {
            .ops = &fake_ops, .ops_user = &runtime, .poll_wait_seconds = 0.05, .settle_ms = 5}};
    assert_ok(sx_manager_create(&config, &load.manager));
    sx_model_config models[MODELS];
    for (int m = 0; m < MODELS; m++) {
        fake_base_path(base[m]);
        fake_publish(base[m], "1", 1, 0, 0, 0);
        models[m] = (sx_model_config){.name = names[m], .base_path = base[m]};
    }
    assert_ok(sx_manager_set_models(load.manager, models, MODELS));
    assert_ok(sx_manager_start(load.manager));
    assert_true(sx_manager_wait_ready(load.manager, 5000));
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i], NULL, run_client, &load), 0);
    }
    size_t used_after_ten = 0;
    int newest[MODELS] = {1, 1};
    for (int i = 0; i < SWAPS; i++) {
        char name[20];
        const int m = i % MODELS, version = 2 + i;
        const bool bad = i % 7 == 6;
        snprintf(name, sizeof(name), "%d", version);
        fake_publish(base[m], name, version, 1, 0, bad);
        models[m].policy.latest = 1 + i % 3;
        assert_ok(sx_manager_set_models(load.manager, models, MODELS));
        newest[m] = bad ? newest[m] : version;
        wait_newest(&load, m, newest[m]);
        if (i % 10 == 9 && !bad) { /* and back */
            models[m].policy.latest = 1;
            assert_ok(sx_manager_set_models(load.manager, models, MODELS));
            fake_remove_version(base[m], name);
            const int64_t begin = sx_now_ns();
            while (atomic_load(&load.newest[m]) == version) {
                assert_true(sx_now_ns() - begin < (int64_t)60 * 1000000000);
                fake_sleep(1);
            }
            newest[m] = atomic_load(&load.newest[m]);
        }
        used_after_ten = i == 10 ? mallinfo2().uordblks : used_after_ten;
    }
    const size_t used = mallinfo2().uordblks;
    atomic_store(&load.stop, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    assert_int_equal(atomic_load(&load.lost), 0);
    assert_true(atomic_load(&load.answered) > 1000);
    assert_true(used < used_after_ten + (256 << 10));
    assert_true(sx_manager_destroy(load.manager));
    assert_int_equal(atomic_load(&runtime.loads), atomic_load(&runtime.unloads));
    for (int m = 0; m < MODELS; m++) {
        for (int version = 0; version < SWAPS + 2; version++) {
            char name[20];
            snprintf(name, sizeof(name), "%d", version);
            fake_remove_version(base[m], name);
        }
        rmdir(base[m]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_swaps__a_hundred_under_load),
};
SX_TEST_MAIN(tests)
