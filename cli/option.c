#include "option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/shortest.h"
#include "io/file.h"

enum { MAX_CONFIG_BYTES = 1 << 20 };

/* ---- Names ---- */

static char fold(char c)
{
    return c == '_' ? '-' : c;
}

/* Whether `word` (without dashes, `size` bytes) names the option. */
static bool is_named(const char *name, const char *word, size_t size)
{
    size_t i = 0;
    while (i < size && name[i] != '\0' && fold(word[i]) == name[i]) {
        i++;
    }
    return i == size && name[i] == '\0';
}

/* A row of one of the tables; NULL = none. */
typedef struct found {
    const sx_option_table *table;
    const sx_option *row;
    const char *typed; /* its name as the user wrote it */
} found;

static found find(sx_invocation *inv, const char *word, size_t size)
{
    for (size_t t = 0; t < SX_COUNT(inv->tables); t++) {
        for (int i = 0; i < inv->tables[t].n; i++) {
            if (is_named(inv->tables[t].rows[i].name, word, size)) {
                const sx_option *row = &inv->tables[t].rows[i];
                const char *typed = sx_arena_strndup(&inv->arena, word, size);
                return (found){&inv->tables[t], row, typed != NULL ? typed : row->name};
            }
        }
    }
    return (found){NULL, NULL, NULL};
}

const char *sx_option_typed(sx_invocation *inv, const char *name)
{
    for (size_t t = 0; t < SX_COUNT(inv->tables); t++) {
        for (int i = 0; i < inv->tables[t].n; i++) {
            if (strcmp(inv->tables[t].rows[i].name, name) == 0 && inv->tables[t].typed[i] != NULL) {
                return inv->tables[t].typed[i];
            }
        }
    }
    char *typed = inv->underscores ? sx_arena_strdup(&inv->arena, name) : NULL;
    for (char *c = typed; c != NULL && *c != '\0'; c++) {
        *c = *c == '-' ? '_' : *c;
    }
    return typed != NULL ? typed : name;
}

/* "-q": the flag of that letter. */
static found find_letter(const sx_invocation *inv, const char *word)
{
    bool is_letter = word[0] == '-' && word[1] != '\0' && word[2] == '\0';
    for (size_t t = 0; is_letter && t < SX_COUNT(inv->tables); t++) {
        for (int i = 0; i < inv->tables[t].n; i++) {
            if (inv->tables[t].rows[i].letter == word[1]) {
                return (found){&inv->tables[t], &inv->tables[t].rows[i],
                               inv->tables[t].rows[i].name};
            }
        }
    }
    return (found){NULL, NULL, NULL};
}

const char *sx_did_you_mean(sx_arena *arena, const char *name, const char *const *names,
                            size_t count, const char *otherwise)
{
    sx_buf near;
    sx_buf_init(&near, 4096);
    int n = sx_nearest_names(name, names, count, &near);
    const char *text =
        n > 0 ? sx_arena_printf(arena, "; did you mean %s?", sx_buf_text(&near)) : otherwise;
    sx_buf_deinit(&near);
    return text != NULL ? text : "";
}

static sx_status unknown_option(sx_invocation *inv, const char *word, size_t size,
                                const char *dashes)
{
    size = SX_MIN(size, 100);
    inv->underscores |= memchr(word, '_', size) != NULL;
    char *name = sx_arena_printf(&inv->arena, "%s%.*s", dashes, (int)size, word);
    char *alike = sx_arena_strdup(&inv->arena, name != NULL ? name : "");
    for (int i = 0; i < inv->n_hints; i++) {
        if (is_named(inv->hints[i].name, word, size)) {
            return sx_error(SX_INVALID_ARGUMENT, "unknown option %s%.*s; %s", dashes, (int)size,
                            word, inv->hints[i].hint);
        }
    }
    int n = inv->tables[0].n + inv->tables[1].n, count = 0;
    const char **names = sx_arena_array(&inv->arena, n + 1, const char *);
    if (name == NULL || alike == NULL || names == NULL) {
        return sx_no_memory("reading the options");
    }
    for (size_t i = strlen(dashes); inv->underscores && alike[i] != '\0'; i++) {
        alike[i] = alike[i] == '-' ? '_' : alike[i];
    }
    for (size_t t = 0; t < SX_COUNT(inv->tables); t++) {
        for (int i = 0; i < inv->tables[t].n; i++) {
            names[count] = sx_arena_printf(&inv->arena, "%s%s", dashes,
                                           sx_option_typed(inv, inv->tables[t].rows[i].name));
            count += names[count] != NULL;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "unknown option %s%s", name,
                    sx_did_you_mean(&inv->arena, alike, names, (size_t)count, ""));
}

/* ---- Values ---- */

const char *sx_option_size_text(int64_t bytes, char text[32])
{
    int unit = 0;
    while (bytes != 0 && unit < 4 && bytes % ((int64_t)1 << 10 * (unit + 1)) == 0) {
        unit++;
    }
    snprintf(text, 32, "%" PRId64 "%.1s", bytes >> 10 * unit, &"\0KMGT"[unit]);
    return text;
}

/* Integers are shown with all digits; 2^63 as a bound stands for INT64_MAX. */
static const char *format_bound(const sx_option *o, double bound, char text[32])
{
    if (o->kind == SX_OPTION_FLOAT) {
        snprintf(text, 32, "%.15g", bound);
    } else if (o->kind == SX_OPTION_SIZE && bound < 0x1p63) {
        sx_option_size_text((int64_t)bound, text);
    } else {
        snprintf(text, 32, "%" PRId64, bound >= 0x1p63 ? INT64_MAX : (int64_t)bound);
    }
    return text;
}

static sx_status out_of_range(const sx_option *o, const char *text)
{
    char least[32], most[32];
    format_bound(o, o->min, least);
    format_bound(o, o->max, most);
    return o->max != 0 ? sx_error(SX_INVALID_ARGUMENT, "--%s is %s, expected %s to %s", o->name,
                                  text, least, most)
                       : sx_error(SX_INVALID_ARGUMENT, "--%s is %s, expected at least %s", o->name,
                                  text, least);
}

static sx_status check_range(const sx_option *o, double value, const char *text)
{
    if ((o->min == 0 && o->max == 0) || (value >= o->min && (value <= o->max || o->max == 0))) {
        return SX_OK;
    }
    return out_of_range(o, text);
}

static sx_status set_int(const sx_option *o, const char *text, void *field)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (o->word.word != NULL && strcmp(text, o->word.word) == 0) {
        *(int64_t *)field = o->word.value;
        return SX_OK;
    }
    if (end == text || *end != '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected an integer%s%s", o->name,
                        text, o->word.word != NULL ? " or " : "",
                        o->word.word != NULL ? o->word.word : "");
    }
    if (errno == ERANGE) {
        sx_option bounds = *o;
        bounds.min = o->min == 0 && o->max == 0 ? -0x1p63 : o->min;
        bounds.max = o->max == 0 ? 0x1p63 : o->max;
        return out_of_range(&bounds, text);
    }
    SX_TRY(check_range(o, (double)value, text));
    *(int64_t *)field = value;
    return SX_OK;
}

/* 512M: K, M, G and T are powers of 1024; "iB" may follow. */
static sx_status set_size(const sx_option *o, const char *text, void *field)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool right = end != text && errno == 0;
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (o->word.word != NULL && strcmp(text, o->word.word) == 0) {
        *(int64_t *)field = o->word.value;
        return SX_OK;
    }
    if (unit != NULL) {
        int shift = 10 * (int)(unit - units + 1);
        right &= value >= 0 && value <= INT64_MAX >> shift;
        value = right ? value << shift : 0;
        end += strcmp(end + 1, "iB") == 0 ? 3 : 1;
    }
    if (!right || *end != '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected a size like 512M or 2G%s%s",
                        o->name, text, o->word.word != NULL ? ", or " : "",
                        o->word.word != NULL ? o->word.word : "");
    }
    SX_TRY(check_range(o, (double)value, text));
    *(int64_t *)field = value;
    return SX_OK;
}

static sx_status set_float(const sx_option *o, const char *text, void *field)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || value != value) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected a number", o->name, text);
    }
    SX_TRY(check_range(o, value, text));
    *(double *)field = value;
    return SX_OK;
}

static sx_status set_string(const sx_option *o, const char *text, void *field)
{
    (void)o;
    *(const char **)field = text;
    return SX_OK;
}

static sx_status set_choice(const sx_option *o, const char *text, void *field)
{
    size_t size = strchr(text, '|') == NULL ? strlen(text) : 0;
    for (const char *p = o->choices; p != NULL; p = strchr(p, '|'), p = p != NULL ? p + 1 : NULL) {
        if (size > 0 && strncmp(p, text, size) == 0 && (p[size] == '|' || p[size] == '\0')) {
            *(const char **)field = text;
            return SX_OK;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected %s", o->name, text, o->choices);
}

static sx_status set_flag(const sx_option *o, const char *text, void *field)
{
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected true or false", o->name,
                        text);
    }
    *(bool *)field = yes;
    return SX_OK;
}

typedef sx_status set_fn(const sx_option *o, const char *text, void *field);

static set_fn *const setters[] = {
    [SX_OPTION_FLAG] = set_flag,   [SX_OPTION_INT] = set_int,       [SX_OPTION_SIZE] = set_size,
    [SX_OPTION_FLOAT] = set_float, [SX_OPTION_STRING] = set_string, [SX_OPTION_CHOICE] = set_choice,
};

static bool is_list(const sx_option *o)
{
    return o->kind == SX_OPTION_LIST || o->kind == SX_OPTION_EACH;
}

/* The array is reallocated at 1, 2, 4, ... words. */
static sx_status add_word(sx_arena *arena, sx_words *list, const char *word)
{
    if ((list->count & (list->count - 1)) == 0) {
        const char **moved = sx_arena_array(arena, list->count * 2 + 1, const char *);
        if (moved == NULL) {
            return sx_no_memory("reading the options");
        }
        for (int i = 0; i < list->count; i++) {
            moved[i] = list->items[i];
        }
        list->items = moved;
    }
    list->items[list->count++] = word;
    return SX_OK;
}

bool sx_option_is_path(const sx_option *o)
{
    static const char *const paths[] = {"DIR", "FILE", "PATH", "DATA", "[NAME=]X.npy"};
    for (size_t i = 0; i < SX_COUNT(paths); i++) {
        if (o->value != NULL && strcmp(o->value, paths[i]) == 0) {
            return true;
        }
    }
    return false;
}

static sx_status set_value(sx_invocation *inv, found f, const char *text)
{
    void *field = (char *)f.table->values + f.row->offset;
    sx_option row = *f.row;
    row.name = f.typed; /* errors show the name as typed */
    if (text[0] == '\0' && f.row->empty_is_none) {
        return SX_OK;
    }
    if (text[0] == '\0' && sx_option_is_path(f.row)) {
        /* Names are appended to it: it would mean the current directory, or /. */
        return sx_error(SX_INVALID_ARGUMENT, "--%s: empty path", f.typed);
    }
    f.table->given[f.row - f.table->rows] = true;
    f.table->typed[f.row - f.table->rows] = f.typed;
    return is_list(f.row) ? add_word(&inv->arena, field, text)
                          : setters[f.row->kind](&row, text, field);
}

/* ---- The walk over argv ---- */

typedef struct walk {
    int argc, at;
    const char *const *argv;
    sx_invocation *inv;
} walk;

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-';
}

/* Up to the next option, long or short; "-" is a value. */
static sx_status take_list(walk *w, found f)
{
    int before = w->at;
    while (w->at < w->argc && (w->argv[w->at][0] != '-' || w->argv[w->at][1] == '\0')) {
        SX_TRY(set_value(w->inv, f, w->argv[w->at++]));
    }
    return w->at > before
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "--%s needs at least one %s", f.typed, f.row->value);
}

static sx_status take_value(walk *w, found f)
{
    if (f.row->kind == SX_OPTION_FLAG) {
        return set_value(w->inv, f, "true");
    }
    if (f.row->kind == SX_OPTION_LIST) {
        return take_list(w, f);
    }
    if (w->at >= w->argc) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s needs a value: %s", f.typed,
                        f.row->kind == SX_OPTION_CHOICE ? f.row->choices : f.row->value);
    }
    return set_value(w->inv, f, w->argv[w->at++]);
}

/* --no-NAME and --noNAME of a flag, as in TensorFlow. */
static found find_negated(sx_invocation *inv, const char *word, size_t size)
{
    if (size < 3 || strncmp(word, "no", 2) != 0) {
        return (found){NULL, NULL, NULL};
    }
    size_t skip = fold(word[2]) == '-' ? 3 : 2;
    found f = find(inv, word + skip, size - skip);
    return f.row != NULL && f.row->kind == SX_OPTION_FLAG ? f : (found){NULL, NULL, NULL};
}

static sx_status take_option(walk *w)
{
    const char *word = w->argv[w->at++] + 2;
    size_t size = strcspn(word, "=");
    const char *attached = word[size] == '=' ? word + size + 1 : NULL;
    if (is_named("help", word, size)) {
        w->inv->help = true;
        return SX_OK;
    }
    found f = find(w->inv, word, size);
    w->inv->underscores |= f.row != NULL && memchr(word, '_', size) != NULL;
    if (f.row != NULL) {
        return attached != NULL ? set_value(w->inv, f, attached) : take_value(w, f);
    }
    f = find_negated(w->inv, word, size);
    if (f.row != NULL && attached != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "--%.*s takes no value", (int)size, word);
    }
    if (f.row != NULL) {
        return set_value(w->inv, f, "false");
    }
    return unknown_option(w->inv, word, size, "--");
}

static sx_status unknown_short(const char *word)
{
    return sx_error(SX_INVALID_ARGUMENT, "unknown option %s; options start with --", word);
}

sx_status sx_options_parse(sx_invocation *inv, int argc, const char *const *argv)
{
    walk w = {argc, 0, argv, inv};
    while (w.at < argc && !inv->help) {
        const char *word = argv[w.at];
        if (strcmp(word, "--") == 0) {
            for (w.at++; w.at < argc; w.at++) {
                SX_TRY(add_word(&inv->arena, &inv->rest, argv[w.at]));
            }
        } else if (strcmp(word, "-h") == 0) {
            inv->help = true;
        } else if (find_letter(inv, word).row != NULL) {
            SX_TRY(set_value(inv, find_letter(inv, word), "true"));
            w.at++;
        } else if (is_option(word)) {
            SX_TRY(take_option(&w));
        } else if (word[0] == '-' && word[1] != '\0') {
            return unknown_short(word);
        } else {
            SX_TRY(add_word(&inv->arena, &inv->words, word));
            w.at++;
        }
    }
    return SX_OK;
}

static bool is_any(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

sx_status sx_options_parse_leading(sx_invocation *inv, int argc, const char *const *argv,
                                   int *out_used)
{
    static const char *const stops[] = {"--help", "-h", "--version", "-V"};
    walk w = {argc, 0, argv, inv};
    while (w.at < argc) {
        const char *word = argv[w.at];
        if (find_letter(inv, word).row != NULL) {
            SX_TRY(set_value(inv, find_letter(inv, word), "true"));
            w.at++;
        } else if (word[0] != '-' || is_any(word, stops, SX_COUNT(stops))) {
            break;
        } else if (is_option(word)) {
            SX_TRY(take_option(&w));
        } else {
            return unknown_short(word);
        }
    }
    *out_used = w.at;
    return SX_OK;
}

bool sx_option_given(const sx_invocation *inv, const char *name)
{
    for (size_t t = 0; t < SX_COUNT(inv->tables); t++) {
        for (int i = 0; i < inv->tables[t].n; i++) {
            if (strcmp(inv->tables[t].rows[i].name, name) == 0) {
                return inv->tables[t].given[i];
            }
        }
    }
    return false;
}

sx_status sx_options_exclusive(sx_invocation *inv, const char *const *names)
{
    const char *given[16];
    size_t n = 0;
    for (; *names != NULL; names++) {
        if (sx_option_given(inv, *names) && n < SX_COUNT(given)) {
            given[n++] = sx_option_typed(inv, *names);
        }
    }
    if (n < 2) {
        return SX_OK;
    }
    sx_buf text;
    sx_buf_init(&text, 4096);
    for (size_t i = 0; i < n; i++) {
        sx_buf_printf(&text, "%s--%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", given[i]);
    }
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT, "%s are mutually exclusive", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

/* ---- Configuration files ---- */

/* The value as command-line text; NULL if that is impossible. */
static const char *json_text(sx_arena *arena, const json_t *value)
{
    char number[SX_NUMBER_TEXT], *end;
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_string_value(value);
    case JSON_INTEGER:
        return sx_arena_printf(arena, "%lld", (long long)json_integer_value(value));
    case JSON_REAL:
        end = sx_print_f64(number, json_real_value(value));
        end -= end - number > 2 && memcmp(end - 2, ".0", 2) == 0 ? 2 : 0; /* 1e3 is 1000 */
        return sx_arena_printf(arena, "%.*s", (int)(end - number), number);
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return NULL;
    }
}

static sx_status set_json(sx_invocation *inv, found f, const json_t *value)
{
    const char *text = json_text(&inv->arena, value);
    return text != NULL
               ? set_value(inv, f, text)
               : sx_error(SX_INVALID_ARGUMENT, "\"%s\": expected %s", f.row->name,
                          is_list(f.row) ? "strings" : "a string, a number, true or false");
}

/* {"units": 128} is the same as --param units=128. */
static sx_status set_json_members(sx_invocation *inv, found f, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const char *text = json_text(&inv->arena, value);
        const char *pair = text != NULL ? sx_arena_printf(&inv->arena, "%s=%s", key, text) : NULL;
        if (pair == NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "\"%s\": \"%s\": expected a string, a number, true or false",
                            f.row->name, key);
        }
        SX_TRY(set_value(inv, f, pair));
    }
    return SX_OK;
}

static sx_status set_json_option(sx_invocation *inv, found f, const json_t *value)
{
    if (is_list(f.row) && json_is_object(value)) {
        return set_json_members(inv, f, value);
    }
    if (!is_list(f.row) || !json_is_array(value)) {
        return set_json(inv, f, value);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        SX_TRY(set_json(inv, f, json_array_get(value, i)));
    }
    return SX_OK;
}

static sx_status set_from_object(sx_invocation *inv, const json_t *object)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "expected a JSON object that maps option names to values");
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        found f = find(inv, key, strlen(key));
        if (f.row == NULL) {
            return unknown_option(inv, key, strlen(key), "");
        }
        if (strcmp(f.row->name, "config") == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "\"%s\": a configuration file cannot name another one", key);
        }
        if (!f.table->given[f.row - f.table->rows]) {
            SX_TRY(set_json_option(inv, f, value));
        }
    }
    return SX_OK;
}

sx_status sx_options_from_file(sx_invocation *inv, const char *path)
{
    json_error_t error;
    char *text = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read_stream(path, MAX_CONFIG_BYTES, NULL, &text, &size));
    inv->config = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    sx_free(text);
    if (inv->config == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s:%d: %s", path, error.line, error.text);
    }
    SX_TRY(set_from_object(inv, inv->config), "%s", path);
    return SX_OK;
}
