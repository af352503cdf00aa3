// SPDX-License-Identifier: Apache-2.0
// When `cleave precision` says to use float32.
#include "tools/precision/precision.h"

#include "unit.h"

static bool prefers_float(uint32_t regions, double ms_found, double ms_float) {
  const cleave_precision_report_t report = {.regions = regions, .ms_found = ms_found, .ms_float = ms_float};
  return cleave_precision_prefers_float(&report);
}

UNIT_TEST(what_gains_no_time_is_left_in_float32) {
  ck_assert(prefers_float(1, 2.5, 2.0));
  ck_assert(prefers_float(1, 2.0, 2.0));
  ck_assert(!prefers_float(1, 1.9, 2.0));
}

UNIT_TEST(without_a_region_in_the_low_precision_there_is_nothing_to_say) {
  ck_assert(!prefers_float(0, 2.5, 2.0));
}

UNIT_SUITE("precision_advice")
