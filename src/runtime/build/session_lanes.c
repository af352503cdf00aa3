// SPDX-License-Identifier: Apache-2.0
// Steps side by side, on an engine: work of the host on as many lanes as it has workers, a lane for each
// device, and two for its copies if it has streams and events. Steps of one lane run in the order of the
// list. Memory is planned for that order (session_memory.c): a value may take the place of another one only
// if all that use the other one are known to have ended.
#include <stdlib.h>

#include "runtime/build/session_internal.h"

const uint32_t *cleave_session_known(const cleave_session_t *session, uint32_t step) {
  return session->lanes == NULL ? NULL : cleave_lanes_known(&session->lanes->order, step);
}

uint32_t cleave_session_lane_count(const cleave_session_t *session) {
  return session->lanes == NULL ? 0 : session->lanes->order.lane_count;
}

/* ---- which lanes there are ---- */

static bool has_copy_lanes(const cleave_target_t *target) {
  return target->stream != NULL && target->device->has_events;
}

static bool wants_lanes(const cleave_session_t *session) {
  uint32_t devices = 0;
  for (size_t k = 0; k < session->targets.count; k++) {
    devices += session->targets.items[k].device != NULL ? 1 : 0;
  }
  return !session->profile && session->steps.count > 1 &&
         (session->workers > 1 || (session->workers == 0 && devices > 1));
}

static uint32_t host_lanes(const cleave_session_t *session) {
  return session->workers > 1 ? session->workers : 1;
}

/* Numbers the lanes of targets: those that compute first, after the host's. *out_computing is their count. */
static uint32_t number_lanes(cleave_session_t *session, uint32_t *out_computing) {
  uint32_t count = host_lanes(session);
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    target->copy_lane = CLEAVE_INDEX_NONE;
    if (target->device != NULL) {
      target->lane = count++;
    }
  }
  *out_computing = count;
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    if (has_copy_lanes(target)) {
      target->copy_lane = count;
      count += 2;
    }
  }
  return count;
}

static void choose_lane(const cleave_session_t *session, cleave_step_t *step) {
  const cleave_target_t *target = &session->targets.items[step->target];
  if (step->kind == CLEAVE_STEP_DYNAMIC) {
    step->lane = 0; /* they share memory of the session */
  } else if (step->kind == CLEAVE_STEP_COPY && target->copy_lane != CLEAVE_INDEX_NONE) {
    step->lane = target->copy_lane + (step->to_device ? 0 : 1);
  } else if (target->device != NULL) {
    step->lane = target->lane;
  }
}

/* ---- what waits for what ---- */

typedef struct user {
  const cleave_program_t *program;
  uint32_t step;
} user_t;

static int compare_users(const void *a, const void *b) {
  const user_t *left = a;
  const user_t *right = b;
  if (left->program != right->program) {
    return (uintptr_t)left->program < (uintptr_t)right->program ? -1 : 1;
  }
  return left->step < right->step ? -1 : left->step > right->step;
}

/* By step: the one before that runs the same program, which takes one call at a time; or NONE. */
static cleave_status_t find_same_programs(const cleave_session_t *session, uint32_t *same,
                                          cleave_error_t *error) {
  user_t *users = cleave_allocate(session->steps.count, sizeof *users);
  uint32_t count = 0;
  CLEAVE_TRY_MEMORY(users, error);
  for (uint32_t s = 0; s < session->steps.count; s++) {
    same[s] = CLEAVE_INDEX_NONE;
    if (session->steps.items[s].program != NULL) {
      users[count++] = (user_t){.program = session->steps.items[s].program, .step = s};
    }
  }
  qsort(users, count, sizeof *users, compare_users);
  for (uint32_t k = 1; k < count; k++) {
    if (users[k].program == users[k - 1].program) {
      same[users[k].step] = users[k - 1].step;
    }
  }
  cleave_free(users);
  return CLEAVE_OK;
}

typedef CLEAVE_ARRAY(uint32_t) steps_t;

static cleave_status_t add_steps(cleave_session_t *session, cleave_lanes_t *order, const uint32_t *same,
                                 steps_t *before, cleave_error_t *error) {
  const cleave_slot_t *slots = session->slots.items;
  for (uint32_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    before->count = 0;
    CLEAVE_TRY(cleave_array_reserve(before, (size_t)step->input_count + 1, error));
    for (uint32_t k = 0; k < step->input_count; k++) {
      uint32_t writer = slots[slots[step->input_slots[k]].root].writer;
      if (writer != CLEAVE_INDEX_NONE) {
        cleave_array_push_reserved(before, writer);
      }
    }
    if (same[s] != CLEAVE_INDEX_NONE) {
      cleave_array_push_reserved(before, same[s]);
    }
    choose_lane(session, step);
    CLEAVE_TRY(cleave_lanes_add(order, step->lane, before->items, (uint32_t)before->count, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t fill_order(cleave_session_t *session, cleave_lanes_t *order, cleave_error_t *error) {
  steps_t before = {0};
  uint32_t *same = cleave_allocate(session->steps.count, sizeof *same);
  cleave_status_t status = same == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  CLEAVE_THEN(status, find_same_programs(session, same, error));
  CLEAVE_THEN(status, add_steps(session, order, same, &before, error));
  cleave_array_free(&before);
  cleave_free(same);
  return status;
}

/* ---- devices of the engine ---- */

/* Device 0 is the host, which has the first lanes. */
static cleave_status_t describe_devices(cleave_session_t *session, cleave_session_lanes_t *lanes,
                                        uint32_t lane_count, cleave_error_t *error) {
  lanes->places = cleave_arena_allocate(&session->arena, lane_count, sizeof *lanes->places);
  lanes->workspaces = cleave_arena_allocate(&session->arena, lane_count, sizeof *lanes->workspaces);
  size_t most = session->targets.count + 1;
  lanes->devices = cleave_arena_allocate(&session->arena, most, sizeof *lanes->devices);
  lanes->streams = cleave_arena_allocate(&session->arena, most, sizeof *lanes->streams);
  CLEAVE_TRY_MEMORY(
      lanes->places != NULL && lanes->workspaces != NULL && lanes->devices != NULL && lanes->streams != NULL,
      error);
  uint32_t host = host_lanes(session);
  for (uint32_t lane = 0; lane < host; lane++) {
    lanes->places[lane] = (cleave_flow_lane_t){.device = 0};
  }
  lanes->devices[lanes->device_count++] =
      (cleave_engine_device_t){.size = sizeof *lanes->devices, .name = "host", .workers = host};
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    if (target->device == NULL) {
      continue;
    }
    uint32_t device = lanes->device_count++;
    bool copies = target->copy_lane != CLEAVE_INDEX_NONE;
    lanes->devices[device] = (cleave_engine_device_t){.size = sizeof *lanes->devices,
                                                      .name = target->label,
                                                      .workers = 1,
                                                      .copy_workers = copies ? 2 : 0,
                                                      .streams = copies ? &cleave_lane_streams : NULL,
                                                      .self = &lanes->streams[device]};
    lanes->streams[device] = (cleave_lane_device_t){.device = target->device};
    lanes->places[target->lane] = (cleave_flow_lane_t){.device = device};
    for (uint32_t c = 0; copies && c < 2; c++) {
      lanes->places[target->copy_lane + c] = (cleave_flow_lane_t){.device = device, .is_copy = true};
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_make_lanes(cleave_session_t *session, cleave_error_t *error) {
  if (!wants_lanes(session)) {
    return CLEAVE_OK;
  }
  uint32_t computing = 0;
  uint32_t count = number_lanes(session, &computing);
  cleave_session_lanes_t *lanes = cleave_allocate_zeroed(1, sizeof *lanes);
  CLEAVE_TRY_MEMORY(lanes, error);
  session->lanes = lanes;
  CLEAVE_TRY(cleave_lanes_init(&lanes->order, count, (uint32_t)session->steps.count, error));
  CLEAVE_TRY(fill_order(session, &lanes->order, error));
  if (session->workers == 0 && !cleave_lanes_overlap(&lanes->order, computing)) {
    cleave_session_destroy_lanes(session); /* each waits for the one before: streams do that, too */
    return CLEAVE_OK;
  }
  session->is_careful = true; /* a run without lanes is one after a failure */
  session->single.state = CLEAVE_SINGLE_REFUSED;
  CLEAVE_TRY(cleave_lanes_cut(&lanes->order, error));
  return describe_devices(session, lanes, count, error);
}

void cleave_session_destroy_lanes(cleave_session_t *session) {
  cleave_session_lanes_t *lanes = session->lanes;
  if (lanes != NULL) {
    cleave_flow_destroy(lanes->flow);
    cleave_lanes_deinit(&lanes->order);
    cleave_free(lanes);
    session->lanes = NULL;
  }
}
