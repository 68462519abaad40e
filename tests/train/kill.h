/* Runs that are killed: each attempt is a child process on the same model-dir, until one finishes.
 */
#ifndef SX_TESTS_TRAIN_KILL_H
#define SX_TESTS_TRAIN_KILL_H

#include "child.h"
#include "run.h"

#include <fts.h>

#include "io/failpoint.h"

enum { KILL_STEPS = 3 * STEPS_PER_EPOCH };

/* What the last attempt leaves for the parent to read. */
static inline uint64_t finish(sx_trainer *t)
{
    assert_int_equal(sx_trainer_step(t), KILL_STEPS);
    return hash_variables(t);
}

static inline uint64_t train_all(const char *dir, bool evaluate)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.save_checkpoints_secs = 0;
    config.save_checkpoints_steps = 2;
    config.steps_per_eval = 5;
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, KILL_STEPS, evaluate);
    if (status != SX_OK) {
        print_error("%s\n", sx_status_message(status));
        exit(2);
    }
    uint64_t hash = finish(t);
    sx_trainer_destroy(t);
    return hash;
}

typedef struct attempt {
    void (*arm)(long);
    long argument;
    const char *dir;
} attempt;

static inline uint64_t make_attempt(void *user)
{
    const attempt *a = user;
    a->arm(a->argument);
    return train_all(a->dir, true);
}

/* Trains in a child; true when it finished, and then its hash. */
static inline bool run_child(void (*arm)(long), long argument, const char *dir, uint64_t *out_hash)
{
    attempt a = {arm, argument, dir};
    return finishes_in_child(make_attempt, &a, out_hash);
}

#define kill_test(f) in_memory_test(f)

static inline int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The names of all files below a folder, hidden ones included, sorted, one a line. */
static inline void list_files(const char *dir, char *out, size_t size)
{
    char root[600];
    char *const roots[] = {root, NULL};
    size_t used = 0;
    snprintf(root, sizeof(root), "%s", dir);
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, by_name);
    assert_non_null(tree);
    for (FTSENT *e = fts_read(tree); e != NULL; e = fts_read(tree)) {
        if (e->fts_info != FTS_D && e->fts_info != FTS_DP) {
            used += (size_t)snprintf(out + used, size - used, "%s\n", e->fts_path + strlen(dir));
            assert_true(used < size);
        }
    }
    fts_close(tree);
}

/* What a finished run has on disk and that must not depend on how it got there: the history to the
 * byte, the copies of the files that have one, and the same files, no litter among them. */
static inline void assert_same_folder(const char *a, const char *b)
{
    char *text = NULL;
    size_t size = 0;
    char path[700], files_a[8192], files_b[8192];
    snprintf(path, sizeof(path), "%s/history.json", a);
    assert_ok(sx_file_read(path, 1 << 20, &text, &size));
    snprintf(path, sizeof(path), "%s/history.json", b);
    assert_file(path, text, size);
    sx_free(text);
    static const char *const copied[][2] = {
        {"sextant.json", ".backup/sextant.json"},
        {"history.json", ".backup/history.json"},
        {"graphs/train.graph", ".backup/train.graph"},
        {"graphs/eval.graph", ".backup/eval.graph"},
        {"graphs/predict.graph", ".backup/predict.graph"},
    };
    for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", b, copied[i][0]);
        assert_ok(sx_file_read(path, 1 << 20, &text, &size));
        snprintf(path, sizeof(path), "%s/%s", b, copied[i][1]);
        assert_file(path, text, size);
        sx_free(text);
    }
    list_files(a, files_a, sizeof(files_a));
    list_files(b, files_b, sizeof(files_b));
    assert_string_equal(files_b, files_a);
}

#endif
