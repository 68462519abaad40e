/* A classifier of sentences, from strings to classes: words from a vocabulary, labels by name.
 *
 *     python3 examples/sentiment_csv.py data    # data/train.csv, data/val.csv, data/words.txt
 *     sextant train ./examples/sentiment.c --data data/train.csv --eval-data data/val.csv \
 *         --model-dir run1 --epochs 5 -- --vocabulary data/words.txt
 *     sextant export run1 --out models/sentiment
 *     sextant run models/sentiment/1 --input_exprs 'text=["a great day", "what an awful film"]'
 *
 * prepare() runs in the input pipeline, and is exported with the model, the vocabulary as an asset:
 * the server is sent sentences. */
#include <sextant/model.h>

enum { WORDS = 12, WIDTH = 16, UNKNOWN = 1, FIRST_WORD = 2 };

/* text [N] -> ids [N,WORDS], 1 for unknown words; mask [N,WORDS], 0 where there is no word.
 * The label's name -> its number. */
static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char *const classes[] = {"bad", "good"};
    const char *vocabulary = sx_param_string(p, "vocabulary", "words.txt");
    sx_bytes none = {"", 0};
    sx_value nothing = sx_constant(b, (sx_tensor){sx_scalar_type(SX_STRING), &none});
    sx_value text = sx_string_lower(b, sx_feature(b, in, "text"));
    sx_value words = sx_string_split_padded(b, text, .length = WORDS);
    sx_output(b, "ids",
              sx_vocabulary_lookup(b, words, .file = vocabulary, .first_id = FIRST_WORD,
                                   .default_value = UNKNOWN));
    sx_output(b, "mask", sx_cast(b, sx_not_equal(b, words, nothing), SX_F32));
    sx_value label = sx_vocabulary_lookup(b, sx_label(b, in, "mood"), .words = classes,
                                          .n_words = 2, .default_value = -1);
    sx_output(b, "mood", sx_cast(b, label, SX_I32));
}

static sx_spec sentiment(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    const sx_variable_spec table = {.name = "embedding/embeddings",
                                    .type = sx_type_of(SX_F32, sx_param_int(p, "rows", 64), WIDTH),
                                    .init = SX_INIT_UNIFORM,
                                    .init_value = 0.05};
    sx_value mask = sx_feature(b, in, "mask"), axis = sx_reshape(b, mask, SX_BATCH, WORDS, 1);
    sx_value x = sx_gather(b, sx_variable(b, &table), sx_feature(b, in, "ids"));
    sx_value count = sx_reduce_sum(b, mask, .axes = SX_AXES(1), .keep_dims = true);
    x = sx_div(b, sx_reduce_sum(b, sx_mul(b, x, axis), .axes = SX_AXES(1)),
               sx_maximum(b, count, sx_constant_f32(b, 1)));
    sx_value logits = sx_dense(b, sx_dense(b, x, WIDTH, .activation = SX_RELU), 2);
    return sx_classifier_spec(b, logits, sx_label(b, in, "mood"),
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

SX_MODEL(sentiment, .build = sentiment, .preprocess = prepare,
         .about = "sentences in good or bad words", .num_classes = 2,
         .inputs = {{"text", SX_STRING}}, .labels = {{"mood", SX_STRING}})
