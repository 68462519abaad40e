/* A line that counts the seconds of something that takes long, drawn by a thread of its own while
 * the program is busy in it: "compiling the train program for batch size 1024 on /device:TPU:0 … 12
 * s". Nothing is drawn before the first second has passed. Where there is no terminal, one line is
 * printed, after five seconds. */
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
    bool running;  /* there is a thread */
    bool counting; /* and it has begun */
    bool over, drawn;
} sx_waiting;

/* Ends the one before, if it runs. Without a thread (no memory for one) nothing is shown. */
void sx_waiting_begin(sx_waiting *w, const sx_terminal *terminal, const char *text);
/* Wipes the line. True if something was printed where there is no terminal. One that does not run
 * is fine. */
bool sx_waiting_end(sx_waiting *w);

#endif
