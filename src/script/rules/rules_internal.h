// SPDX-License-Identifier: Apache-2.0
/* What the script layer knows of a loaded rule file beyond rules.h. */
#ifndef CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H
#define CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H

#include "script/rules/declared.h"
#include "script/state/script.h"

/* The interpreter that the file was loaded in. */
cleave_script_t *cleave_rules_script(const cleave_rules_t *rules);
/* The source of the file. */
const char *cleave_rules_text(const cleave_rules_t *rules, size_t *out_length);

/* Reads the table on top of the stack, which lua/cleave/dsl.lua made; raises on failure. */
void cleave_declared_read(lua_State *state, cleave_arena_t *arena, const char *file,
                          cleave_declared_t *out_declared);

#endif /* CLEAVE_SCRIPT_RULES_RULES_INTERNAL_H */
