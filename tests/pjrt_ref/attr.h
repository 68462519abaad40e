/* Reading attributes (program.h): {name = value, …}. */
#ifndef PJRT_REF_ATTR_H
#define PJRT_REF_ATTR_H

#include "pjrt_ref/program.h"
#include "pjrt_ref/scan.h"

/* name = value, … up to and over `close`; the opening bracket is behind us. */
SX_MUST_USE sx_status ref_take_attrs(ref_scan *s, int depth, const char *close, ref_attr **out,
                                     int *out_n);

#endif
