#include "harness.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "serve/predict_proto.h"

static const sx_serve_tensor x = {
    .name = "x", .tensor_name = "x:0", .type = {SX_F32, 1, {SX_BATCH}}};
static const sx_serve_signature signature = {
    .name = "serving_default", .input_count = 1, .inputs = &x, .output_count = 1, .outputs = &x};

static void put_varint(sx_buf *out, uint64_t value)
{
    for (; value > 127; value >>= 7) {
        sx_buf_putc(out, (char)(value | 128));
    }
    sx_buf_putc(out, (char)value);
}

static void put_field(sx_buf *out, uint32_t number, const void *data, size_t size)
{
    put_varint(out, number << 3 | 2);
    put_varint(out, size);
    sx_buf_append(out, data, size);
}

/* A request whose input has `elems` elements and the values of `fields`, each of `counts[i]`
 * floats; begins after `lead` bytes. */
static sx_bytes request_of(sx_buf *out, size_t lead, size_t elems, uint32_t field,
                           const size_t *counts)
{
    sx_buf tensor, part;
    float value = 1;
    sx_buf_init(&tensor, 0);
    sx_buf_init(&part, 0);
    sx_buf_append(&tensor, "\x08\x01", 2);
    sx_buf_putc(&part, 8);
    put_varint(&part, elems);
    char dim[12] = "";
    const size_t dim_bytes = part.size;
    memcpy(dim, part.data, dim_bytes);
    sx_buf_reset(&part);
    put_field(&part, 2, dim, dim_bytes);
    put_field(&tensor, 2, part.data, part.size);
    for (; *counts > 0; counts++) {
        sx_buf_reset(&part);
        for (size_t i = 0; i < *counts; i++, value++) {
            sx_buf_append(&part, &value, sizeof(value));
        }
        put_field(&tensor, field, part.data, part.size);
    }
    sx_buf_reset(&part);
    put_field(&part, 1, "x", 1);
    put_field(&part, 2, tensor.data, tensor.size);
    for (size_t i = 0; i < lead; i++) {
        sx_buf_putc(out, 'x');
    }
    put_field(out, 2, part.data, part.size);
    assert_int_equal(out->failed, 0);
    sx_buf_deinit(&tensor);
    sx_buf_deinit(&part);
    return (sx_bytes){out->data + lead, out->size - lead};
}

/* Values that lie together are used in place where they are aligned; else they are copied, and it
 * is told where they lay if that is worth it. */
static void test_serve_predict_proto__values_in_place(void **state)
{
    (void)state;
    static const struct {
        uint32_t field;
        size_t elems, counts[4];
        bool together;
    } rows[] = {
        {4, 3, {3}, true},         {5, 3, {3}, true},
        {5, 3, {2, 1}, false},     {5, 3, {1, 1, 1}, false},
        {5, 3, {2}, false},        {4, 50000, {50000}, true},
        {5, 50000, {50000}, true}, {5, 50000, {49999, 1}, false},
    };
    const sx_predict_spec spec = {.version = -1};
    for (size_t i = 0; i < SX_COUNT(rows) * 4; i++) {
        sx_buf text;
        sx_arena arena;
        sx_predict_call call = {0};
        sx_buf_init(&text, 0);
        sx_arena_init(&arena, 0);
        const size_t row = i / 4, elems = rows[row].elems;
        const sx_bytes message = request_of(&text, i % 4, elems, rows[row].field, rows[row].counts);
        assert_ok(sx_predict_proto_read(message, &spec, &signature, 1, &arena, &call));
        const float *data = call.inputs[0].data;
        const uintptr_t offset = (uintptr_t)data - (uintptr_t)message.data;
        const bool aligned = (message.size + i % 4 - elems * 4) % 4 == 0;
        assert_int_equal(offset < message.size, rows[row].together && aligned);
        assert_int_equal(call.unaligned != NULL, rows[row].together && !aligned && elems == 50000);
        const size_t given = rows[row].counts[0] + rows[row].counts[1] + rows[row].counts[2];
        for (size_t k = 0; k < elems; k++) { /* the last value is repeated */
            assert_true(data[k] == (float)(k < given ? k + 1 : given));
        }
        sx_arena_deinit(&arena);
        sx_buf_deinit(&text);
    }
}

static void test_serve_predict_proto__refuses(void **state)
{
    (void)state;
    static const struct {
        uint32_t field;
        size_t elems, counts[4];
        const char *part;
    } rows[] = {
        {5, 3, {3, 1}, "malformed values, or more than the shape has"},
        {5, 3, {3, 3}, "malformed values, or more than the shape has"},
        {5, 3, {4}, "malformed values, or more than the shape has"},
        {4, 3, {4}, "the size of tensor_content does not match the shape"},
    };
    const sx_predict_spec spec = {.version = -1};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_buf text;
        sx_arena arena;
        sx_predict_call call = {0};
        sx_buf_init(&text, 0);
        sx_arena_init(&arena, 0);
        const sx_bytes message = request_of(&text, 0, rows[i].elems, rows[i].field, rows[i].counts);
        assert_error(sx_predict_proto_read(message, &spec, &signature, 1, &arena, &call),
                     SX_INVALID_ARGUMENT, rows[i].part);
        sx_arena_deinit(&arena);
        sx_buf_deinit(&text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_predict_proto__values_in_place),
    cmocka_unit_test(test_serve_predict_proto__refuses),
};
SX_TEST_MAIN(tests)
