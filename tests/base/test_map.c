#include "harness.h"

#include "base/map.h"
#include "base/memory.h"

static void test_base_map__hash_is_fnv1a(void **state)
{
    (void)state;
    assert_true(sx_hash64("", 0) == 0xcbf29ce484222325u);
    assert_true(sx_hash64("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(sx_hash64("foobar", 6) == 0x85944171f73967e8u);
}

static void test_base_map__finds_what_was_put_in_order(void **state)
{
    (void)state;
    static int values[5000];
    sx_map map;
    sx_map_init(&map);
    assert_null(sx_map_get(&map, "nothing"));
    char key[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "layer_%d/kernel", i);
        assert_ok(sx_map_put(&map, key, &values[i]));
    }
    assert_int_equal(map.count, 5000);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "layer_%d/kernel", i);
        assert_ptr_equal(sx_map_get(&map, key), &values[i]);
        assert_string_equal(map.entries[i].key, key);
    }
    assert_null(sx_map_get(&map, "layer_5000/kernel"));
    sx_map_deinit(&map);
}

static void test_base_map__borrows_keys(void **state)
{
    (void)state;
    static char keys[100][16];
    sx_map map;
    sx_map_init_borrowed(&map);
    for (int i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        assert_ok(sx_map_put(&map, keys[i], keys[i]));
        assert_ptr_equal(map.entries[i].key, keys[i]);
    }
    assert_ptr_equal(sx_map_get(&map, "k42"), keys[42]);
    sx_map_deinit(&map);
    assert_null(sx_map_get(&map, "k42"));
}

static void test_base_map__replaces_and_holds_null(void **state)
{
    (void)state;
    int a, b;
    sx_map map;
    sx_map_init(&map);
    assert_ok(sx_map_put(&map, "k", &a));
    assert_ok(sx_map_put(&map, "k", &b));
    assert_ok(sx_map_put(&map, "null", NULL));
    assert_int_equal(map.count, 2);
    assert_ptr_equal(sx_map_get(&map, "k"), &b);
    assert_true(sx_map_has(&map, "null") && !sx_map_has(&map, "other"));
    sx_map_deinit(&map);
}

static void test_base_map__is_unchanged_when_memory_fails(void **state)
{
    (void)state;
    sx_map map;
    sx_map_init(&map);
    for (int i = 0; i < 8; i++) {
        assert_ok(sx_map_put(&map, (char[]){(char)('a' + i), '\0'}, &map));
    }
    for (int n = 1; n <= 3; n++) {
        sx_alloc_fail_after(n);
        sx_status status = sx_map_put(&map, "new", &map);
        sx_alloc_fail_after(0);
        assert_error(status, SX_RESOURCE_EXHAUSTED, "out of memory for a map");
        assert_false(sx_map_has(&map, "new"));
        assert_true(sx_map_has(&map, "h"));
    }
    assert_ok(sx_map_put(&map, "new", &map));
    sx_map_deinit(&map);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_map__hash_is_fnv1a),
    cmocka_unit_test(test_base_map__finds_what_was_put_in_order),
    cmocka_unit_test(test_base_map__borrows_keys),
    cmocka_unit_test(test_base_map__replaces_and_holds_null),
    cmocka_unit_test(test_base_map__is_unchanged_when_memory_fails),
};

SX_TEST_MAIN(tests)
