/* A model on named inputs with preprocessing of its own and example weights, and rows for it. */
#ifndef SX_TESTS_TRAIN_NAMED_H
#define SX_TESTS_TRAIN_NAMED_H

#include "run.h"

enum { NAMED_ROWS = 61 };

/* The age scaled and in buckets, the city one-hot, the gain's logarithm. */
static inline void named_prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value age = sx_feature(b, in, "age");
    sx_value gain = sx_cast(b, sx_feature(b, in, "gain"), SX_F32);
    sx_value mean = sx_constant_f32(b, sx_param_float(p, "mean", 40));
    sx_output(b, "age", sx_clip(b, sx_sub(b, age, mean), -30, 30));
    sx_output(b, "old", sx_cast(b, sx_greater(b, age, sx_constant_f32(b, 50)), SX_I32));
    sx_output(b, "city", sx_one_hot(b, sx_feature(b, in, "city"), .depth = 4));
    sx_output(b, "gain", sx_log1p(b, gain));
}

static inline sx_spec named_net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_value gain = sx_reshape(b, sx_feature(b, in, "gain"), SX_BATCH, 1);
    sx_value old = sx_one_hot(b, sx_feature(b, in, "old"), .depth = 2);
    sx_value x = sx_concat(b, 1, age, gain, old, sx_feature(b, in, "city"));
    x = sx_dropout(b, sx_dense(b, x, 8, .activation = SX_RELU), 0.2);
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), sx_label(b, in, "kind"),
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

#define NAMED_INPUTS                                                                 \
    .inputs = {{.name = "age"}, {.name = "city", SX_I32}, {.name = "gain", SX_I64}}, \
    .labels = {{.name = "kind"}}, .example_weight = "w"
static const sx_model_def named_model =
    SX_MODEL_DEF(.name = "named", .build = named_net, .preprocess = named_prepare, NAMED_INPUTS);

/* Rows [first, first + count); with `after`, as preprocessing gives them. */
static inline sx_dataset *named_rows(int64_t first, int64_t count, bool after)
{
    enum { ALL = 4 * NAMED_ROWS };
    static float age[ALL], w[ALL], new_age[ALL], new_city[ALL][4], new_gain[ALL];
    static int64_t city[ALL], gain[ALL];
    static int32_t kind[ALL], new_old[ALL];
    for (int i = 0; i < ALL; i++) {
        kind[i] = (i * 7 + i / 5) % CLASSES;
        age[i] = (float)(20 + (i * 31) % 60);
        city[i] = (i + kind[i]) % 4;
        gain[i] = i % 3 == 0 ? 0 : (int64_t)1 << (i % 41);
        w[i] = (float)(i % 4) * 0.5f;
        new_age[i] = fminf(fmaxf(age[i] - 40, -30), 30);
        new_old[i] = age[i] > 50;
        new_gain[i] = (float)log1p((double)(float)gain[i]);
        memset(new_city[i], 0, sizeof(new_city[i]));
        new_city[i][city[i]] = 1;
    }
    const char *raw[] = {"w", "gain", "age", "city", "kind"};
    const sx_tensor raw_tensors[] = {{sx_type_of(SX_F32, count), &w[first]},
                                     {sx_type_of(SX_I64, count), &gain[first]},
                                     {sx_type_of(SX_F32, count), &age[first]},
                                     {sx_type_of(SX_I64, count), &city[first]},
                                     {sx_type_of(SX_I32, count), &kind[first]}};
    const char *ready[] = {"kind", "old", "age", "city", "gain", "w"};
    const sx_tensor ready_tensors[] = {{sx_type_of(SX_I32, count), &kind[first]},
                                       {sx_type_of(SX_I32, count), &new_old[first]},
                                       {sx_type_of(SX_F32, count), &new_age[first]},
                                       {sx_type_of(SX_F32, count, 4), new_city[first]},
                                       {sx_type_of(SX_F32, count), &new_gain[first]},
                                       {sx_type_of(SX_F32, count), &w[first]}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(after ? 6 : 5, after ? ready : raw,
                                      after ? ready_tensors : raw_tensors, NULL, NULL, &data));
    return data;
}

static inline sx_trainer *open_prepared(const sx_run_config *config)
{
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = config, .def = &named_model}, &t));
    return t;
}

#endif
