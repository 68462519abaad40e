/* See lookup_table.h. */
#include "graph/ops/lookup_table.h"

#include <string.h>

#include "io/file.h"

const char *const sx_table_kinds[] = {"static", "mutable", "dense", NULL};
const sx_attr_def sx_only_table_rows[SX_TABLE_ATTR_COUNT] = {
    SX_TABLE_ATTR_ROWS(sx_only_table_attrs)};

sx_status sx_infer_table(const sx_infer_context *c, int first_reserved)
{
    const sx_table_attrs *attrs = c->attrs;
    const int reserved = attrs->kind == SX_TABLE_DENSE ? 2 : 0;
    const sx_dtype dtypes[] = {attrs->keys, attrs->values};
    if (attrs->table == NULL || attrs->table[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "the table has no name");
    }
    for (int i = 0; i < 2; i++) {
        const sx_type type = sx_scalar_type(dtypes[i]);
        if (sx_carrier_of(dtypes[i]) == SX_CARRIER_NONE || sx_host_bytes(&type) < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the table's %s are %s, expected numbers or strings",
                            i == 0 ? "keys" : "values", sx_dtype_name(dtypes[i]));
        }
    }
    for (int d = 0; d < attrs->shape.n; d++) {
        if (attrs->shape.v[d] < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %d of the table's values is %lld", d,
                            (long long)attrs->shape.v[d]);
        }
    }
    if (first_reserved >= 0 && c->n_inputs != first_reserved + reserved) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %d", c->n_inputs,
                        first_reserved + reserved);
    }
    for (int i = 0; i < reserved && first_reserved >= 0; i++) {
        SX_TRY(sx_require_maybe("a reserved key", &c->inputs[first_reserved + i], attrs->keys, 0,
                                "a scalar"));
    }
    return SX_OK;
}

sx_type sx_table_values_type(const sx_table_attrs *attrs, const sx_type *keys)
{
    sx_type y = *keys;
    y.dtype = attrs->values;
    if (y.rank == SX_UNKNOWN_RANK || y.rank + attrs->shape.n > SX_MAX_RANK) {
        return sx_unknown_shape(attrs->values);
    }
    for (int d = 0; d < attrs->shape.n; d++) {
        y.dims[y.rank++] = attrs->shape.v[d];
    }
    return y;
}

sx_status sx_require_table(const sx_kernel_call *c, sx_table **out)
{
    const sx_table_attrs *attrs = c->attrs;
    *out = sx_tables_find(c->tables, attrs->table);
    return *out != NULL
               ? SX_OK
               : sx_error(SX_NOT_FOUND, "there is no table \"%.200s\" in this run", attrs->table);
}

sx_status sx_require_initialized(const sx_table *t)
{
    return sx_table_is_initialized(t)
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION, "table \"%.200s\" is not initialized",
                          sx_table_attrs_of(t)->table);
}

sx_status sx_require_free_key(const sx_kernel_call *c, int64_t k, int first)
{
    for (int i = first; i < c->n_in; i++) {
        const sx_host_tensor *key = &c->in[0], *reserved = &c->in[i];
        const size_t each = sx_carrier_bytes(key->type.dtype);
        const bool same = key->type.dtype == SX_STRING
                              ? key->s[k].size == reserved->s[0].size &&
                                    memcmp(key->s[k].data, reserved->s[0].data, key->s[k].size) == 0
                              : memcmp(key->b + (size_t)k * each, reserved->b, each) == 0;
        if (same) {
            return sx_error(SX_INVALID_ARGUMENT, "key %lld is the table's %s key", (long long)k,
                            i == first ? "empty" : "deleted");
        }
    }
    return SX_OK;
}

sx_status sx_read_asset(const sx_kernel_call *c, const char *what, const sx_bytes *name,
                        const char *below, char **out, size_t *out_size)
{
    const char *dir = c->tables != NULL ? sx_tables_dir(c->tables) : NULL;
    char *path = sx_arena_strndup(c->arena, name->data, name->size);
    sx_file *file = NULL;
    if (path == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    /* a model says which file is read: only its own */
    bool inside = dir != NULL && strlen(path) == name->size && path[0] != '/' && path[0] != '\0' &&
                  strncmp(path, below, strlen(below)) == 0;
    for (const char *at = path; inside && at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        inside = strncmp(at, "..", 2) != 0 || (at[2] != '/' && at[2] != '\0');
    }
    if (!inside) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s is %s, expected a file of the model's directory, which its assets name",
                        what, SX_QUOTE(name));
    }
    path = sx_arena_printf(c->arena, "%s/%s", dir, path);
    if (path == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    SX_TRY(sx_file_open_below(dir, path, &file));
    const uint64_t size = sx_file_size(file);
    *out = size < SIZE_MAX ? sx_arena_alloc(c->arena, (size_t)size + 1, 1) : NULL;
    sx_status status = *out == NULL ? sx_budget_error(c->arena->budget)
                                    : sx_file_read_at(file, 0, *out, (size_t)size);
    *out_size = (size_t)size;
    sx_file_close(file);
    return status;
}
