#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No circles between files: neither of includes, nor of functions and data of the files of one room, as the built objects
# name them. A file that needs another one of its room is not needed by it, directly or through others.
set -eu
source=$2
build=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

# Calls that close a circle, because the functions recurse or until they are apart: FROM TO, and why.
cat >"$scratch/allowed" <<'LIST'
src/formats/onnx/write/onnx_write_nodes src/formats/onnx/write/onnx_write_lower a lowered node is a function with nodes of its own
LIST

# report WHAT: prints the circles in the pairs of standard input.
report() {
  tsort 2>"$scratch/circles" >/dev/null || true
  if [ -s "$scratch/circles" ]; then
    echo "circle of $1:"
    sed 's/^tsort: //; s/^-: input contains a loop:/and:/' "$scratch/circles"
    status=1
  fi
}

(cd "$source" && grep -rHo --include='*.[ch]' --include='*.inc' '^#include "[a-z_0-9/.]*"' src backends) |
  awk -v root="$source" '{ split($0, part, ":#include \""); folder = part[1]; sub(/[^\/]*$/, "", folder)
    name = substr(part[2], 1, length(part[2]) - 1)
    split(folder "| src/| src/include/| backends/", tries, /\| */)
    for (k = 1; k <= 4; k++) if ((getline line < (root "/" tries[k] name)) >= 0) {
      close(root "/" tries[k] name); print part[1], tries[k] name; break } }' >"$scratch/includes"
report includes <"$scratch/includes"

# "a/room/file T symbol" and "a/room/file U symbol"; one source that several targets build is one file.
find "$build/src" "$build/backends" -name '*.c.o' -exec nm -A {} + |
  sed "s|^$build/||; s|CMakeFiles/[^/]*\.dir/||; s|\.c\.o:[0-9a-f]* *| |" >"$scratch/symbols"
awk 'NR == FNR { if ($2 ~ /^[A-TV-Z]$/ && $2 != "N") owner[$3] = owner[$3] " " $1; next }
     $2 == "U" { room = $1; sub(/\/[^\/]*$/, "", room); count = split(owner[$3], owners, " ")
       for (k = 1; k <= count; k++) { other = owners[k]; sub(/\/[^\/]*$/, "", other)
         if (other == room && owners[k] != $1) print $1, owners[k] } }' "$scratch/symbols" "$scratch/symbols" |
  sort -u >"$scratch/calls"
[ "$(wc -l <"$scratch/calls")" -gt 100 ] || { echo "$build: expected objects, found few calls between files"; exit 1; }
while read -r from to reason; do
  grep -qx "$from $to" "$scratch/calls" || { echo "$0: $from no longer needs $to ($reason)"; status=1; }
done <"$scratch/allowed"
awk 'NR == FNR { allowed[$1 " " $2] = 1; next } !($0 in allowed)' "$scratch/allowed" "$scratch/calls" >"$scratch/left"
report symbols <"$scratch/left"
exit $status
