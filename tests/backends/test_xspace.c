/* Reading what a plugin's profiler hands out. */
#include "harness.h"

#include "backends/pjrt/xspace.h"
#include "base/memory.h"
#include "proto/wire.h"

/* ---- Writing ---- */

enum { STAT_OP = 1, STAT_MODULE = 2, STAT_LAYER = 3, STAT_TEXT = 9, EVENT = 5, OTHER = 6 };

static void put_message(sx_buf *out, uint32_t number, sx_buf *message)
{
    sx_wire_append_bytes(out, number, (sx_bytes){sx_buf_text(message), message->size});
    sx_buf_reset(message);
}

static void put_entry(sx_buf *out, uint32_t number, uint64_t id, sx_buf *message)
{
    sx_buf entry;
    sx_buf_init(&entry, 0);
    sx_wire_append_number(&entry, 1, id);
    put_message(&entry, 2, message);
    put_message(out, number, &entry);
    sx_buf_deinit(&entry);
}

static void put_stat_name(sx_buf *plane, uint64_t id, const char *name)
{
    sx_buf about;
    sx_buf_init(&about, 0);
    sx_wire_append_number(&about, 1, id);
    sx_wire_append_text(&about, 2, name);
    put_entry(plane, 5, id, &about);
    sx_buf_deinit(&about);
}

/* A text, or with `ref` > 0 a reference to one. */
static void put_stat(sx_buf *out, uint32_t number, uint64_t id, const char *text, uint64_t ref)
{
    sx_buf stat;
    sx_buf_init(&stat, 0);
    sx_wire_append_number(&stat, 1, id);
    if (ref > 0) {
        sx_wire_append_number(&stat, 7, ref);
    } else {
        sx_wire_append_text(&stat, 5, text);
    }
    put_message(out, number, &stat);
    sx_buf_deinit(&stat);
}

/* A plane "/device:X:0" with a line "ops" of two events, and an empty plane: the maps lie behind
 * the lines that need them. */
static void write_space(sx_buf *out)
{
    sx_buf plane, line, event, about;
    sx_buf_init(&plane, 0);
    sx_buf_init(&line, 0);
    sx_buf_init(&event, 0);
    sx_buf_init(&about, 0);
    sx_wire_append_number(&plane, 1, 7);
    sx_wire_append_text(&plane, 2, "/device:X:0");

    sx_wire_append_number(&event, 1, EVENT);
    sx_wire_append_number(&event, 2, 3000500);
    sx_wire_append_number(&event, 3, 2500000);
    put_stat(&event, 4, STAT_OP, "fusion.3", 0);
    put_stat(&event, 4, STAT_LAYER, NULL, STAT_TEXT);
    put_message(&line, 4, &event);
    sx_wire_append_number(&event, 1, OTHER);
    sx_wire_append_number(&event, 3, 1000);
    put_message(&line, 4, &event);
    sx_wire_append_text(&line, 2, "ops");
    sx_wire_append_number(&line, 3, 1000);
    put_message(&plane, 3, &line);

    sx_wire_append_text(&about, 2, "copy");
    put_entry(&plane, 4, OTHER, &about);
    sx_wire_append_text(&about, 2, "fusion");
    put_stat(&about, 5, STAT_MODULE, "main.4", 0);
    put_entry(&plane, 4, EVENT, &about);
    put_stat_name(&plane, STAT_TEXT, "conv2d/relu");
    put_stat_name(&plane, STAT_LAYER, "tf_op");
    put_stat_name(&plane, STAT_OP, "hlo_op");
    put_stat_name(&plane, STAT_MODULE, "hlo_module");
    put_message(out, 1, &plane);
    put_message(out, 1, &plane);
    sx_wire_append_text(out, 4, "host");
    sx_buf_deinit(&plane);
    sx_buf_deinit(&line);
    sx_buf_deinit(&event);
    sx_buf_deinit(&about);
}

/* ---- Reading ---- */

typedef struct seen {
    int n;
    char text[4][160];
    sx_xspace_event events[4];
} seen;

#define TEXT_(bytes) (int)(bytes).size, (const char *)(bytes).data

static void look(void *user, const sx_xspace_event *e)
{
    seen *s = user;
    if (s->n < 4) {
        s->events[s->n] = *e;
        snprintf(s->text[s->n], sizeof(s->text[0]), "%.*s|%.*s|%.*s|%.*s|%.*s", TEXT_(e->plane),
                 TEXT_(e->line), TEXT_(e->name), TEXT_(e->op), TEXT_(e->op_name));
    }
    s->n++;
}

static void test_backends_xspace__reads_events_with_their_names(void **state)
{
    sx_buf space;
    seen s = {0};
    (void)state;
    sx_buf_init(&space, 0);
    write_space(&space);
    assert_ok(sx_xspace_read(sx_buf_text(&space), space.size, look, &s));
    assert_int_equal(s.n, 2);
    assert_string_equal(s.text[0], "/device:X:0|ops|fusion|fusion.3|conv2d/relu");
    assert_int_equal(s.events[0].start_ns, 1000 + 3000);
    assert_float_equal(s.events[0].seconds, 2.5e-6, 1e-12);
    assert_string_equal(s.text[1], "/device:X:0|ops|copy||");
    assert_int_equal(s.events[1].start_ns, 1000);
    assert_ok(sx_xspace_read("", 0, look, &s));
    sx_buf_putc(&space, '\0'); /* like a string */
    assert_ok(sx_xspace_read(sx_buf_text(&space), space.size, look, &s));
    assert_int_equal(s.n, 4);
    sx_buf_deinit(&space);
}

/* Cut or flipped anywhere it is an error or other events, never a crash. */
static void test_backends_xspace__survives_damage(void **state)
{
    sx_buf space;
    (void)state;
    sx_buf_init(&space, 0);
    write_space(&space);
    char *copy = sx_alloc(space.size, 1);
    assert_non_null(copy);
    int errors = 0;
    for (size_t cut = 1; cut < space.size; cut++) {
        seen s = {0};
        sx_status status = sx_xspace_read(sx_buf_text(&space), cut, look, &s);
        errors += status != SX_OK;
        sx_status_free(status);
    }
    assert_true(errors >= (int)space.size - 4); /* but between its parts */
    for (size_t i = 0; i < space.size * 8; i++) {
        seen s = {0};
        memcpy(copy, sx_buf_text(&space), space.size);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        sx_status_free(sx_xspace_read(copy, space.size, look, &s));
    }
    sx_free(copy);
    sx_buf_deinit(&space);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_xspace__reads_events_with_their_names),
    cmocka_unit_test(test_backends_xspace__survives_damage),
};
SX_TEST_MAIN(tests)
