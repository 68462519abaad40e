/* Threads of the library. */
#ifndef SX_BASE_THREAD_H
#define SX_BASE_THREAD_H

#include <pthread.h>

/* pthread_create() for a thread that leaves signals to the program's own threads: it blocks all but
 * those that a fault of its own code raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL). Returns an errno. */
int sx_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                     void *arg);

#endif
