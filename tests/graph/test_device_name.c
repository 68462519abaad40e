/* Device names: the forms that TensorFlow has, what scopes make of them, and what is refused. What
 * is expected is what tf.DeviceSpec and tf.device() of TensorFlow 2.21 give. */
#include "harness.h"

#include <sextant/ops.h>

#include "graph/device_name.h"
#include "graph/ir.h"

static void test_graph_device_name__forms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"/cpu:1", "/device:CPU:1"},
        {"cpu:1", "/device:CPU:1"},
        {"gpu", "/device:GPU:*"},
        {"/device:GPU:*", "/device:GPU:*"},
        {"//CPU:0/", "/device:CPU:0"},
        {"/job:worker/task:2", "/job:worker/task:2"},
        {"/job:localhost/replica:0/task:0/device:XLA_CPU:12",
         "/job:localhost/replica:0/task:0/device:XLA_CPU:12"},
        {"/job:ps/cpu:0", "/job:ps/device:CPU:0"},
        {"", ""},
        {"/device:*:1", "/device:*:1"},
        {"/device:*", ""},
        {"/job:*/replica:*/task:*/device:*:*", ""},
        {"/job:*/device:CPU:1", "/device:CPU:1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_device_name name;
        char text[SX_DEVICE_NAME_BYTES];
        assert_ok(sx_device_name_parse(rows[i].text, &name));
        assert_string_equal(sx_device_name_print(&name, text), rows[i].printed);
    }
    static const char *const wrong[] = {
        "/cpu:",      "/cpu:x",     "/device:", "/9:1",
        "/cpu:1:2",   "/replica:a", "/job:",    "/cpu:999999999999",
        "/task:-1",   "/foo/cpu:0", "/cpu:0/x", "/cpu:0/device:CPU:1",
        "/cpu/job:a", "*",          "/*:1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        sx_device_name name;
        assert_error(sx_device_name_parse(wrong[i], &name), SX_INVALID_ARGUMENT,
                     "is not a part of a device's name");
    }
}

/* The part that does not belong there is named, not the one after it. */
static void test_graph_device_name__a_part_too_many(void **state)
{
    (void)state;
    sx_device_name name;
    assert_error(sx_device_name_parse("/foo/cpu:0", &name), SX_INVALID_ARGUMENT,
                 "\"foo\" in the device \"/foo/cpu:0\" is not a part of a device's name; expected "
                 "names such as /cpu:1");
    assert_error(sx_device_name_parse("/device:GPU:0/device:CPU:0", &name), SX_INVALID_ARGUMENT,
                 "\"device:CPU:0\" in the device");
}

static void test_graph_device_name__scopes_merge(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type type = sx_type_of(SX_F32, 2);
    sx_device_scope_begin(b, "/job:localhost/device:GPU:3");
    sx_value x = sx_input(b, "x", type);
    sx_device_scope_begin(b, "/task:0");
    sx_value y = sx_neg(b, x);
    sx_device_scope_begin(b, "cpu:1");
    y = sx_neg(b, y);
    sx_device_scope_begin(b, NULL);
    y = sx_neg(b, y);
    sx_device_scope_end(b);
    sx_device_scope_end(b);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/cpu"); /* the number stays, as in TensorFlow */
    y = sx_neg(b, y);
    sx_device_scope_end(b);
    sx_device_scope_end(b);
    sx_output(b, "y", sx_neg(b, y));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    static const char *const devices[] = {
        "/job:localhost/device:GPU:3",        "/job:localhost/task:0/device:GPU:3",
        "/job:localhost/task:0/device:CPU:1", "",
        "/job:localhost/device:CPU:3",        ""};
    assert_int_equal(g->n_nodes, 6);
    for (int k = 0; k < 6; k++) {
        assert_string_equal(g->nodes[k].device, devices[k]);
    }
    sx_graph_destroy(g);
}

static void test_graph_device_name__misuse_is_named(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_builder_at(b, "net.c", 7);
    sx_device_scope_begin(b, "/gpu:one");
    assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT,
                 "net.c:7: device scope \"/gpu:one\": \"gpu:one\" in the device");
    sx_builder_destroy(b);
    assert_ok(sx_builder_create(&b));
    sx_device_scope_begin(b, "/gpu:1");
    sx_output(b, "y", sx_constant_f32(b, 1));
    assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT,
                 "device scope \"/device:GPU:1\" is still open");
    sx_builder_destroy(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_device_name__forms),
    cmocka_unit_test(test_graph_device_name__a_part_too_many),
    cmocka_unit_test(test_graph_device_name__scopes_merge),
    cmocka_unit_test(test_graph_device_name__misuse_is_named),
};
SX_TEST_MAIN(tests)
