// SPDX-License-Identifier: Apache-2.0
// Devices that fail outside of programs, when a session is made and in runs, where `cpu` may take over: the
// numbers stay right, a note says why, and the device is left alone from then on.
#include "base/memory.h"
#include "device_case.h"
#include "unit.h"

#define TWO                                        \
  "local x = g.input('x', 'float32', { 8 })\n"     \
  "local a = g.Relu(x, { name = 'd0a' })\n"        \
  "local b = g.Neg(a, { name = 'd1b' })\n"         \
  "local h = g.Exp(b)\n"                           \
  "local d = g.Add(h, a, { name = 'd0c' })\n"      \
  "g.output('y', g.Mul(d, b, { name = 'd1e' }))\n" \
  "g.output('h', g.Neg(h))"

/* One step after the other, or, of two devices, side by side. */
static const cleave_session_options_t OPTIONS = {
    .size = sizeof OPTIONS, .threads = 1, .fallback = true, .workers = 1};
static const cleave_session_options_t BESIDE = {.size = sizeof BESIDE, .threads = 1, .fallback = true};

static void expect_note(const device_case_t *c, const char *part) {
  bool is_there = false;
  for (uint32_t k = 0; k < cleave_session_note_count(c->session); k++) {
    is_there = is_there || strstr(cleave_session_note(c->session, k), part) != NULL;
  }
  ck_assert_msg(is_there, "no note says '%s'", part);
}

// ---- when a session is made ----

UNIT_TEST(cpu_gets_the_regions_of_a_device_that_does_not_start) {
  static const struct {
    const char *key;
    long value;
    const char *note;
  } CASES[] = {{"broken_start", 1, "the device does not answer"},
               {"broken_start", 2, "backend 'device' has no device"},
               {"broken_stream", 1, "the bus is broken for good"},
               {"broken_stream", 2, "the bus is broken for good"},
               {"broken_event", 1, "the bus is broken for good"}};
  device_case_load("events");
  device_case_t c = device_case_create(TWO, NULL);
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    device_case_set(CASES[k].key, CASES[k].value);
    cleave_session_options_t options = {.size = sizeof options, .workers = 1};
    ck_assert_ptr_nonnull(strstr(device_case_compile_failure(&c, &options), CASES[k].note));
    device_case_set(CASES[k].key, CASES[k].value);
    device_case_compile(&c, &OPTIONS);
    expect_note(&c, CASES[k].note);
    device_case_run(&c, 1.0f);
    device_case_check(&c);
    ck_assert_int_eq(device_case_ask("runs"), 0);
    cleave_session_destroy(c.session);
    c.session = NULL;
    device_case_set(CASES[k].key, 0);
  }
  device_case_deinit(&c);
}

UNIT_TEST(a_device_that_nobody_has_stays_a_mistake) {
  device_case_load("");
  device_case_t c = device_case_create(
      "g.output('y', g.Relu(g.input('x', 'float32', { 8 })))",
      "return ruleset { name = 'r', backend = 'device', region 'part' { ops = { 'Relu' },\n"
      "  review = function() return true, { device = 7 } end } }");
  ck_assert_str_eq(device_case_compile_failure(&c, &OPTIONS),
                   "region 'part_0': backend 'device' has 2 devices, there is no device 7");
  device_case_deinit(&c);
}

// ---- in a run ----

/* The call that breaks is each of those of some runs in turn. */
static void break_calls(const char *has, const char *key, const cleave_session_options_t *options) {
  long call = 1;
  bool has_broken = true;
  device_case_load(has);
  device_case_t c = device_case_create(TWO, NULL);
  for (; has_broken; call++) {
    ck_assert_int_lt(call, 300);
    device_case_compile(&c, options);
    ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
    device_case_set(key, call);
    for (int run = 0; run < 3; run++) {
      device_case_run(&c, 1.0f + (float)run);
      device_case_check(&c);
    }
    has_broken = cleave_session_note_count(c.session) > 0;
    if (has_broken) {
      expect_note(&c, "the bus is broken");
    }
    device_case_set(key, 0);
    device_case_run(&c, -3.0f);
    device_case_check(&c);
    cleave_session_destroy(c.session);
    c.session = NULL;
  }
  ck_assert_int_gt(call, 5);
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(cpu_takes_over_where_copies_fail) {
  break_calls("", "broken_copy", &OPTIONS);
}

UNIT_TEST(cpu_takes_over_where_one_copy_fails) {
  break_calls("", "fail_copy", &OPTIONS);
}

UNIT_TEST(cpu_takes_over_where_copies_on_streams_fail) {
  break_calls("streams", "broken_copy", &OPTIONS);
}

UNIT_TEST(cpu_takes_over_where_copies_fail_that_others_wait_for) {
  break_calls("events", "broken_copy", &OPTIONS);
}

UNIT_TEST(cpu_takes_over_where_events_fail) {
  break_calls("events", "broken_event", &OPTIONS);
}

UNIT_TEST(cpu_takes_over_where_copies_fail_side_by_side) {
  break_calls("events aside", "broken_copy", &BESIDE);
}

UNIT_TEST(steps_side_by_side_go_on_one_by_one_where_one_copy_fails) {
  break_calls("events aside", "fail_copy", &BESIDE);
}

UNIT_TEST(steps_side_by_side_go_on_one_by_one_where_events_fail) {
  break_calls("events aside", "broken_event", &BESIDE);
}

UNIT_TEST(cpu_takes_over_where_copies_of_single_operators_fail) {
  cleave_session_options_t options = OPTIONS;
  options.imperative = true;
  break_calls("executors", "broken_copy", &options);
}

UNIT_TEST(a_broken_device_ends_the_run_where_nobody_takes_over) {
  device_case_load("events");
  device_case_t c = device_case_create(TWO, NULL);
  device_case_compile(&c, NULL);
  device_case_set("broken_copy", 1);
  ck_assert_int_eq(cleave_session_run(c.session, NULL), CLEAVE_ERROR_BACKEND);
  device_case_set("broken_copy", 0);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

/* d0a has added to the user's memory when the copy for d1b fails. */
UNIT_TEST(nothing_is_added_twice) {
  static _Alignas(64) float memory[DEVICE_CASE_SIZE];
  device_case_load("shared adds");
  device_case_t c = device_case_create(
      "local x = g.input('x', 'float32', { 8 })\n"
      "g.output('y', g.Relu(x, { name = 'd0a' }))\n"
      "g.output('z', g.Neg(x, { name = 'd1b' }))",
      NULL);
  device_case_compile(&c, &OPTIONS);
  cleave_tensor_view_t view = c.view;
  view.data = memory;
  unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e));
  device_case_set("broken_copy", 1);
  ck_assert_int_eq(cleave_session_run(c.session, NULL), CLEAVE_ERROR_BACKEND);
  device_case_deinit(&c);
}

UNIT_TEST(without_memory_nothing_stays_of_a_device_that_fails) {
  device_case_load("events");
  device_case_t c = device_case_create(TWO, NULL);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t most = 0; status != CLEAVE_OK; most++) {
    ck_assert_int_lt(most, 2000);
    device_case_compile(&c, &OPTIONS);
    device_case_set("broken_copy", 2);
    (void)cleave_memory_fail_after(most);
    status = cleave_session_run(c.session, NULL);
    (void)cleave_memory_fail_after(-1);
    device_case_set("broken_copy", 0);
    device_case_run(&c, 2.0f); /* the session goes on, on the device or not */
    device_case_check(&c);
    cleave_session_destroy(c.session);
    c.session = NULL;
  }
  device_case_deinit(&c);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_SUITE("session_abandon")
