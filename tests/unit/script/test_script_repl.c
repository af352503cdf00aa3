// SPDX-License-Identifier: Apache-2.0
// The prompt in C: chunks, completion, interruption, allocations that fail.

#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "plan_case.h"
#include "script/repl.h"
#include "unit.h"

static const cleave_graph_t *graph(void) {
  return plan_case_graph("c = Conv{group=1}(x, $w); r = Relu(c); -> r");
}

static cleave_repl_t *session(void) {
  cleave_repl_t *repl = NULL;
  unit_ok(cleave_repl_create(graph(), &(cleave_repl_services_t){NULL}, &repl, e));
  return repl;
}

/* Output, or the message in brackets; "..." for the beginning of a chunk. */
static const char *say(cleave_repl_t *repl, const char *text) {
  static char said[4096];
  cleave_text_t output = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  bool incomplete = false;
  cleave_status_t status = cleave_repl_run(repl, text, strlen(text), &incomplete, &output, &error);
  (void)snprintf(said, sizeof said, status == CLEAVE_OK ? "%s%s" : "%s[%s]", cleave_text_get(&output),
                 status == CLEAVE_OK ? (incomplete ? "..." : "") : error.message);
  cleave_text_deinit(&output);
  return said;
}

static const char *complete(cleave_repl_t *repl, const char *line, size_t start) {
  static char said[4096];
  cleave_text_t output = {0};
  size_t found = 0;
  unit_ok(cleave_repl_complete(repl, line, strlen(line), &found, &output, e));
  ck_assert_uint_eq(found, start);
  (void)snprintf(said, sizeof said, "%s", cleave_text_get(&output));
  cleave_text_deinit(&output);
  return said;
}

UNIT_TEST(what_is_assigned_stays_and_locals_go) {
  cleave_repl_t *repl = session();
  ck_assert_str_eq(say(repl, "a = 1 local b = 2"), "");
  ck_assert_str_eq(say(repl, "a"), "1\n");
  ck_assert_str_eq(say(repl, "b"), "[unknown word 'b' (did you mean 'g'?)]");
  ck_assert_str_eq(say(repl, "function f("), "...");
  ck_assert_str_eq(say(repl, "n = g.nodes[1]; return n.op, n.outputs[1].rank"), "\"Conv\"\n2\n");
  ck_assert_str_eq(say(repl, "n == g.nodes[1]"), "true\n");
  cleave_repl_destroy(repl);
}

UNIT_TEST(words_are_completed_by_what_they_are) {
  cleave_repl_t *repl = session();
  ck_assert_str_eq(say(repl, "node = g.nodes[1]"), "");
  ck_assert_str_eq(complete(repl, "print(node.inpu", 11), "inputs");
  ck_assert_str_eq(complete(repl, "node.inputs.", 12), "B\nW\nX");
  ck_assert_str_eq(complete(repl, "g:fin", 2), "find");
  ck_assert_str_eq(complete(repl, "op \"GroupN", 4), "GroupNormalization");
  ck_assert_str_eq(complete(repl, "nod", 0), "node");
  ck_assert_str_eq(complete(repl, "repe", 0), "repeat\nrepeated");
  ck_assert_str_eq(complete(repl, "nothing.of.this", 11), "");
  cleave_repl_destroy(repl);
}

UNIT_TEST(what_is_shown_is_bounded) {
  cleave_repl_t *repl = session();
  ck_assert_str_eq(say(repl, "local t = {} for k = 1, 1000 do t[k] = k end return #t, t"),
                   "1000\n{ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, "
                   "... 1000 in all }\n");
  ck_assert_str_eq(say(repl, "local t = {} t.t = t return t"), "{ t = { t = { t = { ... } } } }\n");
  ck_assert_uint_lt(strlen(say(repl, "('x'):rep(100000)")), 500);
  ck_assert_str_eq(say(repl, "for k = 1, 1e7 do print(('x'):rep(400)) end") + 4090, "xxxxx");
  cleave_repl_destroy(repl);
}

static void *interrupt(void *repl) {
  struct timespec wait = {.tv_nsec = 200000000};
  (void)nanosleep(&wait, NULL);
  cleave_repl_interrupt(repl);
  return NULL;
}

UNIT_TEST(a_chunk_is_interrupted_and_the_next_one_runs) {
  cleave_repl_t *repl = session();
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, repl), 0);
  ck_assert_str_eq(say(repl, "while true do pcall(error) end"), "[interrupted]");
  (void)pthread_join(thread, NULL);
  ck_assert_str_eq(say(repl, "1 + 1"), "2\n");
  cleave_repl_destroy(repl);
}

UNIT_TEST(zero_bytes_and_bytecode_are_refused) {
  cleave_repl_t *repl = session();
  cleave_text_t output = {0};
  bool incomplete = false;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_ne(cleave_repl_run(repl, "a\0b", 3, &incomplete, &output, &error), CLEAVE_OK);
  ck_assert_str_eq(error.message, "a zero byte in the text");
  ck_assert_ptr_nonnull(strstr(say(repl, "\033Lua"), "["));
  cleave_text_deinit(&output);
  cleave_repl_destroy(repl);
}

UNIT_TEST(every_allocation_may_fail) {
  const cleave_graph_t *one = graph();
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK && k < 200000; k += 1 + k / 50) {
    cleave_repl_t *repl = NULL;
    cleave_text_t output = {0};
    bool incomplete = false;
    static const char TEXT[] = "g:find(op 'Conv' >> op 'Relu')";
    (void)cleave_memory_fail_after(k);
    status = cleave_repl_create(one, &(cleave_repl_services_t){NULL}, &repl, NULL);
    if (status == CLEAVE_OK) {
      status = cleave_repl_run(repl, TEXT, sizeof TEXT - 1, &incomplete, &output, NULL);
    }
    (void)cleave_memory_fail_after(-1);
    cleave_text_deinit(&output);
    cleave_repl_destroy(repl);
  }
  ck_assert_int_eq(status, CLEAVE_OK);
}

UNIT_SUITE("script_repl")
