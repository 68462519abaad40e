/* See checkpoint.h. */
#include "train/checkpoint.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/checkpoint_state.h"
#include "checkpoint/object_graph.h"
#include "io/commit.h"
#include "io/json_text.h"
#include "io/path.h"

#define PRIVATE_KEY   "_sextant/"
#define CURSOR_KEY    PRIVATE_KEY "cursor"
#define NUMERICS_KEY  PRIVATE_KEY "numerics"
#define PROGRESS_KEY  PRIVATE_KEY "progress"
#define CALLBACKS_KEY PRIVATE_KEY "callbacks/"

/* ---- Progress as JSON ---- */

static sx_status progress_to_text(const sx_progress *p, char **out)
{
    json_t *sums = json_array();
    for (int i = 0; i < p->n_sums; i++) {
        json_array_append_new(sums, json_real(p->sums[i]));
    }
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:b, s:b, s:I}", "epochs_done", (json_int_t)p->epochs_done,
        "step_in_epoch", (json_int_t)p->step_in_epoch, "examples", (json_int_t)p->examples,
        "examples_in_all", (json_int_t)p->examples_in_all, "sums", sums, "eval_due",
        (int)p->eval_due, "data_ended", (int)p->data_ended, "saves", (json_int_t)p->saves);
    if (json != NULL && p->weight != (double)p->examples) {
        json_object_set_new(json, "weight", json_real(p->weight));
    }
    sx_status status = sx_json_text(json, JSON_COMPACT, out);
    json_decref(json);
    return status;
}

static int64_t get_count(const json_t *json, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(json, name));
    return value > 0 ? value : 0;
}

static sx_status progress_from_text(const char *text, size_t size, sx_progress *out)
{
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const json_t *sums = json_object_get(json, "sums");
    size_t n = json_array_size(sums);
    if (json == NULL || n > SX_MAX_RESULTS) {
        json_decref(json);
        return sx_error(SX_DATA_LOSS, "%s is corrupt", PROGRESS_KEY);
    }
    *out = (sx_progress){.epochs_done = get_count(json, "epochs_done"),
                         .step_in_epoch = get_count(json, "step_in_epoch"),
                         .examples = get_count(json, "examples"),
                         .examples_in_all = get_count(json, "examples_in_all"),
                         .n_sums = (int)n,
                         .eval_due = json_is_true(json_object_get(json, "eval_due")),
                         .data_ended = json_is_true(json_object_get(json, "data_ended")),
                         .saves = get_count(json, "saves")};
    const json_t *weight = json_object_get(json, "weight");
    out->weight = weight != NULL ? json_number_value(weight) : (double)out->examples;
    for (size_t i = 0; i < n; i++) {
        out->sums[i] = json_number_value(json_array_get(sums, i));
    }
    json_decref(json);
    return SX_OK;
}

/* ---- Saving ---- */

/* Are all elements finite? One function for each floating type that variables may have. */
static bool finite_f32(const void *data, int64_t n)
{
    const float *x = data;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
    }
    return finite;
}

static bool finite_f64(const void *data, int64_t n)
{
    const double *x = data;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
    }
    return finite;
}

static bool finite_bf16(const void *data, int64_t n)
{
    const uint16_t *x = data;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= (x[i] & 0x7f80) != 0x7f80; /* exponent not all ones */
    }
    return finite;
}

static bool is_finite(const sx_type *type, const void *data)
{
    int64_t n = sx_type_elems(type);
    switch (type->dtype) {
    case SX_F32:
        return finite_f32(data, n);
    case SX_F64:
        return finite_f64(data, n);
    case SX_BF16:
        return finite_bf16(data, n);
    default:
        return true;
    }
}

static sx_status add_item(sx_snapshot *s, const char *key, const sx_type *type, size_t *total)
{
    s->items[s->n].type = *type;
    s->items[s->n].at = *total;
    s->items[s->n].key = sx_arena_strdup(&s->arena, key);
    const size_t bytes = (size_t)sx_type_bytes(type);
    return s->items[s->n++].key != NULL && sx_add_size(*total, (bytes + 63) / 64 * 64, total)
               ? SX_OK
               : sx_no_memory("for a checkpoint");
}

static bool has_state(const sx_callback *c)
{
    return c->state != NULL && c->state_bytes > 0;
}

/* What there is, and where it will be in the snapshot's memory. */
static sx_status list_items(sx_snapshot *s, const sx_session *session,
                            const sx_checkpoint_contents *c, size_t *total)
{
    const int n = sx_session_variable_count(session);
    s->items = sx_arena_array(&s->arena, n + c->n_callbacks + 1, sx_snapshot_item);
    if (s->items == NULL) {
        return sx_no_memory("for a checkpoint");
    }
    for (int i = 0; i < n; i++) {
        const sx_session_variable *v = sx_session_variable_at(session, i);
        SX_TRY(add_item(s, v->name, &v->type, total));
    }
    s->n_variables = s->n;
    if (c->state->n_cursors > 0) {
        const sx_type type = sx_type_of(SX_U8, (int64_t)c->state->n_cursors * SX_CURSOR_BYTES);
        SX_TRY(add_item(s, CURSOR_KEY, &type, total));
    }
    s->n_cursors = s->n - s->n_variables;
    for (int i = 0; i < c->n_callbacks; i++) {
        const sx_callback *callback = &c->callbacks[i];
        if (has_state(callback)) {
            const sx_type type = sx_type_of(SX_U8, (int64_t)callback->state_bytes);
            const char *key = sx_arena_printf(&s->arena, CALLBACKS_KEY "%s", callback->name);
            SX_TRY(key != NULL ? add_item(s, key, &type, total) : sx_no_memory("for a checkpoint"));
        }
    }
    return SX_OK;
}

static sx_status make_room(sx_snapshot *s, size_t bytes)
{
    if (bytes > s->room) {
        sx_free_aligned(s->data);
        s->room = 0;
        s->data = sx_alloc_aligned(bytes, 64);
        s->room = s->data != NULL ? bytes : 0;
    }
    return bytes <= s->room ? SX_OK : sx_no_memory("for a checkpoint");
}

static sx_status copy_variables(sx_snapshot *s, sx_session *session)
{
    void **data = sx_arena_array(&s->arena, s->n_variables + 1, void *);
    if (data == NULL) {
        return sx_no_memory("for a checkpoint");
    }
    for (int i = 0; i < s->n_variables; i++) {
        data[i] = s->data + s->items[i].at;
    }
    SX_TRY(sx_session_read_variables(session, data));
    for (int i = 0; i < s->n_variables; i++) {
        if (!is_finite(&s->items[i].type, data[i])) {
            return sx_error(SX_DATA_LOSS,
                            "variable \"%s\" has a non-finite value; nothing was saved",
                            s->items[i].key);
        }
    }
    return SX_OK;
}

static void copy_states(sx_snapshot *s, const sx_checkpoint_contents *c)
{
    int item = s->n_variables;
    if (s->n_cursors > 0) {
        memcpy(s->data + s->items[item++].at, c->state->cursors,
               (size_t)c->state->n_cursors * SX_CURSOR_BYTES);
    }
    for (int i = 0; i < c->n_callbacks; i++) {
        if (has_state(&c->callbacks[i])) {
            memcpy(s->data + s->items[item++].at, c->callbacks[i].state,
                   c->callbacks[i].state_bytes);
        }
    }
}

static sx_status copy_texts(sx_snapshot *s, const sx_train_state *state)
{
    char *progress = NULL;
    SX_TRY(progress_to_text(&state->progress, &progress));
    s->progress = sx_arena_strdup(&s->arena, progress);
    s->numerics = sx_arena_strdup(&s->arena, state->numerics != NULL ? state->numerics : "");
    sx_free(progress);
    return s->progress != NULL && s->numerics != NULL ? SX_OK : sx_no_memory("for a checkpoint");
}

sx_status sx_snapshot_take(sx_snapshot *s, sx_session *session,
                           const sx_checkpoint_contents *contents)
{
    size_t total = 0;
    sx_arena_deinit(&s->arena);
    sx_arena_init(&s->arena, 0);
    s->n = 0;
    s->saves = contents->state->progress.saves;
    SX_TRY(list_items(s, session, contents, &total));
    SX_TRY(make_room(s, total + 1));
    SX_TRY(copy_variables(s, session));
    copy_states(s, contents);
    return copy_texts(s, contents->state);
}

void sx_snapshot_deinit(sx_snapshot *s)
{
    sx_arena_deinit(&s->arena);
    sx_free_aligned(s->data);
    *s = (sx_snapshot){0};
}

static sx_status save_item(sx_bundle_writer *w, const sx_snapshot *s, int i)
{
    const sx_snapshot_item *item = &s->items[i];
    return sx_bundle_add(w, item->key, &(sx_tensor){item->type, s->data + item->at});
}

static sx_status save_object_graph(sx_bundle_writer *w, const sx_snapshot *s)
{
    const char **names = sx_alloc((size_t)s->n_variables + 1, sizeof(*names));
    if (names == NULL) {
        return sx_no_memory("for a checkpoint");
    }
    for (int i = 0; i < s->n_variables; i++) {
        names[i] = s->items[i].key;
    }
    sx_status status = sx_object_graph_add(w, names, (size_t)s->n_variables, s->saves);
    sx_free(names);
    return status;
}

static sx_status save_text(sx_bundle_writer *w, const char *key, const char *text)
{
    sx_bytes bytes = {text, strlen(text)};
    return sx_bundle_add(w, key, &(sx_tensor){sx_scalar_type(SX_STRING), &bytes});
}

/* The order is that of the bytes in the file. */
static sx_status save_all(sx_bundle_writer *w, const sx_snapshot *s)
{
    const int callbacks = s->n_variables + s->n_cursors;
    for (int i = 0; i < s->n_variables; i++) {
        SX_TRY(save_item(w, s, i));
    }
    SX_TRY(save_object_graph(w, s));
    for (int i = s->n_variables; i < callbacks; i++) {
        SX_TRY(save_item(w, s, i));
    }
    SX_TRY(save_text(w, NUMERICS_KEY, s->numerics));
    SX_TRY(save_text(w, PROGRESS_KEY, s->progress));
    for (int i = callbacks; i < s->n; i++) {
        SX_TRY(save_item(w, s, i));
    }
    return sx_bundle_writer_finish(w);
}

sx_status sx_snapshot_write(const sx_snapshot *s, const char *prefix)
{
    sx_bundle_writer *w = NULL;
    SX_TRY(sx_bundle_writer_create(prefix, &w));
    sx_status status = save_all(w, s);
    sx_bundle_writer_destroy(w);
    return sx_status_annotate(status, __FILE__, __LINE__, "saving %s", prefix);
}

sx_status sx_checkpoint_save(sx_session *session, const char *prefix,
                             const sx_checkpoint_contents *contents)
{
    sx_snapshot s = {0};
    sx_status status = sx_snapshot_take(&s, session, contents);
    status = status == SX_OK ? sx_snapshot_write(&s, prefix)
                             : sx_status_annotate(status, __FILE__, __LINE__, "saving %s", prefix);
    sx_snapshot_deinit(&s);
    return status;
}

/* ---- Loading ---- */

sx_status sx_checkpoint_load_variable(sx_session *session, const sx_bundle *bundle, int i)
{
    const sx_session_variable *v = sx_session_variable_at(session, i);
    void *data = sx_alloc_aligned((size_t)sx_type_bytes(&v->type) + 1, 64);
    if (data == NULL) {
        return sx_no_memory("for a checkpoint");
    }
    sx_status status = sx_bundle_read(bundle, v->name, &v->type, data);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = sx_error(SX_FAILED_PRECONDITION, "the checkpoint has no variable \"%s\"", v->name);
    }
    if (status == SX_OK) {
        status = sx_session_write_variable(session, i, data);
    }
    sx_free_aligned(data);
    return status;
}

sx_status sx_checkpoint_load(sx_session *session, const char *prefix, int first)
{
    sx_bundle *bundle = NULL;
    SX_TRY(sx_bundle_open(prefix, &bundle));
    sx_status status = SX_OK;
    for (int i = first; i < sx_session_variable_count(session) && status == SX_OK; i++) {
        status = sx_checkpoint_load_variable(session, bundle, i);
    }
    sx_bundle_close(bundle);
    return sx_status_annotate(status, __FILE__, __LINE__, "restoring %s", prefix);
}

/* The scalar string `key`; NULL if absent. */
static sx_status load_text(const sx_bundle *bundle, const char *key, sx_arena *arena,
                           const char **out_text, size_t *out_size)
{
    sx_tensor tensor;
    *out_text = NULL;
    if (sx_bundle_find(bundle, key) == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_bundle_read_strings(bundle, key, arena, &tensor));
    const sx_bytes *bytes = tensor.data;
    if (tensor.type.rank != 0) {
        return sx_error(SX_DATA_LOSS, "%s is not a scalar", key);
    }
    *out_text = sx_arena_strndup(arena, bytes->data, bytes->size);
    *out_size = bytes->size;
    return *out_text != NULL ? SX_OK : sx_no_memory("for a checkpoint");
}

/* Fills out[size] if the tensor exists and has exactly that many bytes. */
static sx_status load_bytes(const sx_bundle *bundle, const char *key, void *out, size_t size,
                            bool *out_found)
{
    sx_type type = sx_type_of(SX_U8, (int64_t)size);
    const sx_bundle_entry *entry = sx_bundle_find(bundle, key);
    *out_found = entry != NULL && sx_type_equal(&entry->type, &type);
    return *out_found ? sx_bundle_read(bundle, key, &type, out) : SX_OK;
}

/* Loads all cursors; none if the tensor has another dtype or size. */
static sx_status load_cursors(const sx_bundle *bundle, sx_train_state *state)
{
    const sx_bundle_entry *entry = sx_bundle_find(bundle, CURSOR_KEY);
    int64_t bytes = entry != NULL ? sx_type_elems(&entry->type) : 0;
    bool found = false;
    if (bytes <= 0 || bytes > (int64_t)sizeof(state->cursors) || bytes % SX_CURSOR_BYTES != 0) {
        return SX_OK;
    }
    SX_TRY(load_bytes(bundle, CURSOR_KEY, state->cursors, (size_t)bytes, &found));
    state->n_cursors = found ? (int)(bytes / SX_CURSOR_BYTES) : 0;
    return SX_OK;
}

static sx_status load_callbacks(const sx_bundle *bundle, const sx_callback *callbacks, int n)
{
    for (int i = 0; i < n; i++) {
        const sx_callback *c = &callbacks[i];
        char *key = NULL;
        bool found;
        if (c->state == NULL || c->state_bytes == 0) {
            continue;
        }
        SX_TRY(sx_path_format(&key, CALLBACKS_KEY "%s", c->name));
        sx_status status = load_bytes(bundle, key, c->state, c->state_bytes, &found);
        sx_free(key);
        SX_TRY(status);
    }
    return SX_OK;
}

static sx_status load_state(const sx_bundle *bundle, sx_arena *arena, sx_train_state *out)
{
    sx_train_state state = {.numerics = ""};
    const char *text;
    size_t size;
    SX_TRY(load_cursors(bundle, &state));
    SX_TRY(load_text(bundle, NUMERICS_KEY, arena, &text, &size));
    state.numerics = text != NULL ? text : "";
    SX_TRY(load_text(bundle, PROGRESS_KEY, arena, &text, &size));
    if (text != NULL) {
        SX_TRY(progress_from_text(text, size, &state.progress));
    }
    *out = state;
    return SX_OK;
}

sx_status sx_checkpoint_load_state(const char *prefix, sx_arena *arena, sx_train_state *out_state,
                                   const sx_callback *callbacks, int n_callbacks)
{
    sx_bundle *bundle = NULL;
    SX_TRY(sx_bundle_open(prefix, &bundle));
    sx_status status = load_state(bundle, arena, out_state);
    if (status == SX_OK) {
        status = load_callbacks(bundle, callbacks, n_callbacks);
    }
    sx_bundle_close(bundle);
    return sx_status_annotate(status, __FILE__, __LINE__, "restoring %s", prefix);
}

/* ---- Keeping the best ---- */

static bool has_prefix(const char *name, const char *base, const char *suffix)
{
    size_t length = strlen(base);
    return strncmp(name, base, length) == 0 && strncmp(name + length, suffix, strlen(suffix)) == 0;
}

static sx_status link_file(sx_commit *commit, const char *from_dir, const char *to_dir,
                           const char *name)
{
    char *from = NULL, *to = NULL;
    SX_TRY(sx_path_join(from_dir, name, &from));
    sx_status status = sx_path_join(to_dir, name, &to);
    if (status == SX_OK) {
        status = sx_commit_add_link(commit, from, to);
    }
    sx_free(from);
    sx_free(to);
    return status;
}

sx_status sx_checkpoint_keep(const char *prefix, const char *dir)
{
    static const char *const suffixes[] = {".data-", ".index"}; /* `.index` is the commit point */
    const char *base = sx_path_basename(prefix);
    char *from_dir = NULL;
    sx_paths names = {0};
    sx_commit *commit = NULL;
    SX_TRY(sx_dir_create(dir));
    SX_TRY(sx_path_dirname(prefix, &from_dir));
    sx_status status = sx_dir_list(from_dir, &names);
    if (status == SX_OK) {
        status = sx_commit_create(&commit);
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < names.count && status == SX_OK; i++) {
            if (has_prefix(names.items[i], base, suffixes[k])) {
                status = link_file(commit, from_dir, dir, names.items[i]);
            }
        }
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    sx_paths_deinit(&names);
    sx_free(from_dir);
    return status;
}

sx_status sx_checkpoint_keep_only(const char *dir, int64_t step)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    for (size_t i = 0; i < list.count && status == SX_OK; i++) {
        if (list.items[i].step != step) {
            status = sx_checkpoint_delete(list.items[i].prefix);
        }
    }
    sx_arena_deinit(&arena);
    return status;
}
