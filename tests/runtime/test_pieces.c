/* Functions that compute each example by itself, run in pieces of the batch. */
#include "harness.h"

#include <math.h>

#include <stdio.h>

#include "runtime/pieces.h"

enum { ROWS = 200 };

typedef struct fixture {
    sx_session *session;
    sx_library *library;
    sx_pieces *pieces;
    sx_arena arena;
} fixture;

static void begin(fixture *f, const char *text)
{
    assert_ok(sx_library_parse(text, strlen(text), &f->library));
    assert_ok(sx_session_create(&(sx_session_options){.device = "cpu"}, &f->session));
    assert_ok(sx_pieces_create(f->session, f->library, sx_library_find(f->library, "main"), NULL,
                               NULL, NULL, &f->pieces));
    sx_arena_init(&f->arena, 0);
}

static void end(fixture *f)
{
    sx_arena_deinit(&f->arena);
    sx_session_destroy(f->session);
    sx_pieces_destroy(f->pieces);
    sx_library_destroy(f->library);
}

/* Texts of different lengths, so that each is in memory of its own. */
static void fill(sx_bytes *texts, char store[ROWS][64])
{
    for (int i = 0; i < ROWS; i++) {
        snprintf(store[i], sizeof(store[i]), "TEXT %d OF A BATCH THAT IS CUT INTO PIECES", i);
        texts[i] = (sx_bytes){store[i], strlen(store[i])};
    }
}

static void check_lower(const sx_tensor *y, const sx_bytes *texts)
{
    const sx_bytes *got = y->data;
    for (int64_t i = 0; i < y->type.dims[0]; i++) {
        assert_int_equal(got[i].size, texts[i].size);
        for (size_t k = 0; k < texts[i].size; k++) {
            const char c = ((const char *)texts[i].data)[k];
            assert_int_equal(((const char *)got[i].data)[k], c >= 'A' && c <= 'Z' ? c + 32 : c);
        }
    }
}

/* Its one step refers to strings that the step before it made. */
static const char host_only[] = "sextant-library 2\nfunction \"main\"\n"
                                "input %1 string[N] \"x\"\n"
                                "%2 = string_lower(%1) string[N] \"lower\"\n"
                                "%3 = reshape(%2) {shape=[-1, 1]} string[N,1] \"column\"\n"
                                "output \"y\" %3\nend\n";

static void test_runtime_pieces__functions_of_host_steps_only(void **state)
{
    (void)state;
    static char store[ROWS][64];
    fixture f;
    sx_bytes texts[ROWS];
    sx_tensor y;
    fill(texts, store);
    begin(&f, host_only);
    assert_non_null(f.pieces);
    assert_ok(sx_pieces_compile(f.pieces, 1));
    for (int64_t n = ROWS; n >= 0; n -= ROWS / 2) {
        const sx_tensor x = {sx_type_of(SX_STRING, n), texts};
        const sx_type want = sx_type_of(SX_STRING, n, 1);
        assert_ok(sx_pieces_run(f.pieces, &x, n, NULL, &f.arena, &y));
        assert_true(sx_type_equal(&y.type, &want));
        check_lower(&y, texts);
    }
    sx_cancel cancel;
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    const sx_tensor x = {sx_type_of(SX_STRING, ROWS), texts};
    assert_error(sx_pieces_run(f.pieces, &x, ROWS, &cancel, &f.arena, &y), SX_CANCELLED, "");
    end(&f);
}

/* Strings that a host step made before the device step are read after it, and by results. */
static const char strings_around[] = "sextant-library 2\nfunction \"main\"\n"
                                     "input %1 string[N] \"x\"\n"
                                     "input %2 float32[N] \"a\"\n"
                                     "%3 = string_lower(%1) string[N] \"lower\"\n"
                                     "%4 = exp(%2) float32[N] \"exp\"\n"
                                     "%5 = reshape(%3) {shape=[-1, 1]} string[N,1] \"column\"\n"
                                     "output \"y\" %5\noutput \"e\" %4\nend\n";

static void test_runtime_pieces__strings_outlive_the_pieces_that_made_them(void **state)
{
    (void)state;
    static char store[ROWS][64];
    fixture f;
    sx_bytes texts[ROWS];
    float a[ROWS] = {0};
    sx_tensor y[2];
    fill(texts, store);
    begin(&f, strings_around);
    assert_non_null(f.pieces);
    const sx_tensor in[2] = {{sx_type_of(SX_STRING, ROWS), texts}, {sx_type_of(SX_F32, ROWS), a}};
    assert_ok(sx_pieces_run(f.pieces, in, ROWS, NULL, &f.arena, y));
    check_lower(&y[0], texts);
    for (int i = 0; i < ROWS; i++) {
        assert_true(((const float *)y[1].data)[i] == 1);
    }
    end(&f);
}

/* A result that no example decides is computed even if there is none. */
static const char unbatched[] =
    "sextant-library 2\nfunction \"main\"\n"
    "input %1 float32[?0,2] \"x\"\n"
    "input %2 float32[?1,2] \"a\"\n"
    "%3 = constant() {value=tensor(float32[1] \"0000803f\")} float32[1] \"one\"\n"
    "%4 = broadcast_to(%3) {shape=[20000]} float32[20000] \"ones\"\n" /* not folded: too large */
    "%5 = add(%1, %2) float32[?,2] \"add\"\n"
    "output \"y\" %5\noutput \"ones\" %4\nend\n";

static void test_runtime_pieces__without_rows(void **state)
{
    (void)state;
    static float x[2 * ROWS];
    fixture f;
    begin(&f, unbatched);
    assert_non_null(f.pieces);
    for (int64_t n = ROWS; n >= 0; n -= ROWS / 2) {
        const sx_tensor in[2] = {{sx_type_of(SX_F32, n, 2), x}, {sx_type_of(SX_F32, n, 2), x}};
        const sx_type want = sx_type_of(SX_F32, n, 2);
        sx_tensor y[2];
        assert_ok(sx_pieces_run(f.pieces, in, n, NULL, &f.arena, y));
        assert_true(sx_type_equal(&y[0].type, &want));
        for (int i = 0; i < 20000; i++) {
            assert_true(((const float *)y[1].data)[i] == 1);
        }
    }
    end(&f);
}

/* With one size, a row has the same bits alone, among others and in any place. */
static const char numbers[] = "sextant-library 2\nfunction \"main\"\n"
                              "input %1 float32[N] \"a\"\n"
                              "%2 = exp(%1) float32[N] \"exp\"\n"
                              "output \"e\" %2\nend\n";

static void test_runtime_pieces__sizes_are_given(void **state)
{
    (void)state;
    static const int64_t one_size[] = {6}, sizes[] = {3, 5};
    fixture f;
    float a[ROWS], all[ROWS];
    int count;
    for (int i = 0; i < ROWS; i++) {
        a[i] = 0.37f * (float)(i % 23) - 3;
    }
    for (int k = 0; k < 2; k++) {
        sx_tensor y;
        begin(&f, numbers);
        assert_non_null(f.pieces);
        assert_true(sx_pieces_may_merge(f.pieces));
        sx_pieces_set_sizes(f.pieces, k == 0 ? one_size : sizes, k == 0 ? 1 : 2);
        assert_int_equal(sx_pieces_sizes(f.pieces, &count)[0], k == 0 ? 6 : 3);
        assert_int_equal(count, k + 1);
        assert_ok(sx_pieces_compile(f.pieces, 5));
        const sx_tensor whole = {sx_type_of(SX_F32, ROWS), a};
        assert_ok(sx_pieces_run(f.pieces, &whole, ROWS, NULL, &f.arena, &y));
        memcpy(all, y.data, sizeof(all));
        for (int n = 1; n <= 8; n++) {
            const sx_tensor part = {sx_type_of(SX_F32, n), a + 7};
            assert_ok(sx_pieces_run(f.pieces, &part, n, NULL, &f.arena, &y));
            assert_int_equal(y.type.dims[0], n);
            for (int i = 0; i < n; i++) {
                const float got = ((const float *)y.data)[i];
                assert_true(k == 0 ? memcmp(&got, &all[7 + i], sizeof(got)) == 0
                                   : fabsf(got - all[7 + i]) <= 1e-6f * all[7 + i]);
            }
        }
        end(&f);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_pieces__without_rows),
    cmocka_unit_test(test_runtime_pieces__functions_of_host_steps_only),
    cmocka_unit_test(test_runtime_pieces__strings_outlive_the_pieces_that_made_them),
    cmocka_unit_test(test_runtime_pieces__sizes_are_given),
};
SX_TEST_MAIN(tests)
