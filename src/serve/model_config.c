/* Reads text configurations; see model_config.h. */
#include "serve/model_config.h"

#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "proto/guard.h"
#include "proto/model_server_config.pb-c.h"
#include "proto/monitoring_config.pb-c.h"
#include "proto/text_format.h"

enum { MAX_CONFIG_BYTES = 16 << 20 };

typedef Tensorflow__Serving__ModelConfig config_message;
typedef Tensorflow__Serving__ServableVersionPolicy policy_message;

/* ---- One model ---- */

static sx_status check_platform(const config_message *m)
{
    if (m->model_type != TENSORFLOW__SERVING__MODEL_TYPE__MODEL_TYPE_UNSPECIFIED &&
        m->model_platform[0] != '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "model_type: illegal setting both "
                                             "model_type(deprecated) and model_platform");
    }
    if (m->model_type == TENSORFLOW__SERVING__MODEL_TYPE__OTHER) {
        return sx_error(SX_INVALID_ARGUMENT, "model_type: expected TENSORFLOW");
    }
    if (m->model_platform[0] != '\0' && strcmp(m->model_platform, "tensorflow") != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "model_platform: \"%s\", expected \"tensorflow\"",
                        m->model_platform);
    }
    return SX_OK;
}

static sx_status read_policy(const policy_message *m, sx_arena *arena, sx_version_policy *out)
{
    *out = (sx_version_policy){0};
    if (m == NULL) {
        return SX_OK;
    }
    switch (m->policy_choice_case) {
    case TENSORFLOW__SERVING__SERVABLE_VERSION_POLICY__POLICY_CHOICE_LATEST:
        out->latest = (int)SX_MIN(m->latest->num_versions, (uint32_t)INT_MAX);
        return SX_OK;
    case TENSORFLOW__SERVING__SERVABLE_VERSION_POLICY__POLICY_CHOICE_ALL:
        out->kind = SX_VERSIONS_ALL;
        return SX_OK;
    case TENSORFLOW__SERVING__SERVABLE_VERSION_POLICY__POLICY_CHOICE_SPECIFIC:
        break;
    default:
        return SX_OK;
    }
    const size_t count = m->specific->n_versions;
    int64_t *versions = sx_arena_array(arena, count + 1, int64_t);
    if (versions == NULL) {
        return sx_no_memory("for a list of %zu versions", count);
    }
    for (size_t i = 0; i < count; i++) {
        versions[i] = m->specific->versions[i];
        if (versions[i] < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "model_version_policy.specific.versions: %lld is no version",
                            (long long)versions[i]);
        }
    }
    if (count == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "model_version_policy.specific.versions: the list is empty");
    }
    out->kind = SX_VERSIONS_SPECIFIC;
    out->specific = versions;
    out->specific_count = count;
    return SX_OK;
}

static sx_status read_labels(const config_message *m, sx_arena *arena, sx_model_config *out)
{
    const size_t count = m->n_version_labels;
    sx_model_label *labels = sx_arena_array(arena, count + 1, sx_model_label);
    if (labels == NULL) {
        return sx_no_memory("for %zu labels", count);
    }
    for (size_t i = 0; i < count; i++) {
        labels[i].label = sx_arena_strdup(arena, m->version_labels[i]->key);
        labels[i].version = m->version_labels[i]->value;
        if (labels[i].label == NULL) {
            return sx_no_memory("for %zu labels", count);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(labels[k].label, labels[i].label) == 0) {
                return sx_error(SX_INVALID_ARGUMENT, "version_labels: \"%s\" is given twice",
                                labels[i].label);
            }
        }
    }
    out->labels = labels;
    out->label_count = count;
    return SX_OK;
}

/* log_collector_config's type names an implementation of the server's, and there is one. */
static sx_status read_logging(const Tensorflow__Serving__LoggingConfig *m, sx_arena *arena,
                              sx_model_config *out)
{
    const double rate = m->sampling_config != NULL ? m->sampling_config->sampling_rate : 0;
    const char *prefix =
        m->log_collector_config != NULL ? m->log_collector_config->filename_prefix : "";
    if (!(rate >= 0 && rate <= 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "logging_config.sampling_config.sampling_rate is %g, expected 0 to 1",
                        rate);
    }
    if (rate > 0 && prefix[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT,
                        "logging_config.log_collector_config.filename_prefix: the log needs one");
    }
    out->log_sampling_rate = rate;
    out->log_prefix = sx_arena_strdup(arena, rate > 0 ? prefix : "");
    return out->log_prefix != NULL ? SX_OK : sx_no_memory("for a log");
}

static sx_status read_model(const config_message *m, sx_arena *arena, sx_model_config *out)
{
    if (m->name[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "name: a model needs one");
    }
    if (m->base_path[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "base_path: model %s needs one", m->name);
    }
    out->name = sx_arena_strdup(arena, m->name);
    out->base_path = sx_arena_strdup(arena, m->base_path);
    if (out->name == NULL || out->base_path == NULL) {
        return sx_no_memory("for model %s", m->name);
    }
    SX_TRY(check_platform(m));
    SX_TRY(read_policy(m->model_version_policy, arena, &out->policy));
    if (m->logging_config != NULL) {
        SX_TRY(read_logging(m->logging_config, arena, out));
    }
    return read_labels(m, arena, out);
}

/* ---- All models ---- */

/* "models.config:12: model_config_list.config[1]"; without a text, only the latter. */
static const char *place_of(sx_bytes text, const char *name, size_t index, sx_arena *arena)
{
    if (text.data == NULL) {
        return sx_arena_printf(arena, "%s: model_config_list.config[%zu]", name, index);
    }
    const size_t line = sx_text_format_line(&tensorflow__serving__model_server_config__descriptor,
                                            &tensorflow__serving__model_config_list__descriptor,
                                            "config", index, text);
    return sx_arena_printf(arena, "%s:%zu: model_config_list.config[%zu]", name, line, index);
}

static sx_status read_models(const Tensorflow__Serving__ModelServerConfig *m, sx_bytes text,
                             const char *name, sx_arena *arena, sx_model_config **out_models,
                             size_t *out_count)
{
    if (m->config_case == TENSORFLOW__SERVING__MODEL_SERVER_CONFIG__CONFIG_CUSTOM_MODEL_CONFIG) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: custom_model_config is not supported; expected model_config_list",
                        name);
    }
    if (m->config_case != TENSORFLOW__SERVING__MODEL_SERVER_CONFIG__CONFIG_MODEL_CONFIG_LIST) {
        /* Perhaps a file that is just being written: its models must not be lost. */
        return sx_error(SX_INVALID_ARGUMENT, "%s: there is no model_config_list", name);
    }
    const size_t count = m->model_config_list->n_config;
    sx_model_config *models = sx_arena_array(arena, count + 1, sx_model_config);
    if (models == NULL) {
        return sx_no_memory("for %zu models", count);
    }
    for (size_t i = 0; i < count; i++) {
        models[i] = (sx_model_config){.where = place_of(text, name, i, arena)};
        if (models[i].where == NULL) {
            return sx_no_memory("for %zu models", count);
        }
        SX_TRY(read_model(m->model_config_list->config[i], arena, &models[i]), "%s",
               models[i].where);
    }
    *out_models = models;
    *out_count = count;
    return SX_OK;
}

sx_status sx_model_config_parse(sx_bytes text, const char *name, sx_arena *arena,
                                sx_model_config **out_models, size_t *out_count)
{
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_text_format_parse(&tensorflow__serving__model_server_config__descriptor, text, name,
                                &message));
    sx_status status = read_models((const Tensorflow__Serving__ModelServerConfig *)message, text,
                                   name, arena, out_models, out_count);
    sx_proto_free(message);
    return status;
}

sx_status sx_model_config_read(sx_bytes bytes, sx_arena *arena, sx_model_config **out_models,
                               size_t *out_count)
{
    static const char name[] = "ReloadConfigRequest.config";
    ProtobufCMessage *message = NULL;
    sx_status status = sx_proto_unpack(&tensorflow__serving__model_server_config__descriptor, bytes,
                                       NULL, name, &message);
    const Tensorflow__Serving__ModelServerConfig *config =
        (const Tensorflow__Serving__ModelServerConfig *)message;
    if (status == SX_OK &&
        config->config_case != TENSORFLOW__SERVING__MODEL_SERVER_CONFIG__CONFIG_MODEL_CONFIG_LIST) {
        status = sx_error(SX_INVALID_ARGUMENT,
                          "ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
                          "ModelConfigList is currently supported");
    }
    if (status == SX_OK) {
        status = read_models(config, (sx_bytes){0}, name, arena, out_models, out_count);
    }
    sx_proto_free(message);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* of the client's making */
        sx_status refused = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
        sx_status_free(status);
        return refused;
    }
    return status;
}

/* ---- Monitoring ---- */

sx_status sx_monitoring_config_read(const char *path, sx_arena *arena, const char **out_url_path)
{
    char *text = NULL;
    size_t size = 0;
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_file_read(path, MAX_CONFIG_BYTES, &text, &size));
    sx_status status = sx_text_format_parse(&tensorflow__serving__monitoring_config__descriptor,
                                            (sx_bytes){text, size}, path, &message);
    sx_free(text);
    SX_TRY(status);
    const Tensorflow__Serving__MonitoringConfig *m =
        (const Tensorflow__Serving__MonitoringConfig *)message;
    const Tensorflow__Serving__PrometheusConfig *prometheus = m->prometheus_config;
    const char *url_path = "";
    if (prometheus != NULL && prometheus->enable) {
        url_path =
            prometheus->path[0] != '\0' ? prometheus->path : "/monitoring/prometheus/metrics";
    }
    *out_url_path = sx_arena_strdup(arena, url_path);
    sx_proto_free(message);
    return *out_url_path != NULL ? SX_OK : sx_no_memory("for %s", path);
}
