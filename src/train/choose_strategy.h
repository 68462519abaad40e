/* Where a configuration says to compute: its strategy, or one of its device fields. */
#ifndef SX_TRAIN_CHOOSE_STRATEGY_H
#define SX_TRAIN_CHOOSE_STRATEGY_H

#include <sextant/train.h>

/* The strategy, held for the caller. `config` is as the user made it: INVALID_ARGUMENT if it names
 * both a strategy and devices; else the errors of making one. */
SX_MUST_USE sx_status sx_choose_strategy(const sx_run_config *config, sx_strategy **out_strategy);

/* Puts a strategy in the place of the device fields, which then say what came of it: the device as
 * text, the number of replicas, the batch norm. Whoever owns `config` holds the strategy. */
void sx_settle_strategy(sx_run_config *config, sx_strategy *strategy);

/* The replicas that share a training batch: the strategy's, else as the fields say; at least 1. */
int sx_run_config_replicas(const sx_run_config *config);
/* The replicas of a mode: evaluation may have a strategy of its own. */
int sx_run_config_replicas_of(const sx_run_config *config, sx_mode mode);

#endif
