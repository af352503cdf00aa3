// SPDX-License-Identifier: Apache-2.0
// The words of patterns at work, from Lua: what each matches, and what it does not.

#include "fuse_case.h"
#include "plan_case.h"
#include "unit.h"

#define expect(model, before, fields, wanted) \
  ck_assert_str_eq(fuse_case_fusions(model, before, fields), wanted)

// ---- sizes ----

#define PRODUCTS                                                              \
  "local x = g.input('x', 'float32', { 'B', 8, 48 })\n"                       \
  "local a = g.MatMul(x, g.weight { 48, 96, name = 'wa' }, { name = 'a' })\n" \
  "local b = g.MatMul(a, g.weight { 96, 32, name = 'wb' }, { name = 'b' })\n" \
  "local c = g.MatMul(b, g.weight { 32, 40, name = 'wc' }, { name = 'c' })\n" \
  "g.output('y', c)\n"

UNIT_TEST(a_condition_over_sizes_is_data) {
  const char *one = "pattern = op { 'MatMul', shape = { '?', '?', 'C' }, where = 'C % 16 == 0' }";
  expect(PRODUCTS, "", one, "[a] [b]");
  expect(PRODUCTS, "", "pattern = op { 'MatMul', shape = { 'N', 'T', 'C' } }, where = 'C % 16 == 0'",
         "[a] [b]");
  expect(PRODUCTS, "", "pattern = op { 'MatMul', shape = { 'N', 'T', 'C' } }, where = 'C > 90 or C < 40'",
         "[a] [b]");
  expect(PRODUCTS, "",
         "pattern = op { 'MatMul', shape = { 'N', 'T', 'C' } }, where = 'not (C % 16 == 0) and T == 8'",
         "[c]");
  // The batch has a name in the model: what it is cannot be known.
  expect(PRODUCTS, "", "pattern = op { 'MatMul', shape = { 'N', 'T', 'C' } }, where = 'N == 1'", "");
  expect(PRODUCTS, "", "pattern = op { 'MatMul', shape = { 'N', 'T', 'C' } }, where = 'N == N'",
         "[a] [b] [c]");
}

UNIT_TEST(a_dimension_may_be_arithmetic_over_other_sizes) {
  const char *double_width =
      "pattern = op { 'MatMul', as = 'm', shape = { 'N', 'T', '2*C' }, inputs = { A = any { shape = { 'N', "
      "'T', 'C' } } } }";
  expect(PRODUCTS, "", double_width, "[a]");
  const char *third =
      "pattern = op { 'MatMul', shape = { 'N', 'T', 'C/3' }, inputs = { A = any { shape = { 'N', 'T', 'C' } "
      "} } }";
  expect(PRODUCTS, "", third, "[b]");
  const char *eight_more =
      "pattern = op { 'MatMul', shape = { 'N', 'T', 'C + T' }, inputs = { A = any { shape = { 'N', 'T', 'C' "
      "} } } }";
  expect(PRODUCTS, "", eight_more, "[c]");
  const char *none =
      "pattern = op { 'MatMul', shape = { 'N', 'T', 'C/7' }, inputs = { A = any { shape = { 'N', 'T', 'C' } "
      "} } }";
  expect(PRODUCTS, "", none, "");
}

UNIT_TEST(a_symbolic_size_is_what_the_model_calls_it_everywhere) {
  const char *model =
      "local x = g.input('x', 'float32', { 'T', 4 })\n"
      "local y = g.input('y', 'float32', { 'U', 4 })\n"
      "local a = g.Relu(g.Concat(x, x, { axis = 0, name = 'a' }), { name = 'ra' })\n"
      "local b = g.Relu(g.Concat(x, y, { axis = 0, name = 'b' }), { name = 'rb' })\n"
      "g.output('p', a) g.output('q', b)\n";
  expect(
      model, "",
      "pattern = op { 'Concat', shape = { '2*N', 4 }, inputs = { any { as = 'x', shape = { 'N', 4 } } } } >> "
      "op 'Relu'",
      "[a ra]");
}

UNIT_TEST(mistakes_in_conditions_name_the_place) {
  ck_assert_str_eq(fuse_case_mistake("", "pattern = op { 'MatMul', shape = { 'C' }, where = 'C %' }"),
                   "r.lua:1: fuse 'f': op: where: 'C %': column 4: expected a size, found the end");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = op { 'MatMul', shape = { '2*' } }"),
                   "r.lua:1: fuse 'f': op: shape: '2*': column 3: expected a size, found the end");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = op { 'MatMul', shape = { 'C' } }, where = 'C + 1'"),
                   "r.lua:1: fuse 'f': where: 'C + 1': column 1: expected a condition, found a size");
  ck_assert_str_eq(
      fuse_case_mistake("", "pattern = op { 'MatMul', shape = { 'Channels' } }, where = 'Chanels == 1'"),
      "r.lua:1: fuse 'f': 'Chanels == 1': no shape of the pattern has a dimension 'Chanels' (did you mean "
      "'Channels'?)");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = op 'Relu', where = 3"),
                   "r.lua:1: fuse 'f': where: expected a function or a condition as a string, found 3");
}

UNIT_TEST(mistakes_name_the_kind_of_rule) {
  ck_assert_str_eq(
      fuse_case_mistake("",
                        "pattern = 'Relu' }, rewrite 'w' { pattern = maybe 'Relu', replace = function() end"),
      "r.lua:1: rewrite 'w': pattern must begin with an operator");
}

UNIT_TEST(one_label_on_parts_that_cannot_be_one_is_a_mistake) {
  static const char *const CLASHES[] = {
      "pattern = op { 'Conv', as = 'a' } >> op { 'Relu', as = 'a' }",
      "pattern = op { 'Conv', as = 'a' } >> 'Relu' >> op { 'Conv', as = 'a' }",
      "pattern = op { 'Conv', as = 'a', inputs = { w = constant 'a' } }",
      "pattern = op { 'Add', inputs = { op { 'Exp', as = 'a' }, op { 'Sin', as = 'a' } } }",
      "pattern = op { 'Add', as = 'a', inputs = { oneof { op 'Exp', op { 'Add', as = 'a' } } } }",
      "pattern = group { op { 'Exp', as = 'a', inputs = { any 'z' } }, op { 'Sin', as = 'a', inputs = { any "
      "'z' } } }"};
  static const char *const FINE[] = {
      "pattern = op { 'Conv', as = 'a' } >> op 'Sigmoid' >> op { 'Mul', inputs = { any 'a' } }",
      "pattern = op 'Conv' >> oneof { op { 'Relu', as = 'a' }, op { 'Clip', as = 'a' } }",
      "pattern = op { 'Add', inputs = { op { 'Exp', as = 'a' }, op { 'Sin', inputs = { op { 'Exp', as = 'a' "
      "} "
      "} } } }",
      "pattern = group { op { 'Exp', inputs = { any 'z' } }, op { 'Sin', inputs = { any 'z' } } }",
      "pattern = op { 'Add', inputs = { any 'a' } } >> op { 'Mul', inputs = { any 'a' } }"};
  for (size_t k = 0; k < sizeof CLASHES / sizeof CLASHES[0]; k++) {
    const char *message = fuse_case_mistake("", CLASHES[k]);
    ck_assert_msg(strstr(message, "label 'a' is on two parts that cannot be the same") != NULL, "%s: %s",
                  CLASHES[k], message);
  }
  for (size_t k = 0; k < sizeof FINE / sizeof FINE[0]; k++) {
    // It loads: nothing in the model matches.
    ck_assert_str_eq(fuse_case_fusions("g.output('y', g.Tanh(g.input('x', 'float32', { 4 })))", "", FINE[k]),
                     "");
  }
}

// ---- outputs ----

#define SPLIT                                                                     \
  "local x = g.input('x', 'float32', { 4, 6 })\n"                                 \
  "local a, b = g.Split(x, nil, { axis = 1, num_outputs = 2, name = 'split' })\n" \
  "local p = g.Mul(g.Sigmoid(a, { name = 's' }), b, { name = 'm' })\n"            \
  "g.output('y', p)\n"

UNIT_TEST(parts_of_a_pattern_read_different_outputs_of_one_node) {
  const char *split = "local split = op { 'Split', as = 'split' }";
  const char *glu =
      "pattern = op { 'Mul', inputs = { op { 'Sigmoid', inputs = { output(split, 1) } }, output(split, 2) } "
      "}";
  expect(SPLIT, split, glu, "[split s m]");
  const char *swapped =
      "pattern = op { 'Mul', inputs = { op { 'Sigmoid', inputs = { output(split, 2) } }, output(split, 1) } "
      "}";
  expect(SPLIT, split, swapped, "");
  const char *forward =
      "pattern = output(split, 1) >> op 'Sigmoid' >> op { 'Mul', inputs = { output(split, 2) } }";
  expect(SPLIT, split, forward, "[split s m]");
  const char *named =
      "pattern = output { split, 1, as = 'gate', shape = { '?', 3 } } >> op 'Sigmoid' >> op { 'Mul', inputs "
      "= { output(split, 2) } }, where = function(m) return m.gate.shape[2] == 3 and m.split.op == 'Split' "
      "end";
  expect(SPLIT, split, named, "[split s m]");
  const char *wrong_size = "pattern = output { split, 1, shape = { '?', 4 } } >> op 'Sigmoid'";
  expect(SPLIT, split, wrong_size, "");
}

UNIT_TEST(an_output_that_leaves_may_be_what_the_pattern_ends_in) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 6 })\n"
      "local v, i = g.TopK(x, g.constant({ 2 }, 'int64'), { name = 'topk' })\n"
      "g.output('c', g.Cast(i, { to = 1, name = 'cast' }))\n";
  expect(model, "", "pattern = output('TopK', 'Indices') >> op 'Cast'", "[topk cast]");
  expect(model, "", "pattern = output('TopK', 'Values') >> op 'Cast'", "");
  expect(model, "", "pattern = op { 'TopK', output = 'Indices' } >> op 'Cast'", "[topk cast]");
  const char *both =
      "local x = g.input('x', 'float32', { 4, 6 })\n"
      "local v, i = g.TopK(x, g.constant({ 2 }, 'int64'), { name = 'topk' })\n"
      "g.output('v', v) g.output('c', g.Cast(i, { to = 1, name = 'cast' }))\n";
  expect(both, "", "pattern = output('TopK', 'Indices') >> op 'Cast'", "");
  expect(both, "local t = op 'TopK'", "pattern = group { output(t, 1), output(t, 2) >> op 'Cast' }",
         "[topk cast]");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = output('TopK', 'Indixes')"),
                   "r.lua:1: fuse 'f': operator 'TopK' has no output 'Indixes' (did you mean 'Indices'?)");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = output(maybe 'TopK', 1)"),
                   "r.lua:1: fuse 'f': output: expected an operator, found a maybe");
}

// ---- inputs ----

#define CONCAT(relus)                                                              \
  "local x = g.input('x', 'float32', { 4, 6 })\n"                                  \
  "local a, b, c = g.Relu(x, { name = 'a' }), g.Relu(x, { name = 'b' }), g." relus \
  "(x, { name = 'c' })\n"                                                          \
  "g.output('y', g.Concat(a, b, c, { axis = 0, name = 'k' }))\n"

UNIT_TEST(every_input_of_a_variadic_operator_matches) {
  const char *every = "pattern = op { 'Concat', inputs = variadic('Relu') }";
  expect(CONCAT("Relu"), "", every, "[a b c k]");
  expect(CONCAT("Exp"), "", every, "");
  expect(CONCAT("Exp"), "", "pattern = op { 'Concat', inputs = variadic(any()) }", "[k]");
  expect(CONCAT("Exp"), "", "pattern = op { 'Concat', inputs = variadic(op { { 'Relu', 'Exp' } }) }",
         "[a b c k]");
  expect(CONCAT("Exp"), "", "pattern = op { 'Concat', inputs = { [3] = op 'Exp', variadic 'Relu' } }",
         "[a b c k]");
  expect(CONCAT("Exp"), "", "pattern = op { 'Concat', inputs = { op 'Exp', variadic 'Relu' } }", "");
  expect(CONCAT("Relu"), "",
         "pattern = op { 'Concat', inputs = { inputs = variadic { 'Relu', min = 3, max = 3 } } }",
         "[a b c k]");
  expect(CONCAT("Relu"), "", "pattern = op { 'Concat', inputs = variadic { 'Relu', min = 4 } }", "");
  expect(CONCAT("Relu"), "", "pattern = op { 'Concat', inputs = variadic('Relu', 1, 2) }", "");
  // Each on its own: the same table is another node every time.
  expect(CONCAT("Relu"), "local x = any 'x'",
         "pattern = op { 'Concat', inputs = variadic(op { 'Relu', as = 'r', inputs = { x } }) }",
         "[a b c k]");
}

/* The operator is reached from what reads it: one input is for what stands before it. */
UNIT_TEST(a_variadic_operator_inside_a_sequence_leaves_an_input) {
#define JOINED(first, second, third)                                                             \
  "local x = g.input('x', 'float32', { 4, 6 })\n"                                                \
  "local k = g.Concat(g." first "(x, { name = 'a' }), g." second "(x, { name = 'b' }), g." third \
  "(x, { name = 'c' }), { axis = 0, name = 'k' })\n"                                             \
  "g.output('y', g.Mul(k, g.input('s', 'float32', { 12, 6 }), { name = 'm' }))\n"
#define READ_BY(sequence) "pattern = op { 'Mul', inputs = { " sequence " } }"
  const char *relus = READ_BY("op 'Exp' >> op { 'Concat', inputs = variadic 'Relu' }");
  expect(JOINED("Exp", "Relu", "Relu"), "", relus, "[a b c k m]");
  expect(JOINED("Relu", "Exp", "Relu"), "", relus, "[a b c k m]");
  expect(JOINED("Relu", "Relu", "Exp"), "", relus, "[a b c k m]");
  expect(JOINED("Relu", "Relu", "Relu"), "", relus, "");
  expect(JOINED("Exp", "Exp", "Relu"), "", relus, "");
  expect(JOINED("Exp", "Relu", "Sin"), "", relus, "");
  // What stands before may be one of the kind that all are.
  const char *any_of_them = READ_BY("op 'Relu' >> op { 'Concat', inputs = variadic('Relu', 2, 2) }");
  expect(JOINED("Relu", "Relu", "Relu"), "", any_of_them, "[a b c k m]");
  expect(JOINED("Relu", "Relu", "Exp"), "", any_of_them, "");
  // What may be missing leaves all inputs to the rest where it is, and otherwise one less.
  const char *maybe = READ_BY("maybe(op 'Exp') >> op { 'Concat', inputs = variadic('Relu', 2) }");
  expect(JOINED("Relu", "Relu", "Relu"), "", maybe, "[a b c k m]");
  expect(JOINED("Exp", "Relu", "Relu"), "", maybe, "[a b c k m]");
  expect(JOINED("Exp", "Exp", "Relu"), "", maybe, "");
  // A value that stands before, and an input of its own beside them.
  expect(JOINED("Relu", "Sin", "Relu"), "",
         READ_BY("any 'v' >> op { 'Concat', as = 'k', inputs = variadic 'Relu' }"), "[a c k m]");
  expect(JOINED("Relu", "Sin", "Exp"), "",
         READ_BY("op 'Exp' >> op { 'Concat', inputs = { op 'Relu', variadic 'Sin' } }"), "[a b c k m]");
  expect(JOINED("Relu", "Sin", "Exp"), "", "pattern = op { 'Concat', inputs = variadic(any()) }", "[k]");
  // The same from the front.
  const char *front = "pattern = op 'Exp' >> op { 'Concat', inputs = variadic 'Relu' } >> op 'Mul'";
  expect(JOINED("Relu", "Exp", "Relu"), "", front, "[a b c k m]");
  expect(JOINED("Relu", "Relu", "Relu"), "", front, "");
  expect(JOINED("Relu", "Sin", "Relu"), "",
         "pattern = any 'v' >> op { 'Concat', as = 'k', inputs = variadic 'Relu' } >> op 'Mul'", "[a c k m]");
#undef READ_BY
#undef JOINED
}

UNIT_TEST(inputs_of_sums_are_given_by_place_or_all_alike) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 6 })\n"
      "local a, b, c = g.Exp(x, { name = 'a' }), g.Relu(x, { name = 'b' }), g.Exp(x, { name = 'c' })\n"
      "g.output('y', g.Sum(a, b, c, { name = 's' }))\n";
  expect(model, "", "pattern = op { 'Sum', inputs = { op 'Exp', op 'Exp', op 'Relu' } }", "[a b c s]");
  expect(model, "", "pattern = op { 'Sum', inputs = { op 'Relu', variadic 'Exp' } }", "[a b c s]");
  expect(model, "", "pattern = op { 'Sum', inputs = { op 'Relu', op 'Relu' } }", "");
}

#define CONVS                                                                      \
  "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"                            \
  "local w, b = g.weight { 3, 3, 1, 1, name = 'w' }, g.weight { 3, name = 'b' }\n" \
  "local p = g.Conv(x, w, { name = 'p' })\n"                                       \
  "local q = g.Conv(p, w, b, { name = 'q' })\n"                                    \
  "g.output('y', q)\n"

UNIT_TEST(optional_inputs_are_asked_for_as_present_or_absent) {
  expect(CONVS, "", "pattern = op { 'Conv', inputs = { B = absent } }", "[p]");
  expect(CONVS, "", "pattern = op { 'Conv', inputs = { B = present } }", "[q]");
  expect(CONVS, "", "pattern = op { 'Conv', inputs = { B = any 'b' } }", "[q]");
  expect(CONVS, "", "pattern = op { 'Conv', inputs = { B = oneof { absent, constant { scalar = true } } } }",
         "[p]");
  expect(CONVS, "", "pattern = op { 'Conv', inputs = { B = oneof { constant 'b', absent } } }", "[p] [q]");
}

// ---- sequences ----

UNIT_TEST(a_sequence_may_begin_with_what_may_be_missing) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 8 })\n"
      "local a = g.Exp(g.Neg(x, { name = 'n' }), { name = 'e' })\n"
      "local b = g.Exp(g.Sin(a, { name = 's' }), { name = 'f' })\n"
      "g.output('y', b)\n";
  expect(model, "", "pattern = maybe(op 'Neg') >> op 'Exp'", "[n e] [f]");
  expect(model, "", "pattern = repeated('Neg', 0, 2) >> op 'Exp' >> maybe(op 'Sin')", "[n e s] [f]");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = maybe(op 'Neg') >> maybe(op 'Exp')"),
                   "r.lua:1: fuse 'f': pattern must begin with an operator");
}

UNIT_TEST(repetitions_are_spelled_both_ways) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 8 })\n"
      "local v = x\n"
      "for k = 1, 5 do v = g.Relu(v, { name = 'r' .. k }) end\n"
      "g.output('y', g.Exp(v, { name = 'e' }))\n";
  expect(model, "", "pattern = repeated('Relu', 2, 3) >> op 'Exp'", "[r3 r4 r5 e]");
  expect(model, "", "pattern = repeated { 'Relu', min = 2, max = 3 } >> op 'Exp'", "[r3 r4 r5 e]");
  expect(model, "", "pattern = repeated('Relu', 6) >> op 'Exp'", "");
  expect(model, "", "pattern = op 'Relu' >> repeated('Sin', 0, 3) >> op 'Exp'", "[r5 e]");
  ck_assert_str_eq(fuse_case_mistake("", "pattern = repeated('Relu', 3, 2)"),
                   "r.lua:1: fuse 'f': repeated: 3 to 2 times, expected 0 <= min <= max, 1 <= max <= 4096");
}

// ---- constants ----

UNIT_TEST(constants_are_tested_on_all_their_elements) {
  const char *model =
      "local x = g.input('x', 'float32', { 4, 3 })\n"
      "local a = g.Mul(x, g.constant({ 0.229, 0.224, 0.225 }, 'float32'), { name = 'a' })\n"
      "local b = g.Add(a, g.constant({ 1e-5 }, 'float32'), { name = 'b' })\n"
      "g.output('y', g.Sub(b, g.constant({ 2, 4, 2 }, 'float32'), { name = 'c' }))\n";
  const char *list = "pattern = op { 'Mul', inputs = { constant { value = { 0.229, 0.224, 0.225 } } } }";
  expect(model, "", list, "[a]");
  expect(model, "", "pattern = op { 'Mul', inputs = { constant { value = { 0.229, 0.224, 0.226 } } } }", "");
  expect(
      model, "",
      "pattern = op { 'Mul', inputs = { constant { value = { 0.229, 0.224, 0.226 }, tolerance = 0.002 } } }",
      "[a]");
  expect(model, "", "pattern = op { 'Mul', inputs = { constant { value = { 0.229, 0.224 } } } }", "");
  expect(model, "",
         "pattern = op { 'Add', inputs = { constant { scalar = true, value = range { min = 0, max = 1e-3 } } "
         "} }",
         "[b]");
  expect(model, "", "pattern = op { 'Add', inputs = { constant { value = range { min = 1e-4 } } } }", "");
  expect(model, "", "pattern = op { 'Sub', inputs = { B = constant { value = one_of { 2, 4 } } } }", "[c]");
  expect(model, "", "pattern = op { 'Sub', inputs = { B = constant { value = one_of { 2, 3 } } } }", "");
  expect(model, "", "pattern = op { 'Sub', inputs = { B = constant { value = 2 } } }", "");
  expect(model, "", "pattern = op { 'Sub', inputs = { B = constant { shape = { 'C' }, where = 'C == 3' } } }",
         "[c]");
  ck_assert_str_eq(
      fuse_case_mistake("", "pattern = op { 'Mul', inputs = { constant { value = {} } } }"),
      "r.lua:1: fuse 'f': constant: value: expected a number, a list of numbers, a range or one_of");
}

// ---- attributes that are left to their defaults ----

#define TWO_CONVS                                                                                         \
  "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"                                                   \
  "local a = g.Conv(x, g.weight { 3, 3, 3, 3 }, { name = 'left' })\n"                                     \
  "local b = g.Conv(a, g.weight { 3, 3, 3, 3 }, { name = 'written', strides = { 1, 1 },\n"                \
  "  dilations = { 1, 1 }, pads = { 0, 0, 0, 0 }, kernel_shape = { 3, 3 }, group = 1 })\n"                \
  "local c = g.Conv(b, g.weight { 3, 3, 1, 1 }, { name = 'other', strides = { 2, 2 }, pads = { 1, 1, 1, " \
  "1 }, dilations = { 2, 2 } })\n"                                                                        \
  "g.output('y', c)\n"

UNIT_TEST(an_attribute_matches_whether_it_is_written_or_left_to_its_default) {
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = { 1, 1 } } }", "[left] [written]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { dilations = { 1, 1 } } }", "[left] [written]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { pads = { 0, 0, 0, 0 } } }", "[left] [written]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { kernel_shape = { 3, 3 } } }", "[left] [written]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { kernel_shape = { 1, 1 } } }", "[other]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = { 2, 2 } } }", "[other]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = { 1 } } }", "");
}

UNIT_TEST(functions_see_what_patterns_match) {
  const char *where =
      "pattern = op { 'Conv', as = 'c' }, where = function(m) local a = m.c.attrs return a.strides[2] == 1 "
      "and a.dilations[1] == 1 and #a.pads == 4 and a.pads[3] == 0 and m.c:attr('kernel_shape')[1] == 3 end";
  expect(TWO_CONVS, "", where, "[left] [written]");
}

UNIT_TEST(absent_is_an_attribute_that_is_not_written_whatever_its_default) {
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = absent } }", "[left]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { group = absent } }", "[left] [other]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = one_of { absent, { 2, 2 } } } }",
         "[left] [other]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { strides = oneof { { 1, 1 }, absent } } }",
         "[left] [written]");
  expect(TWO_CONVS, "", "pattern = op { 'Conv', attrs = { group = one_of { absent } } }", "[left] [other]");
  ck_assert_str_eq(
      fuse_case_mistake("", "pattern = op { 'Conv', attrs = { strides = one_of { present, { 1, 1 } } } }"),
      "r.lua:1: fuse 'f': attribute 'strides': expected a value of kind list of integers, found a test for "
      "presence");
}

UNIT_SUITE("script patterns")
