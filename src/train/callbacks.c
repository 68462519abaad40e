/* Ready callbacks. See sextant/train.h. */
#include <string.h>

#include <sextant/train.h>

static bool find_metric(const sx_train_event *event, const char *name, double *out)
{
    for (int i = 0; i < event->n_metrics; i++) {
        if (strcmp(event->metrics[i].name, name) == 0) {
            *out = event->metrics[i].value;
            return true;
        }
    }
    return false;
}

static bool improves(const sx_early_stopping *s, double value)
{
    double gain = s->larger_is_better ? value - s->state.best : s->state.best - value;
    return s->state.seen == 0 || gain > s->min_delta;
}

static void watch(void *user, const sx_train_event *event, sx_control *control)
{
    sx_early_stopping *s = user;
    double value;
    if (event->kind != SX_EVENT_EVAL ||
        !find_metric(event, s->monitor != NULL ? s->monitor : "loss", &value)) {
        return;
    }
    if (improves(s, value)) {
        s->state.best = value;
        s->state.waited = 0;
    } else {
        s->state.waited++;
    }
    s->state.seen++;
    if (s->state.waited > 0 && s->state.waited >= s->patience) {
        control->stop = true;
        control->reason = "stopped early: no improvement";
    }
}

sx_callback sx_early_stopping_callback(sx_early_stopping *stopping)
{
    return (sx_callback){.name = "early_stopping",
                         .control = watch,
                         .user = stopping,
                         .state = &stopping->state,
                         .state_bytes = sizeof(stopping->state)};
}
