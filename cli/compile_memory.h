/* `compile --memory`: the memory that a program takes on the CPU, as it is planned before anything
 * runs. */
#ifndef SX_CLI_COMPILE_MEMORY_H
#define SX_CLI_COMPILE_MEMORY_H

#include "backends/cpu/critical_path.h"
#include "backends/cpu/memory_map.h"
#include "backends/cpu/plan.h"
#include "base/buffer.h"

typedef struct sx_memory_request {
    const char *model, *mode, *precision;
    const sx_graph *graph;
    int64_t batch;
    int threads;     /* 0 = all */
    bool frozen;     /* variables keep their values: a SavedModel's */
    int eval_shards; /* sx_cpu_options.eval_shards */
    int64_t limit;   /* sx_cpu_options.memory_limit_bytes */
} sx_memory_request;

typedef struct sx_memory_report {
    const sx_memory_request *of;
    sx_cpu_plan *plan;
    int64_t variables, inputs, outputs, constants; /* bytes; constants: packed weights among them */
    int64_t temporaries, least;                    /* least: no placement takes less */
    sx_cpu_critical_path work;
} sx_memory_report;

/* Call sx_memory_report_end() also after an error. Errors: those of sx_cpu_plan_create(). */
SX_MUST_USE sx_status sx_memory_report_make(const sx_memory_request *request,
                                            sx_memory_report *out);
void sx_memory_report_end(sx_memory_report *r);

void sx_put_memory_report(sx_buf *out, const sx_memory_report *r);
/* Text that ends with a newline. */
SX_MUST_USE sx_status sx_put_memory_json(sx_buf *out, const sx_memory_report *r);
/* A picture of the arena: steps from left to right, addresses from bottom to top. */
SX_MUST_USE sx_status sx_put_memory_svg(sx_buf *out, const sx_memory_report *r);

/* "resnet50, train step, float32, batch 16, on the CPU: 2 shards" */
void sx_put_memory_title(sx_buf *out, const sx_memory_report *r);
/* How much the plan takes more than the least, in percent. */
double sx_memory_excess(const sx_memory_report *r);

#endif
