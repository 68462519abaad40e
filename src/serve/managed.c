/* Managed models; see managed.h. */
#include "serve/managed.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/path.h"
#include "savedmodel/names.h"
#include "savedmodel/versions.h"

enum { MAX_NAME = 128 };

struct managed_model {
    const char *name;
    int64_t default_version; /* SX_LATEST_VERSION: none */
};

struct sx_managed {
    char *dir, *storage; /* absolute; the storage may be NULL */
    sx_manager *manager;
    pthread_mutex_t change; /* one at a time */

    pthread_mutex_t mutex; /* guards the fields below */
    sx_arena arena;
    struct managed_model *models; /* [count] */
    size_t count;
};

static bool is_name(const char *name)
{
    const size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_");
    const char first = name[0] | 0x20;
    return first >= 'a' && first <= 'z' && name[size] == '\0' && size <= MAX_NAME;
}

static sx_status file_error(const char *what, const char *path)
{
    const int error = errno;
    return sx_error(error == EEXIST   ? SX_ALREADY_EXISTS
                    : error == ENOENT ? SX_NOT_FOUND
                                      : SX_INTERNAL,
                    "%s %s: %s", what, path, strerror(error));
}

/* ---- The models of the directory ---- */

static int64_t read_default(const char *dir, const char *model)
{
    char *path = NULL, target[SX_VERSION_NAME];
    sx_status status = sx_path_format(&path, "%s/%s/default", dir, model);
    const ssize_t size = status == SX_OK ? readlink(path, target, sizeof(target) - 1) : -1;
    sx_status_free(status);
    sx_free(path);
    target[SX_MAX(size, (ssize_t)0)] = '\0';
    const int64_t version = sx_version_number(target);
    return version >= 0 ? version : SX_LATEST_VERSION;
}

/* Whether a path without links lies in the storage. */
static bool is_in_storage(const sx_managed *managed, const char *path)
{
    const size_t size = strcmp(managed->storage, "/") != 0 ? strlen(managed->storage) : 0;
    return strncmp(path, managed->storage, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* The versions of a model that may be served. A link that led into the storage when it was created
 * need not do so any more: what it leads to may have been replaced by a link elsewhere. */
static sx_status find_versions(const sx_managed *managed, const sx_model_config *model,
                               sx_arena *arena, sx_version_policy *out)
{
    sx_version *all = NULL;
    size_t count = 0;
    SX_TRY(sx_versions_list(model->base_path, NULL, arena, &all, &count));
    int64_t *specific = sx_arena_array(arena, count + 1, int64_t);
    if (specific == NULL) {
        return sx_no_memory("for the managed models");
    }
    *out = (sx_version_policy){.kind = SX_VERSIONS_ALL, .specific = specific};
    for (size_t i = 0; i < count; i++) {
        char link[PATH_MAX], path[PATH_MAX], first;
        const int size = snprintf(link, sizeof(link), "%s/%s", model->base_path, all[i].name);
        const bool is_link = (size_t)size < sizeof(link) && readlink(link, &first, 1) >= 0;
        if (managed->storage != NULL && is_link && realpath(link, path) != NULL &&
            !is_in_storage(managed, path)) {
            sx_log(SX_LOG_WARN,
                   "model %s: version %" PRId64
                   " is not served: it leads out of the storage, to %s",
                   model->name, all[i].number, path);
            out->kind = SX_VERSIONS_SPECIFIC;
        } else {
            specific[out->specific_count++] = all[i].number;
        }
    }
    return SX_OK;
}

/* Serves what is in the directory now. With `change` held. */
static sx_status apply(sx_managed *managed)
{
    sx_paths names = {0};
    sx_arena arena;
    SX_TRY(sx_dir_list(managed->dir, &names));
    sx_arena_init(&arena, 0);
    struct managed_model *models = sx_arena_array(&arena, names.count + 1, struct managed_model);
    sx_model_config *configs = sx_arena_array(&arena, names.count + 1, sx_model_config);
    size_t count = 0, served = 0;
    bool complete = models != NULL && configs != NULL;
    sx_status status = SX_OK;
    for (size_t i = 0; complete && status == SX_OK && i < names.count; i++) {
        if (!is_name(names.items[i])) {
            continue;
        }
        models[count].name = sx_arena_strdup(&arena, names.items[i]);
        models[count].default_version = read_default(managed->dir, names.items[i]);
        sx_model_config *config = &configs[served];
        *config = (sx_model_config){
            .name = models[count].name,
            .base_path = sx_arena_printf(&arena, "%s/%s", managed->dir, names.items[i])};
        complete = models[count].name != NULL && config->base_path != NULL;
        status = complete ? find_versions(managed, config, &arena, &config->policy) : SX_OK;
        served += config->policy.kind == SX_VERSIONS_ALL || config->policy.specific_count > 0;
        count++;
    }
    sx_paths_deinit(&names);
    if (status == SX_OK) {
        status = complete ? sx_manager_set_models(managed->manager, configs, served)
                          : sx_no_memory("for the managed models");
    }
    if (status == SX_OK) {
        pthread_mutex_lock(&managed->mutex);
        const sx_arena before = managed->arena;
        managed->arena = arena;
        managed->models = models;
        managed->count = count;
        pthread_mutex_unlock(&managed->mutex);
        arena = before;
    }
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_managed_create(const char *dir, const char *storage, sx_manager *manager,
                            sx_managed **out_managed)
{
    SX_TRY(sx_dir_create(dir));
    sx_managed *managed = sx_alloc(1, sizeof(*managed));
    if (managed == NULL) {
        return sx_no_memory("for the managed models");
    }
    char path[PATH_MAX];
    managed->manager = manager;
    pthread_mutex_init(&managed->change, NULL);
    pthread_mutex_init(&managed->mutex, NULL);
    sx_arena_init(&managed->arena, 0);
    sx_status status = SX_OK;
    if (realpath(dir, path) == NULL) {
        status = file_error("managed models:", dir);
    } else if ((managed->dir = sx_strdup(path)) == NULL) {
        status = sx_no_memory("for the managed models");
    }
    if (status == SX_OK && storage != NULL) {
        if (realpath(storage, path) == NULL) {
            status = file_error("storage of managed models:", storage);
        } else if ((managed->storage = sx_strdup(path)) == NULL) {
            status = sx_no_memory("for the managed models");
        }
    }
    status = status == SX_OK ? apply(managed) : status;
    if (status != SX_OK) {
        sx_managed_destroy(managed);
        return status;
    }
    *out_managed = managed;
    return SX_OK;
}

void sx_managed_destroy(sx_managed *managed)
{
    if (managed == NULL) {
        return;
    }
    sx_arena_deinit(&managed->arena);
    pthread_mutex_destroy(&managed->mutex);
    pthread_mutex_destroy(&managed->change);
    sx_free(managed->dir);
    sx_free(managed->storage);
    sx_free(managed);
}

int64_t sx_managed_default(sx_managed *managed, const char *model)
{
    int64_t version = SX_LATEST_VERSION;
    pthread_mutex_lock(&managed->mutex);
    for (size_t i = 0; i < managed->count; i++) {
        if (strcmp(managed->models[i].name, model) == 0) {
            version = managed->models[i].default_version;
        }
    }
    pthread_mutex_unlock(&managed->mutex);
    return version;
}

/* ---- Changes ---- */

/* The directory of a model that is there, on the heap. */
static sx_status find_model(const sx_managed *managed, const char *name, char **out_dir)
{
    *out_dir = NULL;
    if (!is_name(name)) {
        return sx_error(SX_NOT_FOUND, "Could not find model %s", name);
    }
    SX_TRY(sx_path_join(managed->dir, name, out_dir));
    if (!sx_path_is_dir(*out_dir)) {
        sx_free(*out_dir);
        *out_dir = NULL;
        return sx_error(SX_NOT_FOUND, "Could not find model %s", name);
    }
    return SX_OK;
}

static bool has_version(const char *dir, int64_t version)
{
    char path[PATH_MAX], first;
    snprintf(path, sizeof(path), "%s/%" PRId64, dir, version);
    return readlink(path, &first, 1) >= 0;
}

static sx_status count_versions(const char *dir, size_t *out_count)
{
    sx_arena arena;
    sx_version *versions = NULL;
    sx_arena_init(&arena, 0);
    sx_status status = sx_versions_list(dir, NULL, &arena, &versions, out_count);
    sx_arena_deinit(&arena);
    return status;
}

static sx_status create_model(sx_managed *managed, const char *name)
{
    char *dir = NULL;
    if (!is_name(name)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "name: \"%.*s\"; expected letters, digits and _, and a letter first",
                        (int)MAX_NAME, name);
    }
    SX_TRY(sx_path_join(managed->dir, name, &dir));
    const bool exists = sx_path_exists(dir);
    sx_status status =
        exists ? sx_error(SX_ALREADY_EXISTS, "model %s exists already", name) : sx_dir_create(dir);
    sx_free(dir);
    return status;
}

static sx_status delete_model(sx_managed *managed, const char *name)
{
    char *dir = NULL;
    size_t count = 0;
    SX_TRY(find_model(managed, name, &dir));
    sx_status status = count_versions(dir, &count);
    if (status == SX_OK && count > 0) {
        status = sx_error(SX_FAILED_PRECONDITION, "model %s has versions; delete them first", name);
    }
    if (status == SX_OK) {
        status = sx_dir_remove(dir);
    }
    sx_free(dir);
    return status;
}

/* The SavedModel that `uri` names, in the storage. */
static sx_status find_source(const sx_managed *managed, const char *uri, char path[PATH_MAX])
{
    static const char scheme[] = "file://";
    const bool has_scheme = strncmp(uri, scheme, sizeof(scheme) - 1) == 0;
    const char *named = has_scheme ? uri + sizeof(scheme) - 1 : uri;
    if (named[0] != '/') {
        return sx_error(SX_INVALID_ARGUMENT,
                        "deploymentUri: \"%.200s\"; expected a path, or file:// and a path", uri);
    }
    if (managed->storage == NULL) {
        return sx_error(SX_PERMISSION_DENIED, "no storage is open to new versions");
    }
    /* Whether something is there is nobody's business outside of the storage. */
    if (realpath(named, path) == NULL || !is_in_storage(managed, path)) {
        return sx_error(SX_PERMISSION_DENIED, "deploymentUri: \"%.200s\" is not in the storage",
                        uri);
    }
    char *file = NULL;
    SX_TRY(sx_path_join(path, SX_SAVED_MODEL_FILE, &file));
    const bool is_model = sx_path_exists(file);
    sx_free(file);
    return is_model ? SX_OK
                    : sx_error(SX_NOT_FOUND, "deploymentUri: \"%.200s\" has no %s", uri,
                               SX_SAVED_MODEL_FILE);
}

/* Lets dir/default be `version`, in one step. */
static sx_status write_default(const char *dir, int64_t version)
{
    char beside[PATH_MAX], path[PATH_MAX], target[SX_VERSION_NAME];
    snprintf(beside, sizeof(beside), "%s/.default", dir);
    snprintf(path, sizeof(path), "%s/default", dir);
    snprintf(target, sizeof(target), "%" PRId64, version);
    unlink(beside);
    if (symlink(target, beside) != 0 || rename(beside, path) != 0) {
        return file_error("writing", "the default version");
    }
    return SX_OK;
}

static sx_status create_version(sx_managed *managed, const char *model, int64_t version,
                                const char *uri)
{
    char *dir = NULL, source[PATH_MAX], link[PATH_MAX];
    SX_TRY(find_model(managed, model, &dir));
    sx_status status = find_source(managed, uri, source);
    if (status == SX_OK && has_version(dir, version)) {
        status = sx_error(SX_ALREADY_EXISTS, "version v%" PRId64 " of model %s exists already",
                          version, model);
    }
    if (status == SX_OK && read_default(managed->dir, model) == SX_LATEST_VERSION) {
        status = write_default(dir, version);
    }
    if (status == SX_OK) {
        const int size = snprintf(link, sizeof(link), "%s/%" PRId64, dir, version);
        status = (size_t)size < sizeof(link) && symlink(source, link) == 0
                     ? SX_OK
                     : file_error("creating", "the version");
    }
    sx_free(dir);
    return status;
}

static sx_status delete_version(sx_managed *managed, const char *model, int64_t version)
{
    char *dir = NULL, path[PATH_MAX];
    size_t count = 0;
    SX_TRY(find_model(managed, model, &dir));
    sx_status status = count_versions(dir, &count);
    const bool is_default = read_default(managed->dir, model) == version;
    if (status == SX_OK && !has_version(dir, version)) {
        status = sx_error(SX_NOT_FOUND, "Could not find version v%" PRId64 " of model %s", version,
                          model);
    } else if (status == SX_OK && is_default && count > 1) {
        status = sx_error(SX_FAILED_PRECONDITION,
                          "version v%" PRId64 " is the default of model %s; set another one first",
                          version, model);
    }
    if (status == SX_OK) {
        snprintf(path, sizeof(path), "%s/%" PRId64, dir, version);
        status = unlink(path) == 0 ? SX_OK : file_error("deleting", "the version");
    }
    if (status == SX_OK && is_default) {
        snprintf(path, sizeof(path), "%s/default", dir);
        unlink(path);
    }
    sx_free(dir);
    return status;
}

static sx_status set_default(sx_managed *managed, const char *model, int64_t version)
{
    char *dir = NULL;
    SX_TRY(find_model(managed, model, &dir));
    sx_status status =
        has_version(dir, version)
            ? write_default(dir, version)
            : sx_error(SX_NOT_FOUND, "Could not find version v%" PRId64 " of model %s", version,
                       model);
    sx_free(dir);
    return status;
}

/* ---- One change at a time ---- */

static sx_status end_change(sx_managed *managed, sx_status status)
{
    if (status == SX_OK) {
        status = apply(managed);
    }
    pthread_mutex_unlock(&managed->change);
    return status;
}

void sx_managed_reload(sx_managed *managed)
{
    pthread_mutex_lock(&managed->change);
    sx_status status = end_change(managed, SX_OK);
    if (status != SX_OK) {
        sx_log(SX_LOG_ERROR, "managed models: %s", sx_status_message(status));
        sx_status_free(status);
    }
}

sx_status sx_managed_create_model(sx_managed *managed, const char *name)
{
    pthread_mutex_lock(&managed->change);
    return end_change(managed, create_model(managed, name));
}

sx_status sx_managed_delete_model(sx_managed *managed, const char *name)
{
    pthread_mutex_lock(&managed->change);
    return end_change(managed, delete_model(managed, name));
}

sx_status sx_managed_create_version(sx_managed *managed, const char *model, int64_t version,
                                    const char *uri)
{
    pthread_mutex_lock(&managed->change);
    return end_change(managed, create_version(managed, model, version, uri));
}

sx_status sx_managed_delete_version(sx_managed *managed, const char *model, int64_t version)
{
    pthread_mutex_lock(&managed->change);
    return end_change(managed, delete_version(managed, model, version));
}

sx_status sx_managed_set_default(sx_managed *managed, const char *model, int64_t version)
{
    pthread_mutex_lock(&managed->change);
    return end_change(managed, set_default(managed, model, version));
}
