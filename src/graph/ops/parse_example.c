/* parse_example: features of tf.train.Example records.
 *
 *   records     strings [n], or one record, a scalar (then without the first dimension below)
 *   names       strings, which are not used
 *   keys        of sparse, dense and ragged features: three vectors (version 2), or a scalar for
 * each sparse and each dense feature (version 1) defaults    one for each dense feature: what a
 * record without it gets; empty: it must have it sparse_types, dense_types, ragged_types   int64,
 * float32 or string, one for each feature split_types    int32 or int64, one for each ragged
 * feature dense_shapes   of each dense feature its rank and dimensions; -1 for the first: of any
 * length, filled up with the default, a scalar returns     of the sparse features all indices int64
 * [k, 2], then all values [k], then all shapes int64 [2]; the dense ones [n, shape]; of the ragged
 * ones all values [k], then all splits [n + 1]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks, numbers of inputs; (running) a record that is no
 *                              Example, values of another type, another number of them than a dense
 *                              feature has, a missing one without a default
 *          RESOURCE_EXHAUSTED  (running) a result that is too large
 *          UNIMPLEMENTED       more than 256 outputs; ragged features of a scalar
 * Source   TensorFlow ParseExample, ParseExampleV2 (core/util/example_proto_fast_parsing.cc) */
#include "graph/ops/features.h"

typedef struct sx_parse_example_attrs {
    int64_t version;
    sx_tensor sparse_types, dense_types, ragged_types, split_types; /* int32 [features], or NULL */
    sx_tensor dense_shapes;                                         /* int64: rank, dims, ... */
} sx_parse_example_attrs;

static const sx_attr_def parse_example_attrs[] = {
    SX_ATTR(sx_parse_example_attrs, version, SX_ATTR_INT),
    SX_ATTR(sx_parse_example_attrs, sparse_types, SX_ATTR_TENSOR),
    SX_ATTR(sx_parse_example_attrs, dense_types, SX_ATTR_TENSOR),
    SX_ATTR(sx_parse_example_attrs, ragged_types, SX_ATTR_TENSOR),
    SX_ATTR(sx_parse_example_attrs, split_types, SX_ATTR_TENSOR),
    SX_ATTR(sx_parse_example_attrs, dense_shapes, SX_ATTR_TENSOR),
};

enum { MOST = SX_MAX_OUTPUTS };

/* The attributes, checked. Features: sparse, then dense, then ragged. */
typedef struct plan {
    int n_sparse, n_dense, n_ragged, n_inputs, first_default;
    sx_dtype dtypes[MOST], splits[MOST];
    sx_type shapes[MOST]; /* of the dense ones */
    bool grows[MOST];     /* the first dimension is of any length */
} plan;

static sx_status read_types(const sx_tensor *list, plan *p, int at, int *out_n)
{
    const int64_t n = list->data == NULL ? 0 : sx_type_elems(&list->type);
    if (list->data != NULL && (list->type.dtype != SX_I32 || list->type.rank != 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "a list of types is %s, expected int32[n]",
                        SX_TEXT(&list->type));
    }
    if (n > MOST - at) {
        return sx_error(SX_UNIMPLEMENTED, "it has more than %d outputs", MOST);
    }
    for (int i = 0; i < n; i++) {
        const int32_t dtype = ((const int32_t *)list->data)[i];
        if (dtype != SX_I64 && dtype != SX_F32 && dtype != SX_STRING) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "a feature's type is %d, expected int64, float32 or string", dtype);
        }
        p->dtypes[at + i] = (sx_dtype)dtype;
    }
    *out_n = (int)n;
    return SX_OK;
}

static sx_status read_plan(const sx_parse_example_attrs *a, int n_inputs, plan *p)
{
    SX_TRY(read_types(&a->sparse_types, p, 0, &p->n_sparse));
    SX_TRY(read_types(&a->dense_types, p, p->n_sparse, &p->n_dense));
    SX_TRY(read_types(&a->ragged_types, p, p->n_sparse + p->n_dense, &p->n_ragged));
    const int64_t n_splits = a->split_types.data == NULL ? 0 : sx_type_elems(&a->split_types.type);
    const int64_t n_shapes =
        a->dense_shapes.data == NULL ? 0 : sx_type_elems(&a->dense_shapes.type);
    const bool listed = a->split_types.data == NULL || a->split_types.type.dtype == SX_I32;
    bool sound = (a->version == 1 || a->version == 2) && listed && n_splits == p->n_ragged &&
                 (a->dense_shapes.data == NULL || a->dense_shapes.type.dtype == SX_I64);
    const int64_t *dims = a->dense_shapes.data;
    int64_t at = 0;
    for (int i = 0; i < p->n_dense && sound; i++) {
        sx_type *shape = &p->shapes[i];
        sound =
            at < n_shapes && dims[at] >= 0 && dims[at] < SX_MAX_RANK && dims[at] < n_shapes - at;
        *shape =
            (sx_type){.dtype = p->dtypes[p->n_sparse + i], .rank = sound ? (int)dims[at++] : 0};
        for (int d = 0; d < shape->rank; d++, at++) {
            sound = sound && (dims[at] >= 0 || (d == 0 && dims[at] == -1));
            p->grows[i] = p->grows[i] || dims[at] < 0;
            shape->dims[d] = SX_MAX(dims[at], 0);
        }
    }
    for (int i = 0; i < p->n_ragged && sound; i++) {
        const int32_t dtype = ((const int32_t *)a->split_types.data)[i];
        sound = dtype == SX_I32 || dtype == SX_I64;
        p->splits[i] = (sx_dtype)dtype;
    }
    p->first_default = a->version == 1 ? 2 + p->n_sparse + p->n_dense : 5;
    p->n_inputs = p->first_default + p->n_dense;
    if (!sound || at != n_shapes || n_inputs != p->n_inputs) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d inputs, %d sparse, %d dense and %d ragged features; shapes, types of "
                        "splits or the number of inputs do not match them",
                        n_inputs, p->n_sparse, p->n_dense, p->n_ragged);
    }
    return 3 * p->n_sparse + p->n_dense + 2 * p->n_ragged <= MOST
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "it has more than %d outputs", MOST);
}

static sx_status parse_example_infer(sx_infer_context *c)
{
    const sx_parse_example_attrs *attrs = c->attrs;
    const sx_type *records = c->inputs;
    plan p = {0};
    int at = 0;
    SX_TRY(read_plan(attrs, c->n_inputs, &p));
    for (int i = 0; i < p.first_default; i++) {
        SX_TRY(sx_require_dtype("a record or key", &c->inputs[i], SX_STRING));
    }
    for (int i = 0; i < p.n_dense; i++) {
        SX_TRY(sx_require_dtype("a default", &c->inputs[p.first_default + i], p.shapes[i].dtype));
    }
    if (records->rank > 1 || (records->rank == 0 && p.n_ragged > 0)) {
        return sx_error(records->rank > 1 ? SX_INVALID_ARGUMENT : SX_UNIMPLEMENTED,
                        "records are %s, expected a vector%s", SX_TEXT(records),
                        p.n_ragged > 0 ? "" : " or a scalar");
    }
    const bool known = records->rank >= 0, vector = records->rank == 1;
    const int64_t n = vector ? records->dims[0] : SX_UNKNOWN_DIM;
    const int64_t rank = known ? 1 + vector : SX_UNKNOWN_DIM;
    for (int i = 0; i < p.n_sparse; i++) {
        c->outputs[at++] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    }
    for (int i = 0; i < p.n_sparse; i++) {
        c->outputs[at++] = sx_type_of(p.dtypes[i], SX_UNKNOWN_DIM);
    }
    for (int i = 0; i < p.n_sparse; i++) {
        c->outputs[at++] = sx_type_of(SX_I64, rank);
    }
    for (int i = 0; i < p.n_dense; i++) {
        sx_type y =
            known ? (sx_type){.dtype = p.shapes[i].dtype} : sx_unknown_shape(p.shapes[i].dtype);
        if (vector) {
            y.dims[y.rank++] = n;
        }
        for (int d = 0; d < p.shapes[i].rank && known; d++) {
            y.dims[y.rank++] = d == 0 && p.grows[i] ? SX_UNKNOWN_DIM : p.shapes[i].dims[d];
        }
        c->outputs[at++] = y;
    }
    for (int i = 0; i < p.n_ragged; i++) {
        c->outputs[at++] = sx_type_of(p.dtypes[p.n_sparse + p.n_dense + i], SX_UNKNOWN_DIM);
    }
    for (int i = 0; i < p.n_ragged; i++) {
        c->outputs[at++] = sx_type_of(p.splits[i], n >= 0 ? n + 1 : SX_UNKNOWN_DIM);
    }
    c->n_outputs = at;
    return at > 0 ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "it has no feature");
}

/* ---- Records ---- */

/* The key of feature i; *out is text in the run's arena. */
static sx_status key_of(const sx_kernel_call *c, const plan *p, int64_t version, int i,
                        const char **out)
{
    const int kind = i < p->n_sparse ? 0 : i < p->n_sparse + p->n_dense ? 1 : 2;
    const int first = kind == 0 ? 0 : kind == 1 ? p->n_sparse : p->n_sparse + p->n_dense;
    const sx_host_tensor *t = &c->in[version == 1 ? 2 + i : 2 + kind];
    const int64_t at = version == 1 ? 0 : i - first;
    if (at >= sx_type_elems(&t->type)) {
        return sx_error(SX_INVALID_ARGUMENT, "the key of feature %d is missing", i);
    }
    return sx_feature_key(c, t, at, out);
}

/* The feature of that dtype; *out is NULL if the record does not have it. */
static sx_status find_feature(const sx_example *e, const char *key, sx_dtype dtype,
                              const sx_example_feature **out)
{
    *out = sx_example_find(e, key);
    if (*out != NULL && (*out)->kind == SX_FEATURE_EMPTY) {
        *out = NULL;
    }
    return *out != NULL ? sx_feature_require(key, *out, dtype) : SX_OK;
}

/* How many values a dense feature of a record has. */
static sx_status check_dense(const sx_kernel_call *c, const plan *p, int i, const char *key,
                             int64_t record, const sx_example_feature *f)
{
    const int64_t each = sx_dims_product(&p->shapes[i], p->grows[i] ? 1 : 0, p->shapes[i].rank);
    if (f == NULL && !p->grows[i] && sx_type_elems(&c->in[p->first_default + i].type) == 0 &&
        each > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "record %lld has no feature \"%.100s\", which has no default",
                        (long long)record, key);
    }
    const int64_t count = f == NULL ? 0 : (int64_t)f->count;
    if (f != NULL && (p->grows[i] ? each == 0 || count % each != 0 : count != each)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "feature \"%.100s\" of record %lld has %lld values, expected %s%lld", key,
                        (long long)record, (long long)count, p->grows[i] ? "a multiple of " : "",
                        (long long)each);
    }
    return SX_OK;
}

/* Parses every record. Without c->out counts the values of each feature, and the most of a record;
 * with it writes the outputs. */
static sx_status read_records(const sx_kernel_call *c, const plan *p, int64_t *counts,
                              int64_t *longest)
{
    const sx_parse_example_attrs *attrs = c->attrs;
    const int n_features = p->n_sparse + p->n_dense + p->n_ragged;
    const int dense_out = 3 * p->n_sparse, ragged_out = dense_out + p->n_dense;
    const bool vector = c->in[0].type.rank == 1;
    const char *keys[MOST];
    for (int i = 0; i < n_features; i++) {
        SX_TRY(key_of(c, p, attrs->version, i, &keys[i]));
        counts[i] = longest[i] = 0;
    }
    sx_example e;
    sx_example_init(&e);
    sx_status status = SX_OK;
    for (int64_t r = 0, n = sx_type_elems(&c->in[0].type); r < n && status == SX_OK; r++) {
        status = sx_example_parse(&e, c->in[0].s[r]);
        if (status != SX_OK) {
            status = sx_feature_refuse(status, r);
        }
        for (int i = 0; i < n_features && status == SX_OK; i++) {
            const int dense = i - p->n_sparse, ragged = dense - p->n_dense;
            const bool is_sparse = dense < 0, is_dense = dense >= 0 && ragged < 0;
            const sx_example_feature *f;
            status = find_feature(&e, keys[i], p->dtypes[i], &f);
            if (status == SX_OK && is_dense) {
                status = check_dense(c, p, dense, keys[i], r, f);
            }
            const int64_t count = f != NULL ? (int64_t)f->count : 0;
            if (status != SX_OK || c->out == NULL) {
                counts[i] += count;
                longest[i] = SX_MAX(longest[i], count);
                continue;
            }
            if (is_sparse) {
                int64_t *index = c->out[i].i + (vector ? 2 : 1) * counts[i];
                for (int64_t k = 0; k < count; k++) {
                    if (vector) {
                        *index++ = r;
                    }
                    *index++ = k;
                }
                status =
                    f != NULL ? sx_feature_put(c, f, &c->out[p->n_sparse + i], counts[i]) : SX_OK;
            } else if (is_dense) {
                const sx_host_tensor *y = &c->out[dense_out + dense],
                                     *usual = &c->in[p->first_default + dense];
                const int64_t size = n > 0 ? sx_type_elems(&y->type) / n : 0,
                              given = sx_type_elems(&usual->type);
                const size_t bytes = sx_carrier_bytes(y->type.dtype);
                for (int64_t k = f != NULL ? count : 0; k < size; k++) {
                    char *to = (char *)y->data + (size_t)(r * size + k) * bytes;
                    const int64_t from = given == 1 ? 0 : k;
                    if (from < given) {
                        memcpy(to, (const char *)usual->data + (size_t)from * bytes, bytes);
                    } else {
                        memset(to, 0, bytes);
                    }
                }
                status = f != NULL ? sx_feature_put(c, f, y, r * size) : SX_OK;
            } else {
                status = f != NULL ? sx_feature_put(c, f, &c->out[ragged_out + ragged], counts[i])
                                   : SX_OK;
                c->out[ragged_out + p->n_ragged + ragged].i[r + 1] = counts[i] + count;
            }
            counts[i] += count;
            longest[i] = SX_MAX(longest[i], count);
        }
    }
    sx_example_deinit(&e);
    return status;
}

static sx_status parse_example_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_parse_example_attrs *attrs = c->attrs;
    const bool vector = c->in[0].type.rank == 1;
    const int64_t n = sx_type_elems(&c->in[0].type);
    int64_t counts[MOST], longest[MOST];
    int at = 0;
    plan p = {0};
    SX_TRY(read_plan(attrs, c->n_in, &p));
    SX_TRY(read_records(c, &p, counts, longest));
    for (int i = 0; i < p.n_sparse; i++) {
        out_types[at++] = sx_type_of(SX_I64, counts[i], 1 + vector);
    }
    for (int i = 0; i < p.n_sparse; i++) {
        out_types[at++] = sx_type_of(p.dtypes[i], counts[i]);
    }
    for (int i = 0; i < p.n_sparse; i++) {
        out_types[at++] = sx_type_of(SX_I64, 1 + vector);
    }
    for (int i = 0; i < p.n_dense; i++) {
        sx_type y = {.dtype = p.shapes[i].dtype};
        if (vector) {
            y.dims[y.rank++] = n;
        }
        for (int d = 0; d < p.shapes[i].rank; d++) {
            const int64_t each = SX_MAX(1, sx_dims_product(&p.shapes[i], 1, p.shapes[i].rank));
            y.dims[y.rank++] =
                d == 0 && p.grows[i] ? longest[p.n_sparse + i] / each : p.shapes[i].dims[d];
        }
        const int64_t given = sx_type_elems(&c->in[p.first_default + i].type);
        const int64_t size = sx_type_elems(&p.shapes[i]);
        if (p.grows[i] ? given > 1 : given > 1 && given != size) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the default of dense feature %d is %s, expected %s", i,
                            SX_TEXT(&c->in[p.first_default + i].type), SX_TEXT(&p.shapes[i]));
        }
        out_types[at++] = y;
    }
    for (int i = 0; i < p.n_ragged; i++) {
        out_types[at++] =
            sx_type_of(p.dtypes[p.n_sparse + p.n_dense + i], counts[p.n_sparse + p.n_dense + i]);
    }
    for (int i = 0; i < p.n_ragged; i++) {
        out_types[at++] = sx_type_of(p.splits[i], n + 1);
    }
    for (int i = 0; i < at; i++) {
        SX_TRY(sx_require_made("a result", &out_types[i]));
    }
    return SX_OK;
}

static sx_status parse_example_host(const sx_kernel_call *c)
{
    const sx_parse_example_attrs *attrs = c->attrs;
    const bool vector = c->in[0].type.rank == 1;
    int64_t counts[MOST], longest[MOST];
    plan p = {0};
    SX_TRY(read_plan(attrs, c->n_in, &p));
    for (int i = 0; i < p.n_ragged; i++) {
        c->out[3 * p.n_sparse + p.n_dense + p.n_ragged + i].i[0] = 0;
    }
    SX_TRY(read_records(c, &p, counts, longest));
    for (int i = 0; i < p.n_sparse; i++) {
        int64_t *shape = c->out[2 * p.n_sparse + i].i;
        shape[0] = sx_type_elems(&c->in[0].type);
        shape[vector ? 1 : 0] = longest[i];
    }
    return SX_OK;
}

/* ---- TensorFlow ---- */

static sx_status read_list(const sx_tf_node *n, const char *name, sx_tensor *out)
{
    sx_tf_attr a;
    if (n->attr(n, name, &a) && a.kind == SX_TF_ATTR_TYPES) {
        *out = (sx_tensor){sx_type_of(SX_I32, a.count), (void *)(uintptr_t)a.types};
    }
    return SX_OK;
}

static sx_status read_shapes(const sx_tf_node *n, sx_tensor *out)
{
    sx_tf_attr a;
    if (!n->attr(n, "dense_shapes", &a) || a.kind != SX_TF_ATTR_SHAPES) {
        return SX_OK;
    }
    int64_t *dims = sx_arena_array(n->arena, (size_t)a.count * (SX_MAX_RANK + 1) + 1, int64_t);
    int64_t at = 0;
    if (dims == NULL) {
        return sx_budget_error(n->arena->budget);
    }
    for (int i = 0; i < a.count; i++) {
        if (a.shapes[i].rank < 0) {
            return sx_error(SX_UNIMPLEMENTED, "the rank of dense feature %d is unknown", i);
        }
        dims[at++] = a.shapes[i].rank;
        for (int d = 0; d < a.shapes[i].rank; d++) {
            dims[at++] = a.shapes[i].dims[d] < 0 ? -1 : a.shapes[i].dims[d];
        }
    }
    *out = (sx_tensor){sx_type_of(SX_I64, at), dims};
    return SX_OK;
}

static sx_status v2_from_tf(const sx_tf_node *n, void *out)
{
    sx_parse_example_attrs *attrs = out;
    attrs->version = 2;
    SX_TRY(read_list(n, "sparse_types", &attrs->sparse_types));
    SX_TRY(read_list(n, "Tdense", &attrs->dense_types));
    SX_TRY(read_list(n, "ragged_value_types", &attrs->ragged_types));
    SX_TRY(read_list(n, "ragged_split_types", &attrs->split_types));
    return read_shapes(n, &attrs->dense_shapes);
}

static sx_status v1_from_tf(const sx_tf_node *n, void *out)
{
    SX_TRY(v2_from_tf(n, out));
    ((sx_parse_example_attrs *)out)->version = 1;
    return SX_OK;
}

const sx_op_def sx_op_parse_example = {
    SX_OP_NAMED(parse_example),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_parse_example_attrs, parse_example_attrs),
    .infer = parse_example_infer,
    .host = parse_example_host,
    .host_types = parse_example_host_types,
    SX_FROM_TF({.op = "ParseExampleV2", .attrs = v2_from_tf},
               {.op = "ParseExample", .attrs = v1_from_tf}),
};
