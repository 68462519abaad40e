/* A run's directory: everything that training writes and evaluation, export and later training
 * need.
 *
 *   run1/sextant.json                 what the run is (sx_run_info), written once, after the graphs
 *   run1/graphs/{train,eval,predict}.graph   canonical text, symbolic batch
 *   run1/graphs/preprocess.graph      the same, of a model with preprocessing of its own
 *   run1/checkpoint, model.ckpt-N.*   train/checkpoint.h
 *   run1/history.json                 metrics and evaluations, train/history.h
 *   run1/best/model.ckpt-N.*          the best checkpoint, safe from retention
 *   run1/.backup/                     copies of the first files and of history.json,
 *                                     train/backup.h
 *
 * A directory holds a run when it has sextant.json or its copy. All files appear whole or not at
 * all. */
#ifndef SX_TRAIN_RUN_DIR_H
#define SX_TRAIN_RUN_DIR_H

#include <jansson.h>

#include <sextant/train.h>

#include "base/arena.h"
#include "checkpoint/checkpoint_state.h"
#include "image/preprocess.h"
#include "nn/model_inputs.h"
#include "train/backup.h"

/* The newest format of sextant.json: 2 has named inputs, 3 preprocessing of them or an image among
 * them, 4 labels that preprocessing changes; a run is written in the oldest that can hold it. */
enum { SX_RUN_FORMAT = 4 };

/* The graphs of a run: three programs by sx_mode, and the preprocessing of named inputs (nn/
 * preprocess_graph.h), NULL if the model has none. Owned by whoever loaded or built them. */
enum { SX_RUN_PREPROCESS = SX_PREDICT + 1, SX_RUN_GRAPHS };
typedef struct sx_run_graphs {
    sx_graph *by_mode[SX_RUN_GRAPHS];
    sx_status lost[SX_RUN_GRAPHS]; /* why a graph could not be read */
} sx_run_graphs;

void sx_run_graphs_destroy(sx_run_graphs *graphs);

/* sextant.json. Texts live in the arena that it was read into, or are the writer's. */
typedef struct sx_run_info {
    const char *model;         /* its name */
    const char *source;        /* "zoo", "function", or the path of the .c */
    const char *source_sha256; /* 64 hex digits of that file; NULL if it is none */
    const char *const *param_names, *const *param_values; /* [n_params], sorted as given */
    int n_params;
    uint64_t seed;
    double learning_rate; /* of the optimizer, before it is scaled; 0 = not recorded */
    bool has_preprocess;  /* the model's input is made from encoded images or uint8 pixels */
    sx_preprocess preprocess;
    const char *const *class_names; /* [n_classes] or NULL */
    int n_classes;
    sx_model_inputs declared;     /* of the data; the same as `inputs` without preprocessing */
    sx_model_inputs inputs;       /* of the programs */
    bool has_program;             /* preprocessing of the model's own turns one into the other */
    sx_dtype precision;           /* what the graphs' layers compute in: SX_F32 or SX_BF16 */
    const char *data;             /* the value of --data; may be NULL */
    const char *data_description; /* sx_data_open's; may be NULL */
    const char *image_key, *label_key; /* the record features requested; NULL = detected */
    int label_base;
    int64_t records;         /* in the training data */
    int64_t execution_batch; /* of evaluation and prediction */
    int64_t train_batch;     /* examples per step, as sx_run_read() finds it; 0 = not recorded */
    json_t *config;          /* the RunConfig's fields by name; may be NULL; borrowed */
    const char *graph_crc32c[SX_RUN_GRAPHS]; /* set by sx_run_read(); NULL = not recorded */
} sx_run_info;

/* Whether `dir` holds a run. */
bool sx_run_exists(const char *dir);

/* OK if a run may be started in `dir`: it is missing, is empty except for hidden files, or holds a
 * run or the remains of one. Else FAILED_PRECONDITION, naming the first files. */
SX_MUST_USE sx_status sx_run_check_place(const char *dir);

/* Creates the directory and writes the run's files and their copies, replacing existing ones. */
SX_MUST_USE sx_status sx_run_write(const char *dir, const sx_run_info *info,
                                   const sx_run_graphs *graphs);

/* Reads sextant.json; out_info->config is NULL. A damaged file is read from its copy, and `warn`
 * (NULL = the log) is told. NOT_FOUND: no run in `dir`; FAILED_PRECONDITION: it and its copy are
 * missing, but there are checkpoints; DATA_LOSS: both are damaged; UNIMPLEMENTED: the format of a
 * later version. */
SX_MUST_USE sx_status sx_run_read(const char *dir, sx_arena *arena, sx_warn_fn *warn,
                                  void *warn_user, sx_run_info *out_info);

/* OK where a run may begin; FAILED_PRECONDITION if there are checkpoints without sextant.json,
 * which says how to use them. */
SX_MUST_USE sx_status sx_run_check_new(const char *dir);

/* Reads the graphs, damaged ones from their copies. A graph whose file and copy are missing
 * or damaged is NULL, and sx_run_graph_lost() has its error: it stops only what needs this graph.
 * Errors name the file: INVALID_ARGUMENT: inputs that a run does not feed
 * (sx_program_check_inputs), or types that differ from `info`. */
SX_MUST_USE sx_status sx_run_read_graphs(const char *dir, const sx_run_info *info, sx_warn_fn *warn,
                                         void *warn_user, sx_run_graphs *out_graphs);

/* OK, or why that graph (of a mode, or the preprocessing) could not be read: NOT_FOUND; DATA_LOSS.
 */
SX_MUST_USE sx_status sx_run_graph_lost(const sx_run_graphs *graphs, int which);

/* Restores damaged files from their copies, and missing or damaged copies from the files. The
 * caller holds the lock of `dir`. Errors: as above; those of writing. */
SX_MUST_USE sx_status sx_run_repair(const char *dir, sx_warn_fn *warn, void *warn_user);

/* OK if both graphs have the same variables; else FAILED_PRECONDITION naming `dir`, the first
 * differing variable and both shapes (in the order of `wanted`). */
SX_MUST_USE sx_status sx_run_check_variables(const char *dir, const sx_graph *stored,
                                             const sx_graph *wanted);

/* Removes what a killed process left in `dir`, whose lock the caller holds: temporaries, halves of
 * checkpoints, checkpoints beyond `retention`, and in best/ all but `best_step` (-1: unknown). */
SX_MUST_USE sx_status sx_run_clean_up(const char *dir, int64_t best_step,
                                      const sx_checkpoint_retention *retention);

/* Deletes the run's files, and nothing else, from `dir`. */
SX_MUST_USE sx_status sx_run_delete(const char *dir);

#endif
