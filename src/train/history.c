/* See history.h. */
#include "train/history.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "io/commit.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"

enum { MAX_FILE_BYTES = 1 << 28, MAX_EVALUATIONS = 1 << 20 };

static const char FILE_NAME[] = "history.json";

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "history: out of memory");
}

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

/* --- in memory ------------------------------------------------------------------------------- */

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
    return i < h->count && h->items[i].step == step ? &h->items[i] : NULL;
}

/* A copy of the name owned by the history; usually the newest row has it already. */
static const char *own_name(sx_history *h, const char *name)
{
    const sx_eval_result *newest = h->count > 0 ? &h->items[h->count - 1] : NULL;
    for (int k = 0; newest != NULL && k < newest->n_metrics; k++) {
        if (strcmp(newest->metrics[k].name, name) == 0) {
            return newest->metrics[k].name;
        }
    }
    return sx_arena_strdup(&h->arena, name);
}

static sx_status grow(sx_history *h)
{
    size_t capacity = h->capacity > 0 ? 2 * h->capacity : 16;
    if (capacity > MAX_EVALUATIONS) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "history: more than %d evaluations",
                        MAX_EVALUATIONS);
    }
    sx_eval_result *items = sx_realloc(h->items, capacity, sizeof(*items));
    if (items == NULL) {
        return no_memory();
    }
    h->items = items;
    h->capacity = capacity;
    return SX_OK;
}

sx_status sx_history_put(sx_history *h, const sx_eval_result *result, bool *out_is_best)
{
    sx_eval_result row = *result;
    for (int k = 0; k < row.n_metrics; k++) {
        row.metrics[k].name = own_name(h, result->metrics[k].name);
        if (row.metrics[k].name == NULL) {
            return no_memory();
        }
    }
    if (h->count == h->capacity) {
        SX_TRY(grow(h));
    }
    size_t i = position_of(h, row.step);
    if (i == h->count || h->items[i].step != row.step) {
        memmove(&h->items[i + 1], &h->items[i], (h->count - i) * sizeof(row));
        h->count++;
    }
    h->items[i] = row;
    bool best = isfinite(row.loss) && (h->best_step < 0 || row.loss < h->best_loss);
    if (best) {
        h->best_step = row.step;
        h->best_loss = row.loss;
    }
    *out_is_best = best || h->best_step == row.step;
    return SX_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

/* JSON has no NaN or infinity: they become null. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_to_json(const sx_eval_result *row)
{
    json_t *metrics = json_object();
    for (int k = 0; k < row->n_metrics; k++) {
        json_object_set_new(metrics, row->metrics[k].name, number(row->metrics[k].value));
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "step", (json_int_t)row->step, "examples",
                     (json_int_t)row->examples, "loss", number(row->loss), "metrics", metrics);
}

static json_t *history_to_json(const sx_history *h)
{
    json_t *rows = json_array(), *best = json_null();
    for (size_t i = 0; i < h->count; i++) {
        json_array_append_new(rows, row_to_json(&h->items[i]));
    }
    if (h->best_step >= 0) {
        best = json_pack("{s:I, s:f}", "step", (json_int_t)h->best_step, "loss", h->best_loss);
    }
    return json_pack("{s:o, s:o}", "best", best, "evaluations", rows);
}

sx_status sx_history_save(const sx_history *h, const char *dir)
{
    json_t *json = history_to_json(h);
    char *text = NULL, *path = NULL;
    sx_status status = sx_json_text(json, JSON_INDENT(1), &text);
    json_decref(json);
    if (status == SX_OK) {
        status = sx_path_join(dir, FILE_NAME, &path);
    }
    if (status == SX_OK) {
        status = sx_commit_bytes(path, text, strlen(text));
    }
    sx_free(path);
    sx_free(text);
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

static double read_number(const json_t *json)
{
    return json_is_number(json) ? json_number_value(json) : (double)NAN;
}

static sx_status read_row(sx_history *h, json_t *json)
{
    sx_eval_result row = {.step = json_integer_value(json_object_get(json, "step")),
                          .examples = json_integer_value(json_object_get(json, "examples")),
                          .loss = read_number(json_object_get(json, "loss"))};
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(json, "metrics"), name, value)
    {
        if (row.n_metrics == SX_MAX_METRICS) {
            return sx_error(SX_DATA_LOSS, "more than %d metrics", (int)SX_MAX_METRICS);
        }
        row.metrics[row.n_metrics++] = (sx_metric){name, read_number(value)};
    }
    bool is_best;
    return sx_history_put(h, &row, &is_best);
}

static sx_status read_rows(sx_history *h, json_t *json)
{
    json_t *rows = json_object_get(json, "evaluations"), *best = json_object_get(json, "best");
    if (!json_is_array(rows)) {
        return sx_error(SX_DATA_LOSS, "expected an array \"evaluations\"");
    }
    for (size_t i = 0; i < json_array_size(rows); i++) {
        SX_TRY(read_row(h, json_array_get(rows, i)));
    }
    if (json_is_object(best)) {
        h->best_step = json_integer_value(json_object_get(best, "step"));
        h->best_loss = read_number(json_object_get(best, "loss"));
    }
    return SX_OK;
}

static sx_status parse(sx_history *h, const char *text, size_t size)
{
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, "line %d: %s", error.line, error.text);
    }
    sx_status status = read_rows(h, json);
    json_decref(json);
    return status;
}

sx_status sx_history_load(sx_history *h, const char *dir)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    SX_TRY(sx_path_join(dir, FILE_NAME, &path));
    sx_status status = SX_OK;
    if (sx_path_exists(path)) {
        status = sx_file_read(path, MAX_FILE_BYTES, &text, &size);
        if (status == SX_OK) {
            status = sx_status_annotate(parse(h, text, size), __FILE__, __LINE__, "%s", path);
        }
    }
    sx_free(text);
    sx_free(path);
    return status;
}
