/* What the processes of a run share: a key-value store, kept by the chief, process 0. It also knows
 * who has come, who is alive, and why the run has failed.
 *
 *   request    VERB PROCESS A B KEY_BYTES\n KEY VALUE         the rest is the value
 *   answer     CODE\n VALUE, or the text of an error; of UNAVAILABLE, the run's failure:
 *              PROCESS SAID_BYTES\n TEXT, which ends with what the process itself has said
 *
 *   JOIN    A processes are expected; VALUE says who it is    when all have come
 *   WATCH   A: whether a stop is wanted here                  within a second: "", and then again
 *   PUT     A: readers after which it is dropped; 0 = never   at once
 *   GET     A: milliseconds to wait; 0 = NOT_FOUND at once    when the key is there
 *   MEET    A: milliseconds to wait                           when all have come to KEY
 *   FAIL    VALUE: what went wrong                            soon: the failure of the run
 *   LEAVE   A: it was asked to stop, which ends the run       at once
 *
 * All but JOIN are for processes that have joined. Until all have, one that leaves may come again.
 * A process is lost when its WATCH is cut off, or no request of it has come for `lost_ms`. The
 * first failure of the run, a loss before what the others say of it, is the answer to all requests
 * that wait and to all later ones: UNAVAILABLE. Requests are untrusted bytes: keys, values and
 * numbers have limits (fuzz_store). Thread-safe. */
#ifndef SX_DISTRIBUTE_STORE_H
#define SX_DISTRIBUTE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

enum {
    SX_MAX_PROCESSES = 1024,
    SX_NO_PROCESS = SX_MAX_PROCESSES, /* of a failure: of none alone */
    SX_STORE_KEY_BYTES = 4096,
    SX_STORE_VALUE_BYTES = 16 << 20,
    SX_STORE_BYTES = 256 << 20, /* of all keys and values */
    SX_STORE_WATCH_MS = 1000,
};

typedef enum sx_store_verb {
    SX_STORE_JOIN,
    SX_STORE_WATCH,
    SX_STORE_PUT,
    SX_STORE_GET,
    SX_STORE_MEET,
    SX_STORE_FAIL,
    SX_STORE_LEAVE,
    SX_STORE_VERBS
} sx_store_verb;

typedef struct sx_store_request {
    sx_store_verb verb;
    int process;
    int64_t a, b;
    sx_bytes key, value;
} sx_store_request;

/* INVALID_ARGUMENT: it is none. Its bytes are borrowed. */
SX_MUST_USE sx_status sx_store_parse(sx_bytes text, sx_store_request *out);

/* Why the run has failed. */
typedef struct sx_store_failure {
    int process;       /* that it is of */
    sx_bytes text;     /* names it */
    size_t said_bytes; /* the end of the text: what it said itself; 0 = others found out */
} sx_store_failure;

/* What an answer UNAVAILABLE says, borrowed. INVALID_ARGUMENT: it is not a store's. */
SX_MUST_USE sx_status sx_store_parse_failure(sx_bytes answer, sx_store_failure *out);
/* What a store keeps of the words of a process that fails. */
sx_bytes sx_store_said(sx_bytes words);

typedef struct sx_store sx_store;

typedef struct sx_store_options {
    int processes;
    int64_t join_ms, lost_ms; /* in which all must have come; in which each must give a sign */
    /* Answers a call, which is no longer used afterwards. Must not call the store. */
    void (*answer)(void *call, sx_code code, sx_bytes body);
    bool (*gone)(void *call); /* nobody waits for the answer any more; NULL = never known */
} sx_store_options;

SX_MUST_USE sx_status sx_store_create(const sx_store_options *options, sx_store **out);
/* Answers all calls that wait, and later ones: process 0 has ended. */
void sx_store_end(sx_store *store);
void sx_store_destroy(sx_store *store); /* nothing waits; NULL is fine */

/* Takes a request: it is answered once, now or later. */
void sx_store_take(sx_store *store, void *call, sx_bytes request);
/* Looks at the clock; to be called several times a second. */
void sx_store_tick(sx_store *store);

/* A process wants the run to stop. */
bool sx_store_stop_wanted(sx_store *store);
/* No process but the first is there any more. */
bool sx_store_is_done(sx_store *store);

#endif
