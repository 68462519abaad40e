#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "serve/batcher.h"

enum { MAX_CALLS = 64, MAX_RUNS = 200 };

/* A model whose runs wait for a gate, and which notes what it was given. */
struct model {
    atomic_bool closed;      /* runs wait until this is false */
    atomic_int begun, ended; /* runs */
    atomic_int now, most;    /* runs at once */
    _Atomic int64_t rows[MAX_RUNS];
    bool wide;
    int sleep_us; /* of a run */
};

static const int64_t sizes[] = {1, 2, 4, 8};
static const sx_serve_tensor x = {.name = "x", .type = {SX_F32, 2, {SX_BATCH, 3}}};
static const sx_serve_tensor y = {.name = "y", .type = {SX_F32, 1, {SX_BATCH}}};
static const sx_serve_tensor s = {.name = "s", .type = {SX_STRING, 1, {SX_BATCH}}};
#define SIGNATURE(in, out)                                                            \
    {                                                                                 \
        .name = "serving_default", .input_count = 1, .output_count = 1, .inputs = in, \
        .outputs = out, .batch_sizes = sizes, .batch_size_count = 4                   \
    }
static const sx_serve_signature sums = SIGNATURE(&x, &y), echoes = SIGNATURE(&s, &s);

/* y = the sum of a row; a row that begins with -1 is refused. */
static sx_status run(void *user, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    struct model *m = user;
    const int64_t rows = inputs[0].type.dims[0];
    const int at = atomic_fetch_add(&m->begun, 1);
    const int now = atomic_fetch_add(&m->now, 1) + 1;
    int most = atomic_load(&m->most);
    while (most < now && !atomic_compare_exchange_weak(&m->most, &most, now)) {
    }
    if (at < MAX_RUNS) {
        atomic_store(&m->rows[at], rows);
    }
    while (atomic_load(&m->closed)) {
        usleep(100);
    }
    usleep((useconds_t)m->sleep_us);
    atomic_fetch_sub(&m->now, 1);
    atomic_fetch_add(&m->ended, 1);
    if (signature == &echoes) {
        outputs[0] = inputs[0];
        return sx_cancel_check(cancel);
    }
    float *out = sx_arena_array(arena, rows, float);
    if (out == NULL) {
        return sx_no_memory("for the sums");
    }
    const float *in = inputs[0].data;
    for (int64_t i = 0; i < rows; i++) {
        if (in[3 * i] == -1) {
            return sx_error(SX_INVALID_ARGUMENT, "row %d is bad", (int)i);
        }
        out[i] = in[3 * i] + in[3 * i + 1] + in[3 * i + 2];
    }
    outputs[0] = (sx_tensor){{SX_F32, 1, {rows}}, out};
    return sx_cancel_check(cancel);
}

static bool is_wide(void *user, const sx_serve_signature *signature, int64_t rows)
{
    const struct model *m = user;
    (void)signature;
    return m->wide && rows >= 4;
}

struct scene {
    struct model model;
    sx_batcher *batcher;
    sx_batch_line *line;
};

static sx_batch_line *add_line(struct scene *scene, struct model *model, const char *name,
                               const sx_serve_signature *signature)
{
    sx_batch_line *line = NULL;
    const sx_batch_runner runner = {name, signature, run, is_wide, model};
    assert_ok(sx_batcher_add(scene->batcher, &runner, &line));
    return line;
}

static void open_scene(struct scene *scene, sx_batcher_config config,
                       const sx_serve_signature *signature)
{
    *scene = (struct scene){0};
    config.run_states = config.run_states > 0 ? config.run_states : 1;
    config.rules.max_queued_rows =
        config.rules.max_queued_rows > 0 ? config.rules.max_queued_rows : 1000;
    assert_ok(sx_batcher_create(&config, &scene->batcher));
    scene->line = add_line(scene, &scene->model, "m", signature);
}

static void close_scene(struct scene *scene)
{
    assert_int_equal(sx_batcher_get_stats(scene->batcher).waiting, 0);
    sx_batch_line_remove(scene->line);
    sx_batcher_destroy(scene->batcher);
}

/* A task whose thread waits for it. */
struct waiter {
    sx_batch_task task; /* must be first: converted by address */
    sem_t woken;
};

static void wake(sx_batch_task *task, bool runs)
{
    (void)runs;
    sem_post(&((struct waiter *)task)->woken);
}

static sx_status run_call(sx_batch_line *line, const sx_batch_request *request,
                          sx_merged **out_batch)
{
    struct waiter w = {.task = {.request = *request, .wake = wake}};
    sem_init(&w.woken, 0, 0);
    for (sx_batch_state state = sx_batch_line_begin(line, &w.task); state != SX_BATCH_ENDED;
         state = sx_batch_task_go_on(&w.task)) {
        while (state == SX_BATCH_WAITS && sem_wait(&w.woken) != 0) {
        }
    }
    sem_destroy(&w.woken);
    *out_batch = w.task.batch;
    return w.task.status;
}

/* A call on a thread of its own. */
struct caller {
    sx_batch_line *line;
    int64_t rows;
    float first; /* of each row */
    sx_cancel cancel;
    pthread_t thread;
    sx_status status;
    float sums[MAX_CALLS];
    int64_t ended_ns;
    atomic_bool done;
};

static void *call(void *user)
{
    struct caller *c = user;
    float *values = sx_alloc((size_t)c->rows * 3, sizeof(float));
    for (int64_t i = 0; i < c->rows; i++) {
        values[3 * i] = c->first;
        values[3 * i + 1] = (float)i;
        values[3 * i + 2] = 0.5f;
    }
    sx_arena arena;
    sx_arena_init(&arena, 0);
    const sx_tensor input = {{SX_F32, 2, {c->rows, 3}}, values};
    sx_tensor output = {0};
    sx_merged *batch = NULL;
    const sx_batch_request request = {&input, &c->cancel, &arena, &output};
    c->status = run_call(c->line, &request, &batch);
    if (c->status == SX_OK) {
        assert_int_equal(output.type.dims[0], c->rows);
        memcpy(c->sums, output.data, (size_t)c->rows * sizeof(float));
    }
    sx_merged_release(batch);
    sx_arena_deinit(&arena);
    sx_free(values);
    c->ended_ns = sx_now_ns();
    atomic_store(&c->done, true);
    return NULL;
}

static void begin_call(struct caller *c, sx_batch_line *line, int64_t rows, float first,
                       int64_t deadline_ns)
{
    *c = (struct caller){.line = line, .rows = rows, .first = first};
    sx_cancel_init(&c->cancel, deadline_ns);
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
}

static void end_call(struct caller *c)
{
    pthread_join(c->thread, NULL);
    if (c->status == SX_OK) {
        for (int64_t i = 0; i < c->rows; i++) {
            assert_true(c->sums[i] == c->first + (float)i + 0.5f);
        }
    }
}

static void wait_for(atomic_int *counter, int value)
{
    while (atomic_load(counter) < value) {
        usleep(100);
    }
}

static void wait_for_queue(struct scene *scene, uint64_t waiting)
{
    while (sx_batcher_get_stats(scene->batcher).waiting != waiting) {
        usleep(100);
    }
}

static void test_serve_batcher__merges_while_busy(void **state)
{
    (void)state;
    struct scene scene;
    struct caller calls[6];
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8}, &sums);
    atomic_store(&scene.model.closed, true);
    begin_call(&calls[0], scene.line, 1, 10, INT64_MAX);
    wait_for(&scene.model.begun, 1);
    for (int i = 1; i < 6; i++) {
        begin_call(&calls[i], scene.line, i == 3 ? 2 : 1, (float)i, INT64_MAX);
        wait_for_queue(&scene, (uint64_t)i);
    }
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < 6; i++) {
        end_call(&calls[i]);
        assert_ok(calls[i].status);
    }
    const sx_batcher_stats stats = sx_batcher_get_stats(scene.batcher);
    assert_int_equal(stats.runs, 2);
    assert_int_equal(stats.merged, 5);
    assert_int_equal(stats.rows, 7);
    assert_int_equal(stats.padding, 2); /* 6 rows run as 8 */
    assert_int_equal(atomic_load(&scene.model.rows[1]), 8);
    close_scene(&scene);
}

/* One row may be computed otherwise than several: of tf.squeeze, say. */
static void test_serve_batcher__one_row_by_itself(void **state)
{
    (void)state;
    struct scene scene;
    struct caller calls[6], large;
    sx_serve_signature alone = sums;
    alone.one_by_itself = true;
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8}, &alone);
    atomic_store(&scene.model.closed, true);
    begin_call(&calls[0], scene.line, 1, 10, INT64_MAX);
    wait_for(&scene.model.begun, 1);
    for (int i = 1; i < 6; i++) {
        begin_call(&calls[i], scene.line, i % 2 == 0 ? 2 : 1, (float)i, INT64_MAX);
        wait_for_queue(&scene, (uint64_t)i);
    }
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < 6; i++) {
        end_call(&calls[i]);
        assert_ok(calls[i].status);
    }
    const sx_batcher_stats stats = sx_batcher_get_stats(scene.batcher);
    assert_int_equal(stats.runs, 5);   /* four of one row, and the two of two rows, */
    assert_int_equal(stats.merged, 2); /* which are merged */
    begin_call(&large, scene.line, 17, 1, INT64_MAX); /* not 8, 8 and 1 */
    end_call(&large);
    assert_ok(large.status);
    assert_int_equal(atomic_load(&scene.model.rows[5]), 17);
    close_scene(&scene);
}

static void test_serve_batcher__a_bad_call_fails_alone(void **state)
{
    (void)state;
    struct scene scene;
    struct caller calls[5];
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8}, &sums);
    atomic_store(&scene.model.closed, true);
    begin_call(&calls[0], scene.line, 1, 10, INT64_MAX);
    wait_for(&scene.model.begun, 1);
    for (int i = 1; i < 5; i++) {
        begin_call(&calls[i], scene.line, 1, i == 2 ? -1 : (float)i, INT64_MAX);
        wait_for_queue(&scene, (uint64_t)i);
    }
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < 5; i++) {
        end_call(&calls[i]);
        if (i == 2) {
            assert_error(calls[i].status, SX_INVALID_ARGUMENT, "row 0 is bad");
        } else {
            assert_ok(calls[i].status);
        }
    }
    assert_int_equal(sx_batcher_get_stats(scene.batcher).merged, 0);
    close_scene(&scene);
}

/* Those that are too late or canceled are answered without being run, while they wait. */
static void test_serve_batcher__drops_late_and_canceled_calls(void **state)
{
    (void)state;
    struct scene scene;
    struct caller busy, late, canceled, good;
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8}, &sums);
    atomic_store(&scene.model.closed, true);
    begin_call(&busy, scene.line, 1, 10, INT64_MAX);
    wait_for(&scene.model.begun, 1);
    begin_call(&late, scene.line, 1, 1, sx_now_ns() + 20000000);
    begin_call(&canceled, scene.line, 1, 2, INT64_MAX);
    begin_call(&good, scene.line, 1, 3, INT64_MAX);
    while (sx_batcher_get_stats(scene.batcher).dropped < 1) {
        usleep(100);
    }
    end_call(&late);
    assert_error(late.status, SX_DEADLINE_EXCEEDED, "");
    sx_cancel_request(&canceled.cancel);
    end_call(&canceled);
    assert_error(canceled.status, SX_CANCELLED, "");
    assert_int_equal(atomic_load(&scene.model.begun), 1);
    atomic_store(&scene.model.closed, false);
    end_call(&busy);
    end_call(&good);
    assert_ok(busy.status);
    assert_ok(good.status);
    assert_int_equal(atomic_load(&scene.model.begun), 2);
    close_scene(&scene);
}

static void test_serve_batcher__cuts_large_calls(void **state)
{
    (void)state;
    struct scene scene;
    struct caller large;
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8}, &sums);
    begin_call(&large, scene.line, 21, 1, INT64_MAX);
    end_call(&large);
    assert_ok(large.status);
    assert_int_equal(atomic_load(&scene.model.begun), 3);
    assert_int_equal(atomic_load(&scene.model.rows[2]), 5);
    begin_call(&large, scene.line, 0, 1, INT64_MAX); /* none: as it is */
    end_call(&large);
    assert_ok(large.status);
    close_scene(&scene);

    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8, .no_split = true}, &sums);
    begin_call(&large, scene.line, 21, 1, INT64_MAX);
    end_call(&large);
    assert_error(large.status, SX_INVALID_ARGUMENT, "larger than maximum input batch size 8");
    close_scene(&scene);
}

static void test_serve_batcher__merges_strings(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 2}, &echoes);
    sx_bytes texts[5];
    for (int i = 0; i < 5; i++) {
        texts[i] = (sx_bytes){&"abcde"[i], (size_t)(5 - i)};
    }
    sx_arena arena;
    sx_arena_init(&arena, 0);
    const sx_tensor input = {{SX_STRING, 1, {5}}, texts};
    sx_tensor output = {0};
    sx_merged *batch = NULL;
    const sx_batch_request request = {&input, NULL, &arena, &output};
    assert_ok(run_call(scene.line, &request, &batch));
    assert_null(batch);
    const sx_bytes *got = output.data;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(got[i].size, 5 - i);
        assert_memory_equal(got[i].data, texts[i].data, got[i].size);
    }
    sx_arena_deinit(&arena);
    close_scene(&scene);
}

/* Narrow runs at once, as many as there are states; a wide one alone. */
static void test_serve_batcher__shares_run_states(void **state)
{
    (void)state;
    struct scene scene;
    struct caller calls[4];
    open_scene(&scene, (sx_batcher_config){.rules.max_rows = 8, .run_states = 3}, &sums);
    scene.model.wide = true;
    atomic_store(&scene.model.closed, true);
    for (int i = 0; i < 3; i++) {
        begin_call(&calls[i], scene.line, 1, 1, INT64_MAX);
        wait_for(&scene.model.begun, i + 1);
    }
    assert_int_equal(atomic_load(&scene.model.most), 3);
    begin_call(&calls[3], scene.line, 4, 1, INT64_MAX);
    wait_for_queue(&scene, 1);
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < 4; i++) {
        end_call(&calls[i]);
        assert_ok(calls[i].status);
    }
    close_scene(&scene);
}

struct load {
    struct scene *scene;
    sx_batch_line *line;
    atomic_bool *stop;
    atomic_int *ended;
    int64_t rows;
};

static void *keep_calling(void *user)
{
    struct load *load = user;
    struct caller c;
    while (!atomic_load(load->stop)) {
        c = (struct caller){.line = load->line, .rows = load->rows, .first = 2};
        sx_cancel_init(&c.cancel, INT64_MAX);
        call(&c);
        assert_ok(c.status);
        for (int64_t i = 0; i < c.rows; i++) {
            assert_true(c.sums[i] == 2.5f + (float)i);
        }
        atomic_fetch_add(load->ended, 1);
    }
    return NULL;
}

/* A model of weight 3 gets three times the time of one of weight 1, however many ask: of runs that
 * take equally long, of one call each, three times as many. With equal weights there would be
 * equally many; not all of three times is asked for, since threads may be late on a busy machine.
 */
static void test_serve_batcher__models_share_by_weight(void **state)
{
    (void)state;
    enum { LIGHT = 6, HEAVY = 12, RUNS = 400 };
    static const sx_batch_weight weights[] = {{"heavy", 1}, {"light", 3}};
    struct scene scene;
    struct load loads[LIGHT + HEAVY];
    pthread_t threads[LIGHT + HEAVY];
    atomic_bool stop = false;
    atomic_int ended[2] = {0, 0};
    struct model models[2] = {{.sleep_us = 1000}, {.sleep_us = 1000}};
    open_scene(&scene,
               (sx_batcher_config){.weights = weights, .weight_count = 2, .rules.max_rows = 1},
               &sums);
    sx_batch_line *lines[2] = {add_line(&scene, &models[0], "light", &sums),
                               add_line(&scene, &models[1], "heavy", &sums)};
    for (int i = 0; i < LIGHT + HEAVY; i++) {
        const int which = i >= LIGHT;
        loads[i] = (struct load){&scene, lines[which], &stop, &ended[which], 1};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_calling, &loads[i]), 0);
    }
    while (atomic_load(&ended[0]) + atomic_load(&ended[1]) < RUNS) {
        usleep(100);
    }
    const int light = atomic_load(&ended[0]), heavy = atomic_load(&ended[1]);
    atomic_store(&stop, true);
    for (int i = 0; i < LIGHT + HEAVY; i++) {
        pthread_join(threads[i], NULL);
    }
    if (light < 2 * heavy || heavy == 0) {
        fail_msg("light %d, heavy %d", light, heavy);
    }
    sx_batch_line_remove(lines[0]);
    sx_batch_line_remove(lines[1]);
    close_scene(&scene);
}

/* No signature of a model waits until another one has no calls. */
static void test_serve_batcher__signatures_take_turns(void **state)
{
    (void)state;
    struct scene scene;
    struct caller calls[5];
    open_scene(&scene, (sx_batcher_config){0}, &sums);
    sx_batch_line *other = add_line(&scene, &scene.model, "m", &sums);
    atomic_store(&scene.model.closed, true);
    for (int i = 0; i < 5; i++) {
        begin_call(&calls[i], i % 2 == 0 ? scene.line : other, i + 1, 1, INT64_MAX);
        wait_for(&scene.model.begun, 1);
        wait_for_queue(&scene, (uint64_t)i);
    }
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < 5; i++) {
        end_call(&calls[i]);
        assert_ok(calls[i].status);
        assert_int_equal(atomic_load(&scene.model.rows[i]), i + 1);
    }
    sx_batch_line_remove(other);
    close_scene(&scene);
}

/* Many threads, sizes and deadlines at once: each call gets its own answer. */
static void test_serve_batcher__answers_are_each_callers_own(void **state)
{
    (void)state;
    enum { THREADS = 12 };
    for (int policy = SX_BATCH_CONSERVE; policy <= SX_BATCH_TFS; policy++) {
        struct scene scene;
        struct load loads[THREADS];
        pthread_t threads[THREADS];
        atomic_bool stop = false;
        atomic_int ended = 0;
        open_scene(
            &scene,
            (sx_batcher_config){
                .rules = {.policy = (sx_batch_policy)policy, .max_rows = 8, .timeout_ns = 200000},
                .run_states = 2},
            &sums);
        for (int i = 0; i < THREADS; i++) {
            loads[i] = (struct load){&scene, scene.line, &stop, &ended, 1 + i % 10};
            assert_int_equal(pthread_create(&threads[i], NULL, keep_calling, &loads[i]), 0);
        }
        wait_for(&ended, 2000);
        atomic_store(&stop, true);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        assert_true(atomic_load(&scene.model.most) <= 2);
        close_scene(&scene);
    }
}

/* Alone, a call of that policy waits for the timeout, and no longer. */
static void test_serve_batcher__tfs_waits_for_others(void **state)
{
    (void)state;
    struct scene scene;
    struct caller c;
    open_scene(&scene,
               (sx_batcher_config){
                   .rules = {.policy = SX_BATCH_TFS, .max_rows = 8, .timeout_ns = 30000000}},
               &sums);
    const int64_t begin_ns = sx_now_ns();
    begin_call(&c, scene.line, 1, 1, INT64_MAX);
    end_call(&c);
    assert_ok(c.status);
    assert_true(c.ended_ns - begin_ns >= 30000000);
    begin_call(&c, scene.line, 8, 1, INT64_MAX); /* full: at once, even if the clock is slow */
    end_call(&c);
    assert_ok(c.status);
    close_scene(&scene);
}

/* Thousands of calls wait without a thread: each is a record, which its owner's few threads run
 * when it is woken. */
struct record {
    sx_batch_task task; /* must be first: converted by address */
    sx_cancel cancel;
    sx_arena arena;
    float values[3];
    sx_tensor input, output;
    struct record *next;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct record *first;
    int ended;
} woken = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wake_record(sx_batch_task *task, bool runs)
{
    struct record *r = (struct record *)task;
    (void)runs;
    pthread_mutex_lock(&woken.mutex);
    r->next = woken.first;
    woken.first = r;
    pthread_cond_signal(&woken.changed);
    pthread_mutex_unlock(&woken.mutex);
}

static void *go_on(void *user)
{
    const int count = *(const int *)user;
    pthread_mutex_lock(&woken.mutex);
    while (woken.ended < count) {
        struct record *r = woken.first;
        if (r == NULL) {
            pthread_cond_wait(&woken.changed, &woken.mutex);
            continue;
        }
        woken.first = r->next;
        pthread_mutex_unlock(&woken.mutex);
        sx_batch_state state = sx_batch_task_go_on(&r->task);
        pthread_mutex_lock(&woken.mutex);
        woken.ended += state == SX_BATCH_ENDED;
    }
    pthread_cond_broadcast(&woken.changed);
    pthread_mutex_unlock(&woken.mutex);
    return NULL;
}

static void test_serve_batcher__calls_wait_without_threads(void **state)
{
    (void)state;
    enum { CALLS = 5000, LATE = 500, CANCELED = 300, THREADS = 2 };
    struct scene scene;
    struct caller busy;
    pthread_t threads[THREADS];
    int count = CALLS;
    struct record *records = sx_alloc(CALLS, sizeof(*records));
    open_scene(&scene, (sx_batcher_config){.rules = {.max_rows = 8, .max_queued_rows = CALLS + 1}},
               &sums);
    atomic_store(&scene.model.closed, true);
    begin_call(&busy, scene.line, 1, 10, INT64_MAX);
    wait_for(&scene.model.begun, 1);
    woken.ended = 0;
    for (int i = 0; i < CALLS; i++) {
        struct record *r = &records[i];
        sx_arena_init(&r->arena, 0);
        sx_cancel_init(&r->cancel, i < LATE ? sx_now_ns() + 1000000 : INT64_MAX);
        r->values[0] = (float)i;
        r->input = (sx_tensor){{SX_F32, 2, {1, 3}}, r->values};
        r->task = (sx_batch_task){.request = {&r->input, &r->cancel, &r->arena, &r->output},
                                  .wake = wake_record};
        assert_int_equal(sx_batch_line_begin(scene.line, &r->task), SX_BATCH_WAITS);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, go_on, &count), 0);
    }
    for (int i = 0; i < CANCELED; i++) {
        sx_cancel_request(&records[LATE + i].cancel);
    }
    /* Those are ended without a run, while all others wait. */
    wait_for_queue(&scene, CALLS - LATE - CANCELED);
    atomic_store(&scene.model.closed, false);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    end_call(&busy);
    for (int i = 0; i < CALLS; i++) {
        struct record *r = &records[i];
        if (i < LATE) {
            assert_error(r->task.status, SX_DEADLINE_EXCEEDED, "");
        } else if (i < LATE + CANCELED) {
            assert_error(r->task.status, SX_CANCELLED, "");
        } else {
            assert_ok(r->task.status);
            assert_true(*(float *)r->output.data == (float)i);
        }
        sx_merged_release(r->task.batch);
        sx_arena_deinit(&r->arena);
    }
    assert_int_equal(atomic_load(&scene.model.begun), 1 + (CALLS - LATE - CANCELED) / 8);
    sx_free(records);
    close_scene(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_batcher__merges_while_busy),
    cmocka_unit_test(test_serve_batcher__one_row_by_itself),
    cmocka_unit_test(test_serve_batcher__a_bad_call_fails_alone),
    cmocka_unit_test(test_serve_batcher__drops_late_and_canceled_calls),
    cmocka_unit_test(test_serve_batcher__cuts_large_calls),
    cmocka_unit_test(test_serve_batcher__merges_strings),
    cmocka_unit_test(test_serve_batcher__shares_run_states),
    cmocka_unit_test(test_serve_batcher__models_share_by_weight),
    cmocka_unit_test(test_serve_batcher__signatures_take_turns),
    cmocka_unit_test(test_serve_batcher__answers_are_each_callers_own),
    cmocka_unit_test(test_serve_batcher__tfs_waits_for_others),
    cmocka_unit_test(test_serve_batcher__calls_wait_without_threads),
};
SX_TEST_MAIN(tests)
