/* Several .npy arrays as the declared features: age.npy is "age". Read into memory whole. */
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/feature_spec.h"
#include "data/sources.h"
#include "io/npy.h"
#include "io/path.h"

/* The state of the memory source. */
struct columns {
    sx_arena arena; /* paths, names */
    int n;
    const char *names[SX_MAX_COMPONENTS];
    sx_tensor tensors[SX_MAX_COMPONENTS]; /* owned */
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

/* The file of a component; NULL = none. */
static const char *find_path(const char *const *paths, size_t count, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < count; i++) {
        const char *base = sx_path_basename(paths[i]);
        if (strncmp(base, name, size) == 0 && strcmp(base + size, ".npy") == 0) {
            return paths[i];
        }
    }
    return NULL;
}

static sx_status read_column(struct columns *c, const char *const *paths, size_t count,
                             const char *name, const sx_type *wanted, size_t budget)
{
    sx_tensor tensor;
    const char *path = find_path(paths, count, name);
    if (path == NULL) {
        return sx_error(SX_NOT_FOUND, "%s: there is no array %s.npy for the feature \"%s\"",
                        paths[0], name, name);
    }
    SX_TRY(sx_npy_read(path, budget, &tensor));
    const sx_type *has = &tensor.type;
    const bool fits =
        has->rank == wanted->rank + 1 &&
        memcmp(has->dims + 1, wanted->dims, (size_t)wanted->rank * sizeof(wanted->dims[0])) == 0 &&
        (has->dtype == wanted->dtype ||
         (wanted->dtype == SX_I32 && (has->dtype == SX_I64 || has->dtype == SX_U8)));
    if (!fits) {
        char is[SX_TYPE_TEXT], one[SX_TYPE_TEXT];
        sx_free(tensor.data);
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s; expected rows of %s", path,
                        sx_type_format(has, is, sizeof(is)),
                        sx_type_format(wanted, one, sizeof(one)));
    }
    c->names[c->n] = sx_arena_strdup(&c->arena, name);
    c->tensors[c->n++] = tensor;
    return c->names[c->n - 1] != NULL ? SX_OK : sx_no_memory("reading %s", path);
}

static sx_status read_all(struct columns *c, const char *const *paths, size_t count,
                          const sx_data_options *options)
{
    size_t budget =
        options->memory_budget > 0 ? (size_t)options->memory_budget : (size_t)sx_ram_bytes() / 2;
    for (int i = 0; i < options->n_features; i++) {
        sx_feature_spec spec = options->features[i];
        sx_type type, mask;
        spec.dtype = spec.dtype != SX_DTYPE_NONE ? spec.dtype : SX_F32;
        SX_TRY(sx_feature_spec_check(&spec, "feature", &type, &mask));
        if (c->n + 2 > SX_MAX_COMPONENTS) {
            return sx_error(SX_INVALID_ARGUMENT, "more than %d arrays", (int)SX_MAX_COMPONENTS - 1);
        }
        SX_TRY(read_column(c, paths, count, spec.name, &type, budget));
        if (spec.max_length > 0) {
            const char *name = sx_arena_printf(&c->arena, "%s" SX_MASK_SUFFIX, spec.name);
            if (name == NULL) {
                return sx_no_memory("reading %s", paths[0]);
            }
            SX_TRY(read_column(c, paths, count, name, &mask, budget));
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
    const char *where = sx_arena_strdup(&c->arena, paths[0]);
    sx_status status =
        where != NULL ? read_all(c, paths, count, options) : sx_no_memory("reading %s", paths[0]);
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
