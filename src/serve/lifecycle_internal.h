/* Shared by lifecycle.c, lifecycle_watch.c and lifecycle_load.c: the table of versions, and the
 * servables. */
#ifndef SX_SERVE_LIFECYCLE_INTERNAL_H
#define SX_SERVE_LIFECYCLE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/timed_call.h"
#include "savedmodel/versions.h"
#include "serve/lifecycle.h"

/* A run of a version; in the list of its servable, so that the end of a drain can stop it. */
struct sx_served_run {
    sx_cancel cancel;
    struct sx_served_run *next, **link;
};

struct sx_served {
    atomic_int users;
    sx_lifecycle *lifecycle;
    int64_t version;
    int source; /* lifecycle->source when it was loaded */
    void *model;
    const sx_serve_signature *signatures;
    size_t signature_count;
    sx_batch_line **lines; /* [signature_count]; NULL: there is no batcher */
    sx_served_pace pace;
    size_t bytes; /* taken of the residency */
    atomic_uint_fast64_t requests, failed;
    sx_rate rate;
    sx_latency latency;
    struct sx_served *next;     /* in one of lifecycle's lists */
    struct sx_served_run *runs; /* guarded by the lifecycle's mutex, as are the fields below */
    int64_t drain_until_ns;     /* in lifecycle->draining */
    bool stopped;               /* the drain's time is over: its runs end */
};

/* The state of one version. */
struct sx_version_row {
    int64_t version;
    sx_version_state state;
    sx_code code;
    char *message; /* heap; NULL = "" */
    uint64_t fingerprint;
    uint64_t file_bytes;         /* at that fingerprint */
    size_t loaded_bytes;         /* when it was loaded last; 0: unknown */
    int64_t stable_since_ns;     /* the fingerprint has not changed since, */
    int64_t unstable_since_ns;   /* and has changed again and again since this moment before it */
    uint64_t failed_fingerprint; /* of the files that failed to load; 0 = none */
    uint64_t failed_with;        /* hash of that error's message */
    int failures;
    int64_t retry_at_ns;
    bool settled;             /* the fingerprint did not change for settle_ms */
    bool settles_slowly;      /* has been logged */
    int64_t look_again_at_ns; /* of one that settles slowly */
    sx_timed_call *hung;      /* an abandoned call: the version is not touched until it returns */
};

struct sx_lifecycle {
    sx_lifecycle_config config;
    sx_model_metrics metrics;
    char *name;
    pthread_t thread;
    bool started;
    int wake_fd, inotify_fd;
    atomic_bool stopping;
    sx_resident resident;
    atomic_bool leave; /* asked to make room for others */

    /* Used only by the lifecycle's thread. */
    char *base_path;
    sx_version_policy policy;
    int source; /* counts the base paths so far */
    int watch;
    int64_t outage_since_ns;     /* 0: something is served, or never was */
    sx_timed_call *hung_listing; /* abandoned; nothing is listed until it returns */
    int64_t remind_at_ns;        /* when to log again why nothing is served */
    bool said_too_many, said_hung;
    uint64_t said_path;           /* hash of the error of the base path that was logged last, */
    int64_t say_path_again_at_ns; /* and when to log the same one again */
    int failed_again, gave_up;    /* versions with the error that is logged already */
    int64_t say_again_at_ns;      /* when to log how many */
    bool left_behind;             /* a thread is still in an abandoned call */

    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t changed;
    struct sx_version_row *rows; /* highest version first */
    size_t row_count, row_capacity;
    char *next_base_path; /* of sx_lifecycle_set_source(); NULL = none */
    sx_version_policy next_policy;
    bool closed;
    sx_served *served;   /* highest version first */
    sx_served *draining; /* retired, still in use */
    sx_served *idle;     /* retired and unused: to be unloaded */
    bool tried;          /* the latest scan has ended, with nothing to wait for */
    /* With a residency: */
    bool loadable;        /* a version is there to be loaded at a request */
    bool demanded;        /* by a request; until it leaves */
    int attempts;         /* to load what was demanded, that have ended */
    int waiting;          /* requests */
    sx_awaited *awaiting; /* those of them that are to be woken, oldest first */
    sx_awaited **awaiting_end;
    int64_t used_ns;    /* by the latest request */
    sx_code path_code;  /* of the latest listing; OK once one of its versions has a row */
    char *path_message; /* heap */
    char *path_advice;  /* heap; NULL = "": advice for the user */
};

/* ---- With the mutex held ---- */

/* The versions, or their states, have changed: for those who wait for that. */
void sx_lifecycle_changed(sx_lifecycle *lc);
/* NULL if unknown. */
struct sx_version_row *sx_lifecycle_find_row(sx_lifecycle *lc, int64_t version);
/* Inserted if it is new; NULL if out of memory. */
struct sx_version_row *sx_lifecycle_need_row(sx_lifecycle *lc, int64_t version);
void sx_lifecycle_set_state(struct sx_version_row *row, sx_version_state state, sx_code code,
                            const char *message);
/* Removes the rows of versions that were never served and whose directories no longer exist or are
 * below `floor`, and of all but the latest unloaded versions, so that the number of rows is
 * bounded, not counting hung calls. */
void sx_lifecycle_forget_rows(sx_lifecycle *lc, const sx_version *found, size_t count,
                              int64_t floor);
/* The servable that answers for a version; NULL: it is not served. The lifecycle's thread, which
 * alone changes the list, need not hold the mutex. */
sx_served *sx_lifecycle_find_served(sx_lifecycle *lc, int64_t version);

/* ---- On the lifecycle's thread, without it ---- */

/* The version's lines of the batcher, if there is one. */
SX_MUST_USE sx_status sx_lifecycle_add_lines(sx_lifecycle *lc, sx_served *servable);
void sx_lifecycle_remove_lines(sx_served *servable);
/* Serves a loaded version; another one with its number is retired. */
void sx_lifecycle_add(sx_lifecycle *lc, sx_served *servable);
/* No request gets this version any more; running ones finish on it. */
void sx_lifecycle_retire(sx_lifecycle *lc, sx_served *servable);
void sx_lifecycle_retire_all(sx_lifecycle *lc);
/* Unloads retired versions without users, and stops the runs of those that drain for too long. */
void sx_lifecycle_unload_idle(sx_lifecycle *lc);
/* Unloads one that has never been served; NULL is allowed. */
void sx_lifecycle_discard(sx_served *servable);
/* Retires everything, if others need the room and no request uses it. */
void sx_lifecycle_leave_if_asked(sx_lifecycle *lc);
/* When the next drain's time is over; INT64_MAX: there is none. */
int64_t sx_lifecycle_drain_until(sx_lifecycle *lc);
/* Begins with the source that sx_lifecycle_set_source() has set, if any. */
void sx_lifecycle_take_source(sx_lifecycle *lc);
/* Releases a call; if it has not returned, its thread is left behind. NULL is allowed. */
void sx_lifecycle_give_up(sx_lifecycle *lc, sx_timed_call *call);
/* Sleeps until the thread is woken, `fd` (negative: none) is readable, or so many milliseconds have
 * passed (negative: for ever). Requests that wait for a version are looked at meanwhile: some may
 * have to stop. */
void sx_lifecycle_sleep(sx_lifecycle *lc, int fd, int64_t wait_ms);
/* Waits for a call to return and unloads idle versions meanwhile; false when the deadline has
 * passed, or a second after the lifecycle was told to stop. */
bool sx_lifecycle_wait_for_call(sx_lifecycle *lc, sx_timed_call *call, double timeout_seconds);
/* Ends the version with an error, which is logged unless the version failed with it before: those
 * are counted. Each retry waits twice as long as the one before. `hung`, if not NULL, is an
 * abandoned call, which the row keeps. Takes the status. */
void sx_lifecycle_note_failure(sx_lifecycle *lc, int64_t version, sx_status status,
                               sx_timed_call *hung);
/* What a version will hold, or probably: its files, and as much again of what is made of them. */
size_t sx_lifecycle_expected_bytes(sx_lifecycle *lc, int64_t version);
/* Loads and serves the version in `dir`; false after an error, which is recorded. */
bool sx_lifecycle_load(sx_lifecycle *lc, int64_t version, const char *dir);

#endif
