/* How requests are shared out between versions; see traffic.h. */
#include "serve/traffic.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "proto/guard.h"
#include "proto/model_traffic.pb-c.h"
#include "proto/text_format.h"
#include "serve/lifecycle.h"

static sx_status read_share(const char *field, double percent, int *out)
{
    if (!(percent >= 0 && percent <= 100)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %g, expected 0 to 100", field, percent);
    }
    *out = (int)(percent * SX_SHARE_ALL / 100 + 0.5);
    return SX_OK;
}

static sx_status read_canary(const Sextant__Canary *m, sx_arena *arena, sx_traffic *out)
{
    if (m->version < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "canary.version: %lld is no version",
                        (long long)m->version);
    }
    out->canary_version = m->version == 0 ? SX_LATEST_VERSION : m->version;
    out->sticky_header = sx_arena_strdup(arena, m->sticky_header);
    SX_TRY(read_share("canary.percent", m->percent, &out->canary_share));
    return out->sticky_header != NULL ? SX_OK : sx_no_memory("for the traffic of models");
}

static sx_status read_shadow(const Sextant__Shadow *m, sx_traffic *out)
{
    if (m->version <= 0) {
        return sx_error(SX_INVALID_ARGUMENT, "shadow.version: expected the number of a version");
    }
    if (!(m->tolerance >= 0 && m->tolerance <= 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "shadow.tolerance: %g, expected 0 to 1", m->tolerance);
    }
    out->shadow_version = m->version;
    out->shadow_tolerance = m->tolerance;
    return read_share("shadow.percent", m->percent, &out->shadow_share);
}

static sx_status read_model(const Sextant__ModelTraffic *m, const sx_traffic *before, size_t count,
                            sx_arena *arena, sx_traffic *out)
{
    *out = (sx_traffic){.model = sx_arena_strdup(arena, m->name), .sticky_header = ""};
    if (out->model == NULL) {
        return sx_no_memory("for the traffic of models");
    }
    if (m->name[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "name: expected that of a model");
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(before[i].model, m->name) == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "name: model %s is given twice", m->name);
        }
    }
    if (m->canary != NULL) {
        SX_TRY(read_canary(m->canary, arena, out));
    }
    return m->shadow != NULL ? read_shadow(m->shadow, out) : SX_OK;
}

sx_status sx_traffic_parse(sx_bytes text, const char *name, sx_arena *arena, sx_traffic **out_rows,
                           size_t *out_count)
{
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_text_format_parse(&sextant__model_traffic_config__descriptor, text, name, &message));
    const Sextant__ModelTrafficConfig *m = (const Sextant__ModelTrafficConfig *)message;
    sx_traffic *rows = sx_arena_array(arena, m->n_model + 1, sx_traffic);
    sx_status status = rows != NULL ? SX_OK : sx_no_memory("for the traffic of models");
    for (size_t i = 0; i < m->n_model && status == SX_OK; i++) {
        status = read_model(m->model[i], rows, i, arena, &rows[i]);
        if (status != SX_OK) {
            const size_t line =
                sx_text_format_line(&sextant__model_traffic_config__descriptor,
                                    &sextant__model_traffic_config__descriptor, "model", i, text);
            status =
                sx_status_annotate(status, __FILE__, __LINE__, "%s:%zu: model[%zu]", name, line, i);
        }
    }
    *out_rows = rows;
    *out_count = m->n_model;
    sx_proto_free(message);
    return status;
}

bool sx_share_has_turn(int share, uint64_t turn)
{
    return turn % SX_SHARE_ALL * (uint64_t)share % SX_SHARE_ALL < (uint64_t)share;
}

bool sx_share_has_value(int share, const char *model, sx_http_text value)
{
    const uint64_t hash = sx_hash64(value.data, value.size) ^ sx_hash64(model, strlen(model));
    return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u >> 32 < ((uint64_t)share << 32) / SX_SHARE_ALL;
}
