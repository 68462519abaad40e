/* See history.h. */
#include "train/history.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"

enum { MAX_FILE_BYTES = 1 << 30 };

#define VAL "val_" /* Keras' prefix of evaluations */

void sx_history_init(sx_history *h)
{
    *h = (sx_history){.best_step = -1};
    sx_arena_init(&h->arena, 0);
}

void sx_history_deinit(sx_history *h)
{
    sx_free(h->items);
    sx_arena_deinit(&h->arena);
    sx_history_init(h);
}

/* ---- In memory ---- */

static size_t position_of(const sx_history *h, int64_t step)
{
    size_t i = h->count;
    while (i > 0 && h->items[i - 1].step >= step) {
        i--;
    }
    return i;
}

const sx_eval_result *sx_history_find(const sx_history *h, int64_t step)
{
    size_t i = position_of(h, step);
    bool found = i < h->count && h->items[i].step == step && h->items[i].evaluated;
    return found ? &h->items[i].eval : NULL;
}

/* Copies the metrics, with names in the history's own memory: kept once, since they repeat. */
static sx_status copy_metrics(sx_history *h, const sx_metric *metrics, int n, sx_metric *out)
{
    for (int k = 0; k < n; k++) {
        int i = 0;
        while (i < h->n_names && strcmp(h->names[i], metrics[k].name) != 0) {
            i++;
        }
        const char *name =
            i < h->n_names ? h->names[i] : sx_arena_strdup(&h->arena, metrics[k].name);
        if (name == NULL) {
            return sx_no_memory("for the history");
        }
        if (i == h->n_names && i < (int)SX_COUNT(h->names)) {
            h->names[h->n_names++] = name;
        }
        out[k] = (sx_metric){name, metrics[k].value};
    }
    return SX_OK;
}

/* Drops every second entry of the older half. */
static void thin(sx_history *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        if (i >= h->count / 2 || i % 2 == 0 || h->items[i].step == h->best_step) {
            h->items[kept++] = h->items[i];
        }
    }
    h->count = kept;
    h->thinned = true;
}

/* The entry of that step, added if there is none. */
static sx_status entry_at(sx_history *h, int64_t step, sx_history_entry **out)
{
    size_t i = position_of(h, step);
    if (i == h->count || h->items[i].step != step) {
        if (h->count == SX_HISTORY_ENTRIES) {
            thin(h);
            i = position_of(h, step);
        }
        if (h->count == h->capacity) {
            size_t capacity = h->capacity > 0 ? 2 * h->capacity : 16;
            sx_history_entry *items = sx_realloc(h->items, capacity, sizeof(*items));
            if (items == NULL) {
                return sx_no_memory("for the history");
            }
            h->items = items;
            h->capacity = capacity;
        }
        memmove(&h->items[i + 1], &h->items[i], (h->count - i) * sizeof(h->items[0]));
        h->items[i] = (sx_history_entry){.step = step};
        h->count++;
    }
    *out = &h->items[i];
    return SX_OK;
}

sx_status sx_history_put(sx_history *h, const sx_eval_result *result, bool *out_is_best)
{
    sx_history_entry *entry;
    sx_eval_result own = *result;
    SX_TRY(copy_metrics(h, result->metrics, result->n_metrics, own.metrics));
    SX_TRY(entry_at(h, result->step, &entry));
    entry->evaluated = true;
    entry->eval = own;
    h->changed = true;
    bool best = isfinite(own.loss) && (h->best_step < 0 || own.loss < h->best_loss);
    if (best) {
        h->best_step = own.step;
        h->best_loss = own.loss;
    }
    *out_is_best = best || h->best_step == own.step;
    return SX_OK;
}

sx_status sx_history_put_training(sx_history *h, int64_t step, int64_t epoch,
                                  const sx_metric *metrics, int n_metrics)
{
    sx_history_entry *entry;
    sx_metric own[SX_MAX_RESULTS];
    SX_TRY(copy_metrics(h, metrics, n_metrics, own));
    SX_TRY(entry_at(h, step, &entry));
    if (entry->n_metrics == 0) {
        entry->epoch = epoch;
        entry->n_metrics = n_metrics;
        memcpy(entry->metrics, own, (size_t)n_metrics * sizeof(own[0]));
        h->changed = true;
    }
    return SX_OK;
}

void sx_history_drop_training(sx_history *h, int64_t step)
{
    size_t i = position_of(h, step);
    if (i < h->count && h->items[i].step == step && !h->items[i].evaluated) {
        memmove(&h->items[i], &h->items[i + 1], (h->count - i - 1) * sizeof(h->items[0]));
        h->count--;
        h->changed = true;
    }
}

void sx_history_cut(sx_history *h, int64_t step)
{
    size_t count = position_of(h, step + 1);
    h->changed = h->changed || count < h->count;
    h->count = count;
}

/* ---- Writing ---- */

/* A number that is not finite becomes null: JSON has none. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void put_number(json_t *object, const char *prefix, const char *name, double value)
{
    char key[256];
    snprintf(key, sizeof(key), "%s%s", prefix, name);
    if (json_object_get(object, key) == NULL) {
        json_object_set_new(object, key, number(value));
    }
}

static json_t *entry_to_json(const sx_history_entry *e)
{
    json_t *json = json_object();
    if (e->epoch > 0) {
        json_object_set_new(json, "epoch", json_integer((json_int_t)e->epoch));
    }
    json_object_set_new(json, "step", json_integer((json_int_t)e->step));
    for (int k = 0; k < e->n_metrics; k++) {
        put_number(json, "", e->metrics[k].name, e->metrics[k].value);
    }
    if (e->evaluated) {
        put_number(json, VAL, "loss", e->eval.loss);
        for (int k = 0; k < e->eval.n_metrics; k++) {
            put_number(json, VAL, e->eval.metrics[k].name, e->eval.metrics[k].value);
        }
        json_object_set_new(json, VAL "examples", json_integer((json_int_t)e->eval.examples));
    }
    return json;
}

sx_status sx_history_save(sx_history *h, const char *dir)
{
    json_t *json = json_object(), *entries = json_array(), *best = json_null();
    sx_commit *commit = NULL;
    char *text = NULL;
    if (h->best_step >= 0) {
        best = json_pack("{s:I, s:f}", "step", (json_int_t)h->best_step, VAL "loss", h->best_loss);
    }
    for (size_t i = 0; i < h->count; i++) {
        json_array_append_new(entries, entry_to_json(&h->items[i]));
    }
    json_object_set_new(json, "best", best);
    json_object_set_new(json, "history", entries);
    sx_status status;
    SX_TRY_GOTO(status, sx_json_seal(json), done);
    SX_TRY_GOTO(status, sx_json_text(json, JSON_INDENT(1), &text), done);
    size_t size = strlen(text);
    SX_TRY_GOTO(status, sx_backup_make_dir(dir), done);
    SX_TRY_GOTO(status, sx_commit_create(&commit), done);
    SX_TRY_GOTO(status, sx_backup_add_file(commit, dir, SX_HISTORY_FILE, text, size), done);
    SX_TRY_GOTO(status, sx_backup_add_copy(commit, dir, SX_HISTORY_FILE, text, size), done);
    SX_TRY_GOTO(status, sx_commit_finish(commit), done);
    h->changed = false;
done:
    sx_commit_destroy(commit);
    sx_free(text);
    json_decref(json);
    return status;
}

/* ---- Reading ---- */

static double read_number(const json_t *json)
{
    return json_is_number(json) ? json_number_value(json) : (double)NAN;
}

static sx_status read_entry(sx_history *h, json_t *json)
{
    static const char *const reserved[] = {"epoch", "step", VAL "loss", VAL "examples"};
    int64_t step = json_integer_value(json_object_get(json, "step"));
    const json_t *val_loss = json_object_get(json, VAL "loss");
    sx_eval_result eval = {.step = step,
                           .examples = json_integer_value(json_object_get(json, VAL "examples")),
                           .loss = read_number(val_loss)};
    sx_metric metrics[SX_MAX_RESULTS];
    int n_metrics = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json, name, value)
    {
        bool is_reserved = false, is_eval = strncmp(name, VAL, strlen(VAL)) == 0;
        for (size_t i = 0; i < SX_COUNT(reserved); i++) {
            is_reserved = is_reserved || strcmp(name, reserved[i]) == 0;
        }
        if (is_reserved) {
            continue;
        }
        if (is_eval ? eval.n_metrics == SX_MAX_METRICS : n_metrics == SX_MAX_RESULTS) {
            return sx_error(SX_DATA_LOSS, "step %lld has more than %d metrics", (long long)step,
                            (int)SX_MAX_METRICS);
        }
        if (is_eval) {
            eval.metrics[eval.n_metrics++] = (sx_metric){name + strlen(VAL), read_number(value)};
        } else {
            metrics[n_metrics++] = (sx_metric){name, read_number(value)};
        }
    }
    bool is_best;
    if (val_loss != NULL) {
        SX_TRY(sx_history_put(h, &eval, &is_best));
    }
    return sx_history_put_training(h, step, json_integer_value(json_object_get(json, "epoch")),
                                   metrics, n_metrics);
}

/* Fills the history `user`, or leaves it empty. */
static sx_status read_history(void *user, const char *text, size_t size)
{
    sx_history *h = user;
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, "line %d: %s", error.line, error.text);
    }
    const json_t *entries = json_object_get(json, "history"), *best = json_object_get(json, "best");
    sx_status status = sx_json_check_seal(json);
    if (status == SX_OK && !json_is_array(entries)) {
        status = sx_error(SX_DATA_LOSS, "the array \"history\" is missing");
    }
    for (size_t i = 0; status == SX_OK && i < json_array_size(entries); i++) {
        status = read_entry(h, json_array_get(entries, i));
    }
    if (status == SX_OK) {
        h->best_step =
            json_is_object(best) ? json_integer_value(json_object_get(best, "step")) : -1;
        h->best_loss = read_number(json_object_get(best, VAL "loss"));
    } else {
        sx_history_deinit(h);
    }
    h->changed = false;
    json_decref(json);
    return status;
}

static sx_backup_file history_file(const char *dir, sx_history *into, sx_warn_fn *warn,
                                   void *warn_user)
{
    return (sx_backup_file){.dir = dir,
                            .name = SX_HISTORY_FILE,
                            .max_bytes = MAX_FILE_BYTES,
                            .check = read_history,
                            .check_user = into,
                            .warn = warn,
                            .warn_user = warn_user};
}

sx_status sx_history_load(sx_history *h, const char *dir, sx_warn_fn *warn, void *warn_user)
{
    char *text = NULL;
    size_t size = 0;
    const sx_backup_file file = history_file(dir, h, warn, warn_user);
    sx_status status = sx_backup_read(&file, &text, &size);
    sx_free(text);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        return SX_OK;
    }
    return status;
}

static sx_status set_aside(const char *dir)
{
    char *path = NULL, *aside = NULL;
    SX_TRY(sx_path_join(dir, SX_HISTORY_FILE, &path));
    sx_status status = sx_path_join(dir, SX_HISTORY_FILE ".damaged", &aside);
    if (status == SX_OK && rename(path, aside) != 0 && errno != ENOENT) {
        status = sx_errno_status(errno, "rename", path);
    }
    sx_free(path);
    sx_free(aside);
    return status;
}

sx_status sx_history_repair(const char *dir, sx_warn_fn *warn, void *warn_user)
{
    sx_history read;
    sx_history_init(&read);
    const sx_backup_file file = history_file(dir, &read, warn, warn_user);
    sx_status status = sx_backup_repair(&file);
    sx_code code = sx_status_code(status);
    if (code == SX_NOT_FOUND || code == SX_DATA_LOSS) {
        sx_status_free(status);
        status = code == SX_DATA_LOSS ? set_aside(dir) : SX_OK;
    }
    sx_history_deinit(&read);
    return status;
}
