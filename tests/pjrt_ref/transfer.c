/* See transfer.h. */
#include "pjrt_ref/transfer.h"

#include <string.h>

#include "base/memory.h"
#include "pjrt_ref/counts.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/run.h"

struct ref_filling {
    atomic_int refs; /* of the caller, and of each copy that waits */
    ref_device *device;
    ref_buffer *buffer; /* NULL = taken */
    ref_cell *cell;
    ref_array *array;
    bool has_last;
};

/* A copy that waits for its turn on a device's thread. */
typedef struct transfer {
    ref_device *device;
    ref_cell *from, *to; /* NULL = the host's */
    sx_type type;
    void *host;
    void *owned; /* the host's data, copied in the call */
    int64_t strides[SX_MAX_RANK];
    ref_filling *filling; /* of a piece of an array: */
    int64_t offset, bytes;
    bool is_last;
    ref_event *done;
} transfer;

static void filling_release(ref_filling *f)
{
    if (f == NULL || atomic_fetch_sub(&f->refs, 1) > 1) {
        return;
    }
    if (!f->has_last) {
        ref_event_end(f->cell->ready, sx_error(SX_CANCELLED, "the array was not filled"));
    }
    if (f->buffer != NULL) {
        ref_buffer_destroy(f->buffer);
    }
    ref_cell_release(f->cell);
    ref_array_release(f->array);
    sx_free(f);
}

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a transfer");
}

static void transfer_free(transfer *t)
{
    if (t != NULL) {
        ref_cell_release(t->from);
        ref_cell_release(t->to);
        ref_event_release(t->done);
        filling_release(t->filling);
        sx_free(t->owned);
        sx_free(t);
    }
}

/* Row-major `array` and strided `host`, one way or the other. */
static void copy_strided(const transfer *t, char *array, bool to_host)
{
    int64_t index[SX_MAX_RANK] = {0};
    size_t size = sx_dtype_bytes(t->type.dtype);
    if (sx_type_elems(&t->type) == 0) {
        return;
    }
    do {
        char *host = (char *)t->host + ref_dot(index, t->strides, t->type.rank);
        memcpy(to_host ? host : array, to_host ? array : host, size);
        array += size;
    } while (ref_next_index(&t->type, index));
}

static sx_status copy_in(transfer *t)
{
    ref_array *a;
    SX_TRY(ref_array_create(&t->device->memory, &t->type, &a));
    ref_take_time((double)t->device->client->mib_us * (double)a->bytes / (1 << 20));
    copy_strided(t, a->data, false);
    ref_cell_fill(t->to, a);
    return SX_OK;
}

static sx_status copy_piece(transfer *t)
{
    ref_filling *f = t->filling;
    ref_take_time((double)t->device->client->mib_us * (double)t->bytes / (1 << 20));
    memcpy((char *)f->array->data + t->offset, t->host, (size_t)t->bytes);
    if (t->is_last) {
        ref_cell_fill(f->cell, ref_array_retain(f->array));
    }
    return SX_OK;
}

static sx_status copy_out(transfer *t)
{
    SX_TRY(ref_event_await(t->from->ready));
    ref_take_time((double)t->device->client->out_us);
    copy_strided(t, t->from->array->data, true);
    return SX_OK;
}

static sx_status copy_across(transfer *t)
{
    ref_array *a;
    SX_TRY(ref_event_await(t->from->ready));
    SX_TRY(ref_array_create(&t->device->memory, &t->type, &a));
    memcpy(a->data, t->from->array->data, (size_t)a->bytes);
    ref_cell_fill(t->to, a);
    return SX_OK;
}

static void transfer_job(void *user)
{
    transfer *t = user;
    sx_status status = t->filling != NULL ? copy_piece(t)
                       : t->from == NULL  ? copy_in(t)
                       : t->to == NULL    ? copy_out(t)
                                          : copy_across(t);
    if (status != SX_OK && t->to != NULL) {
        ref_event_end(t->to->ready, ref_status_copy(status));
    }
    ref_event_end(t->done, status);
    transfer_free(t);
}

static sx_status transfer_create(ref_device *d, const sx_type *type, transfer **out)
{
    transfer *t = sx_alloc(1, sizeof(*t));
    if (t == NULL || (t->done = ref_event_create()) == NULL) {
        sx_free(t);
        return no_memory();
    }
    t->device = d;
    t->type = *type;
    *out = t;
    return SX_OK;
}

/* Strides in bytes of an array whose dimensions lie in this order. */
static void ordered_strides(const sx_type *type, const int64_t *minor_to_major,
                            int64_t strides[SX_MAX_RANK])
{
    int64_t step = (int64_t)sx_dtype_bytes(type->dtype);
    for (int i = 0; i < type->rank; i++) {
        int64_t axis = minor_to_major == NULL ? type->rank - 1 - i : minor_to_major[i];
        strides[axis] = step;
        step *= type->dims[axis];
    }
}

/* Row-major, the host's data as they are now. */
static sx_status copy_now(transfer *t)
{
    t->owned = sx_alloc((size_t)sx_type_bytes(&t->type) + 1, 1);
    if (t->owned == NULL) {
        return no_memory();
    }
    copy_strided(t, t->owned, false);
    t->host = t->owned;
    ordered_strides(&t->type, NULL, t->strides);
    return SX_OK;
}

/* Queues it; its event, with a reference for the caller. Takes the transfer over. */
static sx_status start(transfer *t, ref_event **out_done)
{
    ref_event *done = ref_event_retain(t->done);
    const ref_engine_kind kind = t->from == NULL ? REF_COPIES_IN : REF_COPIES_OUT;
    sx_status status = ref_device_do(t->device, kind, transfer_job, t);
    if (status != SX_OK || out_done == NULL) {
        ref_event_release(done);
    }
    if (status != SX_OK) {
        transfer_free(t);
    } else if (out_done != NULL) {
        *out_done = done;
    }
    return status;
}

sx_status ref_put_data(ref_device *d, const sx_type *type, const void *data, const int64_t *strides,
                       ref_event **out_done, ref_buffer **out)
{
    transfer *t = NULL;
    ref_buffer *b = NULL;
    SX_TRY(ref_fault("put"));
    SX_TRY(transfer_create(d, type, &t));
    t->host = (void *)(uintptr_t)data;
    ordered_strides(type, NULL, t->strides);
    if (strides != NULL) {
        memcpy(t->strides, strides, (size_t)type->rank * sizeof(*strides));
    }
    sx_status status = out_done == NULL ? copy_now(t) : SX_OK;
    status = status != SX_OK ? status : ref_buffer_create(d, type, &b);
    if (status != SX_OK) {
        transfer_free(t);
        return status;
    }
    t->to = ref_cell_retain(b->cell);
    status = start(t, out_done);
    if (status != SX_OK) {
        ref_buffer_destroy(b);
        return status;
    }
    const long bytes = (long)sx_type_bytes(type);
    atomic_fetch_add(&sx_pjrt_ref_counts.puts, 1);
    atomic_fetch_add(&sx_pjrt_ref_counts.put_bytes, bytes);
    if (ref_client_has_pinned(d->client, data)) {
        atomic_fetch_add(&sx_pjrt_ref_counts.pinned_bytes, bytes);
    }
    *out = b;
    return SX_OK;
}

sx_status ref_filling_create(ref_device *d, const sx_type *type, ref_filling **out)
{
    ref_filling *f = sx_alloc(1, sizeof(*f));
    if (f == NULL) {
        return no_memory();
    }
    *f = (ref_filling){.device = d, .has_last = true};
    atomic_init(&f->refs, 1);
    sx_status status = ref_array_create(&d->memory, type, &f->array);
    status = status != SX_OK ? status : ref_buffer_create(d, type, &f->buffer);
    if (status != SX_OK) {
        filling_release(f);
        return status;
    }
    memset(f->array->data, 0xFF, (size_t)f->array->bytes);
    f->cell = ref_cell_retain(f->buffer->cell);
    f->has_last = false;
    *out = f;
    return SX_OK;
}

void ref_filling_destroy(ref_filling *f)
{
    filling_release(f);
}

ref_buffer *ref_filling_take(ref_filling *f)
{
    ref_buffer *b = f->buffer;
    f->buffer = NULL;
    return b;
}

sx_status ref_filling_put(ref_filling *f, const void *data, int64_t offset, int64_t bytes,
                          bool is_last, ref_event **out_done)
{
    transfer *t = NULL;
    SX_TRY(ref_fault("put"));
    if (offset < 0 || bytes < 0 || bytes > f->array->bytes - offset || f->has_last) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%lld bytes at %lld of an array of %lld, or after its last piece",
                        (long long)bytes, (long long)offset, (long long)f->array->bytes);
    }
    SX_TRY(transfer_create(f->device, &f->array->type, &t));
    atomic_fetch_add(&f->refs, 1);
    t->filling = f;
    t->host = (void *)(uintptr_t)data;
    t->offset = offset;
    t->bytes = bytes;
    t->is_last = is_last;
    f->has_last = is_last;
    SX_TRY(start(t, out_done));
    atomic_fetch_add(&sx_pjrt_ref_counts.puts, 1);
    atomic_fetch_add(&sx_pjrt_ref_counts.put_bytes, (long)bytes);
    if (ref_client_has_pinned(f->device->client, data)) {
        atomic_fetch_add(&sx_pjrt_ref_counts.pinned_bytes, (long)bytes);
    }
    return SX_OK;
}

sx_status ref_get_data(ref_buffer *b, const int64_t *minor_to_major, void *data,
                       ref_event **out_done)
{
    transfer *t = NULL;
    SX_TRY(ref_fault("get"));
    atomic_fetch_add(&sx_pjrt_ref_counts.gets, 1);
    SX_TRY(transfer_create(b->device, &b->type, &t));
    t->host = data;
    t->from = ref_cell_retain(b->cell);
    ordered_strides(&b->type, minor_to_major == NULL ? b->layout : minor_to_major, t->strides);
    return start(t, out_done);
}

sx_status ref_copy_buffer(ref_buffer *b, ref_device *to, ref_buffer **out)
{
    transfer *t = NULL;
    ref_buffer *copy = NULL;
    SX_TRY(transfer_create(to, &b->type, &t));
    sx_status status = ref_buffer_create(to, &b->type, &copy);
    if (status != SX_OK) {
        transfer_free(t);
        return status;
    }
    t->from = ref_cell_retain(b->cell);
    t->to = ref_cell_retain(copy->cell);
    status = start(t, NULL);
    if (status != SX_OK) {
        ref_buffer_destroy(copy);
        return status;
    }
    *out = copy;
    return SX_OK;
}
