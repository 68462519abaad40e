/* What cumsum, cumprod and cumulative_logsumexp share. */
#ifndef SX_GRAPH_OPS_CUMULATIVE_H
#define SX_GRAPH_OPS_CUMULATIVE_H

#include "graph/ops/common.h"

extern const sx_attr_def sx_cumulative_rows[3];

SX_MUST_USE sx_status sx_infer_cumulative(sx_infer_context *c);
/* The sums of the elements so far, or their products. */
SX_MUST_USE sx_status sx_host_cumulative(const sx_kernel_call *c, bool product);
/* Place k of line i along the axis of a tensor of `lines` lines, `count` elements each. */
typedef struct sx_cumulative_lines {
    int64_t lines, count, inner;
} sx_cumulative_lines;
sx_cumulative_lines sx_cumulative_lines_of(const sx_type *x, int64_t axis);
static inline int64_t sx_cumulative_at(const sx_cumulative_lines *l, int64_t i, int64_t k)
{
    return (i / l->inner * l->count + k) * l->inner + i % l->inner;
}
/* ln(e^a + e^b); -infinity is the empty sum. */
static inline double sx_log_add_exp(double a, double b)
{
    const double most = a > b || isnan(a) ? a : b, least = a > b || isnan(a) ? b : a;
    return isinf(most) || isnan(most) ? most : most + log1p(exp(least - most));
}
void sx_tf_cumulative(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
SX_MUST_USE sx_status sx_tf_read_cumulative(const sx_tf_node *n, void *attrs);
sx_value sx_build_cumulative(sx_builder *b, const sx_op_def *op, sx_value x,
                             const sx_cumulative_args *args, const char *file, int line);

#define SX_CUMULATIVE(axis_, ...) (&(const sx_cumulative_attrs){.axis = (axis_), __VA_ARGS__})
#define SX_SAMPLES_CUMULATIVE(fill_)                                               \
    {.name = "rows",                                                               \
     .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 7)},                                \
     .n_inputs = 1,                                                                \
     .attrs = SX_CUMULATIVE(1, .exclusive = false)},                               \
        {.name = "exclusive",                                                      \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 5, 2)},                         \
         .n_inputs = 1,                                                            \
         .attrs = SX_CUMULATIVE(1, .exclusive = true)},                            \
        {.name = "backwards",                                                      \
         .inputs = {SX_SAMPLE_F32(fill_, 3, -2, 2)},                               \
         .n_inputs = 1,                                                            \
         .attrs = SX_CUMULATIVE(0, .reverse = true)},                              \
        {.name = "backwards_exclusive",                                            \
         .inputs = {SX_SAMPLE_F32(fill_, 2, 6)},                                   \
         .n_inputs = 1,                                                            \
         .attrs = SX_CUMULATIVE(1, .exclusive = true, .reverse = true)},           \
        {.name = "one",                                                            \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 1)},                            \
         .n_inputs = 1,                                                            \
         .attrs = SX_CUMULATIVE(1, .exclusive = true)},                            \
    {                                                                              \
        .name = "int32", .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 9)}, .n_inputs = 1, \
        .attrs = SX_CUMULATIVE(1, .reverse = false)                                \
    }

#endif
