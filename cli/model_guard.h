/* A crash in the code of a model file ends the program with a message that names the file and the
 * signal, and, inside the model function, the line of the last layer that it added:
 *
 *   sextant: ./net.c: segmentation fault (SIGSEGV) in the model function, after net.c:12
 *
 * Then the signal has its usual effect (exit status 128 + signal, a core dump if enabled). */
#ifndef SX_CLI_MODEL_GUARD_H
#define SX_CLI_MODEL_GUARD_H

#include "model_file.h"

/* Installs the signal handlers and wraps the file's build function to know when it is running. One
 * file at a time. */
void sx_model_guard_begin(const char *path, sx_model_file *file);
void sx_model_guard_end(void);

#endif
