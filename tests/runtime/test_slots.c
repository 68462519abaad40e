/* Slots: many threads run one program, bounded by the options, the device and the memory limit. */
#include "harness.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sextant/ops.h>

#include "../backends/pjrt_plugin.h"
#include "base/clock.h"
#include "graph/text.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"

enum {
    PIXELS = 28 * 28,
    CLASSES = 10,
    THREADS = 4,
    PLANNING_BYTES = 200 << 10, /* at most what planning takes and gives back */
};

typedef struct fixture {
    sx_budget budget;
    sx_session *session;
    sx_graph *graph;
    sx_program *program;
    size_t variables; /* charged */
    float x[8 * PIXELS];
    float y[8 * CLASSES];
    const void *inputs[1];
} fixture;

static void begin(fixture *f, sx_mode mode, const sx_session_options *options)
{
    sx_program_request r = {.def = sx_zoo_find("mnist_cnn"), .mode = mode};
    *f = (fixture){.inputs = {f->x}};
    sx_budget_init(&f->budget, "this test", 0, NULL);
    sx_session_options o = *options;
    o.memory = &f->budget;
    o.platform.cpu.threads = 1;
    assert_ok(sx_build_program(&r, &f->graph));
    assert_ok(sx_session_create(&o, &f->session));
    assert_ok(sx_session_add_program(f->session, f->graph, &f->program));
    f->variables = sx_budget_used(&f->budget);
    for (int i = 0; i < 8 * PIXELS; i++) {
        f->x[i] = (float)(i % 101) / 101.0f;
    }
}

static void end(fixture *f)
{
    sx_session_destroy(f->session);
    sx_graph_destroy(f->graph);
    assert_int_equal(sx_budget_used(&f->budget), 0);
}

static int logits(const fixture *f)
{
    for (int i = 0; i < sx_program_output_count(f->program); i++) {
        sx_type t = sx_type_with_batch(*sx_program_output_type(f->program, i), 8);
        if (t.dtype == SX_F32 && sx_type_elems(&t) == 8L * CLASSES) {
            return i;
        }
    }
    fail();
    return -1;
}

static sx_status run_slot(sx_slot *slot, const void *const *inputs, const sx_cancel *cancel)
{
    SX_TRY(sx_slot_begin(slot, inputs, cancel));
    return sx_slot_end(slot, cancel);
}

static void run(const fixture *f, sx_slot *slot, float y[8 * CLASSES])
{
    assert_ok(run_slot(slot, f->inputs, NULL));
    assert_ok(sx_slot_read_output(slot, logits(f), y, SX_NO_DEADLINE));
}

static void test_runtime_slots__are_used_at_once_up_to_the_bound(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "host"};
    for (int d = 0; d < 2; d++) {
        fixture f;
        sx_slot *a, *b, *c;
        float second[8 * CLASSES];
        sx_executable_info info;
        begin(&f, SX_PREDICT, &(sx_session_options){.device = devices[d], .seed = 7, .slots = 2});
        assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &a));
        const size_t one = sx_budget_used(&f.budget) - f.variables;
        assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &b)); /* while a is in use */
        assert_true(a != b);
        const size_t two = sx_budget_used(&f.budget) - f.variables;
        assert_error(sx_program_acquire(f.program, 8, sx_now_ns(), &c), SX_DEADLINE_EXCEEDED,
                     "the program's runs were all in use until the deadline");
        assert_int_equal(sx_budget_used(&f.budget) - f.variables, two);
        run(&f, a, f.y);
        run(&f, b, second);
        assert_memory_equal(f.y, second, sizeof(second));
        sx_slot_release(a);
        assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &c));
        assert_ptr_equal(c, a); /* it is used again */
        sx_slot_release(b);
        sx_slot_release(c);
        /* the same bits, and each run's temporaries are charged, the constants once */
        assert_ok(sx_program_run(f.program, 8, f.inputs));
        assert_ok(sx_program_read_output(f.program, logits(&f), second));
        assert_memory_equal(f.y, second, sizeof(second));
        assert_ok(sx_program_info(f.program, 8, &info));
        assert_true(two - one >= (size_t)(info.temporary_bytes + info.output_bytes));
        assert_true(two - one < one || info.code_bytes == 0);
        end(&f);
    }
}

/* Who has slots already waits for no other: NULL if there is none, or it would take a compilation.
 */
static void test_runtime_slots__can_be_asked_for_without_waiting(void **state)
{
    (void)state;
    fixture f;
    sx_slot *a, *b, *c;
    begin(&f, SX_PREDICT, &(sx_session_options){.device = "cpu", .seed = 7, .slots = 2});
    assert_ok(sx_program_try_acquire(f.program, 8, &a));
    assert_null(a); /* it is not compiled */
    assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &a));
    assert_ok(sx_program_try_acquire(f.program, 8, &b));
    assert_true(b != NULL && b != a);
    assert_ok(sx_program_try_acquire(f.program, 8, &c));
    assert_null(c); /* two are all */
    sx_slot_release(a);
    assert_ok(sx_program_try_acquire(f.program, 8, &c));
    assert_ptr_equal(c, a);
    run(&f, c, f.y);
    sx_slot_release(b);
    sx_slot_release(c);
    end(&f);
}

static void test_runtime_slots__allocate_nothing_in_a_run(void **state)
{
    (void)state;
    fixture f;
    sx_slot *slot;
    begin(&f, SX_PREDICT, &(sx_session_options){.device = "cpu", .seed = 7});
    for (int i = 0, y = logits(&f); i < 2; i++) {
        const long before = sx_alloc_count();
        for (int k = 0; k < 3; k++) {
            assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &slot));
            assert_ok(run_slot(slot, f.inputs, NULL));
            assert_ok(sx_slot_read_output(slot, y, f.y, SX_NO_DEADLINE));
            sx_slot_release(slot);
            assert_ok(sx_program_run(f.program, 4, f.inputs));
            assert_ok(sx_program_read_output(f.program, y, f.y));
        }
        assert_true(i == 0 || sx_alloc_count() == before);
    }
    end(&f);
}

/* y = x doubled n times */
static const char doubling[] =
    "sextant-graph 2\n"
    "input %1 float32[] \"x\"\ninput %2 int64[] \"n\"\n"
    "%3 = constant() {value=tensor(int64[] \"0000000000000000\")} int64[] \"zero\"\n"
    "%4, %5 = while(%1, %3, %2) float32[], int64[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[] \"x\"\n    input %2 int64[] \"i\"\n    input %3 int64[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float32[] \"x\"\n    input %2 int64[] \"i\"\n    input %3 int64[] \"n\"\n"
    "    %4 = constant() {value=tensor(int64[] \"0100000000000000\")} int64[] \"one\"\n"
    "    %5 = add(%2, %4) int64[] \"next\"\n"
    "    %6 = add(%1, %1) float32[] \"twice\"\n"
    "    output \"x\" %6\n    output \"i\" %5\n  end\n"
    "output \"y\" %4\n";

/* In a child: what the plugin still holds cannot be given back. The plugin interprets the loop. */
static void test_runtime_slots__a_device_that_is_busy_is_left_at_the_deadline(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        sx_session *session;
        sx_program *program;
        sx_graph *graph;
        sx_slot *slot;
        sx_cancel cancel;
        float *x = malloc(sizeof(*x)), y = 0; /* freed while the device runs */
        int64_t *n = malloc(sizeof(*n));
        const void *inputs[] = {x, n};
        const sx_session_options options = {.device = "pjrt",
                                            .platform = {.pjrt.plugin_path = ref_plugin()}};
        assert_ok(sx_graph_parse(doubling, strlen(doubling), &graph));
        assert_ok(sx_session_create(&options, &session));
        assert_ok(sx_session_add_program(session, graph, &program));
        *x = 3;
        for (int i = 0; i < 2; i++) {
            assert_ok(sx_program_acquire(program, 1, SX_NO_DEADLINE, &slot));
            *n = 2;
            if (i == 0) { /* later, the device is busy */
                assert_ok(run_slot(slot, inputs, NULL));
                assert_ok(sx_slot_read_output(slot, 0, &y, SX_NO_DEADLINE));
                assert_true(y == 12);
            }
            const int64_t start = sx_now_ns();
            *n = (int64_t)1 << 40;
            sx_cancel_init(&cancel, start + 200000000);
            assert_error(run_slot(slot, inputs, &cancel), SX_DEADLINE_EXCEEDED, "in time");
            assert_true(sx_now_ns() - start < 10000000000);
            sx_slot_release(slot); /* another run is made for the next one */
        }
        free(x);
        free(n);
        assert_false(sx_session_destroy(session));
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

static void test_runtime_slots__are_bounded_by_memory(void **state)
{
    (void)state;
    fixture f;
    sx_slot *a, *b;
    begin(&f, SX_PREDICT, &(sx_session_options){.device = "cpu", .seed = 7, .slots = 8});
    assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &a));
    const size_t one = sx_budget_used(&f.budget);
    f.budget.limit_bytes = one + 1000;
    assert_error(sx_program_acquire(f.program, 8, sx_now_ns(), &b), SX_DEADLINE_EXCEEDED,
                 "all in use");
    assert_int_equal(sx_budget_used(&f.budget), one);
    sx_slot_release(a);
    /* another size takes its place; one that does not fit alone is refused */
    assert_ok(sx_program_acquire(f.program, 1, SX_NO_DEADLINE, &b));
    sx_slot_release(b);
    assert_true(sx_budget_used(&f.budget) < one);
    assert_error(sx_program_acquire(f.program, 64, SX_NO_DEADLINE, &b), SX_RESOURCE_EXHAUSTED,
                 "compiling for batch size 64: ");
    assert_int_equal(sx_budget_used(&f.budget), f.variables);
    end(&f);
}

static sx_graph *times_constant(const char *input, const char *output)
{
    static const float data[PIXELS] = {1};
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, input, sx_type_of(SX_F32, SX_BATCH, PIXELS));
    sx_value c = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, PIXELS), (void *)data});
    sx_output(b, output, sx_mul(b, x, c));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Programs that differ in names alone have one executable: its constants are charged once. */
static void test_runtime_slots__of_equal_programs_share_the_executable(void **state)
{
    (void)state;
    sx_budget memory;
    sx_session *session;
    sx_graph *graphs[2] = {times_constant("x", "y"), times_constant("image", "scaled")};
    sx_program *programs[2];
    sx_slot *slots[2];
    sx_digest digests[2];
    size_t charged[2];
    float x[PIXELS] = {3}, y[PIXELS];
    const void *inputs[1] = {x};
    sx_budget_init(&memory, "this test", 0, NULL);
    assert_ok(sx_session_create(
        &(sx_session_options){.device = "cpu", .memory = &memory, .platform.cpu.threads = 1},
        &session));
    for (int k = 0; k < 2; k++) {
        assert_ok(sx_session_add_program(session, graphs[k], &programs[k]));
        assert_ok(sx_graph_digest(graphs[k], false, &digests[k]));
        sx_program_set_digest(programs[k], &digests[k]);
        const size_t before = sx_budget_used(&memory);
        assert_ok(sx_program_acquire(programs[k], 1, SX_NO_DEADLINE, &slots[k]));
        charged[k] = sx_budget_used(&memory) - before;
    }
    assert_true(charged[1] + PIXELS * sizeof(float) <= charged[0]);
    for (int k = 0; k < 2; k++) {
        assert_ok(run_slot(slots[k], inputs, NULL));
        assert_ok(sx_slot_read_output(slots[k], 0, y, SX_NO_DEADLINE));
        assert_true(y[0] == 3 && y[1] == 0);
        sx_slot_release(slots[k]);
    }
    sx_session_destroy(session);
    assert_int_equal(sx_budget_used(&memory), 0);
    sx_graph_destroy(graphs[0]);
    sx_graph_destroy(graphs[1]);
}

static void test_runtime_slots__are_not_for_programs_that_assign(void **state)
{
    (void)state;
    fixture f;
    sx_slot *slot;
    begin(&f, SX_TRAIN, &(sx_session_options){.device = "cpu"});
    assert_error(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &slot), SX_FAILED_PRECONDITION,
                 "the program updates variable \"");
    end(&f);
}

typedef struct worker {
    const fixture *f;
    int64_t batches[2]; /* in turn */
    bool right;
} worker;

static void *work(void *user)
{
    worker *w = user;
    float y[8 * CLASSES];
    w->right = true;
    for (int i = 0; i < 40; i++) {
        sx_slot *slot;
        const int64_t batch = w->batches[i % 2];
        assert_ok(sx_program_acquire(w->f->program, batch, SX_NO_DEADLINE, &slot));
        run(w->f, slot, y);
        sx_slot_release(slot);
        for (int64_t k = 0; k < batch * CLASSES; k++) {
            const float error = y[k] - w->f->y[k];
            w->right = w->right && error < 1e-5f && error > -1e-5f;
        }
    }
    return NULL;
}

static void run_threads(const sx_session_options *options, size_t limit_bytes)
{
    fixture f;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    begin(&f, SX_PREDICT, options);
    assert_ok(sx_program_run(f.program, 8, f.inputs));
    assert_ok(sx_program_read_output(f.program, logits(&f), f.y));
    const size_t others = sx_budget_used(&f.budget);
    f.budget.limit_bytes = limit_bytes > 0 ? others + limit_bytes : 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.f = &f, .batches = {i % 2 == 0 ? 8 : 1, i % 2 == 0 ? 4 : 8}};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].right);
    }
    end(&f);
}

static void test_runtime_slots__threads_share_a_program(void **state)
{
    (void)state;
    run_threads(&(sx_session_options){.device = "cpu", .seed = 7, .slots = 3}, 0);
}

/* The limit holds one run of 8 and what planning takes meanwhile: sizes take each other's place
 * while threads wait. */
static void test_runtime_slots__sizes_take_turns_in_little_memory(void **state)
{
    (void)state;
    fixture f;
    sx_slot *slot;
    begin(&f, SX_PREDICT, &(sx_session_options){.device = "cpu", .seed = 7});
    assert_ok(sx_program_acquire(f.program, 8, SX_NO_DEADLINE, &slot));
    const size_t one = sx_budget_used(&f.budget) - f.variables;
    sx_slot_release(slot);
    end(&f);
    run_threads(&(sx_session_options){.device = "cpu", .seed = 7, .slots = 3},
                one + PLANNING_BYTES);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_slots__are_used_at_once_up_to_the_bound),
    cmocka_unit_test(test_runtime_slots__can_be_asked_for_without_waiting),
    cmocka_unit_test(test_runtime_slots__allocate_nothing_in_a_run),
    cmocka_unit_test(test_runtime_slots__a_device_that_is_busy_is_left_at_the_deadline),
    cmocka_unit_test(test_runtime_slots__are_bounded_by_memory),
    cmocka_unit_test(test_runtime_slots__of_equal_programs_share_the_executable),
    cmocka_unit_test(test_runtime_slots__are_not_for_programs_that_assign),
    cmocka_unit_test(test_runtime_slots__threads_share_a_program),
    cmocka_unit_test(test_runtime_slots__sizes_take_turns_in_little_memory),
};
SX_TEST_MAIN(tests)
