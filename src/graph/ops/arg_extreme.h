/* What argmin and argmax share: attributes sx_argmax_attrs. */
#ifndef SX_GRAPH_OPS_ARG_EXTREME_H
#define SX_GRAPH_OPS_ARG_EXTREME_H

#include "graph/ops/common.h"

extern const sx_attr_def sx_arg_extreme_rows[2];

SX_MUST_USE sx_status sx_infer_arg_extreme(sx_infer_context *c);
SX_MUST_USE sx_status sx_host_arg_extreme(const sx_kernel_call *c, bool least);
void sx_tf_arg_extreme(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
SX_MUST_USE sx_status sx_tf_read_arg_extreme(const sx_tf_node *n, void *attrs);
sx_value sx_build_arg_extreme(sx_builder *b, const sx_op_def *op, sx_value x,
                              const sx_argmax_args *args, const char *file, int line);

#define SX_ARG_ALONG(axis_, dtype_) (&(const sx_argmax_attrs){.axis = (axis_), .dtype = (dtype_)})
#define SX_SAMPLES_ARG_EXTREME                                                             \
    {.name = "classes",                                                                    \
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 10)},                            \
     .n_inputs = 1,                                                                        \
     .attrs = SX_ARG_ALONG(1, SX_I32)},                                                    \
        {.name = "middle",                                                                 \
         .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 5, 3)},                      \
         .n_inputs = 1,                                                                    \
         .attrs = SX_ARG_ALONG(1, SX_I64)},                                                \
        {.name = "ties",                                                                   \
         .inputs = {SX_SAMPLE_I32(2, SX_BATCH, 9)},                                        \
         .n_inputs = 1,                                                                    \
         .attrs = SX_ARG_ALONG(1, SX_I32)},                                                \
        {.name = "first",                                                                  \
         .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 6, 2)},                                \
         .n_inputs = 1,                                                                    \
         .attrs = SX_ARG_ALONG(0, SX_I32)},                                                \
    {                                                                                      \
        .name = "beside_the_batch", .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 4, -2, 3)}, \
        .n_inputs = 1, .attrs = SX_ARG_ALONG(0, SX_I32)                                    \
    }

#endif
