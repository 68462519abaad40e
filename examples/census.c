/* A wide and deep model on a table of numbers and texts, with preprocessing of its own:
 *
 *     python3 examples/census_csv.py data            # data/train.csv, data/val.csv
 *     sextant train ./examples/census.c --data data/train.csv --eval-data data/val.csv \
 *         --model-dir run1 --epochs 10
 *     sextant export run1 --out models/census
 *     sextant serve --model_name=census --model_base_path=models/census --rest_api_port=8501
 *     curl http://localhost:8501/v1/models/census:predict -d '{"instances": [{"age": 39,
 *         "gain": 0, "hours": 40, "education": "Bachelors", "job": "Clerical"}]}'
 *
 * prepare() runs in the input pipeline, and is exported with the model: the server is sent rows as
 * they are in the table. */
#include <sextant/model.h>

enum { EDUCATIONS = 64, JOBS = 128, WIDTH = 8, AGES = 6 };

static sx_value column(sx_builder *b, sx_value x)
{
    return sx_reshape(b, x, SX_BATCH, 1);
}

/* The number of a text, by its hash, whatever the case of its letters. */
static sx_value bucket_of(sx_builder *b, sx_value text, int64_t buckets)
{
    return sx_cast(b, sx_string_to_hash_bucket(b, sx_string_lower(b, text), buckets), SX_I32);
}

static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static float limits[AGES - 1] = {25, 35, 45, 55, 65};
    sx_value bounds = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 1, AGES - 1), limits});
    sx_value age = column(b, sx_feature(b, in, "age")), gain = sx_feature(b, in, "gain");
    sx_value above = sx_cast(b, sx_greater(b, age, bounds), SX_I32); /* [N,5] */
    sx_output(b, "age_range", sx_reduce_sum(b, above, .axes = SX_AXES(1)));

    sx_value numbers =
        sx_concat(b, 1, sx_mul(b, age, sx_constant_f32(b, 1. / 40)),
                  column(b, sx_log1p(b, sx_maximum(b, gain, sx_constant_f32(b, 0)))),
                  sx_mul(b, column(b, sx_feature(b, in, "hours")), sx_constant_f32(b, 1. / 40)));
    sx_output(b, "numbers", sx_clip(b, numbers, 0, sx_param_float(p, "clip", 12)));
    sx_output(b, "education", bucket_of(b, sx_feature(b, in, "education"), EDUCATIONS));
    sx_output(b, "job", bucket_of(b, sx_feature(b, in, "job"), JOBS));
}

/* The rows of a trained table [count, WIDTH]. */
static sx_value embed(sx_builder *b, sx_value ids, const char *name, int64_t count)
{
    const sx_variable_spec table = {.name = name,
                                    .type = sx_type_of(SX_F32, count, WIDTH),
                                    .init = SX_INIT_UNIFORM,
                                    .init_value = 0.05};
    return sx_gather(b, sx_variable(b, &table), ids);
}

static sx_spec census(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value education = sx_feature(b, in, "education"), job = sx_feature(b, in, "job");
    sx_value wide =
        sx_concat(b, 1, sx_one_hot(b, sx_feature(b, in, "age_range"), .depth = AGES),
                  sx_one_hot(b, education, .depth = EDUCATIONS), sx_one_hot(b, job, .depth = JOBS));
    sx_value deep = sx_concat(b, 1, sx_feature(b, in, "numbers"),
                              embed(b, education, "education/embeddings", EDUCATIONS),
                              embed(b, job, "job/embeddings", JOBS));
    deep = sx_dense(b, deep, sx_param_int(p, "units", 32), .activation = SX_RELU);
    sx_value logits = sx_add(b, sx_dense(b, deep, 2), sx_dense(b, wide, 2, .no_bias = true));
    return sx_classifier_spec(b, logits, sx_label(b, in, "rich"),
                              .optimizer = sx_adam(.learning_rate = 5e-3));
}

SX_MODEL(census, .build = census, .preprocess = prepare, .about = "earns more than 50,000 or not",
         .inputs = {{"age"},
                    {"gain", .optional = true}, /* an empty field is 0 */
                    {"hours", .optional = true, .default_value = 40},
                    {"education", SX_STRING},
                    {"job", SX_STRING, .optional = true, .default_text = "unknown"}},
         .labels = {{"rich"}}, .example_weight = "weight")
