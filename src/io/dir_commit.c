#include "io/dir_commit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/commit.h"
#include "io/failpoint.h"
#include "io/file.h"
#include "io/path.h"

static void sweep_one(int parent_fd, const char *parent, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return; /* a file: swept by io/commit */
    }
    char *path = NULL;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        sx_status status = sx_path_join(parent, name, &path);
        sx_status_free(status == SX_OK ? sx_dir_remove(path) : status);
    }
    sx_free(path);
    close(fd);
}

/* Removes the temporary directories of dead writers; those that cannot be removed are left in
 * place. */
static void sweep(const char *parent)
{
    DIR *stream = opendir(parent);
    if (stream == NULL) {
        return;
    }
    for (struct dirent *e = readdir(stream); e != NULL; e = readdir(stream)) {
        if (sx_is_temp_name(e->d_name)) {
            sweep_one(dirfd(stream), parent, e->d_name);
        }
    }
    closedir(stream);
}

static sx_status make_temp(sx_dir_commit *c)
{
    SX_TRY(sx_temp_path(c->final_path, &c->temp_path));
    if (sx_failpoint_hit() || mkdir(c->temp_path, 0777) != 0) {
        return sx_errno_status(errno, "make directory", c->temp_path);
    }
    c->lock_fd = open(c->temp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock_fd < 0 || flock(c->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return sx_errno_status(errno, "lock", c->temp_path);
    }
    return SX_OK;
}

static sx_status begin(const char *path, sx_dir_commit *c)
{
    c->final_path = sx_strdup(path);
    if (c->final_path == NULL) {
        return sx_no_memory("for a path");
    }
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) {
        c->final_path[n - 1] = '\0';
    }
    SX_TRY(sx_path_dirname(c->final_path, &c->parent));
    SX_TRY(sx_dir_create(c->parent));
    if (sx_path_exists(c->final_path)) {
        return sx_error(SX_ALREADY_EXISTS, "%s already exists; choose another version",
                        c->final_path);
    }
    sweep(c->parent);
    return make_temp(c);
}

sx_status sx_dir_commit_begin(const char *path, sx_dir_commit *out_commit)
{
    sx_dir_commit c = {.lock_fd = -1};
    sx_status status = begin(path, &c);
    if (status != SX_OK) {
        sx_dir_commit_deinit(&c);
        return status;
    }
    *out_commit = c;
    return SX_OK;
}

sx_status sx_dir_commit_finish(sx_dir_commit *c)
{
    SX_TRY(sx_dir_sync(c->temp_path));
    if (sx_failpoint_hit() ||
        renameat2(AT_FDCWD, c->temp_path, AT_FDCWD, c->final_path, RENAME_NOREPLACE) != 0) {
        if (errno == EEXIST) {
            return sx_error(SX_ALREADY_EXISTS, "%s already exists; choose another version",
                            c->final_path);
        }
        return sx_errno_status(errno, "rename to", c->final_path);
    }
    sx_free(c->temp_path);
    c->temp_path = NULL;
    return sx_dir_sync(c->parent);
}

void sx_dir_commit_deinit(sx_dir_commit *c)
{
    if (c->temp_path != NULL) {
        sx_status_free(sx_dir_remove(c->temp_path));
    }
    if (c->lock_fd >= 0) {
        close(c->lock_fd);
    }
    sx_free(c->temp_path);
    sx_free(c->final_path);
    sx_free(c->parent);
    *c = (sx_dir_commit){.lock_fd = -1};
}
