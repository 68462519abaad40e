/* The models of a server by name; see manager.h.
 *
 * `lock` guards the set of models: requests read it, and it is written only while the new set is
 * put in place of the old one. `change` lets one thread at a time work on the set. */
#include "serve/manager.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"

struct model {
    sx_lifecycle *lifecycle;
    sx_model_label *labels; /* [label_count]; their texts are on the heap */
    size_t label_count;
};

/* All models of one configuration. */
struct set {
    struct model *models; /* [count] */
    size_t count;
    sx_map by_name; /* to the models */
};

/* How a model's requests are shared out. */
struct share {
    sx_traffic traffic; /* its texts are in the arena */
    atomic_uint_fast64_t turn, shadow_turn;
};

struct shares {
    sx_arena arena;
    sx_map by_name; /* to a struct share */
};

struct sx_manager {
    sx_manager_config config;
    sx_residency *residency; /* NULL: all models are loaded */
    pthread_mutex_t change;
    bool started;
    bool left_behind;       /* as sx_lifecycle_destroy() says */
    sx_lifecycle **closing; /* [closing_count]: left out of the set; their threads may still work */
    size_t closing_count;

    pthread_rwlock_t lock;
    struct set set;
    struct shares shares;
    atomic_bool has_shadows;
};

static void init_shares(struct shares *shares)
{
    sx_arena_init(&shares->arena, 0);
    sx_map_init(&shares->by_name);
}

static void free_shares(struct shares *shares)
{
    sx_map_deinit(&shares->by_name);
    sx_arena_deinit(&shares->arena);
}

sx_status sx_manager_create(const sx_manager_config *config, sx_manager **out_manager)
{
    sx_manager *manager = sx_alloc(1, sizeof(*manager));
    if (manager == NULL) {
        return sx_no_memory("for the models");
    }
    manager->config = *config;
    pthread_mutex_init(&manager->change, NULL);
    pthread_rwlock_init(&manager->lock, NULL);
    sx_map_init(&manager->set.by_name);
    init_shares(&manager->shares);
    sx_status status =
        config->max_loaded_memory_bytes > 0
            ? sx_residency_create(config->max_loaded_memory_bytes, &manager->residency)
            : SX_OK;
    if (status != SX_OK) {
        sx_manager_destroy(manager);
        return status;
    }
    *out_manager = manager;
    return SX_OK;
}

/* ---- A set ---- */

static void free_labels(sx_model_label *labels, size_t count)
{
    for (size_t i = 0; labels != NULL && i < count; i++) {
        sx_free((char *)(uintptr_t)labels[i].label);
    }
    sx_free(labels);
}

static void free_set(struct set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free_labels(set->models[i].labels, set->models[i].label_count);
    }
    sx_free(set->models);
    sx_map_deinit(&set->by_name);
}

static sx_status copy_labels(const sx_model_config *config, struct model *model)
{
    model->labels = sx_alloc(config->label_count + 1, sizeof(model->labels[0]));
    if (model->labels == NULL) {
        return sx_no_memory("for the labels of model %s", config->name);
    }
    for (size_t i = 0; i < config->label_count; i++) {
        char *label = sx_strdup(config->labels[i].label);
        if (label == NULL) {
            return sx_no_memory("for the labels of model %s", config->name);
        }
        model->labels[i] = (sx_model_label){label, config->labels[i].version};
        model->label_count = i + 1;
    }
    return SX_OK;
}

static const sx_model_label *find_label(const struct model *model, const char *label)
{
    for (size_t i = 0; model != NULL && i < model->label_count; i++) {
        if (strcmp(model->labels[i].label, label) == 0) {
            return &model->labels[i];
        }
    }
    return NULL;
}

static bool is_available(sx_lifecycle *lifecycle, int64_t version)
{
    sx_served *servable = NULL;
    sx_status status = sx_lifecycle_acquire(lifecycle, version, &servable);
    const bool available = status == SX_OK;
    if (available) {
        sx_served_release(servable);
    }
    sx_status_free(status);
    return available;
}

/* TensorFlow Serving's rule: a label may be given only to a version that is available; the option
 * allows it for labels that are not in use. Labels of models that are just being added wait. */
static sx_status check_labels(const sx_manager *manager, const struct model *before,
                              const sx_model_config *config)
{
    for (size_t i = 0; before != NULL && i < config->label_count; i++) {
        const sx_model_label *label = &config->labels[i], *old = find_label(before, label->label);
        const bool allowed = old != NULL ? old->version == label->version
                                         : manager->config.allow_labels_for_unavailable_models;
        if (!allowed && !is_available(before->lifecycle, label->version)) {
            return sx_error(SX_FAILED_PRECONDITION,
                            "Request to assign label to version %" PRId64
                            " of model %s, which is not currently available for inference "
                            "(version_labels \"%s\")",
                            label->version, config->name, label->label);
        }
    }
    return SX_OK;
}

static sx_status create_lifecycle(const sx_manager *manager, const sx_model_config *config,
                                  sx_lifecycle **out)
{
    sx_lifecycle_config lifecycle = manager->config.lifecycle;
    lifecycle.name = config->name;
    lifecycle.base_path = config->base_path;
    lifecycle.policy = config->policy;
    lifecycle.residency = manager->residency;
    SX_TRY(sx_lifecycle_create(&lifecycle, out));
    return manager->started ? sx_lifecycle_start(*out) : SX_OK;
}

/* The model of the new set that `config` describes: with the lifecycle of the old set, if that has
 * it, or a new one. */
static sx_status build_model(const sx_manager *manager, const sx_model_config *config,
                             struct set *next, struct model *model)
{
    const struct model *before =
        config->name != NULL ? sx_map_get(&manager->set.by_name, config->name) : NULL;
    if (config->name != NULL && sx_map_has(&next->by_name, config->name)) {
        return sx_error(SX_INVALID_ARGUMENT, "model %s is given twice", config->name);
    }
    if (before != NULL && (config->base_path == NULL || config->base_path[0] == '\0')) {
        return sx_error(SX_INVALID_ARGUMENT, "model %s has no base path", config->name);
    }
    SX_TRY(check_labels(manager, before, config));
    SX_TRY(copy_labels(config, model));
    if (before != NULL) {
        model->lifecycle = before->lifecycle;
    } else {
        SX_TRY(create_lifecycle(manager, config, &model->lifecycle));
    }
    return sx_map_put(&next->by_name, config->name, model);
}

static bool is_in(const struct set *set, const sx_lifecycle *lifecycle)
{
    const struct model *model = sx_map_get(&set->by_name, sx_lifecycle_name(lifecycle));
    return model != NULL && model->lifecycle == lifecycle;
}

static sx_status build_set(sx_manager *manager, const sx_model_config *models, size_t count,
                           struct set *next)
{
    next->models = sx_alloc(count + 1, sizeof(next->models[0]));
    if (next->models == NULL) {
        return sx_no_memory("for %zu models", count);
    }
    for (size_t i = 0; i < count; i++) {
        next->count = i + 1;
        sx_status status = build_model(manager, &models[i], next, &next->models[i]);
        if (models[i].where != NULL) {
            status = sx_status_annotate(status, __FILE__, __LINE__, "%s", models[i].where);
        }
        SX_TRY(status);
    }
    /* Last, since it changes what is there; only lack of memory can prevent it. */
    for (size_t i = 0; i < count; i++) {
        if (is_in(&manager->set, next->models[i].lifecycle)) {
            SX_TRY(sx_lifecycle_set_source(next->models[i].lifecycle, models[i].base_path,
                                           &models[i].policy));
        }
    }
    return SX_OK;
}

/* Destroys the lifecycles that have closed, or all of them. */
static void reap(sx_manager *manager, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < manager->closing_count; i++) {
        if (all || sx_lifecycle_closed(manager->closing[i])) {
            manager->left_behind |= !sx_lifecycle_destroy(manager->closing[i]);
        } else {
            manager->closing[kept++] = manager->closing[i];
        }
    }
    manager->closing_count = kept;
}

/* Puts the new set in place, and closes what it leaves out; `closing` has room for that. */
static void replace_set(sx_manager *manager, struct set next)
{
    pthread_rwlock_wrlock(&manager->lock);
    struct set before = manager->set;
    manager->set = next;
    pthread_rwlock_unlock(&manager->lock);
    for (size_t i = 0; i < before.count; i++) {
        sx_lifecycle *lifecycle = before.models[i].lifecycle;
        if (!is_in(&next, lifecycle)) {
            sx_log(SX_LOG_INFO, "Removing model: %s", sx_lifecycle_name(lifecycle));
            sx_lifecycle_close(lifecycle);
            manager->closing[manager->closing_count++] = lifecycle;
        }
    }
    for (size_t i = 0; i < next.count; i++) {
        if (!is_in(&before, next.models[i].lifecycle)) {
            sx_log(SX_LOG_INFO, "(Re-)adding model: %s",
                   sx_lifecycle_name(next.models[i].lifecycle));
        }
    }
    free_set(&before);
}

static void give_up_set(sx_manager *manager, struct set *next)
{
    for (size_t i = 0; i < next->count; i++) {
        sx_lifecycle *lifecycle = next->models[i].lifecycle;
        if (lifecycle != NULL && !is_in(&manager->set, lifecycle)) {
            manager->left_behind |= !sx_lifecycle_destroy(lifecycle);
        }
    }
    free_set(next);
}

sx_status sx_manager_set_models(sx_manager *manager, const sx_model_config *models, size_t count)
{
    struct set next = {0};
    sx_map_init(&next.by_name);
    pthread_mutex_lock(&manager->change);
    reap(manager, false);
    sx_status status = build_set(manager, models, count, &next);
    if (status == SX_OK) {
        const size_t room = manager->closing_count + manager->set.count + 1;
        sx_lifecycle **closing = sx_realloc(manager->closing, room, sizeof(closing[0]));
        status = closing != NULL ? SX_OK : sx_no_memory("for %zu models", room);
        manager->closing = closing != NULL ? closing : manager->closing;
    }
    if (status == SX_OK && manager->config.on_models != NULL) {
        status = manager->config.on_models(manager->config.user, models, count);
    }
    if (status == SX_OK) {
        replace_set(manager, next);
    } else {
        give_up_set(manager, &next);
    }
    pthread_mutex_unlock(&manager->change);
    return status;
}

static sx_status add_share(struct shares *shares, const sx_traffic *row)
{
    struct share *share = sx_arena_new(&shares->arena, struct share);
    const char *sticky = sx_arena_strdup(&shares->arena, row->sticky_header);
    if (share == NULL || sticky == NULL) {
        return sx_no_memory("for the traffic of model %s", row->model);
    }
    share->traffic = *row;
    share->traffic.sticky_header = sticky;
    share->traffic.model = NULL; /* the map's key */
    return sx_map_put(&shares->by_name, row->model, share);
}

sx_status sx_manager_set_traffic(sx_manager *manager, const sx_traffic *rows, size_t count)
{
    struct shares next;
    sx_status status = SX_OK;
    bool shadows = false;
    init_shares(&next);
    for (size_t i = 0; i < count && status == SX_OK; i++) {
        status = add_share(&next, &rows[i]);
        shadows |= rows[i].shadow_share > 0;
    }
    if (status == SX_OK) {
        pthread_rwlock_wrlock(&manager->lock);
        const struct shares before = manager->shares;
        manager->shares = next;
        next = before;
        pthread_rwlock_unlock(&manager->lock);
        atomic_store(&manager->has_shadows, shadows);
    }
    free_shares(&next);
    return status;
}

sx_status sx_manager_start(sx_manager *manager)
{
    sx_status status = SX_OK;
    pthread_mutex_lock(&manager->change);
    for (size_t i = 0; i < manager->set.count && status == SX_OK; i++) {
        status = sx_lifecycle_start(manager->set.models[i].lifecycle);
    }
    manager->started = true;
    pthread_mutex_unlock(&manager->change);
    return status;
}

bool sx_manager_destroy(sx_manager *manager)
{
    if (manager == NULL) {
        return true;
    }
    for (size_t i = 0; i < manager->set.count; i++) { /* all at once, then wait for each */
        sx_lifecycle_close(manager->set.models[i].lifecycle);
    }
    for (size_t i = 0; i < manager->set.count; i++) {
        manager->left_behind |= !sx_lifecycle_destroy(manager->set.models[i].lifecycle);
    }
    reap(manager, true);
    const bool all_ended = !manager->left_behind;
    free_set(&manager->set);
    free_shares(&manager->shares);
    sx_residency_destroy(manager->residency);
    sx_free(manager->closing);
    pthread_rwlock_destroy(&manager->lock);
    pthread_mutex_destroy(&manager->change);
    sx_free(manager);
    return all_ended;
}

/* ---- Requests ---- */

/* With the lock held: the canary, or another version. */
static sx_version_choice share_out(struct share *share, const sx_model_spec *spec)
{
    const sx_traffic *traffic = &share->traffic;
    const bool sticky = traffic->sticky_header[0] != '\0' && spec->head != NULL;
    const sx_http_text value =
        sticky ? sx_http_header_get(spec->head, traffic->sticky_header) : (sx_http_text){NULL, 0};
    const bool canary =
        value.data != NULL
            ? sx_share_has_value(traffic->canary_share, spec->name, value)
            : sx_share_has_turn(traffic->canary_share,
                                atomic_fetch_add_explicit(&share->turn, 1, memory_order_relaxed));
    return (sx_version_choice){canary ? SX_THE_CANARY : SX_NO_CANARY, traffic->canary_version};
}

/* With the lock held. */
static sx_status acquire(const sx_manager *manager, const sx_model_spec *spec,
                         sx_served **out_servable, sx_awaited *out_awaited)
{
    const struct model *model = sx_map_get(&manager->set.by_name, spec->name);
    int64_t version = spec->version;
    if (spec->label != NULL && spec->label[0] != '\0') {
        const sx_model_label *label = find_label(model, spec->label);
        if (label == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "Unrecognized servable version label: %s",
                            spec->label);
        }
        version = label->version;
    }
    if (model == NULL && version == SX_LATEST_VERSION) {
        return sx_error(SX_NOT_FOUND, "Servable not found for request: Latest(%s)", spec->name);
    }
    if (model == NULL) {
        return sx_error(SX_NOT_FOUND, "Servable not found for request: Specific(%s, %" PRId64 ")",
                        spec->name, version);
    }
    struct share *share =
        version == SX_LATEST_VERSION ? sx_map_get(&manager->shares.by_name, spec->name) : NULL;
    const sx_version_choice choice = share != NULL && share->traffic.canary_share > 0
                                         ? share_out(share, spec)
                                         : (sx_version_choice){SX_THIS_VERSION, version};
    return sx_lifecycle_choose(model->lifecycle, choice, out_servable, out_awaited);
}

sx_status sx_manager_acquire_or_await(sx_manager *manager, const sx_model_spec *spec,
                                      sx_served **out_servable, sx_awaited *out_awaited)
{
    if (spec->name == NULL || spec->name[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "ModelSpec has no name specified.");
    }
    pthread_rwlock_rdlock(&manager->lock);
    sx_status status = acquire(manager, spec, out_servable, out_awaited);
    pthread_rwlock_unlock(&manager->lock);
    return status;
}

sx_status sx_manager_acquire(sx_manager *manager, const sx_model_spec *spec,
                             sx_served **out_servable)
{
    sx_status status = sx_manager_acquire_or_await(manager, spec, out_servable, NULL);
    if (status == SX_OK && spec->signature != NULL) {
        size_t count = 0;
        const sx_serve_signature *signatures = sx_served_signatures(*out_servable, &count);
        const sx_bytes name = {spec->signature, strlen(spec->signature)};
        if (sx_serve_find_signature(signatures, count, name) == NULL) {
            sx_served_release(*out_servable);
            status = sx_serve_no_signature(name);
        }
    }
    return status;
}

sx_served *sx_manager_acquire_shadow(sx_manager *manager, const sx_served *servable,
                                     double *out_tolerance)
{
    const char *name = sx_served_name(servable);
    sx_served *shadow = NULL;
    if (!atomic_load_explicit(&manager->has_shadows, memory_order_relaxed)) {
        return NULL;
    }
    pthread_rwlock_rdlock(&manager->lock);
    const struct model *model = sx_map_get(&manager->set.by_name, name);
    struct share *share = sx_map_get(&manager->shares.by_name, name);
    if (model != NULL && share != NULL &&
        share->traffic.shadow_version != sx_served_version(servable) &&
        sx_share_has_turn(
            share->traffic.shadow_share,
            atomic_fetch_add_explicit(&share->shadow_turn, 1, memory_order_relaxed))) {
        *out_tolerance = share->traffic.shadow_tolerance;
        sx_status_free(
            sx_lifecycle_acquire(model->lifecycle, share->traffic.shadow_version, &shadow));
    }
    pthread_rwlock_unlock(&manager->lock);
    return shadow;
}

bool sx_manager_has(sx_manager *manager, const char *name)
{
    pthread_rwlock_rdlock(&manager->lock);
    const bool has = sx_map_get(&manager->set.by_name, name) != NULL;
    pthread_rwlock_unlock(&manager->lock);
    return has;
}

void sx_manager_count(sx_manager *manager, const char *name, sx_code code)
{
    pthread_rwlock_rdlock(&manager->lock);
    const struct model *model = sx_map_get(&manager->set.by_name, name);
    if (model != NULL) {
        sx_metrics_count(sx_lifecycle_metrics(model->lifecycle), code);
    }
    pthread_rwlock_unlock(&manager->lock);
}

/* ---- Status ---- */

/* Keeps only the row of `version`. */
static sx_status pick_version(const char *model, int64_t version, sx_version_status **rows,
                              size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if ((*rows)[i].version == version) {
            *rows += i;
            *count = 1;
            return SX_OK;
        }
    }
    return sx_error(SX_NOT_FOUND, "Could not find version %" PRId64 " of model %s", version, model);
}

sx_status sx_manager_status(sx_manager *manager, const char *name, int64_t version, sx_arena *arena,
                            sx_version_status **out_rows, size_t *out_count)
{
    sx_status status = SX_OK;
    pthread_rwlock_rdlock(&manager->lock);
    const struct model *model = sx_map_get(&manager->set.by_name, name);
    if (model != NULL) {
        status = sx_lifecycle_status(model->lifecycle, arena, out_rows, out_count);
    }
    pthread_rwlock_unlock(&manager->lock);
    if (model == NULL || sx_status_code(status) == SX_NOT_FOUND) { /* its message has the path */
        sx_status_free(status);
        return sx_error(SX_NOT_FOUND, "Could not find any versions of model %s", name);
    }
    SX_TRY(status);
    return version == SX_LATEST_VERSION ? SX_OK : pick_version(name, version, out_rows, out_count);
}

sx_status sx_manager_names(sx_manager *manager, sx_arena *arena, const char ***out_names,
                           size_t *out_count)
{
    pthread_rwlock_rdlock(&manager->lock);
    const size_t count = manager->set.count;
    const char **names = sx_arena_array(arena, count + 1, const char *);
    bool complete = names != NULL;
    for (size_t i = 0; complete && i < count; i++) {
        names[i] = sx_arena_strdup(arena, sx_lifecycle_name(manager->set.models[i].lifecycle));
        complete = names[i] != NULL;
    }
    pthread_rwlock_unlock(&manager->lock);
    *out_names = names;
    *out_count = count;
    return complete ? SX_OK : sx_no_memory("for the names of %zu models", count);
}

sx_status sx_manager_labels(sx_manager *manager, const char *name, sx_arena *arena,
                            sx_model_label **out_labels, size_t *out_count)
{
    pthread_rwlock_rdlock(&manager->lock);
    const struct model *model = sx_map_get(&manager->set.by_name, name);
    const size_t count = model != NULL ? model->label_count : 0;
    sx_model_label *labels = sx_arena_array(arena, count + 1, sx_model_label);
    bool complete = labels != NULL;
    for (size_t i = 0; complete && i < count; i++) {
        labels[i].label = sx_arena_strdup(arena, model->labels[i].label);
        labels[i].version = model->labels[i].version;
        complete = labels[i].label != NULL;
    }
    pthread_rwlock_unlock(&manager->lock);
    *out_labels = labels;
    *out_count = count;
    return complete ? SX_OK : sx_no_memory("for %zu labels", count);
}

bool sx_manager_ready(sx_manager *manager)
{
    bool ready = true;
    pthread_rwlock_rdlock(&manager->lock);
    for (size_t i = 0; i < manager->set.count; i++) {
        ready = ready && sx_lifecycle_ready(manager->set.models[i].lifecycle);
    }
    pthread_rwlock_unlock(&manager->lock);
    return ready;
}

bool sx_manager_wait_ready(sx_manager *manager, int timeout_ms)
{
    const int64_t deadline_ns = sx_now_ns() + (int64_t)timeout_ms * 1000000;
    bool ready = true;
    pthread_mutex_lock(&manager->change);
    for (size_t i = 0; i < manager->set.count; i++) {
        const int64_t left_ms = (deadline_ns - sx_now_ns()) / 1000000;
        ready &= sx_lifecycle_wait_ready(manager->set.models[i].lifecycle,
                                         (int)SX_MAX(left_ms, (int64_t)0));
    }
    pthread_mutex_unlock(&manager->change);
    return ready;
}

bool sx_manager_is_settled(sx_manager *manager)
{
    bool settled = true;
    pthread_rwlock_rdlock(&manager->lock);
    for (size_t i = 0; i < manager->set.count; i++) {
        settled &= sx_lifecycle_is_settled(manager->set.models[i].lifecycle);
    }
    pthread_rwlock_unlock(&manager->lock);
    return settled;
}

/* Why none of a model's versions is served. */
static sx_status model_error(sx_lifecycle *model)
{
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    sx_status status = sx_lifecycle_status(model, &arena, &rows, &count);
    for (size_t i = 0; i < count && status == SX_OK; i++) {
        if (rows[i].code != SX_CODE_OK) {
            status = sx_error(rows[i].code, "cannot load version %" PRId64 ": %s", rows[i].version,
                              rows[i].message);
        }
    }
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_manager_error(sx_manager *manager)
{
    sx_status status = SX_OK;
    pthread_rwlock_rdlock(&manager->lock);
    for (size_t i = 0; i < manager->set.count && status == SX_OK; i++) {
        sx_lifecycle *model = manager->set.models[i].lifecycle;
        status = sx_lifecycle_ready(model) ? SX_OK : model_error(model);
    }
    pthread_rwlock_unlock(&manager->lock);
    return status;
}

sx_status sx_manager_print_metrics(sx_manager *manager, sx_buf *out)
{
    pthread_rwlock_rdlock(&manager->lock);
    const size_t count = manager->set.count;
    struct sx_metrics_row *rows = sx_alloc(count + 1, sizeof(*rows));
    for (size_t i = 0; rows != NULL && i < count; i++) {
        sx_lifecycle *model = manager->set.models[i].lifecycle;
        rows[i] = (struct sx_metrics_row){sx_lifecycle_name(model), sx_lifecycle_metrics(model)};
    }
    if (rows != NULL) {
        sx_metrics_print(rows, count, out);
    }
    pthread_rwlock_unlock(&manager->lock);
    if (manager->residency != NULL) {
        sx_residency_print_metrics(manager->residency, out);
    }
    const sx_status status = rows != NULL ? SX_OK : sx_no_memory("for %zu models", count);
    sx_free(rows);
    return status;
}
