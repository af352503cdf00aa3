// SPDX-License-Identifier: Apache-2.0
/* What a running script of arrays has. */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H

#include <stdio.h>

#include "imperative/imperative.h"
#include "script/builder/builder.h"
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

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_STATE_H */
