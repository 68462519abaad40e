/* The evaluations of a run and the best of them: history.json. It survives restarts, so "best"
 * means the best of the whole run, and a resumed run can replay to its callbacks what they had
 * seen.
 *
 *   {"best": {"step": 960, "loss": 0.31}, "evaluations": [{"step": 480, "examples": 500, "loss": …,
 *    "metrics": {"accuracy": 0.93}}, …]}                                    ascending steps */
#ifndef SX_TRAIN_HISTORY_H
#define SX_TRAIN_HISTORY_H

#include <sextant/train.h>

#include "base/arena.h"

typedef struct sx_history {
    sx_arena arena; /* names */
    sx_eval_result *items;
    size_t count, capacity;
    int64_t best_step; /* -1 = none yet */
    double best_loss;
} sx_history;

void sx_history_init(sx_history *history);
void sx_history_deinit(sx_history *history);

/* Reads dir/history.json; if it is missing, the history is empty. DATA_LOSS: it is corrupt. */
SX_MUST_USE sx_status sx_history_load(sx_history *history, const char *dir);
SX_MUST_USE sx_status sx_history_save(const sx_history *history, const char *dir);

/* The evaluation at that step, or NULL. */
const sx_eval_result *sx_history_find(const sx_history *history, int64_t step);
/* Adds or replaces the evaluation of its step. *out_is_best: its loss is the lowest so far. */
SX_MUST_USE sx_status sx_history_put(sx_history *history, const sx_eval_result *result,
                                     bool *out_is_best);

#endif
