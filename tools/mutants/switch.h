/* The run-time switch of `make mutants`: included in front of every file of the mutated copy.
 *
 * SX_MUTANT=17 switches slip 17 on. SX_MUTANT_TRACE=FILE (of SX_MUTANTS_MAX zero bytes) notes there
 * which slips the process and its children reach in a way that makes a difference. With neither,
 * and with -DSX_MUTANTS_OFF, the program is the original. */
#ifndef SX_MUTANTS_SWITCH_H
#define SX_MUTANTS_SWITCH_H

enum { SX_MUTANTS_MAX = 1 << 14 };

#ifdef SX_MUTANTS_OFF

#define SXM_SLIP(n, original, slip)   (original)
#define SXM_BINARY(n, a, op, slip, b) ((a)op(b))
#define SXM_NOT(n, condition)         (condition)
#define SXM_NEVER(n, condition)       (condition)
#define SXM_IGNORE(n, status)         (status)
#define SXM_DROP(n)
#define SXM_LIMIT(n, limit, slip) limit
#define SXM_PROBE(n)
#define SXM_CONST const
#define SXM_TABLE(n, table, ...)

#else

/* 0: nothing; 1: to be noted when met; 2: on */
extern unsigned char sx_mutant_state[SX_MUTANTS_MAX];

int sx_mutant_met(int n);
int sx_mutant_differs(int n, int differs);
void sx_mutant_patch(int n, const void *table, const void *slip, unsigned long bytes);

#define SXM(n) (__builtin_expect(sx_mutant_state[n] != 0, 0) && sx_mutant_met(n))

#define SXM_SLIP(n, original, slip) (SXM(n) ? (slip) : (original))
/* Is noted only where the two operators' results differ. */
#define SXM_BINARY(n, a, op, slip, b)                                        \
    __extension__({                                                          \
        __auto_type sxm_a = (a);                                             \
        __auto_type sxm_b = (b);                                             \
        __builtin_expect(sx_mutant_state[n] != 0, 0) &&                      \
                sx_mutant_differs(n, (sxm_a op sxm_b) != (sxm_a slip sxm_b)) \
            ? sxm_a slip sxm_b                                               \
            : sxm_a op sxm_b;                                                \
    })
#define SXM_NOT(n, condition)   (SXM(n) ? !(condition) : !!(condition))
#define SXM_NEVER(n, condition) ((condition) && !SXM(n))
#define SXM_IGNORE(n, status)                \
    __extension__({                          \
        sx_status sxm_status = (status);     \
        if (sxm_status != SX_OK && SXM(n)) { \
            sx_status_free(sxm_status);      \
            sxm_status = SX_OK;              \
        }                                    \
        sxm_status;                          \
    })
#define SXM_DROP(n) \
    if (SXM(n)) {   \
    } else
#define SXM_LIMIT(n, limit, slip) (SXM(n) ? (slip) : (limit))
#define SXM_PROBE(n)              (void)SXM(n);
#define SXM_CONST
/* Overwrites a table of file scope before main(). */
#define SXM_TABLE(n, table, ...)                                  \
    __attribute__((constructor)) static void sxm_patch_##n(void)  \
    {                                                             \
        __VA_ARGS__                                               \
        sx_mutant_patch(n, &table, &sxm_table_##n, sizeof table); \
    }

#endif
#endif
