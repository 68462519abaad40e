# The libraries that Sextant stands on, as one interface target. tools/deps installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# sextant.pc and the CMake package name them, too.
set(SEXTANT_PKG_CONFIG_MODULES
    libprotobuf-c jansson libarchive libjpeg libpng zlib libisal libcurl libcrypto libssl libnghttp2)
add_library(sextant_dependencies INTERFACE)
foreach(module ${SEXTANT_PKG_CONFIG_MODULES})
    string(MAKE_C_IDENTIFIER ${module} name)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
    target_link_libraries(sextant_dependencies INTERFACE PkgConfig::${name})
endforeach()

# oneDNN brings no pkg-config file in Debian 12. gomp is its thread runtime: we cap its team.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
target_include_directories(sextant_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(sextant_dependencies INTERFACE ${DNNL_LIBRARY} gomp Threads::Threads ${CMAKE_DL_LIBS} m)
