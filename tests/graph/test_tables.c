/* Lookup tables against a plain list of keys and values. */
#include "harness.h"

#include <string.h>

#include "base/memory.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/ops/lookup_table.h"

enum { KEYS = 200, WIDTH = 3, STEPS = 6000 };

/* A library whose only node names the table. */
static sx_library *library_of(const sx_table_attrs *attrs)
{
    sx_library *library;
    sx_builder *b;
    const sx_only_table_attrs only = {*attrs};
    const sx_type size = sx_scalar_type(SX_I64);
    assert_ok(sx_library_create(&library));
    assert_ok(sx_builder_create_function(&b));
    sx_output(b, "n",
              sx_build_node(b, &(sx_node_spec){.op = &sx_op_lookup_table_size,
                                               .attrs = &only,
                                               .types = &size,
                                               .n_types = 1,
                                               .device = "",
                                               .file = ""}));
    assert_ok(sx_library_add(library, "f", b));
    sx_builder_destroy(b);
    assert_ok(sx_library_finish(library));
    return library;
}

/* The text of number k: none, short, longer than a chunk of the table's bytes. */
static sx_bytes text_of(uint32_t k, char *room)
{
    const int n = snprintf(room, 16, "%u", k) + (k % 7 == 0 ? 200 : 0);
    memset(room + strlen(room), 'x', 200);
    return (sx_bytes){room, k == 0 ? 0 : (size_t)n};
}

static void walk(sx_dtype keys, sx_dtype values)
{
    const sx_table_attrs attrs = {.table = "t",
                                  .kind = SX_TABLE_MUTABLE,
                                  .keys = keys,
                                  .values = values,
                                  .shape = {1, {WIDTH}}};
    sx_library *library = library_of(&attrs);
    sx_budget budget;
    sx_tables *tables;
    uint32_t expected[KEYS] = {0}; /* 0 = absent */
    int64_t n = 0;
    sx_budget_init(&budget, "the test", 0, NULL);
    assert_ok(sx_tables_create(&budget, NULL, &tables));
    assert_ok(sx_tables_declare(tables, library));
    assert_ok(sx_tables_declare(tables, library));
    assert_int_equal(sx_tables_count(tables), 1);
    sx_table *t = sx_tables_find(tables, "t");
    assert_non_null(t);
    assert_null(sx_tables_find(tables, "u"));
    for (uint32_t step = 1; step <= STEPS; step++) {
        const sx_u32x2 word = sx_threefry2x32((sx_u32x2){11, 12}, (sx_u32x2){step, 0});
        const uint32_t k = word.a % KEYS;
        char key_room[256], value_room[256];
        sx_bytes key_text = text_of(k, key_room), value_texts[WIDTH];
        int64_t number = (int64_t)k - 100, numbers[WIDTH];
        for (int j = 0; j < WIDTH; j++) {
            value_texts[j] = text_of(step, value_room);
            numbers[j] = (int64_t)step + j;
        }
        const sx_host_tensor key = {.type = sx_type_of(keys, 1),
                                    .data = keys == SX_STRING ? (void *)&key_text : &number};
        const sx_host_tensor value = {.type = sx_type_of(values, 1, WIDTH),
                                      .data = values == SX_STRING ? (void *)value_texts : numbers};
        if (word.b % 3 == 0) {
            n -= expected[k] != 0;
            expected[k] = 0;
            sx_table_remove(t, &key, 0);
        } else {
            n += expected[k] == 0;
            expected[k] = step;
            assert_ok(sx_table_put(t, &key, 0, &value, 0));
        }
        if (step == STEPS / 2) {
            sx_table_clear(t);
            memset(expected, 0, sizeof(expected));
            n = 0;
            assert_int_equal(sx_budget_used(&budget), 0);
        }
        assert_int_equal(sx_table_size(t), n);
        for (uint32_t other = 0; other < KEYS && step % 50 == 0; other++) {
            key_text = text_of(other, key_room);
            number = (int64_t)other - 100;
            const int64_t entry = sx_table_find(t, &key, 0);
            assert_int_equal(entry >= 0, expected[other] != 0);
            if (entry < 0) {
                continue;
            }
            sx_bytes out_text[WIDTH];
            int64_t out_numbers[WIDTH];
            const sx_host_tensor out = {
                .type = value.type, .data = values == SX_STRING ? (void *)out_text : out_numbers};
            sx_table_get_value(t, entry, &out, 0);
            const sx_bytes text = text_of(expected[other], value_room);
            for (int j = 0; j < WIDTH; j++) {
                if (values == SX_STRING) {
                    assert_int_equal(out_text[j].size, text.size);
                    assert_memory_equal(out_text[j].data, text.data, text.size);
                } else {
                    assert_int_equal(out_numbers[j], (int64_t)expected[other] + j);
                }
            }
        }
    }
    sx_tables_destroy(tables);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_library_destroy(library);
}

static void test_graph_tables__numbers_to_numbers(void **state)
{
    (void)state;
    walk(SX_I64, SX_I64);
}

static void test_graph_tables__numbers_to_texts(void **state)
{
    (void)state;
    walk(SX_I64, SX_STRING);
}

static void test_graph_tables__texts_to_numbers(void **state)
{
    (void)state;
    walk(SX_STRING, SX_I64);
}

static void test_graph_tables__texts_to_texts(void **state)
{
    (void)state;
    walk(SX_STRING, SX_STRING);
}

static void test_graph_tables__memory_limit(void **state)
{
    (void)state;
    const sx_table_attrs attrs = {
        .table = "t", .kind = SX_TABLE_MUTABLE, .keys = SX_I64, .values = SX_I64};
    sx_library *library = library_of(&attrs);
    sx_budget budget;
    sx_tables *tables;
    sx_budget_init(&budget, "the test", 100000, NULL);
    assert_ok(sx_tables_create(&budget, NULL, &tables));
    assert_ok(sx_tables_declare(tables, library));
    sx_table *t = sx_tables_find(tables, "t");
    int64_t number = 0;
    const sx_host_tensor x = {.type = sx_type_of(SX_I64, 1), .i = &number};
    sx_status status = SX_OK;
    for (; status == SX_OK && number < 1 << 20; number++) {
        status = sx_table_put(t, &x, 0, &x, 0);
    }
    assert_error(status, SX_RESOURCE_EXHAUSTED, "a lookup table");
    number = 7; /* what it has is still there */
    assert_true(sx_table_find(t, &x, 0) >= 0);
    sx_tables_destroy(tables);
    sx_library_destroy(library);
}

static void test_graph_tables__contradiction(void **state)
{
    (void)state;
    sx_table_attrs attrs = {
        .table = "t", .kind = SX_TABLE_MUTABLE, .keys = SX_I64, .values = SX_I64};
    sx_library *first = library_of(&attrs);
    sx_tables *tables;
    attrs.values = SX_STRING;
    sx_library *second = library_of(&attrs);
    assert_ok(sx_tables_create(NULL, NULL, &tables));
    assert_ok(sx_tables_declare(tables, first));
    assert_error(sx_tables_declare(tables, second), SX_INVALID_ARGUMENT, "table \"t\"");
    sx_tables_destroy(tables);
    sx_library_destroy(first);
    sx_library_destroy(second);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_tables__numbers_to_numbers),
    cmocka_unit_test(test_graph_tables__numbers_to_texts),
    cmocka_unit_test(test_graph_tables__texts_to_numbers),
    cmocka_unit_test(test_graph_tables__texts_to_texts),
    cmocka_unit_test(test_graph_tables__memory_limit),
    cmocka_unit_test(test_graph_tables__contradiction),
};

SX_TEST_MAIN(tests)
