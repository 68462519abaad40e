/* What is known of values before anything runs: nodes that are folded to constants, and integers
 * that depend on the batch, n·N + k, which attribute operands may become. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/specialize_trace.h"

enum {
    MAX_FOLDED_BYTES = 64 << 10,
    MAX_FOLDED_TOTAL_BYTES = 64 << 20,
    MAX_FOLDING_FACTOR = 32, /* memory of a kernel, by the bytes of what it may take and give */
    MAX_COUNTS = 64,         /* elements of an integer tensor that may depend on the batch */
};

/* ---- Folding ---- */

static int64_t bytes_of(const sx_tensor *t)
{
    const int64_t n = t->type.dtype == SX_STRING ? sx_type_elems(&t->type) : 0;
    int64_t bytes = SX_MAX(sx_host_bytes(&t->type), 0);
    for (int64_t i = 0; i < n; i++) {
        bytes += (int64_t)((const sx_bytes *)t->data)[i].size;
    }
    return bytes;
}

/* Runs the kernel on inputs of `had` bytes in `own`, which is bounded, and copies what it gives. */
static sx_status fold(sx_specializer *s, const sx_op_def *op, const void *attrs, sx_tensor *t,
                      int n_in, int64_t had, const sx_type *inferred, int n_out, sx_arena *own,
                      int *out_vals, bool *out_folded)
{
    const sx_host_context context = {.arena = own, .cancel = s->limits.cancel};
    sx_type *types = sx_arena_array(own, n_in + n_out, sx_type);
    int64_t made = 0;
    if (types == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        types[i] = t[i].type;
    }
    memcpy(types + n_in, inferred, (size_t)n_out * sizeof(*types));
    if (op->host_types != NULL) {
        SX_TRY(sx_host_types(op, attrs, t, n_in, types + n_in, n_out, &context));
    }
    for (int i = 0; i < n_out; i++) {
        const int64_t bytes = sx_host_bytes(&types[n_in + i]);
        if (bytes < 0 || !sx_add_i64(made, bytes, &made)) {
            return SX_OK;
        }
    }
    const int64_t total =
        s->limits.folded_bytes > 0 ? s->limits.folded_bytes : MAX_FOLDED_TOTAL_BYTES;
    const int64_t most = SX_MIN(had + MAX_FOLDED_BYTES, total - s->folded_bytes);
    const int64_t scratch = sx_host_scratch_bytes(op, types, n_in, types + n_in, n_out);
    if (made > most || scratch < 0 || scratch > 16 * (had + MAX_FOLDED_BYTES)) {
        return SX_OK;
    }
    for (int i = n_in; i < n_in + n_out; i++) {
        t[i] = (sx_tensor){types[i], sx_arena_alloc(own, (size_t)sx_host_bytes(&types[i]) + 1, 1)};
        if (t[i].data == NULL) {
            return sx_specialize_no_memory();
        }
    }
    void *room = sx_arena_alloc(own, (size_t)scratch, 1);
    if (room == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_host_run_within(op, attrs, t, n_in, t + n_in, n_out, room, &context));
    made = 0;
    for (int i = n_in; i < n_in + n_out; i++) {
        made += bytes_of(&t[i]); /* with the bytes of strings */
    }
    if (made > most) {
        return SX_OK;
    }
    for (int i = n_in; i < n_in + n_out; i++) {
        const int64_t strings = t[i].type.dtype == SX_STRING ? sx_type_elems(&t[i].type) : 0;
        const size_t bytes = (size_t)sx_host_bytes(&t[i].type);
        void *data = sx_arena_alloc(s->arena, bytes + 1, 1);
        if (data == NULL) {
            return sx_specialize_no_memory();
        }
        memcpy(data, t[i].data, bytes);
        for (int64_t k = 0; k < strings; k++) {
            sx_bytes *string = (sx_bytes *)data + k;
            string->data = sx_arena_memdup(s->arena, string->data, string->size);
            if (string->data == NULL) {
                return sx_specialize_no_memory();
            }
        }
        SX_TRY(sx_known_val(s, t[i].type, data, &out_vals[i - n_in]));
    }
    s->folded_bytes += made;
    *out_folded = true;
    return SX_OK;
}

sx_status sx_fold_node(sx_specializer *s, const sx_op_def *op, const void *attrs, const int *in,
                       int n_in, const sx_type *inferred, int n_out, int *out_vals,
                       bool *out_folded)
{
    int64_t had = 0;
    *out_folded = false;
    sx_tensor *t = sx_alloc((size_t)(n_in + n_out) + 1, sizeof(*t));
    if (t == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        int k = 0;
        while (in[k] != in[i]) {
            k++;
        }
        t[i] = *s->vals[in[i]].known;
        had += k == i ? bytes_of(&t[i]) : 0; /* the same value again is no more */
    }
    sx_budget room;
    sx_arena own;
    sx_budget_init(&room, "constant folding", MAX_FOLDING_FACTOR * (size_t)(had + MAX_FOLDED_BYTES),
                   s->arena->budget);
    sx_arena_init(&own, 0);
    own.budget = &room;
    sx_status status =
        fold(s, op, attrs, t, n_in, had, inferred, n_out, &own, out_vals, out_folded);
    sx_arena_deinit(&own);
    sx_free(t);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && sx_budget_refused(&room)) {
        sx_status_free(status); /* it is computed when the program runs, in that run's budget */
        status = SX_OK;
    }
    return status;
}

/* ---- Integers that depend on the batch ---- */

bool sx_read_count(const sx_trace_val *v, int64_t k, sx_count *out)
{
    if (v->counts != NULL) {
        *out = v->counts[k];
        return true;
    }
    int64_t carried[1];
    const size_t elem = sx_dtype_bytes(v->type.dtype);
    if (v->known == NULL || !sx_dtype_is_integer(v->type.dtype) || v->type.dtype == SX_U64) {
        return false;
    }
    sx_host_load(&(sx_host_tensor){.type = sx_scalar_type(v->type.dtype), .i = carried},
                 (const char *)v->known->data + (size_t)k * elem);
    *out = (sx_count){0, carried[0]};
    return true;
}

static bool count_zip(const sx_op_def *op, sx_count a, sx_count b, sx_count *out)
{
    if (op->id == SX_OPID_mul) {
        if (a.n != 0 && b.n != 0) {
            return false;
        }
        return sx_mul_i64(a.n, b.k, &out->n) && sx_mul_i64(b.n, a.k, &b.n) &&
               sx_add_i64(out->n, b.n, &out->n) && sx_mul_i64(a.k, b.k, &out->k);
    }
    if (op->id == SX_OPID_sub) {
        b = (sx_count){-b.n, -b.k};
    }
    return (op->id == SX_OPID_add || op->id == SX_OPID_sub) && sx_add_i64(a.n, b.n, &out->n) &&
           sx_add_i64(a.k, b.k, &out->k);
}

sx_status sx_fold_comparison(sx_specializer *s, const sx_op_def *op, const int *in,
                             const sx_type *type, int *out_val, bool *out_folded)
{
    *out_folded = false;
    if (op->id != SX_OPID_equal && op->id != SX_OPID_not_equal) {
        return SX_OK;
    }
    const int64_t elems = sx_type_elems(type);
    const sx_trace_val *a = &s->vals[in[0]], *b = &s->vals[in[1]];
    int64_t excluded = s->out->excluded;
    if ((a->counts == NULL && b->counts == NULL) || elems < 0 || elems > MAX_COUNTS) {
        return SX_OK;
    }
    const bool one_a = sx_type_elems(&a->type) == 1, one_b = sx_type_elems(&b->type) == 1;
    uint8_t *holds = sx_arena_alloc(s->arena, (size_t)elems + 1, 1);
    if (holds == NULL) {
        return sx_specialize_no_memory();
    }
    for (int64_t k = 0; k < elems; k++) {
        sx_count x, y;
        if ((!one_a && sx_type_elems(&a->type) != elems) ||
            (!one_b && sx_type_elems(&b->type) != elems) || !sx_read_count(a, one_a ? 0 : k, &x) ||
            !sx_read_count(b, one_b ? 0 : k, &y) || !count_zip(&sx_op_sub, x, y, &x)) {
            return SX_OK;
        }
        /* x.n N + x.k is 0 for one N, or for none */
        const int64_t size = x.n != 0 && x.k > -INT64_MAX && x.k % x.n == 0 ? -(x.k / x.n) : 0;
        if (size > 0 && excluded > 0 && excluded != size) {
            return SX_OK;
        }
        excluded = size > 0 ? size : excluded;
        holds[k] = (x.n == 0 && x.k == 0) == (op->id == SX_OPID_equal);
    }
    s->out->excluded = excluded;
    *out_folded = true;
    return sx_known_val(s, *type, holds, out_val);
}

/* Runs an operator that only moves elements on the elements' indices, to find out where they go. */
static sx_status count_moved(sx_specializer *s, const sx_op_def *op, const void *attrs,
                             const int *in, int n_in, const sx_type *type, sx_count *out,
                             bool *out_done)
{
    enum { MOST = 8 };
    sx_tensor t[MOST + 1];
    sx_type types[MOST + 1];
    sx_count all[MOST * MAX_COUNTS + 1] = {{0, 0}}; /* 0 = elements that the operator adds */
    int64_t ids[(MOST + 1) * MAX_COUNTS], n_all = 1;
    sx_pad_attrs pad;
    if (n_in > MOST || op->host_types != NULL) {
        return SX_OK;
    }
    if (op->id == SX_OPID_pad) { /* its value is no index: zeros in its place */
        pad = *(const sx_pad_attrs *)attrs;
        if (!(pad.value > -0x1p62 && pad.value < 0x1p62)) {
            return SX_OK;
        }
        all[0].k = (int64_t)pad.value;
        pad.value = 0;
        attrs = &pad;
    }
    for (int i = 0; i < n_in; i++) {
        const sx_trace_val *v = &s->vals[in[i]];
        const bool moved = op->moved == SX_MOVES_ALL || (op->moved >> i & 1) != 0;
        if (!moved) {
            if (v->known == NULL) {
                return SX_OK;
            }
            t[i] = *v->known;
            types[i] = t[i].type;
            continue;
        }
        types[i] = v->type;
        types[i].dtype = SX_I64;
        t[i] = (sx_tensor){types[i], ids + (size_t)i * MAX_COUNTS};
        for (int64_t k = 0, n = sx_type_elems(&v->type); k < n; k++) {
            if (!sx_read_count(v, k, &all[n_all])) {
                return SX_OK;
            }
            ((int64_t *)t[i].data)[k] = n_all++;
        }
    }
    types[n_in] = *type;
    types[n_in].dtype = SX_I64;
    t[n_in] = (sx_tensor){types[n_in], ids + (size_t)n_in * MAX_COUNTS};
    const int64_t scratch = sx_host_scratch_bytes(op, types, n_in, &types[n_in], 1);
    void *room = scratch < 0 ? NULL : sx_arena_alloc(s->arena, (size_t)scratch, 1);
    if (room == NULL) {
        return sx_specialize_no_memory();
    }
    SX_TRY(sx_host_run(op, attrs, t, n_in, &t[n_in], 1, room, s->arena));
    *out_done = true;
    for (int64_t k = 0, n = sx_type_elems(type); k < n && *out_done; k++) {
        const int64_t id = ((const int64_t *)t[n_in].data)[k];
        *out_done = id >= 0 && id < n_all;
        out[k] = all[*out_done ? id : 0];
    }
    return SX_OK;
}

sx_status sx_follow_counts(sx_specializer *s, const sx_op_def *op, const void *attrs, const int *in,
                           int n_in, const sx_type *type, const sx_count **out)
{
    const int64_t n = sx_type_elems(type);
    bool holds = op->id == SX_OPID_shape, done = false;
    *out = NULL;
    if (n < 0 || n > MAX_COUNTS || !sx_dtype_is_integer(type->dtype) || n_in < 1) {
        return SX_OK;
    }
    for (int i = 0; i < n_in && op->id != SX_OPID_shape; i++) {
        const int64_t elems = sx_type_elems(&s->vals[in[i]].type);
        holds = holds || s->vals[in[i]].counts != NULL;
        if (elems < 0 || elems > MAX_COUNTS) {
            return SX_OK;
        }
    }
    sx_count *counts = holds ? sx_arena_array(s->arena, n + 1, sx_count) : NULL;
    if (counts == NULL) {
        return holds ? sx_specialize_no_memory() : SX_OK;
    }
    if (op->id == SX_OPID_shape) {
        const sx_type *x = &s->vals[in[0]].type;
        for (int64_t k = 0; k < n; k++) {
            counts[k] = x->dims[k] < 0 ? (sx_count){-x->dims[k], 0} : (sx_count){0, x->dims[k]};
        }
        done = true;
    } else if (op->id == SX_OPID_cast || op->id == SX_OPID_identity) {
        done = true;
        for (int64_t k = 0; k < n && done; k++) {
            done = sx_read_count(&s->vals[in[0]], k, &counts[k]);
        }
    } else if (op->moved != 0) {
        SX_TRY(count_moved(s, op, attrs, in, n_in, type, counts, &done));
    } else if (op->id == SX_OPID_reduce_prod && s->vals[in[0]].type.rank == 1 &&
               ((const sx_reduce_attrs *)attrs)->axes.n == 1) {
        const int64_t elems = sx_type_elems(&s->vals[in[0]].type);
        counts[0] = (sx_count){0, 1};
        done = true;
        for (int64_t k = 0; k < elems && done; k++) {
            sx_count x;
            done = sx_read_count(&s->vals[in[0]], k, &x) &&
                   count_zip(&sx_op_mul, counts[0], x, &counts[0]);
        }
    } else if (n_in == 2) {
        const sx_trace_val *a = &s->vals[in[0]], *b = &s->vals[in[1]];
        done = true;
        for (int64_t k = 0; k < n && done; k++) {
            sx_count x, y;
            /* Scalars broadcast; other shapes must agree. */
            const bool same = (a->type.rank == 0 || sx_type_elems(&a->type) == n) &&
                              (b->type.rank == 0 || sx_type_elems(&b->type) == n);
            done = same && sx_read_count(a, a->type.rank == 0 ? 0 : k, &x) &&
                   sx_read_count(b, b->type.rank == 0 ? 0 : k, &y) &&
                   count_zip(op, x, y, &counts[k]);
        }
    }
    *out = done ? counts : NULL;
    return SX_OK;
}
