/* A model of text from functions: bytes -> words (ragged: starts, lengths) -> padded to the longest
 * -> embedding -> attention within each word. Where the spaces are decides the shapes, so that all
 * behind that is a late call. Run on the host's kernels and on the cpu backend, compared with plain
 * C, and trained: specialized, differentiated, compared with differences of the loss. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/passes/rewrite.h"
#include "runtime/function_run.h"

enum { DIM = 4, MOST_WORDS = 16, MOST_LETTERS = 16 };

static const char *const devices[] = {"host", "cpu"};

static const char model[] =
    "sextant-library 2\n"
    "variable float32[256,4] \"embedding\" weight normal 0.5\n"
    "variable float32[4,4] \"query\" weight normal 0.5\n"
    "function \"split\"\n"
    "  input %1 uint8[?] \"text\"\n"
    "  %2 = constant() {value=tensor(uint8[] \"20\")} uint8[] \"space\"\n"
    "  %3 = equal(%1, %2) bool[?] \"is_space\"\n"
    "  %4 = where(%3) int64[?,1] \"spaces\"\n"
    "  %5 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"rest\"\n"
    "  %6 = reshape(%4) {shape=%5} int64[?] \"ends\"\n"
    "  %7 = shape(%6) {dtype=int64} int64[1] \"words\"\n"
    "  %8 = iota() {shape=%7, axis=0, dtype=int64} int64[?] \"word\"\n"
    "  %9 = constant() {value=tensor(int64[] \"0100000000000000\")} int64[] \"one\"\n"
    "  %10 = sub(%8, %9) int64[?] \"before\"\n"
    "  %11 = gather(%6, %10) int64[?] \"previous_end\"\n"
    "  %12 = minimum(%8, %9) int64[?] \"skip_space\"\n"
    "  %13 = add(%11, %12) int64[?] \"starts\"\n"
    "  %14 = sub(%6, %13) int64[?] \"lengths\"\n"
    "  output \"starts\" %13\n"
    "  output \"lengths\" %14\n"
    "end\n"
    "function \"pad\"\n"
    "  input %1 uint8[?] \"values\"\n"
    "  input %2 int64[?] \"starts\"\n"
    "  input %3 int64[?] \"lengths\"\n"
    "  %4 = reduce_max(%3) {axes=[0]} int64[] \"longest\"\n"
    "  %5 = constant() {value=tensor(int64[1] \"0100000000000000\")} int64[1] \"one\"\n"
    "  %6 = reshape(%4) {shape=%5} int64[1] \"width\"\n"
    "  %7 = iota() {shape=%6, axis=0, dtype=int64} int64[?] \"column\"\n"
    "  %8 = constant() {value=tensor(int64[2] \"ffffffffffffffff0100000000000000\")} int64[2] "
    "\"as_column\"\n"
    "  %9 = reshape(%2) {shape=%8} int64[?,1] \"start_of\"\n"
    "  %10 = reshape(%3) {shape=%8} int64[?,1] \"length_of\"\n"
    "  %11 = add(%9, %7) int64[?,?] \"position\"\n"
    "  %12 = less(%7, %10) bool[?,?] \"valid\"\n"
    "  %13 = cast(%1) {dtype=int32} int32[?] \"codes\"\n"
    "  %14 = gather(%13, %11) int32[?,?] \"ids\"\n"
    "  output \"ids\" %14\n"
    "  output \"valid\" %12\n"
    "end\n"
    "function \"attend\"\n"
    "  input %1 int32[?,?] \"ids\"\n"
    "  input %2 bool[?,?] \"valid\"\n"
    "  %3 = variable_handle() {name=\"embedding\"} resource[] \"embedding\"\n"
    "  %4 = read_variable(%3) float32[256,4] \"table\"\n"
    "  %5 = variable_handle() {name=\"query\"} resource[] \"query\"\n"
    "  %6 = read_variable(%5) float32[4,4] \"kernel\"\n"
    "  %7 = gather(%4, %1) float32[?,?,4] \"embedded\"\n"
    "  %8 = cast(%2) {dtype=float32} float32[?,?] \"mask\"\n"
    "  %9 = map(%7, %8, %6) {mapped=2} float32[?,4] \"map\"\n"
    "    body\n"
    "      input %1 float32[?,4] \"x\"\n"
    "      input %2 float32[?] \"mask\"\n"
    "      input %3 float32[4,4] \"kernel\"\n"
    "      %4 = matmul(%1, %3) float32[?,4] \"queries\"\n"
    "      %5 = matmul(%4, %1) {transpose_b=true} float32[?,?] \"scores\"\n"
    "      %6 = constant() {value=tensor(float32[] \"0000803f\")} float32[] \"one\"\n"
    "      %7 = sub(%2, %6) float32[?] \"hidden\"\n"
    "      %8 = constant() {value=tensor(float32[] \"286b6e4e\")} float32[] \"far\"\n"
    "      %9 = mul(%7, %8) float32[?] \"bias\"\n"
    "      %10 = add(%5, %9) float32[?,?] \"masked\"\n"
    "      %11 = softmax(%10) float32[?,?] \"weights\"\n"
    "      %12 = matmul(%11, %1) float32[?,4] \"context\"\n"
    "      %13 = constant() {value=tensor(int64[2] \"ffffffffffffffff0100000000000000\")} int64[2] "
    "\"as_column\"\n"
    "      %14 = reshape(%2) {shape=%13} float32[?,1] \"rows\"\n"
    "      %15 = mul(%12, %14) float32[?,4] \"kept\"\n"
    "      %16 = reduce_sum(%15) {axes=[0]} float32[4] \"sum\"\n"
    "      output \"y\" %16\n"
    "    end\n"
    "  output \"y\" %9\n"
    "end\n"
    "function \"main\"\n"
    "  input %1 uint8[?] \"text\"\n"
    "  %2, %3 = call(%1) {function=\"split\"} int64[?], int64[?] \"split\"\n"
    "  %4, %5 = call(%1, %2, %3) {function=\"pad\"} int32[?,?], bool[?,?] \"pad\"\n"
    "  %6 = call(%4, %5) {function=\"attend\"} float32[?,4] \"attend\"\n"
    "  output \"y\" %6\n"
    "  output \"ids\" %4\n"
    "end\n";

typedef struct running {
    sx_library *library;
    sx_platform *platform;
    sx_runner *runner;
    float table[256][DIM], query[DIM][DIM];
} running;

static void begin(running *t, const char *device, const char *text)
{
    assert_ok(sx_library_parse(text, strlen(text), &t->library));
    assert_ok(sx_platform_open(device, &(sx_platform_options){.cpu.threads = 1}, &t->platform));
    assert_ok(sx_runner_create(
        &(sx_runner_options){.library = t->library, .platform = t->platform, .seed = 7},
        &t->runner));
    assert_ok(sx_runner_read_variable(t->runner, "embedding", t->table));
    assert_ok(sx_runner_read_variable(t->runner, "query", t->query));
}

static void end(running *t)
{
    sx_runner_destroy(t->runner);
    sx_platform_close(t->platform);
    sx_library_destroy(t->library);
}

/* What the model gives for one word. */
static void attend(const running *t, const char *word, size_t letters, double out[DIM])
{
    memset(out, 0, DIM * sizeof(out[0]));
    for (size_t i = 0; i < letters; i++) {
        const float *x = t->table[(unsigned char)word[i]];
        double weights[MOST_LETTERS], sum = 0;
        for (size_t k = 0; k < letters; k++) {
            double score = 0;
            for (int a = 0; a < DIM; a++) {
                for (int b = 0; b < DIM; b++) {
                    score += (double)x[a] * t->query[a][b] * t->table[(unsigned char)word[k]][b];
                }
            }
            sum += weights[k] = exp(score);
        }
        for (size_t k = 0; k < letters; k++) {
            for (int a = 0; a < DIM; a++) {
                out[a] += weights[k] / sum * t->table[(unsigned char)word[k]][a];
            }
        }
    }
}

/* Every word of `text` ends with a space. */
static void check(const running *t, const char *text)
{
    sx_arena arena;
    sx_tensor y[2], in = {sx_type_of(SX_U8, (int64_t)strlen(text)), (void *)text};
    sx_arena_init(&arena, 0);
    assert_ok(sx_runner_run(t->runner, "main", &in, 1, y, 2, &arena, NULL));
    int64_t words = 0;
    size_t longest = 0;
    for (const char *at = text; *at != '\0'; at = strchr(at, ' ') + 1, words++) {
        double want[DIM];
        const size_t letters = (size_t)(strchr(at, ' ') - at);
        longest = SX_MAX(longest, letters);
        attend(t, at, letters, want);
        for (int a = 0; a < DIM; a++) {
            assert_true(fabs(((const float *)y[0].data)[words * DIM + a] - want[a]) < 1e-5);
        }
    }
    const sx_type type = sx_type_of(SX_F32, words, DIM),
                  ids = sx_type_of(SX_I32, words, (int64_t)longest);
    assert_true(sx_type_equal(&y[0].type, &type) && sx_type_equal(&y[1].type, &ids));
    sx_arena_deinit(&arena);
}

static int64_t builds(const running *t)
{
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(t->runner, &programs, &executables, &known);
    return programs.builds + executables.builds;
}

static void test_runtime_text_attention__text_decides_the_shapes(void **state)
{
    (void)state;
    char *again = NULL;
    sx_library *library = NULL;
    assert_ok(sx_library_parse(model, strlen(model), &library));
    assert_ok(sx_library_print(library, &again));
    sx_library_destroy(library);
    for (size_t d = 0; d < 2; d++) {
        running t;
        begin(&t, devices[d], d == 0 ? model : again);
        check(&t, "hello a to ");
        const int64_t before = builds(&t);
        check(&t, "a to words ");
        check(&t, "to be tests ");
        const int64_t after = builds(&t); /* 12 bytes for 11, then the same words and letters */
        assert_true(after > before);
        check(&t, "or be texts ");
        check(&t, "o bee texts "); /* other lengths, of which the longest is the same */
        assert_int_equal(builds(&t), after);
        check(&t, "the quick brown fox jumps over the lazy dog ");
        check(&t, "x ");
        end(&t);
    }
    sx_text_free(again);
}

/* ---- Training ---- */

/* Keeps every node; behind the last one: loss = sum(y^2) and its gradients. */
static void add_loss(sx_rewrite *rw, const sx_node *node)
{
    sx_rewrite_keep(rw, node, NULL);
    if (node != &rw->from->nodes[rw->from->n_nodes - 1]) {
        return;
    }
    sx_value weights[2], gradients[2];
    static const char *const names[] = {"embedding", "query"};
    for (int i = 0; i < 2; i++) {
        weights[i] = rw->map[rw->from->args[sx_graph_find_arg(rw->from, names[i])].value.id];
    }
    sx_value y = rw->map[rw->from->results[0].value.id];
    sx_value loss = sx_reduce_sum(rw->to, sx_square(rw->to, y), .axes = SX_AXES(0, 1));
    sx_gradients(rw->to, loss, weights, 2, gradients);
    sx_output(rw->to, "loss", loss);
    sx_output(rw->to, "d_embedding", gradients[0]);
    sx_output(rw->to, "d_query", gradients[1]);
}

typedef struct training {
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *args[4], *results[4]; /* loss, gradients, y */
} training;

static double step(training *s, float d_table[256][DIM], float d_query[DIM][DIM])
{
    float loss;
    assert_ok(sx_run_execute(s->run, s->args, s->results));
    assert_ok(sx_device_buffer_read(s->results[0], &loss));
    assert_ok(sx_device_buffer_read(s->results[1], d_table));
    assert_ok(sx_device_buffer_read(s->results[2], d_query));
    return loss;
}

static void test_runtime_text_attention__trains(void **state)
{
    (void)state;
    enum { WORDS = 3, LETTERS = 5 };
    static const int32_t ids[WORDS][LETTERS] = {
        {'h', 'e', 'l', 'l', 'o'}, {'a', 0, 0, 0, 0}, {'t', 'o', 0, 0, 0}};
    uint8_t valid[WORDS][LETTERS];
    for (int i = 0; i < WORDS * LETTERS; i++) {
        valid[i / LETTERS][i % LETTERS] = ids[i / LETTERS][i % LETTERS] != 0;
    }
    for (size_t d = 0; d < 2; d++) {
        running t;
        training s = {.e = NULL};
        sx_specialized *program = NULL;
        sx_graph *graph = NULL;
        static float d_table[256][DIM], ignored_table[256][DIM];
        float d_query[DIM][DIM], ignored_query[DIM][DIM];
        begin(&t, devices[d], model);
        const sx_tensor args[] = {{sx_type_of(SX_I32, WORDS, LETTERS), NULL},
                                  {sx_type_of(SX_BOOL, WORDS, LETTERS), NULL}};
        assert_ok(sx_specialize(t.library, sx_library_find(t.library, "attend")->body,
                                &(sx_binding){.args = args, .n_args = 2},
                                &(sx_specialize_limits){.nodes = 0}, &program));
        assert_int_equal(program->n_steps, 1);
        assert_int_equal(program->steps[0].kind, SX_STEP_DEVICE);
        assert_ok(sx_rewrite_run(program->steps[0].graph, 0, add_loss, NULL, &graph));
        assert_ok(
            sx_compile(t.platform, graph, &(sx_compile_options){.batch = 1, .shards = 1}, &s.e));
        assert_ok(sx_run_create(s.e, &s.run));
        const int table = sx_graph_find_arg(graph, "embedding"),
                  query = sx_graph_find_arg(graph, "query");
        for (int i = 0, input = 0; i < 4; i++) {
            const void *data = i == table     ? (const void *)t.table
                               : i == query   ? (const void *)t.query
                               : input++ == 0 ? (const void *)ids
                                              : (const void *)valid;
            assert_ok(
                sx_device_buffer_create(t.platform->devices[0], &s.e->arg_types[i], &s.args[i]));
            assert_ok(sx_device_buffer_write(s.args[i], data, false));
            assert_ok(sx_device_buffer_create(t.platform->devices[0], &s.e->result_types[i],
                                              &s.results[i]));
        }
        const double first = step(&s, d_table, d_query);
        /* Differences of the loss along each of the numbers of the query, and along letters. */
        for (int k = 0; k < 2 * DIM * DIM; k++) {
            static const char letters[] = "heat";
            const bool of_query = k < DIM * DIM;
            const int row = k / DIM % DIM, column = k % DIM;
            float *weight =
                of_query ? &t.query[row][column] : &t.table[(unsigned char)letters[row]][column];
            const double slope =
                of_query ? d_query[row][column] : d_table[(unsigned char)letters[row]][column];
            const float was = *weight;
            double sides[2];
            for (int side = 0; side < 2; side++) {
                *weight = was + (side == 0 ? -0.01F : 0.01F);
                assert_ok(sx_device_buffer_write(s.args[table], t.table, false));
                assert_ok(sx_device_buffer_write(s.args[query], t.query, false));
                sides[side] = step(&s, ignored_table, ignored_query);
            }
            *weight = was;
            assert_true(fabs((sides[1] - sides[0]) / 0.02 - slope) < 1e-3 * (1 + fabs(slope)));
        }
        double last = first;
        for (int i = 0; i < 30; i++) { /* gradient descent */
            assert_ok(sx_device_buffer_write(s.args[table], t.table, false));
            assert_ok(sx_device_buffer_write(s.args[query], t.query, false));
            const double loss = step(&s, d_table, d_query);
            assert_true(loss <= last);
            last = loss;
            for (int k = 0; k < 256 * DIM; k++) {
                t.table[k / DIM][k % DIM] -= 0.01F * d_table[k / DIM][k % DIM];
            }
            for (int k = 0; k < DIM * DIM; k++) {
                t.query[k / DIM][k % DIM] -= 0.01F * d_query[k / DIM][k % DIM];
            }
        }
        assert_true(last < first / 2);
        assert_ok(sx_runner_write_variable(t.runner, "embedding", t.table));
        assert_ok(sx_runner_write_variable(t.runner, "query", t.query));
        check(&t, "hello a to "); /* the trained model */
        for (int i = 0; i < 4; i++) {
            sx_device_buffer_release(s.args[i]);
            sx_device_buffer_release(s.results[i]);
        }
        sx_run_destroy(s.run);
        sx_executable_release(s.e);
        sx_graph_destroy(graph);
        sx_specialized_destroy(program);
        end(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_text_attention__text_decides_the_shapes),
    cmocka_unit_test(test_runtime_text_attention__trains),
};
SX_TEST_MAIN(tests)
