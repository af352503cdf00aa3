// SPDX-License-Identifier: Apache-2.0
// Scripts in which everything is called with anything: the words of rule files, and every operator in a model
// script.
#include "damage.h"
#include "fuzz.h"
#include "ops/ops.h"

static const char *pick(const char *const *list, size_t count) {
  return list[damage_random(count)];
}

#define PICK(list) pick((list), sizeof(list) / sizeof((list)[0]))

// ---- rule files ----

static const char *const CALLS[] = {"op",
                                    "any",
                                    "constant",
                                    "maybe",
                                    "oneof",
                                    "one_of",
                                    "repeated",
                                    "range",
                                    "variadic",
                                    "output",
                                    "group",
                                    "ruleset",
                                    "strategy",
                                    "fuse",
                                    "region",
                                    "rewrite",
                                    "pass",
                                    "test",
                                    "include",
                                    "require",
                                    "next",
                                    "table.move",
                                    "table.insert",
                                    "string.byte",
                                    "coroutine.create",
                                    "coroutine.close",
                                    "getmetatable",
                                    "option.integer",
                                    "option.enum",
                                    "option.list",
                                    "option.boolean",
                                    "string.format",
                                    "table.concat",
                                    "setmetatable",
                                    "pairs",
                                    "select",
                                    "string.find",
                                    "string.gsub",
                                    "table.sort",
                                    "xpcall",
                                    "coroutine.wrap",
                                    "tostring",
                                    "table.unpack",
                                    "string.rep",
                                    "math.max",
                                    "string.gmatch"};
static const char *const LEAVES[] = {"nil",
                                     "true",
                                     "0",
                                     "1",
                                     "-1",
                                     "2.5",
                                     "1e308",
                                     "0/0",
                                     "math.mininteger",
                                     "'Conv'",
                                     "'Relu'",
                                     "'x'",
                                     "''",
                                     "'%d+'",
                                     "{}",
                                     "absent",
                                     "present",
                                     "{ __index = pairs, __close = next, __call = op }",
                                     "coroutine.running()",
                                     "function(...) return ... end",
                                     "op 'Conv'",
                                     "any 'x'",
                                     "print",
                                     "pairs",
                                     "{ 'Conv', as = 'c' }",
                                     "{ 1, 2, 3 }",
                                     "{ min = 1 }",
                                     "{ { {} } }",
                                     "'\\0\\255'",
                                     "('a'):rep(300)"};
static const char *const KEYS[] = {"as",       "inputs",  "attrs",    "dtype",   "rank",      "shape",
                                   "shared",   "output",  "name",     "pattern", "where",     "ops",
                                   "min",      "max",     "when",     "value",   "tolerance", "scalar",
                                   "priority", "enabled", "selector", "options", "group"};

static void expression(cleave_text_t *out, int depth) {
  switch (depth == 0 ? 0 : damage_random(6)) {
    case 0:
    case 1: cleave_text_add(out, PICK(LEAVES)); return;
    case 2:
      cleave_text_add(out, "(");
      expression(out, depth - 1);
      cleave_text_add(out, damage_random(2) == 0 ? " >> " : " | ");
      expression(out, depth - 1);
      cleave_text_add(out, ")");
      return;
    case 3:
      cleave_text_add(out, "{");
      for (size_t k = damage_random(4); k > 0; k--) {
        if (damage_random(3) != 0) {
          cleave_text_format(out, "%s = ", PICK(KEYS));
        }
        expression(out, depth - 1);
        cleave_text_add(out, ", ");
      }
      cleave_text_add(out, "}");
      return;
    default:
      cleave_text_format(out, "%s(", PICK(CALLS));
      for (size_t k = damage_random(4); k > 0; k--) {
        expression(out, depth - 1);
        cleave_text_add(out, k > 1 ? ", " : "");
      }
      cleave_text_add(out, ")");
      return;
  }
}

void fuzz_draw_rules(cleave_text_t *out) {
  cleave_text_add(out,
                  "local found = { name = 'r' }\nlocal function try(f)\n"
                  "  local ok, value = pcall(f)\n"
                  "  if ok and random == nil then found[#found + 1] = value end\nend\n");
  for (int k = 0; k < 20; k++) {
    cleave_text_add(out, "pcall(function() local v = ");
    expression(out, 4);
    cleave_text_add(out, "\nreturn v end)\n");
  }
  cleave_text_add(out, "return ruleset { name = 'r', fuse 'x' { pattern = ");
  expression(out, 4);
  cleave_text_add(out, " }, region 'g' ");
  expression(out, 3);
  cleave_text_add(out, " }\n");
}

// ---- model scripts ----

static const char *const VALUES[] = {"x",
                                     "i",
                                     "s",
                                     "v",
                                     "n",
                                     "nil",
                                     "1",
                                     "-1",
                                     "0.5",
                                     "true",
                                     "{ 1 }",
                                     "{ -1 }",
                                     "{ 0, 1 }",
                                     "{ 2, 3, 4 }",
                                     "{ 1.5 }",
                                     "{ { 1, 2 }, { 3, 4 } }",
                                     "g.weight { 4, 4, 3, 3 }",
                                     "g.weight { 8, 8 }",
                                     "g.zeros { 0, 3 }",
                                     "g.ones { 4 }",
                                     "x",
                                     "last",
                                     "last",
                                     "g.constant({ 1, 1, 1, 1 }, 'int64')"};
static const char *const ATTRIBUTE_VALUES[] = {"0",
                                               "1",
                                               "-1",
                                               "2",
                                               "3.5",
                                               "true",
                                               "'x'",
                                               "{}",
                                               "{ 1 }",
                                               "{ 1, 1 }",
                                               "{ 2, 2, 2, 2 }",
                                               "{ -1 }",
                                               "1 << 40",
                                               "math.mininteger",
                                               "{ 0, 0 }",
                                               "x",
                                               "'float32'",
                                               "'linear'",
                                               "'SAME_UPPER'",
                                               "1e300"};

static void operator_call(cleave_text_t *text, const cleave_op_t *op) {
  cleave_text_format(text, "pcall(function() keep(g[%c%s%c](", '"', op->name, '"');
  size_t inputs = damage_random(op->input_count + 2);
  for (size_t k = 0; k < inputs; k++) {
    cleave_text_format(text, "%s, ", PICK(VALUES));
  }
  cleave_text_add(text, "{ ");
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    if (op->attributes[k].required || damage_random(3) == 0) {
      cleave_text_format(text, "[%c%s%c] = %s, ", '"', op->attributes[k].value.name, '"',
                         PICK(ATTRIBUTE_VALUES));
    }
  }
  if (damage_random(4) == 0) {
    cleave_text_format(text, "outputs = %d, ", (int)damage_random(4));
  }
  cleave_text_add(text, "})) end)\n");
}

void fuzz_draw_script(cleave_text_t *out) {
  cleave_text_add(out,
                  "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
                  "local i = g.input('i', 'int64', { 2, 3 })\n"
                  "local s = g.input('s', 'float32', {})\n"
                  "local v = g.input('v', 'float32', { 'N', 4 })\n"
                  "local n = g.input('n', 'float32', { '?', '?', 8 })\n"
                  "local last, count = x, 1\n"
                  "local function keep(...)\n"
                  "  for _, value in ipairs { ... } do\n"
                  "    last, count = value, count + 1\n"
                  "    g.output('y' .. count, value)\n"
                  "  end\n"
                  "end\n"
                  "g.output('x', g.Relu(x))\n");
  for (size_t k = damage_random(4) == 0 ? 60 : 1 + damage_random(6); k > 0; k--) {
    operator_call(out, cleave_op_get((cleave_op_id_t)damage_random(CLEAVE_OP_COUNT)));
  }
}
