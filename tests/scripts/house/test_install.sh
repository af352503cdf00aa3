#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into a folder of its own, then builds and runs the embedding example with find_package and with pkg-config.
set -eu
program=$1
source=$2
build=$3
grep -q '^CLEAVE_SANITIZE:STRING=.\+' "$build/CMakeCache.txt" && exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/prefix" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
[ -x "$folder/prefix/bin/cleave" ] || { echo "no bin/cleave installed"; exit 1; }
"$folder/prefix/bin/cleave" --version | grep -q '^cleave [0-9]'
for file in rules/conv_bn_relu.lua rules/README.md rules/OPERATORS.md lua/meta/words.lua; do
  [ -s "$folder/prefix/share/cleave/$file" ] || { echo "no share/cleave/$file installed"; exit 1; }
done
for file in LICENSE backends/README.md; do
  cmp "$source/$file" "$folder/prefix/share/doc/cleave/$file" || exit 1
done
# Accelerator libraries that come along are found without --load, with their rules.
if [ -f "$build/accelerators/libxnnpack_cleave.so" ]; then
  env -u CLEAVE_BACKEND_PATH "$folder/prefix/bin/cleave" backends -v >"$folder/backends"
  grep -q "^  xnnpack " "$folder/backends" || { cat "$folder/backends"; exit 1; }
  grep -q "$folder/prefix/.*/cleave/backends/libxnnpack_cleave.so" "$folder/backends" || { cat "$folder/backends"; exit 1; }
  "$folder/prefix/bin/cleave" rules xnnpack >"$folder/log" || { cat "$folder/log"; exit 1; }
fi
model="$folder/tiny.lua"
cat >"$model" <<'LUA'
local x = g.input("x", "float32", { 1, 4 })
g.output("y", g.Relu(x))
LUA
cmake -G Ninja -S "$source/examples/embed" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" 2>&1 ||
  { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
"$folder/build/embed" "$model"
"$folder/build/tour"
# A project in C++ alone, and paths that are of this machine only.
if command -v "${CXX:-c++}" >/dev/null; then
  mkdir -p "$folder/plus"
  cat >"$folder/plus/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(plus LANGUAGES CXX)
find_package(cleave REQUIRED)
add_executable(plus plus.cpp)
target_link_libraries(plus PRIVATE cleave::cleave)
CMAKE
  cat >"$folder/plus/plus.cpp" <<'CPP'
#include <cleave/cleave.h>
int main(int, char **argv) {
  cleave_model_t *model = nullptr;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_model_load(nullptr, argv[1], nullptr, &model, &error);
  cleave_model_release(model);
  return status;
}
CPP
  cmake -G Ninja -S "$folder/plus" -B "$folder/plus/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" 2>&1 ||
    { cat "$folder/log"; exit 1; }
  cmake --build "$folder/plus/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  "$folder/plus/build/plus" "$model"
fi
grep -n '/lib\(gomp\|omp\|pthread\)[.]' "$folder"/prefix/lib*/cmake/cleave/cleaveTargets.cmake &&
  { echo "cleaveTargets.cmake names libraries by their paths on this machine"; exit 1; }
# The header alone: found without what libcleave itself needs, by a project in C or in C++. The library is not.
for language in C CXX; do
  [ "$language" = C ] || command -v "${CXX:-c++}" >/dev/null || continue
  mkdir -p "$folder/alone_$language"
  cat >"$folder/alone_$language/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(alone LANGUAGES $language)
foreach(package PkgConfig Threads OpenMP)
  set(CMAKE_DISABLE_FIND_PACKAGE_\${package} TRUE)
endforeach()
find_package(cleave REQUIRED COMPONENTS backend)
if(library)
  find_package(cleave REQUIRED)
endif()
set_source_files_properties($source/backends/template/template.c PROPERTIES LANGUAGE $language)
add_library(alone MODULE $source/backends/template/template.c)
target_link_libraries(alone PRIVATE cleave::backend)
CMAKE
  cmake -G Ninja -S "$folder/alone_$language" -B "$folder/alone_$language/build" -DCMAKE_PREFIX_PATH="$folder/prefix" \
    >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  cmake --build "$folder/alone_$language/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  case $(find "$folder/prefix" -name 'libcleave.*') in *.so*) continue ;; esac
  cmake -S "$folder/alone_$language" -B "$folder/alone_$language/build" -Dlibrary=ON >"$folder/log" 2>&1 &&
    { echo "cleave::cleave is found without what it needs"; exit 1; }
  tr -s '\n ' '  ' <"$folder/log" | grep -q "cleave::cleave needs Threads, lua5.4, jansson" || { cat "$folder/log"; exit 1; }
done
# What it exports, and what a program that links it may call its own.
library=$(find "$folder/prefix" -name 'libcleave.a' -o -name 'libcleave.so' | head -n 1)
case $library in *.so) names="nm -D" ;; *) names="nm -g" ;; esac
$names --defined-only --format=posix "$library" | awk 'NF > 2 && $1 !~ /^cleave_/ { print $1 }' >"$folder/names"
[ ! -s "$folder/names" ] || { echo "$library exports other names than cleave_*:"; head "$folder/names"; exit 1; }
libraries=$(find "$folder/prefix" -name pkgconfig -type d | head -n 1)
for name in embed tour; do
  # shellcheck disable=SC2046
  ${CC:-cc} "$source/examples/embed/$name.c" -o "$folder/${name}_pc" \
    $(PKG_CONFIG_PATH="$libraries" pkg-config --cflags --libs --static cleave) -lm -pthread
done
"$folder/embed_pc" "$model"
# The accelerator to copy, with the installed header and nothing else.
${CC:-cc} -std=c11 -shared -fPIC -I "$folder/prefix/include" "$source/backends/template/template.c" -o "$folder/libtemplate.so"
"$folder/tour_pc" "$folder/libtemplate.so" | grep -q 'region front_0 runs on accelerator' ||
  { echo "the tour does not use the library"; exit 1; }
# The same in a process of its own, whose program is found from where cleave is.
"$folder/prefix/bin/cleave" backends -v --load "$folder/libtemplate.so" --isolate template >"$folder/backends" ||
  { cat "$folder/backends"; exit 1; }
grep -q "isolated: process [0-9]" "$folder/backends" || { cat "$folder/backends"; exit 1; }
[ -n "$program" ]
