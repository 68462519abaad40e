/* A PJRT plugin for the fault tests. $SEXTANT_FAKE_PJRT says how it misbehaves:
 *
 *   abort, exit, null, old, major, refuse   while it is loaded
 *   no-client                               Client_Create fails
 *   compile                                 Client_Compile fails, naming a node
 *   serialize, deserialize                  Executable_Serialize, …_DeserializeAndLoad fail
 *   execute, execute-later                  Execute fails at once; or its completion event does
 *
 * Otherwise, and for everything else, it passes calls on to the real plugin, $SEXTANT_REAL_PJRT:
 * its table is copied and some slots are replaced. Errors of its own are told from the real
 * plugin's by their address. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/pjrt/abi.h"

const void *GetPjrtApi(void);

typedef struct fake_error {
    int code;
    const char *message;
} fake_error;

static fake_error refused = {9, "the chips are asleep"};
static fake_error no_client = {14, "no chip in this machine"};
static fake_error rejected = {
    3, "loc(\"dense/matmul\"): error: 'stablehlo.dot_general' is not for me"};
static fake_error exhausted = {8, "out of memory allocating 17 bytes"};
static fake_error lost = {14, "device lost"};
static fake_error *const fakes[] = {&refused, &no_client, &rejected, &exhausted, &lost};

static sx_pjrt_api table;
static const sx_pjrt_api *real;
static char event; /* the address of our failing event */

static bool mode_is(const char *mode)
{
    const char *now = getenv("SEXTANT_FAKE_PJRT");
    return now != NULL && strcmp(now, mode) == 0;
}

static const fake_error *fake_of(const void *error)
{
    for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
        if (error == fakes[i]) {
            return fakes[i];
        }
    }
    return NULL;
}

static void *error_destroy(void *args)
{
    sx_pjrt_object *a = args;
    return fake_of(a->object) != NULL ? NULL : real->slots[SX_PJRT_ERROR_DESTROY](args);
}

static void *error_message(void *args)
{
    sx_pjrt_text *a = args;
    const fake_error *fake = fake_of(a->object);
    if (fake == NULL) {
        return real->slots[SX_PJRT_ERROR_MESSAGE](args);
    }
    a->text = fake->message;
    a->size = strlen(fake->message);
    return NULL;
}

static void *error_code(void *args)
{
    sx_pjrt_int *a = args;
    const fake_error *fake = fake_of(a->object);
    if (fake == NULL) {
        return real->slots[SX_PJRT_ERROR_CODE](args);
    }
    a->value = fake->code;
    return NULL;
}

static void *initialize(void *args)
{
    return mode_is("refuse") ? &refused
           : real == NULL    ? NULL
                             : real->slots[SX_PJRT_PLUGIN_INITIALIZE](args);
}

static void fill_table(void);

/* Loaded before there was a real plugin, it takes it now. */
static void *client_create(void *args)
{
    sx_pjrt_object nothing = SX_PJRT_ARGS(object, .object = NULL);
    if (real == NULL && getenv("SEXTANT_REAL_PJRT") != NULL) {
        fill_table();
        real->slots[SX_PJRT_PLUGIN_INITIALIZE](&nothing);
    }
    return mode_is("no-client") || real == NULL ? &no_client
                                                : real->slots[SX_PJRT_CLIENT_CREATE](args);
}

static void *client_compile(void *args)
{
    return mode_is("compile") ? &rejected : real->slots[SX_PJRT_CLIENT_COMPILE](args);
}

static void *serialize(void *args)
{
    return mode_is("serialize") ? &exhausted : real->slots[SX_PJRT_EXECUTABLE_SERIALIZE](args);
}

static void *deserialize(void *args)
{
    return mode_is("deserialize") ? &rejected : real->slots[SX_PJRT_DESERIALIZE_AND_LOAD](args);
}

static void *execute(void *args)
{
    sx_pjrt_execute *a = args;
    if (mode_is("execute")) {
        return &exhausted;
    }
    void *error = real->slots[SX_PJRT_EXECUTE](args);
    if (error == NULL && mode_is("execute-later")) {
        sx_pjrt_object end = SX_PJRT_ARGS(object, .object = a->events[0]);
        real->slots[SX_PJRT_EVENT_AWAIT](&end);
        real->slots[SX_PJRT_EVENT_DESTROY](&end);
        a->events[0] = &event;
    }
    return error;
}

static void *event_await(void *args)
{
    sx_pjrt_object *a = args;
    return a->object == &event ? &lost : real->slots[SX_PJRT_EVENT_AWAIT](args);
}

static void *event_destroy(void *args)
{
    sx_pjrt_object *a = args;
    return a->object == &event ? NULL : real->slots[SX_PJRT_EVENT_DESTROY](args);
}

static void fill_table(void)
{
    const char *path = getenv("SEXTANT_REAL_PJRT");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library == NULL ? NULL : dlsym(library, "GetPjrtApi");
    const sx_pjrt_api *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof(get));
    real = get == NULL ? NULL : get();
    if (real != NULL) {
        memcpy(&table, real, real->struct_size < sizeof(table) ? real->struct_size : sizeof(table));
    } else {
        table = (sx_pjrt_api){.struct_size = SX_PJRT_SLOTS_AT + 100 * 8, .minor = 81};
    }
    table.major = mode_is("major") ? 1 : 0;
    table.minor = mode_is("old") ? 40 : table.minor;
    table.slots[SX_PJRT_ERROR_DESTROY] = error_destroy;
    table.slots[SX_PJRT_ERROR_MESSAGE] = error_message;
    table.slots[SX_PJRT_ERROR_CODE] = error_code;
    table.slots[SX_PJRT_PLUGIN_INITIALIZE] = initialize;
    table.slots[SX_PJRT_CLIENT_CREATE] = client_create;
    table.slots[SX_PJRT_CLIENT_COMPILE] = client_compile;
    table.slots[SX_PJRT_EXECUTABLE_SERIALIZE] = serialize;
    table.slots[SX_PJRT_DESERIALIZE_AND_LOAD] = deserialize;
    table.slots[SX_PJRT_EXECUTE] = execute;
    table.slots[SX_PJRT_EVENT_AWAIT] = event_await;
    table.slots[SX_PJRT_EVENT_DESTROY] = event_destroy;
}

__attribute__((visibility("default"))) const void *GetPjrtApi(void)
{
    if (mode_is("abort")) {
        fputs("F0817 Check failed: chips > 0\n", stderr);
        abort();
    }
    if (mode_is("exit")) {
        fputs("no licence\n", stderr);
        exit(3);
    }
    if (mode_is("null")) {
        return NULL;
    }
    fill_table();
    return &table;
}
