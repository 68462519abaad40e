/* Rows and fields of CSV. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/csv_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_bytes rest = {data, size}, row;
    char *copy = malloc(size + 1);
    while (rest.size > 0 && copy != NULL) {
        int64_t fields = 0, seen = 0;
        size_t next = 0, at = 0;
        sx_csv_field field;
        sx_status status = sx_csv_row(rest, &row, &fields, &next);
        while (status == SX_OK && row.size > 0 && sx_csv_field_next(row, &at, &field)) {
            seen += sx_csv_field_copy(&field, copy) <= size;
        }
        if ((status == SX_OK && row.size > 0 && seen != fields) || next == 0 || next > rest.size) {
            abort();
        }
        sx_status_free(status);
        rest = (sx_bytes){(const uint8_t *)rest.data + next, rest.size - next};
    }
    free(copy);
    return 0;
}
