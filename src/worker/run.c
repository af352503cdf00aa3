// SPDX-License-Identifier: Apache-2.0
// Runs of programs. Everything is prepared, but for outputs whose shape the library tells only now: memory
// for these is asked of the parent.
#include <string.h>

#include "backend/program/resize.h"
#include "backend/region/region_wire.h"
#include "worker/worker.h"

/* `resize_output` gets this as its session. */
typedef struct running {
  worker_t *worker;
  worker_program_t *program;
  cleave_resize_refusal_t refusal;
} running_t;

/* ---- memory that is watched ---- */

/* Faults are looked up among the buffers, and in the scratch memory. */
static void watch(running_t *running) {
  worker_program_t *program = running->program;
  const worker_scratch_t *scratch = &running->worker->scratch;
  uint32_t count = program->area.count;
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    if (program->open[k] != NULL && program->open[k]->area.memory != NULL) {
      program->ranges[count++] = program->open[k]->area.ranges[0];
    }
  }
  if (scratch->memory != NULL) {
    program->ranges[count++] = (worker_range_t){.guard = scratch->memory,
                                                .data = scratch->data,
                                                .bytes = scratch->part.bytes,
                                                .end = scratch->memory + scratch->reserved,
                                                .place = CLEAVE_PLACE_WORKSPACE};
  }
  worker_fault_watch(program->ranges, count);
}

/* Bytes that were written beyond the workspace, on which side; 0: none. */
static size_t check_scratch(const worker_t *worker, bool *out_behind) {
  const worker_scratch_t *scratch = &worker->scratch;
  *out_behind = false;
  return scratch->memory == NULL
             ? 0
             : cleave_area_check(&scratch->part, scratch->data - scratch->part.lead, out_behind);
}

/* The workspace lies at the end of the scratch memory, so that accesses beyond it are noticed. */
static void *workspace_of(const worker_t *worker, const worker_program_t *program) {
  size_t bytes = (program->workspace_bytes + 63) / 64 * 64;
  return worker->scratch.data == NULL
             ? NULL
             : worker->scratch.data + (worker->scratch.part.span - worker->scratch.part.lead - bytes);
}

/* ---- outputs whose shape only the run knows ---- */

static cleave_status_t place_on_device(const running_t *running, uint32_t output, size_t bytes) {
  const worker_program_t *program = running->program;
  cleave_tensor_view_t *view = &program->device_outputs[output];
  const cleave_backend_devices_t *devices = running->worker->table.devices;
  cleave_message_t message = {.text = ""};
  void *memory = NULL;
  if (view->data != NULL) {
    devices->free(running->worker->state, program->device, (void *)(uintptr_t)view->data);
    view->data = NULL;
  }
  CLEAVE_TRY(
      devices->alloc(running->worker->state, program->device, bytes == 0 ? 1 : bytes, &memory, &message));
  view->data = memory;
  view->rank = program->outputs[output].rank;
  view->dims = program->outputs[output].dims;
  return CLEAVE_OK;
}

/* Memory that came with the answer, for the shape that was asked for. */
static cleave_status_t take_memory(running_t *running, uint32_t output, worker_answer_t *answer) {
  worker_program_t *program = running->program;
  worker_open_output_t *open = program->open[output];
  cleave_tensor_view_t *view = &program->outputs[output];
  size_t bytes = 0;
  uint64_t sent = cleave_wire_u64(&answer->in);
  if (!cleave_tensor_view_bytes(view, &bytes) || bytes != sent || answer->frame.fd < 0) {
    return CLEAVE_ERROR_INTERNAL;
  }
  worker_buffer_t buffer = {.bytes = bytes, .index = output};
  CLEAVE_TRY(worker_area_map(&open->area, answer->frame.fd, &buffer, 1, NULL));
  view->data = open->area.data[0];
  watch(running);
  return program->has_device ? place_on_device(running, output, bytes) : CLEAVE_OK;
}

static cleave_status_t resize_output(void *session, uint32_t output, int32_t rank, const int64_t *dims) {
  running_t *running = session;
  worker_program_t *program = running->program;
  cleave_wire_out_t out = {0};
  worker_answer_t answer;
  if (output >= program->region.output_count || program->open[output] == NULL) {
    return cleave_resize_refuse_output(&running->refusal, output);
  }
  worker_open_output_t *open = program->open[output];
  cleave_tensor_view_t *view = &program->outputs[output];
  cleave_resize_t wanted = {.output = output, .rank = rank, .dims = dims};
  cleave_tensor_view_t any = {.dtype = view->dtype, .rank = -1}; /* the parent knows what is known of it */
  CLEAVE_TRY(cleave_resize_check(&wanted, &any, NULL, SIZE_MAX, &running->refusal));
  if (rank > 0) {
    memmove(open->dims, dims, (size_t)rank * sizeof *dims);
  }
  worker_area_unmap(&open->area);
  *view = program->region.values[program->region.outputs[output]].tensor;
  view->rank = rank;
  view->dims = open->dims;
  view->data = NULL;
  cleave_wire_put_u32(&out, output);
  cleave_wire_put_u32(&out, (uint32_t)rank);
  cleave_wire_put(&out, open->dims, (size_t)rank * sizeof *open->dims, sizeof *open->dims);
  cleave_status_t status = worker_call_back(running->worker, CLEAVE_FRAME_RESIZE, &out, &answer, NULL);
  cleave_wire_deinit(&out);
  CLEAVE_THEN(status, take_memory(running, output, &answer));
  worker_answer_free(&answer);
  if (status != CLEAVE_OK) {
    view->data = NULL;
    view->rank = -1;
  }
  return status;
}

/* Frees the outputs whose shapes this run told; the next run tells them again. */
static void forget_open(const running_t *running) {
  worker_program_t *program = running->program;
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    if (program->open[k] == NULL) {
      continue;
    }
    if (program->has_device && program->device_outputs[k].data != NULL) {
      running->worker->table.devices->free(running->worker->state, program->device,
                                           (void *)(uintptr_t)program->device_outputs[k].data);
      program->device_outputs[k].data = NULL;
      program->device_outputs[k].rank = -1;
    }
    worker_area_unmap(&program->open[k]->area);
    program->outputs[k].data = NULL;
    program->outputs[k].rank = -1;
  }
}

/* ---- the run ---- */

static bool read_requests(worker_program_t *program, cleave_wire_in_t *in, bool *out_has_requests) {
  uint32_t count = cleave_wire_count(in, sizeof(uint32_t));
  *out_has_requests = count > 0;
  if (in->failed || (count != 0 && count != program->region.output_count)) {
    return false;
  }
  for (uint32_t k = 0; k < count; k++) {
    program->requests[k] = (cleave_request_t)cleave_wire_index(in, CLEAVE_REQUEST_NONE + 1);
  }
  return !in->failed;
}

static void put_steps(worker_t *worker, const worker_program_t *program) {
  const cleave_step_time_t *steps = NULL;
  bool has_steps = program->profile && worker->table.profile != NULL &&
                   (program->way == CLEAVE_WAY_COMPILE || program->way == CLEAVE_WAY_LOAD);
  uint32_t count = has_steps ? worker->table.profile(program->program, &steps) : 0;
  count = steps == NULL ? 0 : count;
  cleave_wire_put_u32(&worker->reply, count);
  for (uint32_t k = 0; k < count; k++) {
    cleave_wire_put_text(&worker->reply, steps[k].label == NULL ? "" : steps[k].label);
    cleave_wire_put_u32(&worker->reply, steps[k].node);
    cleave_wire_put_u32(&worker->reply, steps[k].fusion);
    cleave_wire_put_u64(&worker->reply, steps[k].start_ns);
    cleave_wire_put_u64(&worker->reply, steps[k].end_ns);
  }
}

static cleave_status_t call(const worker_t *worker, const worker_program_t *program,
                            const cleave_run_args_t *args, cleave_message_t *message) {
  switch (program->way) {
    case CLEAVE_WAY_EXECUTOR: return worker->table.imperative->execute(program->program, args, message);
    case CLEAVE_WAY_KERNEL: return program->definition->execute(program->program, args, message);
    default: return worker->table.run(program->program, args, message);
  }
}

/* Points the outputs to their buffers again, because the library may have written into its views. */
static void restore_outputs(worker_program_t *program) {
  for (uint32_t k = 0; k < program->area.count; k++) {
    const worker_range_t *range = &program->area.ranges[k];
    if (range->place == CLEAVE_PLACE_OUTPUT) {
      program->outputs[range->index].data = program->area.data[k];
    }
  }
}

static cleave_status_t run(running_t *running, bool has_requests, cleave_run_args_t *args,
                           cleave_message_t *message) {
  worker_t *worker = running->worker;
  worker_program_t *program = running->program;
  args->inputs = program->has_device ? program->device_inputs : program->inputs;
  args->outputs = program->has_device ? program->device_outputs : program->outputs;
  args->workspace = program->has_device ? program->workspace : workspace_of(worker, program);
  args->requests = has_requests ? program->requests : NULL;
  args->resize_output = resize_output;
  args->session = running;
  if (program->has_device) {
    CLEAVE_TRY(worker_device_copy_in(worker, program, has_requests, message));
  } else {
    restore_outputs(program);
  }
  watch(running);
  cleave_status_t status = call(worker, program, args, message);
  cleave_resize_explain(&running->refusal, status, message);
  bool is_behind = false;
  size_t overrun = check_scratch(worker, &is_behind);
  if (overrun == 0) {
    CLEAVE_TRY(status);
  }
  message->text[0] = '\0';
  cleave_wire_put_u64(&worker->reply, overrun);
  cleave_wire_put_u32(&worker->reply, is_behind);
  if (overrun > 0) {
    return CLEAVE_OK; /* the parent ends this process */
  }
  if (program->has_device) {
    CLEAVE_TRY(worker_device_copy_out(worker, program, message));
  }
  put_steps(worker, program);
  return CLEAVE_OK;
}

cleave_status_t worker_program_run(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  running_t running = {.worker = worker, .program = worker_program_find(worker, cleave_wire_u32(in))};
  cleave_run_args_t args = {.size = sizeof args};
  bool has_requests = false;
  if (running.program == NULL || !running.program->is_bound ||
      !worker_read_pairs(&worker->arena, in, &args.options, &args.option_count) ||
      !read_requests(running.program, in, &has_requests)) {
    return worker_fail_request(message);
  }
  cleave_status_t status = run(&running, has_requests, &args, message);
  forget_open(&running);
  return status;
}
