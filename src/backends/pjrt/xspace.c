/* See xspace.h. */
#include "backends/pjrt/xspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "proto/wire.h"

enum { MAX_METADATA = 1 << 20 }; /* of events, or stats, of a plane */

/* An entry of one of a plane's maps. */
typedef struct metadata {
    uint64_t id;
    sx_bytes message;
} metadata;

typedef struct table {
    metadata *items; /* by id, ascending */
    size_t n, max;
} table;

typedef struct reading {
    sx_xspace_visit *visit;
    void *user;
    table events, stats;
    sx_xspace_event event; /* plane and line are set */
    int64_t line_ns;
    sx_status status; /* out of memory; else a message is not valid */
} reading;

/* ---- Maps ---- */

static bool add(reading *r, table *t, uint64_t id, sx_bytes message)
{
    if (t->n == t->max) {
        const size_t most = 2 * t->max + 64;
        metadata *more = most > MAX_METADATA ? NULL : sx_realloc(t->items, most, sizeof(*more));
        if (more == NULL) {
            r->status = sx_no_memory("for the names of a profile");
            return false;
        }
        t->items = more;
        t->max = most;
    }
    t->items[t->n++] = (metadata){id, message};
    return true;
}

static bool add_entry(reading *r, table *t, sx_bytes entry)
{
    sx_wire at = sx_wire_over(entry);
    sx_wire_field f;
    uint64_t id = 0;
    sx_bytes message = {"", 0};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 1 && !sx_wire_number(&f, &id)) ||
            (f.number == 2 && f.type != SX_WIRE_BYTES)) {
            return false;
        }
        message = f.number == 2 ? f.value : message;
    }
    return add(r, t, id, message);
}

static int by_id(const void *a, const void *b)
{
    const metadata *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The metadata's message; empty if there is none of that id. */
static sx_bytes find(const table *t, uint64_t id)
{
    const metadata key = {.id = id};
    const metadata *found =
        t->n > 0 ? bsearch(&key, t->items, t->n, sizeof(*t->items), by_id) : NULL;
    return found != NULL ? found->message : (sx_bytes){"", 0};
}

/* Field 2 of a metadata's message. */
static bool name_of(sx_bytes message, sx_bytes *out)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    *out = (sx_bytes){"", 0};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 2 && f.type != SX_WIRE_BYTES)) {
            return false;
        }
        *out = f.number == 2 ? f.value : *out;
    }
    return true;
}

/* ---- Events ---- */

static bool read_stat(reading *r, sx_bytes message)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    uint64_t id = 0, other = 0;
    sx_bytes text = {"", 0}, name;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 1 && !sx_wire_number(&f, &id)) ||
            (f.number == 5 && f.type != SX_WIRE_BYTES) ||
            (f.number == 7 &&
             (!sx_wire_number(&f, &other) || !name_of(find(&r->stats, other), &text)))) {
            return false;
        }
        text = f.number == 5 ? f.value : text;
    }
    if (!name_of(find(&r->stats, id), &name)) {
        return false;
    }
    sx_bytes *to = sx_bytes_is(name, "hlo_op")                                  ? &r->event.op
                   : sx_bytes_is(name, "tf_op") || sx_bytes_is(name, "op_name") ? &r->event.op_name
                                                                                : NULL;
    if (to != NULL && text.size > 0) {
        *to = text;
    }
    return true;
}

/* The stats, of field `number`, of an event or of its metadata. */
static bool read_stats(reading *r, sx_bytes message, uint32_t number)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) ||
            (f.number == number && (f.type != SX_WIRE_BYTES || !read_stat(r, f.value)))) {
            return false;
        }
    }
    return true;
}

static bool read_event(reading *r, sx_bytes message)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    uint64_t id = 0, offset_ps = 0, duration_ps = 0;
    r->event.op = r->event.op_name = (sx_bytes){"", 0};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 1 && !sx_wire_number(&f, &id)) ||
            (f.number == 2 && !sx_wire_number(&f, &offset_ps)) ||
            (f.number == 3 && !sx_wire_number(&f, &duration_ps))) {
            return false;
        }
    }
    const sx_bytes about = find(&r->events, id);
    if (!name_of(about, &r->event.name) || !read_stats(r, about, 5) || !read_stats(r, message, 4) ||
        offset_ps > INT64_MAX || duration_ps > INT64_MAX) {
        return false;
    }
    r->event.start_ns = r->line_ns + (int64_t)(offset_ps / 1000);
    r->event.seconds = (double)duration_ps * 1e-12;
    r->visit(r->user, &r->event);
    return true;
}

static bool read_line(reading *r, sx_bytes message)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    uint64_t start_ns = 0;
    r->event.line = (sx_bytes){"", 0};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 3 && !sx_wire_number(&f, &start_ns)) ||
            (f.number == 2 && f.type != SX_WIRE_BYTES)) {
            return false;
        }
        r->event.line = f.number == 2 ? f.value : r->event.line;
    }
    r->line_ns = start_ns < INT64_MAX / 2 ? (int64_t)start_ns : 0;
    at = sx_wire_over(message);
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) ||
            (f.number == 4 && (f.type != SX_WIRE_BYTES || !read_event(r, f.value)))) {
            return false;
        }
    }
    return true;
}

/* The maps first: lines, which lie before them, need them. */
static bool read_plane(reading *r, sx_bytes message)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    r->events.n = r->stats.n = 0;
    r->event.plane = (sx_bytes){"", 0};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number >= 2 && f.number <= 5 && f.type != SX_WIRE_BYTES)) {
            return false;
        }
        table *t = f.number == 4 ? &r->events : f.number == 5 ? &r->stats : NULL;
        if (t != NULL && !add_entry(r, t, f.value)) {
            return false;
        }
        r->event.plane = f.number == 2 ? f.value : r->event.plane;
    }
    if (r->events.n > 0) {
        qsort(r->events.items, r->events.n, sizeof(metadata), by_id);
    }
    if (r->stats.n > 0) {
        qsort(r->stats.items, r->stats.n, sizeof(metadata), by_id);
    }
    at = sx_wire_over(message);
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 3 && !read_line(r, f.value))) {
            return false;
        }
    }
    return true;
}

sx_status sx_xspace_read(const void *data, size_t size, sx_xspace_visit *visit, void *user)
{
    reading r = {.visit = visit, .user = user};
    sx_wire at = sx_wire_over((sx_bytes){data, size});
    sx_wire_field f;
    bool good = true;
    while (good && sx_wire_more(&at)) {
        if (at.end - at.at == 1 && *at.at == 0) { /* some plugins end it like a string */
            break;
        }
        good = sx_wire_next(&at, &f) &&
               (f.number != 1 || (f.type == SX_WIRE_BYTES && read_plane(&r, f.value)));
    }
    sx_free(r.events.items);
    sx_free(r.stats.items);
    if (r.status != SX_OK) {
        return r.status;
    }
    return good ? SX_OK
                : sx_error(SX_DATA_LOSS,
                           "the answer of the plugin's profiler is not a valid XSpace");
}
