#!/usr/bin/env bash
# Installed into a prefix of its own, the library is found by pkg-config and by CMake, shared and
# static, from C and from C++; the installed program finds the headers for models in C.
set -euo pipefail
if [ -n "${SEXTANT_SANITIZE:-}" ]; then
    echo "SKIP: programs of users are not built with a sanitizer"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
cmake --install "$SEXTANT_BUILD" --prefix "$prefix" >"$dir/log" || { cat "$dir/log"; exit 1; }
cp "$SEXTANT_SRC/examples/infer.c" "$SEXTANT_SRC/examples/digits.cpp" "$SEXTANT_SRC/examples/flowers.c" "$dir"
cd "$dir"
unset SEXTANT_BIN SEXTANT_SRC SEXTANT_INCLUDE
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig XDG_CACHE_HOME=$dir/cache

fail() {
    echo "$1"
    [ -z "${2:-}" ] || cat "$2"
    exit 1
}
# A program runs without any variable of the loader, and with the library of the prefix or none.
runs() {
    local program=$1 kind=$2
    case $program in
        *digits*) "$program" 1 'generated:digits?n=64&seed=1' 'generated:digits?n=8&seed=2' >"$dir/out" ;;
        *) ! "$program" "$dir/nothing" x.jpg >"$dir/out" 2>&1 ;;
    esac
    grep -qE '^example 4: class [0-9]|cannot read x.jpg' "$dir/out" || fail "$program" "$dir/out"
    ldd "$program" >"$dir/libraries"
    if [ "$kind" = shared ]; then
        grep -q "libsextant.so.0 => $prefix/lib/" "$dir/libraries" || fail "$program does not use the shared library" "$dir/libraries"
    else
        ! grep -q libsextant "$dir/libraries" || fail "$program uses the shared library"
    fi
}

echo "pkg-config"
read -ra flags < <(pkg-config --cflags --libs sextant)
rpath=-Wl,-rpath,$(pkg-config --variable=libdir sextant)
gcc -std=c11 -Wall -Wextra -Werror infer.c "${flags[@]}" "$rpath" -o infer
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror digits.cpp "${flags[@]}" "$rpath" -o digits
runs ./infer shared
runs ./digits shared
pkg-config --static --libs sextant >log
grep -q -- '-ldnnl.* -lgomp' log || fail 'sextant.pc has no private libraries' log
read -ra flags < <(pkg-config --cflags --libs sextant-static)
gcc -std=c11 infer.c "${flags[@]}" -o infer
g++ -std=c++17 digits.cpp "${flags[@]}" -o digits
runs ./infer static
runs ./digits static

echo "CMake"
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(sextant 0.1 REQUIRED COMPONENTS static)
foreach(kind sextant static)
    add_executable(infer_${kind} infer.c)
    add_executable(digits_${kind} digits.cpp)
    target_link_libraries(infer_${kind} sextant::${kind})
    target_link_libraries(digits_${kind} sextant::${kind})
endforeach()
CMAKE
cmake -G Ninja -B app -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 || fail 'find_package fails' log
ninja -C app >log 2>&1 || fail 'the CMake project does not build' log
runs app/infer_sextant shared
runs app/digits_sextant shared
runs app/infer_static static
runs app/digits_static static
# The shared library alone needs none of the libraries' own packages, and versions are compared.
sed -i 's/ COMPONENTS static//; s/foreach(kind sextant static)/foreach(kind sextant)/' CMakeLists.txt
PKG_CONFIG_LIBDIR=$dir/none PKG_CONFIG_PATH='' cmake -G Ninja -B shared -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 ||
    fail 'the shared library alone is not found' log
sed -i 's/sextant 0.1/sextant 0.2/' CMakeLists.txt
! cmake -G Ninja -B other -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 || fail 'version 0.1 is taken for 0.2'
grep -q 'version: 0\.1' log || fail 'no word of the version' log

echo "the program"
"$prefix/bin/sextant" train ./flowers.c --data 'generated:flowers?n=4&size=16' --steps 1 --batch-size 2 -- --dropout 0 >log 2>&1 ||
    fail 'the installed program does not compile a model' log
