# Compiler and linker flags, as one interface target.
#
# -ffp-contract=off and -fno-math-errno: results must not depend on whether a compiler fuses a
# multiply with an add; kernels that want FMA say so with intrinsics. Assertions stay on everywhere.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include(CheckPIESupported)
check_pie_supported()

add_library(sextant_flags INTERFACE)
target_include_directories(sextant_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(sextant_flags INTERFACE _GNU_SOURCE SX_VERSION="${PROJECT_VERSION}")
target_compile_options(sextant_flags INTERFACE
    -Wall -Wextra -Werror -Wshadow -Wvla $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> -Wpointer-arith
    -fno-math-errno -ffp-contract=off -fno-semantic-interposition -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
    -fstack-protector-strong -fstack-clash-protection)
target_link_options(sextant_flags INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:--as-needed)

if(SEXTANT_FUZZ)
    target_compile_options(sextant_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SEXTANT_SANITIZE)
    target_compile_options(sextant_flags INTERFACE
        -fsanitize=${SEXTANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(sextant_flags INTERFACE -fsanitize=${SEXTANT_SANITIZE})
elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    target_compile_options(sextant_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
