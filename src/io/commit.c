#include "io/commit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/failpoint.h"
#include "io/file.h"
#include "io/path.h"

enum {
    BUFFER_BYTES = 1 << 18,
    MAX_FILES = 65536,  /* in a commit */
    NAME_IN_TEMP = 200, /* bytes of the final name used in the temporary one; NAME_MAX is 255 */
    RANDOM_DIGITS = 16,
};

#define TEMP_MARK ".tmp-"

struct sx_commit_file {
    sx_commit *commit;
    int fd;
    char *final_path, *temp_path; /* temp_path NULL once renamed or removed */
    char *buffer;                 /* [BUFFER_BYTES] */
    size_t buffered;
    uint64_t offset; /* bytes appended, buffered ones included */
    bool failed;     /* a write failed: the file is incomplete */
    bool is_link;    /* the temporary is a second name of a file that has others */
};

struct sx_commit {
    sx_commit_file **files; /* in the order added */
    size_t count;
    bool over; /* finished or failed */
};

/* ---- Temporaries ---- */

sx_status sx_temp_path(const char *path, char **out_temp)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return sx_errno_status(errno, "get random bytes for a temporary name of", path);
    }
    const char *name = sx_path_basename(path);
    return sx_path_format(out_temp, "%.*s.%.*s" TEMP_MARK "%016" PRIx64, (int)(name - path), path,
                          NAME_IN_TEMP, name, random);
}

bool sx_is_temp_name(const char *name)
{
    size_t length = strlen(name), tail = strlen(TEMP_MARK) + RANDOM_DIGITS;
    if (name[0] != '.' || length <= tail) {
        return false;
    }
    const char *mark = name + length - tail;
    return strncmp(mark, TEMP_MARK, strlen(TEMP_MARK)) == 0 &&
           strspn(mark + strlen(TEMP_MARK), "0123456789abcdef") == RANDOM_DIGITS;
}

/* Creates and locks the file. The lock tells sx_commit_sweep() that the writer is alive. A sweeper
 * may briefly hold the lock itself; then the next name is tried. */
static sx_status open_temp(const char *path, char **out_temp, int *out_fd)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        char *temp;
        SX_TRY(sx_temp_path(path, &temp));
        int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            sx_status status = sx_errno_status(errno, "create a temporary file for", path);
            sx_free(temp);
            return status;
        }
        if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK)) {
            *out_temp = temp;
            *out_fd = fd;
            return SX_OK;
        }
        if (fd >= 0) {
            unlink(temp);
            close(fd);
        }
        sx_free(temp);
    }
    return sx_error(SX_UNAVAILABLE, "cannot lock a temporary file for %s", path);
}

/* ---- One file ---- */

static sx_status write_all(sx_commit_file *file, const char *data, size_t size)
{
    while (size > 0) {
        bool injected = sx_failpoint_hit();
        int error = errno;
        ssize_t n = write(file->fd, data, injected ? size / 2 : size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 || injected) {
            file->failed = true;
            return sx_errno_status(injected ? error : errno, "write", file->final_path);
        }
        data += n;
        size -= (size_t)n;
    }
    return SX_OK;
}

static sx_status flush(sx_commit_file *file)
{
    size_t size = file->buffered;
    file->buffered = 0;
    return write_all(file, file->buffer, size);
}

sx_status sx_commit_write(void *commit_file, const void *data, size_t size)
{
    sx_commit_file *file = commit_file;
    if (file->failed || file->commit->over) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "cannot write %s: its commit has ended or an earlier write failed",
                        file->final_path);
    }
    file->offset += size;
    /* The buffer leaves full, so that writes stay aligned to pages; what is left of a large piece
     * goes past it. */
    const char *bytes = data;
    while (size >= BUFFER_BYTES - file->buffered) {
        if (file->buffered == 0) {
            size_t whole = size - size % BUFFER_BYTES;
            SX_TRY(write_all(file, bytes, whole));
            bytes += whole;
            size -= whole;
            continue;
        }
        size_t room = BUFFER_BYTES - file->buffered;
        memcpy(file->buffer + file->buffered, bytes, room);
        file->buffered = BUFFER_BYTES;
        SX_TRY(flush(file));
        bytes += room;
        size -= room;
    }
    if (size > 0) {
        memcpy(file->buffer + file->buffered, bytes, size);
        file->buffered += size;
    }
    return SX_OK;
}

uint64_t sx_commit_offset(const sx_commit_file *file)
{
    return file->offset;
}

static sx_status flush_and_sync(sx_commit_file *file)
{
    if (file->failed) {
        return sx_error(SX_FAILED_PRECONDITION, "cannot commit %s: an earlier write to it failed",
                        file->final_path);
    }
    SX_TRY(flush(file));
    if (sx_failpoint_hit() || fsync(file->fd) != 0) {
        return sx_errno_status(errno, "fsync", file->final_path);
    }
    return SX_OK;
}

static void file_destroy(sx_commit_file *file)
{
    if (file->temp_path != NULL) {
        unlink(file->temp_path);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    sx_free(file->temp_path);
    sx_free(file->final_path);
    sx_free(file->buffer);
    sx_free(file);
}

/* ---- The commit ---- */

sx_status sx_commit_create(sx_commit **out_commit)
{
    sx_commit *commit = sx_alloc(1, sizeof *commit);
    if (commit == NULL) {
        return sx_no_memory("for a commit");
    }
    *out_commit = commit;
    return SX_OK;
}

void sx_commit_destroy(sx_commit *commit)
{
    if (commit == NULL) {
        return;
    }
    for (size_t i = 0; i < commit->count; i++) {
        file_destroy(commit->files[i]);
    }
    sx_free(commit->files);
    sx_free(commit);
}

/* Makes room for one more file. */
static sx_status reserve(sx_commit *commit, const char *path)
{
    if (commit->over || commit->count >= MAX_FILES) {
        return sx_error(SX_FAILED_PRECONDITION, "cannot add %s: the commit has ended or is full",
                        path);
    }
    if ((commit->count & (commit->count - 1)) == 0) {
        size_t capacity = commit->count == 0 ? 1 : 2 * commit->count;
        sx_commit_file **files = sx_realloc(commit->files, capacity, sizeof(sx_commit_file *));
        if (files == NULL) {
            return sx_no_memory("writing %s", path);
        }
        commit->files = files;
    }
    return SX_OK;
}

/* /dev/stdout and /dev/fd/3 are links that must not be replaced, whatever they point to. */
static bool is_system_link(const char *path)
{
    struct stat link;
    return (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0) &&
           lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
}

/* Rejects a path that the rename would replace although it is not a file. */
static sx_status check_place(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0 || (S_ISREG(there.st_mode) && !is_system_link(path))) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "cannot write %s: it is %s, expected a file or a new name",
                    path, S_ISDIR(there.st_mode) ? "a folder" : "a device, pipe or socket");
}

/* Makes a file that has no temporary yet and is not part of the commit yet. */
static sx_status new_file(sx_commit *commit, const char *path, sx_commit_file **out_file)
{
    SX_TRY(check_place(path));
    SX_TRY(reserve(commit, path));
    sx_commit_file *file = sx_alloc(1, sizeof *file);
    if (file == NULL) {
        return sx_no_memory("writing %s", path);
    }
    file->commit = commit;
    file->fd = -1;
    file->final_path = sx_strdup(path);
    file->buffer = sx_alloc(BUFFER_BYTES, 1);
    if (file->final_path == NULL || file->buffer == NULL) {
        file_destroy(file);
        return sx_no_memory("writing %s", path);
    }
    *out_file = file;
    return SX_OK;
}

sx_status sx_commit_add(sx_commit *commit, const char *path, sx_commit_file **out_file)
{
    sx_commit_file *file;
    SX_TRY(new_file(commit, path, &file));
    sx_status status = open_temp(path, &file->temp_path, &file->fd);
    if (status != SX_OK) {
        file_destroy(file);
        return status;
    }
    commit->files[commit->count++] = file;
    *out_file = file;
    return SX_OK;
}

static sx_status copy_bytes(sx_commit_file *file, int from, const char *from_path)
{
    char piece[1 << 16];
    for (;;) {
        ssize_t n = read(from, piece, sizeof piece);
        if (n < 0 && errno != EINTR) {
            return sx_errno_status(errno, "read", from_path);
        }
        if (n == 0) {
            return SX_OK;
        }
        SX_TRY(sx_commit_write(file, piece, (size_t)SX_MAX(n, (ssize_t)0)));
    }
}

sx_status sx_commit_add_link(sx_commit *commit, const char *from, const char *path)
{
    sx_commit_file *file;
    char *temp = NULL;
    SX_TRY(new_file(commit, path, &file));
    sx_status status = SX_OK;
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0) {
        SX_TRY_GOTO(status, sx_errno_status(errno, "open", from), done);
    }
    SX_TRY_GOTO(status, sx_temp_path(path, &temp), done);
    /* The lock belongs to the file, not to a name: a sweep never finds the temporary unlocked. */
    (void)flock(source, LOCK_EX | LOCK_NB);
    if (!sx_failpoint_hit() && link(from, temp) == 0) {
        file->is_link = true;
        file->temp_path = temp;
        temp = NULL;
        file->fd = source;
        source = -1;
    } else { /* another file system, or one without links */
        SX_TRY_GOTO(status, open_temp(path, &file->temp_path, &file->fd), done);
        SX_TRY_GOTO(status, copy_bytes(file, source, from), done);
    }
    commit->files[commit->count++] = file;
done:
    if (source >= 0) {
        close(source);
    }
    sx_free(temp);
    if (status != SX_OK) {
        file_destroy(file);
    }
    return status;
}

static sx_status sync_dir_of(const char *path)
{
    char *dir;
    SX_TRY(sx_path_dirname(path, &dir));
    sx_status status = sx_dir_sync(dir);
    sx_free(dir);
    return status;
}

static bool same_dir(const char *a, const char *b)
{
    size_t length = (size_t)(sx_path_basename(a) - a);
    return length == (size_t)(sx_path_basename(b) - b) && memcmp(a, b, length) == 0;
}

static sx_status rename_file(sx_commit_file *file)
{
    if (sx_failpoint_hit() || rename(file->temp_path, file->final_path) != 0) {
        return sx_errno_status(errno, "rename a temporary file to", file->final_path);
    }
    if (file->is_link) { /* rename() leaves both names where they are one file already */
        unlink(file->temp_path);
    }
    sx_free(file->temp_path);
    file->temp_path = NULL;
    return SX_OK;
}

/* Renames all files but the last and syncs their directories: once for each run of consecutive
 * files in the same directory. */
static sx_status publish_parts(sx_commit *commit)
{
    for (size_t i = 0; i + 1 < commit->count; i++) {
        SX_TRY(rename_file(commit->files[i]));
    }
    for (size_t i = 0; i + 1 < commit->count; i++) {
        const char *path = commit->files[i]->final_path;
        bool repeated = i + 2 < commit->count && same_dir(path, commit->files[i + 1]->final_path);
        if (!repeated) {
            SX_TRY(sync_dir_of(path));
        }
    }
    return SX_OK;
}

static sx_status finish(sx_commit *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        SX_TRY(flush_and_sync(commit->files[i]));
    }
    SX_TRY(publish_parts(commit));
    if (commit->count > 0) {
        sx_commit_file *last = commit->files[commit->count - 1];
        SX_TRY(rename_file(last));
        SX_TRY(sync_dir_of(last->final_path));
    }
    return SX_OK;
}

sx_status sx_commit_finish(sx_commit *commit)
{
    if (commit->over) {
        return sx_error(SX_FAILED_PRECONDITION, "the commit has already finished or failed");
    }
    sx_status status = finish(commit);
    commit->over = true;
    for (size_t i = 0; i < commit->count; i++) {
        sx_commit_file *file = commit->files[i];
        if (file->temp_path != NULL) {
            unlink(file->temp_path);
            sx_free(file->temp_path);
            file->temp_path = NULL;
        }
        close(file->fd);
        file->fd = -1;
    }
    return status;
}

sx_status sx_commit_bytes(const char *path, const void *data, size_t size)
{
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    SX_TRY(sx_commit_create(&commit));
    sx_status status = sx_commit_add(commit, path, &file);
    if (status == SX_OK) {
        status = sx_commit_write(file, data, size);
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    return status;
}

/* ---- Sweeping ---- */

/* Removes `name` if its lock is free. If the file is renamed to its final name between the open and
 * the lock, unlinkat() does not find the name. */
static void sweep_one(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        unlinkat(dir_fd, name, 0);
    }
    close(fd);
}

sx_status sx_commit_sweep(const char *dir)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return sx_errno_status(errno, "list", dir);
    }
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (sx_is_temp_name(entry->d_name)) {
            sweep_one(dirfd(stream), entry->d_name);
        }
    }
    closedir(stream);
    return SX_OK;
}
