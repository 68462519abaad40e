/* See optimizer.h. One row per optimizer: its defaults (Keras') and its update. */
#include "nn/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

typedef struct update {
    sx_builder *b;
    const sx_optimizer *o;
    const char *name; /* of the variable */
    sx_value var, gradient, rate, step, ok;
} update;

static const char *slot_name(const update *u, const char *slot)
{
    const char *name = sx_arena_printf(sx_builder_arena(u->b), "%s/%s", u->name, slot);
    if (name == NULL) {
        sx_builder_fail(u->b, sx_no_memory("building a model"));
        return "";
    }
    return name;
}

/* The slot variable `<name>/<slot>`, of the variable's type, filled with `value` at first. */
static sx_value slot_from(const update *u, const char *slot, double value)
{
    return sx_variable(u->b,
                       &(sx_variable_spec){.name = slot_name(u, slot),
                                           .type = sx_type_of_value(u->b, u->var),
                                           .role = SX_ROLE_SLOT,
                                           .init = value == 0 ? SX_INIT_ZEROS : SX_INIT_CONSTANT,
                                           .init_value = value});
}

static sx_value slot_of(const update *u, const char *slot)
{
    return slot_from(u, slot, 0);
}

/* ---- Updates of rows ---- */

/* A smaller table is swept in less time than it takes to bring all shards' rows together. */
enum { LEAST_ELEMS = 1 << 20 };

bool sx_updates_rows(const sx_builder *b, const sx_optimizer *o, sx_value gradient,
                     sx_row_gradient *out)
{
    const sx_node *n = sx_value_is(gradient) ? sx_graph_maker(b->graph, gradient) : NULL;
    if (o->kind != SX_OPTIMIZER_SGD || o->momentum != 0 || n == NULL ||
        n->op != &sx_op_gather_grad) {
        return false;
    }
    const sx_gather_grad_attrs *attrs = n->attrs;
    *out = (sx_row_gradient){n->inputs[0], n->inputs[1]};
    return attrs->axis == 0 && attrs->batch_dims == 0 &&
           sx_graph_type(b->graph, out->indices)->rank < SX_MAX_RANK &&
           sx_type_elems(sx_graph_type(b->graph, gradient)) >= LEAST_ELEMS;
}

/* var -= rate * rows, in the order of the examples. An index outside has no row, as in gather. */
static void move_rows(const update *u, const sx_row_gradient *g)
{
    const sx_tensor_scatter_attrs sub = {.how = SX_SCATTER_SUB, .check = SX_SCATTER_SKIP_NEGATIVE};
    const double n_rows = (double)sx_type_of_value(u->b, u->var).dims[0];
    sx_builder *b = u->b;
    sx_type places = sx_type_of_value(b, g->indices);
    places.dims[places.rank++] = 1;
    sx_value inside = sx_build_op(b, less, NULL, g->indices, sx_scalar_like(b, g->indices, n_rows));
    sx_value at =
        sx_build_op(b, select, NULL, inside, g->indices, sx_scalar_like(b, g->indices, -1));
    sx_value rows = sx_build_op(b, mul, NULL, g->rows, u->rate);
    rows = sx_build_op(b, select, NULL, u->ok, rows, sx_scalar_like(b, rows, 0));
    sx_assign(b, u->name,
              sx_build_op(b, tensor_scatter, &sub, u->var, sx_reshape_to(b, at, &places), rows));
}

static void update_sgd(const update *u)
{
    sx_value first;
    sx_row_gradient rows;
    if (sx_updates_rows(u->b, u->o, u->gradient, &rows)) {
        move_rows(u, &rows);
        return;
    }
    if (u->o->momentum == 0) {
        first = sx_build_op(u->b, apply_sgd, NULL, u->var, u->gradient, u->rate, u->ok);
    } else {
        const sx_momentum_attrs attrs = {.momentum = u->o->momentum, .nesterov = u->o->nesterov};
        first = sx_build_op(u->b, apply_momentum, &attrs, u->var, slot_of(u, "Momentum"),
                            u->gradient, u->rate, u->ok);
        sx_assign(u->b, slot_name(u, "Momentum"), sx_output_of(first, 1));
    }
    sx_assign(u->b, u->name, first);
}

static void update_rmsprop(const update *u)
{
    const sx_rmsprop_attrs attrs = {.rho = u->o->rho,
                                    .momentum = u->o->momentum,
                                    .epsilon = u->o->epsilon,
                                    .centered = u->o->centered};
    /* TensorFlow 1 numbers its slots in the order in which it creates them: rms, the mean gradient
     * if centered, momentum. */
    static const char *const slots[] = {"RMSProp", "RMSProp_1", "RMSProp_2"};
    int n_slots = 1 + attrs.centered + (attrs.momentum > 0);
    sx_value inputs[7] = {u->var};
    for (int i = 0; i < n_slots; i++) {
        inputs[1 + i] = slot_from(u, slots[i], i == 0 ? u->o->initial_accumulator_value : 0);
    }
    inputs[1 + n_slots] = u->gradient;
    inputs[2 + n_slots] = u->rate;
    inputs[3 + n_slots] = u->ok;
    sx_value first = sx_build(u->b, &sx_op_apply_rmsprop, &attrs, inputs, 4 + n_slots);
    sx_assign(u->b, u->name, first);
    for (int i = 0; i < n_slots; i++) {
        sx_assign(u->b, slot_name(u, slots[i]), sx_output_of(first, 1 + i));
    }
}

static void update_adam(const update *u)
{
    const sx_adam_attrs attrs = {
        .beta1 = u->o->beta_1, .beta2 = u->o->beta_2, .epsilon = u->o->epsilon};
    sx_value first = sx_build_op(u->b, apply_adam, &attrs, u->var, slot_of(u, "Adam"),
                                 slot_of(u, "Adam_1"), u->gradient, u->rate, u->step, u->ok);
    sx_assign(u->b, u->name, first);
    sx_assign(u->b, slot_name(u, "Adam"), sx_output_of(first, 1));
    sx_assign(u->b, slot_name(u, "Adam_1"), sx_output_of(first, 2));
}

/* ---- LARS: You, Gitman, Ginsburg, arXiv 1708.03888; as tf.contrib.opt.LARSOptimizer ---- */

static sx_value scaled(const update *u, sx_value x, double factor)
{
    return sx_build_op(u->b, mul, NULL, x, sx_constant_f32(u->b, factor));
}

static sx_value norm(const update *u, sx_value x)
{
    return sx_build_op(u->b, sqrt, NULL, sx_build_square_sum(u->b, x));
}

/* eeta·‖w‖ / (‖g‖ + l2·‖w‖ + epsilon); 1 where either is 0. */
static sx_value trust_ratio(const update *u)
{
    sx_builder *b = u->b;
    sx_value zero = sx_constant_f32(b, 0), one = sx_constant_f32(b, 1);
    sx_value w = norm(u, u->var), g = norm(u, u->gradient);
    sx_value below = sx_build_op(b, add, NULL, g, scaled(u, w, u->o->l2));
    below = sx_build_op(b, add, NULL, below, sx_constant_f32(b, u->o->epsilon));
    sx_value ratio = sx_build_op(b, div, NULL, scaled(u, w, u->o->eeta), below);
    ratio = sx_build_op(b, select, NULL, sx_build_op(b, less, NULL, zero, g), ratio, one);
    return sx_build_op(b, select, NULL, sx_build_op(b, less, NULL, zero, w), ratio, one);
}

static bool is_adapted(const char *name)
{
    const char *leaf = strrchr(name, '/');
    return !sx_is_batch_norms(name) && (leaf == NULL || strcmp(leaf, "/bias") != 0);
}

static void keep_if_ok(const update *u, const char *name, sx_value fresh, sx_value old)
{
    sx_assign(u->b, name, sx_build_op(u->b, select, NULL, u->ok, fresh, old));
}

/* TF1's momentum, where the rate is applied after accumulation: a = m·a + g; w -= rate·a. */
static void update_lars(const update *u)
{
    sx_builder *b = u->b;
    sx_value old = slot_of(u, "Momentum"), gradient = u->gradient, rate = u->rate;
    if (is_adapted(u->name)) {
        rate = sx_build_op(b, mul, NULL, rate, trust_ratio(u));
        gradient = sx_build_op(b, add, NULL, gradient, scaled(u, u->var, u->o->l2));
    }
    sx_value sum = sx_build_op(b, add, NULL, scaled(u, old, u->o->momentum), gradient);
    sx_value move =
        u->o->nesterov ? sx_build_op(b, add, NULL, gradient, scaled(u, sum, u->o->momentum)) : sum;
    sx_value fresh = sx_build_op(b, sub, NULL, u->var, sx_build_op(b, mul, NULL, move, rate));
    keep_if_ok(u, slot_name(u, "Momentum"), sum, old);
    keep_if_ok(u, u->name, fresh, u->var);
}

typedef struct optimizer_row {
    const char *name;
    sx_optimizer defaults;
    void (*update)(const update *u);
} optimizer_row;

static const optimizer_row rows[SX_OPTIMIZER_COUNT_] = {
    [SX_OPTIMIZER_SGD] = {"sgd", {.learning_rate = .01}, update_sgd},
    [SX_OPTIMIZER_RMSPROP] = {"rmsprop",
                              {.learning_rate = .001, .rho = .9, .epsilon = 1e-7},
                              update_rmsprop},
    [SX_OPTIMIZER_ADAM] = {"adam",
                           {.learning_rate = .001, .beta_1 = .9, .beta_2 = .999, .epsilon = 1e-7},
                           update_adam},
    [SX_OPTIMIZER_LARS] = {"lars",
                           {.learning_rate = .1, .momentum = .9, .eeta = .001},
                           update_lars},
};

sx_status sx_optimizer_by_name(const char *name, sx_optimizer *out_optimizer)
{
    if (strcmp(name, "momentum") == 0) {
        *out_optimizer = sx_sgd(.momentum = .9);
        return SX_OK;
    }
    for (int kind = 1; kind < SX_OPTIMIZER_COUNT_; kind++) {
        if (strcmp(name, rows[kind].name) == 0) {
            *out_optimizer = (sx_optimizer){.kind = (sx_optimizer_kind)kind};
            return SX_OK;
        }
    }
    return sx_error(SX_NOT_FOUND,
                    "no optimizer \"%s\"; expected sgd, momentum, rmsprop, adam or lars", name);
}

/* A field of 0 becomes its default; SX_ZERO becomes 0. */
static void settle(double *field, double otherwise)
{
    *field = *field == 0 ? otherwise : *field == SX_ZERO ? 0 : *field;
}

/* The valid range of a parameter: finite, 0 or more, and at most `most`. */
static const struct {
    const char *name;
    size_t offset;
    double most;
    bool open; /* below `most` */
    const char *expected;
} limits[] = {
#define LIMIT(field, ...)                                  \
    {                                                      \
#field, offsetof(sx_optimizer, field), __VA_ARGS__ \
    }
    LIMIT(learning_rate, INFINITY, true, "a finite number, 0 or more"),
    LIMIT(momentum, 1, false, "0 to 1"),
    LIMIT(rho, 1, false, "0 to 1"),
    LIMIT(beta_1, 1, true, "0 or more and less than 1"),
    LIMIT(beta_2, 1, true, "0 or more and less than 1"),
    LIMIT(epsilon, INFINITY, true, "a finite number, 0 or more"),
    LIMIT(eeta, INFINITY, true, "a finite number, 0 or more"),
    LIMIT(l2, INFINITY, true, "a finite number, 0 or more"),
    LIMIT(initial_accumulator_value, INFINITY, true, "a finite number, 0 or more"),
#undef LIMIT
};

sx_status sx_optimizer_resolve(sx_optimizer *o)
{
    if (o->kind == SX_OPTIMIZER_DEFAULT) {
        o->kind = SX_OPTIMIZER_ADAM;
    }
    if ((unsigned)o->kind >= SX_OPTIMIZER_COUNT_) {
        return sx_error(SX_INVALID_ARGUMENT, "optimizer kind %d does not exist", (int)o->kind);
    }
    const sx_optimizer *d = &rows[o->kind].defaults;
    settle(&o->learning_rate, d->learning_rate);
    settle(&o->momentum, d->momentum);
    settle(&o->rho, d->rho);
    settle(&o->beta_1, d->beta_1);
    settle(&o->beta_2, d->beta_2);
    settle(&o->epsilon, d->epsilon);
    settle(&o->eeta, d->eeta);
    settle(&o->l2, 0);
    settle(&o->initial_accumulator_value, 0);
    for (size_t i = 0; i < SX_COUNT(limits); i++) {
        double value = *(const double *)(const void *)((const char *)o + limits[i].offset);
        if (!(value >= 0 && value <= limits[i].most) ||
            (limits[i].open && value == limits[i].most)) {
            return sx_error(SX_INVALID_ARGUMENT, "optimizer %s: %s is %g, expected %s",
                            rows[o->kind].name, limits[i].name, value, limits[i].expected);
        }
    }
    if (o->reduction != SX_REDUCTION_MEAN && o->reduction != SX_REDUCTION_SUM) {
        return sx_error(SX_INVALID_ARGUMENT, "optimizer %s: reduction %d does not exist",
                        rows[o->kind].name, (int)o->reduction);
    }
    if (o->base_batch_size < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "optimizer %s: base_batch_size is %lld, expected at least 0",
                        rows[o->kind].name, (long long)o->base_batch_size);
    }
    SX_TRY(sx_schedule_check(&o->schedule), "optimizer %s", rows[o->kind].name);
    return SX_OK;
}

void sx_build_update(sx_builder *b, const sx_optimizer *optimizer, const char *name, sx_value var,
                     sx_value gradient, sx_value learning_rate, sx_value step, sx_value ok)
{
    const sx_node *maker = sx_builder_maker(b, var);
    const char *device = b->device;
    b->device = maker != NULL ? maker->device : device; /* where the variable lies */
    rows[optimizer->kind].update(
        &(update){b, optimizer, name, var, gradient, learning_rate, step, ok});
    b->device = device;
}
