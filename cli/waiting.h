/* A line that counts the seconds of a long operation, drawn by its own thread: "compiling the train
 * program for batch size 1024 on /device:TPU:0 … 12 s". Nothing is drawn in the first second.
 * Without a terminal, one line is printed after five seconds. */
#ifndef SX_CLI_WAITING_H
#define SX_CLI_WAITING_H

#include <pthread.h>
#include <stdint.h>

#include "terminal.h"

typedef struct sx_waiting {
    sx_terminal terminal;
    char text[256];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t began_ns;
    bool running;  /* the thread exists */
    bool counting; /* and has started */
    bool over, drawn;
} sx_waiting;

/* Ends the previous one, if running. If the thread cannot be created, nothing is shown. */
void sx_waiting_begin(sx_waiting *w, const sx_terminal *terminal, const char *text);
/* Clears the line. True if something was printed without a terminal. It need not be running. */
bool sx_waiting_end(sx_waiting *w);

#endif
