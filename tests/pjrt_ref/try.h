/* Parsing any bytes and, if they are a small program, running it: for the fuzz target and for the
 * tests that damage programs. */
#ifndef PJRT_REF_TRY_H
#define PJRT_REF_TRY_H

#include <string.h>

#include "base/memory.h"
#include "pjrt_ref/parse.h"
#include "pjrt_ref/run.h"

enum { TRY_OPS = 2000, TRY_MEMORY = 1 << 20, TRY_FLOPS = 100000 };

/* On arguments of zeros; takes few operations and little memory. */
static inline void try_run(const ref_program *p)
{
    ref_memory memory = {.limit = TRY_MEMORY};
    int n = p->main.n_args;
    ref_array **arrays = sx_alloc((size_t)(n + p->main.n_results) + 1, sizeof(ref_array *));
    const ref_run run = {.program = p, .memory = &memory, .is_bounded = true, .budget = TRY_OPS};
    int made = 0;
    sx_status status = SX_OK;
    while (arrays != NULL && made < n && status == SX_OK) {
        status = ref_array_create(&memory, ref_type_of(p, p->main.args[made]), &arrays[made]);
        made += status == SX_OK;
    }
    if (arrays != NULL && status == SX_OK) {
        status = ref_execute(&run, arrays, arrays + n);
        for (int i = 0; i < p->main.n_results && status == SX_OK; i++) {
            ref_array_release(arrays[n + i]);
        }
        made = 0;
    }
    for (int i = 0; i < made; i++) {
        ref_array_release(arrays[i]);
    }
    sx_status_free(status);
    sx_free(arrays);
}

/* Did it parse? */
static inline bool try_text(const char *text, size_t size)
{
    ref_program *p = NULL;
    sx_status status = ref_parse(text, size, 1, &p);
    bool parsed = status == SX_OK;
    sx_status_free(status);
    if (parsed && p->flops < TRY_FLOPS) {
        try_run(p);
    }
    ref_program_destroy(p);
    return parsed;
}

#endif
