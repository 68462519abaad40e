/* What a model answers with 8-bit integers beside what it answers in float32. */
#ifndef SX_SAVEDMODEL_INT8_REPORT_H
#define SX_SAVEDMODEL_INT8_REPORT_H

#include <sextant/infer.h>

#include "savedmodel/saved_model_read.h"

/* Compares outputs of the same report->examples examples, of the signature, and sets the report's
 * output and numbers. labels[examples] may be NULL. */
void sx_int8_compare(const sx_signature *signature, const sx_tensor *float32, const sx_tensor *int8,
                     const int64_t *labels, sx_int8_report *report);

#endif
