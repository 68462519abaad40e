/* See http_client.h. */
#include "io/http_client.h"

#include <stdio.h>
#include <strings.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/http_transfer.h"

enum { CONNECT_TIMEOUT_MS = 5000, TIMEOUT_MS = 60000 };

/* libcurl 7.88 can begin plain HTTP/2 only on a new connection, and use it again only if it is not
 * told to begin: a session remembers its connection by its local port. */
struct sx_http_session {
    CURL *curl;
    bool unsent;
    long http2_port; /* of a plain connection that speaks HTTP/2; 0: there is none */
};

int sx_http_status_of(CURL *curl)
{
    long http_status = 0;
    sx_curl.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
    return (int)http_status;
}

/* ---- libcurl's callbacks; a size other than that of the data makes it stop ---- */

static size_t on_body(char *data, size_t one, size_t size, void *user)
{
    (void)one;
    sx_http_transfer *t = user;
    if (t->sink->body != NULL) {
        t->failure = t->sink->body(t->sink->user, sx_http_status_of(t->curl), data, size);
    }
    return t->failure == SX_OK ? size : CURL_WRITEFUNC_ERROR;
}

static size_t on_header(char *line, size_t one, size_t size, void *user)
{
    (void)one;
    sx_http_transfer *t = user;
    if (t->sink->header != NULL) {
        t->sink->header(t->sink->user, line, size);
    }
    return size;
}

static int on_progress(void *user, curl_off_t total, curl_off_t received, curl_off_t up_total,
                       curl_off_t up)
{
    (void)up_total;
    (void)up;
    sx_http_transfer *t = user;
    t->cancelled = t->sink->progress != NULL &&
                   !t->sink->progress(t->sink->user, (uint64_t)received, (uint64_t)total);
    return t->cancelled;
}

/* Stops before a request is sent over another connection than the session's, as HTTP/1.1. */
static int on_connected(void *user, char *peer, char *local, int peer_port, int local_port)
{
    (void)peer;
    (void)local;
    (void)peer_port;
    sx_http_transfer *t = user;
    t->other_connection = local_port != t->call->session->http2_port;
    return t->other_connection ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- The call ---- */

static bool is_plain(const sx_http_call *call)
{
    return strncasecmp(call->url, "http:", 5) == 0;
}

CURLcode sx_http_set_options(sx_http_transfer *t, struct curl_slist *headers, bool again)
{
    const sx_http_call *call = t->call;
    CURL *curl = t->curl;
    CURLcode rc = CURLE_OK;
#define SET(option, value) rc = rc == CURLE_OK ? sx_curl.easy_setopt(curl, option, value) : rc
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PROTOCOLS_STR, call->allow_files ? "http,https,file" : "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, call->max_redirects > 0 ? 1L : 0L);
    SET(CURLOPT_MAXREDIRS, (long)call->max_redirects);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_USERAGENT, "sextant/" SX_VERSION);
    SET(CURLOPT_ERRORBUFFER, t->error_text);
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        (long)(call->connect_timeout_ms > 0 ? call->connect_timeout_ms : CONNECT_TIMEOUT_MS));
    if (call->timeout_ms != SX_HTTP_NO_TIMEOUT) {
        SET(CURLOPT_TIMEOUT_MS, (long)(call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS));
    }
    if (call->stall_timeout_s > 0) {
        SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
        SET(CURLOPT_LOW_SPEED_TIME, (long)call->stall_timeout_s);
    }
    if (call->body.data != NULL) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, (const char *)call->body.data);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.size);
    }
    if (call->method != NULL) {
        SET(CURLOPT_CUSTOMREQUEST, call->method);
    }
    if (call->range != NULL) {
        /* Not RESUME_FROM, with which curl fails if the server sends the whole file. */
        SET(CURLOPT_RANGE, call->range);
    }
    if (call->direct) {
        SET(CURLOPT_NOPROXY, "*");
    }
    if (call->http2) {
        SET(CURLOPT_HTTP_VERSION,
            (long)(is_plain(call) && !again ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                            : CURL_HTTP_VERSION_2TLS));
        if (again) {
            SET(CURLOPT_PREREQFUNCTION, on_connected);
            SET(CURLOPT_PREREQDATA, t);
        } else if (is_plain(call)) {
            SET(CURLOPT_FRESH_CONNECT, 1L);
            SET(CURLOPT_FORBID_REUSE, (long)(call->session == NULL || call->socket_path != NULL));
        }
    }
    if (call->socket_path != NULL) {
        SET(CURLOPT_UNIX_SOCKET_PATH, call->socket_path);
    }
    if (call->ca_file != NULL) {
        SET(CURLOPT_CAINFO, call->ca_file);
    }
    if (call->certificate_file != NULL) {
        SET(CURLOPT_SSLCERT, call->certificate_file);
    }
    if (call->key_file != NULL) {
        SET(CURLOPT_SSLKEY, call->key_file);
    }
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, t);
#undef SET
    return rc;
}

struct curl_slist *sx_http_make_headers(const sx_http_call *call)
{
    char type[256];
    snprintf(type, sizeof(type), "Content-Type: %s",
             call->content_type != NULL ? call->content_type : "application/json");
    /* "Expect:" keeps curl from waiting for 100 Continue. */
    struct curl_slist *headers = sx_curl.slist_append(NULL, "Expect:");
    struct curl_slist *last = headers;
    if (last != NULL && call->body.data != NULL) {
        last = sx_curl.slist_append(headers, type);
    }
    for (int i = 0; last != NULL && call->headers != NULL && call->headers[i] != NULL; i++) {
        last = sx_curl.slist_append(headers, call->headers[i]);
    }
    if (last == NULL) {
        sx_curl.slist_free_all(headers);
    }
    return last == NULL ? NULL : headers;
}

sx_status sx_http_call_error(const sx_http_transfer *t, CURLcode rc)
{
    static const struct {
        CURLcode rc;
        sx_code code;
    } rows[] = {
        {CURLE_URL_MALFORMAT, SX_INVALID_ARGUMENT},
        {CURLE_UNSUPPORTED_PROTOCOL, SX_INVALID_ARGUMENT},
        {CURLE_PEER_FAILED_VERIFICATION, SX_PERMISSION_DENIED},
        {CURLE_SSL_CACERT_BADFILE, SX_INVALID_ARGUMENT},
        {CURLE_SSL_CERTPROBLEM, SX_INVALID_ARGUMENT},
        {CURLE_FILE_COULDNT_READ_FILE, SX_NOT_FOUND},
        {CURLE_BAD_DOWNLOAD_RESUME, SX_OUT_OF_RANGE},
        {CURLE_OUT_OF_MEMORY, SX_RESOURCE_EXHAUSTED},
    };
    if (t->failure != SX_OK) {
        return t->failure;
    }
    if (t->cancelled) {
        return sx_error(SX_CANCELLED, "%s: cancelled", t->call->url);
    }
    sx_code code = SX_UNAVAILABLE;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        code = rows[i].rc == rc ? rows[i].code : code;
    }
    /* Also curl's code for a stall, which is the only timeout after connecting if there is no limit
     * on the whole call. */
    if (rc == CURLE_OPERATION_TIMEDOUT && t->call->timeout_ms != SX_HTTP_NO_TIMEOUT) {
        code = SX_DEADLINE_EXCEEDED;
    }
    return sx_error(code, "%s: %s", t->call->url,
                    t->error_text[0] != '\0' ? t->error_text : sx_curl.easy_strerror(rc));
}

static CURLcode perform(sx_http_transfer *t, struct curl_slist *headers, bool again)
{
    const CURLcode rc = sx_http_set_options(t, headers, again);
    return rc == CURLE_OK ? sx_curl.easy_perform(t->curl) : rc;
}

static sx_status new_curl(CURL **out_curl)
{
    SX_TRY(sx_curl_load());
    *out_curl = sx_curl.easy_init();
    return *out_curl != NULL ? SX_OK : sx_no_memory("for connections");
}

sx_status sx_http_stream(const sx_http_call *call, const sx_http_sink *sink, int *out_http_status)
{
    sx_http_session *session = call->session;
    sx_http_transfer t = {.call = call, .sink = sink};
    sx_status status = SX_OK;
    *out_http_status = 0;
    if (session != NULL) {
        t.curl = session->curl;
    } else {
        SX_TRY(new_curl(&t.curl), "%s", call->url);
    }
    struct curl_slist *headers = sx_http_make_headers(call);
    if (headers == NULL) {
        status = sx_no_memory("for a request to %s", call->url);
    } else {
        const bool http2 = call->http2 && is_plain(call) && session != NULL;
        const bool again = http2 && session->http2_port > 0;
        CURLcode rc = perform(&t, headers, again);
        if (t.other_connection) { /* the server has closed the session's */
            sx_curl.easy_reset(t.curl);
            rc = perform(&t, headers, false);
        }
        if (http2) {
            session->http2_port = 0;
            if (rc == CURLE_OK) {
                sx_curl.easy_getinfo(t.curl, CURLINFO_LOCAL_PORT, &session->http2_port);
            }
        }
        *out_http_status = sx_http_status_of(t.curl);
        status = rc == CURLE_OK ? SX_OK : sx_http_call_error(&t, rc);
        if (session != NULL) {
            session->unsent = rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST ||
                              rc == CURLE_COULDNT_RESOLVE_PROXY;
        }
    }
    if (session != NULL) {
        sx_curl.easy_reset(t.curl); /* keeps its connections */
    } else {
        sx_curl.easy_cleanup(t.curl);
    }
    sx_curl.slist_free_all(headers);
    return status;
}

/* ---- Sessions ---- */

sx_status sx_http_session_create(sx_http_session **out_session)
{
    CURL *curl = NULL;
    SX_TRY(new_curl(&curl));
    sx_http_session *session = sx_alloc(1, sizeof(*session));
    if (session == NULL) {
        sx_curl.easy_cleanup(curl);
        return sx_no_memory("for connections");
    }
    session->curl = curl;
    *out_session = session;
    return SX_OK;
}

void sx_http_session_destroy(sx_http_session *session)
{
    if (session != NULL) {
        sx_curl.easy_cleanup(session->curl);
        sx_free(session);
    }
}

bool sx_http_session_unsent(const sx_http_session *session)
{
    return session->unsent;
}

/* ---- A response in memory ---- */

static sx_status keep_body(void *user, int http_status, const void *data, size_t size)
{
    (void)http_status;
    sx_http_buffers *b = user;
    sx_buf_append(b->body, data, size);
    if (b->body->failed == SX_OUT_OF_RANGE) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: the response is larger than %zu bytes", b->url,
                        b->body->max_bytes);
    }
    return sx_buf_status(b->body);
}

static void keep_header(void *user, const char *line, size_t size)
{
    sx_http_buffers *b = user;
    if (b->headers != NULL) {
        sx_buf_append(b->headers, line, size);
    }
}

sx_http_sink sx_http_keep_in(sx_http_buffers *buffers)
{
    return (sx_http_sink){.body = keep_body, .header = keep_header, .user = buffers};
}

sx_status sx_http_fetch(const sx_http_call *call, sx_buf *out_body, sx_buf *out_headers,
                        int *out_http_status)
{
    sx_http_buffers buffers = {.url = call->url, .body = out_body, .headers = out_headers};
    const sx_http_sink sink = sx_http_keep_in(&buffers);
    SX_TRY(sx_http_stream(call, &sink, out_http_status));
    return out_headers != NULL ? sx_buf_status(out_headers) : SX_OK;
}
