/* Augmentations as a list, "flip_left_right,crop=10,contrast=0.2:1.8"; see preprocess.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/nearest.h"
#include "image/preprocess.h"

typedef enum kind { FLAG, PIXELS, NUMBER, RANGE } kind;

/* One row per item: its name, the field, and how its value is written. `offset` is of a bool, of
 * extra_height, of a float, of the first of two floats. */
static const struct item {
    const char *name;
    kind kind;
    size_t offset;
    const char *value;
} items[] = {
    {"flip_left_right", FLAG, offsetof(sx_preprocess, flip_left_right), ""},
    {"crop", PIXELS, offsetof(sx_preprocess, extra_height), "=PIXELS"},
    {"shear", NUMBER, offsetof(sx_preprocess, shear_degrees), "=DEGREES"},
    {"zoom", NUMBER, offsetof(sx_preprocess, zoom), "=FRACTION"},
    {"brightness", NUMBER, offsetof(sx_preprocess, brightness_max_delta), "=FRACTION"},
    {"contrast", RANGE, offsetof(sx_preprocess, contrast_lower), "=LOWER:UPPER"},
    {"scaled_decode", FLAG, offsetof(sx_preprocess, scaled_decode), ""},
};

_Static_assert(offsetof(sx_preprocess, contrast_upper) ==
                   offsetof(sx_preprocess, contrast_lower) + sizeof(float),
               "RANGE is two floats");

static sx_status unknown(const char *name)
{
    const char *names[SX_COUNT(items)];
    sx_buf near, all;
    sx_buf_init(&near, 1 << 12);
    sx_buf_init(&all, 1 << 12);
    for (size_t i = 0; i < SX_COUNT(items); i++) {
        names[i] = items[i].name;
        sx_buf_printf(&all, "%s%s%s", i > 0 ? ", " : "", items[i].name, items[i].value);
    }
    sx_status status =
        sx_nearest_names(name, names, SX_COUNT(items), &near) > 0
            ? sx_error(SX_INVALID_ARGUMENT, "unknown augmentation \"%s\"; did you mean %s?", name,
                       sx_buf_text(&near))
            : sx_error(SX_INVALID_ARGUMENT, "unknown augmentation \"%s\"; expected %s, or none",
                       name, sx_buf_text(&all));
    sx_buf_deinit(&all);
    sx_buf_deinit(&near);
    return status;
}

/* Reads "NUMBER" or "NUMBER:NUMBER" to the end of the text. */
static bool read_numbers(const char *text, int count, float *out)
{
    for (int i = 0; i < count; i++) {
        char *end;
        out[i] = strtof(text, &end);
        if (end == text || *end != (i + 1 < count ? ':' : '\0')) {
            return false;
        }
        text = end + 1;
    }
    return true;
}

/* `given` [SX_COUNT(items)] has the items set so far. */
static sx_status set_item(sx_preprocess *pre, bool *given, const char *text)
{
    char name[32];
    size_t size = strcspn(text, "=");
    const char *value = text[size] == '=' ? text + size + 1 : NULL;
    snprintf(name, sizeof(name), "%.*s", (int)size, text);
    size_t i = 0;
    while (i < SX_COUNT(items) && strcmp(items[i].name, name) != 0) {
        i++;
    }
    if (strcmp(text, "none") == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "augmentation \"none\" cannot be combined with others");
    }
    if (i == SX_COUNT(items)) {
        return unknown(name);
    }
    if (given[i]) {
        return sx_error(SX_INVALID_ARGUMENT, "augmentation \"%s\" is given twice", name);
    }
    given[i] = true;
    void *field = (char *)pre + items[i].offset;
    float numbers[2] = {0};
    bool good = items[i].kind == FLAG
                    ? value == NULL
                    : value != NULL && read_numbers(value, items[i].kind == RANGE ? 2 : 1, numbers);
    if (items[i].kind == PIXELS) {
        good = good && numbers[0] >= 1 && numbers[0] < 1 << 16 && numbers[0] == (int)numbers[0];
    }
    if (!good) {
        return sx_error(SX_INVALID_ARGUMENT, "augmentation \"%s\": expected %s%s", text, name,
                        items[i].value);
    }
    switch (items[i].kind) {
    case FLAG:
        *(bool *)field = true;
        break;
    case PIXELS:
        pre->extra_height = pre->extra_width = (int)numbers[0];
        pre->crop = SX_CROP_RANDOM;
        break;
    case NUMBER:
        *(float *)field = numbers[0];
        break;
    case RANGE:
        memcpy(field, numbers, sizeof(numbers));
        break;
    }
    return SX_OK;
}

sx_status sx_preprocess_set_augment(sx_preprocess *pre, const char *list)
{
    sx_preprocess next = *pre;
    bool given[SX_COUNT(items)] = {false};
    next.crop = next.crop == SX_CROP_RANDOM ? SX_CROP_CENTER : next.crop;
    next.flip_left_right = next.scaled_decode = false;
    next.shear_degrees = next.zoom = next.brightness_max_delta = 0;
    next.contrast_lower = next.contrast_upper = 0;
    for (const char *at = list; strcmp(list, "none") != 0; at++) {
        char text[128];
        size_t size = strcspn(at, ",");
        snprintf(text, sizeof(text), "%.*s", (int)SX_MIN(size, sizeof(text) - 1), at);
        SX_TRY(set_item(&next, given, text));
        at += size;
        if (*at == '\0') {
            break;
        }
    }
    SX_TRY(sx_preprocess_check(&next));
    *pre = next;
    return SX_OK;
}

void sx_preprocess_put_augment(const sx_preprocess *pre, sx_buf *out)
{
    const char *separator = "";
    for (size_t i = 0; i < SX_COUNT(items); i++) {
        const void *field = (const char *)pre + items[i].offset;
        const float *numbers = field;
        bool on = items[i].kind == FLAG     ? *(const bool *)field
                  : items[i].kind == PIXELS ? pre->crop == SX_CROP_RANDOM
                  : items[i].kind == NUMBER ? numbers[0] > 0
                                            : numbers[1] > 0;
        if (!on) {
            continue;
        }
        sx_buf_printf(out, "%s%s", separator, items[i].name);
        if (items[i].kind == PIXELS) {
            sx_buf_printf(out, "=%d", pre->extra_height);
        } else if (items[i].kind != FLAG) {
            sx_buf_printf(out, "=%g", (double)numbers[0]);
        }
        if (items[i].kind == RANGE) {
            sx_buf_printf(out, ":%g", (double)numbers[1]);
        }
        separator = ",";
    }
    sx_buf_puts(out, separator[0] == '\0' ? "none" : "");
}
