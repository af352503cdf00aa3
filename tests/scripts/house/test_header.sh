#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave/backend.h on its own: a folder with nothing but that file, a library in C11 and in C++ built against it with every
# warning an error, loaded, and run.
set -eu
program=$1
source=$2
build=$3
sanitizer=$(sed -n 's/^CLEAVE_SANITIZE:STRING=//p' "$build/CMakeCache.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/include/cleave"
cp "$source/src/include/cleave/backend.h" "$folder/include/cleave"
header="$folder/include/cleave/backend.h"

included=$(sed -n 's/^ *# *include *//p' "$header" | sort | tr '\n' ' ')
[ "$included" = "<stdbool.h> <stddef.h> <stdint.h> " ] ||
  { echo "backend.h includes $included, expected <stdbool.h> <stddef.h> <stdint.h>"; exit 1; }

cat >"$folder/model.lua" <<'LUA'
local x = g.input("x", "float32", { 2, 3 })
g.output("y", g.Neg(x))
LUA
cat >"$folder/rules.lua" <<'LUA'
return ruleset { name = "header", backend = "header", region "all" { doc = "what the library knows", ops = { "Neg" } } }
LUA

count=0
# try COMPILER SOURCE LANGUAGE
try() {
  compiler=$1
  language=$3
  library="$folder/libheader_$language.so"
  # g++ warns of members that designated initialisers leave out, which is what they are for.
  case $language in c++2*) lenient=-Wno-missing-field-initializers ;; *) lenient= ;; esac
  # shellcheck disable=SC2086
  $compiler "-std=$language" -pedantic-errors -Wall -Wextra -Werror $lenient -shared -fPIC ${sanitizer:+-fsanitize=$sanitizer} \
    -I "$folder/include" "$source/tests/header/$2" -o "$library" || { echo "$compiler -std=$language does not build it"; exit 1; }
  "$program" backends --load "$library" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
  grep -q '^ *header ' "$folder/out" || { echo "$language: not listed:"; cat "$folder/out"; exit 1; }
  "$program" run "$folder/model.lua" --load "$library" --rules "$folder/rules.lua" --verify --json >"$folder/out" 2>&1 ||
    { echo "$language: does not run:"; cat "$folder/out"; exit 1; }
  "$program" run "$folder/model.lua" --load "$library" --rules "$folder/rules.lua" --verify >"$folder/out" 2>&1
  grep -q 'all outputs match' "$folder/out" && grep -q '1 region, 0 nodes on cpu' "$folder/out" ||
    { echo "$language: computes something else:"; cat "$folder/out"; exit 1; }
  count=$((count + 1))
}

for language in c11 c17 gnu2x; do
  try "${CC:-cc}" library.c "$language"
done
if command -v "${CXX:-c++}" >/dev/null; then
  for language in c++11 c++14 c++17 c++20 c++2b; do
    try "${CXX:-c++}" library.cpp "$language"
  done
else
  echo "no C++ compiler: the header was not tried with one"
fi
# Every header in C++ too, without warnings that careful programs ask for.
for file in "$source"/src/include/cleave/*.h; do
  command -v "${CXX:-c++}" >/dev/null || break
  echo "#include <cleave/${file##*/}>" >"$folder/one.cpp"
  "${CXX:-c++}" -std=c++11 -pedantic-errors -Wall -Wextra -Wshadow -Wold-style-cast -Werror -fsyntax-only \
    -I "$source/src/include" "$folder/one.cpp" || { echo "cleave/${file##*/} does not compile as C++"; exit 1; }
done
# Nothing of cleave is linked: the library knows no name of it.
if nm -D --undefined-only "$folder/libheader_c11.so" 2>/dev/null | grep -i cleave; then
  echo "the library needs names of cleave"
  exit 1
fi
echo "built and run in $count languages"
