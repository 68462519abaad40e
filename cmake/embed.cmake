# sx_embed(FILE NAME): the bytes of a file as `static const char NAME[]`, included as "NAME.h".
function(sx_embed file name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${name}.h
        CONTENT "static const char ${name}[] = {${bytes}};\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
