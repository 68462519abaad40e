#include "proto/guard.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "proto/descriptor.h"
#include "proto/wire.h"

/* Memory that protobuf-c allocates besides the structs. It scans a message's fields into slabs
 * before it fills the struct: the first 16 fields are on the stack, and each further slab is twice
 * as large as the one before. */
enum {
    HEAP_BYTES = 16, /* the allocator's overhead per allocation */
    SLAB_FIELDS = 16,
    SCAN_BYTES = 64, /* per field beyond the first slab: 32, and the slab may be half empty */
    UNKNOWN_BYTES = sizeof(ProtobufCMessageUnknownField) + HEAP_BYTES,
};

bool sx_proto_is_map_entry(const ProtobufCMessageDescriptor *type)
{
    static const char suffix[] = "Entry";
    size_t length = strlen(type->short_name), tail = sizeof suffix - 1;
    if (type->n_fields != 2 || length <= tail ||
        strcmp(type->short_name + length - tail, suffix) != 0) {
        return false;
    }
    const ProtobufCFieldDescriptor *key = &type->fields[0], *value = &type->fields[1];
    bool key_type_ok = key->type != PROTOBUF_C_TYPE_MESSAGE && key->type != PROTOBUF_C_TYPE_BYTES &&
                       key->type != PROTOBUF_C_TYPE_FLOAT && key->type != PROTOBUF_C_TYPE_DOUBLE;
    return key->id == 1 && value->id == 2 && strcmp(key->name, "key") == 0 &&
           strcmp(value->name, "value") == 0 && key_type_ok &&
           key->label != PROTOBUF_C_LABEL_REPEATED && value->label != PROTOBUF_C_LABEL_REPEATED;
}

/* ---- The walk ---- */

struct frame {
    const ProtobufCMessageDescriptor *type;
    sx_wire wire;
    uint32_t fields;
    bool lacks_value; /* a map entry whose value is a message and has not been seen */
};

struct walk {
    const char *name;
    const uint8_t *start;
    sx_proto_limits limits;
    uint64_t allowed_bytes, bytes, messages;
    bool fill_values; /* some map entry had no value */
    int depth;        /* frames in use */
    struct frame stack[SX_PROTO_MAX_DEPTH];
};

static sx_proto_limits with_defaults(const sx_proto_limits *given)
{
    sx_proto_limits limits = given != NULL ? *given : (sx_proto_limits){0};
    if (limits.max_depth <= 0 || limits.max_depth > SX_PROTO_MAX_DEPTH) {
        limits.max_depth = SX_PROTO_MAX_DEPTH;
    }
    limits.max_messages = limits.max_messages != 0 ? limits.max_messages : 1000000;
    limits.max_expansion = limits.max_expansion != 0 ? limits.max_expansion : 32;
    limits.max_bytes = limits.max_bytes != 0 ? limits.max_bytes : (uint64_t)1 << 31;
    limits.slack = limits.slack != 0 ? limits.slack : 1 << 20;
    return limits;
}

static sx_status malformed(const struct walk *walk, const uint8_t *at, const char *what)
{
    return sx_error(SX_DATA_LOSS, "%s: byte %zu, in %s: %s", walk->name, (size_t)(at - walk->start),
                    walk->stack[walk->depth - 1].type->name, what);
}

static sx_status charge(struct walk *walk, uint64_t bytes)
{
    walk->bytes += bytes;
    if (walk->bytes > walk->allowed_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "%s: the message would take more than %" PRIu64 " bytes of memory",
                        walk->name, walk->allowed_bytes);
    }
    return SX_OK;
}

/* Starts a message whose bytes are `content`. */
static sx_status push(struct walk *walk, const ProtobufCMessageDescriptor *type, sx_bytes content)
{
    if (walk->depth == walk->limits.max_depth) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: messages nested deeper than %d levels",
                        walk->name, walk->limits.max_depth);
    }
    if (++walk->messages > walk->limits.max_messages) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: more than %" PRIu64 " messages", walk->name,
                        walk->limits.max_messages);
    }
    bool entry = sx_proto_is_map_entry(type) && type->fields[1].type == PROTOBUF_C_TYPE_MESSAGE;
    walk->stack[walk->depth++] = (struct frame){type, sx_wire_over(content), 0, entry};
    return charge(walk, type->sizeof_message + sizeof(void *) + HEAP_BYTES);
}

/* Counts the elements of a packed list; false if it does not end with a complete element. */
static bool count_packed(ProtobufCType type, sx_bytes list, uint64_t *out_count)
{
    sx_wire_type wire_type = sx_proto_scalar_of(type).wire;
    if (wire_type != SX_WIRE_VARINT) {
        size_t size = wire_type == SX_WIRE_FIXED32 ? 4 : 8;
        *out_count = list.size / size;
        return list.size % size == 0;
    }
    sx_wire wire = sx_wire_over(list);
    uint64_t count = 0, value;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_varint(&wire, &value)) {
            return false;
        }
        count++;
    }
    *out_count = count;
    return true;
}

static sx_status check_string(struct walk *walk, const ProtobufCFieldDescriptor *field,
                              sx_bytes text)
{
    if (memchr(text.data, 0, text.size) != NULL || !sx_utf8_valid(text.data, text.size)) {
        char what[200];
        snprintf(what, sizeof what, "string %s is not UTF-8 or contains a NUL", field->name);
        return malformed(walk, text.data, what);
    }
    return charge(walk, text.size + 1 + HEAP_BYTES + sizeof(char *));
}

static sx_status check_known(struct walk *walk, const ProtobufCFieldDescriptor *field,
                             const sx_wire_field *found)
{
    sx_proto_scalar scalar = sx_proto_scalar_of(field->type);
    if (field->label == PROTOBUF_C_LABEL_REPEATED && found->type == SX_WIRE_BYTES &&
        sx_proto_is_packable(field->type)) {
        uint64_t count;
        if (!count_packed(field->type, found->value, &count)) {
            return malformed(walk, found->value.data, "packed list ends inside an element");
        }
        return charge(walk, count * scalar.struct_bytes);
    }
    if (found->type != scalar.wire) {
        char what[200];
        snprintf(what, sizeof what, "field %s has wire type %d, expected %d", field->name,
                 (int)found->type, (int)scalar.wire);
        return malformed(walk, found->value.data, what);
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return push(walk, field->descriptor, found->value);
    case PROTOBUF_C_TYPE_STRING:
        return check_string(walk, field, found->value);
    case PROTOBUF_C_TYPE_BYTES:
        return charge(walk, found->value.size + HEAP_BYTES + scalar.struct_bytes);
    default:
        return charge(walk, field->label == PROTOBUF_C_LABEL_REPEATED ? scalar.struct_bytes : 0);
    }
}

/* Ends the message on top of the stack. */
static sx_status pop(struct walk *walk)
{
    struct frame *frame = &walk->stack[--walk->depth];
    if (!frame->lacks_value) {
        return SX_OK;
    }
    walk->fill_values = true;
    const ProtobufCMessageDescriptor *value = frame->type->fields[1].descriptor;
    return charge(walk, value->sizeof_message + HEAP_BYTES);
}

static sx_status step(struct walk *walk)
{
    struct frame *frame = &walk->stack[walk->depth - 1];
    const uint8_t *at = frame->wire.at;
    sx_wire_field found;
    if (!sx_wire_more(&frame->wire)) {
        return pop(walk);
    }
    if (!sx_wire_next(&frame->wire, &found)) {
        return malformed(walk, at, "malformed or truncated field");
    }
    if (++frame->fields > SLAB_FIELDS) {
        SX_TRY(charge(walk, SCAN_BYTES));
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(frame->type, found.number);
    if (field == NULL) {
        return charge(walk, found.value.size + UNKNOWN_BYTES);
    }
    frame->lacks_value = frame->lacks_value && field->id != 2;
    return check_known(walk, field, &found);
}

static sx_status run_walk(struct walk *walk, const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                          const sx_proto_limits *limits, const char *name)
{
    walk->name = name;
    walk->limits = with_defaults(limits);
    if (bytes.size > INT_MAX) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: message of %zu bytes; the limit is 2 GiB", name,
                        bytes.size);
    }
    uint64_t expanded = (uint64_t)bytes.size * walk->limits.max_expansion;
    walk->allowed_bytes = SX_MIN(SX_MAX(expanded, walk->limits.slack), walk->limits.max_bytes);
    SX_TRY(push(walk, type, bytes));
    walk->start = walk->stack[0].wire.at;
    while (walk->depth > 0) {
        SX_TRY(step(walk));
    }
    return SX_OK;
}

sx_status sx_proto_check(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                         const sx_proto_limits *limits, const char *name)
{
    struct walk walk = {0};
    return run_walk(&walk, type, bytes, limits, name);
}

/* ---- Unpacking ---- */

/* A message lies in chunks, its root behind the head of the first one, and is freed as a whole;
 * large blocks are by themselves, since bytes can be freed alone. */
enum { LARGE = 4096, MAX_CHUNK = 4 << 20, ALIGN = 8 };

typedef struct large {
    struct large *before, *next;
} large;

typedef struct chunk {
    struct chunk *next;
    uint64_t unused; /* keeps what follows aligned */
} chunk;

typedef struct store {
    chunk *chunks; /* newest first; the oldest contains this */
    large blocks;  /* a ring */
    char *at, *end;
    uint64_t expected; /* memory that is still to be taken, at most */
    bool failed;
} store;

static size_t aligned(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static void *allocate_large(store *h, size_t size)
{
    size_t bytes;
    large *b = sx_add_size(size, aligned(sizeof(large)), &bytes) ? sx_alloc(bytes, 1) : NULL;
    if (b == NULL) {
        h->failed = true;
        return NULL;
    }
    *b = (large){.before = &h->blocks, .next = h->blocks.next};
    b->next->before = b;
    h->blocks.next = b;
    return (char *)b + aligned(sizeof(large));
}

/* An allocator for protobuf-c. */
static void *allocate(void *user, size_t size)
{
    store *h = user;
    if (size >= LARGE) {
        return allocate_large(h, size);
    }
    const size_t room = aligned(size);
    if ((size_t)(h->end - h->at) < room) {
        const size_t bytes = sizeof(chunk) + (size_t)SX_MAX(SX_MIN(h->expected, MAX_CHUNK), LARGE);
        chunk *c = sx_alloc_aligned(bytes, ALIGN);
        if (c == NULL) {
            h->failed = true;
            return NULL;
        }
        c->next = h->chunks;
        h->chunks = c;
        h->at = (char *)(c + 1);
        h->end = (char *)c + bytes;
        h->expected -= SX_MIN(h->expected, bytes);
    } else if (!sx_alloc_part()) {
        h->failed = true;
        return NULL;
    }
    void *block = h->at;
    h->at += room;
    return block;
}

static void release(void *user, void *block)
{
    (void)user;
    (void)block;
}

static void free_store(store *h)
{
    for (large *b = h->blocks.next, *next; b != &h->blocks; b = next) {
        next = b->next;
        sx_free(b);
    }
    for (chunk *c = h->chunks, *next; c != NULL; c = next) { /* `h` is in the last */
        next = c->next;
        sx_free_aligned(c);
    }
}

/* For a message that takes at most `bytes`. */
static store *make_store(uint64_t bytes)
{
    const size_t room = aligned(sizeof(store)) + (size_t)SX_MIN(bytes, MAX_CHUNK);
    chunk *c = sx_alloc_aligned(sizeof(chunk) + room, ALIGN);
    if (c == NULL) {
        return NULL;
    }
    *c = (chunk){0};
    store *h = (store *)(c + 1);
    *h = (store){.chunks = c,
                 .at = (char *)h + aligned(sizeof(store)),
                 .end = (char *)h + room,
                 .expected = bytes - SX_MIN(bytes, MAX_CHUNK)};
    h->blocks = (large){&h->blocks, &h->blocks};
    return h;
}

/* Adds the missing values of map entries. The check has limited the recursion to 100 levels. */
static sx_status fill_values(store *h, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (sx_proto_is_map_entry(type) && type->fields[1].type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessageDescriptor *value_type = type->fields[1].descriptor;
        ProtobufCMessage **value = sx_proto_member(message, &type->fields[1]);
        if (*value == NULL) {
            *value = allocate(h, value_type->sizeof_message);
            if (*value == NULL) {
                return sx_no_memory("for a map value");
            }
            protobuf_c_message_init(value_type, *value);
        }
    }
    for (unsigned f = 0; f < type->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &type->fields[f];
        size_t count = field->type == PROTOBUF_C_TYPE_MESSAGE ? sx_proto_count(message, field) : 0;
        for (size_t i = 0; i < count; i++) {
            SX_TRY(fill_values(h, *(ProtobufCMessage **)sx_proto_value(message, field, i)));
        }
    }
    return SX_OK;
}

sx_status sx_proto_unpack(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                          const sx_proto_limits *limits, const char *name,
                          ProtobufCMessage **out_message)
{
    struct walk walk = {0};
    SX_TRY(run_walk(&walk, type, bytes, limits, name));
    store *h = make_store(walk.bytes);
    if (h == NULL) {
        return sx_no_memory("decoding %s", name);
    }
    const char *root = h->at; /* it is allocated first */
    ProtobufCAllocator allocator = {allocate, release, h};
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &allocator, bytes.size, sx_wire_over(bytes).at);
    sx_status status = SX_OK;
    if (message == NULL) {
        status = h->failed ? sx_no_memory("decoding %s", name)
                           : sx_error(SX_DATA_LOSS, "%s: not a valid %s", name, type->name);
    } else if ((const char *)message != root) {
        status = sx_error(SX_INTERNAL, "%s: the message is not its first block", name);
    } else if (walk.fill_values) {
        status = fill_values(h, message);
    }
    if (status != SX_OK) {
        free_store(h);
        return status;
    }
    *out_message = message;
    return SX_OK;
}

void sx_proto_free_bytes(ProtobufCBinaryData *bytes)
{
    if (bytes->len >= LARGE) {
        large *b = (large *)(void *)(bytes->data - aligned(sizeof(large)));
        b->before->next = b->next;
        b->next->before = b->before;
        sx_free(b);
    }
    *bytes = (ProtobufCBinaryData){0};
}

void sx_proto_free(void *message)
{
    if (message != NULL) {
        free_store((store *)(void *)((char *)message - aligned(sizeof(store))));
    }
}
