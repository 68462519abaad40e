/* Reads an SSLConfig; see ssl_config.h. */
#include "serve/ssl_config.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/guard.h"
#include "proto/ssl_config.pb-c.h"
#include "proto/text_format.h"

enum { MAX_BYTES = 1 << 20 };

/* The PEM text that a field stands for: NULL if it is empty. `file` receives the path that it
 * names, if it does. */
static sx_status read_field(const char *config, const char *field, const char *value,
                            char **out_text, char **out_file)
{
    size_t size = 0;
    char *dir = NULL;
    if (value[0] == '\0') {
        return SX_OK;
    }
    if (strstr(value, "-----BEGIN") != NULL) {
        *out_text = sx_strdup(value);
        return *out_text != NULL ? SX_OK : sx_no_memory("for %s", field);
    }
    if (value[0] == '/') {
        *out_file = sx_strdup(value);
    } else {
        SX_TRY(sx_path_dirname(config, &dir));
        sx_status status = sx_path_join(dir, value, out_file);
        sx_free(dir);
        SX_TRY(status);
    }
    if (*out_file == NULL) {
        return sx_no_memory("for %s", field);
    }
    SX_TRY(sx_file_read(*out_file, MAX_BYTES, out_text, &size), "%s: %s", config, field);
    return SX_OK;
}

sx_status sx_ssl_config_load(void *path, sx_tls_material *out)
{
    char *text = NULL;
    size_t size = 0;
    ProtobufCMessage *message = NULL;
    out->files[0] = sx_strdup(path);
    if (out->files[0] == NULL) {
        return sx_no_memory("for %s", (const char *)path);
    }
    SX_TRY(sx_file_read(path, MAX_BYTES, &text, &size));
    sx_status status = sx_text_format_parse(&tensorflow__serving__sslconfig__descriptor,
                                            (sx_bytes){text, size}, path, &message);
    sx_free(text);
    SX_TRY(status);
    const Tensorflow__Serving__SSLConfig *config = (const Tensorflow__Serving__SSLConfig *)message;
    const struct {
        const char *name, *value;
        char **text;
        bool required;
    } fields[] = {{"server_key", config->server_key, &out->key, true},
                  {"server_cert", config->server_cert, &out->certificates, true},
                  {"custom_ca", config->custom_ca, &out->client_ca, false}};
    out->verify_client = config->client_verify;
    for (size_t i = 0; i < SX_COUNT(fields) && status == SX_OK; i++) {
        status = fields[i].required && fields[i].value[0] == '\0'
                     ? sx_error(SX_INVALID_ARGUMENT, "%s: %s is missing", (const char *)path,
                                fields[i].name)
                     : read_field(path, fields[i].name, fields[i].value, fields[i].text,
                                  &out->files[i + 1]);
    }
    sx_proto_free(message);
    return status;
}
