/* Several .npy arrays, in files or in an .npz archive, as the declared features: age.npy is "age".
 * Read into memory whole. */
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/feature_spec.h"
#include "data/sniff.h"
#include "data/sources.h"
#include "io/archive.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/path.h"

/* The state of the memory source. */
struct columns {
    sx_arena arena; /* names */
    size_t budget;
    int n;
    const char *names[SX_MAX_COMPONENTS];
    sx_type types[SX_MAX_COMPONENTS];     /* of an example; a string: uint8 pixels of an image */
    sx_tensor tensors[SX_MAX_COMPONENTS]; /* owned; data NULL = not found yet */
};

static void destroy(void *user)
{
    struct columns *c = user;
    for (int i = 0; i < c->n; i++) {
        sx_free(c->tensors[i].data);
    }
    sx_arena_deinit(&c->arena);
    sx_free(c);
}

/* ---- What is declared ---- */

static sx_status want(struct columns *c, const char *name, const sx_type *type)
{
    if (c->n == SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT, "more than %d arrays", (int)SX_MAX_COMPONENTS);
    }
    c->names[c->n] = name != NULL ? sx_arena_strdup(&c->arena, name) : NULL;
    c->types[c->n] = *type;
    return c->names[c->n++] != NULL ? SX_OK : sx_no_memory("reading .npy files");
}

static sx_status want_all(struct columns *c, const sx_data_options *options, const char *where)
{
    for (int i = 0; i < options->n_features; i++) {
        const sx_feature_spec *spec = &options->features[i];
        sx_type type, mask;
        SX_TRY(sx_feature_spec_check(spec, "feature", &type, &mask));
        if (type.dtype == SX_STRING && !spec->image) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: the feature \"%s\" is a string, which .npy files do not hold; use "
                            "TFRecords or CSV",
                            where, spec->name);
        }
        SX_TRY(want(c, spec->name, &type));
        if (spec->max_length > 0) {
            SX_TRY(want(c, sx_arena_printf(&c->arena, "%s" SX_MASK_SUFFIX, spec->name), &mask));
        }
    }
    return SX_OK;
}

/* ---- What is there ---- */

/* The column of the array in that file; -1 = none. */
static int find_column(const struct columns *c, const char *path)
{
    const char *base = sx_path_basename(path);
    for (int i = 0; i < c->n; i++) {
        size_t size = strlen(c->names[i]);
        if (strncmp(base, c->names[i], size) == 0 && strcmp(base + size, ".npy") == 0) {
            return i;
        }
    }
    return -1;
}

/* Takes the tensor. Integers are converted when they are fed. */
static sx_status put(struct columns *c, int i, const char *path, sx_tensor tensor)
{
    const sx_type *has = &tensor.type, *wanted = &c->types[i];
    const bool pixels =
        wanted->dtype == SX_STRING && has->dtype == SX_U8 && (has->rank == 3 || has->rank == 4);
    const bool fits =
        pixels ||
        (has->rank == wanted->rank + 1 &&
         memcmp(has->dims + 1, wanted->dims, (size_t)wanted->rank * sizeof(wanted->dims[0])) == 0 &&
         (has->dtype == wanted->dtype ||
          (wanted->dtype == SX_I32 && (has->dtype == SX_I64 || has->dtype == SX_U8))));
    if (!fits || c->tensors[i].data != NULL) {
        char is[SX_TYPE_TEXT], one[SX_TYPE_TEXT];
        sx_free(tensor.data);
        return fits ? sx_error(SX_INVALID_ARGUMENT, "%s: the archive has two arrays of this name",
                               path)
                    : sx_error(SX_INVALID_ARGUMENT, "%s is %s; expected rows of %s", path,
                               sx_type_format(has, is, sizeof(is)),
                               sx_type_format(wanted, one, sizeof(one)));
    }
    c->tensors[i] = tensor;
    return SX_OK;
}

static sx_status read_npz(struct columns *c, const char *path)
{
    const sx_archive_limits limits = {.max_member_bytes = c->budget, .max_total_bytes = c->budget};
    sx_archive *archive = NULL;
    sx_archive_member member;
    bool more = true;
    SX_TRY(sx_archive_open(path, &limits, &archive));
    sx_status status = sx_archive_next(archive, &member, &more);
    while (status == SX_OK && more) {
        int i = find_column(c, member.name);
        if (i >= 0) {
            sx_tensor tensor;
            const char *name = sx_arena_printf(&c->arena, "%s: %s", path, member.name);
            status = name != NULL ? sx_npz_read(archive, name, &tensor)
                                  : sx_no_memory("reading %s", path);
            if (status == SX_OK) {
                status = put(c, i, name, tensor);
            }
        }
        if (status == SX_OK) {
            status = sx_archive_next(archive, &member, &more);
        }
    }
    sx_archive_close(archive);
    return status;
}

static sx_status read_all(struct columns *c, const char *const *paths, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        /* one array for one feature may have any name */
        int i = count == 1 && c->n == 1 ? 0 : find_column(c, paths[k]);
        sx_file_kind kind;
        sx_tensor tensor;
        SX_TRY(sx_sniff_file(paths[k], &kind));
        if (kind == SX_FILE_ARCHIVE) {
            SX_TRY(read_npz(c, paths[k]));
        } else if (i >= 0) {
            SX_TRY(sx_npy_read(paths[k], c->budget, &tensor));
            SX_TRY(put(c, i, paths[k], tensor));
        }
    }
    for (int i = 0; i < c->n; i++) {
        if (c->tensors[i].data == NULL) {
            return sx_error(SX_NOT_FOUND, "%s: there is no array %s.npy for the feature \"%s\"",
                            paths[0], c->names[i], c->names[i]);
        }
    }
    return SX_OK;
}

sx_status sx_source_named_npy(const char *const *paths, size_t count,
                              const sx_data_options *options, sx_buf *text,
                              sx_dataset **out_dataset)
{
    struct columns *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    sx_arena_init(&c->arena, 0);
    c->budget =
        options->memory_budget > 0 ? (size_t)options->memory_budget : (size_t)sx_ram_bytes() / 2;
    const char *where = sx_arena_strdup(&c->arena, paths[0]);
    sx_status status =
        where != NULL ? want_all(c, options, where) : sx_no_memory("reading %s", paths[0]);
    if (status == SX_OK) {
        status = read_all(c, paths, count);
    }
    if (status == SX_OK) {
        sx_buf_printf(text, "%s: %d .npy arrays:", where, c->n);
        for (int i = 0; i < c->n; i++) {
            char type[SX_TYPE_TEXT];
            sx_buf_printf(text, "%s %s %s", i == 0 ? "" : ",", c->names[i],
                          sx_type_format(&c->tensors[i].type, type, sizeof(type)));
        }
        sx_buf_putc(text, '\n');
        const sx_memory_args args = {.count = c->n,
                                     .names = c->names,
                                     .tensors = c->tensors,
                                     .where = where,
                                     .release = destroy,
                                     .user = c};
        status = sx_source_memory(&args, out_dataset);
    }
    if (status != SX_OK) {
        destroy(c);
    }
    return status;
}
