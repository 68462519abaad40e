/* Google Cloud's metadata service and TPU API.
 *
 * Metadata: http://HOST/computeMetadata/v1/PATH. HOST is $GCE_METADATA_HOST, $GCE_METADATA_IP or
 * metadata.google.internal, the first that is set. Requests and responses must have the header
 * "Metadata-Flavor: Google"; proxies are not used.
 *
 * TPU API: BASE/v2/projects/P/locations/Z/nodes/N. BASE is the caller's,
 * $CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU (which gcloud also uses) or https://tpu.googleapis.com. The
 * token is $CLOUDSDK_AUTH_ACCESS_TOKEN or comes from the metadata service. It is sent only over
 * https or to this machine, and is never printed.
 *
 * Source: Compute Engine's metadata server reference, Cloud TPU API v2, TensorFlow's
 * tpu/client/client.py. */
#ifndef SX_DISTRIBUTE_CLOUD_H
#define SX_DISTRIBUTE_CLOUD_H

#include "base/arena.h"

typedef struct sx_cloud {
    sx_arena *arena; /* for all results */
    int timeout_ms;  /* per request; 0 = 3000, for the API 20000 */
    const char *api; /* BASE of the TPU API; NULL = as above */
    /* Why the metadata service is unavailable, so that it is not tried again; or NULL. */
    const char *down;
} sx_cloud;

/* The value at PATH, a single line. Errors: UNAVAILABLE: no metadata service; NOT_FOUND: no such
 * value; INVALID_ARGUMENT: invalid GCE_METADATA_HOST. */
SX_MUST_USE sx_status sx_cloud_metadata(sx_cloud *cloud, const char *path, const char **out_text);

/* Requests a node from the TPU API; *out_body is the response. Errors: NOT_FOUND,
 * PERMISSION_DENIED, UNAUTHENTICATED (no token; says what to do), UNAVAILABLE; INVALID_ARGUMENT: an
 * invalid name. *out_url is always set, for messages. */
SX_MUST_USE sx_status sx_cloud_tpu_node(sx_cloud *cloud, const char *project, const char *zone,
                                        const char *name, const char **out_url, sx_bytes *out_body);

#endif
