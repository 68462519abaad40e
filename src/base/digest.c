#include "base/digest.h"

#include <openssl/evp.h>

sx_status sx_digest_of(const void *data, size_t size, sx_digest *out)
{
    return EVP_Digest(data, size, out->bytes, NULL, EVP_sha256(), NULL) == 1
               ? SX_OK
               : sx_error(SX_INTERNAL, "SHA-256 of %zu bytes could not be computed", size);
}
