#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes run one way: a room of src or of onednn includes itself and the rooms before it in the list. A room has at
# most 20 files of C and 4,400 lines. A backend includes cleave/backend.h, cleave/cost.h, cleave/half.h, its own folder, and libraries.
set -eu
root=$2
status=0
complain() {
  echo "$1"
  status=1
}
rooms="base base/containers system engine tensor graph graph/contraction graph/compare ops ops/context ops/families ops/infer json
  formats formats/onnx formats/onnx/read formats/onnx/write
  partition/pattern partition/match partition/plan partition/plan_diff partition/rewrite partition/gradient partition/grow
  partition/explain partition/report
  backend/wire backend/region backend/library backend/process backend/isolate backend/registry backend/blob backend/program
  script/state script/handles script/sandbox script/builder script/rules script embed
  runtime/model runtime/plans runtime/lanes runtime/build runtime/session runtime/serve distributed train/nodes train imperative imperative/script
  tools/calibrate tools/profile tools/verify tools/precision tools/rule_tests tools/watch
  worker mpi cli/common cli/report cli/run cli/tests cli/calibrate cli/training cli/generate cli"

# Every folder with C files is a room of the list, and of a bearable size.
for folder in $(cd "$root/src" && find . -name '*.[ch]' ! -path './include/*' | sed 's|^\./||; s|/[^/]*$||' | sort -u); do
  case " $(echo $rooms) " in
    *" $folder "*) ;;
    *) complain "src/$folder: this room is not in the list of $0" ;;
  esac
  files=$(find "$root/src/$folder" -maxdepth 1 \( -name '*.[ch]' -o -name '*.inc' \) | wc -l)
  lines=$(cat "$root/src/$folder"/*.[ch] | wc -l)
  [ "$files" -le 20 ] || complain "src/$folder: $files files; expected at most 20"
  [ "$lines" -le 4400 ] || complain "src/$folder: $lines lines; expected at most 4400"
done

for folder in $(find "$root/tests" "$root/examples" "$root/rules" "$root/lua" -type d ! -path '*/node_modules*'); do
  files=$(find "$folder" -maxdepth 1 -type f ! -name '.*' | wc -l)
  [ "$files" -le 20 ] || complain "$folder: $files files; expected at most 20"
done
if ls "$root"/tests/unit/*.[ch] >/dev/null 2>&1; then complain "tests/unit: expected folders, found files"; fi

# Includes of all rooms in one pass: "room file included-folder".
allowed=$(mktemp)
trap 'rm -f "$allowed"' EXIT
for room in $rooms; do echo "$room"; done >"$allowed"
(cd "$root/src" && grep -rHo --include='*.[ch]' --include='*.inc' '^#include "[a-z_0-9/.]*"' $rooms | sort -u) |
  awk -v list="$allowed" '
    BEGIN { while ((getline room < list) > 0) rank[room] = ++count }
    { split($0, part, ":#include \""); file = part[1]; included = substr(part[2], 1, length(part[2]) - 1)
      room = file; sub(/\/[^\/]*$/, "", room)
      if (!sub(/\/[^\/]*$/, "", included)) next # generated
      if (included == "cleave") next
      if (!(included in rank)) { print "src/" file ": \"" included "/...\" is no room"; bad = 1 }
      else if (rank[included] > rank[room]) { print "src/" file ": a file in " room " must not include \"" included "/...\""; bad = 1 } }
    END { exit bad }' || status=1

# A backend sees its own folders, and what the library for backends and cpu share with others.
for file in $(find "$root/backends" -name '*.[ch]' -o -name '*.inc'); do
  backend=${file#"$root"/backends/}
  backend=${backend%%/*}
  for include in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
    case "$include" in
      cleave/backend.h | cleave/cost.h | cleave/half.h | kernel_families.inc | cuda_texts.inc) ;;
      cpu/recurrent/recurrent.h | kernels/*.h | kernels/operators.inc) ;;
      "$backend"/*) [ -f "$root/backends/$include" ] || complain "$file: \"$include\" is not there" ;;
      */*) complain "$file: a backend must not include \"$include\"" ;;
      *) [ -f "${file%/*}/$include" ] || complain "$file: \"$include\" is not in its folder" ;;
    esac
  done
  case "$file" in
    "$root"/backends/cpu/*/*) ;;
    *) continue ;;
  esac
  family=${file%/*}
  family=${family##*/}
  if sed -n 's|^#include "cpu/\([a-z]*\)/.*|\1|p' "$file" | grep -v "^common$" | grep -vx "$family"; then
    complain "$file: kernels include their own folder and common/ only"
  fi
done
# Rooms of a backend: includes run one way, down its list.
check_rooms() {
  backend=$1
  for folder in "$root/backends/$backend"/*/; do
    case " $2 " in
      *" $(basename "$folder") "*) ;;
      *) complain "$folder: this room is not in the list of $0" ;;
    esac
  done
  later=" $2 "
  for room in $2; do
    later=${later#" $room"}
    for included in $later; do
      if ls "$root/backends/$backend/$room"/*.[ch] >/dev/null 2>&1 &&
        grep -Hn "^#include \"$backend/$included/" "$root/backends/$backend/$room"/*.[ch]; then
        complain "backends/$backend/$room: a file must not include \"$backend/$included/...\""
      fi
    done
  done
}
check_rooms onednn "library weights units analysis loops plan emit product convolution quantized program tune"
check_rooms cuda "library device store compiler texts plan emit choices program"
for folder in $(find "$root/backends" -type d); do
  files=$(find "$folder" -maxdepth 1 \( -name '*.[ch]' -o -name '*.inc' \) | wc -l)
  lines=$(find "$folder" -maxdepth 1 -name '*.[ch]' -exec cat {} + | wc -l)
  [ "$files" -le 20 ] || complain "$folder: $files files; expected at most 20"
  [ "$lines" -le 4400 ] || complain "$folder: $lines lines; expected at most 4400"
done
for file in "$root"/src/include/cleave/*.h; do
  for include in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
    case "$include" in
      cleave/*) ;;
      *) complain "$file: a public header must not include \"$include\"" ;;
    esac
  done
done
if grep -n '^#include' "$root/src/include/cleave/backend.h" | grep -v '<std\(bool\|def\|int\)\.h>'; then
  complain "backend.h includes more than stdbool, stddef and stdint"
fi
exit $status
