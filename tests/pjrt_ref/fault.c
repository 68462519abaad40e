/* See fault.h. */
#include "pjrt_ref/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static const struct {
    const char *point;
    sx_code code;
    const char *words;
} points[] = {
    {"abort", SX_INTERNAL, "F0817 Check failed: chips > 0"},
    {"exit", SX_INTERNAL, "no licence"},
    {"null", SX_INTERNAL, ""},
    {"hang", SX_INTERNAL, ""},
    {"noise", SX_INTERNAL, "W0817 this machine is unlike others"},
    {"version", SX_INTERNAL, ""},
    {"short", SX_INTERNAL, ""},
    {"missing", SX_INTERNAL, ""},
    {"strict", SX_INTERNAL, ""},
    {"initialize", SX_FAILED_PRECONDITION, "the chips are asleep"},
    {"client", SX_UNAVAILABLE, "no chip in this machine"},
    {"compile", SX_INVALID_ARGUMENT, "the program is not for me"},
    {"full", SX_RESOURCE_EXHAUSTED, "Ran out of memory in memory space hbm"},
    {"serialize", SX_UNIMPLEMENTED, "programs cannot be kept"},
    {"deserialize", SX_INVALID_ARGUMENT, "this program is of another time"},
    {"put", SX_UNAVAILABLE, "the transfer to the device failed"},
    {"get", SX_UNAVAILABLE, "the transfer from the device failed"},
    {"memory", SX_UNAVAILABLE, "the statistics are not to be had"},
    {"profiler", SX_UNAVAILABLE, "another profiler runs"},
    {"collect", SX_INTERNAL, "the trace is broken"},
    {"oom", SX_RESOURCE_EXHAUSTED, "Out of memory allocating 17 bytes"},
    {"lost", SX_UNAVAILABLE, "device lost"},
    {"later", SX_UNAVAILABLE, "device lost"},
    {"stuck", SX_INTERNAL, ""},
};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

static atomic_long calls[POINTS];

static size_t row_of(const char *point)
{
    size_t i = 0;
    while (i + 1 < POINTS && strcmp(points[i].point, point) != 0) {
        i++;
    }
    return i;
}

static void copy(char to[REF_WORDS], const char *from, size_t n)
{
    n = SX_MIN(n, REF_WORDS - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

/* One of "POINT:N:WORDS;…"; NULL = not there. */
static const char *find(const char *list, const char *point)
{
    size_t n = strlen(point);
    while (list != NULL && *list != '\0') {
        if (strncmp(list, point, n) == 0 && strchr(":;", list[n]) != NULL) {
            return list;
        }
        list += strcspn(list, ";");
        list += *list == ';';
    }
    return NULL;
}

bool ref_fault_due(const char *point, char words[REF_WORDS])
{
    const char *at = find(getenv("SX_PJRT_REF_FAULT"), point);
    long call = atomic_fetch_add(&calls[row_of(point)], 1) + 1;
    if (at == NULL) {
        return false;
    }
    char *end;
    at += strlen(point);
    long n = *at == ':' ? strtol(at + 1, &end, 10) : 0;
    at = *at == ':' ? end : at;
    if (words != NULL) {
        copy(words, at + (*at == ':'), *at == ':' ? strcspn(at + 1, ";") : 0);
    }
    return n == 0 || n == call;
}

sx_status ref_fault(const char *point)
{
    char words[REF_WORDS];
    size_t row = row_of(point);
    return !ref_fault_due(point, words)
               ? SX_OK
               : sx_error(points[row].code, "%s", words[0] != '\0' ? words : points[row].words);
}

void ref_faults_reset(void)
{
    for (size_t i = 0; i < POINTS; i++) {
        atomic_store(&calls[i], 0);
    }
}

const char *ref_setting_text(const char *name, const char *otherwise, char buffer[REF_WORDS])
{
    const char *at = getenv("SX_PJRT_REF");
    size_t n = strlen(name);
    while (at != NULL && *at != '\0') {
        size_t size = strcspn(at, ",");
        if (size > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            copy(buffer, at + n + 1, size - n - 1);
            return buffer;
        }
        at += size + (at[size] == ',');
    }
    copy(buffer, otherwise, strlen(otherwise));
    return buffer;
}

long ref_setting(const char *name, long otherwise)
{
    char text[REF_WORDS], *end;
    long v = strtol(ref_setting_text(name, "", text), &end, 10);
    return text[0] != '\0' && *end == '\0' ? v : otherwise;
}
