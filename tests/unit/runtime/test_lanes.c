// SPDX-License-Identifier: Apache-2.0
// Lanes without a session: what steps know, segments, memory for steps side by side, which worker computes
// what. Random lists of steps are checked against the plain definition.
#include "runtime/lanes/flow.h"

#include "random_case.h"
#include "runtime/lanes/schedule.h"
#include "runtime/lanes/space.h"
#include "unit.h"

// ---- lanes ----

static void add(cleave_lanes_t *lanes, uint32_t lane, uint32_t count, const uint32_t *before) {
  unit_ok(cleave_lanes_add(lanes, lane, before, count, e));
}

/* Two branches of two steps, and a step that reads both. */
static cleave_lanes_t make_fork(void) {
  cleave_lanes_t lanes;
  unit_ok(cleave_lanes_init(&lanes, 3, 6, e));
  add(&lanes, 0, 0, NULL);
  add(&lanes, 1, 1, (const uint32_t[]){0});
  add(&lanes, 2, 1, (const uint32_t[]){0});
  add(&lanes, 1, 1, (const uint32_t[]){1});
  add(&lanes, 2, 1, (const uint32_t[]){2});
  add(&lanes, 0, 2, (const uint32_t[]){3, 4});
  return lanes;
}

UNIT_TEST(a_step_knows_what_ended_before_what_it_reads) {
  cleave_lanes_t lanes = make_fork();
  ck_assert_mem_eq(cleave_lanes_known(&lanes, 3), ((const uint32_t[]){1, 2, 0}), 3 * sizeof(uint32_t));
  ck_assert_mem_eq(cleave_lanes_known(&lanes, 5), ((const uint32_t[]){1, 4, 5}), 3 * sizeof(uint32_t));
  ck_assert(cleave_lanes_overlap(&lanes, 3));
  ck_assert(!cleave_lanes_overlap(&lanes, 2)); /* lane 0 and 1 wait for each other */
  cleave_lanes_deinit(&lanes);
}

UNIT_TEST(segments_begin_where_a_step_waits_and_end_where_others_do) {
  cleave_lanes_t lanes = make_fork();
  unit_ok(cleave_lanes_cut(&lanes, e));
  ck_assert_uint_eq(lanes.segments.count, 4); /* 0 | 1 3 | 2 4 | 5 */
  ck_assert_mem_eq(lanes.order, ((const uint32_t[]){0, 1, 3, 2, 4, 5}), 6 * sizeof(uint32_t));
  const cleave_segment_t *last = &lanes.segments.items[3];
  ck_assert_uint_eq(last->wait_count, 2);
  ck_assert_uint_eq(lanes.awaited.items[last->first_wait], 1);
  ck_assert_uint_eq(lanes.awaited.items[last->first_wait + 1], 2);
  ck_assert(!last->is_awaited);
  ck_assert(lanes.segments.items[1].is_awaited);
  cleave_lanes_deinit(&lanes);
}

UNIT_TEST(nobody_waits_for_what_another_wait_implies) {
  cleave_lanes_t lanes;
  unit_ok(cleave_lanes_init(&lanes, 3, 3, e));
  add(&lanes, 0, 0, NULL);
  add(&lanes, 1, 1, (const uint32_t[]){0});
  add(&lanes, 2, 2, (const uint32_t[]){0, 1});
  ck_assert_uint_eq(lanes.waits.count, 2);
  ck_assert_uint_eq(lanes.waits.items[1].before, 1);
  cleave_lanes_deinit(&lanes);
}

enum { STEPS = 60, LANES = 5 };

/* reaches[b][a]: b starts after a has ended, by the definition: the closure of lanes and reads. Segments
 * alone must give the same, or more where a wait is shared. */
UNIT_TEST(random_steps_wait_for_what_they_read_and_for_nothing_else) {
  for (int round = 0; round < 200; round++) {
    static bool reaches[STEPS][STEPS];
    static bool by_waits[STEPS][STEPS];
    uint32_t last[LANES];
    cleave_lanes_t lanes;
    memset(reaches, 0, sizeof reaches);
    memset(by_waits, 0, sizeof by_waits);
    memset(last, 0xff, sizeof last);
    unit_ok(cleave_lanes_init(&lanes, LANES, STEPS, e));
    for (uint32_t s = 0; s < STEPS; s++) {
      uint32_t before[3];
      uint32_t count = s == 0 ? 0 : random_below(4);
      uint32_t lane = random_below(LANES);
      for (uint32_t k = 0; k < count; k++) {
        before[k] = s - 1 - random_below(s < 12 ? s : 12);
      }
      add(&lanes, lane, count, before);
      for (uint32_t k = 0; k <= count; k++) {
        uint32_t from = k < count ? before[k] : last[lane];
        for (uint32_t a = 0; from != UINT32_MAX && a <= from; a++) {
          reaches[s][a] = reaches[s][a] || a == from || reaches[from][a];
        }
      }
      last[lane] = s;
      for (uint32_t a = 0; a < s; a++) {
        ck_assert((cleave_lanes_known(&lanes, s)[lanes.lane[a]] > a) == reaches[s][a]);
      }
    }
    unit_ok(cleave_lanes_cut(&lanes, e));
    memset(last, 0xff, sizeof last);
    for (uint32_t s = 0, wait = 0; s < STEPS; s++) {
      for (uint32_t from = last[lanes.lane[s]]; from != UINT32_MAX; from = UINT32_MAX) {
        for (uint32_t a = 0; a <= from; a++) {
          by_waits[s][a] = by_waits[s][a] || a == from || by_waits[from][a];
        }
      }
      for (; wait < lanes.waits.count && lanes.waits.items[wait].step == s; wait++) {
        uint32_t from = lanes.waits.items[wait].before;
        for (uint32_t a = 0; a <= from; a++) {
          by_waits[s][a] = by_waits[s][a] || a == from || by_waits[from][a];
        }
      }
      last[lanes.lane[s]] = s;
      ck_assert_mem_eq(by_waits[s], reaches[s], sizeof reaches[s]);
    }
    uint32_t total = 0;
    for (size_t k = 0; k < lanes.segments.count; k++) {
      const cleave_segment_t *segment = &lanes.segments.items[k];
      ck_assert_uint_eq(segment->first, total);
      for (uint32_t n = 0; n < segment->count; n++) {
        ck_assert_uint_eq(lanes.lane[lanes.order[total + n]], segment->lane);
      }
      for (uint32_t n = 0; n < segment->wait_count; n++) {
        ck_assert_uint_lt(lanes.awaited.items[segment->first_wait + n], k);
      }
      total += segment->count;
    }
    ck_assert_uint_eq(total, STEPS);
    cleave_lanes_deinit(&lanes);
  }
}

// ---- memory ----

UNIT_TEST(memory_is_used_again_only_after_all_who_used_it_have_ended) {
  cleave_space_t space = {.lane_count = 2};
  uint32_t ends[2] = {3, 5};
  uint32_t other[2] = {4, 0};
  ck_assert_uint_eq(cleave_space_take(&space, 64, (const uint32_t[]){0, 0}), 0);
  ck_assert_uint_eq(cleave_space_take(&space, 64, (const uint32_t[]){0, 0}), 64);
  unit_ok(cleave_space_give(&space, 0, 64, ends, e));
  ck_assert_uint_eq(cleave_space_take(&space, 64, (const uint32_t[]){9, 4}),
                    128); /* lane 1 may use it still */
  ck_assert_uint_eq(cleave_space_take(&space, 32, (const uint32_t[]){3, 5}), 0);
  unit_ok(
      cleave_space_give(&space, 64, 64, other, e)); /* joins the half that is left: both must have ended */
  ck_assert_uint_eq(space.holes.count, 1);
  ck_assert_uint_eq(cleave_space_take(&space, 96, (const uint32_t[]){3, 5}), 192);
  ck_assert_uint_eq(cleave_space_take(&space, 96, (const uint32_t[]){4, 5}), 32);
  cleave_array_free(&space.holes);
}

UNIT_TEST(without_lanes_the_smallest_hole_is_taken) {
  cleave_space_t space = {0};
  for (int k = 0; k < 4; k++) {
    ck_assert_uint_eq(cleave_space_take(&space, 64, NULL), 64 * (size_t)k);
  }
  unit_ok(cleave_space_give(&space, 0, 64, NULL, e));
  unit_ok(cleave_space_give(&space, 128, 128, NULL, e));
  ck_assert_uint_eq(cleave_space_take(&space, 64, NULL), 0);
  ck_assert_uint_eq(cleave_space_take(&space, 192, NULL), 128); /* the last hole grows */
  ck_assert_uint_eq(space.end, 320);
  cleave_array_free(&space.holes);
}

// ---- workers ----

UNIT_TEST(long_branches_go_to_different_workers_and_short_ones_stay) {
  for (int is_long = 0; is_long < 2; is_long++) {
    double ns = is_long ? 1e6 : 1e3;
    const uint32_t before[] = {0, 0, 1, 2};
    cleave_unit_t units[] = {
        {.ns = 1e6},
        {.ns = ns, .first_before = 0, .before_count = 1},
        {.ns = ns, .first_before = 1, .before_count = 1},
        {.ns = 1e6, .first_before = 2, .before_count = 2},
    };
    unit_ok(cleave_schedule(units, 4, before, 2, e));
    ck_assert_uint_eq(units[1].worker == units[2].worker, is_long == 0);
    ck_assert_uint_eq(units[1].is_beside, (uint32_t)is_long);
    ck_assert_uint_eq(units[2].is_beside, (uint32_t)is_long);
    ck_assert(!units[0].is_beside && !units[3].is_beside);
  }
}

/* A chain, which stays with one worker, and a second one beside it. */
static void schedule_chains(int size) {
  cleave_unit_t *units = calloc((size_t)size, sizeof *units);
  uint32_t *before = calloc((size_t)size, sizeof *before);
  for (int k = 0; k < size; k++) {
    before[k] = k < 2 ? 0 : (uint32_t)k - 2;
    units[k] = (cleave_unit_t){.ns = 1e3, .first_before = (uint32_t)k, .before_count = k < 2 ? 0 : 1};
  }
  unit_ok(cleave_schedule(units, (size_t)size, before, 3, e));
  for (int k = 0; k < size; k++) {
    ck_assert(units[k].is_beside);
    ck_assert_uint_eq(units[k].worker, (uint32_t)k % 2);
    ck_assert_uint_eq(units[k].next, k + 2 < size ? (uint32_t)k + 2 : CLEAVE_INDEX_NONE);
  }
  free(units);
  free(before);
}

UNIT_TEST(work_grows_linearly_with_the_units) {
  unit_is_linear(schedule_chains, 10000);
}

UNIT_TEST(work_on_devices_takes_no_worker) {
  cleave_unit_t units[] = {{.ns = 1e6, .is_elsewhere = true}, {.ns = 1e6}, {.ns = 1e6}};
  unit_ok(cleave_schedule(units, 3, NULL, 2, e));
  ck_assert_uint_eq(units[1].worker, 0);
  ck_assert_uint_eq(units[2].worker, 1);
}

UNIT_SUITE("lanes")
