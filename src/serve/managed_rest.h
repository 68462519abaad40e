/* Managed prediction's REST API, as Google's clients speak it to the service "ml", version v1:
 *
 *   POST    /v1/projects/P/models/M[/versions/V]:predict   {"instances": [...]}
 *   GET     /v1/projects/P/models, .../M, .../M/versions, .../M/versions/V
 *   POST    /v1/projects/P/models                          {"name": "M"}
 *   POST    /v1/projects/P/models/M/versions               {"name": "v1", "deploymentUri": "/path"}
 *   POST    /v1/projects/P/models/M/versions/V:setDefault
 *   DELETE  /v1/projects/P/models/M, .../M/versions/V
 *   GET     /v1/projects/P/operations/NAME                 of a version's creation
 *   GET     /discovery/v1/apis/ml/v1/rest
 *
 * Every model of the server is one of every project. A version is v and its number; predict takes
 * labels, too. Predictions are objects that name the outputs, even a single one. Where a request is
 * what prevents a prediction, the answer is 200 and {"error": "..."}; other errors are objects with
 * code, message and status. */
#ifndef SX_SERVE_MANAGED_REST_H
#define SX_SERVE_MANAGED_REST_H

#include "serve/managed.h"
#include "serve/rest_call.h"

void sx_managed_rest_predict(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);
/* All other routes. */
void sx_managed_rest_handle(sx_rest *rest, sx_http_exchange *exchange, const sx_route *route);

/* Appends the discovery document of a server at `root_url`, which ends in "/". */
void sx_managed_print_discovery(const char *root_url, sx_buf *out);

#endif
