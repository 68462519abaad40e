/* The rows together, and what checks share: see ops.h. */
#include "pjrt_ref/ops.h"

#include <string.h>

#include "base/checked.h"

const ref_row *ref_row_find(const char *name, size_t size)
{
    static const ref_row *const tables[] = {ref_elementwise_rows, ref_shape_rows,
                                            ref_index_rows,       ref_reduce_rows,
                                            ref_product_rows,     ref_control_rows};
    for (size_t t = 0; t < SX_COUNT(tables); t++) {
        for (const ref_row *row = tables[t]; row->name != NULL; row++) {
            if (strlen(row->name) == size && memcmp(row->name, name, size) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

const sx_type *ref_in_type(const ref_program *p, const ref_op *op, int i)
{
    return ref_type_of(p, op->in[i]);
}

const sx_type *ref_out_type(const ref_program *p, const ref_op *op, int i)
{
    return ref_type_of(p, op->out[i]);
}

bool ref_same_dims(const sx_type *a, const sx_type *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

sx_status ref_expect(const ref_program *p, const ref_op *op, int i, const sx_type *type)
{
    char text[2][SX_TYPE_TEXT];
    const sx_type *written = ref_out_type(p, op, i);
    if (sx_type_equal(written, type)) {
        return SX_OK;
    }
    return ref_wrong("infers %s as result %d, but %s is written",
                     sx_type_format(type, text[0], SX_TYPE_TEXT), i,
                     sx_type_format(written, text[1], SX_TYPE_TEXT));
}

/* ---- Attributes ---- */

const ref_attr *ref_attr_find(const ref_attr *attrs, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(attrs[i].name, name) == 0) {
            return &attrs[i];
        }
    }
    return NULL;
}

static sx_status ints_of(const ref_attr *a, const char *name, int n, const int64_t **out,
                         int *out_n)
{
    if (a == NULL) {
        return ref_wrong("requires attribute '%s'", name);
    }
    bool has = a->kind == REF_INTS || (a->kind == REF_DENSE && a->ints != NULL);
    if (!has || (n == REF_ANY ? a->n_ints > SX_MAX_RANK : a->n_ints != n)) {
        return ref_wrong("attribute '%s' has %d numbers; expected %s%d", name, a->n_ints,
                         n == REF_ANY ? "at most " : "", n == REF_ANY ? SX_MAX_RANK : n);
    }
    *out = a->ints;
    if (out_n != NULL) {
        *out_n = a->n_ints;
    }
    return SX_OK;
}

sx_status ref_attr_ints(const ref_op *op, const char *name, int n, const int64_t **out, int *out_n)
{
    return ints_of(ref_attr_find(op->attrs, op->n_attrs, name), name, n, out, out_n);
}

sx_status ref_field_ints(const ref_attr *record, const char *name, int n, const int64_t **out,
                         int *out_n)
{
    return ints_of(ref_attr_find(record->fields, record->n_fields, name), name, n, out, out_n);
}

sx_status ref_attr_int(const ref_op *op, const char *name, int64_t low, int64_t high, int64_t *out)
{
    const int64_t *v = NULL;
    SX_TRY(ref_attr_ints(op, name, 1, &v, NULL));
    if (v[0] < low || v[0] > high) {
        return ref_wrong("attribute '%s' is %lld; expected %lld to %lld", name, (long long)v[0],
                         (long long)low, (long long)high);
    }
    *out = v[0];
    return SX_OK;
}

sx_status ref_attr_word(const ref_op *op, const char *name, const char **out)
{
    const ref_attr *a = ref_attr_find(op->attrs, op->n_attrs, name);
    if (a == NULL || a->kind != REF_WORD) {
        return ref_wrong("requires attribute '%s'", name);
    }
    *out = a->word;
    return SX_OK;
}

sx_status ref_check_axes(const char *what, const int64_t *v, int n, int limit)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            if (v[j] == v[i]) {
                return ref_wrong("%s names dimension %lld twice", what, (long long)v[i]);
            }
        }
        if (v[i] < 0 || v[i] >= limit) {
            return ref_wrong("%s has %lld; expected less than %d", what, (long long)v[i], limit);
        }
    }
    return SX_OK;
}

/* ---- Regions ---- */

sx_status ref_check_region(const ref_program *p, const ref_op *op, int region, const sx_type *args,
                           int n_args, const sx_type *results, int n_results)
{
    const ref_block *b = &op->regions[region];
    bool same = b->n_args == n_args && b->n_results == n_results;
    for (int i = 0; i < n_args && same; i++) {
        same = sx_type_equal(&args[i], ref_type_of(p, b->args[i]));
    }
    for (int i = 0; i < n_results && same; i++) {
        same = sx_type_equal(&results[i], ref_type_of(p, b->results[i]));
    }
    return same ? SX_OK : ref_wrong("region %d has the wrong arguments or results", region);
}
