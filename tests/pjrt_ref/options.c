/* See options.h. */
#include "pjrt_ref/options.h"

#include <string.h>

#include "base/checked.h"

typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct field {
    uint64_t number, value; /* value of varints */
    reader bytes;           /* of messages and packed numbers; at NULL for varints */
} field;

static bool take_varint(reader *r, uint64_t *out)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t b = *r->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* False at the end, and when the rest is no field (then r->at < r->end). */
static bool take_field(reader *r, field *out)
{
    reader before = *r;
    uint64_t key = 0, size = 0;
    *out = (field){.number = 0};
    if (r->at == r->end || !take_varint(r, &key)) {
        *r = before;
        return false;
    }
    out->number = key >> 3;
    const unsigned kind = (unsigned)(key & 7); /* a varint, 8 bytes, bytes */
    bool ok = kind == 0 ? take_varint(r, &out->value)
              : kind == 1
                  ? r->end - r->at >= 8
                  : kind == 2 && take_varint(r, &size) && size <= (uint64_t)(r->end - r->at);
    if (ok && kind == 1) {
        r->at += 8;
    }
    if (ok && kind == 2) {
        out->bytes = (reader){r->at, r->at + size};
        r->at += size;
    }
    if (!ok) {
        *r = before;
    }
    return ok;
}

static sx_status damaged(const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "the compile options are no CompileOptionsProto (%s)",
                    what);
}

/* ComputationDevice: packed device ids, in order of replicas. */
static sx_status read_devices(reader r, ref_spread *out)
{
    field f;
    while (take_field(&r, &f)) {
        uint64_t id = 0;
        while (f.number == 1 && f.bytes.at != NULL && f.bytes.at < f.bytes.end) {
            if (!take_varint(&f.bytes, &id) || out->n_ids == REF_MAX_DEVICES || id > INT32_MAX) {
                return damaged("device ids");
            }
            out->ids[out->n_ids++] = (int)id;
        }
    }
    return r.at == r.end ? SX_OK : damaged("device ids");
}

static sx_status read_assignment(reader r, ref_spread *out)
{
    field f;
    while (take_field(&r, &f)) {
        if (f.number == 3 && f.bytes.at != NULL) {
            SX_TRY(read_devices(f.bytes, out));
        }
    }
    return r.at == r.end ? SX_OK : damaged("device assignment");
}

static sx_status read_build(reader r, ref_spread *out)
{
    field f;
    out->device_ordinal = 0; /* absent means 0: device 0 is pinned (pjrt.md 1.3) */
    while (take_field(&r, &f)) {
        if (f.number == 9 && f.bytes.at != NULL) {
            SX_TRY(read_assignment(f.bytes, out));
        }
        int64_t *to = f.number == 1   ? &out->device_ordinal
                      : f.number == 4 ? &out->replicas
                      : f.number == 5 ? &out->partitions
                                      : NULL;
        if (to != NULL && f.bytes.at == NULL) {
            *to = (int64_t)f.value;
        }
    }
    return r.at == r.end ? SX_OK : damaged("build options");
}

static sx_status check(const ref_spread *s)
{
    if (s->replicas < 1 || s->replicas > REF_MAX_DEVICES || s->partitions != 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%lld replicas of %lld partitions; expected 1 to %d of 1",
                        (long long)s->replicas, (long long)s->partitions, REF_MAX_DEVICES);
    }
    if (s->n_ids != 0 && s->n_ids != s->replicas) {
        return sx_error(SX_INVALID_ARGUMENT, "%d devices are assigned to %lld replicas", s->n_ids,
                        (long long)s->replicas);
    }
    if (s->device_ordinal != -1 && (s->is_portable || s->replicas > 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "the device ordinal %lld pins a device; -1 is unset",
                        (long long)s->device_ordinal);
    }
    return SX_OK;
}

/* An entry of env_option_overrides: its name must be one of XLA's. */
static sx_status read_override(reader r)
{
    static const char prefix[] = "xla_";
    field f;
    while (take_field(&r, &f)) {
        const size_t size = f.bytes.at != NULL ? (size_t)(f.bytes.end - f.bytes.at) : 0;
        if (f.number == 1 && (size < sizeof(prefix) || memcmp(f.bytes.at, prefix, 4) != 0)) {
            return sx_error(SX_INVALID_ARGUMENT, "No such compile option: '%.*s'",
                            (int)SX_MIN(size, 100), (const char *)f.bytes.at);
        }
    }
    return r.at == r.end ? SX_OK : damaged("options of XLA");
}

sx_status ref_read_options(const char *bytes, size_t size, ref_spread *out)
{
    static const uint8_t nothing;
    const uint8_t *at = bytes == NULL ? &nothing : (const uint8_t *)bytes;
    reader r = {at, at + (bytes == NULL ? 0 : size)};
    ref_spread s = {.device_ordinal = -1};
    field f;
    while (take_field(&r, &f)) {
        if (f.number == 3 && f.bytes.at != NULL) {
            SX_TRY(read_build(f.bytes, &s));
        } else if (f.number == 7 && f.bytes.at != NULL) {
            SX_TRY(read_override(f.bytes));
        } else if (f.number == 4) {
            s.is_portable = f.value != 0;
        }
    }
    if (r.at != r.end) {
        return damaged("fields");
    }
    SX_TRY(check(&s));
    for (int i = 0; s.n_ids < s.replicas; i++) {
        s.ids[s.n_ids++] = i;
    }
    *out = s;
    return SX_OK;
}
