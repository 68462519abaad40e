/* What to do with a directory that is of another kind than a command takes. */
#ifndef SX_CLI_DIR_HINT_H
#define SX_CLI_DIR_HINT_H

#include "base/arena.h"

typedef enum sx_dir_wanted { SX_WANTED_ANY, SX_WANTED_RUN, SX_WANTED_SAVED_MODEL } sx_dir_wanted;

/* Adds to an error about `dir` what the directory is and which command or which directory to use
 * instead: a SavedModel, a run, a directory of versions, or of some that are wanted. Takes the
 * status and returns it, or a longer one of the same code. INVALID_ARGUMENT: it is a model of
 * another format (other_model.h). */
SX_MUST_USE sx_status sx_dir_explain(sx_status status, sx_arena *arena, const char *dir,
                                     sx_dir_wanted wanted);

/* sx_version_find(), whose error says what to use instead if `path` is of another kind. */
SX_MUST_USE sx_status sx_dir_find_saved_model(sx_arena *arena, const char *path,
                                              const char **out_dir);

#endif
