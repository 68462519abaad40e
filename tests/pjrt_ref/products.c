/* Products: dot_general, and convolutions of the one form that Sextant emits (NHWC by HWIO, one
 * batch group, no reversal). Operands are widened to double, so are sums; one rounding at the end.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_ref/ops.h"

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

/* All elements of a float or integer array as doubles; the caller frees. NULL = out of memory. */
static double *widen(const ref_array *a)
{
    ref_lane lanes[REF_LANES], floats[REF_LANES];
    int64_t n = sx_type_elems(&a->type);
    double *wide = sx_alloc((size_t)n + 1, sizeof(*wide));
    for (int64_t at = 0; wide != NULL && at < n; at += REF_LANES) {
        int count = (int)SX_MIN(n - at, REF_LANES);
        ref_load(a->type.dtype, a->data, at, count, lanes);
        ref_convert(a->type.dtype, SX_F64, count, lanes, floats);
        for (int i = 0; i < count; i++) {
            wide[at + i] = floats[i].f;
        }
    }
    return wide;
}

static void narrow(const double *sums, int64_t n, ref_array *out, int64_t at)
{
    ref_lane lanes[REF_LANES];
    for (int64_t done = 0; done < n; done += REF_LANES) {
        int count = (int)SX_MIN(n - done, REF_LANES);
        for (int i = 0; i < count; i++) {
            lanes[i].f = sums[done + i];
        }
        if (ref_class_of(out->type.dtype) != REF_FLOAT) {
            ref_convert(SX_F64, out->type.dtype, count, lanes, lanes);
        }
        ref_store(out->type.dtype, out->data, at + done, count, lanes);
    }
}

static bool is_float(const sx_type *type)
{
    return ref_class_of(type->dtype) == REF_FLOAT;
}

static void axpy(double a, const double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

/* --- dot_general ------------------------------------------------------------------------------
 *
 * result[batch…, free of lhs…, free of rhs…] = sum over contracted of lhs · rhs */

/* Some dimensions of an operand: their sizes and steps, in order. */
typedef struct dims {
    int rank;
    int64_t sizes[SX_MAX_RANK], steps[SX_MAX_RANK], count;
} dims;

typedef struct side {
    dims batch, free, contracted;
} side;

typedef struct dot_plan {
    side lhs, rhs;
} dot_plan;

static dims dims_of(const sx_type *type, const int64_t *which, int n)
{
    int64_t strides[SX_MAX_RANK];
    dims d = {.rank = n, .count = 1};
    ref_strides(type, strides);
    for (int i = 0; i < n; i++) {
        d.sizes[i] = type->dims[which[i]];
        d.steps[i] = strides[which[i]];
        d.count *= d.sizes[i];
    }
    return d;
}

static sx_status check_side(const ref_attr *record, const char *batching, const char *contracting,
                            const sx_type *type, side *out)
{
    const int64_t *batch, *contracted;
    int64_t all[2 * SX_MAX_RANK], rest[SX_MAX_RANK];
    int n_batch = 0, n_contracted = 0, n_rest = 0;
    SX_TRY(ref_field_ints(record, batching, REF_ANY, &batch, &n_batch));
    SX_TRY(ref_field_ints(record, contracting, REF_ANY, &contracted, &n_contracted));
    for (int i = 0; i < n_batch + n_contracted; i++) {
        all[i] = i < n_batch ? batch[i] : contracted[i - n_batch];
    }
    SX_TRY(ref_check_axes(contracting, all, n_batch + n_contracted, type->rank));
    for (int i = 0; i < type->rank; i++) {
        bool free = true;
        for (int k = 0; k < n_batch + n_contracted; k++) {
            free = free && all[k] != i;
        }
        if (free) {
            rest[n_rest++] = i;
        }
    }
    *out = (side){dims_of(type, batch, n_batch), dims_of(type, rest, n_rest),
                  dims_of(type, contracted, n_contracted)};
    return SX_OK;
}

static bool same_sizes(const dims *a, const dims *b)
{
    return a->rank == b->rank &&
           memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof(a->sizes[0])) == 0;
}

static sx_status check_dot(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *lhs = ref_in_type(p, op, 0), *rhs = ref_in_type(p, op, 1);
    const ref_attr *record = ref_attr_find(op->attrs, op->n_attrs, "dot_dimension_numbers");
    dot_plan *plan = sx_arena_new(&p->arena, dot_plan);
    if (plan == NULL || record == NULL || record->kind != REF_RECORD) {
        return plan == NULL ? no_memory() : ref_wrong("requires 'dot_dimension_numbers'");
    }
    SX_TRY(check_side(record, "lhs_batching_dimensions", "lhs_contracting_dimensions", lhs,
                      &plan->lhs));
    SX_TRY(check_side(record, "rhs_batching_dimensions", "rhs_contracting_dimensions", rhs,
                      &plan->rhs));
    if (!same_sizes(&plan->lhs.batch, &plan->rhs.batch) ||
        !same_sizes(&plan->lhs.contracted, &plan->rhs.contracted) || lhs->dtype != rhs->dtype) {
        return ref_wrong("the operands' batching or contracting dimensions differ");
    }
    const dims *parts[] = {&plan->lhs.batch, &plan->lhs.free, &plan->rhs.free};
    sx_type type = {.dtype = ref_out_type(p, op, 0)->dtype};
    for (size_t k = 0; k < SX_COUNT(parts); k++) {
        for (int i = 0; i < parts[k]->rank; i++) {
            if (type.rank == SX_MAX_RANK) {
                return ref_wrong("the result has more than %d dimensions", SX_MAX_RANK);
            }
            type.dims[type.rank++] = parts[k]->sizes[i];
        }
    }
    *out_plan = plan;
    p->flops += 2 * (double)sx_type_elems(&type) * (double)plan->lhs.contracted.count;
    const bool fits = is_float(lhs) ? is_float(&type) : type.dtype == lhs->dtype;
    return fits ? ref_expect(p, op, 0, &type)
                : ref_wrong("multiplies floats to floats, integers to integers of their type");
}

/* The offset of the k-th index of some dimensions. */
static int64_t offset_of(const dims *d, int64_t k)
{
    int64_t offset = 0;
    for (int i = d->rank; i-- > 0;) {
        offset += k % d->sizes[i] * d->steps[i];
        k /= d->sizes[i];
    }
    return offset;
}

/* One row of the result: lhs at (batch, free) against all free of rhs. */
static void dot_row(const dot_plan *plan, const double *lhs, const double *rhs, double *sums)
{
    const dims *free = &plan->rhs.free;
    bool dense = free->rank == 1 && free->steps[0] == 1;
    for (int64_t k = 0; k < plan->lhs.contracted.count; k++) {
        double a = lhs[offset_of(&plan->lhs.contracted, k)];
        const double *row = rhs + offset_of(&plan->rhs.contracted, k);
        if (dense) {
            axpy(a, row, sums, free->count);
            continue;
        }
        for (int64_t n = 0; n < free->count; n++) {
            sums[n] += a * row[offset_of(free, n)];
        }
    }
}

static void dot_all(const dot_plan *plan, const double *lhs, const double *rhs, double *sums,
                    ref_array *out)
{
    int64_t at = 0, width = plan->rhs.free.count;
    for (int64_t b = 0; b < plan->lhs.batch.count; b++) {
        const double *lhs_part = lhs + offset_of(&plan->lhs.batch, b);
        const double *rhs_part = rhs + offset_of(&plan->rhs.batch, b);
        for (int64_t m = 0; m < plan->lhs.free.count; m++) {
            memset(sums, 0, (size_t)width * sizeof(*sums));
            dot_row(plan, lhs_part + offset_of(&plan->lhs.free, m), rhs_part, sums);
            narrow(sums, width, out, at);
            at += width;
        }
    }
}

static sx_status run_dot(ref_run *r, const ref_op *op)
{
    const dot_plan *plan = op->plan;
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    double *lhs = widen(ref_in(r, op, 0)), *rhs = widen(ref_in(r, op, 1));
    double *sums = sx_alloc((size_t)plan->rhs.free.count + 1, sizeof(*sums));
    bool made = lhs != NULL && rhs != NULL && sums != NULL;
    if (made && sx_type_elems(&out->type) > 0) {
        dot_all(plan, lhs, rhs, sums, out);
    }
    sx_free(lhs);
    sx_free(rhs);
    sx_free(sums);
    return made ? SX_OK : no_memory();
}

/* ---- Convolution ---- */

typedef struct conv_plan {
    int64_t n, in[2], channels;        /* x: [n, in0, in1, channels] */
    int64_t kernel[2], depth, filters; /* w: [kernel0, kernel1, depth, filters] */
    int64_t out[2];
    int64_t stride[2], low[2], x_dilation[2], w_dilation[2], groups;
} conv_plan;

/* The numbers that mean NHWC by HWIO. */
static sx_status check_conv_layout(const ref_op *op)
{
    static const struct {
        const char *name;
        int64_t first;
        int n;
    } rows[] = {
        {"input_batch_dimension", 0, 1},          {"input_feature_dimension", 3, 1},
        {"input_spatial_dimensions", 1, 2},       {"kernel_spatial_dimensions", 0, 2},
        {"kernel_input_feature_dimension", 2, 1}, {"kernel_output_feature_dimension", 3, 1},
        {"output_batch_dimension", 0, 1},         {"output_feature_dimension", 3, 1},
        {"output_spatial_dimensions", 1, 2},
    };
    const ref_attr *record = ref_attr_find(op->attrs, op->n_attrs, "dimension_numbers");
    if (record == NULL || record->kind != REF_RECORD) {
        return ref_wrong("requires 'dimension_numbers'");
    }
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const int64_t *v;
        SX_TRY(ref_field_ints(record, rows[i].name, rows[i].n, &v, NULL));
        if (v[0] != rows[i].first || (rows[i].n == 2 && v[1] != v[0] + 1)) {
            return sx_error(SX_UNIMPLEMENTED, "is only implemented for NHWC by HWIO (%s)",
                            rows[i].name);
        }
    }
    return SX_OK;
}

/* Numbers of one attribute into to[2], each from `least` to 2^20. */
static sx_status take_pair(const ref_op *op, const char *name, int64_t least, int64_t to[2])
{
    const int64_t *v = NULL;
    SX_TRY(ref_attr_ints(op, name, 2, &v, NULL));
    for (int i = 0; i < 2; i++) {
        if (v[i] < least || v[i] > 1 << 20) {
            return ref_wrong("attribute '%s' has %lld", name, (long long)v[i]);
        }
        to[i] = v[i];
    }
    return SX_OK;
}

static sx_status check_conv_attrs(const ref_op *op, conv_plan *c, const int64_t **out_pads)
{
    int64_t reversal[2] = {0}, batch_groups;
    SX_TRY(check_conv_layout(op));
    SX_TRY(take_pair(op, "window_strides", 1, c->stride));
    SX_TRY(take_pair(op, "lhs_dilation", 1, c->x_dilation));
    SX_TRY(take_pair(op, "rhs_dilation", 1, c->w_dilation));
    SX_TRY(take_pair(op, "window_reversal", 0, reversal));
    SX_TRY(ref_attr_int(op, "feature_group_count", 1, 1 << 20, &c->groups));
    SX_TRY(ref_attr_int(op, "batch_group_count", 1, 1, &batch_groups));
    SX_TRY(ref_attr_ints(op, "padding", 4, out_pads, NULL));
    for (int i = 0; i < 4; i++) {
        if ((*out_pads)[i] < 0 || (*out_pads)[i] > 1 << 20) {
            return ref_wrong("attribute 'padding' has %lld", (long long)(*out_pads)[i]);
        }
    }
    return reversal[0] != 0 || reversal[1] != 0
               ? sx_error(SX_UNIMPLEMENTED, "is not implemented with reversed windows")
               : SX_OK;
}

static sx_status check_conv(ref_program *p, const ref_op *op, void **out_plan)
{
    const sx_type *x = ref_in_type(p, op, 0), *w = ref_in_type(p, op, 1);
    const int64_t *pads;
    conv_plan *c = sx_arena_new(&p->arena, conv_plan);
    if (c == NULL) {
        return no_memory();
    }
    SX_TRY(check_conv_attrs(op, c, &pads));
    if (x->rank != 4 || w->rank != 4 || !is_float(x) || x->dtype != w->dtype ||
        !is_float(ref_out_type(p, op, 0)) || x->dims[3] != w->dims[2] * c->groups ||
        w->dims[3] % c->groups != 0) {
        return ref_wrong(
            "convolves [n,h,w,groups x c] with [kh,kw,c,groups x f] of one float type");
    }
    c->n = x->dims[0];
    c->channels = x->dims[3];
    c->depth = w->dims[2];
    c->filters = w->dims[3];
    for (int i = 0; i < 2; i++) {
        c->in[i] = x->dims[1 + i];
        c->kernel[i] = w->dims[i];
        c->low[i] = pads[2 * i];
        if (c->in[i] < 1 || c->kernel[i] < 1 || c->in[i] > 1 << 20 || c->kernel[i] > 1 << 20) {
            return ref_wrong("an image or a kernel without pixels, or with too many");
        }
        int64_t room = (c->in[i] - 1) * c->x_dilation[i] + 1 + pads[2 * i] + pads[2 * i + 1] -
                       ((c->kernel[i] - 1) * c->w_dilation[i] + 1);
        c->out[i] = room < 0 ? 0 : room / c->stride[i] + 1;
    }
    sx_type type =
        sx_type_of(ref_out_type(p, op, 0)->dtype, c->n, c->out[0], c->out[1], c->filters);
    p->flops +=
        2 * (double)sx_type_elems(&type) * (double)(c->kernel[0] * c->kernel[1]) * (double)c->depth;
    *out_plan = c;
    return ref_expect(p, op, 0, &type);
}

/* The pixel that kernel place k of output place `at` reads; -1 = padding or between pixels. */
static int64_t pixel(const conv_plan *c, int i, int64_t at, int64_t k)
{
    int64_t place = at * c->stride[i] - c->low[i] + k * c->w_dilation[i];
    bool is_pixel = place >= 0 && place % c->x_dilation[i] == 0;
    place /= c->x_dilation[i];
    return is_pixel && place < c->in[i] ? place : -1;
}

/* Adds one pixel's channels times the filters at one kernel place. */
static void conv_pixel(const conv_plan *c, const double *x, const double *w, double *sums)
{
    int64_t per_group = c->filters / c->groups;
    for (int64_t g = 0; g < c->groups; g++) {
        for (int64_t d = 0; d < c->depth; d++) {
            axpy(x[g * c->depth + d], w + d * c->filters + g * per_group, sums + g * per_group,
                 per_group);
        }
    }
}

static void conv_place(const conv_plan *c, const double *image, const double *w, int64_t oh,
                       int64_t ow, double *sums)
{
    memset(sums, 0, (size_t)c->filters * sizeof(*sums));
    for (int64_t kh = 0; kh < c->kernel[0]; kh++) {
        int64_t h = pixel(c, 0, oh, kh);
        for (int64_t kw = 0; kw < c->kernel[1] && h >= 0; kw++) {
            int64_t v = pixel(c, 1, ow, kw);
            if (v >= 0) {
                conv_pixel(c, image + (h * c->in[1] + v) * c->channels,
                           w + (kh * c->kernel[1] + kw) * c->depth * c->filters, sums);
            }
        }
    }
}

static sx_status run_conv(ref_run *r, const ref_op *op)
{
    const conv_plan *c = op->plan;
    ref_array *out;
    SX_TRY(ref_out(r, op, 0, &out));
    double *x = widen(ref_in(r, op, 0)), *w = widen(ref_in(r, op, 1));
    double *sums = sx_alloc((size_t)c->filters + 1, sizeof(*sums));
    bool made = x != NULL && w != NULL && sums != NULL;
    int64_t at = 0, image = c->in[0] * c->in[1] * c->channels;
    for (int64_t n = 0; n < c->n && made; n++) {
        for (int64_t k = 0; k < c->out[0] * c->out[1]; k++) {
            conv_place(c, x + n * image, w, k / c->out[1], k % c->out[1], sums);
            narrow(sums, c->filters, out, at);
            at += c->filters;
        }
    }
    sx_free(x);
    sx_free(w);
    sx_free(sums);
    return made ? SX_OK : no_memory();
}

const ref_row ref_product_rows[] = {
    {.name = "dot_general", .n_in = 2, .n_out = 1, .check = check_dot, .run = run_dot},
    {.name = "convolution", .n_in = 2, .n_out = 1, .check = check_conv, .run = run_conv},
    {.name = NULL},
};
