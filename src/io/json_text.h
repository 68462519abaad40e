/* Printing of jansson's JSON values, for all JSON that Sextant writes: jansson itself prints 0.9861
 * as 0.98609999999999998. Numbers are printed as the shortest text that reads back to the same
 * double (base/shortest.h), members in insertion order. */
#ifndef SX_IO_JSON_TEXT_H
#define SX_IO_JSON_TEXT_H

#include <jansson.h>

#include <sextant/status.h>

/* flags  JSON_COMPACT, JSON_INDENT(n), JSON_ENSURE_ASCII; as in json_dumps()
 * text   ends without a line break; free with sx_free()
 * Errors RESOURCE_EXHAUSTED: out of memory, or `json` is NULL (could not be created);
 *        INVALID_ARGUMENT: a string is not UTF-8. */
SX_MUST_USE sx_status sx_json_text(const json_t *json, size_t flags, char **out_text);

/* A checksum inside a JSON object: its member "crc32c" is the CRC-32C, as 8 hexadecimal digits, of
 * the compact text of the object without that member. White space does not count. */
#define SX_JSON_SEAL "crc32c"
/* Adds or replaces the checksum. Errors: as sx_json_text(). */
SX_MUST_USE sx_status sx_json_seal(json_t *object);
/* DATA_LOSS: the checksum is missing or does not match. */
SX_MUST_USE sx_status sx_json_check_seal(json_t *object);

#endif
