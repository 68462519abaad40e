# tests/pjrt_ref: our own PJRT plugin, libpjrt_ref.so, which tests load as $SEXTANT_TEST_BIN/
# libpjrt_ref.so. Its files but the tests are an object library, which tests and fuzz targets link.
file(GLOB pjrt_ref_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/pjrt_ref/*.c)
list(FILTER pjrt_ref_sources EXCLUDE REGEX "/(test|long)_[^/]*$")
add_library(pjrt_ref_objects OBJECT ${pjrt_ref_sources})
target_link_libraries(pjrt_ref_objects PUBLIC sextant_flags)
target_include_directories(pjrt_ref_objects PUBLIC ${CMAKE_SOURCE_DIR}/tests)
# Its products are what tests wait for.
set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/pjrt_ref/products.c
    PROPERTIES COMPILE_OPTIONS -O3)

set(pjrt_ref_exports ${CMAKE_SOURCE_DIR}/tests/pjrt_ref/exports.map)
add_library(pjrt_ref MODULE $<TARGET_OBJECTS:pjrt_ref_objects>)
target_link_libraries(pjrt_ref PRIVATE sextant_static)
target_link_options(pjrt_ref PRIVATE LINKER:--version-script=${pjrt_ref_exports})
set_target_properties(pjrt_ref PROPERTIES LINK_DEPENDS ${pjrt_ref_exports}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
