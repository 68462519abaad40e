/* What a process that starts `serve` hands to it by its environment: listening sockets, as
 * sd_listen_fds(3) of systemd says, and a pipe on which it reports (`sextant supervise`).
 *
 *   LISTEN_PID=<this process>  LISTEN_FDS=2  LISTEN_FDNAMES=rest:grpc     descriptors 3 and 4
 *   SEXTANT_REPORT_FD=5        a line "READY REQUESTS RUNNING\n" ten times a second: 1 107 3 */
#ifndef SX_CLI_ACTIVATION_H
#define SX_CLI_ACTIVATION_H

#include <stdint.h>

#include <sextant/status.h>

enum {
    SX_ACTIVATION_FIRST_FD = 3,
    SX_REPORT_MS = 100,
};

typedef struct sx_activation {
    int rest_fd, grpc_fd; /* 0 = none */
    int report_fd;        /* 0 = none */
} sx_activation;

/* Reads the environment. Without names, the first socket is the REST API's and the second gRPC's.
 * INVALID_ARGUMENT: other names or numbers. */
SX_MUST_USE sx_status sx_activation_read(sx_activation *out);

/* What a line of the report says. */
typedef struct sx_report_line {
    int ready; /* a version of every model is served, or cannot be */
    uint64_t requests, running;
} sx_report_line;

/* Writes a line, unless the pipe is full. */
void sx_report_write(int fd, const sx_report_line *line);

#endif
