#include "report.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/json_text.h"

enum { BAR_COLUMNS = 7, DRAW_NS = 100000000 };

/* ---- Lines ---- */

static void wipe(sx_report *r)
{
    if (r->drawn) {
        sx_terminal_overwrite(&r->terminal, "");
        r->drawn = false;
    }
}

static void print_line(sx_report *r, sx_buf *line)
{
    wipe(r);
    fprintf(r->terminal.stream, "%s\n", sx_buf_text(line));
    fflush(r->terminal.stream);
}

void sx_put_results(sx_buf *out, const sx_metric *metrics, int n)
{
    bool done[SX_MAX_RESULTS + 1] = {false};
    for (int k = 0; k < n && k <= SX_MAX_RESULTS; k++) {
        int next = -1;
        for (int i = 0; i < n && i <= SX_MAX_RESULTS; i++) {
            if (!done[i] && (next < 0 || strcmp(metrics[i].name, metrics[next].name) < 0)) {
                next = i;
            }
        }
        done[next] = true;
        sx_buf_printf(out, "%s%s = %.6g", k > 0 ? ", " : "", metrics[next].name,
                      metrics[next].value);
    }
}

void sx_put_scored(sx_buf *out, int64_t examples, int64_t available, int64_t steps)
{
    sx_put_grouped(out, (double)examples);
    if (available > 0) {
        sx_buf_puts(out, " of ");
        sx_put_grouped(out, (double)available);
    }
    sx_buf_puts(out, " examples");
    if (steps > 0) {
        sx_buf_printf(out, " (steps = %" PRId64 ")", steps);
    }
}

/* ---- Parts of a line ---- */

static void put_metric(sx_buf *out, const sx_metric *metric)
{
    sx_buf_printf(out, "%s %.4f", metric->name, metric->value);
}

static void put_rate(sx_buf *out, const sx_report *r, const sx_train_event *e)
{
    sx_put_grouped(out, e->examples_per_second);
    sx_buf_printf(out, " %s", r->unit);
}

static void put_input(sx_buf *out, const sx_train_event *e)
{
    sx_buf_printf(out, "input %.0f %%", 100 * e->input_wait);
}

static void put_eta(sx_buf *out, const sx_train_event *e)
{
    sx_buf_puts(out, "eta ");
    sx_put_duration(out, e->eta_seconds);
}

static void put_epoch(sx_buf *out, const sx_train_event *e)
{
    sx_buf_printf(out, "epoch %" PRId64, e->epoch);
    if (e->epochs > 0) {
        sx_buf_printf(out, "/%" PRId64, e->epochs);
    }
}

static void put_step(sx_buf *out, const sx_train_event *e)
{
    sx_buf_printf(out, "step %" PRId64, e->step);
    if (e->total_steps > 0) {
        sx_buf_printf(out, "/%" PRId64, e->total_steps);
    }
}

static void put_metrics(sx_buf *out, const sx_train_event *e)
{
    for (int i = 0; i < e->n_metrics; i++) {
        sx_buf_puts(out, "  ");
        put_metric(out, &e->metrics[i]);
    }
}

static void put_rates(sx_buf *out, const sx_report *r, const sx_train_event *e)
{
    if (e->examples_per_second > 0) {
        sx_buf_puts(out, "  ");
        put_rate(out, r, e);
        sx_buf_puts(out, "  ");
        put_input(out, e);
    }
    if (e->eta_seconds >= 0) {
        sx_buf_puts(out, "  ");
        put_eta(out, e);
    }
}

/* "epoch 3/20  step 144/960" */
static void put_place(sx_buf *out, const sx_train_event *e)
{
    if (e->epochs > 0 || e->epoch > 0) {
        put_epoch(out, e);
        sx_buf_puts(out, "  ");
    }
    put_step(out, e);
}

/* ---- One function for each event ---- */

typedef void tell_fn(sx_report *r, const sx_train_event *e, sx_buf *line);

static void tell_begin(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (e->resumed && e->path != NULL) {
        sx_buf_printf(line, "Resuming from %s.\n", e->path);
    }
    if (e->total_steps > 0) {
        sx_buf_printf(line, "Training for %" PRId64 " step%s", e->total_steps,
                      e->total_steps == 1 ? "" : "s");
    } else {
        sx_buf_puts(line, "Training until the data ends");
    }
    if (e->epochs > 0) {
        sx_buf_printf(line, " (%" PRId64 " epoch%s in total)", e->epochs,
                      e->epochs == 1 ? "" : "s");
    }
    sx_buf_printf(line, ". Current step %" PRId64 ".", e->step);
    if (e->text != NULL) {
        sx_buf_printf(line, "\n%c%s.", toupper((unsigned char)e->text[0]), e->text + 1);
    }
    print_line(r, line);
}

static void tell_compile(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    wipe(r);
    sx_buf_printf(line, "compiling the %s program for batch size %" PRId64 " on %s", e->text,
                  e->batch, e->device);
    sx_waiting_begin(&r->compiling, &r->terminal, sx_buf_text(line));
}

static void tell_compiled(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    r->compiled++;
    r->from_cache += e->from_cache;
    if (sx_waiting_end(&r->compiling)) {
        sx_buf_printf(line, "compiled in %.1f s", e->seconds);
        print_line(r, line);
    }
    sx_log(SX_LOG_DEBUG, "%s the %s program for batch size %" PRId64 " in %.3f s",
           e->from_cache ? "loaded from the cache" : "compiled", e->text, e->batch, e->seconds);
}

/* The pieces of the progress line. If the line does not fit, pieces are omitted, highest rank
 * first: the bar, rates, other metrics than the loss, the epoch, the number of steps in total, the
 * loss, the step. The remaining time (rank 0) is always shown. */
typedef struct piece {
    sx_buf text;
    int rank; /* -1 = omitted */
} piece;

enum { MAX_PIECES = 8 + SX_MAX_RESULTS };

static void draw_progress(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    piece pieces[MAX_PIECES];
    enum { STEP = 1, LOSS, TOTAL, EPOCH, METRICS, RATE = 98, INPUT, BAR }; /* ranks */
    int n = 0;
    for (int i = 0; i < MAX_PIECES; i++) {
        pieces[i].rank = 0;
        sx_buf_init(&pieces[i].text, 1 << 12);
    }
    if (e->epochs > 0 || e->epoch > 0) {
        put_epoch(&pieces[n].text, e);
        pieces[n++].rank = EPOCH;
    }
    put_step(&pieces[n].text, e);
    pieces[n++].rank = e->total_steps > 0 ? TOTAL : STEP;
    if (e->total_steps > 0) {
        sx_put_bar(&pieces[n].text, &r->terminal, (double)e->step / (double)e->total_steps,
                   BAR_COLUMNS);
        pieces[n++].rank = BAR;
    }
    for (int i = 0; i < e->n_metrics && i < SX_MAX_RESULTS; i++) { /* the loss is the first */
        put_metric(&pieces[n].text, &e->metrics[i]);
        pieces[n++].rank = i == 0 ? LOSS : METRICS + i;
    }
    if (e->examples_per_second > 0) {
        put_rate(&pieces[n].text, r, e);
        pieces[n++].rank = RATE;
        put_input(&pieces[n].text, e);
        pieces[n++].rank = INPUT;
    }
    if (e->eta_seconds >= 0) {
        put_eta(&pieces[n].text, e);
        pieces[n++].rank = 0;
    }
    for (int weakest = 0; weakest >= 0;) {
        weakest = -1;
        sx_buf_reset(line);
        for (int i = 0; i < n; i++) {
            if (pieces[i].rank >= 0) {
                sx_buf_printf(line, "%s%s", line->size > 0 ? "  " : "",
                              sx_buf_text(&pieces[i].text));
                bool goes = pieces[i].rank > (weakest < 0 ? 0 : pieces[weakest].rank);
                weakest = goes ? i : weakest;
            }
        }
        if (sx_terminal_columns(sx_buf_text(line)) < sx_terminal_width(&r->terminal)) {
            break;
        }
        if (weakest >= 0 && pieces[weakest].rank == TOTAL) { /* "step 144/960" to "step 144" */
            sx_buf_reset(&pieces[weakest].text);
            sx_buf_printf(&pieces[weakest].text, "step %" PRId64, e->step);
            pieces[weakest].rank = STEP;
        } else if (weakest >= 0) {
            pieces[weakest].rank = -1;
        }
    }
    sx_terminal_overwrite(&r->terminal, sx_buf_text(line));
    r->drawn = true;
    for (int i = 0; i < MAX_PIECES; i++) {
        sx_buf_deinit(&pieces[i].text);
    }
}

/* Whether the line may be drawn again: not more often than can be seen. */
static bool is_due(sx_report *r)
{
    const int64_t now_ns = sx_now_ns();
    if (now_ns < r->draw_again_at_ns) {
        return false;
    }
    r->draw_again_at_ns = now_ns + DRAW_NS;
    return true;
}

static void tell_progress(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (r->terminal.is_tty) {
        if (is_due(r)) {
            draw_progress(r, e, line);
        }
    } else if (e->at_cadence) {
        put_place(line, e);
        put_metrics(line, e);
        put_rates(line, r, e);
        print_line(r, line);
    }
}

/* On a terminal, the line of a finished epoch is kept. */
static void tell_epoch(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (r->terminal.is_tty) {
        put_place(line, e);
        put_metrics(line, e);
        sx_buf_printf(line, "  %.1f s", e->seconds);
        print_line(r, line);
    }
}

static void tell_checkpoint(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (!r->terminal.is_tty) {
        sx_buf_printf(line, "Saved %s.", e->path);
        print_line(r, line);
    }
}

static void tell_eval_begin(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    (void)line;
    r->eval_examples = e->examples;
    r->draw_again_at_ns = 0;
}

static void tell_eval_progress(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (!r->terminal.is_tty || !is_due(r)) {
        return;
    }
    sx_buf_printf(line, "evaluating  %" PRId64, e->examples);
    if (r->eval_examples > 0) {
        sx_buf_printf(line, "/%" PRId64 "  ", r->eval_examples);
        sx_put_bar(line, &r->terminal, (double)e->examples / (double)r->eval_examples, BAR_COLUMNS);
    }
    sx_terminal_overwrite(&r->terminal, sx_buf_text(line));
    r->drawn = true;
}

static void tell_eval(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    sx_buf_printf(line, "Eval results at step %" PRId64 ": ", e->step);
    sx_put_results(line, e->metrics, e->n_metrics);
    sx_buf_puts(line, e->is_best ? " (best so far)" : "");
    if (e->eval_steps > 0) {
        sx_buf_puts(line, "; ");
        sx_put_scored(line, e->examples, e->available, e->eval_steps);
    }
    print_line(r, line);
}

static void tell_warning(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    (void)line;
    wipe(r);
    sx_log(SX_LOG_WARN, "%s", e->text);
}

/* The command's error message reports it. */
static void tell_nonfinite(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    (void)e;
    (void)line;
    wipe(r);
}

static void put_times(sx_buf *out, const sx_report *r, const sx_train_event *e)
{
    double all = e->compile_seconds + e->train_seconds + e->eval_seconds + e->save_seconds;
    bool cached = r->compiled > 0 && r->from_cache == r->compiled;
    sx_buf_printf(out,
                  "Elapsed %.2f s: compile %.2f s%s, train %.2f s, evaluate %.2f s, save %.2f s.",
                  all, e->compile_seconds, cached ? " (from the cache)" : "", e->train_seconds,
                  e->eval_seconds, e->save_seconds);
}

static void tell_end(sx_report *r, const sx_train_event *e, sx_buf *line)
{
    if (strcmp(e->text, "already finished") == 0) {
        sx_buf_printf(line,
                      "This run has already finished: it is at step %" PRId64
                      ". To continue, raise --epochs or --max-steps, or give --steps; to start "
                      "over, use --fresh.",
                      e->step);
        print_line(r, line);
        return;
    }
    if (e->n_metrics > 0) {
        sx_buf_printf(line, "Loss for final step: %.6g.\n", e->metrics[0].value);
    }
    if (strcmp(e->text, "stopped") == 0) {
        sx_buf_printf(line, "Stopped at step %" PRId64 "%s%s.\n", e->step,
                      r->rerun != NULL ? "; " : "", r->rerun != NULL ? r->rerun : "");
    } else {
        sx_buf_printf(line, "Done at step %" PRId64 " (%s).\n", e->step, e->text);
    }
    put_times(line, r, e);
    print_line(r, line);
}

/* ---- One JSON object for each event ---- */

typedef struct event_row {
    const char *name; /* of the kind, in --json-log */
    tell_fn *tell;
} event_row;

static const event_row events[] = {
    [SX_EVENT_BEGIN] = {"begin", tell_begin},
    [SX_EVENT_COMPILE_BEGIN] = {"compile_begin", tell_compile},
    [SX_EVENT_COMPILE_END] = {"compile_end", tell_compiled},
    [SX_EVENT_PROGRESS] = {"progress", tell_progress},
    [SX_EVENT_EPOCH] = {"epoch", tell_epoch},
    [SX_EVENT_CHECKPOINT] = {"checkpoint", tell_checkpoint},
    [SX_EVENT_EVAL_BEGIN] = {"eval_begin", tell_eval_begin},
    [SX_EVENT_EVAL_PROGRESS] = {"eval_progress", tell_eval_progress},
    [SX_EVENT_EVAL] = {"eval", tell_eval},
    [SX_EVENT_WARNING] = {"warning", tell_warning},
    [SX_EVENT_NONFINITE] = {"nonfinite", tell_nonfinite},
    [SX_EVENT_END] = {"end", tell_end},
};

#define NUMBER(field)                           \
    {                                           \
#field, offsetof(sx_train_event, field) \
    }
typedef struct json_field {
    const char *name;
    size_t offset;
} json_field;

/* Written if not 0; `step` always. */
static const json_field counts[] = {
    NUMBER(step),          NUMBER(total_steps),     NUMBER(epoch), NUMBER(epochs),
    NUMBER(step_in_epoch), NUMBER(steps_per_epoch), NUMBER(batch), NUMBER(examples),
    NUMBER(available),     NUMBER(eval_steps),
};
static const json_field reals[] = {
    NUMBER(examples_per_second), NUMBER(steps_per_second),
    NUMBER(input_wait),          NUMBER(seconds),
    NUMBER(compile_seconds),     NUMBER(train_seconds),
    NUMBER(eval_seconds),        NUMBER(save_seconds),
};

static void add_numbers(json_t *object, const sx_train_event *e)
{
    for (size_t i = 0; i < SX_COUNT(counts); i++) {
        int64_t value = *(const int64_t *)((const char *)e + counts[i].offset);
        if (value != 0 || i == 0) {
            json_object_set_new(object, counts[i].name, json_integer(value));
        }
    }
    for (size_t i = 0; i < SX_COUNT(reals); i++) {
        double value = *(const double *)((const char *)e + reals[i].offset);
        if (value != 0) {
            json_object_set_new(object, reals[i].name, json_real(value));
        }
    }
}

/* NaN and infinities become null, because json_real returns NULL for them. */
static json_t *metrics_object(const sx_train_event *e)
{
    json_t *metrics = json_object();
    for (int i = 0; i < e->n_metrics; i++) {
        json_t *value = json_real(e->metrics[i].value);
        json_object_set_new(metrics, e->metrics[i].name, value != NULL ? value : json_null());
    }
    return metrics;
}

static void print_json(sx_report *r, const sx_train_event *e)
{
    json_t *object = json_object();
    json_object_set_new(object, "event", json_string(events[e->kind].name));
    json_object_set_new(object, "time", json_real(sx_wall_seconds()));
    add_numbers(object, e);
    if (e->n_metrics > 0) {
        json_object_set_new(object, "metrics", metrics_object(e));
    }
    if (e->eta_seconds > 0) {
        json_object_set_new(object, "eta_seconds", json_real(e->eta_seconds));
    }
    if (e->path != NULL) {
        json_object_set_new(object, "path", json_string(e->path));
    }
    if (e->text != NULL) {
        json_object_set_new(object, "text", json_string(e->text));
    }
    if (e->device != NULL) {
        json_object_set_new(object, "device", json_string(e->device));
    }
    if (e->kind == SX_EVENT_COMPILE_END) {
        json_object_set_new(object, "from_cache", json_boolean(e->from_cache));
    }
    if (e->kind == SX_EVENT_EVAL) {
        json_object_set_new(object, "best", json_boolean(e->is_best));
    }
    char *text = NULL;
    sx_status status = sx_json_text(object, JSON_COMPACT | JSON_ENSURE_ASCII, &text);
    json_decref(object);
    if (status == SX_OK) {
        fprintf(r->terminal.stream, "%s\n", text);
        fflush(r->terminal.stream);
    }
    sx_status_free(status);
    sx_free(text);
}

void sx_report_event(void *user, const sx_train_event *e)
{
    sx_report *r = user;
    if (r->json) {
        if (e->kind != SX_EVENT_EVAL_PROGRESS && (e->kind != SX_EVENT_PROGRESS || e->at_cadence)) {
            print_json(r, e);
        }
        return;
    }
    if (r->quiet && e->kind != SX_EVENT_WARNING) {
        return;
    }
    sx_buf line;
    sx_buf_init(&line, 1 << 16);
    events[e->kind].tell(r, e, &line);
    sx_buf_deinit(&line);
}

void sx_report_end(sx_report *r)
{
    sx_waiting_end(&r->compiling);
}
