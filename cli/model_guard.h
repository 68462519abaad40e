/* A crash in the code of a model file ends the program with a message that names the file and the
 * signal, and, inside the model function, the line of the last layer that it added:
 *
 *   sextant: ./net.c: segmentation fault (SIGSEGV) in the model function, after net.c:12
 *
 * or "while it was loaded". exit() in either place is an error, too; _exit() is not seen.
 *
 * Then the signal has its usual effect (exit status 128 + signal, a core dump if enabled). */
#ifndef SX_CLI_MODEL_GUARD_H
#define SX_CLI_MODEL_GUARD_H

#include "model_file.h"

/* Installs the signal handlers, before the file's library is loaded: its constructors run then. One
 * file at a time. `path` must live until sx_model_guard_end(). */
void sx_model_guard_load(const char *path);
/* After it is loaded: wraps the file's build function to know when it is running. */
void sx_model_guard_begin(sx_model_file *file);
/* Removes the handlers, before the library is unloaded or if it could not be loaded. */
void sx_model_guard_end(void);

#endif
