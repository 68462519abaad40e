/* What lifecycle.c and lifecycle_watch.c share: the table of versions, and the servables. */
#ifndef SX_SERVE_LIFECYCLE_INTERNAL_H
#define SX_SERVE_LIFECYCLE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "savedmodel/versions.h"
#include "serve/lifecycle.h"
#include "serve/timed_call.h"

struct sx_served {
    atomic_int users;
    sx_lifecycle *lifecycle;
    int64_t version;
    void *model;
    const sx_serve_signature *signatures;
    size_t signature_count;
    struct sx_served *next_idle; /* in lifecycle->idle */
};

/* What is known about one version. */
struct sx_version_row {
    int64_t version;
    sx_version_state state;
    sx_code code;
    char *message; /* heap; NULL = "" */
    uint64_t fingerprint;
    int64_t stable_since_ns;     /* the fingerprint has not changed since, */
    int64_t unstable_since_ns;   /* and has changed again and again since this moment before it */
    uint64_t failed_fingerprint; /* that did not load; 0 = none */
    int failures;
    int64_t retry_at_ns;
    bool settles_slowly; /* that was logged */
    sx_timed_call *hung; /* a call that was given up: the version is left alone until it returns */
};

struct sx_lifecycle {
    sx_lifecycle_config config;
    char *name, *base_path;
    pthread_t thread;
    bool started;
    int wake_fd, inotify_fd;
    atomic_bool stopping;

    /* The manager's own. */
    int watch;
    sx_timed_call *hung_listing; /* given up; nothing is listed until it returns */
    int hung;                    /* rows with a hung call */
    int64_t remind_at_ns;        /* when to say again why nothing is served */
    bool said_too_many, said_hung;
    bool left_behind; /* a thread, in a call that was given up */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct sx_version_row *rows; /* highest version first */
    size_t row_count, row_capacity;
    sx_served *current;
    sx_served *idle;    /* retired and without users: to be unloaded */
    bool tried;         /* the latest look has come to an end, with nothing left to wait for */
    sx_code path_code;  /* of the latest listing; OK once a version in it has a row */
    char *path_message; /* heap */
    char *path_advice;  /* heap; NULL = "": what to do about it */
};

/* ---- With the mutex held ---- */

/* NULL: not known. */
struct sx_version_row *sx_lifecycle_find_row(sx_lifecycle *lc, int64_t version);
/* Made in its place if it is new; NULL when out of memory. */
struct sx_version_row *sx_lifecycle_need_row(sx_lifecycle *lc, int64_t version);
void sx_lifecycle_set_state(struct sx_version_row *row, sx_version_state state, sx_code code,
                            const char *message);
/* Forgets versions that were never served and whose directories are gone, or lie below the current
 * version, and all but the latest of those that were unloaded. So there are no more rows than
 * directories and a few, but for calls that hang. */
void sx_lifecycle_forget_rows(sx_lifecycle *lc, const sx_version *found, size_t count);

/* ---- On the manager thread, without it ---- */

int64_t sx_lifecycle_current(sx_lifecycle *lc); /* the version that is served; -1: none */
/* Makes `next` current (NULL: none) and retires the one before; its requests finish on it. */
void sx_lifecycle_swap_in(sx_lifecycle *lc, sx_served *next);
/* Unloads what is retired and has no users. */
void sx_lifecycle_unload_idle(sx_lifecycle *lc);
/* Lets go of a call; if it has not returned, its thread is left behind. NULL is fine. */
void sx_lifecycle_give_up(sx_lifecycle *lc, sx_timed_call *call);

#endif
