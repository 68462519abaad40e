/* Variables of unknown dimensions, which the model keeps from run to run: nothing has a value
 * before it is assigned, shapes fit the declared one, and many threads run at once. */
#include "io/scratch.h"

#include <pthread.h>
#include <sys/stat.h>

#include "function_model.h"
#include "savedmodel/predictor.h"

#define ROWS_OF_2 ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { " ANY DIM("2") " }")
#define HANDLE    "input_arg { name: 'v' type: DT_RESOURCE } "
#define TENSOR(key, name, dims)                                                              \
    key " { key: '" name "' value { name: '" name ":0' dtype: DT_FLOAT tensor_shape { " dims \
        " } } } "
#define SIGNATURE(key, ends) "signature_def { key: '" key "' value { " ends " } } "

/* push: x is appended to v, or its first value; v afterwards. read: v. set: v = z, whose shape is
 * not known; has: whether v has a value. */
static const char model[] =
    "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def { " NODE(
        "x", "Placeholder", "", "") NODE("z", "Placeholder", "", "")
        NODE("v", "VarHandleOp", "", ROWS_OF_2) NODE("has", "VarIsInitializedOp", "'v'", "") NODE(
            "hasf", "Cast", "'has'", ATTR("SrcT", "type: DT_BOOL") ATTR("DstT", "type: DT_FLOAT"))
            NODE("p", "If", "'has', 'v', 'x'",
                 FUNC("then_branch", "append")
                     FUNC("else_branch", "first")) NODE("pushed", "ReadVariableOp", "'v', '^p'", "")
                NODE("value", "ReadVariableOp", "'v'", "") NODE("a", "AssignVariableOp", "'v', 'z'",
                                                                "") NODE("was", "Identity",
                                                                         "'z', '^a'", "")
                    NODE("w", "VarHandleOp", "",
                         ATTR("dtype", "type: DT_FLOAT") ATTR("shared_name", "s: 'node v'")
                             ATTR("shape", "shape { " DIM("3") ANY
                                  "}")) NODE("b", "AssignVariableOp", "'w', 'z'", "")
                        NODE("took", "Identity", "'z', '^b'", "") "library { " FUNCTION(
                            "append", HANDLE IN("x") OUT("y"),
                            BODY("r", "ReadVariableOp", "'v'", "") BODY("k", "Const", "", INT("0"))
                                BODY("c", "ConcatV2", "'r:value:0', 'x', 'k:output:0'", "")
                                    BODY("a", "AssignVariableOp", "'v', 'c:output:0'", "")
                                        BODY("i", "Identity", "'x'", ""),
                            RET("y", "i:output:0") "control_ret { key: 'a' value: 'a' }")
                            FUNCTION(
                                "first", HANDLE IN("x") OUT("y"),
                                BODY("a", "AssignVariableOp", "'v', 'x'", "")
                                    BODY("i", "Identity", "'x'", ""),
                                RET("y",
                                    "i:output:0") "control_ret { key: 'a' value: 'a' "
                                                  "}") "} } " SIGNATURE("push",
                                                                        TENSOR("inputs", "x",
                                                                               ANY DIM("2"))
                                                                            TENSOR("outpu"
                                                                                   "ts",
                                                                                   "pushe"
                                                                                   "d",
                                                                                   ANY DIM("2")))
                                SIGNATURE("read", TENSOR("outputs", "value", ANY DIM("2")))
                                    SIGNATURE("has", TENSOR("outputs", "hasf", ""))
                                        SIGNATURE("other", TENSOR("inputs", "z", ANY ANY)
                                                               TENSOR("outputs", "took", ANY ANY))
                                            SIGNATURE("set", TENSOR("inputs", "z", ANY ANY) TENSOR(
                                                                 "outputs", "was", ANY ANY)) "}";

static void write_model(void)
{
    sx_buf packed;
    sx_buf_init(&packed, 0);
    pack_text(&tensorflow__saved_model__descriptor, model, &packed);
    assert_int_equal(mkdir(scratch("m"), 0700), 0);
    write_file(scratch("m/saved_model.pb"), packed.data, packed.size);
    sx_buf_deinit(&packed);
}

static sx_predictor *load(void)
{
    sx_predictor *p = NULL;
    assert_ok(sx_predictor_load(scratch("m"), NULL, &p));
    return p;
}

static sx_status run(sx_predictor *p, const char *key, const sx_tensor *in, sx_arena *arena,
                     sx_tensor *y)
{
    const sx_signature *signature = NULL;
    sx_arena_init(arena, 0);
    assert_ok(sx_saved_model_find_signature(sx_predictor_model(p), key, &signature));
    return sx_predictor_run(p, signature, in, NULL, arena, y);
}

/* The number of rows that a signature gives. */
static int64_t rows_of(sx_predictor *p, const char *key, const sx_tensor *in)
{
    sx_arena arena;
    sx_tensor y;
    assert_ok(run(p, key, in, &arena, &y));
    const int64_t n = y.type.rank > 0 ? y.type.dims[0] : (int64_t)((const float *)y.data)[0];
    sx_arena_deinit(&arena);
    return n;
}

static void test_savedmodel_kept_variables__have_no_value_before_one_is_assigned(void **state)
{
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    sx_arena arena;
    sx_tensor y;
    write_model();
    sx_predictor *p = load();
    assert_int_equal(rows_of(p, "has", NULL), 0);
    assert_error(run(p, "read", NULL, &arena, &y), SX_FAILED_PRECONDITION,
                 "variable \"node v\" is read before it has a value");
    sx_arena_deinit(&arena);
    assert_int_equal(rows_of(p, "push", &(sx_tensor){sx_type_of(SX_F32, 1, 2), x}), 1);
    assert_int_equal(rows_of(p, "push", &(sx_tensor){sx_type_of(SX_F32, 3, 2), x}), 4);
    assert_int_equal(rows_of(p, "has", NULL), 1);
    assert_int_equal(rows_of(p, "read", NULL), 4);
    sx_predictor_unload(p);
    p = load(); /* another one has a state of its own */
    assert_int_equal(rows_of(p, "has", NULL), 0);
    sx_predictor_unload(p);
}

static void test_savedmodel_kept_variables__take_the_declared_shape_only(void **state)
{
    (void)state;
    float z[6] = {1, 2, 3, 4, 5, 6};
    sx_arena arena;
    sx_tensor y;
    write_model();
    sx_predictor *p = load();
    assert_int_equal(rows_of(p, "set", &(sx_tensor){sx_type_of(SX_F32, 3, 2), z}), 3);
    assert_error(run(p, "set", &(sx_tensor){sx_type_of(SX_F32, 2, 3), z}, &arena, &y),
                 SX_INVALID_ARGUMENT,
                 "the value is float32[?,3], and the variable is float32[?,2], expected one shape");
    sx_arena_deinit(&arena);
    assert_int_equal(rows_of(p, "read", NULL), 3); /* as it was */
    assert_int_equal(rows_of(p, "set", &(sx_tensor){sx_type_of(SX_F32, 0, 2), z}), 0);
    assert_int_equal(rows_of(p, "read", NULL), 0);
    sx_predictor_unload(p);
}

/* Two nodes of a file may name one variable, and differ about its shape. */
static void test_savedmodel_kept_variables__are_read_in_the_declared_shape_only(void **state)
{
    (void)state;
    float z[6] = {1, 2, 3, 4, 5, 6};
    sx_arena arena;
    sx_tensor y;
    write_model();
    sx_predictor *p = load();
    assert_int_equal(rows_of(p, "other", &(sx_tensor){sx_type_of(SX_F32, 3, 2), z}), 3);
    assert_int_equal(rows_of(p, "read", NULL), 3);
    assert_int_equal(rows_of(p, "other", &(sx_tensor){sx_type_of(SX_F32, 3, 1), z}), 3);
    assert_error(run(p, "read", NULL, &arena, &y), SX_INVALID_ARGUMENT,
                 "the value is float32[3,1], and the variable is float32[?,2], expected one shape");
    sx_arena_deinit(&arena);
    sx_predictor_unload(p);
}

enum { THREADS = 4, PUSHES = 40 };

typedef struct client {
    sx_predictor *predictor;
    int id;
    pthread_t thread;
    bool right;
} client;

/* Pushes a row of its own, and reads: its rows are all there, in order, and none is torn. */
static void *push_and_read(void *user)
{
    client *c = user;
    c->right = true;
    for (int k = 0; k < PUSHES; k++) {
        const float number = (float)(c->id * PUSHES + k);
        float x[2] = {number, -number};
        sx_arena arena;
        sx_tensor y;
        rows_of(c->predictor, "push", &(sx_tensor){sx_type_of(SX_F32, 1, 2), x});
        assert_ok(run(c->predictor, "read", NULL, &arena, &y));
        const float *rows = y.data;
        int mine = 0;
        for (int64_t i = 0; i < y.type.dims[0]; i++) {
            const int of = (int)rows[2 * i] / PUSHES, at = (int)rows[2 * i] % PUSHES;
            c->right = c->right && rows[2 * i + 1] == -rows[2 * i];
            c->right = c->right && (of != c->id || at == mine);
            mine += of == c->id;
        }
        c->right = c->right && mine == k + 1;
        sx_arena_deinit(&arena);
    }
    return NULL;
}

static void test_savedmodel_kept_variables__threads_run_at_once(void **state)
{
    (void)state;
    client clients[THREADS];
    write_model();
    sx_predictor *p = load();
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (client){.predictor = p, .id = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, push_and_read, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_true(clients[i].right);
    }
    assert_int_equal(rows_of(p, "read", NULL), THREADS * PUSHES);
    sx_predictor_unload(p);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_kept_variables__have_no_value_before_one_is_assigned),
    scratch_test(test_savedmodel_kept_variables__take_the_declared_shape_only),
    scratch_test(test_savedmodel_kept_variables__are_read_in_the_declared_shape_only),
    scratch_test(test_savedmodel_kept_variables__threads_run_at_once),
};

SX_TEST_MAIN(tests)
