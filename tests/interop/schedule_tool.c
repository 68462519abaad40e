/* schedule_tool DEVICE RATE NAME=VALUE...: the learning rate at steps, for test_schedules.py. The
 * names are sx_schedule's fields; lists are separated by commas.
 *
 * Reads steps as decimal numbers from standard input and writes the rate of each, one a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir.h"
#include "nn/optimizer.h"
#include "runtime/session.h"

static void check(sx_status status)
{
    if (status != SX_OK) {
        fprintf(stderr, "schedule_tool: %s\n", sx_status_message(status));
        exit(1);
    }
}

static void take_setting(char *setting, sx_schedule *s)
{
    static const char *const kinds[] = {"constant", "exponential", "piecewise", "cosine"};
    char *value = strchr(setting, '='), *item;
    *value++ = '\0';
    if (strcmp(setting, "kind") == 0) {
        for (int i = 0; i < 4; i++) {
            s->kind = strcmp(value, kinds[i]) == 0 ? (sx_schedule_kind)i : s->kind;
        }
    } else if (strcmp(setting, "rate") == 0) {
        s->rate = atof(value);
    } else if (strcmp(setting, "alpha") == 0) {
        s->alpha = atof(value);
    } else if (strcmp(setting, "steps") == 0) {
        s->steps = atoll(value);
    } else if (strcmp(setting, "warmup_steps") == 0) {
        s->warmup_steps = atoll(value);
    } else if (strcmp(setting, "staircase") == 0) {
        s->staircase = atoi(value) != 0;
    } else if (strcmp(setting, "boundaries") == 0) {
        for (item = strtok(value, ","); item != NULL; item = strtok(NULL, ",")) {
            s->boundaries[s->n_boundaries++] = atoll(item);
        }
    } else if (strcmp(setting, "values") == 0) {
        int n = 0;
        for (item = strtok(value, ","); item != NULL; item = strtok(NULL, ",")) {
            s->values[n++] = atof(item);
        }
    } else {
        fprintf(stderr, "schedule_tool: no setting \"%s\"\n", setting);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    sx_schedule schedule = {0};
    sx_builder *b;
    sx_graph *g;
    sx_session *s;
    sx_program *p;
    if (argc < 3) {
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        take_setting(argv[i], &schedule);
    }
    check(sx_builder_create(&b));
    sx_value step = sx_variable(b, &(sx_variable_spec){.name = "global_step",
                                                       .type = sx_scalar_type(SX_I64),
                                                       .role = SX_ROLE_STEP});
    sx_output(b, "rate", sx_build_learning_rate(b, atof(argv[2]), &schedule, step));
    check(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    check(sx_session_create(&(sx_session_options){.device = argv[1]}, &s));
    check(sx_session_add_program(s, g, &p));
    int64_t at;
    while (scanf("%" SCNd64, &at) == 1) {
        float rate;
        check(sx_session_write_variable(s, 0, &at));
        check(sx_program_run(p, 1, NULL));
        check(sx_program_read_output(p, 0, &rate));
        printf("%.9g\n", (double)rate);
    }
    sx_session_destroy(s);
    sx_graph_destroy(g);
    return 0;
}
