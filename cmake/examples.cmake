# examples/*.c: programs (those with a main) are built against the static library; the tests run them.
# The others are models, compiled by `sextant train`.
file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
foreach(example IN LISTS examples)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${example})
    file(STRINGS ${example} has_main REGEX "^int main\\(")
    if(has_main)
        get_filename_component(name ${example} NAME_WE)
        add_executable(example_${name} ${example})
        target_link_libraries(example_${name} PRIVATE sextant_static)
        set_target_properties(example_${name} PROPERTIES
            OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    endif()
endforeach()
