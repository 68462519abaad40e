/* See device_name.h. */
#include "graph/device_name.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sx_device_text_show(const char *text, size_t size, char out[SX_DEVICE_NAME_BYTES])
{
    enum { SHOWN = 100 };
    size_t n = 0;
    for (; n < size && n < SHOWN; n++) {
        out[n] = text[n];
        if (!isprint((unsigned char)text[n])) {
            out[n] = '?';
        }
    }
    snprintf(out + n, SX_DEVICE_NAME_BYTES - n, "%s", size > SHOWN ? "..." : "");
    return out;
}

static sx_status wrong(const char *text, const char *part, size_t size)
{
    char whole[SX_DEVICE_NAME_BYTES], piece[SX_DEVICE_NAME_BYTES];
    return sx_error(SX_INVALID_ARGUMENT,
                    "\"%s\" in the device \"%s\" is not a part of a device's name; expected names "
                    "such as /cpu:1, /device:GPU:0 or "
                    "/job:localhost/replica:0/task:0/device:CPU:0",
                    sx_device_text_show(part, size, piece),
                    sx_device_text_show(text, strlen(text), whole));
}

static bool is_any(const char *text, size_t size)
{
    return size == 1 && text[0] == '*';
}

/* "12" or "*" */
static bool parse_number(const char *text, size_t size, int *out)
{
    if (is_any(text, size)) {
        *out = -1;
        return true;
    }
    long long n = 0;
    for (size_t i = 0; i < size && n <= INT_MAX; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        n = n * 10 + (text[i] - '0');
    }
    *out = (int)n;
    return size > 0 && n <= INT_MAX;
}

static bool is_word(const char *text, size_t size)
{
    bool is = size > 0 && isalpha((unsigned char)text[0]);
    for (size_t i = 0; i < size && is; i++) {
        is = isalnum((unsigned char)text[i]) || text[i] == '_' || text[i] == '-';
    }
    return is;
}

/* "GPU", "gpu:1", "CPU:*", "*:1" */
static bool parse_type(const char *text, size_t size, sx_device_name *out)
{
    const char *colon = memchr(text, ':', size);
    const size_t head = colon != NULL ? (size_t)(colon - text) : size;
    if (colon != NULL && !parse_number(colon + 1, size - head - 1, &out->index)) {
        return false;
    }
    if (is_any(text, head)) {
        return true;
    }
    if (!is_word(text, head) || head >= sizeof(out->type)) {
        return false;
    }
    for (size_t i = 0; i < head; i++) {
        out->type[i] = (char)toupper((unsigned char)text[i]);
    }
    out->type[head] = '\0';
    return true;
}

/* The text behind "prefix:", if the part begins with it. */
static const char *after(const char *part, size_t size, const char *prefix, size_t *out_size)
{
    const size_t n = strlen(prefix);
    if (size <= n || strncmp(part, prefix, n) != 0 || part[n] != ':') {
        return NULL;
    }
    *out_size = size - n - 1;
    return part + n + 1;
}

/* `device`: whether a part has said a type; becomes true if this one does. */
static bool parse_part(const char *part, size_t size, bool *device, sx_device_name *out)
{
    const char *value;
    size_t n = 0;
    if ((value = after(part, size, "job", &n)) != NULL) {
        if (is_any(value, n)) {
            return true;
        }
        if (!is_word(value, n) || n >= sizeof(out->job)) {
            return false;
        }
        memcpy(out->job, value, n);
        out->job[n] = '\0';
        return true;
    }
    if ((value = after(part, size, "replica", &n)) != NULL) {
        return parse_number(value, n, &out->replica);
    }
    if ((value = after(part, size, "task", &n)) != NULL) {
        return parse_number(value, n, &out->task);
    }
    if (*device) {
        return false;
    }
    *device = true;
    if ((value = after(part, size, "device", &n)) != NULL) {
        return parse_type(value, n, out);
    }
    return part[size + strspn(part + size, "/")] == '\0' && part[0] != '*' &&
           parse_type(part, size, out);
}

sx_status sx_device_name_parse(const char *text, sx_device_name *out)
{
    sx_device_name name = SX_ANY_DEVICE;
    bool device = false;
    for (const char *at = text; *at != '\0';) {
        const size_t size = strcspn(at, "/");
        if (size > 0 && !parse_part(at, size, &device, &name)) {
            return wrong(text, at, size);
        }
        at += size + (at[size] == '/');
    }
    *out = name;
    return SX_OK;
}

void sx_device_name_merge(sx_device_name *name, const sx_device_name *inner)
{
    if (inner->job[0] != '\0') {
        memcpy(name->job, inner->job, sizeof(name->job));
    }
    name->replica = inner->replica >= 0 ? inner->replica : name->replica;
    name->task = inner->task >= 0 ? inner->task : name->task;
    name->index = inner->index >= 0 ? inner->index : name->index;
    if (inner->type[0] != '\0') {
        memcpy(name->type, inner->type, sizeof(name->type));
    }
}

const char *sx_device_name_print(const sx_device_name *name, char out[SX_DEVICE_NAME_BYTES])
{
    const size_t room = SX_DEVICE_NAME_BYTES;
    int at = 0;
    out[0] = '\0';
    if (name->job[0] != '\0') {
        at += snprintf(out + at, room - (size_t)at, "/job:%s", name->job);
    }
    if (name->replica >= 0) {
        at += snprintf(out + at, room - (size_t)at, "/replica:%d", name->replica);
    }
    if (name->task >= 0) {
        at += snprintf(out + at, room - (size_t)at, "/task:%d", name->task);
    }
    if (name->type[0] != '\0' || name->index >= 0) {
        at += snprintf(out + at, room - (size_t)at,
                       "/device:%s:", name->type[0] != '\0' ? name->type : "*");
        if (name->index >= 0) {
            snprintf(out + at, room - (size_t)at, "%d", name->index);
        } else {
            snprintf(out + at, room - (size_t)at, "*");
        }
    }
    return out;
}

static bool number_fits(int asked, int is)
{
    return asked < 0 || asked == is;
}

bool sx_device_name_fits(const sx_device_name *name, const sx_device_name *whole)
{
    return (name->job[0] == '\0' || strcmp(name->job, whole->job) == 0) &&
           (name->type[0] == '\0' || strcmp(name->type, whole->type) == 0) &&
           number_fits(name->replica, whole->replica) && number_fits(name->task, whole->task) &&
           number_fits(name->index, whole->index);
}
