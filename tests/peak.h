/* The most memory that the process has held. Not getrusage()'s: that begins with what the process
 * that started this one held, so that the limits of a tool that TensorFlow's Python starts would
 * count from there. */
#ifndef SX_TESTS_PEAK_H
#define SX_TESTS_PEAK_H

#include <stdint.h>
#include <stdio.h>

static inline int64_t sx_peak_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long long kib = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL &&
           sscanf(line, "VmHWM: %lld", &kib) != 1) {
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib * 1024;
}

#endif
