/* A small HTTP client on libcurl; see http_client.h. */
#include "net/http_client.h"

#include <curl/curl.h>
#include <stdio.h>

#include "base/checked.h"

enum { CONNECT_TIMEOUT_MS = 5000, TIMEOUT_MS = 60000 };

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    sx_buf *body = user;
    sx_buf_append(body, data, size * count);
    return body->failed ? 0 : size * count; /* a short count makes curl give up */
}

static sx_status curl_error(const sx_http_call *call, CURLcode code, const char *detail,
                            const sx_buf *body)
{
    static const struct {
        CURLcode curl;
        sx_code code;
    } codes[] = {
        {CURLE_URL_MALFORMAT, SX_INVALID_ARGUMENT},
        {CURLE_UNSUPPORTED_PROTOCOL, SX_INVALID_ARGUMENT},
        {CURLE_OPERATION_TIMEDOUT, SX_DEADLINE_EXCEEDED},
        {CURLE_OUT_OF_MEMORY, SX_RESOURCE_EXHAUSTED},
    };
    if (body->failed) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: the answer is larger than %zu bytes", call->url,
                        body->max_bytes);
    }
    sx_code found = SX_UNAVAILABLE;
    for (size_t i = 0; i < SX_COUNT(codes); i++) {
        found = codes[i].curl == code ? codes[i].code : found;
    }
    return sx_error(found, "%s: %s", call->url, detail[0] ? detail : curl_easy_strerror(code));
}

static void set_options(CURL *curl, const sx_http_call *call, struct curl_slist *headers,
                        sx_buf *body, char *error_text)
{
    const long connect_ms =
        call->connect_timeout_ms > 0 ? call->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    const long total_ms = call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS;
    curl_easy_setopt(curl, CURLOPT_URL, call->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, total_ms);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sextant/" SX_VERSION);
    if (call->body.data) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, (const char *)call->body.data);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.size);
    }
    if (call->method) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
    }
    if (call->direct) {
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    }
    if (call->out_headers) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_body);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, call->out_headers);
    }
}

/* The headers of the request; "Expect:" keeps curl from waiting for 100 Continue. */
static struct curl_slist *make_headers(const sx_http_call *call)
{
    char type[256];
    snprintf(type, sizeof(type), "Content-Type: %s",
             call->content_type ? call->content_type : "application/json");
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct curl_slist *more = headers ? curl_slist_append(headers, type) : NULL;
    for (int i = 0; more && call->headers && call->headers[i]; i++) {
        more = curl_slist_append(headers, call->headers[i]);
    }
    if (!more) {
        curl_slist_free_all(headers);
    }
    return more;
}

sx_status sx_http_fetch(const sx_http_call *call, sx_buf *out_body, int *out_http_status)
{
    char error_text[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl ? make_headers(call) : NULL;
    if (!headers) {
        curl_easy_cleanup(curl);
        return sx_error(SX_RESOURCE_EXHAUSTED, "HTTP client: out of memory");
    }
    set_options(curl, call, headers, out_body, error_text);
    const CURLcode code = curl_easy_perform(curl);
    long http_status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        return curl_error(call, code, error_text, out_body);
    }
    *out_http_status = (int)http_status;
    return SX_OK;
}
