/* Arrays in files: IDX pairs (MNIST) and .npy, read into memory whole. */
#include <sextant/complex.h>

#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/integer.h"
#include "base/memory.h"
#include "data/sources.h"
#include "io/idx.h"
#include "io/npy.h"

enum { MAX_CLASSES = 1 << 16 };

/* The state of the memory source. */
struct arrays {
    sx_tensor features, labels; /* data NULL = none; owned */
    sx_arena arena;             /* path, class names */
    const char *where;
    char **class_names;
    int class_count;
    int64_t largest,
        largest_at; /* of integer labels, counted from 0, and its first example; or -1 */
};

static void free_arrays(void *user)
{
    struct arrays *a = user;
    sx_free(a->features.data);
    sx_free(a->labels.data);
    sx_arena_deinit(&a->arena);
    sx_free(a);
}

typedef sx_status read_fn(const char *path, size_t max_bytes, sx_tensor *out_tensor);

static sx_status read_arrays(struct arrays *a, read_fn *read, const char *features,
                             const char *labels, const sx_data_options *options)
{
    size_t budget =
        options->memory_budget > 0 ? (size_t)options->memory_budget : (size_t)sx_ram_bytes() / 2;
    a->where = sx_arena_strdup(&a->arena, features);
    if (a->where == NULL) {
        return sx_no_memory("reading %s", features);
    }
    SX_TRY(read(features, budget, &a->features));
    if (sx_dtype_is_complex(a->features.type.dtype)) {
        return sx_error(SX_UNIMPLEMENTED, "%s: examples of %s", features,
                        sx_dtype_name(a->features.type.dtype));
    }
    if (labels == NULL) {
        return SX_OK;
    }
    SX_TRY(read(labels, budget, &a->labels));
    if (sx_dtype_is_complex(a->labels.type.dtype)) {
        return sx_error(SX_UNIMPLEMENTED, "%s: labels of %s", labels,
                        sx_dtype_name(a->labels.type.dtype));
    }
    if (a->features.type.rank < a->labels.type.rank) { /* given in the other order */
        sx_tensor swapped = a->features;
        a->features = a->labels;
        a->labels = swapped;
    }
    if (a->labels.type.rank != 1 || a->features.type.rank < 1) {
        char one[SX_TYPE_TEXT], two[SX_TYPE_TEXT];
        return sx_error(
            SX_INVALID_ARGUMENT,
            "%s and %s are %s and %s; expected an array of examples and one label per example",
            features, labels, sx_type_format(&a->features.type, one, sizeof(one)),
            sx_type_format(&a->labels.type, two, sizeof(two)));
    }
    if (a->labels.type.dims[0] != a->features.type.dims[0]) {
        return sx_error(SX_INVALID_ARGUMENT, "%s has %lld examples, but %s has %lld labels",
                        features, (long long)a->features.type.dims[0], labels,
                        (long long)a->labels.type.dims[0]);
    }
    return SX_OK;
}

/* Converts integer labels to int64 counted from 0; keeps others (targets of a regression). */
static sx_status widen_labels(struct arrays *a, int label_base)
{
    a->largest = a->largest_at = -1;
    if (a->labels.data == NULL || !sx_dtype_is_integer(a->labels.type.dtype)) {
        return SX_OK;
    }
    int64_t count = a->labels.type.dims[0];
    int64_t *wide = sx_alloc((size_t)count, sizeof(*wide));
    if (wide == NULL) {
        return sx_no_memory("reading %s", a->where);
    }
    for (int64_t i = 0; i < count; i++) {
        if (!sx_add_i64(sx_integer_at(&a->labels, (size_t)i), -(int64_t)label_base, &wide[i])) {
            sx_free(wide);
            return sx_error(SX_OUT_OF_RANGE, "%s: the label of example %lld is too small", a->where,
                            (long long)i);
        }
        if (wide[i] > a->largest) {
            a->largest = wide[i];
            a->largest_at = i;
        }
    }
    sx_free(a->labels.data);
    a->labels = (sx_tensor){sx_type_of(SX_I64, count), wide};
    return SX_OK;
}

/* "0", "1", ...: as many as there are labels. */
static sx_status name_classes(struct arrays *a)
{
    int64_t largest = a->largest;
    if (largest < 0 || largest >= MAX_CLASSES) {
        return SX_OK;
    }
    a->class_names = sx_arena_array(&a->arena, largest + 1, char *);
    for (int64_t i = 0; a->class_names != NULL && i <= largest; i++) {
        a->class_names[i] = sx_arena_printf(&a->arena, "%lld", (long long)i);
        if (a->class_names[i] == NULL) {
            return sx_no_memory("reading %s", a->where);
        }
    }
    a->class_count = (int)largest + 1;
    return a->class_names == NULL ? sx_no_memory("reading %s", a->where) : SX_OK;
}

/* uint8 of rank 3 or 4 are images; adds the channel of gray ones. */
static const char *name_features(sx_tensor *features)
{
    sx_type *type = &features->type;
    if (type->dtype != SX_U8 || type->rank < 3 || type->rank > 4) {
        return "features";
    }
    if (type->rank == 3) {
        type->dims[type->rank++] = 1;
    }
    return "image";
}

static void describe(const struct arrays *a, const char *kind, const char *name, int label_base,
                     sx_buf *text)
{
    char type[SX_TYPE_TEXT];
    sx_buf_printf(text, "%s: %s, %s: %s", a->where, kind, name,
                  sx_type_format(&a->features.type, type, sizeof(type)));
    if (a->labels.data == NULL) {
        sx_buf_puts(text, "; no labels\n");
    } else if (a->class_count > 0) {
        sx_buf_printf(text, "; %d class%s, labels from %d (highest: %lld, example %lld)\n",
                      a->class_count, a->class_count == 1 ? "" : "es", label_base,
                      (long long)(a->largest + label_base), (long long)a->largest_at);
    } else {
        sx_buf_printf(text, "; label: %s\n", sx_type_format(&a->labels.type, type, sizeof(type)));
    }
}

static sx_status open_arrays(struct arrays *a, read_fn *read, const char *kind,
                             const char *features, const char *labels,
                             const sx_data_options *options, sx_buf *text, sx_dataset **out_dataset)
{
    SX_TRY(read_arrays(a, read, features, labels, options));
    SX_TRY(widen_labels(a, options->label_base));
    SX_TRY(name_classes(a));
    const char *names[] = {name_features(&a->features), "label"};
    describe(a, kind, names[0], options->label_base, text);
    sx_tensor tensors[] = {a->features, a->labels};
    sx_memory_args args = {.count = a->labels.data == NULL ? 1 : 2,
                           .names = names,
                           .tensors = tensors,
                           .where = a->where,
                           .class_names = a->class_names,
                           .class_count = a->class_count,
                           .release = free_arrays,
                           .user = a};
    SX_TRY(sx_source_memory(&args, out_dataset), "%s", features);
    return SX_OK;
}

static sx_status make(read_fn *read, const char *kind, const char *features, const char *labels,
                      const sx_data_options *options, sx_buf *text, sx_dataset **out_dataset)
{
    struct arrays *a = sx_alloc(1, sizeof(*a));
    if (a == NULL) {
        return sx_no_memory("reading %s", features);
    }
    sx_arena_init(&a->arena, 0);
    sx_status status = open_arrays(a, read, kind, features, labels, options, text, out_dataset);
    if (status != SX_OK) {
        free_arrays(a);
    }
    return status;
}

sx_status sx_source_idx(const char *images, const char *labels, const sx_data_options *options,
                        sx_buf *text, sx_dataset **out_dataset)
{
    return make(sx_idx_read, "IDX", images, labels, options, text, out_dataset);
}

sx_status sx_source_npy(const char *features, const char *labels, const sx_data_options *options,
                        sx_buf *text, sx_dataset **out_dataset)
{
    return make(sx_npy_read, ".npy", features, labels, options, text, out_dataset);
}
