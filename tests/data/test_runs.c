/* Sources that read neighbouring records at once: what an iterator asks of them, and how long the
 * strings last. */
#include "harness.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "data/dataset.h"

enum { N = 500, MOST_BYTES = 300 };

/* Sizes from 0 to MOST_BYTES - 1, bytes that depend on the record. */
static size_t record_size(int64_t record)
{
    return (size_t)(record * 7 % MOST_BYTES);
}

static uint8_t record_byte(int64_t record, size_t i)
{
    return (uint8_t)((size_t)record * 31 + i);
}

struct runs {
    sx_source head;
    atomic_int reads;
    int64_t bad;  /* this record cannot be read */
    int64_t most; /* records in a read */
};

static sx_status read_run(sx_source *source, int64_t first, int64_t count, sx_scratch *scratch,
                          sx_bytes *out_records, int64_t *out_count)
{
    struct runs *self = (struct runs *)source;
    atomic_fetch_add(&self->reads, 1);
    assert_true(first >= 0 && count >= 1 && first + count <= N);
    if (first == self->bad) {
        return sx_error(SX_DATA_LOSS, "bad record");
    }
    int64_t n = 0;
    for (; n < count && n < self->most && first + n != self->bad; n++) {
        size_t size = record_size(first + n);
        uint8_t *bytes = sx_scratch_alloc(scratch, size);
        if (bytes == NULL) {
            return sx_no_memory("for a record");
        }
        for (size_t i = 0; i < size; i++) {
            bytes[i] = record_byte(first + n, i);
        }
        out_records[n] = (sx_bytes){bytes, size};
    }
    *out_count = n;
    return SX_OK;
}

static void name_record(const sx_source *source, int64_t record, sx_buf *out)
{
    (void)source;
    sx_buf_printf(out, "record %d", (int)record);
}

static void destroy(sx_source *source)
{
    sx_free(source);
}

static const sx_source_def runs_def = {
    .kind = "runs", .read_run = read_run, .name_record = name_record, .destroy = destroy};

static struct runs *source; /* of the dataset that make() gave last */

static sx_dataset *make(int64_t bad, int64_t most)
{
    source = sx_alloc(1, sizeof(*source));
    source->head =
        (sx_source){.def = &runs_def, .schema = {1, {{"record", {SX_STRING, 0, {0}}}}}, .count = N};
    source->bad = bad;
    source->most = most;
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_source(&source->head, &data));
    return data;
}

/* All but the first byte. */
static sx_status tail(const sx_map_call *call, void *user)
{
    (void)user;
    sx_bytes in = *(const sx_bytes *)call->in[0].data;
    size_t cut = in.size > 0;
    *(sx_bytes *)call->out[0].data = (sx_bytes){(const char *)in.data + cut, in.size - cut};
    return SX_OK;
}

static sx_status sum(const sx_map_call *call, void *user)
{
    (void)user;
    sx_bytes in = *(const sx_bytes *)call->in[0].data;
    int64_t total = 0;
    for (size_t i = 0; i < in.size; i++) {
        total += ((const uint8_t *)in.data)[i];
    }
    *(int64_t *)call->out[0].data = total;
    return SX_OK;
}

static void check_batch(const struct sx_batch_data *batch, size_t cut, bool summed)
{
    for (int64_t row = 0; row < batch->size; row++) {
        int64_t record = batch->ids[row], total = 0;
        size_t size = record_size(record), skip = size > 0 ? cut : 0;
        const sx_bytes *strings = batch->components[0].data;
        for (size_t i = skip; i < size; i++) {
            total += record_byte(record, i);
            if (!summed &&
                ((const uint8_t *)strings[row].data)[i - skip] != record_byte(record, i)) {
                fail_msg("record %d, byte %zu", (int)record, i);
            }
        }
        if (summed) {
            assert_int_equal(((const int64_t *)batch->components[0].data)[row], total);
        } else {
            assert_int_equal(strings[row].size, size - skip);
        }
    }
}

/* A batch stays as it is while the workers fill the others: in file order and shuffled, as read, as
 * views into what was read, behind a cache, and as numbers. */
static void test_data_runs__every_batch_holds_its_records(void **state)
{
    (void)state;
    static const sx_component text[] = {{"tail", {SX_STRING, 0, {0}}}};
    static const sx_component number[] = {{"sum", {SX_I64, 0, {0}}}};
    enum { AS_READ, VIEWS, CACHED, NUMBERS, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            for (int workers = -1; workers < 4; workers++) {
                sx_dataset *data = make(-1, workers == 1 ? 3 : N);
                sx_iterator *it = NULL;
                const struct sx_batch_data *batch;
                if (shuffled) {
                    assert_ok(sx_dataset_shuffle(&data, .seed = 3));
                }
                assert_ok(sx_dataset_repeat(&data, 3));
                if (kind == VIEWS || kind == CACHED) {
                    assert_ok(sx_dataset_map(&data, .name = "tail", .fn = tail, .count = 1,
                                             .components = text, .views = true));
                }
                if (kind == CACHED) {
                    assert_ok(sx_dataset_cache(&data, 60000));
                }
                if (kind == NUMBERS) {
                    assert_ok(sx_dataset_map(&data, .name = "sum", .fn = sum, .count = 1,
                                             .components = number));
                }
                assert_ok(sx_dataset_batch(&data, .size = 37));
                assert_ok(sx_iterator_create(data, &it, .workers = workers, .prefetch = 3));
                int64_t elements = 0;
                sx_status status;
                while ((status = sx_iterator_next(it, &batch)) == SX_OK) {
                    check_batch(batch, kind == VIEWS || kind == CACHED, kind == NUMBERS);
                    elements += batch->size;
                }
                assert_int_equal(sx_status_code(status), SX_OUT_OF_RANGE);
                sx_status_free(status);
                assert_int_equal(elements, 3 * N);
                sx_iterator_destroy(it);
                sx_dataset_release(data);
            }
        }
    }
}

static int count_reads(sx_dataset *data, int64_t batch_size)
{
    sx_iterator *it = NULL;
    const struct sx_batch_data *batch;
    assert_ok(sx_dataset_batch(&data, .size = batch_size));
    assert_ok(sx_iterator_create(data, &it, .workers = -1));
    for (int64_t i = 0; i < sx_dataset_count(data); i++) {
        assert_ok(sx_iterator_next(it, &batch));
    }
    sx_iterator_destroy(it);
    int reads = atomic_load(&source->reads);
    sx_dataset_release(data);
    return reads;
}

static void test_data_runs__neighbours_are_read_at_once(void **state)
{
    (void)state;
    assert_int_equal(count_reads(make(-1, N), 50), N / 50);
    assert_int_equal(count_reads(make(-1, 10), 50), N / 10); /* as the source cuts them */
    assert_int_equal(count_reads(make(-1, N), 1), N);
    sx_dataset *data = make(-1, N);
    assert_ok(sx_dataset_shard(&data, 2, 0));
    assert_int_equal(count_reads(data, 50), N / 2); /* no two are neighbours */
    data = make(-1, N);
    assert_ok(sx_dataset_take(&data, 20));
    assert_ok(sx_dataset_repeat(&data, 2));
    assert_int_equal(count_reads(data, 40), 1); /* still at hand the second time */
}

static void test_data_runs__an_unreadable_record_is_named(void **state)
{
    (void)state;
    for (int workers = -1; workers < 3; workers++) {
        sx_dataset *data = make(123, N);
        sx_iterator *it = NULL;
        const struct sx_batch_data *batch;
        assert_ok(sx_dataset_batch(&data, .size = 20));
        assert_ok(sx_iterator_create(data, &it, .workers = workers));
        for (int i = 0; i < 6; i++) {
            assert_ok(sx_iterator_next(it, &batch));
            check_batch(batch, 0, false);
        }
        assert_error(sx_iterator_next(it, &batch), SX_DATA_LOSS, "record 123: bad record");
        sx_iterator_destroy(it);
        sx_dataset_release(data);
    }
}

/* After an epoch the batches' memory has the size of the largest records. */
static void test_data_runs__steady_state_allocates_nothing(void **state)
{
    (void)state;
    for (int workers = -1; workers < 3; workers += 2) {
        sx_dataset *data = make(-1, N);
        sx_iterator *it = NULL;
        const struct sx_batch_data *batch;
        assert_ok(sx_dataset_repeat(&data, 0));
        assert_ok(sx_dataset_batch(&data, .size = 50));
        assert_ok(sx_iterator_create(data, &it, .workers = workers, .prefetch = 4));
        long before = 0;
        for (int i = 0; i < 300; i++) {
            before = i == 200 ? sx_alloc_count() : before;
            assert_ok(sx_iterator_next(it, &batch));
        }
        assert_int_equal(sx_alloc_count(), before);
        sx_iterator_destroy(it);
        sx_dataset_release(data);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_runs__every_batch_holds_its_records),
    cmocka_unit_test(test_data_runs__neighbours_are_read_at_once),
    cmocka_unit_test(test_data_runs__an_unreadable_record_is_named),
    cmocka_unit_test(test_data_runs__steady_state_allocates_nothing),
};
SX_TEST_MAIN(tests)
