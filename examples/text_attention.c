/* Trains a classifier of sentences, from strings: split, hashed, padded, embedded, one block of
 * self-attention. The data decide how many words the longest sentence of a batch has, so the model
 * is made of functions (sextant/function.h), and each batch runs at its own shapes.
 *
 *     text_attention DIR [STEPS]     goes on from DIR/model.ckpt, if it exists
 *     sextant run DIR/export --input_exprs 'text=["what a nice day", "an awful poor meal"]'
 *
 * The sentences are generated: they say good or bad words of something. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/sextant.h>

enum { BUCKETS = 256, WIDTH = 16, CLASSES = 2, BATCH = 32, MOST_WORDS = 12, LINE_BYTES = 160 };

/* ---- The functions ---- */

/* A node of one output whose type is declared: SX_UNKNOWN_DIM is what data decide. */
static sx_value node(sx_builder *b, const char *op, const char *attrs, const sx_value *in, int n,
                     sx_type type)
{
    return sx_function_node(b, op, attrs, in, n, NULL, 0, &type, 1);
}

static sx_value call(sx_builder *b, const char *function, sx_value *in, int n, const sx_type *types,
                     int n_types)
{
    char attrs[64];
    snprintf(attrs, sizeof(attrs), "function=\"%s\"", function);
    return sx_function_node(b, "call", attrs, in, n, NULL, 0, types, n_types);
}

static sx_value integer(sx_builder *b, int64_t value)
{
    return sx_constant(b, (sx_tensor){sx_scalar_type(SX_I64), &value});
}

static sx_type matrix(sx_dtype dtype)
{
    return sx_type_of(dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
}

/* prepare(text [n]) -> ids, mask [n, words of the longest]: what fills up has the mask 0 */
static sx_status add_prepare(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type list = sx_type_of(SX_STRING, SX_UNKNOWN_DIM);
    const sx_type split[] = {sx_type_of(SX_I64, SX_UNKNOWN_DIM, 2), list, sx_type_of(SX_I64, 2)};
    sx_value text = sx_input(b, "text", list);
    sx_value spaces =
        node(b, "constant", "value=tensor(string[] \"\")", NULL, 0, sx_scalar_type(SX_STRING));
    sx_value places = sx_function_node(b, "string_split_v2", "maxsplit=-1",
                                       (sx_value[]){sx_string_lower(b, text), spaces}, 2, NULL, 0,
                                       split, 3); /* (sentence, place), word, size */
    sx_value ids = sx_string_to_hash_bucket(b, (sx_value){places.id + 1}, BUCKETS);
    sx_value sentence = sx_gather_along(b, places, integer(b, 0), 1, 0);
    sx_value n = sx_gather(b, node(b, "shape", "dtype=int64", &text, 1, sx_type_of(SX_I64, 1)),
                           integer(b, 0));
    sx_value padded =
        node(b, "ragged_tensor_to_tensor", "row_partition_types=\"FIRST_DIM_SIZE,VALUE_ROWIDS\"",
             (sx_value[]){integer(b, -1), ids, integer(b, -1), n, sentence}, 5, matrix(SX_I64));
    sx_value zero = integer(b, 0);
    sx_output(b, "ids", sx_maximum(b, padded, zero));
    sx_output(b, "mask", sx_cast(b, sx_greater_equal(b, padded, zero), SX_F32));
    sx_status status = sx_library_add(library, "prepare", b);
    sx_builder_destroy(b);
    return status;
}

/* x [n,t] as [n,1,t] or [n,t,1] */
static sx_value expand(sx_builder *b, sx_value x, int axis)
{
    int64_t one = 1;
    char attrs[32];
    sx_value shape = node(b, "shape", "dtype=int64", &x, 1, sx_type_of(SX_I64, 2));
    sx_value ones = sx_constant(b, (sx_tensor){sx_type_of(SX_I64, 1), &one});
    sx_value n = sx_slice(b, shape, .begin = {0}, .size = {1});
    sx_value t = sx_slice(b, shape, .begin = {1}, .size = {1});
    sx_value wanted = axis == 1 ? sx_concat(b, 0, n, ones, t) : sx_concat(b, 0, n, t, ones);
    sx_type type = sx_type_of(SX_F32, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    type.dims[axis] = 1;
    snprintf(attrs, sizeof(attrs), "shape=%%%u", (unsigned)wanted.id);
    return node(b, "reshape", attrs, &x, 1, type);
}

static sx_value weight(sx_builder *b, const char *name, int64_t rows)
{
    return sx_variable(b, &(sx_variable_spec){.name = name,
                                              .type = sx_type_of(SX_F32, rows, WIDTH),
                                              .init = SX_INIT_GLOROT_UNIFORM});
}

static sx_value vector(sx_builder *b, const char *name, double value)
{
    return sx_variable(b, &(sx_variable_spec){.name = name,
                                              .type = sx_type_of(SX_F32, WIDTH),
                                              .init = SX_INIT_CONSTANT,
                                              .init_value = value});
}

/* network(ids, mask [n,t]) -> logits [n, CLASSES] */
static sx_status add_network(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    sx_value ids = sx_input(b, "ids", matrix(SX_I64)), mask = sx_input(b, "mask", matrix(SX_F32));
    sx_value x = sx_gather(b, weight(b, "embedding", BUCKETS), ids); /* [n,t,WIDTH] */
    sx_value one = sx_constant_f32(b, 1);

    /* attention: every word to every word that is there */
    sx_value scores = sx_matmul(b, sx_matmul(b, x, weight(b, "attention/query", WIDTH)),
                                sx_matmul(b, x, weight(b, "attention/key", WIDTH)),
                                .transpose_b = true);     /* [n,t,t] */
    scores = sx_mul(b, scores, sx_constant_f32(b, 0.25)); /* 1 / sqrt(WIDTH) */
    sx_value hidden = sx_mul(b, sx_sub(b, mask, one), sx_constant_f32(b, 1e9));
    sx_value weights = sx_softmax(b, sx_add(b, scores, expand(b, hidden, 1)));
    sx_value context = sx_matmul(b, weights, sx_matmul(b, x, weight(b, "attention/value", WIDTH)));

    /* layer normalization of what goes in and what comes out */
    sx_value sum = sx_add(b, x, context);
    sx_value mean = sx_reduce_mean(b, sum, .axes = SX_AXES(2), .keep_dims = true);
    sx_value centred = sx_sub(b, sum, mean);
    sx_value variance =
        sx_reduce_mean(b, sx_square(b, centred), .axes = SX_AXES(2), .keep_dims = true);
    sx_value scale = sx_rsqrt(b, sx_add(b, variance, sx_constant_f32(b, 1e-5)));
    sx_value normal =
        sx_add(b, sx_mul(b, sx_mul(b, centred, scale), vector(b, "layer_normalization/gamma", 1)),
               vector(b, "layer_normalization/beta", 0));

    /* the mean over the words that are there */
    sx_value there = sx_mul(b, normal, expand(b, mask, 2));
    sx_value count = sx_reduce_sum(b, mask, .axes = SX_AXES(1), .keep_dims = true);
    sx_value pooled =
        sx_div(b, sx_reduce_sum(b, there, .axes = SX_AXES(1)), sx_maximum(b, count, one));
    sx_output(b, "logits", sx_dense(b, pooled, CLASSES));
    sx_status status = sx_library_add(library, "network", b);
    sx_builder_destroy(b);
    return status;
}

/* model(ids, mask [n,t], label [n]) -> loss, accuracy */
static sx_status add_model(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type type = sx_type_of(SX_F32, SX_UNKNOWN_DIM, CLASSES);
    sx_value in[] = {sx_input(b, "ids", matrix(SX_I64)), sx_input(b, "mask", matrix(SX_F32))};
    sx_value label = sx_input(b, "label", sx_type_of(SX_I32, SX_UNKNOWN_DIM));
    sx_value logits = call(b, "network", in, 2, &type, 1);
    sx_value right = sx_equal(b, sx_argmax(b, logits, .axis = 1), label);
    sx_output(b, "loss",
              sx_reduce_mean(b, sx_nn_sparse_softmax_cross_entropy(b, logits, label),
                             .axes = SX_AXES(0)));
    sx_output(b, "accuracy", sx_reduce_mean(b, sx_cast(b, right, SX_F32), .axes = SX_AXES(0)));
    sx_status status = sx_library_add(library, "model", b);
    sx_builder_destroy(b);
    return status;
}

/* classify(text [n]) -> probabilities [n, CLASSES], class [n]: what is exported */
static sx_status add_classify(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type prepared[] = {matrix(SX_I64), matrix(SX_F32)};
    const sx_type type = sx_type_of(SX_F32, SX_UNKNOWN_DIM, CLASSES);
    sx_value text = sx_input(b, "text", sx_type_of(SX_STRING, SX_UNKNOWN_DIM));
    sx_value ids = call(b, "prepare", &text, 1, prepared, 2);
    sx_value logits = call(b, "network", (sx_value[]){ids, {ids.id + 1}}, 2, &type, 1);
    sx_output(b, "probabilities", sx_softmax(b, logits));
    sx_output(b, "class", sx_argmax(b, logits, .axis = 1));
    sx_status status = sx_library_add(library, "classify", b);
    sx_builder_destroy(b);
    return status;
}

static sx_status build(sx_library *library)
{
    SX_TRY(add_prepare(library));
    SX_TRY(add_network(library));
    SX_TRY(add_model(library));
    SX_TRY(add_classify(library));
    SX_TRY(sx_library_add_training(library, "train", "model",
                                   .optimizer = sx_adam(.learning_rate = 1e-2),
                                   .features = "prepare"));
    return sx_library_finish(library);
}

/* ---- The data ---- */

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* One of the sentences of a step: the class is whether it has good words or bad ones. */
static int32_t make_sentence(uint64_t *state, char line[LINE_BYTES])
{
    static const char *const plain[] = {"a",    "the",  "day",  "meal",  "film", "was",
                                        "with", "very", "this", "quite", "and",  "so"};
    static const char *const said[2][5] = {{"bad", "awful", "poor", "dull", "sad"},
                                           {"good", "nice", "great", "fine", "fun"}};
    const int32_t label = (int32_t)draw(state, CLASSES);
    const uint32_t words = 1 + draw(state, MOST_WORDS), at = draw(state, words);
    int size = 0;
    for (uint32_t i = 0; i < words; i++) {
        const char *word = i == at ? said[label][draw(state, 5)] : plain[draw(state, 12)];
        size += snprintf(line + size, (size_t)(LINE_BYTES - size), "%s%s", i > 0 ? " " : "", word);
    }
    return label;
}

static int64_t steps_so_far(sx_functions *functions)
{
    int64_t step = 0;
    sx_status_free(sx_functions_read_variable(functions, "global_step", &step, sizeof(step)));
    return step;
}

static sx_status train(sx_functions *functions, int64_t until)
{
    char lines[BATCH][LINE_BYTES];
    sx_bytes text[BATCH];
    int32_t label[BATCH];
    for (int64_t step = steps_so_far(functions); step < until; step++) {
        uint64_t state = (uint64_t)step + 1; /* a step's batch does not depend on those before */
        for (int i = 0; i < BATCH; i++) {
            label[i] = make_sentence(&state, lines[i]);
            text[i] = (sx_bytes){lines[i], strlen(lines[i])};
        }
        const sx_tensor batch[] = {{sx_type_of(SX_STRING, BATCH), text},
                                   {sx_type_of(SX_I32, BATCH), label}};
        sx_results *results = NULL;
        SX_TRY(sx_functions_run(functions, "train", batch, 2, 0, &results));
        if ((step + 1) % 20 == 0 || step + 1 == until) {
            printf("step %" PRId64 "  loss %.4f  accuracy %.4f\n", step + 1,
                   (double)*(float *)sx_results_find(results, "loss")->data,
                   (double)*(float *)sx_results_find(results, "accuracy")->data);
        }
        sx_results_free(results);
    }
    return SX_OK;
}

static sx_status run(const char *dir, int64_t steps)
{
    static const sx_signature_function signatures[] = {{"serving_default", "classify"}};
    char checkpoint[1024], index[1040], models[1024], *exported = NULL;
    sx_library *library = NULL;
    sx_functions *functions = NULL;
    sx_status status = SX_OK;
    snprintf(checkpoint, sizeof(checkpoint), "%s/model.ckpt", dir);
    snprintf(index, sizeof(index), "%s.index", checkpoint);
    snprintf(models, sizeof(models), "%s/export", dir);
    SX_TRY_GOTO(status, sx_library_create(&library), done);
    SX_TRY_GOTO(status, build(library), done);
    const sx_functions_options options = {.struct_size = sizeof(options), .seed = 1};
    SX_TRY_GOTO(status, sx_functions_open(library, &options, &functions), done);
    FILE *before = fopen(index, "rb");
    if (before != NULL) {
        fclose(before);
        SX_TRY_GOTO(status, sx_functions_restore(library, functions, checkpoint), done);
        printf("going on from step %" PRId64 "\n", steps_so_far(functions));
    }
    SX_TRY_GOTO(status, train(functions, steps), done);
    SX_TRY_GOTO(status, sx_functions_save(library, functions, checkpoint), done);
    SX_TRY_GOTO(status,
                sx_functions_export(library, functions, signatures, 1, models, NULL, &exported),
                done);
    printf("exported to %s\n", exported);
done:
    sx_text_free(exported);
    sx_functions_close(functions);
    sx_library_destroy(library);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s DIR [STEPS]\n", argv[0]);
        return 2;
    }
    sx_status status = run(argv[1], argc > 2 ? strtoll(argv[2], NULL, 10) : 200);
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
