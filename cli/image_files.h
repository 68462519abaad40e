/* Reads the files of --image and checks that they are images. */
#ifndef SX_CLI_IMAGE_FILES_H
#define SX_CLI_IMAGE_FILES_H

#include <sextant/data.h>

#include "option.h"

typedef struct sx_image_files {
    int count;
    const char *const *paths; /* the words; borrowed */
    sx_bytes *bytes;          /* [count] */
} sx_image_files;

/* Errors name the file: NOT_FOUND; INVALID_ARGUMENT: not a JPEG or PNG; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_image_files_read(const sx_words *words, sx_image_files *out_files);
/* A data set of the images, component "image"; errors while reading name the file. `files` must
 * outlive it. */
SX_MUST_USE sx_status sx_image_files_dataset(const sx_image_files *files, sx_dataset **out_dataset);
void sx_image_files_free(sx_image_files *files); /* may be zeroed */

#endif
