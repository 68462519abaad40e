/* See function_frame.h. */
#include "runtime/function_frame.h"

#include "base/checked.h"
#include "base/memory.h"

static const sx_function_program *program_of(const sx_function_frame *frame)
{
    return sx_built_value(frame->program);
}

static void destroy(sx_function_frame *frame)
{
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
    sx_built_release(frame->program);
    sx_free(frame);
}

static sx_status create(const sx_function_programs *f, sx_built *program, int64_t batch,
                        sx_function_frame **out)
{
    sx_function_frame *frame = sx_alloc(1, sizeof(*frame));
    if (frame == NULL) {
        return sx_no_memory("running a function");
    }
    frame->program = sx_built_retain(program);
    frame->batch = batch;
    const sx_specialized *spec = program_of(frame)->spec;
    frame->slots = sx_alloc((size_t)spec->n_slots + 1, sizeof(*frame->slots));
    frame->buffers = sx_alloc((size_t)spec->n_slots + 1, sizeof(*frame->buffers));
    frame->steps = sx_alloc((size_t)spec->n_steps + 1, sizeof(*frame->steps));
    if (frame->slots == NULL || frame->buffers == NULL || frame->steps == NULL) {
        destroy(frame);
        return sx_no_memory("running a function");
    }
    sx_arena_init(&frame->arena, 0);
    frame->arena.budget = f->memory;
    for (int k = 0; k < spec->n_steps; k++) {
        for (int i = 0; i < 2; i++) {
            sx_arena_init(&frame->steps[k].trips[i], 0);
            frame->steps[k].trips[i].budget = f->memory;
        }
    }
    *out = frame;
    return SX_OK;
}

sx_status sx_function_frame_take(sx_function_programs *f, sx_built *program, int64_t batch,
                                 sx_function_frame **out)
{
    sx_function_frame *found = NULL;
    pthread_mutex_lock(&f->frames_mutex);
    for (sx_function_frame **at = &f->idle_frames; *at != NULL && found == NULL;) {
        if ((*at)->program == program && (*at)->batch == batch) {
            found = *at;
            *at = found->next;
            f->n_idle_frames--;
            f->idle_bytes -= found->bytes;
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&f->frames_mutex);
    if (found == NULL) {
        return create(f, program, batch, out);
    }
    *out = found;
    return SX_OK;
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
    frame->bytes = bytes_of(frame);

    sx_function_frame *surplus = NULL;
    pthread_mutex_lock(&f->frames_mutex);
    frame->next = f->idle_frames;
    f->idle_frames = frame;
    f->n_idle_frames++;
    f->idle_bytes += frame->bytes;
    while (f->idle_frames->next != NULL &&
           (f->n_idle_frames > f->max_idle_frames || f->idle_bytes > f->max_idle_bytes)) {
        sx_function_frame **last = &f->idle_frames;
        while ((*last)->next != NULL) {
            last = &(*last)->next;
        }
        sx_function_frame *oldest = *last;
        *last = NULL;
        f->n_idle_frames--;
        f->idle_bytes -= oldest->bytes;
        oldest->next = surplus;
        surplus = oldest;
    }
    pthread_mutex_unlock(&f->frames_mutex);
    for (sx_function_frame *next; surplus != NULL; surplus = next) {
        next = surplus->next;
        destroy(surplus);
    }
}

void sx_function_frames_clear(sx_function_programs *f)
{
    pthread_mutex_lock(&f->frames_mutex);
    sx_function_frame *idle = f->idle_frames;
    f->idle_frames = NULL;
    f->n_idle_frames = 0;
    f->idle_bytes = 0;
    pthread_mutex_unlock(&f->frames_mutex);
    for (sx_function_frame *next; idle != NULL; idle = next) {
        next = idle->next;
        destroy(idle);
    }
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
