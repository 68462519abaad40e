/* See gather.h. */
#include "train/gather.h"

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ir.h"

/* ---- Creation ---- */

static bool passes_through(const sx_batch_gather *g)
{
    return g->n == 1 && g->pulls == 1;
}

/* Sets steps_per_epoch (the longest feed's) and max_batch (the sum of the feeds' batches). */
static sx_status measure(sx_batch_gather *g)
{
    for (int i = 0; i < g->n; i++) {
        int64_t steps = (g->feeds[i].steps_per_epoch + g->pulls - 1) / g->pulls;
        int64_t rows;
        if ((steps == 0) != (g->feeds[0].steps_per_epoch == 0)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the input function returned both finite and endless data");
        }
        if (!sx_mul_i64(g->feeds[i].max_batch, g->pulls, &rows) ||
            !sx_add_i64(g->max_batch, rows, &g->max_batch)) {
            return sx_no_memory("for the input");
        }
        g->steps_per_epoch = SX_MAX(g->steps_per_epoch, steps);
    }
    return SX_OK;
}

sx_status sx_batch_gather_init(sx_batch_gather *g, const sx_run_info *info, sx_dataset *const *data,
                               int n, int pulls, const sx_feed_args *args)
{
    *g = (sx_batch_gather){.pulls = pulls, .feeds = sx_alloc((size_t)n, sizeof(sx_feed))};
    sx_status status = g->feeds != NULL ? SX_OK : sx_no_memory("for the input");
    while (status == SX_OK && g->n < n) {
        status = sx_feed_init(&g->feeds[g->n], info, data[g->n], args);
        g->n += status == SX_OK;
    }
    if (status == SX_OK) {
        status = measure(g);
    }
    if (status == SX_OK && !passes_through(g)) {
        status = sx_feed_rows_init(&g->rows, &g->feeds[0], g->max_batch);
    }
    if (status != SX_OK) {
        sx_batch_gather_deinit(g);
    }
    return status;
}

sx_status sx_batch_gather_borrow(sx_batch_gather *g, const sx_run_info *info, sx_iterator *iterator,
                                 const sx_feed_args *args)
{
    *g = (sx_batch_gather){.pulls = 1, .feeds = sx_alloc(1, sizeof(sx_feed))};
    sx_status status = g->feeds != NULL ? sx_feed_borrow(&g->feeds[0], info, iterator, args)
                                        : sx_no_memory("for the input");
    g->n = status == SX_OK;
    if (status == SX_OK) {
        status = measure(g);
    }
    if (status != SX_OK) {
        sx_batch_gather_deinit(g);
    }
    return status;
}

void sx_batch_gather_deinit(sx_batch_gather *g)
{
    for (int i = 0; i < g->n; i++) {
        sx_feed_deinit(&g->feeds[i]);
    }
    sx_free(g->feeds);
    sx_feed_rows_deinit(&g->rows);
    *g = (sx_batch_gather){0};
}

/* ---- Running ---- */

/* Whether feed i has a batch in this step of the epoch. */
static bool has_step(const sx_batch_gather *g, int i)
{
    int64_t batches = g->feeds[i].steps_per_epoch;
    return batches == 0 || g->step_in_epoch * g->pulls < batches;
}

/* Adds one feed's batches for this step to the *size rows; fewer at the end of its epoch or data.
 */
static sx_status pull(sx_batch_gather *g, sx_feed *feed, int64_t *size)
{
    for (int k = 0; k < g->pulls; k++) {
        sx_feed_batch batch;
        sx_status status = sx_feed_next(feed, &batch);
        if (sx_status_code(status) == SX_OUT_OF_RANGE && *size > 0) {
            sx_status_free(status);
            return SX_OK;
        }
        SX_TRY(status);
        sx_feed_rows_put(&g->rows, *size, &batch, 0, batch.size);
        *size += batch.size;
        if (batch.ends_epoch) {
            break;
        }
    }
    return SX_OK;
}

static void end_step(sx_batch_gather *g, sx_feed_batch *batch)
{
    g->step_in_epoch++;
    if (g->steps_per_epoch > 0 && g->step_in_epoch >= g->steps_per_epoch) {
        g->step_in_epoch = 0;
        batch->ends_epoch = true;
    }
}

sx_status sx_batch_gather_next(sx_batch_gather *g, sx_feed_batch *out_batch)
{
    if (passes_through(g)) {
        return sx_feed_next(&g->feeds[0], out_batch);
    }
    int64_t size = 0;
    uint8_t before[SX_MAX_INPUTS * SX_CURSOR_BYTES];
    sx_batch_gather_save(g, before);
    for (int i = 0; i < g->n; i++) {
        sx_status status = has_step(g, i) ? pull(g, &g->feeds[i], &size) : SX_OK;
        if (status != SX_OK) { /* the feeds stay at one step, where the run can be saved */
            sx_status_free(sx_batch_gather_restore(g, before, g->n, g->step_in_epoch));
            return status;
        }
    }
    *out_batch = sx_feed_rows_batch(&g->rows, size);
    end_step(g, out_batch);
    return SX_OK;
}

/* ---- Position in the data ---- */

void sx_batch_gather_save(const sx_batch_gather *g, uint8_t *cursors)
{
    for (int i = 0; i < g->n; i++) {
        sx_iterator_save(g->feeds[i].iterator, cursors + (size_t)i * SX_CURSOR_BYTES);
    }
}

sx_status sx_batch_gather_restore(sx_batch_gather *g, const uint8_t *cursors, int count,
                                  int64_t step_in_epoch)
{
    if (count != g->n) {
        return sx_error(SX_FAILED_PRECONDITION, "the data had %d parts, now it has %d", count,
                        g->n);
    }
    for (int i = 0; i < g->n; i++) {
        SX_TRY(sx_iterator_restore(g->feeds[i].iterator, cursors + (size_t)i * SX_CURSOR_BYTES));
    }
    g->step_in_epoch = step_in_epoch;
    return SX_OK;
}

/* The number of a feed's batches before step `step`. */
static int64_t batches_before(const sx_batch_gather *g, const sx_feed *feed, int64_t step)
{
    if (g->steps_per_epoch == 0) {
        return step * g->pulls;
    }
    int64_t epochs = step / g->steps_per_epoch, rest = step % g->steps_per_epoch;
    return epochs * feed->steps_per_epoch + SX_MIN(rest * g->pulls, feed->steps_per_epoch);
}

sx_status sx_batch_gather_seek(sx_batch_gather *g, int64_t step)
{
    for (int i = 0; i < g->n; i++) {
        sx_feed *feed = &g->feeds[i];
        SX_TRY(sx_iterator_seek(feed->iterator, batches_before(g, feed, step)));
    }
    g->step_in_epoch = g->steps_per_epoch > 0 ? step % g->steps_per_epoch : 0;
    return SX_OK;
}

int64_t sx_batch_gather_waited(const sx_batch_gather *g)
{
    int64_t waited = 0;
    for (int i = 0; i < g->n; i++) {
        sx_iterator_stats stats;
        sx_iterator_get_stats(g->feeds[i].iterator, &stats);
        waited += stats.wait_ns;
    }
    return waited;
}
