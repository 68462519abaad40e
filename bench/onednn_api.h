/* What bench_onednn.c uses of oneDNN's C interface, in the form of version 3, over versions 2
 * and 3. In 2.x a primitive's descriptor is made from an operation descriptor, and one of memory is
 * a struct; in 3.x it is an object, to be destroyed. */
#ifndef SX_BENCH_ONEDNN_API_H
#define SX_BENCH_ONEDNN_API_H

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR >= 3

/* A descriptor as an argument. */
#define SX_DNN_MD(md) (md)

static inline dnnl_status_t sx_dnn_md_copy(dnnl_memory_desc_t *to, const_dnnl_memory_desc_t from)
{
    return dnnl_memory_desc_clone(to, from);
}

static inline void sx_dnn_md_destroy(dnnl_memory_desc_t md)
{
    if (md != NULL) {
        dnnl_memory_desc_destroy(md);
    }
}

static inline dnnl_status_t sx_dnn_set_data(dnnl_memory_t memory, void *data, dnnl_stream_t stream)
{
    (void)stream;
    return dnnl_memory_set_data_handle(memory, data);
}

#else

typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;

#define SX_DNN_MD(md)                        (&(md))
#define dnnl_memory_desc_create_with_tag     dnnl_memory_desc_init_by_tag
#define dnnl_memory_desc_create_with_strides dnnl_memory_desc_init_by_strides
#define dnnl_post_ops_append_eltwise(ops, kind, alpha, beta) \
    dnnl_post_ops_append_eltwise(ops, 1.0F, kind, alpha, beta)

static inline dnnl_status_t sx_dnn_md_copy(dnnl_memory_desc_t *to, const_dnnl_memory_desc_t from)
{
    *to = *from;
    return dnnl_success;
}

static inline void sx_dnn_md_destroy(dnnl_memory_desc_t md)
{
    (void)md;
}

static inline dnnl_status_t sx_dnn_set_data(dnnl_memory_t memory, void *data, dnnl_stream_t stream)
{
    return dnnl_memory_set_data_handle_v2(memory, data, stream);
}

static inline dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t filter, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides, const dnnl_dims_t dilations,
    const dnnl_dims_t before, const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
        &d, prop, alg, src, filter, bias, dst, strides, dilations, before, after);
    return s != dnnl_success ? s : dnnl_primitive_desc_create(out, &d, attr, engine, NULL);
}

static inline dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t filter, const_dnnl_memory_desc_t dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilations, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_dilated_convolution_backward_data_desc_init(
        &d, alg, src, filter, dst, strides, dilations, before, after);
    return s != dnnl_success ? s : dnnl_primitive_desc_create(out, &d, attr, engine, hint);
}

static inline dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t filter, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides, const dnnl_dims_t dilations,
    const dnnl_dims_t before, const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_dilated_convolution_backward_weights_desc_init(
        &d, alg, src, filter, bias, dst, strides, dilations, before, after);
    return s != dnnl_success ? s : dnnl_primitive_desc_create(out, &d, attr, engine, hint);
}

static inline dnnl_status_t
dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
                                  const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
                                  const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t d;
    dnnl_status_t s = dnnl_matmul_desc_init(&d, src, weights, bias, dst);
    return s != dnnl_success ? s : dnnl_primitive_desc_create(out, &d, attr, engine, NULL);
}

#endif
#endif
