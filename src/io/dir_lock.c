#include "io/dir_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/file.h"

sx_status sx_dir_lock(const char *dir, int *out_lock)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return sx_errno_status(errno, "open", dir);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *out_lock = fd;
        return SX_OK;
    }
    bool taken = errno == EWOULDBLOCK;
    close(fd);
    if (taken) {
        return sx_error(SX_FAILED_PRECONDITION, "%s is in use by another process", dir);
    }
    *out_lock = SX_NO_LOCK; /* such as NFS without locks, FUSE */
    return SX_OK;
}

void sx_dir_unlock(int lock)
{
    if (lock != SX_NO_LOCK) {
        close(lock);
    }
}
