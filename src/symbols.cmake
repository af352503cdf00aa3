# SPDX-License-Identifier: Apache-2.0
# Gives all global names of a static LIBRARY that do not begin with cleave_ that prefix, so that they meet nobody else's.
execute_process(COMMAND ${NM} -g --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE names
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n ]+ [A-Z] [^\n]*" names "${names}")
set(map "")
foreach(line IN LISTS names)
  string(REGEX REPLACE " .*" "" name "${line}")
  if(NOT name MATCHES "^cleave_")
    string(APPEND map "${name} cleave_${name}\n")
  endif()
endforeach()
file(WRITE ${LIBRARY}.names "${map}")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${LIBRARY}.names ${LIBRARY} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${LIBRARY}.names)
