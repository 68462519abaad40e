#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop.h"

struct scene {
    sx_loop *loop;
    sx_loop_io io[2];
    sx_loop_timer timers[3];
    sx_loop_task tasks[2];
    int order[16], count;
    int pipe[2];
};

static void note(struct scene *scene, int what)
{
    scene->order[scene->count++] = what;
}

static void on_first(void *user)
{
    note(user, 1);
}

static void on_second(void *user)
{
    struct scene *scene = user;
    note(scene, 2);
    sx_loop_timer_cancel(scene->loop, &scene->timers[2]);
    sx_loop_stop(scene->loop);
}

static void on_third(void *user)
{
    note(user, 3);
}

static void test_net_loop__timers_run_in_order(void **state)
{
    (void)state;
    struct scene scene = {0};
    assert_ok(sx_loop_create(&scene.loop));
    const int64_t now = sx_now_ns(), ms = 1000000;
    scene.timers[0] = (sx_loop_timer){.fn = on_first, .user = &scene};
    scene.timers[1] = (sx_loop_timer){.fn = on_second, .user = &scene};
    scene.timers[2] = (sx_loop_timer){.fn = on_third, .user = &scene};
    sx_loop_timer_set(scene.loop, &scene.timers[2], now + 120 * ms);
    sx_loop_timer_set(scene.loop, &scene.timers[1], now + 90000 * ms); /* beyond one turn, then */
    sx_loop_timer_set(scene.loop, &scene.timers[1], now + 80 * ms);    /* moved */
    sx_loop_timer_set(scene.loop, &scene.timers[0], now + 30 * ms);
    assert_ok(sx_loop_run(scene.loop));
    const int64_t took = sx_now_ns() - now;
    assert_true(took >= 80 * ms);
    assert_true(took < 2000 * ms);
    assert_int_equal(scene.count, 2); /* the third was cancelled */
    assert_int_equal(scene.order[0], 1);
    assert_int_equal(scene.order[1], 2);
    sx_loop_destroy(scene.loop);
}

static void on_readable(void *user, uint32_t events)
{
    struct scene *scene = user;
    (void)events;
    note(scene, 7);
    /* Both ends of the same event batch: the one removed must not be called. */
    sx_loop_remove(scene->loop, &scene->io[0]);
    sx_loop_remove(scene->loop, &scene->io[1]);
    sx_loop_stop(scene->loop);
}

static void test_net_loop__removed_descriptors_are_silent(void **state)
{
    (void)state;
    struct scene scene = {0};
    assert_ok(sx_loop_create(&scene.loop));
    assert_int_equal(pipe(scene.pipe), 0);
    assert_int_equal(write(scene.pipe[1], "x", 1), 1);
    const int copy = dup(scene.pipe[0]);
    scene.io[0] = (sx_loop_io){scene.pipe[0], EPOLLIN, on_readable, &scene};
    scene.io[1] = (sx_loop_io){copy, EPOLLIN, on_readable, &scene};
    assert_ok(sx_loop_add(scene.loop, &scene.io[0]));
    assert_ok(sx_loop_add(scene.loop, &scene.io[1]));
    assert_error(sx_loop_add(scene.loop, &(sx_loop_io){.fd = -1}), SX_RESOURCE_EXHAUSTED, "-1");
    assert_ok(sx_loop_run(scene.loop));
    assert_int_equal(scene.count, 1);
    close(copy);
    close(scene.pipe[0]);
    close(scene.pipe[1]);
    sx_loop_destroy(scene.loop);
}

struct posts {
    sx_loop *loop;
    sx_loop_task tasks[1000];
    int ran;
};

static void on_task(void *user)
{
    struct posts *posts = user;
    if (++posts->ran == 1000) {
        sx_loop_stop(posts->loop);
    }
}

static void *post_all(void *user)
{
    struct posts *posts = user;
    for (int i = 0; i < 1000; i++) {
        posts->tasks[i] = (sx_loop_task){.fn = on_task, .user = posts};
        sx_loop_post(posts->loop, &posts->tasks[i]);
        if (i % 100 == 0) {
            usleep(1000); /* lets the loop fall asleep between bursts */
        }
    }
    return NULL;
}

static void test_net_loop__takes_tasks_from_other_threads(void **state)
{
    (void)state;
    static struct posts posts;
    pthread_t thread;
    assert_ok(sx_loop_create(&posts.loop));
    assert_int_equal(pthread_create(&thread, NULL, post_all, &posts), 0);
    assert_ok(sx_loop_run(posts.loop));
    pthread_join(thread, NULL);
    assert_int_equal(posts.ran, 1000);
    sx_loop_destroy(posts.loop);
}

/* A daemon has closed its standard input: the loop's first descriptor is 0. */
static void test_net_loop__descriptors_may_be_the_first(void **state)
{
    (void)state;
    sx_loop *loop = NULL;
    const int input = dup(0);
    assert_true(input > 0);
    close(0);
    sx_status status = sx_loop_create(&loop);
    const bool taken = fcntl(0, F_GETFD) >= 0;
    sx_loop_destroy(loop);
    dup2(input, 0);
    close(input);
    assert_ok(status);
    assert_true(taken);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_net_loop__timers_run_in_order),
    cmocka_unit_test(test_net_loop__removed_descriptors_are_silent),
    cmocka_unit_test(test_net_loop__takes_tasks_from_other_threads),
    cmocka_unit_test(test_net_loop__descriptors_may_be_the_first),
};
SX_TEST_MAIN(tests)
