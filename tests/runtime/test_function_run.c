/* Functions whose shapes are known only when they run: specialized, compiled once for each
 * combination of types, driven by the host where a device cannot. On the host's kernels and on the
 * cpu backend. */
#include "function_running.h"
#include "peak.h"

#include "base/buffer.h"
#include "base/log.h"

/* ---- Straight lines ---- */

static void test_runtime_function_run__batch_stays_symbolic_through_attribute_operands(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        begin(&t, devices[d], parse(flatten), (sx_runner_options){.seed = 1});
        float x[5 * 3 * 2];
        for (int i = 0; i < 30; i++) {
            x[i] = (float)i;
        }
        for (int64_t n = 1; n <= 5; n++) {
            sx_tensor y[2], in = {sx_type_of(SX_F32, n, 3, 2), x};
            assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
            sx_type want = sx_type_of(SX_F32, n), flat = sx_type_of(SX_F32, n, 6);
            assert_true(sx_type_equal(&y[0].type, &want) && sx_type_equal(&y[1].type, &flat));
            for (int64_t i = 0; i < n; i++) {
                assert_true(((float *)y[0].data)[i] == (float)(15 + 36 * i));
            }
            assert_memory_equal(y[1].data, x, (size_t)n * 6 * sizeof(float));
        }
        assert_int_equal(programs_of(&t).builds, 1); /* of N */
        assert_int_equal(executables_of(&t).builds, 5);
        sx_tensor y[2], in = {sx_type_of(SX_F32, 2, 2, 2), x};
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(programs_of(&t).builds, 2); /* another shape beside N */
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(programs_of(&t).builds, 2);
        assert_int_equal(executables_of(&t).builds, 6);
        in.type = sx_type_of(SX_F32, 2, 3);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL),
                     SX_INVALID_ARGUMENT,
                     "argument 0 is float32[2,3], but is declared as float32[N,?,2]");
        end(&t);
    }
}

/* ---- Maps that no device can run ---- */

static void test_runtime_function_run__maps_of_strings(void **state)
{
    (void)state;
    static const char words[] =
        "sextant-library 2\nfunction \"main\"\n"
        "input %1 string[?,2] \"x\"\ninput %2 string[2] \"suffix\"\n"
        "%3, %4 = map(%1, %2) {mapped=1} string[?,2], int32[?,2] \"map\"\n"
        "  body\n    input %1 string[2] \"e\"\n    input %2 string[2] \"whole\"\n"
        "    %3 = string_join(%1, %2) {separator=\"-\"} string[2] \"join\"\n"
        "    %4 = string_length(%3) {unit=\"BYTE\"} int32[2] \"length\"\n"
        "    output \"a\" %3\n    output \"b\" %4\n  end\n"
        "output \"text\" %3\noutput \"length\" %4\nend\n";
    const sx_bytes x[] = {{"a", 1}, {"bbb", 3}, {"c", 1}, {"", 0}},
                   suffix[] = {{"x", 1}, {"yz", 2}};
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2], in[2] = {{sx_type_of(SX_STRING, 2, 2), (void *)x},
                                 {sx_type_of(SX_STRING, 2), (void *)suffix}};
        begin(&t, devices[d], parse(words), (sx_runner_options){.seed = 1});
        assert_ok(sx_runner_run(t.runner, "main", in, 2, y, 2, &t.arena, NULL));
        const sx_type strings = sx_type_of(SX_STRING, 2, 2), lengths = sx_type_of(SX_I32, 2, 2);
        assert_true(sx_type_equal(&y[0].type, &strings) && sx_type_equal(&y[1].type, &lengths));
        assert_memory_equal(y[1].data, ((const int32_t[]){3, 6, 3, 3}), sizeof(int32_t[4]));
        static const char *const joined[] = {"a-x", "bbb-yz", "c-x", "-yz"};
        for (int i = 0; i < 4; i++) {
            const sx_bytes *s = (const sx_bytes *)y[0].data + i;
            assert_int_equal(s->size, strlen(joined[i]));
            assert_memory_equal(s->data, joined[i], s->size);
        }
        in[0].type = sx_type_of(SX_STRING, 0, 2);
        assert_ok(sx_runner_run(t.runner, "main", in, 2, y, 2, &t.arena, NULL));
        const sx_type none = sx_type_of(SX_I32, 0, 2);
        assert_true(sx_type_equal(&y[1].type, &none));
        end(&t);
    }
}

/* The region's results have sizes that data decides: those of all elements must be equal. */
static void test_runtime_function_run__maps_of_unknown_sizes(void **state)
{
    (void)state;
    static const char places[] =
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?,?] \"x\"\n"
        "%2 = map(%1) {mapped=1} int64[?,?,1] \"map\"\n"
        "  body\n    input %1 float32[?] \"e\"\n"
        "    %2 = where(%1) int64[?,1] \"where\"\n    output \"y\" %2\n  end\n"
        "output \"y\" %2\nend\n";
    for (size_t d = 0; d < 2; d++) {
        running t;
        const float x[] = {1, 0, 2, 0, 3, 4};
        sx_tensor y, in = floats(x, 2, 2, 3);
        begin(&t, devices[d], parse(places), (sx_runner_options){.seed = 1});
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
        const sx_type type = sx_type_of(SX_I64, 2, 2, 1), none = sx_type_of(SX_I64, 0, 0, 1);
        assert_true(sx_type_equal(&y.type, &type));
        assert_memory_equal(y.data, ((const int64_t[]){0, 2, 1, 2}), sizeof(int64_t[4]));
        const float uneven[] = {1, 0, 2, 0, 0, 4};
        in = floats(uneven, 2, 2, 3);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT,
                     "map \"map\": element 1: result 0: int64[1,1], expected int64[2,1] as for the "
                     "elements before it");
        in = floats(x, 2, 0, 3);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
        assert_true(sx_type_equal(&y.type, &none));
        end(&t);
    }
}

/* ---- Late calls ---- */

/* The elements that are not zero, squared, with their sum; the host decides how many there are. */
static const char compress[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = neg(%1) float32[?] \"neg\"\n"
    "%3 = where(%2) int64[?,1] \"where\"\n"
    "%4 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"rest\"\n"
    "%5 = reshape(%3) {shape=%4} int64[?] \"index\"\n"
    "%6 = gather(%2, %5) float32[?] \"gather\"\n"
    "%7 = square(%6) float32[?] \"square\"\n"
    "%8 = reduce_sum(%7) {axes=[0]} float32[] \"sum\"\n"
    "%9 = where(%7) int64[?,1] \"again\"\n"
    "%10 = reshape(%9) {shape=%4} int64[?] \"index_2\"\n"
    "%11 = gather(%7, %10) float32[?] \"gather_2\"\n"
    "output \"y\" %11\n"
    "output \"sum\" %8\n"
    "output \"negative\" %2\n"
    "end\n";

static void test_runtime_function_run__late_calls_wait_for_their_shapes(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[3];
        begin(&t, devices[d], parse(compress), (sx_runner_options){.seed = 1});
        const float x[] = {0, 3, 0, 0, -2, 1};
        sx_tensor in = floats(x, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        sx_type three = sx_type_of(SX_F32, 3);
        assert_true(sx_type_equal(&y[0].type, &three));
        assert_memory_equal(y[0].data, ((const float[]){9, 4, 1}), sizeof(float[3]));
        assert_true(*(float *)y[1].data == 14);
        assert_true(((float *)y[2].data)[1] == -3);
        const int64_t builds = programs_of(&t).builds;
        assert_int_equal(builds, 3); /* main, its late call, that one's late call */
        const float same_counts[] = {1, 0, 1, 0, 5, 0};
        in = floats(same_counts, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        assert_true(*(float *)y[1].data == 27);
        assert_int_equal(programs_of(&t).builds, builds);
        const float none[] = {0, 0, 0, 0, 0, 0};
        in = floats(none, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 0);
        assert_true(*(float *)y[1].data == 0);
        end(&t);
    }
}

/* Data decide each of 100 sizes in turn: the late calls follow one another and do not nest. */
static void test_runtime_function_run__late_calls_in_a_row(void **state)
{
    (void)state;
    sx_buf text;
    sx_buf_init(&text, 1 << 20);
    sx_buf_puts(&text, "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
                       "%2 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] "
                       "\"rest\"\n%3 = identity(%1) float32[?] \"y0\"\n");
    for (int i = 0, x = 3; i < 100; i++, x += 3) {
        sx_buf_printf(&text,
                      "%%%d = where(%%%d) int64[?,1] \"where%d\"\n"
                      "%%%d = reshape(%%%d) {shape=%%2} int64[?] \"index%d\"\n"
                      "%%%d = gather(%%%d, %%%d) float32[?] \"y%d\"\n",
                      x + 1, x, i, x + 2, x + 1, i, x + 3, x, x + 2, i + 1);
    }
    sx_buf_puts(&text, "output \"y\" %303\nend\n");
    running t;
    sx_tensor y;
    begin(&t, devices[0], parse(sx_buf_text(&text)), (sx_runner_options){.seed = 1});
    const float x[] = {0, 3, 0, -2};
    sx_tensor in = floats(x, 1, 4, 0);
    assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
    const sx_type two = sx_type_of(SX_F32, 2);
    assert_true(sx_type_equal(&y.type, &two));
    assert_memory_equal(y.data, ((const float[]){3, -2}), sizeof(float[2]));
    end(&t);
    sx_buf_deinit(&text);
}

/* How many elements of two vectors are above zero, by lists of them; the counts decide the size of
 * a third list. All else has static shapes, and is not compiled again for other counts. */
static const char counts[] = "sextant-library 2\n"
                             "function \"main\"\n"
                             "input %1 float32[3] \"x\"\n"
                             "input %2 float32[3] \"y\"\n"
                             "%3 = where(%1) int64[?,1] \"of_x\"\n"
                             "%4 = cast(%3) {dtype=float32} float32[?,1] \"cast_x\"\n"
                             "%5 = reduce_sum(%4) {axes=[0,1]} float32[] \"sum_x\"\n"
                             "%6 = where(%2) int64[?,1] \"of_y\"\n"
                             "%7 = cast(%6) {dtype=float32} float32[?,1] \"cast_y\"\n"
                             "%8 = reduce_sum(%7) {axes=[0,1]} float32[] \"sum_y\"\n"
                             "%9 = sub(%5, %8) float32[] \"sub\"\n"
                             "%10 = add(%1, %9) float32[3] \"add\"\n"
                             "%11 = where(%10) int64[?,1] \"again\"\n"
                             "%12 = cast(%11) {dtype=float32} float32[?,1] \"cast\"\n"
                             "%13 = reduce_sum(%12) {axes=[0,1]} float32[] \"sum\"\n"
                             "%14 = mul(%10, %13) float32[3] \"mul\"\n"
                             "output \"y\" %14\n"
                             "end\n";

static void test_runtime_function_run__late_calls_are_for_their_own_shapes(void **state)
{
    (void)state;
    static const struct {
        float x[3], y[3], out[3];
        int builds; /* so far */
    } rows[] = {
        {{0, 1, 1}, {0, 0, 5}, {3, 6, 6}, 4},  /* sums 3, 2, 3; main and one for each where */
        {{0, 0, 2}, {0, 0, 5}, {0, 0, 4}, 6},  /* sums 2, 2, 2; x has 1, the last has 1 */
        {{0, 0, 7}, {3, 3, 0}, {3, 3, 24}, 7}, /* sums 2, 1, 3; y has 2 */
        {{5, 5, 0}, {6, 6, 0}, {5, 5, 0}, 8},  /* sums 1, 1, 1; the last has 2 */
        {{1, 0, 1}, {1, 1, 0}, {6, 3, 6}, 8},  {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}, 8},
    };
    for (size_t d = 0; d < 2; d++) {
        running t;
        begin(&t, devices[d], parse(counts), (sx_runner_options){.seed = 1});
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            sx_tensor y, in[2] = {floats(rows[i].x, 1, 3, 0), floats(rows[i].y, 1, 3, 0)};
            assert_ok(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL));
            assert_memory_equal(y.data, rows[i].out, sizeof(float[3]));
            assert_int_equal(programs_of(&t).builds, rows[i].builds);
        }
        end(&t);
    }
}

/* ---- Control flow ---- */

/* Branches of different shapes, chosen by data; a known condition takes one beforehand. */
static const char choose[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%3 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%4 = greater(%2, %3) bool[] \"positive\"\n"
    "%5 = if(%4, %1) float32[?] \"choose\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    %2 = concat(%1, %1) float32[?] \"twice\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "%6 = neg(%5) float32[?] \"neg\"\n"
    "%7 = greater(%3, %3) bool[] \"never\"\n"
    "%8 = if(%7, %6) float32[?] \"known\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    %2 = conv2d(%1, %1) float32[?] \"wrong\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "%9 = if(%4, %1, %3) float32[?] \"same\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    input %2 float32[] \"z\"\n"
    "    %3 = sub(%2, %1) float32[?] \"sub\"\n"
    "    output \"y\" %3\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    input %2 float32[] \"z\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "output \"y\" %8\n"
    "output \"abs\" %9\n"
    "end\n";

static void test_runtime_function_run__branches(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        begin(&t, devices[d], parse(choose), (sx_runner_options){.seed = 1});
        const float up[] = {1, 2}, down[] = {-1, -2};
        sx_tensor in = floats(up, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 4);
        assert_memory_equal(y[0].data, ((const float[]){-1, -2, -1, -2}), sizeof(float[4]));
        assert_memory_equal(y[1].data, ((const float[]){-1, -2}), sizeof(float[2]));
        in = floats(down, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 2);
        assert_memory_equal(y[0].data, ((const float[]){1, 2}), sizeof(float[2]));
        assert_memory_equal(y[1].data, ((const float[]){-1, -2}), sizeof(float[2]));
        end(&t);
    }
}

/* ---- Effects ---- */

/* count += step, and the value before; refused for negative steps, before anything is assigned. */
static const char counter[] =
    "sextant-library 2\n"
    "variable float32[] \"count\" state constant 5\n"
    "function \"main\"\n"
    "input %1 float32[] \"step\"\n"
    "%2 = variable_handle() {name=\"count\"} resource[] \"handle\"\n"
    "%3 = call(%2) {function=\"read\"} float32[] \"before\"\n"
    "%4 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%5 = less(%1, %4) bool[] \"negative\"\n"
    "%6 = logical_not(%5) bool[] \"fine\"\n"
    "%7 = constant() {value=tensor(string[] \"7374657020697320\")} string[] \"words\"\n"
    "%8 = assert(%6, %7, %1) {message=\"steps go up\"} bool[] \"assert\"\n"
    "%9 = add(%3, %1) float32[] \"add\"\n"
    "%10 = assign_variable(%2, %9) float32[] \"assign\"\n"
    "%11 = read_variable(%2) float32[] \"after\"\n"
    "output \"before\" %3\noutput \"after\" %11\nend\n"
    "function \"read\"\n"
    "input %1 resource[] \"which\"\n"
    "%2 = read_variable(%1) float32[] \"read\"\n"
    "output \"y\" %2\nend\n"
    "function \"peek\"\n"
    "%1 = variable_handle() {name=\"count\"} resource[] \"handle\"\n"
    "%2 = read_variable(%1) float32[] \"read\"\n"
    "output \"y\" %2\nend\n";

static void test_runtime_function_run__effects_keep_their_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        float step = 2, held;
        begin(&t, devices[d], parse(counter), (sx_runner_options){.seed = 1});
        sx_tensor in = {sx_scalar_type(SX_F32), &step};
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 5 && *(float *)y[1].data == 7);
        step = -3;
        assert_error(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: steps go up [step is ] [-3]");
        assert_ok(sx_runner_run(t.runner, "peek", NULL, 0, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 7);
        held = 100;
        assert_ok(sx_runner_write_variable(t.runner, "count", &held));
        step = 1;
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_ok(sx_runner_read_variable(t.runner, "count", &held));
        assert_true(held == 101);
        end(&t);
    }
}

/* Prints and asserts of a function: the first print needs what a device computes, the second
 * nothing; in the loop, and in the branch that is not taken an assert that would fail. */
static const char effects[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\ninput %2 int32[] \"n\"\n"
    "%3 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%4 = print(%1, %3, %1) {message=\"sum of x:\"} float32[?] \"print\"\n"
    "%5 = constant() {value=tensor(string[] \"6c696e650a1b5b6d\")} string[] \"words\"\n"
    "%6 = print(%5, %5) string[] \"again\"\n"
    "%7 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%8, %9 = while(%4, %7, %2) {trips=100} float32[?], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %5 = add(%2, %4) int32[] \"next\"\n"
    "    %6 = constant() {value=tensor(int32[] \"03000000\")} int32[] \"most\"\n"
    "    %7 = less(%2, %6) bool[] \"few\"\n"
    "    %8 = assert(%7, %2) {message=\"too many trips\"} bool[] \"assert\"\n"
    "    %9 = print(%5, %2) {message=\"trip\"} int32[] \"print\"\n"
    "    %10 = neg(%1) float32[?] \"neg\"\n"
    "    output \"x\" %10\n    output \"i\" %9\n  end\n"
    "%10 = greater(%2, %7) bool[] \"any\"\n"
    "%11 = if(%10, %8) float32[?] \"if\"\n"
    "  then\n    input %1 float32[?] \"x\"\n    output \"y\" %1\n  end\n"
    "  else\n    input %1 float32[?] \"x\"\n"
    "    %2 = constant() {value=tensor(bool[] \"00\")} bool[] \"false\"\n"
    "    %3 = assert(%2) {message=\"no trips\"} bool[] \"assert\"\n"
    "    output \"y\" %1\n  end\n"
    "%12 = print(%7, %9) {message=\"after\"} int32[] \"last\"\n"
    "output \"y\" %11\nend\n";

static void keep_line(void *user, sx_log_level level, const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    sx_buf_printf(user, "%d %s\n", (int)level, text);
}

static void test_runtime_function_run__asserts_and_prints(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y;
        sx_buf lines;
        const float x[] = {1, 2, 3, 4};
        int32_t n = 2;
        const sx_tensor in[2] = {floats(x, 1, 4, 0), {sx_scalar_type(SX_I32), &n}};
        begin(&t, devices[d], parse(effects), (sx_runner_options){.seed = 1});
        sx_buf_init(&lines, 1 << 16);
        sx_log_set_sink(keep_line, &lines, SX_LOG_INFO);
        for (int k = 0; k < 2; k++) { /* in each run */
            sx_buf_reset(&lines);
            assert_ok(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL));
            assert_string_equal(sx_buf_text(&lines),
                                "1 sum of x: 10 [1 2 3 ...]\n1 line ?[m\n1 trip 0\n1 trip 1\n"
                                "1 after 2\n");
            assert_memory_equal(y.data, x, sizeof(x));
        }
        n = 5;
        sx_buf_reset(&lines);
        assert_error(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: too many trips [3]");
        assert_non_null(strstr(sx_buf_text(&lines), "trip 2\n"));
        assert_null(strstr(sx_buf_text(&lines), "after"));
        n = 0;
        assert_error(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: no trips");
        sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
        sx_buf_deinit(&lines);
        end(&t);
    }
}

/* A region that the host drives assigns; the read after it sees that, the one before it does not.
 */
static const char branch_assigns[] =
    "sextant-library 2\n"
    "variable float32[] \"v\" state constant 5\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
    "%3 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%4 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%5 = greater(%3, %4) bool[] \"positive\"\n"
    "%6 = if(%5, %2, %3) float32[] \"maybe\"\n"
    "  then\n"
    "    input %1 resource[] \"handle\"\n"
    "    input %2 float32[] \"value\"\n"
    "    %3 = assign_variable(%1, %2) float32[] \"assign\"\n"
    "    output \"y\" %3\n"
    "  end\n"
    "  else\n"
    "    input %1 resource[] \"handle\"\n"
    "    input %2 float32[] \"value\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "%7 = read_variable(%2) float32[] \"after\"\n"
    "%8 = neg(%7) float32[] \"neg\"\n"
    "output \"after\" %8\nend\n"
    "function \"late\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
    "%3 = read_variable(%2) float32[] \"before\"\n"
    "%4 = where(%1) int64[?,1] \"where\"\n"
    "%5 = cast(%4) {dtype=float32} float32[?,1] \"cast\"\n"
    "%6 = reduce_sum(%5) {axes=[0,1]} float32[] \"sum\"\n"
    "%7 = assign_variable(%2, %6) float32[] \"assign\"\n"
    "%8 = read_variable(%2) float32[] \"after\"\n"
    "output \"before\" %3\noutput \"after\" %8\nend\n";

static void test_runtime_function_run__regions_and_late_calls_assign_in_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        const float up[] = {1, 2}, down[] = {-1, 0};
        begin(&t, devices[d], parse(branch_assigns), (sx_runner_options){.seed = 1});
        sx_tensor in = floats(down, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == -5);
        in = floats(up, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == -3);
        assert_ok(sx_runner_run(t.runner, "late", &in, 1, y, 2, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 3 && *(float *)y[1].data == 1);
        end(&t);
    }
}

/* ---- Limits ---- */

static void test_runtime_function_run__limits_are_refused_with_their_figure(void **state)
{
    (void)state;
    static const char endless[] =
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = neg(%1) float32[?] \"neg\"\n"
        "%3 = call(%2) {function=\"main\"} float32[?] \"again\"\noutput \"y\" %3\nend\n";
    static const char doubling[] =
        "sextant-library 2\n"
        "function \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = call(%1) {function=\"b\"} float32[?] \"l\"\n"
        "%3 = call(%2) {function=\"b\"} float32[?] \"r\"\noutput \"y\" %3\nend\n"
        "function \"b\"\ninput %1 float32[?] \"x\"\n"
        "%2 = call(%1) {function=\"c\"} float32[?] \"l\"\n"
        "%3 = call(%2) {function=\"c\"} float32[?] \"r\"\noutput \"y\" %3\nend\n"
        "function \"c\"\ninput %1 float32[?] \"x\"\n"
        "%2 = neg(%1) float32[?] \"l\"\noutput \"y\" %2\nend\n";
    static const char unmapped[] = /* more operands are mapped than there are */
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = map(%1) {mapped=5} float32[?] \"map\"\n"
        "  body\n    input %1 float32[] \"x\"\n    output \"y\" %1\n  end\n"
        "output \"y\" %2\nend\n";
    static const char uneven[] = /* mapped operands of different lengths */
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = concat(%1, %1) {axis=0} float32[?] \"twice\"\n"
        "%3 = map(%1, %2) {mapped=2} float32[?] \"map\"\n"
        "  body\n    input %1 float32[] \"x\"\n    input %2 float32[] \"y\"\n"
        "    output \"y\" %1\n  end\noutput \"y\" %3\nend\n";
    static const char huge[] = /* within a region, a value whose size overflows */
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = map(%1) {mapped=1} float32[?] \"map\"\n"
        "  body\n    input %1 float32[] \"x\"\n"
        "    %2 = broadcast_to(%1) {shape=[4611686018427387904]} float32[?] \"wide\"\n"
        "    %3 = reduce_sum(%2) {axes=[0]} float32[] \"sum\"\n    output \"y\" %3\n  end\n"
        "output \"y\" %2\nend\n";
    const float x[] = {1};
    sx_tensor y, in = floats(x, 1, 1, 0);
    running t;
    begin(&t, "host", parse(endless), (sx_runner_options){.seed = 1});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED,
                 "main: call \"again\": call \"again\": call \"again\": call \"again\": calls nest "
                 "deeper than 64, the limit; a function may call itself without end");
    assert_error(sx_runner_run(t.runner, "niam", &in, 1, &y, 1, &t.arena, NULL), SX_NOT_FOUND,
                 "no function \"niam\" (it has \"main\")");
    end(&t);
    begin(&t, "host", parse(unmapped), (sx_runner_options){.seed = 1});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_INVALID_ARGUMENT, "map \"map\": 5 of 1 operands are mapped");
    end(&t);
    begin(&t, "host", parse(uneven), (sx_runner_options){.seed = 1});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_INVALID_ARGUMENT,
                 "operand 1 is float32[2], expected an axis 0 as long as that of float32[1]");
    end(&t);
    for (size_t d = 0; d < 2; d++) {
        begin(&t, devices[d], parse(huge), (sx_runner_options){.seed = 1});
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                     SX_RESOURCE_EXHAUSTED,
                     strcmp(devices[d], "cpu") == 0
                         ? "map \"map\": body: cpu: the program needs more memory than can be "
                           "addressed; the largest value is float32[4611686018427387904] of "
                           "broadcast_to \"wide\""
                         : "element 0: broadcast_to \"wide\": the size of "
                           "float32[4611686018427387904] overflows");
        end(&t);
    }
    begin(&t, "host", parse(doubling), (sx_runner_options){.limits = {.nodes = 10}});
    assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
    assert_true(*(float *)y.data == 1);
    end(&t);
    begin(&t, "host", parse(doubling), (sx_runner_options){.limits = {.nodes = 9}});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "more than 9 nodes after inlining");
    end(&t);
}

/* A graph asks for a gibibyte of row numbers: refused, with the memory that compiling takes. */
static void test_runtime_function_run__row_numbers(void **state)
{
    (void)state;
    running t;
    sx_budget memory;
    sx_tensor y[3];
    sx_budget_init(&memory, "a test", 16 << 20, NULL);
    begin(&t, "cpu",
          parse("sextant-library 2\nfunction \"main\"\n"
                "%1 = iota() {shape=[268435456], axis=0, dtype=int32} int32[268435456] \"rows\"\n"
                "output \"y\" %1\nend\n"),
          (sx_runner_options){.memory = &memory});
    const int64_t before = sx_peak_bytes();
    assert_error(sx_runner_run(t.runner, "main", NULL, 0, y, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "would exceed the memory limit of a test");
    assert_true(sx_peak_bytes() - before < (64 << 20));
    end(&t);
    begin(&t, "cpu",
          parse("sextant-library 2\nfunction \"main\"\n"
                "%1 = iota() {shape=[60000], axis=0, dtype=int64} int64[60000] \"rows\"\n"
                "%2 = iota() {shape=[40000,3], axis=0, dtype=int32} int32[40000,3] \"wide\"\n"
                "%3 = iota() {shape=[3,40000], axis=1, dtype=float32} float32[3,40000] \"long\"\n"
                "output \"a\" %1\noutput \"b\" %2\noutput \"c\" %3\nend\n"),
          (sx_runner_options){.seed = 1});
    assert_ok(sx_runner_run(t.runner, "main", NULL, 0, y, 3, &t.arena, NULL));
    for (int i = 0; i < 60000; i++) {
        assert_true(((const int64_t *)y[0].data)[i] == i);
    }
    for (int i = 0; i < 120000; i++) {
        assert_true(((const int32_t *)y[1].data)[i] == i / 3);
        assert_true(((const float *)y[2].data)[i] == (float)(i % 40000));
    }
    end(&t);
}

/* A long graph takes more memory to specialize and to plan than it has: whatever the limit, it is
 * held, and another function that fits runs after it. */
static void test_runtime_function_run__planning_is_held_to_the_memory(void **state)
{
    (void)state;
    enum { LONG = 6000 };
    const bool measured = !harness_sanitizes();
    int refused = 0, ran = 0;
    for (size_t limit = 1 << 20; limit <= 64 << 20; limit *= 2) {
        running t;
        sx_budget memory;
        sx_buf text;
        float x[2] = {1, 2};
        sx_tensor y, in = {sx_type_of(SX_F32, 2), x};
        sx_buf_init(&text, 16 << 20);
        sx_buf_puts(&text, "sextant-library 2\nfunction \"main\"\ninput %1 float32[2] \"x\"\n");
        for (int i = 1; i <= LONG; i++) {
            sx_buf_printf(&text, "%%%d = %s(%%%d) float32[2] \"n%d\"\n", i + 1,
                          i % 2 == 0 ? "tanh" : "sin", i, i);
        }
        sx_buf_printf(&text, "output \"y\" %%%d\nend\n", LONG + 1);
        sx_buf_puts(&text, "function \"short\"\ninput %1 float32[2] \"x\"\n"
                           "%2 = neg(%1) float32[2] \"n\"\noutput \"y\" %2\nend\n");
        sx_budget_init(&memory, "a test", limit, NULL);
        begin(&t, "cpu", parse(sx_buf_text(&text)), (sx_runner_options){.memory = &memory});
        const int64_t before = sx_peak_bytes();
        sx_status status = sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL);
        if (status == SX_OK) {
            ran++;
        } else {
            refused++;
            assert_error(status, SX_RESOURCE_EXHAUSTED, "would exceed the memory limit of a test");
            assert_true(!measured || sx_peak_bytes() - before < (int64_t)limit + (16 << 20));
        }
        assert_ok(sx_runner_run(t.runner, "short", &in, 1, &y, 1, &t.arena, NULL));
        assert_true(((const float *)y.data)[1] == -2);
        end(&t);
        assert_int_equal(sx_budget_used(&memory), 0);
        sx_buf_deinit(&text);
    }
    assert_true(refused > 3 && ran > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_run__maps_of_strings),
    cmocka_unit_test(test_runtime_function_run__maps_of_unknown_sizes),
    cmocka_unit_test(test_runtime_function_run__row_numbers),
    cmocka_unit_test(test_runtime_function_run__planning_is_held_to_the_memory),
    cmocka_unit_test(test_runtime_function_run__batch_stays_symbolic_through_attribute_operands),
    cmocka_unit_test(test_runtime_function_run__late_calls_wait_for_their_shapes),
    cmocka_unit_test(test_runtime_function_run__late_calls_in_a_row),
    cmocka_unit_test(test_runtime_function_run__late_calls_are_for_their_own_shapes),
    cmocka_unit_test(test_runtime_function_run__branches),
    cmocka_unit_test(test_runtime_function_run__effects_keep_their_order),
    cmocka_unit_test(test_runtime_function_run__asserts_and_prints),
    cmocka_unit_test(test_runtime_function_run__regions_and_late_calls_assign_in_order),
    cmocka_unit_test(test_runtime_function_run__limits_are_refused_with_their_figure),
};
SX_TEST_MAIN(tests)
