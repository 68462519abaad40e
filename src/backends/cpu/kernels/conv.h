/* What the kernels of convolutions share: conv.c, conv_round.c, dense.c, depthwise.c,
 * depthwise_bf16.c, grouped.c, int8.c, winograd.c. */
#ifndef SX_BACKENDS_CPU_KERNELS_CONV_H
#define SX_BACKENDS_CPU_KERNELS_CONV_H

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"

/* Of any of the three operators, with the types that its values have in `graph`. */
SX_MUST_USE sx_status sx_cpu_conv_geometry(const sx_graph *graph, const sx_node *n,
                                           sx_conv_geometry *g);
/* Whether to compute in bfloat16 products: if the operands allow it and the processor supports
 * them. At least twice the rate of float32 (README), including the cost of narrowing the images. */
bool sx_cpu_conv_in_bf16(const sx_node *n);
/* In bfloat16 if requested, fast and supported by oneDNN; spec->bf16 is the result. */
SX_MUST_USE sx_status sx_cpu_create_conv(sx_dnn_conv_spec *spec, sx_dnn_conv **out);
/* Of an activation that is a post-op; SX_DNN_PLAIN of any other node. */
sx_dnn_act sx_cpu_act_of(const sx_node *n);
/* Whether creating a primitive to see if there is one, which is destroyed here, succeeded. Running
 * out of memory is no reason to choose another kernel: it ends the planning. Takes the status. */
bool sx_cpu_tried(sx_cpu_match *m, sx_status status, sx_dnn_conv *conv);
/* The bytes of float32 numbers, images or rows, that a product of narrow images by `filter_elems`
 * widens and multiplies at a time: those that stay in cache, but as many as make going over the
 * filter again for each piece little work. */
int64_t sx_cpu_conv_piece_bytes(int64_t filter_elems);
/* Whether a convolution is a product of matrices, pixels by channels. */
bool sx_cpu_conv_is_product(const sx_conv_geometry *g);
/* The rows of that product that are widened and multiplied at a time. */
int64_t sx_cpu_conv_piece_rows(const sx_conv_geometry *g);
/* The rows of a block, if `rows` are divided into blocks of at most `most`, as equal as they can
 * be: as many as give each worker the same number of blocks by panels. */
int64_t sx_cpu_block_rows(int64_t rows, int64_t most, int64_t panels, int workers);
/* Sets the step's state, a slot of the primitive that step->data begins with. */
void sx_cpu_use_slots(sx_cpu_step *step);
/* sx_cpu_own() of a primitive. */
SX_MUST_USE sx_status sx_cpu_own_conv(const sx_cpu_site *site, sx_dnn_conv *conv);
/* sx_cpu_kernel.pack of a filter that oneDNN's primitive packs. Takes the primitive. */
SX_MUST_USE sx_status sx_cpu_pack_for(const sx_cpu_site *site, sx_dnn_conv *conv,
                                      sx_cpu_packed *out, sx_cpu_step *step);
/* Whether the step's filter lies there as the primitive packs it. */
bool sx_cpu_is_packed_for(const sx_cpu_site *site, const sx_dnn_conv *conv);

/* Whether a convolution of conv.c, or a gradient of one, is best computed by Winograd's algorithm,
 * in tiles of how many results along an axis; 0: it is not. */
int sx_cpu_winograd_tile(const sx_cpu_site *site, const sx_node *n);
/* The step, in such tiles. in: x, filter, bias and what is added, if there are any; or dy, filter.
 */
SX_MUST_USE sx_status sx_cpu_prepare_winograd(const sx_cpu_site *site, const sx_node *n, int tile,
                                              sx_cpu_step *step);
/* sx_cpu_kernel.pack of their filters. */
SX_MUST_USE sx_status sx_cpu_pack_winograd(const sx_cpu_site *site, const sx_node *n, int tile,
                                           sx_cpu_packed *out, sx_cpu_step *step);
/* The same step of a filter's gradient. in: x, dy; out: it and, if there is one, the bias'. */
SX_MUST_USE sx_status sx_cpu_prepare_winograd_filter(const sx_cpu_site *site, const sx_node *n,
                                                     int tile, sx_cpu_step *step);

/* Whether a forward convolution of conv.c is best computed as a product of rows by a frozen matrix
 * by dense.c. */
bool sx_cpu_conv_is_dense(const sx_cpu_site *site, const sx_conv2d_attrs *attrs);
/* The step. in: x, filter, bias and what is added, if there are any. */
SX_MUST_USE sx_status sx_cpu_prepare_dense_conv(const sx_cpu_site *site, sx_cpu_step *step);

/* Whether it is one by groups that are narrower than a vector, or a depthwise one with bias and
 * swish. */
bool sx_cpu_conv_is_grouped(const sx_cpu_site *site, const sx_node *conv);
/* The step. in: x, filter, bias and what is added, if there are any. */
SX_MUST_USE sx_status sx_cpu_prepare_grouped(const sx_cpu_site *site, const sx_node *conv,
                                             sx_cpu_step *step);

#endif
