/* combined_non_max_suppression: the boxes with the highest scores of each class, and of those the
 * highest of each image.
 *
 *   boxes     float32[N,n,q,4]: of each class (q = classes), or one for all (q = 1)
 *   scores    float32[N,n,classes]
 *   max_output_size_per_class, max_total_size   int32 scalars
 *   iou_threshold, score_threshold              float32 scalars
 *   pad_per_class   m = min(max_total_size, max_output_size_per_class classes), else max_total_size
 *   clip_boxes      to [0, 1]
 *   returns   boxes float32[N,m,4], scores float32[N,m], classes float32[N,m], all 0 after those
 *             that are valid; valid int32[N]
 *
 * Each class as non_max_suppression. Of equal scores the lower class comes first, then the lower
 * box.
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes; (running) sizes that are not positive, thresholds
 *          RESOURCE_EXHAUSTED  (running) too many boxes
 * Source   TensorFlow CombinedNonMaxSuppression */
#ifdef SX_ATTRS
typedef struct sx_combined_non_max_suppression_attrs {
    bool pad_per_class, clip_boxes;
} sx_combined_non_max_suppression_attrs;
#endif

#include "graph/ops/box_overlap.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static const sx_attr_def combined_non_max_suppression_attrs[] = {
    SX_ATTR_TF(sx_combined_non_max_suppression_attrs, pad_per_class, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR_TF(sx_combined_non_max_suppression_attrs, clip_boxes, SX_ATTR_BOOL, .tf_number = 1),
};

static sx_status combined_non_max_suppression_infer(sx_infer_context *c)
{
    const sx_type *boxes = &c->inputs[0];
    SX_TRY(sx_require_maybe("boxes", boxes, SX_F32, 4, "[N,n,q,4]"));
    SX_TRY(sx_require_maybe("scores", &c->inputs[1], SX_F32, 3, "[N,n,classes]"));
    SX_TRY(sx_require_maybe("max_output_size_per_class", &c->inputs[2], SX_I32, 0, "a scalar"));
    SX_TRY(sx_require_maybe("max_total_size", &c->inputs[3], SX_I32, 0, "a scalar"));
    SX_TRY(sx_require_maybe("iou_threshold", &c->inputs[4], SX_F32, 0, "a scalar"));
    SX_TRY(sx_require_maybe("score_threshold", &c->inputs[5], SX_F32, 0, "a scalar"));
    const int64_t n = boxes->rank == 4 ? boxes->dims[0] : SX_UNKNOWN_DIM;
    c->outputs[0] = sx_type_of(SX_F32, n, SX_UNKNOWN_DIM, 4);
    c->outputs[1] = sx_type_of(SX_F32, n, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_F32, n, SX_UNKNOWN_DIM);
    c->outputs[3] = sx_type_of(SX_I32, n);
    return SX_OK;
}

static sx_status combined_non_max_suppression_host_types(const sx_kernel_call *c,
                                                         sx_type *out_types)
{
    const sx_combined_non_max_suppression_attrs *attrs = c->attrs;
    const sx_type *boxes = &c->in[0].type, *scores = &c->in[1].type;
    const int64_t n = boxes->dims[0], classes = scores->dims[2];
    const int64_t per_class = c->in[2].i[0], total = c->in[3].i[0];
    if (scores->dims[0] != n || scores->dims[1] != boxes->dims[1] || boxes->dims[3] != 4 ||
        (boxes->dims[2] != 1 && boxes->dims[2] != classes)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "boxes are %s and scores %s, expected [N,n,q,4] and [N,n,classes]; q is 1 "
                        "or classes",
                        SX_TEXT(boxes), SX_TEXT(scores));
    }
    if (per_class < 1 || total < 1 || !(c->in[4].f[0] >= 0 && c->in[4].f[0] <= 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "max_output_size_per_class is %lld, max_total_size %lld and iou_threshold "
                        "%g, expected above 0, above 0, and 0 to 1",
                        (long long)per_class, (long long)total, c->in[4].f[0]);
    }
    const int64_t m = attrs->pad_per_class && per_class <= INT32_MAX / SX_MAX(classes, 1)
                          ? SX_MIN(total, per_class * classes)
                          : total;
    out_types[0] = sx_type_of(SX_F32, n, m, 4);
    out_types[1] = sx_type_of(SX_F32, n, m);
    out_types[2] = out_types[1];
    out_types[3] = sx_type_of(SX_I32, n);
    return sx_require_made("the boxes", &out_types[0]);
}

static sx_status combined_non_max_suppression_host(const sx_kernel_call *c)
{
    const sx_combined_non_max_suppression_attrs *attrs = c->attrs;
    const int64_t n = c->in[0].type.dims[1], q = c->in[0].type.dims[2],
                  classes = c->in[1].type.dims[2], m = c->out[1].type.dims[1];
    const float threshold = (float)c->in[4].f[0], least = (float)c->in[5].f[0];
    sx_scored *waiting = sx_arena_array(c->arena, n + 1, sx_scored);
    /* of all classes: `box` is that of [n, classes], in the order of classes */
    sx_scored *selected = sx_arena_array(c->arena, n * classes + 1, sx_scored);
    sx_box *boxes = sx_arena_array(c->arena, n * q + 1, sx_box), /* of an image */
        *taken = sx_arena_array(c->arena, n + 1, sx_box);        /* those selected of a class */
    if (waiting == NULL || selected == NULL || boxes == NULL || taken == NULL) {
        return sx_no_memory("for boxes and their scores");
    }
    for (int k = 0; k < 3; k++) {
        sx_host_fill(c, k, 0);
    }
    for (int64_t image = 0; image < c->in[0].type.dims[0]; image++) {
        const double *corners = c->in[0].f + image * n * q * 4;
        int64_t chosen = 0;
        sx_boxes_of(corners, n * q, boxes);
        for (int64_t class = 0; class < classes; class ++) {
            const int64_t first = chosen;
            int64_t left = 0;
            SX_TRY(sx_cancel_check(c->cancel));
            for (int64_t k = 0; k < n; k++) {
                const float score = (float)c->in[1].f[(image * n + k) * classes + class];
                if (score > least) {
                    waiting[left++] = (sx_scored){.score = score, .box = k};
                }
            }
            sx_scored_heap_order(waiting, left);
            while (left > 0 && chosen - first < c->in[2].i[0]) {
                const sx_scored next = sx_scored_heap_pop(waiting, &left);
                const sx_box *box = &boxes[next.box * q + (q == 1 ? 0 : class)];
                bool drops = false;
                for (int64_t j = 0; j < chosen - first && !drops; j++) {
                    drops = sx_box_overlap(box, &taken[j]) > threshold;
                }
                if (!drops) {
                    taken[chosen - first] = *box;
                    selected[chosen++] =
                        (sx_scored){.score = next.score, .box = class * n + next.box};
                }
            }
        }
        qsort(selected, (size_t)chosen, sizeof(*selected), sx_scored_order);
        for (int64_t k = 0; k < SX_MIN(chosen, m); k++) {
            const int64_t class = selected[k].box / n, box = selected[k].box % n;
            for (int d = 0; d < 4; d++) {
                const double at = corners[(box * q + (q == 1 ? 0 : class)) * 4 + d];
                c->out[0].f[(image * m + k) * 4 + d] =
                    attrs->clip_boxes ? fmin(fmax(at, 0), 1) : at;
            }
            c->out[1].f[image * m + k] = selected[k].score;
            c->out[2].f[image * m + k] = (double)class;
        }
        c->out[3].i[image] = SX_MIN(chosen, m);
    }
    return SX_OK;
}

static void combined_non_max_suppression_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_combined_non_max_suppression, "CombinedNonMaxSuppression",
               SX_TF_NO_ATTRS);
}

static const double boxes[] = {0, 0, .1, .1, 0, .01, .1, .11, 0, -.01, .1, .09, 0, .5, .1, .6};
static const double scores[] = {.9, .1, .75, .7, .6, .8, .95, .2}, most[] = {3}, total[] = {4},
                    overlap[] = {.5}, least[] = {.15};
static const sx_op_sample combined_non_max_suppression_samples[] = {
    {.name = "two_classes",
     .inputs = {SX_SAMPLE_LIST(SX_F32, boxes, 1, 4, 1, 4), SX_SAMPLE_LIST(SX_F32, scores, 1, 4, 2),
                SX_SAMPLE_ONE(SX_I32, most), SX_SAMPLE_ONE(SX_I32, total),
                SX_SAMPLE_ONE(SX_F32, overlap), SX_SAMPLE_ONE(SX_F32, least)},
     .n_inputs = 6,
     .attrs = &(const sx_combined_non_max_suppression_attrs){.clip_boxes = true}},
};

const sx_op_def sx_op_combined_non_max_suppression = {
    SX_OP_NAMED(combined_non_max_suppression),
    .n_in = 6,
    .n_out = 4,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD,
    SX_OP_ATTRS(sx_combined_non_max_suppression_attrs, combined_non_max_suppression_attrs),
    .infer = combined_non_max_suppression_infer,
    .host = combined_non_max_suppression_host,
    .host_types = combined_non_max_suppression_host_types,
    .to_tf = combined_non_max_suppression_to_tf,
    SX_FROM_TF({.op = "CombinedNonMaxSuppression"}),
    SX_OP_SAMPLES(combined_non_max_suppression_samples),
};
