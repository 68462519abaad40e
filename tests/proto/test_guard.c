#include "torture.h"

#include <pthread.h>

#include "base/memory.h"
#include "proto/attr_value.pb-c.h"
#include "proto/checkpoint_state.pb-c.h"
#include "proto/graph.pb-c.h"
#include "proto/guard.h"
#include "proto/tensor.pb-c.h"
#include "proto/tensor_bundle.pb-c.h"
#include "proto/wire.h"

static const ProtobufCMessageDescriptor *const attr_type = &tensorflow__attr_value__descriptor;
static const ProtobufCMessageDescriptor *const node_type = &tensorflow__node_def__descriptor;
static const ProtobufCMessageDescriptor *const shape_type =
    &tensorflow__tensor_shape_proto__descriptor;

static void put(sx_buf *out, uint32_t number, const void *data, size_t size)
{
    uint8_t head[2 * SX_WIRE_MAX_VARINT];
    size_t n = sx_wire_put_varint(head, number << 3 | SX_WIRE_BYTES);
    n += sx_wire_put_varint(head + n, size);
    sx_buf_append(out, head, n);
    sx_buf_append(out, data, size);
}

static sx_bytes bytes_of(const sx_buf *buf)
{
    return (sx_bytes){buf->data, buf->size};
}

static sx_status check(const ProtobufCMessageDescriptor *type, const char *bytes, size_t size)
{
    return sx_proto_check(type, (sx_bytes){bytes, size}, NULL, "m");
}

/* A real entry of a checkpoint's index (tensor "b"). */
static void test_proto_guard__unpacks_and_packs_the_same_bytes(void **state)
{
    (void)state;
    static const char wire[] = "\x08\x01\x12\x00\x20\x04\x28\x04\x35\xef\xd6\x82\xc3";
    ProtobufCMessage *message = NULL;
    assert_ok(sx_proto_unpack(&tensorflow__bundle_entry_proto__descriptor,
                              (sx_bytes){wire, sizeof wire - 1}, NULL, "b", &message));
    Tensorflow__BundleEntryProto *entry = (Tensorflow__BundleEntryProto *)message;
    assert_int_equal(entry->dtype, TENSORFLOW__DATA_TYPE__DT_FLOAT);
    assert_non_null(entry->shape);
    assert_int_equal(entry->offset, 4);
    assert_int_equal(entry->size, 4);
    assert_int_equal(entry->crc32c, 0xc382d6ef);
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(sx_proto_pack(message, &out));
    assert_int_equal(out.size, sizeof wire - 1);
    assert_memory_equal(out.data, wire, out.size);
    sx_buf_deinit(&out);
    sx_proto_free(message);
    sx_proto_free(NULL);
}

/* AttrValue{func{attr{"" -> AttrValue{...}}}}: three levels a round. */
static void nest(sx_buf *out, int rounds)
{
    sx_buf inner;
    sx_buf_init(&inner, 0);
    sx_buf_reset(out);
    for (int i = 0; i < rounds; i++) {
        static const uint32_t numbers[] = {2, 2, 10};
        for (int k = 0; k < 3; k++) {
            sx_buf_reset(&inner);
            put(&inner, numbers[k], sx_buf_text(out), out->size);
            sx_buf_reset(out);
            sx_buf_append(out, inner.data, inner.size);
        }
    }
    sx_buf_deinit(&inner);
}

static void *unpack_on_a_small_stack(void *user)
{
    ProtobufCMessage *message = NULL;
    sx_status status = sx_proto_unpack(attr_type, *(sx_bytes *)user, NULL, "deep", &message);
    sx_proto_free(message);
    return status;
}

static void test_proto_guard__depth(void **state)
{
    (void)state;
    sx_buf deep;
    sx_buf_init(&deep, 0);
    nest(&deep, 33);
    assert_ok(sx_proto_check(attr_type, bytes_of(&deep), NULL, "deep"));
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;
    sx_bytes bytes = bytes_of(&deep);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, unpack_on_a_small_stack, &bytes), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ok((sx_status)result);
    pthread_attr_destroy(&attr);
    nest(&deep, 34);
    assert_error(sx_proto_check(attr_type, bytes_of(&deep), NULL, "deep"), SX_RESOURCE_EXHAUSTED,
                 "deep: messages nested deeper than 100 levels");
    sx_proto_limits shallow = {.max_depth = 4};
    nest(&deep, 2);
    assert_error(sx_proto_check(attr_type, bytes_of(&deep), &shallow, "deep"),
                 SX_RESOURCE_EXHAUSTED, "4 levels");
    sx_buf_deinit(&deep);
}

static void test_proto_guard__count_and_expansion(void **state)
{
    (void)state;
    sx_buf many;
    sx_buf_init(&many, 0);
    for (int i = 0; i < 300000; i++) {
        sx_buf_append(&many, "\x12\x00", 2); /* an empty Dim: 2 bytes become 40 and more */
    }
    assert_error(sx_proto_check(shape_type, bytes_of(&many), NULL, "many"), SX_RESOURCE_EXHAUSTED,
                 "bytes of memory");
    sx_proto_limits wide = {.max_expansion = 200};
    assert_ok(sx_proto_check(shape_type, bytes_of(&many), &wide, "many"));
    wide.max_messages = 300000;
    assert_error(sx_proto_check(shape_type, bytes_of(&many), &wide, "many"), SX_RESOURCE_EXHAUSTED,
                 "more than 300000 messages");
    wide = (sx_proto_limits){.max_expansion = 200, .max_bytes = 1 << 20};
    assert_error(sx_proto_check(shape_type, bytes_of(&many), &wide, "many"), SX_RESOURCE_EXHAUSTED,
                 "more than 1048576 bytes");
    many.size = 100; /* small ones have slack */
    assert_ok(sx_proto_check(shape_type, bytes_of(&many), NULL, "many"));
    sx_buf_deinit(&many);
}

static void test_proto_guard__strings(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        bool good;
    } rows[] = {
        {"plain", 5, true},
        {"", 0, true},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xbb", 9, true},
        {"\xef\xbf\xbf\xed\x9f\xbf\xf4\x8f\xbf\xbf", 10, true},
        {"a\0b", 3, false},
        {"\xff", 1, false},
        {"\x80", 1, false},
        {"\xc3", 1, false},
        {"\xc0\x80", 2, false}, /* overlong */
        {"\xe0\x80\x80", 3, false},
        {"\xf0\x80\x80\x80", 4, false},
        {"\xed\xa0\x80", 3, false},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, false}, /* beyond U+10FFFF */
        {"\xe2\x82", 2, false},
        {"\xe2\x82z", 3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sx_buf node;
        sx_buf_init(&node, 0);
        put(&node, 1, rows[i].bytes, rows[i].size);
        sx_status status = sx_proto_check(node_type, bytes_of(&node), NULL, "m");
        if (rows[i].good) {
            assert_ok(status);
        } else {
            assert_error(status, SX_DATA_LOSS,
                         "m: byte 2, in tensorflow.NodeDef: string name is not UTF-8");
        }
        sx_buf_reset(&node);
        put(&node, 2, rows[i].bytes, rows[i].size); /* AttrValue.s is bytes: anything goes */
        assert_ok(sx_proto_check(attr_type, bytes_of(&node), NULL, "m"));
        sx_buf_deinit(&node);
    }
}

static void test_proto_guard__malformed(void **state)
{
    (void)state;
    assert_error(check(shape_type, "\x12", 1), SX_DATA_LOSS,
                 "m: byte 0, in tensorflow.TensorShape");
    assert_error(check(shape_type, "\x12\x02\x08", 3), SX_DATA_LOSS, "truncated");
    assert_error(check(shape_type, "\x12\x01\x08", 3), SX_DATA_LOSS, "Dim: malformed");
    assert_error(check(shape_type, "\x02\x00", 2), SX_DATA_LOSS, "malformed"); /* field 0 */
    assert_error(check(shape_type, "\x0b\x0c", 2), SX_DATA_LOSS, "malformed"); /* a group */
    assert_error(check(shape_type, "\x10\x00", 2), SX_DATA_LOSS, "field dim has wire type 0");
    assert_error(check(shape_type, "\x1d\x00\x00\x00\x00", 5), SX_DATA_LOSS,
                 "field unknown_rank has wire type 5, expected 0");
    assert_error(check(shape_type, "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),
                 SX_DATA_LOSS, "malformed");
    /* bad_consumers: packed, cut inside a varint */
    assert_error(check(&tensorflow__version_def__descriptor, "\x1a\x01\x80", 3), SX_DATA_LOSS,
                 "packed");
    assert_error(check(&tensorflow__checkpoint_state__descriptor, "\x1a\x07xxxxxxx", 9),
                 SX_DATA_LOSS, "packed");
}

static void test_proto_guard__packed_and_unpacked_and_unknown(void **state)
{
    (void)state;
    static const char wire[] = "\x1a\x02\x01\x02" /* packed 1, 2 */
                               "\x18\x03"         /* unpacked 3 */
                               "\x1a\x01\x04"     /* packed 4 */
                               "\x7a\x02hi"       /* unknown field 15 */
                               "\xf9\x7f"
                               "12345678" /* unknown field 2047, fixed64 */
                               "\x08\x07";
    ProtobufCMessage *message = NULL;
    assert_ok(sx_proto_unpack(&tensorflow__version_def__descriptor,
                              (sx_bytes){wire, sizeof wire - 1}, NULL, "v", &message));
    Tensorflow__VersionDef *version = (Tensorflow__VersionDef *)message;
    assert_int_equal(version->producer, 7);
    assert_int_equal(version->n_bad_consumers, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(version->bad_consumers[i], i + 1);
    }
    assert_int_equal(message->n_unknown_fields, 2);
    sx_proto_free(message);
}

static void test_proto_guard__map_entries_get_their_value(void **state)
{
    (void)state;
    /* attr { key: "x" }  attr { }  attr { value { i: 5 } } */
    static const char wire[] = "\x2a\x03\x0a\x01x"
                               "\x2a\x00"
                               "\x2a\x04\x12\x02\x18\x05";
    ProtobufCMessage *message = NULL;
    assert_ok(sx_proto_unpack(node_type, (sx_bytes){wire, sizeof wire - 1}, NULL, "n", &message));
    Tensorflow__NodeDef *node = (Tensorflow__NodeDef *)message;
    assert_int_equal(node->n_attr, 3);
    for (int i = 0; i < 3; i++) {
        assert_non_null(node->attr[i]->value);
        assert_string_equal(node->attr[i]->key, i == 0 ? "x" : "");
        assert_ptr_equal(node->attr[i]->value->base.descriptor, attr_type);
    }
    assert_int_equal(node->attr[2]->value->i, 5);
    sx_proto_free(message);
}

static void test_proto_guard__packs_maps_sorted(void **state)
{
    (void)state;
    static const char wire[] = "\x2a\x05\x0a\x01z\x12\x00"
                               "\x2a\x07\x0a\x01x\x12\x02\x18\x01"
                               "\x2a\x07\x0a\x01x\x12\x02\x18\x02"
                               "\x2a\x06\x0a\x02xa\x12\x00"
                               "\x0a\x01n";
    static const char want[] = "\x0a\x01n"
                               "\x2a\x07\x0a\x01x\x12\x02\x18\x01"
                               "\x2a\x07\x0a\x01x\x12\x02\x18\x02"
                               "\x2a\x06\x0a\x02xa\x12\x00"
                               "\x2a\x05\x0a\x01z\x12\x00";
    ProtobufCMessage *message = NULL;
    assert_ok(sx_proto_unpack(node_type, (sx_bytes){wire, sizeof wire - 1}, NULL, "n", &message));
    for (int round = 0; round < 2; round++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        assert_ok(sx_proto_pack(message, &out));
        assert_int_equal(out.size, sizeof want - 1);
        assert_memory_equal(out.data, want, out.size);
        sx_buf_deinit(&out);
    }
    sx_proto_free(message);
}

static void test_proto_guard__tells_map_entries(void **state)
{
    (void)state;
    assert_true(sx_proto_is_map_entry(&tensorflow__node_def__attr_entry__descriptor));
    assert_false(sx_proto_is_map_entry(node_type));
    assert_false(sx_proto_is_map_entry(&tensorflow__bundle_entry_proto__descriptor));
}

/* Whatever passes the guard, protobuf-c takes; whatever it takes packs again. */
static void test_proto_guard__flips_and_cuts(void **state)
{
    (void)state;
    char wire[] = "\x0a\x02wx\x12\x05"
                  "Const\x1a\x01y\x2a\x0d\x0a\x05value\x12\x04\x42\x02\x08\x01"
                  "\x2a\x0b\x0a\x05"
                  "shape\x12\x02\x3a\x00\x62\x01z";
    size_t size = sizeof wire - 1, accepted = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        wire[bit / 8] ^= (char)(1 << bit % 8);
        for (size_t cut = bit == 0 ? 0 : size; cut <= size; cut++) {
            ProtobufCMessage *message = NULL;
            sx_status status =
                sx_proto_unpack(node_type, (sx_bytes){wire, cut}, NULL, "n", &message);
            if (status == SX_OK) {
                sx_buf out;
                sx_buf_init(&out, 0);
                assert_ok(sx_proto_pack(message, &out));
                sx_buf_deinit(&out);
                accepted++;
            }
            sx_proto_free(message);
            sx_status_free(status);
        }
        wire[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(accepted, 50, 8 * size);
}

/* Bytes are freed alone, whatever their size; large ones give their memory back at once. */
static void test_proto_guard__frees_bytes_alone(void **state)
{
    (void)state;
    enum { CONTENT = 20000 };
    for (size_t size = 0; size <= CONTENT; size += size < 10 ? 5 : CONTENT - 10) {
        static char wire[CONTENT + 8];
        ProtobufCMessage *message = NULL;
        const size_t head = size < 128 ? 2 : 4; /* tensor_content = 4 */
        wire[0] = 0x22;
        wire[1] = (char)(size < 128 ? size : size % 128 + 128);
        wire[2] = (char)(size < 128 ? 7 : size / 128 % 128 + 128);
        wire[3] = (char)(size < 128 ? 7 : size / 128 / 128);
        memset(wire + head, 7, size);
        assert_ok(sx_proto_unpack(&tensorflow__tensor_proto__descriptor,
                                  (sx_bytes){wire, head + size}, NULL, "t", &message));
        ProtobufCBinaryData *content = &((Tensorflow__TensorProto *)message)->tensor_content;
        assert_int_equal(content->len, size);
        assert_true(size == 0 || content->data[size - 1] == 7);
        const long before = sx_alloc_live();
        sx_proto_free_bytes(content);
        assert_int_equal(before - sx_alloc_live(), size == CONTENT);
        assert_int_equal(content->len, 0);
        sx_proto_free_bytes(content);
        sx_proto_free(message);
    }
}

static sx_status unpack_and_pack(void *user)
{
    (void)user;
    static const char wire[] = "\x0a\x01n\x2a\x03\x0a\x01x\x2a\x00\x7a\x02hi\x1a\x01i\x1a\x01j";
    ProtobufCMessage *message = NULL;
    SX_TRY(sx_proto_unpack(node_type, (sx_bytes){wire, sizeof wire - 1}, NULL, "n", &message));
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_status status = sx_proto_pack(message, &out);
    sx_buf_deinit(&out);
    sx_proto_free(message);
    return status;
}

static void test_proto_guard__survives_failing_allocations(void **state)
{
    (void)state;
    assert_in_range(sx_torture(unpack_and_pack, NULL), 10, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_proto_guard__unpacks_and_packs_the_same_bytes),
    cmocka_unit_test(test_proto_guard__depth),
    cmocka_unit_test(test_proto_guard__count_and_expansion),
    cmocka_unit_test(test_proto_guard__strings),
    cmocka_unit_test(test_proto_guard__malformed),
    cmocka_unit_test(test_proto_guard__packed_and_unpacked_and_unknown),
    cmocka_unit_test(test_proto_guard__map_entries_get_their_value),
    cmocka_unit_test(test_proto_guard__packs_maps_sorted),
    cmocka_unit_test(test_proto_guard__tells_map_entries),
    cmocka_unit_test(test_proto_guard__flips_and_cuts),
    cmocka_unit_test(test_proto_guard__frees_bytes_alone),
    cmocka_unit_test(test_proto_guard__survives_failing_allocations),
};
SX_TEST_MAIN(tests)
