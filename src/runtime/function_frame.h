/* What a run of a program (function_programs.h) needs: the values of its slots, buffers on the
 * device, runs of its executables, memory for values on the host. Frames are kept from run to run,
 * so that a run at known types and batch allocates nothing.
 *
 *   frame ── slots      values of this run
 *         ── buffers    those made for slots, used again once nobody else refers to them; two of
 *                       each slot, because a loop carries the one that its last trip made
 *         ── steps      executable, sx_run and list of buffers of each device step
 *         ── arena      values on the host; its newest chunk is kept
 *
 * A frame belongs to one run at a time. The idle ones are bounded in number and bytes; the one that
 * was used last is kept in any case. */
#ifndef SX_RUNTIME_FUNCTION_FRAME_H
#define SX_RUNTIME_FUNCTION_FRAME_H

#include "base/arena.h"
#include "runtime/function_programs.h"

/* A value of a run. */
typedef struct sx_run_value {
    sx_type type; /* static */
    void *data;   /* on the host, in an arena of the run; NULL = not there */
    sx_device_buffer *buffer;
} sx_run_value;

typedef struct sx_frame_step {
    sx_built *built; /* DEVICE: its executable; NULL until it first runs */
    sx_run *run;
    sx_device_buffer **buffers; /* [arguments, then results]: of variables and slots */
    sx_arena trips[2];          /* WHILE: state of every other iteration */
} sx_frame_step;

struct sx_function_frame {
    sx_function_frame *next; /* idle: used before this one */
    sx_built *program;
    int64_t batch;
    sx_run_value *slots;             /* [n_slots] */
    sx_device_buffer *(*buffers)[2]; /* [n_slots], NULL = none yet */
    sx_frame_step *steps;            /* [n_steps] */
    sx_arena arena;
    int64_t bytes; /* of all of this, on the device and on the host; while idle */
};

/* A frame for a run of `program`, with values in no slot: an idle one of that program and batch, or
 * a new one. It refers to the program. */
SX_MUST_USE sx_status sx_function_frame_take(sx_function_programs *f, sx_built *program,
                                             int64_t batch, sx_function_frame **out);
/* Releases the values of its slots and keeps it for another run. */
void sx_function_frame_give(sx_function_programs *f, sx_function_frame *frame);
/* Frees the idle ones. */
void sx_function_frames_clear(sx_function_programs *f);

/* A buffer of that type for slots[slot], which gets a reference. */
SX_MUST_USE sx_status sx_function_frame_buffer(sx_function_programs *f, sx_function_frame *frame,
                                               int slot, const sx_type *type);

#endif
