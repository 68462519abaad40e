/* The store of a run's processes (store.h) over HTTP: POST / with a request as the body. The chief
 * serves it, on threads of its own. Whoever reaches the port can read and write it: it belongs on a
 * network of the run's own machines. */
#ifndef SX_DISTRIBUTE_STORE_SERVER_H
#define SX_DISTRIBUTE_STORE_SERVER_H

#include "distribute/store.h"

typedef struct sx_store_server sx_store_server;

/* Listens at host (NULL = every address) and port (0: the kernel chooses). Of `options`, the
 * functions are the server's own. Errors: those of sx_listen(). */
SX_MUST_USE sx_status sx_store_server_start(const char *host, int port,
                                            const sx_store_options *options, sx_store_server **out);
int sx_store_server_port(const sx_store_server *server);
sx_store *sx_store_server_store(sx_store_server *server);
/* Waits, up to `grace_ms`, until the other processes have left; ends. NULL is fine. */
void sx_store_server_stop(sx_store_server *server, int grace_ms);

#endif
