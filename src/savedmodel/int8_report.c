#include "savedmodel/int8_report.h"

#include <math.h>

static int64_t place_of_greatest(const float *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = row[i] > row[best] ? i : best;
    }
    return best;
}

/* The rows [examples, n] of an output. */
static void compare_rows(const float *a, const float *b, int64_t n, const int64_t *labels,
                         sx_int8_report *report)
{
    int64_t agree = 0, right_before = 0, right_after = 0;
    double sum = 0;
    for (int64_t k = 0; k < report->examples; k++) {
        const float *before = a + k * n, *after = b + k * n;
        for (int64_t i = 0; i < n; i++) {
            const double d = fabs((double)before[i] - (double)after[i]);
            sum += d;
            report->max_difference = fmax(report->max_difference, d);
            report->greatest = fmax(report->greatest, fabs((double)before[i]));
        }
        const int64_t was = place_of_greatest(before, n), is = place_of_greatest(after, n);
        agree += was == is;
        right_before += labels != NULL && labels[k] == was;
        right_after += labels != NULL && labels[k] == is;
    }
    const double examples = (double)report->examples;
    report->mean_difference = sum / (examples * (double)n);
    if (n > 1) {
        report->agreement = (double)agree / examples;
    }
    if (n > 1 && labels != NULL) {
        report->accuracy_float32 = (double)right_before / examples;
        report->accuracy = (double)right_after / examples;
    }
}

void sx_int8_compare(const sx_signature *signature, const sx_tensor *float32, const sx_tensor *int8,
                     const int64_t *labels, sx_int8_report *report)
{
    report->agreement = report->accuracy_float32 = report->accuracy = NAN;
    report->output = NULL;
    for (size_t i = 0; i < signature->n_outputs && report->output == NULL; i++) {
        const sx_type *t = &float32[i].type;
        if (t->dtype == SX_F32 && t->rank > 0 && t->dims[0] == report->examples &&
            sx_type_elems(t) > 0) {
            report->output = signature->outputs[i].key;
            compare_rows(float32[i].data, int8[i].data, sx_type_elems(t) / report->examples, labels,
                         report);
        }
    }
}
