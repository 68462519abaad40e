/* Operations whose places are values: dynamic_slice, dynamic_update_slice, gather, scatter. The
 * first three clamp their start so that the slice lies inside; scatter leaves out what does not. */
#include <string.h>

#include "base/checked.h"
#include "pjrt_ref/elementwise.h"

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

static int64_t clamp(int64_t v, int64_t most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

/* An index; what does not fit an int64 lies beyond everything. */
static int64_t index_at(const ref_array *a, int64_t i)
{
    ref_lane v = ref_get(a, i);
    return ref_class_of(a->type.dtype) == REF_UNSIGNED && v.u > INT64_MAX ? INT64_MAX : v.s;
}

static bool is_index_type(const sx_type *type)
{
    return type->dtype != SX_BOOL && ref_class_of(type->dtype) != REF_FLOAT;
}

/* ---- dynamic_slice, dynamic_update_slice ---- */

/* Operands from `first` on are the scalars where a slice of type `part` begins. */
static sx_status check_starts(const ref_program *p, const ref_op *op, int first,
                              const sx_type *part)
{
    const sx_type *in = ref_in_type(p, op, 0);
    if (op->n_in != first + in->rank || part->rank != in->rank || part->dtype != in->dtype) {
        return ref_wrong("takes a start for each of %d dimensions", in->rank);
    }
    for (int i = 0; i < in->rank; i++) {
        const sx_type *start = ref_in_type(p, op, first + i);
        if (start->rank != 0 || !is_index_type(start) || part->dims[i] > in->dims[i]) {
            return ref_wrong("slice %lld of dimension %d, which has %lld", (long long)part->dims[i],
                             i, (long long)in->dims[i]);
        }
    }
    return SX_OK;
}

static sx_status check_dynamic_slice(ref_program *p, const ref_op *op, void **out_plan)
{
    if (op->n_in == 0) {
        return ref_wrong("takes an operand");
    }
    sx_type type = *ref_in_type(p, op, 0);
    const int64_t *sizes;
    (void)out_plan;
    SX_TRY(ref_attr_ints(op, "slice_sizes", type.rank, &sizes, NULL));
    for (int i = 0; i < type.rank; i++) {
        type.dims[i] = sizes[i];
    }
    SX_TRY(ref_expect(p, op, 0, &type));
    return check_starts(p, op, 1, &type);
}

/* Copies `part` between its own rows and its place in `whole`. */
static void move_part(ref_array *whole, const int64_t *start, ref_array *part, bool into_whole)
{
    int64_t index[SX_MAX_RANK] = {0}, strides[SX_MAX_RANK], k = 0;
    size_t size = sx_dtype_bytes(whole->type.dtype);
    sx_type rows = part->type;
    int64_t width = rows.rank > 0 ? rows.dims[rows.rank - 1] : 1;
    if (sx_type_elems(&part->type) == 0) {
        return;
    }
    ref_strides(&whole->type, strides);
    int64_t base = ref_dot(start, strides, rows.rank);
    rows.rank -= rows.rank > 0;
    do {
        char *a = (char *)whole->data + (size_t)(base + ref_dot(index, strides, rows.rank)) * size;
        char *b = (char *)part->data + (size_t)k * size;
        memcpy(into_whole ? a : b, into_whole ? b : a, (size_t)width * size);
        k += width;
    } while (ref_next_index(&rows, index));
}

static void take_starts(const ref_run *r, const ref_op *op, int first, const sx_type *whole,
                        const sx_type *part, int64_t start[SX_MAX_RANK])
{
    for (int i = 0; i < whole->rank; i++) {
        start[i] = clamp(index_at(ref_in(r, op, first + i), 0), whole->dims[i] - part->dims[i]);
    }
}

static sx_status run_dynamic_slice(ref_run *r, const ref_op *op)
{
    ref_array *out, *in = r->env[op->in[0]];
    int64_t start[SX_MAX_RANK];
    SX_TRY(ref_out(r, op, 0, &out));
    take_starts(r, op, 1, &in->type, &out->type, start);
    move_part(in, start, out, false);
    return SX_OK;
}

static sx_status check_dynamic_update_slice(ref_program *p, const ref_op *op, void **out_plan)
{
    (void)out_plan;
    if (op->n_in < 2) {
        return ref_wrong("takes an operand and an update");
    }
    SX_TRY(ref_expect(p, op, 0, ref_in_type(p, op, 0)));
    return check_starts(p, op, 2, ref_in_type(p, op, 1));
}

static sx_status run_dynamic_update_slice(ref_run *r, const ref_op *op)
{
    ref_array *out, *in = r->env[op->in[0]], *update = r->env[op->in[1]];
    int64_t start[SX_MAX_RANK];
    SX_TRY(ref_out(r, op, 0, &out));
    memcpy(out->data, in->data, (size_t)out->bytes);
    take_starts(r, op, 2, &in->type, &update->type, start);
    move_part(out, start, update, true);
    return SX_OK;
}

/* --- gather, scatter --------------------------------------------------------------------------
 *
 * One geometry for both: "windows" are the gathered result or the updates; "table" is the gathered
 * operand or the scattered-to result.
 *
 *   window index   = batch dimensions (an index vector each) and window dimensions (offsets)
 *   table index    = start(index vector) + offset
 *
 * Source: the StableHLO specification's formulas for gather and scatter, without batching
 * dimensions of the operand. */
typedef struct geometry {
    int rank, n_batch, n_index;
    int batch_dims[SX_MAX_RANK];  /* dimensions of windows that come from the indices */
    int offset_of[SX_MAX_RANK];   /* table dimension -> dimension of windows; -1 = collapsed */
    int start_map[SX_MAX_RANK];   /* component of an index vector -> table dimension */
    int vector_dim;               /* of the indices; their rank = they are scalars */
    int64_t extents[SX_MAX_RANK]; /* of the slice, by table dimension */
} geometry;

static bool is_in(const int64_t *v, int n, int64_t x)
{
    for (int i = 0; i < n; i++) {
        if (v[i] == x) {
            return true;
        }
    }
    return false;
}

typedef struct index_names {
    const char *windows, *collapsed, *starts;
} index_names;

/* Reads the numbers; slice extents are g->extents already. */
static sx_status make_geometry(const ref_attr *record, const index_names *names,
                               const sx_type *table, const sx_type *indices, const sx_type *windows,
                               geometry *g)
{
    const int64_t *offsets, *collapsed, *starts, *vector_dim;
    int n_offsets = 0, n_collapsed = 0, next = 0;
    if (record == NULL || record->kind != REF_RECORD || !is_index_type(indices)) {
        return ref_wrong("requires dimension numbers, and indices that are integers");
    }
    SX_TRY(ref_field_ints(record, names->windows, REF_ANY, &offsets, &n_offsets));
    SX_TRY(ref_field_ints(record, names->collapsed, REF_ANY, &collapsed, &n_collapsed));
    SX_TRY(ref_field_ints(record, names->starts, REF_ANY, &starts, &g->n_index));
    SX_TRY(ref_field_ints(record, "index_vector_dim", 1, &vector_dim, NULL));
    SX_TRY(ref_check_axes(names->windows, offsets, n_offsets, windows->rank));
    SX_TRY(ref_check_axes(names->collapsed, collapsed, n_collapsed, table->rank));
    SX_TRY(ref_check_axes(names->starts, starts, g->n_index, table->rank));
    SX_TRY(ref_check_axes("index_vector_dim", vector_dim, 1, indices->rank + 1));
    g->rank = table->rank;
    g->vector_dim = (int)vector_dim[0];
    int64_t components = g->vector_dim == indices->rank ? 1 : indices->dims[g->vector_dim];
    if (n_offsets + n_collapsed != table->rank || components != g->n_index) {
        return ref_wrong("has %d window and %d collapsed dimensions for rank %d", n_offsets,
                         n_collapsed, table->rank);
    }
    for (int i = 0; i < g->n_index; i++) {
        g->start_map[i] = (int)starts[i];
    }
    for (int i = 0; i < windows->rank; i++) {
        if (!is_in(offsets, n_offsets, i)) {
            g->batch_dims[g->n_batch++] = i;
        }
    }
    for (int i = 1; i < n_offsets; i++) {
        if (offsets[i] < offsets[i - 1]) {
            return ref_wrong("%s are not sorted", names->windows);
        }
    }
    for (int i = 0; i < table->rank; i++) {
        g->offset_of[i] = is_in(collapsed, n_collapsed, i) ? -1 : (int)offsets[next++];
    }
    return SX_OK;
}

/* Types fit: batch dimensions are the indices', the others no longer than the slice. */
static sx_status check_geometry(const geometry *g, const sx_type *table, const sx_type *indices,
                                const sx_type *windows, bool exact)
{
    int at = 0;
    for (int i = 0; i < indices->rank; i++) {
        if (i != g->vector_dim &&
            (at == g->n_batch || windows->dims[g->batch_dims[at++]] != indices->dims[i])) {
            return ref_wrong("the batch dimensions are not those of the indices");
        }
    }
    for (int i = 0; i < table->rank; i++) {
        int64_t extent = g->extents[i];
        int64_t offset = g->offset_of[i] < 0 ? 1 : windows->dims[g->offset_of[i]];
        if (extent < 0 || extent > table->dims[i] || offset > extent ||
            (exact && offset != extent)) {
            return ref_wrong("a slice of %lld of dimension %d, which has %lld", (long long)extent,
                             i, (long long)table->dims[i]);
        }
    }
    return at == g->n_batch && table->dtype == windows->dtype
               ? SX_OK
               : ref_wrong("the batch dimensions are not those of the indices");
}

/* The start of the slice of a window, before clamping. */
static void start_of(const geometry *g, const ref_array *indices, const int64_t *window,
                     int64_t start[SX_MAX_RANK])
{
    int64_t strides[SX_MAX_RANK], at = 0, step = 1;
    int next = 0;
    ref_strides(&indices->type, strides);
    for (int i = 0; i < indices->type.rank; i++) {
        if (i != g->vector_dim) {
            at += window[g->batch_dims[next++]] * strides[i];
        } else {
            step = strides[i];
        }
    }
    memset(start, 0, SX_MAX_RANK * sizeof(start[0]));
    for (int i = 0; i < g->n_index; i++) {
        start[g->start_map[i]] = index_at(indices, at + i * step);
    }
}

static int64_t offset_at(const geometry *g, const int64_t *window, int i)
{
    return g->offset_of[i] < 0 ? 0 : window[g->offset_of[i]];
}

static sx_status check_gather(ref_program *p, const ref_op *op, void **out_plan)
{
    static const index_names names = {"offset_dims", "collapsed_slice_dims", "start_index_map"};
    const sx_type *table = ref_in_type(p, op, 0), *indices = ref_in_type(p, op, 1);
    const int64_t *sizes;
    geometry *g = sx_arena_new(&p->arena, geometry);
    if (g == NULL) {
        return no_memory();
    }
    SX_TRY(ref_attr_ints(op, "slice_sizes", table->rank, &sizes, NULL));
    memcpy(g->extents, sizes, (size_t)table->rank * sizeof(*sizes));
    *out_plan = g;
    const ref_attr *record = ref_attr_find(op->attrs, op->n_attrs, "dimension_numbers");
    SX_TRY(make_geometry(record, &names, table, indices, ref_out_type(p, op, 0), g));
    return check_geometry(g, table, indices, ref_out_type(p, op, 0), true);
}

static sx_status run_gather(ref_run *r, const ref_op *op)
{
    const geometry *g = op->plan;
    const ref_array *table = ref_in(r, op, 0), *indices = ref_in(r, op, 1);
    ref_array *out;
    int64_t window[SX_MAX_RANK] = {0}, start[SX_MAX_RANK], strides[SX_MAX_RANK], k = 0;
    size_t size = sx_dtype_bytes(table->type.dtype);
    SX_TRY(ref_out(r, op, 0, &out));
    ref_strides(&table->type, strides);
    if (sx_type_elems(&out->type) == 0) {
        return SX_OK;
    }
    do {
        int64_t from = 0;
        start_of(g, indices, window, start);
        for (int i = 0; i < g->rank; i++) {
            int64_t begin = clamp(start[i], table->type.dims[i] - g->extents[i]);
            from += (begin + offset_at(g, window, i)) * strides[i];
        }
        memcpy((char *)out->data + (size_t)k++ * size,
               (const char *)table->data + (size_t)from * size, size);
    } while (ref_next_index(&out->type, window));
    return SX_OK;
}

/* A region that gives the new value, whatever the old one. */
static bool replaces(const ref_block *block)
{
    return block->first == NULL && block->n_results == 1 && block->results[0] == block->args[1];
}

static sx_status check_scatter(ref_program *p, const ref_op *op, void **out_plan)
{
    static const index_names names = {"update_window_dims", "inserted_window_dims",
                                      "scatter_dims_to_operand_dims"};
    const sx_type *table = ref_in_type(p, op, 0), *indices = ref_in_type(p, op, 1);
    const sx_type scalars[2] = {sx_scalar_type(table->dtype), sx_scalar_type(table->dtype)};
    geometry *g = sx_arena_new(&p->arena, geometry);
    if (g == NULL) {
        return no_memory();
    }
    memcpy(g->extents, table->dims, sizeof(g->extents));
    *out_plan = g;
    const ref_attr *record = ref_attr_find(op->attrs, op->n_attrs, "scatter_dimension_numbers");
    SX_TRY(make_geometry(record, &names, table, indices, ref_in_type(p, op, 2), g));
    for (int i = 0; i < table->rank; i++) {
        g->extents[i] = g->offset_of[i] < 0 ? SX_MIN(table->dims[i], 1) : table->dims[i];
    }
    SX_TRY(check_geometry(g, table, indices, ref_in_type(p, op, 2), false));
    SX_TRY(ref_expect(p, op, 0, table));
    SX_TRY(ref_check_region(p, op, 0, scalars, 2, scalars, 1));
    return replaces(&op->regions[0]) || ref_lambda_of(p, &op->regions[0]).kernel != NULL
               ? SX_OK
               : ref_wrong("updates by the new value, or one operation of (old, new), only");
}

/* Where an update goes; -1 = outside. */
static int64_t target_of(const geometry *g, const sx_type *table, const int64_t *window,
                         const int64_t *start, const int64_t *strides)
{
    int64_t to = 0;
    for (int i = 0; i < g->rank; i++) {
        int64_t offset = offset_at(g, window, i);
        if (start[i] < 0 || start[i] > table->dims[i] || start[i] + offset >= table->dims[i]) {
            return -1;
        }
        to += (start[i] + offset) * strides[i];
    }
    return to;
}

static sx_status run_scatter(ref_run *r, const ref_op *op)
{
    const geometry *g = op->plan;
    const ref_array *table = ref_in(r, op, 0), *indices = ref_in(r, op, 1),
                    *updates = ref_in(r, op, 2);
    ref_lambda f = ref_lambda_of(r->program, &op->regions[0]);
    ref_array *out;
    int64_t window[SX_MAX_RANK] = {0}, start[SX_MAX_RANK], strides[SX_MAX_RANK], k = 0;
    SX_TRY(ref_out(r, op, 0, &out));
    memcpy(out->data, table->data, (size_t)out->bytes);
    ref_strides(&out->type, strides);
    if (sx_type_elems(&updates->type) == 0) {
        return SX_OK;
    }
    do {
        start_of(g, indices, window, start);
        int64_t to = target_of(g, &out->type, window, start, strides);
        if (to >= 0) {
            ref_lane old = ref_get(out, to), update = ref_get(updates, k);
            if (f.kernel != NULL) {
                f.kernel(&old, &update, &old, 1);
            } else {
                old = update;
            }
            ref_put(out, to, old);
        }
        k++;
    } while (ref_next_index(&updates->type, window));
    return SX_OK;
}

const ref_row ref_index_rows[] = {
    {.name = "dynamic_slice",
     .n_in = REF_ANY,
     .n_out = 1,
     .check = check_dynamic_slice,
     .run = run_dynamic_slice},
    {.name = "dynamic_update_slice",
     .n_in = REF_ANY,
     .n_out = 1,
     .check = check_dynamic_update_slice,
     .run = run_dynamic_update_slice},
    {.name = "gather", .n_in = 2, .n_out = 1, .check = check_gather, .run = run_gather},
    {.name = "scatter",
     .n_in = 3,
     .n_out = 1,
     .n_regions = 1,
     .check = check_scatter,
     .run = run_scatter},
    {.name = NULL},
};
