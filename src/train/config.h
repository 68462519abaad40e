/* The run's configuration: defaults, checks, JSON. */
#ifndef SX_TRAIN_CONFIG_H
#define SX_TRAIN_CONFIG_H

#include <jansson.h>

#include <sextant/train.h>

#include "base/arena.h"

/* Copies with defaults filled in and strings in `arena`. INVALID_ARGUMENT names the field. */
SX_MUST_USE sx_status sx_run_config_resolve(const sx_run_config *config, sx_arena *arena,
                                            sx_run_config *out);

/* Iterates over the fields of a resolved configuration that are set but have no effect: returns
 * name and reason. *i starts at 0; false at the end. */
bool sx_run_config_next_ignored(const sx_run_config *config, size_t *i, const char **out_name,
                                const char **out_why);

/* The fields by name, except those of the process (observer, stop, fresh). */
SX_MUST_USE sx_status sx_run_config_to_json(const sx_run_config *config, json_t **out_json);

#endif
