/* The lifecycle of one model's versions: found on disk, loaded, swapped in, drained, unloaded.
 *
 * A thread for each model watches the base path (inotify, and polling for file systems without
 * events), loads new versions and unloads unused ones; requests and other models never wait for it.
 *
 *   found -> settling -> LOADING -> AVAILABLE -> UNLOADING (draining) -> END
 *                           \-> END with the error; retried, and again when its files change
 *
 * A version settles until its files have not changed for a while.
 *
 * Rules:
 *   - The policy says which versions on disk are wanted: the latest ones, all, or a list. Of the
 *     latest N, the highest N that can be loaded are served.
 *   - Versions that are not wanted serve until as many wanted ones are ready. Where memory does not
 *     suffice for both, `resource_preserving` unloads them first; the outage is logged.
 *   - A version that fails to load never replaces one that is served; lower versions are tried in
 *     its place.
 *   - When a served version's directory is removed, the next lower one takes over; if none is
 *     left, or the base path itself is removed, the loaded ones are still served.
 *   - A request keeps the version it started with; a version is unloaded after its last request.
 *     Requests that run longer than the drain's time are stopped (UNAVAILABLE).
 *   - A load that exceeds its deadline is abandoned, and a directory that does not respond is
 *     skipped; neither delays other versions or the end of the process.
 *   - A version that was never served is forgotten when its directory is removed.
 *   - With a residency, versions are loaded when a request asks for the model (START until then),
 *     and unloaded when others need the room and no request uses it; requests wait meanwhile.
 *
 * Differs from TensorFlow Serving in cases that it handles badly: half-copied versions, one bad
 * version, an empty directory. */
#ifndef SX_SERVE_LIFECYCLE_H
#define SX_SERVE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "serve/batcher.h"
#include "serve/metrics.h"
#include "serve/model.h"
#include "serve/residency.h"
#include "serve/warmup.h"

typedef struct sx_lifecycle sx_lifecycle;
typedef struct sx_served sx_served; /* one loaded version, with a reference count */

/* Which of the versions on disk are wanted: ServableVersionPolicy. Zeros: the latest one. */
typedef struct sx_version_policy {
    enum { SX_VERSIONS_LATEST, SX_VERSIONS_ALL, SX_VERSIONS_SPECIFIC } kind;
    int latest;              /* how many; 0 = 1 */
    const int64_t *specific; /* [specific_count] */
    size_t specific_count;
} sx_version_policy;

/* A zero takes the default in the comment. */
typedef struct sx_lifecycle_config {
    const char *name;              /* of the model; required */
    const char *base_path;         /* required; relative to the working directory of create */
    sx_version_policy policy;      /* copied */
    bool resource_preserving;      /* unload what is not wanted before loading, not after */
    const sx_serve_model_ops *ops; /* required */
    void *ops_user;                /* must outlive the lifecycle and every abandoned load */
    sx_batcher *batcher;           /* through which versions run; NULL: at once. Outlives it */
    sx_residency *residency; /* whose memory it shares; NULL: versions are loaded at once. Outlives
                                it */
    bool warm_up;            /* replay a version's records before it is served: warmup.h */
    sx_warmup_options warmup;
    double poll_wait_seconds;     /* 1; negative: never poll */
    int max_load_retries;         /* 5; negative: none */
    double load_retry_seconds;    /* 60: before the first retry; doubles after each */
    double load_timeout_seconds;  /* 300: a load that takes longer is abandoned */
    double look_timeout_seconds;  /* 30, at most load_timeout_seconds: the same of listing a
                                     directory or reading the times of a version's files */
    double drain_timeout_seconds; /* 60: then the requests of a version that is to be unloaded are
                                     stopped */
    double remind_seconds;        /* 60: how often to log why nothing is served */
    int settle_ms;                /* 100: a new version's files must not change for this long */
    double max_settle_seconds;    /* 10: after this, lower versions are tried while its files still
                                     change */
} sx_lifecycle_config;

/* Errors: INVALID_ARGUMENT (empty name or path), RESOURCE_EXHAUSTED. A missing or empty base path
 * is not an error: it is watched, and the status reports it. */
SX_MUST_USE sx_status sx_lifecycle_create(const sx_lifecycle_config *config, sx_lifecycle **out);
SX_MUST_USE sx_status sx_lifecycle_start(sx_lifecycle *lifecycle);
/* Ends the thread and unloads. No servable may be held any more. Waits up to a second for a running
 * load. False: a load, or a call to a file system that does not respond, is still running on its
 * own thread; since exit()'s handlers would run concurrently with it, the process should end with
 * _exit(). NULL is allowed. */
bool sx_lifecycle_destroy(sx_lifecycle *lifecycle);

const char *sx_lifecycle_name(const sx_lifecycle *lifecycle);
/* The requests of all versions; lives as long as the lifecycle. */
sx_model_metrics *sx_lifecycle_metrics(sx_lifecycle *lifecycle);

/* Other versions are wanted from now on, perhaps of another base path, whose versions are others
 * even if they have the same numbers. The served ones serve until those are ready. */
SX_MUST_USE sx_status sx_lifecycle_set_source(sx_lifecycle *lifecycle, const char *base_path,
                                              const sx_version_policy *policy);
/* No version is wanted any more: those that are served are drained and unloaded, then the thread
 * ends. Requests get NOT_FOUND. */
void sx_lifecycle_close(sx_lifecycle *lifecycle);
/* Whether that has happened; sx_lifecycle_destroy() then does not wait. */
bool sx_lifecycle_closed(sx_lifecycle *lifecycle);

/* Whether a version is being served, or would be at a request. */
bool sx_lifecycle_ready(sx_lifecycle *lifecycle);
/* Whether that is so, or a scan of the base path has found nothing to load or wait for. */
bool sx_lifecycle_is_settled(sx_lifecycle *lifecycle);
/* Waits until it is settled, at most `timeout_ms`; returns whether the model is ready. */
bool sx_lifecycle_wait_ready(sx_lifecycle *lifecycle, int timeout_ms);

enum { SX_LATEST_VERSION = -1 };

/* The version to run a request on; release it afterwards. NOT_FOUND "Servable not found for
 * request: Specific(name, 3)"; UNAVAILABLE if no version is served yet, or the requested one is
 * being loaded. Any thread; never waits for loading. */
SX_MUST_USE sx_status sx_lifecycle_acquire(sx_lifecycle *lifecycle, int64_t version,
                                           sx_served **out_servable);
/* Which version a request gets. */
typedef struct sx_version_choice {
    enum {
        SX_THIS_VERSION,
        SX_THE_CANARY, /* `version`, if it is served; else the newest */
        SX_NO_CANARY,  /* the newest other than `version`, or that, if there is no other */
    } kind;
    int64_t version; /* SX_LATEST_VERSION: the newest */
} sx_version_choice;

/* What a request waits for; `lifecycle` NULL: nothing. */
typedef struct sx_awaited {
    sx_lifecycle *lifecycle;
    sx_version_choice choice;
    /* Set by who waits: */
    const sx_cancel *cancel;                  /* ends the wait; NULL = none */
    void (*wake)(struct sx_awaited *awaited); /* it is over; any thread, with the lifecycle's mutex
                                                 held */
    /* When it is over: */
    sx_status status;
    sx_served *servable;
    /* The lifecycle's: */
    int attempts;
    struct sx_awaited *next;
} sx_awaited;

/* The same of a choice. If the model is to be loaded for it and `out_awaited` is not NULL: OK, no
 * servable, and *out_awaited, which is ended below. */
SX_MUST_USE sx_status sx_lifecycle_choose(sx_lifecycle *lifecycle, sx_version_choice choice,
                                          sx_served **out_servable, sx_awaited *out_awaited);
/* Begins to wait until that is loaded, or cannot be (UNAVAILABLE), or `cancel` says so. True: the
 * wait is over already; else `wake` is called when it is, perhaps before this returns. */
SX_MUST_USE bool sx_lifecycle_await(sx_awaited *awaited);
/* Ends the wait; the lifecycle may go. */
void sx_lifecycle_end_await(sx_awaited *awaited);
void sx_served_release(sx_served *servable);

int64_t sx_served_version(const sx_served *servable);
const char *sx_served_name(const sx_served *servable); /* of the model */
sx_model_metrics *sx_served_metrics(const sx_served *servable);
/* What a front end notes of a version's requests, for itself. */
typedef struct sx_served_pace {
    atomic_int_fast64_t cost_ns; /* of recent requests; 0 = unknown */
    atomic_int_fast64_t read_ns; /* of recent requests, before they run; 0 = unknown */
    atomic_int on_executor;      /* requests that may use the device */
} sx_served_pace;
sx_served_pace *sx_served_pace_of(sx_served *servable);
/* Counts a request that this version has answered. Any thread. */
void sx_served_count(sx_served *servable, bool succeeded, int64_t duration_ns);
/* Borrowed from the servable. */
const sx_serve_signature *sx_served_signatures(const sx_served *servable, size_t *out_count);
/* Runs at once, on its own. UNAVAILABLE if it was stopped because the version is unloaded. */
SX_MUST_USE sx_status sx_served_run(sx_served *servable, const sx_serve_signature *signature,
                                    const sx_tensor *inputs, const sx_cancel *cancel,
                                    sx_arena *arena, sx_tensor *outputs);
/* Whether a call that arrives at that time, of whatever signature, may be answered in time:
 * sx_batch_line_admit. */
SX_MUST_USE sx_status sx_served_admit(const sx_served *servable, const sx_cancel *cancel,
                                      int64_t arrives_ns, bool others_wait);
/* Where calls of a signature wait for their turn; NULL: there is no batcher. */
sx_batch_line *sx_served_line(const sx_served *servable, const sx_serve_signature *signature);

/* The states of TensorFlow Serving's ModelVersionStatus. */
typedef enum sx_version_state {
    SX_VERSION_START = 10,
    SX_VERSION_LOADING = 20,
    SX_VERSION_AVAILABLE = 30,
    SX_VERSION_UNLOADING = 40,
    SX_VERSION_END = 50,
} sx_version_state;

const char *sx_version_state_name(sx_version_state state);
/* What clients are told of a version's status; its own message names paths of the server. */
const char *sx_version_error_text(sx_code code);

typedef struct sx_version_status {
    int64_t version;
    sx_version_state state;
    sx_code code;
    const char *message;
    /* Of a version that is served, since it was loaded: */
    uint64_t requests, failed;
    double per_second;        /* in the last minute */
    double median_ms, p99_ms; /* of those that succeeded */
    size_t memory_bytes;      /* that it holds; 0: unknown */
} sx_version_status;

/* The known versions, highest first, in `arena`; including the latest 32 that were unloaded.
 * NOT_FOUND if there are none: the base path is missing or has no version. */
SX_MUST_USE sx_status sx_lifecycle_status(sx_lifecycle *lifecycle, sx_arena *arena,
                                          sx_version_status **out_rows, size_t *out_count);

#endif
