/* Post-training quantization: the values of a float32 graph that become integers of 8 bits, so that
 * convolutions and products of matrices by frozen filters can multiply integers. Quantizers stand
 * in the graph (quantize_dequantize); how the values are stored and multiplied is a backend's
 * affair.
 *
 *     points = sx_quantize_find(frozen graph)      images and filters of its products
 *     sx_quantize_observe()                        a graph with an output for each of them
 *     its runs on examples -> low, high of each point
 *     sx_pass_quantize()                           the graph with a quantizer behind each point
 *
 * Products whose image follows from inputs without another product stay in float32, and so do those
 * that no other product follows: they cost little, and what a model answers depends on them most.
 * If a model has no others, all are quantized. */
#ifndef SX_GRAPH_PASSES_QUANTIZE_H
#define SX_GRAPH_PASSES_QUANTIZE_H

#include "base/arena.h"
#include "graph/ir.h"

typedef struct sx_quantize_point {
    sx_value value;
    const char *device; /* on which it is rounded: a filter where the first product reads it */
    bool is_filter;     /* a range for each of its last dimension; else one for all of it */
    bool by_matmul;     /* a product of matrices reads it, or a view of it */
    int64_t channels;   /* of ranges */
    float *low, *high;  /* [channels], to be set; a filter's are symmetric: -high, high */
} sx_quantize_point;

typedef struct sx_quantize_points {
    sx_quantize_point *points; /* in the graph's order, each value once */
    int n;
    int products; /* that are to multiply integers, */
    int skipped;  /* and others with frozen filters */
} sx_quantize_points;

/* The graph after the passes that make quantizable products of a model's: batch norms folded. */
SX_MUST_USE sx_status sx_quantize_prepare(const sx_graph *g, sx_graph **out);
/* In `arena`; none if the graph has no products with frozen filters. */
SX_MUST_USE sx_status sx_quantize_find(const sx_graph *g, sx_arena *arena, sx_quantize_points *out);
/* The graph with an output more for each point, in order, after its own. */
SX_MUST_USE sx_status sx_quantize_observe(const sx_graph *g, const sx_quantize_points *points,
                                          sx_graph **out);
/* All readers of a point read its quantizer; outputs stay as they are. Ranges are finite, low <=
 * high: a value whose low is not negative becomes unsigned integers, another one signed ones of a
 * symmetric range. INVALID_ARGUMENT, naming the node: a range that is not. */
SX_MUST_USE sx_status sx_pass_quantize(const sx_graph *g, const sx_quantize_points *points,
                                       sx_graph **out);

/* The same places in bfloat16, of all products with frozen filters or matrices: what they read, and
 * what is added to them, is rounded (round_bf16), convolutions are marked (bf16_operands), and what
 * they make is rounded, too. What a product is computed with to its next rounding, and all other
 * operators, stay in float32, and so do the graph's outputs. For a graph whose batch norms are
 * folded. */
SX_MUST_USE sx_status sx_pass_round_products(const sx_graph *g, sx_graph **out);

#endif
