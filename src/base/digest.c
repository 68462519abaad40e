/* EVP's functions load OpenSSL's providers with the first call, which takes 2 MB and 1 ms. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/digest.h"

#include <openssl/sha.h>

sx_status sx_digest_of(const void *data, size_t size, sx_digest *out)
{
    SHA256_CTX sum;
    const bool done = SHA256_Init(&sum) == 1 && SHA256_Update(&sum, data, size) == 1 &&
                      SHA256_Final(out->bytes, &sum) == 1;
    return done ? SX_OK : sx_error(SX_INTERNAL, "SHA-256 of %zu bytes could not be computed", size);
}
