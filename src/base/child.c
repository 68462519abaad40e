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

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"

enum { CHUNK = 1 << 16, OUTPUT_KEPT = 4000, OUTPUT_QUOTED = 600, MAX_ANSWER = 1 << 30 };

/* ---- In the child ---- */

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

/* Runs the work and writes 0 and its answer, or the code and message of its error. Does not run
 * atexit handlers, which belong to the parent. */
static void work_in_child(sx_child_work *work, void *user, int answer_fd, int output_fd)
{
    const struct rlimit no_core = {0, 0};
    sx_buf answer;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(output_fd, STDERR_FILENO);
    dup2(output_fd, STDOUT_FILENO);
    sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
    sx_buf_init(&answer, MAX_ANSWER);
    sx_status status = work(user, &answer);
    status = status != SX_OK ? status : sx_buf_status(&answer);
    char code = (char)sx_status_code(status);
    const char *message = sx_status_message(status);
    bool done = write_all(answer_fd, &code, 1) &&
                (code != 0 ? write_all(answer_fd, message, strlen(message))
                           : write_all(answer_fd, sx_buf_text(&answer), answer.size));
    _exit(!done); /* child */
}

/* ---- In the parent ---- */

/* The last bytes that the child printed. */
typedef struct tail {
    char text[OUTPUT_KEPT + 1];
    size_t size;
} tail;

static void tail_add(tail *t, const char *chunk, size_t n)
{
    if (n > OUTPUT_KEPT) {
        chunk += n - OUTPUT_KEPT;
        n = OUTPUT_KEPT;
    }
    size_t keep = t->size + n > OUTPUT_KEPT ? OUTPUT_KEPT - n : t->size;
    memmove(t->text, t->text + t->size - keep, keep);
    memcpy(t->text + keep, chunk, n);
    t->size = keep + n;
    t->text[t->size] = '\0';
}

/* Reads once from the child's answer, or from its output if `answer` is NULL; false at the end. */
static bool read_once(int fd, sx_buf *answer, tail *output)
{
    char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n < 0) {
        return errno == EINTR;
    }
    if (answer != NULL) {
        sx_buf_append(answer, chunk, (size_t)n);
    } else {
        tail_add(output, chunk, (size_t)n);
    }
    return n > 0;
}

/* Reads both pipes to their ends; false if that takes longer than `seconds`. */
static bool read_pipes(int answer_fd, int output_fd, double seconds, sx_buf *answer, tail *output)
{
    double end = (double)sx_now_ns() * 1e-9 + seconds;
    struct pollfd fds[2] = {{.fd = answer_fd, .events = POLLIN},
                            {.fd = output_fd, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        double left = end - (double)sx_now_ns() * 1e-9;
        if (left <= 0 || (poll(fds, 2, (int)(left * 1e3) + 1) < 0 && errno != EINTR)) {
            return false;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0 && !read_once(fds[i].fd, i == 0 ? answer : NULL, output)) {
                fds[i].fd = -1;
            }
            fds[i].revents = 0;
        }
    }
    return true;
}

sx_status sx_run_in_child(const char *what, int seconds, sx_child_work *work, void *user,
                          sx_buf *answer)
{
    int answers[2], outputs[2];
    if (pipe(answers) != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: cannot create a pipe: %s", what,
                        strerror(errno));
    }
    if (pipe(outputs) != 0) {
        sx_status status =
            sx_error(SX_RESOURCE_EXHAUSTED, "%s: cannot create a pipe: %s", what, strerror(errno));
        close(answers[0]);
        close(answers[1]);
        return status;
    }
    pid_t child = fork();
    if (child == 0) {
        work_in_child(work, user, answers[1], outputs[1]);
    }
    int fork_error = errno;
    close(answers[1]);
    close(outputs[1]);

    sx_buf received; /* the code, then the answer or message */
    tail output = {.size = 0};
    bool in_time = true;
    int exit_state = 0;
    sx_buf_init(&received, MAX_ANSWER);
    if (child > 0) {
        in_time = read_pipes(answers[0], outputs[0], seconds, &received, &output);
        if (!in_time) {
            kill(child, SIGKILL);
        }
        while (waitpid(child, &exit_state, 0) < 0 && errno == EINTR) {
        }
    }
    close(answers[0]);
    close(outputs[0]);

    sx_status status = sx_buf_status(&received);
    const char *text = sx_buf_text(&received);
    const char *printed = output.text + SX_MAX(output.size, OUTPUT_QUOTED) - OUTPUT_QUOTED;
    if (child < 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "%s: cannot create a process: %s", what,
                          strerror(fork_error));
    } else if (!in_time) {
        status = sx_error(SX_UNAVAILABLE, "%s did not finish within %d s; output: %s", what,
                          seconds, printed);
    } else if (WIFSIGNALED(exit_state)) {
        status = sx_error(SX_UNAVAILABLE, "%s crashed (%s); output: %s", what,
                          strsignal(WTERMSIG(exit_state)), printed);
    } else if (status == SX_OK && received.size == 0) {
        status = sx_error(SX_UNAVAILABLE, "%s exited with code %d; output: %s", what,
                          WEXITSTATUS(exit_state), printed);
    } else if (status == SX_OK && text[0] != 0) {
        status = sx_error((sx_code)text[0], "%s", text + 1);
    }
    if (status == SX_OK) {
        sx_buf_append(answer, received.data + 1, received.size - 1);
        status = sx_buf_status(answer);
    }
    sx_buf_deinit(&received);
    return status;
}
