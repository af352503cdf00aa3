// SPDX-License-Identifier: Apache-2.0
/* The state of a running script of arrays. */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H

#include <lua.h>
#include <stdio.h>

#include "imperative/imperative.h"
#include "script/builder/builder.h"
#include "script/state/script.h"
#include "system/file.h"

/* `script->owner` is its builder, which is the first member. */
typedef struct array_script {
  cleave_builder_t builder; /* of the graph that a function is traced into, and for reading constants */
  cleave_imperative_t *imperative;
  const cleave_rule_source_t *rules; /* for functions that are compiled */
  size_t rule_count;
} array_script_t;

static inline array_script_t *array_script_of(lua_State *state) {
  return (array_script_t *)cleave_builder_of(state);
}

/* "file.lua:12", of the line that runs; into `buffer`, which is returned. */
enum { ARRAY_PLACE_BYTES = 64 };
static inline const char *array_place(lua_State *state, char buffer[ARRAY_PLACE_BYTES]) {
  int place = cleave_script_place(state);
  const char *path = cleave_path_name(cleave_script_path_at(cleave_script_of(state), place));
  (void)snprintf(buffer, ARRAY_PLACE_BYTES, "%.48s:%d", path, cleave_place_line(place));
  return buffer;
}

/* array_handle.c: Arrays as values of Lua: userdata that own a reference. */

/* Makes the metatable, empty but for __gc, and leaves it on the stack. */
void array_handle_define(lua_State *state);

/* Pushes an array without content; array_handle_set takes the reference over. Memory is there before there is
 * an array to lose. */
cleave_array_t **array_handle_push(lua_State *state);

/* The array at an index, or NULL if it is something else. */
cleave_array_t *array_handle_test(lua_State *state, int index);
/* The array at an index; raises if it is something else. */
cleave_array_t *array_handle_check(lua_State *state, int index);

/* Pushes an array made of a number, boolean or (nested) table at `index`; dtype UNKNOWN: by what it is. */
cleave_array_t *array_handle_constant(lua_State *state, cleave_imperative_t *imperative, int index,
                                      cleave_dtype_t dtype);

/* Functions of one array for scripts: adds them to the table of host functions on top of the stack. */
void array_handle_register(lua_State *state);

/* array_calls.c: Calls of operators on arrays from Lua. */

/* Adds the functions to the table of host functions on top of the stack. */
void array_calls_register(lua_State *state);

/* recorded.c: Records of calls for lua/cleave/record.lua. */

/* Adds its functions to the table on the top of the stack. */
void recorded_register(lua_State *state);

/* traced.c: Functions of a script as models: one is called once with values of a graph in place of its
 * arrays, what it calls becomes nodes, and from then on the partitioned model runs. */

/* Adds the functions to the table of host functions on top of the stack. */
void traced_register(lua_State *state);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H */
