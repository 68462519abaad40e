/* Logging: the only output of the library layers (sextant/log.h). */
#ifndef SX_BASE_LOG_H
#define SX_BASE_LOG_H

#include <sextant/log.h>

void sx_log_at(sx_log_level level, const char *file, int line, const char *format, ...)
    SX_PRINTF(4, 5);
#define sx_log(level, ...) sx_log_at((level), __FILE__, __LINE__, __VA_ARGS__)

#endif
