/* Windows of convolutions and pools: see conv_geometry.h. */
#include "graph/ops/conv_geometry.h"

#include <assert.h>
#include <math.h>

#include "base/memory.h"
#include "graph/ops/common.h"

enum { MAX_EXTENT = 1 << 30 }; /* of every size, so that products of two do not overflow */

static bool is_extent(int64_t v)
{
    return v >= 1 && v <= MAX_EXTENT;
}

/* Fills w->out and the pads from in, kernel, stride, dilation. */
static sx_status fit_window(const char *axis, int32_t padding, int64_t before, int64_t after,
                            sx_conv_window *w)
{
    const struct {
        const char *name;
        int64_t value, least;
    } extents[] = {{"image", w->in, 1},          {"window", w->kernel, 1}, {"stride", w->stride, 1},
                   {"dilation", w->dilation, 1}, {"padding", before, 0},   {"padding", after, 0}};
    for (size_t i = 0; i < SX_COUNT(extents); i++) {
        if (extents[i].value < extents[i].least || extents[i].value > MAX_EXTENT) {
            return sx_error(SX_INVALID_ARGUMENT, "the %s's %s is %lld, expected %lld to 2^30",
                            extents[i].name, axis, (long long)extents[i].value,
                            (long long)extents[i].least);
        }
    }
    int64_t span = (w->kernel - 1) * w->dilation + 1;
    if (padding == SX_SAME) {
        w->out = (w->in + w->stride - 1) / w->stride;
        int64_t total = SX_MAX((w->out - 1) * w->stride + span - w->in, 0);
        w->pad_before = total / 2;
        w->pad_after = total - total / 2;
        return SX_OK;
    }
    int64_t room = w->in + before + after - span;
    if (room < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a window of %s %lld does not fit an image of %s %lld; use SX_SAME", axis,
                        (long long)span, axis, (long long)w->in);
    }
    w->out = room / w->stride + 1;
    w->pad_before = before;
    w->pad_after = after;
    return SX_OK;
}

static int64_t pair_or(const sx_ints *pair, int i, int64_t fallback)
{
    return pair->n == 0 ? fallback : pair->v[i];
}

static sx_status check_lists(const sx_ints *a, const sx_ints *b, int32_t padding,
                             const sx_ints *pads)
{
    bool pairs = (a->n == 0 || a->n == 2) && (b->n == 0 || b->n == 2);
    bool known = padding >= SX_VALID && padding <= SX_EXPLICIT;
    if (pairs && known && pads->n == (padding == SX_EXPLICIT ? 4 : 0)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "strides and dilations must be {h, w}, and pads {top, bottom, left, right}, "
                    "with SX_EXPLICIT only");
}

sx_status sx_conv_geometry_of(const sx_conv2d_attrs *attrs, const sx_type *x, const sx_type *filter,
                              sx_conv_geometry *out)
{
    SX_TRY(sx_require_float("x", x));
    SX_TRY(sx_require_rank("x", x, 4, "[N,H,W,C]"));
    SX_TRY(sx_require_rank("filter", filter, 4, "[KH,KW,C,O]"));
    SX_TRY(check_lists(&attrs->strides, &attrs->dilations, attrs->padding, &attrs->pads));
    int64_t groups = attrs->groups == 0 ? 1 : attrs->groups;
    int64_t c = filter->dims[2], o = filter->dims[3];
    if (!is_extent(groups) || !is_extent(c) || !is_extent(o)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "filter %s with %lld groups; expected 1 to 2^30 channels, filters and "
                        "groups",
                        SX_TEXT(filter), (long long)groups);
    }
    if (x->dims[3] != c * groups) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x %s has %lld channels, expected %lld: %lld groups of the %lld channels "
                        "of filter %s",
                        SX_TEXT(x), (long long)x->dims[3], (long long)(c * groups),
                        (long long)groups, (long long)c, SX_TEXT(filter));
    }
    if (o % groups != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "filter %s has %lld filters, expected a multiple of the %lld groups",
                        SX_TEXT(filter), (long long)o, (long long)groups);
    }
    sx_conv_geometry g = {.n = x->dims[0], .groups = groups, .c = c, .o = o / groups};
    g.h = (sx_conv_window){.in = x->dims[1], .kernel = filter->dims[0]};
    g.w = (sx_conv_window){.in = x->dims[2], .kernel = filter->dims[1]};
    g.h.stride = pair_or(&attrs->strides, 0, 1);
    g.w.stride = pair_or(&attrs->strides, 1, 1);
    g.h.dilation = pair_or(&attrs->dilations, 0, 1);
    g.w.dilation = pair_or(&attrs->dilations, 1, 1);
    const int64_t *pads = attrs->pads.v;
    SX_TRY(fit_window("height", attrs->padding, pads[0], pads[1], &g.h));
    SX_TRY(fit_window("width", attrs->padding, pads[2], pads[3], &g.w));
    *out = g;
    return SX_OK;
}

sx_status sx_pool_geometry_of(const sx_pool2d_attrs *attrs, const sx_type *x, sx_pool_geometry *out)
{
    SX_TRY(sx_require_float("x", x));
    SX_TRY(sx_require_rank("x", x, 4, "[N,H,W,C]"));
    if (attrs->window.n != 2 || (attrs->padding == SX_EXPLICIT && attrs->pads.n != 4)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the window must be {h, w} and the padding SX_VALID or SX_SAME; for other "
                        "padding add sx_pad()");
    }
    SX_TRY(check_lists(&attrs->window, &attrs->strides, attrs->padding, &attrs->pads));
    sx_pool_geometry g = {.n = x->dims[0], .c = x->dims[3]};
    g.h = (sx_conv_window){.in = x->dims[1], .kernel = attrs->window.v[0], .dilation = 1};
    g.w = (sx_conv_window){.in = x->dims[2], .kernel = attrs->window.v[1], .dilation = 1};
    g.h.stride = pair_or(&attrs->strides, 0, g.h.kernel);
    g.w.stride = pair_or(&attrs->strides, 1, g.w.kernel);
    const int64_t *pads = attrs->pads.v;
    SX_TRY(fit_window("height", attrs->padding, pads[0], pads[1], &g.h));
    SX_TRY(fit_window("width", attrs->padding, pads[2], pads[3], &g.w));
    if (SX_MAX(g.h.pad_before, g.h.pad_after) >= g.h.kernel ||
        SX_MAX(g.w.pad_before, g.w.pad_after) >= g.w.kernel) {
        return sx_error(SX_INVALID_ARGUMENT, "a window would have nothing but padding");
    }
    *out = g;
    return SX_OK;
}

/* Of the image that n outputs read: without padding the part that their windows cover; with padding
 * the whole image, since the padding of a smaller one may be another. */
static int64_t window_part(const sx_conv_window *w, int64_t n)
{
    bool padded = w->pad_before != 0 || w->pad_after != 0;
    int64_t read = (n - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    return padded || n <= 0 || read > w->in ? w->in : read;
}

void sx_conv_image_part(const sx_conv2d_attrs *attrs, const sx_type *x, const sx_type *filter,
                        const sx_type *y_part, sx_type *x_part)
{
    sx_conv_geometry g = {0};
    sx_status status = sx_conv_geometry_of(attrs, x, filter, &g);
    if (status == SX_OK) {
        x_part->dims[0] = y_part->dims[0];
        x_part->dims[1] = window_part(&g.h, y_part->dims[1]);
        x_part->dims[2] = window_part(&g.w, y_part->dims[2]);
    }
    sx_status_free(status);
}

void sx_pool_image_part(const sx_pool2d_attrs *attrs, const sx_type *x, const sx_type *y_part,
                        sx_type *x_part)
{
    sx_pool_geometry g = {0};
    sx_status status = sx_pool_geometry_of(attrs, x, &g);
    if (status == SX_OK) {
        x_part->dims[0] = y_part->dims[0];
        x_part->dims[1] = window_part(&g.h, y_part->dims[1]);
        x_part->dims[2] = window_part(&g.w, y_part->dims[2]);
        x_part->dims[3] = y_part->dims[3];
    }
    sx_status_free(status);
}

bool sx_pool_parts_fit(const void *attrs, const sx_type *in, const sx_type *out)
{
    (void)attrs;
    return in->dims[0] == out->dims[0] && in->dims[3] == out->dims[3];
}

void sx_conv_into_y(double *x, double *w, double *y)
{
    *y += *x * *w;
}

void sx_conv_into_x(double *x, double *w, double *y)
{
    *x += *y * *w;
}

void sx_conv_into_filter(double *x, double *w, double *y)
{
    *w += *x * *y;
}

/* Visits all products of y[at]. */
static void walk_element(const sx_conv_geometry *g, const int64_t at[4], const sx_host_tensor *x,
                         const sx_host_tensor *filter, double *y, sx_conv_visit visit)
{
    int64_t group = at[3] / g->o;
    for (int64_t i = 0; i < g->h.kernel; i++) {
        int64_t row = sx_conv_window_at(&g->h, at[1], i);
        for (int64_t j = 0; j < g->w.kernel; j++) {
            int64_t column = sx_conv_window_at(&g->w, at[2], j);
            for (int64_t c = 0; c < g->c && row >= 0 && column >= 0; c++) {
                const int64_t x_at[] = {at[0], row, column, group * g->c + c};
                const int64_t w_at[] = {i, j, c, at[3]};
                visit(&x->f[sx_ravel(&x->type, x_at)], &filter->f[sx_ravel(&filter->type, w_at)],
                      y);
            }
        }
    }
}

void sx_conv_walk(const sx_conv2d_attrs *attrs, const sx_host_tensor *x,
                  const sx_host_tensor *filter, const sx_host_tensor *y, sx_conv_visit visit)
{
    sx_conv_geometry g;
    sx_status status = sx_conv_geometry_of(attrs, &x->type, &filter->type, &g);
    assert(status == SX_OK && "infer has accepted these types");
    (void)status;
    int64_t n = sx_type_elems(&y->type);
    for (int64_t k = 0; k < n; k++) {
        int64_t at[SX_MAX_RANK];
        sx_unravel(&y->type, k, at);
        walk_element(&g, at, x, filter, &y->f[k], visit);
    }
}

int64_t sx_conv_window_count(const sx_conv_window *w, int64_t o)
{
    int64_t count = 0;
    for (int64_t k = 0; k < w->kernel; k++) {
        count += sx_conv_window_at(w, o, k) >= 0;
    }
    return count;
}

void sx_pool_walk(const sx_pool2d_attrs *attrs, const sx_host_tensor *x, const sx_host_tensor *y,
                  sx_pool_visit visit, void *user)
{
    sx_pool_geometry g;
    sx_status status = sx_pool_geometry_of(attrs, &x->type, &g);
    assert(status == SX_OK && "infer has accepted this type");
    (void)status;
    int64_t n = sx_type_elems(&y->type);
    for (int64_t m = 0; m < n; m++) {
        int64_t at[SX_MAX_RANK];
        sx_unravel(&y->type, m, at);
        int64_t count = sx_conv_window_count(&g.h, at[1]) * sx_conv_window_count(&g.w, at[2]);
        for (int64_t k = 0; k < g.h.kernel * g.w.kernel; k++) {
            int64_t row = sx_conv_window_at(&g.h, at[1], k / g.w.kernel);
            int64_t column = sx_conv_window_at(&g.w, at[2], k % g.w.kernel);
            if (row >= 0 && column >= 0) {
                const int64_t x_at[] = {at[0], row, column, at[3]};
                visit(user, count, &x->f[sx_ravel(&x->type, x_at)], &y->f[m]);
            }
        }
    }
}

void sx_tf_pool(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op)
{
    const sx_pool2d_attrs *attrs = op->attrs;
    const sx_ints *steps = attrs->strides.n == 0 ? &attrs->window : &attrs->strides;
    const int64_t window[] = {1, attrs->window.v[0], attrs->window.v[1], 1};
    const int64_t strides[] = {1, steps->v[0], steps->v[1], 1};
    const sx_dtype dtype = op->in_types[0].dtype;
    const sx_tf_attr type = sx_tf_attr_type("T", (int)dtype);
    sx_tf_value x = op->in[0];
    if (attrs->padding == SX_EXPLICIT) { /* XLA and TensorFlow Lite have no such pools */
        int32_t pads[4][2] = {{0, 0},
                              {(int32_t)attrs->pads.v[0], (int32_t)attrs->pads.v[1]},
                              {(int32_t)attrs->pads.v[2], (int32_t)attrs->pads.v[3]},
                              {0, 0}};
        const sx_tf_value paddings =
            sx_tf_const(w, "paddings", &(sx_tensor){sx_type_of(SX_I32, 4, 2), pads});
        x = sx_tf_add(w, "PadV2", "pad",
                      sx_tf_in(x, paddings, sx_tf_scalar(w, "least", dtype, -INFINITY)),
                      sx_tf_attrs(type));
    }
    op->out[0] = sx_tf_add(
        w, tf_op, NULL, sx_tf_in(x),
        sx_tf_attrs(type, sx_tf_attr_ints("ksize", 4, window),
                    sx_tf_attr_ints("strides", 4, strides),
                    sx_tf_attr_string("padding", attrs->padding == SX_SAME ? "SAME" : "VALID")));
}

sx_value sx_build_pool(sx_builder *b, const sx_op_def *op, sx_value x,
                       const sx_nn_pool2d_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_nn_pool2d_args, args);
    sx_pool2d_attrs attrs = {
        .window = sx_pair_of(args->window, 0),
        .padding = (int32_t)args->padding,
    };
    attrs.strides = args->strides[0] == 0 ? attrs.window : sx_pair_of(args->strides, 0);
    return sx_build_at(b, op, &attrs, &x, 1, file, line);
}
