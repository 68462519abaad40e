/* Resolves a learning rate that depends on the batch size and on epochs to plain numbers.
 *
 *   rate    learning_rate · batch / base_batch_size      (Goyal et al., arXiv 1706.02677: linear)
 *   steps   epochs · steps_per_epoch; the schedule itself begins after the warm-up, so steps
 *           counted from the start of training are reduced by the warm-up
 *
 * For example, models/official/resnet for TPUs: 0.1 per 256, rising for 5 epochs, divided by 10 at
 * epochs 30, 60, 80. */
#include "nn/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/args.h"
#include "base/checked.h"

static sx_status need(const char *what, const char *instead)
{
    return sx_error(SX_INVALID_ARGUMENT, "the learning rate depends on %s, which is unknown here%s",
                    what, instead);
}

static sx_status scale_rate(sx_optimizer *o, int64_t batch)
{
    if (o->base_batch_size < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "base_batch_size is %" PRId64 ", expected at least 1",
                        o->base_batch_size);
    }
    if (o->base_batch_size == 0) {
        return SX_OK;
    }
    if (batch <= 0) {
        return need("the batch size (base_batch_size)", "");
    }
    o->learning_rate *= (double)batch / (double)o->base_batch_size;
    return SX_OK;
}

static sx_status settle_warmup(sx_schedule *s, int64_t steps_per_epoch)
{
    if (!(s->warmup_epochs >= 0) || s->warmup_epochs > 1e6 ||
        (s->warmup_epochs > 0 && s->warmup_steps > 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "schedule: warmup_epochs %g and warmup_steps %" PRId64
                        ", expected one of the two, at least 0",
                        s->warmup_epochs, s->warmup_steps);
    }
    if (s->warmup_epochs > 0) {
        if (steps_per_epoch <= 0) {
            return need("epochs (warmup_epochs)", "; give warmup_steps");
        }
        s->warmup_steps = llround(s->warmup_epochs * (double)steps_per_epoch);
        s->warmup_epochs = 0;
    }
    return SX_OK;
}

/* Epochs from the beginning as steps after the warm-up, at least `least`. */
static sx_status to_steps(int64_t *count, int64_t steps_per_epoch, int64_t warmup, int64_t least)
{
    int64_t steps;
    if (!sx_mul_i64(*count, steps_per_epoch, &steps)) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: %" PRId64 " epochs are too many", *count);
    }
    *count = SX_MAX(steps - warmup, least);
    return SX_OK;
}

static sx_status settle_epochs(sx_schedule *s, int64_t steps_per_epoch)
{
    if (!s->in_epochs) {
        return SX_OK;
    }
    if (steps_per_epoch <= 0) {
        return need("epochs (in_epochs)", "");
    }
    if (s->steps > 0) { /* the end of a cosine, the period of a decay */
        int64_t before = s->kind == SX_COSINE_DECAY ? s->warmup_steps : 0;
        SX_TRY(to_steps(&s->steps, steps_per_epoch, before, 1));
    }
    for (int i = 0; i < s->n_boundaries && i < SX_MAX_PIECES; i++) {
        SX_TRY(to_steps(&s->boundaries[i], steps_per_epoch, s->warmup_steps, 0));
    }
    s->in_epochs = false;
    return SX_OK;
}

sx_status sx_optimizer_settle_rate(sx_optimizer *o, int64_t batch, int64_t steps_per_epoch)
{
    SX_TRY(scale_rate(o, batch));
    SX_TRY(settle_warmup(&o->schedule, steps_per_epoch));
    return settle_epochs(&o->schedule, steps_per_epoch);
}

char *sx_optimizer_rate_text(const sx_optimizer *asked, int64_t batch, int64_t steps_per_epoch,
                             char *buffer, size_t capacity)
{
    sx_optimizer o = *asked;
    int n = 0;
    buffer[0] = '\0';
    sx_status status = sx_optimizer_settle_rate(&o, batch, steps_per_epoch);
    bool says = status == SX_OK && (o.base_batch_size > 0 || o.schedule.warmup_steps > 0);
    sx_status_free(status);
    if (!says) {
        return buffer;
    }
    n = snprintf(buffer, capacity, "learning rate %g", o.learning_rate);
    if (o.base_batch_size > 0 && n > 0 && (size_t)n < capacity) {
        n += snprintf(buffer + n, capacity - (size_t)n, " = %g x %" PRId64 " / %" PRId64,
                      asked->learning_rate, batch, o.base_batch_size);
    }
    if (o.schedule.warmup_steps > 0 && n > 0 && (size_t)n < capacity) {
        snprintf(buffer + n, capacity - (size_t)n, ", rising over the first %" PRId64 " steps",
                 o.schedule.warmup_steps);
    }
    return buffer;
}

sx_optimizer sx_cross_shard_optimizer_at(sx_optimizer optimizer, const sx_cross_shard_args *args)
{
    sx_cross_shard_args own;
    sx_status status = sx_take_args("sx_cross_shard_args", args, sizeof(own), &own);
    if (status != SX_OK) { /* building the training program refuses the optimizer */
        sx_status_free(status);
        optimizer.kind = SX_OPTIMIZER_COUNT_;
        return optimizer;
    }
    optimizer.reduction = own.reduction;
    return optimizer;
}
