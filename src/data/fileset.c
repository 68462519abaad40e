#include "data/fileset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/classed.h"
#include "data/dataset.h"
#include "io/archive.h"
#include "io/file.h"

enum { MAX_FILE_BYTES = 1 << 30 };

typedef struct fileset_def {
    sx_status (*open)(sx_fileset *set, int64_t memory_budget, int64_t max_unpacked_bytes);
    sx_status (*read)(const sx_fileset *set, size_t index, sx_scratch *scratch,
                      sx_bytes *out_bytes);
    void (*close)(sx_fileset *set);
} fileset_def;

/* The position of a member in an archive. */
struct member {
    uint64_t offset;
    size_t size;
    bool in_file; /* else in `unpacked` */
};

struct sx_fileset {
    const fileset_def *def;
    char *path;
    sx_paths names;
    /* of archives */
    struct member *members; /* [names.count] */
    size_t capacity;        /* of names and members */
    sx_file *file;
    bool reads_file; /* a member is read from it */
    sx_buf unpacked; /* the members without an offset, concatenated */
};

/* ---- A folder ---- */

static sx_status folder_open(sx_fileset *set, int64_t memory_budget, int64_t max_unpacked_bytes)
{
    (void)memory_budget;
    (void)max_unpacked_bytes;
    return sx_list_tree(set->path, &set->names);
}

static sx_status read_descriptor(int fd, const char *path, sx_scratch *scratch, sx_bytes *out_bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return sx_errno_status(errno, "read", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: not a regular file", path);
    }
    if (info.st_size > MAX_FILE_BYTES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: %lld bytes, expected at most 1 GiB", path,
                        (long long)info.st_size);
    }
    size_t size = (size_t)info.st_size, done = 0;
    char *data = sx_scratch_alloc(scratch, size);
    if (data == NULL) {
        return sx_no_memory("reading %s (%zu bytes)", path, size);
    }
    while (done < size) {
        ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno != EINTR) {
            return sx_errno_status(errno, "read", path);
        }
        if (n == 0) {
            return sx_error(SX_DATA_LOSS,
                            "%s: ends after %zu of %zu bytes; it was truncated while being read",
                            path, done, size);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    *out_bytes = (sx_bytes){data, size};
    return SX_OK;
}

static sx_status folder_read(const sx_fileset *set, size_t index, sx_scratch *scratch,
                             sx_bytes *out_bytes)
{
    size_t length = strlen(set->path) + strlen(set->names.items[index]) + 2;
    char *path = sx_scratch_alloc(scratch, length);
    if (path == NULL) {
        return sx_no_memory("reading %s", set->names.items[index]);
    }
    snprintf(path, length, "%s/%s", set->path, set->names.items[index]);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    if (fd < 0) {
        return sx_errno_status(errno, "open", path);
    }
    sx_status status = read_descriptor(fd, path, scratch, out_bytes);
    close(fd);
    return status;
}

static void folder_close(sx_fileset *set)
{
    sx_paths_deinit(&set->names);
}

static const fileset_def folder_def = {folder_open, folder_read, folder_close};

/* ---- An archive ---- */

static sx_status grow(sx_fileset *set)
{
    if (set->names.count < set->capacity) {
        return SX_OK;
    }
    size_t capacity = SX_MAX((size_t)256, set->capacity * 2);
    char **names = sx_realloc(set->names.items, capacity, sizeof(*names));
    if (names == NULL) {
        return sx_no_memory("reading %s", set->path);
    }
    set->names.items = names;
    struct member *members = sx_realloc(set->members, capacity, sizeof(*members));
    if (members == NULL) {
        return sx_no_memory("reading %s", set->path);
    }
    set->members = members;
    set->capacity = capacity;
    return SX_OK;
}

static sx_status unpack_member(sx_fileset *set, sx_archive *archive, struct member *member)
{
    member->offset = set->unpacked.size;
    sx_status status = sx_archive_read(archive, &set->unpacked);
    if (set->unpacked.failed != 0) {
        sx_buf limit;
        sx_buf_init(&limit, 64);
        sx_buf_put_size(&limit, (double)set->unpacked.max_bytes);
        sx_status_free(status);
        status = sx_error(SX_RESOURCE_EXHAUSTED,
                          "%s: its members, which are decompressed into memory, do not fit in %s; "
                          "unpack the archive and use the directory",
                          set->path, sx_buf_text(&limit));
        sx_buf_deinit(&limit);
    }
    member->size = set->unpacked.size - member->offset;
    return status;
}

static sx_status add_member(sx_fileset *set, sx_archive *archive, const sx_archive_member *found)
{
    SX_TRY(grow(set));
    struct member *member = &set->members[set->names.count];
    *member = (struct member){.in_file = found->data_offset >= 0};
    if (member->in_file) {
        uint64_t end = sx_file_size(set->file);
        set->reads_file = true;
        member->offset = (uint64_t)found->data_offset;
        member->size = (size_t)found->size;
        if (found->size > MAX_FILE_BYTES) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "%s: member %s has %" PRIu64 " bytes, expected at most 1 GiB",
                            set->path, found->name, found->size);
        }
        if (member->offset > end || member->size > end - member->offset) {
            return sx_error(SX_DATA_LOSS, "%s: member %s extends beyond the end of the archive",
                            set->path, found->name);
        }
    } else {
        SX_TRY(unpack_member(set, archive, member));
    }
    char *name = sx_strdup(found->name);
    if (name == NULL) {
        return sx_no_memory("reading %s", set->path);
    }
    set->names.items[set->names.count++] = name;
    return SX_OK;
}

static sx_status archive_open(sx_fileset *set, int64_t memory_budget, int64_t max_unpacked_bytes)
{
    const sx_archive_limits limits = {.max_total_bytes = (uint64_t)max_unpacked_bytes};
    int64_t budget = memory_budget > 0 ? memory_budget : sx_ram_bytes() / 2;
    sx_archive *archive = NULL;
    sx_buf_init(&set->unpacked, (size_t)budget);
    SX_TRY(sx_file_open(set->path, &set->file));
    SX_TRY(sx_archive_open(set->path, &limits, &archive));
    sx_status status = SX_OK;
    bool more = true;
    while (status == SX_OK && more) {
        sx_archive_member member;
        status = sx_archive_next(archive, &member, &more);
        if (status == SX_OK && more) {
            status = add_member(set, archive, &member);
        }
    }
    sx_archive_close(archive);
    return status;
}

static sx_status archive_read(const sx_fileset *set, size_t index, sx_scratch *scratch,
                              sx_bytes *out_bytes)
{
    const struct member *member = &set->members[index];
    if (!member->in_file) {
        *out_bytes = (sx_bytes){sx_buf_text(&set->unpacked) + member->offset, member->size};
        return SX_OK;
    }
    void *data = sx_scratch_alloc(scratch, member->size);
    if (data == NULL) {
        return sx_no_memory("reading %s of %s", set->names.items[index], set->path);
    }
    SX_TRY(sx_file_read_at(set->file, member->offset, data, member->size), "member %s",
           set->names.items[index]);
    *out_bytes = (sx_bytes){data, member->size};
    return SX_OK;
}

static void archive_close(sx_fileset *set)
{
    sx_paths_deinit(&set->names);
    sx_free(set->members);
    sx_file_close(set->file);
    sx_buf_deinit(&set->unpacked);
}

static const fileset_def archive_def = {archive_open, archive_read, archive_close};

/* ---- All of them ---- */

sx_status sx_fileset_open(const char *path, int64_t memory_budget, int64_t max_unpacked_bytes,
                          sx_fileset **out_set)
{
    sx_fileset *set = sx_alloc(1, sizeof(*set));
    char *copy = sx_strdup(path);
    if (set == NULL || copy == NULL) {
        sx_free(set);
        sx_free(copy);
        return sx_no_memory("reading %s", path);
    }
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--) {
        copy[n - 1] = '\0';
    }
    set->path = copy;
    set->def = sx_path_is_dir(path) ? &folder_def : &archive_def;
    sx_status status = set->def->open(set, memory_budget, max_unpacked_bytes);
    if (status != SX_OK) {
        sx_fileset_close(set);
        return status;
    }
    *out_set = set;
    return SX_OK;
}

void sx_fileset_close(sx_fileset *set)
{
    if (set == NULL) {
        return;
    }
    set->def->close(set);
    sx_free(set->path);
    sx_free(set);
}

size_t sx_fileset_count(const sx_fileset *set)
{
    return set->names.count;
}

const char *const *sx_fileset_names(const sx_fileset *set)
{
    return (const char *const *)set->names.items;
}

const char *sx_fileset_path(const sx_fileset *set)
{
    return set->path;
}

bool sx_fileset_stable(const sx_fileset *set)
{
    return set->def == &archive_def && !set->reads_file;
}

sx_status sx_fileset_read(const sx_fileset *set, size_t index, sx_scratch *scratch,
                          sx_bytes *out_bytes)
{
    return set->def->read(set, index, scratch, out_bytes);
}
