/* Values: on the host until a program reads them, then on its devices. */
#include <string.h>

#include "backends/placed/placed.h"
#include "base/memory.h"

typedef struct copy {
    sx_device_buffer *buffer; /* NULL: not made yet */
    bool valid;
} copy;

typedef struct placed_buffer {
    sx_device_buffer head;
    pthread_mutex_t lock; /* threads may share variables */
    void *own;            /* host memory; NULL = none */
    const void *host;     /* the value: own, or borrowed; NULL: it is on a device */
    copy copies[];        /* by device */
} placed_buffer;

static const sx_placed_platform *platform_of(const sx_device_buffer *buffer)
{
    return (const sx_placed_platform *)buffer->device->platform;
}

static sx_status no_memory(const sx_type *type)
{
    return sx_no_memory("for a value of %zu bytes", (size_t)sx_type_bytes(type));
}

sx_status sx_placed_buffer_create(sx_device *device, int memory, const sx_type *type,
                                  sx_device_buffer **out)
{
    (void)memory; /* there is one */
    const sx_placed_platform *p = (const sx_placed_platform *)device->platform;
    placed_buffer *b = sx_alloc(1, sizeof(*b) + (size_t)p->n_subs * sizeof(copy));
    if (b == NULL) {
        return no_memory(type);
    }
    b->head.device = device;
    b->head.type = *type;
    atomic_init(&b->head.refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    *out = &b->head;
    return SX_OK;
}

void sx_placed_buffer_destroy(sx_device_buffer *head)
{
    placed_buffer *b = (placed_buffer *)head;
    for (int i = 0; i < platform_of(head)->n_subs; i++) {
        sx_device_buffer_release(b->copies[i].buffer);
    }
    pthread_mutex_destroy(&b->lock);
    sx_free_aligned(b->own);
    sx_free(b);
}

static void forget_copies(placed_buffer *b)
{
    for (int i = 0; i < platform_of(&b->head)->n_subs; i++) {
        b->copies[i].valid = false;
    }
}

static sx_status need_own(placed_buffer *b)
{
    if (b->own == NULL) {
        b->own = sx_alloc_aligned((size_t)sx_type_bytes(&b->head.type) + 1, 64);
    }
    return b->own != NULL ? SX_OK : no_memory(&b->head.type);
}

sx_status sx_placed_buffer_write(sx_device_buffer *head, const void *data, bool borrow)
{
    placed_buffer *b = (placed_buffer *)head;
    sx_status status = SX_OK;
    pthread_mutex_lock(&b->lock);
    if (borrow) {
        b->host = data;
    } else if ((status = need_own(b)) == SX_OK) {
        memcpy(b->own, data, (size_t)sx_type_bytes(&head->type));
        b->host = b->own;
    }
    if (status == SX_OK) {
        forget_copies(b);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* A device that has the value, or -1. */
static int holder(const placed_buffer *b)
{
    for (int i = 0; i < platform_of(&b->head)->n_subs; i++) {
        if (b->copies[i].valid) {
            return i;
        }
    }
    return -1;
}

sx_status sx_placed_buffer_read(sx_device_buffer *head, void *data, int64_t deadline_ns)
{
    placed_buffer *b = (placed_buffer *)head;
    const size_t bytes = (size_t)sx_type_bytes(&head->type);
    sx_status status = SX_OK;
    pthread_mutex_lock(&b->lock);
    const int from = holder(b);
    if (b->host != NULL) {
        memcpy(data, b->host, bytes);
    } else if (from >= 0) {
        status = sx_device_buffer_read_within(b->copies[from].buffer, data, deadline_ns);
    } else {
        memset(data, 0, bytes);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

static sx_status need_buffer(placed_buffer *b, int sub)
{
    const sx_placed_platform *p = platform_of(&b->head);
    sx_device_buffer **buffer = &b->copies[sub].buffer;
    return *buffer != NULL ? SX_OK
                           : sx_device_buffer_create_within(p->subs[sub], &b->head.type,
                                                            sx_placed_budget(p, sub, NULL), buffer);
}

static sx_status bring(placed_buffer *b, int sub)
{
    const int from = holder(b);
    if (b->copies[sub].valid) {
        return SX_OK;
    }
    SX_TRY(need_buffer(b, sub));
    if (b->host == NULL && from < 0) { /* never written */
        SX_TRY(need_own(b));
        memset(b->own, 0, (size_t)sx_type_bytes(&b->head.type));
        b->host = b->own;
    }
    if (b->host != NULL) {
        SX_TRY(sx_device_buffer_write(b->copies[sub].buffer, b->host, true));
    } else {
        SX_TRY(sx_placed_copy(b->copies[from].buffer, NULL, &b->copies[sub].buffer));
    }
    b->copies[sub].valid = true;
    return SX_OK;
}

/* The copy on device `sub` after `need`, which makes it. */
static sx_status copy_at(sx_device_buffer *head, int sub, sx_status (*need)(placed_buffer *, int),
                         sx_device_buffer **out)
{
    placed_buffer *b = (placed_buffer *)head;
    pthread_mutex_lock(&b->lock);
    sx_status status = need(b, sub);
    *out = b->copies[sub].buffer;
    pthread_mutex_unlock(&b->lock);
    return status;
}

sx_status sx_placed_value(sx_device_buffer *head, int sub, sx_device_buffer **out)
{
    return copy_at(head, sub, bring, out);
}

sx_status sx_placed_room(sx_device_buffer *head, int sub, sx_device_buffer **out)
{
    return copy_at(head, sub, need_buffer, out);
}

void sx_placed_written(sx_device_buffer *head, int sub)
{
    sx_placed_take(head, sub, NULL);
}

void sx_placed_take(sx_device_buffer *head, int sub, sx_device_buffer **made)
{
    placed_buffer *b = (placed_buffer *)head;
    pthread_mutex_lock(&b->lock);
    if (made != NULL) {
        sx_device_buffer *before = b->copies[sub].buffer;
        b->copies[sub].buffer = *made;
        *made = before;
    }
    forget_copies(b);
    b->copies[sub].valid = true;
    b->host = NULL;
    sx_free_aligned(b->own); /* no copy that is valid refers to it */
    b->own = NULL;
    pthread_mutex_unlock(&b->lock);
}

sx_status sx_placed_copy(sx_device_buffer *from, const void *host, sx_device_buffer **to)
{
    void *target = host == NULL ? sx_device_buffer_data(*to) : NULL;
    if (host != NULL) {
        return sx_device_buffer_write(*to, host, true);
    }
    if (target != NULL) {
        return sx_device_buffer_read(from, target);
    }
    sx_device_buffer *made = NULL;
    SX_TRY(sx_device_buffer_copy(from, (*to)->device, 0, &made));
    sx_device_buffer_release(*to);
    *to = made;
    return SX_OK;
}
