#include "io/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/checked.h"
#include "base/hex.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/file.h"
#include "io/http_client.h"
#include "io/path.h"

enum {
    STALL_TIMEOUT_S = 30,
    MAX_REDIRECTS = 5,
    TAG_BYTES = 256,
    HASH_PIECE = 1 << 18,
};

struct download {
    const sx_fetch_request *request;
    char *part_path, *tag_path;
    int fd;               /* of the part */
    uint64_t have;        /* bytes in the part */
    uint64_t resumed_at;  /* size of the part when this transfer started */
    char tag[TAG_BYTES];  /* of the response; "" = none */
    uint64_t range_start; /* from the response's Content-Range */
    bool started;         /* the first byte of the body has arrived */
};

/* ---- SHA-256 ---- */

static sx_status hash_into(EVP_MD_CTX *hash, const char *path, char *buffer)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return sx_errno_status(errno, "open", path);
    }
    sx_status status = SX_OK;
    ssize_t n = 1;
    while (n > 0 && status == SX_OK) {
        n = read(fd, buffer, HASH_PIECE);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        if (n < 0) {
            status = sx_errno_status(errno, "read", path);
        } else if (EVP_DigestUpdate(hash, buffer, (size_t)n) != 1) {
            status = sx_error(SX_INTERNAL, "SHA-256 failed");
        }
    }
    close(fd);
    return status;
}

sx_status sx_file_sha256(const char *path, char out_hex[65])
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    char *buffer = sx_alloc(HASH_PIECE, 1);
    unsigned char digest[32];
    sx_status status = SX_OK;
    if (hash == NULL || buffer == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
        status = sx_no_memory("hashing %s", path);
        goto done;
    }
    SX_TRY_GOTO(status, hash_into(hash, path, buffer), done);
    if (EVP_DigestFinal_ex(hash, digest, NULL) != 1) {
        status = sx_error(SX_INTERNAL, "SHA-256 failed");
        goto done;
    }
    sx_hex_put(out_hex, digest, sizeof(digest));
    out_hex[2 * sizeof(digest)] = '\0';
done:
    sx_free(buffer);
    EVP_MD_CTX_free(hash);
    return status;
}

static bool is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

/* ---- The part ---- */

/* Empties the part, to start over. */
static sx_status truncate_part(struct download *d)
{
    d->have = 0;
    d->resumed_at = 0;
    if (ftruncate(d->fd, 0) != 0) {
        return sx_errno_status(errno, "truncate", d->part_path);
    }
    return SX_OK;
}

static void read_tag(struct download *d, char out_tag[TAG_BYTES])
{
    char *text = NULL;
    size_t size = 0;
    sx_status status = sx_file_read(d->tag_path, TAG_BYTES - 1, &text, &size);
    if (status == SX_OK && strcspn(text, "\r\n") == size) {
        memcpy(out_tag, text, size + 1);
    }
    sx_status_free(status);
    sx_free(text);
}

/* Opens the part. Keeps its contents, to resume, if there is a tag or a SHA-256 to check them. */
static sx_status open_part(struct download *d, char out_tag[TAG_BYTES])
{
    d->fd = open(d->part_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct stat info;
    if (d->fd < 0 || fstat(d->fd, &info) != 0) {
        return sx_errno_status(errno, "open", d->part_path);
    }
    d->have = (uint64_t)info.st_size;
    if (d->have > 0) {
        read_tag(d, out_tag);
        if (out_tag[0] == '\0' && d->request->sha256 == NULL) {
            SX_TRY(truncate_part(d));
        }
    }
    d->resumed_at = d->have;
    return SX_OK;
}

/* Called before the first byte of the body. Keeps the part only if the server continues it (206),
 * and saves the tag of this version. file:// has no status and always continues. */
static sx_status begin_body(struct download *d, int http_status)
{
    d->started = true;
    if (d->resumed_at > 0 && http_status == 200) {
        SX_TRY(truncate_part(d));
    }
    if (http_status == 206 && d->range_start != d->resumed_at) {
        return sx_error(SX_UNAVAILABLE,
                        "%s: requested bytes from %" PRIu64 " on, got bytes from %" PRIu64 " on",
                        d->request->url, d->resumed_at, d->range_start);
    }
    if (d->tag[0] == '\0') {
        if (d->resumed_at == 0) {
            unlink(d->tag_path);
        }
        return SX_OK;
    }
    return sx_commit_bytes(d->tag_path, d->tag, strlen(d->tag));
}

static sx_status http_error(const struct download *d, int http_status)
{
    static const struct {
        int from, to;
        sx_code code;
    } rows[] = {{404, 404, SX_NOT_FOUND},        {410, 410, SX_NOT_FOUND},
                {401, 401, SX_UNAUTHENTICATED},  {403, 403, SX_PERMISSION_DENIED},
                {408, 408, SX_UNAVAILABLE},      {429, 429, SX_UNAVAILABLE},
                {400, 499, SX_INVALID_ARGUMENT}, {500, 599, SX_UNAVAILABLE}};
    sx_code code = SX_UNKNOWN;
    for (size_t i = 0; i < SX_COUNT(rows) && code == SX_UNKNOWN; i++) {
        if (http_status >= rows[i].from && http_status <= rows[i].to) {
            code = rows[i].code;
        }
    }
    return sx_error(code, "%s: the server responded with HTTP status %d", d->request->url,
                    http_status);
}

/* ---- The transfer ---- */

static sx_status on_body(void *user, int http_status, const void *data, size_t size)
{
    struct download *d = user;
    uint64_t limit = d->request->max_bytes != 0 ? d->request->max_bytes : (uint64_t)1 << 40;
    if (http_status >= 400) {
        return http_error(d, http_status);
    }
    if (!d->started) {
        SX_TRY(begin_body(d, http_status));
    }
    if (size > limit - SX_MIN(d->have, limit)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s is larger than the limit of %" PRIu64 " bytes",
                        d->request->url, limit);
    }
    for (const char *at = data; size > 0;) {
        ssize_t n = write(d->fd, at, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return sx_errno_status(errno, "write", d->part_path);
        }
        d->have += (uint64_t)n;
        at += n;
        size -= (size_t)n;
    }
    return SX_OK;
}

/* The trimmed value of a header line if the header is `name`; false otherwise. */
static bool header_value(const char *line, size_t size, const char *name, char out[TAG_BYTES])
{
    size_t length = strlen(name);
    if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':') {
        return false;
    }
    const char *start = line + length + 1, *end = line + size;
    while (start < end && (*start == ' ' || *start == '\t')) {
        start++;
    }
    while (end > start && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) {
        end--;
    }
    size_t n = (size_t)(end - start);
    if (n >= TAG_BYTES) {
        return false;
    }
    memcpy(out, start, n);
    out[n] = '\0';
    return true;
}

/* Keeps the tag of the last response: each redirect has headers of its own. A weak ETag does not
 * promise identical bytes, so Last-Modified is used instead. */
static void on_header(void *user, const char *line, size_t size)
{
    struct download *d = user;
    char value[TAG_BYTES];
    if (size > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        d->tag[0] = '\0';
        d->range_start = 0;
    } else if (header_value(line, size, "Content-Range", value) &&
               strncasecmp(value, "bytes ", 6) == 0) {
        d->range_start = strtoull(value + 6, NULL, 10);
    } else if (header_value(line, size, "ETag", value) && value[0] == '"') {
        memcpy(d->tag, value, sizeof value);
    } else if (d->tag[0] != '"' && header_value(line, size, "Last-Modified", value)) {
        memcpy(d->tag, value, sizeof value);
    }
}

static bool on_progress(void *user, uint64_t received, uint64_t total)
{
    (void)received;
    const struct download *d = user;
    const sx_fetch_request *r = d->request;
    uint64_t whole = total > 0 ? d->resumed_at + total : 0;
    return r->progress == NULL || r->progress(r->user, d->have, whole);
}

/* Downloads into the part. *out_beyond: the server says that the part is complete or too long
 * (416); nothing was downloaded. */
static sx_status transfer(struct download *d, bool *out_beyond)
{
    const sx_fetch_request *r = d->request;
    char tag[TAG_BYTES] = "", range[32], if_range[TAG_BYTES + 16];
    int http_status = 0;
    SX_TRY(open_part(d, tag));
    snprintf(range, sizeof(range), "%" PRIu64 "-", d->have);
    snprintf(if_range, sizeof(if_range), "If-Range: %s", tag);
    const char *const headers[] = {d->have > 0 && tag[0] != '\0' ? if_range : NULL, NULL};
    const sx_http_call call = {
        .url = r->url,
        .range = d->have > 0 ? range : NULL,
        .headers = headers,
        .allow_files = true,
        .max_redirects = MAX_REDIRECTS,
        .connect_timeout_ms = r->connect_timeout_ms,
        .timeout_ms = SX_HTTP_NO_TIMEOUT,
        .stall_timeout_s = r->stall_timeout_s != 0 ? r->stall_timeout_s : STALL_TIMEOUT_S,
    };
    const sx_http_sink sink = {
        .body = on_body, .header = on_header, .progress = on_progress, .user = d};
    sx_status status = sx_http_stream(&call, &sink, &http_status);
    if (status == SX_OK && http_status >= 400) {
        status = http_error(d, http_status); /* without a body */
    }
    sx_code code = sx_status_code(status);
    bool file_beyond = http_status == 0 && (code == SX_OUT_OF_RANGE || code == SX_NOT_FOUND);
    *out_beyond = d->resumed_at > 0 && (http_status == 416 || file_beyond);
    if (*out_beyond) {
        sx_status_free(status);
        return SX_OK;
    }
    if (status == SX_OK && !d->started && d->resumed_at == 0) {
        status = begin_body(d, http_status); /* an empty file */
    }
    return status;
}

/* ---- Completion ---- */

static sx_status check_sha256(struct download *d)
{
    char hex[65];
    if (d->request->sha256 == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_file_sha256(d->part_path, hex));
    if (strcasecmp(hex, d->request->sha256) == 0) {
        return SX_OK;
    }
    unlink(d->part_path);
    unlink(d->tag_path);
    return sx_error(SX_DATA_LOSS, "%s has SHA-256 %s, expected %s", d->request->url, hex,
                    d->request->sha256);
}

static sx_status publish(struct download *d)
{
    char *dir = NULL;
    if (fsync(d->fd) != 0) {
        return sx_errno_status(errno, "fsync", d->part_path);
    }
    if (rename(d->part_path, d->request->path) != 0) {
        return sx_errno_status(errno, "rename the download to", d->request->path);
    }
    unlink(d->tag_path);
    SX_TRY(sx_path_dirname(d->request->path, &dir));
    sx_status status = sx_dir_sync(dir);
    sx_free(dir);
    return status;
}

/* If the server says that the part is complete or too long, it is used only if its SHA-256 matches;
 * otherwise the file is downloaded again. */
static sx_status download(struct download *d)
{
    bool beyond = false;
    SX_TRY(transfer(d, &beyond));
    if (beyond) {
        char hex[65] = "";
        if (d->request->sha256 != NULL) {
            SX_TRY(sx_file_sha256(d->part_path, hex));
        }
        if (d->request->sha256 == NULL || strcasecmp(hex, d->request->sha256) != 0) {
            SX_TRY(truncate_part(d));
            close(d->fd);
            d->started = false;
            SX_TRY(transfer(d, &beyond));
        }
    }
    SX_TRY(check_sha256(d));
    return publish(d);
}

sx_status sx_fetch(const sx_fetch_request *request)
{
    struct download d = {.request = request, .fd = -1};
    char *dir = NULL;
    sx_status status = SX_OK;
    if (request->sha256 != NULL && !is_sha256(request->sha256)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "'%s' is not a SHA-256: expected 64 hexadecimal digits", request->sha256);
    }
    SX_TRY_GOTO(status, sx_path_dirname(request->path, &dir), done);
    SX_TRY_GOTO(status, sx_dir_create(dir), done);
    SX_TRY_GOTO(status, sx_path_format(&d.part_path, "%s.part", request->path), done);
    SX_TRY_GOTO(status, sx_path_format(&d.tag_path, "%s.part.tag", request->path), done);
    status = download(&d);
done:
    if (d.fd >= 0) {
        struct stat info;
        if (status != SX_OK && fstat(d.fd, &info) == 0 && info.st_size == 0) {
            unlink(d.part_path); /* nothing to resume */
            unlink(d.tag_path);
        }
        close(d.fd);
    }
    sx_free(dir);
    sx_free(d.part_path);
    sx_free(d.tag_path);
    return status;
}
