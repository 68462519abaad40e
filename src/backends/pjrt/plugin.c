/* Plugins: see plugin.h. */
#include "backends/pjrt/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum { PROBE_SECONDS = 120, LAST_WORDS = 4000, QUOTED = 600 };

static struct {
    pthread_mutex_t lock;
    sx_pjrt_plugin *plugins;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Calling --------------------------------------------------------------------------------- */

static const char *slot_name(sx_pjrt_slot slot)
{
    static const char *const names[SX_PJRT_MAX_SLOTS] = {
#define NAME_(number, symbol, name) [number] = (name),
        SX_PJRT_SLOTS(NAME_)
#undef NAME_
    };
    return names[slot];
}

bool sx_pjrt_has(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot)
{
    return SX_PJRT_SLOTS_AT + 8 * (size_t)slot < plugin->api->struct_size &&
           plugin->api->slots[slot] != NULL;
}

sx_status sx_pjrt_status(const sx_pjrt_plugin *plugin, const char *what, void *error)
{
    if (error == NULL) {
        return SX_OK;
    }
    sx_pjrt_text message = SX_PJRT_ARGS(text, .object = error);
    sx_pjrt_int code = SX_PJRT_ARGS(int, .object = error);
    plugin->api->slots[SX_PJRT_ERROR_MESSAGE](&message);
    void *failed = plugin->api->slots[SX_PJRT_ERROR_CODE](&code);
    bool known = failed == NULL && code.value > 0 && code.value <= SX_UNAUTHENTICATED;
    sx_status status = sx_error(known ? (sx_code)code.value : SX_UNKNOWN, "PJRT %s: %.*s", what,
                                message.size > INT_MAX ? INT_MAX : (int)message.size,
                                message.text == NULL ? "" : message.text);
    sx_pjrt_object end = SX_PJRT_ARGS(object, .object = error);
    plugin->api->slots[SX_PJRT_ERROR_DESTROY](&end);
    return status;
}

sx_status sx_pjrt_call(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args)
{
    if (!sx_pjrt_has(plugin, slot)) {
        return sx_error(SX_UNIMPLEMENTED, "%s (PJRT %d.%d) has no PJRT_%s", plugin->path,
                        plugin->api->major, plugin->api->minor, slot_name(slot));
    }
    return sx_pjrt_status(plugin, slot_name(slot), plugin->api->slots[slot](args));
}

void sx_pjrt_end(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object)
{
    if (object != NULL) {
        sx_pjrt_object args = SX_PJRT_ARGS(object, .object = object);
        sx_status_free(sx_pjrt_call(plugin, slot, &args));
    }
}

/* --- Loading --------------------------------------------------------------------------------- */

static sx_pjrt_kind kind_of(const char *path)
{
    static const struct {
        const char *part;
        sx_pjrt_kind kind;
    } rows[] = {
        {"tpu", SX_PJRT_TPU}, {"cuda", SX_PJRT_CUDA},    {"gpu", SX_PJRT_CUDA},
        {"cpu", SX_PJRT_CPU}, {"pjrt_ref", SX_PJRT_CPU}, /* ours: tests/pjrt_ref */
    };
    const char *file = strrchr(path, '/');
    file = file == NULL ? path : file + 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(file, rows[i].part) != NULL) {
            return rows[i].kind;
        }
    }
    return SX_PJRT_OTHER;
}

static sx_status check_version(const char *path, const sx_pjrt_api *api)
{
    bool fits = api != NULL && api->struct_size >= SX_PJRT_SLOTS_AT &&
                api->major == SX_PJRT_MAJOR && api->minor >= SX_PJRT_MIN_MINOR;
    if (fits) {
        return SX_OK;
    }
    if (api == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "%s: GetPjrtApi() returned nothing", path);
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "%s speaks PJRT %d.%d; this build speaks %d.%d up to %d.%d and newer minors",
                    path, api->major, api->minor, SX_PJRT_MAJOR, SX_PJRT_MIN_MINOR, SX_PJRT_MAJOR,
                    SX_PJRT_MINOR);
}

/* XLA reads it once, when it is loaded: without it every plugin greets on stderr. */
static void quiet(void)
{
    setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
}

/* Loads into this process. */
static sx_status open_library(const char *path, const sx_pjrt_api **out)
{
    quiet();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "loading the PJRT plugin %s: %s", path, dlerror());
    }
    const sx_pjrt_api *(*get)(void) = NULL;
    void *symbol = dlsym(library, "GetPjrtApi");
    if (symbol == NULL) {
        dlclose(library);
        return sx_error(SX_FAILED_PRECONDITION,
                        "%s is a library, but no PJRT plugin: it exports no GetPjrtApi", path);
    }
    memcpy(&get, &symbol, sizeof(get)); /* ISO C knows no cast from object to function pointer */
    const sx_pjrt_api *api = get();
    SX_TRY(check_version(path, api));
    sx_pjrt_plugin plugin = {.path = path, .api = api};
    sx_pjrt_object args = SX_PJRT_ARGS(object, .object = NULL); /* the header alone, padded */
    SX_TRY(sx_pjrt_call(&plugin, SX_PJRT_PLUGIN_INITIALIZE, &args), "%s", path);
    *out = api;
    return SX_OK;
}

/* --- Trying it in a child --------------------------------------------------------------------- */

/* In the child: load, write the error's code and message to fd 1, and leave without handlers. */
static void probe_child(const char *path, int out, int words)
{
    const struct rlimit no_core = {0, 0};
    const sx_pjrt_api *api = NULL;
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(words, STDERR_FILENO);
    dup2(words, STDOUT_FILENO);
    sx_status status = open_library(path, &api);
    char code = (char)sx_status_code(status);
    const char *message = sx_status_message(status);
    ssize_t done = write(out, &code, 1);
    done = done == 1 && code != 0 ? write(out, message, strlen(message)) : done;
    _exit(done < 0); /* child */
}

/* The end of what was written to it. */
typedef struct tail {
    int fd;
    char text[LAST_WORDS + 1];
    size_t size;
} tail;

/* Reads once; false at the end. */
static bool tail_read(tail *t)
{
    char chunk[LAST_WORDS];
    ssize_t n = read(t->fd, chunk, sizeof(chunk));
    if (n < 0) {
        return errno == EINTR;
    }
    size_t keep = t->size + (size_t)n > LAST_WORDS ? LAST_WORDS - (size_t)n : t->size;
    memmove(t->text, t->text + t->size - keep, keep);
    memcpy(t->text + keep, chunk, (size_t)n);
    t->size = keep + (size_t)n;
    t->text[t->size] = '\0';
    return n > 0;
}

/* Collects both pipes until they end or the time is over; false then. */
static bool listen_to(tail *result, tail *words, double seconds)
{
    double end = (double)sx_now_ns() * 1e-9 + seconds;
    struct pollfd fds[2] = {{.fd = result->fd, .events = POLLIN},
                            {.fd = words->fd, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        double left = end - (double)sx_now_ns() * 1e-9;
        if (left <= 0) {
            return false;
        }
        if (poll(fds, 2, (int)(left * 1e3) + 1) < 0 && errno != EINTR) {
            return false;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0 && !tail_read(i == 0 ? result : words)) {
                fds[i].fd = -1;
            }
            fds[i].revents = 0;
        }
    }
    return true;
}

/* The last of it, as much as a message can hold. */
static const char *last_of(const tail *t)
{
    return t->size > QUOTED ? t->text + t->size - QUOTED : t->text;
}

static sx_status judge(const char *path, bool in_time, int state, const tail *result,
                       const tail *words)
{
    if (!in_time) {
        return sx_error(SX_UNAVAILABLE, "the PJRT plugin %s did not load within %d s; it wrote: %s",
                        path, PROBE_SECONDS, last_of(words));
    }
    if (WIFSIGNALED(state)) {
        return sx_error(SX_UNAVAILABLE,
                        "the PJRT plugin %s ended the process that tried it (%s); it wrote: %s",
                        path, strsignal(WTERMSIG(state)), last_of(words));
    }
    if (result->size == 0) {
        return sx_error(SX_UNAVAILABLE,
                        "the PJRT plugin %s ended the process that tried it (exit code %d); it "
                        "wrote: %s",
                        path, WEXITSTATUS(state), last_of(words));
    }
    if (result->text[0] != 0) {
        return sx_error((sx_code)result->text[0], "%s", result->text + 1);
    }
    return SX_OK;
}

static sx_status probe(const char *path)
{
    int result_fds[2], word_fds[2];
    if (pipe(result_fds) != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no pipe: %s", path, strerror(errno));
    }
    if (pipe(word_fds) != 0) {
        close(result_fds[0]);
        close(result_fds[1]);
        return sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no pipe: %s", path, strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        probe_child(path, result_fds[1], word_fds[1]);
    }
    int error = errno, state = 0;
    close(result_fds[1]);
    close(word_fds[1]);
    tail result = {.fd = result_fds[0]}, words = {.fd = word_fds[0]};
    bool in_time = child > 0 && listen_to(&result, &words, PROBE_SECONDS);
    if (child > 0) {
        if (!in_time) {
            kill(child, SIGKILL);
        }
        while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
        }
    }
    close(result_fds[0]);
    close(word_fds[0]);
    return child > 0 ? judge(path, in_time, state, &result, &words)
                     : sx_error(SX_RESOURCE_EXHAUSTED, "trying %s: no process: %s", path,
                                strerror(error));
}

static sx_status load_new(const char *path, const sx_pjrt_plugin **out)
{
    const sx_pjrt_api *api = NULL;
    if (access(path, R_OK) != 0) {
        return sx_error(SX_NOT_FOUND, "the PJRT plugin %s: %s", path, strerror(errno));
    }
    SX_TRY(probe(path));
    sx_pjrt_plugin *plugin = sx_alloc(1, sizeof(*plugin));
    char *copy = sx_strdup(path);
    if (plugin == NULL || copy == NULL) {
        sx_free(plugin);
        sx_free(copy);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a PJRT plugin");
    }
    sx_status status = open_library(path, &api);
    if (status != SX_OK) {
        sx_free(plugin);
        sx_free(copy);
        return status;
    }
    *plugin =
        (sx_pjrt_plugin){.path = copy, .kind = kind_of(copy), .api = api, .next = loaded.plugins};
    loaded.plugins = plugin;
    *out = plugin;
    return SX_OK;
}

sx_status sx_pjrt_load(const char *path, const sx_pjrt_plugin **out)
{
    pthread_mutex_lock(&loaded.lock);
    const sx_pjrt_plugin *found = loaded.plugins;
    while (found != NULL && strcmp(found->path, path) != 0) {
        found = found->next;
    }
    sx_status status = found != NULL ? SX_OK : load_new(path, &found);
    pthread_mutex_unlock(&loaded.lock);
    if (status == SX_OK) {
        *out = found;
    }
    return status;
}
