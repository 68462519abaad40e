/* See option.h. */
#include "option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { MAX_NAME = 64 };

static char fold(char c)
{
    return c == '_' ? '-' : c;
}

int sx_name_distance(const char *a, const char *b)
{
    int row[MAX_NAME + 1], m = (int)strnlen(b, MAX_NAME);
    for (int j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (int i = 1; a[i - 1] != '\0' && i < MAX_NAME; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int replace = diagonal + (fold(a[i - 1]) != fold(b[j - 1]));
            diagonal = row[j];
            row[j] = SX_MIN(replace, 1 + SX_MIN(row[j], row[j - 1]));
        }
    }
    return row[m];
}

/* Does `word` (without dashes, up to `size`) name the option? */
static bool is_named(const char *name, const char *word, size_t size)
{
    size_t i = 0;
    while (i < size && name[i] != '\0' && fold(word[i]) == name[i]) {
        i++;
    }
    return i == size && name[i] == '\0';
}

static const sx_option *find(const sx_option *options, int n, const char *word, size_t size)
{
    for (int i = 0; i < n; i++) {
        if (is_named(options[i].name, word, size)) {
            return &options[i];
        }
    }
    return NULL;
}

static sx_status unknown_option(const sx_option *options, int n, const char *word, size_t size)
{
    char name[MAX_NAME] = "";
    memcpy(name, word, SX_MIN(size, sizeof(name) - 1));
    int best = -1, best_distance = 4;
    for (int i = 0; i < n; i++) {
        int distance = sx_name_distance(name, options[i].name);
        if (distance < best_distance) {
            best = i;
            best_distance = distance;
        }
    }
    if (best >= 0) {
        return sx_error(SX_INVALID_ARGUMENT, "no option --%s; did you mean --%s?", name,
                        options[best].name);
    }
    return sx_error(SX_INVALID_ARGUMENT, "no option --%s; --help lists them", name);
}

/* --- values --------------------------------------------------------------------------------------
 */

static sx_status check_range(const sx_option *o, double value, const char *text)
{
    bool bounded = o->min != 0 || o->max != 0;
    if (bounded && (value < o->min || (o->max > o->min && value > o->max))) {
        return o->max > o->min ? sx_error(SX_INVALID_ARGUMENT, "--%s is %s, expected %g to %g",
                                          o->name, text, o->min, o->max)
                               : sx_error(SX_INVALID_ARGUMENT, "--%s is %s, expected at least %g",
                                          o->name, text, o->min);
    }
    return SX_OK;
}

static sx_status set_int(const sx_option *o, const char *text, void *field)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected a whole number", o->name,
                        text);
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
    size_t size = strlen(text);
    for (const char *p = o->choices; p != NULL; p = strchr(p, '|'), p = p != NULL ? p + 1 : NULL) {
        if (size > 0 && strncmp(p, text, size) == 0 && (p[size] == '|' || p[size] == '\0')) {
            *(const char **)field = text;
            return SX_OK;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected %s", o->name, text, o->choices);
}

typedef sx_status set_fn(const sx_option *o, const char *text, void *field);

static set_fn *const setters[] = {
    [SX_OPTION_INT] = set_int,
    [SX_OPTION_FLOAT] = set_float,
    [SX_OPTION_STRING] = set_string,
    [SX_OPTION_CHOICE] = set_choice,
};

/* --- the walk over argv
 * ---------------------------------------------------------------------------- */

typedef struct walk {
    const sx_option *options;
    int n_options, argc, at;
    const char *const *argv;
    sx_invocation *inv;
} walk;

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

static void *field_of(walk *w, const sx_option *o)
{
    return (char *)w->inv->options + o->offset;
}

static sx_status add_to_list(walk *w, const sx_option *o, const char *word)
{
    sx_words *list = field_of(w, o);
    sx_invocation *inv = w->inv;
    if (inv->n_list_items + list->count + 1 >= SX_MAX_WORDS) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s: more than %d words", o->name, SX_MAX_WORDS);
    }
    /* a list that is not the newest in the storage moves to its end */
    if (list->count == 0 || list->items + list->count != inv->list_items + inv->n_list_items) {
        const char **moved = inv->list_items + inv->n_list_items;
        for (int i = 0; i < list->count; i++) {
            moved[i] = list->items[i];
        }
        list->items = moved;
        inv->n_list_items += list->count;
    }
    list->items[list->count++] = word;
    inv->n_list_items++;
    return SX_OK;
}

static sx_status take_list(walk *w, const sx_option *o, const char *attached)
{
    if (attached != NULL) {
        return add_to_list(w, o, attached);
    }
    int before = w->at;
    while (w->at < w->argc && !is_option(w->argv[w->at]) && strcmp(w->argv[w->at], "--") != 0) {
        SX_TRY(add_to_list(w, o, w->argv[w->at++]));
    }
    return w->at > before
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "--%s needs at least one %s", o->name, o->value);
}

static sx_status take_value(walk *w, const sx_option *o, const char *attached)
{
    if (o->kind == SX_OPTION_LIST) {
        return take_list(w, o, attached);
    }
    if (attached == NULL && w->at >= w->argc) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s needs a value: %s", o->name, o->value);
    }
    return setters[o->kind](o, attached != NULL ? attached : w->argv[w->at++], field_of(w, o));
}

static sx_status take_flag(walk *w, const sx_option *o, const char *attached, bool value)
{
    if (attached != NULL && strcmp(attached, "true") != 0 && strcmp(attached, "false") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "--%s is \"%s\", expected true or false", o->name,
                        attached);
    }
    bool *field = field_of(w, o);
    *field = attached != NULL ? strcmp(attached, "true") == 0 : value;
    return SX_OK;
}

/* --no-name and --noname of a flag, as TensorFlow's flags have it. */
static const sx_option *find_negated(const walk *w, const char *word, size_t size)
{
    if (size < 3 || strncmp(word, "no", 2) != 0) {
        return NULL;
    }
    size_t skip = word[2] == '-' || word[2] == '_' ? 3 : 2;
    const sx_option *o = find(w->options, w->n_options, word + skip, size - skip);
    return o != NULL && o->kind == SX_OPTION_FLAG ? o : NULL;
}

static sx_status take_option(walk *w)
{
    const char *word = w->argv[w->at++] + 2;
    const char *equals = strchr(word, '=');
    size_t size = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const char *attached = equals != NULL ? equals + 1 : NULL;
    if (is_named("help", word, size)) {
        w->inv->help = true;
        return SX_OK;
    }
    const sx_option *o = find(w->options, w->n_options, word, size);
    const sx_option *negated = o == NULL ? find_negated(w, word, size) : NULL;
    if (o == NULL && negated == NULL) {
        return unknown_option(w->options, w->n_options, word, size);
    }
    const sx_option *named = o != NULL ? o : negated;
    w->inv->given[named - w->options] = true;
    return named->kind == SX_OPTION_FLAG ? take_flag(w, named, attached, o != NULL)
                                         : take_value(w, named, attached);
}

static sx_status check_required(const walk *w)
{
    for (int i = 0; i < w->n_options; i++) {
        if (w->options[i].required && !w->inv->given[i]) {
            return sx_error(SX_INVALID_ARGUMENT, "--%s %s is required: %s", w->options[i].name,
                            w->options[i].value, w->options[i].help);
        }
    }
    return SX_OK;
}

sx_status sx_options_parse(const sx_option *options, int n_options, int argc,
                           const char *const *argv, sx_invocation *inv)
{
    walk w = {options, n_options, argc, 0, argv, inv};
    inv->words.items = inv->word_items;
    while (w.at < argc && !inv->help) {
        const char *word = argv[w.at];
        if (strcmp(word, "--") == 0) {
            inv->rest = (sx_words){(const char **)(uintptr_t)(argv + w.at + 1), argc - w.at - 1};
            break;
        }
        if (strcmp(word, "-h") == 0) {
            inv->help = true;
        } else if (is_option(word)) {
            SX_TRY(take_option(&w));
        } else if (inv->words.count == SX_MAX_WORDS) {
            return sx_error(SX_INVALID_ARGUMENT, "more than %d words", SX_MAX_WORDS);
        } else {
            inv->word_items[inv->words.count++] = word;
            w.at++;
        }
    }
    return inv->help ? SX_OK : check_required(&w);
}
