/* The history of a run, history.json: its training metrics at the ends of epochs, at evaluations
 * and at the end of training, and its evaluations. It outlives restarts, so that "best" means the
 * best of the whole run, and callbacks of a resumed run see the evaluations that they had already
 * seen.
 *
 *   {"best": {"step": 960, "val_loss": 0.31},
 *    "history": [{"epoch": 1, "step": 480, "loss": 0.52, "accuracy": 0.81, "val_loss": 0.44,
 *                 "val_accuracy": 0.87, "val_examples": 500}, …],             ascending steps
 *    "crc32c": "…"}
 *
 * The names are Keras': "loss" and the metrics are means over the epoch so far, "val_…" are of the
 * evaluation at that step, if there was one. The file is written before each checkpoint, so a
 * checkpoint's history is never older than the checkpoint; a resumed run drops the entries that
 * follow its checkpoint, and the entry of its own step if that was the end of a fit in the middle
 * of an epoch. It has a copy (train/backup.h). */
#ifndef SX_TRAIN_HISTORY_H
#define SX_TRAIN_HISTORY_H

#include <sextant/train.h>

#include "base/arena.h"
#include "train/backup.h"

#define SX_HISTORY_FILE "history.json"

/* The most entries of a history. A run goes on after that: every second entry of the older half is
 * dropped, but for the best evaluation. */
enum { SX_HISTORY_ENTRIES = 1 << 16 };

typedef struct sx_history_entry {
    int64_t step, epoch; /* epoch from 1; 0 = unknown */
    int n_metrics;       /* of training, "loss" first; 0 = none */
    sx_metric metrics[SX_MAX_RESULTS];
    bool evaluated;
    sx_eval_result eval;
} sx_history_entry;

typedef struct sx_history {
    sx_arena arena; /* names */
    const char *names[2 * SX_MAX_RESULTS];
    int n_names;
    sx_history_entry *items; /* by step, ascending */
    size_t count, capacity;
    int64_t best_step; /* -1 = none yet */
    double best_loss;
    bool changed; /* since it was loaded or saved */
    bool thinned; /* entries were dropped, to stay below SX_HISTORY_ENTRIES */
} sx_history;

void sx_history_init(sx_history *history);
void sx_history_deinit(sx_history *history);

/* Reads dir/history.json into an empty history; a missing file is an empty one. `warn` as in
 * sx_backup_file. DATA_LOSS: the file and its copy are damaged; the history stays empty. */
SX_MUST_USE sx_status sx_history_load(sx_history *history, const char *dir, sx_warn_fn *warn,
                                      void *warn_user);
SX_MUST_USE sx_status sx_history_save(sx_history *history, const char *dir);
/* Makes the file and its copy equal again; if both are damaged, renames the file to
 * history.json.damaged. The caller holds the lock of `dir`. */
SX_MUST_USE sx_status sx_history_repair(const char *dir, sx_warn_fn *warn, void *warn_user);

/* The evaluation at that step, or NULL. */
const sx_eval_result *sx_history_find(const sx_history *history, int64_t step);
/* Adds or replaces the evaluation of its step. *out_is_best: its loss is the lowest so far. */
SX_MUST_USE sx_status sx_history_put(sx_history *history, const sx_eval_result *result,
                                     bool *out_is_best);
/* Adds the training metrics of a step, unless it has some. */
SX_MUST_USE sx_status sx_history_put_training(sx_history *history, int64_t step, int64_t epoch,
                                              const sx_metric *metrics, int n_metrics);
/* Drops the entry of a step, unless it has an evaluation: the end of an earlier fit in the middle
 * of an epoch that goes on now. */
void sx_history_drop_training(sx_history *history, int64_t step);
/* Drops the entries after that step; the best evaluation stays. */
void sx_history_cut(sx_history *history, int64_t step);

#endif
