// SPDX-License-Identifier: Apache-2.0
/* Compiled rules: the plain tables that lua/cleave/dsl.lua makes -> rulesets in an arena. */
#ifndef CLEAVE_SCRIPT_RULES_COMPILE_H
#define CLEAVE_SCRIPT_RULES_COMPILE_H

#include "base/arena.h"
#include "partition/pattern/ruleset.h"
#include "script/state/script.h"

/* A rule's functions, as references into the registry (LUA_NOREF: none). `context` of the rule. */
typedef struct cleave_script_rule {
  cleave_script_t *script;
  const char *kind; /* word of the DSL: "fuse" */
  const char *name;
  int place; /* of the rule (script.h) */
  int where;
  int supported;
  int selector;
  int review;
  int replace;
  int run;
  int of;
  int assign;
  int apply;
  int options;                     /* the values of the ruleset's options */
  const cleave_key_value_t *texts; /* the same as strings, for rules of libraries */
  uint32_t text_count;
  uint64_t *calls; /* of these functions, so far */
} cleave_script_rule_t;

/* Reads the table on top of the stack: the rulesets of the file, in order; raises on
 * failure. All memory comes from `arena`; the functions stay referenced as long as the interpreter lives. */
const cleave_ruleset_t *cleave_script_compile(lua_State *state, cleave_arena_t *arena, const char *file,
                                              uint32_t *out_count);

#endif /* CLEAVE_SCRIPT_RULES_COMPILE_H */
