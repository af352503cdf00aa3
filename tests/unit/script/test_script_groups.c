// SPDX-License-Identifier: Apache-2.0
// Patterns from Lua that are no chain: groups, and parts that are reached on several ways.

#include "fuse_case.h"
#include "plan_case.h"
#include "unit.h"

#define expect(model, before, fields, wanted) \
  ck_assert_str_eq(fuse_case_fusions(model, before, fields), wanted)

#define ATTENTION                                                \
  "local x = g.input('x', 'float32', { 1, 4, 8 })\n"             \
  "local function w(n) return g.weight { 8, 8, name = n } end\n" \
  "local q = g.MatMul(x, w 'wq', { name = 'q' })\n"              \
  "local k = g.MatMul(x, w 'wk', { name = 'k' })\n"              \
  "local v = g.MatMul(x, w 'wv', { name = 'v' })\n"              \
  "local r = g.Add(v, g.weight { 8, name = 'bias' }, { name = 'r' })\n"

UNIT_TEST(a_group_is_what_hangs_on_one_value) {
  const char *model = ATTENTION "g.output('q', q) g.output('k', k) g.output('r', r)";
  const char *mm =
      "local x = any 'x' local function mm(n) return op { 'MatMul', as = n, inputs = { A = x, B = constant() "
      "} } end";
  expect(model, mm, "pattern = group { mm 'a', mm 'b', mm 'c' }", "[q k v]");
  expect(model, mm, "pattern = group { mm 'a', mm 'b', mm 'c' >> op 'Add' }", "[q k v r]");
  expect(model, mm, "pattern = group { mm 'a', mm 'b', mm 'c', mm 'd' }", "");
  expect(model, mm, "pattern = group { mm 'a', mm 'b' }", "[q k]");
  // By name, and with the value at the head of a sequence.
  expect(model, "", "pattern = group { any 'x' >> op 'MatMul', any 'x' >> op 'MatMul' >> op 'Add' }",
         "[q v r]");
  expect(model, "", "pattern = oneof { group { any 'x' >> op 'MatMul', any 'x' >> op 'Exp' }, op 'Add' }",
         "[r]");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = group { op 'MatMul', op 'MatMul' }"),
                   "r.lua:1: fuse 'f': part 2 of the group has no value in common with those before it");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = group { op 'MatMul' }"),
                   "r.lua:1: group: expected two patterns or more, found 1");
}

UNIT_TEST(members_of_a_group_may_meet_far_from_where_they_begin) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 8 })\n"
      "local c = g.Conv and g.Exp(x, { name = 'c' })\n"
      "local a = g.Relu(g.Sin(c, { name = 's' }), { name = 'a' })\n"
      "local t = g.Transpose(g.input('z', 'float32', { 8, 8 }), { name = 't' })\n"
      "local b = g.MatMul(c, t, { name = 'b' })\n"
      "g.output('p', a) g.output('q', b)\n";
  const char *c = "local c = op { 'Exp', as = 'c' }";
  expect(model, c, "pattern = group { c >> op 'Sin' >> op 'Relu', c >> op 'MatMul' }", "[c s a b]");
  expect(
      model, c,
      "pattern = group { c >> op 'Sin' >> op 'Relu', op 'Transpose' >> op { 'MatMul', inputs = { A = c } } }",
      "[c s a t b]");
  expect(model, c,
         "pattern = group { c >> op 'MatMul', op { 'Relu', inputs = { op { 'Sin', inputs = { c } } } } }",
         "[c s a b]");
  expect(model, c, "pattern = group { c >> op 'Sin' >> op 'Exp', c >> op 'MatMul' }", "");
}

UNIT_TEST(what_a_group_ends_in_may_be_read_by_others) {
  const char *model = ATTENTION
      "g.output('q', q) g.output('q2', g.Relu(q, { name = 'q2' })) g.output('k', k) g.output('r', r)\n"
      "g.output('v', v)";
  const char *mm =
      "local x = any 'x' local function mm(n) return op { 'MatMul', as = n, inputs = { A = x, B = constant() "
      "} } end";
  expect(model, mm, "pattern = group { mm 'a', mm 'b', mm 'c' }", "[q k v]");
  expect(model, mm, "pattern = group { mm 'a', mm 'b', mm 'c' >> op 'Add' }", "");
}

// ---- parts used twice ----

UNIT_TEST(a_sequence_that_two_inputs_reach_is_one_sequence) {
  const char *with =
      "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"
      "local c = g.Conv(x, g.weight { 3, 3, 1, 1 }, { name = 'c' })\n"
      "local n = g.Exp(c, { name = 'n' })\n"
      "g.output('y', g.Mul(n, g.Sigmoid(n, { name = 's' }), { name = 'm' }))\n";
  const char *without =
      "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"
      "local c = g.Conv(x, g.weight { 3, 3, 1, 1 }, { name = 'c' })\n"
      "g.output('y', g.Mul(c, g.Sigmoid(c, { name = 's' }), { name = 'm' }))\n";
  const char *mixed =
      "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"
      "local c = g.Conv(x, g.weight { 3, 3, 1, 1 }, { name = 'c' })\n"
      "local n = g.Exp(c, { name = 'n' })\n"
      "g.output('y', g.Mul(c, g.Sigmoid(n, { name = 's' }), { name = 'm' }))\n";
  const char *base = "local base = op { 'Conv', as = 'c' } >> maybe(op 'Exp')";
  const char *backward = "pattern = op { 'Mul', inputs = { base, op { 'Sigmoid', inputs = { base } } } }";
  expect(with, base, backward, "[c n s m]");
  expect(without, base, backward, "[c s m]");
  expect(mixed, base, backward, "");
  // The same parts in two sequences, one matched forwards.
  const char *parts = "local c, n = op { 'Conv', as = 'c' }, maybe(op 'Exp')";
  const char *forward =
      "pattern = c >> n >> op { 'Mul', inputs = { op { 'Sigmoid', inputs = { c >> n } } } }";
  expect(with, parts, forward, "[c n s m]");
  expect(without, parts, forward, "[c s m]");
  expect(mixed, parts, forward, "");
  const char *rows = "local base = op { 'Conv', as = 'c' } >> repeated('Exp', 0, 3)";
  expect(with, rows, backward, "[c n s m]");
  expect(without, rows, backward, "[c s m]");
  expect(mixed, rows, backward, "");
  expect(with, rows,
         "pattern = base >> function(x) return op { 'Mul', inputs = { x, op { 'Sigmoid', inputs = { x } } } "
         "} end",
         "[c n s m]");
}

UNIT_TEST(a_choice_that_members_of_a_group_share_is_made_once) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 8 })\n"
      "local c = g.Neg(x, { name = 'c' })\n"
      "local n = g.Exp(c, { name = 'n' })\n"
      "g.output('p', g.Sin(n, { name = 's' })) g.output('q', g.Cos(n, { name = 'o' }))\n";
  const char *before = "local base = op { 'Neg', as = 'c' } >> maybe(op 'Exp')";
  expect(model, before, "pattern = group { base >> op 'Sin', base >> op 'Cos' }", "[c n s o]");
  const char *split =
      "local x = g.input('x', 'float32', { 4, 8 })\n"
      "local c = g.Neg(x, { name = 'c' })\n"
      "local n = g.Exp(c, { name = 'n' })\n"
      "g.output('p', g.Sin(n, { name = 's' })) g.output('q', g.Cos(c, { name = 'o' }))\n";
  expect(split, before, "pattern = group { base >> op 'Sin', base >> op 'Cos' }", "");
}

// ---- who wins ----

#define PROJECTION \
  "local x = any 'x' local function mm(n) return op { 'MatMul', as = n, inputs = { A = x } } end\n"

UNIT_TEST(of_overlapping_matches_the_losers_are_on_record) {
  const char *model = ATTENTION "g.output('q', q) g.output('k', k) g.output('r', r)";
  const char *rules =
      "fuse 'wide' { pattern = group { mm 'a', mm 'b', mm 'c' }, priority = 1 },\n"
      "fuse 'long' { pattern = op 'MatMul' >> op 'Add' }, fuse 'single' { pattern = op 'MatMul' }";
  const cleave_plan_t *plan = fuse_case_plan(model, PROJECTION, rules);
  ck_assert_uint_eq(plan->fusion_count, 1);
  ck_assert_uint_eq(plan->fusions[0].node_count, 3);
  ck_assert_uint_eq(plan->rules[0].tries, 3);
  ck_assert_uint_eq(plan->rules[0].structural_hits, 3);
  ck_assert_uint_eq(plan->rules[0].matches, 1);
  ck_assert_str_eq(
      plan_case_notes(plan, CLEAVE_PLAN_NOTE_TAKEN),
      "q: taken by fuse 'wide' at 'q'\nq: taken by fuse 'wide' at 'q'\nv: taken by fuse 'wide' at "
      "'q'\nq: taken by fuse 'wide' at 'q'\nk: taken by fuse 'wide' at 'q'\nv: taken by fuse "
      "'wide' at 'q'\n");
  // Without a priority the first rule of the file goes first.
  const char *other =
      "fuse 'long' { pattern = op 'MatMul' >> op 'Add' },\n"
      "fuse 'wide' { pattern = group { mm 'a', mm 'b', mm 'c' } }";
  plan = fuse_case_plan(model, PROJECTION, other);
  ck_assert_uint_eq(plan->fusion_count, 1);
  ck_assert_uint_eq(plan->fusions[0].node_count, 2);
  ck_assert_uint_eq(plan->rules[1].structural_hits, 3);
}

UNIT_TEST(counters_tell_calls_and_hits) {
  const char *model = ATTENTION "g.output('q', q) g.output('k', k) g.output('r', r)";
  const cleave_plan_t *plan = fuse_case_plan(
      model, "", "fuse 'm' { pattern = op 'MatMul', where = function(m) return m.nodes[1].name ~= 'k' end }");
  ck_assert_uint_eq(plan->rules[0].structural_hits, 3);
  ck_assert_uint_eq(plan->rules[0].lua_calls, 3);
  ck_assert_uint_eq(plan->rules[0].matches, 2);
  ck_assert_uint_eq(plan->rules[0].refused, 1);
  ck_assert_uint_gt(plan->rules[0].nanoseconds, 0);
}

UNIT_TEST(running_out_of_memory_while_matching_is_an_error) {
  const char *model = ATTENTION
      "local a, b = g.Split(x, nil, { axis = 2, num_outputs = 2 })\n"
      "g.output('q', q) g.output('k', k) g.output('r', r) g.output('s', g.Mul(a, g.Relu(b)))\n"
      "g.output('c', g.Concat(g.Exp(a), g.Exp(b), { axis = 0 }))";
  const char *rules =
      "fuse 'wide' { pattern = group { mm 'a', mm 'b', mm 'c' >> op 'Add' }, priority = 1 },\n"
      "fuse 'cat' { pattern = op { 'Concat', shape = { '2*N', '?', 'C' },\n"
      "  inputs = variadic(op { 'Exp', shape = { 'N', 'T', 'C' }, where = 'C == 4' }) } },\n"
      "fuse 'mul' { pattern = output(s, 2) >> op 'Relu' >> op { 'Mul', inputs = { output(s, 1) } } }";
  uint32_t failures = fuse_case_starve(model, PROJECTION "local s = op 'Split' ", rules);
  ck_assert_uint_gt(failures, 50);
}

UNIT_SUITE("script groups")
