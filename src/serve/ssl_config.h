/* The file of --ssl_config_file: TensorFlow Serving's SSLConfig in text format.
 *
 *   server_key: "..."  server_cert: "..."  custom_ca: "..."  client_verify: true
 *
 * A value is PEM text, as in TensorFlow Serving, or the path of a file with it, relative to the
 * config's directory: certificates are then renewed by replacing the files. */
#ifndef SX_SERVE_SSL_CONFIG_H
#define SX_SERVE_SSL_CONFIG_H

#include "net/tls.h"

/* An sx_tls_load_fn; `path` is the file's, a const char *. Errors name the file and the field. */
SX_MUST_USE sx_status sx_ssl_config_load(void *path, sx_tls_material *out);

#endif
