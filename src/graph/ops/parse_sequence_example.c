/* parse_sequence_example: features of tf.train.SequenceExample records: of their context, and of
 * their lists, which have features step by step.
 *
 *   records   strings [n], or one record, a scalar (then without the first dimension below)
 *   names     strings, which are not used
 *   keys      six vectors: of the sparse, dense and ragged features of the context, and of those of
 *             the lists
 *   missing   bool, one for each dense list: a record may be without it, and has then no steps
 *   defaults  one for each dense feature of the context: what a record without it gets; empty: it
 *             must have it
 *   columns   of each feature: which (sparse, dense or ragged, of the context or a list), its dtype
 *             (int64, float32 or string) and that of its splits (int32 or int64)
 *   shapes    of each feature its rank and dimensions; 0 if it is not dense
 *   returns   of the context as parse_example: sparse indices int64 [k, 2], values [k], shapes
 *             int64 [2]; dense [n, shape]; ragged values [k], splits [n + 1]; of the lists: sparse
 *             indices int64 [k, 3], values [k], shapes int64 [3]; dense [n, most steps, shape],
 *             filled up with zeros, lengths int64 [n]; ragged values [k], outer splits [n + 1],
 *             inner splits [steps + 1]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks, numbers of inputs; (running) a record that is no
 *                              SequenceExample, values of another type, another number of them than
 *                              a dense feature has, one that is missing
 *          RESOURCE_EXHAUSTED  (running) a result that is too large
 *          UNIMPLEMENTED       more than 256 outputs; ragged features of a scalar
 * Source   TensorFlow ParseSequenceExampleV2 (core/util/example_proto_fast_parsing.cc) */
#include "graph/ops/features.h"
#include "proto/sequence_example.h"

/* Rows of sx_parse_sequence_example_attrs.columns: a group, the dtype of the values, of the splits.
 */
enum {
    CONTEXT_SPARSE,
    CONTEXT_DENSE,
    CONTEXT_RAGGED,
    LIST_SPARSE,
    LIST_DENSE,
    LIST_RAGGED,
    GROUPS
};
typedef struct sx_parse_sequence_example_attrs {
    sx_tensor columns; /* int32 [features, 3], ascending by group */
    sx_tensor shapes;  /* int64: of each feature rank, dims, ... */
} sx_parse_sequence_example_attrs;

static const sx_attr_def parse_sequence_example_attrs[] = {
    SX_ATTR(sx_parse_sequence_example_attrs, columns, SX_ATTR_TENSOR),
    SX_ATTR(sx_parse_sequence_example_attrs, shapes, SX_ATTR_TENSOR),
};

enum { MOST = SX_MAX_OUTPUTS, FIRST_KEYS = 2, MISSING = 8, FIRST_DEFAULT = 9 };

static const int outputs_of[GROUPS] = {3, 1, 2, 3, 2, 3};

/* The attributes, checked. The outputs of a group: all first ones, all second ones, ... */
typedef struct plan {
    int n, n_outputs;
    int count[GROUPS], first[GROUPS], out[GROUPS];
    const int32_t (*columns)[3];
    sx_type shapes[MOST]; /* of the dense ones */
} plan;

static int output_of(const plan *p, int feature, int which)
{
    const int g = p->columns[feature][0];
    return p->out[g] + which * p->count[g] + feature - p->first[g];
}

static bool of_list(int group)
{
    return group >= LIST_SPARSE;
}

static sx_status read_plan(const sx_parse_sequence_example_attrs *a, int n_inputs, plan *p)
{
    const sx_type *columns = &a->columns.type, *shapes = &a->shapes.type;
    const bool listed = a->columns.data != NULL && columns->dtype == SX_I32 && columns->rank == 2 &&
                        columns->dims[1] == 3 && a->shapes.data != NULL && shapes->rank == 1 &&
                        shapes->dtype == SX_I64;
    if (!listed || columns->dims[0] < 1 || columns->dims[0] > MOST) {
        return sx_error(!listed || columns->dims[0] < 1 ? SX_INVALID_ARGUMENT : SX_UNIMPLEMENTED,
                        "columns are %s and shapes %s, expected int32[n,3] and int64[m], at most "
                        "%d outputs",
                        SX_TEXT(columns), SX_TEXT(shapes), MOST);
    }
    const int64_t n_shapes = shapes->dims[0], *dims = a->shapes.data;
    int64_t at = 0;
    bool sound = true;
    p->n = (int)columns->dims[0];
    p->columns = a->columns.data;
    for (int i = 0; i < p->n && sound; i++) {
        const int32_t g = p->columns[i][0], dtype = p->columns[i][1], splits = p->columns[i][2];
        sx_type *shape = &p->shapes[i];
        sound = g >= (i > 0 ? p->columns[i - 1][0] : 0) && g < GROUPS &&
                (dtype == SX_I64 || dtype == SX_F32 || dtype == SX_STRING) &&
                (splits == SX_I32 || splits == SX_I64) && at < n_shapes && dims[at] >= 0 &&
                dims[at] <= SX_MAX_RANK - 2 && dims[at] < n_shapes - at;
        *shape = (sx_type){.dtype = (sx_dtype)dtype, .rank = sound ? (int)dims[at++] : 0};
        for (int d = 0; d < shape->rank; d++) {
            shape->dims[d] = dims[at++];
            sound = sound && shape->dims[d] >= 0;
        }
        if (sound) {
            p->count[g]++;
        }
    }
    for (int g = 0, feature = 0; g < GROUPS; g++) {
        p->first[g] = feature;
        p->out[g] = p->n_outputs;
        feature += p->count[g];
        p->n_outputs += outputs_of[g] * p->count[g];
    }
    if (!sound || at != n_shapes || n_inputs != FIRST_DEFAULT + p->count[CONTEXT_DENSE]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d inputs and %d features; groups, dtypes, shapes or the number of inputs "
                        "do not match them",
                        n_inputs, p->n);
    }
    return p->n_outputs <= MOST ? SX_OK
                                : sx_error(SX_UNIMPLEMENTED, "it has more than %d outputs", MOST);
}

static sx_status parse_sequence_example_infer(sx_infer_context *c)
{
    const sx_type *records = c->inputs;
    plan p = {0};
    SX_TRY(read_plan(c->attrs, c->n_inputs, &p));
    for (int i = 0; i < MISSING; i++) {
        SX_TRY(sx_require_dtype("a record or key", &c->inputs[i], SX_STRING));
    }
    SX_TRY(sx_require_maybe("the flags of missing lists", &c->inputs[MISSING], SX_BOOL, 1, "[n]"));
    for (int i = 0; i < p.count[CONTEXT_DENSE]; i++) {
        SX_TRY(sx_require_dtype("a default", &c->inputs[FIRST_DEFAULT + i],
                                p.shapes[p.first[CONTEXT_DENSE] + i].dtype));
    }
    const bool ragged = p.count[CONTEXT_RAGGED] + p.count[LIST_RAGGED] > 0;
    if (records->rank > 1 || (records->rank == 0 && ragged)) {
        return sx_error(records->rank > 1 ? SX_INVALID_ARGUMENT : SX_UNIMPLEMENTED,
                        "records are %s, expected a vector%s", SX_TEXT(records),
                        ragged ? "" : " or a scalar");
    }
    const bool known = records->rank >= 0, vector = records->rank == 1;
    const int64_t n = vector ? records->dims[0] : SX_UNKNOWN_DIM;
    const sx_type of_records = vector  ? sx_type_of(SX_I64, n)
                               : known ? sx_scalar_type(SX_I64)
                                       : sx_unknown_shape(SX_I64);
    for (int i = 0; i < p.n; i++) {
        const int g = p.columns[i][0];
        const sx_dtype dtype = p.shapes[i].dtype, splits = (sx_dtype)p.columns[i][2];
        const int64_t rank = known ? 1 + vector + of_list(g) : SX_UNKNOWN_DIM;
        sx_type first = sx_type_of(dtype, SX_UNKNOWN_DIM);
        if (g == CONTEXT_SPARSE || g == LIST_SPARSE) {
            c->outputs[output_of(&p, i, 1)] = first;
            c->outputs[output_of(&p, i, 2)] = sx_type_of(SX_I64, rank);
            first = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
        } else if (g == CONTEXT_DENSE || g == LIST_DENSE) {
            first = of_records;
            first.dtype = dtype;
            if (known && g == LIST_DENSE) {
                first.dims[first.rank++] = SX_UNKNOWN_DIM;
            }
            for (int d = 0; d < p.shapes[i].rank && known; d++) {
                first.dims[first.rank++] = p.shapes[i].dims[d];
            }
            if (g == LIST_DENSE) {
                c->outputs[output_of(&p, i, 1)] = of_records;
            }
        } else {
            c->outputs[output_of(&p, i, 1)] = sx_type_of(splits, n >= 0 ? n + 1 : SX_UNKNOWN_DIM);
            if (g == LIST_RAGGED) {
                c->outputs[output_of(&p, i, 2)] = sx_type_of(splits, SX_UNKNOWN_DIM);
            }
        }
        c->outputs[output_of(&p, i, 0)] = first;
    }
    c->n_outputs = p.n_outputs;
    return SX_OK;
}

/* ---- Records ---- */

/* What the records so far have of a feature. */
typedef struct tally {
    int64_t values, steps;
    int64_t most_values, most_steps; /* of one step, of one record */
} tally;

/* The values of one step, or of a feature of the context; f has none if it is missing. */
static sx_status read_step(const sx_kernel_call *c, const plan *p, int i, const char *key,
                           const sx_example_feature *f, int64_t record, int64_t step, tally *t)
{
    const int g = p->columns[i][0];
    const bool vector = c->in[0].type.rank == 1, dense = g == CONTEXT_DENSE || g == LIST_DENSE;
    const int64_t count = (int64_t)f->count, size = sx_type_elems(&p->shapes[i]);
    SX_TRY(sx_feature_require(key, f, p->shapes[i].dtype));
    if (dense && count != size) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "feature \"%.100s\" of record %lld has %lld values, expected %lld", key,
                        (long long)record, (long long)count, (long long)size);
    }
    if (c->out != NULL) {
        const sx_host_tensor *first = &c->out[output_of(p, i, 0)];
        int64_t at = t->values;
        if (dense) {
            const int64_t steps = g == LIST_DENSE ? first->type.dims[c->in[0].type.rank] : 1;
            at = (record * steps + step) * size;
        } else if (g == CONTEXT_SPARSE || g == LIST_SPARSE) {
            int64_t *index = first->i + at * (1 + vector + of_list(g));
            for (int64_t k = 0; k < count; k++) {
                if (vector) {
                    *index++ = record;
                }
                if (of_list(g)) {
                    *index++ = step;
                }
                *index++ = k;
            }
            first = &c->out[output_of(p, i, 1)];
        } else if (g == LIST_RAGGED) {
            c->out[output_of(p, i, 2)].i[t->steps + 1] = at + count;
        }
        SX_TRY(sx_feature_put(c, f, first, at));
    }
    t->values += count;
    t->steps++;
    t->most_values = SX_MAX(t->most_values, count);
    return SX_OK;
}

static sx_status read_feature(const sx_kernel_call *c, const plan *p, int i, const char *key,
                              const sx_sequence_example *e, int64_t record, tally *t)
{
    const int g = p->columns[i][0];
    const int64_t before = t->steps;
    const sx_example_feature none = {.kind = SX_FEATURE_EMPTY};
    if (of_list(g)) {
        const sx_feature_list *list = sx_sequence_example_find(e, key);
        sx_bytes rest = list != NULL ? list->wire : (sx_bytes){0};
        sx_example_feature f;
        if (list == NULL && g == LIST_DENSE && !c->in[MISSING].b[i - p->first[g]]) {
            return sx_error(SX_INVALID_ARGUMENT, "record %lld has no feature list \"%.100s\"",
                            (long long)record, key);
        }
        while (sx_feature_list_next(&rest, &f)) {
            SX_TRY(read_step(c, p, i, key, &f, record, t->steps - before, t));
        }
    } else {
        const sx_example_feature *f = sx_example_find(&e->context, key);
        const sx_host_tensor *usual =
            g == CONTEXT_DENSE ? &c->in[FIRST_DEFAULT + i - p->first[g]] : NULL;
        const int64_t size = sx_type_elems(&p->shapes[i]);
        if (f != NULL && f->kind == SX_FEATURE_EMPTY) {
            f = NULL;
        }
        if (f != NULL || usual == NULL) {
            SX_TRY(read_step(c, p, i, key, f != NULL ? f : &none, record, 0, t));
        } else if (sx_type_elems(&usual->type) != size || size == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "record %lld has no feature \"%.100s\", whose default is %s",
                            (long long)record, key, SX_TEXT(&usual->type));
        } else if (c->out != NULL) {
            const sx_host_tensor *y = &c->out[output_of(p, i, 0)];
            for (int64_t k = 0; k < size; k++) {
                const size_t bytes = sx_carrier_bytes(y->type.dtype);
                memcpy((char *)y->data + (size_t)(record * size + k) * bytes,
                       (const char *)usual->data + (size_t)k * bytes, bytes);
            }
        }
    }
    const int64_t steps = t->steps - before;
    t->most_steps = SX_MAX(t->most_steps, steps);
    if (c->out != NULL && (g == CONTEXT_RAGGED || g == LIST_RAGGED)) {
        c->out[output_of(p, i, 1)].i[record + 1] = of_list(g) ? t->steps : t->values;
    } else if (c->out != NULL && g == LIST_DENSE) {
        c->out[output_of(p, i, 1)].i[record] = steps;
    }
    return SX_OK;
}

/* Parses every record. Without c->out only counts; with it writes what belongs to one record. */
static sx_status read_records(const sx_kernel_call *c, const plan *p, tally *tallies)
{
    const char *keys[MOST];
    for (int g = 0; g < GROUPS; g++) {
        const sx_host_tensor *names = &c->in[FIRST_KEYS + g];
        if (sx_type_elems(&names->type) != p->count[g]) {
            return sx_error(SX_INVALID_ARGUMENT, "input %d is %s, expected %d keys", FIRST_KEYS + g,
                            SX_TEXT(&names->type), p->count[g]);
        }
        for (int i = 0; i < p->count[g]; i++) {
            SX_TRY(sx_feature_key(c, names, i, &keys[p->first[g] + i]));
        }
    }
    if (sx_type_elems(&c->in[MISSING].type) != p->count[LIST_DENSE]) {
        return sx_error(SX_INVALID_ARGUMENT, "the flags of missing lists are %s, expected %d",
                        SX_TEXT(&c->in[MISSING].type), p->count[LIST_DENSE]);
    }
    sx_sequence_example e;
    sx_sequence_example_init(&e);
    sx_status status = SX_OK;
    for (int64_t r = 0, n = sx_type_elems(&c->in[0].type); r < n && status == SX_OK; r++) {
        status = sx_sequence_example_parse(&e, c->in[0].s[r]);
        if (status != SX_OK) {
            status = sx_feature_refuse(status, r);
        }
        for (int i = 0; i < p->n && status == SX_OK; i++) {
            status = read_feature(c, p, i, keys[i], &e, r, &tallies[i]);
        }
    }
    sx_sequence_example_deinit(&e);
    return status;
}

static sx_status parse_sequence_example_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const bool vector = c->in[0].type.rank == 1;
    const int64_t n = sx_type_elems(&c->in[0].type);
    tally tallies[MOST] = {0};
    plan p = {0};
    SX_TRY(read_plan(c->attrs, c->n_in, &p));
    SX_TRY(read_records(c, &p, tallies));
    for (int i = 0; i < p.n; i++) {
        const int g = p.columns[i][0], rank = 1 + vector + of_list(g);
        const sx_dtype dtype = p.shapes[i].dtype, splits = (sx_dtype)p.columns[i][2];
        sx_type first = sx_type_of(dtype, tallies[i].values);
        if (g == CONTEXT_SPARSE || g == LIST_SPARSE) {
            out_types[output_of(&p, i, 1)] = first;
            out_types[output_of(&p, i, 2)] = sx_type_of(SX_I64, rank);
            first = sx_type_of(SX_I64, tallies[i].values, rank);
        } else if (g == CONTEXT_DENSE || g == LIST_DENSE) {
            first = (sx_type){.dtype = dtype};
            if (vector) {
                first.dims[first.rank++] = n;
            }
            if (g == LIST_DENSE) {
                out_types[output_of(&p, i, 1)] = first;
                out_types[output_of(&p, i, 1)].dtype = SX_I64;
                first.dims[first.rank++] = tallies[i].most_steps;
            }
            for (int d = 0; d < p.shapes[i].rank; d++) {
                first.dims[first.rank++] = p.shapes[i].dims[d];
            }
        } else {
            out_types[output_of(&p, i, 1)] = sx_type_of(splits, n + 1);
            if (g == LIST_RAGGED) {
                out_types[output_of(&p, i, 2)] = sx_type_of(splits, tallies[i].steps + 1);
            }
        }
        out_types[output_of(&p, i, 0)] = first;
    }
    for (int k = 0; k < p.n_outputs; k++) {
        SX_TRY(sx_require_made("a result", &out_types[k]));
    }
    return SX_OK;
}

static sx_status parse_sequence_example_host(const sx_kernel_call *c)
{
    const bool vector = c->in[0].type.rank == 1;
    tally tallies[MOST] = {0};
    plan p = {0};
    SX_TRY(read_plan(c->attrs, c->n_in, &p));
    for (int k = 0; k < p.n_outputs; k++) {
        sx_host_fill(c, k, 0);
    }
    SX_TRY(read_records(c, &p, tallies));
    for (int i = 0; i < p.n; i++) {
        const int g = p.columns[i][0];
        if (g == CONTEXT_SPARSE || g == LIST_SPARSE) {
            int64_t *shape = c->out[output_of(&p, i, 2)].i;
            if (vector) {
                *shape++ = sx_type_elems(&c->in[0].type);
            }
            if (of_list(g)) {
                *shape++ = tallies[i].most_steps;
            }
            *shape = tallies[i].most_values;
        }
    }
    return SX_OK;
}

/* ---- TensorFlow ---- */

static sx_status from_tf(const sx_tf_node *n, void *out)
{
    static const struct {
        const char *types, *splits, *shapes;
    } of[GROUPS] = {
        {"context_sparse_types", NULL, NULL},
        {"Tcontext_dense", NULL, "context_dense_shapes"},
        {"context_ragged_value_types", "context_ragged_split_types", NULL},
        {"feature_list_sparse_types", NULL, NULL},
        {"feature_list_dense_types", NULL, "feature_list_dense_shapes"},
        {"feature_list_ragged_value_types", "feature_list_ragged_split_types", NULL},
    };
    sx_parse_sequence_example_attrs *a = out;
    int32_t(*columns)[3] = sx_arena_alloc(n->arena, sizeof(*columns), MOST);
    int64_t *dims = sx_arena_array(n->arena, MOST * (SX_MAX_RANK + 1), int64_t);
    int64_t count = 0, at = 0;
    if (columns == NULL || dims == NULL) {
        return sx_budget_error(n->arena->budget);
    }
    for (int g = 0; g < GROUPS; g++) {
        sx_tf_attr types, splits, shapes;
        if (!n->attr(n, of[g].types, &types) || types.kind != SX_TF_ATTR_TYPES) {
            continue;
        }
        const bool has_splits = of[g].splits != NULL && n->attr(n, of[g].splits, &splits) &&
                                splits.kind == SX_TF_ATTR_TYPES && splits.count == types.count;
        const bool has_shapes = of[g].shapes != NULL && n->attr(n, of[g].shapes, &shapes) &&
                                shapes.kind == SX_TF_ATTR_SHAPES && shapes.count == types.count;
        if ((of[g].splits != NULL && !has_splits && types.count > 0) ||
            (of[g].shapes != NULL && !has_shapes && types.count > 0)) {
            return sx_error(SX_DATA_LOSS, "%s and %s are not of one length", of[g].types,
                            of[g].splits != NULL ? of[g].splits : of[g].shapes);
        }
        for (int i = 0; i < types.count; i++, count++) {
            if (count == MOST) {
                return sx_error(SX_UNIMPLEMENTED, "it has more than %d outputs", MOST);
            }
            columns[count][0] = g;
            columns[count][1] = types.types[i];
            columns[count][2] = has_splits ? splits.types[i] : SX_I64;
            const sx_type *shape = has_shapes ? &shapes.shapes[i] : &(sx_type){.rank = 0};
            if (!sx_type_is_static(shape)) {
                return sx_error(SX_UNIMPLEMENTED, "a dense feature has a shape that is not known");
            }
            dims[at++] = shape->rank;
            for (int d = 0; d < shape->rank; d++) {
                dims[at++] = shape->dims[d];
            }
        }
    }
    a->columns = (sx_tensor){sx_type_of(SX_I32, count, 3), columns};
    a->shapes = (sx_tensor){sx_type_of(SX_I64, at), dims};
    return SX_OK;
}

const sx_op_def sx_op_parse_sequence_example = {
    SX_OP_NAMED(parse_sequence_example),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_parse_sequence_example_attrs, parse_sequence_example_attrs),
    .infer = parse_sequence_example_infer,
    .host = parse_sequence_example_host,
    .host_types = parse_sequence_example_host_types,
    SX_FROM_TF({.op = "ParseSequenceExampleV2", .attrs = from_tf}),
};
