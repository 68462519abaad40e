/* The program's entry point; see command.c and the cmd_ files. */
#include <sys/resource.h>

#include "command.h"

/* Of descriptors: the usual limit, 1024, is for programs that call select(), and which know no
 * more. Data sets may have more files, and servers more connections. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    raise_limit();
    return sx_cli_run(argc - 1, (const char *const *)argv + 1);
}
