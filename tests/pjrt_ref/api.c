/* GetPjrtApi(): the table, its versions, and what goes wrong while it is loaded (fault.h).
 *
 * A function that is called with a smaller argument struct than version 0.81's refuses, as every
 * plugin does; with a larger one only under the fault "strict". */
#include "pjrt_ref/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "pjrt_ref/counts.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/profiler.h"

const void *GetPjrtApi(void);

__attribute__((visibility("default"))) ref_counts sx_pjrt_ref_counts;

enum { MAJOR = 0, MINOR = 81, SLOTS = 118 };

sx_status ref_check_size(const char *name, size_t expected, size_t got)
{
    if (got == expected || (got > expected && !ref_fault_due("strict", NULL))) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "Unexpected PJRT_%s size: expected %zu, got %zu", name,
                    expected, got);
}

static void *enter(void *args, int slot, size_t size, const char *name, sx_status (*fn)(void *args))
{
    size_t got = ((const sx_pjrt_head *)args)->struct_size;
    bool is_of_errors = slot <= SX_PJRT_ERROR_CODE; /* any refusal can be said */
    sx_status status = ref_check_size(name, size, is_of_errors ? SX_MIN(got, size) : got);
    return ref_error_of(status != SX_OK ? status : fn(args));
}

#define REF_SLOT(slot, function, size, name)                              \
    static void *slot_##slot(void *args)                                  \
    {                                                                     \
        return enter(args, slot, size, name "_Args", ref_api_##function); \
    }
#include "pjrt_ref/slots.def"
#undef REF_SLOT

static const struct {
    int slot;
    const char *name;
    sx_pjrt_function function;
} rows[] = {
#define REF_SLOT(slot, function, size, name) {slot, name, slot_##slot},
#include "pjrt_ref/slots.def"
#undef REF_SLOT
};

/* Filled by each GetPjrtApi(), with what the environment says then. */
static sx_pjrt_api table;

static void fill_table(void)
{
    char words[REF_WORDS] = "";
    bool is_short = ref_fault_due("short", NULL), misses = ref_fault_due("missing", words);
    table = (sx_pjrt_api){.struct_size = SX_PJRT_SLOTS_AT + 8 * (size_t)(is_short ? 12 : SLOTS),
                          .extensions =
                              ref_setting("profiler", 0) > 0 ? ref_profiler_extension() : NULL,
                          .version_size = 24,
                          .major = MAJOR,
                          .minor = MINOR};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool missing = misses && strcmp(words, rows[i].name) == 0;
        table.slots[rows[i].slot] = missing ? NULL : rows[i].function;
    }
    if (ref_fault_due("version", words)) {
        char *end;
        table.major = (int)strtol(words, &end, 10);
        table.minor = *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
    }
}

static bool say(const char *point)
{
    sx_status status = ref_fault(point);
    bool due = status != SX_OK;
    if (due) {
        fprintf(stderr, "%s\n", sx_status_message(status));
    }
    sx_status_free(status);
    return due;
}

__attribute__((visibility("default"))) const void *GetPjrtApi(void)
{
    say("noise");
    if (say("abort")) {
        abort();
    }
    if (say("exit")) {
        exit(3);
    }
    while (ref_fault_due("hang", NULL)) {
        pause();
    }
    if (ref_fault_due("null", NULL)) {
        return NULL;
    }
    fill_table();
    return &table;
}

/* --- Errors, the plugin, events ----------------------------------------------------------------
 */

sx_status ref_api_error_destroy(void *args)
{
    sx_status_free(((sx_pjrt_object *)args)->object);
    return SX_OK;
}

sx_status ref_api_error_message(void *args)
{
    sx_pjrt_text *a = args;
    a->text = sx_status_message((sx_status)(uintptr_t)a->object);
    a->size = strlen(a->text);
    return SX_OK;
}

sx_status ref_api_error_code(void *args)
{
    sx_pjrt_int *a = args;
    a->value = (int)sx_status_code((sx_status)(uintptr_t)a->object);
    return SX_OK;
}

sx_status ref_api_plugin_initialize(void *args)
{
    (void)args;
    return ref_fault("initialize");
}

sx_status ref_api_plugin_attributes(void *args)
{
    static const int64_t versions[] = {1, 13, 0};
    static const sx_pjrt_named attributes[] = {
        {.struct_size = sizeof(sx_pjrt_named),
         .name = "stablehlo_current_version",
         .name_size = 25,
         .type = SX_PJRT_INT64_LIST,
         .int64_list = versions,
         .value_size = 3},
        {.struct_size = sizeof(sx_pjrt_named),
         .name = "stablehlo_minimum_version",
         .name_size = 25,
         .type = SX_PJRT_INT64_LIST,
         .int64_list = versions,
         .value_size = 3},
    };
    struct {
        sx_pjrt_head head;
        const sx_pjrt_named *items;
        size_t count;
    } *a = args;
    a->items = attributes;
    a->count = sizeof(attributes) / sizeof(attributes[0]);
    return SX_OK;
}

sx_status ref_api_event_destroy(void *args)
{
    ref_event_release(((sx_pjrt_object *)args)->object);
    return SX_OK;
}

sx_status ref_api_event_is_ready(void *args)
{
    sx_pjrt_flag *a = args;
    a->value = ref_event_is_ready((ref_event *)(uintptr_t)a->object);
    return SX_OK;
}

sx_status ref_api_event_error(void *args)
{
    ref_event *e = ((sx_pjrt_object *)args)->object;
    return ref_event_is_ready(e) ? ref_event_await(e)
                                 : sx_error(SX_FAILED_PRECONDITION, "the event has not ended yet");
}

sx_status ref_api_event_await(void *args)
{
    return ref_event_await(((sx_pjrt_object *)args)->object);
}

sx_status ref_api_event_on_ready(void *args)
{
    struct {
        sx_pjrt_head head;
        ref_event *event;
        ref_on_ready_fn *callback;
        void *user;
    } *a = args;
    return ref_event_on_ready(a->event, a->callback, a->user);
}
