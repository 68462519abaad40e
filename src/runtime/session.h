/* A session: the variables of a model on a device, and the programs (train, eval, predict graphs)
 * that share them by name. The step loop runs a program many times without returning to user code.
 *
 *   session ── variables   name -> buffer on the device
 *          └── programs    graph -> executables, one per batch size that was asked for
 *
 * A program's inputs are fed per step; its scalar outputs are shown after each. A device that can
 * (SX_CAN_LOOP) runs many steps in one launch. Steady state makes no allocation of ours. One thread
 * at a time, but for programs that assign no variable: any number of threads may run those in
 * slots. */
#ifndef SX_RUNTIME_SESSION_H
#define SX_RUNTIME_SESSION_H

#include "backends/backend.h"

/* The input that the session feeds itself: its seed, uint32[2], low word first. */
#define SX_SEED_INPUT "_seed"

typedef struct sx_session sx_session;
typedef struct sx_program sx_program;

typedef struct sx_session_options {
    const char *device; /* backend's name; NULL = the first that can train */
    sx_platform_options platform;
    int shards;    /* > 0: strict: so many whatever the threads */
    uint64_t seed; /* of initial values and of the programs' random operators */
    bool profile;
    /* Of launches of several steps: so many at most; 0 = as many as take `launch_seconds`, which is
     * half a second if 0. */
    int64_t launch_steps;
    double launch_seconds;
    /* Charged, before it is allocated, with what variables and programs take; NULL = no limit.
     * Outlives the session. A program for another batch size that does not fit beside those there
     * are takes their place. */
    sx_budget *memory;
    /* Threads that run one program at once, each in a slot of its own; 0 = as many as there are
     * processors. */
    int slots;
} sx_session_options;

SX_MUST_USE sx_status sx_session_create(const sx_session_options *options,
                                        sx_session **out_session);
void sx_session_destroy(sx_session *session); /* NULL is fine; its programs are destroyed first */
sx_device *sx_session_device(const sx_session *session);
/* How many replicas share a batch: full batches of training must divide by it. */
int sx_session_replicas(const sx_session *session);

/* Adds a program; the graph stays the caller's and outlives it. Variables of names that the session
 * has already are shared; a different type is FAILED_PRECONDITION naming the first and both shapes.
 * New variables are drawn from their initializers (sx_draw_initial_value). */
SX_MUST_USE sx_status sx_session_add_program(sx_session *session, const sx_graph *graph,
                                             sx_program **out_program);

/* --- Variables, in the order in which they were first added ---------------------------------- */

typedef struct sx_session_variable {
    const char *name;
    sx_type type;
    sx_variable_role role;
} sx_session_variable;

int sx_session_variable_count(const sx_session *session);
const sx_session_variable *sx_session_variable_at(const sx_session *session, int i);
int sx_session_find_variable(const sx_session *session, const char *name); /* −1 if absent */
/* Row-major host bytes of the variable's type. */
SX_MUST_USE sx_status sx_session_read_variable(sx_session *session, int i, void *data);
SX_MUST_USE sx_status sx_session_write_variable(sx_session *session, int i, const void *data);
/* global_step; 0 if no program has it. */
SX_MUST_USE sx_status sx_session_read_step(sx_session *session, int64_t *out_step);

/* --- Running --------------------------------------------------------------------------------- */

/* Compiles the program for `batch` if it is not yet; `*out_ns` (may be NULL) gets the time it took.
 */
SX_MUST_USE sx_status sx_program_prepare(sx_program *program, int64_t batch, int64_t *out_ns);
/* Likewise for the batch size that the step loop will mostly see: where the device can, compiles it
 * for launches of up to sx_program_launch_steps(), and makes their memory. `ok_output` as in
 * sx_loop_args. Replicas must divide the batch (INVALID_ARGUMENT names the nearest two that they
 * do); other sizes run one by one, and those that replicas do not divide are computed whole by each
 * of them. */
SX_MUST_USE sx_status sx_program_prepare_loop(sx_program *program, int64_t batch, int ok_output,
                                              int64_t *out_ns);
/* The most steps of one launch; 1 without such a preparation. It is a function of the session's
 * options and the program's types alone (a restart computes the same bits): at most 1024, and at
 * most 16 MiB of staged batches and outputs (1 GiB where launch_steps asks for more). */
int64_t sx_program_launch_steps(const sx_program *program);

/* Inputs that the caller feeds, in graph order, without the session's own (the seed): their names
 * and symbolic types. And outputs likewise. */
int sx_program_input_count(const sx_program *program);
const char *sx_program_input_name(const sx_program *program, int i);
const sx_type *sx_program_input_type(const sx_program *program, int i);
int sx_program_output_count(const sx_program *program);
const char *sx_program_output_name(const sx_program *program, int i);
int sx_program_find_output(const sx_program *program, const char *name); /* −1 if absent */
const sx_type *sx_program_output_type(const sx_program *program, int i);

/* One execution at batch size `batch`: inputs[i] is row-major host memory, borrowed for the call.
 * Variables that it assigns have their new values afterwards. */
SX_MUST_USE sx_status sx_program_run(sx_program *program, int64_t batch, const void *const *inputs);
/* Copies an output of the last run out: elems(type at that batch) × element size bytes. In a step
 * loop's `step`: of that step. */
SX_MUST_USE sx_status sx_program_read_output(sx_program *program, int i, void *data);

/* --- Slots: many threads run one program -------------------------------------------------------
 */

/* A run of the program at one batch size, with buffers of its inputs and outputs; the executable,
 * its constants and the variables are shared by all slots. One thread uses it between acquiring and
 * releasing it. */
typedef struct sx_slot sx_slot;

/* Takes an idle slot, without a lock; makes one while there are fewer than the options say and the
 * device can use, and the memory limit allows; else waits for one, until `deadline_ns` (of
 * sx_now_ns(); SX_NO_DEADLINE). Compiles the program for `batch` at first; where that does not fit
 * beside what the session's programs hold, waits until all of their slots are idle, and frees them.
 * So whether it fits does not depend on what other threads do.
 * Errors: RESOURCE_EXHAUSTED: the program does not fit in memory, alone; FAILED_PRECONDITION: it
 * assigns a variable; DEADLINE_EXCEEDED. */
SX_MUST_USE sx_status sx_program_acquire(sx_program *program, int64_t batch, int64_t deadline_ns,
                                         sx_slot **out_slot);
/* As sx_program_run() and sx_program_read_output(). */
SX_MUST_USE sx_status sx_slot_run(sx_slot *slot, const void *const *inputs);
SX_MUST_USE sx_status sx_slot_read_output(sx_slot *slot, int i, void *data);
void sx_slot_release(sx_slot *slot);

/* What sx_executable_get_info / sx_run_get_profile say of the program at that (prepared) batch
 * size. */
SX_MUST_USE sx_status sx_program_info(sx_program *program, int64_t batch, sx_executable_info *out);
/* The same of what the step loop would run at that batch size; makes no memory for launches. */
SX_MUST_USE sx_status sx_program_loop_info(sx_program *program, int64_t batch, int ok_output,
                                           sx_executable_info *out);
SX_MUST_USE sx_status sx_program_profile(sx_program *program, int64_t batch,
                                         const sx_kernel_time **out_rows, int *out_count);

/* --- The step loop
 *
 *   collect   feed, feed, feed …      into one staged superbatch, until the launch is full or ends
 *   launch    one execution           the device runs the steps, and leaves early after a bad one
 *   replay    step, step, step …      the rings' rows, in order
 *
 * A launch is one step where the device cannot loop, or the program was not prepared for it. A
 * batch of another size ends a launch and runs on its own. Whatever was fed is run: when `step`
 * answers true in the middle of a launch, the steps after it have been done already; they are shown
 * too, and the loop ends then. So callers end launches themselves (`ends_launch`) where nothing may
 * come after a step, as at the end of an epoch, and have to live with a launch's length (half a
 * second by default) where they are told to stop by a clock or a signal.
 * ------------------------------------------------------------------------------------------ */

/* The scalars of one step, as doubles, in the order of the program's scalar outputs. */
enum { SX_MAX_SCALARS = 24 };
typedef struct sx_step_scalars {
    int64_t step; /* number of the step just done: global_step after it */
    int64_t batch;
    int64_t ended_ns; /* sx_now_ns() then; in a launch its time is divided evenly */
    double values[SX_MAX_SCALARS];
} sx_step_scalars;

/* What a step is fed with. */
typedef struct sx_step_input {
    int64_t batch;
    const void *
        *inputs;      /* [inputs], in the program's order; borrowed until the next call of feed */
    bool ends_launch; /* no step after this one in the same launch */
} sx_step_input;

/* Hands out the next batch: fills batch, inputs[…], ends_launch. */
typedef sx_status sx_feed_fn(void *user, sx_step_input *out);
/* Sees each step when it is done; true = end the loop after this launch. Cheap: it runs in the
 * loop. */
typedef bool sx_step_fn(void *user, const sx_step_scalars *scalars);

typedef struct sx_loop_args {
    int64_t steps;    /* at most so many */
    sx_feed_fn *feed; /* OUT_OF_RANGE ends the loop without error, after what was fed before */
    sx_step_fn *step; /* NULL = nobody looks */
    void *user;
    int ok_output; /* index of the output "ok" (bool scalar): false = a non-finite update was
                      withheld, and the loop ends with ABORTED; −1 = none */
} sx_loop_args;

/* Runs until a limit; *out_done counts the steps done. A withheld (non-finite) update ends it with
 * sx_code ABORTED: steps before it count, it and what was fed after it do not, and its inputs are
 * bound for sx_program_find_nonfinite(). */
SX_MUST_USE sx_status sx_program_loop(sx_program *program, const sx_loop_args *args,
                                      int64_t *out_done);

/* After a loop that ended with ABORTED: replays that step with probes and returns, as a DATA_LOSS
 * status, the first value in program order that is not finite: "relu \"conv2d/relu\" (mnist.c:14)
 * is not finite"; inputs and variables come first. SX_OK if all are. */
SX_MUST_USE sx_status sx_program_find_nonfinite(sx_program *program);

#endif
