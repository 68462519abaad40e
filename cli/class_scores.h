/* Scores of a classifier on labeled examples, derived from the confusion matrix.
 *
 *   confusion[label · n + class]     examples of class `label` that were predicted as `class`
 *
 * Precision, recall and F1 are as in scikit-learn's classification_report: a ratio 0/0 is undefined
 * here (NaN) and counts as 0 in averages, which run over the classes that occur as labels or
 * predictions. */
#ifndef SX_CLI_CLASS_SCORES_H
#define SX_CLI_CLASS_SCORES_H

#include <sextant/types.h>

enum { SX_MAX_SCORED_CLASSES = 4096 };

/* A wrong prediction. */
typedef struct sx_mistake {
    int64_t number, record; /* position in the data; its record */
    int label, classid;
    float label_probability, probability; /* of `label`, of `classid` */
} sx_mistake;

/* {0} may be deinitialized. */
typedef struct sx_class_scores {
    int n; /* classes; 0 until the first example */
    int64_t examples, correct;
    int64_t *confusion; /* [n · n] */
    int64_t *support;   /* [n] examples of the class */
    int64_t *predicted; /* [n] examples predicted as the class */
    sx_mistake *mistakes;
    int64_t n_mistakes, mistakes_capacity;
} sx_class_scores;

/* The same n in every call. Errors: INVALID_ARGUMENT: more than SX_MAX_SCORED_CLASSES;
 * OUT_OF_RANGE: a label that is not a class; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_class_scores_add(sx_class_scores *s, int n, int64_t label, int classid,
                                          const float *probabilities, int64_t number,
                                          int64_t record);
void sx_class_scores_deinit(sx_class_scores *s);

/* Sorts the mistakes, worst first: lowest probability of the true class, then highest of the
 * predicted one, then by position. */
void sx_class_scores_sort(sx_class_scores *s);

typedef struct sx_class_score {
    double precision, recall, f1; /* NaN = undefined */
} sx_class_score;

sx_class_score sx_class_score_of(const sx_class_scores *s, int class_number);
/* Means over classes, and weighted by their examples. */
void sx_class_scores_average(const sx_class_scores *s, sx_class_score *out_macro,
                             sx_class_score *out_weighted);

/* Pairs (label, class) of different classes that were confused most often, at most `capacity`;
 * returns how many. */
typedef struct sx_confused {
    int label, classid;
    int64_t count;
} sx_confused;
int sx_class_scores_confused(const sx_class_scores *s, sx_confused *out, int capacity);

#endif
