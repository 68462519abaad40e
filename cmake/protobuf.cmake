# src/proto/**/*.proto -> <build>/generated/proto/**/*.pb-c.{c,h}, included as "proto/x.pb-c.h".
# Imports between .proto files are relative to src: import "proto/tensor.proto";
find_program(PROTOC_C protoc-c REQUIRED)

# Sets `out_sources` to the generated C files; they are compiled without our warnings.
function(sx_generate_protobuf out_sources)
    file(GLOB_RECURSE protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/proto/*.proto)
    set(generated_dir ${CMAKE_BINARY_DIR}/generated)
    set(sources)
    set(headers)
    foreach(proto IN LISTS protos)
        file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/src ${proto})
        string(REGEX REPLACE "\\.proto$" ".pb-c" stem ${relative})
        set(c_file ${generated_dir}/${stem}.c)
        set(h_file ${generated_dir}/${stem}.h)
        get_filename_component(dir ${c_file} DIRECTORY)
        file(MAKE_DIRECTORY ${dir})
        add_custom_command(OUTPUT ${c_file} ${h_file}
            COMMAND ${PROTOC_C} --c_out=${generated_dir} --proto_path=${CMAKE_SOURCE_DIR}/src ${proto}
            DEPENDS ${protos} COMMENT "protoc-c ${relative}" VERBATIM)
        set_source_files_properties(${c_file} PROPERTIES COMPILE_OPTIONS -w)
        list(APPEND sources ${c_file})
        list(APPEND headers ${h_file})
    endforeach()
    target_include_directories(sextant_flags SYSTEM INTERFACE ${generated_dir})
    add_custom_target(sextant_protobuf DEPENDS ${headers})
    set(${out_sources} ${sources} ${headers} PARENT_SCOPE)
endfunction()
