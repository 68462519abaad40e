/* The spec of a classifier. See sx_classifier_spec in sextant/model.h. */
#include <inttypes.h>

#include <sextant/model.h>

#include "nn/layer.h"

typedef struct head {
    sx_builder *b;
    sx_value logits, labels; /* [N,C]; int32 [N] or empty */
    int64_t classes;
} head;

static sx_value to_float(sx_builder *b, sx_value x)
{
    return sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_F32}), x);
}

/* --- C > 1: softmax over the classes --------------------------------------------------------- */

static void softmax_predictions(const head *h, sx_spec *spec)
{
    sx_value probabilities = sx_build_op(h->b, softmax, NULL, h->logits);
    const sx_argmax_attrs attrs = {.axis = 1, .dtype = SX_I32};
    spec->predictions[0] = (sx_named_value){"probabilities", probabilities};
    spec->predictions[1] =
        (sx_named_value){"classid", sx_build_op(h->b, argmax, &attrs, h->logits)};
}

static void softmax_loss(const head *h, sx_spec *spec)
{
    sx_builder *b = h->b;
    spec->loss = sx_build_op(b, sparse_softmax_cross_entropy, NULL, h->logits, h->labels);
    const sx_argmax_attrs attrs = {.axis = 1, .dtype = SX_I32};
    sx_value best = sx_build_op(b, argmax, &attrs, h->logits);
    sx_value right = sx_build_op(b, equal, NULL, best, h->labels);
    spec->metrics[0] = (sx_named_value){"accuracy", to_float(b, right)};
}

static sx_spec build(const head *h, const sx_classifier_args *args)
{
    sx_spec spec = {.optimizer = args->optimizer};
    bool labelled = sx_value_is(h->labels);
    softmax_predictions(h, &spec);
    if (labelled) {
        softmax_loss(h, &spec);
    }
    return spec;
}

sx_spec sx_classifier_spec_at(sx_builder *b, sx_value logits, sx_value labels,
                              const sx_classifier_args *args, const char *file, int line)
{
    sx_spec nothing = {0};
    if (!sx_layer_begin(b, "classifier", NULL, file, line)) {
        return nothing;
    }
    head h = {b, logits, labels, 0};
    sx_spec spec = nothing;
    if (sx_layer_check_rank(b, "classifier", logits, 2, "logits [N,C]", "")) {
        h.classes = sx_type_of_value(b, logits).dims[1];
        spec = build(&h, args);
    }
    sx_scope_end(b);
    return spec;
}
