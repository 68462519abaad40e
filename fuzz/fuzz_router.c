/* The router: "METHOD path" is one of its kinds, names are bounded and not empty where one is asked
 * for. */
#include <stdlib.h>
#include <string.h>

#include "serve/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *space = size > 0 ? memchr(text, ' ', size) : NULL;
    if (!space) {
        return 0;
    }
    const sx_http_text method = {text, (size_t)(space - text)};
    const sx_http_text path = {space + 1, size - method.size - 1};
    sx_route route;
    sx_route_parse(method, path, "/metrics", &route);
    const sx_route_kind kind = route.kind;
    const bool of_project = kind > SX_ROUTE_ML_DISCOVERY;
    const bool of_model = (kind >= SX_ROUTE_STATUS && kind <= SX_ROUTE_REGRESS) ||
                          (kind >= SX_ROUTE_V2_MODEL && kind <= SX_ROUTE_V2_INFER) ||
                          (of_project && kind != SX_ROUTE_ML_MODELS &&
                           kind != SX_ROUTE_ML_CREATE_MODEL && kind != SX_ROUTE_ML_OPERATION);
    if (!memchr(route.model, '\0', SX_ROUTE_NAME) || !memchr(route.label, '\0', SX_ROUTE_NAME) ||
        !memchr(route.project, '\0', SX_ROUTE_NAME) || route.version < -1 ||
        kind > SX_ROUTE_ML_SET_DEFAULT || (of_model && !route.model[0]) ||
        (of_project && !route.project[0])) {
        abort();
    }
    return 0;
}
