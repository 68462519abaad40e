/* See store.h. */
#include "distribute/store.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
    MAX_ENTRIES = 1 << 16,
    MAX_WAITING = 8 * SX_MAX_PROCESSES,
    MAX_TEXT = 4096, /* of a failure; of who a process is */
    MAX_SAID = 2048, /* of what a process says of its failure */
    MOST_LISTED = 8, /* numbers of processes; of more than that: */
    FEW_LISTED = 3,
    VERDICT_MS = 1000, /* in which a loss may come to light that a failure is due to */
};

static const char *const verbs[SX_STORE_VERBS] = {"JOIN", "WATCH", "PUT",  "GET",
                                                  "MEET", "FAIL",  "LEAVE"};

/* ---- Requests ---- */

/* A number in decimal, and the byte after it. */
static bool take_number(sx_bytes *text, char end, int64_t most, int64_t *out)
{
    const char *at = text->data;
    int64_t n = 0;
    size_t i = 0;
    while (i < text->size && at[i] >= '0' && at[i] <= '9' && n <= most) {
        n = n * 10 + (at[i++] - '0');
    }
    if (i == 0 || n > most || i >= text->size || at[i] != end) {
        return false;
    }
    *text = (sx_bytes){at + i + 1, text->size - i - 1};
    *out = n;
    return true;
}

static sx_status malformed(const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "not a request of the processes of a run: %s", what);
}

sx_status sx_store_parse(sx_bytes text, sx_store_request *out)
{
    enum { MOST = 1 << 30 };
    int64_t process, key_bytes;
    sx_store_request r = {.verb = 0};
    size_t size = 0;
    while (r.verb < SX_STORE_VERBS && size == 0) {
        const size_t n = strlen(verbs[r.verb]);
        if (text.size > n && memcmp(text.data, verbs[r.verb], n) == 0 &&
            ((const char *)text.data)[n] == ' ') {
            size = n + 1;
        } else {
            r.verb++;
        }
    }
    if (size == 0) {
        return malformed("its verb");
    }
    text = (sx_bytes){(const char *)text.data + size, text.size - size};
    if (!take_number(&text, ' ', SX_MAX_PROCESSES - 1, &process) ||
        !take_number(&text, ' ', MOST, &r.a) || !take_number(&text, ' ', MOST, &r.b) ||
        !take_number(&text, '\n', SX_STORE_KEY_BYTES, &key_bytes)) {
        return malformed("its numbers");
    }
    if ((size_t)key_bytes > text.size || text.size - (size_t)key_bytes > SX_STORE_VALUE_BYTES) {
        return malformed("its size");
    }
    r.process = (int)process;
    r.key = (sx_bytes){text.data, (size_t)key_bytes};
    r.value = (sx_bytes){(const char *)text.data + key_bytes, text.size - (size_t)key_bytes};
    *out = r;
    return SX_OK;
}

sx_status sx_store_parse_failure(sx_bytes answer, sx_store_failure *out)
{
    int64_t process, said_bytes;
    if (!take_number(&answer, ' ', SX_NO_PROCESS, &process) ||
        !take_number(&answer, '\n', MAX_SAID, &said_bytes) || (size_t)said_bytes > answer.size) {
        return sx_error(SX_INVALID_ARGUMENT, "not the failure of a run");
    }
    *out = (sx_store_failure){
        .process = (int)process, .text = answer, .said_bytes = (size_t)said_bytes};
    return SX_OK;
}

sx_bytes sx_store_said(sx_bytes words)
{
    return (sx_bytes){words.data, strnlen(words.data, SX_MIN(words.size, (size_t)MAX_SAID))};
}

/* ---- State ---- */

typedef struct entry {
    struct entry *next;
    size_t key_bytes, value_bytes;
    int64_t readers; /* that are to come; 0 = it stays */
    char data[];     /* key, value */
} entry;

/* A call that waits. */
typedef struct waiting {
    struct waiting *next;
    void *call;
    sx_store_verb verb;
    int process;
    int64_t since_ns, until_ns; /* INT64_MAX = no end */
    size_t key_bytes;
    char key[];
} waiting;

/* LEFT only once all have come. */
typedef enum presence { ABSENT, HERE, LEFT } presence;

typedef struct member {
    presence presence;
    int64_t seen_ns;
    char *who;
} member;

typedef struct failure {
    char *text; /* NULL = none */
    int process;
    size_t said_bytes; /* as in sx_store_failure */
} failure;

struct sx_store {
    pthread_mutex_t lock;
    sx_store_options o;
    member *members; /* [processes] */
    entry *entries;
    size_t n_entries, bytes;
    waiting *calls;
    int n_calls;
    bool stop_wanted;
    int64_t began_ns;
    failure failure;    /* of the run */
    failure suspected;  /* what is said to have failed, until the verdict */
    int64_t verdict_ns; /* when `suspected` becomes the failure */
    bool is_done_joining;
};

sx_status sx_store_create(const sx_store_options *options, sx_store **out)
{
    sx_store *s = sx_alloc(1, sizeof(*s));
    member *members = sx_alloc((size_t)options->processes, sizeof(*members));
    if (s == NULL || members == NULL) {
        sx_free(s);
        sx_free(members);
        return sx_no_memory("for a key-value store");
    }
    *s = (sx_store){.o = *options, .members = members, .began_ns = sx_now_ns()};
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return SX_OK;
}

/* ---- Answers ---- */

static void say(sx_store *s, void *call, sx_code code, const char *text)
{
    s->o.answer(call, code, (sx_bytes){text, strlen(text)});
}

static void say_failure(sx_store *s, void *call)
{
    char text[MAX_TEXT + 64];
    snprintf(text, sizeof(text), "%d %zu\n%s", s->failure.process, s->failure.said_bytes,
             s->failure.text);
    say(s, call, SX_UNAVAILABLE, text);
}

/* Ends a call that waits; *at is its place in the list. */
static void *take_waiting(sx_store *s, waiting **at)
{
    waiting *w = *at;
    void *call = w->call;
    *at = w->next;
    s->n_calls--;
    sx_free(w);
    return call;
}

/* The first failure counts. Takes its text over, which NULL says could not be made. */
static void fail(sx_store *s, failure f)
{
    if (s->failure.text != NULL) {
        sx_free(f.text);
        return;
    }
    s->failure = f.text != NULL
                     ? f
                     : (failure){.text = sx_strdup("the run has failed"), .process = SX_NO_PROCESS};
    while (s->calls != NULL && s->failure.text != NULL) {
        say_failure(s, take_waiting(s, &s->calls));
    }
}

static char *text_of(const char *format, ...) SX_PRINTF(1, 2);
static char *text_of(const char *format, ...)
{
    char text[MAX_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return sx_strdup(text);
}

/* False: there are too many, and the call is refused. */
static bool wait_for(sx_store *s, void *call, const sx_store_request *r, int64_t until_ns)
{
    waiting *w = s->n_calls < MAX_WAITING ? sx_alloc(sizeof(*w) + r->key.size, 1) : NULL;
    if (w == NULL) {
        say(s, call, SX_RESOURCE_EXHAUSTED, "too many requests wait in the key-value store");
        return false;
    }
    *w = (waiting){.next = s->calls,
                   .call = call,
                   .verb = r->verb,
                   .process = r->process,
                   .since_ns = sx_now_ns(),
                   .until_ns = until_ns,
                   .key_bytes = r->key.size};
    memcpy(w->key, r->key.data, r->key.size);
    s->calls = w;
    s->n_calls++;
    return true;
}

static bool waits_for(const waiting *w, sx_store_verb verb, sx_bytes key)
{
    return w->verb == verb && w->key_bytes == key.size && memcmp(w->key, key.data, key.size) == 0;
}

/* ---- Processes ---- */

static const char *who(const sx_store *s, int process)
{
    return s->members[process].who != NULL ? s->members[process].who : "unknown";
}

static void lose(sx_store *s, int process, const char *why)
{
    s->members[process].presence = LEFT;
    fail(s, (failure){.text = text_of("process %d of %d (%s) was lost: %s", process, s->o.processes,
                                      who(s, process), why),
                      .process = process});
}

/* "1 and 3 of 4"; of many, the first few and the last: "1, 2, 3, … 27 (of 30)". */
static void list_absent(const sx_store *s, sx_buf *out)
{
    int absent[SX_MAX_PROCESSES], n = 0;
    for (int i = 0; i < s->o.processes; i++) {
        if (s->members[i].presence == ABSENT) {
            absent[n++] = i;
        }
    }
    const bool many = n > MOST_LISTED;
    const int first = many ? FEW_LISTED : n - 1;
    for (int i = 0; i < first; i++) {
        sx_buf_printf(out, "%d%s", absent[i], many || i + 1 < first ? ", " : " and ");
    }
    sx_buf_printf(out, many ? "… %d (of %d)" : "%d of %d", absent[n - 1], s->o.processes);
}

static bool all_here(const sx_store *s)
{
    for (int i = 0; i < s->o.processes; i++) {
        if (s->members[i].presence != HERE) {
            return false;
        }
    }
    return true;
}

/* Answers all calls of the verb, and for that key. */
static void release(sx_store *s, sx_store_verb verb, sx_bytes key, sx_bytes body)
{
    waiting **at = &s->calls;
    while (*at != NULL) {
        if (waits_for(*at, verb, key)) {
            s->o.answer(take_waiting(s, at), SX_CODE_OK, body);
        } else {
            at = &(*at)->next;
        }
    }
}

static void join(sx_store *s, void *call, const sx_store_request *r)
{
    member *m = &s->members[r->process];
    char text[MAX_TEXT];
    if (r->a != s->o.processes) {
        fail(s, (failure){.text = text_of("process %d (%.*s) was started as one of %d processes, "
                                          "process 0 as one of %d: all need the same number",
                                          r->process, (int)SX_MIN(r->value.size, 256),
                                          (const char *)r->value.data, (int)r->a, s->o.processes),
                          .process = r->process});
        say_failure(s, call);
        return;
    }
    if (m->presence != ABSENT) {
        snprintf(text, sizeof(text),
                 "there is a process %d already (%s): each process needs a number of its own",
                 r->process, who(s, r->process));
        say(s, call, SX_ALREADY_EXISTS, text);
        return;
    }
    sx_free(m->who);
    m->who = text_of("%.*s", (int)SX_MIN(r->value.size, 256), (const char *)r->value.data);
    if (!wait_for(s, call, r, INT64_MAX)) {
        return;
    }
    m->presence = HERE;
    if (all_here(s)) {
        const int64_t now = sx_now_ns();
        for (int i = 0; i < s->o.processes; i++) {
            s->members[i].seen_ns = now;
        }
        s->is_done_joining = true;
        release(s, SX_STORE_JOIN, r->key, (sx_bytes){"", 0});
    }
}

static void watch(sx_store *s, void *call, const sx_store_request *r)
{
    s->stop_wanted = s->stop_wanted || r->a > 0;
    (void)wait_for(s, call, r, sx_now_ns() + (int64_t)SX_STORE_WATCH_MS * 1000000);
}

static void meet(sx_store *s, void *call, const sx_store_request *r)
{
    char come[SX_MAX_PROCESSES] = {0};
    int n = 0;
    (void)wait_for(s, call, r, sx_now_ns() + r->a * 1000000);
    for (const waiting *w = s->calls; w != NULL; w = w->next) {
        if (waits_for(w, SX_STORE_MEET, r->key) && w->process < s->o.processes) {
            n += come[w->process] == 0;
            come[w->process] = 1;
        }
    }
    for (int i = 0; i < s->o.processes && s->suspected.text == NULL; i++) {
        if (s->members[i].presence == LEFT && come[i] == 0) {
            fail(s, (failure){.text = text_of("process %d of %d (%s) has ended, but others go on",
                                              i, s->o.processes, who(s, i)),
                              .process = i});
            return;
        }
    }
    if (n == s->o.processes) {
        release(s, SX_STORE_MEET, r->key, (sx_bytes){"", 0});
    }
}

/* What a process says of its failure may be the loss of another, which is yet to be seen. */
static void suspect(sx_store *s, void *call, const sx_store_request *r)
{
    if (s->suspected.text == NULL) {
        const sx_bytes said = sx_store_said(r->value);
        s->suspected = (failure){.text = text_of("process %d of %d (%s) failed: %.*s", r->process,
                                                 s->o.processes, who(s, r->process), (int)said.size,
                                                 (const char *)said.data),
                                 .process = r->process,
                                 .said_bytes = said.size};
        s->verdict_ns = sx_now_ns() + (int64_t)VERDICT_MS * 1000000;
    }
    s->members[r->process].presence = LEFT; /* its end is no loss */
    (void)wait_for(s, call, r, INT64_MAX);
}

/* ---- Keys and values ---- */

static bool has_key(const entry *e, sx_bytes key)
{
    return e->key_bytes == key.size && memcmp(e->data, key.data, key.size) == 0;
}

static entry **find(sx_store *s, sx_bytes key)
{
    entry **at = &s->entries;
    while (*at != NULL && !has_key(*at, key)) {
        at = &(*at)->next;
    }
    return at;
}

/* Answers one reader; the last of those that were announced takes the entry with it. */
static void give(sx_store *s, entry **at, void *call)
{
    entry *e = *at;
    s->o.answer(call, SX_CODE_OK, (sx_bytes){e->data + e->key_bytes, e->value_bytes});
    if (e->readers > 0 && --e->readers == 0) {
        *at = e->next;
        s->n_entries--;
        s->bytes -= e->key_bytes + e->value_bytes;
        sx_free(e);
    }
}

static void put(sx_store *s, void *call, const sx_store_request *r)
{
    const size_t bytes = r->key.size + r->value.size;
    entry *old = *find(s, r->key);
    if (old != NULL) {
        const bool same = old->value_bytes == r->value.size &&
                          memcmp(old->data + old->key_bytes, r->value.data, r->value.size) == 0;
        say(s, call, same ? SX_CODE_OK : SX_ALREADY_EXISTS,
            same ? "" : "the key has another value already");
        return;
    }
    entry *e = s->n_entries < MAX_ENTRIES && bytes <= SX_STORE_BYTES - s->bytes
                   ? sx_alloc(sizeof(*e) + bytes, 1)
                   : NULL;
    if (e == NULL) {
        say(s, call, SX_RESOURCE_EXHAUSTED, "the key-value store is full");
        return;
    }
    *e = (entry){.next = s->entries,
                 .key_bytes = r->key.size,
                 .value_bytes = r->value.size,
                 .readers = r->a};
    memcpy(e->data, r->key.data, r->key.size);
    memcpy(e->data + r->key.size, r->value.data, r->value.size);
    s->entries = e;
    s->n_entries++;
    s->bytes += bytes;
    say(s, call, SX_CODE_OK, "");
    waiting **at = &s->calls;
    while (*at != NULL) {
        entry **here = waits_for(*at, SX_STORE_GET, r->key) ? find(s, r->key) : NULL;
        if (here != NULL && *here != NULL) {
            give(s, here, take_waiting(s, at));
        } else {
            at = &(*at)->next;
        }
    }
}

static void get(sx_store *s, void *call, const sx_store_request *r)
{
    entry **at = find(s, r->key);
    if (*at != NULL) {
        give(s, at, call);
    } else if (r->a == 0) {
        say(s, call, SX_NOT_FOUND, "the key has no value");
    } else {
        (void)wait_for(s, call, r, sx_now_ns() + r->a * 1000000);
    }
}

/* ---- Calls ---- */

/* What the process itself waits for ends. */
static void leave(sx_store *s, void *call, const sx_store_request *r)
{
    s->members[r->process].presence = s->is_done_joining ? LEFT : ABSENT;
    waiting **at = &s->calls;
    while (*at != NULL) {
        if ((*at)->process == r->process) {
            say(s, take_waiting(s, at), SX_CANCELLED, "the process has left");
        } else {
            at = &(*at)->next;
        }
    }
    say(s, call, SX_CODE_OK, "");
    if (r->a > 0 && s->is_done_joining) {
        fail(s, (failure){.text = text_of("process %d of %d (%s) was asked to stop before the "
                                          "processes were in step",
                                          r->process, s->o.processes, who(s, r->process)),
                          .process = r->process});
    }
}

static void take(sx_store *s, void *call, const sx_store_request *r)
{
    static void (*const rows[SX_STORE_VERBS])(sx_store * s, void *call,
                                              const sx_store_request *r) = {
        [SX_STORE_JOIN] = join,   [SX_STORE_WATCH] = watch, [SX_STORE_PUT] = put,
        [SX_STORE_GET] = get,     [SX_STORE_MEET] = meet,   [SX_STORE_FAIL] = suspect,
        [SX_STORE_LEAVE] = leave,
    };
    if (r->process >= s->o.processes) {
        say(s, call, SX_INVALID_ARGUMENT, "there is no process of that number");
        return;
    }
    const bool has_joined = s->members[r->process].presence != ABSENT;
    if (r->verb == SX_STORE_LEAVE && has_joined) {
        leave(s, call, r);
    } else if (s->failure.text != NULL) {
        say_failure(s, call);
    } else if (r->verb != SX_STORE_JOIN && !has_joined) {
        say(s, call, SX_FAILED_PRECONDITION, "the process of that number has not joined");
    } else {
        s->members[r->process].seen_ns = sx_now_ns();
        rows[r->verb](s, call, r);
    }
}

void sx_store_take(sx_store *s, void *call, sx_bytes request)
{
    sx_store_request r;
    sx_status status = sx_store_parse(request, &r);
    pthread_mutex_lock(&s->lock);
    if (status == SX_OK) {
        take(s, call, &r);
    } else {
        say(s, call, sx_status_code(status), sx_status_message(status));
    }
    pthread_mutex_unlock(&s->lock);
    sx_status_free(status);
}

/* ---- Time ---- */

static void end_late(sx_store *s, int64_t now)
{
    waiting **at = &s->calls;
    while (*at != NULL) {
        const waiting *w = *at;
        const bool is_gone = s->o.gone != NULL && s->o.gone(w->call);
        if (is_gone && w->verb == SX_STORE_WATCH && s->members[w->process].presence == HERE) {
            lose(s, w->process, "its connection was closed");
            return;
        }
        if (is_gone && w->verb == SX_STORE_JOIN) { /* it may come again */
            s->members[w->process].presence = ABSENT;
        }
        if (is_gone || now >= w->until_ns) {
            const bool watched = w->verb == SX_STORE_WATCH;
            say(s, take_waiting(s, at), watched ? SX_CODE_OK : SX_DEADLINE_EXCEEDED,
                watched ? "" : "not within the time given");
        } else {
            at = &(*at)->next;
        }
    }
}

static void find_silent(sx_store *s, int64_t now)
{
    for (int i = 0; i < s->o.processes && s->is_done_joining && s->failure.text == NULL; i++) {
        if (s->members[i].presence == HERE &&
            now - s->members[i].seen_ns > s->o.lost_ms * 1000000) {
            char why[96];
            snprintf(why, sizeof(why), "it has given no sign for %lld s",
                     (long long)(s->o.lost_ms / 1000));
            lose(s, i, why);
        }
    }
}

static void find_absent(sx_store *s, int64_t now)
{
    sx_buf absent;
    if (s->is_done_joining || s->suspected.text != NULL ||
        now - s->began_ns <= s->o.join_ms * 1000000) {
        return;
    }
    sx_buf_init(&absent, MAX_TEXT / 2);
    list_absent(s, &absent);
    fail(s, (failure){.text = text_of("process %s did not come within %lld s", sx_buf_text(&absent),
                                      (long long)(s->o.join_ms / 1000)),
                      .process = SX_NO_PROCESS});
    sx_buf_deinit(&absent);
}

void sx_store_tick(sx_store *s)
{
    pthread_mutex_lock(&s->lock);
    const int64_t now = sx_now_ns();
    end_late(s, now);
    if (s->failure.text == NULL) {
        find_absent(s, now);
        find_silent(s, now);
    }
    if (s->failure.text == NULL && s->suspected.text != NULL && now >= s->verdict_ns) {
        fail(s, s->suspected);
        s->suspected = (failure){.text = NULL};
    }
    pthread_mutex_unlock(&s->lock);
}

bool sx_store_stop_wanted(sx_store *s)
{
    pthread_mutex_lock(&s->lock);
    const bool wanted = s->stop_wanted;
    pthread_mutex_unlock(&s->lock);
    return wanted;
}

bool sx_store_is_done(sx_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool done = true;
    for (int i = 1; i < s->o.processes; i++) {
        done = done && s->members[i].presence != HERE;
    }
    pthread_mutex_unlock(&s->lock);
    return done;
}

void sx_store_end(sx_store *s)
{
    pthread_mutex_lock(&s->lock);
    fail(s, (failure){.text = text_of("process 0 of %d, the chief, has ended", s->o.processes),
                      .process = 0});
    pthread_mutex_unlock(&s->lock);
}

void sx_store_destroy(sx_store *s)
{
    if (s == NULL) {
        return;
    }
    for (entry *e = s->entries, *next; e != NULL; e = next) {
        next = e->next;
        sx_free(e);
    }
    for (int i = 0; i < s->o.processes; i++) {
        sx_free(s->members[i].who);
    }
    sx_free(s->members);
    sx_free(s->failure.text);
    sx_free(s->suspected.text);
    pthread_mutex_destroy(&s->lock);
    sx_free(s);
}
