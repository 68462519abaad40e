/* See features.h. */
#include "graph/ops/features.h"

sx_status sx_feature_key(const sx_kernel_call *c, const sx_host_tensor *t, int64_t k,
                         const char **out)
{
    if (t->s[k].size > 0 && memchr(t->s[k].data, '\0', t->s[k].size) != NULL) {
        return sx_error(SX_UNIMPLEMENTED, "the key %s contains a zero byte", SX_QUOTE(&t->s[k]));
    }
    *out = sx_arena_strndup(c->arena, t->s[k].data, t->s[k].size);
    return *out != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

sx_status sx_feature_require(const char *key, const sx_example_feature *f, sx_dtype dtype)
{
    const sx_feature_kind kind = dtype == SX_STRING ? SX_FEATURE_BYTES
                                 : dtype == SX_F32  ? SX_FEATURE_FLOATS
                                                    : SX_FEATURE_INTS;
    return f->kind == SX_FEATURE_EMPTY || f->kind == kind
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "feature \"%.100s\" has %s values, expected %s", key,
                          sx_feature_kind_name(f->kind), sx_feature_kind_name(kind));
}

sx_status sx_feature_put(const sx_kernel_call *c, const sx_example_feature *f,
                         const sx_host_tensor *t, int64_t at)
{
    if (t->type.dtype == SX_I64) {
        sx_feature_ints(f, &t->i[at], f->count);
    } else if (t->type.dtype == SX_STRING) {
        sx_feature_bytes(f, &t->s[at], f->count);
        for (size_t k = 0; k < f->count; k++) {
            SX_TRY(sx_string_copy(c, t->s[at + (int64_t)k].data, t->s[at + (int64_t)k].size,
                                  &t->s[at + (int64_t)k]));
        }
    } else {
        float *values = sx_arena_array(c->arena, f->count + 1, float);
        if (values == NULL) {
            return sx_budget_error(c->arena->budget);
        }
        sx_feature_floats(f, values, f->count);
        for (size_t k = 0; k < f->count; k++) {
            t->f[at + (int64_t)k] = (double)values[k];
        }
    }
    return SX_OK;
}

sx_status sx_feature_refuse(sx_status status, int64_t r)
{
    sx_status refused = sx_error(sx_status_code(status) == SX_DATA_LOSS ? SX_INVALID_ARGUMENT
                                                                        : sx_status_code(status),
                                 "record %lld: %s", (long long)r, sx_status_message(status));
    sx_status_free(status);
    return refused;
}
