// SPDX-License-Identifier: Apache-2.0
/* The closed environment: what a script cannot reach, and that every script ends. */
#include "script/sandbox/host.h"
#include "script/state/script.h"
#include "system/clock.h"
#include "unit.h"

typedef struct text_run {
  const char *text;
  size_t length;
} text_run_t;

static void run_body(lua_State *state, void *context) {
  const text_run_t *run = context;
  cleave_script_import(state, "dsl");
  lua_getfield(state, 1, "environment");
  lua_call(state, 0, 1);
  cleave_script_load_text(state, run->text, run->length, 2);
  lua_call(state, 0, 0);
}

static cleave_status_t run_bytes(const char *text, size_t length, uint32_t budget, cleave_error_t *error) {
  cleave_script_t *script = NULL;
  text_run_t run = {.text = text, .length = length};
  CLEAVE_TRY(cleave_script_create("t.lua", CLEAVE_ERROR_RULE, cleave_host_register, &script, error));
  cleave_status_t status = cleave_script_call(script, run_body, &run, budget, error);
  cleave_script_destroy(script);
  return status;
}

static cleave_status_t run(const char *text, cleave_error_t *error) {
  return run_bytes(text, strlen(text), 2000, error);
}

/* A small budget, in which the script must end. */
static cleave_status_t run_short(const char *text, cleave_error_t *error) {
  return run_bytes(text, strlen(text), 30, error);
}

#define refused(text, message) unit_fails(run((text), e), CLEAVE_ERROR_RULE, (message))
#define runs_out(text) \
  unit_fails_with(run_short((text), e), CLEAVE_ERROR_LIMIT, "the time budget of 30 ms is spent")

/* ---- what is not there ---- */

UNIT_TEST(has_no_way_out) {
  static const char *const NAMES[] = {"io",       "os",     "package",        "debug", "load",   "loadstring",
                                      "loadfile", "dofile", "collectgarbage", "warn",  "rawset", "utf8"};
  for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
    char text[64];
    char message[128];
    (void)snprintf(text, sizeof text, "\nlocal x = %s", NAMES[k]);
    (void)snprintf(message, sizeof message, "t.lua:2: '%s' is not available in a rule file", NAMES[k]);
    refused(text, message);
  }
}

UNIT_TEST(a_metatable_may_get_its_events_later) {
  unit_ok(
      run("local Rule = {}\n"
          "function Rule:new(o) o = o or {} setmetatable(o, self) self.__index = self return o end\n"
          "function Rule:name() return 'rule ' .. self.n end\n"
          "local Fuse = Rule:new()\n"
          "function Fuse:kind() return 'fuse' end\n"
          "local f = Fuse:new { n = 1 }\n"
          "assert(f:name() == 'rule 1' and f:kind() == 'fuse' and f.other == nil)\n"
          "f.other = 3 assert(rawget(f, 'other') == 3 and getmetatable(f) == Fuse)",
          e));
  unit_ok(
      run("local V = {}\n"
          "local a, b = setmetatable({ 1 }, V), setmetatable({ 2 }, V)\n"
          "assert(#a == 1 and a ~= b and tostring(a) == 'table')\n"
          "function V.__add(x, y) return x[1] + (type(y) == 'table' and y[1] or y) end\n"
          "function V.__eq() return true end\n"
          "function V.__lt(x, y) return x[1] < y[1] end\n"
          "function V.__len() return 7 end\n"
          "function V.__call(self, ...) return ..., self end\n"
          "function V.__concat(x, y) return 'joined' end\n"
          "function V.__tostring() return 'V' end\n"
          "function V.__newindex(t, k, v) rawget(V, 'seen')[k] = v end\n"
          "V.seen = {}\n"
          "V.__index = function(t, k) return k .. '!' end\n"
          "assert(a + b == 3 and a + 4 == 5 and a == b and a < b and #a == 7 and a(5) == 5)\n"
          "assert(a .. 'x' == 'joined' and 'x' .. a == 'joined' and tostring(a) == 'V')\n"
          "a.k = 9 assert(rawget(a, 'k') == nil and V.seen.k == 9 and a.q == 'q!')",
          e));
  unit_ok(
      run("local M = {}\n"
          "local t = setmetatable({}, M)\n"
          "M.__index = function(_, k) return coroutine.yield(k) end\n"
          "local c = coroutine.wrap(function() return t.x end)\n"
          "assert(c() == 'x' and c(8) == 8)",
          e));
  refused("local M = {} local t = setmetatable({}, M) M.__mode = 'k' M.__gc = error\nreturn t + 1",
          "t.lua:2: attempt to perform arithmetic on a table value");
  refused("local t = setmetatable({}, {})\nreturn t()", "t.lua:2: attempt to call a table value");
  refused("local t = setmetatable({}, {})\nreturn t < t", "t.lua:2: attempt to compare a table value");
  refused("local M = {} local t = setmetatable({}, M) M.__index = setmetatable({}, M)\nreturn t.x",
          "t.lua: C stack overflow");
  runs_out(
      "local M = {} local t = setmetatable({}, M) M.__index = function() while true do end end "
      "return t.x");
}

UNIT_TEST(names_the_nearest_word) {
  refused("local x = opp 'Conv'", "t.lua:1: unknown word 'opp' (did you mean 'op'?)");
  refused("return string.fromat('x')", "t.lua:1: string has no 'fromat' (did you mean 'format'?)");
  refused("return math.random()", "t.lua:1: math has no 'random'");
  refused("return option.bolean(true)", "t.lua:1: option has no 'bolean' (did you mean 'boolean'?)");
}

UNIT_TEST(refuses_globals) {
  refused("\n\nx = 1", "t.lua:3: global 'x' is assigned (write 'local x')");
}

UNIT_TEST(refuses_compiled_chunks) {
  static const char CHUNK[] = "\x1bLua\x54\x00\x19\x93\r\n\x1a\n";
  unit_fails(run_bytes(CHUNK, sizeof CHUNK - 1, 2000, e), CLEAVE_ERROR_RULE,
             "t.lua: expected Lua text, found a compiled chunk");
  refused("return string.dump(function() end)", "t.lua:1: string has no 'dump'");
}

UNIT_TEST(freezes_what_is_shared) {
  refused("string.format = nil", "t.lua:1: string cannot be changed");
  refused("table.insert = nil", "t.lua:1: table cannot be changed");
  refused("option.boolean = nil", "t.lua:1: option cannot be changed");
  refused("local p = op 'Conv'\np.line = 7", "t.lua:2: a pattern cannot be changed");
  refused("fuse('x') {} .kind = 1", "t.lua:1: a rule cannot be changed");
  refused("absent.x = 1", "t.lua:1: a pattern cannot be changed");
  refused("setmetatable(string, {})", "t.lua:1: cannot change a protected metatable");
  refused("setmetatable(op 'Conv', nil)", "t.lua:1: cannot change a protected metatable");
  refused("getmetatable('').__index.rep = nil", "t.lua:1: attempt to index a nil value");
}

UNIT_TEST(refuses_finalisers_and_weak_tables) {
  refused("setmetatable({}, { __gc = function() end })", "t.lua:1: '__gc' is not available");
  refused("setmetatable({}, { __mode = 'k' })", "t.lua:1: '__mode' is not available");
  unit_ok(run("assert(getmetatable(setmetatable({}, { __len = 3 })).__len == 3)", e));
}

UNIT_TEST(shows_no_addresses) {
  unit_ok(run("assert(tostring({}) == 'table')", e));
  unit_ok(run("assert(tostring(pairs) == 'function')", e));
  unit_ok(run("assert(string.format('%s %d %s', {}, 3, nil) == 'table 3 nil')", e));
  unit_ok(run("assert(('%5.1f%%'):format(2.25) == '  2.2%')", e));
  refused("return string.format('%p', 'x')", "t.lua:1: string.format: '%p' is not available");
}

UNIT_TEST(walks_tables_in_a_fixed_order) {
  unit_ok(
      run("local keys = {}\n"
          "for key in pairs { z = 1, b = 2, [2] = 3, [1.5] = 4, a = 5, [true] = 6, [-1] = 7, bb = 8 } do\n"
          "  keys[#keys + 1] = tostring(key)\n"
          "end\n"
          "local text = table.concat(keys, ' ')\n"
          "assert(text == '-1 1.5 2 a b bb z true', text)",
          e));
  unit_ok(
      run("local t, n = {}, 0\n"
          "for k = 1, 1000 do t[(k * 7919) % 1000] = k end\n"
          "local last = -1\n"
          "for key in pairs(t) do assert(key > last); last = key; n = n + 1 end\n"
          "assert(n == 1000)",
          e));
  unit_ok(
      run("local t, n = { a = 1, b = 2, c = 3 }, 0\n"
          "for key in pairs(t) do n = n + 1; t.b = nil end\n"
          "assert(n == 2)",
          e));
}

/* ---- everything ends ---- */

UNIT_TEST(ends_loops) {
  unit_fails(run_short("\nwhile true do end", e), CLEAVE_ERROR_LIMIT,
             "t.lua:2: the time budget of 30 ms is spent");
  runs_out("local function f() return f() end f()");
  runs_out("for k = 1, 1e15 do local x = k .. '' end");
}

UNIT_TEST(ends_loops_that_catch_errors) {
  runs_out("while true do pcall(function() while true do end end) end");
  runs_out("while true do pcall(error) end");
  runs_out("xpcall(function() while true do end end, function() while true do end end)");
  runs_out("xpcall(error, function() while true do end end)");
  runs_out("local function f(n) if n == 0 then while true do end end return pcall(f, n - 1) end f(150)");
  runs_out("local x <close> = setmetatable({}, { __close = function() while true do end end })");
}

UNIT_TEST(ends_coroutines) {
  runs_out("coroutine.wrap(function() while true do end end)()");
  runs_out("while true do coroutine.resume(coroutine.create(function() while true do end end)) end");
  runs_out("local function nest() pcall(coroutine.wrap(nest)) while true do end end nest()");
}

UNIT_TEST(ends_what_loops_in_c) {
  runs_out("return ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')");
  runs_out("return ('a'):rep(100000):find('.-.-.-.-b')");
  runs_out("return ('a'):rep(100000):match(('.*'):rep(20) .. 'b')");
  runs_out("for word in ('ab'):rep(100000):gmatch('.-.-.-c') do end");
  runs_out("('a'):rep(200000):gsub('(.-)(.-)(.-)b', '%1')");
  runs_out("return ('a'):rep(1000000):find(('a'):rep(500000) .. 'b', 1, true)");
  runs_out("return ('('):rep(200000):find('%b()')");
  runs_out("table.move({}, 1, 1e15 // 1 | 0, 2)");
  runs_out("local t = {} for k = 1, 1000 do t[k] = k end table.sort(t, function() while true do end end)");
  runs_out("tostring(setmetatable({}, { __tostring = function() while true do end end }))");
  runs_out("('x'):gsub('x', function() while true do end end)");
  runs_out("return {} < setmetatable({}, { __lt = function() while true do end end })");
}

UNIT_TEST(bounds_memory) {
  static const char LIST[] = "local t while true do t = { t } end";
  unit_fails_with(run_bytes(LIST, sizeof LIST - 1, 20000, e), CLEAVE_ERROR_LIMIT,
                  "t.lua:1: more than 256 MiB of memory");
  static const char TABLE[] = "local t = {} for k = 1, 1e9 do t[k] = k end";
  unit_fails_with(run_bytes(TABLE, sizeof TABLE - 1, 20000, e), CLEAVE_ERROR_LIMIT,
                  "t.lua:1: more than 32 MiB of memory in one piece");
  unit_fails_with(run("local s = 'x' while true do s = s .. s end", e), CLEAVE_ERROR_LIMIT,
                  "t.lua:1: more than 1 MiB in one string");
  static const char CALLS[] = "local function f() return 1 + f() end f()";
  unit_fails_with(run_bytes(CALLS, sizeof CALLS - 1, 20000, e), CLEAVE_ERROR_RULE, "stack overflow");
  refused("return string.rep('x', 1e10)", "t.lua:1: string.rep: a string of more than 1048576 bytes");
  refused("return ('x'):rep(1 << 62)", "t.lua:1: string.rep: a string of more than 1048576 bytes");
  refused("return table.unpack({}, 1, 1e7)", "t.lua:1: too many results to unpack");
}

UNIT_TEST(takes_little_longer_than_the_budget) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint64_t start = cleave_clock_now();
  ck_assert_int_eq(run_short("local s = ('x'):rep(1000000) while true do local t = s .. 'y' end", &error),
                   CLEAVE_ERROR_LIMIT);
  ck_assert_double_lt(cleave_clock_ms(start, cleave_clock_now()), 5000.0);
}

UNIT_TEST(works_again_after_a_limit) {
  cleave_script_t *script = NULL;
  static const char LOOP[] = "while true do end";
  static const char GOOD[] = "assert(1 + 1 == 2)";
  text_run_t loop = {LOOP, sizeof LOOP - 1};
  text_run_t good = {GOOD, sizeof GOOD - 1};
  unit_ok(cleave_script_create("t.lua", CLEAVE_ERROR_RULE, cleave_host_register, &script, e));
  for (int k = 0; k < 3; k++) {
    unit_fails_with(cleave_script_call(script, run_body, &loop, 10, e), CLEAVE_ERROR_LIMIT, "time budget");
    unit_ok(cleave_script_call(script, run_body, &good, 1000, e));
  }
  cleave_script_destroy(script);
}

/* ---- errors of any kind ---- */

UNIT_TEST(turns_every_error_into_one_line) {
  refused("error('plain')", "t.lua:1: plain");
  refused("error('plain', 0)", "t.lua: plain");
  refused("\nerror({ code = 3 })", "t.lua:2: raised a table value instead of a message");
  refused("error()", "t.lua:1: raised a nil value instead of a message");
  refused("error(setmetatable({}, { __tostring = function() error('again') end }))",
          "t.lua:1: raised a table value instead of a message");
  refused("error('two\\nlines')", "t.lua:1: two\\nlines");
  refused("local x\nreturn x.y", "t.lua:2: attempt to index a nil value (local 'x')");
  refused("local x = (", "t.lua:1: unexpected symbol near <eof>");
  refused("table.concat({ {} })", "t.lua:1: invalid value (table) at index 1 in table for 'concat'");
  refused("table.concat(setmetatable({}, { __index = function() return '' end }), '', 1, 1e15)",
          "t.lua:1: table.concat: expected a plain list");
}

UNIT_TEST(catches_errors_as_lua_does) {
  unit_ok(
      run("local ok, message = pcall(error, 'x', 0)\n"
          "assert(not ok and message == 'x')\n"
          "assert(select('#', pcall(function() return 1, nil, 3 end)) == 4)\n"
          "local good, text = xpcall(function(a, b) return a + b end, error, 1, 2)\n"
          "assert(good and text == 3)\n"
          "good, text = xpcall(error, function(m) return m .. '!' end, 'oh', 0)\n"
          "assert(not good and text == 'oh!')\n"
          "local thread = coroutine.wrap(function() return pcall(coroutine.yield, 7) end)\n"
          "assert(thread() == 7)\n"
          "assert(select(2, thread(8)) == 8)",
          e));
}

UNIT_TEST(has_list_functions_that_work) {
  unit_ok(
      run("local t = { 1, 2, 3 }\n"
          "table.insert(t, 4); table.insert(t, 1, 0)\n"
          "assert(table.concat(t, ',') == '0,1,2,3,4')\n"
          "assert(table.remove(t) == 4 and table.remove(t, 1) == 0 and #t == 3)\n"
          "table.move(t, 1, 3, 2); assert(table.concat(t, ',') == '1,1,2,3')\n"
          "table.sort(t, function(a, b) return a > b end); assert(table.concat(t, ',') == '3,2,1,1')\n"
          "assert(select('#', table.unpack(t)) == 4 and table.pack(1, nil).n == 2)\n"
          "assert(table.remove({}) == nil)",
          e));
  refused("table.insert({}, 5, 1)", "t.lua:1: table.insert: position out of bounds");
}

/* ---- text patterns, against Lua's own functions ---- */

/* Both lists hold find, match, gmatch, gsub; the script compares them. */
static void compare_body(lua_State *state, void *context) {
  const text_run_t *run = context;
  if (luaL_loadbufferx(state, run->text, run->length, "=compare", "t") != LUA_OK) {
    lua_error(state);
  }
  lua_getglobal(state, "string");
  cleave_script_push_host(state);
  lua_call(state, 2, 0);
}

UNIT_TEST(matches_texts_as_lua_does) {
  static const char COMPARE[] =
      "local lua, ours = ...\n"
      "local parts = { 'a', 'b', '.', '%a', '%d', '[ab]', '[^b]', '(a)', '(.-)', '()', 'a*', 'b+', 'a-', "
      "'a?',\n"
      "  '%1', '^', '$', '%b()', '%f[%w]', '[%d-]', '(', ')', '%', '[', '[]]', '%%', 'x', '[a-c]', '\\0' }\n"
      "local subjects = { '', 'a', 'ab', 'aab', 'abcabc', 'a(b(c)d)e', '12 ab', 'x%y', 'a\\0b', 'bab-12]' }\n"
      "local seed = 12345\n"
      "local function random(n)\n"
      "  seed = (seed * 1103515245 + 12345) % 2147483648\n"
      "  return seed // 65536 % n + 1\n"
      "end\n"
      "local function show(...)\n"
      "  local list = table.pack(...)\n"
      "  for k = 1, list.n do list[k] = tostring(list[k]) end\n"
      "  return table.concat(list, '|')\n"
      "end\n"
      "local function all(gmatch, s, p)\n"
      "  local found, count = {}, 0\n"
      "  for a, b in gmatch(s, p) do found[#found + 1] = show(a, b); count = count + 1; if count > 50 then "
      "break end end\n"
      "  return table.concat(found, ';')\n"
      "end\n"
      "local compared = 0\n"
      "for round = 1, 4000 do\n"
      "  local pattern = ''\n"
      "  for k = 1, random(5) do pattern = pattern .. parts[random(#parts)] end\n"
      "  local s = subjects[random(#subjects)]\n"
      "  local init = random(5) - 3\n"
      "  local function same(name, f, g)\n"
      "    local a, b = show(pcall(f)), show(pcall(g))\n"
      "    a, b = lua.gsub(a, '^false|.*', 'error'), lua.gsub(b, '^false|.*', 'error')\n"
      "    if a ~= b then\n"
      "      error(name .. ' ' .. lua.format('%q %q', s, pattern) .. ': ' .. a .. ' against ' .. b, 0)\n"
      "    end\n"
      "    compared = compared + 1\n"
      "  end\n"
      "  same('find', function() return lua.find(s, pattern, init) end,\n"
      "    function() return ours.find(s, pattern, init) end)\n"
      "  same('plain', function() return lua.find(s, pattern, init, true) end,\n"
      "    function() return ours.find(s, pattern, init, true) end)\n"
      "  same('match', function() return lua.match(s, pattern, init) end,\n"
      "    function() return ours.match(s, pattern, init) end)\n"
      "  same('gmatch', function() return all(lua.gmatch, s, pattern) end,\n"
      "    function() return all(ours.gmatch, s, pattern) end)\n"
      "  for _, by in ipairs { '<%0>', '%1%%', { a = 'A', ab = false }, function(x) return x ~= 'a' and 'f' "
      "end } do\n"
      "    same('gsub', function() return lua.gsub(s, pattern, by) end,\n"
      "      function() return ours.gsub(s, pattern, by) end)\n"
      "  end\n"
      "end\n"
      "assert(compared == 32000)\n";
  cleave_script_t *script = NULL;
  text_run_t text = {COMPARE, sizeof COMPARE - 1};
  unit_ok(cleave_script_create("t.lua", CLEAVE_ERROR_RULE, cleave_host_register, &script, e));
  unit_ok(cleave_script_call(script, compare_body, &text, 60000, e));
  cleave_script_destroy(script);
}

/* ---- memory ---- */

UNIT_TEST(survives_every_failing_allocation) {
  static const char TEXT[] =
      "local p = op { 'Conv', as = 'x' } >> maybe(op 'Relu')\n"
      "local t = { ('a'):rep(100):gsub('a', 'bb') }\n"
      "pcall(error, t)";
  for (int64_t k = 0; k < 100000; k = k < 400 ? k + 1 : k + 37) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = run(TEXT, &error);
    (void)cleave_memory_fail_after(-1);
    if (status == CLEAVE_OK) {
      ck_assert_int_gt(k, 400);
      return;
    }
    ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert_str_eq(error.message, "out of memory");
  }
  ck_abort_msg("never succeeded");
}

UNIT_SUITE("script sandbox")
