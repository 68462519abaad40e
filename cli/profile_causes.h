/* Where the time of a profile is lost, by cause.
 *
 * The time of all threads, threads × the time by the clock, is divided completely:
 *
 *   computing      what the multiplications and additions take at the processor's rate
 *   memory         what moving the operands takes beyond that, at the rate of memory, or of the
 *                  second-level cache if a call's operands fit in it
 *   slow           the rest of a kernel's time: below both limits
 *   small          that of calls so short that beginning and ending them matters
 *   host           that of host kernels
 *   alone          threads wait while one runs a kernel that is not divided
 *   waiting        the rest of an execution: threads of unequal load, barriers, between kernels
 *   outside        between executions: inputs, host steps, the loop around them
 *
 * So the causes add up to that time. The limits are rates that have been measured; a kernel that
 * exceeds them loses nothing. */
#ifndef SX_CLI_PROFILE_CAUSES_H
#define SX_CLI_PROFILE_CAUSES_H

#include "backends/cpu/limits.h"
#include "backends/profile.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "profile_layers.h"

typedef enum sx_cause {
    SX_CAUSE_COMPUTING = 0,
    SX_CAUSE_MEMORY,
    SX_CAUSE_SLOW,
    SX_CAUSE_SMALL,
    SX_CAUSE_HOST,
    SX_CAUSE_ALONE,
    SX_CAUSE_WAITING,
    SX_CAUSE_OUTSIDE,
    SX_CAUSES
} sx_cause;
extern const struct sx_cause_name {
    const char *key;  /* "slow", for JSON */
    const char *name; /* "kernels below their limits" */
    const char *color;
} sx_cause_names[SX_CAUSES];

/* One kernel, or several of one name together. Times in seconds of threads, of all steps. */
typedef struct sx_profile_kernel {
    const char *kernel, *ops, *node; /* ops, node: NULL of several */
    int count;                       /* of kernels */
    int64_t calls;
    double seconds;
    double flops, bytes;
    /* The rates that it is compared with, per second and thread; of several kernels, the rate at
     * which all of them together would run if each ran at its own. */
    double flops_limit, bytes_limit;
    double causes[SX_CAUSES]; /* COMPUTING … ALONE; all but ALONE add up to `seconds` */
} sx_profile_kernel;

typedef struct sx_profile_groups {
    sx_profile_kernel *items; /* those that took longest first */
    int n;
} sx_profile_groups;

typedef struct sx_profile_causes {
    double total, causes[SX_CAUSES]; /* seconds of threads, of all steps */
    /* Seconds that the shares of kernels are of: the total, or, if more, what the operations took
     * of a device that recorded them in steps of their own, which are slower. */
    double whole;
    sx_profile_kernel *kernels; /* those that took longest first */
    int n;
    /* The same, together: by the name of the kernel, by operator, by layer; `kernel` is that name.
     */
    sx_profile_groups by_kernel, by_op, by_layer;
} sx_profile_causes;

/* `seconds`: by the clock, of everything that was profiled; `nodes`: of the program. Allocates in
 * `arena`. */
SX_MUST_USE sx_status sx_profile_find_causes(sx_profile *profile, const sx_cpu_limits *limits,
                                             const sx_profile_nodes *nodes, double seconds,
                                             sx_arena *arena, sx_profile_causes *out);

/* The group of that name, which must outlive both; added, with nothing but the name, if it is new.
 * There is room for it. `index`: of these groups, with borrowed keys, until they are sorted. */
SX_MUST_USE sx_status sx_profile_group(sx_profile_groups *groups, sx_map *index, const char *name,
                                       sx_profile_kernel **out);

/* Those that took longest first. */
void sx_profile_sort(sx_profile_kernel *kernels, int n);

/* What takes most of the threads' time: "memory traffic, 31 % of the time; 12 % in …". */
void sx_put_profile_cause(sx_buf *out, const sx_profile_causes *c, const sx_cpu_limits *limits);

#endif
