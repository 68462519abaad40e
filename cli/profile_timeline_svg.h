/* The step loop's timeline as part of the picture of a profile (profile_svg.h): what its thread,
 * the copies and the device do in the last launches. */
#ifndef SX_CLI_PROFILE_TIMELINE_SVG_H
#define SX_CLI_PROFILE_TIMELINE_SVG_H

#include "profile_timeline.h"

/* Between `left` and `left + width`, from y = `top`; returns the y below it. */
double sx_put_timeline_svg(sx_buf *out, const sx_timeline_sums *s, double left, double width,
                           double top);

#endif
