// SPDX-License-Identifier: Apache-2.0
// Nodes of regions one by one on their backend: in imperative mode, and where a region cannot be compiled as
// a whole. What the backend does not run alone goes to cpu, and a note says so.
#include "device_case.h"
#include "session_case.h"
#include "unit.h"

#define HEAD "local x = g.input('x', 'float32', { 8 })\n"

static const cleave_session_options_t imperative = {.size = sizeof imperative, .imperative = true};

static const char chain[] = HEAD
    "local k = g.constant({ 1, 2, 3, 4, 5, 6, 7, 8 }, 'float32')\n"
    "local a = g.Relu(x, { name = 'd0a' })\n"
    "local b = g.Add(a, k, { name = 'd0b' })\n"
    "g.output('y', g.Mul(b, b, { name = 'd0c' }))";

// ---- imperative mode ----

UNIT_TEST(every_node_of_a_region_is_a_step_through_an_executor) {
  device_case_load("executors");
  device_case_t c = device_case_create(chain, NULL);
  device_case_compile(&c, &imperative);
  ck_assert_str_eq(
      device_case_steps(&c),
      "copy to device:0 x|d0a on device:0|d0b on device:0|d0c on device:0|copy from device:0 d0c");
  for (int k = 1; k < 4; k++) {
    device_case_run(&c, (float)k);
    device_case_check(&c);
  }
  ck_assert_int_eq(device_case_ask("executions"), 9);
  ck_assert_int_eq(device_case_ask("runs"), 0);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  ck_assert_uint_eq(cleave_session_program_count(c.session), 3);
  device_case_deinit(&c);
}

UNIT_TEST(constants_of_single_operators_are_copied_to_the_device_once) {
  device_case_load("executors events");
  device_case_t c = device_case_create(chain, NULL);
  device_case_compile(&c, &imperative);
  ck_assert_uint_eq(cleave_session_device(c.session, 0).constants_bytes, 64);
  ck_assert_int_eq(device_case_ask("copies_to"), 1);
  device_case_run(&c, 1.0f);
  device_case_run(&c, 2.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("copies_to"), 3); /* and x in each run */
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(a_constant_that_fails_to_get_there_is_an_error) {
  device_case_load("executors");
  device_case_t c = device_case_create(chain, NULL);
  device_case_set("fail_copy", 1);
  ck_assert_str_eq(device_case_compile_failure(&c, &imperative),
                   "device:0: copying 32 bytes to the device: the bus is broken");
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(without_executors_nodes_are_regions_of_one_node) {
  device_case_load("");
  device_case_t c = device_case_create(chain, NULL);
  device_case_compile(&c, &imperative);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 5);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("executions"), 0);
  ck_assert_int_eq(device_case_ask("runs"), 3);
  ck_assert_uint_eq(cleave_session_device(c.session, 0).constants_bytes, 0);
  device_case_deinit(&c);
}

UNIT_TEST(cpu_runs_regions_node_by_node_too) {
  static const int64_t DIMS[1] = {4};
  static const float DATA[4] = {1, 2, 3, 4};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS);
  cleave_value_t a = session_case_node(&c, "Neg", "a", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Abs", "b", a, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Neg,Abs", "cpu");
  session_case_feed(&c, 1, DIMS, DATA);
  session_case_compile(&c, &imperative);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 2);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 4.0f);
  session_case_deinit(&c);
}

// ---- regions that do not compile as a whole ----

UNIT_TEST(a_region_that_is_refused_runs_node_by_node_on_its_own_backend) {
  device_case_load("executors");
  device_case_t c = device_case_create(chain, device_case_rules("refuse = 1"));
  device_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  ck_assert_str_eq(cleave_session_note(c.session, 0),
                   "region 'part_0': its nodes run one by one on device:0, not as a whole: not this region");
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("executions"), 3);
  device_case_deinit(&c);
}

UNIT_TEST(a_strict_session_does_not_run_them_one_by_one) {
  device_case_load("executors");
  device_case_t c = device_case_create(chain, device_case_rules("refuse = 1"));
  cleave_session_options_t options = {.size = sizeof options, .strict = true};
  ck_assert_str_eq(device_case_compile_failure(&c, &options), "region 'part_0' on device: not this region");
  device_case_deinit(&c);
}

UNIT_TEST(nodes_that_the_backend_does_not_run_alone_go_to_cpu) {
  device_case_load("executors picky");
  device_case_t c = device_case_create(chain, device_case_rules("refuse = 1"));
  device_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  ck_assert_str_eq(cleave_session_note(c.session, 0),
                   "region 'part_0': its nodes run one by one, 1 of 3 on cpu, not on device:0: not this "
                   "region; node 'd0c': no Mul alone");
  ck_assert_str_eq(device_case_steps(&c),
                   "copy to device:0 x|d0a on device:0|d0b on device:0|copy from device:0 d0b|d0c on cpu");
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  cleave_session_destroy(c.session);
  c.session = NULL;
  device_case_compile(&c, &imperative);
  ck_assert_str_eq(
      cleave_session_note(c.session, 0),
      "region 'part_0': 1 of its 3 nodes runs on cpu, not on device:0: node 'd0c': no Mul alone");
  cleave_session_destroy(c.session);
  c.session = NULL;
  cleave_session_options_t options = imperative;
  options.strict = true;
  ck_assert_str_eq(device_case_compile_failure(&c, &options),
                   "operator 'Mul' (node 'd0c') is not supported by device:0: no Mul alone");
  device_case_deinit(&c);
}

UNIT_TEST(a_node_that_is_refused_with_the_shapes_at_hand_goes_to_cpu_with_a_note) {
  device_case_load("executors picky");
  device_case_t c = device_case_create(HEAD
                                       "local n = g.NonZero(x, { name = 'd0n' })\n"
                                       "local v = g.Gather(x, g.Squeeze(n, g.constant({ 0 }, 'int64')))\n"
                                       "g.output('y', g.Mul(v, v, { name = 'd0m' }))",
                                       NULL);
  device_case_compile(&c, NULL);
  uint32_t notes = cleave_session_note_count(c.session);
  for (int k = 0; k < 3; k++) {
    device_case_run(&c, (float)k);
    device_case_check(&c);
  }
  ck_assert_uint_eq(cleave_session_note_count(c.session), notes + 1); /* once for all shapes */
  ck_assert_str_eq(cleave_session_note(c.session, notes),
                   "region 'part_1': node 'd0m' runs on cpu, not on device:0: no Mul alone");
  device_case_deinit(&c);
}

// ---- steps and profiles ----

UNIT_TEST(a_profile_sums_single_nodes_under_their_region) {
  device_case_load("executors");
  device_case_t c = device_case_create(chain, NULL);
  cleave_session_options_t options = imperative;
  options.profile = true;
  device_case_compile(&c, &options);
  device_case_run(&c, 1.0f);
  cleave_session_step_t step = cleave_session_step(c.session, 2);
  ck_assert_str_eq(step.op, "Add");
  ck_assert_str_eq(step.target, "device:0");
  ck_assert_uint_eq(step.region, 0);
  ck_assert(cleave_node_exists(step.node) && !step.is_copy && !step.is_dynamic);
  ck_assert_uint_ge(step.end_ns, step.start_ns);
  device_case_deinit(&c);
}

UNIT_SUITE("session_imperative")
