// SPDX-License-Identifier: Apache-2.0
// Plans that were tampered with (kind_plans.c).
#include "fuzz.h"
#include "unit.h"

UNIT_TEST(outlives_plans_that_were_tampered_with) {
  size_t counts[FUZZ_OUTCOMES];
  size_t rounds = fuzz_replay(&fuzz_plans, 20000, 6000.0, 3, counts);
  ck_assert_uint_gt(counts[FUZZ_USED], 0);
  ck_assert_uint_gt(counts[FUZZ_READ], 0);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], rounds / 10);
}

UNIT_SUITE("fuzz plans")
