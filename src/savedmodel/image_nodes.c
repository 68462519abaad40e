#include "savedmodel/image_nodes.h"

#include "base/checked.h"

enum { LOOP_VARS = 4 }; /* i, n, images, results */
static const int loop_types[LOOP_VARS] = {SX_I32, SX_I32, SX_TF_VARIANT, SX_TF_VARIANT};

static sx_tf_value scalar_op(sx_tf_writer *w, const char *op, sx_tf_value a, sx_tf_value b,
                             int type)
{
    return sx_tf_add(w, op, NULL, sx_tf_in(a, b), sx_tf_attrs(sx_tf_attr_type("T", type)));
}

/* An empty int32 vector: the shape of a scalar. */
static sx_tf_value scalar_shape(sx_tf_writer *w)
{
    return sx_tf_const_i32s(w, "scalar_shape", 0, NULL);
}

static sx_tf_value result_shape(sx_tf_writer *w, const sx_preprocess *pre)
{
    const int32_t shape[] = {pre->height, pre->width, pre->channels};
    return sx_tf_const_i32s(w, "result_shape", 3, shape);
}

/* i < n */
static const char *write_condition(sx_tf_writer *w)
{
    static const int result_types[] = {SX_BOOL};
    sx_tf_writer *body = sx_tf_function_begin(w, "while_cond", LOOP_VARS, loop_types);
    sx_tf_value less = scalar_op(body, "Less", sx_tf_arg(0), sx_tf_arg(1), SX_I32);
    return sx_tf_function_end(body, sx_tf_in(less), result_types);
}

/* [h, w, C] uint8 of any size to [1, H + eh, W + ew, C] float32. */
static sx_tf_value write_resize(sx_tf_writer *w, sx_tf_value image, const sx_preprocess *pre)
{
    const int32_t size[] = {pre->height + pre->extra_height, pre->width + pre->extra_width};
    bool nearest = pre->resize == SX_RESIZE_NEAREST;
    sx_tf_value batch =
        sx_tf_add(w, "ExpandDims", NULL, sx_tf_in(image, sx_tf_const_i32(w, "axis", 0)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_U8), sx_tf_attr_type("Tdim", SX_I32)));
    const sx_tf_attr attrs[] = {sx_tf_attr_type("T", SX_U8),
                                sx_tf_attr_bool("half_pixel_centers", true)};
    sx_tf_value resized =
        sx_tf_add(w, nearest ? "ResizeNearestNeighbor" : "ResizeBilinear", NULL,
                  sx_tf_in(batch, sx_tf_const_i32s(w, "size", 2, size)),
                  (sx_tf_attr_list){attrs, pre->resize == SX_RESIZE_BILINEAR_TF1 ? 1 : 2});
    if (!nearest) {
        return resized;
    }
    return sx_tf_add(w, "Cast", NULL, sx_tf_in(resized),
                     sx_tf_attrs(sx_tf_attr_type("SrcT", SX_U8), sx_tf_attr_type("DstT", SX_F32)));
}

static sx_tf_value write_crop(sx_tf_writer *w, sx_tf_value image, const sx_preprocess *pre)
{
    if (pre->extra_height == 0 && pre->extra_width == 0) {
        return image;
    }
    int top, left;
    sx_preprocess_center(pre, &top, &left);
    const int32_t begin[] = {0, top, left, 0};
    const int32_t size[] = {1, pre->height, pre->width, pre->channels};
    return sx_tf_add(w, "Slice", NULL,
                     sx_tf_in(image, sx_tf_const_i32s(w, "begin", 4, begin),
                              sx_tf_const_i32s(w, "crop_size", 4, size)),
                     sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("Index", SX_I32)));
}

/* results[i] = resize(decode(images[i])); i + 1 */
static const char *write_body(sx_tf_writer *w, const sx_preprocess *pre)
{
    sx_tf_writer *body = sx_tf_function_begin(w, "while_body", LOOP_VARS, loop_types);
    sx_tf_value i = sx_tf_arg(0);
    sx_tf_value bytes =
        sx_tf_add(body, "TensorListGetItem", NULL, sx_tf_in(sx_tf_arg(2), i, scalar_shape(body)),
                  sx_tf_attrs(sx_tf_attr_type("element_dtype", SX_STRING)));
    sx_tf_value image = sx_tf_add(body, "DecodeJpeg", NULL, sx_tf_in(bytes),
                                  sx_tf_attrs(sx_tf_attr_int("channels", pre->channels),
                                              sx_tf_attr_string("dct_method", "INTEGER_FAST")));
    image = write_crop(body, write_resize(body, image, pre), pre);
    image = sx_tf_add(body, "Reshape", NULL, sx_tf_in(image, result_shape(body, pre)),
                      sx_tf_attrs(sx_tf_attr_type("T", SX_F32), sx_tf_attr_type("Tshape", SX_I32)));
    sx_tf_value results =
        sx_tf_add(body, "TensorListSetItem", NULL, sx_tf_in(sx_tf_arg(3), i, image),
                  sx_tf_attrs(sx_tf_attr_type("element_dtype", SX_F32)));
    sx_tf_value next = scalar_op(body, "AddV2", i, sx_tf_const_i32(body, "one", 1), SX_I32);
    return sx_tf_function_end(body, sx_tf_in(next, sx_tf_arg(1), sx_tf_arg(2), results),
                              loop_types);
}

/* The number of images: element 0 of the shape. */
static sx_tf_value write_count(sx_tf_writer *w, sx_tf_value image_bytes)
{
    const int32_t zero[] = {0}, one[] = {1};
    sx_tf_value shape = sx_tf_add(w, "Shape", NULL, sx_tf_in(image_bytes),
                                  sx_tf_attrs(sx_tf_attr_type("T", SX_STRING)));
    return sx_tf_add(w, "StridedSlice", "count",
                     sx_tf_in(shape, sx_tf_const_i32s(w, "count/begin", 1, zero),
                              sx_tf_const_i32s(w, "count/end", 1, one),
                              sx_tf_const_i32s(w, "count/strides", 1, one)),
                     sx_tf_attrs(sx_tf_attr_type("T", SX_I32), sx_tf_attr_type("Index", SX_I32),
                                 sx_tf_attr_int("shrink_axis_mask", 1)));
}

static sx_tf_value write_map(sx_tf_writer *w, sx_tf_value image_bytes, const sx_preprocess *pre)
{
    sx_tf_value n = write_count(w, image_bytes);
    sx_tf_value shape = result_shape(w, pre);
    sx_tf_value images =
        sx_tf_add(w, "TensorListFromTensor", NULL, sx_tf_in(image_bytes, scalar_shape(w)),
                  sx_tf_attrs(sx_tf_attr_type("element_dtype", SX_STRING),
                              sx_tf_attr_type("shape_type", SX_I32)));
    sx_tf_value results = sx_tf_add(w, "TensorListReserve", NULL, sx_tf_in(shape, n),
                                    sx_tf_attrs(sx_tf_attr_type("element_dtype", SX_F32),
                                                sx_tf_attr_type("shape_type", SX_I32)));
    const char *condition = write_condition(w), *body = write_body(w, pre);
    sx_tf_value loop = sx_tf_add(
        w, "StatelessWhile", NULL, sx_tf_in(sx_tf_const_i32(w, "start", 0), n, images, results),
        sx_tf_attrs(sx_tf_attr_types("T", LOOP_VARS, loop_types),
                    sx_tf_attr_func("cond", condition), sx_tf_attr_func("body", body)));
    return sx_tf_add(w, "TensorListStack", NULL, sx_tf_in(sx_tf_output(loop, 3), shape),
                     sx_tf_attrs(sx_tf_attr_type("element_dtype", SX_F32)));
}

/* One constant for all channels if they are equal, else one per channel. */
static sx_tf_value per_channel(sx_tf_writer *w, const char *name, const float *values, int channels)
{
    bool same = true;
    for (int c = 1; c < channels; c++) {
        same &= values[c] == values[0];
    }
    sx_type type = same ? sx_scalar_type(SX_F32) : sx_type_of(SX_F32, channels);
    return sx_tf_const(w, name, &(sx_tensor){type, (void *)(uintptr_t)values});
}

static bool all_equal(const float *values, int channels, float to)
{
    for (int c = 0; c < channels; c++) {
        if (values[c] != to) {
            return false;
        }
    }
    return true;
}

static sx_tf_value write_scale(sx_tf_writer *w, sx_tf_value batch, const sx_preprocess *pre)
{
    sx_affine affine;
    sx_preprocess_affine(pre, &affine);
    if (!all_equal(affine.mul, pre->channels, 1)) {
        batch =
            scalar_op(w, "Mul", batch, per_channel(w, "mul", affine.mul, pre->channels), SX_F32);
    }
    if (!all_equal(affine.add, pre->channels, 0)) {
        batch =
            scalar_op(w, "AddV2", batch, per_channel(w, "add", affine.add, pre->channels), SX_F32);
    }
    return batch;
}

sx_tf_value sx_tf_preprocess_images(sx_tf_writer *w, sx_tf_value image_bytes,
                                    const sx_preprocess *pre)
{
    sx_tf_scope_push(w, "preprocess");
    sx_tf_value batch = write_scale(w, write_map(w, image_bytes, pre), pre);
    sx_tf_scope_pop(w);
    return batch;
}
