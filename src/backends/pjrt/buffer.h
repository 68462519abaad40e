/* A value on the devices of this process: an array on each replica, either copies or the equal
 * parts of a batch, split along the dimension of the batch; a superbatch has one more in front.
 *
 *       write                     place                       execute
 *   EMPTY ---> HELD (host data) --------> COPIED or CUT -------------> COPIED or CUT
 *                                                       \-- failed --> LOST
 *                                                       \-- taken ---> GIVEN
 *
 * With several replicas, the first program that uses the buffer determines whether it is split;
 * until then the buffer holds the host's data. With several processes, data that are split are
 * written from the whole batch, of which a process needs its own part, and cannot be read. Donated
 * arrays become invalid when the execution is submitted; its results replace them. */
#ifndef SX_BACKENDS_PJRT_BUFFER_H
#define SX_BACKENDS_PJRT_BUFFER_H

#include "backends/pjrt/pjrt.h"

typedef enum sx_pjrt_buffer_state {
    SX_PJRT_EMPTY, /* not written: zeros */
    SX_PJRT_HELD,  /* host data, not yet on the devices */
    SX_PJRT_COPIED,
    SX_PJRT_CUT,
    SX_PJRT_LOST,  /* lost in an execution that failed */
    SX_PJRT_GIVEN, /* to an execution; the next value is split likewise */
} sx_pjrt_buffer_state;

typedef struct sx_pjrt_buffer {
    sx_device_buffer head;
    pthread_mutex_t lock; /* for the fields below but `reading`, which the platform's is for */
    sx_pjrt_buffer_state state;
    void **arrays;    /* [local] */
    void **transfers; /* [local]: events of copies that still read `held`; NULL = done */
    void *filling;    /* ended after `transfers`; NULL: there is none */
    void *reading;    /* event of a copy to the host; NULL outside sx_pjrt_buffers_read() */
    const void *held; /* SX_PJRT_HELD: `owned`, or borrowed */
    void *owned;
    int axis; /* SX_PJRT_CUT: the dimension; SX_PJRT_GIVEN: the same, or SX_PJRT_WHOLE */
} sx_pjrt_buffer;

/* Functions of the backend interface. */
SX_MUST_USE sx_status sx_pjrt_buffer_create(sx_device *device, int memory, const sx_type *type,
                                            sx_device_buffer **out);
void sx_pjrt_buffer_destroy(sx_device_buffer *head);
SX_MUST_USE sx_status sx_pjrt_buffer_write(sx_device_buffer *head, const void *data, bool borrow);
SX_MUST_USE sx_status sx_pjrt_buffer_write_first(sx_device_buffer *head, const void *data,
                                                 int64_t bytes);
SX_MUST_USE sx_status sx_pjrt_buffer_read(sx_device_buffer *head, void *data, int64_t deadline_ns);
SX_MUST_USE sx_status sx_pjrt_buffers_read(int n, sx_device_buffer *const *heads,
                                           void *const *data);

SX_MUST_USE sx_status sx_pjrt_buffer_copy(sx_device_buffer *from, sx_device *to, int memory,
                                          sx_device_buffer **out);

/* For executions; the caller holds the buffer's lock. */

/* Moves the value to the devices as a program expects it: SX_PJRT_WHOLE, or split along `axis`. */
SX_MUST_USE sx_status sx_pjrt_buffer_place(sx_pjrt_buffer *b, int axis);
/* Waits until no copy reads host memory lent by the caller. */
SX_MUST_USE sx_status sx_pjrt_buffer_settle(sx_pjrt_buffer *b);
/* Sets the value to these arrays, one per replica, `stride` apart in `arrays`. Takes ownership. */
void sx_pjrt_buffer_take(sx_pjrt_buffer *b, void *const *arrays, int stride, int axis);
/* An execution that was submitted takes the arrays. */
void sx_pjrt_buffer_give_up(sx_pjrt_buffer *b);
/* Marks the value as lost. */
void sx_pjrt_buffer_lose(sx_pjrt_buffer *b);

#endif
