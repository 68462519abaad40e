/* grpc.health.v1.Health over the readiness of the models; see grpc_services.h. */
#ifndef SX_SERVE_GRPC_HEALTH_H
#define SX_SERVE_GRPC_HEALTH_H

#include <sextant/status.h>

#include "net/http_server.h"
#include "serve/manager.h"

typedef struct sx_grpc_health sx_grpc_health;

SX_MUST_USE sx_status sx_grpc_health_create(sx_manager *manager, sx_grpc_health **out);
void sx_grpc_health_stop(sx_grpc_health *health);    /* ends the watches; NULL is allowed */
void sx_grpc_health_destroy(sx_grpc_health *health); /* stops first; NULL is allowed */

/* The two methods; `message` is a HealthCheckRequest. */
void sx_grpc_health_check(sx_grpc_health *health, sx_http_exchange *exchange, sx_bytes message);
void sx_grpc_health_watch(sx_grpc_health *health, sx_http_exchange *exchange, sx_bytes message);

#endif
