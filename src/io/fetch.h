/* Downloads: http, https and file addresses to a file, resumed where they stopped.
 *
 *   NAME.part        what has come so far
 *   NAME.part.tag    the server's word for that version (ETag, else Last-Modified)
 *
 * An interrupted download goes on at the end of NAME.part (Range, with If-Range and the tag, so
 * that a file that changed meanwhile begins anew; without a tag it goes on only if a SHA-256 will
 * check the whole). When all has come, it is checked, synced and renamed to NAME. libcurl
 * underneath: redirects are followed to http and https only. */
#ifndef SX_IO_FETCH_H
#define SX_IO_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

/* Called a few times a second; `total` is 0 while unknown. False stops with CANCELLED; what has
 * come stays for the next time. */
typedef bool sx_fetch_progress_fn(void *user, uint64_t done, uint64_t total);

typedef struct sx_fetch_request {
    const char *url;
    const char *path;       /* the final name; its directory is made */
    const char *sha256;     /* 64 hexadecimal digits, or NULL */
    uint64_t max_bytes;     /* 0 = 1 TiB */
    int connect_timeout_ms; /* 0 = 5000 */
    int stall_timeout_s;    /* 0 = 30: this long without a byte is UNAVAILABLE */
    sx_fetch_progress_fn *progress;
    void *user;
} sx_fetch_request;

/* UNAVAILABLE: no connection, a stall, or the server's fault (5xx): worth another try. NOT_FOUND:
 * 404 or no such host. DATA_LOSS: the SHA-256 is another (both are named, the part is removed). */
SX_MUST_USE sx_status sx_fetch(const sx_fetch_request *request);

/* The SHA-256 of a file as 64 lower-case hexadecimal digits and a NUL. */
SX_MUST_USE sx_status sx_file_sha256(const char *path, char out_hex[65]);

#endif
