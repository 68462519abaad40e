/* See params.h. */
#include "nn/params.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"

enum { MAX_PARAMS = 256, MAX_LISTED = 12 };

typedef struct param {
    char *name, *value;
    bool is_default; /* set_default(): the model need not have it */
} param;

/* The parameters that models have requested. */
typedef struct record {
    sx_asked_param asked[MAX_PARAMS];
    int n_asked;
    sx_status error; /* the first invalid value, or out of memory */
} record;

struct sx_params {
    param items[MAX_PARAMS];
    int count;
    record *record; /* separate, so that a model function can record through a const pointer */
};

sx_status sx_params_create(sx_params **out_params)
{
    sx_params *p = sx_alloc(1, sizeof(*p));
    record *r = sx_alloc(1, sizeof(*r));
    if (p == NULL || r == NULL) {
        sx_free(p);
        sx_free(r);
        return sx_no_memory("for parameters");
    }
    p->record = r;
    *out_params = p;
    return SX_OK;
}

void sx_params_destroy(sx_params *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < p->count; i++) {
        sx_free(p->items[i].name);
        sx_free(p->items[i].value);
    }
    for (int i = 0; i < p->record->n_asked; i++) {
        sx_free(p->record->asked[i].name);
        sx_free(p->record->asked[i].otherwise);
        sx_free(p->record->asked[i].choices);
    }
    sx_status_free(p->record->error);
    sx_free(p->record);
    sx_free(p);
}

/* ---- Setting ---- */

static int find(const sx_params *p, const char *name)
{
    for (int i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static sx_status set(sx_params *p, const char *name, const char *value, bool is_default)
{
    int i = find(p, name);
    if (i < 0 && p->count == MAX_PARAMS) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d parameters", MAX_PARAMS);
    }
    char *value_copy = sx_strdup(value), *name_copy = i < 0 ? sx_strdup(name) : NULL;
    if (value_copy == NULL || (i < 0 && name_copy == NULL)) {
        sx_free(value_copy);
        sx_free(name_copy);
        return sx_no_memory("for parameters");
    }
    if (i < 0) {
        i = p->count++;
        p->items[i].name = name_copy;
    }
    sx_free(p->items[i].value);
    p->items[i].value = value_copy;
    p->items[i].is_default = is_default;
    return SX_OK;
}

sx_status sx_params_set(sx_params *p, const char *name, const char *value)
{
    return set(p, name, value, false);
}

sx_status sx_params_set_default(sx_params *p, const char *name, const char *value)
{
    return find(p, name) < 0 ? set(p, name, value, true) : SX_OK;
}

sx_status sx_params_add_all(sx_params *p, const sx_params *from)
{
    for (int i = 0; from != NULL && i < from->count; i++) {
        SX_TRY(set(p, from->items[i].name, from->items[i].value, from->items[i].is_default));
    }
    if (from != NULL) {
        sx_params_add_asked(p, from);
    }
    return SX_OK;
}

/* Passed to input functions by the trainer: not parameters of a model. */
static const char *const reserved[] = {"batch_size", "context"};

static bool is_reserved(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < SX_COUNT(reserved); i++) {
        found |= strcmp(name, reserved[i]) == 0;
    }
    return found;
}

sx_status sx_params_check_reserved(const sx_params *p)
{
    for (size_t i = 0; i < SX_COUNT(reserved); i++) {
        if (find(p, reserved[i]) >= 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the parameter name \"%s\" is reserved for the value that the trainer "
                            "passes to input functions; set train_batch_size "
                            "(--train-batch-size) instead",
                            reserved[i]);
        }
    }
    return SX_OK;
}

int sx_params_count(const sx_params *p)
{
    return p->count;
}
const char *sx_params_name(const sx_params *p, int i)
{
    return p->items[i].name;
}
const char *sx_params_value(const sx_params *p, int i)
{
    return p->items[i].value;
}

/* ---- Request ---- */

static void keep_error(const sx_params *p, sx_status status)
{
    if (p->record->error == SX_OK) {
        p->record->error = status;
    } else {
        sx_status_free(status);
    }
}

bool sx_params_was_asked(const sx_params *p, const char *name)
{
    for (int i = 0; i < p->record->n_asked; i++) {
        if (strcmp(p->record->asked[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Records the name with its default the first time it is asked for. */
static void add_asked(const sx_params *p, const char *name, const char *otherwise,
                      const char *choices)
{
    record *r = p->record;
    if (sx_params_was_asked(p, name) || r->n_asked == MAX_PARAMS) {
        return;
    }
    sx_asked_param asked = {.name = sx_strdup(name),
                            .otherwise = otherwise != NULL ? sx_strdup(otherwise) : NULL,
                            .choices = choices != NULL ? sx_strdup(choices) : NULL};
    if (asked.name == NULL || (otherwise != NULL && asked.otherwise == NULL) ||
        (choices != NULL && asked.choices == NULL)) {
        sx_free(asked.name);
        sx_free(asked.otherwise);
        sx_free(asked.choices);
        keep_error(p, sx_no_memory("for parameters"));
        return;
    }
    r->asked[r->n_asked++] = asked;
}

void sx_params_add_asked(sx_params *p, const sx_params *other)
{
    for (int i = 0; i < other->record->n_asked; i++) {
        const sx_asked_param *asked = &other->record->asked[i];
        add_asked(p, asked->name, asked->otherwise, asked->choices);
    }
}

const sx_asked_param *sx_params_asked(const sx_params *p, int *out_count)
{
    *out_count = p->record->n_asked;
    return p->record->asked;
}

/* The value that is set; NULL = none. */
static const char *ask(const sx_params *p, const char *name, const char *otherwise,
                       const char *choices)
{
    if (p == NULL) {
        return NULL;
    }
    add_asked(p, name, otherwise, choices);
    int i = find(p, name);
    return i >= 0 ? p->items[i].value : NULL;
}

int64_t sx_param_int(const sx_params *p, const char *name, int64_t otherwise)
{
    char number[32], *end;
    snprintf(number, sizeof(number), "%" PRId64, otherwise);
    const char *text = ask(p, name, number, NULL);
    if (text == NULL) {
        return otherwise;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        keep_error(p, sx_error(SX_INVALID_ARGUMENT, "parameter %s is \"%s\", expected an integer",
                               name, text));
        return otherwise;
    }
    return value;
}

double sx_param_float(const sx_params *p, const char *name, double otherwise)
{
    char number[32], *end;
    snprintf(number, sizeof(number), "%g", otherwise);
    const char *text = ask(p, name, number, NULL);
    if (text == NULL) {
        return otherwise;
    }
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        keep_error(p, sx_error(SX_INVALID_ARGUMENT, "parameter %s is \"%s\", expected a number",
                               name, text));
        return otherwise;
    }
    return value;
}

const char *sx_param_string(const sx_params *p, const char *name, const char *otherwise)
{
    const char *text = ask(p, name, otherwise, NULL);
    return text != NULL ? text : otherwise;
}

int sx_param_choice(const sx_params *p, const char *name, const char *choices)
{
    char first[64];
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(choices, "|"), choices);
    const char *text = ask(p, name, first, choices);
    size_t size = text != NULL ? strlen(text) : 0;
    if (text == NULL) {
        return 0;
    }
    int i = 0;
    for (const char *at = choices;; at++, i++) {
        size_t length = strcspn(at, "|");
        if (length == size && memcmp(at, text, size) == 0) {
            return i;
        }
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    keep_error(p, sx_error(SX_INVALID_ARGUMENT, "parameter %s is \"%s\", expected %s", name, text,
                           choices));
    return 0;
}

/* ---- Errors ---- */

sx_status sx_params_status(const sx_params *p)
{
    if (p == NULL || p->record->error == SX_OK) {
        return SX_OK;
    }
    sx_status error = p->record->error;
    return sx_error(sx_status_code(error), "%s", sx_status_message(error));
}

/* "; did you mean "dropout"?", or "; it has "dropout" and "num_classes"". */
static void put_names(const sx_params *p, const char *name, sx_buf *out)
{
    const record *r = p->record;
    const char *names[MAX_PARAMS];
    int n = 0;
    for (int i = 0; i < r->n_asked; i++) {
        if (!is_reserved(r->asked[i].name)) {
            names[n++] = r->asked[i].name;
        }
    }
    sx_buf near;
    sx_buf_init(&near, 1 << 12);
    if (n == 0) {
        sx_buf_puts(out, "; it has none");
    } else if (sx_nearest_names(name, names, (size_t)n, &near) > 0) {
        sx_buf_printf(out, "; did you mean %s?", sx_buf_text(&near));
    } else {
        sx_buf_puts(out, "; it has");
        for (int i = 0; i < SX_MIN(n, MAX_LISTED); i++) {
            sx_buf_printf(out, "%s \"%s\"", i > 0 ? "," : "", names[i]);
        }
        sx_buf_puts(out, n > MAX_LISTED ? ", …" : "");
    }
    sx_buf_deinit(&near);
}

sx_status sx_params_check_used(const sx_params *p)
{
    for (int i = 0; p != NULL && i < p->count; i++) {
        const param *item = &p->items[i];
        if (!item->is_default && !sx_params_was_asked(p, item->name)) {
            sx_buf names;
            sx_buf_init(&names, 1 << 12);
            put_names(p, item->name, &names);
            sx_status status = sx_error(SX_INVALID_ARGUMENT, "the model has no parameter \"%s\"%s",
                                        item->name, sx_buf_text(&names));
            sx_buf_deinit(&names);
            return status;
        }
    }
    return SX_OK;
}
