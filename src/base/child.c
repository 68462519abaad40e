/* See child.h. */
#include "base/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { CHUNK = 1 << 16, LAST_WORDS = 4000, QUOTED = 600, MAX_ANSWER = 1 << 30 };

/* --- In the child ---------------------------------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Writes the error's code and message, or 0 and the answer, and leaves without handlers. */
static void work_in_child(sx_child_work *work, void *user, int out, int words)
{
    const struct rlimit no_core = {0, 0};
    sx_buf answer;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(words, STDERR_FILENO);
    dup2(words, STDOUT_FILENO);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    sx_buf_init(&answer, MAX_ANSWER);
    sx_status status = work(user, &answer);
    status = status != SX_OK ? status : sx_buf_status(&answer);
    char code = (char)sx_status_code(status);
    const char *message = sx_status_message(status);
    bool done =
        write_all(out, &code, 1) && (code != 0 ? write_all(out, message, strlen(message))
                                               : write_all(out, sx_buf_text(&answer), answer.size));
    _exit(!done); /* child */
}

/* --- In the parent --------------------------------------------------------------------------- */

/* The end of what was written to it. */
typedef struct tail {
    char text[LAST_WORDS + 1];
    size_t size;
} tail;

static void tail_add(tail *t, const char *chunk, size_t n)
{
    if (n > LAST_WORDS) {
        chunk += n - LAST_WORDS;
        n = LAST_WORDS;
    }
    size_t keep = t->size + n > LAST_WORDS ? LAST_WORDS - n : t->size;
    memmove(t->text, t->text + t->size - keep, keep);
    memcpy(t->text + keep, chunk, n);
    t->size = keep + n;
    t->text[t->size] = '\0';
}

/* The last of it, as much as a message can hold. */
static const char *last_of(const tail *t)
{
    return t->size > QUOTED ? t->text + t->size - QUOTED : t->text;
}

/* Reads once; false at the end. */
static bool read_once(int fd, sx_buf *answer, tail *words)
{
    char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n < 0) {
        return errno == EINTR;
    }
    if (answer != NULL) {
        sx_buf_append(answer, chunk, (size_t)n);
    } else {
        tail_add(words, chunk, (size_t)n);
    }
    return n > 0;
}

/* Collects both pipes until they end or the time is over; false then. */
static bool listen_to(int answer_fd, int words_fd, double seconds, sx_buf *answer, tail *words)
{
    double end = (double)sx_now_ns() * 1e-9 + seconds;
    struct pollfd fds[2] = {{.fd = answer_fd, .events = POLLIN},
                            {.fd = words_fd, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        double left = end - (double)sx_now_ns() * 1e-9;
        if (left <= 0 || (poll(fds, 2, (int)(left * 1e3) + 1) < 0 && errno != EINTR)) {
            return false;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0 && !read_once(fds[i].fd, i == 0 ? answer : NULL, words)) {
                fds[i].fd = -1;
            }
            fds[i].revents = 0;
        }
    }
    return true;
}

typedef struct outcome {
    bool in_time;
    int state; /* of waitpid */
    sx_buf answer;
    tail words;
} outcome;

static sx_status judge(const char *what, int seconds, const outcome *o)
{
    const char *text = sx_buf_text(&o->answer);
    if (!o->in_time) {
        return sx_error(SX_UNAVAILABLE, "%s did not answer within %d s; it wrote: %s", what,
                        seconds, last_of(&o->words));
    }
    if (WIFSIGNALED(o->state)) {
        return sx_error(SX_UNAVAILABLE, "%s ended the process that tried it (%s); it wrote: %s",
                        what, strsignal(WTERMSIG(o->state)), last_of(&o->words));
    }
    if (o->answer.size == 0) {
        return sx_error(SX_UNAVAILABLE,
                        "%s ended the process that tried it (exit code %d); it wrote: %s", what,
                        WEXITSTATUS(o->state), last_of(&o->words));
    }
    SX_TRY(sx_buf_status(&o->answer));
    return text[0] == 0 ? SX_OK : sx_error((sx_code)text[0], "%s", text + 1);
}

static void follow(pid_t child, int answer_fd, int words_fd, int seconds, outcome *o)
{
    o->in_time = listen_to(answer_fd, words_fd, seconds, &o->answer, &o->words);
    if (!o->in_time) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &o->state, 0) < 0 && errno == EINTR) {
    }
}

sx_status sx_run_in_child(const char *what, int seconds, sx_child_work *work, void *user,
                          sx_buf *answer)
{
    int answers[2], words[2];
    if (pipe(answers) != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no pipe: %s", what, strerror(errno));
    }
    if (pipe(words) != 0) {
        close(answers[0]);
        close(answers[1]);
        return sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no pipe: %s", what, strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        work_in_child(work, user, answers[1], words[1]);
    }
    int error = errno;
    close(answers[1]);
    close(words[1]);
    outcome o = {.in_time = false};
    sx_buf_init(&o.answer, MAX_ANSWER);
    sx_status status = SX_OK;
    if (child > 0) {
        follow(child, answers[0], words[0], seconds, &o);
        status = judge(what, seconds, &o);
    } else {
        status =
            sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no process: %s", what, strerror(error));
    }
    close(answers[0]);
    close(words[0]);
    if (status == SX_OK) {
        sx_buf_append(answer, o.answer.data + 1, o.answer.size - 1);
        status = sx_buf_status(answer);
    }
    sx_buf_deinit(&o.answer);
    return status;
}
