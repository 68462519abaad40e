/* See activation.h. */
#include "activation.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_number(const char *name, long *out)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || text[0] == '\0') {
        return false;
    }
    *out = strtol(text, &end, 10);
    return *end == '\0' && *out >= 0;
}

/* The descriptor's place by its name: rest, grpc. */
static int *place_of(sx_activation *a, const char *name, size_t size)
{
    return size == 4 && strncmp(name, "rest", size) == 0   ? &a->rest_fd
           : size == 4 && strncmp(name, "grpc", size) == 0 ? &a->grpc_fd
                                                           : NULL;
}

sx_status sx_activation_read(sx_activation *out)
{
    long pid = 0, count = 0, report = 0;
    const char *names = getenv("LISTEN_FDNAMES");
    *out = (sx_activation){0};
    if (!read_number("LISTEN_PID", &pid) || pid != (long)getpid() ||
        !read_number("LISTEN_FDS", &count) || count == 0) {
        return SX_OK;
    }
    if (read_number("SEXTANT_REPORT_FD", &report)) {
        out->report_fd = (int)report;
        (void)fcntl(out->report_fd, F_SETFD, FD_CLOEXEC);
    }
    names = names != NULL ? names : "rest:grpc";
    for (long i = 0; i < count; i++) {
        const size_t size = strcspn(names, ":");
        int *place = place_of(out, names, size);
        if (place == NULL || *place != 0) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "LISTEN_FDNAMES: socket %ld is \"%.*s\"; expected \"rest\" and \"grpc\", "
                "each once (FileDescriptorName= of a systemd socket)",
                i + 1, (int)size, names);
        }
        *place = SX_ACTIVATION_FIRST_FD + (int)i;
        (void)fcntl(*place, F_SETFD, FD_CLOEXEC); /* not for compilers and other children */
        names += size + (names[size] == ':');
    }
    return SX_OK;
}

void sx_report_write(int fd, const sx_report_line *line)
{
    char text[64];
    const int size = snprintf(text, sizeof(text), "%d %" PRIu64 " %" PRIu64 "\n", line->ready,
                              line->requests, line->running);
    (void)!write(fd, text, (size_t)size);
}
