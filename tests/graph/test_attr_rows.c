/* Operators' attributes: what texts of each kind are read, and what a copy, a comparison and a hash
 * see of them. */
#include "torture.h"

#include "graph/attr_rows.h"
#include "graph/ops/attrs.h"

static sx_status parse(const sx_op_def *op, const char *text, sx_arena *arena, void *attrs)
{
    sx_lexer lexer;
    int operands;
    sx_lexer_init(&lexer, text, strlen(text), arena);
    SX_TRY(sx_attrs_parse(op, &lexer, arena, attrs, NULL, &operands));
    return lexer.kind == SX_TOKEN_END ? SX_OK : sx_lexer_error(&lexer, "the end");
}

/* A text of attributes is printed as `prints`, or refused as `prints` says, with a code first. */
static const struct {
    const sx_op_def *op;
    const char *text, *prints;
} texts[] = {
    /* bytes of tensors */
    {&sx_op_constant, "{value=tensor(float32[1] \"0000803f\")}", NULL},
    {&sx_op_constant, "{value=tensor(uint8[3] \"09af50\")}", NULL},
    {&sx_op_constant, "{value=tensor(string[2] \"6162\" \"\")}", NULL},
    {&sx_op_constant, "{value=tensor(float32[0] \"\")}", NULL},
    {&sx_op_constant, "{value=tensor(uint8[1] \"g0\")}",
     "INVALID_ARGUMENT: expected hexadecimal digits, got \"g0\""},
    {&sx_op_constant, "{value=tensor(uint8[1] \"0g\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(uint8[1] \"/0\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(uint8[1] \":0\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(uint8[1] \"`0\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(uint8[2] \"000A\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(string[1] \"zz\")}", "INVALID_ARGUMENT: hexadecimal digits"},
    {&sx_op_constant, "{value=tensor(uint8[1] \"\")}", "INVALID_ARGUMENT: the bytes of a static"},
    {&sx_op_constant, "{value=tensor(uint8[1] \"000\")}", "INVALID_ARGUMENT: the bytes of a"},
    {&sx_op_constant, "{value=tensor(uint8[1] \"0000\")}", "INVALID_ARGUMENT: the bytes of a"},
    {&sx_op_constant, "{value=tensor(uint8[1] 00)}", "INVALID_ARGUMENT: the bytes of a static"},
    {&sx_op_constant, "{value=tensor(uint8[N] \"00\")}", "INVALID_ARGUMENT: the bytes of a static"},
    {&sx_op_constant, "{value=tensor(string[2] \"61\")}",
     "INVALID_ARGUMENT: the bytes of a static"},
    {&sx_op_constant, "{value=tensor(string[100] \"61\")}", "INVALID_ARGUMENT: as many strings"},
    {&sx_op_constant, "{value=tensor(string[N] \"61\")}", "INVALID_ARGUMENT: as many strings"},
    {&sx_op_constant, "{value=scalar(uint8[1] \"00\")}", "INVALID_ARGUMENT: expected value"},
    {&sx_op_constant, "{value=tensor(uint9[1] \"00\")}", "INVALID_ARGUMENT: expected a dtype"},
    /* numbers */
    {&sx_op_top_k, "{k=3}", NULL},
    {&sx_op_top_k, "{k=-9223372036854775808}", NULL},
    {&sx_op_top_k, "{k=9223372036854775808}", "INVALID_ARGUMENT: got \"9223372036854775808\""},
    {&sx_op_top_k, "{k=3.5}", "INVALID_ARGUMENT: got \"3.5\""},
    {&sx_op_top_k, "{k=\"3\"}", "INVALID_ARGUMENT: got "},
    {&sx_op_top_k, "{k=%3}", "INVALID_ARGUMENT: attribute k cannot be an operand here"},
    {&sx_op_clip, "{low=-0.5, high=1e+300}", "{low=-0.5, high=1.0000000000000001e+300}"},
    {&sx_op_clip, "{low=-0, high=nan}", "{low=-0, high=nan}"},
    {&sx_op_clip, "{low=inf}", NULL},
    {&sx_op_clip, "{low=zero}", "INVALID_ARGUMENT: got \"zero\""},
    {&sx_op_clip, "{low=1.5.5}", "INVALID_ARGUMENT: got \"1.5.5\""},
    /* words */
    {&sx_op_matmul, "{transpose_a=true, transpose_b=true}", NULL},
    {&sx_op_matmul, "{transpose_a=false}", ""},
    {&sx_op_matmul, "{transpose_a=1}", "INVALID_ARGUMENT: expected true or false, got \"1\""},
    {&sx_op_matmul, "{transpose_a=yes}", "INVALID_ARGUMENT: expected true or false, got \"yes\""},
    {&sx_op_cast, "{dtype=bfloat16}", NULL},
    {&sx_op_cast, "{dtype=float}", "INVALID_ARGUMENT: expected a dtype, got \"float\""},
    {&sx_op_cast, "{dtype=a_very_long_name_of_no_dtype}", "INVALID_ARGUMENT: expected a dtype"},
    {&sx_op_cast, "{dtype=7}", "INVALID_ARGUMENT: expected a dtype, got \"7\""},
    {&sx_op_variable_handle, "{name=\"a \\\"b\\\"\\\\\\n\"}", NULL},
    {&sx_op_variable_handle, "{name=a}", "INVALID_ARGUMENT: expected name, got \"a\""},
    /* lists */
    {&sx_op_transpose, "{perm=[1,0]}", NULL},
    {&sx_op_transpose, "{perm=[1,2,3,4,5,6,7,8]}", NULL},
    {&sx_op_transpose, "{perm=[]}", ""},
    {&sx_op_transpose, "{perm=[1,2,3,4,5,6,7,8,9]}", "INVALID_ARGUMENT: at most 8 integers"},
    {&sx_op_transpose, "{perm=[1 0]}", "INVALID_ARGUMENT: expected ',', got \"0\""},
    {&sx_op_transpose, "{perm=[1,]}", "INVALID_ARGUMENT: expected an integer, got \"]\""},
    {&sx_op_transpose, "{perm=1}", "INVALID_ARGUMENT: expected '[', got \"1\""},
    {&sx_op_transpose, "{perm=[1,0}", "INVALID_ARGUMENT: expected ',', got \"}\""},
    /* the frame */
    {&sx_op_transpose, "{perm=[0]", "INVALID_ARGUMENT: expected '}', got the end"},
    {&sx_op_transpose, "{perm [0]}", "INVALID_ARGUMENT: expected '=', got \"[\""},
    {&sx_op_transpose, "{3=[0]}", "INVALID_ARGUMENT: expected an attribute, got \"3\""},
    {&sx_op_transpose, "{axes=[0]}",
     "INVALID_ARGUMENT: operator transpose has no attribute \"axes\""},
    {&sx_op_clip, "{low=1 high=2}", "INVALID_ARGUMENT: expected '}', got \"high\""},
    {&sx_op_clip, "", ""},
};

static void test_graph_attr_rows__texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const sx_op_def *op = texts[i].op;
        const char *prints = texts[i].prints != NULL ? texts[i].prints : texts[i].text;
        sx_arena arena;
        sx_buf out;
        sx_arena_init(&arena, 0);
        sx_buf_init(&out, 0);
        char *attrs = sx_arena_alloc(&arena, 1, op->attrs_bytes);
        memset(attrs, 0, op->attrs_bytes);
        sx_status status = parse(op, texts[i].text, &arena, attrs);
        if (status == SX_OK) {
            sx_attrs_print(op, attrs, NULL, 0, &out);
            const char *got = sx_buf_text(&out);
            if (strcmp(got + (got[0] == ' '), prints) != 0) {
                fail_msg("%s is read as \"%s\", expected \"%s\"", texts[i].text, got, prints);
            }
        } else if (!harness_is(status, prints) ||
                   strstr(sx_status_message(status), "line 1: ") == NULL) {
            fail_msg("%s: \"%s\", expected \"%s\"", texts[i].text, sx_status_message(status),
                     prints);
        }
        sx_status_free(status);
        sx_buf_deinit(&out);
        sx_arena_deinit(&arena);
    }
}

/* A change of one field, or false where the kind has none to make. */
static bool change(const sx_attr_def *def, char *attrs, sx_arena *arena)
{
    void *field = attrs + def->offset;
    sx_ints *ints = field;
    sx_tensor *tensor = field;
    switch (def->kind) {
    case SX_ATTR_INT:
        *(int64_t *)field ^= 1;
        return true;
    case SX_ATTR_FLOAT:
        *(double *)field = *(double *)field == 0.25 ? 0.5 : 0.25;
        return true;
    case SX_ATTR_BOOL:
        *(bool *)field = !*(bool *)field;
        return true;
    case SX_ATTR_ENUM:
        *(int32_t *)field = *(int32_t *)field == 0;
        return true;
    case SX_ATTR_DTYPE:
        *(sx_dtype *)field = *(sx_dtype *)field == SX_F32 ? SX_I64 : SX_F32;
        return true;
    case SX_ATTR_INTS:
    case SX_ATTR_SHAPE:
        if (ints->n > 0) {
            ints->v[ints->n - 1]++;
        } else {
            ints->v[ints->n++] = 0;
        }
        return true;
    case SX_ATTR_STRING: {
        const char *longer = sx_arena_printf(arena, "%s.", *(const char **)field);
        memcpy(field, &longer, sizeof(longer));
        return true;
    }
    case SX_ATTR_TENSOR:
        if (tensor->type.dtype == SX_STRING || sx_type_bytes(&tensor->type) == 0) {
            return false;
        }
        ((char *)tensor->data)[sx_type_bytes(&tensor->type) - 1] ^= 1;
        return true;
    default:
        return false;
    }
}

/* Attributes equal their copy, which shares no memory with them, until any field of it changes. */
static void test_graph_attr_rows__a_copy_is_equal_until_it_changes(void **state)
{
    (void)state;
    int changes = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int s = 0; s < op->n_samples; s++) {
            const void *attrs = op->samples[s].attrs;
            sx_arena arena;
            sx_arena_init(&arena, 0);
            char *copy = attrs != NULL ? sx_attrs_copy(&arena, op, attrs) : NULL;
            for (int row = 0; copy != NULL && row < op->n_attrs; row++) {
                assert_true(sx_attrs_equal(op, attrs, copy));
                assert_true(sx_attrs_hash(op, attrs) == sx_attrs_hash(op, copy));
                char *other = sx_attrs_copy(&arena, op, copy);
                if (!change(&op->attrs[row], other, &arena)) {
                    continue;
                }
                changes++;
                if (sx_attrs_equal(op, copy, other) || sx_attrs_equal(op, other, copy) ||
                    sx_attrs_hash(op, copy) == sx_attrs_hash(op, other)) {
                    fail_msg("%s/%s: another %s is not seen", op->name, op->samples[s].name,
                             op->attrs[row].name);
                }
            }
            sx_arena_deinit(&arena);
        }
    }
    assert_true(changes > 100);
}

/* Strings in tensors: each counts, with its length. */
static void test_graph_attr_rows__tensors_of_strings(void **state)
{
    (void)state;
    sx_bytes strings[][2] = {{{"ab", 2}, {"", 0}},
                             {{"ab", 2}, {"c", 1}},
                             {{"a", 1}, {"", 0}},
                             {{"ax", 2}, {"", 0}},
                             {{"", 0}, {"ab", 2}}};
    enum { N = sizeof(strings) / sizeof(strings[0]) };
    sx_constant_attrs attrs[N], *copies[N];
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (int i = 0; i < N; i++) {
        attrs[i].value = (sx_tensor){sx_type_of(SX_STRING, 2), strings[i]};
        copies[i] = sx_attrs_copy(&arena, &sx_op_constant, &attrs[i]);
        assert_ptr_not_equal(copies[i]->value.data, strings[i]);
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            assert_int_equal(sx_attrs_equal(&sx_op_constant, &attrs[i], copies[k]), i == k);
            assert_int_equal(sx_attrs_hash(&sx_op_constant, &attrs[i]) ==
                                 sx_attrs_hash(&sx_op_constant, copies[k]),
                             i == k);
        }
    }
    sx_arena_deinit(&arena);
}

static sx_status parse_all(void *user)
{
    (void)user;
    sx_status status = SX_OK;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && status == SX_OK; i++) {
        const sx_op_def *op = texts[i].op;
        sx_arena arena;
        sx_buf out;
        sx_arena_init(&arena, 0);
        sx_buf_init(&out, 0);
        char *attrs = sx_arena_alloc(&arena, 1, op->attrs_bytes);
        if (attrs == NULL) {
            status = sx_no_memory("for attributes");
        } else {
            memset(attrs, 0, op->attrs_bytes);
            status = parse(op, texts[i].text, &arena, attrs);
        }
        if (status == SX_OK && sx_attrs_copy(&arena, op, attrs) == NULL) {
            status = sx_no_memory("for a copy");
        }
        if (status == SX_OK) {
            sx_attrs_print(op, attrs, NULL, 0, &out);
            status = sx_buf_status(&out);
        } else if (sx_status_code(status) == SX_INVALID_ARGUMENT) {
            sx_status_free(status);
            status = SX_OK;
        }
        sx_buf_deinit(&out);
        sx_arena_deinit(&arena);
    }
    return status;
}

static void test_graph_attr_rows__survive_failing_allocations(void **state)
{
    (void)state;
    assert_true(sx_torture(parse_all, NULL) >= (long)(sizeof(texts) / sizeof(texts[0])));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_attr_rows__texts),
    cmocka_unit_test(test_graph_attr_rows__a_copy_is_equal_until_it_changes),
    cmocka_unit_test(test_graph_attr_rows__tensors_of_strings),
    cmocka_unit_test(test_graph_attr_rows__survive_failing_allocations),
};
SX_TEST_MAIN(tests)
