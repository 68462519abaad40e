/* What is known of values while they are imported: small tensors whose nodes read constants only
 * are computed, so that axes, permutations and shapes that a model computes from constants become
 * attributes; and single integers of shapes that are known in part. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "base/checked.h"
#include "graph/attr_operands.h"
#include "graph/host.h"

enum { MAX_FOLDED_ELEMS = 64, MAX_FOLDED_INPUTS = 16 };

const sx_tensor *sx_tf_constant_of(const sx_builder *b, sx_value v)
{
    const sx_node *maker = sx_value_is(v) ? sx_builder_maker(b, v) : NULL;
    return maker != NULL && maker->op == &sx_op_constant
               ? &((const sx_constant_attrs *)maker->attrs)->value
               : NULL;
}

/* The elements of an integer vector that are all known, or contain N; false: they are not. */
static bool counts_of(const sx_builder *b, sx_value v, const sx_type *type,
                      sx_count out[SX_MAX_RANK])
{
    const int64_t n = type->rank == 0 ? 1 : type->rank == 1 ? type->dims[0] : -1;
    bool known = n >= 0 && n <= SX_MAX_RANK && sx_dtype_is_integer(type->dtype);
    for (int i = 0; i < n && known; i++) {
        bool is_dim = false;
        int64_t k = 0;
        known = sx_tf_peek(b, v, i, &is_dim, &k);
        out[i] = is_dim && k < 0 ? (sx_count){-k, 0} : (sx_count){0, k};
    }
    return known;
}

sx_status sx_tf_known_attrs(const sx_tf_op_node *x, const sx_op_def *op, const void **attrs,
                            const sx_type *inputs, int n_inputs, const sx_attr_operand **operands,
                            int *n_operands)
{
    void *own = NULL;
    for (; *n_operands > 0;
         (*operands)++,
         (*n_operands)--) { /* in order: the size of a slice follows from its begin */
        const sx_attr_operand *operand = &(*operands)[0];
        const sx_type type = sx_type_of_value(x->b, operand->value);
        sx_count counts[SX_MAX_RANK];
        const sx_known_operand known = {
            .value = sx_tf_constant_of(x->b, operand->value), .counts = counts, .type = &type};
        bool resolved = false;
        if (known.value == NULL && !counts_of(x->b, operand->value, &type, counts)) {
            break;
        }
        if (own == NULL) {
            own = sx_arena_alloc(&x->im->arena, op->attrs_bytes + 1, 1);
            if (own == NULL) {
                return sx_import_memory();
            }
            memcpy(own, *attrs, op->attrs_bytes);
        }
        sx_status status =
            sx_attr_from_operand(op, operand->row, own, inputs, n_inputs, &known, &resolved);
        if (status != SX_OK || !resolved) { /* what is wrong is an error when it runs */
            sx_status_free(status);
            break;
        }
        *attrs = own;
    }
    return SX_OK;
}

sx_status sx_tf_fold(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                     const sx_value *in, int n_in, const sx_type *type, sx_value *out,
                     bool *out_folded)
{
    sx_tensor t[MAX_FOLDED_INPUTS], y = {.type = *type};
    sx_type types[MAX_FOLDED_INPUTS];
    const unsigned barred =
        SX_OP_FUNCTION | SX_OP_EFFECT | SX_OP_STATE | SX_OP_BY_REPLICA | SX_OP_NO_HOST;
    *out_folded = false;
    if ((n_in == 0 && op != &sx_op_iota) || n_in > MAX_FOLDED_INPUTS || op == &sx_op_constant ||
        op->host == NULL || op->host_types != NULL || sx_op_has_regions(op) ||
        (op->flags & barred) != 0 || type->dtype == SX_STRING || !sx_type_is_static(type) ||
        sx_type_elems(type) > MAX_FOLDED_ELEMS) {
        return SX_OK;
    }
    for (int i = 0; i < n_in; i++) {
        const sx_tensor *known = sx_tf_constant_of(x->b, in[i]);
        if (known == NULL || known->type.dtype == SX_STRING ||
            sx_type_elems(&known->type) > MAX_FOLDED_ELEMS) {
            return SX_OK;
        }
        t[i] = *known;
        types[i] = known->type;
    }
    sx_type inferred[SX_MAX_OUTPUTS];
    int n_out = 1;
    sx_status fits = sx_infer_types(op, attrs, types, n_in, inferred, &n_out);
    const bool wrong = fits != SX_OK || !sx_type_equal(&inferred[0], type);
    sx_status_free(fits);
    if (wrong) { /* an error when it runs */
        return SX_OK;
    }
    sx_arena scratch;
    sx_arena_init(&scratch, 0);
    const int64_t bytes = sx_host_scratch_bytes(op, types, n_in, type, 1);
    void *room = bytes < 0 ? NULL : sx_arena_alloc(&scratch, (size_t)bytes, 1);
    y.data = sx_arena_alloc(&scratch, (size_t)sx_type_bytes(type) + 1, 1);
    sx_status status = room == NULL || y.data == NULL
                           ? sx_import_memory()
                           : sx_host_run(op, attrs, t, n_in, &y, 1, room, &scratch);
    if (status == SX_OK) {
        status = sx_tf_constant(x, *type, y.data, out);
        *out_folded = status == SX_OK;
    } else if (sx_status_code(status) != SX_RESOURCE_EXHAUSTED) { /* an error when it runs */
        sx_status_free(status);
        status = SX_OK;
    }
    sx_arena_deinit(&scratch);
    return status;
}

/* ---- Single integers ---- */

/* The product of n elements of a vector, of which one at most contains N. */
static bool peek_product(const sx_builder *b, sx_value v, int64_t n, int hops, bool *out_is_dim,
                         int64_t *out);

static bool peek(const sx_builder *b, sx_value v, int64_t at, int hops, bool *out_is_dim,
                 int64_t *out)
{
    enum { MAX_HOPS = 16 };
    const sx_node *maker = hops < MAX_HOPS ? sx_builder_maker(b, v) : NULL;
    if (maker == NULL || maker->n_attr_operands > 0) {
        return false;
    }
    if (maker->op == &sx_op_reshape || maker->op == &sx_op_cast || maker->op == &sx_op_identity) {
        return sx_dtype_is_integer(sx_type_of_value(b, maker->inputs[0]).dtype) &&
               peek(b, maker->inputs[0], at, hops + 1, out_is_dim, out);
    }
    if (maker->op == &sx_op_constant) {
        const sx_tensor *t = &((const sx_constant_attrs *)maker->attrs)->value;
        const bool i32 = t->type.dtype == SX_I32;
        if ((!i32 && t->type.dtype != SX_I64) || at < 0 || at >= sx_type_elems(&t->type)) {
            return false;
        }
        *out = i32 ? ((const int32_t *)t->data)[at] : ((const int64_t *)t->data)[at];
        return true;
    }
    if (maker->op == &sx_op_shape) {
        const sx_type type = sx_type_of_value(b, maker->inputs[0]);
        if (at < 0 || at >= type.rank || (type.dims[at] < 0 && !sx_dim_is_batch(type.dims[at]))) {
            return false;
        }
        *out = type.dims[at];
        *out_is_dim = true;
        return true;
    }
    if (maker->op == &sx_op_concat) {
        for (int i = 0; i < maker->n_inputs; i++) {
            const sx_type type = sx_type_of_value(b, maker->inputs[i]);
            if (type.rank != 1 || type.dims[0] < 0) {
                return false;
            }
            if (at < type.dims[0]) {
                return peek(b, maker->inputs[i], at, hops + 1, out_is_dim, out);
            }
            at -= type.dims[0];
        }
        return false;
    }
    if (maker->op == &sx_op_slice) {
        const sx_slice_attrs *slice = maker->attrs;
        return slice->begin.n == 1 &&
               peek(b, maker->inputs[0], at + slice->begin.v[0], hops + 1, out_is_dim, out);
    }
    if (maker->op == &sx_op_gather) {
        const sx_gather_attrs *gather = maker->attrs;
        int64_t index = 0;
        bool is_dim = false;
        return gather->axis == 0 && sx_type_of_value(b, maker->inputs[0]).rank == 1 &&
               peek(b, maker->inputs[1], at, hops + 1, &is_dim, &index) && !is_dim &&
               peek(b, maker->inputs[0], index, hops + 1, out_is_dim, out);
    }
    if (maker->op == &sx_op_reduce_prod) {
        const sx_type type = sx_type_of_value(b, maker->inputs[0]);
        return type.rank == 1 && type.dims[0] >= 0 && type.dims[0] <= SX_MAX_RANK &&
               peek_product(b, maker->inputs[0], type.dims[0], hops + 1, out_is_dim, out);
    }
    return false;
}

static bool peek_product(const sx_builder *b, sx_value v, int64_t n, int hops, bool *out_is_dim,
                         int64_t *out)
{
    int64_t product = 1;
    bool batch = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = 0;
        bool is_dim = false;
        if (!peek(b, v, i, hops, &is_dim, &k) || (k < 0 && (batch || !is_dim)) ||
            !sx_mul_i64(product, k < 0 ? -k : k, &product)) {
            return false;
        }
        batch = batch || k < 0;
    }
    *out = batch ? -product : product;
    *out_is_dim = batch;
    return true;
}

bool sx_tf_peek(const sx_builder *b, sx_value vector, int i, bool *out_is_dim, int64_t *out)
{
    *out_is_dim = false;
    return peek(b, vector, i, 0, out_is_dim, out);
}
