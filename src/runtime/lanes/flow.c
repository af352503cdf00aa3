// SPDX-License-Identifier: Apache-2.0
#include "runtime/lanes/flow.h"

#include <pthread.h>

/* The operation of a segment. */
typedef struct flow_part {
  cleave_flow_t *flow;
  const cleave_segment_t *segment;
  cleave_variable_t *done; /* NULL if no other lane waits for it */
  cleave_operation_t *operation;
} flow_part_t;

struct cleave_flow {
  const cleave_lanes_t *lanes;
  cleave_status_t (*run)(void *self, uint32_t step, void *stream, cleave_error_t *error);
  void *self;
  cleave_engine_t *engine;
  cleave_variable_t **order; /* by lane */
  uint32_t part_count;
  flow_part_t *parts;
  pthread_mutex_t lock; /* of what follows: the failure of the lowest step */
  uint32_t failed_step;
  cleave_error_t error;
};

static void keep_failure(cleave_flow_t *flow, uint32_t step, const cleave_error_t *error) {
  (void)pthread_mutex_lock(&flow->lock);
  if (step < flow->failed_step) {
    flow->failed_step = step;
    flow->error = *error;
  }
  (void)pthread_mutex_unlock(&flow->lock);
}

static cleave_status_t run_part(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  const flow_part_t *part = self;
  cleave_flow_t *flow = part->flow;
  const uint32_t *steps = flow->lanes->order + part->segment->first;
  for (uint32_t k = 0; k < part->segment->count; k++) {
    cleave_status_t status = flow->run(flow->self, steps[k], run->stream, error);
    if (status != CLEAVE_OK) {
      (void)cleave_error_set(error, status, "%s", cleave_status_text(status)); /* unless it said more */
      keep_failure(flow, steps[k], error);
      return status;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t create_operation(cleave_flow_t *flow, flow_part_t *part,
                                        const cleave_flow_lane_t *places, cleave_variable_t **reads,
                                        cleave_error_t *error) {
  const cleave_segment_t *segment = part->segment;
  cleave_variable_t *writes[2] = {flow->order[segment->lane], part->done};
  for (uint32_t k = 0; k < segment->wait_count; k++) {
    reads[k] = flow->parts[flow->lanes->awaited.items[segment->first_wait + k]].done;
  }
  const cleave_operation_info_t info = {.size = sizeof info,
                                        .name = "segment",
                                        .run = run_part,
                                        .self = part,
                                        .reads = reads,
                                        .writes = writes,
                                        .read_count = segment->wait_count,
                                        .write_count = part->done != NULL ? 2 : 1,
                                        .device = places[segment->lane].device,
                                        .flags = places[segment->lane].is_copy ? CLEAVE_OPERATION_COPY : 0};
  return cleave_operation_create(flow->engine, &info, &part->operation, error);
}

/* All variables come before the first operation: what is reserved for operations stays theirs. */
static cleave_status_t create_variables(cleave_flow_t *flow, cleave_error_t *error) {
  const cleave_lanes_t *lanes = flow->lanes;
  for (uint32_t lane = 0; lane < lanes->lane_count; lane++) {
    CLEAVE_TRY(cleave_variable_create(flow->engine, "lane", &flow->order[lane], error));
  }
  for (uint32_t k = 0; k < lanes->segments.count; k++) {
    flow_part_t *part = &flow->parts[flow->part_count++];
    *part = (flow_part_t){.flow = flow, .segment = &lanes->segments.items[k]};
    if (part->segment->is_awaited) {
      CLEAVE_TRY(cleave_variable_create(flow->engine, "done", &part->done, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t create_parts(cleave_flow_t *flow, const cleave_flow_lane_t *places,
                                    cleave_error_t *error) {
  CLEAVE_TRY(create_variables(flow, error));
  cleave_variable_t **reads = cleave_allocate(flow->lanes->lane_count, sizeof *reads);
  cleave_status_t status = reads != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
  for (uint32_t k = 0; k < flow->part_count && status == CLEAVE_OK; k++) {
    status = create_operation(flow, &flow->parts[k], places, reads, error);
  }
  cleave_free((void *)reads);
  return status;
}

cleave_status_t cleave_flow_create(const cleave_flow_request_t *request, cleave_flow_t **out_flow,
                                   cleave_error_t *error) {
  const cleave_lanes_t *lanes = request->lanes;
  const cleave_engine_options_t options = {
      .size = sizeof options, .devices = request->devices, .device_count = request->device_count};
  cleave_flow_t *flow = cleave_allocate_zeroed(1, sizeof *flow);
  *out_flow = NULL;
  CLEAVE_TRY_MEMORY(flow, error);
  flow->lanes = lanes;
  flow->run = request->run;
  flow->self = request->self;
  (void)pthread_mutex_init(&flow->lock, NULL);
  cleave_status_t status = CLEAVE_OK;
  flow->order = cleave_allocate_zeroed(lanes->lane_count, sizeof *flow->order);
  flow->parts = cleave_allocate_zeroed(lanes->segments.count, sizeof *flow->parts);
  CLEAVE_TRY_MEMORY_CLEANUP(flow->order != NULL && flow->parts != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_engine_create(&options, &flow->engine, error));
  CLEAVE_TRY_CLEANUP(create_parts(flow, request->places, error));
  *out_flow = flow;
  flow = NULL;
cleanup:
  cleave_flow_destroy(flow);
  return status;
}

void cleave_flow_destroy(cleave_flow_t *flow) {
  if (flow == NULL) {
    return;
  }
  for (uint32_t k = 0; k < flow->part_count; k++) {
    cleave_operation_release(flow->parts[k].operation);
    cleave_variable_release(flow->parts[k].done, NULL, NULL);
  }
  for (uint32_t lane = 0; flow->order != NULL && lane < flow->lanes->lane_count; lane++) {
    cleave_variable_release(flow->order[lane], NULL, NULL);
  }
  cleave_engine_destroy(flow->engine);
  (void)pthread_mutex_destroy(&flow->lock);
  cleave_free(flow->parts);
  cleave_free((void *)flow->order);
  cleave_free(flow);
}

cleave_status_t cleave_flow_run(cleave_flow_t *flow, uint32_t *out_step, cleave_error_t *error) {
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  flow->failed_step = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < flow->part_count && status == CLEAVE_OK; k++) {
    status = cleave_operation_push(flow->parts[k].operation, &reason);
  }
  cleave_status_t pushed = status;
  if (pushed == CLEAVE_OK) {
    status = cleave_engine_wait(flow->engine, &reason);
  } else {
    (void)!cleave_engine_wait(flow->engine, NULL);
  }
  *out_step = flow->failed_step;
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  return cleave_error_take(error, flow->failed_step != CLEAVE_INDEX_NONE ? &flow->error : &reason);
}
