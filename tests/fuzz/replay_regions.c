// SPDX-License-Identifier: Apache-2.0
// Regions that were tampered with, as JSON (kind_regions.c) and as messages (kind_wire.c).
#include "fuzz.h"
#include "unit.h"

UNIT_TEST(outlives_regions_that_were_tampered_with) {
  size_t counts[FUZZ_OUTCOMES];
  size_t rounds = fuzz_replay(&fuzz_regions, 20000, 6000.0, 2, counts);
  ck_assert_uint_gt(counts[FUZZ_USED], 10);
  ck_assert_uint_gt(counts[FUZZ_READ], 0);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], rounds / 10);
}

UNIT_TEST(outlives_messages_that_were_tampered_with) {
  size_t counts[FUZZ_OUTCOMES];
  size_t rounds = fuzz_replay(&fuzz_wire, 50000, 4000.0, 3, counts);
  ck_assert_uint_gt(counts[FUZZ_USED], 10);
  ck_assert_uint_gt(counts[FUZZ_READ], 10);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], rounds / 10);
}

UNIT_SUITE("fuzz regions")
