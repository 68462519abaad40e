/* Work in a child process, which SIGKILL may end. */
#ifndef SX_TESTS_TRAIN_CHILD_H
#define SX_TESTS_TRAIN_CHILD_H

#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs work(user) in a child. True when it finished, and then what it returned; false when it was
 * killed; anything else fails the test. */
static inline bool finishes_in_child(uint64_t (*work)(void *user), void *user, uint64_t *out)
{
    int pipes[2], wait_status;
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t result = work(user);
        _exit(write(pipes[1], &result, sizeof(result)) == sizeof(result) ? 0 : 3);
    }
    close(pipes[1]);
    bool finished = read(pipes[0], out, sizeof(*out)) == sizeof(*out);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    /* A signal may strike after the result was written. */
    bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    assert_true(killed || (finished && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0));
    return finished;
}

#endif
