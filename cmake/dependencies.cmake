# The libraries that Sextant stands on, as one interface target. tools/deps installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# sextant.pc and the CMake package name them, too.
set(SEXTANT_PKG_CONFIG_MODULES
    libprotobuf-c jansson libjpeg libpng zlib libisal libcrypto libssl libnghttp2 icu-uc)
add_library(sextant_dependencies INTERFACE)
foreach(module ${SEXTANT_PKG_CONFIG_MODULES})
    string(MAKE_C_IDENTIFIER ${module} name)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
    target_link_libraries(sextant_dependencies INTERFACE PkgConfig::${name})
endforeach()

# Headers alone: src/io/archive.c and curl_api.c load these libraries when they are first needed.
foreach(module libarchive libcurl)
    pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
    target_include_directories(sextant_dependencies SYSTEM INTERFACE ${${module}_INCLUDE_DIRS})
endforeach()

# RE2 (C++), behind src/base/regex_re2.cc: optional. Without it, regular expressions are refused.
set(sextant_cxx_runtime)
pkg_check_modules(re2 IMPORTED_TARGET re2)
if(re2_FOUND)
    enable_language(CXX)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g")
    set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
    set(CMAKE_CXX_VISIBILITY_PRESET hidden)
    set(sextant_cxx_runtime stdc++)
    list(APPEND SEXTANT_PKG_CONFIG_MODULES re2)
    target_link_libraries(sextant_dependencies INTERFACE ${re2_LINK_LIBRARIES} stdc++)
endif()

# oneDNN brings no pkg-config file in Debian 12. gomp is its thread runtime: we cap its team.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
target_include_directories(sextant_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(sextant_dependencies INTERFACE ${DNNL_LIBRARY} gomp Threads::Threads ${CMAKE_DL_LIBS} m)
