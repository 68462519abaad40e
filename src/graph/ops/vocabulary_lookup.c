/* vocabulary_lookup: the number of each string in a list of words.
 *
 *   x              strings, any shape
 *   words          strings [V], ascending as bytes, each once; not empty, without line breaks
 *   lines          int64 [V]: the place of each of them in the vocabulary, from 0 on
 *   first_id       of the vocabulary's first word; the others follow
 *   default_value  of a string that is none of them
 *   returns        int64 of x's shape
 *
 * Errors      INVALID_ARGUMENT  dtypes, words as above
 * Numbers     exact
 * TensorFlow  a static table, which the model's initialization fills from an asset with a word on
 *             each line: HashTableV2, InitializeTableFromTextFileV2, LookupTableFindV2; they are
 *             imported as lookup_table_find
 * Source      TensorFlow tf.lookup.StaticHashTable of a tf.lookup.TextFileInitializer */
#ifdef SX_PUBLIC
typedef struct sx_vocabulary_lookup_args {
    size_t struct_size;
    const char *file;         /* a word on each line; or NULL, and */
    const char *const *words; /* [n_words] */
    int n_words;
    int64_t first_id;      /* the number of the first word */
    int64_t default_value; /* of strings that are not in the vocabulary */
} sx_vocabulary_lookup_args;

/* The number of each string in a vocabulary, int64: its line, from .first_id on. The words become
 * part of the graph; an exported model has them as an asset. Errors: INVALID_ARGUMENT: no words, an
 * empty one, one that is there twice; NOT_FOUND: the file. */
sx_value sx_vocabulary_lookup(sx_builder *b, sx_value x, const sx_vocabulary_lookup_args *args);
#endif

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/host_ops.h"
#include "graph/ops/vocabulary_lookup.h"
#include "io/file.h"

typedef struct sx_vocabulary_lookup_attrs {
    sx_tensor words, lines;
    int64_t first_id, default_value;
} sx_vocabulary_lookup_attrs;

static const sx_attr_def vocabulary_lookup_attrs[] = {
    SX_ATTR(sx_vocabulary_lookup_attrs, words, SX_ATTR_TENSOR),
    SX_ATTR(sx_vocabulary_lookup_attrs, lines, SX_ATTR_TENSOR),
    SX_ATTR(sx_vocabulary_lookup_attrs, first_id, SX_ATTR_INT),
    SX_ATTR(sx_vocabulary_lookup_attrs, default_value, SX_ATTR_INT),
};

static int compare_words(const sx_bytes *a, const sx_bytes *b)
{
    const int order = memcmp(a->data, b->data, SX_MIN(a->size, b->size));
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static sx_status vocabulary_lookup_infer(sx_infer_context *c)
{
    const sx_vocabulary_lookup_attrs *attrs = c->attrs;
    const sx_type *words = &attrs->words.type, *lines = &attrs->lines.type;
    SX_TRY(sx_infer_string_map(c));
    if (words->dtype != SX_STRING || words->rank != 1 || words->dims[0] < 1 ||
        lines->dtype != SX_I64 || lines->rank != 1 || lines->dims[0] != words->dims[0]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "words are %s and lines %s, expected string[V] and int64[V], V > 0",
                        SX_TEXT(words), SX_TEXT(lines));
    }
    const sx_bytes *word = attrs->words.data;
    for (int64_t i = 0; i < words->dims[0]; i++) {
        const int64_t line = ((const int64_t *)attrs->lines.data)[i];
        if (line < 0 || line >= words->dims[0]) {
            return sx_error(SX_INVALID_ARGUMENT, "lines[%lld] is %lld, expected 0 to %lld",
                            (long long)i, (long long)line, (long long)words->dims[0] - 1);
        }
        if (word[i].size == 0 || memchr(word[i].data, '\n', word[i].size) != NULL ||
            memchr(word[i].data, '\r', word[i].size) != NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "line %lld of the vocabulary %s",
                            (long long)line + 1,
                            word[i].size == 0 ? "is empty" : "contains a line break");
        }
        if (i > 0 && compare_words(&word[i - 1], &word[i]) >= 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the vocabulary has %s twice, or is not sorted",
                            SX_QUOTE(&word[i]));
        }
    }
    c->outputs[0].dtype = SX_I64;
    return SX_OK;
}

static sx_status vocabulary_lookup_host(const sx_kernel_call *c)
{
    const sx_vocabulary_lookup_attrs *attrs = c->attrs;
    const sx_bytes *words = attrs->words.data;
    const int64_t *lines = attrs->lines.data;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        int64_t low = 0, high = attrs->words.type.dims[0];
        c->out[0].i[k] = attrs->default_value;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            const int order = compare_words(&c->in[0].s[k], &words[mid]);
            if (order == 0) {
                c->out[0].i[k] = SX_WRAP(lines[mid], +, attrs->first_id);
                break;
            }
            low = order > 0 ? mid + 1 : low;
            high = order < 0 ? mid : high;
        }
    }
    return SX_OK;
}

bool sx_same_vocabulary(const void *a, const void *b)
{
    const sx_vocabulary_lookup_attrs *x = a, *y = b;
    const int64_t n = x->words.type.dims[0];
    const sx_bytes *p = x->words.data, *q = y->words.data;
    bool same = x->first_id == y->first_id && y->words.type.dims[0] == n &&
                memcmp(x->lines.data, y->lines.data, (size_t)n * sizeof(int64_t)) == 0;
    for (int64_t i = 0; i < n && same; i++) {
        same = compare_words(&p[i], &q[i]) == 0;
    }
    return same;
}

sx_tf_value sx_vocabulary_table(sx_tf_writer *w, const char *name, const void *of)
{
    const sx_vocabulary_lookup_attrs *attrs = of;
    const int64_t n = attrs->words.type.dims[0], *lines = attrs->lines.data;
    sx_tf_value table = {-1, 0};
    int64_t missing = -1;
    sx_bytes *in_order = sx_alloc((size_t)n, sizeof(*in_order));
    if (in_order == NULL) {
        sx_tf_fail(w, sx_no_memory("exporting a vocabulary"));
        return table;
    }
    for (int64_t i = 0; i < n; i++) {
        in_order[lines[i]] = ((const sx_bytes *)attrs->words.data)[i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        missing = in_order[i].data == NULL ? i : missing;
    }
    if (missing >= 0) {
        sx_tf_fail(w, sx_error(SX_INVALID_ARGUMENT, "%s: no word is on line %lld", name,
                               (long long)missing + 1));
    } else {
        table = sx_tf_vocabulary(w, &(sx_tensor){attrs->words.type, in_order}, attrs->first_id);
    }
    sx_free(in_order);
    return table;
}

void sx_vocabulary_find(sx_tf_writer *w, const sx_tf_op *op, sx_tf_value table)
{
    const sx_vocabulary_lookup_attrs *attrs = op->attrs;
    const sx_tf_value otherwise =
        sx_tf_const(w, "default_value",
                    &(sx_tensor){sx_scalar_type(SX_I64), (void *)(uintptr_t)&attrs->default_value});
    op->out[0] =
        sx_tf_add(w, "LookupTableFindV2", NULL, sx_tf_in(table, op->in[0], otherwise),
                  sx_tf_attrs(sx_tf_attr_type("Tin", SX_STRING), sx_tf_attr_type("Tout", SX_I64)));
}

static void vocabulary_lookup_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_vocabulary_find(w, op, sx_vocabulary_table(w, op->name, op->attrs));
}

static const sx_bytes words[] = {{"a", 1}, {"ab", 2}, {"two words", 9}, {"\xc3\xa9t\xc3\xa9", 5}};
static const int64_t lines[] = {2, 0, 3, 1};
static const char *const asked[] = {"ab", "",  "two words", "a", "b", "\xc3\xa9t\xc3\xa9",
                                    "A",  NULL};
#define VOCABULARY(...)                                                                  \
    .attrs = &(const sx_vocabulary_lookup_attrs)                                         \
    {                                                                                    \
        .words = {{.dtype = SX_STRING, .rank = 1, .dims = {4}}, (void *)words},          \
        .lines = {{.dtype = SX_I64, .rank = 1, .dims = {4}}, (void *)lines}, __VA_ARGS__ \
    }
static const sx_op_sample vocabulary_lookup_samples[] = {
    {.name = "batch",
     .inputs = {{.type = {.dtype = SX_STRING, .rank = 2, .dims = {SX_BATCH, 3}},
                 .fill = SX_FILL_TEXT,
                 .texts = asked}},
     .n_inputs = 1,
     VOCABULARY(.default_value = -1)},
    {.name = "first_id",
     .inputs = {SX_SAMPLE_TEXTS(asked, 7)},
     .n_inputs = 1,
     VOCABULARY(.first_id = 2, .default_value = 1)},
};

/* ---- The public function ---- */

typedef struct entry {
    sx_bytes word;
    int64_t line;
} entry;

static int by_word(const void *a, const void *b)
{
    return compare_words(&((const entry *)a)->word, &((const entry *)b)->word);
}

/* The words of a file, in `arena`. */
static sx_status read_words(const char *path, sx_arena *arena, entry **out, int64_t *out_n)
{
    enum { MOST_BYTES = 1 << 28 };
    sx_file *file = NULL;
    SX_TRY(sx_file_open(path, &file));
    const uint64_t size = sx_file_size(file);
    char *text = size <= MOST_BYTES ? sx_arena_alloc(arena, (size_t)size + 1, 1) : NULL;
    sx_status status = size > MOST_BYTES
                           ? sx_error(SX_RESOURCE_EXHAUSTED, "%s has %llu bytes; the limit is %d",
                                      path, (unsigned long long)size, (int)MOST_BYTES)
                       : text == NULL ? sx_no_memory("for a vocabulary")
                                      : sx_file_read_at(file, 0, text, (size_t)size);
    sx_file_close(file);
    SX_TRY(status);
    int64_t n = 0, most = 1;
    for (uint64_t i = 0; i < size; i++) {
        most += text[i] == '\n';
    }
    *out = sx_arena_array(arena, most, entry);
    if (*out == NULL) {
        return sx_no_memory("for a vocabulary");
    }
    for (char *at = text, *end = text + size; at < end; n++) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const size_t length = (size_t)(stop - at);
        (*out)[n] = (entry){{at, length - (length > 0 && stop[-1] == '\r')}, n};
        at = stop + 1;
    }
    *out_n = n;
    return SX_OK;
}

static sx_status make_attrs(const sx_vocabulary_lookup_args *args, sx_arena *arena,
                            sx_vocabulary_lookup_attrs *out)
{
    entry *entries = NULL;
    int64_t n = args->n_words;
    if ((args->file != NULL) == (args->words != NULL) || (args->words != NULL && n < 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a vocabulary is a .file, or .words and .n_words, at least 1");
    }
    if (args->file != NULL) {
        SX_TRY(read_words(args->file, arena, &entries, &n), "vocabulary");
    } else {
        entries = sx_arena_array(arena, n, entry);
        for (int64_t i = 0; entries != NULL && i < n; i++) {
            entries[i] = (entry){{args->words[i], strlen(args->words[i])}, i};
        }
    }
    sx_bytes *sorted = sx_arena_array(arena, n + 1, sx_bytes);
    int64_t *places = sx_arena_array(arena, n + 1, int64_t);
    if (entries == NULL || sorted == NULL || places == NULL) {
        return sx_no_memory("for a vocabulary");
    }
    qsort(entries, (size_t)n, sizeof(*entries), by_word);
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = entries[i].word;
        places[i] = entries[i].line;
    }
    *out = (sx_vocabulary_lookup_attrs){.words = {sx_type_of(SX_STRING, n), sorted},
                                        .lines = {sx_type_of(SX_I64, n), places},
                                        .first_id = args->first_id,
                                        .default_value = args->default_value};
    return SX_OK;
}

sx_value sx_vocabulary_lookup_at(sx_builder *b, sx_value x, const sx_vocabulary_lookup_args *args,
                                 const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_vocabulary_lookup_args, args);
    sx_vocabulary_lookup_attrs attrs;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = make_attrs(args, &arena, &attrs);
    sx_value y = SX_NO_VALUE;
    if (status != SX_OK) {
        sx_builder_fail(b, sx_status_annotate(status, __FILE__, __LINE__,
                                              "%s:%d: vocabulary_lookup", file, line));
    } else {
        y = sx_build_at(b, &sx_op_vocabulary_lookup, &attrs, &x, 1, file, line);
    }
    sx_arena_deinit(&arena);
    return y;
}

const sx_op_def sx_op_vocabulary_lookup = {
    SX_OP_NAMED(vocabulary_lookup),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_vocabulary_lookup_attrs, vocabulary_lookup_attrs),
    .infer = vocabulary_lookup_infer,
    .host = vocabulary_lookup_host,
    .to_tf = vocabulary_lookup_to_tf,
    SX_OP_SAMPLES(vocabulary_lookup_samples),
};
