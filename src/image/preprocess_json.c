/* Conversion of sx_preprocess to JSON and back; see preprocess.h. One row per field. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "image/preprocess.h"

/* LATER_BOOL: written only if true, so that the text of what could be said before it existed stays.
 */
typedef enum kind { INT, BOOL, LATER_BOOL, FLOAT, FLOAT3, NAME } kind;

/* The name of an enumeration's value; NULL past the last. */
typedef const char *name_fn(int value);

static const char *resize_name(int value)
{
    return sx_resize_rule_name((sx_resize_rule)value);
}

static const char *crop_name(int value)
{
    static const char *const names[] = {
        [SX_CROP_NONE] = "none", [SX_CROP_CENTER] = "center", [SX_CROP_RANDOM] = "random"};
    return value < (int)SX_COUNT(names) ? names[value] : NULL;
}

static const char *scale_name(int value)
{
    static const char *const names[] = {[SX_SCALE_NONE] = "none",
                                        [SX_0_1] = "0..1",
                                        [SX_MINUS1_1] = "-1..1",
                                        [SX_MEAN_STD] = "mean/std"};
    return value < (int)SX_COUNT(names) ? names[value] : NULL;
}

static const struct field {
    const char *name;
    kind kind;
    size_t offset;
    name_fn *name_of; /* for NAME */
} fields[] = {
#define FIELD(name, kind, names)                          \
    {                                                     \
#name, kind, offsetof(sx_preprocess, name), names \
    }
    FIELD(height, INT, NULL),
    FIELD(width, INT, NULL),
    FIELD(channels, INT, NULL),
    FIELD(resize, NAME, resize_name),
    FIELD(extra_height, INT, NULL),
    FIELD(extra_width, INT, NULL),
    FIELD(crop, NAME, crop_name),
    FIELD(flip_left_right, BOOL, NULL),
    FIELD(scaled_decode, LATER_BOOL, NULL),
    FIELD(shear_degrees, FLOAT, NULL),
    FIELD(zoom, FLOAT, NULL),
    FIELD(brightness_max_delta, FLOAT, NULL),
    FIELD(contrast_lower, FLOAT, NULL),
    FIELD(contrast_upper, FLOAT, NULL),
    FIELD(clip, BOOL, NULL),
    FIELD(scale, NAME, scale_name),
    FIELD(mean, FLOAT3, NULL),
    FIELD(std, FLOAT3, NULL),
    FIELD(label_base, INT, NULL),
#undef FIELD
};

_Static_assert(sizeof(sx_resize_rule) == sizeof(int) && sizeof(sx_crop) == sizeof(int) &&
                   sizeof(sx_scale) == sizeof(int),
               "NAME fields are read and written as int");

static json_t *write_field(const struct field *f, const void *at)
{
    const float *x = at;
    switch (f->kind) {
    case INT:
        return json_integer(*(const int *)at);
    case BOOL:
    case LATER_BOOL:
        return json_boolean(*(const bool *)at);
    case FLOAT:
        return json_real((double)x[0]);
    case FLOAT3:
        return json_pack("[f,f,f]", (double)x[0], (double)x[1], (double)x[2]);
    case NAME:
        return json_string(f->name_of(*(const int *)at));
    }
    return NULL;
}

sx_status sx_preprocess_to_json(const sx_preprocess *pre, json_t **out_json)
{
    json_t *object = json_object();
    for (size_t i = 0; i < SX_COUNT(fields) && object != NULL; i++) {
        const struct field *f = &fields[i];
        const void *at = (const char *)pre + f->offset;
        if (f->kind == LATER_BOOL && !*(const bool *)at) {
            continue;
        }
        if (json_object_set_new(object, f->name, write_field(f, at)) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    if (object == NULL) {
        return sx_no_memory("for preprocessing as JSON");
    }
    *out_json = object;
    return SX_OK;
}

static bool read_name(const struct field *f, const json_t *json, int *out)
{
    const char *text = json_string_value(json);
    for (int i = 0; text != NULL && f->name_of(i) != NULL; i++) {
        if (strcmp(f->name_of(i), text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_int(const json_t *json, int *out)
{
    json_int_t x = json_integer_value(json);
    if (!json_is_integer(json) || x < INT32_MIN || x > INT32_MAX) {
        return false;
    }
    *out = (int)x;
    return true;
}

static bool read_floats(const json_t *json, float *out)
{
    if (json_array_size(json) != 3) {
        return false;
    }
    for (size_t c = 0; c < 3; c++) {
        const json_t *x = json_array_get(json, c);
        if (!json_is_number(x)) {
            return false;
        }
        out[c] = (float)json_number_value(x);
    }
    return true;
}

static bool read_field(const struct field *f, const json_t *json, void *at)
{
    switch (f->kind) {
    case INT:
        return read_int(json, at);
    case BOOL:
    case LATER_BOOL:
        *(bool *)at = json_is_true(json);
        return json_is_boolean(json);
    case FLOAT:
        *(float *)at = (float)json_number_value(json);
        return json_is_number(json);
    case FLOAT3:
        return read_floats(json, at);
    case NAME:
        return read_name(f, json, at);
    }
    return false;
}

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < SX_COUNT(fields); i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static sx_status bad_value(const struct field *f)
{
    static const char *const expected[] = {[INT] = "an integer",
                                           [BOOL] = "true or false",
                                           [LATER_BOOL] = "true or false",
                                           [FLOAT] = "a number",
                                           [FLOAT3] = "three numbers"};
    if (f->kind != NAME) {
        return sx_error(SX_INVALID_ARGUMENT, "preprocessing: \"%s\" must be %s", f->name,
                        expected[f->kind]);
    }
    char names[128] = "";
    for (int i = 0; f->name_of(i) != NULL; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", f->name_of(i));
    }
    return sx_error(SX_INVALID_ARGUMENT, "preprocessing: \"%s\" must be one of %s", f->name, names);
}

sx_status sx_preprocess_from_json(const json_t *json, sx_preprocess *out)
{
    if (!json_is_object(json)) {
        return sx_error(SX_INVALID_ARGUMENT, "preprocessing: expected a JSON object");
    }
    sx_preprocess pre = {0};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const struct field *f = find_field(name);
        if (f == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "preprocessing: unknown field \"%s\"", name);
        }
        if (!read_field(f, value, (char *)&pre + f->offset)) {
            return bad_value(f);
        }
    }
    SX_TRY(sx_preprocess_check(&pre));
    *out = pre;
    return SX_OK;
}
