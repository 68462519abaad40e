/* See processes.h. */
#include "distribute/processes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "distribute/store_server.h"
#include "io/http_client.h"

enum {
    SLICE_MS = 5000,   /* of a wait in the store, after which it is asked again */
    ANSWER_MS = 10000, /* that an answer may take beside the wait */
    RETRY_MS = 200,
    LEAVE_MS = 5000,    /* that the chief waits for the others */
    GOODBYE_MS = 2000,  /* that they wait for its answer */
    PATIENCE_MS = 5000, /* with a device, once another process is lost */
    MAX_AGREED = 8,
    AGREED_BYTES = 24 * MAX_AGREED,
};

struct sx_processes {
    sx_arena arena;
    int count, index;
    int64_t join_ms, lost_ms;
    const char *url, *chief; /* of the store; "host:port" */
    const char *role;        /* NULL = none */
    sx_store_server *server; /* the chief's; NULL = another process's */
    sx_pjrt_processes pjrt;

    pthread_mutex_t calling; /* one request at a time over: */
    sx_http_session *session;
    int64_t number; /* of what all do in the same order */

    const volatile sig_atomic_t *stop; /* NULL = never */
    atomic_bool in_step;               /* they stop together */

    pthread_t watcher;
    bool watches;
    atomic_bool ends, has_left, wants_stop;
    atomic_bool is_told;  /* a caller has the failure */
    pthread_mutex_t lock; /* guards: */
    char *failure;        /* of the run; NULL = none is known */
    int failed;           /* the process that it is of */
    const char *said;     /* by that process: the end of `failure`; "" = nothing */
    int64_t failed_ns;    /* when it became known */
};

/* ---- Failure ---- */

static void note_failure(sx_processes *p, const sx_store_failure *f)
{
    pthread_mutex_lock(&p->lock);
    char *text = p->failure == NULL ? sx_alloc(f->text.size + 1, 1) : NULL;
    if (text != NULL) {
        memcpy(text, f->text.data, f->text.size);
        text[f->text.size] = '\0';
        p->failure = text;
        p->failed = f->process;
        p->said = text + f->text.size - f->said_bytes;
        p->failed_ns = sx_now_ns();
    }
    pthread_mutex_unlock(&p->lock);
}

sx_status sx_processes_check(sx_processes *p)
{
    pthread_mutex_lock(&p->lock);
    sx_status status = p->failure != NULL ? sx_error(SX_UNAVAILABLE, "%s", p->failure) : SX_OK;
    pthread_mutex_unlock(&p->lock);
    if (status != SX_OK) {
        atomic_store(&p->is_told, true);
    }
    return status;
}

static void lose_chief(sx_processes *p, const char *why)
{
    char text[1024];
    snprintf(text, sizeof(text), "process 0 of %d, the chief, at %s was lost: %s", p->count,
             p->chief, why);
    note_failure(p, &(sx_store_failure){.text = {text, strlen(text)}, .process = 0});
}

static sx_status stopped(void)
{
    return sx_error(SX_CANCELLED, "stopped before the processes were in step");
}

/* It was asked to stop, and the others need not be asked. */
static bool is_stopped(sx_processes *p)
{
    return p->stop != NULL && *p->stop != 0 && !atomic_load(&p->in_step);
}

static bool has_left(sx_processes *p)
{
    return atomic_load(&p->has_left);
}

sx_status sx_processes_give_up(void *processes)
{
    sx_processes *p = processes;
    sx_status status = sx_processes_check(p);
    if (status != SX_OK && sx_now_ns() - p->failed_ns < (int64_t)PATIENCE_MS * 1000000) {
        sx_status_free(status);
        return SX_OK;
    }
    return status;
}

/* ---- Requests ---- */

typedef struct request {
    const char *verb;
    int64_t a;
    sx_bytes key, value;
    int timeout_ms;
    sx_http_session *session;      /* NULL = a connection for it alone */
    bool (*ends)(sx_processes *p); /* nobody waits for the answer any more; NULL = never */
} request;

/* The answer's code and what follows it. */
static sx_status read_answer(sx_processes *p, const sx_buf *answer, sx_buf *out)
{
    char *end = NULL;
    const char *text = sx_buf_text(answer);
    const long code = strtol(text, &end, 10);
    if (end == text || *end != '\n' || code < 0 || code > SX_UNAUTHENTICATED) {
        return sx_error(SX_UNAVAILABLE, "what answers at %s is not process 0 of this run",
                        p->chief);
    }
    const sx_bytes rest = {end + 1, answer->size - (size_t)(end + 1 - text)};
    if (code == SX_UNAVAILABLE) {
        sx_store_failure f;
        SX_TRY(sx_store_parse_failure(rest, &f));
        note_failure(p, &f);
        return sx_error(SX_UNAVAILABLE, "%.*s", (int)f.text.size, (const char *)f.text.data);
    }
    if (code != SX_CODE_OK) {
        return sx_error((sx_code)code, "%s", end + 1);
    }
    if (out != NULL) {
        sx_buf_append(out, rest.data, rest.size);
        return sx_buf_status(out);
    }
    return SX_OK;
}

/* An answer that arrives. */
typedef struct arriving {
    sx_processes *p;
    const request *r;
    sx_buf *answer;
} arriving;

static sx_status keep_answer(void *user, int http_status, const void *data, size_t size)
{
    (void)http_status;
    sx_buf *answer = ((arriving *)user)->answer;
    sx_buf_append(answer, data, size);
    return sx_buf_status(answer);
}

static bool goes_on(void *user, uint64_t received, uint64_t total)
{
    (void)received;
    (void)total;
    const arriving *a = user;
    return a->r->ends == NULL || !a->r->ends(a->p);
}

/* `out_sent` (may be NULL): the store has answered. */
static sx_status ask(sx_processes *p, const request *r, sx_buf *out, bool *out_sent)
{
    sx_buf body, answer;
    int http_status = 0;
    sx_buf_init(&body, SX_STORE_VALUE_BYTES + 2 * SX_STORE_KEY_BYTES);
    sx_buf_init(&answer, SX_STORE_VALUE_BYTES + SX_STORE_KEY_BYTES);
    sx_buf_printf(&body, "%s %d %" PRId64 " 0 %zu\n", r->verb, p->index, r->a, r->key.size);
    sx_buf_append(&body, r->key.data, r->key.size);
    sx_buf_append(&body, r->value.data, r->value.size);
    sx_status status = sx_buf_status(&body);
    if (status == SX_OK) {
        const sx_http_call call = {.url = p->url,
                                   .method = "POST",
                                   .content_type = "application/octet-stream",
                                   .body = {body.data, body.size},
                                   .direct = true,
                                   .timeout_ms = r->timeout_ms,
                                   .session = r->session};
        arriving a = {p, r, &answer};
        const sx_http_sink sink = {.body = keep_answer, .progress = goes_on, .user = &a};
        status = sx_http_stream(&call, &sink, &http_status);
    }
    if (sx_status_code(status) == SX_CANCELLED) { /* r->ends */
        sx_status_free(status);
        status = stopped();
    }
    if (out_sent != NULL) {
        *out_sent = status == SX_OK;
    }
    status = status != SX_OK ? status : read_answer(p, &answer, out);
    sx_buf_deinit(&body);
    sx_buf_deinit(&answer);
    return status;
}

/* Of the thread that trains: over the connection that is kept. If that breaks, the chief is lost.
 */
static sx_status ask_kept(sx_processes *p, request r, sx_buf *out)
{
    bool answered = false;
    SX_TRY(sx_processes_check(p));
    if (is_stopped(p)) {
        return stopped();
    }
    pthread_mutex_lock(&p->calling);
    r.session = p->session;
    sx_status status = ask(p, &r, out, &answered);
    pthread_mutex_unlock(&p->calling);
    if (!answered && sx_status_code(status) == SX_UNAVAILABLE) {
        lose_chief(p, sx_status_message(status));
    }
    sx_status known = sx_status_code(status) == SX_UNAVAILABLE ? sx_processes_check(p) : SX_OK;
    if (known == SX_OK) {
        return status;
    }
    sx_status_free(status);
    return known;
}

/* Waits for a key in slices, so that a failure is noticed meanwhile. */
static sx_status await_key(sx_processes *p, sx_bytes key, int64_t timeout_ms, bool kept,
                           sx_buf *out)
{
    const int64_t until_ns =
        timeout_ms < INT64_MAX / 1000000 ? sx_now_ns() + timeout_ms * 1000000 : INT64_MAX;
    for (;;) {
        const int64_t left_ms = SX_MAX((until_ns - sx_now_ns()) / 1000000, (int64_t)0);
        const request r = {.verb = "GET",
                           .a = timeout_ms == 0 ? 0 : SX_MAX(SX_MIN(left_ms, SLICE_MS), 1),
                           .key = key,
                           .timeout_ms = SLICE_MS + ANSWER_MS,
                           .ends = is_stopped};
        SX_TRY(sx_processes_check(p));
        sx_status status = kept ? ask_kept(p, r, out) : ask(p, &r, out, NULL);
        if (sx_status_code(status) != SX_DEADLINE_EXCEEDED || left_ms <= SLICE_MS) {
            return status;
        }
        sx_status_free(status);
    }
}

static sx_status get_for_pjrt(void *store, sx_bytes key, int64_t timeout_ms, sx_buf *out)
{
    return await_key(store, key, timeout_ms, false, out);
}

static sx_status put_for_pjrt(void *store, sx_bytes key, sx_bytes value)
{
    const request r = {.verb = "PUT", .key = key, .value = value, .timeout_ms = ANSWER_MS};
    return ask(store, &r, NULL, NULL);
}

/* ---- The watcher ---- */

/* The store does not answer: is the chief gone? */
static void doubt_chief(sx_processes *p, sx_status why, int64_t answered_ns, int *refusals)
{
    *refusals += sx_status_code(why) != SX_DEADLINE_EXCEEDED;
    if (*refusals > 3 || sx_now_ns() - answered_ns > p->lost_ms * 1000000) {
        lose_chief(p, sx_status_message(why));
    } else {
        sx_sleep_ns((int64_t)RETRY_MS * 1000000);
    }
}

static void *watch(void *user)
{
    sx_processes *p = user;
    sx_http_session *session = NULL;
    int64_t answered_ns = sx_now_ns();
    int refusals = 0;
    sx_status status = sx_http_session_create(&session);
    while (!atomic_load(&p->ends)) {
        bool answered = false;
        sx_status_free(status);
        status = ask(p,
                     &(request){.verb = "WATCH",
                                .a = atomic_load(&p->wants_stop),
                                .timeout_ms = SX_STORE_WATCH_MS + (int)p->lost_ms,
                                .session = session,
                                .ends = has_left},
                     NULL, &answered);
        if (answered) {
            answered_ns = sx_now_ns();
            refusals = 0;
        } else if (!atomic_load(&p->ends)) {
            doubt_chief(p, status, answered_ns, &refusals);
        }
        if (answered && status != SX_OK && !atomic_load(&p->ends)) {
            sx_sleep_ns((int64_t)RETRY_MS *
                        1000000); /* the run has failed: nothing is left to be watched */
        }
    }
    sx_status_free(status);
    sx_http_session_destroy(session);
    return NULL;
}

/* ---- Joining ---- */

/* Where the chief listens: on every address, unless it is to be reached from this machine alone. */
static const char *listening_host(const char *host)
{
    const bool local =
        strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    return local ? host : NULL;
}

static sx_status serve(sx_processes *p)
{
    const char *colon = strrchr(p->chief, ':');
    const bool bracketed = p->chief[0] == '[';
    char *host = sx_arena_strndup(&p->arena, p->chief + bracketed,
                                  (size_t)(colon - p->chief) - 2 * (size_t)bracketed);
    if (host == NULL) {
        return sx_no_memory("for processes");
    }
    const sx_store_options options = {
        .processes = p->count, .join_ms = p->join_ms, .lost_ms = p->lost_ms};
    return sx_status_annotate(
        sx_store_server_start(listening_host(host), (int)strtol(colon + 1, NULL, 10), &options,
                              &p->server),
        __FILE__, __LINE__, "process 0 cannot serve the others at %s", p->chief);
}

static void describe_self(const sx_processes *p, char *text, size_t size)
{
    char host[256] = "unknown host";
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(text, size, "%s%s%s, pid %ld", p->role != NULL ? p->role : "",
             p->role != NULL ? ", " : "", host, (long)getpid());
}

/* The chief may come later than this process. */
static sx_status introduce(sx_processes *p)
{
    char self[512];
    const int64_t until_ns = sx_now_ns() + p->join_ms * 1000000;
    describe_self(p, self, sizeof(self));
    while (!is_stopped(p)) {
        bool answered = false;
        const request r = {.verb = "JOIN",
                           .a = p->count,
                           .value = {self, strlen(self)},
                           .timeout_ms = (int)p->join_ms + ANSWER_MS,
                           .session = p->session,
                           .ends = is_stopped};
        sx_status status = ask(p, &r, NULL, &answered);
        if (answered || sx_status_code(status) == SX_CANCELLED) {
            return status;
        }
        if (sx_now_ns() >= until_ns) {
            return sx_status_annotate(status, __FILE__, __LINE__,
                                      "process 0 of %d did not come within %d s at %s", p->count,
                                      (int)(p->join_ms / 1000), p->chief);
        }
        sx_status_free(status);
        sx_sleep_ns((int64_t)RETRY_MS * 1000000);
    }
    return stopped();
}

static sx_status join(sx_processes *p)
{
    p->url = sx_arena_printf(&p->arena, "http://%s/", p->chief);
    if (p->url == NULL) {
        return sx_no_memory("for processes");
    }
    SX_TRY(sx_http_session_create(&p->session));
    if (p->index == 0) {
        SX_TRY(serve(p));
    }
    SX_TRY(introduce(p));
    p->watches = sx_thread_create(&p->watcher, NULL, watch, p) == 0;
    return p->watches ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "no thread for processes");
}

static int64_t milliseconds(int secs, int otherwise)
{
    return 1000 * (int64_t)(secs > 0 ? secs : otherwise);
}

sx_status sx_processes_join(const sx_processes_options *options, sx_processes **out)
{
    const sx_process_plan *plan = options->plan;
    sx_processes *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for processes");
    }
    *p = (sx_processes){.count = plan->count,
                        .index = plan->index,
                        .stop = options->stop,
                        .join_ms = milliseconds(options->join_secs, SX_JOIN_SECS),
                        .lost_ms = milliseconds(options->lost_secs, SX_LOST_SECS)};
    p->pjrt = (sx_pjrt_processes){.count = plan->count,
                                  .index = plan->index,
                                  .get = get_for_pjrt,
                                  .put = put_for_pjrt,
                                  .store = p};
    pthread_mutex_init(&p->calling, NULL);
    pthread_mutex_init(&p->lock, NULL);
    sx_arena_init(&p->arena, 0);
    p->chief = sx_arena_strdup(&p->arena, plan->coordinator);
    p->role = plan->role != NULL ? sx_arena_strdup(&p->arena, plan->role) : NULL;
    sx_status status = p->chief != NULL ? join(p) : sx_no_memory("for processes");
    if (status != SX_OK) {
        sx_processes_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

/* The watcher's request ends with the answer; a chief that is lost is not asked. */
static void leave(sx_processes *p)
{
    pthread_mutex_lock(&p->lock);
    const bool is_lost = p->failure != NULL && p->failed == 0 && p->said[0] == '\0';
    pthread_mutex_unlock(&p->lock);
    if (!is_lost) {
        const request r = {.verb = "LEAVE", .a = is_stopped(p), .timeout_ms = GOODBYE_MS};
        sx_status_free(ask(p, &r, NULL, NULL));
    }
}

void sx_processes_destroy(sx_processes *p)
{
    if (p == NULL) {
        return;
    }
    const bool waits = p->watches && !is_stopped(p); /* for the others */
    atomic_store(&p->ends, true);
    if (p->watches) {
        leave(p);
        atomic_store(&p->has_left, true);
        pthread_join(p->watcher, NULL);
    }
    sx_store_server_stop(p->server, waits ? LEAVE_MS : 0);
    sx_http_session_destroy(p->session);
    pthread_mutex_destroy(&p->calling);
    pthread_mutex_destroy(&p->lock);
    sx_free(p->failure);
    sx_arena_deinit(&p->arena);
    sx_free(p);
}

/* ---- In step ---- */

int sx_processes_count(const sx_processes *p)
{
    return p->count;
}

int sx_processes_index(const sx_processes *p)
{
    return p->index;
}

const sx_pjrt_processes *sx_processes_of_pjrt(sx_processes *p)
{
    return &p->pjrt;
}

sx_status sx_processes_meet(sx_processes *p)
{
    char key[64];
    snprintf(key, sizeof(key), "meet/%" PRId64, p->number++);
    const request r = {.verb = "MEET",
                       .a = SLICE_MS,
                       .key = {key, strlen(key)},
                       .timeout_ms = SLICE_MS + ANSWER_MS,
                       .ends = is_stopped};
    sx_status status = ask_kept(p, r, NULL);
    while (sx_status_code(status) == SX_DEADLINE_EXCEEDED) { /* a failure is noticed meanwhile */
        sx_status_free(status);
        status = ask_kept(p, r, NULL);
    }
    if (status == SX_OK) {
        atomic_store(&p->in_step, true);
    }
    return status;
}

/* The chief's text on all processes. */
static sx_status broadcast(sx_processes *p, sx_buf *text)
{
    char key[64];
    snprintf(key, sizeof(key), "chief/%" PRId64, p->number++);
    const sx_bytes name = {key, strlen(key)};
    if (p->index > 0) {
        sx_buf_reset(text);
        return await_key(p, name, INT64_MAX, true, text);
    }
    return ask_kept(p,
                    (request){.verb = "PUT",
                              .a = p->count - 1,
                              .key = name,
                              .value = {text->data, text->size},
                              .timeout_ms = ANSWER_MS},
                    NULL);
}

sx_status sx_processes_agree(sx_processes *p, int64_t *values, int n)
{
    sx_buf text;
    sx_buf_init(&text, AGREED_BYTES);
    for (int i = 0; i < n; i++) {
        sx_buf_printf(&text, "%" PRId64 " ", values[i]);
    }
    sx_status status = sx_buf_status(&text);
    status = status != SX_OK ? status : broadcast(p, &text);
    const char *at = sx_buf_text(&text);
    for (int i = 0; i < n && status == SX_OK; i++) {
        char *end;
        values[i] = strtoll(at, &end, 10);
        status = end != at ? SX_OK
                           : sx_error(SX_INTERNAL, "the chief has agreed on %d of %d values", i, n);
        at = end;
    }
    if (status == SX_OK) {
        atomic_store(&p->in_step, true);
    }
    sx_buf_deinit(&text);
    return status;
}

sx_status sx_processes_compare(sx_processes *p, const char *what, const char *value)
{
    enum { SHOWN = 60 };
    sx_buf text;
    sx_buf_init(&text, SX_STORE_VALUE_BYTES);
    sx_buf_puts(&text, value);
    sx_status status = sx_buf_status(&text);
    status = status != SX_OK ? status : broadcast(p, &text);
    if (status == SX_OK && strcmp(sx_buf_text(&text), value) != 0) {
        status = sx_processes_blame(
            p, sx_error(SX_FAILED_PRECONDITION,
                        "process %d differs from process 0 in %s (%.*s, not %.*s); all processes "
                        "must be started with the same command, files and data",
                        p->index, what, SHOWN, value, SHOWN, sx_buf_text(&text)));
    }
    sx_buf_deinit(&text);
    return status;
}

void sx_processes_want_stop(sx_processes *p)
{
    atomic_store(&p->wants_stop, true);
}

bool sx_processes_stop_wanted(sx_processes *p)
{
    return p->server != NULL && sx_store_stop_wanted(sx_store_server_store(p->server));
}

/* The run's failure is what this process has said, or what it would say, too: all fail alike. */
static bool is_said(sx_processes *p, sx_bytes words)
{
    const sx_bytes kept = sx_store_said(words);
    pthread_mutex_lock(&p->lock);
    const bool is = p->failure != NULL && p->said[0] != '\0' &&
                    (p->failed == p->index || sx_bytes_is(kept, p->said));
    pthread_mutex_unlock(&p->lock);
    return is;
}

sx_status sx_processes_blame(sx_processes *p, sx_status status)
{
    if (status == SX_OK) {
        return SX_OK;
    }
    if (is_stopped(p)) {
        sx_status_free(status);
        return stopped();
    }
    const char *message = sx_status_message(status);
    const sx_bytes words = {message, strlen(message)};
    bool answered = true;
    sx_status known = sx_processes_check(p);
    if (known == SX_OK) {
        sx_status answer =
            ask(p, &(request){.verb = "FAIL", .value = words, .timeout_ms = ANSWER_MS}, NULL,
                &answered);
        if (!answered) {
            lose_chief(p, sx_status_message(answer));
        }
        sx_status_free(answer);
        known = sx_processes_check(p);
    }
    if (known == SX_OK || is_said(p, words)) {
        sx_status_free(known);
        return status;
    }
    sx_status_free(status);
    return known;
}

sx_status sx_processes_end(sx_processes *p, sx_status status)
{
    if (p == NULL || status == SX_OK || sx_status_code(status) == SX_CANCELLED) {
        return status;
    }
    return atomic_load(&p->is_told) ? status : sx_processes_blame(p, status);
}
