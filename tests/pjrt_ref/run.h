/* Running a program: one thread for each replica, with an environment of arrays by SSA number.
 *
 * Collectives meet (meeting.h): all replicas of an execution run at the same time. */
#ifndef PJRT_REF_RUN_H
#define PJRT_REF_RUN_H

#include "pjrt_ref/array.h"
#include "pjrt_ref/meeting.h"
#include "pjrt_ref/program.h"

typedef struct ref_run {
    const ref_program *program;
    ref_memory *memory;   /* of the device */
    ref_meeting *meeting; /* NULL with one replica */
    int replica, here;    /* its number, and that among those of this process */
    long step_us; /* that each iteration of a loop of the function itself takes, or the function */
    uint64_t budget; /* operations left; 0 = no bound (fuzzing has one) */
    bool is_bounded;
    ref_array **env; /* [n_values] */
} ref_run;

/* Runs the function: takes args over (also on failure), hands out results, each with a reference
 * for the caller. `options` gives program, memory, meeting, replica, here, budget. */
SX_MUST_USE sx_status ref_execute(const ref_run *options, ref_array *const *args,
                                  ref_array **out_results);

/* Sleeps so many microseconds. */
void ref_take_time(double us);

/* ---- For operations ---- */

const ref_array *ref_in(const ref_run *r, const ref_op *op, int i);
/* A fresh array of result i's type, set as that result; its elements are not set yet. */
SX_MUST_USE sx_status ref_out(ref_run *r, const ref_op *op, int i, ref_array **out);
/* Sets a value; takes the reference over. */
void ref_set(ref_run *r, int value, ref_array *array);
/* Runs a region: args are taken over, results[n_results] handed out. */
SX_MUST_USE sx_status ref_run_block(ref_run *r, const ref_block *block, ref_array *const *args,
                                    ref_array **out_results);

#endif
