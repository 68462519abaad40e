/* See function_frame.h. */
#include "runtime/function_frame.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/ram.h"
#include "graph/host.h"
#include "graph/node_label.h"

enum {
    MAX_POCKETS = 256,
    SHARE_OF_RAM = 8, /* the bytes of frames: an eighth of the memory */
};

/* What a pocket holds while a frame is put in. */
static sx_function_frame reserved;

static const sx_function_program *program_of(const sx_function_frame *frame)
{
    return sx_built_value(frame->program);
}

static void destroy(sx_function_programs *f, sx_function_frame *frame)
{
    atomic_fetch_sub_explicit(&f->frames_bytes, frame->bytes, memory_order_relaxed);
    const sx_specialized *spec = program_of(frame)->spec;
    for (int i = 0; frame->buffers != NULL && i < spec->n_slots; i++) {
        sx_device_buffer_release(frame->buffers[i][0]);
        sx_device_buffer_release(frame->buffers[i][1]);
    }
    for (int k = 0; frame->steps != NULL && k < spec->n_steps; k++) {
        sx_frame_step *s = &frame->steps[k];
        sx_run_destroy(s->run);
        sx_built_release(s->built);
        sx_free(s->buffers);
        sx_arena_deinit(&s->trips[0]);
        sx_arena_deinit(&s->trips[1]);
    }
    sx_arena_deinit(&frame->arena);
    sx_free(frame->slots);
    sx_free(frame->buffers);
    sx_free(frame->steps);
    sx_free((void *)frame->binding.args);
    sx_built_release(frame->program);
    sx_free(frame);
}

/* ---- What a frame is for ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t mix_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(hash)) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + at, SX_MIN(bytes - at, sizeof(word)));
        hash = mix(hash, word);
    }
    return hash;
}

static uint64_t key_of(const sx_function_body *body, const sx_binding *binding, int64_t batch)
{
    uint64_t key = mix_bytes((uint64_t)batch, body->digest, sizeof(key)); /* its beginning */
    key = mix(key, binding->knows_batch ? (uint64_t)binding->batch : UINT64_MAX);
    for (int i = 0; i < binding->n_args; i++) {
        const sx_tensor *a = &binding->args[i];
        key = mix(key, (uint64_t)a->type.dtype << 32 | (uint32_t)a->type.rank);
        key = mix_bytes(key, a->type.dims, (size_t)a->type.rank * sizeof(a->type.dims[0]));
        key = mix_bytes(key, a->data, sx_function_known_bytes(a));
    }
    return key;
}

static bool is_for(const sx_function_frame *frame, const sx_function_body *body,
                   const sx_binding *binding, int64_t batch)
{
    const sx_binding *own = &frame->binding;
    bool same = frame->batch == batch && own->n_args == binding->n_args &&
                own->knows_batch == binding->knows_batch && own->batch == binding->batch &&
                memcmp(&frame->digest, body->digest, sizeof(frame->digest)) == 0;
    for (int i = 0; i < own->n_args && same; i++) {
        const sx_tensor *a = &own->args[i], *b = &binding->args[i];
        const size_t bytes = sx_function_known_bytes(a);
        same = sx_type_equal(&a->type, &b->type) && (a->data == NULL) == (b->data == NULL) &&
               bytes == sx_function_known_bytes(b) &&
               (bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
    }
    return same;
}

/* A copy of its arguments and their data; NULL without memory. */
static sx_tensor *copy_args(const sx_binding *binding)
{
    size_t bytes = (size_t)binding->n_args * sizeof(sx_tensor);
    for (int i = 0; i < binding->n_args; i++) {
        bytes += sx_function_known_bytes(&binding->args[i]);
    }
    sx_tensor *args = sx_alloc(bytes + 1, 1);
    char *data = (char *)(args + binding->n_args);
    for (int i = 0; i < binding->n_args && args != NULL; i++) {
        const size_t size = sx_function_known_bytes(&binding->args[i]);
        args[i] = binding->args[i];
        if (args[i].data != NULL) {
            args[i].data = memcpy(data, args[i].data, size);
            data += size;
        }
    }
    return args;
}

/* Refuses a run whose host steps make more than there can be, as far as their sizes are known,
 * before any of them runs. */
static sx_status check_host_values(sx_budget *memory, const sx_specialized *spec, int64_t batch)
{
    size_t bytes = 0, largest = 0;
    const sx_node *maker = NULL;
    sx_type type = {0};
    for (int k = 0; k < spec->n_steps; k++) {
        const sx_step *step = &spec->steps[k];
        for (int i = 0; i < step->n_out && step->kind == SX_STEP_HOST; i++) {
            const sx_type t = sx_type_with_batch(spec->slots[step->out[i]].type, batch);
            const int64_t made = t.dtype != SX_RESOURCE ? sx_host_bytes(&t) : -1;
            if (made <= 0) { /* not known */
                continue;
            }
            bytes = bytes < SIZE_MAX - (size_t)made ? bytes + (size_t)made : SIZE_MAX;
            if ((size_t)made > largest) {
                largest = (size_t)made;
                maker = step->node;
                type = t;
            }
        }
    }
    if (maker == NULL || sx_budget_charge(memory, bytes)) {
        sx_budget_release(memory, maker == NULL ? 0 : bytes);
        return SX_OK;
    }
    char text[SX_TYPE_TEXT], label[SX_NODE_LABEL], what[sizeof(text) + sizeof(label) + 100];
    snprintf(what, sizeof(what), "values (the largest is %s of %s \"%s\")",
             sx_type_format(&type, text, sizeof(text)), maker->op->name,
             sx_node_label(maker->name, label));
    return sx_budget_over(memory, what, bytes);
}

/* The reference to `program` becomes the frame's, or is released. */
static sx_status create(sx_function_programs *f, const sx_function_body *body,
                        const sx_binding *binding, int64_t batch, sx_built *program,
                        sx_function_frame **out)
{
    const sx_function_program *made = sx_built_value(program);
    sx_status status = check_host_values(f->memory, made->spec, batch);
    sx_function_frame *frame = status == SX_OK ? sx_alloc(1, sizeof(*frame)) : NULL;
    if (frame == NULL) {
        sx_built_release(program);
        return status != SX_OK ? status : sx_no_memory("running a function");
    }
    frame->program = program;
    frame->key = key_of(body, binding, batch);
    frame->digest = *body->digest;
    frame->binding = *binding;
    frame->binding.args = copy_args(binding);
    frame->batch = batch;
    const sx_specialized *spec = program_of(frame)->spec;
    frame->slots = sx_alloc((size_t)spec->n_slots + 1, sizeof(*frame->slots));
    frame->buffers = sx_alloc((size_t)spec->n_slots + 1, sizeof(*frame->buffers));
    frame->steps = sx_alloc((size_t)spec->n_steps + 1, sizeof(*frame->steps));
    sx_arena_init(&frame->arena, 0);
    frame->arena.budget = f->memory;
    for (int k = 0; k < spec->n_steps && frame->steps != NULL; k++) {
        for (int i = 0; i < 2; i++) {
            sx_arena_init(&frame->steps[k].trips[i], 0);
            frame->steps[k].trips[i].budget = f->memory;
        }
    }
    if (frame->binding.args == NULL || frame->slots == NULL || frame->buffers == NULL ||
        frame->steps == NULL) {
        destroy(f, frame);
        return sx_no_memory("running a function");
    }
    *out = frame;
    return SX_OK;
}

/* ---- Pockets ---- */

sx_status sx_function_frames_init(sx_function_programs *f, int64_t max_programs)
{
    f->n_pockets = max_programs > 0 && max_programs < MAX_POCKETS ? (int)max_programs : MAX_POCKETS;
    f->max_frames_bytes = sx_ram_bytes() / SHARE_OF_RAM;
    f->pockets =
        sx_alloc_aligned((size_t)f->n_pockets * sizeof(*f->pockets), alignof(sx_function_pocket));
    if (f->pockets == NULL) {
        return sx_no_memory("running a function");
    }
    for (int i = 0; i < f->n_pockets; i++) {
        atomic_init(&f->pockets[i].frame, NULL);
        atomic_init(&f->pockets[i].key, 0);
        atomic_init(&f->pockets[i].n_taken, 0);
    }
    return SX_OK;
}

void sx_function_frames_deinit(sx_function_programs *f)
{
    if (f->pockets != NULL) {
        sx_function_frames_clear(f);
        sx_free_aligned(f->pockets);
        f->pockets = NULL;
    }
}

/* Changes what the pocket holds from `frame`, which is then the caller's, to `next`. */
static bool swap(sx_function_pocket *p, sx_function_frame *frame, sx_function_frame *next)
{
    return atomic_compare_exchange_strong_explicit(&p->frame, &frame, next, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Takes what idle frame the pocket holds; NULL if none. */
static sx_function_frame *empty(sx_function_pocket *p)
{
    sx_function_frame *frame = atomic_load_explicit(&p->frame, memory_order_relaxed);
    return frame != NULL && frame != &reserved && swap(p, frame, NULL) ? frame : NULL;
}

void sx_function_frames_clear(sx_function_programs *f)
{
    for (int i = 0; i < f->n_pockets; i++) {
        sx_function_frame *frame = empty(&f->pockets[i]);
        if (frame != NULL) {
            destroy(f, frame);
        }
    }
}

int64_t sx_function_frames_taken(const sx_function_programs *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n_pockets; i++) {
        n += atomic_load_explicit(&f->pockets[i].n_taken, memory_order_relaxed);
    }
    return n;
}

/* Where this thread begins to look for a frame of that key, and to put it back: threads that run
 * the same program keep out of each other's way. */
static int first_pocket(const sx_function_programs *f, uint64_t key)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned number; /* of this thread, from 1 */
    if (number == 0) {
        number = atomic_fetch_add(&n_threads, 1) + 1;
    }
    return (int)(mix(key, number) % (uint64_t)f->n_pockets);
}

/* Into an empty pocket; if there is none, in place of another frame. */
static void put(sx_function_programs *f, sx_function_frame *frame)
{
    sx_function_frame *old = NULL;
    sx_function_pocket *p = NULL;
    const int first = first_pocket(f, frame->key);
    for (int i = 0; i < f->n_pockets && p == NULL; i++) {
        sx_function_pocket *at = &f->pockets[(first + i) % f->n_pockets];
        p = atomic_load_explicit(&at->frame, memory_order_relaxed) == NULL &&
                    swap(at, NULL, &reserved)
                ? at
                : NULL;
    }
    for (int i = 0; i < f->n_pockets && p == NULL; i++) {
        sx_function_pocket *at =
            &f->pockets[atomic_fetch_add_explicit(&f->next_evicted, 1, memory_order_relaxed) %
                        (unsigned)f->n_pockets];
        old = atomic_load_explicit(&at->frame, memory_order_relaxed);
        p = old != &reserved && swap(at, old, &reserved) ? at : NULL;
    }
    if (p == NULL) { /* other threads change all of them at this moment */
        destroy(f, frame);
        return;
    }
    atomic_store_explicit(&p->key, frame->key, memory_order_relaxed);
    atomic_store_explicit(&p->frame, frame, memory_order_release);
    if (old != NULL) {
        destroy(f, old);
    }
}

sx_status sx_function_frame_take(sx_function_programs *f, const sx_function_body *body,
                                 const sx_binding *binding, int64_t batch, const sx_cancel *cancel,
                                 sx_function_frame **out)
{
    const uint64_t key = key_of(body, binding, batch);
    const int first = first_pocket(f, key);
    for (int i = 0; i < f->n_pockets; i++) {
        sx_function_pocket *p = &f->pockets[(first + i) % f->n_pockets];
        sx_function_frame *frame = atomic_load_explicit(&p->frame, memory_order_acquire);
        if (frame == NULL || frame == &reserved ||
            atomic_load_explicit(&p->key, memory_order_relaxed) != key || !swap(p, frame, NULL)) {
            continue;
        }
        if (is_for(frame, body, binding, batch)) {
            atomic_fetch_add_explicit(&p->n_taken, 1, memory_order_relaxed);
            *out = frame;
            return SX_OK;
        }
        put(f, frame);
    }
    sx_built *program = NULL;
    SX_TRY(sx_function_program_get(f, body, binding, cancel, &program));
    return create(f, body, binding, batch, program, out);
}

static int64_t bytes_of(const sx_function_frame *frame)
{
    const sx_specialized *spec = program_of(frame)->spec;
    int64_t bytes = (int64_t)sx_arena_capacity(&frame->arena);
    for (int i = 0; i < spec->n_slots; i++) {
        for (int j = 0; j < 2; j++) {
            const sx_device_buffer *b = frame->buffers[i][j];
            bytes += b != NULL ? sx_type_bytes(&b->type) : 0;
        }
    }
    for (int k = 0; k < spec->n_steps; k++) {
        const sx_frame_step *s = &frame->steps[k];
        bytes += (int64_t)(sx_arena_capacity(&s->trips[0]) + sx_arena_capacity(&s->trips[1]));
        bytes += s->run != NULL ? (int64_t)s->run->executable->run_bytes : 0;
    }
    return bytes;
}

void sx_function_frame_give(sx_function_programs *f, sx_function_frame *frame)
{
    const sx_specialized *spec = program_of(frame)->spec;
    for (int i = 0; i < spec->n_slots; i++) {
        sx_device_buffer_release(frame->slots[i].buffer);
        frame->slots[i] = (sx_run_value){.data = NULL};
    }
    for (int k = 0; k < spec->n_steps; k++) {
        sx_arena_reset(&frame->steps[k].trips[0]);
        sx_arena_reset(&frame->steps[k].trips[1]);
    }
    sx_arena_reset(&frame->arena);
    const int64_t bytes = bytes_of(frame);
    if (bytes != frame->bytes) {
        atomic_fetch_add_explicit(&f->frames_bytes, bytes - frame->bytes, memory_order_relaxed);
        frame->bytes = bytes;
    }
    for (int i = 0;
         i < f->n_pockets &&
         atomic_load_explicit(&f->frames_bytes, memory_order_relaxed) > f->max_frames_bytes;
         i++) {
        sx_function_frame *old =
            empty(&f->pockets[atomic_fetch_add_explicit(&f->next_evicted, 1, memory_order_relaxed) %
                              (unsigned)f->n_pockets]);
        if (old != NULL) {
            destroy(f, old);
        }
    }
    put(f, frame);
}

sx_status sx_function_frame_buffer(sx_function_programs *f, sx_function_frame *frame, int slot,
                                   const sx_type *type)
{
    sx_device_buffer **kept = frame->buffers[slot], *made = NULL;
    for (int i = 0; i < 2; i++) {
        if (kept[i] != NULL && atomic_load(&kept[i]->refs) == 1 &&
            sx_type_equal(&kept[i]->type, type)) {
            frame->slots[slot].buffer = sx_device_buffer_retain(kept[i]);
            return SX_OK;
        }
    }
    SX_TRY(sx_device_buffer_create_within(f->platform->devices[0], type, f->memory, &made));
    sx_device_buffer_release(kept[1]);
    kept[1] = kept[0];
    kept[0] = made;
    frame->slots[slot].buffer = sx_device_buffer_retain(made);
    return SX_OK;
}
