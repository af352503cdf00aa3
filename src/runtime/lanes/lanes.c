// SPDX-License-Identifier: Apache-2.0
// What a step knows is the maximum over its predecessor in the lane and the steps that it reads from, of what
// these know and of themselves: one pass, in steps times lanes.
#include "runtime/lanes/flow.h"

#include <string.h>

cleave_status_t cleave_lanes_init(cleave_lanes_t *lanes, uint32_t lane_count, uint32_t step_count,
                                  cleave_error_t *error) {
  size_t cells = 0;
  *lanes = (cleave_lanes_t){.lane_count = lane_count, .step_capacity = step_count};
  if (!cleave_size_multiply(lane_count, step_count, &cells)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "%u steps in %u lanes are too many", step_count,
                            lane_count);
  }
  lanes->lane = cleave_allocate_zeroed(step_count, sizeof *lanes->lane);
  lanes->known = cleave_allocate_zeroed(cells, sizeof *lanes->known);
  lanes->last = cleave_allocate_zeroed(lane_count, sizeof *lanes->last);
  lanes->best = cleave_allocate_zeroed(lane_count, sizeof *lanes->best);
  lanes->order = cleave_allocate_zeroed(step_count, sizeof *lanes->order);
  if (lanes->lane == NULL || lanes->known == NULL || lanes->last == NULL || lanes->best == NULL ||
      lanes->order == NULL) {
    cleave_lanes_deinit(lanes);
    return cleave_error_out_of_memory(error);
  }
  return CLEAVE_OK;
}

void cleave_lanes_deinit(cleave_lanes_t *lanes) {
  cleave_free(lanes->lane);
  cleave_free(lanes->known);
  cleave_free(lanes->last);
  cleave_free(lanes->best);
  cleave_free(lanes->order);
  cleave_array_free(&lanes->waits);
  cleave_array_free(&lanes->segments);
  cleave_array_free(&lanes->awaited);
  *lanes = (cleave_lanes_t){0};
}

static void raise(uint32_t *value, uint32_t to) {
  *value = to > *value ? to : *value;
}

/* Nothing else that the step waits for implies that this one has ended. */
static bool is_needed(const cleave_lanes_t *lanes, uint32_t lane) {
  for (uint32_t other = 0; other < lanes->lane_count; other++) {
    if (other != lane && lanes->best[other] > 0 &&
        cleave_lanes_known(lanes, lanes->best[other] - 1)[lane] >= lanes->best[lane]) {
      return false;
    }
  }
  return true;
}

cleave_status_t cleave_lanes_add(cleave_lanes_t *lanes, uint32_t lane, const uint32_t *before,
                                 uint32_t before_count, cleave_error_t *error) {
  uint32_t step = lanes->step_count;
  uint32_t *known = lanes->known + (size_t)step * lanes->lane_count;
  CLEAVE_TRY(cleave_array_reserve(&lanes->waits, lanes->lane_count, error));
  lanes->step_count++;
  lanes->lane[step] = lane;
  if (lanes->last[lane] > 0) {
    memcpy(known, cleave_lanes_known(lanes, lanes->last[lane] - 1), lanes->lane_count * sizeof *known);
    known[lane] = lanes->last[lane];
  }
  lanes->last[lane] = step + 1;
  memset(lanes->best, 0, lanes->lane_count * sizeof *lanes->best);
  for (uint32_t k = 0; k < before_count; k++) {
    uint32_t from = lanes->lane[before[k]];
    if (before[k] + 1 > known[from]) {
      raise(&lanes->best[from], before[k] + 1);
    }
  }
  for (uint32_t other = 0; other < lanes->lane_count; other++) {
    if (lanes->best[other] > 0 && is_needed(lanes, other)) {
      cleave_lane_wait_t wait = {.step = step, .before = lanes->best[other] - 1};
      cleave_array_push_reserved(&lanes->waits, wait);
    }
  }
  for (uint32_t k = 0; k < before_count; k++) {
    const uint32_t *theirs = cleave_lanes_known(lanes, before[k]);
    for (uint32_t other = 0; other < lanes->lane_count; other++) {
      raise(&known[other], theirs[other]);
    }
    raise(&known[lanes->lane[before[k]]], before[k] + 1);
  }
  return CLEAVE_OK;
}

bool cleave_lanes_overlap(const cleave_lanes_t *lanes, uint32_t lane_limit) {
  uint32_t *last = lanes->best; /* scratch: by lane, its last step so far, + 1 */
  memset(last, 0, lanes->lane_count * sizeof *last);
  for (uint32_t step = 0; step < lanes->step_count; step++) {
    uint32_t lane = lanes->lane[step];
    for (uint32_t other = 0; other < lane_limit && lane < lane_limit; other++) {
      if (other != lane && cleave_lanes_known(lanes, step)[other] < last[other]) {
        return true;
      }
    }
    last[lane] = step + 1;
  }
  return false;
}

/* ---- segments ---- */

typedef struct cutter {
  bool *is_awaited;  /* by step */
  uint32_t *segment; /* by step */
  uint32_t *open;    /* by lane: its segment that goes on, + 1, or 0 */
} cutter_t;

static cleave_status_t cut(cleave_lanes_t *lanes, const cutter_t *cutter, cleave_error_t *error) {
  size_t wait = 0;
  for (uint32_t step = 0; step < lanes->step_count; step++) {
    uint32_t lane = lanes->lane[step];
    size_t first = wait;
    while (wait < lanes->waits.count && lanes->waits.items[wait].step == step) {
      uint32_t segment = cutter->segment[lanes->waits.items[wait++].before];
      CLEAVE_ARRAY_PUSH(&lanes->awaited, segment, error);
    }
    if (cutter->open[lane] == 0 || wait > first) {
      cleave_segment_t segment = {
          .lane = lane, .first_wait = (uint32_t)first, .wait_count = (uint32_t)(wait - first)};
      CLEAVE_ARRAY_PUSH(&lanes->segments, segment, error);
      cutter->open[lane] = (uint32_t)lanes->segments.count;
    }
    uint32_t index = cutter->open[lane] - 1;
    cutter->segment[step] = index;
    lanes->segments.items[index].count++;
    if (cutter->is_awaited[step]) {
      lanes->segments.items[index].is_awaited = true;
      cutter->open[lane] = 0;
    }
  }
  return CLEAVE_OK;
}

static void sort_steps(cleave_lanes_t *lanes, const uint32_t *segment_of) {
  uint32_t first = 0;
  for (size_t k = 0; k < lanes->segments.count; k++) {
    cleave_segment_t *segment = &lanes->segments.items[k];
    segment->first = first;
    first += segment->count;
    segment->count = 0;
  }
  for (uint32_t step = 0; step < lanes->step_count; step++) {
    cleave_segment_t *segment = &lanes->segments.items[segment_of[step]];
    lanes->order[segment->first + segment->count++] = step;
  }
}

cleave_status_t cleave_lanes_cut(cleave_lanes_t *lanes, cleave_error_t *error) {
  cutter_t cutter = {.is_awaited = cleave_allocate_zeroed(lanes->step_count, sizeof *cutter.is_awaited),
                     .segment = cleave_allocate_zeroed(lanes->step_count, sizeof *cutter.segment),
                     .open = cleave_allocate_zeroed(lanes->lane_count, sizeof *cutter.open)};
  cleave_status_t status = CLEAVE_OK;
  if (cutter.is_awaited == NULL || cutter.segment == NULL || cutter.open == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    for (size_t k = 0; k < lanes->waits.count; k++) {
      cutter.is_awaited[lanes->waits.items[k].before] = true;
    }
    status = cut(lanes, &cutter, error);
  }
  if (status == CLEAVE_OK) {
    sort_steps(lanes, cutter.segment);
  }
  cleave_free(cutter.is_awaited);
  cleave_free(cutter.segment);
  cleave_free(cutter.open);
  return status;
}
