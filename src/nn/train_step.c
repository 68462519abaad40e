/* See train_step.h. */
#include "nn/train_step.h"

#include <string.h>

#include "base/memory.h"
#include "nn/layer.h"
#include "nn/optimizer.h"

/* ---- Means over the batch ---- */

/* How examples count in means over the batch. */
typedef struct weighting {
    sx_value weights;     /* float32 [N]; empty = all the same */
    sx_value sum;         /* of the weights */
    sx_value denominator; /* the sum, or 1 if it is 0: then all terms are 0, and so is the mean */
} weighting;

static sx_value batch_sum(sx_builder *b, sx_value per_example)
{
    return sx_build_op(b, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {0}}}), per_example);
}

static weighting weigh(sx_builder *b, sx_value weights)
{
    weighting w = {.weights = weights};
    if (sx_value_is(weights)) {
        sx_scope_begin(b, "weighting", NULL);
        w.sum = batch_sum(b, weights);
        sx_value none = sx_build_op(b, equal, NULL, w.sum, sx_constant_f32(b, 0));
        w.denominator = sx_build_op(b, select, NULL, none, sx_constant_f32(b, 1), w.sum);
        sx_scope_end(b);
    }
    return w;
}

static sx_value batch_mean(sx_builder *b, const weighting *w, sx_value per_example)
{
    if (sx_value_is(w->weights)) {
        sx_value weighted = sx_build_op(b, mul, NULL, per_example, w->weights);
        return sx_build_op(b, div, NULL, batch_sum(b, weighted), w->denominator);
    }
    sx_value sum = batch_sum(b, per_example);
    sx_value count = sx_build_op(b, size, (&(sx_axes_attrs){.axes = {1, {0}}}), per_example);
    return sx_build_op(b, div, NULL, sum, count);
}

/* ---- Updates ---- */

/* Whether all values are finite, checked where they are made; reorders them by device. */
static sx_value all_finite(sx_builder *b, sx_value *values, int n)
{
    sx_value ok = SX_NO_VALUE;
    const char *before = b->device;
    for (int first = 0, end; first < n && !sx_builder_failed(b); first = end) {
        const char *device = sx_builder_maker(b, values[first])->device;
        end = first + 1;
        for (int i = end; i < n; i++) {
            if (strcmp(sx_builder_maker(b, values[i])->device, device) == 0) {
                const sx_value next = values[i];
                memmove(&values[end + 1], &values[end], (size_t)(i - end) * sizeof(*values));
                values[end++] = next;
            }
        }
        b->device = device;
        const sx_value here = sx_build(b, &sx_op_all_finite, NULL, values + first, end - first);
        b->device = before;
        ok = first == 0 ? here : sx_build_op(b, logical_and, NULL, ok, here);
    }
    return ok;
}

/* ok: the loss and every gradient are finite. Rows are checked as they are, each shard's by itself.
 */
static sx_value build_ok(sx_builder *b, const sx_optimizer *o, sx_value loss,
                         const sx_value *gradients, int n)
{
    sx_value *all = sx_arena_array(sx_builder_arena(b), n + 1, sx_value);
    sx_value *rows = sx_arena_array(sx_builder_arena(b), n + 1, sx_value);
    int count = 0, n_rows = 0;
    if (all == NULL || rows == NULL) {
        sx_builder_fail(b, sx_no_memory("building a model"));
        return SX_NO_VALUE;
    }
    all[count++] = loss;
    for (int i = 0; i < n; i++) {
        sx_row_gradient g;
        if (sx_updates_rows(b, o, gradients[i], &g)) {
            rows[n_rows++] = g.rows;
        } else if (sx_value_is(gradients[i])) {
            all[count++] = gradients[i];
        }
    }
    const sx_value ok = all_finite(b, all, count);
    return n_rows == 0 ? ok : sx_build_op(b, logical_and, NULL, ok, all_finite(b, rows, n_rows));
}

/* Moving averages and the step change only together with the weights: makes each assignment so far
 * conditional on `ok`. */
static void guard_state(sx_builder *b, sx_value ok)
{
    for (int i = 0; i < b->graph->n_results && !sx_builder_failed(b); i++) {
        sx_result r = b->graph->results[i];
        if (r.arg != SX_RESULT_IS_OUTPUT) {
            sx_value old = b->graph->args[r.arg].value;
            sx_assign(b, r.name, sx_build_op(b, select, NULL, ok, r.value, old));
        }
    }
}

static void advance_step(sx_builder *b, sx_value step, sx_value ok)
{
    int64_t one = 1;
    sx_value next =
        sx_build_op(b, add, NULL, step, sx_constant(b, (sx_tensor){sx_scalar_type(SX_I64), &one}));
    sx_assign(b, "global_step", sx_build_op(b, select, NULL, ok, next, step));
}

/* The value to differentiate: with SUM, the sum of the replicas' losses. */
static sx_value reduced(sx_builder *b, const sx_optimizer *o, sx_value total, int replicas)
{
    if (o->reduction == SX_REDUCTION_MEAN || replicas <= 1) {
        return total;
    }
    return sx_build_op(b, mul, NULL, total, sx_constant_f32(b, replicas));
}

/* The graph's weights and their gradients, all [n]. */
typedef struct weight_list {
    sx_value *values, *gradients;
    const char **names;
    int n;
} weight_list;

static bool list_weights(sx_builder *b, weight_list *out)
{
    int capacity = b->graph->n_args + 1;
    sx_arena *arena = sx_builder_arena(b);
    *out = (weight_list){.values = sx_arena_array(arena, capacity, sx_value),
                         .gradients = sx_arena_array(arena, capacity, sx_value),
                         .names = sx_arena_array(arena, capacity, const char *)};
    if (out->values == NULL || out->gradients == NULL || out->names == NULL) {
        sx_builder_fail(b, sx_no_memory("building a model"));
        return false;
    }
    for (int i = 0; i < b->graph->n_args; i++) {
        const sx_arg *arg = &b->graph->args[i];
        if (arg->kind == SX_ARG_VARIABLE && arg->role == SX_ROLE_WEIGHT) {
            out->values[out->n] = arg->value;
            out->names[out->n++] = arg->name;
        }
    }
    return true;
}

static void build_updates(sx_builder *b, const sx_optimizer *o, sx_value total,
                          const weight_list *weights)
{
    sx_gradients(b, total, weights->values, weights->n, weights->gradients);
    sx_value step = sx_global_step(b);
    sx_scope_begin(b, "training", NULL);
    sx_value ok = build_ok(b, o, total, weights->gradients, weights->n);
    guard_state(b, ok);
    sx_value rate = sx_build_learning_rate(b, o->learning_rate, &o->schedule, step);
    for (int i = 0; i < weights->n; i++) {
        if (sx_value_is(weights->gradients[i])) {
            sx_build_update(b, o, weights->names[i], weights->values[i], weights->gradients[i],
                            rate, step, ok);
        }
    }
    advance_step(b, step, ok);
    sx_scope_end(b);
    sx_output(b, SX_LEARNING_RATE, rate);
    sx_output(b, SX_OK_OUTPUT, ok);
}

/* ---- The optimizer ---- */

static void put_wishes(const sx_optimizer *wish, sx_optimizer *out)
{
    if (wish->learning_rate != 0) {
        out->learning_rate = wish->learning_rate;
    }
    if (wish->base_batch_size != 0) {
        out->base_batch_size = wish->base_batch_size;
    }
    if (wish->l2 != 0) {
        out->l2 = wish->l2;
    }
    if (wish->schedule.warmup_steps != 0 || wish->schedule.warmup_epochs != 0) {
        out->schedule.warmup_steps = wish->schedule.warmup_steps;
        out->schedule.warmup_epochs = wish->schedule.warmup_epochs;
    }
}

/* The model's optimizer, overridden by the request, with the learning rate resolved to numbers. */
static sx_status choose_optimizer(const sx_optimizer *own, const sx_program_request *r,
                                  sx_optimizer *out)
{
    const sx_optimizer *wish = r->optimizer;
    *out = *own;
    if (wish != NULL && wish->kind != SX_OPTIMIZER_DEFAULT) {
        *out = *wish;
        out->reduction = own->reduction;
    } else if (wish != NULL) {
        put_wishes(wish, out);
    }
    SX_TRY(sx_optimizer_resolve(out));
    if (r->out_optimizer != NULL) {
        *r->out_optimizer = *out;
    }
    return sx_optimizer_settle_rate(out, r->batch, r->steps_per_epoch);
}

/* ---- A model's step ---- */

static sx_value plus(sx_builder *b, sx_value total, sx_value term)
{
    return sx_value_is(term) ? sx_build_op(b, add, NULL, total, term) : total;
}

/* What the optimizer adds to the loss; LARS decays weights itself. */
static sx_value decay(sx_builder *b, const sx_optimizer *o, const weight_list *weights)
{
    return o->l2 > 0 && o->kind != SX_OPTIMIZER_LARS
               ? sx_build_l2(b, o->l2, weights->values, weights->names, weights->n)
               : SX_NO_VALUE;
}

void sx_build_train(sx_builder *b, const sx_spec *spec, sx_value example_weights)
{
    const sx_program_request *r = b->request;
    sx_optimizer o;
    weight_list weights;
    sx_status status = choose_optimizer(&spec->optimizer, r, &o);
    if (status != SX_OK) {
        sx_builder_fail(b, status);
        return;
    }
    if (sx_builder_failed(b) || !list_weights(b, &weights)) {
        return;
    }
    const weighting w = weigh(b, example_weights);
    sx_value total = plus(b, batch_mean(b, &w, spec->loss), spec->regularization);
    total = plus(b, total, decay(b, &o, &weights));
    sx_output(b, SX_LOSS, total);
    for (int i = 0; i < SX_MAX_METRICS && sx_value_is(spec->metrics[i].value); i++) {
        sx_output(b, spec->metrics[i].name, batch_mean(b, &w, spec->metrics[i].value));
    }
    build_updates(b, &o, reduced(b, &o, total, r->replicas), &weights);
    if (sx_value_is(w.sum)) {
        sx_output(b, SX_WEIGHT_SUM, w.sum);
    }
}

/* ---- A step function of the caller's ---- */

static bool is_of(const sx_builder *b, sx_value v, int rank)
{
    const sx_type type = sx_type_of_value(b, v);
    return type.dtype == SX_F32 && type.rank == rank && (rank == 0 || type.dims[0] == SX_BATCH);
}

static sx_status not_of(const sx_builder *b, const char *what, sx_value v, const char *expected)
{
    char text[SX_TYPE_TEXT] = "nothing";
    const sx_type type = sx_type_of_value(b, v);
    if (sx_value_is(v)) {
        sx_type_format(&type, text, sizeof(text));
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected %s", what, text, expected);
}

/* Σ of the values over all replicas, divided by the size of the global batch. */
static sx_value average(sx_builder *b, sx_value values, const sx_average_loss_args *args)
{
    if (sx_value_is(args->sample_weight)) {
        values = sx_build_op(b, mul, NULL, values, sx_widen(b, args->sample_weight));
    }
    if (args->global_batch_size == 0) {
        return batch_mean(b, &(weighting){.weights = SX_NO_VALUE}, values);
    }
    return sx_build_op(b, div, NULL, batch_sum(b, values),
                       sx_constant_f32(b, (double)args->global_batch_size));
}

sx_value sx_compute_average_loss_at(sx_builder *b, sx_value per_example_loss,
                                    const sx_average_loss_args *args, const char *file, int line)
{
    static const char name[] = "compute_average_loss";
    sx_average_loss_args own;
    if (!sx_builder_take_args(b, "sx_average_loss_args", args, sizeof(own), &own) ||
        !sx_layer_begin(b, name, NULL, file, line)) {
        return SX_NO_VALUE;
    }
    const sx_value values = sx_widen(b, per_example_loss);
    const bool weighted = sx_value_is(own.sample_weight);
    sx_value result = SX_NO_VALUE;
    if (!is_of(b, values, 1)) {
        sx_layer_fail(
            b, name,
            not_of(b, "per_example_loss", values, "float32[N], one number for each example"));
    } else if (weighted && !is_of(b, sx_widen(b, own.sample_weight), 1)) {
        sx_layer_fail(b, name,
                      not_of(b, "sample_weight", own.sample_weight,
                             "float32[N], one number for each example"));
    } else if (own.global_batch_size < 0) {
        sx_layer_fail(b, name,
                      sx_error(SX_INVALID_ARGUMENT,
                               "global_batch_size is %lld, expected a number of examples, or 0: "
                               "those of the batch",
                               (long long)own.global_batch_size));
    } else {
        result = average(b, values, &own);
    }
    return sx_layer_end(b, result);
}

static bool has_output(const sx_builder *b, const char *name)
{
    bool found = false;
    for (int i = 0; i < b->graph->n_results && !found; i++) {
        const sx_result *r = &b->graph->results[i];
        found = r->arg == SX_RESULT_IS_OUTPUT && strcmp(r->name, name) == 0;
    }
    return found;
}

static void minimize(sx_builder *b, sx_value loss, const sx_optimizer *own)
{
    static const sx_program_request unknown = {.mode = SX_TRAIN};
    const sx_program_request *r = b->request != NULL ? b->request : &unknown;
    sx_optimizer o;
    weight_list weights;
    sx_status status = choose_optimizer(own, r, &o);
    if (status != SX_OK) {
        sx_layer_fail(b, "minimize", status);
    } else if (list_weights(b, &weights)) {
        const sx_value total = plus(b, loss, decay(b, &o, &weights));
        build_updates(b, &o, reduced(b, &o, total, r->replicas), &weights);
    }
}

void sx_minimize_at(sx_builder *b, sx_value loss, const sx_minimize_args *args, const char *file,
                    int line)
{
    sx_minimize_args own;
    if (!sx_builder_take_args(b, "sx_minimize_args", args, sizeof(own), &own) ||
        !sx_layer_begin(b, "minimize", NULL, file, line)) {
        return;
    }
    if (sx_builder_mode(b) != SX_TRAIN) {
        sx_layer_fail(b, "minimize",
                      sx_error(SX_INVALID_ARGUMENT, "the program is not one of mode SX_TRAIN"));
    } else if (has_output(b, SX_OK_OUTPUT)) {
        sx_layer_fail(b, "minimize",
                      sx_error(SX_INVALID_ARGUMENT,
                               "a step has one sx_minimize(); add the losses, or make a step of "
                               "each"));
    } else if (!is_of(b, loss, 0)) {
        sx_layer_fail(b, "minimize",
                      not_of(b, "the loss", loss,
                             "a float32 scalar; sx_compute_average_loss() "
                             "makes one of the examples' losses"));
    } else {
        minimize(b, loss, &own.optimizer);
    }
    sx_scope_end(b);
}

void sx_check_train_step(sx_builder *b)
{
    int first = 0;
    const sx_graph *g = b->graph;
    if (sx_builder_failed(b)) {
        return;
    }
    while (first < g->n_results && g->results[first].arg != SX_RESULT_IS_OUTPUT) {
        first++;
    }
    if (first == g->n_results || strcmp(g->results[first].name, SX_LOSS) != 0 ||
        !is_of(b, g->results[first].value, 0)) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "the first output of a training step is its loss, a float32 "
                                    "scalar: sx_output(b, \"" SX_LOSS "\", loss)"));
    } else if (!has_output(b, SX_OK_OUTPUT)) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "the training step calls no sx_minimize(): it would train "
                                    "nothing"));
    }
}
