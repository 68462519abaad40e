/* A file of text in memory: gzip or zlib or not. */
#ifndef SX_DATA_TEXT_FILE_H
#define SX_DATA_TEXT_FILE_H

#include <sextant/types.h>

/* Reads and decompresses a file of at most max_bytes. *out_text is the data without a byte order
 * mark. Free *out_data with sx_free. Errors: RESOURCE_EXHAUSTED, DATA_LOSS, those of reading. */
SX_MUST_USE sx_status sx_text_file_read(const char *path, size_t max_bytes, char **out_data,
                                        sx_bytes *out_text);
/* The line breaks from `begin` up to `end`. */
int64_t sx_count_lines(const void *begin, const void *end);

#endif
