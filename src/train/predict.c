/* Prediction: one row per example, in the order of the data. */
#include <inttypes.h>
#include <string.h>

#include "train/data_pass.h"

typedef struct predicting {
    sx_prediction_fn *fn;
    void *user;
    sx_prediction row;
    sx_prediction_value values[SX_MAX_DATA_PASS_OUTPUTS];
    int probabilities, classid; /* outputs; -1 = none */
} predicting;

static int find_output(const sx_data_pass *p, const char *name, sx_dtype dtype)
{
    for (int i = 0; i < p->n_outputs; i++) {
        if (strcmp(sx_program_output_name(p->program, i), name) == 0 &&
            p->row_types[i].dtype == dtype) {
            return i;
        }
    }
    return -1;
}

static int best_class(const float *probabilities, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return best;
}

static sx_status fill_class(const sx_data_pass *p, predicting *s)
{
    const sx_run_info *info = &p->t->info;
    s->row.n_classes = (int)p->row_types[s->probabilities].dims[0];
    s->row.probabilities = s->values[s->probabilities].data;
    s->row.classid = s->classid >= 0 ? *(const int32_t *)s->values[s->classid].data
                                     : best_class(s->row.probabilities, s->row.n_classes);
    if (s->row.classid < 0 || s->row.classid >= s->row.n_classes) {
        return sx_error(SX_OUT_OF_RANGE,
                        "example %" PRId64 ": the model's classid is %d, expected 0 to %d",
                        s->row.number, s->row.classid, s->row.n_classes - 1);
    }
    s->row.probability = s->row.probabilities[s->row.classid];
    s->row.class_name = s->row.classid < info->n_classes ? info->class_names[s->row.classid] : NULL;
    return SX_OK;
}

static sx_status hand_out_rows(sx_data_pass *p, const sx_feed_batch *batch, void *user)
{
    predicting *s = user;
    for (int64_t i = 0; i < batch->size; i++) {
        for (int k = 0; k < p->n_outputs; k++) {
            s->values[k].data = (const char *)p->outputs[k] + (size_t)i * p->row_bytes[k];
        }
        s->row.number = p->done + i;
        s->row.record = batch->ids[i];
        if (s->probabilities >= 0) {
            SX_TRY(fill_class(p, s));
        }
        SX_TRY(s->fn(s->user, &s->row));
    }
    return SX_OK;
}

static void describe_rows(const sx_data_pass *p, predicting *s)
{
    for (int k = 0; k < p->n_outputs; k++) {
        s->values[k] =
            (sx_prediction_value){sx_program_output_name(p->program, k), p->row_types[k], NULL};
    }
    s->row.n_values = p->n_outputs;
    s->row.values = s->values;
    s->probabilities = find_output(p, "probabilities", SX_F32);
    s->classid = find_output(p, "classid", SX_I32);
    if (s->probabilities >= 0 && p->row_types[s->probabilities].rank != 1) {
        s->probabilities = -1;
    }
    if (s->classid >= 0 && p->row_types[s->classid].rank != 0) {
        s->classid = -1;
    }
}

sx_status sx_trainer_predict(sx_trainer *t, sx_dataset *data, int64_t examples,
                             sx_prediction_fn *row, void *row_user)
{
    sx_data_pass p;
    predicting s = {.fn = row, .user = row_user};
    sx_status status = sx_data_pass_open(&p, t, SX_PREDICT, data, examples);
    if (status == SX_OK) {
        describe_rows(&p, &s);
        status = sx_data_pass_run(&p, hand_out_rows, &s);
    }
    sx_data_pass_close(&p);
    return sx_status_annotate(status, __FILE__, __LINE__, "predicting");
}
