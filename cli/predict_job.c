/* See predict_job.h. */
#include "predict_job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "io/dir_lock.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"

enum { EXAMPLES_PER_SHARD = 1000, DEFAULT_SHARDS = 1000, MAX_JOB_BYTES = 1 << 20 };

static const char *const job_name = "job.json";

/* ---- job.json ---- */

static sx_status read_job(const char *path, json_t **out)
{
    char *text = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read(path, MAX_JOB_BYTES, &text, &size));
    json_t *job = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    sx_free(text);
    sx_status status = sx_json_check_seal(job);
    if (status != SX_OK) {
        json_decref(job);
        return sx_status_annotate(status, __FILE__, __LINE__,
                                  "%s is damaged; remove its directory to begin again", path);
    }
    *out = job;
    return SX_OK;
}

static sx_status write_job(const char *path, const json_t *settings, int64_t shards)
{
    char *text = NULL;
    json_t *job = json_deep_copy(settings);
    if (job == NULL || json_object_set_new(job, "shards", json_integer(shards)) != 0) {
        json_decref(job);
        return sx_no_memory("for %s", path);
    }
    sx_status status = sx_json_seal(job);
    if (status == SX_OK) {
        status = sx_json_text(job, JSON_INDENT(2), &text);
    }
    json_decref(job);
    if (status == SX_OK) {
        status = sx_commit_bytes(path, text, strlen(text));
    }
    sx_free(text);
    return status;
}

/* Compares what the user wants with the job that the directory has. */
static sx_status check_settings(const char *dir, const json_t *job, const json_t *settings)
{
    const char *key;
    json_t *wanted;
    json_object_foreach((json_t *)settings, key, wanted)
    {
        const json_t *is = json_object_get(job, key);
        if (json_equal(is, wanted)) {
            continue;
        }
        char *is_text = NULL, *wanted_text = NULL;
        sx_status status = is != NULL ? sx_json_text(is, JSON_ENCODE_ANY, &is_text) : SX_OK;
        if (status == SX_OK) {
            status = sx_json_text(wanted, JSON_ENCODE_ANY, &wanted_text);
        }
        if (status == SX_OK) {
            status = sx_error(SX_FAILED_PRECONDITION,
                              "%s has predictions of another job: its %s is %s, not %s; write to "
                              "another directory, or remove this one",
                              dir, key, is_text != NULL ? is_text : "not set", wanted_text);
        }
        sx_free(is_text);
        sx_free(wanted_text);
        return status;
    }
    return SX_OK;
}

static sx_status check_empty(const char *dir)
{
    sx_paths names = {0};
    SX_TRY(sx_dir_list(dir, &names));
    sx_status status =
        names.count == 0
            ? SX_OK
            : sx_error(SX_FAILED_PRECONDITION,
                       "%s is not empty and not a job of predictions (\"%s\" is there, but no "
                       "%s); give another directory as --out",
                       dir, names.items[0], job_name);
    sx_paths_deinit(&names);
    return status;
}

/* With the directory locked. */
static sx_status begin_or_continue(sx_predict_job *job, const char *path, const json_t *settings,
                                   int64_t shards)
{
    if (!sx_path_exists(path)) {
        SX_TRY(check_empty(job->dir));
        job->shards =
            shards > 0 ? shards
                       : SX_MIN((job->count - 1) / EXAMPLES_PER_SHARD + 1, (int64_t)DEFAULT_SHARDS);
        return write_job(path, settings, job->shards);
    }
    json_t *is = NULL;
    SX_TRY(read_job(path, &is));
    sx_status status = check_settings(job->dir, is, settings);
    job->shards = json_integer_value(json_object_get(is, "shards"));
    json_decref(is);
    SX_TRY(status);
    if (job->shards < 1 || job->shards > SX_PREDICT_JOB_SHARDS) {
        return sx_error(SX_DATA_LOSS, "%s: expected 1 to %d \"shards\"", path,
                        (int)SX_PREDICT_JOB_SHARDS);
    }
    return shards == 0 || shards == job->shards
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "%s has predictions in %lld shards, not %lld; leave out --shards to "
                          "continue them",
                          job->dir, (long long)job->shards, (long long)shards);
}

/* Waits for the others that open the job at the same time. */
static sx_status lock_dir(const char *dir, int *out_lock)
{
    enum { PAUSE_MS = 20, TRIES = 500 };
    for (int i = 0;; i++) {
        sx_status status = sx_dir_lock(dir, out_lock);
        if (sx_status_code(status) != SX_FAILED_PRECONDITION || i == TRIES) {
            return status;
        }
        sx_status_free(status);
        sx_sleep_ns(PAUSE_MS * 1000000);
    }
}

sx_status sx_predict_job_open(const char *dir, const json_t *settings, int64_t shards,
                              int64_t count, sx_predict_job *out_job)
{
    *out_job = (sx_predict_job){.dir = dir, .count = count, .fd = -1};
    char *path = NULL;
    int lock = SX_NO_LOCK;
    SX_TRY(sx_dir_create(dir));
    SX_TRY(lock_dir(dir, &lock));
    sx_status status = sx_path_join(dir, job_name, &path);
    if (status == SX_OK) { /* of processes that were killed */
        status = sx_commit_sweep(dir);
    }
    if (status == SX_OK) {
        status = begin_or_continue(out_job, path, settings, shards);
    }
    sx_dir_unlock(lock);
    if (status == SX_OK) {
        out_job->fd = open(path, O_RDWR | O_CLOEXEC);
        status = out_job->fd < 0 ? sx_errno_status(errno, "open", path) : SX_OK;
    }
    sx_free(path);
    return status;
}

void sx_predict_job_close(sx_predict_job *job)
{
    if (job->fd >= 0) {
        (void)close(job->fd);
    }
    job->fd = -1;
}

/* ---- Shards ---- */

void sx_predict_job_range(const sx_predict_job *job, int64_t shard, int64_t *out_begin,
                          int64_t *out_end)
{
    const int64_t each = job->count / job->shards, more = job->count % job->shards;
    *out_begin = each * shard + SX_MIN(shard, more);
    *out_end = *out_begin + each + (shard < more ? 1 : 0);
}

const char *sx_predict_job_path(const sx_predict_job *job, const char *what, int64_t shard,
                                sx_arena *arena)
{
    return sx_arena_printf(arena, "%s/prediction.%s-%05lld-of-%05lld", job->dir, what,
                           (long long)shard, (long long)job->shards);
}

static sx_status is_complete(const sx_predict_job *job, int64_t shard, bool *out)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    const char *path = sx_predict_job_path(job, "results", shard, &arena);
    *out = path != NULL && sx_path_exists(path);
    sx_status status = path == NULL ? sx_no_memory("for a path") : SX_OK;
    sx_arena_deinit(&arena);
    return status;
}

static int set_lock(const sx_predict_job *job, short type, int64_t shard)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = shard, .l_len = 1};
    return fcntl(job->fd, F_OFD_SETLK, &lock);
}

sx_status sx_predict_job_take(sx_predict_job *job, int64_t *shard)
{
    for (int64_t k = *shard; k < job->shards; k++) {
        bool complete = false;
        SX_TRY(is_complete(job, k, &complete));
        if (complete) {
            continue;
        }
        /* a file system without locks (ENOLCK, EINVAL) has one process's jobs only */
        if (set_lock(job, F_WRLCK, k) != 0 && (errno == EAGAIN || errno == EACCES)) {
            continue;
        }
        SX_TRY(is_complete(job, k, &complete)); /* meanwhile, by the one that held the lock */
        if (!complete) {
            *shard = k;
            return SX_OK;
        }
        sx_predict_job_release(job, k);
    }
    *shard = -1;
    return SX_OK;
}

void sx_predict_job_release(sx_predict_job *job, int64_t shard)
{
    (void)set_lock(job, F_UNLCK, shard);
}

sx_status sx_predict_job_done(const sx_predict_job *job, int64_t *out_shards, int64_t *out_examples)
{
    *out_shards = *out_examples = 0;
    for (int64_t k = 0; k < job->shards; k++) {
        bool complete = false;
        int64_t begin, end;
        SX_TRY(is_complete(job, k, &complete));
        sx_predict_job_range(job, k, &begin, &end);
        *out_shards += complete;
        *out_examples += complete ? end - begin : 0;
    }
    return SX_OK;
}
