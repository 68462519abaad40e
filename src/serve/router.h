/* Maps method and path to a route. The paths are TensorFlow Serving's and KServe's:
 *
 *   GET   /v1/models/NAME[/versions/N | /labels/L]            status
 *   GET   /v1/models/NAME[/versions/N | /labels/L]/metadata   metadata
 *   POST  /v1/models/NAME[/versions/N | /labels/L]:predict    predict (classify, regress)
 *   GET   /v2, /v2/models/NAME[/versions/N][/ready]           KServe's, see kserve_rest.h
 *   POST  /v2/models/NAME[/versions/N]/infer, /v2/repository/index
 *   .../v1/projects/P/...                                     managed_rest.h: managed prediction
 *   GET   /discovery/v1/apis/ml/v1/rest                       its discovery document
 *   GET   /                                                   a page for people
 *   GET   /healthz, /v2/health/live                           liveness
 *   GET   /readyz, /v2/health/ready                           every model has a served version
 *   GET   the monitoring path                                 Prometheus
 *
 * Fixed parts are case-insensitive; names and labels are percent-decoded. */
#ifndef SX_SERVE_ROUTER_H
#define SX_SERVE_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http1.h"

enum { SX_ROUTE_NAME = 256 }; /* maximum size of a decoded name or label, including the NUL */

typedef enum sx_route_kind {
    SX_ROUTE_NOT_FOUND,          /* unknown path: 404 */
    SX_ROUTE_MALFORMED,          /* under /v1/, but not a route, or not for this method: 400, as in
                                    TensorFlow Serving */
    SX_ROUTE_METHOD_NOT_ALLOWED, /* any other path with a method that it has not: 405 */
    SX_ROUTE_MISSING_MODEL,      /* /v1/models: 400 */
    SX_ROUTE_STATUS,
    SX_ROUTE_METADATA,
    SX_ROUTE_PREDICT,
    SX_ROUTE_CLASSIFY,
    SX_ROUTE_REGRESS,
    SX_ROUTE_LIVE,
    SX_ROUTE_READY,
    SX_ROUTE_METRICS,
    SX_ROUTE_STATUS_PAGE,
    SX_ROUTE_OPTIONS, /* OPTIONS of any /v1 path */
    SX_ROUTE_V2_SERVER,
    SX_ROUTE_V2_MODEL,
    SX_ROUTE_V2_MODEL_READY,
    SX_ROUTE_V2_INFER,
    SX_ROUTE_V2_INDEX,
    SX_ROUTE_ML_DISCOVERY,
    SX_ROUTE_ML_PREDICT,
    SX_ROUTE_ML_MODELS,
    SX_ROUTE_ML_MODEL,
    SX_ROUTE_ML_VERSIONS,
    SX_ROUTE_ML_VERSION,
    SX_ROUTE_ML_OPERATION,
    /* These change which models are served: */
    SX_ROUTE_ML_CREATE_MODEL,
    SX_ROUTE_ML_DELETE_MODEL,
    SX_ROUTE_ML_CREATE_VERSION,
    SX_ROUTE_ML_DELETE_VERSION,
    SX_ROUTE_ML_SET_DEFAULT,
} sx_route_kind;

typedef struct sx_route {
    sx_route_kind kind;
    char model[SX_ROUTE_NAME];
    char label[SX_ROUTE_NAME];   /* "" if none */
    int64_t version;             /* -1 if none */
    char project[SX_ROUTE_NAME]; /* "" if none */
} sx_route;

/* Whether it changes which models are served. */
static inline bool sx_route_is_change(sx_route_kind kind)
{
    return kind >= SX_ROUTE_ML_CREATE_MODEL;
}
/* Whether it runs a model. */
bool sx_route_is_predict(sx_route_kind kind);

/* `metrics_path` may be NULL (off). HEAD is routed as GET. */
void sx_route_parse(sx_http_text method, sx_http_text path, const char *metrics_path,
                    sx_route *out_route);

#endif
