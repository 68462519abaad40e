/* See target.h. */
#include "backends/pjrt/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum { MAX_CHIPS = 16384, MAX_CPU_DEVICES = 64, HOST_CHIPS = 4 };

static const sx_tpu_generation generations[] = {
    {"v2", "v2", 2, 2, true, false, 4, 45e12},
    {"v3", "v3", 2, 2, true, false, 4, 123e12},
    {"v4", "v4", 3, 2, true, true, 4, 275e12},
    {"v5e", "v5litepod", 2, 1, false, false, 8, 197e12},
    {"v5p", "v5p", 3, 2, true, true, 4, 459e12},
    {"v6e", "v6e", 2, 1, false, false, 8, 918e12},
    {"tpu7x", "tpu7x", 3, 2, true, false, 4, 2307e12},
    {.name = NULL},
};

/* ---- Errors ---- */

static sx_status unknown(const char *text)
{
    const char *names[32];
    size_t n = 0;
    sx_buf near;
    names[n++] = "pjrt-cpu";
    for (const sx_tpu_generation *g = generations; g->name != NULL; g++) {
        names[n++] = g->name;
        if (strcmp(g->cloud, g->name) != 0) {
            names[n++] = g->cloud;
        }
    }
    char head[64];
    snprintf(head, sizeof(head), "%.*s", (int)strcspn(text, "-:"), text);
    sx_buf_init(&near, 1 << 12);
    bool any = sx_nearest_names(strcmp(head, "pjrt") == 0 ? text : head, names, n, &near) > 0;
    sx_status status = sx_error(
        SX_INVALID_ARGUMENT,
        "unknown target \"%s\"; expected a TPU such as v5e:2x2, v5litepod-4, v6e-8, v5p-8, "
        "v4-8, v3-8, v2-8 or tpu7x-8, or pjrt-cpu[:devices]%s%s%s",
        text, any ? "; did you mean " : "", any ? sx_buf_text(&near) : "", any ? "?" : "");
    sx_buf_deinit(&near);
    return status;
}

static sx_status bad_count(const char *text, const sx_tpu_generation *g)
{
    int least = g->axes == 3 || g->counts_cores ? HOST_CHIPS : 1;
    int unit = g->counts_cores ? g->cores : 1;
    return sx_error(SX_INVALID_ARGUMENT,
                    "target \"%s\": the number of %s of a %s must be a power of two, at least %d: "
                    "%s-%d, %s-%d, …; or give the topology, such as %s:%s",
                    text, g->counts_cores ? "cores (two per chip)" : "chips", g->name, least * unit,
                    g->cloud, 4 * unit, g->cloud, 8 * unit, g->name,
                    g->axes == 3 ? "2x2x2" : "4x4");
}

static sx_status bad_topology(const char *text, const sx_tpu_generation *g)
{
    return sx_error(
        SX_INVALID_ARGUMENT,
        "target \"%s\": expected the chips along each axis, such as %s:%s, and at most %d chips",
        text, g->name, g->axes == 3 ? "2x2x2" : "4x4", MAX_CHIPS);
}

/* ---- Parsing ---- */

/* Parses a decimal number in [1, most] at *at and advances it; 0 on failure. */
static int number(const char **at, int most)
{
    int64_t value = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && value <= most; p++) {
        value = 10 * value + (*p - '0');
    }
    bool good = p > *at && value >= 1 && value <= most;
    *at = p;
    return good ? (int)value : 0;
}

static const sx_tpu_generation *find(const char *text, size_t size)
{
    for (const sx_tpu_generation *g = generations; g->name != NULL; g++) {
        if ((strlen(g->name) == size && memcmp(g->name, text, size) == 0) ||
            (strlen(g->cloud) == size && memcmp(g->cloud, text, size) == 0)) {
            return g;
        }
    }
    return NULL;
}

/* Distributes 2^k chips evenly over the axes, shorter axes first; 4 chips on three axes are 2x2x1.
 */
static void shape(sx_target *t)
{
    int k = 0, axes = t->tpu->axes;
    while (1 << k < t->n_chips) {
        k++;
    }
    for (int i = 0; i < axes; i++) {
        t->chips[i] = 1 << ((k + i) / axes);
    }
    if (axes == 3 && t->n_chips == HOST_CHIPS) {
        t->chips[0] = t->chips[1] = 2;
        t->chips[2] = 1;
    }
}

static sx_status parse_count(const char *text, const char *count, sx_target *t)
{
    const sx_tpu_generation *g = t->tpu;
    int unit = g->counts_cores ? g->cores : 1;
    int n = number(&count, MAX_CHIPS * unit), chips = n / unit;
    bool small = chips == 1 && g->axes == 2 && !g->counts_cores;
    bool fits = n > 0 && *count == '\0' && n % unit == 0 && (chips & (chips - 1)) == 0 &&
                (small || chips >= HOST_CHIPS);
    if (!fits) {
        return bad_count(text, g);
    }
    t->n_chips = chips;
    shape(t);
    return SX_OK;
}

static sx_status parse_topology(const char *text, const char *axes, sx_target *t)
{
    int64_t chips = 1;
    int n = 0;
    do {
        t->chips[n] = number(&axes, MAX_CHIPS);
        chips *= t->chips[n++];
    } while (chips > 0 && chips <= MAX_CHIPS && *axes == 'x' && n < SX_TPU_AXES && axes++ != NULL);
    if (*axes != '\0' || chips < 1 || chips > MAX_CHIPS || n < 2 || n > t->tpu->axes) {
        return bad_topology(text, t->tpu);
    }
    t->n_chips = (int)chips;
    return SX_OK;
}

static void name(sx_target *t)
{
    const sx_tpu_generation *g = t->tpu;
    int used =
        snprintf(t->topology, sizeof(t->topology), "%s:%dx%d", g->name, t->chips[0], t->chips[1]);
    if (g->axes == 3) {
        snprintf(t->topology + used, sizeof(t->topology) - (size_t)used, "x%d", t->chips[2]);
    }
    snprintf(t->type, sizeof(t->type), "%s-%d", g->cloud,
             t->n_chips * (g->counts_cores ? g->cores : 1));
    t->devices = t->n_chips * (g->megacore ? 1 : g->cores);
    bool one_host = t->n_chips <= g->host_chips;
    for (int i = 0; i < SX_TPU_AXES; i++) {
        int host = i < 2 ? 2 : 1;
        t->host_chips[i] = one_host || t->chips[i] < host ? t->chips[i] : host;
    }
}

static sx_status parse_cpu(const char *text, const char *rest, sx_target *t)
{
    t->devices = 1;
    if (*rest == ':') {
        rest++;
        t->devices = number(&rest, MAX_CPU_DEVICES);
    }
    if (*rest != '\0' || t->devices == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "target \"%s\": expected pjrt-cpu:N with N from 1 to %d", text,
                        MAX_CPU_DEVICES);
    }
    snprintf(t->type, sizeof(t->type), "pjrt-cpu");
    return SX_OK;
}

sx_status sx_target_parse(const char *text, sx_target *out)
{
    static const char cpu[] = "pjrt-cpu";
    sx_target t = {.chips = {1, 1, 1}};
    const char *at = strncmp(text, "tpu:", 4) == 0 ? text + 4 : text;
    size_t size = strcspn(at, "-:");
    if (strncmp(text, cpu, sizeof(cpu) - 1) == 0) {
        SX_TRY(parse_cpu(text, text + sizeof(cpu) - 1, &t));
        *out = t;
        return SX_OK;
    }
    t.tpu = find(at, size);
    if (t.tpu == NULL || at[size] == '\0') {
        return unknown(text);
    }
    SX_TRY(at[size] == '-' ? parse_count(text, at + size + 1, &t)
                           : parse_topology(text, at + size + 1, &t));
    name(&t);
    *out = t;
    return SX_OK;
}
