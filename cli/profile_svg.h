/* The picture of a profile: where the time goes, one step on every thread, the kernels. */
#ifndef SX_CLI_PROFILE_SVG_H
#define SX_CLI_PROFILE_SVG_H

#include "profile_report.h"

/* Of steps whose events were kept. RESOURCE_EXHAUSTED: out of memory. */
SX_MUST_USE sx_status sx_put_profile_svg(sx_buf *out, const sx_profile_report *r);

#endif
