/* The program's entry point; see command.c and the cmd_ files. */
#include "command.h"

int main(int argc, char **argv)
{
    return sx_cli_run(argc - 1, (const char *const *)argv + 1);
}
