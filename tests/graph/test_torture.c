/* Every operator while memory runs out: building its sample and the gradient of it, the text form,
 * the passes, inference, the host's kernel and StableHLO. No crash, no leak, and no other error
 * than RESOURCE_EXHAUSTED. */
#include "torture.h"

#include <sextant/ops.h>

#include "graph/lower/stablehlo/lower.h"
#include "graph/op_samples.h"

typedef struct subject {
    const sx_op_def *op;
    const sx_op_sample *sample;
} subject;

static sx_status build(const subject *s, bool gradient, sx_graph **out)
{
    sx_builder *b;
    sx_value x[SX_SAMPLE_MAX_INPUTS + 1];
    char name[16];
    SX_TRY(sx_builder_create(&b));
    for (int i = 0; i < s->sample->n_inputs; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = sx_input(b, name, s->sample->inputs[i].type);
    }
    sx_value y = sx_build(b, s->op, s->sample->attrs, x, s->sample->n_inputs);
    const int n_out = sx_value_is(y) ? sx_builder_maker(b, y)->n_outputs : 0;
    for (int k = 0; !gradient && k < n_out; k++) {
        snprintf(name, sizeof(name), "y%d", k);
        sx_output(b, name, sx_output_at(y, k));
    }
    if (gradient && n_out > 0) {
        op_sample_gradients(b, s->sample, op_sample_weighted(b, y, n_out), x);
    }
    sx_status status = sx_builder_finish(b, out);
    sx_builder_destroy(b);
    return status;
}

/* Takes the graph over. */
static sx_status transform(sx_graph *g, const sx_op_sample *sample)
{
    static sx_status (*const passes[])(const sx_graph *, sx_graph **) = {
        sx_pass_fold_constants, sx_pass_merge_equal, sx_pass_simplify,
        sx_pass_drop_dead,      sx_pass_widen_bf16,  sx_pass_drop_bf16};
    sx_graph *next = NULL;
    sx_status status = sx_graph_validate(g);
    status = status != SX_OK ? status : sx_pass_fix_batch(g, op_sample_batch(sample), &next);
    for (size_t i = 0; status == SX_OK && i < sizeof(passes) / sizeof(passes[0]); i++) {
        sx_graph_destroy(g);
        g = next;
        next = NULL;
        status = passes[i](g, &next);
    }
    sx_graph_destroy(g);
    sx_graph_destroy(next);
    return status;
}

static sx_status use_graphs(void *user)
{
    const subject *s = user;
    sx_graph *g = NULL, *again = NULL;
    char *text = NULL;
    SX_TRY(build(s, false, &g));
    sx_status status = sx_graph_print(g, &text);
    if (status == SX_OK) {
        status = sx_graph_parse(text, strlen(text), &again);
    }
    sx_text_free(text);
    sx_graph_destroy(g);
    SX_TRY(status);
    return transform(again, s->sample);
}

static sx_status use_gradients(void *user)
{
    const subject *s = user;
    sx_graph *g = NULL;
    SX_TRY(build(s, true, &g));
    return transform(g, s->sample);
}

static sx_status run_host(void *user)
{
    const op_sample_run *run = user;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = sx_host_run_carried(run->op, run->attrs, run->in, run->n_in, run->out,
                                           run->n_out, &arena, false);
    sx_arena_deinit(&arena);
    return status;
}

static sx_status lower(void *user)
{
    const op_sample_run *run = user;
    sx_hlo_arg args[SX_SAMPLE_MAX_INPUTS];
    sx_type in_types[SX_SAMPLE_MAX_INPUTS], out_types[SX_MAX_OUTPUTS];
    sx_hlo in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
    sx_hlo_writer *w = NULL;
    for (int i = 0; i < run->n_in; i++) {
        in_types[i] = run->in[i].type;
        args[i] = (sx_hlo_arg){.type = in_types[i], .alias = -1};
    }
    for (int k = 0; k < run->n_out; k++) {
        out_types[k] = run->out[k].type;
    }
    SX_TRY(sx_hlo_create(&(sx_hlo_options){0}, args, run->n_in, 0, in, &w));
    sx_hlo_rows[run->op->id].lower(w, &(sx_hlo_op){.attrs = run->attrs,
                                                   .name = "sample",
                                                   .in = in,
                                                   .out = out,
                                                   .in_types = in_types,
                                                   .out_types = out_types,
                                                   .n_in = run->n_in,
                                                   .n_out = run->n_out});
    const char *text;
    size_t size;
    sx_status status = sx_hlo_finish(w, out, run->n_out, &text, &size);
    sx_hlo_destroy(w);
    return status;
}

static void each_sample(void (*test)(subject *s))
{
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        for (int k = 0; k < sx_op_table[id]->n_samples; k++) {
            test(&(subject){sx_op_table[id], &sx_op_table[id]->samples[k]});
        }
    }
}

static void torture_graphs(subject *s)
{
    print_message("%s/%s\n", s->op->name, s->sample->name);
    assert_true(sx_torture(use_graphs, s) > 20);
}

static void test_graph_torture__graphs(void **state)
{
    (void)state;
    each_sample(torture_graphs);
}

static void torture_gradients(subject *s)
{
    op_sample_run run;
    op_sample_begin(s->op, s->sample, &run);
    /* without its result's shape, what data decide has no gradient */
    if (op_sample_is_differentiable(&run) && s->op->host_types == NULL) {
        print_message("%s/%s\n", s->op->name, s->sample->name);
        assert_true(sx_torture(use_gradients, s) > 20);
    }
    op_sample_end(&run);
}

static void test_graph_torture__gradients(void **state)
{
    (void)state;
    each_sample(torture_gradients);
}

static void torture_kernels(subject *s)
{
    op_sample_run run;
    op_sample_begin(s->op, s->sample, &run);
    print_message("%s/%s\n", s->op->name, s->sample->name);
    sx_torture(run_host, &run); /* most kernels need no memory */
    if (sx_hlo_rows[s->op->id].lower != NULL) {
        assert_true(sx_torture(lower, &run) > 0);
    }
    op_sample_end(&run);
}

static void test_graph_torture__kernels_and_stablehlo(void **state)
{
    (void)state;
    each_sample(torture_kernels);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_torture__graphs),
    cmocka_unit_test(test_graph_torture__gradients),
    cmocka_unit_test(test_graph_torture__kernels_and_stablehlo),
};
SX_TEST_MAIN(tests)
