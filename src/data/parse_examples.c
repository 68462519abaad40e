/* The map from records to the declared features of tf.train.Examples. See sx_dataset_parse_examples
 * in sextant/data.h. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/feature_spec.h"
#include "proto/example.h"

/* One declared feature. */
struct column {
    sx_feature_spec spec;
    int64_t elems; /* of the padded value */
    int64_t inner; /* of one of the max_length values, or of the whole value */
};

struct parser {
    sx_arena arena; /* texts */
    int record;     /* component */
    int n;
    struct column columns[SX_MAX_COMPONENTS];
};

static void destroy(void *user)
{
    struct parser *p = user;
    sx_arena_deinit(&p->arena);
    sx_free(p);
}

sx_status sx_example_worker_create(void *user, void **out_worker)
{
    (void)user;
    sx_example *example = sx_alloc(1, sizeof(*example));
    if (example == NULL) {
        return sx_no_memory("for records");
    }
    sx_example_init(example);
    *out_worker = example;
    return SX_OK;
}

void sx_example_worker_destroy(void *worker)
{
    sx_example_deinit(worker);
    sx_free(worker);
}

/* ---- Values ---- */

/* `text` is that of strings. */
static void fill(sx_dtype dtype, double value, const char *text, void *out, int64_t first,
                 int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        switch (dtype) {
        case SX_STRING:
            ((sx_bytes *)out)[i] = (sx_bytes){text, strlen(text)};
            break;
        case SX_F32:
            ((float *)out)[i] = (float)value;
            break;
        case SX_I32:
            ((int32_t *)out)[i] = (int32_t)value;
            break;
        case SX_I64:
            ((int64_t *)out)[i] = (int64_t)value;
            break;
        default:
            ((uint8_t *)out)[i] = (uint8_t)value;
        }
    }
}

/* n values of an int64 feature in the column's dtype. */
static sx_status take_ints(const struct column *c, const sx_example_feature *feature, int64_t n,
                           sx_scratch *scratch, void *out)
{
    int64_t *values =
        c->spec.dtype == SX_I64 ? out : sx_scratch_alloc(scratch, (size_t)n * sizeof(*values) + 1);
    if (values == NULL) {
        return sx_no_memory("for a record");
    }
    sx_feature_ints(feature, values, (size_t)n);
    for (int64_t i = 0; i < n && c->spec.dtype != SX_I64; i++) {
        if (!sx_dtype_holds(c->spec.dtype, (double)values[i])) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "feature \"%s\": value %" PRId64 " is %" PRId64
                            ", which is out of the range of %s",
                            c->spec.key, i, values[i], sx_dtype_name(c->spec.dtype));
        }
        fill(c->spec.dtype, (double)values[i], "", out, i, i + 1);
    }
    return SX_OK;
}

/* The number of the record's values to take, checked against the declaration. */
static sx_status check_count(const struct column *c, size_t count, int64_t *out_n)
{
    int64_t n = count > INT32_MAX ? INT32_MAX : (int64_t)count;
    if (c->spec.max_length == 0) {
        *out_n = c->elems;
        return n == c->elems ? SX_OK
                             : sx_error(SX_INVALID_ARGUMENT,
                                        "feature \"%s\" has %zu values, expected %" PRId64,
                                        c->spec.key, count, c->elems);
    }
    if (n % c->inner != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "feature \"%s\" has %zu values, expected a multiple of %" PRId64,
                        c->spec.key, count, c->inner);
    }
    if (n > c->elems && !c->spec.truncate) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "feature \"%s\" has %zu values, expected at most %" PRId64
                        "; raise max_length, or set truncate to use the first ones",
                        c->spec.key, count, c->elems);
    }
    *out_n = SX_MIN(n, c->elems);
    return SX_OK;
}

static sx_status take_values(const struct column *c, const sx_example_feature *feature,
                             sx_scratch *scratch, void *out, int64_t *out_n)
{
    const sx_dtype dtype = c->spec.dtype;
    sx_bytes raw;
    if (dtype == SX_U8 && feature->kind == SX_FEATURE_BYTES && feature->count == 1) {
        sx_feature_bytes(feature, &raw, 1);
        SX_TRY(check_count(c, raw.size, out_n));
        memcpy(out, raw.data, (size_t)*out_n);
        return SX_OK;
    }
    sx_feature_kind wanted = dtype == SX_F32      ? SX_FEATURE_FLOATS
                             : dtype == SX_STRING ? SX_FEATURE_BYTES
                                                  : SX_FEATURE_INTS;
    if (feature->kind != wanted) {
        return sx_error(SX_INVALID_ARGUMENT, "feature \"%s\" has %s values, expected %s%s for %s",
                        c->spec.key, sx_feature_kind_name(feature->kind),
                        sx_feature_kind_name(wanted), dtype == SX_U8 ? " or one of bytes" : "",
                        sx_dtype_name(dtype));
    }
    SX_TRY(check_count(c, feature->count, out_n));
    if (dtype == SX_F32) {
        sx_feature_floats(feature, out, (size_t)*out_n);
        return SX_OK;
    }
    if (dtype == SX_STRING) {
        sx_feature_bytes(feature, out, (size_t)*out_n);
        return SX_OK;
    }
    return take_ints(c, feature, *out_n, scratch, out);
}

/* A feature without values counts as missing, as in tf.io.parse_example. */
static sx_status take_column(const struct column *c, const sx_example *example, sx_scratch *scratch,
                             void *out, bool *mask)
{
    const sx_example_feature *feature = sx_example_find(example, c->spec.key);
    int64_t n = 0;
    if (feature != NULL && feature->count > 0) {
        SX_TRY(take_values(c, feature, scratch, out, &n));
    } else if (c->spec.optional) {
        n = c->spec.max_length > 0 ? c->inner : c->elems;
        fill(c->spec.dtype, c->spec.default_value, c->spec.default_text, out, 0, n);
    } else if (c->spec.max_length == 0) {
        return feature == NULL
                   ? sx_example_no_feature(example, c->spec.key)
                   : sx_error(SX_INVALID_ARGUMENT, "feature \"%s\" has no values", c->spec.key);
    }
    fill(c->spec.dtype, c->spec.padding_value, "", out, n, c->elems);
    for (int64_t i = 0; i < c->spec.max_length; i++) {
        mask[i] = i < n / c->inner;
    }
    return SX_OK;
}

static sx_status parse(const sx_map_call *call, void *user)
{
    const struct parser *p = user;
    SX_TRY(sx_example_parse(call->worker, *(const sx_bytes *)call->in[p->record].data));
    for (int i = 0, k = 0; i < p->n; i++) {
        const struct column *c = &p->columns[i];
        bool *mask = c->spec.max_length > 0 ? call->out[k + 1].data : NULL;
        SX_TRY(take_column(c, call->worker, call->scratch, call->out[k].data, mask));
        k += mask != NULL ? 2 : 1;
    }
    return SX_OK;
}

/* ---- The dataset ---- */

static sx_status add_column(struct parser *p, const sx_feature_spec *spec, sx_component *components,
                            int *count)
{
    struct column *c = &p->columns[p->n];
    sx_type type, mask;
    *c = (struct column){.spec = *spec};
    SX_TRY(sx_feature_spec_check(spec, "feature", &type, &mask));
    c->spec.dtype = type.dtype;
    c->elems = sx_type_elems(&type);
    c->inner = spec->max_length > 0 ? c->elems / spec->max_length : c->elems;
    c->spec.name = sx_arena_strdup(&p->arena, spec->name);
    c->spec.key = sx_arena_strdup(&p->arena, spec->key != NULL ? spec->key : spec->name);
    c->spec.default_text =
        sx_arena_strdup(&p->arena, spec->default_text != NULL ? spec->default_text : "");
    char *mask_name = sx_arena_printf(&p->arena, "%s" SX_MASK_SUFFIX, spec->name);
    if (c->spec.name == NULL || c->spec.key == NULL || c->spec.default_text == NULL ||
        mask_name == NULL) {
        return sx_no_memory("parsing examples");
    }
    for (int i = 0; i < *count; i++) {
        if (strcmp(components[i].name, c->spec.name) == 0 ||
            (spec->max_length > 0 && strcmp(components[i].name, mask_name) == 0)) {
            return sx_error(SX_INVALID_ARGUMENT, "feature \"%s\": the name is used twice",
                            components[i].name);
        }
    }
    p->n++;
    components[(*count)++] = (sx_component){c->spec.name, type};
    if (spec->max_length > 0) {
        components[(*count)++] = (sx_component){mask_name, mask};
    }
    return SX_OK;
}

/* A hash of what determines the values. */
static uint64_t fingerprint(const struct parser *p)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 20);
    for (int i = 0; i < p->n; i++) {
        const sx_feature_spec *s = &p->columns[i].spec;
        sx_buf_printf(&text, "%s=%s %d %a %a %d %d;", s->name, s->key, (int)s->truncate,
                      s->padding_value, s->default_value, (int)s->optional, (int)s->dtype);
        if (s->dtype == SX_STRING) {
            sx_buf_printf(&text, "%s;", s->default_text);
        }
    }
    uint64_t hash = sx_hash64(sx_buf_text(&text), text.size);
    sx_buf_deinit(&text);
    return hash;
}

sx_status sx_dataset_parse_examples(sx_dataset **dataset, const sx_feature_spec *specs, int n)
{
    sx_component components[SX_MAX_COMPONENTS];
    int count = 0;
    int record = sx_dataset_find(*dataset, "record");
    if (record < 0 || sx_dataset_schema(*dataset)->components[record].type.dtype != SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "parse: the data has no component \"record\"");
    }
    struct parser *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("parsing examples");
    }
    sx_arena_init(&p->arena, 0);
    p->record = record;
    sx_status status = n > 0 ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "parse: no features");
    for (int i = 0; i < n && status == SX_OK; i++) {
        status = count + 2 <= SX_MAX_COMPONENTS
                     ? add_column(p, &specs[i], components, &count)
                     : sx_error(SX_INVALID_ARGUMENT, "parse: more than %d features and masks",
                                (int)SX_MAX_COMPONENTS - 1);
    }
    if (status == SX_OK) {
        status = sx_dataset_map(
            dataset, .name = "parse", .fn = parse, .count = count, .components = components,
            .user = p, .release = destroy, .worker_create = sx_example_worker_create,
            .worker_destroy = sx_example_worker_destroy, .fingerprint = fingerprint(p));
    }
    if (status != SX_OK) {
        destroy(p);
    }
    return status;
}
