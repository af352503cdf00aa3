#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whatever libraries do in this process they do in one of their own: their script tests once more, through a program
# that isolates every library which it loads. Regions, devices, executors, compiled regions that are kept, operators,
# partitioners, passes.
set -u
program=$1
source=$2
build=$3
[ -f "$build/accelerators/libgemms.so" ] || { echo "skipped: the libraries are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$2/tests/scripts/checks.sh"

cat >"$work/cleave" <<WRAPPER
#!/bin/sh
isolated=""
for argument in "\$@"; do
  case "\$argument" in
    [a-z]*=*/lib*.so) isolated="\$isolated --isolate \${argument%%=*}" ;;
    */libxnnpack_cleave.so) isolated="\$isolated --isolate xnnpack" ;;
    */lib*.so)
      name=\${argument##*/lib}
      isolated="\$isolated --isolate \${name%.so}" ;;
  esac
done
[ "\$(ulimit -f)" = unlimited ] || isolated="" # shared memory is a file, too
exec "$program" "\$@" \$isolated
WRAPPER
chmod +x "$work/cleave"

for name in custom_ops cache mirror xnnpack; do
  sh "$source/tests/scripts/libraries/test_$name.sh" "$work/cleave" "$source" "$build" >"$work/out" 2>&1
  status=$?
  if [ $status -eq 0 ] || [ $status -eq 77 ]; then
    passed=$((passed + 1))
  else
    cat "$work/out"
    echo "test_$name.sh, isolated: exit status $status"
    failed=$((failed + 1))
  fi
done

finish
