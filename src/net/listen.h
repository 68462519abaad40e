/* Listening sockets: one per event loop on the same port; the kernel distributes connections over
 * them (SO_REUSEPORT). A port that another program listens on is refused, although SO_REUSEPORT
 * alone would let the two share it. */
#ifndef SX_NET_LISTEN_H
#define SX_NET_LISTEN_H

#include <sextant/status.h>

/* Opens `count` non-blocking listening sockets in out_fds.
 *   host   numeric address or name; NULL or "" = every address: [::] taking IPv4 too, and 0.0.0.0
 *          where there is no IPv6
 *   port   0..65535; with 0 the kernel chooses; *out_port is the result
 * Errors: INVALID_ARGUMENT (port out of range, unknown host), ALREADY_EXISTS (port in use),
 * PERMISSION_DENIED (privileged port), RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_listen(const char *host, int port, int backlog, int count, int *out_fds,
                                int *out_port);

/* Shares a listening socket that another process has opened, and keeps: `count` non-blocking
 * descriptors of it. *out_port is 0 if it has none. Errors: INVALID_ARGUMENT: it is no listening
 * socket; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_listen_shared(int fd, int count, int *out_fds, int *out_port);

/* The same at a path: a UNIX socket, which `count` descriptors share. A socket file that nobody
 * listens at any more is replaced. Errors: INVALID_ARGUMENT (path too long or no directory),
 * ALREADY_EXISTS (in use, or another kind of file), PERMISSION_DENIED, RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_listen_unix(const char *path, int backlog, int count, int *out_fds);

#endif
