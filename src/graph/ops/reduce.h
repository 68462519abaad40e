/* What the reductions reduce_sum, reduce_max, ... share: attributes sx_reduce_attrs. */
#ifndef SX_GRAPH_OPS_REDUCE_H
#define SX_GRAPH_OPS_REDUCE_H

#include "graph/ops/common.h"

extern const sx_attr_def sx_reduce_rows[2];

SX_MUST_USE sx_status sx_infer_reduce_number(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_reduce_bool(sx_infer_context *c);
void sx_tf_reduce(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
SX_MUST_USE sx_status sx_tf_read_reduce(const sx_tf_node *n, void *attrs);
sx_value sx_build_reduce(sx_builder *b, const sx_op_def *op, sx_value x, const sx_reduce_args *args,
                         const char *file, int line);
#define SX_PUBLIC_REDUCE(op_name)                                                     \
    sx_value sx_##op_name##_at(sx_builder *b, sx_value x, const sx_reduce_args *args, \
                               const char *file, int line)                            \
    {                                                                                 \
        return sx_build_reduce(b, &sx_op_##op_name, x, args, file, line);             \
    }

/* The sum of the elements, or their product. */
SX_MUST_USE sx_status sx_host_reduce_total(const sx_kernel_call *c, bool product);

/* reduce_min, reduce_max: the gradient is shared equally among the elements that equal the result.
 */
void sx_grad_reduce_extreme(sx_grad *g);
SX_MUST_USE sx_status sx_host_reduce_extreme(const sx_kernel_call *c, bool least);

/* reduce_all, reduce_any: `decisive` where an element is, else the other. */
SX_MUST_USE sx_status sx_host_reduce_bool(const sx_kernel_call *c, bool decisive);

/* ---- Samples ---- */

/* The usual cases of a reduction. */
#define SX_SAMPLE_AXES(...) (&(const sx_reduce_attrs){.axes = {__VA_ARGS__}})
#define SX_SAMPLE_KEPT(...) (&(const sx_reduce_attrs){.axes = {__VA_ARGS__}, .keep_dims = true})
#define SX_SAMPLES_REDUCE(fill_)                                                                \
    {.name = "batch",                                                                           \
     .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH)},                                                \
     .n_inputs = 1,                                                                             \
     .attrs = SX_SAMPLE_AXES(1, {0})},                                                          \
        {.name = "rows",                                                                        \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 7)},                                         \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_AXES(1, {1})},                                                      \
        {.name = "channels",                                                                    \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 3, 5, 2)},                                   \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_AXES(3, {0, 1, 2})},                                                \
        {.name = "spatial_kept",                                                                \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 3, 5, 2)},                                   \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_KEPT(2, {1, 2})},                                                   \
        {.name = "all_kept",                                                                    \
         .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 1, 3)},                                      \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_KEPT(3, {0, 1, 2})},                                                \
        {.name = "batch_inside",                                                                \
         .inputs = {SX_SAMPLE_F32(fill_, 3, -2, 4)},                                            \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_AXES(1, {1})},                                                      \
        {.name = "beside_the_batch",                                                            \
         .inputs = {SX_SAMPLE_F32(fill_, 3, -2, 4)},                                            \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_KEPT(2, {0, 2})},                                                   \
        {.name = "static",                                                                      \
         .inputs = {SX_SAMPLE_F32(fill_, 3, 1, 4)},                                             \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_AXES(2, {0, 2})},                                                   \
        {.name = "empty_axis",                                                                  \
         .inputs = {SX_SAMPLE_F32(fill_, 3, 0)},                                                \
         .n_inputs = 1,                                                                         \
         .attrs = SX_SAMPLE_AXES(1, {1})},                                                      \
    {                                                                                           \
        .name = "nothing", .inputs = {SX_SAMPLE_F32(fill_, 2, 3)}, .n_inputs = 1, .attrs = NULL \
    }

/* The same of bools. */
#define SX_SAMPLES_REDUCE_BOOL                                             \
    {.name = "batch",                                                      \
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH)},                                 \
     .n_inputs = 1,                                                        \
     .attrs = SX_SAMPLE_AXES(1, {0})},                                     \
        {.name = "rows",                                                   \
         .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 2)},                          \
         .n_inputs = 1,                                                    \
         .attrs = SX_SAMPLE_AXES(1, {1})},                                 \
        {.name = "all_kept",                                               \
         .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 1, 3)},                       \
         .n_inputs = 1,                                                    \
         .attrs = SX_SAMPLE_KEPT(3, {0, 1, 2})},                           \
        {.name = "batch_inside",                                           \
         .inputs = {SX_SAMPLE_BOOL(3, -2, 4)},                             \
         .n_inputs = 1,                                                    \
         .attrs = SX_SAMPLE_AXES(2, {0, 2})},                              \
    {                                                                      \
        .name = "nothing", .inputs = {SX_SAMPLE_BOOL(2, 3)}, .n_inputs = 1 \
    }

#endif
