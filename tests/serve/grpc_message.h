/* Messages of TensorFlow Serving's gRPC, written by hand, and what is expected of their answers. */
#ifndef SX_TESTS_GRPC_MESSAGE_H
#define SX_TESTS_GRPC_MESSAGE_H

#include "net/http2_client.h"
#include "proto/wire.h"

static const char predict_path[] = "/tensorflow.serving.PredictionService/Predict";

/* A message being written; the length of a part is put before it when it ends. */
struct message {
    char bytes[4096];
    size_t size;
};

static inline void put(struct message *message, const void *bytes, size_t size)
{
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

static inline void put_field(struct message *message, int number, const void *bytes, size_t size)
{
    uint8_t head[2 * SX_WIRE_MAX_VARINT];
    size_t head_size = sx_wire_put_varint(head, (uint64_t)number << 3 | SX_WIRE_BYTES);
    head_size += sx_wire_put_varint(head + head_size, size);
    put(message, head, head_size);
    put(message, bytes, size);
}

static inline void put_part(struct message *message, int number, const struct message *part)
{
    put_field(message, number, part->bytes, part->size);
}

static inline struct message spec_of(const char *name)
{
    struct message spec = {.size = 0};
    put_field(&spec, 1, name, strlen(name));
    return spec;
}

/* A float tensor of [count], as values or as content. */
static inline struct message floats_of(const float *values, int count, bool content)
{
    struct message tensor = {.size = 0}, shape = {.size = 0};
    const char dim[] = {2 << 3 | 2, 2, 1 << 3, (char)count};
    put(&shape, dim, sizeof(dim));
    put(&tensor, "\x08\x01", 2); /* DT_FLOAT */
    put_part(&tensor, 2, &shape);
    put_field(&tensor, content ? 4 : 5, values, (size_t)count * 4);
    return tensor;
}

static inline void put_input(struct message *request, const char *name,
                             const struct message *tensor)
{
    struct message entry = {.size = 0};
    put_field(&entry, 1, name, strlen(name));
    put_part(&entry, 2, tensor);
    put_part(request, 2, &entry);
}

static inline struct message frame_of(const struct message *request)
{
    struct message frame = {.size = 0};
    const char prefix[5] = {0, 0, 0, (char)(request->size >> 8), (char)request->size};
    put(&frame, prefix, 5);
    put(&frame, request->bytes, request->size);
    return frame;
}

static inline void expect_status(const struct h2_answer *answer, int status, const char *part)
{
    char line[40];
    snprintf(line, sizeof(line), "grpc-status: %d\n", status);
    if (answer->status != 200 || strstr(answer->fields, line) == NULL ||
        (part != NULL && strstr(answer->fields, part) == NULL)) {
        fail_msg("got %d:\n%s\nexpected %swith %s", answer->status, answer->fields, line,
                 part != NULL ? part : "");
    }
}

#endif
