/* See cloud.h. */
#include "distribute/cloud.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "distribute/tf_config.h"
#include "distribute/tpu_node.h"
#include "io/http_client.h"

enum {
    METADATA_MS = 3000,
    API_MS = 20000,
    METADATA_BYTES = 1 << 16,
    HEAD_BYTES = 1 << 16,
    TOKEN_BYTES = 8192
};

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- One request ---- */

typedef struct answer {
    int status;
    sx_buf body, head;
} answer;

static sx_status ask(const char *url, const char *header, bool direct, int timeout_ms, answer *a)
{
    const char *const headers[] = {header, NULL};
    sx_http_call call = {.url = url, .method = "GET", .direct = direct, .headers = headers};
    call.timeout_ms = timeout_ms;
    call.connect_timeout_ms = timeout_ms;
    sx_buf_init(&a->head, HEAD_BYTES);
    return sx_http_fetch(&call, &a->body, &a->head, &a->status);
}

static int timeout_of(const sx_cloud *cloud, int otherwise)
{
    return cloud->timeout_ms > 0 ? cloud->timeout_ms : otherwise;
}

static void answer_deinit(answer *a)
{
    sx_buf_deinit(&a->body);
    sx_buf_deinit(&a->head);
}

/* ---- Metadata ---- */

/* The host set in the environment, or the default. */
static const char *metadata_host(void)
{
    const char *host = from_environment("GCE_METADATA_HOST");
    host = host != NULL ? host : from_environment("GCE_METADATA_IP");
    return host != NULL ? host : "metadata.google.internal";
}

/* A host and optionally a port: nothing that could change the rest of the URL. */
static bool is_authority(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]");
    return text[n] == '\0' && n < 256;
}

/* Whether the response headers identify the metadata service. */
static bool is_metadata_service(const sx_buf *head)
{
    return strcasestr(sx_buf_text(head), "\nMetadata-Flavor: Google\r\n") != NULL;
}

/* The response body as a single line, without trailing whitespace. */
static sx_status take_line(sx_cloud *cloud, const char *path, const sx_buf *body, const char **out)
{
    const char *text = sx_buf_text(body);
    size_t n = body->size;
    while (n > 0 && isspace((unsigned char)text[n - 1])) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return sx_error(SX_UNAVAILABLE, "metadata service: value of %s is not a line of text",
                            path);
        }
    }
    const char *line = sx_arena_strndup(cloud->arena, text, n);
    if (line == NULL) {
        return sx_no_memory("for a response of the cloud");
    }
    *out = line;
    return SX_OK;
}

static sx_status judge(sx_cloud *cloud, const char *path, const answer *a, const char **out)
{
    if (!is_metadata_service(&a->head)) {
        cloud->down = sx_arena_printf(
            cloud->arena,
            "%s is not a metadata service (no header \"Metadata-Flavor: Google\" in its response)",
            metadata_host());
        return sx_error(SX_UNAVAILABLE, "%s", cloud->down != NULL ? cloud->down : "");
    }
    if (a->status == 404) {
        return sx_error(SX_NOT_FOUND, "metadata service: no %s", path);
    }
    if (a->status != 200) {
        return sx_error(SX_UNAVAILABLE, "metadata service: HTTP status %d for %s", a->status, path);
    }
    return take_line(cloud, path, &a->body, out);
}

sx_status sx_cloud_metadata(sx_cloud *cloud, const char *path, const char **out_text)
{
    const char *host = metadata_host();
    if (cloud->down != NULL) {
        return sx_error(SX_UNAVAILABLE, "%s", cloud->down);
    }
    if (!is_authority(host)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "GCE_METADATA_HOST is \"%.200s\", expected HOST or HOST:PORT", host);
    }
    const char *url = sx_arena_printf(cloud->arena, "http://%s/computeMetadata/v1/%s", host, path);
    if (url == NULL) {
        return sx_no_memory("for a response of the cloud");
    }
    answer a = {0};
    sx_buf_init(&a.body, METADATA_BYTES);
    sx_status status =
        ask(url, "Metadata-Flavor: Google", true, timeout_of(cloud, METADATA_MS), &a);
    if (status == SX_OK) {
        status = judge(cloud, path, &a, out_text);
    } else {
        cloud->down = sx_arena_strdup(cloud->arena, sx_status_message(status));
    }
    answer_deinit(&a);
    return status;
}

/* ---- The token ---- */

/* RFC 6750's b64token, which cannot end a header or start another. */
static bool is_token(const char *text)
{
    size_t n =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=");
    return n > 0 && text[n] == '\0' && n <= TOKEN_BYTES;
}

/* {"access_token": "…", …} */
static sx_status parse_token(const char *text, sx_arena *arena, const char **out)
{
    json_t *root = NULL;
    SX_TRY(sx_foreign_json(text, strlen(text), "the metadata service's token", &root));
    const char *token = json_string_value(json_object_get(root, "access_token"));
    sx_status status = SX_OK;
    if (token == NULL || !is_token(token)) {
        status = sx_error(SX_UNAUTHENTICATED, "invalid token from the metadata service");
    } else if ((*out = sx_arena_strdup(arena, token)) == NULL) {
        status = sx_no_memory("for a response of the cloud");
    }
    json_decref(root);
    return status;
}

static sx_status find_token(sx_cloud *cloud, const char **out)
{
    const char *given = from_environment("CLOUDSDK_AUTH_ACCESS_TOKEN"), *text = NULL;
    if (given != NULL) {
        *out = given;
        return is_token(given) ? SX_OK
                               : sx_error(SX_UNAUTHENTICATED,
                                          "CLOUDSDK_AUTH_ACCESS_TOKEN is not a valid token");
    }
    sx_status status = sx_cloud_metadata(cloud, "instance/service-accounts/default/token", &text);
    if (status != SX_OK) {
        return sx_status_annotate(
            status, __FILE__, __LINE__,
            "the TPU API needs a token: set CLOUDSDK_AUTH_ACCESS_TOKEN (gcloud auth "
            "print-access-token), or run on a machine with a service account");
    }
    return parse_token(text, cloud->arena, out);
}

/* ---- The TPU API ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_this_machine(const char *url)
{
    return starts_with(url, "http://127.0.0.1:") || starts_with(url, "http://localhost:") ||
           starts_with(url, "http://[::1]:");
}

/* Checks the name of a project, zone or node, which must not change the rest of the URL. */
static sx_status check_name(const char *what, const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:");
    return name[0] != '\0' && name[0] != '.' && name[n] == '\0' && n < 256
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "\"%.200s\" is not a valid %s name", name, what);
}

static sx_status judge_node(sx_cloud *cloud, const char *url, const answer *a, sx_bytes *out)
{
    static const struct {
        int status;
        sx_code code;
    } codes[] = {{401, SX_UNAUTHENTICATED}, {403, SX_PERMISSION_DENIED}, {404, SX_NOT_FOUND}};
    if (a->status == 200) {
        void *copy = sx_arena_memdup(cloud->arena, sx_buf_text(&a->body), a->body.size + 1);
        *out = (sx_bytes){copy, a->body.size};
        return copy != NULL ? SX_OK : sx_no_memory("for a response of the cloud");
    }
    sx_code code = SX_UNAVAILABLE;
    for (size_t i = 0; i < SX_COUNT(codes); i++) {
        code = codes[i].status == a->status ? codes[i].code : code;
    }
    const char *said = sx_tpu_node_error(sx_buf_text(&a->body), a->body.size, cloud->arena);
    return sx_error(code, "%s: status %d%s%s", url, a->status, said != NULL ? ": " : "",
                    said != NULL ? said : "");
}

static sx_status make_url(sx_cloud *cloud, const char *project, const char *zone, const char *name,
                          const char **out_url)
{
    const char *base =
        cloud->api != NULL ? cloud->api : from_environment("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU");
    base = base != NULL ? base : "https://tpu.googleapis.com";
    SX_TRY(check_name("project", project));
    SX_TRY(check_name("zone", zone));
    SX_TRY(check_name("TPU", name));
    bool safe = starts_with(base, "https://") || is_this_machine(base);
    if (!safe || strpbrk(base, "@?#\\ \t\r\n") != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "TPU API address \"%.200s\": expected https://HOST/; the access token is "
                        "only sent over https",
                        base);
    }
    size_t size = strlen(base);
    size -= base[size - 1] == '/';
    *out_url = sx_arena_printf(cloud->arena, "%.*s/v2/projects/%s/locations/%s/nodes/%s",
                               (int)SX_MIN(size, (size_t)2048), base, project, zone, name);
    return *out_url != NULL ? SX_OK : sx_no_memory("for a response of the cloud");
}

sx_status sx_cloud_tpu_node(sx_cloud *cloud, const char *project, const char *zone,
                            const char *name, const char **out_url, sx_bytes *out_body)
{
    const char *token = NULL;
    *out_url = "the TPU API";
    SX_TRY(make_url(cloud, project, zone, name, out_url));
    SX_TRY(find_token(cloud, &token));
    const char *header = sx_arena_printf(cloud->arena, "Authorization: Bearer %s", token);
    if (header == NULL) {
        return sx_no_memory("for a response of the cloud");
    }
    answer a = {0};
    sx_buf_init(&a.body, SX_LAUNCH_JSON_BYTES);
    sx_status status =
        ask(*out_url, header, is_this_machine(*out_url), timeout_of(cloud, API_MS), &a);
    if (status == SX_OK) {
        status = judge_node(cloud, *out_url, &a, out_body);
    }
    answer_deinit(&a);
    return status;
}
