/* See host_ops.h. */
#include "graph/ops/host_ops.h"

#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

sx_status sx_string_room(const sx_kernel_call *c, int64_t bytes, char **out)
{
    if (bytes < 0 || bytes > SX_STRING_MAX_BYTES ||
        (c->arena->budget == NULL && c->arena->used_bytes > SX_STRINGS_MAX_BYTES)) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "a string of %lld bytes; one may have %d MiB, and all of a run %d MiB",
                        (long long)bytes, SX_STRING_MAX_BYTES >> 20, SX_STRINGS_MAX_BYTES >> 20);
    }
    *out = sx_arena_alloc(c->arena, (size_t)bytes + 1, 1);
    return *out != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

sx_status sx_string_copy(const sx_kernel_call *c, const void *data, size_t size, sx_bytes *out)
{
    char *room;
    SX_TRY(sx_string_room(c, (int64_t)size, &room));
    if (size > 0) {
        memcpy(room, data, size);
    }
    *out = (sx_bytes){room, size};
    return SX_OK;
}

sx_buf sx_string_buf(const sx_kernel_call *c)
{
    sx_buf buf;
    sx_buf_init(&buf, SX_STRING_MAX_BYTES);
    buf.budget = c->arena->budget;
    return buf;
}

sx_status sx_string_put(const sx_kernel_call *c, int output, int64_t k, sx_buf *buf)
{
    SX_TRY(sx_buf_status(buf));
    SX_TRY(sx_string_copy(c, sx_buf_text(buf), buf->size, &c->out[output].s[k]));
    sx_buf_reset(buf);
    return SX_OK;
}

bool sx_splits_are_sound(const sx_host_tensor *splits, int64_t n)
{
    const int64_t last = sx_type_elems(&splits->type) - 1;
    bool sound = last >= 0 && splits->i[0] == 0 && splits->i[last] == n;
    for (int64_t k = 0; k < last && sound; k++) {
        sound = splits->i[k] <= splits->i[k + 1];
    }
    return sound;
}

sx_status sx_require_splits(const sx_kernel_call *c, int n_splits, int64_t rows)
{
    for (int i = 0; i < n_splits; i++) {
        const int64_t below = i + 1 < n_splits ? sx_type_elems(&c->in[i + 1].type) - 1 : rows;
        if (!sx_splits_are_sound(&c->in[i], below)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "splits %d, %s, do not ascend from 0 to %lld, the rows below", i,
                            SX_TEXT(&c->in[i].type), (long long)below);
        }
    }
    return SX_OK;
}

sx_status sx_require_made(const char *what, const sx_type *type)
{
    const int64_t bytes = sx_host_bytes(type);
    if (bytes >= 0 && bytes <= SX_MADE_MAX_BYTES) {
        return SX_OK;
    }
    return sx_error(SX_RESOURCE_EXHAUSTED, "%s would be %s; at most %d MiB are supported", what,
                    SX_TEXT(type), SX_MADE_MAX_BYTES >> 20);
}

sx_status sx_infer_string_map(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("the input", &c->inputs[0], SX_STRING));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_require_name(const char *what, const char *value, const char *const *names)
{
    const char *text = value != NULL ? value : "";
    sx_buf known;
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            return SX_OK;
        }
    }
    sx_buf_init(&known, 0);
    for (int i = 0; names[i] != NULL; i++) {
        sx_buf_printf(&known, "%s\"%s\"", i == 0 ? "" : " or ", names[i]);
    }
    sx_status status = sx_error(SX_INVALID_ARGUMENT, "%s is \"%.60s\", expected %s", what, text,
                                sx_buf_text(&known));
    sx_buf_deinit(&known);
    return status;
}

sx_status sx_require_maybe(const char *what, const sx_type *t, sx_dtype dtype, int rank,
                           const char *form)
{
    SX_TRY(sx_require_dtype(what, t, dtype));
    return t->rank == SX_UNKNOWN_RANK ? SX_OK : sx_require_rank(what, t, rank, form);
}

sx_status sx_require_integers(const char *what, const sx_type *t, int rank, const char *form)
{
    SX_TRY(sx_require_index(what, t));
    return rank < 0 || t->rank == SX_UNKNOWN_RANK ? SX_OK : sx_require_rank(what, t, rank, form);
}

sx_status sx_merge_shapes(const char *what_a, const sx_type *a, const char *what_b,
                          const sx_type *b, sx_type *out)
{
    sx_type y = a->rank != SX_UNKNOWN_RANK ? *a : *b;
    y.dtype = a->dtype;
    bool agree = a->rank == SX_UNKNOWN_RANK || b->rank == SX_UNKNOWN_RANK || a->rank == b->rank;
    for (int d = 0; agree && d < SX_MIN(a->rank, b->rank); d++) {
        const bool open = sx_dim_is_unknown(a->dims[d]) || sx_dim_is_unknown(b->dims[d]);
        agree = open || a->dims[d] == b->dims[d];
        y.dims[d] = sx_dim_is_unknown(a->dims[d]) ? b->dims[d] : a->dims[d];
    }
    if (!agree) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s, and %s is %s, expected one shape", what_a,
                        SX_TEXT(a), what_b, SX_TEXT(b));
    }
    *out = y;
    return SX_OK;
}

sx_status sx_infer_broadcast_maybe(const sx_type *a, const sx_type *b, sx_type *out)
{
    if (a->rank == SX_UNKNOWN_RANK || b->rank == SX_UNKNOWN_RANK) {
        *out = sx_unknown_shape(a->dtype);
        return SX_OK;
    }
    sx_type y = {.dtype = a->dtype, .rank = SX_MAX(a->rank, b->rank)};
    for (int d = 1; d <= y.rank; d++) {
        const int64_t p = d <= a->rank ? a->dims[a->rank - d] : 1,
                      q = d <= b->rank ? b->dims[b->rank - d] : 1;
        const bool open = sx_dim_is_unknown(p) || sx_dim_is_unknown(q);
        if (p != q && p != 1 && q != 1 && !open) {
            return sx_error(SX_INVALID_ARGUMENT, "%s and %s do not broadcast", SX_TEXT(a),
                            SX_TEXT(b));
        }
        /* of an unknown one and 1 nothing is known, of an unknown one and another the other */
        y.dims[y.rank - d] = p == 1 ? q : q == 1 || !sx_dim_is_unknown(p) ? p : q;
    }
    *out = y;
    return SX_OK;
}

sx_status sx_infer_same_or_scalar(const sx_type *types, int n, sx_type *out)
{
    sx_type y = types[0];
    bool open = y.rank == SX_UNKNOWN_RANK; /* it may be a scalar */
    for (int i = 1; i < n; i++) {
        if (types[i].rank == 0) {
            continue;
        }
        if (types[i].rank == SX_UNKNOWN_RANK) {
            open = open || y.rank == 0;
        } else if (y.rank == 0 || y.rank == SX_UNKNOWN_RANK) {
            y = types[i];
            open = false;
        } else {
            SX_TRY(sx_merge_shapes("an input", &y, "another", &types[i], &y));
        }
    }
    *out = open ? sx_unknown_shape(y.dtype) : y;
    return SX_OK;
}

sx_status sx_infer_shaped(const char *what, const sx_type *shape, sx_dtype dtype, sx_type *out)
{
    const int64_t rank = sx_vector_size(shape);
    sx_type y = sx_unknown_shape(dtype);
    SX_TRY(sx_require_integers(what, shape, 1, "[rank]"));
    if (rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s; at most rank %d is supported", what,
                        SX_TEXT(shape), SX_MAX_RANK);
    }
    if (rank >= 0) {
        y.rank = (int)rank;
        for (int d = 0; d < rank; d++) {
            y.dims[d] = SX_UNKNOWN_DIM;
        }
    }
    *out = y;
    return SX_OK;
}

sx_status sx_host_types_inferred(const sx_kernel_call *c, sx_status (*infer)(sx_infer_context *),
                                 int n_outputs, sx_type *out_types)
{
    sx_type inputs[SX_SAMPLE_MAX_INPUTS];
    for (int i = 0; i < c->n_in; i++) {
        inputs[i] = c->in[i].type;
    }
    SX_TRY(infer(&(sx_infer_context){.attrs = c->attrs,
                                     .inputs = inputs,
                                     .n_inputs = c->n_in,
                                     .outputs = out_types,
                                     .n_outputs = n_outputs}));
    for (int i = 0; i < n_outputs; i++) {
        SX_TRY(sx_require_made("the result", &out_types[i]));
    }
    return SX_OK;
}

sx_status sx_shaped_type(const char *what, const sx_host_tensor *shape, sx_dtype dtype,
                         sx_type *out)
{
    sx_type y;
    SX_TRY(sx_infer_shaped(what, &shape->type, dtype, &y));
    for (int d = 0; d < y.rank; d++) {
        y.dims[d] = shape->i[d];
        if (y.dims[d] < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %d of %s is %lld", d, what,
                            (long long)y.dims[d]);
        }
    }
    *out = y;
    return sx_require_made("the result", &y);
}

sx_status sx_infer_items(const char *what_first, const sx_type *first, const char *what_all,
                         const sx_type *all, int64_t n, sx_type *out)
{
    sx_type y = sx_unknown_shape(all->dtype);
    if (first->rank != SX_UNKNOWN_RANK && all->rank != SX_UNKNOWN_RANK) {
        bool begins = first->rank <= all->rank;
        for (int d = 0; begins && d < first->rank; d++) {
            begins = first->dims[d] < 0 || all->dims[d] < 0 || first->dims[d] == all->dims[d];
        }
        y.rank = all->rank - first->rank + 1;
        if (!begins || y.rank > SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s is %s and %s is %s, expected the first dimensions of %s, and items "
                            "of rank %d at most",
                            what_first, SX_TEXT(first), what_all, SX_TEXT(all), what_all,
                            SX_MAX_RANK - 1);
        }
        y.dims[0] = n;
        memcpy(y.dims + 1, all->dims + first->rank, (size_t)(y.rank - 1) * sizeof(*y.dims));
    }
    *out = y;
    return SX_OK;
}

const char *sx_string_quote(const sx_bytes *s, char *out, size_t size)
{
    sx_buf utf8, text;
    sx_buf_init(&utf8, 0);
    sx_buf_init(&text, 0);
    sx_buf_put_utf8(&utf8, s->data, SX_MIN(s->size, 24));
    sx_buf_put_visible(&text, sx_buf_text(&utf8), utf8.size, "");
    snprintf(out, size, "\"%s%s\"", sx_buf_text(&text), s->size > 24 ? "..." : "");
    sx_buf_deinit(&utf8);
    sx_buf_deinit(&text);
    return out;
}

/* ---- Gradients ---- */

sx_value sx_build_typed(sx_builder *b, const sx_op_def *op, const void *attrs,
                        const sx_value *inputs, int n_inputs, const sx_type *types, int n_types)
{
    return sx_build_node(b, &(sx_node_spec){.op = op,
                                            .attrs = attrs,
                                            .inputs = inputs,
                                            .n_inputs = n_inputs,
                                            .types = types,
                                            .n_types = n_types,
                                            .device = b->device,
                                            .file = b->file,
                                            .line = b->line});
}

sx_value sx_numbers_to(sx_builder *b, int64_t n)
{
    const sx_iota_attrs attrs = {.shape = {1, {n}}, .dtype = SX_I64};
    return sx_build(b, &sx_op_iota, &attrs, NULL, 0);
}

sx_value sx_reshape_dims(sx_builder *b, sx_value x, int rank, const int64_t *dims)
{
    const sx_shape_attrs attrs = {.shape = sx_ints_of(rank, dims)};
    return sx_build_op(b, reshape, &attrs, x);
}

sx_value sx_index_column(sx_builder *b, sx_value indices, int64_t k)
{
    const int64_t n = sx_type_of_value(b, indices).dims[0];
    const sx_slice_attrs column = {.begin = {2, {0, k}}, .size = {2, {n, 1}}};
    return sx_reshape_dims(b, sx_build_op(b, slice, &column, indices), 1, &n);
}

sx_value sx_add_rows(sx_builder *b, sx_value x, sx_value at, sx_value dy)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD, .check = SX_SCATTER_SKIP_NEGATIVE};
    sx_type type = sx_type_of_value(b, at);
    type.dims[type.rank++] = 1;
    return sx_build_op(b, tensor_scatter, &add, sx_zeros_of(b, x), sx_reshape_to(b, at, &type), dy);
}

sx_value sx_sum_all(sx_builder *b, sx_value x)
{
    sx_reduce_attrs all = {.axes = {.n = sx_type_of_value(b, x).rank}};
    for (int i = 0; i < all.axes.n; i++) {
        all.axes.v[i] = i;
    }
    return sx_build_op(b, reduce_sum, &all, x);
}

sx_value sx_zeros_of(sx_builder *b, sx_value y)
{
    const sx_type type = sx_type_of_value(b, y);
    const sx_shape_attrs attrs = {.shape = sx_ints_of(type.rank, type.dims)};
    return sx_build_op(b, broadcast_to, &attrs, sx_scalar(b, type.dtype, 0));
}
