/* The classes of one data set in the terms of another: those of an evaluation set, which may lack
 * some, in those of the training set. */
#ifndef SX_DATA_RELABEL_H
#define SX_DATA_RELABEL_H

#include <sextant/data.h>

/* Maps the component "label" from the data set's own classes to `classes` [count], by name; the
 * data set then has these. Changes nothing if the labels are the same in both, if the data set has
 * a class that is not among `classes`, or if either has no names. `classes` is copied. Errors:
 * INVALID_ARGUMENT: the data set is batched. */
SX_MUST_USE sx_status sx_dataset_relabel(sx_dataset **dataset, const char *const *classes,
                                         int count);

#endif
