/* The strategy of a configuration: given, or made from its device fields. */
#ifndef SX_TRAIN_CHOOSE_STRATEGY_H
#define SX_TRAIN_CHOOSE_STRATEGY_H

#include <sextant/train.h>

/* Returns the strategy; the caller releases it. `config` is the user's own. INVALID_ARGUMENT: it
 * has both a strategy and device fields. Also the errors of creating a strategy. */
SX_MUST_USE sx_status sx_choose_strategy(const sx_run_config *config, sx_strategy **out_strategy);

/* Stores the strategy in `config` and sets the device fields to describe it: the device as text,
 * the number of replicas, batch norm. The owner of `config` releases the strategy. */
void sx_settle_strategy(sx_run_config *config, sx_strategy *strategy);

/* The number of replicas that share a training batch: the strategy's, else the fields'; at least 1.
 */
int sx_run_config_replicas(const sx_run_config *config);
/* The number of replicas in `mode`; evaluation may have a strategy of its own. */
int sx_run_config_replicas_of(const sx_run_config *config, sx_mode mode);

#endif
