/* The program's entry point; see command.c and the cmd_ files. */
#include <sys/resource.h>

#include "command.h"

/* Allows as many open files as the hard limit does: data sets may have more files, and servers more
 * connections, than the usual soft limit of 1024, which protects programs that call select(). */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    raise_file_limit();
    return sx_cli_run(argc - 1, (const char *const *)argv + 1);
}
