# Tests, found by their names (tests/README.md):
#
#   tests/<layer>/test_<file>.c    test_<layer>_<file>__<what>()   ->  <layer>::<file>::<what>
#   tests/<layer>/long_<file>.c    the same, label long: only `make test-long` runs it
#   tests/<layer>/{test,long}_<file>.sh                            ->  <layer>::<file>
#   tests/interop/{test,long}_<file>.py                            ->  interop::<file>
#   tests/interop/<x>_tool.c       a program that those scripts run: $SEXTANT_TEST_BIN/<x>_tool
#   tests/<layer>/<x>_plugin.c     a library that tests load: $SEXTANT_TEST_BIN/<x>_plugin.so
#
# Tests of the pjrt backend, of loops and replicas, and those called …_on_pjrt… run twice: over XLA's plugin, and, as
# pjrt_ref::…, over our own (cmake/pjrt_ref.cmake).
#
# Tests of the cpu's kernels run twice: with what the processor has, and, as avx2::…, as on one without AVX-512.
#
# A test that returns 77 is skipped; it says why in a line "SKIP: reason".
find_package(PkgConfig REQUIRED)
pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)

set(test_environment
    "SEXTANT_BIN=${CMAKE_BINARY_DIR}/sextant" "SEXTANT_SRC=${CMAKE_SOURCE_DIR}"
    "SEXTANT_BUILD=${CMAKE_BINARY_DIR}" "SEXTANT_TEST_BIN=${CMAKE_BINARY_DIR}/tests"
    "SEXTANT_SANITIZE=${SEXTANT_SANITIZE}"
    # Memory that is not initialized is 0x7f.., freed memory 0x80..: neither passes for zeros.
    "GLIBC_TUNABLES=glibc.malloc.perturb=128:glibc.malloc.tcache_count=0"
    # Tests ask for impossible sizes; oneDNN's OpenMP runtime synchronises unseen by TSan.
    "ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1"
    "LSAN_OPTIONS=print_suppressions=0:suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=allocator_may_return_null=1:suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp")

# Our own programs run under glibc's heap checker, which ends a program that wrote past a block's end
# or freed what is no block. XLA's plugin does not stand it.
set(heap_checker)
if(NOT SEXTANT_SANITIZE)
    find_library(MALLOC_DEBUG NAMES libc_malloc_debug.so.0)
    if(MALLOC_DEBUG)
        set(heap_checker "LD_PRELOAD=${MALLOC_DEBUG}"
            "GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.perturb=128:glibc.malloc.tcache_count=0")
    endif()
endif()

# Splits tests/<layer>/<kind>_<file>.<ext> into `layer`, `file` and `labels` of the caller.
macro(sx_test_names path)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests ${path})
    get_filename_component(layer_dir ${relative} DIRECTORY)
    get_filename_component(stem ${relative} NAME_WE)
    string(REPLACE "/" "_" layer_prefix "${layer_dir}")
    string(REPLACE "/" "::" layer "${layer_dir}")
    string(REGEX REPLACE "^(test|long)_" "" file "${stem}")
    set(labels "${layer}")
    set(timeout 300)
    if(SEXTANT_SANITIZE)
        set(timeout 1800) # TSan is twenty times slower
    endif()
    if(stem MATCHES "^long_")
        list(APPEND labels long)
        set(timeout 14400)
    endif()
endmacro()

function(sx_add_test name)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
        SKIP_RETURN_CODE 77 ENVIRONMENT "${test_environment}")
endfunction()

# The C tests that run over XLA's plugin and, but for those called xla_…, over ours.
set(on_pjrt "^test_(backends_(pjrt|cache|exchange)|runtime_loop|train_(replicas|devices))__|_on_pjrt")
set(on_avx2 "^test_backends_(onednn|int8|random_graphs|convolutions|frozen|kernels|matmul_add|few_rows|norm|dense)__")
file(GLOB_RECURSE c_tests CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/tests/test_*.c ${CMAKE_SOURCE_DIR}/tests/long_*.c)
foreach(source IN LISTS c_tests)
    sx_test_names(${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "^static void test_[A-Za-z0-9_]+\\(void \\*\\*")
    set(program ${layer_prefix}_${stem})
    list(LENGTH lines count)
    add_executable(${program} ${source})
    # libarchive: of those that write archives; the linker leaves it out of the others.
    target_link_libraries(${program} PRIVATE sextant_static PkgConfig::cmocka PkgConfig::libarchive)
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    file(STRINGS ${source} wraps REGEX "^(int|sx_status) __wrap_[a-z_]+\\([^;]*$") # a test that counts calls of a function
    foreach(wrap IN LISTS wraps)
        string(REGEX REPLACE "^.* __wrap_([a-z_]+).*" "\\1" wrap "${wrap}")
        target_link_options(${program} PRIVATE LINKER:--wrap=${wrap})
    endforeach()
    if(layer STREQUAL "pjrt_ref") # its own tests look inside
        target_sources(${program} PRIVATE $<TARGET_OBJECTS:pjrt_ref_objects>)
    endif()
    target_compile_definitions(${program} PRIVATE SX_TESTS_FOUND=${count})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^static void ([A-Za-z0-9_]+)\\(.*" "\\1" function "${line}")
        set(prefix "test_${layer_prefix}_${file}__")
        string(FIND "${function}" "${prefix}" at)
        if(NOT at EQUAL 0)
            message(FATAL_ERROR "${relative}: ${function} must be called ${prefix}<what>")
        endif()
        string(LENGTH "${prefix}" prefix_length)
        string(SUBSTRING "${function}" ${prefix_length} -1 what)
        sx_add_test(${layer}::${file}::${what} $<TARGET_FILE:${program}> ${function})
        if(NOT function MATCHES "${on_pjrt}")
            set_property(TEST ${layer}::${file}::${what} APPEND PROPERTY ENVIRONMENT ${heap_checker})
            if(function MATCHES "${on_avx2}")
                sx_add_test(avx2::${layer}::${file}::${what} $<TARGET_FILE:${program}> ${function})
                set_property(TEST avx2::${layer}::${file}::${what} APPEND PROPERTY ENVIRONMENT
                    "DNNL_MAX_CPU_ISA=AVX2" "SEXTANT_CPU_VEC=v3" ${heap_checker})
            endif()
        elseif(NOT stem MATCHES "^long_" AND NOT function MATCHES "__xla_")
            sx_add_test(pjrt_ref::${layer}::${file}::${what} $<TARGET_FILE:${program}> ${function})
            set_property(TEST pjrt_ref::${layer}::${file}::${what} APPEND PROPERTY ENVIRONMENT
                "SEXTANT_PJRT_PLUGIN=$<TARGET_FILE:pjrt_ref>" ${heap_checker})
        endif()
    endforeach()
endforeach()

file(GLOB_RECURSE test_plugins CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_plugin.c)
foreach(source IN LISTS test_plugins)
    get_filename_component(library ${source} NAME_WE)
    add_library(${library} MODULE ${source})
    target_link_libraries(${library} PRIVATE sextant_flags)
    set_target_properties(${library} PROPERTIES PREFIX ""
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()

file(GLOB_RECURSE shell_tests CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/tests/test_*.sh ${CMAKE_SOURCE_DIR}/tests/long_*.sh)
list(FILTER shell_tests EXCLUDE REGEX "/tests/tpu/") # they need libtpu: tools/test-tpu runs them
foreach(script IN LISTS shell_tests)
    sx_test_names(${script})
    sx_add_test(${layer}::${file} bash ${script})
endforeach()

file(GLOB interop_tools CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/interop/*_tool.c)
foreach(source IN LISTS interop_tools)
    get_filename_component(program ${source} NAME_WE)
    add_executable(${program} ${source})
    target_link_libraries(${program} PRIVATE sextant_static)
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()

file(GLOB python_tests CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/tests/interop/test_*.py ${CMAKE_SOURCE_DIR}/tests/interop/long_*.py)
foreach(script IN LISTS python_tests)
    sx_test_names(${script})
    if(NOT script MATCHES "/long_")
        set(timeout 900)
    endif()
    sx_add_test(${layer}::${file} ${CMAKE_SOURCE_DIR}/tools/with-peers ${script})
endforeach()
