# SPDX-License-Identifier: Apache-2.0
# Sourced by checks of models, which run themselves once more for each model, two at a time: CLEAVE_ONE_MODEL names it.
# shellcheck shell=sh

# side_by_side NAMES ARGUMENT...: with the script's own arguments. Prints what the runs print, and adds up the lines
# `N passed, M failed` that each ends with; a run without one has failed.
side_by_side() {
  names=$1
  shift
  # shellcheck disable=SC2086
  printf '%s\n' $names | xargs -P 2 -I '{}' env CLEAVE_ONE_MODEL='{}' sh "$0" "$@" |
    awk -v runs="$(echo $names | wc -w)" '
      /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; runs--; next }
      { print; fflush() }
      END { failed += runs; print passed + 0 " passed, " failed + 0 " failed"; exit failed > 0 || passed == 0 }'
}
