/* The versions of a model on disk; see version_dirs.h. */
#include "serve/version_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"

enum { MAX_LEVELS = 8, MAX_ENTRIES = 65536 };

/* "0042" -> 42; false for anything but digits that fit. */
static bool parse_version(const char *name, int64_t *out)
{
    int64_t value = 0;
    if (strlen(name) >= sizeof(((sx_version_dir *)0)->name) || name[0] == '\0') {
        return false;
    }
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(*name - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

static bool is_directory(int parent, const char *name)
{
    struct stat info;
    return fstatat(parent, name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

static int higher_first(const void *a, const void *b)
{
    const sx_version_dir *x = a, *y = b;
    return x->version != y->version ? (x->version < y->version ? 1 : -1) : strcmp(x->name, y->name);
}

/* Drops all but the first of equal versions. */
static size_t drop_duplicates(sx_version_dir *dirs, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || dirs[kept - 1].version != dirs[i].version) {
            dirs[kept++] = dirs[i];
        }
    }
    return kept;
}

static sx_status collect(DIR *dir, sx_version_dir **dirs, size_t *count)
{
    size_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int64_t version;
        if (!parse_version(entry->d_name, &version) || !is_directory(dirfd(dir), entry->d_name)) {
            continue;
        }
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            sx_version_dir *grown =
                capacity > MAX_ENTRIES ? NULL : sx_realloc(*dirs, capacity, sizeof(**dirs));
            if (!grown) {
                return sx_error(SX_RESOURCE_EXHAUSTED, "no memory for %zu versions", capacity);
            }
            *dirs = grown;
        }
        sx_version_dir *row = &(*dirs)[(*count)++];
        row->version = version;
        memcpy(row->name, entry->d_name, strlen(entry->d_name) + 1);
    }
    return SX_OK;
}

static sx_status open_error(const char *base_path)
{
    const sx_code code = errno == ENOENT    ? SX_NOT_FOUND
                         : errno == EACCES  ? SX_PERMISSION_DENIED
                         : errno == ENOTDIR ? SX_FAILED_PRECONDITION
                                            : SX_UNAVAILABLE;
    return sx_error(code, "Could not find base path %s: %s", base_path, strerror(errno));
}

sx_status sx_version_dirs_list(const char *base_path, sx_version_dir **out_dirs, size_t *out_count)
{
    sx_version_dir *dirs = NULL;
    size_t count = 0;
    DIR *dir = opendir(base_path);
    if (!dir) {
        return open_error(base_path);
    }
    sx_status status = collect(dir, &dirs, &count);
    closedir(dir);
    if (status != SX_OK) {
        sx_free(dirs);
        return sx_status_annotate(status, __FILE__, __LINE__, "listing %s", base_path);
    }
    if (count > 1) {
        qsort(dirs, count, sizeof(*dirs), higher_first);
        count = drop_duplicates(dirs, count);
    }
    *out_dirs = dirs;
    *out_count = count < SX_MAX_VERSIONS ? count : SX_MAX_VERSIONS;
    return SX_OK;
}

/* ---------------------------------------------------------------- fingerprints */

/* What makes a file another file. Entries are summed, so that the order of readdir does not count.
 */
static uint64_t hash_entry(uint64_t parent, const char *name, const struct stat *info)
{
    const struct {
        uint64_t parent, name;
        int64_t size, seconds, nanoseconds;
        uint64_t inode;
    } facts = {parent,
               sx_hash64(name, strlen(name)),
               info->st_size,
               info->st_mtim.tv_sec,
               info->st_mtim.tv_nsec,
               info->st_ino};
    return sx_hash64(&facts, sizeof(facts));
}

/* Sums the hashes of what is in the directory `fd`, which it closes. */
static uint64_t hash_directory(int fd, uint64_t parent, int level, int *left)
{
    uint64_t sum = 0;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && *left > 0;) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, 0) != 0) {
            continue;
        }
        --*left;
        const uint64_t hash = hash_entry(parent, entry->d_name, &info);
        sum += hash;
        if (S_ISDIR(info.st_mode) && level < MAX_LEVELS) {
            const int child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            sum += child >= 0 ? hash_directory(child, hash, level + 1, left) : 0;
        }
    }
    closedir(dir);
    return sum;
}

uint64_t sx_version_dir_fingerprint(const char *dir)
{
    int left = MAX_ENTRIES;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const uint64_t sum = hash_directory(fd, 1, 0, &left);
    return sum ? sum : 1;
}
