/* The same request again and again, many at once, all on one thread: for load generators. Each is
 * tried once. */
#ifndef SX_CLIENT_CALLS_H
#define SX_CLIENT_CALLS_H

#include <stdbool.h>

#include <sextant/client.h>

typedef struct sx_client_calls sx_client_calls;

typedef struct sx_client_calls_config {
    const char *server; /* this and the options: as of sx_client_open() */
    const sx_client_options *options;
    int connections;  /* over gRPC one has many calls at once, over REST one */
    const char *path; /* this and the body: of sx_client_prepare(), borrowed */
    sx_bytes body;
    /* Receives what came of a request, and owns the status; the answer, JSON or a message, is valid
     * until it returns. */
    void (*done)(void *user, int64_t due_ns, sx_status status, sx_bytes answer);
    void *user;
} sx_client_calls_config;

SX_MUST_USE sx_status sx_client_calls_create(const sx_client_calls_config *config,
                                             sx_client_calls **out_calls);
/* Ends what is under way: `done` is not called. NULL is allowed. */
void sx_client_calls_destroy(sx_client_calls *calls);

/* Whether a connection has room for a request. */
bool sx_client_calls_has_room(const sx_client_calls *calls);
int sx_client_calls_under_way(const sx_client_calls *calls);

/* Begins a request that was due at this time of sx_now_ns(), when its timeout_ms begins, too. If it
 * is not answered in time, it is cancelled; over gRPC the connection is kept. `done` is not called
 * if this fails. Errors: DEADLINE_EXCEEDED: its time has passed; those of asking for a token. */
SX_MUST_USE sx_status sx_client_calls_start(sx_client_calls *calls, int64_t due_ns);
/* Sends and receives until a call has ended, a signal has come, or until this time: without waiting
 * if it has passed. */
SX_MUST_USE sx_status sx_client_calls_wait(sx_client_calls *calls, int64_t until_ns);

#endif
