# tools/gen-pow10 -> <build>/generated/base/pow10.c (src/base/pow10.h).
find_program(PYTHON3 python3 REQUIRED)
set(pow10_source ${CMAKE_BINARY_DIR}/generated/base/pow10.c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/base)
add_custom_command(OUTPUT ${pow10_source}
    COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tools/gen-pow10 ${pow10_source}
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/gen-pow10 COMMENT "gen-pow10" VERBATIM)
