#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The house is in order: licences, formatting, Lua style, file sizes, READMEs, headers that compile alone.
set -eu
root=$2
status=0
cd "$root"
complain() {
  echo "$1"
  status=1
}
sources=$(find src backends tests examples -name '*.[ch]' | sort)
for file in $sources $(find src backends -name '*.inc') $(find rules lua examples tests -name '*.lua'); do
  head -n 2 "$file" | grep -q '^\(//\|--\) SPDX-License-Identifier: Apache-2.0$' || complain "$file: no SPDX line at the top"
done
for file in $(find src backends tests examples lua/cleave rules -name '*.[ch]' -o -name '*.lua' | sort); do
  case $file in src/include/*) continue ;; esac # one file by design for each who includes it
  lines=$(wc -l <"$file")
  [ "$lines" -le 500 ] || { [ "$lines" -le 700 ] && head -n 12 "$file" | grep -q 'Long file:'; } ||
    complain "$file: $lines lines; look for the second subject in it, or say above why there is none (Long file:)"
done
# Functions of more than 60 lines say above why: a comment that begins with "Long:".
# shellcheck disable=SC2086
long=$(awk 'FNR == 1 { name = "" } { if ($0 ~ /^[a-z_].*\(/ && $0 !~ /;$/ && name == "") { name = $0; start = FNR; reason = above }
    if ($0 == "}" && name != "") { if (FNR - start + 1 > 60 && reason !~ /Long:/) print FILENAME ":" start ": " FNR - start + 1 " lines: " name; name = "" }
    if ($0 == "};" || $0 ~ /^[a-z_].*;$/) name = ""; above = $0 }' $(find src backends -name '*.c' -o -name '*.inc'))
[ -z "$long" ] || complain "functions of more than 60 lines: $long"
# Functions with more than six parameters, the error (or message) not counted, say above why: "Wide:".
# shellcheck disable=SC2086
wide=$(awk 'FNR == 1 { name = ""; above = "" }
    name == "" && /^[a-z_].*\(/ && !/;$/ && !/^#|^typedef|= *\{?$/ { line = FNR; reason = above; text = ""; name = "?" }
    name != "" { text = text " " $0
      if ($0 ~ /\{$/) {
        sub(/[^(]*\(/, "", text); sub(/,[^,]*\*(error|message|reason)(, *const char \*format, \.\.\.)?\) *\{$/, ")", text)
        while (gsub(/\([^()]*\) *\(/, "(", text) || gsub(/\([^()]*\)/, "", text)) { }
        if (gsub(/,/, ",", text) > 5 && reason !~ /Wide:/) print FILENAME ":" line
        name = ""
      } else if ($0 ~ /;$/) name = "" }
    { above = $0 }' $(find src backends -name '*.c'))
[ -z "$wide" ] || complain "functions with more than 6 parameters: $wide"
# The walk in src/README.md: each file is there, and defines the function that is named behind it.
grep -o '[a-z_/]*\.c cleave_[a-z_]*' src/README.md | while read -r file function; do
  grep -q "^[a-z].*[ *]$function(" "src/$file" || echo "src/README.md: $function is not in $file"
done >"${TMPDIR:-/tmp}/walk.$$"
[ ! -s "${TMPDIR:-/tmp}/walk.$$" ] || complain "$(cat "${TMPDIR:-/tmp}/walk.$$")"
rm -f "${TMPDIR:-/tmp}/walk.$$"
rooms=$(find src backends -name '*.c' | sed 's|/[^/]*$||' | sort -u)
for folder in src $rooms backends rules examples examples/*/ lua tests; do
  [ -f "${folder%/}/README.md" ] || complain "${folder%/}: no README.md"
done
# What git keeps is written by people: a model that was exported into the project by mistake is larger.
if git rev-parse --git-dir >/dev/null 2>&1; then
  large=$(git ls-files -z | xargs -0 ls -l 2>/dev/null | awk '$5 > 1048576 { print $NF }')
  [ -z "$large" ] || complain "files of more than 1 MiB: $large"
fi
if command -v clang-format >/dev/null; then
  # shellcheck disable=SC2086
  clang-format --dry-run --Werror $sources 2>&1 | grep -m 20 'error:' && complain "clang-format: see above"
fi
if command -v luacheck >/dev/null; then
  luacheck -q rules lua examples tests/lua tests/golden >/dev/null 2>&1 ||
    { luacheck --no-color rules lua examples tests/lua tests/golden | tail -n 30; complain "luacheck: see above"; }
fi
# What the program prints goes through cli/common/output.c, which escapes texts of files.
if grep -nE '(^|[^a-z_])(v?f?printf|fputs|puts|putchar|fwrite)\(' $(find src/cli -name '*.c') | grep -v '^src/cli/common/output.c'; then
  complain "src/cli: prints without cleave_print: see above"
fi
for language in c c++; do
  standard=c11
  [ $language = c ] || standard=c++17
  for header in backend.h context.h cleave.h engine.h array.h train.h server.h; do
    printf '#include "cleave/%s"\n' "$header" |
      ${CC:-cc} -x $language -std=$standard -pedantic-errors -Wall -Wextra -Werror -Isrc/include -fsyntax-only - ||
      complain "$header does not compile alone as $language"
  done
done
exit $status
