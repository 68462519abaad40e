/* The `checkpoint` file: reading, writing, retention. */
#include "checkpoint/checkpoint_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "io/commit.h"
#include "io/failpoint.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/checkpoint_state.pb-c.h"
#include "proto/guard.h"
#include "proto/text_format.h"

enum { MAX_STATE_BYTES = 1 << 22 };

/* ---- The state file ---- */

/* Checkpoints kept by `keep every n hours` are no longer in TensorFlow's list; the file names them
 * in comments, one per line:  # preserved: "model.ckpt-100" */
static const char PRESERVED[] = "# preserved: ";

static sx_status copy_strings(sx_arena *arena, char *const *from, size_t count, const char ***out)
{
    const char **copies = sx_arena_array(arena, count + 1, const char *);
    for (size_t i = 0; i < count && copies != NULL; i++) {
        copies[i] = sx_arena_strdup(arena, from[i]);
        copies = copies[i] != NULL ? copies : NULL;
    }
    *out = copies;
    return copies != NULL ? SX_OK : sx_no_memory("for a list of checkpoints");
}

static sx_status parse_message(sx_bytes text, const char *name, Tensorflow__CheckpointState **out)
{
    ProtobufCMessage *message = NULL;
    sx_status status =
        sx_text_format_parse(&tensorflow__checkpoint_state__descriptor, text, name, &message);
    *out = (Tensorflow__CheckpointState *)message;
    if (sx_status_code(status) == SX_INVALID_ARGUMENT) {
        sx_status corrupt = sx_error(SX_DATA_LOSS, "%s", sx_status_message(status));
        sx_status_free(status);
        return corrupt;
    }
    return status;
}

static sx_status parse_fields(sx_bytes text, const char *path, sx_arena *arena,
                              sx_checkpoint_state *out)
{
    Tensorflow__CheckpointState *m = NULL;
    SX_TRY(parse_message(text, path, &m));
    out->count = m->n_all_model_checkpoint_paths;
    out->last_preserved = m->last_preserved_timestamp;
    sx_status status = copy_strings(arena, m->all_model_checkpoint_paths, out->count, &out->names);
    out->times = sx_arena_array(arena, out->count + 1, double);
    if (m->model_checkpoint_path[0] != '\0') {
        out->latest = sx_arena_strdup(arena, m->model_checkpoint_path);
    }
    if (status == SX_OK &&
        (out->times == NULL || (m->model_checkpoint_path[0] != '\0' && out->latest == NULL))) {
        status = sx_no_memory("for a list of checkpoints");
    }
    /* Times that do not match the names are ignored. */
    if (status == SX_OK && m->n_all_model_checkpoint_timestamps == out->count) {
        for (size_t i = 0; i < out->count; i++) {
            out->times[i] = m->all_model_checkpoint_timestamps[i];
        }
    }
    sx_proto_free(m);
    return status;
}

/* A comment that cannot be parsed was not written by Sextant and is ignored. */
static sx_status parse_preserved(const char *text, sx_arena *arena, sx_checkpoint_state *out)
{
    sx_buf list;
    Tensorflow__CheckpointState *m = NULL;
    sx_buf_init(&list, 2 * (size_t)MAX_STATE_BYTES);
    for (const char *line = text; *line != '\0'; line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, PRESERVED, sizeof(PRESERVED) - 1) == 0) {
            sx_buf_printf(&list, "all_model_checkpoint_paths: %.*s\n",
                          (int)(length - (sizeof(PRESERVED) - 1)), line + sizeof(PRESERVED) - 1);
        }
        line += length;
    }
    sx_status status = parse_message((sx_bytes){sx_buf_text(&list), list.size}, "comments", &m);
    if (status == SX_OK) {
        out->n_preserved = m->n_all_model_checkpoint_paths;
        status =
            copy_strings(arena, m->all_model_checkpoint_paths, out->n_preserved, &out->preserved);
    } else if (sx_status_code(status) == SX_DATA_LOSS) {
        sx_status_free(status);
        status = copy_strings(arena, NULL, 0, &out->preserved);
    }
    sx_proto_free(m);
    sx_buf_deinit(&list);
    return status;
}

sx_status sx_checkpoint_state_read(const char *dir, sx_arena *arena, sx_checkpoint_state *out_state)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    sx_checkpoint_state state = {0};
    SX_TRY(sx_path_join(dir, "checkpoint", &path));
    sx_status status = sx_file_read(path, MAX_STATE_BYTES, &text, &size);
    struct stat file;
    if (sx_status_code(status) == SX_DATA_LOSS) { /* an I/O error: the text is not known */
        sx_status unread = sx_error(SX_UNKNOWN, "%s", sx_status_message(status));
        sx_status_free(status);
        status = unread;
    }
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = SX_OK;
    } else if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && stat(path, &file) == 0 &&
               file.st_size > MAX_STATE_BYTES) {
        sx_status_free(status);
        status = sx_error(SX_DATA_LOSS, "%s is larger than the limit of %d bytes", path,
                          (int)MAX_STATE_BYTES);
    } else if (status == SX_OK) {
        status = parse_fields((sx_bytes){text, size}, path, arena, &state);
        status = status == SX_OK ? parse_preserved(text, arena, &state) : status;
    }
    if (status == SX_OK) {
        *out_state = state;
    }
    sx_free(text);
    sx_free(path);
    return status;
}

/* The state, empty if its text is damaged: it is only a hint. A file that cannot be read is an
 * error: it is not to be replaced by an empty one. */
static sx_status read_or_warn(const char *dir, sx_arena *arena, sx_checkpoint_state *out_state)
{
    *out_state = (sx_checkpoint_state){0};
    sx_status status = sx_checkpoint_state_read(dir, arena, out_state);
    if (sx_status_code(status) != SX_DATA_LOSS) {
        return status;
    }
    sx_log(SX_LOG_WARN, "%s", sx_status_message(status));
    sx_status_free(status);
    return SX_OK;
}

/* Appends the fields of the message, and the preserved names as comments. */
static sx_status print_state(const sx_checkpoint_state *state, sx_buf *out)
{
    Tensorflow__CheckpointState m = TENSORFLOW__CHECKPOINT_STATE__INIT;
    m.model_checkpoint_path = (char *)(state->latest != NULL ? state->latest : "");
    m.all_model_checkpoint_paths = (char **)state->names;
    m.n_all_model_checkpoint_paths = state->count;
    m.all_model_checkpoint_timestamps = state->times;
    m.n_all_model_checkpoint_timestamps = state->count;
    m.last_preserved_timestamp = state->last_preserved;
    SX_TRY(sx_text_format_print(&m.base, out));
    for (size_t i = 0; i < state->n_preserved; i++) {
        Tensorflow__CheckpointState name = TENSORFLOW__CHECKPOINT_STATE__INIT;
        sx_buf line; /* model_checkpoint_path: "model.ckpt-100" */
        sx_buf_init(&line, MAX_STATE_BYTES);
        name.model_checkpoint_path = (char *)state->preserved[i];
        sx_status status = sx_text_format_print(&name.base, &line);
        if (status == SX_OK) {
            sx_buf_printf(out, "%s%s", PRESERVED, strchr(sx_buf_text(&line), '"'));
        }
        sx_buf_deinit(&line);
        SX_TRY(status);
    }
    return sx_buf_status(out);
}

sx_status sx_checkpoint_state_write(const char *dir, const sx_checkpoint_state *state)
{
    sx_buf text;
    char *path = NULL;
    sx_buf_init(&text, MAX_STATE_BYTES);
    sx_status status = print_state(state, &text);
    if (status == SX_OK) {
        status = sx_path_join(dir, "checkpoint", &path);
    }
    if (status == SX_OK) {
        status = sx_commit_bytes(path, sx_buf_text(&text), text.size);
    }
    sx_free(path);
    sx_buf_deinit(&text);
    return status;
}

/* ---- What there is ---- */

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
        return sx_no_memory("for a list of checkpoints");
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
            return sx_no_memory("for a list of checkpoints");
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

/* ---- Which to trust ---- */

sx_status sx_checkpoint_verify(const char *prefix)
{
    sx_bundle *bundle = NULL;
    SX_TRY(sx_bundle_open(prefix, &bundle));
    sx_status status = sx_bundle_verify(bundle);
    sx_bundle_close(bundle);
    return status;
}

sx_status sx_checkpoint_latest(const char *dir, sx_arena *arena, const char **out_prefix)
{
    sx_checkpoint_state state;
    SX_TRY(read_or_warn(dir, arena, &state));
    sx_checkpoints list = {0};
    SX_TRY(sx_checkpoints_list(dir, arena, &list));
    const char *newest = list.count > 0 ? list.items[list.count - 1].prefix : NULL;
    if (state.latest != NULL) {
        const int64_t step = sx_checkpoint_step(state.latest);
        if (step < 0 || newest == NULL || step > list.items[list.count - 1].step) {
            newest = state.latest[0] == '/' ? state.latest
                                            : sx_arena_printf(arena, "%s/%s", dir, state.latest);
            if (newest == NULL) {
                return sx_no_memory("for a checkpoint");
            }
        }
    }
    if (newest == NULL) {
        return sx_error(SX_NOT_FOUND, "%s has no checkpoint", dir);
    }
    sx_status why = sx_checkpoint_verify(newest);
    if (why == SX_OK || sx_status_code(why) == SX_RESOURCE_EXHAUSTED) {
        *out_prefix = newest;
        return why;
    }
    if (sx_status_code(why) == SX_PERMISSION_DENIED) {
        return why;
    }
    sx_status status = SX_OK;
    for (size_t i = list.count; i-- > 0 && status == SX_OK;) {
        sx_status older = sx_checkpoint_verify(list.items[i].prefix);
        if (older == SX_OK) {
            status =
                sx_error(SX_DATA_LOSS,
                         "%s: the newest checkpoint cannot be used (%s); the newest intact one "
                         "is %s; name it instead of the directory to use it",
                         dir, sx_status_message(why), list.items[i].prefix);
        }
        sx_status_free(older);
    }
    if (status == SX_OK) {
        status = sx_error(SX_DATA_LOSS, "%s: none of %zu checkpoints can be used: %s", dir,
                          SX_MAX(list.count, (size_t)1), sx_status_message(why));
    }
    sx_status_free(why);
    return status;
}

/* ---- Which to keep ---- */

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

/* Moves the names beyond the retention limit from the front of the list to `preserved`, which has
 * room for all, or to `doomed`; returns the number of doomed ones. */
static size_t select_doomed(sx_checkpoint_state *state, const sx_checkpoint_retention *r,
                            const char **doomed)
{
    size_t n = 0, dropped = 0;
    while (r->keep_max > 0 && state->count - dropped > (size_t)r->keep_max) {
        double interval = r->keep_every_n_hours * 3600, time = state->times[dropped];
        if (interval > 0 && time >= state->last_preserved + interval) {
            state->last_preserved = time;
            state->preserved[state->n_preserved++] = state->names[dropped];
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

/* An empty state with room for the names of `old` and `more` others; the preserved ones are copied.
 */
static sx_status make_room(sx_arena *arena, const sx_checkpoint_state *old, size_t more,
                           sx_checkpoint_state *out)
{
    size_t room = old->count + more;
    sx_checkpoint_state state = {.last_preserved = old->last_preserved,
                                 .n_preserved = old->n_preserved};
    state.names = sx_arena_array(arena, room + 1, const char *);
    state.times = sx_arena_array(arena, room + 1, double);
    state.preserved = sx_arena_array(arena, old->n_preserved + room + 1, const char *);
    if (state.names == NULL || state.times == NULL || state.preserved == NULL) {
        return sx_no_memory("for a list of checkpoints");
    }
    for (size_t i = 0; i < old->n_preserved; i++) {
        state.preserved[i] = old->preserved[i];
    }
    *out = state;
    return SX_OK;
}

static void add_name(sx_checkpoint_state *state, const char *name, double time)
{
    state->names[state->count] = name;
    state->times[state->count++] = time;
    state->latest = name;
    if (state->last_preserved == 0) { /* the hours are counted from the first checkpoint */
        state->last_preserved = state->times[0];
    }
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

/* Writes the state without the checkpoints that retention drops, then deletes these. */
static sx_status apply_retention(sx_arena *arena, const char *dir, sx_checkpoint_state *state,
                                 const sx_checkpoint_retention *retention)
{
    const char **doomed = sx_arena_array(arena, state->count + 1, const char *);
    if (doomed == NULL) {
        return sx_no_memory("for a list of checkpoints");
    }
    size_t n = select_doomed(state, retention, doomed);
    SX_TRY(sx_checkpoint_state_write(dir, state));
    return delete_doomed(dir, doomed, n);
}

static sx_status register_in(sx_arena *arena, const char *dir, const char *name, double now,
                             const sx_checkpoint_retention *retention)
{
    sx_checkpoint_state old, state;
    SX_TRY(read_or_warn(dir, arena, &old));
    SX_TRY(make_room(arena, &old, 1, &state));
    for (size_t i = 0; i < old.count; i++) {
        if (strcmp(old.names[i], name) != 0) { /* else it moves to the end */
            add_name(&state, old.names[i], old.times[i]);
        }
    }
    add_name(&state, name, now);
    return apply_retention(arena, dir, &state, retention);
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

/* ---- After a crash ---- */

/* The length of "model.ckpt-N" in "model.ckpt-N.data-00000-of-00001" or "model.ckpt-N.meta"; 0 for
 * any other name. */
static size_t part_base_length(const char *name)
{
    static const char base[] = SX_CHECKPOINT_BASENAME "-";
    if (strncmp(name, base, sizeof(base) - 1) != 0) {
        return 0;
    }
    size_t digits = strspn(name + sizeof(base) - 1, "0123456789");
    const char *rest = name + sizeof(base) - 1 + digits;
    bool part = strncmp(rest, ".data-", 6) == 0 || strcmp(rest, ".meta") == 0;
    return digits > 0 && part ? (size_t)(rest - name) : 0;
}

/* Deletes parts without an `.index`: left by a save killed before its commit point, or by a
 * deletion killed after removing the index. */
static sx_status delete_stray_parts(const char *dir)
{
    sx_paths names = {0};
    SX_TRY(sx_dir_list(dir, &names));
    sx_status status = SX_OK;
    for (size_t i = 0; i < names.count && status == SX_OK; i++) {
        size_t length = part_base_length(names.items[i]);
        char *index = NULL, *path = NULL;
        if (length == 0) {
            continue;
        }
        status = sx_path_format(&index, "%s/%.*s.index", dir, (int)length, names.items[i]);
        if (status == SX_OK && !sx_path_exists(index)) {
            status = sx_path_join(dir, names.items[i], &path);
            status = status == SX_OK ? remove_file(path) : status;
        }
        sx_free(index);
        sx_free(path);
    }
    sx_paths_deinit(&names);
    return status;
}

sx_status sx_checkpoints_sweep(const char *dir)
{
    SX_TRY(sx_commit_sweep(dir));
    return delete_stray_parts(dir);
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sx_path_basename(names[i]), name) == 0) {
            return true;
        }
    }
    return false;
}

/* When the checkpoint was committed, according to its file's time. */
static double commit_time(sx_arena *arena, const char *prefix)
{
    struct stat info;
    const char *index = sx_arena_printf(arena, "%s.index", prefix);
    return index != NULL && stat(index, &info) == 0
               ? (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9
               : 0;
}

/* Adds the checkpoints of `found` that `old` does not name: those newer than all names of `old`, or
 * the others if `newer` is false. */
static void add_unnamed(sx_arena *arena, const sx_checkpoints *found,
                        const sx_checkpoint_state *old, bool newer, sx_checkpoint_state *state)
{
    int64_t newest = -1;
    for (size_t i = 0; i < old->count; i++) {
        newest = SX_MAX(newest, sx_checkpoint_step(old->names[i]));
    }
    for (size_t i = 0; i < found->count; i++) {
        const char *name = sx_path_basename(found->items[i].prefix);
        if ((found->items[i].step > newest) == newer &&
            strncmp(name, SX_CHECKPOINT_BASENAME "-", sizeof(SX_CHECKPOINT_BASENAME)) == 0 &&
            !is_among(name, old->names, old->count) &&
            !is_among(name, old->preserved, old->n_preserved)) {
            add_name(state, name, commit_time(arena, found->items[i].prefix));
        }
    }
}

static sx_status adopt_in(sx_arena *arena, const char *dir,
                          const sx_checkpoint_retention *retention)
{
    sx_checkpoints found = {0};
    SX_TRY(sx_checkpoints_list(dir, arena, &found));
    sx_checkpoint_state old, state;
    SX_TRY(read_or_warn(dir, arena, &old));
    if (old.latest != NULL && sx_checkpoint_step(old.latest) < 0) {
        return SX_OK; /* not written by a run */
    }
    SX_TRY(make_room(arena, &old, found.count, &state));
    add_unnamed(arena, &found, &old, false, &state);
    for (size_t i = 0; i < old.count; i++) {
        add_name(&state, old.names[i], old.times[i]);
    }
    add_unnamed(arena, &found, &old, true, &state);
    if (state.count == old.count) {
        return SX_OK;
    }
    /* Without the list, the preserved ones are unknown, so nothing is deleted. */
    static const sx_checkpoint_retention all = {0};
    return apply_retention(arena, dir, &state, old.count > 0 ? retention : &all);
}

sx_status sx_checkpoints_adopt(const char *dir, const sx_checkpoint_retention *retention)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = adopt_in(&arena, dir, retention);
    sx_arena_deinit(&arena);
    return status;
}
