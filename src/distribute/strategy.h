/* The implementation of strategies: from the user's options (of a configuration, the command line
 * or a constructor, in one struct) to the options of a session.
 *
 *   wish --check--> spec, numbers --TPU: find it--> --open the plugin, count--> strategy
 *
 * A strategy that uses a plugin keeps its client open, so that a session need not start it again.
 * Immutable, refcounted, thread-safe. */
#ifndef SX_DISTRIBUTE_STRATEGY_H
#define SX_DISTRIBUTE_STRATEGY_H

#include <sextant/distribute.h>

#include "base/buffer.h"
#include "distribute/processes.h"
#include "runtime/session.h"

typedef enum sx_strategy_kind {
    SX_STRATEGY_AS_SAID = 0, /* one device, unless the options ask for more */
    SX_STRATEGY_ONE_DEVICE,
    SX_STRATEGY_MIRRORED,
    SX_STRATEGY_TPU,
    SX_STRATEGY_CENTRAL_STORAGE,
    SX_STRATEGY_PLACED,
} sx_strategy_kind;

typedef struct sx_strategy_wish {
    sx_strategy_kind kind;
    sx_strategy_args args;
    /* Of a TPU; all NULL = search. If any is set, the device is `tpu`. */
    const char *tpu, *zone, *project, *master;
    /* TF_CONFIG may name several processes, if `args` name none. */
    bool from_environment;
    bool one_core;       /* AS_SAID: of a TPU one core, not all, unless the options ask for more */
    sx_buf *explanation; /* receives the explanation, also on failure; may be NULL */
} sx_strategy_wish;

/* The kind of a name, as sx_strategy_name() gives it; NULL is AS_SAID. INVALID_ARGUMENT: none. */
SX_MUST_USE sx_status sx_strategy_kind_of(const char *name, sx_strategy_kind *out);
/* See sx_one_device_strategy(). Does not keep references to `wish`. */
SX_MUST_USE sx_status sx_strategy_create(const sx_strategy_wish *wish, sx_strategy **out_strategy);
/* One device, for `what` ("a SavedModel"). INVALID_ARGUMENT: the name is of several. */
SX_MUST_USE sx_status sx_strategy_of_one(const sx_strategy_args *args, const char *what,
                                         sx_strategy **out_strategy);

/* INVALID_ARGUMENT: so many shards, 0 = not given, cannot be divided equally among the strategy's
 * replicas or virtual devices. */
SX_MUST_USE sx_status sx_strategy_check_shards(const sx_strategy *strategy, int shards);
/* Sets the options that a strategy determines: the device, its plugin and replicas, and, unless
 * given, the shards: one for each virtual device of cpu. Strings are owned by the strategy. Errors:
 * those of sx_strategy_check_shards(). */
SX_MUST_USE sx_status sx_strategy_apply(const sx_strategy *strategy, sx_session_options *options);

/* The processes that share its batches; NULL: this one alone. Borrowed. */
sx_processes *sx_strategy_processes(const sx_strategy *strategy);
/* The same for a session whose programs run in slots (session.h): each replica is a device of its
 * own, which computes whole pieces, so that they do not change a bit. So are virtual devices of
 * cpu, where threads take what there is. */
SX_MUST_USE sx_status sx_strategy_apply_apart(const sx_strategy *strategy,
                                              sx_session_options *options);

/* The parts of a training batch that follow one another through the devices; 0 = none. */
int sx_strategy_micro_batches(const sx_strategy *strategy);
/* The device name, "cpu", "pjrt:cpu"; borrowed. */
const char *sx_strategy_device(const sx_strategy *strategy);
/* "sync" or "replica"; static. */
const char *sx_strategy_batch_norm(const sx_strategy *strategy);

#endif
