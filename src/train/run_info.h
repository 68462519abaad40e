/* sextant.json as JSON: what a run is (run_dir.h), without the checksums of its files. */
#ifndef SX_TRAIN_RUN_INFO_H
#define SX_TRAIN_RUN_INFO_H

#include "train/run_dir.h"

#define SX_RUN_INFO_FILE "sextant.json"

/* INVALID_ARGUMENT: a text is not UTF-8. */
SX_MUST_USE sx_status sx_run_info_to_json(const sx_run_info *info, json_t **out);
/* Fills `info`, zeroed, with texts in `arena`. DATA_LOSS: something is missing or wrong;
 * UNIMPLEMENTED: the format of a later version. */
SX_MUST_USE sx_status sx_run_info_from_json(const json_t *json, sx_arena *arena, sx_run_info *info);
/* A string in `arena`; NULL if it is null or missing. */
SX_MUST_USE sx_status sx_run_copy_text(sx_arena *arena, const json_t *json, const char **out);

#endif
