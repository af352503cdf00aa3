// SPDX-License-Identifier: Apache-2.0
/* Attributes that a rule gives its fusions and regions: a Lua table of names with plain data. */
#ifndef CLEAVE_SCRIPT_HANDLES_ATTRIBUTE_READER_H
#define CLEAVE_SCRIPT_HANDLES_ATTRIBUTE_READER_H

#include "base/arena.h"
#include "script/state/script.h"

/* Reads the table at an index of the stack into the arena, in no particular order. Integers and booleans (as
 * 0 and 1) become INT, other numbers FLOAT, strings STRING; a list becomes the list kind of its elements,
 * FLOATS if it has any fraction, INTS if it is empty. Raises, with `what` in front, for anything else. */
const cleave_attribute_t *cleave_script_read_attributes(lua_State *state, int index, cleave_arena_t *arena,
                                                        const char *what, uint32_t *out_count);

#endif /* CLEAVE_SCRIPT_HANDLES_ATTRIBUTE_READER_H */
