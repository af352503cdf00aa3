// SPDX-License-Identifier: Apache-2.0
/* Attacks on time, memory and depth: whatever a rule does, it ends. */
#include "attack_case.h"

/* ---- loops ---- */

UNIT_TEST(a_plain_loop_ends_in_every_place) {
  static const attack_t ATTACKS[] = {{"loop", "while true do end", OUT_OF_TIME, NULL}};
  EVERYWHERE(ATTACKS);
}

UNIT_TEST(a_loop_that_catches_errors_ends_in_every_place) {
  static const attack_t ATTACKS[] = {
      {"pcall", "while true do pcall(function() while true do end end) end", OUT_OF_TIME, NULL}};
  EVERYWHERE(ATTACKS);
}

UNIT_TEST(the_end_of_the_budget_cannot_be_caught) {
  static const attack_t ATTACKS[] = {
      {"one pcall", "pcall(function() while true do end end) return true", OUT_OF_TIME, NULL},
      {"one xpcall", "xpcall(function() while true do end end, function() return 1 end) return true",
       OUT_OF_TIME, NULL},
      {"one coroutine", "coroutine.resume(coroutine.create(function() while true do end end)) return true",
       OUT_OF_TIME, NULL},
      {"nested", "local function f(n) if n == 0 then while true do end end return pcall(f, n - 1) end f(100)",
       OUT_OF_TIME, NULL},
      {"memory", "pcall(function() local t = {} while true do t[#t + 1] = { #t } end end) return true",
       OUT_OF_MEMORY, NULL},
      {"long text", "pcall(function() local s = 'x' while true do s = s .. s end end) return true",
       OUT_OF_MEMORY, NULL},
      {"memory in a coroutine",
       "coroutine.resume(coroutine.create(function() local s = 'x' while true do s = s .. s end end)) return "
       "true",
       OUT_OF_MEMORY, NULL}};
  IN_CALLBACKS(ATTACKS);
  WHILE_LOADING(ATTACKS);
}

UNIT_TEST(loops_of_every_kind_end) {
  static const attack_t ATTACKS[] = {
      {"goto", "::again:: goto again", OUT_OF_TIME, NULL},
      {"repeat", "repeat until false", OUT_OF_TIME, NULL},
      {"numbers", "for k = 1, math.maxinteger do end", OUT_OF_TIME, NULL},
      {"fractions", "for k = 1.0, math.huge do end", OUT_OF_TIME, NULL},
      {"calls", "local function f() return f() end return f()", OUT_OF_TIME, NULL},
      {"handler", "xpcall(error, function() while true do end end)", OUT_OF_TIME, NULL},
      {"handler of a loop",
       "while true do xpcall(function() while true do end end, function() while true do end end) end",
       OUT_OF_TIME, NULL},
      {"closing", "local x <close> = setmetatable({}, { __close = function() while true do end end })",
       OUT_OF_TIME, NULL},
      {"closing after an error",
       "local x <close> = setmetatable({}, { __close = function() while true do end end }) error 'x'",
       OUT_OF_TIME, NULL},
      {"index", "return setmetatable({}, { __index = function() while true do end end }).x", OUT_OF_TIME,
       NULL},
      {"assignment", "setmetatable({}, { __newindex = function() while true do end end }).x = 1", OUT_OF_TIME,
       NULL},
      {"length", "return #setmetatable({}, { __len = function() while true do end end })", OUT_OF_TIME, NULL},
      {"concatenation", "return setmetatable({}, { __concat = function() while true do end end }) .. 'x'",
       OUT_OF_TIME, NULL},
      {"call", "return setmetatable({}, { __call = function() while true do end end })()", OUT_OF_TIME, NULL},
      {"text of a value",
       "return tostring(setmetatable({}, { __tostring = function() while true do end end }))", OUT_OF_TIME,
       NULL},
      {"iteration", "for k in function() return 1 end do end", OUT_OF_TIME, NULL},
      {"comparison", "table.sort({ 3, 2, 1 }, function() while true do end end)", OUT_OF_TIME, NULL},
      {"replacement", "('x'):gsub('x', function() while true do end end)", OUT_OF_TIME, NULL}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(closing_after_the_end_of_the_budget_ends) {
  static const attack_t ATTACKS[] = {
      {"one",
       "local x <close> = setmetatable({}, { __close = function() while true do end end }) while true do end",
       OUT_OF_TIME, NULL},
      {"many",
       "local c = { __close = function() local t = {} for k = 1, 1e9 do t[k] = {} end end }\n"
       "local function f(n) local x <close> = setmetatable({}, c) if n > 0 then f(n - 1) end "
       "while true do end end f(150)",
       OUT_OF_TIME, NULL},
      {"many in need of memory",
       "local c = { __close = function() local t = {} for k = 1, 1e9 do t[k] = { k } end end }\n"
       "local function f(n) local x <close> = setmetatable({}, c) if n > 0 then f(n - 1) end "
       "local t = {} while true do t[#t + 1] = { t } end end f(150)",
       OUT_OF_MEMORY, NULL}};
  IN_CALLBACKS(ATTACKS);
}

/* ---- coroutines ---- */

static const char *has_thread_sanitizer(void) {
#if defined(__SANITIZE_THREAD__)
  return "the thread sanitizer counts frames that a coroutine leaves by an error, until its own limit";
#else
  return NULL;
#endif
}

UNIT_TEST_UNLESS(coroutines_end, has_thread_sanitizer) {
  static const attack_t ATTACKS[] = {
      {"wrap", "coroutine.wrap(function() while true do end end)()", OUT_OF_TIME, NULL},
      {"resumed for ever",
       "local c = coroutine.wrap(function() while true do coroutine.yield() end end) "
       "while true do c() end",
       OUT_OF_TIME, NULL},
      {"made for ever", "while true do coroutine.wrap(function() coroutine.yield() end)() end", OUT_OF_TIME,
       NULL},
      {"nested", "local function nest() pcall(coroutine.wrap(nest)) while true do end end nest()",
       OUT_OF_TIME, NULL},
      {"too deep", "local function nest() return coroutine.wrap(nest)() end return nest()", FAILS,
       "C stack overflow"},
      {"closing",
       "local function loop() while true do end end\n"
       "local c = coroutine.create(function() local x <close> = setmetatable({}, { __close = loop }) "
       "coroutine.yield() end)\n"
       "coroutine.resume(c) coroutine.close(c) return true",
       OUT_OF_TIME, NULL},
      {"closing each other",
       "local function nest(n)\n"
       "  local c = coroutine.create(function()\n"
       "    local x <close> = setmetatable({}, { __close = function() nest(n + 1) end })\n"
       "    coroutine.yield()\n"
       "  end)\n"
       "  coroutine.resume(c)\n"
       "  local ok, why = coroutine.close(c)\n"
       "  if not ok then error(why, 0) end\n"
       "end nest(1)",
       FAILS, "more than 8 coroutines close each other"},
      {"closing itself",
       "local c c = coroutine.create(function() coroutine.close(c) end) "
       "local ok, why = coroutine.resume(c) error(why, 0)",
       FAILS, "cannot close a coroutine that runs"},
      {"ended",
       "local c = coroutine.create(function() end) coroutine.resume(c) "
       "local ok, why = coroutine.resume(c) error(why, 2)",
       FAILS, "cannot resume dead coroutine"},
      {"the one that runs", "local ok, why = coroutine.resume(coroutine.running()) error(why, 2)", FAILS,
       "cannot resume non-suspended coroutine"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(yields_across_a_callback_are_refused_in_every_place) {
  static const attack_t ATTACKS[] = {
      {"yield", "coroutine.yield(1)", FAILS, "attempt to yield from outside a coroutine"}};
  EVERYWHERE(ATTACKS);
}

UNIT_TEST(yields_across_functions_of_the_host_are_refused) {
  static const attack_t ATTACKS[] = {
      {"in a comparison",
       "coroutine.wrap(function() table.sort({ 1, 2, 3 }, function() coroutine.yield() end) end)()", FAILS,
       "attempt to yield across a C-call boundary"},
      {"in a replacement", "coroutine.wrap(function() ('x'):gsub('x', coroutine.yield) end)()", FAILS,
       "attempt to yield across a C-call boundary"}};
  IN_CALLBACKS(ATTACKS);
}

/* ---- functions of the libraries ---- */

UNIT_TEST(sorting_is_safe_whatever_the_comparison_says) {
  static const attack_t ATTACKS[] = {
      {"always", "local t = {} for k = 1, 100 do t[k] = k % 7 end table.sort(t, function() return true end)",
       PASSES, NULL},
      {"at random",
       "local t, n = {}, 7 for k = 1, 200 do t[k] = k end\n"
       "table.sort(t, function() n = n * 1103515245 + 12345 & 0x7fffffff return n & 64 == 0 end)\n"
       "local seen = {} for k = 1, 200 do assert(not seen[t[k]]) seen[t[k]] = true end",
       PASSES, NULL},
      {"that empties the list",
       "local t = { 5, 4, 3, 2, 1 } table.sort(t, function(a, b) for k = 1, 5 do t[k] = nil end return a < b "
       "end)\n"
       "assert(table.concat(t) == '12345')",
       PASSES, NULL},
      {"of values that have no order", "table.sort({ 1, 'x', {} })", FAILS, "attempt to compare"},
      {"not a number", "local t = { 0/0, 1, 0/0, 2 } table.sort(t) assert(#t == 4)", PASSES, NULL},
      {"of texts that differ at their ends",
       "local a, b = ('x'):rep(1000000) .. 'a', ('x'):rep(1000000) .. 'b'\n"
       "local t = {} for k = 1, 100000 do t[k] = k % 2 == 0 and a or b end table.sort(t)",
       OUT_OF_TIME, NULL},
      {"with an error", "table.sort({ 2, 1 }, function() error('no', 0) end)", FAILS, "no"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(huge_ranges_end) {
  static const attack_t ATTACKS[] = {
      {"concat", "return table.concat({}, '', 1, math.maxinteger)", FAILS, "invalid value (nil) at index 1"},
      {"concat from the end", "return table.concat({}, ',', math.maxinteger - 1, math.maxinteger)", FAILS,
       "invalid value (nil)"},
      {"concat beyond the end",
       "local t = {} for k = 2, 100000 do t[k] = '' end while true do table.concat(t, '', 2.0, 100000) end",
       OUT_OF_TIME, NULL},
      {"concat for ever", "local t = {} for k = 1, 10000 do t[k] = '' end while true do table.concat(t) end",
       OUT_OF_TIME, NULL},
      {"unpack", "return table.unpack({}, 1, 1e7)", FAILS, "too many results to unpack"},
      {"unpack all integers", "return table.unpack({}, math.mininteger, math.maxinteger)", FAILS,
       "too many results to unpack"},
      {"bytes", "return ('x'):rep(1000000):byte(1, -1)", FAILS, "too many results to unpack"},
      {"move", "table.move({}, 1, math.maxinteger - 1, 2)", OUT_OF_TIME, NULL},
      {"move down", "table.move({}, math.mininteger, -1, 2)", OUT_OF_TIME, NULL},
      {"insert", "table.insert({}, math.maxinteger, 1)", FAILS, "position out of bounds"},
      {"remove", "table.remove({}, math.mininteger)", FAILS, "position out of bounds"},
      {"select", "return select(math.mininteger, 1)", FAILS, "index out of range"},
      {"length that lies",
       "local t = setmetatable({}, { __len = function() return math.maxinteger end })\n"
       "table.insert(t, 1) assert(rawlen(t) == 1) return table.unpack(t)",
       FAILS, "table.unpack: expected a plain list"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(huge_texts_are_refused) {
  static const attack_t ATTACKS[] = {
      {"rep", "return ('x'):rep(1e10)", FAILS, "string.rep: a string of more than 1048576 bytes"},
      {"rep of nothing", "assert((''):rep(math.maxinteger) == '' and (''):rep(1e18, '') == '')", PASSES,
       NULL},
      {"rep of an integer that wraps", "return ('xx'):rep(math.maxinteger)", FAILS,
       "string.rep: a string of more than"},
      {"rep with a separator", "return (''):rep(1e9, ('x'):rep(1000))", FAILS,
       "string.rep: a string of more than"},
      {"width", "return ('%99999999d'):format(1)", FAILS, "invalid conversion"},
      {"many of them", "return ('%s'):rep(100000):format(('x'):rep(1000))", FAILS, "bad argument"},
      {"formatted", "return ('%s%s'):format(('x'):rep(1000000), ('x'):rep(1000000))", OUT_OF_MEMORY, NULL},
      {"replaced", "return ('x'):rep(1000000):gsub('x', ('y'):rep(1000))", OUT_OF_MEMORY, NULL},
      {"joined", "local t = {} for k = 1, 100 do t[k] = ('x'):rep(100000) end return table.concat(t)",
       OUT_OF_MEMORY, NULL},
      {"texts in a row", "local s = ('x'):rep(1000) local t = {} while true do t[#t + 1] = s .. #t end",
       OUT_OF_MEMORY, NULL}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(patterns_that_take_for_ever_end) {
  static const attack_t ATTACKS[] = {
      {"find", "return ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", OUT_OF_TIME, NULL},
      {"match", "return ('a'):rep(100000):match('.-.-.-.-b')", OUT_OF_TIME, NULL},
      {"gmatch", "for word in ('ab'):rep(100000):gmatch('.-.-.-c') do end", OUT_OF_TIME, NULL},
      {"gsub", "('a'):rep(200000):gsub('(.-)(.-)(.-)b', '%1')", OUT_OF_TIME, NULL},
      {"balance", "return ('('):rep(200000):find('%b()')", OUT_OF_TIME, NULL},
      {"a long set", "return ('x'):rep(1000000):find('[' .. ('ab'):rep(400000) .. ']')", OUT_OF_TIME, NULL},
      {"a long frontier", "return ('x'):rep(1000000):find('%f[' .. ('ab'):rep(400000) .. ']')", OUT_OF_TIME,
       NULL},
      {"a long replacement of nothing", "return ('x'):rep(1000000):gsub('(y?)x', ('%1'):rep(400000))",
       OUT_OF_TIME, NULL},
      {"plain", "return ('a'):rep(1000000):find(('a'):rep(500000) .. 'b', 1, true)", OUT_OF_TIME, NULL},
      {"deep", "return ('x'):rep(300):find(('(x'):rep(30) .. ('x*'):rep(200) .. (')'):rep(30))", FAILS,
       "pattern too complex"},
      {"malformed", "return ('x'):find('[' .. ('%'):rep(5))", FAILS, "malformed pattern"},
      {"many captures", "return ('x'):find(('()'):rep(40))", FAILS, "too many captures"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_TEST(slow_operations_of_the_interpreter_end) {
  static const attack_t ATTACKS[] = {
      {"comparing texts",
       "local a, b = ('\\0'):rep(1000000) .. 'a', ('\\0'):rep(1000000) .. 'b' while a < b do end",
       OUT_OF_TIME, NULL},
      {"texts as numbers", "local s = '0x' .. ('f'):rep(1000000) while true do local x = s + 1 end",
       OUT_OF_TIME, NULL},
      {"numbers of texts", "local s = ('0'):rep(1000000) while true do tonumber(s) end", OUT_OF_TIME, NULL},
      {"changing case", "local s = ('x'):rep(1000000) while true do s = s:upper() end", OUT_OF_TIME, NULL},
      {"many arguments",
       "local t = {} for k = 1, 8000 do t[k] = k end\n"
       "local function f(...) while true do select('#', ...) end end f(table.unpack(t))",
       OUT_OF_TIME, NULL},
      {"a chain of indexes",
       "local s, k, t = ('x'):rep(100000) .. 'a', ('x'):rep(100000) .. 'b', {}\n"
       "for i = 1, 1900 do t = setmetatable({ [s] = 1 }, { __index = t }) end while true do local x = t[k] "
       "end",
       OUT_OF_TIME, NULL},
      {"a chain of assignments",
       "local t = {} for i = 1, 1900 do t = setmetatable({}, { __newindex = t }) end while true do t.x = nil "
       "end",
       OUT_OF_TIME, NULL},
      {"many operands",
       "local s = ('x'):rep(10000) while true do\n"
       "local t = s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s end",
       OUT_OF_TIME, NULL},
      {"variables to be closed, deep",
       "local c = { __close = function() while true do end end }\n"
       "local function f() local x <close> = setmetatable({}, c) return f(), 1 end f()",
       OUT_OF_TIME, NULL},
      {"deep stacks that fail again and again",
       "local function f(n) if n > 0 then return f(n - 1), 1 end error('x') end while true do pcall(f, "
       "10000) end",
       OUT_OF_TIME, NULL},
      {"a name that nobody has", "local s = ('x'):rep(1000000) while true do pcall(op, s) end", OUT_OF_TIME,
       NULL},
      {"texts as patterns of formats", "local s = ('%%'):rep(500000) while true do local t = s:format() end",
       OUT_OF_TIME, NULL},
      {"quoted texts", "local s = ('\\0'):rep(100000) while true do local t = ('%q'):format(s) end",
       OUT_OF_TIME, NULL},
      {"collections of many objects",
       "local t = {} for k = 1, 200000 do t[k] = { {} } end while true do local x = { {} } end", OUT_OF_TIME,
       NULL},
      {"more and more arguments", "local function f(...) return f(1, ...) end return f()", OUT_OF_TIME, NULL},
      {"a table that is full",
       "local t = {} for k = 1, 32768 do t[-k] = k end\n"
       "for k = 1, 1e15 do t[-k] = nil t[-k - 32768] = k end",
       OUT_OF_TIME, NULL},
      {"walking",
       "local t = {} for k = 1, 100000 do t[-k] = k end while true do for _ in pairs(t) do break end end",
       OUT_OF_TIME, NULL},
      {"the next key",
       "local t = {} for k = 1, 100000 do t[-k] = k end local k while true do k = next(t, k) end",
       OUT_OF_TIME, NULL}};
  IN_CALLBACKS(ATTACKS);
}

/* ---- memory ---- */

UNIT_TEST(memory_is_bounded_in_every_place) {
  static const attack_t ATTACKS[] = {
      {"entries", "local t = {} for k = 1, 1e7 do t[k] = k end", OUT_OF_MEMORY, NULL}};
  EVERYWHERE(ATTACKS);
}

UNIT_TEST(memory_of_every_kind_is_bounded) {
  static const attack_t ATTACKS[] = {
      {"closures", "local t = {} for k = 1, 1e9 do t[k] = function() return k end end", OUT_OF_MEMORY, NULL},
      {"coroutines", "local t = {} for k = 1, 1e9 do t[k] = coroutine.create(next) end", OUT_OF_MEMORY, NULL},
      {"suspended coroutines",
       "local t = {} for k = 1, 1e9 do t[k] = coroutine.wrap(function() coroutine.yield() end) "
       "t[k]() end",
       OUT_OF_MEMORY, NULL},
      {"keys", "local t = {} for k = 1, 1e9 do t['k' .. k] = true end", OUT_OF_MEMORY, NULL},
      {"tables in tables", "local t = {} while true do t = { t, {}, {} } end", OUT_OF_MEMORY, NULL},
      {"patterns", "local p = 'Relu' while true do p = maybe(p) end", OUT_OF_MEMORY, NULL}};
  WHILE_LOADING(ATTACKS);
}

UNIT_TEST(collections_do_not_outrun_the_clock) {
  static const attack_t ATTACKS[] = {
      /* What is refused is asked for again after a full collection: each takes long when memory is full. */
      {"a full memory",
       "local t = {} pcall(function() while true do t[#t + 1] = {} end end) while true do pcall(string.rep, "
       "'x', 1e6) "
       "end",
       OUT_OF_MEMORY, NULL},
      /* Chains in weak tables would take a collection quadratic time. */
      {"weak keys", "setmetatable({}, { __mode = 'k' })", FAILS, "'__mode' is not available"},
      {"weak keys that come later",
       "local m = {} local t = setmetatable({}, m) m.__mode = 'k'\n"
       "t[{}] = 1 for k = 1, 50000 do local x = { k } end\n"
       "local n = 0 for key in pairs(t) do n = n + 1 end assert(n == 1)",
       PASSES, NULL},
      {"a chain of words", "local r = fuse 'r' {} for k = 1, 20000 do r = fuse 'r' { r } end", PASSES, NULL}};
  WHILE_LOADING(ATTACKS);
}

/* ---- recursion ---- */

UNIT_TEST(recursion_of_every_kind_ends) {
  static const attack_t ATTACKS[] = {
      {"of a function", "local function f() return 1 + f() end return f()", FAILS, "stack overflow"},
      {"through pcall", "local function f() return pcall(f) end local ok = f() assert(ok)", PASSES, NULL},
      {"through pcall with a name",
       "local function f() local ok, why = pcall(f) if not ok then error(why, 0) end end f()", FAILS,
       "stack overflow"},
      {"through a replacement", "local function f() return (('x'):gsub('x', f)) end return f()", FAILS,
       "stack overflow"},
      {"through sort", "local function f() table.sort({ 1, 2 }, f) end f()", FAILS, "stack overflow"},
      {"through index",
       "local m = {} m.__index = function(t, k) return setmetatable({}, m)[k] end "
       "return setmetatable({}, m).x",
       FAILS, "stack overflow"},
      {"of tables that call each other",
       "local t = function() end for k = 1, 300000 do t = setmetatable({}, { __call = t }) end t()", FAILS,
       "'__call' is a table, expected a function"},
      {"of tables that index each other", "local t, m = {}, {} m.__index = t setmetatable(t, m) return t.x",
       FAILS, "'__index' chain too long"},
      {"of texts",
       "local m = {} m.__tostring = function(t) return tostring(t) end "
       "return tostring(setmetatable({}, m))",
       FAILS, "stack overflow"},
      {"of errors", "local function f(why) error(setmetatable({}, { __tostring = f })) end f()", FAILS,
       "raised a table value"},
      {"of handlers", "local function f(why) return xpcall(error, f, why) end f('x') return true", FAILS,
       "stack overflow"}};
  IN_CALLBACKS(ATTACKS);
}

UNIT_SUITE("attacks on limits")
