#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "data/part.h"
#include <sextant/data.h>

enum { N = 103 };

/* x[i] = i, y[i] = [2i, 2i + 1]. */
static sx_dataset *numbers(int64_t n)
{
    static float x[20000];
    static int64_t y[20000][2];
    for (int i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i][0] = 2 * i;
        y[i][1] = 2 * i + 1;
    }
    const char *names[] = {"x", "y"};
    sx_tensor tensors[] = {{sx_type_of(SX_F32, n), x}, {sx_type_of(SX_I64, n, 2), y}};
    sx_dataset *dataset = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &dataset));
    return dataset;
}

struct log {
    int64_t ids[20000];
    uint64_t epochs[20000]; /* of the batch */
    int64_t sizes[20000];
    int count, batches;
};

static void log_batch(struct log *log, const struct sx_batch_data *batch)
{
    for (int64_t i = 0; i < batch->size; i++) {
        log->ids[log->count] = batch->ids[i];
        log->epochs[log->count++] = batch->epoch;
    }
    log->sizes[log->batches++] = batch->size;
}

/* Reads at most `limit` batches. */
static void drain(sx_iterator *iterator, int limit, struct log *log)
{
    const struct sx_batch_data *batch;
    for (int i = 0; i < limit; i++) {
        sx_status status = sx_iterator_next(iterator, &batch);
        if (sx_status_code(status) == SX_OUT_OF_RANGE) {
            sx_status_free(status);
            return;
        }
        assert_ok(status);
        log_batch(log, batch);
    }
}

static void assert_same_log(const struct log *a, const struct log *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->batches, b->batches);
    assert_memory_equal(a->ids, b->ids, (size_t)a->count * sizeof(a->ids[0]));
    assert_memory_equal(a->epochs, b->epochs, (size_t)a->count * sizeof(a->epochs[0]));
    assert_memory_equal(a->sizes, b->sizes, (size_t)a->batches * sizeof(a->sizes[0]));
}

static struct log logs[3];

static void read_all(sx_dataset *dataset, int workers, int prefetch, int limit, struct log *log)
{
    sx_iterator *iterator = NULL;
    memset(log, 0, sizeof(*log));
    assert_ok(sx_iterator_create(dataset, &iterator, .workers = workers, .prefetch = prefetch));
    drain(iterator, limit, log);
    sx_iterator_destroy(iterator);
}

static void test_data_iterator__elements_in_order(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
    const struct sx_batch_data *batch;
    for (int i = 0; i < N; i++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->size, 1);
        assert_int_equal(batch->count, 2);
        assert_int_equal(batch->components[0].type.rank, 0);
        assert_int_equal(batch->components[1].type.rank, 1);
        assert_true(*(float *)batch->components[0].data == (float)i);
        assert_int_equal(((int64_t *)batch->components[1].data)[1], 2 * i + 1);
        assert_int_equal(batch->ids[0], i);
        assert_int_equal(batch->number, i);
        assert_true(batch->ends_epoch == (i == N - 1));
    }
    assert_error(sx_iterator_next(iterator, &batch), SX_OUT_OF_RANGE, "103");
    assert_error(sx_iterator_next(iterator, &batch), SX_OUT_OF_RANGE, "103");
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__batches_stack_and_the_last_is_smaller(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_batch(&data, .size = 10));
    assert_int_equal(sx_dataset_count(data), 11);
    assert_int_equal(sx_dataset_batch_size(data), 10);
    assert_int_equal(sx_dataset_schema(data)->components[1].type.dims[0], SX_BATCH);
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator));
    const struct sx_batch_data *batch;
    for (int b = 0; b < 11; b++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->size, b == 10 ? 3 : 10);
        assert_int_equal(batch->components[1].type.dims[0], batch->size);
        for (int i = 0; i < batch->size; i++) {
            assert_true(((float *)batch->components[0].data)[i] == (float)(b * 10 + i));
            assert_int_equal(((int64_t *)batch->components[1].data)[2 * i], 2 * (b * 10 + i));
        }
    }
    assert_error(sx_iterator_next(iterator, &batch), SX_OUT_OF_RANGE, "");
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__drop_remainder(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_batch(&data, .size = 10, .drop_remainder = true));
    assert_int_equal(sx_dataset_count(data), 10);
    read_all(data, 2, 3, 1000, &logs[0]);
    assert_int_equal(logs[0].count, 100);
    sx_dataset_release(data);
}

static void test_data_iterator__take_skip_shard(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_skip(&data, 3));
    assert_ok(sx_dataset_take(&data, 50));
    assert_ok(sx_dataset_shard(&data, 7, 2));
    assert_int_equal(sx_dataset_count(data), 7); /* 2 9 16 23 30 37 44 of 50 */
    read_all(data, -1, 0, 1000, &logs[0]);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(logs[0].ids[i], 3 + 2 + 7 * i);
    }
    sx_dataset_release(data);
}

/* Shard i of n has the elements i, i + n, ...; one whose first element lies at or behind the end
 * has none. */
static void test_data_iterator__shards_share_every_element_out(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 6; count++) {
        for (int64_t shards = 1; shards <= 8; shards++) {
            bool seen[6] = {false};
            for (int64_t index = 0; index < shards; index++) {
                sx_dataset *data = numbers(count);
                assert_ok(sx_dataset_shard(&data, shards, index));
                read_all(data, -1, 0, 1000, &logs[0]);
                assert_int_equal(sx_dataset_count(data), logs[0].count);
                assert_true((logs[0].count == 0) == (index >= count));
                for (int i = 0; i < logs[0].count; i++) {
                    assert_int_equal(logs[0].ids[i], index + i * shards);
                    assert_in_range(logs[0].ids[i], 0, count - 1);
                    seen[logs[0].ids[i]] = true;
                }
                sx_dataset_release(data);
            }
            for (int64_t i = 0; i < count; i++) {
                assert_true(seen[i]);
            }
        }
    }
}

static void test_data_iterator__repeat_before_batch_straddles(void **state)
{
    (void)state;
    sx_dataset *data = numbers(5);
    assert_ok(sx_dataset_repeat(&data, 2));
    assert_ok(sx_dataset_batch(&data, .size = 4));
    read_all(data, 2, 2, 1000, &logs[0]);
    assert_int_equal(logs[0].batches, 3);
    assert_int_equal(logs[0].sizes[1], 4);
    assert_int_equal(logs[0].sizes[2], 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(logs[0].ids[i], i % 5);
    }
    sx_dataset_release(data);
}

static void test_data_iterator__repeat_after_batch_does_not(void **state)
{
    (void)state;
    sx_dataset *data = numbers(5);
    assert_ok(sx_dataset_shuffle(&data, .seed = 1));
    assert_ok(sx_dataset_batch(&data, .size = 4));
    assert_ok(sx_dataset_repeat(&data, 0));
    assert_true(sx_dataset_count(data) == SX_ENDLESS);
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
    const struct sx_batch_data *batch;
    for (int i = 0; i < 100; i++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->size, i % 2 == 0 ? 4 : 1);
        assert_int_equal(batch->epoch, i / 2);
        assert_true(batch->ends_epoch == (i % 2 == 1));
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

/* shuffle, batch, endless repeat: what training does. */
static sx_dataset *training_data(int64_t n, int64_t batch)
{
    sx_dataset *data = numbers(n);
    assert_ok(sx_dataset_shuffle(&data, .seed = 11));
    assert_ok(sx_dataset_batch(&data, .size = batch));
    assert_ok(sx_dataset_repeat(&data, 0));
    return data;
}

static void check_exactly_once(const struct log *log, int n, int epochs)
{
    assert_int_equal(log->count, n * epochs);
    for (int e = 0; e < epochs; e++) {
        bool seen[20000] = {false};
        for (int i = 0; i < n; i++) {
            int64_t id = log->ids[e * n + i];
            assert_int_equal(log->epochs[e * n + i], e);
            assert_in_range(id, 0, n - 1);
            assert_false(seen[id]);
            seen[id] = true;
        }
    }
}

static void test_data_iterator__same_sequence_for_any_workers(void **state)
{
    (void)state;
    sx_dataset *data = training_data(N, 8);
    read_all(data, -1, 0, 13 * 5, &logs[0]);
    check_exactly_once(&logs[0], N, 5);
    static const int workers[] = {1, 2, 4, 7, 0};
    for (int i = 0; i < 5; i++) {
        for (int prefetch = 0; prefetch < 4; prefetch++) {
            read_all(data, workers[i], prefetch, 13 * 5, &logs[1]);
            assert_same_log(&logs[0], &logs[1]);
        }
    }
    sx_dataset_release(data);
}

/* Every pass has a number of its own, so every pass is shuffled its own way. */
static void test_data_iterator__nested_repeats_number_every_epoch(void **state)
{
    (void)state;
    enum { EPOCHS = 6 };
    for (int batched = 0; batched < 2; batched++) {
        sx_dataset *data = numbers(N);
        assert_ok(sx_dataset_shuffle(&data, .seed = 11));
        if (batched) {
            assert_ok(sx_dataset_batch(&data, .size = 8));
        }
        assert_ok(sx_dataset_repeat(&data, 2));
        assert_ok(sx_dataset_repeat(&data, batched ? 0 : 3));
        read_all(data, 2, 0, batched ? 13 * EPOCHS : N * EPOCHS, &logs[0]);
        check_exactly_once(&logs[0], N, EPOCHS);
        for (int a = 0; a < EPOCHS; a++) {
            for (int b = 0; b < a; b++) {
                assert_memory_not_equal(&logs[0].ids[a * N], &logs[0].ids[b * N],
                                        N * sizeof(logs[0].ids[0]));
            }
        }
        sx_dataset_release(data);
    }
}

/* Stops after every batch, saves, throws everything away, and goes on with other workers. */
static void test_data_iterator__resumes_at_every_position(void **state)
{
    (void)state;
    sx_dataset *data = training_data(N, 8);
    const int batches = 13 * 3;
    read_all(data, 2, 0, batches, &logs[0]);
    for (int stop = 0; stop <= batches; stop++) {
        uint8_t cursor[SX_CURSOR_BYTES];
        sx_iterator *iterator = NULL;
        memset(&logs[1], 0, sizeof(logs[1]));
        assert_ok(sx_iterator_create(data, &iterator, .workers = 1 + stop % 4));
        drain(iterator, stop, &logs[1]);
        sx_iterator_save(iterator, cursor);
        sx_iterator_destroy(iterator);
        assert_ok(sx_iterator_create(data, &iterator, .workers = stop % 3 == 0 ? -1 : stop % 3));
        assert_ok(sx_iterator_restore(iterator, cursor));
        drain(iterator, batches - stop, &logs[1]);
        sx_iterator_destroy(iterator);
        assert_same_log(&logs[0], &logs[1]);
    }
    sx_dataset_release(data);
}

/* Fifty stops at random places in one run: nothing lost, nothing twice. */
static void test_data_iterator__exactly_once_over_fifty_kills(void **state)
{
    (void)state;
    sx_dataset *data = training_data(N, 4);
    const int batches = 26 * 8;
    memset(&logs[0], 0, sizeof(logs[0]));
    uint8_t cursor[SX_CURSOR_BYTES];
    bool saved = false;
    unsigned random = 12345;
    while (logs[0].batches < batches) {
        sx_iterator *iterator = NULL;
        random = random * 1103515245u + 12345u;
        assert_ok(sx_iterator_create(data, &iterator, .workers = (int)(random >> 16) % 4 + 1));
        if (saved) {
            assert_ok(sx_iterator_restore(iterator, cursor));
        }
        int go = (int)(random >> 20) % 8 + 1;
        drain(iterator, go < batches - logs[0].batches ? go : batches - logs[0].batches, &logs[0]);
        sx_iterator_save(iterator, cursor);
        saved = true;
        sx_iterator_destroy(iterator);
    }
    check_exactly_once(&logs[0], N, 8);
    sx_dataset_release(data);
}

static void test_data_iterator__buffer_shuffle_resumes_too(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_shuffle(&data, .seed = 3, .buffer = 20));
    assert_ok(sx_dataset_repeat(&data, 3));
    assert_ok(sx_dataset_batch(&data, .size = 7));
    read_all(data, 2, 0, 1000, &logs[0]);
    assert_int_equal(logs[0].count, 3 * N);
    for (int stop = 0; stop < logs[0].batches; stop += 5) {
        sx_iterator *iterator = NULL;
        memset(&logs[1], 0, sizeof(logs[1]));
        assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
        assert_ok(sx_iterator_seek(iterator, stop));
        drain(iterator, 1000, &logs[1]);
        assert_int_equal(logs[1].count, logs[0].count - stop * 7);
        assert_memory_equal(logs[1].ids, logs[0].ids + stop * 7, (size_t)logs[1].count * 8);
        sx_iterator_destroy(iterator);
    }
    sx_dataset_release(data);
}

static void test_data_iterator__seeks_back_while_running(void **state)
{
    (void)state;
    sx_dataset *data = training_data(N, 8);
    read_all(data, 2, 0, 30, &logs[0]);
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 3, .prefetch = 4));
    for (int round = 0; round < 20; round++) {
        memset(&logs[1], 0, sizeof(logs[1]));
        assert_ok(sx_iterator_seek(iterator, 0));
        drain(iterator, round + 1, &logs[1]);
        assert_memory_equal(logs[1].ids, logs[0].ids, (size_t)logs[1].count * 8);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__refuses_foreign_cursors(void **state)
{
    (void)state;
    sx_dataset *data = training_data(N, 8), *other = training_data(N, 9),
               *more = training_data(50, 8);
    sx_iterator *a = NULL, *b = NULL, *c = NULL;
    uint8_t cursor[SX_CURSOR_BYTES];
    assert_ok(sx_iterator_create(data, &a));
    assert_ok(sx_iterator_create(other, &b));
    assert_ok(sx_iterator_create(more, &c));
    memset(&logs[0], 0, sizeof(logs[0]));
    drain(a, 2, &logs[0]);
    sx_iterator_save(a, cursor);
    assert_error(sx_iterator_restore(b, cursor), SX_FAILED_PRECONDITION, "batch size");
    assert_error(sx_iterator_restore(c, cursor), SX_FAILED_PRECONDITION, "103 records");
    for (int i = 0; i < SX_CURSOR_BYTES * 8; i++) {
        cursor[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_error(sx_iterator_restore(a, cursor), SX_DATA_LOSS, "cursor");
        cursor[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_ok(sx_iterator_restore(a, cursor));
    sx_iterator_destroy(a);
    sx_iterator_destroy(b);
    sx_iterator_destroy(c);
    sx_dataset_release(data);
    sx_dataset_release(other);
    sx_dataset_release(more);
}

/* ---- Maps ---- */

static sx_status add_epoch(const sx_map_call *call, void *user)
{
    if (user != NULL) {
        atomic_fetch_add((atomic_int *)user, 1);
    }
    float x = *(const float *)call->in[0].data;
    float *out = call->out[0].data;
    out[0] = x;
    out[1] = (float)call->epoch;
    out[2] = (float)call->record;
    return SX_OK;
}

static const sx_component triple[] = {{"triple", {SX_F32, 1, {3}}}};

static void test_data_iterator__maps_see_epoch_and_record(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_shuffle(&data, .seed = 5));
    assert_ok(
        sx_dataset_map(&data, .name = "triple", .fn = add_epoch, .count = 1, .components = triple));
    assert_int_equal(sx_dataset_find(data, "triple"), 0);
    assert_int_equal(sx_dataset_find(data, "x"), -1);
    assert_ok(sx_dataset_batch(&data, .size = 10));
    assert_ok(sx_dataset_repeat(&data, 3));
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 3));
    const struct sx_batch_data *batch;
    for (int b = 0; b < 33; b++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        const float *rows = batch->components[0].data;
        for (int i = 0; i < batch->size; i++) {
            assert_true(rows[3 * i] == (float)batch->ids[i]);
            assert_true(rows[3 * i + 1] == (float)(b / 11));
            assert_true(rows[3 * i + 2] == (float)batch->ids[i]);
        }
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__cache_computes_once_and_sees_epoch_zero(void **state)
{
    (void)state;
    for (int budget = 0; budget < 2; budget++) { /* all fits; next to nothing fits */
        atomic_int calls;
        atomic_init(&calls, 0);
        sx_dataset *data = numbers(N);
        assert_ok(sx_dataset_map(&data, .name = "triple", .fn = add_epoch, .count = 1,
                                 .components = triple, .user = &calls));
        assert_ok(sx_dataset_cache(&data, budget == 0 ? 0 : N * 8 + 640));
        assert_ok(sx_dataset_batch(&data, .size = 10));
        assert_ok(sx_dataset_repeat(&data, 3));
        sx_iterator *iterator = NULL;
        const struct sx_batch_data *batch;
        assert_ok(sx_iterator_create(data, &iterator, .workers = 1));
        for (int b = 0; b < 33; b++) {
            assert_ok(sx_iterator_next(iterator, &batch));
            const float *rows = batch->components[0].data;
            for (int i = 0; i < batch->size; i++) {
                assert_true(rows[3 * i] == (float)batch->ids[i]);
                assert_true(rows[3 * i + 1] == 0);
            }
        }
        sx_iterator_destroy(iterator);
        assert_int_equal(atomic_load(&calls), budget == 0 ? N : 3 * N - 2 * 10);
        sx_dataset_release(data);
    }
}

static sx_status number_text(const sx_map_call *call, void *user)
{
    (void)user;
    char *text = sx_scratch_alloc(call->scratch, 32);
    int length = snprintf(text, 32, "number %d", (int)*(const float *)call->in[0].data);
    *(sx_bytes *)call->out[0].data = (sx_bytes){text, (size_t)length};
    return SX_OK;
}

static void test_data_iterator__strings_survive_their_scratch(void **state)
{
    (void)state;
    static const sx_component text[] = {{"text", {SX_STRING, 0, {0}}}};
    sx_dataset *data = numbers(N);
    assert_ok(
        sx_dataset_map(&data, .name = "text", .fn = number_text, .count = 1, .components = text));
    assert_ok(sx_dataset_cache(&data, 0));
    assert_ok(sx_dataset_batch(&data, .size = 16));
    sx_iterator *iterator = NULL;
    for (int round = 0; round < 2; round++) {
        const struct sx_batch_data *batch;
        assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
        for (int b = 0; b < 7; b++) {
            assert_ok(sx_iterator_next(iterator, &batch));
            const sx_bytes *strings = batch->components[0].data;
            for (int i = 0; i < batch->size; i++) {
                char expected[32];
                int length = snprintf(expected, sizeof(expected), "number %d", b * 16 + i);
                assert_int_equal(strings[i].size, length);
                assert_memory_equal(strings[i].data, expected, (size_t)length);
            }
        }
        sx_iterator_destroy(iterator);
    }
    sx_dataset_release(data);
}

static sx_status fail_at_50(const sx_map_call *call, void *user)
{
    (void)user;
    if (call->record == 50 || call->record == 52) {
        return sx_error(SX_DATA_LOSS, "bad element %d", (int)call->record);
    }
    *(float *)call->out[0].data = 1;
    memset(call->out[1].data, 0, 16);
    return SX_OK;
}

static void test_data_iterator__the_first_error_wins_and_stays(void **state)
{
    (void)state;
    for (int workers = -1; workers < 5; workers++) {
        sx_dataset *data = numbers(N);
        assert_ok(sx_dataset_map(&data, .name = "check", .fn = fail_at_50));
        assert_ok(sx_dataset_batch(&data, .size = 8));
        sx_iterator *iterator = NULL;
        const struct sx_batch_data *batch;
        assert_ok(sx_iterator_create(data, &iterator, .workers = workers));
        for (int b = 0; b < 6; b++) {
            assert_ok(sx_iterator_next(iterator, &batch));
        }
        assert_error(sx_iterator_next(iterator, &batch), SX_DATA_LOSS, "row 50: bad element 50");
        assert_error(sx_iterator_next(iterator, &batch), SX_DATA_LOSS, "row 50: bad element 50");
        assert_ok(sx_iterator_seek(iterator, 7));
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->ids[0], 56);
        sx_iterator_destroy(iterator);
        sx_dataset_release(data);
    }
}

static sx_status slow(const sx_map_call *call, void *user)
{
    (void)user;
    usleep(500);
    *(float *)call->out[0].data = *(const float *)call->in[0].data;
    memset(call->out[1].data, 0, 16);
    return SX_OK;
}

static void test_data_iterator__accounts_for_waiting(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_map(&data, .name = "slow", .fn = slow));
    assert_ok(sx_dataset_batch(&data, .size = 8));
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 1));
    memset(&logs[0], 0, sizeof(logs[0]));
    drain(iterator, 1000, &logs[0]);
    sx_iterator_stats stats;
    sx_iterator_get_stats(iterator, &stats);
    assert_int_equal(stats.elements, N);
    assert_int_equal(stats.batches, 13);
    assert_true(stats.wait_ns > 20 * 1000 * 1000);
    assert_true(stats.busy_ns > 40 * 1000 * 1000);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

/* Takes 4 ms a record below 200, none above. */
static sx_status slow_at_first(const sx_map_call *call, void *user)
{
    (void)user;
    if (call->record < 200) {
        usleep(4000);
    }
    *(float *)call->out[0].data = *(const float *)call->in[0].data;
    memset(call->out[1].data, 0, 16);
    return SX_OK;
}

/* Workers are added while next() waits for them, and taken away when they have little to do; the
 * sequence stays the same. */
static void test_data_iterator__workers_follow_the_need(void **state)
{
    (void)state;
    sx_dataset *data = numbers(1000);
    assert_ok(sx_dataset_map(&data, .name = "slow", .fn = slow_at_first));
    assert_ok(sx_dataset_batch(&data, .size = 4));
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    sx_iterator_stats stats;
    assert_ok(sx_iterator_create(data, &iterator, .prefetch = 2));
    int most = 0;
    for (int i = 0; i < 250; i++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->ids[0], 4 * i);
        assert_int_equal(batch->ids[3], 4 * i + 3);
        sx_iterator_get_stats(iterator, &stats);
        most = SX_MAX(most, stats.workers);
        if (i > 60) {
            usleep(1000); /* the step */
        }
    }
    assert_true(most == sx_cpu_count());
    assert_int_equal(stats.workers, 1);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

typedef struct rows_made {
    atomic_int count;
    atomic_llong ns; /* by the clock */
} rows_made;

/* Takes 1 ms of a processor. */
static sx_status busy(const sx_map_call *call, void *user)
{
    rows_made *made = user;
    const int64_t begin_ns = sx_now_ns();
    for (const int64_t begin = sx_thread_cpu_ns(); sx_thread_cpu_ns() - begin < 1000 * 1000;) {
    }
    atomic_fetch_add(&made->ns, sx_now_ns() - begin_ns);
    atomic_fetch_add(&made->count, 1);
    *(float *)call->out[0].data = *(const float *)call->in[0].data;
    memset(call->out[1].data, 0, 16);
    return SX_OK;
}

typedef struct step {
    rows_made *made;
    int before; /* rows made when no worker can be within a chunk any more */
} step;

static void long_step(void *user, int worker)
{
    step *s = user;
    if (worker == 0) {
        usleep(400 * 1000);
        s->before = atomic_load(&s->made->count);
        usleep(400 * 1000);
    }
}

/* While the caller's pool takes all processors, workers make nothing; when it waits they fill the
 * ring, and the sequence stays the same. Workers that other processes leave less than a quarter of
 * a processor look as if they waited for files, and go on. */
static void test_data_iterator__workers_leave_the_processors_to_a_step(void **state)
{
    (void)state;
    rows_made made = {0};
    sx_pool *pool;
    sx_dataset *data = numbers(400);
    assert_ok(sx_dataset_map(&data, .name = "busy", .fn = busy, .user = &made));
    assert_ok(sx_dataset_batch(&data, .size = 8));
    assert_ok(sx_pool_create(0, &pool));
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_iterator_create(data, &iterator, .prefetch = 40));
    for (int i = 0; i < 3; i++) {
        step s = {.made = &made};
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->ids[0], 8 * i);
        sx_pool_run(pool, long_step, &s);
        const int count = atomic_load(&made.count);
        const bool gets_processors = atomic_load(&made.ns) < count * (int64_t)3000 * 1000;
        assert_true(count == s.before || !gets_processors || sx_pool_workers(pool) == 1);
    }
    assert_ok(sx_iterator_seek(iterator, 0)); /* while they yield */
    for (int i = 0; i < 50; i++) {
        assert_ok(sx_iterator_next(iterator, &batch));
        assert_int_equal(batch->ids[7], 8 * i + 7);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    sx_pool_destroy(pool);
}

static sx_status count_blocked(const sx_map_call *call, void *user)
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGHUP) == 1 &&
        sigismember(&mask, SIGSEGV) == 0) {
        atomic_fetch_add((atomic_int *)user, 1);
    }
    *(float *)call->out[0].data = *(const float *)call->in[0].data;
    memset(call->out[1].data, 0, 16);
    return SX_OK;
}

/* A handler's flag is read by the program's own thread: no other may run the handler. */
static void test_data_iterator__workers_leave_signals_to_the_program(void **state)
{
    (void)state;
    atomic_int blocked = 0;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_map(&data, .name = "count", .fn = count_blocked, .user = &blocked));
    assert_ok(sx_dataset_batch(&data, .size = 8));
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
    memset(&logs[0], 0, sizeof(logs[0]));
    drain(iterator, 1000, &logs[0]);
    assert_int_equal(atomic_load(&blocked), N);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__steady_state_allocates_nothing(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N);
    assert_ok(sx_dataset_shuffle(&data, .seed = 5));
    assert_ok(
        sx_dataset_map(&data, .name = "triple", .fn = add_epoch, .count = 1, .components = triple));
    assert_ok(sx_dataset_batch(&data, .size = 10));
    assert_ok(sx_dataset_repeat(&data, 0));
    sx_iterator *iterator = NULL;
    assert_ok(sx_iterator_create(data, &iterator, .workers = 2));
    memset(&logs[0], 0, sizeof(logs[0]));
    drain(iterator, 50, &logs[0]);
    long before = sx_alloc_count();
    drain(iterator, 500, &logs[0]);
    assert_int_equal(sx_alloc_count(), before);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

/* Fails every allocation in turn: no crash, no leak (under ASan), a clean status. */
static void test_data_iterator__survives_failing_allocations(void **state)
{
    (void)state;
    for (long n = 1; n < 200; n++) {
        sx_dataset *data = numbers(5);
        sx_iterator *iterator = NULL;
        const struct sx_batch_data *batch;
        sx_alloc_fail_after(n);
        sx_status status = sx_dataset_shuffle(&data, .seed = 5, .buffer = 3);
        if (status == SX_OK) {
            status = sx_dataset_map(&data, .name = "t", .fn = add_epoch, .count = 1,
                                    .components = triple);
        }
        if (status == SX_OK) {
            status = sx_dataset_cache(&data, 0);
        }
        if (status == SX_OK) {
            status = sx_dataset_batch(&data, .size = 2);
        }
        if (status == SX_OK) {
            status = sx_iterator_create(data, &iterator, .workers = -1);
        }
        if (status == SX_OK) {
            status = sx_iterator_next(iterator, &batch);
        }
        sx_alloc_fail_after(0);
        sx_iterator_destroy(iterator);
        sx_dataset_release(data);
        if (status != SX_OK) {
            assert_int_equal(sx_status_code(status), SX_RESOURCE_EXHAUSTED);
            sx_status_free(status);
        }
    }
}

static void test_data_iterator__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    sx_dataset *data = numbers(N), *before = data;
    assert_error(sx_dataset_batch(&data, .size = 0), SX_INVALID_ARGUMENT, "batch size 0");
    assert_error(sx_dataset_batch(&data, .size = -5), SX_INVALID_ARGUMENT, "batch size -5");
    assert_error(sx_dataset_batch(&data, .size = (int64_t)1 << 40), SX_INVALID_ARGUMENT,
                 "batch size");
    assert_error(sx_dataset_shard(&data, 3, 3), SX_INVALID_ARGUMENT, "shard");
    assert_error(sx_dataset_take(&data, -1), SX_INVALID_ARGUMENT, "take");
    assert_error(sx_dataset_map(&data, .name = "none"), SX_INVALID_ARGUMENT, "function");
    static const sx_component dynamic[] = {
        {"image", {SX_U8, 3, {SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, 3}}}};
    assert_error(
        sx_dataset_map(&data, .name = "decode", .fn = slow, .count = 1, .components = dynamic),
        SX_INVALID_ARGUMENT, "static");
    assert_ptr_equal(data, before);
    assert_ok(sx_dataset_batch(&data, .size = 4));
    assert_error(sx_dataset_batch(&data, .size = 4), SX_INVALID_ARGUMENT, "already");
    assert_error(sx_dataset_map(&data, .name = "late", .fn = slow), SX_INVALID_ARGUMENT,
                 "before batch");
    assert_ok(sx_dataset_repeat(&data, 0));
    assert_error(sx_dataset_shuffle(&data, .seed = 1), SX_INVALID_ARGUMENT, "before repeat");
    assert_error(sx_dataset_repeat(&data, 2), SX_INVALID_ARGUMENT, "forever");
    sx_dataset_release(data);
}

static void test_data_iterator__nothing_left_is_the_end(void **state)
{
    (void)state;
    sx_dataset *data = numbers(5);
    assert_ok(sx_dataset_take(&data, 0));
    assert_ok(sx_dataset_repeat(&data, 0));
    assert_ok(sx_dataset_batch(&data, .size = 2));
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_iterator_create(data, &iterator));
    assert_error(sx_iterator_next(iterator, &batch), SX_OUT_OF_RANGE, "0 batches");
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
}

static void test_data_iterator__tensors_must_agree(void **state)
{
    (void)state;
    float x[6];
    const char *names[] = {"x", "y"};
    sx_tensor tensors[] = {{sx_type_of(SX_F32, 6), x}, {sx_type_of(SX_F32, 5), x}};
    sx_dataset *data = NULL;
    assert_error(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data), SX_INVALID_ARGUMENT,
                 "\"y\" has 5 rows, \"x\" has 6");
    tensors[0].type = sx_scalar_type(SX_F32);
    assert_error(sx_dataset_from_tensors(1, names, tensors, NULL, NULL, &data), SX_INVALID_ARGUMENT,
                 "rank 1");
    assert_error(sx_dataset_from_tensors(0, names, tensors, NULL, NULL, &data), SX_INVALID_ARGUMENT,
                 "0 components");
}

/* Counts of what comes out, at and beside every edge, against counting by hand; and the reader sees
 * exactly as many. */
static void test_data_iterator__counts_at_every_edge(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 5; n++) {
        for (int64_t k = 0; k <= 7; k++) {
            sx_dataset *taken = numbers(5), *skipped = numbers(5), *all = NULL;
            assert_ok(sx_dataset_take(&taken, n));
            assert_ok(sx_dataset_skip(&taken, k));
            assert_int_equal(sx_dataset_count(taken), n > k ? n - k : 0);
            assert_ok(sx_dataset_skip(&skipped, n));
            assert_ok(sx_dataset_take(&skipped, k));
            assert_int_equal(sx_dataset_count(skipped), k < 5 - n ? k : 5 - n);
            int64_t in_shards = 0, in_batches = 0;
            for (int64_t shard = 0; k > 0 && shard < k; shard++) {
                int64_t expected = 0;
                all = numbers(5);
                assert_ok(sx_dataset_take(&all, n));
                assert_ok(sx_dataset_shard(&all, k, shard));
                for (int64_t i = shard; i < n; i += k) {
                    expected++;
                }
                assert_int_equal(sx_dataset_count(all), expected);
                in_shards += expected;
                sx_dataset_release(all);
            }
            assert_int_equal(in_shards, k > 0 ? n : 0);
            for (int drop = 0; k > 0 && drop < 2; drop++) {
                all = numbers(5);
                assert_ok(sx_dataset_take(&all, n));
                assert_ok(sx_dataset_batch(&all, .size = k, .drop_remainder = drop == 1));
                in_batches = drop == 1 ? n / k : (n + k - 1) / k;
                assert_int_equal(sx_dataset_count(all), in_batches);
                sx_dataset_release(all);
            }
            sx_dataset_release(taken);
            sx_dataset_release(skipped);
        }
    }
    sx_dataset *data = numbers(5);
    assert_ok(sx_dataset_repeat(&data, 3));
    assert_int_equal(sx_dataset_count(data), 15);
    assert_ok(sx_dataset_repeat(&data, INT64_MAX)); /* more than can be counted */
    assert_int_equal(sx_dataset_count(data), SX_ENDLESS);
    assert_ok(sx_dataset_skip(&data, 7));
    assert_int_equal(sx_dataset_count(data), SX_ENDLESS);
    assert_ok(sx_dataset_shard(&data, 4, 3));
    assert_int_equal(sx_dataset_count(data), SX_ENDLESS);
    assert_ok(sx_dataset_take(&data, 11));
    assert_int_equal(sx_dataset_count(data), 11);
    sx_dataset_release(data);
}

/* The limits themselves are allowed, one more is refused; nothing is allocated for either. */
static void test_data_iterator__limits(void **state)
{
    (void)state;
    sx_dataset *data = numbers(2);
    assert_error(sx_dataset_batch(&data, .size = ((int64_t)1 << 24) + 1), SX_INVALID_ARGUMENT,
                 "batch size 16777217: expected 1 to 16777216");
    assert_ok(sx_dataset_batch(&data, .size = (int64_t)1 << 24));
    assert_error(sx_dataset_cache(&data, 1), SX_INVALID_ARGUMENT, "cache before batch");
    sx_dataset_release(data);
    data = numbers(1 << 10);
    assert_error(sx_dataset_shuffle(&data, .buffer = -1), SX_INVALID_ARGUMENT, "buffer -1");
    assert_ok(sx_dataset_repeat(&data, 1 << 18));
    assert_ok(sx_dataset_shuffle(&data, .buffer = 1)); /* 2^28 elements */
    sx_dataset_release(data);
    data = numbers(1 << 10);
    assert_ok(sx_dataset_repeat(&data, (1 << 18) + 1));
    assert_error(sx_dataset_shuffle(&data, .buffer = 1), SX_INVALID_ARGUMENT,
                 "a positive buffer over at most 268435456");
    assert_ok(sx_dataset_shuffle(&data, .seed = 1)); /* a permutation takes any number */
    sx_dataset_release(data);
    data = numbers(2);
    assert_error(sx_dataset_take(&data, -1), SX_INVALID_ARGUMENT, "take: -1 is negative");
    assert_error(sx_dataset_skip(&data, -1), SX_INVALID_ARGUMENT, "skip: -1 is negative");
    assert_error(sx_dataset_repeat(&data, -1), SX_INVALID_ARGUMENT, "repeat: -1 is negative");
    assert_error(sx_dataset_shard(&data, 0, 0), SX_INVALID_ARGUMENT, "index 0 of 0 shards");
    assert_error(sx_dataset_shard(&data, 2, -1), SX_INVALID_ARGUMENT, "index -1 of 2 shards");
    assert_error(sx_dataset_shard(&data, 2, 2), SX_INVALID_ARGUMENT, "index 2 of 2 shards");
    assert_ok(sx_dataset_shard(&data, 2, 1));
    sx_dataset_release(data);
    /* 2^24 elements of 2^16 bytes are 1 TiB. */
    static const sx_component wide[] = {{"x", {SX_U8, 1, {1 << 16}}}};
    static const sx_component wider[] = {{"x", {SX_U8, 1, {(1 << 16) + 1}}}};
    for (int i = 0; i < 2; i++) {
        data = numbers(2);
        assert_ok(sx_dataset_map(&data, .name = "wide", .fn = slow, .count = 1,
                                 .components = i == 0 ? wide : wider));
        sx_status status = sx_dataset_batch(&data, .size = (int64_t)1 << 24);
        assert_int_equal(sx_status_code(status), i == 0 ? SX_CODE_OK : SX_INVALID_ARGUMENT);
        sx_status_free(status);
        sx_dataset_release(data);
    }
    static const sx_component deep[] = {{"x", {SX_U8, SX_MAX_RANK, {1, 1, 1, 1, 1, 1, 1, 1}}}};
    data = numbers(2);
    assert_ok(sx_dataset_map(&data, .name = "deep", .fn = slow, .count = 1, .components = deep));
    assert_error(sx_dataset_batch(&data, .size = 2), SX_INVALID_ARGUMENT, "already has rank 8");
    sx_dataset_release(data);
}

static atomic_int made[N];

/* Counts the records that are made. */
static sx_status count_made(const sx_map_call *call, void *user)
{
    (void)user;
    atomic_fetch_add(&made[call->record], 1);
    *(float *)call->out[0].data = *(const float *)call->in[0].data;
    memcpy(call->out[1].data, call->in[1].data, 2 * sizeof(int64_t));
    return SX_OK;
}

/* Of batches of 8 that two processes share, and a last one of 7 that both read: each record of a
 * full batch is made by one of them, in its place. */
static void test_data_iterator__parts_make_their_rows_alone(void **state)
{
    (void)state;
    const struct sx_batch_data *batch;
    sx_dataset *data = numbers(N);
    memset(made, 0, sizeof(made));
    assert_ok(sx_dataset_map(&data, .name = "count", .fn = count_made));
    assert_ok(sx_dataset_shuffle(&data, .seed = 3));
    assert_ok(sx_dataset_batch(&data, .size = 8));
    for (int index = 0; index < 2; index++) {
        sx_iterator *it = NULL;
        assert_ok(sx_iterator_create(data, &it, .workers = 3));
        sx_iterator_take_part(it, &(sx_part){.index = index, .count = 2, .divisor = 4});
        for (int k = 0; k < N / 8 + 1; k++) {
            assert_ok(sx_iterator_next(it, &batch));
            const float *x = batch->components[0].data;
            const int64_t first = k < N / 8 ? 4 * index : 0, end = k < N / 8 ? first + 4 : 7;
            for (int64_t i = first; i < end; i++) {
                assert_true(x[i] == (float)batch->ids[i]);
            }
            for (int64_t i = 0; k == N / 8 && i < batch->size; i++) {
                atomic_fetch_sub(&made[batch->ids[i]], index); /* both have made it */
            }
        }
        sx_iterator_destroy(it);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(atomic_load(&made[i]), 1);
    }
    sx_dataset_release(data);

    int64_t first, end; /* `full`: a batch of another size is padded, and read whole */
    sx_part_rows(&(sx_part){.index = 1, .count = 2, .divisor = 2, .full = 8}, 8, &first, &end);
    assert_true(first == 4 && end == 8);
    sx_part_rows(&(sx_part){.index = 1, .count = 2, .divisor = 2, .full = 8}, 4, &first, &end);
    assert_true(first == 0 && end == 4);
    sx_part_rows(&(sx_part){0}, 5, &first, &end);
    assert_true(first == 0 && end == 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_iterator__elements_in_order),
    cmocka_unit_test(test_data_iterator__batches_stack_and_the_last_is_smaller),
    cmocka_unit_test(test_data_iterator__drop_remainder),
    cmocka_unit_test(test_data_iterator__take_skip_shard),
    cmocka_unit_test(test_data_iterator__shards_share_every_element_out),
    cmocka_unit_test(test_data_iterator__nested_repeats_number_every_epoch),
    cmocka_unit_test(test_data_iterator__repeat_before_batch_straddles),
    cmocka_unit_test(test_data_iterator__repeat_after_batch_does_not),
    cmocka_unit_test(test_data_iterator__same_sequence_for_any_workers),
    cmocka_unit_test(test_data_iterator__resumes_at_every_position),
    cmocka_unit_test(test_data_iterator__exactly_once_over_fifty_kills),
    cmocka_unit_test(test_data_iterator__buffer_shuffle_resumes_too),
    cmocka_unit_test(test_data_iterator__seeks_back_while_running),
    cmocka_unit_test(test_data_iterator__refuses_foreign_cursors),
    cmocka_unit_test(test_data_iterator__maps_see_epoch_and_record),
    cmocka_unit_test(test_data_iterator__cache_computes_once_and_sees_epoch_zero),
    cmocka_unit_test(test_data_iterator__strings_survive_their_scratch),
    cmocka_unit_test(test_data_iterator__the_first_error_wins_and_stays),
    cmocka_unit_test(test_data_iterator__parts_make_their_rows_alone),
    cmocka_unit_test(test_data_iterator__accounts_for_waiting),
    cmocka_unit_test(test_data_iterator__workers_follow_the_need),
    cmocka_unit_test(test_data_iterator__workers_leave_the_processors_to_a_step),
    cmocka_unit_test(test_data_iterator__workers_leave_signals_to_the_program),
    cmocka_unit_test(test_data_iterator__steady_state_allocates_nothing),
    cmocka_unit_test(test_data_iterator__survives_failing_allocations),
    cmocka_unit_test(test_data_iterator__refuses_what_makes_no_sense),
    cmocka_unit_test(test_data_iterator__nothing_left_is_the_end),
    cmocka_unit_test(test_data_iterator__tensors_must_agree),
    cmocka_unit_test(test_data_iterator__counts_at_every_edge),
    cmocka_unit_test(test_data_iterator__limits),
};
SX_TEST_MAIN(tests)
