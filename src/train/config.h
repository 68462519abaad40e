/* The run's configuration: defaults, checks, JSON. One row for each field. */
#ifndef SX_TRAIN_CONFIG_H
#define SX_TRAIN_CONFIG_H

#include <jansson.h>

#include <sextant/train.h>

#include "base/arena.h"

/* A copy with the defaults filled in and texts in `arena`. INVALID_ARGUMENT names the field. */
SX_MUST_USE sx_status sx_run_config_resolve(const sx_run_config *config, sx_arena *arena,
                                            sx_run_config *out);

/* The fields by name, without what belongs to the process (observer, stop, fresh). */
SX_MUST_USE sx_status sx_run_config_to_json(const sx_run_config *config, json_t **out_json);

#endif
