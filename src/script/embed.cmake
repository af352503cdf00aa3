# SPDX-License-Identifier: Apache-2.0
# Writes OUT: every file of FILES as a C array of its bytes (text, neither stripped nor compiled), with the
# path below ROOT as its name. Read through src/script/state/embedded.h.
set(text "/* Generated: embedded Lua text. */\n#include \"script/state/embedded.h\"\n")
set(table "")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND text "static const unsigned char file_${index}[] = {${bytes}0};\n")
  string(APPEND table "  {\"${name}\", (const char *)file_${index}, sizeof file_${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND text "const cleave_embedded_file_t cleave_embedded_files[] = {\n${table}  {NULL, NULL, 0}};\n")
file(WRITE ${OUT} "${text}")
