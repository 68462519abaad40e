/* See http_multi.h. */
#include "io/http_multi.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/wait.h"
#include "io/http_transfer.h"

enum { MAX_HEADERS = 1 << 20, EVENTS = 64 };

typedef struct call {
    sx_http_multi *multi;
    sx_http_transfer transfer;
    sx_http_call http;
    sx_http_sink sink;
    sx_http_buffers buffers;
    sx_buf headers, body;
    struct curl_slist *sent_headers;
    bool under_way;
    sx_http_done *done;
    void *user;
    struct call *next_free, *next; /* of all */
} call;

struct sx_http_multi {
    CURLM *curl;
    int epoll_fd;
    int64_t timer_ns; /* when libcurl wants to be called; INT64_MAX: it does not */
    int connections, calls;
    bool ended; /* has a call, since the wait began */
    call *all, *free;
};

/* ---- libcurl's callbacks ---- */

/* What to wait for on a socket; `is_known` is what this has assigned to it before. */
static int on_socket(CURL *curl, curl_socket_t fd, int what, void *user, void *is_known)
{
    (void)curl;
    sx_http_multi *m = user;
    struct epoll_event event = {
        .events = ((what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
                  ((what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0),
        .data.fd = fd,
    };
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(m->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    sx_curl.multi_assign(m->curl, fd, m);
    return epoll_ctl(m->epoll_fd, is_known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

static int on_timer(CURLM *curl, long ms, void *user)
{
    (void)curl;
    sx_http_multi *m = user;
    m->timer_ns = ms < 0 ? INT64_MAX : sx_now_ns() + ms * (int64_t)1000000;
    return 0;
}

/* ---- Creation and destruction ---- */

static bool set_up(sx_http_multi *m)
{
    return m->curl != NULL &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m) == CURLM_OK &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_TIMERDATA, m) == CURLM_OK &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)m->connections) == CURLM_OK &&
           sx_curl.multi_setopt(m->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)m->connections) ==
               CURLM_OK;
}

sx_status sx_http_multi_create(int connections, sx_http_multi **out_multi)
{
    SX_TRY(sx_curl_load());
    sx_http_multi *m = sx_alloc(1, sizeof(*m));
    if (m == NULL) {
        return sx_no_memory("for connections");
    }
    m->connections = connections;
    m->timer_ns = INT64_MAX;
    m->curl = sx_curl.multi_init();
    m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sx_status status = SX_OK;
    if (m->epoll_fd < 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "connections: %s", strerror(errno));
    } else if (!set_up(m)) {
        status = sx_no_memory("for %d connections", connections);
    }
    if (status != SX_OK) {
        sx_http_multi_destroy(m);
        return status;
    }
    *out_multi = m;
    return SX_OK;
}

void sx_http_multi_destroy(sx_http_multi *m)
{
    if (m == NULL) {
        return;
    }
    while (m->all != NULL) {
        call *c = m->all;
        m->all = c->next;
        if (c->under_way) {
            sx_curl.multi_remove_handle(m->curl, c->transfer.curl);
        }
        sx_curl.easy_cleanup(c->transfer.curl);
        sx_curl.slist_free_all(c->sent_headers);
        sx_buf_deinit(&c->headers);
        sx_buf_deinit(&c->body);
        sx_free(c);
    }
    sx_curl.multi_cleanup(m->curl);
    if (m->epoll_fd >= 0) {
        close(m->epoll_fd);
    }
    sx_free(m);
}

/* ---- Calls ---- */

static call *new_call(sx_http_multi *m)
{
    call *c = m->free;
    if (c != NULL) {
        m->free = c->next_free;
        return c;
    }
    c = sx_alloc(1, sizeof(*c));
    CURL *curl = c != NULL ? sx_curl.easy_init() : NULL;
    if (curl == NULL) {
        sx_free(c);
        return NULL;
    }
    c->multi = m;
    c->transfer.curl = curl;
    c->next = m->all;
    m->all = c;
    return c;
}

static void free_call(call *c)
{
    sx_curl.easy_reset(c->transfer.curl); /* keeps its connection */
    sx_curl.slist_free_all(c->sent_headers);
    c->sent_headers = NULL;
    sx_buf_reset(&c->headers);
    sx_buf_reset(&c->body);
    c->next_free = c->multi->free;
    c->multi->free = c;
}

bool sx_http_multi_has_room(const sx_http_multi *m)
{
    return m->calls < m->connections;
}

/* Gives the call to libcurl, which sends it in the next wait. */
static sx_status begin(call *c)
{
    CURL *curl = c->transfer.curl;
    CURLcode rc = sx_http_set_options(&c->transfer, c->sent_headers, false);
    rc = rc == CURLE_OK ? sx_curl.easy_setopt(curl, CURLOPT_NOPROGRESS, 1L) : rc;
    rc = rc == CURLE_OK ? sx_curl.easy_setopt(curl, CURLOPT_PRIVATE, c) : rc;
    if (rc != CURLE_OK) {
        return sx_http_call_error(&c->transfer, rc);
    }
    const CURLMcode added = sx_curl.multi_add_handle(c->multi->curl, curl);
    return added == CURLM_OK
               ? SX_OK
               : sx_error(SX_INTERNAL, "%s: %s", c->http.url, sx_curl.multi_strerror(added));
}

sx_status sx_http_multi_start(sx_http_multi *m, const sx_http_call *http, size_t max_bytes,
                              sx_http_done *done, void *user)
{
    call *c = new_call(m);
    if (c == NULL) {
        return sx_no_memory("for a request to %s", http->url);
    }
    c->http = *http;
    c->http.session = NULL;
    c->headers.max_bytes = MAX_HEADERS;
    c->body.max_bytes = max_bytes;
    c->buffers = (sx_http_buffers){.url = http->url, .body = &c->body, .headers = &c->headers};
    c->sink = sx_http_keep_in(&c->buffers);
    c->transfer = (sx_http_transfer){.call = &c->http, .sink = &c->sink, .curl = c->transfer.curl};
    c->done = done;
    c->user = user;
    c->sent_headers = sx_http_make_headers(&c->http);
    sx_status status =
        c->sent_headers != NULL ? begin(c) : sx_no_memory("for a request to %s", http->url);
    if (status != SX_OK) {
        free_call(c);
        return status;
    }
    c->under_way = true;
    m->calls++;
    return SX_OK;
}

/* libcurl is done with the call. */
static void finish(call *c, CURLcode rc)
{
    sx_http_multi *m = c->multi;
    sx_curl.multi_remove_handle(m->curl, c->transfer.curl);
    c->under_way = false;
    m->calls--;
    m->ended = true;
    c->done(c->user, rc == CURLE_OK ? SX_OK : sx_http_call_error(&c->transfer, rc),
            sx_http_status_of(c->transfer.curl), &c->headers, &c->body);
    free_call(c);
}

/* ---- Waiting ---- */

/* Lets libcurl work on a socket, or on what is due. */
static sx_status act(sx_http_multi *m, curl_socket_t fd, int events)
{
    int running = 0, left = 0;
    CURLMsg *message;
    const CURLMcode rc = sx_curl.multi_socket_action(m->curl, fd, events, &running);
    if (rc != CURLM_OK) {
        return sx_error(SX_INTERNAL, "libcurl: %s", sx_curl.multi_strerror(rc));
    }
    while ((message = sx_curl.multi_info_read(m->curl, &left)) != NULL) {
        call *c = NULL;
        sx_curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&c);
        finish(c, message->data.result);
    }
    return SX_OK;
}

static sx_status act_on_sockets(sx_http_multi *m)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(m->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        const uint32_t got = events[i].events;
        SX_TRY(act(m, events[i].data.fd,
                   ((got & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                       ((got & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((got & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0)));
    }
    return SX_OK;
}

sx_status sx_http_multi_wait(sx_http_multi *m, int64_t until_ns)
{
    bool interrupted = false;
    m->ended = false;
    do {
        if (m->timer_ns <= sx_now_ns()) {
            m->timer_ns = INT64_MAX;
            SX_TRY(act(m, CURL_SOCKET_TIMEOUT, 0));
        }
        const int64_t wait_ns = SX_MIN(m->timer_ns, until_ns) - sx_now_ns();
        if (!m->ended && wait_ns > 0) {
            interrupted = !sx_wait_readable(m->epoll_fd, wait_ns);
        }
        SX_TRY(act_on_sockets(m));
    } while (!m->ended && !interrupted && sx_now_ns() < until_ns);
    return SX_OK;
}
