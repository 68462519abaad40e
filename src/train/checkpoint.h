/* A training checkpoint: every variable of a session under its TF1 name, an object graph over the
 * same bytes, and what an exact continuation needs in addition:
 *
 *   _sextant/cursor            uint8 [40n]  the position in the data: n of sx_iterator_save
 *   _sextant/numerics          string []    everything that results depend on bit by bit
 *   _sextant/progress          string []    JSON: the epoch, its running sums, saves so far
 *   _sextant/callbacks/<name>  uint8 [n]    a callback's state
 *
 * Invariants: non-finite values are never saved; a bundle that exists is complete. */
#ifndef SX_TRAIN_CHECKPOINT_H
#define SX_TRAIN_CHECKPOINT_H

#include <sextant/train.h>

#include "base/arena.h"
#include "checkpoint/bundle.h"
#include "runtime/session.h"
#include "train/input_plan.h"

/* Progress within an epoch: sums over its steps so far, for the running means. */
typedef struct sx_progress {
    int64_t epochs_done, step_in_epoch, examples; /* of this epoch */
    int64_t examples_in_all;
    double weight; /* Σ of the weights of this epoch's examples; without weights, examples */
    int n_sums;
    double sums[SX_MAX_RESULTS]; /* loss, metrics: Σ mean × weight of the batch */
    bool eval_due;               /* a regular evaluation follows this checkpoint */
    bool data_ended;             /* the cursor stands at the end of finite data */
    int64_t saves;               /* this one included */
} sx_progress;

typedef struct sx_train_state {
    int n_cursors; /* 0 = the position is unknown */
    uint8_t cursors[SX_MAX_INPUTS * SX_CURSOR_BYTES];
    const char *numerics; /* never NULL once read */
    sx_progress progress;
} sx_train_state;

/* What a checkpoint has beside the variables. */
typedef struct sx_checkpoint_contents {
    const sx_train_state *state;
    const sx_callback *callbacks;
    int n_callbacks;
} sx_checkpoint_contents;

/* One tensor of a checkpoint; its bytes are at `at` of the snapshot's. */
typedef struct sx_snapshot_item {
    const char *key;
    sx_type type;
    size_t at;
} sx_snapshot_item;

/* A checkpoint before it is written: copies of everything, on the host. {0} is empty. */
typedef struct sx_snapshot {
    sx_arena arena;          /* keys and texts */
    sx_snapshot_item *items; /* [n]: [n_variables], then cursors, then states of callbacks */
    int n, n_variables, n_cursors;
    char *data; /* [room]; kept for the next */
    size_t room;
    const char *numerics, *progress;
    int64_t saves;
} sx_snapshot;

/* Copies the session's variables, and the contents. DATA_LOSS: a variable has a non-finite value
 * (it is named). */
SX_MUST_USE sx_status sx_snapshot_take(sx_snapshot *s, sx_session *session,
                                       const sx_checkpoint_contents *contents);
/* Writes it as `prefix`, whose directory must exist. From any thread. */
SX_MUST_USE sx_status sx_snapshot_write(const sx_snapshot *s, const char *prefix);
void sx_snapshot_deinit(sx_snapshot *s);
/* Both, at once. */
SX_MUST_USE sx_status sx_checkpoint_save(sx_session *session, const char *prefix,
                                         const sx_checkpoint_contents *contents);

/* Loads the session's variables, starting at index `first`. FAILED_PRECONDITION: a variable is
 * missing or has another shape. */
SX_MUST_USE sx_status sx_checkpoint_load(sx_session *session, const char *prefix, int first);
/* Loads variable i alone, by its name in the bundle. Same errors. */
SX_MUST_USE sx_status sx_checkpoint_load_variable(sx_session *session, const sx_bundle *bundle,
                                                  int i);
/* Loads everything else; strings live in `arena`. What the checkpoint of another program lacks
 * stays empty; callback states of unexpected size are ignored. */
SX_MUST_USE sx_status sx_checkpoint_load_state(const char *prefix, sx_arena *arena,
                                               sx_train_state *out_state,
                                               const sx_callback *callbacks, int n_callbacks);

/* Links (or copies) the checkpoint's files into `dir`; they appear there all at once. */
SX_MUST_USE sx_status sx_checkpoint_keep(const char *prefix, const char *dir);
/* Deletes the checkpoints of other steps from `dir`. */
SX_MUST_USE sx_status sx_checkpoint_keep_only(const char *dir, int64_t step);

#endif
