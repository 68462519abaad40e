#include "harness.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "io/tfrecord.h"
#include "proto/wire.h"
#include "serve/fake_model.h"
#include "serve/lifecycle.h"

struct scene {
    char base[64];
    struct fake_runtime runtime;
    sx_lifecycle *lifecycle;
};

static void put(sx_buf *out, uint32_t number, sx_bytes bytes)
{
    sx_wire_append_tag(out, number, SX_WIRE_BYTES);
    sx_wire_append_varint(out, bytes.size);
    sx_buf_append(out, bytes.data, bytes.size);
}

static sx_bytes view(sx_buf *buf)
{
    return (sx_bytes){sx_buf_text(buf), buf->size};
}

/* A PredictionLog of kind `log` for x of so many rows, or of another input. */
static void put_log(sx_buf *out, uint32_t log, int rows, const char *input)
{
    sx_buf tensor, entry, request, message;
    sx_buf *bufs[] = {&tensor, &entry, &request, &message};
    for (size_t i = 0; i < SX_COUNT(bufs); i++) {
        sx_buf_init(bufs[i], 0);
    }
    const uint8_t shape[] = {0x12, 2, 0x08, (uint8_t)rows};
    const float values[8] = {1, 2, 3};
    sx_buf_append(&tensor, "\x08\x01", 2); /* DT_FLOAT */
    put(&tensor, 2, (sx_bytes){shape, sizeof(shape)});
    put(&tensor, 4, (sx_bytes){values, (size_t)rows * sizeof(float)});
    put(&entry, 1, (sx_bytes){input, strlen(input)});
    put(&entry, 2, view(&tensor));
    put(&request, 1, (sx_bytes){"\x0a\x01m", 3}); /* model_spec { name } */
    put(&request, 2, view(&entry));
    put(&message, 1, view(&request));
    put(out, 1, (sx_bytes){"", 0}); /* log_metadata */
    put(out, log, view(&message));
    for (size_t i = 0; i < SX_COUNT(bufs); i++) {
        sx_buf_deinit(bufs[i]);
    }
}

static void records_path(const struct scene *s, char path[200], bool dir)
{
    snprintf(path, 200, "%s/1/assets.extra%s", s->base, dir ? "" : "/tf_serving_warmup_requests");
}

/* Version 1 with `count` records. */
static void open_scene(struct scene *s, uint32_t log, int count, const char *input)
{
    char path[200];
    *s = (struct scene){.runtime.batched = true};
    fake_base_path(s->base);
    fake_publish(s->base, "1", 2, 0, 0, 0);
    records_path(s, path, true);
    mkdir(path, 0777);
    records_path(s, path, false);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        uint8_t header[SX_TFRECORD_HEADER], footer[SX_TFRECORD_FOOTER];
        sx_buf record;
        sx_buf_init(&record, 0);
        put_log(&record, log, 3, input);
        sx_tfrecord_frame(view(&record), header, footer);
        fwrite(header, 1, sizeof(header), file);
        fwrite(sx_buf_text(&record), 1, record.size, file);
        fwrite(footer, 1, sizeof(footer), file);
        sx_buf_deinit(&record);
    }
    fclose(file);
}

static void start(struct scene *s, int iterations)
{
    const sx_lifecycle_config config = {.name = "m",
                                        .base_path = s->base,
                                        .ops = &fake_ops,
                                        .ops_user = &s->runtime,
                                        .warm_up = iterations >= 0,
                                        .warmup = {iterations, 8},
                                        .max_load_retries = -1,
                                        .settle_ms = 1};
    assert_ok(sx_lifecycle_create(&config, &s->lifecycle));
    assert_ok(sx_lifecycle_start(s->lifecycle));
}

static void close_scene(struct scene *s)
{
    char path[200];
    sx_lifecycle_destroy(s->lifecycle);
    assert_int_equal(atomic_load(&s->runtime.loads), atomic_load(&s->runtime.unloads));
    records_path(s, path, false);
    unlink(path);
    records_path(s, path, true);
    rmdir(path);
    fake_remove_version(s->base, "1");
    rmdir(s->base);
}

/* The version is not served; its error says `part`. */
static void assert_fails(struct scene *s, const char *part)
{
    assert_false(sx_lifecycle_wait_ready(s->lifecycle, 5000));
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    assert_ok(sx_lifecycle_status(s->lifecycle, &arena, &rows, &count));
    assert_int_equal(count, 1);
    if (strstr(rows[0].message, part) == NULL) {
        fail_msg("got %s, expected %s", rows[0].message, part);
    }
    sx_arena_deinit(&arena);
}

/* Each record as it is, of 3 rows, and with the 4 and 8 of larger batches. */
static void test_serve_warmup__runs_records_in_every_size(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 6, 5, "x");
    start(&s, 2);
    assert_true(sx_lifecycle_wait_ready(s.lifecycle, 5000));
    assert_int_equal(atomic_load(&s.runtime.runs), 5 * 3 * 2);
    close_scene(&s);

    open_scene(&s, 6, 5, "x");
    start(&s, -1); /* turned off */
    assert_true(sx_lifecycle_wait_ready(s.lifecycle, 5000));
    assert_int_equal(atomic_load(&s.runtime.runs), 0);
    close_scene(&s);
}

static void test_serve_warmup__a_bad_record_fails_the_load(void **state)
{
    (void)state;
    struct scene s;
    char path[200];
    open_scene(&s, 6, 2, "z");
    start(&s, 0);
    assert_fails(&s, "record 0: input tensor alias not found in signature: z");
    close_scene(&s);

    open_scene(&s, 5, 1, "x");
    start(&s, 0);
    assert_fails(&s, "Unsupported log type for warmup: field 5");
    close_scene(&s);

    open_scene(&s, 6, 1001, "x");
    start(&s, 0);
    assert_fails(&s, "Number of warmup records exceeds the maximum (1000)");
    close_scene(&s);

    open_scene(&s, 6, 1, "x");
    records_path(&s, path, false);
    assert_int_equal(truncate(path, 20), 0);
    start(&s, 0);
    assert_fails(&s, "tf_serving_warmup_requests");
    close_scene(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_warmup__runs_records_in_every_size),
    cmocka_unit_test(test_serve_warmup__a_bad_record_fails_the_load),
};
SX_TEST_MAIN(tests)
