/* See switch.h. The state is set before any constructor of the mutated files runs. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned char sx_mutant_state[SX_MUTANTS_MAX];
static unsigned char *notes; /* [SX_MUTANTS_MAX], shared with the test's other processes */

__attribute__((constructor(101))) static void read_environment(void)
{
    const char *number = getenv("SX_MUTANT"), *trace = getenv("SX_MUTANT_TRACE");
    if (number != NULL && atoi(number) > 0 && atoi(number) < SX_MUTANTS_MAX) {
        sx_mutant_state[atoi(number)] = 2;
    }
    int fd = trace == NULL ? -1 : open(trace, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        void *map = mmap(NULL, SX_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (map != MAP_FAILED) {
            notes = map;
            memset(sx_mutant_state, 1, sizeof sx_mutant_state);
        }
    }
}

int sx_mutant_differs(int n, int differs)
{
    if (sx_mutant_state[n] == 2) {
        return 1;
    }
    if (differs && notes != NULL) {
        notes[n] |= 1;
        sx_mutant_state[n] = 0;
    }
    return 0;
}

int sx_mutant_met(int n)
{
    return sx_mutant_differs(n, 1);
}

void sx_mutant_patch(int n, const void *table, const void *slip, unsigned long bytes)
{
    if (notes != NULL) {
        notes[n] |= 2; /* it is loaded; whether anybody reads it is not known */
    }
    if (sx_mutant_state[n] != 2) {
        return;
    }
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE), at = (unsigned long)table;
    unsigned long from = at / page * page, to = (at + bytes + page - 1) / page * page;
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0) {
        memcpy((void *)at, slip, bytes);
    }
}
