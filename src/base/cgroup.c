#include "base/cgroup.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 4096 };

bool sx_cgroup_read(const char *dir, const char *name, char *line, size_t capacity)
{
    char path[MAX_LINE + 64];
    int length = snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = length < 0 || (size_t)length >= sizeof(path) ? NULL : fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool ok = fgets(line, (int)capacity, file) != NULL;
    fclose(file);
    return ok;
}

static int64_t smaller_limit(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest limit of `hierarchy` + `group` and of every group above it. */
static int64_t walk_up(const char *hierarchy, const char *group, sx_cgroup_limit_fn *limit_of)
{
    char dir[MAX_LINE];
    int64_t limit = 0;
    int length = snprintf(dir, sizeof(dir), "%s%s", hierarchy, group);
    if (length < 0 || (size_t)length >= sizeof(dir)) {
        return 0;
    }
    for (;;) {
        limit = smaller_limit(limit, limit_of(dir));
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < strlen(hierarchy)) {
            return limit;
        }
        *slash = '\0';
    }
}

/* True when the comma-separated `list` contains `controller`. */
static bool list_contains(const char *list, size_t length, const char *controller)
{
    for (size_t at = 0; at < length;) {
        size_t word = strcspn(list + at, ",:");
        if (word == strlen(controller) && strncmp(list + at, controller, word) == 0) {
            return true;
        }
        at += word + 1;
    }
    return false;
}

int64_t sx_cgroup_limit(const char *proc_cgroup, const char *root, const char *controller,
                        sx_cgroup_limit_fn *v2, sx_cgroup_limit_fn *v1)
{
    FILE *file = fopen(proc_cgroup, "re");
    if (file == NULL) {
        return 0;
    }
    char line[MAX_LINE], hierarchy[MAX_LINE];
    int64_t limit = 0;
    int written = snprintf(hierarchy, sizeof(hierarchy), "%s/%s", root, controller);
    bool fits = written > 0 && (size_t)written < sizeof(hierarchy);
    while (fits && fgets(line, sizeof(line), file) != NULL) { /* number:controllers:/group */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(++controllers, ':');
        if (group == NULL) {
            continue;
        }
        size_t length = (size_t)(group++ - controllers);
        if (length == 0) {
            limit = smaller_limit(limit, walk_up(root, group, v2));
        } else if (list_contains(controllers, length, controller)) {
            limit = smaller_limit(limit, walk_up(hierarchy, group, v1));
        }
    }
    fclose(file);
    return limit;
}
