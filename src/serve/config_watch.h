/* A configuration file of a running server: read when the server is made, again on request, and, if
 * told so, every few seconds. A file with a mistake changes nothing; the mistake is logged once. */
#ifndef SX_SERVE_CONFIG_WATCH_H
#define SX_SERVE_CONFIG_WATCH_H

#include "serve/manager.h"

typedef struct sx_config_watch sx_config_watch;

/* What a file configures. */
typedef struct sx_config_kind {
    const char *what; /* "models", for the log */
    sx_status (*apply)(sx_manager *manager, sx_bytes text, const char *path);
} sx_config_kind;
extern const sx_config_kind sx_config_models;  /* a ModelServerConfig */
extern const sx_config_kind sx_config_traffic; /* a ModelTrafficConfig: traffic.h */

/* Gives `manager`, which must outlive the watch, what the file says. `poll_seconds`: how often to
 * look whether its content is another; 0 = never. Errors: those of the file and of apply. */
SX_MUST_USE sx_status sx_config_watch_create(const sx_config_kind *kind, const char *path,
                                             double poll_seconds, sx_manager *manager,
                                             sx_config_watch **out_watch);
SX_MUST_USE sx_status sx_config_watch_start(sx_config_watch *watch);
/* Reads the file again, on the watch's thread. */
void sx_config_watch_reload(sx_config_watch *watch);
void sx_config_watch_destroy(sx_config_watch *watch); /* NULL is allowed */

#endif
