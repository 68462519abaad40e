/* Buffers: see api.h. */
#include "pjrt_ref/api.h"

#include <string.h>

#include "base/checked.h"
#include "pjrt_ref/ops.h"
#include "pjrt_ref/transfer.h"

static ref_buffer *buffer_of(const void *args)
{
    return ((const sx_pjrt_object *)args)->object;
}

/* Buffers that were deleted or donated have nothing to read. */
static sx_status check_alive(const ref_buffer *b)
{
    return atomic_load(&b->is_deleted)
               ? sx_error(SX_INVALID_ARGUMENT, "the buffer has been deleted or donated")
               : SX_OK;
}

/* ---- To and from the host ---- */

static sx_status read_type(int code, const int64_t *dims, size_t n_dims, sx_type *out)
{
    sx_type type = {.dtype = ref_dtype_of(code), .rank = (int)SX_MIN(n_dims, SX_MAX_RANK)};
    int64_t elems = 1;
    if (type.dtype == SX_DTYPE_NONE || n_dims > SX_MAX_RANK) {
        return sx_error(SX_UNIMPLEMENTED, "an array of type %d and %zu dimensions", code, n_dims);
    }
    for (int i = 0; i < type.rank; i++) {
        type.dims[i] = dims[i];
        if (dims[i] < 0 || !sx_mul_i64(elems, SX_MAX(dims[i], 1), &elems) ||
            elems > REF_MAX_ELEMS) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %d is %lld", i, (long long)dims[i]);
        }
    }
    *out = type;
    return SX_OK;
}

/* Data that are read in the call have an event all the same: one that has ended. */
static sx_status ended_event(ref_event **out)
{
    ref_event *e = ref_event_create();
    if (e == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for an event");
    }
    ref_event_end(e, SX_OK);
    *out = e;
    return SX_OK;
}

sx_status ref_api_client_from_host(void *args)
{
    sx_pjrt_from_host *a = args;
    ref_device *device = a->memory != NULL ? a->memory : a->device;
    bool during_call = a->semantics == SX_PJRT_DURING_CALL;
    ref_event *done = NULL;
    ref_buffer *b = NULL;
    sx_type type;
    SX_TRY(read_type(a->type, a->dims, a->n_dims, &type));
    if (device == NULL || a->data == NULL || a->layout != NULL ||
        (a->n_strides != 0 && a->n_strides != a->n_dims)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a host array takes data, a device or memory, a stride for each dimension "
                        "or none, and no layout");
    }
    if (during_call) {
        SX_TRY(ended_event(&done));
    }
    sx_status status = ref_put_data(device, &type, a->data, a->n_strides == 0 ? NULL : a->strides,
                                    during_call ? NULL : &done, &b);
    if (status != SX_OK) {
        ref_event_release(done);
        return status;
    }
    a->buffer = b;
    a->done = done;
    return SX_OK;
}

sx_status ref_api_filling_create(void *args)
{
    sx_pjrt_fill_create *a = args;
    ref_filling *filling = NULL;
    sx_type type;
    if (a->n_shapes != 1 || a->shapes == NULL || a->memory == NULL || a->n_layouts > 0) {
        return sx_error(SX_INVALID_ARGUMENT, "an array to fill takes a shape, a memory, no layout");
    }
    SX_TRY(ref_check_size("ShapeSpec", 36, a->shapes->struct_size));
    SX_TRY(read_type(a->shapes->type, a->shapes->dims, a->shapes->n_dims, &type));
    SX_TRY(ref_filling_create(a->memory, &type, &filling));
    a->filling = filling;
    return SX_OK;
}

sx_status ref_api_filling_destroy(void *args)
{
    ref_filling_destroy(((sx_pjrt_object *)args)->object);
    return SX_OK;
}

sx_status ref_api_filling_buffer(void *args)
{
    sx_pjrt_fill_buffer *a = args;
    a->buffer = a->index == 0 ? ref_filling_take(a->filling) : NULL;
    return a->buffer != NULL
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "the array has been taken, or is none");
}

sx_status ref_api_filling_data(void *args)
{
    sx_pjrt_fill_data *a = args;
    ref_event *done = NULL;
    if (a->index != 0 || a->data == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "a piece of an array takes data, and index 0");
    }
    SX_TRY(ref_filling_put(a->filling, a->data, a->offset, a->size, a->is_last, &done));
    a->done = done;
    return SX_OK;
}

/* The order that the caller wants; NULL = it left that to the device. */
static sx_status read_layout(const sx_pjrt_layout *layout, const ref_buffer *b, const int64_t **out)
{
    *out = NULL;
    if (layout == NULL) {
        return SX_OK;
    }
    SX_TRY(ref_check_size("Buffer_MemoryLayout", 76, layout->struct_size));
    if (layout->type != 0 || layout->n_tiles != 0 ||
        layout->n_minor_to_major != (size_t)b->type.rank) {
        return sx_error(SX_INVALID_ARGUMENT, "a host layout is an order of %d dimensions, untiled",
                        b->type.rank);
    }
    *out = layout->minor_to_major;
    return ref_check_axes("host layout", *out, b->type.rank, b->type.rank);
}

sx_status ref_api_buffer_to_host(void *args)
{
    sx_pjrt_to_host *a = args;
    ref_buffer *b = a->buffer;
    size_t bytes = (size_t)sx_type_bytes(&b->type);
    const int64_t *order;
    ref_event *done = NULL;
    SX_TRY(check_alive(b));
    SX_TRY(read_layout(a->layout, b, &order));
    if (a->data == NULL) {
        a->size = bytes;
        return SX_OK;
    }
    if (a->size < bytes) {
        return sx_error(SX_INVALID_ARGUMENT, "%zu bytes of room for %zu", a->size, bytes);
    }
    SX_TRY(ref_get_data(b, order, a->data, &done));
    a->event = done;
    return SX_OK;
}

sx_status ref_api_buffer_copy(void *args)
{
    struct {
        sx_pjrt_head head;
        ref_buffer *buffer;
        ref_device *device;
        ref_buffer *copy;
    } *a = args;
    SX_TRY(check_alive(a->buffer));
    return ref_copy_buffer(a->buffer, a->device, &a->copy);
}

/* --- Life --------------------------------------------------------------------------------------
 */

sx_status ref_api_buffer_destroy(void *args)
{
    ref_buffer_destroy(buffer_of(args));
    return SX_OK;
}

sx_status ref_api_buffer_delete(void *args)
{
    atomic_store(&buffer_of(args)->is_deleted, true);
    return SX_OK;
}

sx_status ref_api_buffer_is_deleted(void *args)
{
    ((sx_pjrt_flag *)args)->value = atomic_load(&buffer_of(args)->is_deleted);
    return SX_OK;
}

sx_status ref_api_buffer_ready(void *args)
{
    SX_TRY(check_alive(buffer_of(args)));
    ((sx_pjrt_pointer *)args)->value = ref_event_retain(buffer_of(args)->cell->ready);
    return SX_OK;
}

/* --- What it is ---------------------------------------------------------------------------------
 */

sx_status ref_api_buffer_type(void *args)
{
    ((sx_pjrt_int *)args)->value = ref_type_code(buffer_of(args)->type.dtype);
    return SX_OK;
}

sx_status ref_api_buffer_dims(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_buffer *buffer;
        const int64_t *dims;
        size_t n;
    } *a = args;
    a->dims = a->buffer->type.dims;
    a->n = (size_t)a->buffer->type.rank;
    return SX_OK;
}

sx_status ref_api_buffer_dynamic_dims(void *args)
{
    sx_pjrt_list *a = args;
    a->items = NULL;
    a->count = 0;
    return SX_OK;
}

sx_status ref_api_buffer_layout(void *args)
{
    struct {
        sx_pjrt_head head;
        const ref_buffer *buffer;
        sx_pjrt_layout layout; /* its spare words are not the caller's */
    } *a = args;
    a->layout.minor_to_major = a->buffer->layout;
    a->layout.n_minor_to_major = (size_t)a->buffer->type.rank;
    a->layout.tile_dims = NULL;
    a->layout.tile_dim_sizes = NULL;
    a->layout.n_tiles = 0;
    a->layout.type = 0;
    return SX_OK;
}

sx_status ref_api_buffer_size(void *args)
{
    ((sx_pjrt_int64 *)args)->value = sx_type_bytes(&buffer_of(args)->type);
    return SX_OK;
}

sx_status ref_api_buffer_device(void *args)
{
    ((sx_pjrt_pointer *)args)->value = buffer_of(args)->device;
    return SX_OK;
}

sx_status ref_api_buffer_is_on_cpu(void *args)
{
    ((sx_pjrt_flag *)args)->value = false; /* nobody may look at it */
    return SX_OK;
}
