/* The operators' samples (op_def.h) as data: what everything that runs over the operator table
 * shares, tests, tools and benchmarks alike (nothing here needs the test framework).
 *
 *   for each operator, for each of its samples:
 *       inputs    types with the batch fixed, filled from Threefry keyed by "operator/sample/input"
 *       outputs   by the operator's host kernel, in double or rounded to their dtypes
 *       graph     of the sample alone, or with the gradients of a weighted sum of its outputs
 *
 * Inputs are rounded to their dtype, so that float32 backends and the double reference see one
 * value. */
#ifndef SX_TESTS_GRAPH_OP_SAMPLES_H
#define SX_TESTS_GRAPH_OP_SAMPLES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/function.h>
#include <sextant/ops.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/ir.h"
#include "graph/passes/passes.h"

/* Ends the program where a sample itself is broken. */
#define OP_SAMPLE_CHECK(condition)                                          \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static inline void op_sample_ok(sx_status status, const sx_op_def *op, const char *sample)
{
    if (status != SX_OK) {
        fprintf(stderr, "%s/%s: %s\n", op->name, sample, sx_status_message(status));
        exit(1);
    }
}

typedef struct op_sample_run {
    const sx_op_def *op;
    const sx_op_sample *sample;
    const void *attrs; /* with the batch put in */
    void *owned_attrs;
    sx_host_tensor in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
    int n_in, n_out;
    sx_arena arena; /* of its strings */
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
        double normal = radius * cos(6.283185307179586 * op_sample_uniform(w));
        return normal + (input->fill == SX_FILL_FAR ? 10000 : 0);
    }
    }
}

/* Multiples of 0.04 in random order, shifted: 0.04 apart, 0.01 from 0, and 0.004 from those of the
 * other inputs. */
static inline void op_sample_fill_distinct(const sx_host_tensor *t, int64_t n, int index,
                                           op_sample_words *w)
{
    double *data = t->f;
    OP_SAMPLE_CHECK(sx_carrier_of(t->type.dtype) == SX_CARRIER_F);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = op_sample_word(w) % (uint64_t)(i + 1);
        data[i] = data[j];
        data[j] = (double)(i - n / 2) * 0.04 + 0.013 + 0.004 * index;
    }
}

/* Rounding to bfloat16 puts some of them on whole numbers, where kinks are: those move on. */
static inline void op_sample_off_kinks(const sx_host_tensor *t)
{
    int64_t n = sx_type_elems(&t->type);
    for (int64_t i = 0; i < n && t->type.dtype == SX_BF16; i++) {
        t->f[i] *= t->f[i] == floor(t->f[i]) ? 1 + 0x1p-7 : 1;
    }
}

/* The texts of strings that do not say others. */
static const char *const op_sample_texts[] = {
    "",
    "a",
    "Hello, World",
    "  both ends\t\n",
    "12.5",
    "ünïcödé",
    "日本語",
    "\xff\xfe bad \xe2\x82",
    "x,y,,z",
    "a longer text, of more than the sixty-four bytes that "
    "many hash functions read as one block",
    NULL};

static inline void op_sample_fill(const op_sample_run *run, int index)
{
    const sx_sample_input *input = &run->sample->inputs[index];
    const sx_host_tensor *t = &run->in[index];
    uint32_t hash = op_sample_hash(run->sample->name, op_sample_hash(run->op->name, 2166136261u));
    op_sample_words words = {.key = {hash, (uint32_t)index}};
    int64_t n = sx_type_elems(&t->type);
    if (input->fill == SX_FILL_DISTINCT) {
        op_sample_fill_distinct(t, n, index, &words);
    } else if (input->fill == SX_FILL_TEXT) {
        const char *const *texts = input->texts != NULL ? input->texts : op_sample_texts;
        for (int64_t i = 0, at = 0; i < n; i++) {
            t->s[i] = (sx_bytes){texts[at], strlen(texts[at])};
            at = texts[at + 1] != NULL ? at + 1 : 0;
        }
    } else if (input->fill == SX_FILL_LIST) {
        for (int64_t i = 0; i < n; i++) {
            sx_host_set(t, i, input->numbers[i % input->limit]);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            sx_host_set(t, i, op_sample_draw(input, &words));
        }
    }
    sx_host_round(t);
    if (input->fill == SX_FILL_DISTINCT) {
        op_sample_off_kinks(t);
    }
}

static inline sx_host_tensor op_sample_tensor(sx_type type)
{
    int64_t n = sx_type_elems(&type);
    OP_SAMPLE_CHECK(n >= 0);
    sx_host_tensor t = {.type = type, .data = sx_alloc((size_t)n + 1, sizeof(sx_bytes))};
    OP_SAMPLE_CHECK(t.data != NULL);
    return t;
}

/* Attributes with SX_BATCH replaced, as sx_pass_fix_batch() does. */
static inline void op_sample_fix_attrs(op_sample_run *run)
{
    const sx_op_def *op = run->op;
    run->owned_attrs = sx_alloc(1, op->attrs_bytes + 1);
    OP_SAMPLE_CHECK(run->owned_attrs != NULL);
    run->attrs = run->owned_attrs;
    if (run->sample->attrs == NULL) {
        return;
    }
    memcpy(run->owned_attrs, run->sample->attrs, op->attrs_bytes);
    for (int i = 0; i < op->n_attrs; i++) {
        sx_ints *list = (void *)((char *)run->owned_attrs + op->attrs[i].offset);
        for (int d = 0; op->attrs[i].kind == SX_ATTR_SHAPE && d < list->n; d++) {
            bool batch = sx_dim_is_batch(list->v[d]);
            list->v[d] = batch ? -list->v[d] * op_sample_batch(run->sample) : list->v[d];
        }
    }
}

/* Whether the sample has a TensorFlow form: random numbers for a part of the batch, which only the
 * graph of a replica has, are never exported. */
static inline bool op_sample_is_exported(const sx_op_def *op, const sx_op_sample *sample)
{
    return op->to_tf != NULL && !(op == &sx_op_stateless_random && sample->n_inputs > 1);
}

/* Types inferred, inputs filled, outputs allocated. End it with op_sample_end(). */
static inline void op_sample_begin(const sx_op_def *op, const sx_op_sample *sample,
                                   op_sample_run *run)
{
    sx_type in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {0};
    *run = (op_sample_run){.op = op, .sample = sample, .n_in = sample->n_inputs};
    sx_arena_init(&run->arena, 0);
    op_sample_fix_attrs(run);
    for (int i = 0; i < run->n_in; i++) {
        in[i] = sx_type_with_batch(sample->inputs[i].type, op_sample_batch(sample));
        run->in[i] = op_sample_tensor(in[i]);
        op_sample_fill(run, i);
    }
    sx_infer_context c = {.attrs = run->attrs,
                          .inputs = in,
                          .n_inputs = run->n_in,
                          .outputs = out,
                          .n_outputs = op->n_out};
    op_sample_ok(op->infer(&c), op, sample->name);
    run->n_out = c.n_outputs;
    if (op->host_types != NULL) {
        const sx_kernel_call call = {.attrs = run->attrs,
                                     .in = run->in,
                                     .n_in = run->n_in,
                                     .all_carried = true,
                                     .arena = &run->arena};
        op_sample_ok(op->host_types(&call, out), op, sample->name);
    }
    for (int i = 0; i < run->n_out; i++) {
        run->out[i] = op_sample_tensor(out[i]);
    }
}

static inline void op_sample_forward(op_sample_run *run, bool keep_double)
{
    op_sample_ok(sx_host_run_carried(run->op, run->attrs, run->in, run->n_in, run->out, run->n_out,
                                     &run->arena, keep_double),
                 run->op, run->sample->name);
}

/* Whether two strings are the same. */
static inline bool op_sample_same_text(const sx_bytes *a, const sx_bytes *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
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
    sx_arena_deinit(&run->arena);
}

/* --- Graphs of one sample ------------------------------------------------------------------------
 */

enum op_sample_graph_kind {
    OP_SAMPLE_FORWARD,  /* inputs x0.., outputs y0.. */
    OP_SAMPLE_GRADIENT, /* inputs x0.., w0..; outputs dx0..: of the sum of all w y, where there is
                           one */
};

static inline sx_value op_sample_weighted(sx_builder *b, sx_value y, int n_out)
{
    sx_value loss = SX_NO_VALUE;
    for (int k = 0; k < n_out; k++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", k);
        sx_value yk = sx_output_at(y, k), w = sx_input(b, name, sx_type_of_value(b, yk));
        sx_value sum = sx_reduce_sum(b, sx_mul(b, yk, w), .keep_dims = false);
        sum = sx_dtype_bytes(sx_type_of_value(b, sum).dtype) == 2 ? sx_cast(b, sum, SX_F32) : sum;
        loss = sx_value_is(loss) ? sx_add(b, loss, sum) : sum;
    }
    return loss;
}

static inline void op_sample_gradients(sx_builder *b, const sx_op_sample *sample, sx_value loss,
                                       const sx_value *x)
{
    for (int i = 0; i < sample->n_inputs && !sx_builder_failed(b); i++) {
        sx_value dx = SX_NO_VALUE;
        char name[16];
        snprintf(name, sizeof(name), "dx%d", i);
        if (sx_dtype_is_float(sample->inputs[i].type.dtype)) {
            sx_gradients(b, loss, &x[i], 1, &dx);
        }
        if (sx_value_is(dx)) {
            sx_output(b, name, dx);
        }
    }
}

static inline void op_sample_graph(const sx_op_def *op, const sx_op_sample *sample,
                                   enum op_sample_graph_kind kind, sx_graph **out_graph)
{
    sx_builder *b;
    sx_value x[SX_SAMPLE_MAX_INPUTS + 1];
    char name[16];
    /* only functions have shapes that data decide; gradients are made once those are known */
    const bool decided = op->host_types != NULL && kind == OP_SAMPLE_GRADIENT;
    op_sample_ok(op->host_types != NULL && !decided ? sx_builder_create_function(&b)
                                                    : sx_builder_create(&b),
                 op, sample->name);
    sx_type types[SX_MAX_OUTPUTS];
    int n_types = 0;
    if (decided) {
        op_sample_run run;
        op_sample_begin(op, sample, &run);
        for (; n_types < run.n_out; n_types++) {
            types[n_types] = run.out[n_types].type;
        }
        op_sample_end(&run);
    }
    for (int i = 0; i < sample->n_inputs; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = sx_input(b, name, sample->inputs[i].type);
    }
    sx_value y = sx_build_node(b, &(sx_node_spec){.op = op,
                                                  .attrs = sample->attrs,
                                                  .inputs = x,
                                                  .n_inputs = sample->n_inputs,
                                                  .types = decided ? types : NULL,
                                                  .n_types = n_types,
                                                  .device = "",
                                                  .file = ""});
    int n_out = sx_value_is(y) ? sx_builder_maker(b, y)->n_outputs : 0;
    for (int k = 0; kind == OP_SAMPLE_FORWARD && k < n_out; k++) {
        snprintf(name, sizeof(name), "y%d", k);
        sx_output(b, name, sx_output_at(y, k));
    }
    if (kind == OP_SAMPLE_GRADIENT && n_out > 0) {
        op_sample_gradients(b, sample, op_sample_weighted(b, y, n_out), x);
    }
    op_sample_ok(sx_builder_finish(b, out_graph), op, sample->name);
    sx_builder_destroy(b);
    op_sample_ok(sx_graph_validate(*out_graph), op, sample->name);
}

/* Does the sample have a gradient? Not where an output is no float. */
static inline bool op_sample_is_differentiable(const op_sample_run *run)
{
    bool floats = run->op->grad != NULL;
    for (int k = 0; k < run->n_out; k++) {
        floats = floats && sx_dtype_is_float(run->out[k].type.dtype);
    }
    return floats;
}

/* A graph of fixed batch, evaluated by the host kernels, floats kept in double. */
typedef struct op_sample_values {
    sx_graph *graph;
    sx_host_tensor *values; /* by value id */
} op_sample_values;

static inline void op_sample_values_end(op_sample_values *v)
{
    for (int i = 1; i < v->graph->n_values; i++) {
        sx_free(v->values[i].data);
    }
    sx_free(v->values);
    sx_graph_destroy(v->graph);
}

static inline void op_sample_fill_weights(const sx_host_tensor *t, uint32_t index)
{
    op_sample_words words = {.key = {index, 77}};
    int64_t n = sx_type_elems(&t->type);
    for (int64_t i = 0; i < n; i++) {
        sx_host_set(t, i, 2 * op_sample_uniform(&words) - 1);
    }
    sx_host_round(t);
}

static inline void op_sample_evaluate(const op_sample_values *v)
{
    for (int k = 0; k < v->graph->n_nodes; k++) {
        const sx_node *n = &v->graph->nodes[k];
        sx_host_tensor
            in[4 * SX_SAMPLE_MAX_INPUTS]; /* a gradient's loop has more than the sample */
        OP_SAMPLE_CHECK(n->n_inputs <= 4 * SX_SAMPLE_MAX_INPUTS);
        for (int i = 0; i < n->n_inputs; i++) {
            in[i] = v->values[n->inputs[i].id];
        }
        sx_arena arena;
        sx_arena_init(&arena, 0);
        if ((n->op->flags & SX_OP_NO_HOST) == 0) {
            op_sample_ok(sx_host_run_carried(n->op, n->attrs, in, n->n_inputs,
                                             &v->values[n->first_output.id], n->n_outputs, &arena,
                                             true),
                         n->op, n->name);
        }
        sx_arena_deinit(&arena);
    }
}

/* Builds the gradient graph of `run`, feeds it the run's inputs and the weights, evaluates it. */
static inline void op_sample_backward(const op_sample_run *run, op_sample_values *v)
{
    sx_graph *symbolic;
    op_sample_graph(run->op, run->sample, OP_SAMPLE_GRADIENT, &symbolic);
    op_sample_ok(sx_pass_fix_batch(symbolic, op_sample_batch(run->sample), &v->graph), run->op,
                 run->sample->name);
    sx_graph_destroy(symbolic);
    v->values = sx_alloc((size_t)v->graph->n_values, sizeof(*v->values));
    OP_SAMPLE_CHECK(v->values != NULL);
    for (int i = 1; i < v->graph->n_values; i++) {
        v->values[i] = op_sample_tensor(v->graph->values[i].type);
    }
    for (int i = 0; i < v->graph->n_args; i++) {
        const sx_host_tensor *value = &v->values[v->graph->args[i].value.id];
        int at = atoi(v->graph->args[i].name + 1);
        if (v->graph->args[i].name[0] == 'w') {
            op_sample_fill_weights(value, (uint32_t)at);
        } else {
            size_t n = (size_t)sx_type_elems(&value->type);
            memcpy(value->data, run->in[at].data, n * sx_carrier_bytes(value->type.dtype));
        }
    }
    op_sample_evaluate(v);
}

/* The value of the argument or output of that name and number; NULL if there is none. */
static inline const sx_host_tensor *op_sample_value(const op_sample_values *v, const char *prefix,
                                                    int index)
{
    char name[16];
    snprintf(name, sizeof(name), "%s%d", prefix, index);
    int arg = sx_graph_find_arg(v->graph, name), output = sx_graph_find_output(v->graph, name);
    return arg >= 0      ? &v->values[v->graph->args[arg].value.id]
           : output >= 0 ? &v->values[v->graph->results[output].value.id]
                         : NULL;
}

/* The sample with those of its inputs in bfloat16 that the operator takes so; false if there are
 * none. Its name lives in `name`. */
enum { OP_SAMPLE_NAME = 96 };
static inline bool op_sample_narrow(const sx_op_def *op, const sx_op_sample *sample,
                                    char name[OP_SAMPLE_NAME], sx_op_sample *out)
{
    bool any = false;
    *out = *sample;
    for (int i = 0; i < sample->n_inputs; i++) {
        if ((op->bf16 >> i & 1) != 0 && sample->inputs[i].type.dtype == SX_F32) {
            out->inputs[i].type.dtype = SX_BF16;
            any = true;
        }
    }
    snprintf(name, OP_SAMPLE_NAME, "%s_bf16", sample->name);
    out->name = name;
    out->tolerance = op->bf16_tolerance > 0 ? op->bf16_tolerance : 0x1p-8;
    return any;
}

/* Calls `check` for every sample of every operator, in bfloat16 too; it returns NULL or what is
 * wrong. Every failing sample is named. Returns how many failed. */
typedef const char *(*op_sample_check)(const sx_op_def *op, const sx_op_sample *sample);

static inline int op_sample_fails(op_sample_check check, const sx_op_def *op,
                                  const sx_op_sample *sample)
{
    const char *wrong = check(op, sample);
    if (wrong != NULL) {
        fprintf(stderr, "%s/%s: %s\n", op->name, sample->name, wrong);
    }
    return wrong != NULL;
}

static inline int op_samples_failing(op_sample_check check)
{
    int failed = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples; k++) {
            char name[OP_SAMPLE_NAME];
            sx_op_sample narrow;
            failed += op_sample_fails(check, op, &op->samples[k]);
            if (op_sample_narrow(op, &op->samples[k], name, &narrow)) {
                failed += op_sample_fails(check, op, &narrow);
            }
        }
    }
    return failed;
}

#endif
