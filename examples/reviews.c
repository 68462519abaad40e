/* A model of several named features, one of them of variable length, with example weights:
 *
 *     python3 examples/reviews_records.py data        # data/train, data/val: TFRecords
 *     sextant train ./examples/reviews.c --data data/train --eval-data data/val \
 *         --model-dir run1 --epochs 10
 *     sextant export run1 --out models/reviews
 *     sextant run models/reviews --input age=age.npy product=product.npy words=words.npy \
 *         words_mask=words_mask.npy
 *
 * A record has the reviewer's age, the number of the product, the numbers of the words of the
 * review, and whether the reviewer recommends the product; `weight` says how much it counts. */
#include <sextant/model.h>

enum { PRODUCTS = 10, VOCABULARY = 50, MAX_WORDS = 12, WIDTH = 8 };

/* The rows of a trained table [count, WIDTH]. */
static sx_value embed(sx_builder *b, sx_value ids, const char *name, int64_t count)
{
    const sx_variable_spec table = {.name = name,
                                    .type = sx_type_of(SX_F32, count, WIDTH),
                                    .init = SX_INIT_UNIFORM,
                                    .init_value = 0.05};
    return sx_gather(b, sx_variable(b, &table), ids);
}

static sx_spec reviews(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_value product = embed(b, sx_feature(b, in, "product"), "product/embeddings", PRODUCTS);

    /* the mean over the words that are there: padding has the mask 0 */
    sx_value words = embed(b, sx_feature(b, in, "words"), "words/embeddings", VOCABULARY);
    sx_value mask = sx_cast(b, sx_feature(b, in, "words_mask"), SX_F32); /* [N,T] */
    sx_value there = sx_reshape(b, mask, SX_BATCH, MAX_WORDS, 1);
    sx_value sum = sx_reduce_sum(b, sx_mul(b, words, there), .axes = SX_AXES(1)); /* [N,WIDTH] */
    sx_value count = sx_reduce_sum(b, mask, .axes = SX_AXES(1), .keep_dims = true);
    sx_value text = sx_div(b, sum, sx_maximum(b, count, sx_constant_f32(b, 1)));

    sx_value x = sx_concat(b, 1, age, product, text);
    x = sx_dense(b, x, sx_param_int(p, "units", 16), .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 2), sx_label(b, in, "recommends"),
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

SX_MODEL(reviews, .build = reviews, .about = "recommends a product or not",
         .inputs = {{"age"},
                    {"product", SX_I32},
                    {"words", SX_I32, .max_length = MAX_WORDS, .truncate = true}},
         .labels = {{"recommends", SX_I32}}, .example_weight = "weight")
