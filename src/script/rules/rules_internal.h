// SPDX-License-Identifier: Apache-2.0
/* The part of a loaded rule file that only the script layer sees. */
#ifndef CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H
#define CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H

#include "script/rules/declared.h"
#include "script/state/script.h"

struct cleave_rules {
  cleave_script_t *script; /* the interpreter that the file was loaded in; NULL: the rules are a library's */
  cleave_arena_t arena;
  const cleave_ruleset_t *rulesets;
  uint32_t ruleset_count;
  cleave_declared_t declared;
  const char *text; /* of the file, in the arena */
  size_t length;
};

/* Reads the table on top of the stack, which lua/cleave/dsl.lua made; raises on failure. */
void cleave_declared_read(lua_State *state, cleave_arena_t *arena, const char *file,
                          cleave_declared_t *out_declared);

#endif /* CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H */
