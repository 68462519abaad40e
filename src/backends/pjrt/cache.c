/* See cache.h. */
#include "backends/pjrt/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/hex.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/path.h"

enum {
    MAGIC_AT = 0,
    KEY_AT = 8,
    SIZE_AT = 40,
    FACTS_AT = 48,
    FLOPS_AT = 88,
    CRC_AT = 96,
    FACTS = 5,
};
_Static_assert((int)CRC_AT + 4 == (int)SX_PJRT_CACHE_HEADER_BYTES, "header layout");
_Static_assert(sizeof(sx_pjrt_facts) == CRC_AT - FACTS_AT, "the facts must match the struct");

static const char magic[8] = {'s', 'x', 'p', 'j', 'r', 't', '0', '1'};
static const size_t MAX_ENTRY = (size_t)1 << 32;

#define SUFFIX ".exe"

/* ---- Keys and names ---- */

sx_status sx_pjrt_cache_key_of(const sx_bytes *parts, int n, sx_pjrt_cache_key *out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    sx_pjrt_cache_key key;
    bool good = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (int i = 0; good && i < n; i++) {
        uint64_t size = parts[i].size;
        good = EVP_DigestUpdate(context, &size, sizeof(size)) == 1 &&
               EVP_DigestUpdate(context, parts[i].data, parts[i].size) == 1;
    }
    good = good && EVP_DigestFinal_ex(context, key.bytes, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!good) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "hashing a program: SHA-256 failed");
    }
    *out = key;
    return SX_OK;
}

static sx_status path_of(const char *dir, const sx_pjrt_cache_key *key, char **out_path)
{
    char hex[2 * sizeof(key->bytes) + 1];
    sx_hex_put(hex, key->bytes, sizeof(key->bytes));
    hex[sizeof(hex) - 1] = '\0';
    return sx_path_format(out_path, "%s/%s" SUFFIX, dir, hex);
}

static bool is_entry_name(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");
    return digits == 2 * sizeof(sx_pjrt_cache_key) && strcmp(name + digits, SUFFIX) == 0;
}

void sx_pjrt_cache_remove(const char *dir, const sx_pjrt_cache_key *key)
{
    char *path = NULL;
    sx_status status = path_of(dir, key, &path);
    if (status == SX_OK) {
        unlink(path);
    }
    sx_status_free(status);
    sx_free(path);
}

/* ---- One entry ---- */

static uint32_t checksum(const char *header, const void *bytes, size_t size)
{
    return sx_crc32c_mask(sx_crc32c(sx_crc32c(0, header, CRC_AT), bytes, size));
}

sx_status sx_pjrt_cache_parse(const sx_pjrt_cache_key *key, char *data, size_t size,
                              sx_pjrt_cache_entry *out)
{
    uint64_t bytes = 0;
    uint32_t crc = 0;
    if (size < SX_PJRT_CACHE_HEADER_BYTES || memcmp(data + MAGIC_AT, magic, sizeof(magic)) != 0) {
        return sx_error(SX_DATA_LOSS, "not a compiled program of this version");
    }
    memcpy(&bytes, data + SIZE_AT, sizeof(bytes));
    memcpy(&crc, data + CRC_AT, sizeof(crc));
    if (memcmp(data + KEY_AT, key->bytes, sizeof(key->bytes)) != 0) {
        return sx_error(SX_DATA_LOSS, "compiled program with a different key");
    }
    if (bytes != size - SX_PJRT_CACHE_HEADER_BYTES) {
        return sx_error(SX_DATA_LOSS, "compiled program has %zu bytes, expected %llu",
                        size - SX_PJRT_CACHE_HEADER_BYTES, (unsigned long long)bytes);
    }
    if (crc != checksum(data, data + SX_PJRT_CACHE_HEADER_BYTES, (size_t)bytes)) {
        return sx_error(SX_DATA_LOSS, "compiled program has a wrong checksum");
    }
    memcpy(&out->facts, data + FACTS_AT, sizeof(out->facts));
    out->bytes = data + SX_PJRT_CACHE_HEADER_BYTES;
    out->size = (size_t)bytes;
    return SX_OK;
}

/* Updates the time of last use, for eviction. A failure only makes the entry look older. */
static void touch(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        futimens(fd, NULL);
        close(fd);
    }
}

static sx_status read_entry(const char *path, const sx_pjrt_cache_key *key,
                            sx_pjrt_cache_entry *out)
{
    char *data = NULL;
    size_t size = 0;
    sx_pjrt_cache_entry entry;
    SX_TRY(sx_file_read(path, MAX_ENTRY, &data, &size));
    sx_status status = sx_pjrt_cache_parse(key, data, size, &entry);
    if (status != SX_OK) {
        unlink(path);
        sx_free(data);
        return sx_status_annotate(status, __FILE__, __LINE__, "%s", path);
    }
    memmove(data, entry.bytes, entry.size); /* so that the block can be freed */
    entry.bytes = data;
    *out = entry;
    touch(path);
    return SX_OK;
}

sx_status sx_pjrt_cache_read(const char *dir, const sx_pjrt_cache_key *key,
                             sx_pjrt_cache_entry *out)
{
    char *path = NULL;
    SX_TRY(path_of(dir, key, &path));
    sx_status status = read_entry(path, key, out);
    sx_free(path);
    return status;
}

/* ---- Eviction ---- */

typedef struct entry_file {
    char *name;
    uint64_t size;
    struct timespec used;
} entry_file;

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const entry_file *)a)->used, *y = &((const entry_file *)b)->used;
    if (x->tv_sec != y->tv_sec) {
        return x->tv_sec < y->tv_sec ? -1 : 1;
    }
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Deletes the oldest entries until at most `budget` bytes are left. Another process may be
 * deleting, too, so a missing file is fine. */
static sx_status evict(const char *dir, uint64_t budget)
{
    sx_paths names = {0};
    SX_TRY(sx_dir_list(dir, &names));
    entry_file *files = sx_alloc(names.count + 1, sizeof(*files));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n = 0;
    uint64_t total = 0;
    for (size_t i = 0; files != NULL && fd >= 0 && i < names.count; i++) {
        struct stat info;
        if (is_entry_name(names.items[i]) &&
            fstatat(fd, names.items[i], &info, AT_SYMLINK_NOFOLLOW) == 0) {
            files[n++] = (entry_file){names.items[i], (uint64_t)info.st_size, info.st_mtim};
            total += (uint64_t)info.st_size;
        }
    }
    if (n > 0) {
        qsort(files, n, sizeof(*files), by_use);
    }
    for (size_t i = 0; i < n && total > budget; i++) {
        unlinkat(fd, files[i].name, 0);
        total -= files[i].size;
    }
    if (fd >= 0) {
        close(fd);
    }
    sx_free(files);
    sx_paths_deinit(&names);
    return SX_OK;
}

/* ---- Writing ---- */

static sx_status write_file(const char *path, const char *header, const sx_pjrt_cache_entry *entry)
{
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    SX_TRY(sx_commit_create(&commit));
    sx_status status = sx_commit_add(commit, path, &file);
    if (status == SX_OK) {
        status = sx_commit_write(file, header, SX_PJRT_CACHE_HEADER_BYTES);
    }
    if (status == SX_OK) {
        status = sx_commit_write(file, entry->bytes, entry->size);
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    return status;
}

sx_status sx_pjrt_cache_write(const char *dir, const sx_pjrt_cache_key *key,
                              const sx_pjrt_cache_entry *entry, uint64_t max_bytes)
{
    char header[SX_PJRT_CACHE_HEADER_BYTES], *path = NULL;
    uint64_t size = entry->size, all = size + SX_PJRT_CACHE_HEADER_BYTES;
    if (all > SX_MIN(max_bytes, MAX_ENTRY)) {
        return SX_OK;
    }
    memcpy(header + MAGIC_AT, magic, sizeof(magic));
    memcpy(header + KEY_AT, key->bytes, sizeof(key->bytes));
    memcpy(header + SIZE_AT, &size, sizeof(size));
    memcpy(header + FACTS_AT, &entry->facts, sizeof(entry->facts));
    uint32_t crc = checksum(header, entry->bytes, entry->size);
    memcpy(header + CRC_AT, &crc, sizeof(crc));
    SX_TRY(sx_dir_create(dir));
    SX_TRY(sx_commit_sweep(dir));
    SX_TRY(evict(dir, max_bytes - all));
    SX_TRY(path_of(dir, key, &path));
    sx_status status = write_file(path, header, entry);
    sx_free(path);
    return status;
}
