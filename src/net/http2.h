/* What a connection of HTTP/2 (http2_conn.c) and its streams (http2_stream.c) know of each other.
 */
#ifndef SX_NET_HTTP2_H
#define SX_NET_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "net/http_conn.h"

enum { SX_HTTP2_CREDIT = 500 /* at most, and at the beginning */ };

typedef enum sx_http2_state {
    SX_HTTP2_HEAD,
    SX_HTTP2_BODY,
    SX_HTTP2_BUSY, /* the exchange belongs to the handler */
    SX_HTTP2_WRITE,
} sx_http2_state;

typedef struct sx_http2 sx_http2;

typedef struct sx_http2_stream {
    sx_http_exchange exchange;
    sx_http2 *conn;
    struct sx_http2_stream *next, **link; /* in conn->streams */
    int32_t id;
    sx_http2_state state;
    bool with_handler;       /* the exchange is; also beyond its deadline */
    bool gone;               /* nghttp2 has forgotten it */
    bool submitted;          /* the head of the response */
    bool whole;              /* the request has arrived */
    bool in_parts;           /* the handler takes it so */
    bool fresh;              /* some of it has arrived since the handler was called */
    sx_loop_task again;      /* calls the handler */
    sx_http_failure failure; /* of the head; status 0 = none */
    size_t head_bytes, head_charged;
    int kept_count;
    nghttp2_rcbuf *kept[2 * (SX_HTTP_MAX_HEADERS + 4)]; /* the texts of the head */
    sx_buf body;
    int64_t deadline_ns; /* of HEAD and BUSY */
    sx_http_pace pace;   /* of BODY and WRITE */
    sx_http_response response;
    size_t sent; /* of the response's body */
} sx_http2_stream;

struct sx_http2 {
    sx_http_conn base; /* must be first: converted by address */
    nghttp2_session *session;
    sx_http2_stream *streams; /* all, including those that are gone */
    int stream_count, with_handler;
    int credit;
    int64_t credit_ns; /* when it was last increased for time */
    int64_t heard_ns;  /* when bytes came last */
    bool asked;        /* a PING has been sent into the silence */
    bool flooded;      /* had no credit left */
    bool last_goaway;  /* of the drain has been sent */
    sx_buf out;        /* what the socket did not take */
    size_t out_sent;
    sx_http_pace pace; /* of sending `out` */
    sx_loop_task flush;
    bool flush_posted;
};

/* ---- http2_conn.c ---- */

int64_t sx_http2_now_ns(const sx_http2 *conn);
/* The timer is set to the earliest time at which something may have to be done. */
void sx_http2_remind(sx_http2 *conn, int64_t at_ns);
void sx_http2_begin_pace(sx_http2 *conn, sx_http_pace *pace, int timeout_ms);
/* Writes in a later turn of the loop, what all responses of this one have to say. */
void sx_http2_post_flush(sx_http2 *conn);

/* ---- http2_stream.c ---- */

void sx_http2_set_callbacks(nghttp2_session_callbacks *callbacks);
/* The peer, or the connection, has ended the stream. */
void sx_http2_stream_end(sx_http2_stream *stream);
void sx_http2_stream_free(sx_http2_stream *stream);
/* Acts on a stream whose time is over; returns the time of its next deadline. */
int64_t sx_http2_stream_check(sx_http2_stream *stream, int64_t now);

#endif
