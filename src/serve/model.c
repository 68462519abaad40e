/* What every front end does with a model's signatures; see model.h. */
#include "serve/model.h"

#include <string.h>

#include "base/checked.h"
#include "serve/json_scan.h"

sx_bytes sx_serve_signature_name(sx_bytes name)
{
    static const char default_name[] = "serving_default";
    return name.size > 0 ? name : (sx_bytes){default_name, sizeof(default_name) - 1};
}

const sx_serve_signature *sx_serve_find_signature(const sx_serve_signature *signatures,
                                                  size_t count, sx_bytes name)
{
    for (size_t i = 0; i < count; i++) {
        if (sx_bytes_is(sx_serve_signature_name(name), signatures[i].name)) {
            return &signatures[i];
        }
    }
    return NULL;
}

sx_status sx_serve_no_signature(sx_bytes name)
{
    enum { SHOWN_BYTES = 60 };
    const sx_bytes wanted = sx_serve_signature_name(name);
    return sx_error(SX_FAILED_PRECONDITION, "Serving signature key \"%.*s\" not found.",
                    (int)SX_MIN(wanted.size, (size_t)SHOWN_BYTES), (const char *)wanted.data);
}
