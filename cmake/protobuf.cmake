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
    # src/serve/api/*.proto: what the server tells of its services, as the bytes of a FileDescriptorSet.
    file(GLOB apis CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/serve/api/*.proto)
    set(api_dir ${generated_dir}/serve)
    file(MAKE_DIRECTORY ${api_dir})
    add_custom_command(OUTPUT ${api_dir}/api_descriptors.inc
        COMMAND ${PROTOC_C} --descriptor_set_out=${api_dir}/api_descriptors.pb --include_imports
            --proto_path=${CMAKE_SOURCE_DIR}/src ${apis}
        COMMAND ${CMAKE_COMMAND} -DINPUT=${api_dir}/api_descriptors.pb
            -DOUTPUT=${api_dir}/api_descriptors.inc -P ${CMAKE_SOURCE_DIR}/cmake/bytes.cmake
        DEPENDS ${apis} ${protos} COMMENT "descriptors of the server's services" VERBATIM)
    list(APPEND headers ${api_dir}/api_descriptors.inc)
    target_include_directories(sextant_flags SYSTEM INTERFACE ${generated_dir})
    add_custom_target(sextant_protobuf DEPENDS ${headers})
    set(${out_sources} ${sources} ${headers} PARENT_SCOPE)
endfunction()
