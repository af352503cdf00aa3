// SPDX-License-Identifier: Apache-2.0
// Sessions on devices with memory of their own: what is copied and when, where values lie, several devices,
// shapes known late, memory that is given back, and libraries that do something wrong.
#include "backend/registry/registry.h"
#include "device_case.h"
#include "unit.h"

#define HEAD "local x = g.input('x', 'float32', { 8 })\n"

// ---- copies ----

UNIT_TEST(a_region_reads_and_writes_memory_of_its_device) {
  device_case_load("");
  device_case_t c =
      device_case_create(HEAD "g.output('y', g.Neg(g.Relu(x, { name = 'd0a' }), { name = 'd0b' }))", NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c), "copy to device:0 x|part_0 on device:0|copy from device:0 d0b");
  for (int k = 1; k < 4; k++) {
    device_case_run(&c, (float)k);
    device_case_check(&c);
  }
  ck_assert_float_eq(device_case_value(&c, 0, 2), -5.0f);
  cleave_session_memory_t memory = cleave_session_memory(c.session);
  ck_assert_uint_eq(memory.values_bytes, 0);
  ck_assert_uint_eq(memory.workspace_bytes, 0);
  ck_assert_uint_eq(memory.outputs_bytes, 64);
  ck_assert_uint_eq(cleave_session_device_count(c.session), 1);
  cleave_session_device_t device = cleave_session_device(c.session, 0);
  ck_assert_str_eq(device.name, "device:0");
  ck_assert_uint_eq(device.values_bytes, 128); /* the input, and the output that may not lie over it */
  ck_assert_uint_eq(device.unshared_bytes, 128);
  ck_assert_uint_eq(device.workspace_bytes, 192);
  ck_assert_uint_eq(device.copied_to_bytes, 32);
  ck_assert_uint_eq(device.copied_from_bytes, 32);
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(one_copy_serves_all_readers) {
  device_case_load("");
  device_case_t c =
      device_case_create(HEAD
                         "local a = g.Relu(x, { name = 'd0a' })\n"
                         "local e = g.Exp(a)\n"
                         "local b = g.Add(g.Mul(x, x, { name = 'd0b' }), a, { name = 'd0c' })\n"
                         "local f = g.Neg(e, { name = 'd0d' })\n"
                         "local h = g.Add(f, e, { name = 'd0e' })\n"
                         "g.output('a', a)\ng.output('t', g.Tanh(a))\ng.output('b', b)\ng.output('h', h)",
                         NULL);
  device_case_compile(&c, NULL);
  device_case_run(&c, 0.5f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("copies_to"), 2);   /* x and e */
  ck_assert_int_eq(device_case_ask("copies_from"), 3); /* a, b and h */
  device_case_deinit(&c);
}

UNIT_TEST(regions_of_one_device_read_each_other_without_copies) {
  device_case_load("");
  device_case_t c = device_case_create(HEAD
                                       "local a = g.Relu(x, { name = 'd0a' })\n"
                                       "local e = g.Exp(a)\n"
                                       "local b = g.Add(g.Mul(e, e, { name = 'd0b' }), a, { name = 'd0c' })\n"
                                       "g.output('y', g.Neg(b, { name = 'd0d' }))",
                                       NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c),
                   "copy to device:0 x|part_0 on device:0|copy from device:0 d0a|Exp_0 on cpu|"
                   "copy to device:0 Exp_0|part_1 on device:0|copy from device:0 d0d");
  device_case_run(&c, -3.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(values_of_a_device_share_its_memory) {
  device_case_load("executors");
  device_case_t c = device_case_create(HEAD
                                       "local a = g.Relu(x, { name = 'd0a' })\n"
                                       "for k = 1, 6 do a = g.Neg(a, { name = 'd0_' .. k }) end\n"
                                       "g.output('y', a)",
                                       NULL);
  cleave_session_options_t options = {.size = sizeof options, .imperative = true};
  device_case_compile(&c, &options);
  cleave_session_device_t device = cleave_session_device(c.session, 0);
  ck_assert_uint_eq(device.unshared_bytes, 8 * 64);
  ck_assert_uint_eq(device.values_bytes, 2 * 64); /* they take turns */
  ck_assert_uint_eq(device.workspace_bytes, 0);   /* executors need none */
  device_case_run(&c, 2.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(a_reshape_of_a_value_on_a_device_is_no_step_and_no_copy) {
  device_case_load("");
  device_case_t c = device_case_create(
      HEAD
      "local a = g.Relu(x, { name = 'd0a' })\n"
      "local r = g.Reshape(a, g.constant({ 2, 4 }, 'int64'))\n"
      "g.output('y', g.Neg(r, { name = 'd0b' }))\ng.output('r', r)\ng.output('t', g.Tanh(r))",
      NULL);
  device_case_compile(&c, NULL);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("copies_to"), 1);
  ck_assert_int_eq(device_case_ask("copies_from"), 2);
  cleave_tensor_view_t view;
  unit_ok(cleave_session_output(c.session, 1, &view, e));
  ck_assert_int_eq(view.rank, 2);
  device_case_deinit(&c);
}

UNIT_TEST(inputs_and_constants_that_are_outputs_stay_on_the_host) {
  device_case_load("");
  device_case_t c =
      device_case_create(HEAD
                         "local k = g.constant({ 1, 2, 3, 4, 5, 6, 7, 8 }, 'float32')\n"
                         "g.output('y', g.Add(x, k, { name = 'd0a' }))\ng.output('x', x)\ng.output('k', k)",
                         NULL);
  device_case_compile(&c, NULL);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(a_device_that_shares_host_memory_needs_no_copies) {
  device_case_load("shared events");
  device_case_t c = device_case_create(
      HEAD "g.output('y', g.Exp(g.Relu(x, { name = 'd0a' })))\ng.output('z', g.Neg(x, { name = 'd1b' }))",
      NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c),
                   "part_0 on device:0|Exp_0 on cpu|copy to device:1 x|part_1 on device:1|"
                   "copy from device:1 d1b");
  ck_assert_uint_eq(cleave_session_device_count(c.session), 1);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

// ---- which device ----

static const char two[] = HEAD
    "local a = g.Relu(x, { name = 'd0a' })\n"
    "local b = g.Neg(a, { name = 'd1b' })\n"
    "local d = g.Add(b, a, { name = 'd0c' })\n"
    "g.output('y', g.Mul(d, b, { name = 'd1e' }))";

UNIT_TEST(between_two_devices_values_go_through_the_host) {
  device_case_load("");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c),
                   "copy to device:0 x|part_0 on device:0|copy from device:0 d0a|"
                   "copy to device:1 d0a|part_1 on device:1|copy from device:1 d1b|"
                   "copy to device:0 d1b|part_2 on device:0|copy from device:0 d0c|"
                   "copy to device:1 d0c|part_3 on device:1|copy from device:1 d1e");
  device_case_run(&c, 1.5f);
  device_case_check(&c);
  ck_assert_uint_eq(cleave_session_device_count(c.session), 2);
  ck_assert_int_eq(device_case_ask("releases"), 0);
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("releases"), 2); /* nobody uses them any more */
}

UNIT_TEST(an_option_names_the_device_of_regions_whose_rule_says_nothing) {
  device_case_load("");
  device_case_t c = device_case_create(
      HEAD "g.output('y', g.Relu(x))",
      "return ruleset { name = 'r', backend = 'device', region 'part' { ops = { 'Relu' } } }");
  cleave_backend_option_t option = {.backend = "device", .key = "device", .value = "1"};
  cleave_session_options_t options = {
      .size = sizeof options, .backend_options = &option, .backend_option_count = 1};
  device_case_compile(&c, &options);
  ck_assert_str_eq(cleave_session_step(c.session, 1).target, "device:1");
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  cleave_session_destroy(c.session);
  c.session = NULL;
  option.value = "2";
  ck_assert_str_eq(device_case_compile_failure(&c, &options),
                   "option 'device.device': backend 'device' has 2 devices, there is no device 2");
  device_case_deinit(&c);
}

/* Partitioners of libraries attach nothing else. */
UNIT_TEST(a_rule_may_write_the_number_of_the_device_as_a_text) {
  device_case_load("");
  device_case_t c = device_case_create(
      HEAD "g.output('y', g.Relu(x))",
      "return ruleset { name = 'r', backend = 'device', region 'part' { ops = { 'Relu' },\n"
      "  review = function() return true, { device = '1' } end } }");
  device_case_compile(&c, NULL);
  ck_assert_str_eq(cleave_session_step(c.session, 1).target, "device:1");
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(a_device_that_is_not_there_is_an_error) {
  static const struct {
    const char *value;
    const char *message;
  } CASES[] = {{"7", "region 'part_0': backend 'device' has 2 devices, there is no device 7"},
               {"-1", "region 'part_0': attribute 'device': expected the number of a device"},
               {"'7'", "region 'part_0': backend 'device' has 2 devices, there is no device 7"},
               {"'1x'", "region 'part_0': attribute 'device': expected the number of a device, found '1x'"},
               {"0.5", "region 'part_0': attribute 'device': expected the number of a device"}};
  device_case_load("");
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    char rules[256];
    (void)snprintf(rules, sizeof rules,
                   "return ruleset { name = 'r', backend = 'device', region 'part' { ops = { 'Relu' },\n"
                   "  review = function() return true, { device = %s } end } }",
                   CASES[k].value);
    device_case_t c = device_case_create(HEAD "g.output('y', g.Relu(x))", rules);
    ck_assert_str_eq(device_case_compile_failure(&c, NULL), CASES[k].message);
    device_case_deinit(&c);
  }
}

// ---- shapes known late ----

static const char late[] = HEAD
    "local a = g.Relu(x, { name = 'd0a' })\n"
    "local n = g.NonZero(a, { name = 'd0n' })\n"
    "local v = g.Gather(a, g.Squeeze(n, g.constant({ 0 }, 'int64')))\n"
    "g.output('y', g.Neg(v, { name = 'd0v' }))\ng.output('n', n)";

static void check_late(device_case_t *c) {
  static const float BASES[] = {1.0f, -3.0f, 0.0f, -20.0f, 30.0f, 1.0f};
  for (size_t k = 0; k < sizeof BASES / sizeof BASES[0]; k++) {
    device_case_run(c, BASES[k]);
    device_case_check(c);
  }
  uint32_t programs = cleave_session_program_count(c->session);
  size_t bytes = cleave_session_device(c->session, 0).dynamic_bytes;
  ck_assert_uint_gt(bytes, 0);
  device_case_run(c, BASES[1]);
  ck_assert_uint_eq(cleave_session_program_count(c->session), programs);
  ck_assert_uint_eq(cleave_session_device(c->session, 0).dynamic_bytes, bytes);
}

UNIT_TEST(nodes_with_shapes_that_depend_on_data_run_on_the_regions_device) {
  device_case_load("executors events");
  device_case_t c = device_case_create(late, NULL);
  device_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 2);
  ck_assert_str_eq(cleave_session_note(c.session, 0),
                   "region 'part_0': its nodes run one by one on device:0, not as a whole: shapes of node "
                   "'d0n' are known only at run time");
  check_late(&c);
  ck_assert_int_gt(device_case_ask("executions"), 0); /* d0a and d0v; there is no executor for NonZero */
  ck_assert_int_gt(device_case_ask("runs"), 0);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 2); /* nothing went to cpu */
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(without_executors_they_are_regions_of_one_node) {
  device_case_load("streams");
  device_case_t c = device_case_create(late, NULL);
  device_case_compile(&c, NULL);
  check_late(&c);
  ck_assert_int_eq(device_case_ask("executions"), 0);
  ck_assert_int_gt(device_case_ask("runs"), 0);
  device_case_deinit(&c);
}

// ---- what libraries do wrong ----

UNIT_TEST(memory_that_a_library_does_not_give_is_an_error_and_nothing_stays) {
  static const struct {
    const char *key;
    long value;
    cleave_status_t status;
    const char *message;
  } CASES[] = {
      {"fail_alloc", 1, CLEAVE_ERROR_OUT_OF_MEMORY, "device:0: no memory for 192 bytes: the device is full"},
      {"empty", 1, CLEAVE_ERROR_BACKEND, "device:0: 'alloc' gave neither memory nor an error"},
      {"misaligned", 1, CLEAVE_ERROR_BACKEND,
       "device:0: 'alloc' gave memory that is not aligned to 64 bytes"},
  };
  device_case_load("events");
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    device_case_t c = device_case_create(HEAD "g.output('y', g.Relu(x, { name = 'd0a' }))", NULL);
    device_case_set(CASES[k].key, CASES[k].value);
    ck_assert_str_eq(device_case_compile_failure(&c, NULL), CASES[k].message);
    device_case_set(CASES[k].key, 0);
    device_case_deinit(&c);
    ck_assert_int_eq(device_case_ask("live"), 0);
  }
  unit_ok(cleave_registry_unload(NULL, "device", e));
}

UNIT_TEST(allocations_fail_one_by_one) {
  device_case_load("executors events");
  device_case_t c = device_case_create(two, NULL);
  cleave_session_options_t options = {.size = sizeof options, .imperative = true};
  device_case_set("fail_alloc", 2);
  ck_assert_ptr_nonnull(strstr(device_case_compile_failure(&c, &options), "device:1: no memory for "));
  device_case_compile(&c, &options);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

/* A session from creation to its second run, with requests and options; the first failure ends it. */
static cleave_status_t use(device_case_t *c, bool adds, const cleave_session_options_t *options) {
  static _Alignas(64) float memory[DEVICE_CASE_SIZE];
  static const int64_t SIZE[1] = {DEVICE_CASE_SIZE};
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = SIZE, .data = memory};
  cleave_session_t *session = NULL;
  cleave_status_t status = CLEAVE_OK;
  view.data = c->x;
  CLEAVE_TRY(cleave_session_create(c->rule.model, c->rule.plan, NULL, 0, options, &session, NULL));
  CLEAVE_TRY_CLEANUP(cleave_session_set_input(session, 0, &view, NULL));
  view.data = memory;
  if (adds) {
    CLEAVE_TRY_CLEANUP(cleave_session_set_output(session, 0, &view, CLEAVE_REQUEST_ADD, NULL));
  }
  CLEAVE_TRY_CLEANUP(cleave_session_set_run_option(session, "device", "key", "value", NULL));
  CLEAVE_TRY_CLEANUP(cleave_session_run(session, NULL));
  CLEAVE_TRY_CLEANUP(cleave_session_set_output(session, 0, NULL, CLEAVE_REQUEST_NONE, NULL));
  CLEAVE_TRY_CLEANUP(cleave_session_run(session, NULL));
cleanup:
  cleave_session_destroy(session);
  return status;
}

UNIT_TEST(wherever_memory_ends_nothing_stays) {
  static const char *const MODELS[] = {two, late};
  device_case_load("executors events adds");
  for (size_t m = 0; m < 4; m++) {
    device_case_t c = device_case_create(MODELS[m % 2], NULL);
    cleave_session_options_t options = {.size = sizeof options, .threads = 1, .imperative = m >= 2};
    cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
    int64_t most = 0;
    for (; status != CLEAVE_OK && most < 5000; most++) {
      (void)cleave_memory_fail_after(most);
      status = use(&c, m % 2 == 0, &options);
      (void)cleave_memory_fail_after(-1);
      ck_assert_int_eq(device_case_ask("live"), 0);
    }
    ck_assert_int_eq(status, CLEAVE_OK);
    ck_assert_int_gt(most, 20);
    device_case_deinit(&c);
  }
}

UNIT_TEST(a_copy_that_fails_names_the_value) {
  device_case_load("");
  device_case_t c = device_case_create(HEAD "g.output('y', g.Relu(x, { name = 'd0a' }))", NULL);
  device_case_compile(&c, NULL);
  device_case_set("fail_copy", 1);
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "value 'x': device:0: copying 32 bytes to the device: the bus is broken");
  device_case_set("fail_copy", 2);
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "value 'd0a': device:0: copying 32 bytes from the device: the bus is broken");
  device_case_run(&c, 1.0f); /* it goes on afterwards */
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(devices_without_a_function_that_they_need_are_refused) {
  device_case_load("half");
  device_case_t c = device_case_create(HEAD "g.output('y', g.Relu(x, { name = 'd0a' }))", NULL);
  ck_assert_str_eq(device_case_compile_failure(&c, NULL),
                   "region 'part_0': backend 'device': function 'copy_from' of its devices is missing");
  device_case_deinit(&c);
}

UNIT_TEST(a_library_whose_device_is_in_use_is_not_unloaded) {
  device_case_load("");
  device_case_t c = device_case_create(HEAD "g.output('y', g.Relu(x, { name = 'd0a' }))", NULL);
  device_case_compile(&c, NULL);
  unit_fails_with(cleave_registry_unload(NULL, "device", e), CLEAVE_ERROR_INVALID_ARGUMENT, "is in use");
  device_case_deinit(&c);
  unit_ok(cleave_registry_unload(NULL, "device", e));
}

UNIT_SUITE("session_devices")
