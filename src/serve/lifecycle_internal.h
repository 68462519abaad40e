/* Shared by lifecycle.c and lifecycle_watch.c: the table of versions, and the servables. */
#ifndef SX_SERVE_LIFECYCLE_INTERNAL_H
#define SX_SERVE_LIFECYCLE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/timed_call.h"
#include "savedmodel/versions.h"
#include "serve/lifecycle.h"

struct sx_served {
    atomic_int users;
    sx_lifecycle *lifecycle;
    int64_t version;
    void *model;
    const sx_serve_signature *signatures;
    size_t signature_count;
    struct sx_served *next_idle; /* in lifecycle->idle */
};

/* The state of one version. */
struct sx_version_row {
    int64_t version;
    sx_version_state state;
    sx_code code;
    char *message; /* heap; NULL = "" */
    uint64_t fingerprint;
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
    char *name, *base_path;
    pthread_t thread;
    bool started;
    int wake_fd, inotify_fd;
    atomic_bool stopping;

    /* Used only by the manager thread. */
    int watch;
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
    sx_served *current;
    sx_served *idle;    /* retired and unused: to be unloaded */
    bool tried;         /* the latest scan has ended, with nothing to wait for */
    sx_code path_code;  /* of the latest listing; OK once one of its versions has a row */
    char *path_message; /* heap */
    char *path_advice;  /* heap; NULL = "": advice for the user */
};

/* ---- With the mutex held ---- */

/* NULL if unknown. */
struct sx_version_row *sx_lifecycle_find_row(sx_lifecycle *lc, int64_t version);
/* Inserted if it is new; NULL if out of memory. */
struct sx_version_row *sx_lifecycle_need_row(sx_lifecycle *lc, int64_t version);
void sx_lifecycle_set_state(struct sx_version_row *row, sx_version_state state, sx_code code,
                            const char *message);
/* Removes the rows of versions that were never served and whose directories no longer exist or are
 * below the current version, and of all but the latest unloaded versions, so that the number of
 * rows is bounded, not counting hung calls. */
void sx_lifecycle_forget_rows(sx_lifecycle *lc, const sx_version *found, size_t count);

/* ---- On the manager thread, without it ---- */

int64_t sx_lifecycle_current(sx_lifecycle *lc); /* the served version; -1: none */
/* Makes `next` current (NULL: none) and retires the previous one; running requests finish on it. */
void sx_lifecycle_swap_in(sx_lifecycle *lc, sx_served *next);
/* Unloads retired versions without users. */
void sx_lifecycle_unload_idle(sx_lifecycle *lc);
/* Releases a call; if it has not returned, its thread is left behind. NULL is allowed. */
void sx_lifecycle_give_up(sx_lifecycle *lc, sx_timed_call *call);

#endif
