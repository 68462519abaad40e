/* Reductions: reduce, reduce_window, select_and_scatter, sort. Regions that are one operation run
 * as its kernel over lanes; others are run element by element as the blocks that they are.
 *
 * A sum is kept in lanes (double for floats) and rounded once, at the end. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_ref/elementwise.h"

enum { MAX_ARRAYS = 8, MAX_WINDOW = 1 << 20 };

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

/* Calls a region with scalars: values[n] of these dtypes in, results out, in place. */
static sx_status call_region(ref_run *r, const ref_block *block, const ref_lane *args,
                             ref_lane *results)
{
    ref_array *in[2 * MAX_ARRAYS], *out[MAX_ARRAYS];
    for (int i = 0; i < block->n_args; i++) {
        sx_status status =
            ref_array_create(r->memory, ref_type_of(r->program, block->args[i]), &in[i]);
        if (status != SX_OK) {
            while (i-- > 0) {
                ref_array_release(in[i]);
            }
            return status;
        }
        ref_put(in[i], 0, args[i]);
    }
    SX_TRY(ref_run_block(r, block, in, out));
    for (int i = 0; i < block->n_results; i++) {
        results[i] = ref_get(out[i], 0);
        ref_array_release(out[i]);
    }
    return SX_OK;
}

static sx_status apply(ref_run *r, const ref_lambda *f, int n, const ref_lane *a, const ref_lane *b,
                       ref_lane *out)
{
    ref_lane args[2 * MAX_ARRAYS];
    if (f->kernel != NULL) {
        f->kernel(a, b, out, 1);
        return SX_OK;
    }
    memcpy(args, a, (size_t)n * sizeof(*a));
    memcpy(args + n, b, (size_t)n * sizeof(*b));
    return call_region(r, f->block, args, out);
}

/* ---- Reduce ---- */

typedef struct reduce_plan {
    int n; /* arrays reduced together */
    bool is_reduced[SX_MAX_RANK];
    int64_t steps[SX_MAX_RANK]; /* of the result, by the operand's dimensions; 0 = reduced */
} reduce_plan;

/* n operands of one shape and n scalars of their element types; a region (2n scalars) -> n. */
static sx_status check_reducer(const ref_program *p, const ref_op *op, int n)
{
    sx_type scalars[2 * MAX_ARRAYS];
    for (int i = 0; i < n; i++) {
        const sx_type *type = ref_in_type(p, op, i);
        scalars[i] = scalars[n + i] = sx_scalar_type(type->dtype);
        if (!ref_same_dims(type, ref_in_type(p, op, 0)) ||
            !sx_type_equal(ref_in_type(p, op, n + i), &scalars[i])) {
            return ref_wrong("takes operands of one shape, and a scalar for each");
        }
    }
    return ref_check_region(p, op, 0, scalars, 2 * n, scalars, n);
}

static sx_status check_reduce(ref_program *p, const ref_op *op, void **out_plan)
{
    const int64_t *axes;
    int n = op->n_out, n_axes = 0;
    reduce_plan *plan = sx_arena_new(&p->arena, reduce_plan);
    if (plan == NULL || n < 1 || n > MAX_ARRAYS || op->n_in != 2 * n) {
        return plan == NULL ? no_memory() : ref_wrong("reduces 1 to %d arrays", MAX_ARRAYS);
    }
    const sx_type *in = ref_in_type(p, op, 0);
    SX_TRY(check_reducer(p, op, n));
    SX_TRY(ref_attr_ints(op, "dimensions", REF_ANY, &axes, &n_axes));
    SX_TRY(ref_check_axes("dimensions", axes, n_axes, in->rank));
    for (int i = 0; i < n_axes; i++) {
        plan->is_reduced[axes[i]] = true;
    }
    sx_type type = {.rank = 0};
    int64_t strides[SX_MAX_RANK];
    for (int i = 0; i < in->rank; i++) {
        if (!plan->is_reduced[i]) {
            type.dims[type.rank++] = in->dims[i];
        }
    }
    ref_strides(&type, strides);
    for (int i = 0, k = 0; i < in->rank; i++) {
        plan->steps[i] = plan->is_reduced[i] ? 0 : strides[k++];
    }
    for (int i = 0; i < n; i++) {
        type.dtype = ref_in_type(p, op, i)->dtype;
        SX_TRY(ref_expect(p, op, i, &type));
    }
    plan->n = n;
    p->flops += (double)sx_type_elems(in);
    *out_plan = plan;
    return SX_OK;
}

/* sums: n lanes for each element of the result. */
static sx_status reduce_into(ref_run *r, const ref_op *op, ref_lane *sums)
{
    const reduce_plan *plan = op->plan;
    ref_lambda f = ref_lambda_of(r->program, &op->regions[0]);
    const ref_array *in[MAX_ARRAYS];
    int64_t index[SX_MAX_RANK] = {0}, k = 0;
    int n = plan->n;
    for (int i = 0; i < n; i++) {
        in[i] = ref_in(r, op, i);
    }
    do {
        ref_lane values[MAX_ARRAYS],
            *sum = sums + ref_dot(index, plan->steps, in[0]->type.rank) * n;
        for (int i = 0; i < n; i++) {
            values[i] = ref_get(in[i], k);
        }
        SX_TRY(apply(r, &f, n, sum, values, sum));
        k++;
    } while (ref_next_index(&in[0]->type, index));
    return SX_OK;
}

static sx_status run_reduce(ref_run *r, const ref_op *op)
{
    const reduce_plan *plan = op->plan;
    ref_array *out[MAX_ARRAYS];
    int n = plan->n;
    for (int i = 0; i < n; i++) {
        SX_TRY(ref_out(r, op, i, &out[i]));
    }
    int64_t elems = sx_type_elems(&out[0]->type);
    ref_lane *sums = sx_alloc((size_t)elems * (size_t)n + 1, sizeof(*sums));
    if (sums == NULL) {
        return no_memory();
    }
    for (int64_t e = 0; e < elems; e++) {
        for (int i = 0; i < n; i++) {
            sums[e * n + i] = ref_get(ref_in(r, op, n + i), 0);
        }
    }
    sx_status status =
        sx_type_elems(&ref_in(r, op, 0)->type) > 0 ? reduce_into(r, op, sums) : SX_OK;
    for (int64_t e = 0; e < elems && status == SX_OK; e++) {
        for (int i = 0; i < n; i++) {
            ref_put(out[i], e, sums[e * n + i]);
        }
    }
    sx_free(sums);
    return status;
}

/* ---- Windows ---- */

typedef struct window {
    const int64_t *size, *stride, *pads; /* pads: [rank][2] */
    sx_type size_type;                   /* for walking the window */
} window;

/* Reads the attributes; *out_type gets the dimensions of the windows of `in`. */
static sx_status check_window(ref_program *p, const ref_op *op, const sx_type *in, window **out,
                              sx_type *out_type)
{
    window *w = sx_arena_new(&p->arena, window);
    if (w == NULL) {
        return no_memory();
    }
    SX_TRY(ref_attr_ints(op, "window_dimensions", in->rank, &w->size, NULL));
    SX_TRY(ref_attr_ints(op, "window_strides", in->rank, &w->stride, NULL));
    SX_TRY(ref_attr_ints(op, "padding", 2 * in->rank, &w->pads, NULL));
    *out_type = *in;
    w->size_type = *in;
    int64_t elems = 1;
    for (int i = 0; i < in->rank; i++) {
        int64_t low = w->pads[2 * i], high = w->pads[2 * i + 1];
        bool sane = w->size[i] > 0 && w->stride[i] > 0 && low >= 0 && high >= 0 &&
                    w->size[i] < REF_MAX_ELEMS && low < REF_MAX_ELEMS && high < REF_MAX_ELEMS;
        int64_t room = sane ? in->dims[i] + low + high - w->size[i] : -1;
        if (room < 0 || !sx_mul_i64(elems, w->size[i], &elems) || elems > MAX_WINDOW) {
            return ref_wrong("a window of %lld by %lld over dimension %d, which has %lld",
                             (long long)w->size[i], (long long)w->stride[i], i,
                             (long long)in->dims[i]);
        }
        out_type->dims[i] = room / w->stride[i] + 1;
        w->size_type.dims[i] = w->size[i];
    }
    p->flops += (double)sx_type_elems(out_type) * (double)elems;
    *out = w;
    return SX_OK;
}

/* The place in `in` of element `at` of the window `out`; -1 = in the padding. */
static int64_t place_in(const window *w, const sx_type *in, const int64_t *strides,
                        const int64_t *out, const int64_t *at)
{
    int64_t place = 0;
    for (int i = 0; i < in->rank; i++) {
        int64_t k = out[i] * w->stride[i] + at[i] - w->pads[2 * i];
        if (k < 0 || k >= in->dims[i]) {
            return -1;
        }
        place += k * strides[i];
    }
    return place;
}

static sx_status check_reduce_window(ref_program *p, const ref_op *op, void **out_plan)
{
    window *w;
    sx_type type;
    SX_TRY(check_reducer(p, op, 1));
    SX_TRY(check_window(p, op, ref_in_type(p, op, 0), &w, &type));
    if (ref_lambda_of(p, &op->regions[0]).kernel == NULL) {
        return ref_wrong("reduces by one operation only");
    }
    *out_plan = w;
    return ref_expect(p, op, 0, &type);
}

static sx_status run_reduce_window(ref_run *r, const ref_op *op)
{
    const window *w = op->plan;
    ref_lambda f = ref_lambda_of(r->program, &op->regions[0]);
    const ref_array *in = ref_in(r, op, 0);
    ref_array *out;
    int64_t index[SX_MAX_RANK] = {0}, strides[SX_MAX_RANK], k = 0;
    SX_TRY(ref_out(r, op, 0, &out));
    ref_strides(&in->type, strides);
    if (sx_type_elems(&out->type) == 0) {
        return SX_OK;
    }
    do {
        int64_t at[SX_MAX_RANK] = {0};
        ref_lane sum = ref_get(ref_in(r, op, 1), 0);
        do {
            int64_t place = place_in(w, &in->type, strides, index, at);
            if (place >= 0) {
                ref_lane v = ref_get(in, place);
                f.kernel(&sum, &v, &sum, 1);
            }
        } while (ref_next_index(&w->size_type, at));
        ref_put(out, k++, sum);
    } while (ref_next_index(&out->type, index));
    return SX_OK;
}

static sx_status check_select_and_scatter(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *in = ref_in_type(p, op, 0), flag = sx_scalar_type(SX_BOOL);
    const sx_type scalars[2] = {sx_scalar_type(in->dtype), sx_scalar_type(in->dtype)};
    window *w;
    sx_type type;
    SX_TRY(check_window(p, op, in, &w, &type));
    if (!sx_type_equal(&type, ref_in_type(p, op, 1)) ||
        !sx_type_equal(ref_in_type(p, op, 2), &scalars[0])) {
        return ref_wrong("takes a source with an element for each window, and a scalar");
    }
    SX_TRY(ref_check_region(p, op, 0, scalars, 2, &flag, 1));
    SX_TRY(ref_check_region(p, op, 1, scalars, 2, scalars, 1));
    if (ref_lambda_of(p, &op->regions[0]).kernel == NULL ||
        ref_lambda_of(p, &op->regions[1]).kernel == NULL) {
        return ref_wrong("selects and scatters by one operation each only");
    }
    *out_plan = w;
    return ref_expect(p, op, 0, in);
}

/* The element of a window that is selected: the first, unless select(it, a later one) is false. */
static int64_t select_in(const window *w, const ref_array *in, const int64_t *strides,
                         const int64_t *index, ref_kernel *select)
{
    int64_t at[SX_MAX_RANK] = {0}, best = -1;
    ref_lane best_value = {.u = 0};
    do {
        int64_t place = place_in(w, &in->type, strides, index, at);
        if (place >= 0) {
            ref_lane v = ref_get(in, place), keep = {.u = 0};
            if (best >= 0) {
                select(&best_value, &v, &keep, 1);
            }
            best = keep.u != 0 ? best : place;
            best_value = keep.u != 0 ? best_value : v;
        }
    } while (ref_next_index(&w->size_type, at));
    return best;
}

static sx_status run_select_and_scatter(ref_run *r, const ref_op *op)
{
    const window *w = op->plan;
    ref_kernel *select = ref_lambda_of(r->program, &op->regions[0]).kernel,
               *scatter = ref_lambda_of(r->program, &op->regions[1]).kernel;
    const ref_array *in = ref_in(r, op, 0), *source = ref_in(r, op, 1);
    ref_array *out;
    int64_t index[SX_MAX_RANK] = {0}, strides[SX_MAX_RANK], k = 0;
    SX_TRY(ref_out(r, op, 0, &out));
    ref_strides(&in->type, strides);
    int64_t n = sx_type_elems(&out->type);
    for (int64_t i = 0; i < n; i++) {
        ref_put(out, i, ref_get(ref_in(r, op, 2), 0));
    }
    if (sx_type_elems(&source->type) == 0) {
        return SX_OK;
    }
    do {
        int64_t best = select_in(w, in, strides, index, select);
        if (best >= 0) {
            ref_lane sum = ref_get(out, best), v = ref_get(source, k);
            scatter(&sum, &v, &sum, 1);
            ref_put(out, best, sum);
        }
        k++;
    } while (ref_next_index(&source->type, index));
    return SX_OK;
}

/* ---- Sort ---- */

typedef struct sort_plan {
    int n, axis;
} sort_plan;

static sx_status check_sort(ref_program *p, const ref_op *op, void **out_plan)
{
    sx_type scalars[2 * MAX_ARRAYS], flag = sx_scalar_type(SX_BOOL);
    sort_plan *plan = sx_arena_new(&p->arena, sort_plan);
    int64_t axis;
    int n = op->n_in;
    if (plan == NULL || n < 1 || n > MAX_ARRAYS || op->n_out != n) {
        return plan == NULL ? no_memory() : ref_wrong("sorts 1 to %d arrays", MAX_ARRAYS);
    }
    for (int i = 0; i < n; i++) {
        const sx_type *type = ref_in_type(p, op, i);
        scalars[2 * i] = scalars[2 * i + 1] = sx_scalar_type(type->dtype);
        if (!ref_same_dims(type, ref_in_type(p, op, 0))) {
            return ref_wrong("takes operands of one shape");
        }
        SX_TRY(ref_expect(p, op, i, type));
    }
    SX_TRY(ref_attr_int(op, "dimension", 0, ref_in_type(p, op, 0)->rank - 1, &axis));
    SX_TRY(ref_check_region(p, op, 0, scalars, 2 * n, &flag, 1));
    *plan = (sort_plan){n, (int)axis};
    *out_plan = plan;
    return SX_OK;
}

typedef struct sorting {
    ref_run *r;
    const ref_op *op;
    int64_t base, step; /* of the line being sorted */
    int n;
    sx_status status;
} sorting;

/* Does element b of the line come before element a? */
static bool comes_before(sorting *s, int64_t b, int64_t a)
{
    ref_lane args[2 * MAX_ARRAYS], before = {.u = 0};
    for (int i = 0; i < s->n; i++) {
        args[2 * i] = ref_get(ref_in(s->r, s->op, i), s->base + b * s->step);
        args[2 * i + 1] = ref_get(ref_in(s->r, s->op, i), s->base + a * s->step);
    }
    if (s->status == SX_OK) {
        s->status = call_region(s->r, &s->op->regions[0], args, &before);
    }
    return before.u != 0;
}

/* Stable merge sort of order[n]. */
static void merge_sort(sorting *s, int64_t *order, int64_t *scratch, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t a = begin, middle = SX_MIN(begin + width, n), b = middle,
                    end = SX_MIN(begin + 2 * width, n);
            for (int64_t k = begin; k < end; k++) {
                bool second = a == middle || (b < end && comes_before(s, order[b], order[a]));
                scratch[k] = second ? order[b++] : order[a++];
            }
        }
        memcpy(order, scratch, (size_t)n * sizeof(*order));
    }
}

static sx_status sort_lines(sorting *s, ref_array *const *out, int axis, int64_t *order)
{
    const sx_type *type = &ref_in(s->r, s->op, 0)->type;
    int64_t index[SX_MAX_RANK] = {0}, strides[SX_MAX_RANK], n = type->dims[axis];
    sx_type lines = *type;
    lines.dims[axis] = 1;
    ref_strides(type, strides);
    s->step = strides[axis];
    do {
        s->base = ref_dot(index, strides, type->rank);
        for (int64_t k = 0; k < n; k++) {
            order[k] = k;
        }
        merge_sort(s, order, order + n, n);
        for (int64_t k = 0; k < n; k++) {
            for (int i = 0; i < s->n; i++) {
                ref_put(out[i], s->base + k * s->step,
                        ref_get(ref_in(s->r, s->op, i), s->base + order[k] * s->step));
            }
        }
    } while (s->status == SX_OK && ref_next_index(&lines, index));
    return s->status;
}

static sx_status run_sort(ref_run *r, const ref_op *op)
{
    const sort_plan *plan = op->plan;
    ref_array *out[MAX_ARRAYS];
    sorting s = {.r = r, .op = op, .n = plan->n};
    for (int i = 0; i < plan->n; i++) {
        SX_TRY(ref_out(r, op, i, &out[i]));
    }
    const sx_type *type = &out[0]->type;
    if (sx_type_elems(type) == 0) {
        return SX_OK;
    }
    int64_t *order = sx_alloc(2 * (size_t)type->dims[plan->axis], sizeof(*order));
    if (order == NULL) {
        return no_memory();
    }
    sx_status status = sort_lines(&s, out, plan->axis, order);
    sx_free(order);
    return status;
}

const ref_row ref_reduce_rows[] = {
    {.name = "reduce",
     .n_in = REF_ANY,
     .n_out = REF_ANY,
     .n_regions = 1,
     .check = check_reduce,
     .run = run_reduce},
    {.name = "reduce_window",
     .n_in = 2,
     .n_out = 1,
     .n_regions = 1,
     .check = check_reduce_window,
     .run = run_reduce_window},
    {.name = "select_and_scatter",
     .n_in = 3,
     .n_out = 1,
     .n_regions = 2,
     .check = check_select_and_scatter,
     .run = run_select_and_scatter},
    {.name = "sort",
     .n_in = REF_ANY,
     .n_out = REF_ANY,
     .n_regions = 1,
     .check = check_sort,
     .run = run_sort},
    {.name = NULL},
};
