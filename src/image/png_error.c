/* See png_error.h. */
#include "image/png_error.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(png_structp png, png_const_charp message)
{
    sx_png_error *error = png_get_error_ptr(png);
    snprintf(error->message, sizeof(error->message), "%s", message);
    longjmp(error->jump, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t bytes)
{
    void *block = malloc(bytes);
    sx_png_error *error = png_get_mem_ptr(png);
    error->no_memory |= block == NULL;
    return block;
}

static void release(png_structp png, png_voidp block)
{
    (void)png;
    free(block);
}

png_structp sx_png_create_read(sx_png_error *error)
{
    return png_create_read_struct_2(PNG_LIBPNG_VER_STRING, error, fail, ignore_warning, error,
                                    allocate, release);
}

png_structp sx_png_create_write(sx_png_error *error)
{
    return png_create_write_struct_2(PNG_LIBPNG_VER_STRING, error, fail, ignore_warning, error,
                                     allocate, release);
}
