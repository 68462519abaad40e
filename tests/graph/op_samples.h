/* The operators' samples (op_def.h) as data: what every test that runs over the operator table
 * shares.
 *
 *   for each operator, for each of its samples:
 *       inputs    types with the batch fixed, filled from Threefry keyed by "operator/sample/input"
 *       outputs   by the operator's reference, in double or rounded to their dtypes
 *
 * Inputs are rounded to their dtype, so that float32 backends and the double reference see one
 * value. */
#ifndef SX_TESTS_GRAPH_OP_SAMPLES_H
#define SX_TESTS_GRAPH_OP_SAMPLES_H

#include <math.h>

#include "harness.h"

#include "base/memory.h"
#include "base/threefry.h"
#include "graph/eval.h"
#include "graph/ir.h"

typedef struct op_sample_run {
    const sx_op_def *op;
    const sx_op_sample *sample;
    const void *attrs; /* with the batch put in */
    void *owned_attrs;
    sx_ref_tensor in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
    int n_in, n_out;
} op_sample_run;

static inline int64_t op_sample_batch(const sx_op_sample *s)
{
    return s->batch == 0 ? 5 : s->batch;
}

static inline uint32_t op_sample_hash(const char *text, uint32_t hash)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 16777619u; /* FNV-1a */
    }
    return hash;
}

/* The stream of 32-bit words that fills one input. */
typedef struct op_sample_words {
    sx_u32x2 key;
    uint32_t next;
} op_sample_words;

static inline uint32_t op_sample_word(op_sample_words *w)
{
    return sx_threefry2x32(w->key, (sx_u32x2){w->next++, 0}).a;
}

static inline double op_sample_uniform(op_sample_words *w) /* in (0, 1) */
{
    return ((double)op_sample_word(w) + 0.5) * 0x1p-32;
}

static inline double op_sample_draw(const sx_sample_input *input, op_sample_words *w)
{
    switch (input->fill) {
    case SX_FILL_POSITIVE:
        return 0.5 + 1.5 * op_sample_uniform(w);
    case SX_FILL_UNIFORM:
        return 1.8 * op_sample_uniform(w) - 0.9;
    case SX_FILL_INDEX:
        return (double)(op_sample_word(w) % (uint64_t)input->limit);
    case SX_FILL_BOOL:
        return op_sample_word(w) % 2;
    case SX_FILL_BITS:
        return op_sample_word(w);
    case SX_FILL_TRUE:
        return 1;
    default: {
        double radius = sqrt(-2 * log(op_sample_uniform(w)));
        return radius * cos(6.283185307179586 * op_sample_uniform(w));
    }
    }
}

/* Multiples of 0.04 in random order, shifted: 0.04 apart, 0.01 from 0, and 0.004 from those of the
 * other inputs. */
static inline void op_sample_fill_distinct(double *data, int64_t n, int index, op_sample_words *w)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = op_sample_word(w) % (uint64_t)(i + 1);
        data[i] = data[j];
        data[j] = (double)(i - n / 2) * 0.04 + 0.013 + 0.004 * index;
    }
}

static inline void op_sample_fill(const op_sample_run *run, int index)
{
    const sx_sample_input *input = &run->sample->inputs[index];
    const sx_ref_tensor *t = &run->in[index];
    uint32_t hash = op_sample_hash(run->sample->name, op_sample_hash(run->op->name, 2166136261u));
    op_sample_words words = {.key = {hash, (uint32_t)index}};
    int64_t n = sx_type_elems(&t->type);
    if (input->fill == SX_FILL_DISTINCT) {
        op_sample_fill_distinct(t->data, n, index, &words);
    } else {
        for (int64_t i = 0; i < n; i++) {
            t->data[i] = op_sample_draw(input, &words);
        }
    }
    sx_ref_round(t);
}

static inline sx_ref_tensor op_sample_tensor(sx_type type)
{
    int64_t n = sx_type_elems(&type);
    assert_true(n >= 0);
    sx_ref_tensor t = {.type = type, .data = sx_alloc((size_t)n + 1, sizeof(double))};
    assert_non_null(t.data);
    return t;
}

/* Attributes with SX_BATCH replaced, as sx_pass_fix_batch() does. */
static inline void op_sample_fix_attrs(op_sample_run *run)
{
    const sx_op_def *op = run->op;
    run->owned_attrs = sx_alloc(1, op->attrs_bytes + 1);
    assert_non_null(run->owned_attrs);
    run->attrs = run->owned_attrs;
    if (run->sample->attrs == NULL) {
        return;
    }
    memcpy(run->owned_attrs, run->sample->attrs, op->attrs_bytes);
    for (int i = 0; i < op->n_attrs; i++) {
        sx_ints *list = (void *)((char *)run->owned_attrs + op->attrs[i].offset);
        if (op->attrs[i].kind == SX_ATTR_INTS && list->n > 0 && list->v[0] == SX_BATCH) {
            list->v[0] = op_sample_batch(run->sample);
        }
    }
}

/* Types inferred, inputs filled, outputs allocated. End it with op_sample_end(). */
static inline void op_sample_begin(const sx_op_def *op, const sx_op_sample *sample,
                                   op_sample_run *run)
{
    sx_type in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {0};
    *run = (op_sample_run){.op = op, .sample = sample, .n_in = sample->n_inputs};
    op_sample_fix_attrs(run);
    for (int i = 0; i < run->n_in; i++) {
        in[i] = sx_type_with_batch(sample->inputs[i].type, op_sample_batch(sample));
        run->in[i] = op_sample_tensor(in[i]);
        op_sample_fill(run, i);
    }
    sx_infer c = {.attrs = run->attrs,
                  .inputs = in,
                  .n_inputs = run->n_in,
                  .outputs = out,
                  .n_outputs = op->n_out};
    assert_ok(op->infer(&c));
    run->n_out = c.n_outputs;
    for (int i = 0; i < run->n_out; i++) {
        run->out[i] = op_sample_tensor(out[i]);
    }
}

static inline void op_sample_forward(const op_sample_run *run, bool keep_double)
{
    sx_ref r = {run->attrs, run->in, run->out, run->n_in, run->n_out};
    sx_ref_run(run->op, &r, keep_double);
}

static inline void op_sample_end(op_sample_run *run)
{
    for (int i = 0; i < run->n_in; i++) {
        sx_free(run->in[i].data);
    }
    for (int i = 0; i < run->n_out; i++) {
        sx_free(run->out[i].data);
    }
    sx_free(run->owned_attrs);
}

/* Calls `check` for every sample of every operator that has a reference; it returns NULL or what is
 * wrong. Every failing sample is named before the test fails. */
typedef const char *(*op_sample_check)(const sx_op_def *op, const sx_op_sample *sample);

static inline void op_samples_check(op_sample_check check)
{
    int failed = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples; k++) {
            const char *wrong = check(op, &op->samples[k]);
            if (wrong != NULL) {
                print_error("%s/%s: %s\n", op->name, op->samples[k].name, wrong);
                failed++;
            }
        }
    }
    assert_int_equal(failed, 0);
}

#endif
