#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes run one way: include/cleave, base, tensor, graph, ops, formats, partition, backend, script, runtime,
# tools, worker, cli; a backend sees cleave/backend.h and cost.h, its own folder, and libraries. Whoever partitions does not know
# who explains, so that explaining costs nothing where nobody asks.
set -eu
root=$2
status=0
layers="base tensor graph ops formats partition backend script runtime tools worker cli"
allowed=" "
for layer in $layers; do
  allowed="$allowed$layer "
  for file in "$root/src/$layer"/*.[ch] "$root/src/$layer"/*.inc; do
    [ -f "$file" ] || continue
    for include in $(sed -n 's/^#include "\([a-z_]*\)\/.*/\1/p' "$file" | sort -u); do
      case "$include" in
        cleave) ;;
        *) case "$allowed" in
             *" $include "*) ;;
             *) echo "$file: a file in src/$layer must not include \"$include/...\""; status=1 ;;
           esac ;;
      esac
    done
  done
done
for file in "$root"/src/partition/*.[ch]; do
  case "$file" in
    */explain*) ;;
    *) if grep -Hn '^#include "partition/explain' "$file"; then
         echo "$file: only explain*.c include explain*.h in src/partition"; status=1
       fi ;;
  esac
done
for folder in "$root"/backends/*/; do
  for file in "$folder"*.[ch] "$folder"*.inc; do
    [ -f "$file" ] || continue
    for include in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
      case "$include" in
        cleave/backend.h | cleave/cost.h | kernel_families.inc) ;;
        cpu/recurrent.h) ;; # what the reference backend shares with others
        */*) echo "$file: a backend must not include \"$include\""; status=1 ;;
        *) [ -f "$folder$include" ] || { echo "$file: \"$include\" is not in its folder"; status=1; } ;;
      esac
    done
  done
done
for file in "$root"/src/include/cleave/*.h; do
  for include in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
    case "$include" in
      cleave/*) ;;
      *) echo "$file: a public header must not include \"$include\""; status=1 ;;
    esac
  done
done
if grep -n '^#include' "$root/src/include/cleave/backend.h" | grep -v '<std\(bool\|def\|int\)\.h>'; then
  echo "backend.h includes more than stdbool, stddef and stdint"
  status=1
fi
exit $status
