/* The other response bodies of the REST API: errors, model status, metadata. Layouts are those of
 * TensorFlow Serving (protobuf's JSON with one space of indentation). */
#ifndef SX_SERVE_REST_PAGES_H
#define SX_SERVE_REST_PAGES_H

#include <sextant/status.h>

#include "base/buffer.h"
#include "serve/lifecycle.h"
#include "serve/model.h"

void sx_rest_print_error(sx_buf *out, const char *message);

/* Messages are not printed: they name paths of the server. */
void sx_rest_print_status(sx_buf *out, const sx_version_status *rows, size_t count);

void sx_rest_print_metadata(sx_buf *out, const char *model, int64_t version,
                            const sx_serve_signature *signatures, size_t count);

#endif
