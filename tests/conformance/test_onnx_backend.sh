#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ONNX backend tests of Debian's libonnx-testdata. Those in known_failures.txt may fail, each for the reason that
# stands there, with numbers that are the same up to two decimals; any other failure or reason, and any of them that
# passes now, fails this test.
#
#   test_onnx_backend.sh PROGRAM SOURCE BUILD [--update]
set -eu
program=$1
known=$2/tests/conformance/known_failures.txt
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || { echo "skipped: libonnx-testdata is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for set in node simple pytorch-converted pytorch-operator; do
  "$program" conform "$data/$set" >"$work/$set" 2>&1 || true
  tail -n 1 "$work/$set" | grep -Eq '^[1-9][0-9]* passed, [0-9]+ failed$' || { echo "$set: no summary:"; tail -n 5 "$work/$set"; exit 1; }
  sed -n 's/^\([A-Za-z0-9_.-]*\): \(.*\)$/'"$set"'\/\1: \2/p' "$work/$set" >>"$work/failures"
  echo "$set: $(tail -n 1 "$work/$set")"
done
sort "$work/failures" >"$work/found"
if [ "${4:-}" = --update ]; then
  { echo "# Tests that fail, and why. Written by: sh tests/conformance/test_onnx_backend.sh PROGRAM SOURCE BUILD --update"
    cat "$work/found"; } >"$known"
fi
grep -v '^#' "$known" >"$work/known"
grep -E 'crashed|did not finish|timed out' "$work/found" && { echo "no test may crash or hang"; exit 1; }
for list in known found; do
  sed 's/\([0-9]\.[0-9][0-9]\)[0-9]*/\1/g' "$work/$list" >"$work/$list.rounded"
done
diff "$work/known.rounded" "$work/found.rounded" >"$work/diff" || {
  sed -n 's/^< /in the list: /p; s/^> /found:       /p' "$work/diff"
  echo "what is in the list alone passes now, or fails for another reason (--update writes the list)"
  exit 1
}
