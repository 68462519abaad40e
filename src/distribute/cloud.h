/* What a machine of Google's cloud is told by its metadata service, and the TPU API.
 *
 *   metadata   http://HOST/computeMetadata/v1/PATH, HOST of $GCE_METADATA_HOST, else
 *              $GCE_METADATA_IP, else metadata.google.internal; asked with, and believed only
 *              with, the header "Metadata-Flavor: Google"; never through a proxy
 *   TPU API    BASE/v2/projects/P/locations/Z/nodes/N, BASE of the caller, else
 *              $CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU (gcloud's own), else
 * https://tpu.googleapis.com; with the token of $CLOUDSDK_AUTH_ACCESS_TOKEN, else the metadata
 * service's
 *
 * A token leaves this process only over https, or to this machine itself; it is never printed.
 * Source: Compute Engine's metadata server reference, Cloud TPU API v2, TensorFlow's
 * tpu/client/client.py. */
#ifndef SX_DISTRIBUTE_CLOUD_H
#define SX_DISTRIBUTE_CLOUD_H

#include "base/arena.h"

typedef struct sx_cloud {
    sx_arena *arena; /* of all that is answered */
    int timeout_ms;  /* of one question; 0 = 3000, 20000 to the API */
    const char *api; /* BASE of the TPU API; NULL = as above */
    const char
        *down; /* why the metadata service did not answer; it is asked once. NULL = not yet */
} sx_cloud;

/* "metadata.google.internal", or what the environment says. */
const char *sx_cloud_metadata_host(void);

/* The value at PATH, a single line. Errors: UNAVAILABLE nobody answers, or somebody else does;
 * NOT_FOUND no such value; INVALID_ARGUMENT a senseless GCE_METADATA_HOST. */
SX_MUST_USE sx_status sx_cloud_metadata(sx_cloud *cloud, const char *path, const char **out_text);

/* Asks the TPU API for a node; its answer's body. Errors: NOT_FOUND, PERMISSION_DENIED,
 * UNAUTHENTICATED (no token) with what to do, UNAVAILABLE; INVALID_ARGUMENT a name that cannot be
 * one. *out_url is set in any case, for what is said about it. */
SX_MUST_USE sx_status sx_cloud_tpu_node(sx_cloud *cloud, const char *project, const char *zone,
                                        const char *name, const char **out_url, sx_bytes *out_body);

#endif
