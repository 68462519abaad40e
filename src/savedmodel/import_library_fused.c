/* Imports nodes into which TensorFlow has fused others, as those, one after the other. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

/* FusedPadConv2D(image, paddings, filter): MirrorPad, Conv2D. */
static sx_status import_pad_conv(sx_tf_op_node *x)
{
    sx_value in[3], y = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_import_outputs_as(x, "MirrorPad", in, 2, &in[1], 1));
    SX_TRY(sx_tf_import_outputs_as(x, "Conv2D", &in[1], 2, &y, 1));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* FusedResizeAndPadConv2D(image, size, paddings, filter) {resize_align_corners}: ResizeBilinear,
 * MirrorPad, Conv2D. */
static sx_status import_resize_pad_conv(sx_tf_op_node *x)
{
    sx_value in[4], y = SX_NO_VALUE;
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    /* The attribute by the name that it has there. */
    sx_tf_op_node of = *x;
    sx_tf_import_node own = *x->n;
    Tensorflow__NodeDef *node = sx_arena_memdup(&x->im->arena, own.node, sizeof(*node));
    Tensorflow__NodeDef__AttrEntry **entries =
        sx_arena_memdup(&x->im->arena, own.node->attr, own.node->n_attr * sizeof(*entries));
    if (node == NULL || (entries == NULL && own.node->n_attr > 0)) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < node->n_attr; i++) {
        if (strcmp(entries[i]->key, "resize_align_corners") == 0) {
            entries[i] = sx_arena_memdup(&x->im->arena, entries[i], sizeof(**entries));
            if (entries[i] == NULL) {
                return sx_import_memory();
            }
            entries[i]->key = (char *)(uintptr_t) "align_corners";
        }
    }
    node->attr = entries;
    own.node = node;
    of.n = &own;
    SX_TRY(sx_tf_import_outputs_as(&of, "ResizeBilinear", in, 2, &in[1], 1));
    SX_TRY(sx_tf_import_outputs_as(x, "MirrorPad", &in[1], 2, &in[2], 1));
    SX_TRY(sx_tf_import_outputs_as(x, "Conv2D", &in[2], 2, &y, 1));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Conv(input, filter): of two or three dimensions of space. */
static sx_status import_conv(sx_tf_op_node *x)
{
    const sx_tf_node *tf = &x->tf.head;
    const int rank = tf->types[1].rank;
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if ((rank != 4 && rank != 5) || sx_tf_read_int(tf, "batch_dims", 1) != 1 ||
        !sx_tf_read_is(tf, "data_format", "CHANNELS_LAST", true)) {
        return sx_tf_unsupported(
            "expected a filter of rank 4 or 5, batch_dims 1 and channels last");
    }
    SX_TRY(sx_tf_import_outputs_as(x, rank == 4 ? "Conv2D" : "Conv3D", in, 2, &y, 1));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

const sx_tf_op_row sx_tf_fused_rows[] = {
    {"FusedPadConv2D", import_pad_conv, NULL},
    {"FusedResizeAndPadConv2D", import_resize_pad_conv, NULL},
    {"Conv", import_conv, NULL},
    {NULL, NULL, NULL},
};
