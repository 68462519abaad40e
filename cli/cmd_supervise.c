/* sextant supervise: keeps the sockets of a model server open, and starts and stops servers behind
 * them by load.
 *
 *   supervise  listens; hands its sockets to each server (activation.h)
 *   serve 1    accepts connections, reports its requests on a pipe
 *   serve 2    the same, while there is more to do
 *
 * With no server, connections wait in the kernel's queue; the first one starts a server. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "activation.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "command.h"
#include "io/file.h"
#include "net/listen.h"

typedef struct options {
    const char *host;
    int64_t rest_api_port, port, min_servers, max_servers, target_requests;
    double idle_seconds, busy_seconds, start_timeout;
} options;

enum { MAX_SERVERS = 64, BACKLOG = 4096, LINE_BYTES = 64 };

static const sx_option rows[] = {
    {"min-servers", SX_OPTION_INT, SX_OPT(options, min_servers),
     "servers that always run; 0: a request starts the first, and waits until its models are "
     "loaded",
     "N", .max = MAX_SERVERS},
    {"max-servers", SX_OPTION_INT, SX_OPT(options, max_servers), "maximum number of servers", "N",
     .min = 1, .max = MAX_SERVERS},
    {"target-requests", SX_OPTION_INT, SX_OPT(options, target_requests),
     "start another server when there are more requests at once than this for each", "N", .min = 1,
     .max = 1e6},
    {"busy-seconds", SX_OPTION_FLOAT, SX_OPT(options, busy_seconds),
     "start it only if there have been more requests than that for this long", "SECONDS",
     .max = 1e6},
    {"idle-seconds", SX_OPTION_FLOAT, SX_OPT(options, idle_seconds),
     "stop a server when the others would have been enough for this long, and the last one when "
     "there have been no requests",
     "SECONDS", .max = 1e9},
    {"start-timeout", SX_OPTION_FLOAT, SX_OPT(options, start_timeout),
     "kill a server whose models are not loaded after this long, and start another; 0: never",
     "SECONDS", .max = 1e9},
    {"host", SX_OPTION_STRING, SX_OPT(options, host), "address to listen on; default: all",
     "ADDRESS"},
    {"rest-api-port", SX_OPTION_INT, SX_OPT(options, rest_api_port),
     "port of the REST API; 0: any free port", "PORT", .max = 65535},
    {"port", SX_OPTION_INT, SX_OPT(options, port), "port of gRPC; 0: none", "PORT", .max = 65535},
};
static const options defaults = {.rest_api_port = 8501,
                                 .port = 8500,
                                 .min_servers = 1,
                                 .max_servers = 1,
                                 .target_requests = 16,
                                 .idle_seconds = 300,
                                 .busy_seconds = 2,
                                 .start_timeout = 600};

typedef struct server {
    pid_t pid;
    int report; /* the pipe's end to read */
    int64_t started_ns;
    bool reported, ready, stopping;
    bool late; /* killed, because it was not ready in time */
    sx_report_line last;
    char line[LINE_BYTES]; /* what has been read of the next one */
    size_t line_size;
} server;

typedef struct supervisor {
    const options *o;
    char **argv; /* of a server */
    int fds[2];  /* REST, gRPC; -1 = none */
    server servers[MAX_SERVERS];
    int count;
    int64_t busy_since_ns, enough_since_ns; /* 0: it is not so */
    uint64_t requests;                      /* of all servers, at the last turn */
    int failures;                           /* servers in a row that ended by themselves */
    int64_t not_before_ns;                  /* of the next start */
    bool ended;      /* another server would do the same as the one that ended: */
    sx_status usage; /* its options are wrong; OK: it has nothing to serve, as with --help */
} supervisor;

static volatile sig_atomic_t hangup;

static void on_hangup(int number)
{
    (void)number;
    hangup = 1;
}

/* Interrupts poll. */
static void on_child(int number)
{
    (void)number;
}

/* ---- Servers ---- */

/* In the child: becomes `sextant serve` with the sockets from descriptor 3 on. */
_Noreturn static void become_server(const supervisor *s, int report, pid_t parent,
                                    const sigset_t *unblocked)
{
    char text[16];
    int next = SX_ACTIVATION_FIRST_FD;
    /* above the places that are filled, so that none is overwritten before it is copied */
    int from[3] = {s->fds[0], s->fds[1], report};
    for (int i = 0; i < 3; i++) {
        from[i] = from[i] >= 0 ? fcntl(from[i], F_DUPFD, SX_ACTIVATION_FIRST_FD + 3) : -1;
    }
    for (int i = 0; i < 3; i++) {
        if (from[i] >= 0) {
            dup2(from[i], next++);
            close(from[i]);
        }
    }
    const int sockets = next - 1 - SX_ACTIVATION_FIRST_FD;
    snprintf(text, sizeof(text), "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    snprintf(text, sizeof(text), "%d", sockets);
    setenv("LISTEN_FDS", text, 1);
    setenv("LISTEN_FDNAMES", sockets == 2 ? "rest:grpc" : "rest", 1);
    snprintf(text, sizeof(text), "%d", next - 1);
    setenv("SEXTANT_REPORT_FD", text, 1);
    setpgid(0, 0); /* Ctrl-C is the supervisor's: a second signal would cut off running requests */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) { /* ended before that */
        _exit(SX_EXIT_ERROR);
    }
    /* a signal that comes before the server can handle it: SIGTERM ends it, and it reads its files
     * after SIGHUP anyway. One without files ignores SIGHUP. */
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, unblocked, NULL);
    execv("/proc/self/exe", s->argv);
    _exit(SX_EXIT_ERROR);
}

/* Returns the seconds until the next start: a pause that doubles. */
static int put_off_start(supervisor *s)
{
    enum { MAX_PAUSE_S = 60 };
    s->failures++;
    const int pause_s = s->failures > 6 ? MAX_PAUSE_S : 1 << (s->failures - 1);
    s->not_before_ns = sx_now_ns() + pause_s * INT64_C(1000000000);
    return pause_s;
}

static void start_server(supervisor *s, const char *why, const sigset_t *unblocked)
{
    int ends[2] = {-1, -1};
    pid_t pid = -1;
    const pid_t parent = getpid();
    fflush(stdout);
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
        pid = fork();
    }
    if (pid == 0) {
        become_server(s, ends[1], parent, unblocked);
    }
    if (pid < 0) {
        const int error = errno;
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        const int pause_s = put_off_start(s);
        sx_log(SX_LOG_WARN, "cannot start a server: %s; the next try is in %d s or later",
               strerror(error), pause_s);
        return;
    }
    close(ends[1]);
    s->servers[s->count++] = (server){.pid = pid, .report = ends[0], .started_ns = sx_now_ns()};
    s->busy_since_ns = s->enough_since_ns = 0;
    sx_log(SX_LOG_INFO, "server %d: started (%s)", (int)pid, why);
}

static void stop_server(server *v, const char *why)
{
    v->stopping = true;
    kill(v->pid, SIGTERM);
    sx_log(SX_LOG_INFO, "server %d: stopping (%s)", (int)v->pid, why);
}

static void take_line(server *v)
{
    sx_report_line line = {0};
    if (sscanf(v->line, "%d %" SCNu64 " %" SCNu64, &line.ready, &line.requests, &line.running) !=
        3) {
        return;
    }
    v->last = line;
    v->reported = true;
    if (line.ready && !v->ready) {
        v->ready = true;
        sx_log(SX_LOG_INFO, "server %d: ready after %" PRId64 " ms", (int)v->pid,
               (sx_now_ns() - v->started_ns) / 1000000);
    }
}

static void read_reports(server *v)
{
    char text[512];
    ssize_t size;
    while ((size = read(v->report, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < size; i++) {
            if (text[i] == '\n') {
                v->line[v->line_size] = '\0';
                take_line(v);
                v->line_size = 0;
            } else if (v->line_size < LINE_BYTES - 1) {
                v->line[v->line_size++] = text[i];
            }
        }
    }
}

/* A server has ended. One that failed is replaced after a pause; one that somebody else stopped, at
 * once. */
static void note_end(supervisor *s, const server *v, int status)
{
    enum { SOUND_S = 60 };
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (v->stopping || (code == SX_EXIT_OK && v->ready)) {
        sx_log(SX_LOG_INFO, "server %d: stopped", (int)v->pid);
        return;
    }
    if (code == SX_EXIT_USAGE && !v->ready) {
        s->ended = true;
        s->usage = sx_error(SX_INVALID_ARGUMENT, "the options after -- are not serve's: see above");
        return;
    }
    if (code == SX_EXIT_OK && !v->reported) {
        s->ended = true;
        return;
    }
    if (sx_now_ns() - v->started_ns > SOUND_S * INT64_C(1000000000)) {
        s->failures = 0;
    }
    const int pause_s = put_off_start(s);
    if (code >= 0) {
        sx_log(SX_LOG_WARN,
               "server %d: ended with exit code %d; the next start is in %d s or later",
               (int)v->pid, code, pause_s);
    } else {
        sx_log(SX_LOG_WARN,
               "server %d: killed by signal %d (%s); the next start is in %d s or later",
               (int)v->pid, WTERMSIG(status), strsignal(WTERMSIG(status)), pause_s);
    }
}

static void reap(supervisor *s)
{
    for (int i = 0; i < s->count;) {
        int status = 0;
        server *v = &s->servers[i];
        if (waitpid(v->pid, &status, WNOHANG) != v->pid) {
            i++;
            continue;
        }
        read_reports(v);
        note_end(s, v, status);
        close(v->report);
        s->servers[i] = s->servers[--s->count];
    }
}

static void give_up_late(supervisor *s)
{
    const double timeout = s->o->start_timeout;
    for (int i = 0; i < s->count && timeout > 0; i++) {
        server *v = &s->servers[i];
        if (!v->ready && !v->stopping && !v->late &&
            (double)(sx_now_ns() - v->started_ns) > timeout * 1e9) {
            sx_log(SX_LOG_WARN, "server %d: not ready after %g s (--start-timeout): killed",
                   (int)v->pid, timeout);
            kill(v->pid, SIGKILL);
            v->late = true;
        }
    }
}

/* ---- Load ---- */

static bool lasts(bool is_so, int64_t *since_ns, double seconds, int64_t now_ns)
{
    *since_ns = !is_so ? 0 : *since_ns != 0 ? *since_ns : now_ns;
    return is_so && (double)(now_ns - *since_ns) >= seconds * 1e9;
}

/* Also those that are still stopping have a place. */
static bool may_start(const supervisor *s, int64_t now_ns)
{
    return now_ns >= s->not_before_ns && s->count < MAX_SERVERS;
}

/* Starts or stops a server, if it is time. `waiting`: connections, and no server. */
static void decide(supervisor *s, bool waiting, const sigset_t *unblocked)
{
    const int64_t now_ns = sx_now_ns();
    int active = 0, starting = 0;
    uint64_t running = 0, requests = 0;
    server *newest = NULL;
    for (int i = 0; i < s->count; i++) {
        server *v = &s->servers[i];
        requests += v->last.requests;
        if (!v->stopping) {
            active++;
            starting += !v->ready;
            running += v->last.running;
            newest = newest == NULL || v->started_ns > newest->started_ns ? v : newest;
        }
    }
    const bool asked = requests > s->requests || running > 0;
    const uint64_t target = (uint64_t)s->o->target_requests;
    s->requests = requests;
    if (may_start(s, now_ns) && active < s->o->min_servers) {
        start_server(s, "--min-servers", unblocked);
        return;
    }
    if (may_start(s, now_ns) && active == 0 && waiting) {
        start_server(s, "a request is waiting", unblocked);
        return;
    }
    const bool busy = active > 0 && starting == 0 && running > target * (uint64_t)active;
    if (lasts(busy, &s->busy_since_ns, s->o->busy_seconds, now_ns) && may_start(s, now_ns) &&
        active < s->o->max_servers) {
        char why[64];
        snprintf(why, sizeof(why), "%" PRIu64 " requests at once", running);
        start_server(s, why, unblocked);
        return;
    }
    const bool enough = active == 1 ? !asked && starting == 0
                                    : active > 1 && running * 2 <= target * (uint64_t)(active - 1);
    if (lasts(enough, &s->enough_since_ns, s->o->idle_seconds, now_ns) &&
        active > s->o->min_servers) {
        stop_server(newest, active == 1 ? "no requests" : "one fewer is enough");
        s->enough_since_ns = 0;
    }
}

/* ---- The loop ---- */

/* Waits for a report, a child's end, a signal, or, while there is no server, a connection. */
static bool wait_for_news(supervisor *s, const sigset_t *unblocked)
{
    struct pollfd polled[2 + MAX_SERVERS];
    const struct timespec turn = {.tv_nsec = SX_REPORT_MS * 1000000L};
    int n = 0, active = 0;
    bool waiting = false;
    for (int i = 0; i < s->count; i++) {
        polled[n++] = (struct pollfd){.fd = s->servers[i].report, .events = POLLIN};
        active += !s->servers[i].stopping;
    }
    const int reports = n;
    for (int i = 0; i < 2 && active == 0 && may_start(s, sx_now_ns()); i++) {
        polled[n++] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
    }
    /* with no server and none wanted, nothing changes but by a connection or a signal */
    const bool idle = s->count == 0 && s->o->min_servers == 0 && s->not_before_ns <= sx_now_ns();
    if (ppoll(polled, (nfds_t)n, idle ? NULL : &turn, unblocked) <= 0) {
        return false;
    }
    for (int i = reports; i < n; i++) {
        waiting |= (polled[i].revents & POLLIN) != 0;
    }
    return waiting;
}

static sx_status supervise(supervisor *s, const sigset_t *unblocked)
{
    bool waiting = false;
    while (!s->ended && sx_stop_signal() == 0) {
        reap(s);
        for (int i = 0; i < s->count; i++) {
            read_reports(&s->servers[i]);
            if (hangup) {
                kill(s->servers[i].pid, SIGHUP);
            }
        }
        hangup = 0;
        give_up_late(s);
        if (!s->ended) {
            decide(s, waiting, unblocked);
            waiting = wait_for_news(s, unblocked);
        }
    }
    for (int i = 0; i < s->count; i++) {
        if (!s->servers[i].stopping) {
            stop_server(&s->servers[i], "the supervisor ends");
        }
    }
    sigprocmask(SIG_SETMASK, unblocked, NULL); /* a second signal kills the process */
    while (s->count > 0) {
        reap(s);
        sx_sleep_ns(20000000);
    }
    return s->usage;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const int rest = inv->rest.count;
    supervisor s = {.o = o, .fds = {-1, -1}, .argv = sx_arena_array(&inv->arena, rest + 3, char *)};
    int port = 0;
    sigset_t blocked, unblocked;
    if (o->min_servers > o->max_servers) {
        return sx_usage(inv,
                        sx_error(SX_INVALID_ARGUMENT,
                                 "--min-servers %" PRId64 " is more than --max-servers %" PRId64,
                                 o->min_servers, o->max_servers));
    }
    if (rest == 0) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "give the options of serve after --, such as -- "
                                      "--model_name=m --model_base_path=/models/m"));
    }
    if (s.argv == NULL) {
        return sx_no_memory("for a server");
    }
    s.argv[0] = (char *)"sextant";
    s.argv[1] = (char *)"serve";
    for (int i = 0; i < rest; i++) {
        s.argv[i + 2] = (char *)inv->rest.items[i];
    }
    SX_TRY(sx_listen(o->host, (int)o->rest_api_port, BACKLOG, 1, &s.fds[0], &port));
    printf("Listening on port %d\n", port);
    sx_status status =
        o->port == 0 ? SX_OK : sx_listen(o->host, (int)o->port, BACKLOG, 1, &s.fds[1], &port);
    if (status == SX_OK && o->port != 0) {
        printf("Listening on port %d for gRPC\n", port);
    }
    fflush(stdout);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &unblocked);
    const struct sigaction reload = {.sa_handler = on_hangup}, child = {.sa_handler = on_child};
    sigaction(SIGHUP, &reload, NULL);
    sigaction(SIGCHLD, &child, NULL);
    if (status == SX_OK) {
        status = supervise(&s, &unblocked);
    }
    for (int i = 0; i < 2; i++) {
        if (s.fds[i] >= 0) {
            close(s.fds[i]);
        }
    }
    return status;
}

const sx_command sx_command_supervise = {
    .name = "supervise",
    .summary = "start and stop model servers as the load changes",
    .words = "",
    .about =
        "Listens on the ports, and runs `sextant serve` with the options after -- to answer what "
        "arrives there. "
        "With --min-servers 0, no server runs until a request comes; that request waits until "
        "the models are loaded, which the log shows (\"ready after 213 ms\"), and the last server "
        "is stopped after --idle-seconds without one. With --max-servers 2 or more, another server "
        "is started while there are more requests at once than --target-requests for each. A "
        "server that crashes, or is not ready after --start-timeout, is replaced, after a pause "
        "that doubles up to a minute. On SIGTERM or Ctrl-C, all servers finish their running "
        "requests; on SIGHUP, they read their files of models and traffic again.",
    .examples = "  sextant supervise --min-servers 0 --idle-seconds 600 -- --model_name=flowers "
                "--model_base_path=$PWD/models/flowers\n"
                "  sextant supervise --min-servers 1 --max-servers 4 --target-requests 8 -- "
                "--model_config_file=models.config --threads=2",
    .rest = "options of serve, except for its ports",
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
