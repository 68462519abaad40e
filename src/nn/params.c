/* See params.h. */
#include "nn/params.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { MAX_PARAMS = 256 };

typedef struct param {
    char *name, *value;
    bool used;
} param;

struct sx_params {
    param items[MAX_PARAMS];
    int count;
    char bad_name[64], bad_value[64]; /* of the first that is no number; "" = none */
};

sx_status sx_params_create(sx_params **out_params)
{
    sx_params *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for parameters");
    }
    *out_params = p;
    return SX_OK;
}

void sx_params_destroy(sx_params *p)
{
    for (int i = 0; p != NULL && i < p->count; i++) {
        sx_free(p->items[i].name);
        sx_free(p->items[i].value);
    }
    sx_free(p);
}

static param *find(const sx_params *p, const char *name)
{
    for (int i = 0; p != NULL && i < p->count; i++) {
        if (strcmp(p->items[i].name, name) == 0) {
            return (param *)&p->items[i];
        }
    }
    return NULL;
}

sx_status sx_params_set(sx_params *p, const char *name, const char *value)
{
    char *copy = sx_strdup(value);
    param *item = find(p, name);
    if (item == NULL && p->count == MAX_PARAMS) {
        sx_free(copy);
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d parameters", MAX_PARAMS);
    }
    if (item == NULL) {
        item = &p->items[p->count];
        item->name = sx_strdup(name);
        p->count += item->name != NULL;
    }
    if (copy == NULL || item->name == NULL) {
        sx_free(copy);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for parameter \"%s\"", name);
    }
    sx_free(item->value);
    item->value = copy;
    return SX_OK;
}

sx_status sx_params_add_all(sx_params *p, const sx_params *from)
{
    for (int i = 0; from != NULL && i < from->count; i++) {
        SX_TRY(sx_params_set(p, from->items[i].name, from->items[i].value));
    }
    if (from != NULL) {
        sx_params_mark_used(p, from);
    }
    return SX_OK;
}

void sx_params_mark_used(sx_params *p, const sx_params *other)
{
    for (int i = 0; i < other->count; i++) {
        param *item = find(p, other->items[i].name);
        if (item != NULL && other->items[i].used) {
            item->used = true;
        }
    }
}

sx_status sx_params_check_reserved(const sx_params *p)
{
    static const char *const reserved[] = {"batch_size", "context"};
    for (size_t i = 0; i < SX_COUNT(reserved); i++) {
        if (find(p, reserved[i]) != NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the parameter \"%s\" is reserved: the input function is handed it; "
                            "set train_batch_size (--train-batch-size) instead",
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

static const char *use(const sx_params *p, const char *name)
{
    param *item = find(p, name);
    if (item == NULL) {
        return NULL;
    }
    item->used = true;
    return item->value;
}

static void keep_bad(const sx_params *p, const char *name, const char *value)
{
    sx_params *mutable =
        (sx_params *)(uintptr_t)p; /* the error is part of the asking, not the values */
    if (mutable->bad_name[0] == '\0') {
        snprintf(mutable->bad_name, sizeof(mutable->bad_name), "%s", name);
        snprintf(mutable->bad_value, sizeof(mutable->bad_value), "%s", value);
    }
}

int64_t sx_param_int(const sx_params *p, const char *name, int64_t otherwise)
{
    const char *text = use(p, name);
    if (text == NULL) {
        return otherwise;
    }
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        keep_bad(p, name, text);
        return otherwise;
    }
    return value;
}

double sx_param_float(const sx_params *p, const char *name, double otherwise)
{
    const char *text = use(p, name);
    if (text == NULL) {
        return otherwise;
    }
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0') {
        keep_bad(p, name, text);
        return otherwise;
    }
    return value;
}

const char *sx_param_string(const sx_params *p, const char *name, const char *otherwise)
{
    const char *text = use(p, name);
    return text != NULL ? text : otherwise;
}

sx_status sx_params_status(const sx_params *p)
{
    if (p == NULL || p->bad_name[0] == '\0') {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "parameter %s is \"%s\", expected a number", p->bad_name,
                    p->bad_value);
}

sx_status sx_params_check_used(const sx_params *p)
{
    for (int i = 0; p != NULL && i < p->count; i++) {
        if (!p->items[i].used) {
            return sx_error(SX_INVALID_ARGUMENT, "the model has no parameter \"%s\"",
                            p->items[i].name);
        }
    }
    return SX_OK;
}
