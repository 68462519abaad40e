#include "io/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/evp.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/file.h"
#include "io/path.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    STALL_TIMEOUT_S = 30,
    MAX_REDIRECTS = 5,
    TAG_BYTES = 256,
    HASH_PIECE = 1 << 18,
};

struct download {
    const sx_fetch_request *request;
    CURL *curl;
    char *part_path, *tag_path;
    int fd;               /* of the part */
    uint64_t have;        /* bytes in the part */
    uint64_t resumed_at;  /* where this transfer began */
    char tag[TAG_BYTES];  /* of this answer; "" = none */
    uint64_t range_start; /* of this answer's Content-Range */
    bool started;         /* the first byte of the body has come */
    bool cancelled;
    sx_status failure; /* of our side, out of a callback */
    char said[CURL_ERROR_SIZE];
};

/* ---- SHA-256 ------------------------------------------------------------------------------ */

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
        status = sx_error(SX_RESOURCE_EXHAUSTED, "no memory to hash %s", path);
        goto done;
    }
    SX_TRY_GOTO(status, hash_into(hash, path, buffer), done);
    if (EVP_DigestFinal_ex(hash, digest, NULL) != 1) {
        status = sx_error(SX_INTERNAL, "SHA-256 failed");
        goto done;
    }
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(out_hex + 2 * i, 3, "%02x", digest[i]);
    }
done:
    sx_free(buffer);
    EVP_MD_CTX_free(hash);
    return status;
}

static bool is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

/* ---- the part ----------------------------------------------------------------------------- */

/* Starts the part anew. */
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

/* Opens the part and decides whether what is there can be gone on with. */
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

/* Before the first byte of a body: keep what is there only if the server goes on behind it (206),
 * and write down which version this is. file:// has no answer code; it went on if it was told to.
 */
static sx_status begin_body(struct download *d)
{
    long code = 0;
    d->started = true;
    curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &code);
    if (d->resumed_at > 0 && code == 200) {
        SX_TRY(truncate_part(d));
    }
    if (code == 206 && d->range_start != d->resumed_at) {
        return sx_error(SX_UNAVAILABLE, "%s: asked for bytes from %" PRIu64 ", got %" PRIu64,
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

static sx_status append(struct download *d, const char *data, size_t size)
{
    uint64_t limit = d->request->max_bytes != 0 ? d->request->max_bytes : (uint64_t)1 << 40;
    if (!d->started) {
        SX_TRY(begin_body(d));
    }
    if (size > limit - SX_MIN(d->have, limit)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s is larger than the limit of %" PRIu64 " bytes",
                        d->request->url, limit);
    }
    while (size > 0) {
        ssize_t n = write(d->fd, data, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return sx_errno_status(errno, "write", d->part_path);
        }
        d->have += (uint64_t)n;
        data += n;
        size -= (size_t)n;
    }
    return SX_OK;
}

/* ---- libcurl's callbacks ------------------------------------------------------------------ */

static size_t on_body(char *data, size_t one, size_t size, void *user)
{
    (void)one;
    struct download *d = user;
    d->failure = append(d, data, size);
    return d->failure == SX_OK ? size : 0;
}

/* The value of header `name` in one header line, trimmed; false if it is another header. */
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

/* Keeps the tag of the last header block: redirects have blocks of their own. A weak ETag does not
 * promise equal bytes, so Last-Modified is taken then. */
static size_t on_header(char *line, size_t one, size_t size, void *user)
{
    (void)one;
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
    return size;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    (void)up_total;
    (void)up_now;
    (void)now;
    struct download *d = user;
    const sx_fetch_request *r = d->request;
    uint64_t whole = total > 0 ? d->resumed_at + (uint64_t)total : 0;
    d->cancelled = r->progress != NULL && !r->progress(r->user, d->have, whole);
    return d->cancelled;
}

/* ---- the transfer ------------------------------------------------------------------------- */

static sx_status set_options(struct download *d, const char *tag, struct curl_slist **out_headers)
{
    const sx_fetch_request *r = d->request;
    CURL *curl = d->curl;
    bool ok =
        curl_easy_setopt(curl, CURLOPT_URL, r->url) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "sextant/" SX_VERSION) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, d->said) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)(r->connect_timeout_ms != 0 ? r->connect_timeout_ms
                                                           : CONNECT_TIMEOUT_MS)) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                         (long)(r->stall_timeout_s != 0 ? r->stall_timeout_s : STALL_TIMEOUT_S)) ==
            CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, d) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, d) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, d) == CURLE_OK;
    if (ok && d->have > 0) {
        /* Not RESUME_FROM: libcurl then refuses a server that sends the whole file again. */
        char range[32];
        snprintf(range, sizeof range, "%" PRIu64 "-", d->have);
        ok = curl_easy_setopt(curl, CURLOPT_RANGE, range) == CURLE_OK;
    }
    if (ok && d->have > 0 && tag[0] != '\0') {
        char line[TAG_BYTES + 16];
        snprintf(line, sizeof line, "If-Range: %s", tag);
        *out_headers = curl_slist_append(NULL, line);
        ok = *out_headers != NULL &&
             curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *out_headers) == CURLE_OK;
    }
    return ok ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "no memory to fetch %s", r->url);
}

static sx_code code_of_answer(long answer)
{
    static const struct {
        long from, to;
        sx_code code;
    } rows[] = {{404, 404, SX_NOT_FOUND},        {410, 410, SX_NOT_FOUND},
                {401, 401, SX_UNAUTHENTICATED},  {403, 403, SX_PERMISSION_DENIED},
                {408, 408, SX_UNAVAILABLE},      {429, 429, SX_UNAVAILABLE},
                {400, 499, SX_INVALID_ARGUMENT}, {500, 599, SX_UNAVAILABLE}};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (answer >= rows[i].from && answer <= rows[i].to) {
            return rows[i].code;
        }
    }
    return SX_UNKNOWN;
}

static sx_code code_of_curl(CURLcode rc)
{
    static const struct {
        CURLcode rc;
        sx_code code;
    } rows[] = {{CURLE_COULDNT_RESOLVE_HOST, SX_NOT_FOUND},
                {CURLE_FILE_COULDNT_READ_FILE, SX_NOT_FOUND},
                {CURLE_UNSUPPORTED_PROTOCOL, SX_INVALID_ARGUMENT},
                {CURLE_URL_MALFORMAT, SX_INVALID_ARGUMENT},
                {CURLE_OUT_OF_MEMORY, SX_RESOURCE_EXHAUSTED},
                {CURLE_PEER_FAILED_VERIFICATION, SX_PERMISSION_DENIED}};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].rc == rc) {
            return rows[i].code;
        }
    }
    return SX_UNAVAILABLE;
}

static sx_status transfer_error(struct download *d, CURLcode rc)
{
    const char *url = d->request->url;
    if (d->failure != SX_OK) {
        return d->failure;
    }
    if (d->cancelled) {
        return sx_error(SX_CANCELLED, "fetching %s was cancelled", url);
    }
    long answer = 0;
    curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &answer);
    if (rc == CURLE_HTTP_RETURNED_ERROR) {
        return sx_error(code_of_answer(answer), "cannot fetch %s: the server answered %ld", url,
                        answer);
    }
    return sx_error(code_of_curl(rc), "cannot fetch %s: %s", url,
                    d->said[0] != '\0' ? d->said : curl_easy_strerror(rc));
}

/* One transfer into the part. *out_beyond: the server said that the part is complete already or too
 * long (416): nothing came. */
static sx_status transfer(struct download *d, bool *out_beyond)
{
    char tag[TAG_BYTES] = "";
    struct curl_slist *headers = NULL;
    SX_TRY(open_part(d, tag));
    d->curl = curl_easy_init();
    sx_status status = d->curl == NULL ? sx_error(SX_RESOURCE_EXHAUSTED, "no memory to fetch")
                                       : set_options(d, tag, &headers);
    if (status == SX_OK) {
        CURLcode rc = curl_easy_perform(d->curl);
        long answer = 0;
        curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &answer);
        bool file_beyond = rc == CURLE_BAD_DOWNLOAD_RESUME || rc == CURLE_FILE_COULDNT_READ_FILE;
        *out_beyond = d->resumed_at > 0 && (answer == 416 || (answer == 0 && file_beyond));
        if (rc != CURLE_OK && !*out_beyond) {
            status = transfer_error(d, rc);
        } else if (rc == CURLE_OK && !d->started && d->resumed_at == 0) {
            status = begin_body(d); /* an empty file */
        }
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(d->curl);
    d->curl = NULL;
    return status;
}

/* ---- completion --------------------------------------------------------------------------- */

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
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sx_status status =
        fd < 0 || fsync(fd) != 0 ? sx_errno_status(errno, "fsync directory", dir) : SX_OK;
    if (fd >= 0) {
        close(fd);
    }
    sx_free(dir);
    return status;
}

/* A part that the server says is complete or too long proves itself by its SHA-256; otherwise one
 * fresh transfer follows. */
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

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

sx_status sx_fetch(const sx_fetch_request *request)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    struct download d = {.request = request, .fd = -1};
    char *dir = NULL;
    sx_status status = SX_OK;
    if (request->sha256 != NULL && !is_sha256(request->sha256)) {
        return sx_error(SX_INVALID_ARGUMENT, "'%s' is no SHA-256: expected 64 hexadecimal digits",
                        request->sha256);
    }
    SX_TRY_GOTO(status, sx_path_dirname(request->path, &dir), done);
    SX_TRY_GOTO(status, sx_dir_create(dir), done);
    SX_TRY_GOTO(status, sx_path_format(&d.part_path, "%s.part", request->path), done);
    SX_TRY_GOTO(status, sx_path_format(&d.tag_path, "%s.part.tag", request->path), done);
    status = download(&d);
done:
    if (d.fd >= 0) {
        close(d.fd);
    }
    sx_free(dir);
    sx_free(d.part_path);
    sx_free(d.tag_path);
    return status;
}
