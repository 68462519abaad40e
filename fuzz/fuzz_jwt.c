/* Tokens and key sets: any bytes are refused, but for what was signed; nobody has signed these. */
#include <stdlib.h>

#include "serve/jwt.h"

static const char set[] =
    "{\"keys\":[{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"},"
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\","
    "\"y\":\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sx_jwks *known;
    const sx_jwt_rules rules = {.now_s = 1000000};
    char subject[SX_JWT_SUBJECT];
    sx_jwks *read = NULL;
    if (known == NULL) {
        sx_status status = sx_jwks_parse((sx_bytes){set, sizeof(set) - 1}, "set", &known);
        if (status != SX_OK) {
            abort();
        }
    }
    sx_status status = sx_jwt_verify(known, (sx_bytes){data, size}, &rules, subject);
    sx_status_free(status);
    status = sx_jwks_parse((sx_bytes){data, size}, "set", &read);
    if (status == SX_OK) {
        sx_jwks_free(read);
    }
    sx_status_free(status);
    return 0;
}
