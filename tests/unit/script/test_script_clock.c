// SPDX-License-Identifier: Apache-2.0
// Which clock ends a call: a load's is the one on the wall, a callback's counts the thread's work. A signal
// puts the thread to sleep in the middle of a script that never ends.
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "script/rules/rules.h"
#include "script/sandbox/host.h"
#include "script/state/script.h"
#include "system/clock.h"
#include "unit.h"

static volatile sig_atomic_t sleep_ms;

static void fall_asleep(int number) {
  (void)number;
  struct timespec left = {.tv_sec = sleep_ms / 1000, .tv_nsec = sleep_ms % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0) {
  }
}

/* Once, `after` milliseconds from now, for so long. */
static void sleep_later(int after, int milliseconds) {
  struct sigaction action = {.sa_handler = fall_asleep};
  struct itimerval timer = {.it_value = {.tv_usec = after * 1000L}};
  sleep_ms = milliseconds;
  ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static double work_ms(void) {
  struct timespec now;
  ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

typedef struct course {
  cleave_status_t status;
  cleave_error_t error;
  double wall_ms;
  double work_ms;
} course_t;

static void run_loop(lua_State *state, void *context) {
  (void)context;
  static const char TEXT[] = "local n = 0\nwhile true do n = n + 1 end";
  lua_newtable(state);
  cleave_script_load_text(state, TEXT, sizeof TEXT - 1, 1);
  lua_call(state, 0, 0);
}

/* An endless script that sleeps for so long, from its 20th millisecond on. */
static course_t loop(uint32_t budget, int asleep_ms) {
  course_t course = {.error = CLEAVE_ERROR_INIT};
  cleave_script_t *script = NULL;
  unit_ok(cleave_script_create("t.lua", CLEAVE_ERROR_RULE, cleave_host_register, &script, e));
  uint64_t start = cleave_clock_now();
  double work = work_ms();
  sleep_later(20, asleep_ms);
  course.status = cleave_script_call(script, run_loop, NULL, budget, &course.error);
  course.wall_ms = cleave_clock_ms(start, cleave_clock_now());
  course.work_ms = work_ms() - work;
  cleave_script_destroy(script);
  return course;
}

UNIT_TEST(a_load_ends_by_the_clock_on_the_wall) {
  static const char TEXT[] = "local n = 0\nwhile true do n = n + 1 end";
  cleave_rules_t *rules = NULL;
  uint64_t start = cleave_clock_now();
  double work = work_ms();
  sleep_later(20, 1500);
  unit_fails_with(cleave_rules_load(
                      NULL, &(cleave_rule_source_t){.path = "t.lua", .text = TEXT, .length = sizeof TEXT - 1},
                      NULL, NULL, &rules, e),
                  CLEAVE_ERROR_LIMIT, "t.lua:2: the time budget of 2000 ms is spent");
  double wall = cleave_clock_ms(start, cleave_clock_now());
  work = work_ms() - work;
  ck_assert_ptr_null(rules);
  ck_assert_msg(wall >= 2000 && wall < 3500, "it took %.0f ms", wall);
  ck_assert_msg(work < 1000, "it worked for %.0f ms", work);
}

UNIT_TEST(a_pass_and_a_model_end_by_the_clock_on_the_wall) {
  course_t course = loop(CLEAVE_SCRIPT_PASS_BUDGET, 2500);
  ck_assert_int_eq(course.status, CLEAVE_ERROR_LIMIT);
  ck_assert_str_eq(course.error.message, "t.lua:2: the time budget of 2000 ms is spent");
  ck_assert_msg(course.work_ms < 1000, "it worked for %.0f ms", course.work_ms);
  ck_assert_uint_eq(CLEAVE_SCRIPT_WALL_LIMIT(CLEAVE_SCRIPT_PASS_BUDGET), CLEAVE_SCRIPT_PASS_BUDGET);
  ck_assert_uint_eq(CLEAVE_SCRIPT_WALL_LIMIT(CLEAVE_SCRIPT_MODEL_BUDGET), CLEAVE_SCRIPT_MODEL_BUDGET);
}

/* It is put aside for much longer than its budget, and still has all of it. */
UNIT_TEST(a_callback_does_not_pay_for_what_others_do) {
  course_t course = loop(CLEAVE_SCRIPT_CALLBACK_BUDGET, 500);
  ck_assert_int_eq(course.status, CLEAVE_ERROR_LIMIT);
  ck_assert_str_eq(course.error.message, "t.lua:2: the time budget of 100 ms is spent");
  ck_assert_msg(course.wall_ms >= 590, "it took %.0f ms", course.wall_ms);
  ck_assert_msg(course.work_ms >= 99 && course.work_ms < 1000, "it worked for %.0f ms", course.work_ms);
}

UNIT_TEST(no_callback_takes_longer_than_a_load_may) {
  course_t course = loop(CLEAVE_SCRIPT_CALLBACK_BUDGET, 2500);
  ck_assert_int_eq(course.status, CLEAVE_ERROR_LIMIT);
  ck_assert_str_eq(course.error.message,
                   "t.lua:2: the time budget of 2000 ms by the clock is spent, with less than 100 ms of work "
                   "done: the machine is too busy");
  ck_assert_msg(course.wall_ms < 4000, "it took %.0f ms", course.wall_ms);
  ck_assert_msg(course.work_ms < 100, "it worked for %.0f ms", course.work_ms);
}

/* ---- what all calls may take together ---- */

static void count(lua_State *state, void *context) {
  (void)context;
  static const char TEXT[] = "for k = 1, 20000 do end";
  lua_newtable(state);
  cleave_script_load_text(state, TEXT, sizeof TEXT - 1, 1);
  lua_call(state, 0, 0);
}

UNIT_TEST(all_calls_of_a_context_share_a_total) {
  cleave_context_t *context = NULL;
  cleave_script_t *script = NULL;
  cleave_script_t *other = NULL;
  static const char SPENT[] = "the 40 ms that all calls of scripts may take together are spent";
  unit_ok(cleave_context_create(NULL, &context, e));
  unit_ok(cleave_script_create("t.lua", CLEAVE_ERROR_RULE, cleave_host_register, &script, e));
  unit_ok(cleave_script_create("other.lua", CLEAVE_ERROR_RULE, cleave_host_register, &other, e));
  script->context = other->context = context;
  for (int k = 0; k < 1000; k++) { /* no total at first */
    unit_ok(cleave_script_call(script, count, NULL, CLEAVE_SCRIPT_CALLBACK_BUDGET, e));
  }
  cleave_context_set_script_time(context, 40);
  uint64_t start = cleave_clock_now();
  int calls = 0;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  while (error.status == CLEAVE_OK && calls < 10000000) {
    calls += cleave_script_call(script, count, NULL, CLEAVE_SCRIPT_CALLBACK_BUDGET, &error) == CLEAVE_OK;
  }
  ck_assert_int_eq(error.status, CLEAVE_ERROR_LIMIT);
  ck_assert_msg(strstr(error.message, SPENT) != NULL, "%s", error.message);
  ck_assert_double_ge(cleave_clock_ms(start, cleave_clock_now()), 40.0);
  unit_fails_with(cleave_script_call(other, count, NULL, CLEAVE_SCRIPT_LOAD_BUDGET, e), CLEAVE_ERROR_LIMIT,
                  SPENT);
  /* One call that takes longer than the total, within its own budget. */
  cleave_context_set_script_time(context, 40);
  unit_fails_with(cleave_script_call(other, run_loop, NULL, CLEAVE_SCRIPT_MODEL_BUDGET, e),
                  CLEAVE_ERROR_LIMIT, SPENT);
  cleave_context_set_script_time(context, 0);
  unit_ok(cleave_script_call(script, count, NULL, CLEAVE_SCRIPT_LOAD_BUDGET, e));
  cleave_script_destroy(script);
  cleave_script_destroy(other);
  cleave_context_release(context);
}

UNIT_SUITE("script clock")
