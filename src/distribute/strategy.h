/* The inside of a strategy: from what a user said (a configuration's fields, the command line's
 * options, a constructor's arguments: one struct for all) to what a session is opened with.
 *
 *   wish --check--> spec, numbers --TPU: find it--> --open the plugin, count--> strategy
 *
 * A strategy over a plugin keeps its client open, so that opening a session does not start it
 * again. Immutable once made; counted; may be used from several threads. */
#ifndef SX_DISTRIBUTE_STRATEGY_H
#define SX_DISTRIBUTE_STRATEGY_H

#include <sextant/distribute.h>

#include "base/buffer.h"
#include "runtime/session.h"

typedef enum sx_strategy_kind {
    SX_STRATEGY_AS_SAID = 0, /* one device, unless the options make more of it */
    SX_STRATEGY_ONE_DEVICE,
    SX_STRATEGY_MIRRORED,
    SX_STRATEGY_TPU,
} sx_strategy_kind;

typedef struct sx_strategy_wish {
    sx_strategy_kind kind;
    sx_strategy_args args;
    /* Of a TPU; all NULL = look around. Any of them makes `tpu` the device. */
    const char *tpu, *zone, *project, *master;
    sx_buf *explanation; /* gets the explanation, also on failure; NULL = nobody wants it */
} sx_strategy_wish;

/* See sx_one_device_strategy(). Copies what it keeps. */
SX_MUST_USE sx_status sx_strategy_create(const sx_strategy_wish *wish, sx_strategy **out_strategy);

/* Sets what a strategy decides: the device, its plugin and replicas; over virtual devices of cpu,
 * the shards. The rest stays. The texts are the strategy's. INVALID_ARGUMENT: another number of
 * shards is asked for. */
SX_MUST_USE sx_status sx_strategy_apply(const sx_strategy *strategy, sx_session_options *options);

/* The device as text, "cpu", "pjrt:cpu"; borrowed. */
const char *sx_strategy_device(const sx_strategy *strategy);
/* "sync" or "replica"; static. */
const char *sx_strategy_batch_norm(const sx_strategy *strategy);

#endif
