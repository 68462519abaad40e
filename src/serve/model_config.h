/* The configuration files of tensorflow_model_server, in protobuf's text format. */
#ifndef SX_SERVE_MODEL_CONFIG_H
#define SX_SERVE_MODEL_CONFIG_H

#include "serve/manager.h"

/* The models of a ModelServerConfig, in `arena`. `name` is that of the file, for errors:
 * INVALID_ARGUMENT with file, line and field. */
SX_MUST_USE sx_status sx_model_config_parse(sx_bytes text, const char *name, sx_arena *arena,
                                            sx_model_config **out_models, size_t *out_count);
/* The same of an encoded ModelServerConfig. */
SX_MUST_USE sx_status sx_model_config_read(sx_bytes message, sx_arena *arena,
                                           sx_model_config **out_models, size_t *out_count);
/* The URL path of the metrics that a MonitoringConfig gives, in `arena`; "" = no metrics. */
SX_MUST_USE sx_status sx_monitoring_config_read(const char *path, sx_arena *arena,
                                                const char **out_url_path);

#endif
