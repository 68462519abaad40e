/* Imports nodes of random numbers that are several of ours: those of a seed have the key and the
 * counter that random_key_counter makes of it, those of a generator its variable; stateful ones
 * have a state that the loaded model keeps. */
#include "graph/ops/lookup_table.h"

#include "savedmodel/import_library_ops.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { PHILOX = 1, THE_DEVICES = 3 };

/* The key, the counter and the algorithm of the seed, input i. */
static sx_status key_of_seed(const sx_tf_op_node *x, int i, sx_value out[3])
{
    sx_value seed = SX_NO_VALUE, first = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, i, &seed));
    SX_TRY(sx_tf_add_node(x, &sx_op_random_key_counter, NULL, &seed, 1, NULL, 0, &first, &n_out));
    out[0] = first;
    out[1] = sx_output_of(first, 1);
    return sx_tf_number(x, SX_I32, PHILOX, &out[2]);
}

/* The key, the counter and the algorithm of a stateful node that draws `counts`, a product: from
 * there on its stream, of which it takes `each` times four words for `group` numbers
 * (random_state.c). */
static sx_status key_of_state(const sx_tf_op_node *x, sx_value counts, int64_t group, int64_t each,
                              sx_value out[3])
{
    const Tensorflow__FunctionDef *f = x->body->function;
    sx_random_state_attrs attrs = {
        .base = {.table = sx_arena_printf(&x->im->arena, "random state of %s/%s",
                                          f != NULL ? f->signature->name : "", x->n->node->name),
                 .kind = SX_TABLE_MUTABLE,
                 .keys = SX_I64,
                 .values = SX_I64,
                 .shape = {1, {3}}},
        .seed = sx_tf_read_int(&x->tf.head, "seed", 0),
        .seed2 = sx_tf_read_int(&x->tf.head, "seed2", 0),
        .group = group,
        .each = each};
    if (attrs.base.table == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_number(x, SX_I32, PHILOX, &out[2]));
    if (x->im->trials > 0) { /* it never runs */
        const uint64_t zeros[2] = {0};
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_U64, 1), zeros, &out[0]));
        return sx_tf_constant(x, sx_type_of(SX_U64, 2), zeros, &out[1]);
    }
    int n_out = 0;
    SX_TRY(sx_tf_add_node(x, &sx_op_random_state, &attrs, &counts, 1, NULL, 0, &out[0], &n_out));
    out[1] = sx_output_of(out[0], 1);
    return SX_OK;
}

/* Each output has 256 times four words, those of normal numbers that are drawn again included. */
enum { OF_OUTPUT = 256 };

/* RandomUniform, RandomStandardNormal, TruncatedNormal(shape); RandomUniformInt(shape, min, max) */
static sx_status import_stateful(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const sx_random_values_attrs attrs = {
        .distribution = strcmp(op, "TruncatedNormal") == 0        ? SX_VALUES_TRUNCATED_NORMAL
                        : strcmp(op, "RandomStandardNormal") == 0 ? SX_VALUES_NORMAL
                                                                  : SX_VALUES_UNIFORM,
        .dtype = sx_tf_read_dtype(&x->tf.head, "dtype", SX_F32)};
    sx_value in[6], y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(key_of_state(x, in[0], 1, OF_OUTPUT, &in[1]));
    if (strcmp(op, "RandomUniformInt") == 0) {
        SX_TRY(sx_tf_operand(x, 1, &in[4]));
        SX_TRY(sx_tf_operand(x, 2, &in[5]));
        SX_TRY(sx_tf_build(x, &sx_op_random_integers, NULL, &y, 6, in));
    } else {
        SX_TRY(sx_tf_build(x, &sx_op_random_values, &attrs, &y, 4, in));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* RandomGamma(shape, alpha), RandomPoissonV2(shape, rate): `shape` numbers for each of them. */
static sx_status import_stateful_of_each(sx_tf_op_node *x)
{
    const bool gamma = strcmp(x->n->node->op, "RandomGamma") == 0;
    const sx_random_poisson_attrs poisson = {sx_tf_read_dtype(&x->tf.head, "dtype", SX_I64)};
    sx_value in[5], of_alpha = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[4]));
    SX_TF_BUILD(x, &in[0], cast, (&(sx_cast_attrs){SX_I64}), in[0]);
    SX_TF_BUILD(x, &of_alpha, shape, (&(sx_cast_attrs){SX_I64}), in[4]);
    SX_TF_BUILD(x, &in[0], concat, (&(sx_axis_attrs){0}), in[0], of_alpha);
    SX_TRY(key_of_state(x, in[0], 1, OF_OUTPUT, &in[1]));
    SX_TRY(sx_tf_build(x, gamma ? &sx_op_random_gamma : &sx_op_random_poisson,
                       gamma ? NULL : &poisson, &y, 5, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Multinomial(logits, num_samples): it takes two doubles of four words each for a sample, of which
 * a row has a multiple of four. */
static sx_status import_multinomial(sx_tf_op_node *x)
{
    enum { SAMPLES = 4, OF_SAMPLE = 2 };
    const sx_random_categorical_attrs attrs = {
        .output_dtype = sx_tf_read_dtype(&x->tf.head, "output_dtype", SX_I64)};
    const sx_slice_attrs rows = {.begin = {1, {0}}, .size = {1, {1}}};
    sx_value in[3], key[3], counts[3], by = SX_NO_VALUE, less = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SAMPLES}}, &by));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SAMPLES - 1}}, &less));
    SX_TF_BUILD(x, &counts[0], shape, (&(sx_cast_attrs){SX_I64}), in[0]);
    SX_TF_BUILD(x, &counts[0], slice, &rows, counts[0]);
    SX_TF_BUILD(x, &counts[1], cast, (&(sx_cast_attrs){SX_I64}), in[1]);
    SX_TF_BUILD(x, &counts[1], reshape, (&(sx_shape_attrs){{1, {1}}}), counts[1]);
    SX_TF_BUILD(x, &counts[1], add, NULL, counts[1], less);
    SX_TF_BUILD(x, &counts[1], floor_div, NULL, counts[1], by);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SAMPLES * OF_SAMPLE}}, &counts[2]));
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &y, 3, counts));
    SX_TRY(key_of_state(x, y, 1, OF_OUTPUT, key));
    SX_TF_BUILD(x, &in[2], concat, (&(sx_axis_attrs){0}), key[0], key[1]);
    SX_TRY(sx_tf_build(x, &sx_op_random_categorical, &attrs, &y, 3, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The weights of FixedUnigramCandidateSampler, float32 [range_max]: 0 of the reserved ids, and the
 * unigrams to the power of `distortion`; of a shard every num_shards-th. */
static sx_status unigram_weights(const sx_tf_op_node *x, int64_t range_max, sx_value *out)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "unigrams");
    const Tensorflow__AttrValue *file = sx_tf_node_attr(x->n->node, "vocab_file");
    const bool listed =
        a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
    const int64_t reserved = sx_tf_read_int(&x->tf.head, "num_reserved_ids", 0);
    const int64_t shards = sx_tf_read_int(&x->tf.head, "num_shards", 1);
    const int64_t shard = sx_tf_read_int(&x->tf.head, "shard", 0);
    const double distortion = sx_tf_read_float(&x->tf.head, "distortion", 1);
    const int64_t n = listed ? (int64_t)a->list->n_f : 0;
    if (file != NULL && file->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S && file->s.len > 0) {
        return sx_tf_unsupported("its counts are in a file of the machine that made the model, "
                                 "vocab_file \"%.*s\"; give them as unigrams",
                                 (int)SX_MIN(file->s.len, 200), (const char *)file->s.data);
    }
    if (shards < 1 || shard < 0 || shard >= shards || reserved < 0 || reserved > INT32_MAX) {
        return sx_error(SX_DATA_LOSS, "shard %lld of %lld, %lld reserved ids", (long long)shard,
                        (long long)shards, (long long)reserved);
    }
    int64_t made = 0;
    const int64_t zeros = reserved / shards + (reserved % shards > shard);
    const int64_t whole = (zeros + n) / shards + ((zeros + n) % shards > shard) -
                          (zeros / shards + (zeros % shards > shard)) + zeros;
    if (whole != range_max) {
        return sx_error(SX_DATA_LOSS, "it has %lld unigrams and reserved ids, range_max is %lld",
                        (long long)whole, (long long)range_max);
    }
    SX_TRY(sx_tf_charge_constant(x, whole * (int64_t)sizeof(float)));
    float *weights = sx_arena_array(&x->im->arena, whole + 1, float);
    if (weights == NULL) {
        return sx_import_memory();
    }
    while (made < zeros) {
        weights[made++] = 0;
    }
    for (int64_t k = 0; k < n; k++) { /* TensorFlow counts on from the zeros of the shard */
        if ((zeros + k) % shards == shard) {
            weights[made++] = powf(a->list->f[k], (float)distortion);
        }
    }
    return sx_tf_constant(x, sx_type_of(SX_F32, whole), weights, out);
}

/* UniformCandidateSampler(true_classes) and its kin: each call takes 2048 words for each class. */
static sx_status import_candidates(sx_tf_op_node *x)
{
    enum { OF_CANDIDATE = 512 };
    const char *op = x->n->node->op;
    const sx_candidate_sampler_attrs attrs = {
        .distribution = strncmp(op, "LogUniform", 10) == 0     ? SX_CANDIDATES_LOG_UNIFORM
                        : strncmp(op, "FixedUnigram", 12) == 0 ? SX_CANDIDATES_UNIGRAM
                                                               : SX_CANDIDATES_UNIFORM,
        .num_sampled = sx_tf_read_int(&x->tf.head, "num_sampled", 0),
        .range_max = sx_tf_read_int(&x->tf.head, "range_max", 0),
        .unique = sx_tf_read_bool(&x->tf.head, "unique", false)};
    sx_value in[4], counts = SX_NO_VALUE, key[3], y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    if (attrs.distribution == SX_CANDIDATES_UNIGRAM) {
        SX_TRY(unigram_weights(x, attrs.range_max, &in[1]));
    } else {
        SX_TRY(sx_tf_constant(x, sx_type_of(SX_F32, 0), "", &in[1]));
    }
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SX_MAX(attrs.num_sampled, 0)}}, &counts));
    SX_TRY(key_of_state(x, counts, 1, OF_CANDIDATE, key));
    in[2] = key[0];
    in[3] = key[1];
    SX_TRY(sx_tf_add_node(x, &sx_op_candidate_sampler, &attrs, in, 4, NULL, 0, &y, &n_out));
    for (int i = 0; i < 3; i++) {
        sx_tf_set(x, i, sx_output_of(y, i));
    }
    return SX_OK;
}

/* AllCandidateSampler(true_classes): all of num_sampled classes, each expected once. */
static sx_status import_all_candidates(sx_tf_op_node *x)
{
    const int64_t n = sx_tf_read_int(&x->tf.head, "num_sampled", 0);
    const sx_iota_attrs count = {.shape = {1, {n}}, .dtype = SX_I64};
    sx_value v = SX_NO_VALUE, one = SX_NO_VALUE, y = SX_NO_VALUE;
    if (n < 1) {
        return sx_error(SX_DATA_LOSS, "num_sampled is %lld, expected 1 or more", (long long)n);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_build(x, &sx_op_iota, &count, &y, 0, NULL));
    sx_tf_set(x, 0, y);
    SX_TRY(sx_tf_number(x, SX_F32, 1, &one));
    SX_TF_BUILD(x, &y, broadcast_to, (&(sx_shape_attrs){{1, {n}}}), one);
    sx_tf_set(x, 2, y);
    SX_TF_BUILD(x, &v, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", v, &y));
    sx_tf_set(x, 1, y);
    return SX_OK;
}

/* RandomShuffle(x): its rows in another order, each but the last by a word. */
static sx_status import_shuffle(sx_tf_op_node *x)
{
    enum { WORDS = 4 };
    const sx_type *type = &x->tf.head.types[0];
    const sx_slice_attrs rows = {.begin = {1, {0}}, .size = {1, {1}}};
    sx_value v = SX_NO_VALUE, in[4], one = SX_NO_VALUE, draws = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    if (type->rank == 0) {
        sx_tf_set(x, 0, v);
        return SX_OK;
    }
    SX_TF_BUILD(x, &in[0], shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &in[0], slice, &rows, in[0]);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TF_BUILD(x, &draws, maximum, NULL, in[0], one);
    SX_TF_BUILD(x, &draws, sub, NULL, draws, one);
    SX_TRY(key_of_state(x, draws, WORDS, 1, &in[1]));
    SX_TRY(sx_tf_build(x, &sx_op_random_permutation, NULL, &y, 4, in));
    SX_TF_BUILD(x, &y, gather, NULL, v, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* StatelessShuffle(x, key, counter, alg): the same, from these. */
static sx_status import_stateless_shuffle(sx_tf_op_node *x)
{
    const sx_slice_attrs rows = {.begin = {1, {0}}, .size = {1, {1}}};
    sx_value v = SX_NO_VALUE, in[4], y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    if (x->tf.head.types[0].rank == 0) {
        sx_tf_set(x, 0, v);
        return SX_OK;
    }
    for (int i = 1; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TF_BUILD(x, &in[0], shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &in[0], slice, &rows, in[0]);
    SX_TRY(sx_tf_build(x, &sx_op_random_permutation, NULL, &y, 4, in));
    SX_TF_BUILD(x, &y, gather, NULL, v, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* A list of two floats as a constant. */
static sx_status float_pair(const sx_tf_op_node *x, const char *name, const float otherwise[2],
                            sx_value *out)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, name);
    const bool listed =
        a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
    float *pair = sx_arena_array(&x->im->arena, 2, float);
    if (pair == NULL) {
        return sx_import_memory();
    }
    if (listed && a->list->n_f != 2) {
        return sx_error(SX_DATA_LOSS, "%s has %zu numbers, expected 2", name, a->list->n_f);
    }
    memcpy(pair, listed ? a->list->f : otherwise, 2 * sizeof(*pair));
    return sx_tf_constant(x, sx_type_of(SX_F32, 2), pair, out);
}

/* SampleDistortedBoundingBox(image_size, boxes) {min_object_covered}, V2(..., min_object_covered),
 * Stateless...(..., min_object_covered, seed): a call takes four words for each attempt. */
static sx_status import_distorted_box(sx_tf_op_node *x)
{
    static const float ratios[] = {0.75F, 1.33F}, areas[] = {0.05F, 1};
    const bool stateless = strncmp(x->n->node->op, "Stateless", 9) == 0;
    const sx_sample_distorted_bounding_box_attrs attrs = {
        .max_attempts = sx_tf_read_int(&x->tf.head, "max_attempts", 100),
        .use_image_if_no_bounding_boxes =
            sx_tf_read_bool(&x->tf.head, "use_image_if_no_bounding_boxes", false)};
    sx_value in[7], key[3], counts = SX_NO_VALUE, first = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if (x->n->n_in > 2) {
        SX_TRY(sx_tf_operand(x, 2, &in[2]));
    } else {
        SX_TRY(sx_tf_number(x, SX_F32, sx_tf_read_float(&x->tf.head, "min_object_covered", 0.1),
                            &in[2]));
    }
    if (stateless) {
        SX_TRY(key_of_seed(x, 3, key));
    } else {
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SX_MAX(attrs.max_attempts, 1)}}, &counts));
        SX_TRY(key_of_state(x, counts, 1, 1, key));
    }
    in[3] = key[0];
    in[4] = key[1];
    SX_TRY(float_pair(x, "aspect_ratio_range", ratios, &in[5]));
    SX_TRY(float_pair(x, "area_range", areas, &in[6]));
    SX_TRY(sx_tf_add_node(x, &sx_op_sample_distorted_bounding_box, &attrs, in, 7, NULL, 0, &first,
                          &n_out));
    for (int i = 0; i < 3; i++) {
        sx_tf_set(x, i, sx_output_of(first, i));
    }
    return SX_OK;
}

/* The algorithm that this processor would choose. */
static sx_status import_get_alg(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, SX_I32, PHILOX, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_key_counter_alg(sx_tf_op_node *x)
{
    sx_value y[3];
    SX_TRY(key_of_seed(x, 0, y));
    for (int i = 0; i < 3; i++) {
        sx_tf_set(x, i, y[i]);
    }
    return SX_OK;
}

/* (shape, seed, ...) as (shape, key, counter, alg, ...). */
static sx_status import_seeded(sx_tf_op_node *x, const sx_op_def *op, const void *attrs)
{
    sx_value in[8], y = SX_NO_VALUE;
    if (x->n->n_in < 2 || x->n->n_in + 2 != op->n_in) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d", x->n->n_in, op->n_in - 2);
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(key_of_seed(x, 1, &in[1]));
    for (int i = 2; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i + 2]));
    }
    SX_TRY(sx_tf_build(x, op, attrs, &y, op->n_in, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_values(sx_tf_op_node *x)
{
    static const struct {
        const char *op;
        int32_t distribution;
    } of[] = {
        {"StatelessRandomUniform", SX_VALUES_UNIFORM},
        {"StatelessRandomNormal", SX_VALUES_NORMAL},
        {"StatelessTruncatedNormal", SX_VALUES_TRUNCATED_NORMAL},
        {"StatelessRandomUniformFullInt", SX_VALUES_BITS},
    };
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(of[k].op, x->n->node->op) != 0) {
        k++;
    }
    const bool bits = of[k].distribution == SX_VALUES_BITS;
    const sx_random_values_attrs attrs = {
        .distribution = of[k].distribution,
        .dtype = sx_tf_read_dtype(&x->tf.head, "dtype", bits ? SX_U64 : SX_F32)};
    return import_seeded(x, &sx_op_random_values, &attrs);
}

static bool is_philox(const sx_tensor *alg)
{
    if (alg == NULL || alg->type.dtype != SX_I32 || alg->type.rank != 0) {
        return false;
    }
    const int32_t chosen = *(const int32_t *)alg->data;
    return chosen == PHILOX || chosen == THE_DEVICES;
}

/* The seed of which the node has its key and counter; false if it has them from elsewhere. */
static bool seed_of_key(const sx_tf_op_node *x, sx_value key, sx_value counter, sx_value *out)
{
    const sx_node *n = sx_graph_maker(x->b->graph, key);
    const bool both = n->op == &sx_op_random_key_counter && n->first_output.id == key.id &&
                      sx_node_output(n, 1).id == counter.id;
    *out = both ? n->inputs[0] : SX_NO_VALUE;
    return both;
}

/* (shape, seed) and V2's (shape, key, counter, alg): uniform and normal float32 numbers of a seed
 * have a device form. */
static sx_status import_device_values(sx_tf_op_node *x)
{
    const bool keyed = strstr(x->n->node->op, "V2") != NULL;
    const bool normal = strstr(x->n->node->op, "Normal") != NULL;
    const sx_stateless_random_attrs attrs = {.distribution =
                                                 normal ? SX_RANDOM_NORMAL : SX_RANDOM_UNIFORM};
    sx_value in[3], seed = SX_NO_VALUE, y = SX_NO_VALUE;
    bool fits = sx_tf_read_dtype(&x->tf.head, "dtype", SX_F32) == SX_F32 &&
                x->n->n_in == (keyed ? 4 : 2) && (!keyed || is_philox(x->tf.head.values[3]));
    for (int i = 0; i < (keyed ? 3 : 2) && fits; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (fits && keyed) {
        fits = seed_of_key(x, in[1], in[2], &seed);
    } else if (fits) {
        seed = in[1];
    }
    if (!fits) {
        return keyed ? sx_tf_import_one(x) : import_values(x);
    }
    SX_TRY(sx_tf_build_open(x, &sx_op_stateless_random, &attrs, seed, "shape", in[0], &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* StatelessParameterizedTruncatedNormal(shape, seed, means, stddevs, minvals, maxvals) */
static sx_status import_bounded(sx_tf_op_node *x)
{
    const sx_dtype dtype = x->n->n_in > 2 ? x->tf.head.types[2].dtype : SX_F32;
    if (dtype != SX_F32 && dtype != SX_F64) {
        return sx_tf_unsupported("its numbers are %s", sx_dtype_name(dtype));
    }
    return import_seeded(x, &sx_op_random_truncated_normal, NULL);
}

/* ParameterizedTruncatedNormal(shape, means, stddevs, minvals, maxvals): the same parameters for
 * all numbers, or some for each index of the first axis. It leaves out 2,000 times four words for
 * each four numbers, of which those of one set are filled up. */
static sx_status import_stateful_bounded(sx_tf_op_node *x)
{
    enum { PARAMETERS = 4, FILL = 3, OF_NUMBER = 500, SET = 100 };
    const sx_tf_node *n = &x->tf.head;
    const sx_reduce_attrs all = {.axes = {1, {0}}, .keep_dims = true};
    const int rank = x->n->n_in > 0 && n->types[0].rank == 1 ? (int)n->types[0].dims[0] : -1;
    bool one = true;
    if (x->n->n_in != 1 + PARAMETERS) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d", x->n->n_in, 1 + PARAMETERS);
    }
    if (n->types[1].dtype != SX_F32 && n->types[1].dtype != SX_F64) {
        return sx_tf_unsupported("its numbers are %s", sx_dtype_name(n->types[1].dtype));
    }
    for (int i = 1; i <= PARAMETERS; i++) {
        one = one && (n->types[i].rank == 0 || (n->types[i].rank == 1 && n->types[i].dims[0] == 1));
    }
    if (!one && (rank < 1 || rank > SX_MAX_RANK)) {
        return sx_tf_unsupported("its rank is unknown, and its parameters are several");
    }
    sx_value in[4 + PARAMETERS], sets, left, by, more, y;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TF_BUILD(x, &in[0], cast, (&(sx_cast_attrs){SX_I64}), in[0]);
    for (int i = 0; i < PARAMETERS; i++) {
        SX_TRY(sx_tf_operand(x, 1 + i, &in[4 + i]));
        if (one) {
            SX_TF_BUILD(x, &in[4 + i], reshape, (&(sx_shape_attrs){{0}}), in[4 + i]);
        }
    }
    if (one) { /* sets of 100 numbers */
        SX_TF_BUILD(x, &sets, reduce_prod, &all, in[0]);
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SET - 1}}, &more));
        SX_TF_BUILD(x, &sets, add, NULL, sets, more);
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {SET}}, &left));
        SX_TF_BUILD(x, &sets, floor_div, NULL, sets, left);
    } else { /* the first axis is the last one until all is drawn */
        const sx_slice_attrs first = {.begin = {1, {0}}, .size = {1, {1}}},
                             rest = {.begin = {1, {1}}, .size = {1, {rank - 1}}};
        sx_value others;
        SX_TF_BUILD(x, &sets, slice, &first, in[0]);
        SX_TF_BUILD(x, &others, slice, &rest, in[0]);
        SX_TF_BUILD(x, &left, reduce_prod, &all, others);
        SX_TF_BUILD(x, &in[0], concat, (&(sx_axis_attrs){0}), others, sets);
    }
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {FILL}}, &more));
    SX_TF_BUILD(x, &left, add, NULL, left, more);
    SX_TF_BUILD(x, &by, mul, NULL, sets, left);
    SX_TRY(key_of_state(x, by, 1, OF_NUMBER, &in[1]));
    SX_TRY(sx_tf_build(x, &sx_op_random_truncated_normal, NULL, &y, 4 + PARAMETERS, in));
    if (!one && rank > 1) {
        sx_transpose_attrs turn = {.perm = {rank, {rank - 1}}};
        for (int d = 1; d < rank; d++) {
            turn.perm.v[d] = d - 1;
        }
        SX_TRY(sx_tf_know_rank(x, rank, &y));
        SX_TF_BUILD(x, &y, transpose, &turn, y);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_integers(sx_tf_op_node *x)
{
    return import_seeded(x, &sx_op_random_integers, NULL);
}

static sx_status import_gamma(sx_tf_op_node *x)
{
    return import_seeded(x, &sx_op_random_gamma, NULL);
}

static sx_status import_poisson(sx_tf_op_node *x)
{
    const sx_random_poisson_attrs attrs = {sx_tf_read_dtype(&x->tf.head, "dtype", SX_I64)};
    return import_seeded(x, &sx_op_random_poisson, &attrs);
}

static sx_status import_binomial(sx_tf_op_node *x)
{
    const sx_random_binomial_attrs attrs = {sx_tf_read_dtype(&x->tf.head, "dtype", SX_I64)};
    return import_seeded(x, &sx_op_random_binomial, &attrs);
}

/* Those of a generator, whose variable is (counter, key): StatefulUniform and others, (generator,
 * algorithm, shape, parameters...). */
static sx_status import_of_generator(sx_tf_op_node *x)
{
    static const struct {
        const char *op;
        int32_t distribution; /* -1: of another operator */
        int n_parameters;
    } of[] = {
        {"StatefulUniform", SX_VALUES_UNIFORM, 0},
        {"StatefulStandardNormalV2", SX_VALUES_NORMAL, 0},
        {"StatefulTruncatedNormal", SX_VALUES_TRUNCATED_NORMAL, 0},
        {"StatefulUniformFullInt", SX_VALUES_BITS, 0},
        {"StatefulUniformInt", -1, 2},
        {"StatefulRandomBinomial", -1, 2},
    };
    const sx_slice_attrs counter = {.begin = {1, {0}}, .size = {1, {2}}},
                         key = {.begin = {1, {2}}, .size = {1, {1}}};
    const sx_reduce_attrs all = {.axes = {1, {0}}};
    const sx_tf_thing *handle = NULL;
    sx_value state = SX_NO_VALUE, in[6], delta = SX_NO_VALUE, y = SX_NO_VALUE;
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(of[k].op, x->n->node->op) != 0) {
        k++;
    }
    if (x->n->n_in != 3 + of[k].n_parameters) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d", x->n->n_in,
                        3 + of[k].n_parameters);
    }
    const bool bits = of[k].distribution == SX_VALUES_BITS,
               binomial = strcmp(of[k].op, "StatefulRandomBinomial") == 0;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_read_handle(x, handle, &state));
    SX_TRY(sx_tf_operand(x, 2, &in[0]));
    SX_TF_BUILD(x, &in[1], slice, &key, state);
    SX_TF_BUILD(x, &in[1], cast, (&(sx_cast_attrs){SX_U64}), in[1]);
    SX_TF_BUILD(x, &in[2], slice, &counter, state);
    SX_TF_BUILD(x, &in[2], cast, (&(sx_cast_attrs){SX_U64}), in[2]);
    SX_TRY(sx_tf_operand(x, 1, &in[3]));
    for (int i = 0; i < of[k].n_parameters; i++) {
        SX_TRY(sx_tf_operand(x, 3 + i, &in[4 + i]));
    }
    SX_TF_BUILD(x, &delta, cast, (&(sx_cast_attrs){SX_I64}), in[0]);
    SX_TF_BUILD(x, &delta, reduce_prod, &all, delta);
    if (binomial) { /* 200 (samples + 3) / 4 numbers for each pair of counts and probs */
        sx_value pairs = SX_NO_VALUE, three = SX_NO_VALUE, four = SX_NO_VALUE, by = SX_NO_VALUE,
                 one = SX_NO_VALUE;
        const sx_random_binomial_attrs attrs = {sx_tf_read_dtype(&x->tf.head, "dtype", SX_I64)};
        SX_TRY(sx_tf_number(x, SX_I64, 3, &three));
        SX_TRY(sx_tf_number(x, SX_I64, 4, &four));
        SX_TRY(sx_tf_number(x, SX_I64, 200, &by));
        SX_TF_BUILD(x, &pairs, add, NULL, in[4], in[5]);
        SX_TF_BUILD(x, &pairs, shape, (&(sx_cast_attrs){SX_I64}), pairs);
        SX_TF_BUILD(x, &pairs, reduce_prod, &all, pairs);
        SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
        SX_TF_BUILD(x, &pairs, maximum, NULL, pairs, one);
        SX_TF_BUILD(x, &delta, floor_div, NULL, delta, pairs);
        SX_TF_BUILD(x, &delta, add, NULL, delta, three);
        SX_TF_BUILD(x, &delta, mul, NULL, delta, by);
        SX_TF_BUILD(x, &delta, mul, NULL, delta, pairs);
        SX_TF_BUILD(x, &delta, floor_div, NULL, delta, four);
        SX_TRY(sx_tf_build(x, &sx_op_random_binomial, &attrs, &y, 6, in));
    } else if (of[k].distribution < 0) {
        SX_TRY(sx_tf_build(x, &sx_op_random_integers, NULL, &y, 6, in));
    } else {
        const sx_random_values_attrs attrs = {
            .distribution = of[k].distribution,
            .dtype = sx_tf_read_dtype(&x->tf.head, "dtype", bits ? SX_U64 : SX_F32)};
        SX_TRY(sx_tf_build(x, &sx_op_random_values, &attrs, &y, 4, in));
    }
    SX_TF_BUILD(x, &delta, cast, (&(sx_cast_attrs){SX_U64}), delta);
    SX_TF_BUILD(x, &state, random_skip, NULL, state, delta);
    SX_TRY(sx_tf_assign(x, handle, state));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* RngReadAndSkip(generator, alg, delta), which gives the state before; RngSkip, which gives
 * nothing. */
static sx_status import_skip(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value state = SX_NO_VALUE, delta = SX_NO_VALUE, next = SX_NO_VALUE;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_operand(x, 2, &delta));
    SX_TRY(sx_tf_read_handle(x, handle, &state));
    if (x->tf.head.types[2].dtype != SX_U64) {
        SX_TF_BUILD(x, &delta, cast, (&(sx_cast_attrs){SX_U64}), delta);
    }
    SX_TF_BUILD(x, &next, random_skip, NULL, state, delta);
    SX_TRY(sx_tf_assign(x, handle, next));
    if (x->n->n_out > 0) {
        sx_tf_set(x, 0, state);
    }
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_random_rows[] = {
    {"StatelessRandomGetAlg", import_get_alg, NULL},
    {"StatelessRandomGetKeyCounterAlg", import_key_counter_alg, NULL},
    {"StatelessRandomUniform", import_device_values, NULL},
    {"StatelessRandomNormal", import_device_values, NULL},
    {"StatelessRandomUniformV2", import_device_values, NULL},
    {"StatelessRandomNormalV2", import_device_values, NULL},
    {"StatelessTruncatedNormal", import_values, NULL},
    {"StatelessRandomUniformFullInt", import_values, NULL},
    {"StatelessRandomUniformInt", import_integers, NULL},
    {"StatelessRandomGammaV2", import_gamma, NULL},
    {"StatelessRandomPoisson", import_poisson, NULL},
    {"StatelessRandomBinomial", import_binomial, NULL},
    {"StatelessParameterizedTruncatedNormal", import_bounded, NULL},
    {"StatelessSampleDistortedBoundingBox", import_distorted_box, NULL},
    {"SampleDistortedBoundingBox", import_distorted_box, NULL},
    {"SampleDistortedBoundingBoxV2", import_distorted_box, NULL},
    {"StatefulUniform", import_of_generator, NULL},
    {"StatefulStandardNormalV2", import_of_generator, NULL},
    {"StatefulTruncatedNormal", import_of_generator, NULL},
    {"StatefulUniformFullInt", import_of_generator, NULL},
    {"StatefulUniformInt", import_of_generator, NULL},
    {"StatefulRandomBinomial", import_of_generator, NULL},
    {"RandomUniform", import_stateful, NULL},
    {"RandomStandardNormal", import_stateful, NULL},
    {"TruncatedNormal", import_stateful, NULL},
    {"RandomUniformInt", import_stateful, NULL},
    {"RandomGamma", import_stateful_of_each, NULL},
    {"RandomPoissonV2", import_stateful_of_each, NULL},
    {"ParameterizedTruncatedNormal", import_stateful_bounded, NULL},
    {"Multinomial", import_multinomial, NULL},
    {"RandomShuffle", import_shuffle, NULL},
    {"UniformCandidateSampler", import_candidates, NULL},
    {"LogUniformCandidateSampler", import_candidates, NULL},
    {"FixedUnigramCandidateSampler", import_candidates, NULL},
    {"AllCandidateSampler", import_all_candidates, NULL},
    {"StatelessShuffle", import_stateless_shuffle, NULL},
    {"RngReadAndSkip", import_skip, NULL},
    {"RngSkip", import_skip, NULL},
    {NULL, NULL, NULL},
};
