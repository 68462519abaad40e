/* Imports what reads every window of an image or a volume: patches, dilation, the places of maxima.
 *
 * Along each axis the windows are a gather by a matrix [windows, kernel]: [N,H,W,C] becomes
 * [N,H',KH,W',KW,C]. A place outside of the image gives zero there. */
#include "savedmodel/import_library_ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graph/ops/common.h"

enum { MAX_EXTENT = 1 << 20, MAX_SPATIAL = 3 };

sx_status sx_tf_window_places(const sx_tf_op_node *x, const sx_tf_windows *w, sx_value size,
                              sx_value *places, sx_value *before, sx_value *total)
{
    const int64_t extents[] = {w->kernel, w->stride, w->dilation};
    int64_t span;
    for (size_t i = 0; i < SX_COUNT(extents); i++) {
        if (extents[i] < 1 || extents[i] > MAX_EXTENT) {
            return sx_error(SX_DATA_LOSS,
                            "a window of %lld, stride %lld, dilation %lld, expected 1 to 2^20",
                            (long long)w->kernel, (long long)w->stride, (long long)w->dilation);
        }
    }
    span = (w->kernel - 1) * w->dilation + 1;
    sx_value n = SX_NO_VALUE, starts = SX_NO_VALUE, taps = SX_NO_VALUE;
    if (w->same) {
        SX_TRY(sx_tf_with_number(x, &sx_op_add, size, w->stride - 1, &n));
        SX_TRY(sx_tf_with_number(x, &sx_op_floor_div, n, w->stride, &n));
        SX_TRY(sx_tf_with_number(x, &sx_op_sub, n, 1, total));
        SX_TRY(sx_tf_with_number(x, &sx_op_mul, *total, w->stride, total));
        SX_TRY(sx_tf_with_number(x, &sx_op_add, *total, span, total));
        SX_TF_BUILD(x, total, sub, NULL, *total, size);
        if (!w->below_zero) {
            SX_TRY(sx_tf_with_number(x, &sx_op_maximum, *total, 0, total));
        }
        SX_TRY(sx_tf_with_number(x, &sx_op_truncate_div, *total, 2, before));
    } else { /* a number of windows below 0, which iota refuses, is TensorFlow's error, too */
        SX_TRY(sx_tf_with_number(x, &sx_op_add, size, w->stride - span, &n));
        SX_TRY(sx_tf_with_number(x, &sx_op_truncate_div, n, w->stride, &n));
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, total));
        *before = *total;
    }
    SX_TRY(sx_tf_count_to(x, n, SX_I64, &starts));
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, starts, w->stride, &starts));
    SX_TRY(sx_tf_expand(x, starts, -1, &starts));
    const sx_iota_attrs kernel = {.shape = {1, {w->kernel}}, .dtype = SX_I64};
    SX_TRY(sx_tf_build(x, &sx_op_iota, &kernel, &taps, 0, NULL));
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, taps, w->dilation, &taps));
    SX_TF_BUILD(x, places, add, NULL, starts, taps);
    return SX_OK;
}

sx_status sx_tf_operand_windows(const sx_tf_op_node *x, int i, sx_ints *window, sx_ints *strides)
{
    sx_ints *const out[] = {window, strides};
    for (int k = 0; k < 2; k++) {
        sx_ints of = {0};
        SX_TRY(sx_tf_operand_ints(x, i + k, &of));
        if (of.n != 4 || of.v[0] != 1 || of.v[3] != 1) {
            return sx_tf_unsupported("its windows are not of height and width");
        }
        *out[k] = sx_ints_of(2, of.v + 1);
    }
    return SX_OK;
}

/* The windows of a node along each of its spatial axes. */
typedef struct window_list {
    int n; /* spatial axes */
    sx_tf_windows axes[MAX_SPATIAL];
    sx_value sizes[MAX_SPATIAL];  /* of the image, int64 [1] */
    sx_value places[MAX_SPATIAL]; /* int64 [windows, kernel]; in padding outside of the image */
} window_list;

/* The windows of a node on an image of this type, with `n` spatial axes; sizes that it does not
 * know are those of the image, or if that is NULL of `shape`, a vector. `kernels`, `rates`: names
 * of attributes; NULL: the sizes are `kernel`, the rates 1. */
static sx_status place_windows(const sx_tf_op_node *x, int n, const char *kernels,
                               const int64_t *kernel, const char *rates, const sx_value *image,
                               sx_value shape, window_list *out)
{
    const sx_tf_node *node = &x->tf.head;
    const sx_type type = image != NULL ? sx_type_of_value(x->b, *image)
                                       : sx_type_of(SX_F32, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM,
                                                    SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    sx_ints sizes = {.n = n, .v = {1, 1, 1}}, strides = {0}, dilations = {.n = n, .v = {1, 1, 1}};
    int32_t padding = SX_VALID;
    if (n == 2 && x->n->n_in == 5) { /* MaxPoolGradGradV2 */
        SX_TRY(sx_tf_operand_windows(x, 3, &sizes, &strides));
    } else {
        if (kernels != NULL) {
            SX_TRY(sx_tf_read_spatial(node, kernels, true, n, &sizes));
        }
        SX_TRY(sx_tf_read_spatial(node, "strides", true, n, &strides));
    }
    if (rates != NULL) {
        SX_TRY(sx_tf_read_spatial(node, rates, strcmp(rates, "rates") == 0, n, &dilations));
    }
    SX_TRY(sx_tf_read_padding(node, &padding));
    if (padding == SX_EXPLICIT) {
        return sx_error(SX_DATA_LOSS, "padding is EXPLICIT, expected SAME or VALID");
    }
    out->n = n;
    for (int d = 0; d < n; d++) {
        const sx_tf_windows w = {.kernel = kernels != NULL ? sizes.v[d] : kernel[d],
                                 .stride = strides.v[d],
                                 .dilation = dilations.v[d],
                                 .same = padding == SX_SAME,
                                 .below_zero = n == 3};
        sx_value before = SX_NO_VALUE, total = SX_NO_VALUE;
        if (image == NULL) {
            const sx_slice_attrs one = {.begin = {1, {d + 1}}, .size = {1, {1}}};
            SX_TF_BUILD(x, &out->sizes[d], slice, &one, shape);
            SX_TF_BUILD(x, &out->sizes[d], cast, (&(sx_cast_attrs){SX_I64}), out->sizes[d]);
        } else if (type.dims[d + 1] >= 0) {
            SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {type.dims[d + 1]}}, &out->sizes[d]));
        } else {
            SX_TRY(sx_tf_sizes_of(x, *image, d + 1, 1, &out->sizes[d]));
        }
        SX_TRY(sx_tf_window_places(x, &w, out->sizes[d], &out->places[d], &before, &total));
        SX_TF_BUILD(x, &out->places[d], sub, NULL, out->places[d], before);
        out->axes[d] = w;
    }
    return SX_OK;
}

/* Reads the image, input 0, and its windows. */
static sx_status read_windows(const sx_tf_op_node *x, int n, const char *kernels,
                              const int64_t *kernel, const char *rates, sx_value *image,
                              window_list *out)
{
    SX_TRY(sx_tf_operand(x, 0, image));
    SX_TRY(sx_tf_know_rank(x, n + 2, image));
    const sx_type type = sx_type_of_value(x->b, *image);
    if (type.rank != n + 2) {
        return sx_error(SX_DATA_LOSS, "its input has rank %d, expected %d", type.rank, n + 2);
    }
    return place_windows(x, n, kernels, kernel, rates, image, SX_NO_VALUE, out);
}

/* [N,H,W,C] as [N,H',KH,W',KW,C] */
static sx_status cut_windows(const sx_tf_op_node *x, sx_value image, const window_list *w,
                             sx_value *out)
{
    *out = image;
    for (int d = 0; d < w->n; d++) {
        const sx_gather_attrs along = {.axis = 1 + 2 * d};
        SX_TF_BUILD(x, out, gather, &along, *out, w->places[d]);
    }
    return SX_OK;
}

/* [N,H',KH,W',KW,C] as [N,H',W',KH,KW,C] */
static sx_status turn_windows(const sx_tf_op_node *x, sx_value v, int n, sx_value *out)
{
    sx_transpose_attrs attrs = {.perm = {.n = 2 * n + 2}};
    for (int d = 0; d < n; d++) {
        attrs.perm.v[1 + d] = 1 + 2 * d;
        attrs.perm.v[1 + n + d] = 2 + 2 * d;
    }
    attrs.perm.v[2 * n + 1] = 2 * n + 1;
    return sx_tf_build(x, &sx_op_transpose, &attrs, out, 1, &v);
}

/* ---- Patches ---- */

/* ExtractImagePatches, ExtractVolumePatches: [N,H',W',KH KW C], with zeros for padding. */
static sx_status import_patches(sx_tf_op_node *x)
{
    const bool volume = strcmp(x->n->node->op, "ExtractVolumePatches") == 0;
    const int n = volume ? 3 : 2;
    window_list windows = {0};
    sx_value v = SX_NO_VALUE;
    SX_TRY(read_windows(x, n, "ksizes", NULL, volume ? NULL : "rates", &v, &windows));
    SX_TRY(cut_windows(x, v, &windows, &v));
    SX_TRY(turn_windows(x, v, n, &v));
    for (int d = 0; d < n; d++) {
        SX_TRY(sx_tf_join_axes(x, v, 1 + n, &v));
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ---- Dilation ---- */

/* The least finite number of a type, which is where TensorFlow's search for a maximum begins. */
static double least_of(sx_dtype dtype)
{
    switch (dtype) {
    case SX_F16:
        return -65504;
    case SX_BF16:
        return -0x1.fep127;
    case SX_F32:
        return -FLT_MAX;
    default:
        return -DBL_MAX;
    }
}

/* The image, and where its windows lie, so that padding is minus infinity: a row and a column of it
 * behind the image stand for all of it. */
static sx_status pad_for_maxima(const sx_tf_op_node *x, window_list *windows, sx_value *image)
{
    sx_type type = sx_type_of_value(x->b, *image);
    const sx_pad_attrs pad = {.before = {4, {0}}, .after = {4, {0, 1, 1, 0}}, .value = -INFINITY};
    sx_value zero = SX_NO_VALUE;
    if (!windows->axes[0].same) {
        return SX_OK;
    }
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    for (int d = 0; d < 2; d++) {
        sx_value above = SX_NO_VALUE, below = SX_NO_VALUE, *places = &windows->places[d];
        SX_TF_BUILD(x, &above, greater_equal, NULL, *places, zero);
        SX_TF_BUILD(x, &below, less, NULL, *places, windows->sizes[d]);
        SX_TF_BUILD(x, &above, logical_and, NULL, above, below);
        SX_TF_BUILD(x, places, select, NULL, above, *places, windows->sizes[d]);
        type.dims[d + 1] = type.dims[d + 1] >= 0 ? type.dims[d + 1] + 1 : SX_UNKNOWN_DIM;
    }
    *image = sx_tf_build_as(x, &sx_op_pad, &pad, image, 1, NULL, 0, &type);
    return SX_OK;
}

/* The rows or columns of the image, axis 1 or 2, that windows read as their number `tap`. */
static sx_status take_tap(const sx_tf_op_node *x, sx_value image, const window_list *windows,
                          int axis, int64_t tap, sx_value *out)
{
    const sx_gather_attrs along = {.axis = axis};
    sx_value places = SX_NO_VALUE;
    SX_TRY(sx_tf_cut_axis(x, windows->places[axis - 1], 1, tap, 1, &places));
    SX_TRY(sx_tf_reshape_dims(x, places, &(sx_ints){1, {0}}, &places));
    SX_TF_BUILD(x, out, gather, &along, image, places);
    return SX_OK;
}

/* Dilation2D(x, filter): the greatest x + filter of each window, of what is greater than the least
 * finite number; padding does not count. All windows' first elements, then their second ones, and
 * so on: of equal ones the first counts, and NaN never does. */
static sx_status import_dilation(sx_tf_op_node *x)
{
    enum { MOST_TAPS = 4096 };
    const sx_type *kernel = &x->tf.head.types[1];
    window_list windows = {0};
    sx_value image = SX_NO_VALUE, filter = SX_NO_VALUE, columns[MOST_TAPS], most = SX_NO_VALUE;
    if (!sx_dtype_is_float(kernel->dtype)) {
        return sx_tf_unsupported("of %s, expected floats", sx_dtype_name(kernel->dtype));
    }
    if (kernel->rank != 3 || kernel->dims[0] < 0 || kernel->dims[1] < 0) {
        return sx_tf_unsupported("the shape of its filter is unknown, or not [h,w,c]");
    }
    if (kernel->dims[1] > MOST_TAPS / SX_MAX(kernel->dims[0], 1)) {
        return sx_tf_unsupported("a filter of %lldx%lld, of more than %d numbers each channel",
                                 (long long)kernel->dims[0], (long long)kernel->dims[1], MOST_TAPS);
    }
    SX_TRY(sx_tf_operand(x, 1, &filter));
    SX_TRY(read_windows(x, 2, NULL, kernel->dims, "rates", &image, &windows));
    SX_TRY(pad_for_maxima(x, &windows, &image));
    for (int64_t k = 0; k < kernel->dims[1]; k++) {
        SX_TRY(take_tap(x, image, &windows, 2, k, &columns[k]));
    }
    SX_TRY(sx_tf_number(x, kernel->dtype, least_of(kernel->dtype), &most));
    for (int64_t i = 0; i < kernel->dims[0] * kernel->dims[1]; i++) {
        const int64_t row = i / kernel->dims[1], column = i % kernel->dims[1];
        sx_value v = SX_NO_VALUE, weight = SX_NO_VALUE, more = SX_NO_VALUE;
        SX_TRY(take_tap(x, columns[column], &windows, 1, row, &v));
        SX_TRY(sx_tf_cut_axis(x, filter, 0, row, 1, &weight));
        SX_TRY(sx_tf_cut_axis(x, weight, 1, column, 1, &weight));
        SX_TRY(sx_tf_reshape_dims(x, weight, &(sx_ints){1, {2}}, &weight));
        SX_TF_BUILD(x, &v, add, NULL, v, weight);
        SX_TF_BUILD(x, &more, greater, NULL, v, most);
        SX_TF_BUILD(x, &most, select, NULL, more, v, most);
    }
    sx_tf_set(x, 0, most);
    return SX_OK;
}

/* ---- Places of maxima ---- */

/* v[..., d], a number for each along axis `axis` of four, in a shape that broadcasts. */
static sx_status along_axis(const sx_tf_op_node *x, sx_value v, int axis, sx_value *out)
{
    sx_ints from = {4, {-1, -1, -1, -1}};
    from.v[axis] = 0;
    return sx_tf_reshape_dims(x, v, &from, out);
}

/* MaxPoolWithArgmax(x): of each window the first of its greatest elements, and its place among
 * those of the image, or of all images. A NaN counts in the first place of a window only, and wins
 * there. Places in padding stand for the nearest in the image, which are of the same window: they
 * change no maximum, nor which element is the first. */
static sx_status import_max_pool_places(sx_tf_op_node *x)
{
    static const sx_transpose_attrs behind = {.perm = {5, {0, 1, 2, 4, 3}}};
    const sx_argmax_attrs last = {.axis = 4, .dtype = SX_I64};
    const sx_gather_attrs one = {.axis = 4, .batch_dims = 4};
    const sx_dtype dtype = x->tf.head.types[0].dtype,
                   place_type = sx_tf_read_dtype(&x->tf.head, "Targmax", SX_I64);
    window_list windows = {0};
    sx_value image = SX_NO_VALUE, v = SX_NO_VALUE, best = SX_NO_VALUE, place = SX_NO_VALUE,
             zero = SX_NO_VALUE, starts[2] = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(read_windows(x, 2, "ksize", NULL, NULL, &image, &windows));
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    for (int d = 0; d < 2; d++) {
        sx_value top = SX_NO_VALUE;
        SX_TRY(sx_tf_cut_axis(x, windows.places[d], 1, 0, 1, &starts[d]));
        SX_TRY(sx_tf_reshape_dims(x, starts[d], &(sx_ints){1, {0}}, &starts[d]));
        SX_TRY(sx_tf_with_number(x, &sx_op_sub, windows.sizes[d], 1, &top));
        SX_TF_BUILD(x, &windows.places[d], maximum, NULL, windows.places[d], zero);
        SX_TF_BUILD(x, &windows.places[d], minimum, NULL, windows.places[d], top);
    }
    SX_TRY(cut_windows(x, image, &windows, &v));
    SX_TRY(turn_windows(x, v, 2, &v));
    SX_TRY(sx_tf_join_axes(x, v, 3, &v));
    SX_TF_BUILD(x, &v, transpose, &behind, v); /* [N,H',W',C,KH KW] */
    if (sx_dtype_is_float(dtype)) {
        sx_value nan = SX_NO_VALUE, least = SX_NO_VALUE, first = SX_NO_VALUE;
        SX_TF_BUILD(x, &nan, is_nan, NULL, v);
        SX_TRY(sx_tf_number(x, dtype, -INFINITY, &least));
        SX_TF_BUILD(x, &best, select, NULL, nan, least, v);
        SX_TF_BUILD(x, &best, argmax, &last, best);
        SX_TRY(sx_tf_cut_axis(x, nan, 4, 0, 1, &first));
        SX_TRY(sx_tf_reshape_dims(x, first, &(sx_ints){4, {0, 1, 2, 3}}, &first));
        SX_TF_BUILD(x, &best, select, NULL, first, zero, best);
    } else {
        SX_TF_BUILD(x, &best, argmax, &last, v);
    }
    SX_TF_BUILD(x, &v, gather, &one, v, best);
    sx_tf_set(x, 0, v);
    /* the row and the column, and from them the place */
    for (int d = 0; d < 2; d++) {
        const int64_t columns = windows.axes[1].kernel;
        sx_value at = SX_NO_VALUE, top = SX_NO_VALUE, start = SX_NO_VALUE;
        SX_TRY(
            sx_tf_with_number(x, d == 0 ? &sx_op_floor_div : &sx_op_floor_mod, best, columns, &at));
        SX_TRY(along_axis(x, starts[d], 1 + d, &start));
        SX_TF_BUILD(x, &at, add, NULL, at, start);
        SX_TRY(sx_tf_with_number(x, &sx_op_sub, windows.sizes[d], 1, &top));
        SX_TF_BUILD(x, &at, maximum, NULL, at, zero);
        SX_TF_BUILD(x, &at, minimum, NULL, at, top);
        if (d == 0) {
            SX_TF_BUILD(x, &place, mul, NULL, at, windows.sizes[1]);
        } else {
            SX_TF_BUILD(x, &place, add, NULL, place, at);
        }
    }
    sx_value channels = SX_NO_VALUE, channel = SX_NO_VALUE;
    SX_TRY(sx_tf_sizes_of(x, image, 3, 1, &channels));
    SX_TRY(sx_tf_count_to(x, channels, SX_I64, &channel));
    SX_TF_BUILD(x, &place, mul, NULL, place, channels);
    SX_TF_BUILD(x, &place, add, NULL, place, channel);
    if (sx_tf_read_bool(&x->tf.head, "include_batch_in_index", false)) {
        sx_value images = SX_NO_VALUE, number = SX_NO_VALUE, size = channels;
        SX_TRY(sx_tf_sizes_of(x, image, 0, 1, &images));
        SX_TRY(sx_tf_count_to(x, images, SX_I64, &number));
        SX_TRY(along_axis(x, number, 0, &number));
        SX_TF_BUILD(x, &size, mul, NULL, size, windows.sizes[0]);
        SX_TF_BUILD(x, &size, mul, NULL, size, windows.sizes[1]);
        SX_TF_BUILD(x, &number, mul, NULL, number, size);
        SX_TF_BUILD(x, &place, add, NULL, place, number);
    }
    SX_TF_BUILD(x, &place, cast, (&(sx_cast_attrs){place_type}), place);
    sx_tf_set(x, 1, place);
    return SX_OK;
}

/* MaxPoolGradWithArgmax(x, dy, places): the sum of the dy of each place. */
static sx_status import_max_pool_places_grad(sx_tf_op_node *x)
{
    static const sx_reduce_attrs product = {.axes = {1, {0}}, .keep_dims = true};
    static const sx_shape_attrs scalar = {.shape = {.n = 0}};
    const sx_gather_grad_attrs per_image = {.axis = 1, .batch_dims = 1};
    sx_value in[3], shape = SX_NO_VALUE, images = SX_NO_VALUE, size = SX_NO_VALUE,
                    number = SX_NO_VALUE, sums = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        if (x->tf.head.types[i].rank != 4) {
            return sx_tf_unsupported("input %d has rank %d, expected 4", i,
                                     x->tf.head.types[i].rank);
        }
    }
    const sx_type image = x->tf.head.types[0], windows = x->tf.head.types[1];
    const sx_type flat = sx_type_of(image.dtype, windows.dims[0], SX_UNKNOWN_DIM);
    SX_TRY(sx_tf_sizes_of(x, in[0], 0, 4, &shape));
    SX_TRY(sx_tf_sizes_of(x, in[0], 0, 1, &images));
    SX_TRY(sx_tf_sizes_of(x, in[0], 1, 3, &size));
    SX_TF_BUILD(x, &size, reduce_prod, &product, size);
    SX_TF_BUILD(x, &in[2], cast, (&(sx_cast_attrs){SX_I64}), in[2]);
    if (sx_tf_read_bool(&x->tf.head, "include_batch_in_index", false)) {
        SX_TRY(sx_tf_count_to(x, images, SX_I64, &number));
        SX_TF_BUILD(x, &number, mul, NULL, number, size);
        SX_TRY(along_axis(x, number, 0, &number));
        SX_TF_BUILD(x, &in[2], sub, NULL, in[2], number);
    }
    for (int i = 1; i < 3; i++) { /* [N, all of an image's windows] */
        SX_TRY(sx_tf_join_axes(x, in[i], 2, &in[i]));
        SX_TRY(sx_tf_join_axes(x, in[i], 1, &in[i]));
    }
    SX_TF_BUILD(x, &size, reshape, &scalar, size);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_gather_grad, "rows"), size};
    sums = sx_tf_build_as(x, &sx_op_gather_grad, &per_image, (const sx_value[]){in[2], in[1]}, 2,
                          &open, 1, &flat);
    SX_TRY(sx_tf_reshape_as(x, sums, shape, &image, &sums));
    sx_tf_set(x, 0, sums);
    return SX_OK;
}

/* MaxPoolGradGrad(x, y, g), V2: (..., window, strides): of each window the g of the element that
 * its maximum is. */
static sx_status import_max_pool_grad_grad(sx_tf_op_node *x)
{
    static const sx_gather_attrs of_image = {.axis = 1, .batch_dims = 1};
    sx_tf_thing both[2] = {{0}};
    sx_tf_import_node node = *x->n;
    sx_tf_op_node places = *x;
    sx_value g = SX_NO_VALUE, at = SX_NO_VALUE, y = SX_NO_VALUE;
    if (sx_tf_channels_first(&x->tf.head)) {
        return sx_tf_unsupported("its channels are in front of the image");
    }
    SX_TRY(sx_tf_operand(x, 2, &g));
    if (x->tf.head.types[2].rank != 4) {
        return sx_tf_unsupported("input 2 has rank %d, expected 4", x->tf.head.types[2].rank);
    }
    node.out = both;
    node.n_out = 2;
    places.n = &node;
    SX_TRY(import_max_pool_places(&places));
    at = both[1].value;
    SX_TRY(sx_tf_join_axes(x, g, 2, &g));
    SX_TRY(sx_tf_join_axes(x, g, 1, &g));
    SX_TF_BUILD(x, &y, gather, &of_image, g, at);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Gradients of volumes ---- */

/* v [N,D',KD,H',KH,W',KW,C], for each element of each window, added up where they come from:
 * [N,D,H,W,C]. What is in the padding adds nothing. */
static sx_status add_windows(const sx_tf_op_node *x, sx_value v, const window_list *w,
                             sx_value *out)
{
    static const sx_shape_attrs scalar = {.shape = {.n = 0}};
    for (int d = w->n - 1; d >= 0; d--) {
        const sx_gather_grad_attrs along = {.axis = 1 + 2 * d};
        sx_value rows = SX_NO_VALUE;
        sx_type type = sx_type_of_value(x->b, v);
        SX_TF_BUILD(x, &rows, reshape, &scalar, w->sizes[d]);
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_gather_grad, "rows"), rows};
        for (int k = 2 + 2 * d; k + 1 < type.rank; k++) {
            type.dims[k] = type.dims[k + 1];
        }
        type.rank--;
        type.dims[1 + 2 * d] = SX_UNKNOWN_DIM;
        v = sx_tf_build_as(x, &sx_op_gather_grad, &along, (const sx_value[]){w->places[d], v}, 2,
                           &open, 1, &type);
    }
    *out = v;
    return SX_OK;
}

/* [N,D',H',W',C] as [N,D',1,H',1,W',1,C] */
static sx_status beside_windows(const sx_tf_op_node *x, sx_value v, sx_value *out)
{
    return sx_tf_reshape_dims(x, v, &(sx_ints){8, {0, 1, -1, 2, -1, 3, -1, 4}}, out);
}

static sx_status volume_grad_operand(const sx_tf_op_node *x, int i, sx_value *out)
{
    SX_TRY(sx_tf_operand(x, i, out));
    return x->tf.head.types[i].rank == 5
               ? SX_OK
               : sx_tf_unsupported("input %d has rank %d, expected 5", i, x->tf.head.types[i].rank);
}

/* Whether places w->places[d] of a volume are not in its padding, in a shape that broadcasts with
 * [N,D',KD,H',KH,W',KW,C]. */
static sx_status inside_image(const sx_tf_op_node *x, const window_list *w, int d, sx_value *out)
{
    static const sx_ints as[3] = {
        {7, {0, 1, -1, -1, -1, -1, -1}}, {5, {0, 1, -1, -1, -1}}, {3, {0, 1, -1}}};
    sx_value zero = SX_NO_VALUE, below = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TF_BUILD(x, out, greater_equal, NULL, w->places[d], zero);
    SX_TF_BUILD(x, &below, less, NULL, w->places[d], w->sizes[d]);
    SX_TF_BUILD(x, out, logical_and, NULL, *out, below);
    return sx_tf_reshape_dims(x, *out, &as[d], out);
}

/* Of v, windows, the first element of each that equals its y: a bool beside each. */
static sx_status first_that_equals(const sx_tf_op_node *x, sx_value v, sx_value y,
                                   const window_list *w, sx_value *out)
{
    static const sx_ints as = {6, {0, -1, 1, -1, 2, -1}};
    static const sx_reduce_attrs within = {.axes = {3, {2, 4, 6}}, .keep_dims = true};
    const sx_tf_windows *of = w->axes;
    const int64_t taps = of[0].kernel * of[1].kernel * of[2].kernel;
    const sx_iota_attrs count = {.shape = {1, {taps}}, .dtype = SX_I32};
    const sx_shape_attrs box = {.shape = {3, {of[0].kernel, of[1].kernel, of[2].kernel}}};
    sx_value equal = SX_NO_VALUE, place = SX_NO_VALUE, none = SX_NO_VALUE, first = SX_NO_VALUE;
    SX_TF_BUILD(x, &equal, equal, NULL, v, y);
    for (int d = 0; d < w->n; d++) {
        sx_value inside = SX_NO_VALUE;
        SX_TRY(inside_image(x, w, d, &inside));
        SX_TF_BUILD(x, &equal, logical_and, NULL, equal, inside);
    }
    SX_TRY(sx_tf_build(x, &sx_op_iota, &count, &place, 0, NULL));
    SX_TF_BUILD(x, &place, reshape, &box, place);
    SX_TRY(sx_tf_reshape_dims(x, place, &as, &place));
    SX_TRY(sx_tf_number(x, SX_I32, (double)taps, &none));
    SX_TF_BUILD(x, &place, select, NULL, equal, place, none);
    SX_TF_BUILD(x, &first, reduce_min, &within, place);
    SX_TF_BUILD(x, &first, equal, NULL, place, first);
    SX_TF_BUILD(x, out, logical_and, NULL, equal, first);
    return SX_OK;
}

/* MaxPool3DGrad(x, y, dy): dy goes to the first element of the window that equals y, as that of
 * oneDNN in TensorFlow's graphs; its other kernel gives it to all of them. */
static sx_status import_max_pool3d_grad(sx_tf_op_node *x)
{
    window_list windows = {0};
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE, dy = SX_NO_VALUE, zero = SX_NO_VALUE;
    SX_TRY(volume_grad_operand(x, 1, &y));
    SX_TRY(volume_grad_operand(x, 2, &dy));
    SX_TRY(read_windows(x, 3, "ksize", NULL, NULL, &v, &windows));
    SX_TRY(cut_windows(x, v, &windows, &v));
    SX_TRY(beside_windows(x, y, &y));
    SX_TRY(beside_windows(x, dy, &dy));
    SX_TRY(first_that_equals(x, v, y, &windows, &y));
    SX_TRY(sx_tf_number(x, x->tf.head.types[2].dtype, 0, &zero));
    SX_TF_BUILD(x, &dy, select, NULL, y, dy, zero);
    SX_TRY(add_windows(x, dy, &windows, &v));
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* MaxPool3DGradGrad(x, y, g): of each window the g of the first element that equals y; 0 if there
 * is none. */
static sx_status import_max_pool3d_grad_grad(sx_tf_op_node *x)
{
    static const sx_reduce_attrs within = {.axes = {3, {2, 4, 6}}};
    window_list windows = {0};
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE, g = SX_NO_VALUE, zero = SX_NO_VALUE;
    SX_TRY(volume_grad_operand(x, 1, &y));
    SX_TRY(volume_grad_operand(x, 2, &g));
    SX_TRY(read_windows(x, 3, "ksize", NULL, NULL, &v, &windows));
    SX_TRY(cut_windows(x, v, &windows, &v));
    SX_TRY(cut_windows(x, g, &windows, &g));
    SX_TRY(beside_windows(x, y, &y));
    SX_TRY(first_that_equals(x, v, y, &windows, &y));
    SX_TRY(sx_tf_number(x, x->tf.head.types[2].dtype, 0, &zero));
    SX_TF_BUILD(x, &g, select, NULL, y, g, zero);
    SX_TF_BUILD(x, &g, reduce_sum, &within, g);
    sx_tf_set(x, 0, g);
    return SX_OK;
}

/* AvgPool3DGrad(sizes, dy): dy divided by how many elements its window has in the volume. */
static sx_status import_avg_pool3d_grad(sx_tf_op_node *x)
{
    static const sx_reduce_attrs within = {.axes = {1, {1}}, .keep_dims = true};
    const sx_dtype dtype = x->tf.head.types[1].dtype;
    window_list windows = {0};
    sx_value dy = SX_NO_VALUE, sizes = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &sizes));
    SX_TRY(volume_grad_operand(x, 1, &dy));
    SX_TRY(place_windows(x, 3, "ksize", NULL, NULL, NULL, sizes, &windows));
    SX_TRY(beside_windows(x, dy, &dy));
    for (int d = 0; d < 3; d++) {
        sx_value inside = SX_NO_VALUE, count = SX_NO_VALUE;
        SX_TRY(inside_image(x, &windows, d, &inside));
        SX_TF_BUILD(x, &inside, cast, (&(sx_cast_attrs){dtype}), inside);
        SX_TF_BUILD(x, &count, reduce_sum, &within, inside);
        SX_TF_BUILD(x, &inside, div, NULL, inside, count);
        SX_TF_BUILD(x, &dy, mul, NULL, dy, inside);
    }
    SX_TRY(add_windows(x, dy, &windows, &dy));
    sx_tf_set(x, 0, dy);
    return SX_OK;
}

/* Conv3DBackpropFilterV2(x, sizes, dy): what each element of the filter read, by dy. */
static sx_status import_conv3d_filter(sx_tf_op_node *x)
{
    static const sx_matmul_attrs turned = {.transpose_a = true};
    sx_ints sizes = {0};
    window_list windows = {0};
    sx_value v = SX_NO_VALUE, dy = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand_ints(x, 1, &sizes));
    SX_TRY(volume_grad_operand(x, 2, &dy));
    if (sizes.n != 5) {
        return sx_error(SX_DATA_LOSS, "%d sizes, expected 5", sizes.n);
    }
    SX_TRY(read_windows(x, 3, NULL, sizes.v, "dilations", &v, &windows));
    const int64_t channels = x->tf.head.types[0].rank == 5 ? x->tf.head.types[0].dims[4] : -1;
    if (channels >= 0 && channels != sizes.v[3]) {
        return sx_tf_unsupported("its channels are in groups");
    }
    SX_TRY(cut_windows(x, v, &windows, &v));
    SX_TRY(turn_windows(x, v, 3, &v));
    for (int i = 0; i < 3; i++) { /* rows of places, of what each place reads and gives */
        SX_TRY(sx_tf_join_axes(x, v, 4, &v));
    }
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_join_axes(x, v, 0, &v));
        SX_TRY(sx_tf_join_axes(x, dy, 0, &dy));
    }
    SX_TF_BUILD(x, &y, matmul, &turned, v, dy);
    SX_TF_BUILD(x, &y, reshape, (&(sx_shape_attrs){sizes}), y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_patch_rows[] = {
    {"ExtractImagePatches", import_patches, NULL},
    {"ExtractVolumePatches", import_patches, NULL},
    {"Dilation2D", import_dilation, NULL},
    {"MaxPoolWithArgmax", import_max_pool_places, NULL},
    {"MaxPoolGradWithArgmax", import_max_pool_places_grad, NULL},
    {"MaxPoolGradGrad", import_max_pool_grad_grad, NULL},
    {"MaxPoolGradGradV2", import_max_pool_grad_grad, NULL},
    {"MaxPool3DGrad", import_max_pool3d_grad, NULL},
    {"MaxPool3DGradGrad", import_max_pool3d_grad_grad, NULL},
    {"AvgPool3DGrad", import_avg_pool3d_grad, NULL},
    {"Conv3DBackpropFilterV2", import_conv3d_filter, NULL},
    {NULL, NULL, NULL},
};
