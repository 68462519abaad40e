/* Turns libjpeg's errors into statuses, for the reader and the writer.
 *
 * libjpeg reports a fatal error by calling error_exit, which must not return: ours formats the
 * message and jumps back to the setjmp in the entry function. The code in between holds no locks or
 * memory of its own, so nothing leaks. */
#ifndef SX_IMAGE_JPEG_ERROR_H
#define SX_IMAGE_JPEG_ERROR_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <sextant/status.h>

typedef struct sx_jpeg_error {
    struct jpeg_error_mgr manager; /* must be first: libjpeg passes a pointer to it */
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    sx_code code;
} sx_jpeg_error;

/* Sets handlers that never print; returns the pointer for cinfo.err. */
struct jpeg_error_mgr *sx_jpeg_error_init(sx_jpeg_error *error);

/* The status of a fatal error: "JPEG: image is truncated", or "out of memory reading a JPEG". */
SX_MUST_USE sx_status sx_jpeg_error_status(const sx_jpeg_error *error, const char *prefix,
                                           const char *doing);

#endif
