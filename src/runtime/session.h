/* A session: the variables of a model on a device, and the programs (train, eval, predict graphs)
 * that share them by name. The step loop runs a program many times without returning to user code.
 *
 *   session ── variables   name -> buffer on the device
 *          └── programs    graph -> executables, one per batch size used
 *
 * A program's inputs are fed at each step; its scalar outputs are reported after it. A device with
 * SX_CAN_LOOP runs many steps in one launch. In steady state, nothing is allocated. One thread at a
 * time, except for programs that update no variable: any number of threads may run these in slots.
 */
#ifndef SX_RUNTIME_SESSION_H
#define SX_RUNTIME_SESSION_H

#include "backends/backend.h"
#include "base/digest.h"

/* The input fed by the session itself: its seed, uint32[2], low word first. */
#define SX_SEED_INPUT "_seed"
/* The output, a bool scalar, that says of a training step that its update was applied. */
#define SX_OK_OUTPUT "ok"

typedef struct sx_session sx_session;
typedef struct sx_program sx_program;

typedef struct sx_session_options {
    const char *device; /* backend's name; NULL = the first that can train */
    sx_platform_options platform;
    int shards; /* > 0: strict: a fixed number, regardless of threads */
    /* Batch norms in training use the moments of their replica's part of the batch, and the moving
     * averages advance by the parts' mean, as in TensorFlow; else all use the whole batch's. */
    bool own_moments;
    uint64_t seed; /* of initial values and of the programs' random operators */
    bool profile;
    /* Maximum steps per launch; 0 = as many as take `launch_seconds` (0 = half a second). */
    int64_t launch_steps;
    double launch_seconds;
    /* Charged for variables and programs before they are allocated; NULL = no limit. Must outlive
     * the session. A program for another batch size that does not fit in addition replaces the
     * existing ones. */
    sx_budget *memory;
    /* Maximum number of threads that run one program at once, each in its own slot; 0 = the number
     * of processors. */
    int slots;
    /* Asked twice a second while an execution runs: an error ends the wait with it, and leaves the
     * execution to the device, which may never end it once another process is lost. NULL = waits.
     */
    sx_status (*give_up)(void *user);
    void *give_up_user;
    /* The first so many devices of the platform have slots, once the session is frozen, each with a
     * copy of the variables; 0 = 1. */
    int devices;
} sx_session_options;

SX_MUST_USE sx_status sx_session_create(const sx_session_options *options,
                                        sx_session **out_session);
/* NULL is fine; its programs are destroyed first. False, as sx_platform_close() says it: the
 * session's budget (options.memory) is still in use. */
bool sx_session_destroy(sx_session *session);
/* Says, before the first program is compiled, that variables are not written once one has run:
 * sx_compile_options.frozen. */
void sx_session_freeze(sx_session *session);
bool sx_session_is_frozen(const sx_session *session);
/* Whether variables that are added from now on get initial values, as at first; if not, the caller
 * writes them (sx_session_write_variable) before a program runs. */
void sx_session_draw_variables(sx_session *session, bool draw);
sx_device *sx_session_device(const sx_session *session);
/* The number of replicas that share a batch, which must divide full training batches. */
int sx_session_replicas(const sx_session *session);

/* Adds a program; the caller keeps the graph, which must outlive it. Variables with names that the
 * session already has are shared; a different type is FAILED_PRECONDITION, naming the first and
 * both shapes. New variables are drawn from their initializers (sx_draw_initial_value). */
SX_MUST_USE sx_status sx_session_add_program(sx_session *session, const sx_graph *graph,
                                             sx_program **out_program);

/* Frees a program that no thread uses. */
void sx_session_drop_program(sx_session *session, sx_program *program);

/* What the program's graph computes, which lives as long: sx_graph_digest() without names. Programs
 * of a session with equal digests share their slots' executables. Before the first slot. */
void sx_program_set_digest(sx_program *program, const sx_digest *digest);

/* ---- Variables, in the order in which they were first added ---- */

/* Adds a variable, as a program that has it would; *out_index is its number. */
SX_MUST_USE sx_status sx_session_add_variable(sx_session *session, const sx_variable_spec *spec,
                                              int *out_index);
/* Its buffer on the device, owned by the session. */
sx_device_buffer *sx_session_variable_buffer(const sx_session *s, int i);

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
/* All variables, data[i] for each; the copies of several overlap where the device can. */
SX_MUST_USE sx_status sx_session_read_variables(sx_session *session, void *const *data);
SX_MUST_USE sx_status sx_session_write_variable(sx_session *session, int i, const void *data);
/* global_step; 0 if no program has it. */
SX_MUST_USE sx_status sx_session_read_step(sx_session *session, int64_t *out_step);

/* ---- Running ---- */

/* Compiles the program for `batch` if it is not compiled yet; `*out_ns` (may be NULL) is the time
 * taken. */
SX_MUST_USE sx_status sx_program_prepare(sx_program *program, int64_t batch, int64_t *out_ns);
/* The same for the main batch size of the step loop: if the device supports it, compiles for
 * launches of up to sx_program_launch_steps() and allocates their memory. `ok_output` as in
 * sx_loop_args. The batch must be a multiple of the replicas (INVALID_ARGUMENT names the nearest
 * two that are); other sizes run in single steps, and those that replicas do not divide are
 * computed completely by each of them. */
SX_MUST_USE sx_status sx_program_prepare_loop(sx_program *program, int64_t batch, int ok_output,
                                              int64_t *out_ns);
/* The maximum steps of one launch; 1 without this preparation. Depends only on the session's
 * options and the program's types (so that a restart computes the same bits): at most 1024, and at
 * most 16 MiB of staged batches and outputs (1 GiB if launch_steps is set), but one step of any
 * size. */
int64_t sx_program_launch_steps(const sx_program *program);
/* Bytes on each device of the launches that are fed ahead, beside what the executable itself needs.
 */
int64_t sx_program_ahead_bytes(const sx_program *program, int64_t batch);
/* How many launches' steps may have been fed and not shown yet. */
int64_t sx_program_launches(const sx_program *program);

/* The inputs that the caller feeds, in graph order, without the session's own (the seed): their
 * names and symbolic types. The same for outputs. */
int sx_program_input_count(const sx_program *program);
const char *sx_program_input_name(const sx_program *program, int i);
const sx_type *sx_program_input_type(const sx_program *program, int i);
int sx_program_output_count(const sx_program *program);
const char *sx_program_output_name(const sx_program *program, int i);
int sx_program_find_output(const sx_program *program, const char *name); /* −1 if absent */
const sx_type *sx_program_output_type(const sx_program *program, int i);

/* One execution at batch size `batch`: inputs[i] is row-major host memory, borrowed for the call.
 * Afterwards, variables that it assigns have their new values. */
SX_MUST_USE sx_status sx_program_run(sx_program *program, int64_t batch, const void *const *inputs);
/* Copies an output of the last run: elems(type at that batch) × element size bytes. In a step
 * loop's `step`: of that step. */
SX_MUST_USE sx_status sx_program_read_output(sx_program *program, int i, void *data);

/* ---- Slots: many threads run one program ---- */

/* A run of the program at one batch size, with buffers of its inputs and outputs; the executable,
 * its constants and the variables are shared by all slots. Used by one thread between acquire and
 * release. */
typedef struct sx_slot sx_slot;

/* Takes an idle slot, without a lock; creates one if the options, the device and the memory limit
 * allow; else waits for one until `deadline_ns` (of sx_now_ns(); SX_NO_DEADLINE). Compiles the
 * program for `batch` the first time; if that does not fit in addition to the memory of the
 * session's programs, waits until all of their slots are idle and frees them. So whether it fits
 * does not depend on other threads. Errors: RESOURCE_EXHAUSTED: the program alone does not fit in
 * memory; FAILED_PRECONDITION: it assigns a variable; DEADLINE_EXCEEDED. */
SX_MUST_USE sx_status sx_program_acquire(sx_program *program, int64_t batch, int64_t deadline_ns,
                                         sx_slot **out_slot);
/* Whether a run of the slot uses the whole device, so that runs take turns. */
bool sx_slot_is_wide(const sx_slot *slot);
/* Compiles the program for `batch`, if it is not, without a slot: the first one is then made soon.
 * *out_wide: as sx_slot_is_wide(). */
SX_MUST_USE sx_status sx_program_compile_slots(sx_program *program, int64_t batch, bool *out_wide);
/* Does what else only the first run does, once the variables have their values (sx_run_prepare). */
SX_MUST_USE sx_status sx_slot_warm_up(sx_slot *slot);
/* As sx_program_run() and sx_program_read_output(), until the deadline of `cancel`, which is as in
 * sx_run_set_cancel(). What is begun is ended; inputs are borrowed until then. */
SX_MUST_USE sx_status sx_slot_begin(sx_slot *slot, const void *const *inputs,
                                    const sx_cancel *cancel);
SX_MUST_USE sx_status sx_slot_end(sx_slot *slot, const sx_cancel *cancel);
SX_MUST_USE sx_status sx_slot_read_output(sx_slot *slot, int i, void *data, int64_t deadline_ns);
void sx_slot_release(sx_slot *slot);
/* As sx_program_acquire(), for a thread that has slots already and must not wait for another: NULL
 * if none is idle and none can be made of what is compiled. */
SX_MUST_USE sx_status sx_program_try_acquire(sx_program *program, int64_t batch,
                                             sx_slot **out_slot);
/* How many devices have slots. */
int sx_session_slot_devices(const sx_session *session);

/* The result of sx_executable_get_info / sx_run_get_profile for the program at that (prepared)
 * batch size. */
SX_MUST_USE sx_status sx_program_info(sx_program *program, int64_t batch, sx_executable_info *out);
/* The same for the program that the step loop would run at that batch size; does not allocate
 * memory for launches. */
SX_MUST_USE sx_status sx_program_loop_info(sx_program *program, int64_t batch, int ok_output,
                                           sx_executable_info *out);
SX_MUST_USE sx_status sx_program_profile(sx_program *program, int64_t batch,
                                         const sx_kernel_time **out_rows, int *out_count);

/* ---- The step loop ----
 *
 *   stage     feed, feed, feed …      into a superbatch, until the launch is full or ends; it is
 *                                     copied to the device, while the launch before computes
 *   launch    one execution           submitted before the one before it has ended: the device runs
 *                                     the steps, and applies none after a bad one
 *   replay    step, step, step …      the rings' rows, in order, while the next launch computes
 *
 * A device that cannot loop, or a program that was not prepared for it, runs one step after
 * another. A batch of another size ends a launch and runs on its own. Everything that was fed is
 * run, but for what was fed after a step that was withheld or failed: if `step` returns true, the
 * steps of its launch, and of the one that is being computed, are done; they are reported as well,
 * and then the loop ends. So callers end a launch themselves (`ends_launch`) if no step may follow,
 * as at the end of an epoch: nothing is fed then before its last step has been reported. A stop by
 * a clock or a signal takes effect after the launches (half a second by default). */

/* The scalars of one step, as doubles, in the order of the program's scalar outputs. */
enum { SX_MAX_SCALARS = 24 };
typedef struct sx_step_scalars {
    int64_t step;   /* number of the finished step: global_step after it */
    int64_t launch; /* that it was part of, from 1 in each loop */
    int64_t batch;
    int64_t ended_ns; /* sx_now_ns() at its end; the time of a launch is divided evenly */
    double values[SX_MAX_SCALARS];
} sx_step_scalars;

/* The input of a step. */
typedef struct sx_step_input {
    int64_t batch;
    const void *
        *inputs;      /* [inputs], in the program's order; borrowed until the next call of feed */
    bool ends_launch; /* nothing is fed before `step` has been called for this one */
} sx_step_input;

/* Provides the next batch: fills batch, inputs[…], ends_launch. */
typedef sx_status sx_feed_fn(void *user, sx_step_input *out);
/* Called after each step; true = end the loop after this launch. Must be fast: it runs in the loop.
 */
typedef bool sx_step_fn(void *user, const sx_step_scalars *scalars);

/* Called before a launch is fed, with the number of its steps: may lower it, or raise it to the
 * number that another process has chosen; 0 ends the loop after what was fed. Where several
 * processes run the loop in step, they agree here. */
typedef sx_status sx_plan_launch_fn(void *user, int64_t *steps);

typedef struct sx_loop_args {
    int64_t steps; /* maximum number of steps */
    sx_feed_fn
        *feed; /* OUT_OF_RANGE ends the loop without error, after running what was fed before */
    sx_step_fn *step;        /* may be NULL */
    sx_plan_launch_fn *plan; /* may be NULL */
    void *user;
    int64_t *failed_steps; /* may be NULL: of how many steps the error of the device is */
    int ok_output; /* index of SX_OK_OUTPUT: false = a non-finite update was withheld, and the loop
                      ends with ABORTED; −1 = the program has none */
} sx_loop_args;

/* Runs until a limit; *out_done counts the steps done. A withheld (non-finite) update ends it with
 * sx_code ABORTED: steps before it count; it and later ones do not; its inputs stay bound for
 * sx_program_find_nonfinite(). */
SX_MUST_USE sx_status sx_program_loop(sx_program *program, const sx_loop_args *args,
                                      int64_t *out_done);

/* After a loop that ended with ABORTED: replays that step with probes and returns, as a DATA_LOSS
 * status, the first value in program order that is not finite: "relu \"conv2d/relu\" (mnist.c:14)
 * is not finite"; inputs and variables come first. SX_OK if all are. */
SX_MUST_USE sx_status sx_program_find_nonfinite(sx_program *program);

#endif
