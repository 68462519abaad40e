/* A budget of bytes: how much memory one request, or all requests of a server, may use.
 *
 *   request -> server          a budget also charges every budget above it
 *
 * Memory is charged before it is allocated: a charge counts in the budget and in all above it, or,
 * if one of them would exceed its limit, in none. Arenas (arena.h) and buffers (buffer.h) charge
 * the budget that they are given. Charging and releasing are atomic: any thread may do either. */
#ifndef SX_BASE_BUDGET_H
#define SX_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

typedef struct sx_budget sx_budget;
struct sx_budget {
    const char *name;   /* what the limit applies to, for messages; static */
    size_t limit_bytes; /* 0 = none */
    sx_budget *parent;  /* NULL = none; must outlive this one */
    atomic_size_t used_bytes;
    /* Of the latest charge, if it was refused; else NULL. */
    _Atomic(sx_budget *) refused_by;
    atomic_size_t refused_bytes;
};

void sx_budget_init(sx_budget *budget, const char *name, size_t limit_bytes, sx_budget *parent);

/* False: the charge would exceed a limit, and nothing was charged. A budget of NULL has no limit.
 */
SX_MUST_USE bool sx_budget_charge(sx_budget *budget, size_t bytes);
void sx_budget_release(sx_budget *budget, size_t bytes); /* not more than was charged */
/* Releases all that is charged to this budget. No other thread may be charging it. */
void sx_budget_release_all(sx_budget *budget);

size_t sx_budget_used(const sx_budget *budget);
/* Whether `bytes` more would fit while `keep_free` bytes of the limit stay unused: used to admit
 * new work only while there is room for running work. Advisory: nothing is charged. */
bool sx_budget_has_room(const sx_budget *budget, size_t bytes, size_t keep_free);

/* Lets a heap array of `*capacity` elements, which were charged, have `wanted`, more than that.
 * False: memory is missing, and nothing has changed. */
SX_MUST_USE bool sx_budget_grow(sx_budget *budget, void **array, int *capacity, int wanted,
                                size_t elem_bytes);

/* Whether the latest charge was refused. */
bool sx_budget_refused(const sx_budget *budget);
/* Whether the refused charge exceeds the limit even with nothing else charged, so that retrying is
 * useless. */
bool sx_budget_never_fits(const sx_budget *budget);
/* RESOURCE_EXHAUSTED with the figures of the latest charge, if that was refused; "out of memory" if
 * it was not. */
SX_MUST_USE sx_status sx_budget_error(const sx_budget *budget);
/* The same with what the refused charge of `bytes` was for (0: the size is left out), and rounded
 * sizes: "WHAT of 3.0 GiB would exceed the memory limit of NAME: 4.0 MiB of 2.0 GiB in use". */
SX_MUST_USE sx_status sx_budget_over(const sx_budget *budget, const char *what, size_t bytes);
/* `status`; or sx_budget_over() in its place if it says that there is no memory because the latest
 * charge was refused. */
SX_MUST_USE sx_status sx_budget_explain(const sx_budget *budget, const char *what,
                                        sx_status status);

#endif
