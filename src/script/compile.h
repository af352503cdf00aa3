/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled rules: the plain tables that lua/cleave/dsl.lua makes -> cleave_ruleset_t in an arena. */
#ifndef CLEAVE_SCRIPT_COMPILE_H
#define CLEAVE_SCRIPT_COMPILE_H

#include "base/arena.h"
#include "partition/ruleset.h"
#include "script/script.h"

/* A rule's functions, as references into the registry (LUA_NOREF: none). `context` of the rule. */
typedef struct cleave_script_rule {
  cleave_script_t *script;
  const char *kind; /* "fuse" or "region" */
  const char *name;
  int32_t line;
  int where;
  int supported;
  int selector;
  int review;
  int options; /* the values of the ruleset's options */
} cleave_script_rule_t;

/* Reads the table on top of the stack; raises on failure. All memory comes from `arena`; the functions stay
 * referenced as long as the interpreter lives. */
void cleave_script_compile(lua_State *state, cleave_arena_t *arena, const char *file,
                           cleave_ruleset_t *out_ruleset);

/* Sets the callbacks of a rule from its functions (callbacks.c). */
void cleave_script_bind(cleave_rule_t *rule, const cleave_script_rule_t *functions);

#endif /* CLEAVE_SCRIPT_COMPILE_H */
