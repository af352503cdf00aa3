// SPDX-License-Identifier: Apache-2.0
// Attributes of regions and fusions at run time: a library sees what rules attach, and programs with
// different attributes are not shared; costs of a library that tells them.
#include "backend/registry/registry.h"
#include "rule_case.h"
#include "runtime/session/session.h"
#include "unit.h"

#define LIBRARY CLEAVE_BINARY_DIR "/tests/accelerators/libattributes.so"

/* Two Relu of one shape, both of them outputs. */
static const char MODEL[] =
    "local x = g.input('x', 'float32', { 2 })\n"
    "g.output('a', g.Relu(x, { name = 'first' }))\n"
    "g.output('b', g.Relu(g.Neg(x), { name = 'second' }))";

static const float DATA[2] = {3.0f, -5.0f};

/* Runs the model under the rules; `values`: both elements of both outputs. */
static uint32_t run(const char *rules, float *values) {
  rule_case_request_t request = {.model = MODEL, .rules = {rules}};
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  rule_case_t c = rule_case_create(&request);
  cleave_session_t *session = NULL;
  unit_ok(cleave_session_create(c.model, c.plan, NULL, 0, NULL, &session, e));
  cleave_tensor_view_t input = {
      .size = sizeof input, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = (int64_t[]){2}, .data = DATA};
  unit_ok(cleave_session_set_input(session, 0, &input, e));
  unit_ok(cleave_session_run(session, e));
  for (uint32_t k = 0; k < 2; k++) {
    cleave_tensor_view_t output;
    unit_ok(cleave_session_output(session, k, &output, e));
    memcpy(values + 2 * k, output.data, 2 * sizeof *values);
  }
  uint32_t programs = cleave_session_program_count(session);
  ck_assert_uint_eq(cleave_session_note_count(session), 0);
  cleave_session_destroy(session);
  rule_case_deinit(&c);
  return programs;
}

static void expect(const float *values, float a, float b, float c, float d) {
  ck_assert_float_eq(values[0], a);
  ck_assert_float_eq(values[1], b);
  ck_assert_float_eq(values[2], c);
  ck_assert_float_eq(values[3], d);
}

UNIT_TEST(regions_without_attributes_share_a_program) {
  float values[4];
  ck_assert_uint_eq(
      run("return ruleset { name = 'r', backend = 'attributes', region 'g' { ops = { 'Relu' } } }", values),
      2); /* and the Neg */
  expect(values, 3.0f, 0.0f, 0.0f, 5.0f);
}

UNIT_TEST(a_backend_sees_what_review_attached_and_programs_are_not_shared) {
  float values[4];
  ck_assert_uint_eq(
      run("return ruleset { name = 'r', backend = 'attributes', region 'g' { ops = { 'Relu' },\n"
          "  review = function(sub)\n"
          "    return true, { offset = sub.nodes[1].name == 'first' and 0.5 or 0.25, other = {} }\n"
          "  end } }",
          values),
      3);
  expect(values, 3.5f, 0.5f, 0.25f, 5.25f);
}

UNIT_TEST(equal_attributes_share_a_program) {
  float values[4];
  ck_assert_uint_eq(
      run("return ruleset { name = 'r', backend = 'attributes', region 'g' { ops = { 'Relu' },\n"
          "  review = function() return true, { offset = 0.5 } end } }",
          values),
      2);
  expect(values, 3.5f, 0.5f, 0.5f, 5.5f);
}

UNIT_TEST(a_backend_sees_the_attributes_of_fuse_rules) {
  float values[4];
  ck_assert_uint_eq(
      run("return ruleset { name = 'r', backend = 'attributes',\n"
          "  fuse 'first' { pattern = op { 'Relu', as = 'act' }, attributes = { bias = 2 },\n"
          "    where = function(m) return m.act.name == 'first' end },\n"
          "  fuse 'second' { pattern = op { 'Relu', as = 'act' }, attributes = { bias = 3 } } }",
          values),
      3);
  expect(values, 5.0f, 2.0f, 3.0f, 8.0f);
}

UNIT_TEST(a_backend_may_refuse_a_fusion_for_its_attributes) {
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  rule_case_request_t request = {
      .model = MODEL,
      .rules = {"return ruleset { name = 'r', backend = 'attributes',\n"
                "  fuse 'f' { pattern = op 'Relu', attributes = { forbidden = true } } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->fusion_count, 0);
  ck_assert_ptr_nonnull(
      strstr(rule_case_notes(&c, CLEAVE_PLAN_NOTE_BACKEND), "first: forbidden by its rule\n"));
  rule_case_deinit(&c);
}

UNIT_TEST(a_backend_has_a_second_look_at_regions) {
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  rule_case_request_t request = {
      .model =
          "local x = g.input('x', 'float32', { 2 })\n"
          "for k = 1, 3 do x = g.Relu(x, { name = 'r' .. k }) end\n"
          "g.output('y', x)\n"
          "g.output('z', g.Relu(g.Relu(g.Neg(x), { name = 'some' }), { name = 'never' }))",
      .rules = {"return ruleset { name = 'r', backend = 'attributes', region 'g' { ops = { 'Relu' } } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "attributes{r1}");
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_REVIEW),
                   "r2: attributes: one node is enough\nr3: attributes: one node is enough\n"
                   "some: attributes: it says never\n");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_backend_without_costs_checks_no_gain) {
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  rule_case_request_t request = {.model = MODEL,
                                 .rules = {"return ruleset { name = 'r', backend = 'attributes', region 'g' "
                                           "{ ops = { 'Relu' }, min_gain = 9 } "
                                           "}"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->region_count, 2);
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_LIMIT),
                   "first: min_gain is not checked: backend 'attributes' estimates no costs\n"
                   "second: min_gain is not checked: backend 'attributes' estimates no costs\n");
  rule_case_deinit(&c);
}

UNIT_SUITE("attributes")
