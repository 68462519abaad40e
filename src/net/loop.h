/* The event loop: epoll, timers and posted tasks; one loop per thread; only posted tasks are
 * shared.
 *
 * The objects it watches are embedded in their owners (no allocation after creation):
 *   sx_loop_io     a descriptor and the function that its events call
 *   sx_loop_timer  a time and the function to call then; resolution 16 ms, for timeouts
 *   sx_loop_task   a function to run on the loop's thread; other threads may post it
 *
 * Invariants: an io that was removed is never called again, not even by events that the kernel had
 * already reported. Tasks run in the order of posting. All functions except sx_loop_post and
 * sx_loop_stop may be called only on the loop's thread, or while the loop is not running. */
#ifndef SX_NET_LOOP_H
#define SX_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include <sextant/status.h>

typedef struct sx_loop sx_loop;

typedef struct sx_loop_io {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT ..., level-triggered */
    void (*fn)(void *user, uint32_t events);
    void *user;
} sx_loop_io;

typedef struct sx_loop_timer {
    int64_t deadline_ns; /* of sx_now_ns() */
    void (*fn)(void *user);
    void *user;
    struct sx_loop_timer *next, **link; /* link == NULL: not set */
    int slot;
} sx_loop_timer;

typedef struct sx_loop_task {
    void (*fn)(void *user);
    void *user;
    struct sx_loop_task *next;
} sx_loop_task;

SX_MUST_USE sx_status sx_loop_create(sx_loop **out_loop);
void sx_loop_destroy(sx_loop *loop); /* NULL is allowed; watched objects are not freed */

/* Runs until sx_loop_stop. */
SX_MUST_USE sx_status sx_loop_run(sx_loop *loop);
void sx_loop_stop(sx_loop *loop); /* any thread */

/* sx_now_ns() as of the latest wake-up: cheap, and accurate enough for timeouts. */
int64_t sx_loop_now_ns(const sx_loop *loop);

SX_MUST_USE sx_status sx_loop_add(sx_loop *loop, sx_loop_io *io);
void sx_loop_modify(sx_loop *loop, sx_loop_io *io, uint32_t events);
void sx_loop_remove(sx_loop *loop, sx_loop_io *io); /* before its descriptor is closed */

/* Sets or moves a timer; its function is called once, at the deadline or up to 16 ms later. */
void sx_loop_timer_set(sx_loop *loop, sx_loop_timer *timer, int64_t deadline_ns);
void sx_loop_timer_cancel(sx_loop *loop, sx_loop_timer *timer); /* no-op if not set */

/* Runs `task` on the loop's thread, soon. The task must not be pending already. Any thread. */
void sx_loop_post(sx_loop *loop, sx_loop_task *task);

#endif
