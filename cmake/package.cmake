# Installs the libraries, the headers, and what finds them: sextant.pc, sextant-static.pc, and a CMake
# package.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sextant)

install(DIRECTORY include/sextant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS sextant_shared EXPORT sextant-shared)
install(TARGETS sextant_static EXPORT sextant-static)
foreach(kind shared static)
    install(EXPORT sextant-${kind} NAMESPACE sextant:: DESTINATION ${package_dir})
endforeach()
configure_package_config_file(cmake/sextantConfig.cmake.in ${CMAKE_BINARY_DIR}/sextantConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sextantConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sextantConfig.cmake ${CMAKE_BINARY_DIR}/sextantConfigVersion.cmake
    DESTINATION ${package_dir})

# The prefix is known when they are installed: cmake --install DIR --prefix PREFIX.
set(prefix "@prefix@")
set(private_libs "-ldnnl -lgomp -lpthread -ldl -lm")
if(re2_FOUND)
    string(APPEND private_libs " -lstdc++")
endif()
string(REPLACE ";" " " private_modules "${SEXTANT_PKG_CONFIG_MODULES}")
foreach(name sextant sextant-static)
    configure_file(cmake/${name}.pc.in ${name}.pc.in @ONLY)
    install(CODE "set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
configure_file(\"${CMAKE_BINARY_DIR}/${name}.pc.in\" \"${CMAKE_BINARY_DIR}/${name}.pc\" @ONLY)")
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
