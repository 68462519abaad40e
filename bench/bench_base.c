/* The base layer: what a phase of a step costs before any work is done in it. */
#include "bench.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"

enum { BARRIERS = 100 };

static void nothing(void *user, int worker)
{
    (void)user;
    (void)worker;
}

static void empty_run(void *user)
{
    sx_pool_run(user, nothing, NULL);
}

static void many_barriers(void *user, int worker)
{
    (void)worker;
    for (int i = 0; i < BARRIERS; i++) {
        sx_pool_barrier(user);
    }
}

static void run_of_barriers(void *user)
{
    sx_pool_run(user, many_barriers, user);
}

static void allocate(void *user)
{
    (void)user;
    sx_free(sx_alloc(1, 100));
}

static void arena_of_hundred(void *user)
{
    (void)user;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    for (int i = 0; i < 100; i++) {
        (void)sx_arena_alloc(&arena, 1, 100);
    }
    sx_arena_deinit(&arena);
}

static void hash_name(void *user)
{
    volatile uint64_t hash = sx_hash64(user, 32);
    (void)hash;
}

int main(void)
{
    sx_pool *pool = NULL;
    sx_status status = sx_pool_create(0, &pool);
    if (status != SX_OK) {
        fprintf(stderr, "%s\n", sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    printf("worker pool of %d\n", sx_pool_workers(pool));
    bench_time("base: pool, one empty run", empty_run, pool);
    bench_time("base: pool, one run of 100 barriers", run_of_barriers, pool);
    bench_time("base: sx_alloc and sx_free, 100 bytes", allocate, NULL);
    bench_time("base: arena of 100 objects of 100 bytes", arena_of_hundred, NULL);
    bench_time("base: hash of a name of 32 bytes", hash_name, "resnet50/conv2d_1/kernel/Adam_1");
    sx_pool_destroy(pool);
    return 0;
}
