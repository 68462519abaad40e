/* libpng's structs, for the reader and the writer, with its errors and what it allocates.
 *
 * libpng reports a fatal error by a call that must not return: ours keeps the message and jumps
 * back to the setjmp in the entry function. The code in between holds no locks or memory of its
 * own, so nothing leaks. */
#ifndef SX_IMAGE_PNG_ERROR_H
#define SX_IMAGE_PNG_ERROR_H

#include <setjmp.h>
#include <stdbool.h>

#include <png.h>

typedef struct sx_png_error {
    jmp_buf jump;
    char message[128];
    bool no_memory; /* an allocation of libpng failed */
} sx_png_error;

/* With handlers that never print; NULL: out of memory. `error` outlives the struct. */
png_structp sx_png_create_read(sx_png_error *error);
png_structp sx_png_create_write(sx_png_error *error);

#endif
