/* Names of nodes in messages: of many calls the first and the last. */
#include "harness.h"

#include <string.h>

#include "graph/node_label.h"

static void test_graph_node_label__of_many_calls_the_first_and_the_last(void **state)
{
    (void)state;
    static const struct {
        const char *name, *label;
    } rows[] = {
        {"", ""},
        {"add", "add"},
        {"a/call/b/call/c/call/add", "a/call/b/call/c/call/add"},
        {"a/call/b/call/c/call/d/call/add", "a/call/... 2 more .../d/call/add"},
        {"a/b/call/c/call/call/call/d/call/e/call/f/add", "a/b/call/... 4 more .../e/call/f/add"},
    };
    char text[SX_NODE_LABEL], name[4000] = "";
    const char *part = "a_name_that_is_so_long_that_four_of_its_kind_would_fill_the_screen/call/";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(sx_node_label(rows[i].name, text), rows[i].label);
    }
    for (int i = 0; i < 30; i++) { /* long names are cut */
        memcpy(name + (size_t)i * strlen(part), part, strlen(part));
    }
    assert_true(strlen(sx_node_label(name, text)) < SX_NODE_LABEL);
    assert_non_null(strstr(text, "... 28 more ..."));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_node_label__of_many_calls_the_first_and_the_last),
};
SX_TEST_MAIN(tests)
