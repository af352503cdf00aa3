// SPDX-License-Identifier: Apache-2.0
// Broken and senseless scripts: rule files (kind_rules.c) and model scripts (kind_scripts.c).
#include "fuzz.h"
#include "script/state/embedded.h"
#include "unit.h"

enum { ROUNDS = 3000 };
static const double budget_ms = 4000.0;

UNIT_TEST(outlives_rule_files_with_mistakes) {
  size_t counts[FUZZ_OUTCOMES];
  size_t rounds = fuzz_replay(&fuzz_rules, ROUNDS, 2 * budget_ms, 3, counts);
  ck_assert_uint_gt(rounds, 20);
  ck_assert_uint_gt(counts[FUZZ_USED], 0);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], 0);
}

UNIT_TEST(outlives_rule_files_cut_anywhere) {
  const cleave_embedded_file_t *file = cleave_embedded_find("rules/conv_bn_relu.lua");
  ck_assert_ptr_nonnull(file);
  for (size_t length = 0; length < file->length; length += 7) {
    (void)fuzz_rules.run(file->text, length);
  }
  ck_assert_int_eq(fuzz_rules.run(file->text, file->length), FUZZ_USED);
}

UNIT_TEST(outlives_operators_with_any_arguments) {
  size_t counts[FUZZ_OUTCOMES];
  (void)fuzz_replay(&fuzz_scripts, ROUNDS, budget_ms, 2, counts);
  ck_assert_uint_gt(counts[FUZZ_USED], 0);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], 0);
}

UNIT_SUITE("fuzz scripts")
