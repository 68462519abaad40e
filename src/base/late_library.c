/* See late_library.h. */
#include "base/late_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static sx_status missing(const sx_late_library *library)
{
    return sx_error(SX_FAILED_PRECONDITION, "%s; %s is part of %s", dlerror(), library->soname,
                    library->origin);
}

static sx_status load(const sx_late_library *library)
{
    void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return missing(library);
    }
    for (int i = 0; i < library->function_count; i++) {
        const sx_late_function *function = &library->functions[i];
        void *symbol = dlsym(handle, function->name);
        if (symbol == NULL) {
            return missing(library);
        }
        memcpy(function->to, &symbol, sizeof(symbol));
    }
    return library->start != NULL ? library->start() : SX_OK;
}

sx_status sx_late_library_load(sx_late_library *library)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    sx_status status = SX_OK;
    if (atomic_load_explicit(&library->loaded, memory_order_acquire)) {
        return SX_OK;
    }
    pthread_mutex_lock(&mutex);
    if (!atomic_load_explicit(&library->loaded, memory_order_relaxed)) {
        status = load(library);
        atomic_store_explicit(&library->loaded, status == SX_OK, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    return status;
}
