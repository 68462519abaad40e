/* The event loop; see loop.h.
 *
 * Timers live in a hashed wheel: slot = tick of the deadline mod 512, each slot a list, and a
 * bitmap of the slots in use tells how long epoll may sleep. A deadline beyond one turn (8 s) waits
 * in the last slot and is inserted again when that slot is due. */
#include "net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
    SLOTS = 512,
    SLOT_WORDS = SLOTS / 64,
    READY_EVENTS = 64,
};
static const int64_t tick_ns = 16 * 1000000;

struct sx_loop {
    int epoll_fd, wake_fd;
    int64_t now_ns;
    int64_t tick; /* all slots up to this one have been served */
    sx_loop_timer *slots[SLOTS];
    uint64_t slots_used[SLOT_WORDS];
    struct epoll_event ready[READY_EVENTS];
    int ready_next, ready_count; /* the events not yet dispatched */
    atomic_bool stopping;
    atomic_bool asleep;    /* a post has to wake it */
    pthread_mutex_t mutex; /* guards the two below */
    sx_loop_task *first, **last;
};

/* ---- Creation and destruction ---- */

sx_status sx_loop_create(sx_loop **out_loop)
{
    sx_loop *loop = sx_alloc(1, sizeof(*loop));
    if (loop == NULL) {
        return sx_no_memory("for an event loop");
    }
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}; /* NULL = the wake-up */
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) != 0) {
        sx_status status = sx_error(SX_RESOURCE_EXHAUSTED, "event loop: %s", strerror(errno));
        if (loop->epoll_fd >= 0) {
            close(loop->epoll_fd);
        }
        if (loop->wake_fd >= 0) {
            close(loop->wake_fd);
        }
        sx_free(loop);
        return status;
    }
    pthread_mutex_init(&loop->mutex, NULL);
    loop->last = &loop->first;
    loop->now_ns = sx_now_ns();
    loop->tick = loop->now_ns / tick_ns;
    *out_loop = loop;
    return SX_OK;
}

void sx_loop_destroy(sx_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    close(loop->epoll_fd);
    close(loop->wake_fd);
    pthread_mutex_destroy(&loop->mutex);
    sx_free(loop);
}

int64_t sx_loop_now_ns(const sx_loop *loop)
{
    return loop->now_ns;
}

/* ---- Descriptors ---- */

sx_status sx_loop_add(sx_loop *loop, sx_loop_io *io)
{
    struct epoll_event event = {.events = io->events, .data.ptr = io};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, io->fd, &event) != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "event loop: cannot watch descriptor %d: %s", io->fd,
                        strerror(errno));
    }
    return SX_OK;
}

void sx_loop_modify(sx_loop *loop, sx_loop_io *io, uint32_t events)
{
    if (io->events == events) {
        return;
    }
    io->events = events;
    struct epoll_event event = {.events = events, .data.ptr = io};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &event); /* cannot fail on a watched one */
}

void sx_loop_remove(sx_loop *loop, sx_loop_io *io)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    for (int i = loop->ready_next; i < loop->ready_count; i++) {
        if (loop->ready[i].data.ptr == io) {
            loop->ready[i].events = 0;
        }
    }
}

/* ---- Timers ---- */

static void wheel_insert(sx_loop *loop, sx_loop_timer *timer)
{
    int64_t tick = (timer->deadline_ns + tick_ns - 1) / tick_ns;
    if (tick <= loop->tick) {
        tick = loop->tick + 1;
    } else if (tick >= loop->tick + SLOTS) {
        tick = loop->tick + SLOTS - 1;
    }
    timer->slot = (int)(tick % SLOTS);
    sx_loop_timer **head = &loop->slots[timer->slot];
    timer->next = *head;
    timer->link = head;
    if (*head != NULL) {
        (*head)->link = &timer->next;
    }
    *head = timer;
    loop->slots_used[timer->slot / 64] |= (uint64_t)1 << (timer->slot % 64);
}

void sx_loop_timer_cancel(sx_loop *loop, sx_loop_timer *timer)
{
    if (timer->link == NULL) {
        return;
    }
    *timer->link = timer->next;
    if (timer->next != NULL) {
        timer->next->link = timer->link;
    }
    timer->link = NULL;
    if (loop->slots[timer->slot] == NULL) {
        loop->slots_used[timer->slot / 64] &= ~((uint64_t)1 << (timer->slot % 64));
    }
}

void sx_loop_timer_set(sx_loop *loop, sx_loop_timer *timer, int64_t deadline_ns)
{
    sx_loop_timer_cancel(loop, timer);
    timer->deadline_ns = deadline_ns;
    wheel_insert(loop, timer);
}

/* Calls the timers due in the slot of `tick`; reinserts the others. */
static void serve_slot(sx_loop *loop, int64_t tick)
{
    const int slot = (int)(tick % SLOTS);
    sx_loop_timer *later = NULL;
    while (loop->slots[slot] != NULL) {
        sx_loop_timer *timer = loop->slots[slot];
        sx_loop_timer_cancel(loop, timer);
        if (timer->deadline_ns <= loop->now_ns) {
            timer->fn(timer->user); /* may set or cancel any timer */
        } else {
            timer->next = later;
            later = timer;
            timer->link = &later; /* so that it counts as set while it waits here */
            if (timer->next != NULL) {
                timer->next->link = &timer->next;
            }
        }
    }
    while (later != NULL) {
        sx_loop_timer *timer = later;
        later = timer->next;
        if (later != NULL) {
            later->link = &later;
        }
        wheel_insert(loop, timer);
    }
}

static bool any_slot_used(const sx_loop *loop)
{
    for (int i = 0; i < SLOT_WORDS; i++) {
        if (loop->slots_used[i]) {
            return true;
        }
    }
    return false;
}

static void serve_timers(sx_loop *loop)
{
    const int64_t now = loop->now_ns / tick_ns;
    if (now - loop->tick > SLOTS || !any_slot_used(loop)) {
        const int64_t skip_to = now - SLOTS;
        loop->tick = any_slot_used(loop) ? (skip_to > loop->tick ? skip_to : loop->tick) : now;
    }
    while (loop->tick < now) {
        loop->tick++;
        const int slot = (int)(loop->tick % SLOTS);
        if (loop->slots_used[slot / 64] & (uint64_t)1 << (slot % 64)) {
            serve_slot(loop, loop->tick);
        }
    }
}

/* Milliseconds until the next slot in use; -1 = no timer is set. */
static int sleep_ms(const sx_loop *loop)
{
    if (!any_slot_used(loop)) {
        return -1;
    }
    for (int i = 1; i <= SLOTS; i++) {
        const int slot = (int)((loop->tick + i) % SLOTS);
        if (loop->slots_used[slot / 64] & (uint64_t)1 << (slot % 64)) {
            const int64_t wait_ns = (loop->tick + i) * tick_ns - sx_now_ns();
            return wait_ns <= 0 ? 0 : (int)((wait_ns + 999999) / 1000000);
        }
    }
    return -1;
}

/* ---- Tasks ---- */

static void wake(sx_loop *loop)
{
    const uint64_t one = 1;
    const ssize_t written = write(loop->wake_fd, &one, sizeof(one));
    (void)written; /* if it is full, a wake-up is already pending */
}

void sx_loop_post(sx_loop *loop, sx_loop_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&loop->mutex);
    *loop->last = task;
    loop->last = &task->next;
    pthread_mutex_unlock(&loop->mutex);
    if (atomic_exchange(&loop->asleep, false)) {
        wake(loop);
    }
}

void sx_loop_stop(sx_loop *loop)
{
    atomic_store(&loop->stopping, true);
    wake(loop);
}

static bool has_tasks(sx_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    const bool found = loop->first != NULL;
    pthread_mutex_unlock(&loop->mutex);
    return found;
}

/* Runs the tasks posted so far; those that they post wait for the next turn. */
static void run_tasks(sx_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    sx_loop_task *task = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    pthread_mutex_unlock(&loop->mutex);
    while (task != NULL) {
        sx_loop_task *next = task->next; /* the task may be posted again by its own function */
        task->fn(task->user);
        task = next;
    }
}

/* ---- Running ---- */

static void dispatch(sx_loop *loop, int count)
{
    loop->ready_count = count;
    for (loop->ready_next = 0; loop->ready_next < loop->ready_count;) {
        const struct epoll_event event = loop->ready[loop->ready_next++];
        sx_loop_io *io = event.data.ptr;
        if (io != NULL) {
            if (event.events) {
                io->fn(io->user, event.events);
                run_tasks(loop); /* what it holds until they run, it does not hold together with
                                  * all others that are ready */
            }
            continue;
        }
        uint64_t wakeups;
        const ssize_t got = read(loop->wake_fd, &wakeups, sizeof(wakeups));
        (void)got; /* resets the counter */
    }
    loop->ready_count = 0;
}

/* Sleeps until something happens. A post between the check for tasks and epoll_wait sees `asleep`
 * and writes to the eventfd, so no wake-up is lost. */
static int wait_for_events(sx_loop *loop)
{
    int timeout = sleep_ms(loop);
    atomic_store(&loop->asleep, true);
    if (has_tasks(loop) || atomic_load(&loop->stopping)) {
        timeout = 0;
    }
    const int count = epoll_wait(loop->epoll_fd, loop->ready, READY_EVENTS, timeout);
    const int error = errno;
    atomic_store(&loop->asleep, false);
    errno = error;
    return count;
}

sx_status sx_loop_run(sx_loop *loop)
{
    while (!atomic_load(&loop->stopping)) {
        const int count = wait_for_events(loop);
        if (count < 0 && errno != EINTR) {
            return sx_error(SX_INTERNAL, "event loop: epoll_wait: %s", strerror(errno));
        }
        loop->now_ns = sx_now_ns();
        dispatch(loop, count < 0 ? 0 : count);
        run_tasks(loop);
        serve_timers(loop);
    }
    return SX_OK;
}
