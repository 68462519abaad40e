/* See json_text.h. */
#include "io/json_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/shortest.h"
#include "io/crc32c.h"

struct writer {
    sx_buf text;
    size_t flags;
    int indent; /* 0: all on one line */
    bool compact;
    bool unwritable; /* jansson rejected a value: a string that is not UTF-8 */
};

static void write_value(struct writer *w, const json_t *json, int depth);

static void break_line(struct writer *w, int depth)
{
    if (w->indent > 0) {
        sx_buf_printf(&w->text, "\n%*s", w->indent * depth, "");
    }
}

static void separate(struct writer *w)
{
    sx_buf_puts(&w->text, w->compact || w->indent > 0 ? "," : ", ");
}

/* Strings, integers, true, false and null are printed by jansson. */
static void write_scalar(struct writer *w, const json_t *json)
{
    char *text = json_dumps(json, (w->flags & JSON_ENSURE_ASCII) | JSON_ENCODE_ANY);
    if (text == NULL) {
        w->unwritable = true;
        return;
    }
    sx_buf_puts(&w->text, text);
    free(text); /* jansson's */
}

static void write_real(struct writer *w, const json_t *json)
{
    char text[SX_NUMBER_TEXT];
    char *end = sx_print_f64(text, json_real_value(json)); /* finite, as json_real() requires */
    sx_buf_append(&w->text, text, (size_t)(end - text));
}

static void write_array(struct writer *w, const json_t *array, int depth)
{
    size_t n = json_array_size(array);
    sx_buf_putc(&w->text, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            separate(w);
        }
        break_line(w, depth + 1);
        write_value(w, json_array_get(array, i), depth + 1);
    }
    if (n > 0) {
        break_line(w, depth);
    }
    sx_buf_putc(&w->text, ']');
}

static void write_key(struct writer *w, const char *key)
{
    json_t *text = json_string_nocheck(key);
    write_scalar(w, text);
    json_decref(text);
    sx_buf_puts(&w->text, w->compact ? ":" : ": ");
}

static void write_object(struct writer *w, json_t *object, int depth)
{
    const char *key;
    json_t *value;
    bool first = true;
    sx_buf_putc(&w->text, '{');
    json_object_foreach(object, key, value)
    {
        if (!first) {
            separate(w);
        }
        first = false;
        break_line(w, depth + 1);
        write_key(w, key);
        write_value(w, value, depth + 1);
    }
    if (!first) {
        break_line(w, depth);
    }
    sx_buf_putc(&w->text, '}');
}

static void write_value(struct writer *w, const json_t *json, int depth)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        write_object(w, (json_t *)json, depth); /* jansson iterates over non-const objects only */
        return;
    case JSON_ARRAY:
        write_array(w, json, depth);
        return;
    case JSON_REAL:
        write_real(w, json);
        return;
    default:
        write_scalar(w, json);
    }
}

sx_status sx_json_text(const json_t *json, size_t flags, char **out_text)
{
    if (json == NULL) {
        return sx_no_memory("for a JSON value");
    }
    struct writer w = {
        .flags = flags, .indent = (int)(flags & 0x1F), .compact = (flags & JSON_COMPACT) != 0};
    sx_buf_init(&w.text, 0);
    write_value(&w, json, 0);
    sx_status status = sx_buf_status(&w.text);
    if (status == SX_OK && w.unwritable) {
        status = sx_error(SX_INVALID_ARGUMENT, "cannot write JSON: a string is not valid UTF-8");
    }
    if (status == SX_OK) {
        *out_text = sx_buf_take(&w.text, NULL);
    }
    sx_buf_deinit(&w.text);
    return status;
}

/* The checksum that the object should have, as text. */
static sx_status seal_of(json_t *object, char out[9])
{
    char *text = NULL;
    json_t *seal = json_incref(json_object_get(object, SX_JSON_SEAL));
    json_object_del(object, SX_JSON_SEAL);
    sx_status status = sx_json_text(object, JSON_COMPACT, &text);
    if (seal != NULL) {
        json_object_set_new(object, SX_JSON_SEAL, seal);
    }
    SX_TRY(status);
    snprintf(out, 9, "%08" PRIx32, sx_crc32c(0, text, strlen(text)));
    sx_free(text);
    return SX_OK;
}

sx_status sx_json_seal(json_t *object)
{
    char seal[9];
    SX_TRY(seal_of(object, seal));
    return json_object_set_new(object, SX_JSON_SEAL, json_string(seal)) == 0
               ? SX_OK
               : sx_no_memory("for JSON");
}

sx_status sx_json_check_seal(json_t *object)
{
    char expected[9];
    const char *seal = json_string_value(json_object_get(object, SX_JSON_SEAL));
    if (seal == NULL) {
        return sx_error(SX_DATA_LOSS, "its checksum is missing");
    }
    SX_TRY(seal_of(object, expected));
    return strcmp(seal, expected) == 0
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "its checksum is %s, expected %s", expected, seal);
}
