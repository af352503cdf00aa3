// SPDX-License-Identifier: Apache-2.0
// What the oneDNN backend can be told and asked: memory made ready for programs that are to come.
#include "onednn_case.h"

#include <stdlib.h>
#include <time.h>

/* A convolution whose weights, which are packed on every processor, take 4 KiB for each of its channels.
 * Another scale of them makes them different ones. */
#define CONV(channels, constant) \
  "x [1,1024,4,4] = input\nw [" channels ",1024,1,1] = " constant "\ny [1," channels ",4,4] = Conv(x, w)\n"

typedef struct compiled {
  fusion_region_t *region;
  void *program;
} compiled_t;

static compiled_t compile(const op_backend_t *onednn, const char *text) {
  compiled_t compiled = {.region = fusion_region_create(text, true)};
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  cleave_message_t message = {.text = ""};
  cleave_status_t status = onednn->backend->compile(onednn->state, fusion_region_view(compiled.region),
                                                    &options, &compiled.program, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  return compiled;
}

static void forget(const op_backend_t *onednn, compiled_t *compiled) {
  onednn->backend->unload(compiled->program);
  fusion_region_destroy(compiled->region);
}

/* Sets "hint.recompiles" where a value is given; the answer "spare_bytes". */
static size_t tell(const op_backend_t *onednn, const char *value) {
  cleave_key_value_t setting = {.key = "hint.recompiles", .value = value};
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  cleave_message_t message = {.text = ""};
  cleave_status_t status =
      onednn->backend->configure(onednn->state, &setting, value == NULL ? 0 : 1, &answers, &count, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(answers[0].key, "spare_bytes");
  return (size_t)strtoull(answers[0].value, NULL, 10);
}

/* The thread that makes memory ready may take its time: ten seconds at most. */
static size_t wait_for_spare(const op_backend_t *onednn) {
  size_t bytes = tell(onednn, NULL);
  for (int k = 0; k < 1000 && bytes == 0; k++) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    bytes = tell(onednn, NULL);
  }
  return bytes;
}

UNIT_TEST(keeps_memory_ready_where_programs_are_to_be_compiled_again) {
  op_backend_t onednn = onednn_create();
  compiled_t first = compile(&onednn, CONV("2048", "random"));
  ck_assert_uint_eq(tell(&onednn, NULL), 0);
  (void)tell(&onednn, "1"); /* the thread that it starts may be done already */
  size_t ready = wait_for_spare(&onednn);
  ck_assert_uint_ge(ready, (size_t)8 << 20);
  ck_assert_uint_le(ready, (size_t)16 << 20);
  compiled_t second = compile(&onednn, CONV("2048", "positive"));
  ck_assert_uint_le(tell(&onednn, NULL), ready - ((size_t)8 << 20));
  forget(&onednn, &first);
  forget(&onednn, &second);
  ck_assert_uint_eq(tell(&onednn, NULL), 0);
  op_backend_destroy(&onednn);
}

/* Leaving out one fusion after the other compiles programs whose few new weights are of any size: memory that
 * a small one left behind must not be taken for a weight that is larger. */
UNIT_TEST(a_weight_that_is_larger_than_the_memory_left_behind_gets_its_own) {
  op_backend_t onednn = onednn_create();
  compiled_t lives = compile(&onednn, CONV("2048", "random"));
  compiled_t small = compile(&onednn, CONV("1536", "random"));
  forget(&onednn, &small);
  size_t left = tell(&onednn, NULL);
  ck_assert_uint_ge(left, (size_t)6 << 20);
  ck_assert_uint_lt(left, (size_t)10 << 20);
  compiled_t large = compile(&onednn, CONV("2560", "random"));
  ck_assert_uint_eq(tell(&onednn, NULL), left);
  forget(&onednn, &large);
  forget(&onednn, &lives);
  op_backend_destroy(&onednn);
}

UNIT_TEST(makes_nothing_ready_where_nothing_lives) {
  op_backend_t onednn = onednn_create();
  (void)tell(&onednn, "1"); /* the thread that it starts may be done already */
  ck_assert_uint_eq(tell(&onednn, "0"), 0);
  op_backend_destroy(&onednn);
}

UNIT_TEST(gives_up_clearing_when_it_is_no_longer_wanted) {
  op_backend_t onednn = onednn_create();
  compiled_t program = compile(&onednn, CONV("2048", "random"));
  for (int k = 0; k < 100; k++) {
    (void)tell(&onednn, "1");
    (void)tell(&onednn, "0");
  }
  forget(&onednn, &program);
  (void)tell(&onednn, "1");
  op_backend_destroy(&onednn);
}

static void set(const op_backend_t *onednn, const char *key, const char *value,
                const cleave_key_value_t **out_answers) {
  const cleave_key_value_t setting = {.key = key, .value = value};
  uint32_t count = 0;
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(onednn->backend->configure(onednn->state, &setting, 1, out_answers, &count, &message),
                   CLEAVE_OK);
}

#define GENERATED(name, size) "x [" size "] = input\n" name " [" size "] = Erf(x)\n"

/* Kernels of one text count once, however often a region is compiled. */
UNIT_TEST(shows_the_kernels_that_it_generates) {
  op_backend_t onednn = onednn_create();
  const cleave_key_value_t *answers = NULL;
  static const char *const texts[] = {GENERATED("unseen", "7"), GENERATED("a", "7"), GENERATED("b", "9"),
                                      GENERATED("a", "7"), GENERATED("c", "2,3")};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    set(&onednn, "hint.kernels", k == 0 ? "0" : "1", &answers);
    compiled_t program = compile(&onednn, texts[k]);
    forget(&onednn, &program);
  }
  set(&onednn, "kernels.text", NULL, &answers);
  ck_assert_str_eq(answers[0].key, "kernels.text");
  ck_assert_str_eq(
      answers[0].value,
      "# ---- node: 7, and for 1 more ----\nkernel rank 1 reduced 0\nin0 f32 [0]\n%0 = load in0\n"
      "%1 = Erf %0\nout0 f32 = %1\n\n"
      "# ---- node: 2 x 3 ----\nkernel rank 2 reduced 0\nin0 f32 [0 1]\n%0 = load in0\n"
      "%1 = Erf %0\nout0 f32 = %1\n\n");
  op_backend_destroy(&onednn);
}

static void refuses(const char *key, const char *value, const char *message_part) {
  op_backend_t onednn = onednn_create();
  cleave_key_value_t setting = {.key = key, .value = value};
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  cleave_message_t message = {.text = ""};
  ck_assert_int_ne(onednn.backend->configure(onednn.state, &setting, 1, &answers, &count, &message),
                   CLEAVE_OK);
  ck_assert_ptr_nonnull(strstr(message.text, message_part));
  op_backend_destroy(&onednn);
}

UNIT_TEST(refuses_settings_that_it_does_not_know) {
  refuses("colour", "red", "setting 'colour' is unknown; expected hint.recompiles or hint.kernels");
  refuses("colour", NULL, "setting 'colour' is unknown");
  refuses("spare_bytes", "1", "setting 'spare_bytes' is unknown");
  refuses("kernels.text", "1", "setting 'kernels.text' is unknown");
  refuses("hint.kernels", "yes", "hint.kernels: expected 0, 1 or cuda, found 'yes'");
  refuses("hint.recompiles", "yes", "hint.recompiles: expected 0 or 1, found 'yes'");
}

UNIT_SUITE("onednn_configure")
