// SPDX-License-Identifier: Apache-2.0
// Patterns with very many ways to fit: orders of commutative inputs, alternatives that overlap, parts that
// may be missing, repetitions. All end without a note that a search was given up.

#include "fuse_case.h"
#include "plan_case.h"
#include "unit.h"

/* The number of fusions; no search was given up. */
static uint32_t count(const char *model, const char *before, const char *fields) {
  cleave_text_t rules = {0};
  cleave_text_format(&rules, "fuse \"f\" { %s }", fields);
  const cleave_plan_t *plan = fuse_case_plan(model, before, cleave_text_get(&rules));
  cleave_text_deinit(&rules);
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_LIMIT), "");
  return plan->fusion_count;
}

/* A complete tree of sums over relu(x); leaf `odd` is exp(x) instead. */
static const char *tree_model(int depth, int odd) {
  static char text[1024];
  (void)snprintf(text, sizeof text,
                 "local x, leaves = g.input('x', 'float32', { 4 }), 0\n"
                 "local function tree(depth)\n"
                 "  if depth == 0 then leaves = leaves + 1\n"
                 "    return leaves == %d and g.Exp(x) or g.Relu(x) end\n"
                 "  return g.Add(tree(depth - 1), tree(depth - 1)) end\n"
                 "g.output('y', tree(%d)) g.output('z', g.Sin(g.Cos(x)))\n",
                 odd, depth);
  return text;
}

#define TREE                                 \
  "local function tree(depth, leaf)\n"       \
  "  if depth == 0 then return leaf() end\n" \
  "  return op { 'Add', inputs = { tree(depth - 1, leaf), tree(depth - 1, leaf) } } end\n"

UNIT_TEST(a_tree_of_sums_of_equal_parts_is_matched_in_one_order) {
  const char *before = TREE "local function relu() return op 'Relu' end\n";
  ck_assert_uint_eq(count(tree_model(12, 0), before, "pattern = tree(12, relu)"), 1);
  ck_assert_uint_eq(count(tree_model(12, 4096), before, "pattern = tree(12, relu)"), 0);
  ck_assert_uint_eq(count(tree_model(12, 1), before, "pattern = tree(12, relu)"), 0);
  ck_assert_uint_eq(count(tree_model(13, 0), before, "pattern = tree(12, relu)"), 2);
  // All fits, and a function says no: there is no other way to put it to the function.
  ck_assert_uint_eq(
      count(tree_model(8, 0), before, "pattern = tree(8, relu), where = function() return false end"), 0);
  ck_assert_uint_eq(
      count(tree_model(12, 0), before, "pattern = op { 'Identity' } | tree(12, relu), where = '1 == 2'"), 0);
}

UNIT_TEST(a_tree_of_sums_of_different_parts_is_matched_through_the_filter) {
  const char *before = TREE
      "local n = 0\n"
      "local function other() n = n + 1\n"
      "  return op { n % 3 == 0 and { 'Relu', 'Cos' } or n % 3 == 1 and { 'Relu', 'Sin' } or 'Relu' } end\n"
      "local function last() n = n + 1 return op { n == 1024 and 'Exp' or { 'Relu', 'Sin' } } end\n";
  ck_assert_uint_eq(count(tree_model(10, 0), before, "pattern = tree(10, other)"), 1);
  ck_assert_uint_eq(count(tree_model(10, 7), before, "pattern = tree(10, other)"), 0);
  ck_assert_uint_eq(count(tree_model(10, 700), before, "pattern = tree(10, last)"), 1);
  ck_assert_uint_eq(count(tree_model(10, 0), before, "pattern = tree(10, last)"), 0);
}

/* A row of relus; what the pattern ends in stands elsewhere. */
#define ROW                                          \
  "local x = g.input('x', 'float32', { 4 })\n"       \
  "local v = x for _ = 1, 60 do v = g.Relu(v) end\n" \
  "g.output('y', g.Exp(v)) g.output('z', g.Sin(g.Cos(x)))\n"

UNIT_TEST(alternatives_that_overlap_are_not_combined) {
  const char *choice = "local c = oneof { op 'Relu', op { { 'Relu', 'Cos' } }, op { { 'Relu', 'Sin' } } }";
  ck_assert_uint_eq(count(ROW, choice, "pattern = repeated(c, 1, 50) >> op 'Sin'"), 1);
  ck_assert_uint_eq(count(ROW, choice, "pattern = repeated(c, 40, 50) >> op 'Sin'"), 0);
  ck_assert_uint_eq(count(ROW, choice, "pattern = repeated(c, 40, 50) >> op 'Exp'"), 1);
  const char *many =
      "local p = op 'Relu' for _ = 1, 30 do\n"
      "  p = p >> oneof { op 'Relu', op { { 'Relu', 'Cos' } } } end\n";
  ck_assert_uint_eq(count(ROW, many, "pattern = p >> op 'Sin'"), 0);
  ck_assert_uint_eq(count(ROW, many, "pattern = p >> op 'Exp'"), 1);
}

UNIT_TEST(parts_that_may_be_missing_are_not_combined) {
  const char *row = "local p = op 'Relu' for _ = 1, 40 do p = p >> maybe(op 'Relu') end\n";
  ck_assert_uint_eq(count(ROW, row, "pattern = p >> op 'Sin'"), 0);
  ck_assert_uint_eq(count(ROW, row, "pattern = p >> op 'Exp'"), 1);
  const char *nested = "local p = op 'Relu' for _ = 1, 30 do p = op 'Relu' >> maybe(p) end\n";
  ck_assert_uint_eq(count(ROW, nested, "pattern = p >> op 'Sin'"), 0);
  const char *twice = "local p = repeated(repeated('Relu', 1, 6), 1, 10)\n";
  ck_assert_uint_eq(count(ROW, twice, "pattern = p >> op 'Sin'"), 0);
  ck_assert_uint_eq(count(ROW, twice, "pattern = p >> op 'Exp'"), 1);
}

UNIT_TEST(the_same_holds_for_what_is_matched_backwards) {
  const char *model =
      "local x = g.input('x', 'float32', { 4 })\n"
      "local v = g.Exp(x) for _ = 1, 60 do v = g.Relu(v) end\n"
      "g.output('y', g.Mul(v, x)) g.output('z', g.Sin(g.Cos(x)))\n";
  const char *row = "local p = op 'Cos' for _ = 1, 40 do p = p >> maybe(op 'Relu') end\n";
  ck_assert_uint_eq(count(model, row, "pattern = op { 'Mul', inputs = { p, any() } }"), 0);
  const char *other = "local p = op 'Exp' for _ = 1, 70 do p = p >> maybe(op 'Relu') end\n";
  ck_assert_uint_eq(count(model, other, "pattern = op { 'Mul', inputs = { p, any() } }"), 1);
  const char *twice = "local p = op 'Cos' >> repeated(repeated('Relu', 1, 6), 1, 10)\n";
  ck_assert_uint_eq(count(model, twice, "pattern = op { 'Mul', inputs = { any(), p } }"), 0);
}

/* Choices of choices: as many ways as 2 to the power of 50, all the same. */
UNIT_TEST(a_pattern_that_is_its_own_alternative_many_times_costs_little) {
  const char *before =
      "local p = op 'Relu' for _ = 1, 50 do p = oneof { p, p } end\n"
      "local q = op 'Cos' for _ = 1, 50 do q = oneof { q, q } end\n";
  ck_assert_uint_eq(count(ROW, before, "pattern = p"), 60);
  ck_assert_uint_eq(count(ROW, before, "pattern = q >> op 'Exp'"), 0);
  ck_assert_uint_eq(count(ROW, before, "pattern = op { 'Exp', inputs = { q } }"), 0);
  ck_assert_uint_eq(count(ROW, before, "pattern = op { 'Exp', inputs = { p } }"), 1);
}

UNIT_SUITE("fuse limits")
