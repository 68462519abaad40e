/* non_max_suppression: of boxes that overlap, those with the highest scores.
 *
 *   boxes             float16 or float32 [n,4]: y1, x1, y2, x2; or with `overlaps`, [n,n]
 *   scores            their dtype [n]
 *   max_output_size   int32 scalar
 *   overlap_threshold, score_threshold, soft_nms_sigma   float scalars
 *   overlaps                the first input has the overlap of each pair instead of boxes
 *   pad_to_max_output_size  max_output_size outputs, the rest 0
 *   returns   selected int32[m], their scores [m], valid int32: how many were selected
 *
 * Boxes with a score above score_threshold are taken by their score, the lower box first. One is
 * dropped that overlaps with a selected one by more than overlap_threshold. With soft_nms_sigma
 * above 0, its score is instead multiplied by exp(-overlap^2 / (2 sigma)) for each selected one,
 * and it waits for its turn again. The overlap is the intersection's area divided by the union's.
 *
 * Errors   INVALID_ARGUMENT  shapes, dtypes; (running) max_output_size negative, thresholds
 * Source   TensorFlow NonMaxSuppressionV5, V4, V3, V2, NonMaxSuppressionWithOverlaps; Bodla et al.,
 *          "Soft-NMS", ICCV 2017 */
#ifdef SX_ATTRS
typedef struct sx_non_max_suppression_attrs {
    bool overlaps, pad_to_max_output_size;
} sx_non_max_suppression_attrs;
#endif

#include "graph/ops/box_overlap.h"

#include <math.h>

#include "base/memory.h"

static const sx_attr_def non_max_suppression_attrs[] = {
    SX_ATTR(sx_non_max_suppression_attrs, overlaps, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_non_max_suppression_attrs, pad_to_max_output_size, SX_ATTR_BOOL, .tf_number = 0),
};

static sx_status non_max_suppression_infer(sx_infer_context *c)
{
    static const char *const names[] = {"overlap_threshold", "score_threshold", "soft_nms_sigma"};
    const sx_dtype d = c->inputs[0].dtype;
    SX_TRY(sx_require_maybe("boxes", &c->inputs[0], d, 2, "[n,4]"));
    SX_TRY(sx_require_maybe("scores", &c->inputs[1], d, 1, "[n]"));
    SX_TRY(sx_require_maybe("max_output_size", &c->inputs[2], SX_I32, 0, "a scalar"));
    for (int i = 3; i < 6; i++) {
        SX_TRY(sx_require_maybe(names[i - 3], &c->inputs[i], c->inputs[i].dtype, 0, "a scalar"));
        if (!sx_dtype_is_float(c->inputs[i].dtype)) {
            return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected a float", names[i - 3],
                            SX_TEXT(&c->inputs[i]));
        }
    }
    if (d != SX_F16 && d != SX_F32) {
        return sx_error(SX_INVALID_ARGUMENT, "boxes are %s, expected float16 or float32",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = sx_type_of(SX_I32, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(d, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_scalar_type(SX_I32);
    return SX_OK;
}

/* Selects boxes; *out_n of them. selected[n], in the call's arena */
static sx_status choose(const sx_kernel_call *c, sx_scored **out_selected, int64_t *out_n)
{
    const sx_non_max_suppression_attrs *attrs = c->attrs;
    const sx_type *boxes = &c->in[0].type;
    const int64_t n = boxes->dims[0], most = SX_MIN(c->in[2].i[0], n);
    const float threshold = (float)c->in[3].f[0], least = (float)c->in[4].f[0],
                sigma = (float)c->in[5].f[0];
    if (c->in[1].type.dims[0] != n || boxes->dims[1] != (attrs->overlaps ? n : 4)) {
        return sx_error(SX_INVALID_ARGUMENT, "boxes are %s and scores %s, expected [n,%s] and [n]",
                        SX_TEXT(boxes), SX_TEXT(&c->in[1].type), attrs->overlaps ? "n" : "4");
    }
    if (c->in[2].i[0] < 0 || (!attrs->overlaps && !(threshold >= 0 && threshold <= 1))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "max_output_size is %lld and overlap_threshold %g, expected at least 0, "
                        "and 0 to 1",
                        (long long)c->in[2].i[0], (double)threshold);
    }
    const int64_t n_boxes = attrs->overlaps ? 0 : n;
    sx_box *all = sx_arena_array(c->arena, n_boxes + 1, sx_box),
           *taken = sx_arena_array(c->arena, n_boxes + 1, sx_box); /* the boxes of `selected` */
    sx_scored *waiting = sx_arena_array(c->arena, n + 1, sx_scored),
              *selected = sx_arena_array(c->arena, n + 1, sx_scored);
    int64_t left = 0, chosen = 0;
    if (all == NULL || taken == NULL || waiting == NULL || selected == NULL) {
        return sx_no_memory("for boxes and their scores");
    }
    sx_boxes_of(c->in[0].f, n_boxes, all);
    for (int64_t k = 0; k < n; k++) {
        if ((float)c->in[1].f[k] > least) {
            waiting[left++] = (sx_scored){.score = (float)c->in[1].f[k], .box = k};
        }
    }
    sx_scored_heap_order(waiting, left);
    while (chosen < most && left > 0) {
        sx_scored next = sx_scored_heap_pop(waiting, &left);
        const float score = next.score;
        bool drops = false;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = chosen - 1; k >= next.checked && !drops; k--) {
            const float overlap = attrs->overlaps
                                      ? (float)c->in[0].f[next.box * n + selected[k].box]
                                      : sx_box_overlap(&all[next.box], &taken[k]);
            if (sigma > 0) {
                next.score *= expf(-0.5F / sigma * overlap * overlap);
                drops = next.score <= least;
            } else {
                drops = overlap > threshold;
            }
        }
        next.checked = chosen;
        if (!drops && next.score == score) {
            if (!attrs->overlaps) {
                taken[chosen] = all[next.box];
            }
            selected[chosen++] = next;
        } else if (!drops) { /* it waits for its turn again */
            sx_scored_heap_push(waiting, &left, next);
        }
    }
    *out_selected = selected;
    *out_n = chosen;
    return SX_OK;
}

static sx_status non_max_suppression_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_non_max_suppression_attrs *attrs = c->attrs;
    sx_scored *selected = NULL;
    int64_t n = 0;
    SX_TRY(choose(c, &selected, &n));
    n = attrs->pad_to_max_output_size ? c->in[2].i[0] : n;
    out_types[0] = sx_type_of(SX_I32, n);
    out_types[1] = sx_type_of(c->in[0].type.dtype, n);
    out_types[2] = sx_scalar_type(SX_I32);
    return sx_require_made("the selected boxes", &out_types[0]);
}

static sx_status non_max_suppression_host(const sx_kernel_call *c)
{
    sx_scored *selected = NULL;
    int64_t n = 0;
    SX_TRY(choose(c, &selected, &n));
    for (int64_t k = 0; k < c->out[0].type.dims[0]; k++) {
        c->out[0].i[k] = k < n ? selected[k].box : 0;
        c->out[1].f[k] = k < n ? selected[k].score : 0;
    }
    c->out[2].i[0] = n;
    return SX_OK;
}

static void non_max_suppression_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    if (((const sx_non_max_suppression_attrs *)op->attrs)->overlaps) {
        sx_tf_fail(w, sx_error(SX_UNIMPLEMENTED,
                               "%s: non_max_suppression of overlaps has no TensorFlow form",
                               op->name));
        return;
    }
    sx_tf_same(w, op, &sx_op_non_max_suppression, "NonMaxSuppressionV5",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double boxes[] = {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                               0, 10, 1, 11, 1, 10.1, 0, 11.1, 0, 100,  1, 101};
static const double scores[] = {.9, .75, .6, .95, .5, .3}, most[] = {3}, overlap[] = {.5},
                    none[] = {0}, sigma[] = {.5};
#define CHOOSE(name_, sigma_)                                                              \
    {                                                                                      \
        .name = (name_),                                                                   \
        .inputs = {SX_SAMPLE_LIST(SX_F32, boxes, 6, 4), SX_SAMPLE_LIST(SX_F32, scores, 6), \
                   SX_SAMPLE_ONE(SX_I32, most),         SX_SAMPLE_ONE(SX_F32, overlap),    \
                   SX_SAMPLE_ONE(SX_F32, none),         SX_SAMPLE_ONE(SX_F32, sigma_)},    \
        .n_inputs = 6                                                                      \
    }
static const sx_op_sample non_max_suppression_samples[] = {CHOOSE("hard", none),
                                                           CHOOSE("soft", sigma)};

const sx_op_def sx_op_non_max_suppression = {
    SX_OP_NAMED(non_max_suppression),
    .n_in = 6,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_non_max_suppression_attrs, non_max_suppression_attrs),
    .infer = non_max_suppression_infer,
    .host = non_max_suppression_host,
    .host_types = non_max_suppression_host_types,
    .to_tf = non_max_suppression_to_tf,
    SX_FROM_TF({.op = "NonMaxSuppressionV5"}),
    SX_OP_SAMPLES(non_max_suppression_samples),
};
