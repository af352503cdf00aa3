# SPDX-License-Identifier: Apache-2.0
# For scripts of tests, sourced: checks are counted, what is wrong is told with what was printed, and the script ends with
# `finish`. What commands print is in the file $out, "out" of the current folder if nobody says otherwise.
out=${out:-out}
passed=0
failed=0

pass() {
  passed=$((passed + 1))
}

# fail TEXT: counts, and shows what was printed last.
fail() {
  failed=$((failed + 1))
  echo "$1"
  [ ! -f "$out" ] || sed 's/^/    /' "$out" | head -n 40
}

# check NAME EXIT PATTERN COMMAND...: the exit status, and a pattern (a basic regular expression, "" for none) in what
# was printed.
check() {
  check_name=$1
  check_status=$2
  check_pattern=$3
  shift 3
  "$@" >"$out" 2>&1 </dev/null
  status=$?
  if [ "$status" -ne "$check_status" ]; then
    fail "$check_name: exit status $status, expected $check_status, in"
  elif [ -n "$check_pattern" ] && ! grep -q -e "$check_pattern" "$out"; then
    fail "$check_name: '$check_pattern' is not in"
  else
    pass
  fi
}

# also NAME PATTERN: another pattern in what was printed last.
also() {
  if grep -q -e "$2" "$out"; then
    pass
  else
    fail "$1: '$2' is not in"
  fi
}

# finish: `N passed, M failed`; the exit status of the script.
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
