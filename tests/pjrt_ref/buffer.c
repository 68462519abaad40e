/* Cells and buffers, element types: see objects.h. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_ref/objects.h"

static const struct {
    sx_dtype dtype;
    int code;
} types[] = {
    {SX_BOOL, SX_PJRT_PRED}, {SX_I8, SX_PJRT_S8},   {SX_I16, SX_PJRT_S16}, {SX_I32, SX_PJRT_S32},
    {SX_I64, SX_PJRT_S64},   {SX_U8, SX_PJRT_U8},   {SX_U16, SX_PJRT_U16}, {SX_U32, SX_PJRT_U32},
    {SX_U64, SX_PJRT_U64},   {SX_F16, SX_PJRT_F16}, {SX_F32, SX_PJRT_F32}, {SX_F64, SX_PJRT_F64},
    {SX_BF16, SX_PJRT_BF16},
};

sx_dtype ref_dtype_of(int type)
{
    for (size_t i = 0; i < SX_COUNT(types); i++) {
        if (types[i].code == type) {
            return types[i].dtype;
        }
    }
    return SX_DTYPE_NONE;
}

int ref_type_code(sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(types); i++) {
        if (types[i].dtype == dtype) {
            return types[i].code;
        }
    }
    return 0;
}

ref_cell *ref_cell_create(void)
{
    ref_cell *c = sx_alloc(1, sizeof(*c));
    ref_event *ready = ref_event_create();
    if (c == NULL || ready == NULL) {
        sx_free(c);
        ref_event_release(ready);
        return NULL;
    }
    atomic_init(&c->refs, 1);
    c->ready = ready;
    return c;
}

ref_cell *ref_cell_retain(ref_cell *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void ref_cell_release(ref_cell *c)
{
    if (c != NULL && atomic_fetch_sub(&c->refs, 1) == 1) {
        ref_array_release(c->array);
        ref_event_release(c->ready);
        sx_free(c);
    }
}

void ref_cell_fill(ref_cell *c, ref_array *array)
{
    c->array = array;
    ref_event_end(c->ready, SX_OK);
}

sx_status ref_buffer_create(ref_device *device, const sx_type *type, ref_buffer **out)
{
    ref_buffer *b = sx_alloc(1, sizeof(*b));
    ref_cell *cell = ref_cell_create();
    if (b == NULL || cell == NULL) {
        sx_free(b);
        ref_cell_release(cell);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a buffer");
    }
    *b = (ref_buffer){.client = device->client, .device = device, .type = *type, .cell = cell};
    for (int i = 0; i < type->rank; i++) {
        b->layout[i] = i; /* column-major: so that a client must say what it wants */
    }
    atomic_init(&b->is_deleted, false);
    atomic_fetch_add(&device->client->buffers, 1);
    *out = b;
    return SX_OK;
}

void ref_buffer_destroy(ref_buffer *b)
{
    if (b != NULL) {
        atomic_fetch_sub(&b->client->buffers, 1);
        ref_cell_release(b->cell);
        sx_free(b);
    }
}
