/* The `checkpoint` file: reading, writing, and what is kept. */
#include "savedmodel/checkpoint_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/failpoint.h"
#include "io/file.h"
#include "io/path.h"
#include "savedmodel/bundle.h"

enum { MAX_STATE_BYTES = 1 << 22, MAX_NAMES = 1 << 16 };

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "checkpoint state: no memory");
}

/* ---- the text ---- */

struct reader {
    const char *at; /* NUL-terminated text */
    sx_arena *arena;
    sx_checkpoint_state *state;
    size_t n_times;
};

static void skip_space(struct reader *r)
{
    while (*r->at != '\0' && strchr(" \t\r\n,;", *r->at) != NULL) {
        r->at++;
    }
    if (*r->at == '#') {
        r->at += strcspn(r->at, "\n");
        skip_space(r);
    }
}

/* One character of a quoted string, an escape resolved; false at the end of the text. */
static bool take_char(struct reader *r, char *out)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    if (*r->at != '\\') {
        *out = *r->at++;
        return *out != '\0';
    }
    r->at++;
    if (*r->at >= '0' && *r->at <= '7') {
        unsigned value = 0;
        for (int i = 0; i < 3 && *r->at >= '0' && *r->at <= '7'; i++) {
            value = value * 8 + (unsigned)(*r->at++ - '0');
        }
        *out = (char)value;
        return *out != '\0';
    }
    const char *name = *r->at == '\0' ? NULL : strchr(names, *r->at);
    if (name == NULL) {
        return false;
    }
    *out = values[name - names];
    r->at++;
    return true;
}

static sx_status take_string(struct reader *r, const char **out)
{
    char quote = *r->at;
    if (quote != '"' && quote != '\'') {
        return sx_error(SX_DATA_LOSS, "expected a quoted string at \"%.20s\"", r->at);
    }
    r->at++;
    char *text = sx_arena_alloc(r->arena, strlen(r->at) + 1, 1);
    if (text == NULL) {
        return no_memory();
    }
    size_t n = 0;
    while (*r->at != quote) {
        if (!take_char(r, &text[n++])) {
            return sx_error(SX_DATA_LOSS, "a string is cut short or has an unknown escape");
        }
    }
    r->at++;
    *out = text;
    return SX_OK;
}

static sx_status take_number(struct reader *r, double *out)
{
    char *end;
    *out = strtod(r->at, &end);
    if (end == r->at) {
        return sx_error(SX_DATA_LOSS, "expected a number at \"%.20s\"", r->at);
    }
    r->at = end;
    return SX_OK;
}

static sx_status field_latest(struct reader *r)
{
    return take_string(r, &r->state->latest);
}

static sx_status field_name(struct reader *r)
{
    if (r->state->count == MAX_NAMES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d checkpoints", MAX_NAMES);
    }
    SX_TRY(take_string(r, &r->state->names[r->state->count]));
    r->state->count++;
    return SX_OK;
}

static sx_status field_time(struct reader *r)
{
    if (r->n_times == MAX_NAMES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d times", MAX_NAMES);
    }
    return take_number(r, &r->state->times[r->n_times++]);
}

static sx_status field_preserved(struct reader *r)
{
    return take_number(r, &r->state->last_preserved);
}

static const struct {
    const char *name;
    sx_status (*take)(struct reader *r);
} fields[] = {
    {"model_checkpoint_path", field_latest},
    {"all_model_checkpoint_paths", field_name},
    {"all_model_checkpoint_timestamps", field_time},
    {"last_preserved_timestamp", field_preserved},
};

static sx_status take_field(struct reader *r)
{
    size_t length = strcspn(r->at, ": \t\r\n");
    for (size_t i = 0; i < SX_COUNT(fields); i++) {
        if (strlen(fields[i].name) == length && strncmp(fields[i].name, r->at, length) == 0) {
            r->at += length;
            skip_space(r);
            if (*r->at != ':') {
                return sx_error(SX_DATA_LOSS, "no ':' after %s", fields[i].name);
            }
            r->at++;
            skip_space(r);
            return fields[i].take(r);
        }
    }
    return sx_error(SX_DATA_LOSS, "unknown field \"%.*s\"", (int)SX_MIN(length, 40u), r->at);
}

static sx_status parse(const char *text, sx_arena *arena, sx_checkpoint_state *out)
{
    sx_checkpoint_state state = {.names = sx_arena_array(arena, MAX_NAMES, const char *),
                                 .times = sx_arena_array(arena, MAX_NAMES, double)};
    if (state.names == NULL || state.times == NULL) {
        return no_memory();
    }
    struct reader r = {.at = text, .arena = arena, .state = &state};
    for (skip_space(&r); *r.at != '\0'; skip_space(&r)) {
        SX_TRY(take_field(&r));
    }
    if (r.n_times != state.count) { /* times that belong to nothing known */
        memset(state.times, 0, MAX_NAMES * sizeof(*state.times));
    }
    *out = state;
    return SX_OK;
}

sx_status sx_checkpoint_state_read(const char *dir, sx_arena *arena, sx_checkpoint_state *out_state)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    SX_TRY(sx_path_join(dir, "checkpoint", &path));
    sx_status status = sx_file_read(path, MAX_STATE_BYTES, &text, &size);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        *out_state = (sx_checkpoint_state){0};
        sx_free(path);
        return SX_OK;
    }
    if (status == SX_OK) {
        status = sx_status_annotate(parse(text, arena, out_state), __FILE__, __LINE__, "%s", path);
    }
    sx_free(text);
    sx_free(path);
    return status;
}

static void put_quoted(sx_buf *out, const char *field, const char *text)
{
    sx_buf_printf(out, "%s: \"", field);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
        if (*c == '"' || *c == '\\') {
            sx_buf_printf(out, "\\%c", *c);
        } else if (*c < 0x20 || *c >= 0x7f) {
            sx_buf_printf(out, "\\%03o", *c);
        } else {
            sx_buf_putc(out, (char)*c);
        }
    }
    sx_buf_puts(out, "\"\n");
}

sx_status sx_checkpoint_state_write(const char *dir, const sx_checkpoint_state *state)
{
    sx_buf text;
    sx_buf_init(&text, MAX_STATE_BYTES);
    put_quoted(&text, "model_checkpoint_path", state->latest != NULL ? state->latest : "");
    for (size_t i = 0; i < state->count; i++) {
        put_quoted(&text, "all_model_checkpoint_paths", state->names[i]);
    }
    for (size_t i = 0; i < state->count; i++) {
        sx_buf_printf(&text, "all_model_checkpoint_timestamps: %.17g\n", state->times[i]);
    }
    if (state->last_preserved != 0) {
        sx_buf_printf(&text, "last_preserved_timestamp: %.17g\n", state->last_preserved);
    }
    char *path = NULL;
    sx_status status = sx_buf_status(&text);
    if (status == SX_OK) {
        status = sx_path_join(dir, "checkpoint", &path);
    }
    if (status == SX_OK) {
        status = sx_commit_bytes(path, text.data, text.size);
    }
    sx_free(path);
    sx_buf_deinit(&text);
    return status;
}

/* ---- what there is ---- */

int64_t sx_checkpoint_step(const char *prefix)
{
    const char *dash = strrchr(sx_path_basename(prefix), '-');
    if (dash == NULL || dash[1] == '\0' || strspn(dash + 1, "0123456789") != strlen(dash + 1) ||
        strlen(dash + 1) > 18) {
        return -1;
    }
    return strtoll(dash + 1, NULL, 10);
}

static int by_step(const void *a, const void *b)
{
    const sx_checkpoint *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : strcmp(x->prefix, y->prefix);
}

static sx_status collect(const char *dir, const sx_paths *names, sx_arena *arena,
                         sx_checkpoints *out)
{
    static const char suffix[] = ".index";
    out->items = sx_arena_array(arena, names->count + 1, sx_checkpoint);
    if (out->items == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < names->count; i++) {
        size_t length = strlen(names->items[i]);
        if (length <= sizeof(suffix) - 1 ||
            strcmp(names->items[i] + length - (sizeof(suffix) - 1), suffix) != 0) {
            continue;
        }
        char *prefix = sx_arena_printf(arena, "%s/%.*s", dir, (int)(length - (sizeof(suffix) - 1)),
                                       names->items[i]);
        if (prefix == NULL) {
            return no_memory();
        }
        int64_t step = sx_checkpoint_step(prefix);
        if (step >= 0) {
            out->items[out->count++] = (sx_checkpoint){prefix, step};
        }
    }
    qsort(out->items, out->count, sizeof(*out->items), by_step);
    return SX_OK;
}

sx_status sx_checkpoints_list(const char *dir, sx_arena *arena, sx_checkpoints *out_list)
{
    sx_checkpoints list = {0};
    sx_paths names = {0};
    sx_status status = sx_dir_list(dir, &names);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = SX_OK;
    }
    if (status == SX_OK) {
        status = collect(dir, &names, arena, &list);
    }
    sx_paths_deinit(&names);
    if (status == SX_OK) {
        *out_list = list;
    }
    return status;
}

/* ---- which to trust ---- */

static bool is_whole(const char *prefix)
{
    sx_bundle *bundle = NULL;
    sx_status status = sx_bundle_open(prefix, &bundle);
    if (status == SX_OK) {
        status = sx_bundle_verify(bundle);
        sx_bundle_close(bundle);
    }
    if (status != SX_OK) {
        sx_log(SX_LOG_WARN, "passing over a broken checkpoint: %s", sx_status_message(status));
        sx_status_free(status);
        return false;
    }
    return true;
}

sx_status sx_checkpoint_latest(const char *dir, sx_arena *arena, const char **out_prefix)
{
    sx_checkpoint_state state = {0};
    sx_status status = sx_checkpoint_state_read(dir, arena, &state);
    if (status != SX_OK) { /* a hint, no more */
        sx_log(SX_LOG_WARN, "%s", sx_status_message(status));
        sx_status_free(status);
    }
    if (state.latest != NULL && sx_checkpoint_step(state.latest) < 0) {
        char *prefix = state.latest[0] == '/' ? sx_arena_strdup(arena, state.latest)
                                              : sx_arena_printf(arena, "%s/%s", dir, state.latest);
        if (prefix != NULL && is_whole(prefix)) {
            *out_prefix = prefix;
            return SX_OK;
        }
    }
    sx_checkpoints list = {0};
    SX_TRY(sx_checkpoints_list(dir, arena, &list));
    for (size_t i = list.count; i-- > 0;) {
        if (is_whole(list.items[i].prefix)) {
            *out_prefix = list.items[i].prefix;
            return SX_OK;
        }
    }
    return sx_error(SX_NOT_FOUND, "%s holds no whole checkpoint (%zu broken)", dir, list.count);
}

/* ---- which to keep ---- */

static sx_status remove_file(const char *path)
{
    if (sx_failpoint_hit() || (unlink(path) != 0 && errno != ENOENT)) {
        return sx_errno_status(errno, "delete", path);
    }
    return SX_OK;
}

static bool is_part_of(const char *name, const char *base)
{
    size_t length = strlen(base);
    return strncmp(name, base, length) == 0 &&
           (strncmp(name + length, ".data-", 6) == 0 || strcmp(name + length, ".meta") == 0);
}

static sx_status delete_parts(const char *prefix, const char *dir)
{
    sx_paths names = {0};
    SX_TRY(sx_dir_list(dir, &names));
    sx_status status = SX_OK;
    for (size_t i = 0; i < names.count && status == SX_OK; i++) {
        if (is_part_of(names.items[i], sx_path_basename(prefix))) {
            char *path = NULL;
            status = sx_path_join(dir, names.items[i], &path);
            status = status == SX_OK ? remove_file(path) : status;
            sx_free(path);
        }
    }
    sx_paths_deinit(&names);
    return status;
}

sx_status sx_checkpoint_delete(const char *prefix)
{
    char *dir = NULL, *index = NULL;
    SX_TRY(sx_path_dirname(prefix, &dir));
    sx_status status = sx_path_format(&index, "%s.index", prefix);
    if (status == SX_OK) {
        status = remove_file(index);
    }
    if (status == SX_OK) {
        status = delete_parts(prefix, dir);
    }
    sx_free(index);
    sx_free(dir);
    return status;
}

/* Moves the names beyond what is to be kept from `state` to `doomed`; returns how many. */
static size_t select_doomed(sx_checkpoint_state *state, const sx_checkpoint_retention *r,
                            const char **doomed)
{
    size_t n = 0, dropped = 0;
    while (r->keep_max > 0 && state->count - dropped > (size_t)r->keep_max) {
        double interval = r->keep_every_n_hours * 3600, time = state->times[dropped];
        if (interval > 0 && time >= state->last_preserved + interval) {
            state->last_preserved = time;
        } else {
            doomed[n++] = state->names[dropped];
        }
        dropped++;
    }
    state->names += dropped;
    state->times += dropped;
    state->count -= dropped;
    return n;
}

/* The state with `name` appended; taken out of its old place if it had one. */
static sx_status append(sx_arena *arena, const sx_checkpoint_state *old, const char *name,
                        double now, sx_checkpoint_state *out)
{
    sx_checkpoint_state state = {.latest = name, .last_preserved = old->last_preserved};
    state.names = sx_arena_array(arena, old->count + 1, const char *);
    state.times = sx_arena_array(arena, old->count + 1, double);
    if (state.names == NULL || state.times == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < old->count; i++) {
        if (strcmp(old->names[i], name) != 0) {
            state.names[state.count] = old->names[i];
            state.times[state.count++] = old->times[i];
        }
    }
    state.names[state.count] = name;
    state.times[state.count++] = now;
    if (state.last_preserved == 0) { /* the hours are counted from the first checkpoint */
        state.last_preserved = state.times[0];
    }
    *out = state;
    return SX_OK;
}

static sx_status delete_doomed(const char *dir, const char *const *doomed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!sx_path_is_safe(doomed[i], strlen(doomed[i]))) {
            continue; /* a name in the state file that leads out of the directory */
        }
        char *prefix = NULL;
        SX_TRY(sx_path_join(dir, doomed[i], &prefix));
        sx_status status = sx_checkpoint_delete(prefix);
        sx_free(prefix);
        SX_TRY(status);
    }
    return SX_OK;
}

static sx_status register_in(sx_arena *arena, const char *dir, const char *name, double now,
                             const sx_checkpoint_retention *retention)
{
    sx_checkpoint_state old = {0}, state = {0};
    sx_status status = sx_checkpoint_state_read(dir, arena, &old);
    if (status != SX_OK) {
        sx_log(SX_LOG_WARN, "%s", sx_status_message(status));
        sx_status_free(status);
    }
    SX_TRY(append(arena, &old, name, now, &state));
    const char **doomed = sx_arena_array(arena, state.count, const char *);
    if (doomed == NULL) {
        return no_memory();
    }
    size_t n = select_doomed(&state, retention, doomed);
    SX_TRY(sx_checkpoint_state_write(dir, &state));
    return delete_doomed(dir, doomed, n);
}

sx_status sx_checkpoint_register(const char *dir, const char *name, double now,
                                 const sx_checkpoint_retention *retention)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = register_in(&arena, dir, name, now, retention);
    sx_arena_deinit(&arena);
    return status;
}
