/* What a run of a program (function_programs.h) needs: the values of its slots, buffers on the
 * device, runs of its executables, memory for values on the host. Frames are kept from run to run,
 * so that a run at known types and batch allocates nothing and takes no lock.
 *
 *   frame ── slots      values of this run
 *         ── buffers    those made for slots, used again once nobody else refers to them; two of
 *                       each slot, because a loop carries the one that its last trip made
 *         ── steps      executable, sx_run and list of buffers of each device step
 *         ── arena      values on the host; its newest chunk is kept
 *
 * A frame belongs to one run at a time. Idle ones are in pockets, found by a hash of what they are
 * for:
 *
 *   pocket    EMPTY ──reserve──> RESERVED ──key, frame──> frame ──compare and swap──> EMPTY, taken
 *
 * Whoever changes a pocket's frame to another state owns the frame. The key is read before that,
 * and may be out of date: the owner compares all of it. A thread that finds no frame makes one:
 * each thread that runs a program at once has its own. Idle frames are bounded in number, by the
 * pockets, and in bytes; the one that was used last is kept in any case. */
#ifndef SX_RUNTIME_FUNCTION_FRAME_H
#define SX_RUNTIME_FUNCTION_FRAME_H

#include <stdalign.h>

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
    sx_arena trips[2];          /* WHILE: state of every other iteration; MAP: an element */
} sx_frame_step;

typedef struct sx_function_frame {
    uint64_t key; /* a hash of digest, binding and batch */
    sx_digest digest;
    sx_binding binding; /* its arguments and their data are one block */
    int64_t batch;
    sx_built *program;
    sx_run_value *slots;             /* [n_slots] */
    sx_device_buffer *(*buffers)[2]; /* [n_slots], NULL = none yet */
    sx_frame_step *steps;            /* [n_steps] */
    sx_arena arena;
    int64_t bytes; /* of all of this, on the device and on the host, when it was last idle */
} sx_function_frame;

struct sx_function_pocket {
    alignas(64) _Atomic(sx_function_frame *) frame; /* NULL: empty */
    atomic_ullong key;                              /* of the frame */
    atomic_llong n_taken;
};

/* Empty pockets: as many as programs are kept (0 = the default), up to 256. */
SX_MUST_USE sx_status sx_function_frames_init(sx_function_programs *f, int64_t max_programs);
void sx_function_frames_deinit(sx_function_programs *f);
/* Frees the idle ones. */
void sx_function_frames_clear(sx_function_programs *f);
/* How many runs have found an idle frame. */
int64_t sx_function_frames_taken(const sx_function_programs *f);

/* A frame for a run of `body` with that binding and batch, with values in no slot: an idle one, or
 * a new one, for which the program is made the first time. */
SX_MUST_USE sx_status sx_function_frame_take(sx_function_programs *f, const sx_function_body *body,
                                             const sx_binding *binding, int64_t batch,
                                             const sx_cancel *cancel, sx_function_frame **out);
/* Releases the values of its slots and keeps it for another run. */
void sx_function_frame_give(sx_function_programs *f, sx_function_frame *frame);

/* A buffer of that type for slots[slot], which gets a reference. */
SX_MUST_USE sx_status sx_function_frame_buffer(sx_function_programs *f, sx_function_frame *frame,
                                               int slot, const sx_type *type);

#endif
