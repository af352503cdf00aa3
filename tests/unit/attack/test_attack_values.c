// SPDX-License-Identifier: Apache-2.0
/* Attacks with errors, shared values, numbers and keys: what a rule gets hold of does no harm. */
#include "attack_case.h"

/* ---- errors ---- */

UNIT_TEST(errors_of_every_kind_have_a_line_in_every_place) {
  static const attack_t ATTACKS[] = {
      {"table", "error {}", FAILS, "raised a table value instead of a message"}};
  EVERYWHERE(ATTACKS);
}

UNIT_TEST(errors_of_every_kind_are_one_line) {
  static const attack_t ATTACKS[] = {
      {"nil", "error(nil)", FAILS, "raised a nil value instead of a message"},
      {"function", "error(error)", FAILS, "raised a function value instead of a message"},
      {"boolean", "error(false)", FAILS, "raised a boolean value instead of a message"},
      {"coroutine", "error(coroutine.create(error))", FAILS, "raised a thread value instead of a message"},
      {"a value whose text loops",
       "error(setmetatable({}, { __tostring = function() while true do end end }))", FAILS,
       "raised a table value instead of a message"},
      {"number", "error(17)", FAILS, "raised a number value"},
      {"lines", "error 'one\\ntwo\\r\\nthree'", FAILS, "one\\ntwo"},
      {"long", "error(('x'):rep(1000000))", FAILS, "xxxxxxxx"},
      {"bytes", "error '\\0\\1\\255'", FAILS, ""},
      {"a place that is not", "error('a.lua:99999999999999999999: x', 0)", FAILS, "x"},
      {"in a handler", "local ok, why = xpcall(error, error, 'x') assert(not ok)", FAILS, "x"},
      {"in closing",
       "local x <close> = setmetatable({}, { __close = function() error 'closing' end }) error 'first'",
       FAILS, "closing"},
      {"level", "error('x', 1000000000)", FAILS, "x"},
      {"assert", "assert(false, {})", FAILS, "raised a table value"},
      {"in a coroutine", "coroutine.wrap(function() error 'inside' end)()", FAILS, "inside"},
      {"of the host in a coroutine", "coroutine.wrap(op)('Convv')", PASSES, NULL},
      {"of a word in a coroutine", "coroutine.wrap(op)(7)", FAILS, "op: expected a table"}};
  IN_CALLBACKS(ATTACKS);
}

/* ---- what is shared ---- */

UNIT_TEST(nothing_that_is_shared_can_be_changed) {
  static const attack_t ATTACKS[] = {
      {"texts", "getmetatable('').__index.rep = nil", FAILS, "attempt to index a nil value"},
      {"metatable of texts", "setmetatable('', {})", FAILS, "bad argument"},
      {"library", "string.rep = nil", FAILS, "string cannot be changed"},
      {"library by name", "rawset(string, 'rep', nil)", FAILS, "'rawset' is not available"},
      {"options", "local o = select(2, ...) o.x = 1", FAILS, ""},
      {"pattern", "local p = op 'Conv' p.kind = 1", FAILS, "a pattern cannot be changed"},
      {"finaliser", "setmetatable({}, { __gc = function() while true do end end })", FAILS,
       "'__gc' is not available"},
      {"finaliser that comes later",
       "local m = {} local t = setmetatable({}, m) m.__gc = function() while true do end end\n"
       "local ok = pcall(setmetatable, {}, m) assert(not ok)\n"
       "t = nil for k = 1, 5000 do local x = {} end",
       PASSES, NULL},
      {"hidden keys",
       "local m = {} setmetatable({}, m)\n"
       "for k in pairs(m) do error 'there is a key' end assert(next(m) == nil)",
       PASSES, NULL}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(metatables_work_as_they_should) {
  static const attack_t ATTACKS[] = {
      {"classes",
       "local C = {} C.__index = C function C.new(x) return setmetatable({ x = x }, C) end\n"
       "function C:twice() return self.x * 2 end\n"
       "C.__add = function(a, b) return C.new(a.x + b.x) end\n"
       "C.__eq = function(a, b) return a.x == b.x end\n"
       "local a = C.new(3) assert(a:twice() == 6 and (a + a).x == 6 and a == C.new(3))\n"
       "assert(getmetatable(a) == C)\n"
       "local D = setmetatable({}, C) D.__index = D\n"
       "local d = setmetatable({ x = 4 }, D) assert(d:twice() == 8 and getmetatable(d) == D)\n"
       "assert(getmetatable(setmetatable({}, { __metatable = 'mine' })) == 'mine')\n"
       "assert(getmetatable(setmetatable(setmetatable({}, C), nil)) == nil)",
       PASSES, NULL}};
  IN_CALLBACKS(ATTACKS);
}

/* ---- numbers and keys ---- */

UNIT_TEST(edges_of_numbers_do_no_harm) {
  static const attack_t ATTACKS[] = {
      {"division", "return 1 // 0", FAILS, "attempt to"},
      {"remainder", "return 1 % 0", FAILS, "attempt to"},
      {"the smallest integer",
       "assert(math.mininteger // -1 == math.mininteger and math.mininteger % -1 == 0)\n"
       "assert(math.maxinteger + 1 == math.mininteger and -math.mininteger == math.mininteger)\n"
       "assert(1 << 64 == 0 and 1 << -1 == 0 and math.abs(math.mininteger) == math.mininteger)",
       PASSES, NULL},
      {"fractions as integers", "return 1 << 1.5", FAILS, "number has no integer representation"},
      {"no number as a key", "local t = {} t[0/0] = 1", FAILS, "index is NaN"},
      {"nothing as a key", "local t = {} t[nil] = 1", FAILS, "index is nil"},
      {"texts and numbers as keys",
       "local t = { [1] = 'a', ['1'] = 'b', [1.0] = 'c', [2^53] = 'd' }\n"
       "assert(t[1] == 'c' and t['1'] == 'b' and t[2^53 | 0] == 'd')\n"
       "local keys = {} for k in pairs(t) do keys[#keys + 1] = tostring(k) end\n"
       "assert(table.concat(keys, ' ') == '1 9007199254740992 1')",
       PASSES, NULL},
      {"a step of nothing", "for k = 1, 2, 0 do end", FAILS, "'for' step is zero"},
      {"infinity as a position", "return ('x'):sub(math.huge)", FAILS,
       "number has no integer representation"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(the_order_of_keys_never_depends_on_addresses) {
  static const attack_t ATTACKS[] = {
      {"next",
       "local t = { b = 1, a = 2, [3] = 3, [true] = 4, c = 5 }\n"
       "local keys, k = {}, nil repeat k = next(t, k) keys[#keys + 1] = tostring(k) until k == nil\n"
       "assert(table.concat(keys, ' ') == '3 a b c true nil')\n"
       "assert(next({}) == nil and select('#', next({})) == 1)",
       PASSES, NULL},
      {"one table as a key",
       "local t = { [{}] = 1, x = 2 } local n = 0 for k in pairs(t) do n = n + 1 end "
       "assert(n == 2)",
       PASSES, NULL},
      {"tables as keys", "for k in pairs { [{}] = 1, [{}] = 2 } do end", FAILS,
       "keys of type table have no order"},
      {"functions as keys", "return next { [next] = 1, [pairs] = 2 }", FAILS,
       "keys of type function have no order"},
      {"addresses", "return ('%p'):format({})", FAILS, "'%p' is not available"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_SUITE("attacks with values")
