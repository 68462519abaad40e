/* train_tool MODEL DEVICE BATCH [NAME=VALUE...]: one training step at a time, for test_train.py and
 * test_optimizers.py. The names optimizer, precision and those of sx_optimizer's fields choose
 * those; all others are the model's.
 *
 * Writes a line for each variable, "name initializer value dims...", then "end". Then, until end of
 * input: reads every variable, the features and the labels as raw row-major bytes (float32; int64
 * global_step; int32 labels), runs one step, and writes the loss (float64) and every variable. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir.h"
#include "graph/text.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"
#include "runtime/session.h"

static void check(sx_status status)
{
    if (status != SX_OK) {
        fprintf(stderr, "train_tool: %s\n", sx_status_message(status));
        exit(1);
    }
}

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(name)                         \
    {                                       \
#name, offsetof(sx_optimizer, name) \
    }
    FIELD(learning_rate),
    FIELD(momentum),
    FIELD(rho),
    FIELD(epsilon),
    FIELD(eeta),
    FIELD(l2),
    FIELD(initial_accumulator_value),
#undef FIELD
};

static void take_setting(char *setting, sx_params *params, sx_optimizer *optimizer,
                         sx_dtype *precision)
{
    char *value = strchr(setting, '=');
    *value++ = '\0';
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(setting, fields[i].name) == 0) {
            *(double *)(void *)((char *)optimizer + fields[i].offset) = atof(value);
            return;
        }
    }
    if (strcmp(setting, "optimizer") == 0) {
        check(sx_optimizer_by_name(value, optimizer));
    } else if (strcmp(setting, "centered") == 0) {
        optimizer->centered = atoi(value) != 0;
    } else if (strcmp(setting, "nesterov") == 0) {
        optimizer->nesterov = atoi(value) != 0;
    } else if (strcmp(setting, "precision") == 0) {
        (void)sx_dtype_parse(value, precision);
    } else {
        check(sx_params_set(params, setting, value));
    }
}

static sx_graph *build(const char *model, int n_settings, char **settings)
{
    sx_params *p;
    sx_graph *g;
    sx_optimizer optimizer = {0};
    sx_program_request r = {.def = sx_zoo_find(model)};
    check(sx_params_create(&p));
    for (int i = 0; i < n_settings; i++) {
        take_setting(settings[i], p, &optimizer, &r.precision);
    }
    r.params = p;
    r.optimizer = &optimizer;
    check(sx_build_program(&r, &g));
    sx_params_destroy(p);
    return g;
}

static void print_variables(const sx_session *s, const sx_graph *g)
{
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        const sx_session_variable *v = sx_session_variable_at(s, i);
        const sx_arg *arg = &g->args[sx_graph_find_arg(g, v->name)];
        printf("%s %s %g", v->name, sx_initializer_names[arg->init], arg->init_value);
        for (int d = 0; d < v->type.rank; d++) {
            printf(" %" PRId64, v->type.dims[d]);
        }
        printf("\n");
    }
    printf("end\n");
    fflush(stdout);
}

static bool read_exactly(void *data, int64_t bytes)
{
    return fread(data, 1, (size_t)bytes, stdin) == (size_t)bytes;
}

static bool read_variables(sx_session *s, void *scratch)
{
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        if (!read_exactly(scratch, sx_type_bytes(&sx_session_variable_at(s, i)->type))) {
            return false;
        }
        check(sx_session_write_variable(s, i, scratch));
    }
    return true;
}

static void write_variables(sx_session *s, void *scratch)
{
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        check(sx_session_read_variable(s, i, scratch));
        fwrite(scratch, 1, (size_t)sx_type_bytes(&sx_session_variable_at(s, i)->type), stdout);
    }
    fflush(stdout);
}

static int64_t largest_variable(const sx_session *s)
{
    int64_t bytes = 64;
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        int64_t n = sx_type_bytes(&sx_session_variable_at(s, i)->type);
        bytes = n > bytes ? n : bytes;
    }
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        return 2;
    }
    int64_t batch = atoll(argv[3]);
    sx_graph *g = build(argv[1], argc - 4, argv + 4);
    sx_session *s;
    sx_program *p;
    check(sx_session_create(&(sx_session_options){.device = argv[2]}, &s));
    check(sx_session_add_program(s, g, &p));
    print_variables(s, g);
    sx_type features = sx_type_with_batch(*sx_program_input_type(p, 0), batch);
    void *scratch = malloc((size_t)largest_variable(s)),
         *x = malloc((size_t)sx_type_bytes(&features));
    int32_t *labels = malloc((size_t)batch * sizeof(*labels));
    while (read_variables(s, scratch) && read_exactly(x, sx_type_bytes(&features)) &&
           read_exactly(labels, batch * (int64_t)sizeof(*labels))) {
        float loss;
        check(sx_program_run(p, batch, (const void *[]){x, labels}));
        check(sx_program_read_output(p, 0, &loss));
        double wide = (double)loss;
        fwrite(&wide, 1, sizeof(wide), stdout);
        write_variables(s, scratch);
    }
    sx_session_destroy(s);
    sx_graph_destroy(g);
    free(scratch);
    free(x);
    free(labels);
    return 0;
}
