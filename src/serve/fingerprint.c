/* Whether a directory is still being written to; see fingerprint.h. */
#include "serve/fingerprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

enum { MAX_LEVELS = 8, MAX_ENTRIES = 65536 };

/* Hash of a directory entry. The hashes are added, so that the order of readdir does not matter. */
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

struct walk {
    int left; /* entries that may still be looked at */
    uint64_t bytes;
};

/* Adds the hashes of the entries of directory `fd`, which it closes. */
static uint64_t hash_directory(int fd, uint64_t parent, int level, struct walk *walk)
{
    uint64_t sum = 0;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && walk->left > 0;) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, 0) != 0) {
            continue;
        }
        walk->left--;
        walk->bytes += S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
        const uint64_t hash = hash_entry(parent, entry->d_name, &info);
        sum += hash;
        if (S_ISDIR(info.st_mode) && level < MAX_LEVELS) {
            const int child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            sum += child >= 0 ? hash_directory(child, hash, level + 1, walk) : 0;
        }
    }
    closedir(dir);
    return sum;
}

uint64_t sx_dir_fingerprint(const char *dir, uint64_t *out_bytes)
{
    struct walk walk = {.left = MAX_ENTRIES};
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const uint64_t sum = hash_directory(fd, 1, 0, &walk);
    if (out_bytes != NULL) {
        *out_bytes = walk.bytes;
    }
    return sum ? sum : 1;
}
