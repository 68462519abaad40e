#include "class_scores.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"

sx_status sx_class_scores_add(sx_class_scores *s, int n, int64_t label, int classid,
                              const float *probabilities, int64_t number, int64_t record)
{
    if (s->n == 0) {
        if (n > SX_MAX_SCORED_CLASSES) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "cannot report on %d classes; a confusion matrix has at most %d", n,
                            (int)SX_MAX_SCORED_CLASSES);
        }
        s->confusion = sx_alloc((size_t)n * (size_t)n, sizeof(int64_t));
        s->support = sx_alloc((size_t)n, sizeof(int64_t));
        s->predicted = sx_alloc((size_t)n, sizeof(int64_t));
        if (s->confusion == NULL || s->support == NULL || s->predicted == NULL) {
            return sx_no_memory("for the scores by class");
        }
        s->n = n;
    }
    if (label < 0 || label >= n) {
        return sx_error(SX_OUT_OF_RANGE, "label %lld out of range [0, %d)", (long long)label, n);
    }
    s->examples++;
    s->confusion[label * n + classid]++;
    s->support[label]++;
    s->predicted[classid]++;
    if (label == classid) {
        s->correct++;
        return SX_OK;
    }
    if (s->n_mistakes == s->mistakes_capacity) {
        int64_t capacity = SX_MAX((int64_t)256, 2 * s->mistakes_capacity);
        sx_mistake *moved = sx_realloc(s->mistakes, (size_t)capacity, sizeof(*moved));
        if (moved == NULL) {
            return sx_no_memory("for the scores by class");
        }
        s->mistakes = moved;
        s->mistakes_capacity = capacity;
    }
    s->mistakes[s->n_mistakes++] = (sx_mistake){.number = number,
                                                .record = record,
                                                .label = (int)label,
                                                .classid = classid,
                                                .label_probability = probabilities[label],
                                                .probability = probabilities[classid]};
    return SX_OK;
}

void sx_class_scores_deinit(sx_class_scores *s)
{
    sx_free(s->confusion);
    sx_free(s->support);
    sx_free(s->predicted);
    sx_free(s->mistakes);
    *s = (sx_class_scores){0};
}

static int compare_mistakes(const void *a, const void *b)
{
    const sx_mistake *x = a, *y = b;
    if (x->label_probability != y->label_probability) {
        return x->label_probability < y->label_probability ? -1 : 1;
    }
    if (x->probability != y->probability) {
        return x->probability > y->probability ? -1 : 1;
    }
    return (x->number > y->number) - (x->number < y->number);
}

void sx_class_scores_sort(sx_class_scores *s)
{
    if (s->n_mistakes > 0) {
        qsort(s->mistakes, (size_t)s->n_mistakes, sizeof(*s->mistakes), compare_mistakes);
    }
}

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

sx_class_score sx_class_score_of(const sx_class_scores *s, int i)
{
    int64_t hits = s->confusion[(int64_t)i * s->n + i];
    return (sx_class_score){
        .precision = ratio(hits, s->predicted[i]),
        .recall = ratio(hits, s->support[i]),
        .f1 = ratio(2 * hits, s->support[i] + s->predicted[i]),
    };
}

static void add(sx_class_score *sum, const sx_class_score *one, double weight)
{
    sum->precision += isnan(one->precision) ? 0 : one->precision * weight;
    sum->recall += isnan(one->recall) ? 0 : one->recall * weight;
    sum->f1 += isnan(one->f1) ? 0 : one->f1 * weight;
}

void sx_class_scores_average(const sx_class_scores *s, sx_class_score *out_macro,
                             sx_class_score *out_weighted)
{
    int occurring = 0;
    for (int i = 0; i < s->n; i++) {
        occurring += s->support[i] + s->predicted[i] > 0;
    }
    *out_macro = *out_weighted = (sx_class_score){0};
    for (int i = 0; i < s->n; i++) {
        sx_class_score one = sx_class_score_of(s, i);
        add(out_macro, &one, 1.0 / (double)occurring);
        add(out_weighted, &one, (double)s->support[i] / (double)s->examples);
    }
}

static bool is_more_confused(const sx_confused *a, const sx_confused *b)
{
    return a->count > b->count; /* of equal ones, the earlier comes first */
}

int sx_class_scores_confused(const sx_class_scores *s, sx_confused *out, int capacity)
{
    int count = 0;
    for (int label = 0; label < s->n; label++) {
        for (int classid = 0; classid < s->n; classid++) {
            sx_confused pair = {label, classid, s->confusion[(int64_t)label * s->n + classid]};
            if (label == classid || pair.count == 0) {
                continue;
            }
            int at = SX_MIN(count, capacity - 1);
            if (count == capacity && !is_more_confused(&pair, &out[at])) {
                continue;
            }
            for (; at > 0 && is_more_confused(&pair, &out[at - 1]); at--) {
                out[at] = out[at - 1];
            }
            out[at] = pair;
            count = SX_MIN(count + 1, capacity);
        }
    }
    return count;
}
