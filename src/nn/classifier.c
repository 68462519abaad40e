/* The spec of a classifier. See sx_classifier_spec in sextant/model.h. */
#include <inttypes.h>

#include <sextant/model.h>

#include "nn/layer.h"
#include "nn/optimizer.h"

typedef struct head {
    sx_builder *b;
    sx_value logits, labels; /* [N,C]; int32 [N] or empty */
    int64_t classes;
} head;

static sx_value column(sx_builder *b, sx_value x)
{
    return sx_build_op(b, reshape,
                       (&(sx_shape_attrs){.shape = {1, {sx_type_of_value(b, x).dims[0]}}}), x);
}

static sx_value to_float(sx_builder *b, sx_value x)
{
    return sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_F32}), x);
}

/* ---- C > 1: softmax over the classes ---- */

static void softmax_predictions(const head *h, sx_spec *spec)
{
    sx_value probabilities = sx_build_op(h->b, softmax, NULL, h->logits);
    const sx_argmax_attrs attrs = {.axis = 1, .dtype = SX_I32};
    spec->predictions[0] = (sx_named_value){"probabilities", probabilities};
    spec->predictions[1] =
        (sx_named_value){"classid", sx_build_op(h->b, argmax, &attrs, h->logits)};
}

static void softmax_loss(const head *h, sx_spec *spec, int top_k)
{
    sx_builder *b = h->b;
    spec->loss = sx_build_op(b, sparse_softmax_cross_entropy, NULL, h->logits, h->labels);
    const sx_argmax_attrs attrs = {.axis = 1, .dtype = SX_I32};
    sx_value best = sx_build_op(b, argmax, &attrs, h->logits);
    sx_value right = sx_build_op(b, equal, NULL, best, h->labels);
    spec->metrics[0] = (sx_named_value){"accuracy", to_float(b, right)};
    if (top_k > 0) {
        const char *name = sx_arena_printf(sx_builder_arena(b), "top_%d_accuracy", top_k);
        const sx_top_k_attrs k = {.k = top_k};
        sx_value within = sx_build_op(b, in_top_k, &k, h->logits, h->labels);
        spec->metrics[1] = (sx_named_value){name, to_float(b, within)};
    }
}

/* ---- C = 1: a yes/no question ---- */

static void sigmoid_predictions(const head *h, sx_spec *spec)
{
    sx_builder *b = h->b;
    sx_value yes = sx_build_op(b, sigmoid, NULL, h->logits);
    sx_value no = sx_build_op(b, sub, NULL, sx_constant_f32(b, 1), yes);
    sx_value positive = sx_build_op(b, less, NULL, sx_constant_f32(b, 0), column(b, h->logits));
    spec->predictions[0] = (sx_named_value){
        "probabilities", sx_build_op(b, concat, (&(sx_axis_attrs){.axis = 1}), no, yes)};
    spec->predictions[1] = (sx_named_value){
        "classid", sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_I32}), positive)};
}

static void sigmoid_loss(const head *h, sx_spec *spec)
{
    sx_builder *b = h->b;
    sx_value logit = column(b, h->logits), truth = to_float(b, h->labels);
    spec->loss = sx_build_op(b, sigmoid_cross_entropy, NULL, logit, truth);
    sx_value positive = to_float(b, sx_build_op(b, less, NULL, sx_constant_f32(b, 0), logit));
    spec->metrics[0] =
        (sx_named_value){"accuracy", to_float(b, sx_build_op(b, equal, NULL, positive, truth))};
}

static sx_spec build(const head *h, const sx_classifier_args *args)
{
    sx_spec spec = {.optimizer = args->optimizer};
    bool labelled = sx_value_is(h->labels);
    if (h->classes == 1) {
        sigmoid_predictions(h, &spec);
        if (labelled) {
            sigmoid_loss(h, &spec);
        }
    } else {
        softmax_predictions(h, &spec);
        if (labelled) {
            softmax_loss(h, &spec, args->top_k);
        }
    }
    return spec;
}

sx_spec sx_classifier_spec_at(sx_builder *b, sx_value logits, sx_value labels,
                              const sx_classifier_args *args, const char *file, int line)
{
    sx_spec nothing = {0};
    sx_classifier_args own;
    if (!sx_builder_take_args(b, "sx_classifier_args", args, sizeof(own), &own)) {
        return nothing;
    }
    if (!sx_layer_begin(b, "classifier", NULL, file, line)) {
        return nothing;
    }
    sx_optimizer optimizer = own.optimizer;
    sx_status status = sx_optimizer_resolve(&optimizer);
    head h = {b, sx_widen(b, logits), labels, sx_type_of_value(b, logits).dims[1]};
    sx_spec spec = nothing;
    if (status != SX_OK) {
        sx_layer_fail(b, "classifier", status);
    } else if (sx_layer_check_rank(b, "classifier", logits, 2, "logits [N,C]", "")) {
        if (own.top_k < 0 || own.top_k > h.classes) {
            sx_layer_fail(b, "classifier",
                          sx_error(SX_INVALID_ARGUMENT,
                                   "top_k is %d, expected 0 to %" PRId64
                                   ", the number of classes of the logits",
                                   own.top_k, h.classes));
        } else {
            spec = build(&h, &own);
        }
    }
    sx_scope_end(b);
    return spec;
}
