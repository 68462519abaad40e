/* KServe's REST API:
 *
 *   GET   /v2                                    the server's name, version and extensions
 *   GET   /v2/models/NAME[/versions/N]           what the model takes and gives
 *   GET   /v2/models/NAME[/versions/N]/ready     200 or not
 *   POST  /v2/models/NAME[/versions/N]/infer     runs it; see kserve_json.h
 *   POST  /v2/repository/index                   the versions of all models
 *
 * Health is the server's own: /v2/health/live, /v2/health/ready. */
#ifndef SX_SERVE_KSERVE_REST_H
#define SX_SERVE_KSERVE_REST_H

#include "serve/rest.h"
#include "serve/router.h"

void sx_kserve_rest_server(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);
void sx_kserve_rest_model(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);
void sx_kserve_rest_ready(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);
void sx_kserve_rest_infer(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);
void sx_kserve_rest_index(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);

#endif
