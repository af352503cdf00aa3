// SPDX-License-Identifier: Apache-2.0
// What happens to a grown set before it is a region: thresholds, review that refuses, trims and attaches, and
// the attributes on their way into the plan.
#include "partition/grow/partition.h"
#include "rule_case.h"
#include "unit.h"

/* x -> a -> b -> c -> d -> e, 4 KiB each, and a second input of d from b. */
#define ROW                                         \
  "local x = g.input('x', 'float32', { 32, 32 })\n" \
  "local a = g.Relu(x, { name = 'a' })\n"           \
  "local b = g.Sin(a, { name = 'b' })\n"            \
  "local c = g.Cos(b, { name = 'c' })\n"            \
  "local d = g.Add(c, b, { name = 'd' })\n"         \
  "g.output('e', g.Exp(d, { name = 'e' }))"

#define RULE(fields) "return ruleset { name = 'r', region 'g' { " fields " } }"

/* `notes`: of reviews, then of thresholds. */
static void expect(const char *rules, const char *regions, const char *notes) {
  rule_case_request_t request = {.model = ROW, .rules = {rules}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), regions);
  char found[1024];
  (void)snprintf(found, sizeof found, "%s%s", rule_case_notes(&c, CLEAVE_PLAN_NOTE_REVIEW),
                 rule_case_notes(&c, CLEAVE_PLAN_NOTE_THRESHOLD));
  ck_assert_str_eq(found, notes);
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

static void expect_failure(const char *rules, const char *message) {
  rule_case_request_t request = {.model = ROW, .rules = {rules}};
  ck_assert_str_eq(rule_case_failure(&request), message);
}

/* ---- thresholds ---- */

UNIT_TEST(thresholds_refuse_with_numbers) {
  expect(RULE("ops = { 'Relu', 'Sin' }, min_nodes = 3"), "",
         "a: a region of 2 nodes is too small: min_nodes is 3\n");
  expect(RULE("ops = { 'Relu', 'Sin' }, min_nodes = 2"), "cpu{a b}", "");
  expect(RULE("ops = { 'Relu', 'Sin' }, min_flops = 2049"), "",
         "a: too few FLOPs: 2048, min_flops is 2049\n");
  expect(RULE("ops = { 'Relu', 'Sin' }, min_flops = 2048"), "cpu{a b}", "");
  expect(RULE("ops = { 'Relu', 'Sin' }, min_bytes_saved = 4097"), "",
         "a: too few bytes saved: 4096, min_bytes_saved is 4097\n");
  expect(RULE("ops = { 'Relu', 'Sin' }, min_bytes_saved = 4096"), "cpu{a b}", "");
  /* b is read by d too, which is outside: it still crosses. */
  expect(RULE("ops = { 'Sin', 'Cos' }, min_bytes_saved = 1"), "",
         "b: too few bytes saved: 0, min_bytes_saved is 1\n");
}

UNIT_TEST(thresholds_are_options_where_the_rule_says_so) {
  rule_case_request_t request = {
      .model = ROW,
      .rules = {
          "local least = option.number(1e9, 'FLOPs')\n"
          "return ruleset { name = 'r', options = { least = least }, region 'g' { min_flops = least } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "");
  rule_case_deinit(&c);
  request.settings[0] = "least=100";
  c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{a b c d e}");
  rule_case_deinit(&c);
}

UNIT_TEST(thresholds_out_of_range_are_errors) {
  expect_failure(RULE("min_flops = -1"), "r.lua:1: region 'g': min_flops is -1, expected a number from 0");
  expect_failure(RULE("min_gain = 1/0"), "r.lua:1: region 'g': min_gain is inf, expected a number from 0");
  expect_failure(RULE("min_bytes_saved = '1'"),
                 "r.lua:1: region 'g': min_bytes_saved: expected a number, found '1'");
  expect_failure(RULE("min_flop = 1"),
                 "r.lua:1: region 'g': region has no key 'min_flop' (did you mean 'min_flops'?)");
}

/* One run on cpu costs the same in a region or outside of it, but for what the region itself costs. */
UNIT_TEST(min_gain_compares_the_backends_cost_with_cpus) {
  rule_case_request_t request = {.model = ROW, .rules = {RULE("min_gain = 0.99")}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{a b c d e}");
  rule_case_deinit(&c);
  expect(RULE("min_gain = 1.5"), "",
         "a: no gain: 11.87 us on cpu, 11.87 us on cpu, so 1 times as fast: min_gain is 1.5\n");
}

/* One kernel costs what its functions and borders cost; its nodes apart start five kernels and move values
 * between. */
UNIT_TEST(min_gain_compares_a_kernel_with_its_nodes_on_the_same_backend) {
#define KERNEL(gain)                                                                                      \
  "return ruleset { name = 'r', fuse 'f' { ops = { 'Relu', 'Sin', 'Cos', 'Add', 'Exp' }, attributes = { " \
  "kernel = true }, " gain " } }"
  expect(KERNEL("min_gain = 1.9"), "cpu{a b c d e}", "");
  expect(KERNEL("min_gain = 4"), "",
         "a: no gain: 5.863 us on cpu, 11.87 us node by node, so 2.02 times as fast: min_gain is 4\n");
#undef KERNEL
}

UNIT_TEST(costs_that_are_not_known_refuse_nothing) {
  rule_case_request_t request = {.model =
                                     "local x = g.input('x', 'float32', { 'N', 32 })\n"
                                     "g.output('y', g.Relu(x, { name = 'a' }))",
                                 .rules = {RULE("min_gain = 100")}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{a}");
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_LIMIT),
                   "a: min_gain is not checked: cpu: the size of value 'x' is not known\n");
  rule_case_deinit(&c);
}

#ifdef CLEAVE_TEST_ONEDNN
UNIT_TEST(a_region_that_only_costs_conversions_is_refused) {
  static const char SMALL[] =
      "local x = g.input('x', 'float32', { 1, 4, 4, 4 })\n"
      "g.output('y', g.MaxPool(x, { kernel_shape = { 2, 2 }, name = 'pool' }))";
  static const char LARGE[] =
      "local x = g.input('x', 'float32', { 1, 64, 56, 56 })\n"
      "x = g.Conv(x, g.weight { 64, 64, 3, 3 }, { name = 'conv' })\n"
      "g.output('y', g.Relu(x, { name = 'relu' }))";
  rule_case_request_t request = {
      .model = SMALL,
      .rules = {"return ruleset { name = 'r', backend = 'onednn', region 'g' { min_gain = 1 } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "");
  ck_assert_ptr_nonnull(strstr(rule_case_notes(&c, CLEAVE_PLAN_NOTE_THRESHOLD), "pool: no gain: "));
  rule_case_deinit(&c);
  request.model = LARGE;
  c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "onednn{conv relu}");
  rule_case_deinit(&c);
}
#endif

/* ---- review ---- */

UNIT_TEST(review_sees_the_measures_of_the_region) {
  expect(RULE("ops = { 'Sin', 'Cos', 'Add' }, review = function(sub)\n"
              "return false, ('%s on %s: %d nodes, in %g, out %g, saved %g, flops %g'):format(sub.rule, "
              "sub.backend, sub.node_count, sub.bytes_in, sub.bytes_out, sub.bytes_saved, sub.flops) end"),
         "", "b: g on cpu: 3 nodes, in 4096, out 4096, saved 8192, flops 3072\n");
}

UNIT_TEST(review_keeps_a_list_of_nodes) {
  expect(RULE("review = function(sub) local kept = {}\n"
              "for _, node in ipairs(sub.nodes) do if node.op ~= 'Cos' then kept[#kept + 1] = node end end\n"
              "return kept, 'no cosine' end"),
         "cpu{a b} cpu{d e}", "c: no cosine\n");
}

UNIT_TEST(review_that_keeps_nothing_is_told_from_one_that_returns_false) {
  expect(RULE("review = function() return {} end"), "", "a: 'review' kept none of its nodes\n");
  expect(RULE("review = function() return {}, 'none is good' end"), "", "a: none is good\n");
  expect(RULE("review = function() return false end"), "", "a: 'review' returned false\n");
}

UNIT_TEST(thresholds_are_told_from_reviews) {
  rule_case_request_t request = {.model = ROW, .rules = {RULE("min_nodes = 6")}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_REVIEW), "");
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_THRESHOLD),
                   "a: a region of 5 nodes is too small: min_nodes is 6\n");
  ck_assert_str_eq(cleave_plan_note_name(CLEAVE_PLAN_NOTE_THRESHOLD), "threshold");
  rule_case_deinit(&c);
}

UNIT_TEST(review_keeps_a_set_of_nodes) {
  expect(RULE("review = function(sub) local kept = {}\n"
              "for _, node in ipairs(sub.nodes) do kept[node] = node.op ~= 'Add' end\n"
              "return kept end"),
         "cpu{a b c} cpu{e}", "d: dropped by review\n");
}

/* The parts come back for review, and are refused or taken one by one. */
UNIT_TEST(what_review_keeps_is_reviewed_again_in_parts) {
  expect(
      RULE("review = function(sub)\n"
           "  if sub.node_count == 5 then\n"
           "    local kept = {}\n"
           "    for _, node in ipairs(sub.nodes) do if node.op ~= 'Add' then kept[#kept + 1] = node end end\n"
           "    return kept\n"
           "  end\n"
           "  return sub.node_count > 1, 'alone' end"),
      "cpu{a b c}", "d: dropped by review\ne: alone\n");
}

UNIT_TEST(thresholds_hold_for_what_review_leaves) {
  expect(RULE("min_nodes = 2, review = function(sub) local kept = {}\n"
              "for _, node in ipairs(sub.nodes) do if node.op ~= 'Add' then kept[#kept + 1] = node end end\n"
              "return kept end"),
         "cpu{a b c}", "d: dropped by review\ne: a region of 1 node is too small: min_nodes is 2\n");
}

UNIT_TEST(what_review_drops_goes_to_later_rules) {
  expect(
      "return ruleset { name = 'r',\n"
      "  region 'picky' { review = function(sub) local kept = {}\n"
      "    for _, node in ipairs(sub.nodes) do if node.op ~= 'Sin' then kept[#kept + 1] = node end end\n"
      "    return kept end },\n"
      "  region 'rest' {} }",
      "cpu{a} cpu{b} cpu{c d e}", "b: dropped by review\n");
}

UNIT_TEST(keeping_nothing_is_a_refusal) {
  expect(RULE("review = function() return {}, 'nothing of use' end"), "", "a: nothing of use\n");
}

UNIT_TEST(a_fusion_that_loses_a_node_goes_as_a_whole) {
  expect(
      "return ruleset { name = 'r',\n"
      "  fuse 'pair' { pattern = op { 'Cos', as = 'cos' } >> op { 'Add', as = 'sum' } },\n"
      "  region 'g' { review = function(sub) local kept = {}\n"
      "    for _, node in ipairs(sub.nodes) do if node.op ~= 'Add' then kept[#kept + 1] = node end end\n"
      "    return kept end } }",
      "cpu{a b} cpu{c d} cpu{e}", "c: dropped by review\nd: dropped by review\n");
}

/* Every round drops one node of a hundred: that ends. */
UNIT_TEST(a_review_that_never_has_enough_is_given_up) {
  rule_case_request_t request = {
      .model =
          "local x = g.input('x', 'float32', { 2 })\n"
          "for k = 1, 100 do x = g.Relu(x, { name = 'r' .. k }) end\n"
          "g.output('y', x)",
      .rules = {RULE("review = function(sub) local kept = {}\n"
                     "for k, node in ipairs(sub.nodes) do if k > 1 then kept[k - 1] = node end end\n"
                     "return kept end")}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "");
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_LIMIT),
                   "r65: review has trimmed it too many times\n");
  rule_case_deinit(&c);
}

UNIT_TEST(wrong_results_of_review_are_errors) {
  expect_failure(
      RULE("review = function() end"),
      "r.lua:1: region 'g': review returned nothing, expected true, false or nodes to keep; at Relu 'a'");
  expect_failure(RULE("review = function(sub) return true, 5 end"),
                 "r.lua:1: region 'g': review returned a number, expected a string (the reason) or a table "
                 "(attributes); at Relu 'a'");
  expect_failure(
      RULE("review = function(sub) return { tile = 8 } end"),
      "r.lua:1: region 'g': review returned a table with a string where a node was expected (first "
      "comes what to keep, then the attributes); at Relu 'a'");
  expect_failure(
      RULE("review = function(sub) return { 'a' } end"),
      "r.lua:1: region 'g': review returned a table with a string where a node was expected (first "
      "comes what to keep, then the attributes); at Relu 'a'");
  expect_failure(RULE("ops = { 'Cos' }, review = function(sub) return { sub.inputs[1].producer } end"),
                 "r.lua:1: region 'g': review returned a node that is not in the region; at Cos 'c'");
  expect_failure(RULE("review = function(sub) return { sub.inputs[1] } end"),
                 "r.lua:1: region 'g': expected a node, found a value; at Relu 'a'");
}

/* ---- attributes ---- */

static const char *attributes_of(const char *table) {
  char rules[512];
  (void)snprintf(rules, sizeof rules, RULE("ops = { 'Exp' }, review = function() return true, %s end"),
                 table);
  rule_case_request_t request = {.model = ROW, .rules = {rules}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->region_count, 1);
  const char *found = rule_case_attributes(&c, 0);
  rule_case_deinit(&c);
  return found;
}

UNIT_TEST(attributes_are_numbers_texts_booleans_and_lists_in_order_of_names) {
  ck_assert_str_eq(attributes_of("{ z = 1, a = 2.5, m = 'text', yes = true, no = false }"),
                   "a=2.5 m='text' no=0 yes=1 z=1");
  ck_assert_str_eq(
      attributes_of("{ i = { 1, 2 }, f = { 1, 0.5 }, s = { 'a', '' }, b = { true, false }, e = {} }"),
      "b=[1,0] e=[] f=[1,0.5] i=[1,2] s=['a','']");
  ck_assert_str_eq(attributes_of("'a reason too', { k = 1 }"), "k=1");
  ck_assert_str_eq(attributes_of("nil, { k = math.mininteger }"), "k=-9223372036854775808");
  ck_assert_str_eq(attributes_of("{}"), "");
}

UNIT_TEST(other_attributes_are_errors) {
  static const char *const CASES[11][2] = {
      {"{ k = ipairs }",
       "attribute 'k' is a function, expected a number, a string, a boolean or a list of them"},
      {"{ k = { 1, 'a' } }", "attribute 'k' is a list of numbers and strings, expected one of them"},
      {"{ k = { {} } }", "attribute 'k' has a table in its list, expected numbers or strings"},
      {"{ k = { a = 1 } }", "attribute 'k' is a table with the key 'a', expected a list"},
      {"{ k = { 1, [3] = 1 } }", "attribute 'k' is a table with the key 3, expected a list"},
      {"{ k = 1/0 }", "attribute 'k' is a number that is not finite"},
      {"{ k = { 1e300, 0.5 } }", "attribute 'k' is a number that is not finite in 32 bits"},
      {"{ 1 }", "attributes have names, found a number as a key"},
      {"{ [''] = 1 }", "a name of an attribute has 0 bytes, expected 1 to 63 and no zero"},
      {"{ k = { 'a\\0b' } }", "attribute 'k' has a string with a zero byte"},
      {"(function() local t = {} for k = 1, 65 do t['k' .. k] = k end return t end)()",
       "more than 64 attributes"}};
  for (uint32_t k = 0; k < 11; k++) {
    char rules[512];
    char message[256];
    (void)snprintf(rules, sizeof rules, RULE("ops = { 'Exp' }, review = function() return true, %s end"),
                   CASES[k][0]);
    (void)snprintf(message, sizeof message, "r.lua:1: region 'g': review: %s; at Exp 'e'", CASES[k][1]);
    expect_failure(rules, message);
  }
}

UNIT_TEST(fusions_carry_the_attributes_of_their_rule) {
  static const char RULES[] =
      "local tile = option.integer(8, 'size of a tile')\n"
      "return ruleset { name = 'r', options = { tile = tile },\n"
      "  fuse 'pair' { pattern = op 'Cos' >> op 'Add', attributes = { tile = tile, mode = 'fast' } },\n"
      "  region 'g' { ops = { 'Exp' } } }";
  rule_case_request_t request = {.model = ROW, .rules = {RULES}, .settings = {"tile=16"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->fusion_count, 1);
  const cleave_plan_fusion_t *fusion = &c.plan->fusions[0];
  ck_assert_uint_eq(fusion->attribute_count, 2);
  ck_assert_str_eq(fusion->attributes[0].name, "mode");
  ck_assert_str_eq(fusion->attributes[0].s, "fast");
  ck_assert_str_eq(fusion->attributes[1].name, "tile");
  ck_assert_int_eq(fusion->attributes[1].i, 16);
  char *text = NULL;
  unit_ok(cleave_plan_format(c.plan, CLEAVE_PLAN_TEXT, &text, e));
  ck_assert_ptr_nonnull(strstr(text, "{mode = 'fast', tile = 16}"));
  cleave_text_free(text);
  unit_ok(cleave_plan_format(c.plan, CLEAVE_PLAN_JSON, &text, e));
  ck_assert_ptr_nonnull(strstr(text, "\"name\":\"tile\",\"kind\":\"int\",\"value\":16"));
  cleave_text_free(text);
  rule_case_deinit(&c);
}

UNIT_TEST(tensors_and_equal_names_are_no_attributes) {
  cleave_arena_t arena = {0};
  const cleave_attribute_t *copy = NULL;
  cleave_attribute_t two[2] = {{.name = "k", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1},
                               {.name = "k", .kind = CLEAVE_ATTRIBUTE_INT, .i = 2}};
  unit_fails(cleave_plan_copy_attributes(&arena, two, 2, &copy, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "attribute 'k' is given twice");
  two[0].kind = CLEAVE_ATTRIBUTE_TENSOR;
  unit_fails(cleave_plan_copy_attributes(&arena, two, 1, &copy, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "attribute 'k': a region carries no tensors");
  cleave_arena_deinit(&arena);
}

UNIT_SUITE("review")
