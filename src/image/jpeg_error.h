/* How libjpeg's errors become statuses, shared by the reader and the writer.
 *
 * libjpeg reports a fatal error by calling error_exit, which must not return: ours formats the
 * message and jumps back to the setjmp of the entry function. Between the two run only libjpeg and
 * plain C without locks or allocations of ours, so nothing leaks. */
#ifndef SX_IMAGE_JPEG_ERROR_H
#define SX_IMAGE_JPEG_ERROR_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <sextant/status.h>

typedef struct sx_jpeg_error {
    struct jpeg_error_mgr manager; /* first: libjpeg hands back a pointer to it */
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    sx_code code;
} sx_jpeg_error;

/* Fills `error` with handlers that never print; returns what goes into cinfo.err. */
struct jpeg_error_mgr *sx_jpeg_error_init(sx_jpeg_error *error);

#endif
