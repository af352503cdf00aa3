// SPDX-License-Identifier: Apache-2.0
// Programs of the library. A run has everything prepared: views of the buffers, of memory on the device where
// the library has one, and scratch memory that all programs share, since one runs at a time.
#include <stdio.h>
#include <string.h>

#include "backend/region_wire.h"
#include "worker/worker.h"

/* ---- programs by id ---- */

static size_t find_index(const worker_t *worker, uint32_t id) {
  size_t low = 0;
  size_t high = worker->programs.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (worker->programs.items[middle]->id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static worker_program_t *find(const worker_t *worker, uint32_t id) {
  size_t index = find_index(worker, id);
  bool is_there = index < worker->programs.count && worker->programs.items[index]->id == id;
  return is_there ? worker->programs.items[index] : NULL;
}

static cleave_status_t add(worker_t *worker, worker_program_t *program, cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&worker->programs, 1, error));
  size_t index = find_index(worker, program->id);
  worker_program_t **place = worker->programs.items + index;
  memmove(place + 1, place, (worker->programs.count - index) * sizeof *place);
  *place = program;
  worker->programs.count++;
  return CLEAVE_OK;
}

/* ---- memory on the device ---- */

static const cleave_backend_devices_t *devices_of(const worker_t *worker, uint32_t device) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  cleave_device_properties_t properties = {.size = sizeof properties};
  cleave_message_t message = {.text = ""};
  bool is_complete = devices != NULL && devices->alloc != NULL && devices->free != NULL &&
                     devices->copy_to != NULL && devices->copy_from != NULL;
  bool shares = is_complete && devices->properties != NULL &&
                devices->properties(worker->state, device, &properties, &message) == CLEAVE_OK &&
                properties.shares_host_memory;
  return is_complete && !shares ? devices : NULL;
}

static cleave_status_t move_to_device(worker_t *worker, const worker_program_t *program,
                                      const cleave_tensor_view_t *from, uint32_t count, const size_t *bytes,
                                      cleave_tensor_view_t *to, cleave_message_t *message) {
  for (uint32_t k = 0; k < count; k++) {
    void *memory = NULL;
    to[k] = from[k];
    to[k].memory = program->device + 1;
    to[k].data = NULL;
    CLEAVE_TRY(worker->table.devices->alloc(worker->state, program->device, bytes[k] == 0 ? 1 : bytes[k],
                                            &memory, message));
    to[k].data = memory;
  }
  return CLEAVE_OK;
}

static cleave_status_t use_device(worker_t *worker, worker_program_t *program, cleave_message_t *message) {
  const cleave_region_view_t *region = &program->region;
  uint32_t count = region->input_count + region->output_count;
  size_t *bytes = cleave_arena_allocate(&program->arena, count, sizeof *bytes);
  program->device_inputs =
      cleave_arena_allocate(&program->arena, region->input_count, sizeof *program->device_inputs);
  program->device_outputs =
      cleave_arena_allocate(&program->arena, region->output_count, sizeof *program->device_outputs);
  if (bytes == NULL || program->device_inputs == NULL || program->device_outputs == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  for (uint32_t k = 0; k < count; k++) {
    bytes[k] = program->area.parts[k].bytes;
  }
  program->has_device = true;
  CLEAVE_TRY(move_to_device(worker, program, program->inputs, region->input_count, bytes,
                            program->device_inputs, message));
  CLEAVE_TRY(move_to_device(worker, program, program->outputs, region->output_count,
                            bytes + region->input_count, program->device_outputs, message));
  if (program->workspace_bytes == 0) {
    return CLEAVE_OK;
  }
  return worker->table.devices->alloc(worker->state, program->device, program->workspace_bytes,
                                      &program->workspace, message);
}

static void free_views(const worker_t *worker, const worker_program_t *program, cleave_tensor_view_t *views,
                       uint32_t count) {
  for (uint32_t k = 0; views != NULL && k < count; k++) {
    if (views[k].data != NULL) {
      worker->table.devices->free(worker->state, program->device, (void *)(uintptr_t)views[k].data);
    }
  }
}

static void leave_device(const worker_t *worker, worker_program_t *program) {
  free_views(worker, program, program->device_inputs, program->region.input_count);
  free_views(worker, program, program->device_outputs, program->region.output_count);
  if (program->workspace != NULL) {
    worker->table.devices->free(worker->state, program->device, program->workspace);
  }
}

/* ---- compiling ---- */

static void destroy(const worker_t *worker, worker_program_t *program) {
  if (program->program != NULL) {
    worker->table.unload(program->program);
  }
  if (program->has_device) {
    leave_device(worker, program);
  }
  worker_area_unmap(&program->area);
  cleave_arena_deinit(&program->arena);
  cleave_free(program->message);
  cleave_free(program);
}

/* Views of the buffers, in the order of the region. */
static cleave_tensor_view_t *make_views(worker_program_t *program, const uint32_t *values, uint32_t count,
                                        uint32_t first_part) {
  cleave_tensor_view_t *views = cleave_arena_allocate(&program->arena, count, sizeof *views);
  for (uint32_t k = 0; views != NULL && k < count; k++) {
    views[k] = program->region.values[values[k]].tensor;
    views[k].data = program->area.data[first_part + k];
  }
  return views;
}

/* The sizes in the request are those of the region. */
static bool sizes_agree(const worker_program_t *program, const uint64_t *sizes, uint32_t count) {
  const cleave_region_view_t *region = &program->region;
  bool agree = count == region->input_count + region->output_count;
  for (uint32_t k = 0; k < count && agree; k++) {
    uint32_t value = k < region->input_count ? region->inputs[k] : region->outputs[k - region->input_count];
    size_t bytes = 0;
    agree = cleave_tensor_view_bytes(&region->values[value].tensor, &bytes) && bytes == sizes[k];
  }
  return agree;
}

static cleave_status_t prepare(worker_t *worker, worker_program_t *program, const uint64_t *sizes,
                               uint32_t input_count, uint32_t count, cleave_error_t *error) {
  if (!sizes_agree(program, sizes, count) || input_count != program->region.input_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "the buffers of a region have other sizes");
  }
  CLEAVE_TRY(worker_area_map(&program->area, worker->request.fd, sizes, input_count, count, error));
  program->inputs = make_views(program, program->region.inputs, input_count, 0);
  program->outputs = make_views(program, program->region.outputs, count - input_count, input_count);
  program->requests = cleave_arena_allocate(&program->arena, count - input_count, sizeof *program->requests);
  return program->inputs != NULL && program->outputs != NULL && program->requests != NULL
             ? CLEAVE_OK
             : cleave_error_out_of_memory(error);
}

static cleave_status_t take_info(worker_t *worker, worker_program_t *program, cleave_message_t *message) {
  const cleave_program_info_t *info = worker->table.info(program->program);
  if (info == NULL || info->size < offsetof(cleave_program_info_t, inplace_count)) {
    (void)snprintf(message->text, sizeof message->text, "compiled, and tells nothing about the program");
    return CLEAVE_ERROR_BACKEND;
  }
  program->workspace_bytes = info->workspace_bytes;
  cleave_wire_put_u64(&worker->reply, info->persistent_bytes);
  if (devices_of(worker, program->device) != NULL) {
    return use_device(worker, program, message);
  }
  if (worker_scratch_reserve(&worker->scratch, info->workspace_bytes) != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "wants %zu bytes of workspace: there is no memory",
                   info->workspace_bytes);
    return CLEAVE_ERROR_BACKEND;
  }
  return CLEAVE_OK;
}

static cleave_status_t compile(worker_t *worker, worker_program_t *program, cleave_wire_in_t *in,
                               cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_compile_options_t options = {.size = sizeof options};
  program->id = cleave_wire_u32(in);
  options.threads = (int32_t)cleave_wire_u32(in);
  options.profile = cleave_wire_index(in, 2) == 1;
  options.device = cleave_wire_u32(in);
  bool is_read = worker_read_pairs(worker, in, &options.options, &options.option_count);
  uint32_t input_count = cleave_wire_u32(in);
  uint32_t count = input_count + cleave_wire_u32(in);
  const uint64_t *sizes = cleave_wire_take(in, count, sizeof *sizes, sizeof *sizes);
  if (!is_read || count < input_count || in->failed || find(worker, program->id) != NULL) {
    (void)snprintf(message->text, sizeof message->text, "a request cannot be read");
    return CLEAVE_ERROR_INTERNAL;
  }
  program->profile = options.profile;
  program->device = options.device;
  cleave_status_t status = cleave_region_read(in, &program->arena, worker_constants_find, &worker->constants,
                                              &program->region, &error);
  if (status == CLEAVE_OK) {
    status = prepare(worker, program, sizes, input_count, count, &error);
  }
  if (status != CLEAVE_OK) {
    return worker_fail(&error, message);
  }
  CLEAVE_TRY(worker->table.compile(worker->state, &program->region, &options, &program->program, message));
  message->text[0] = '\0';
  CLEAVE_TRY(take_info(worker, program, message));
  return add(worker, program, NULL);
}

cleave_status_t worker_program_compile(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_program_t *program = cleave_allocate_zeroed(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_status_t status = compile(worker, program, in, message);
  /* The region points into the request, which goes with the program. */
  program->message = worker->request.data;
  worker->request.data = NULL;
  worker->request.capacity = 0;
  if (status != CLEAVE_OK) {
    destroy(worker, program);
  }
  return status;
}

cleave_status_t worker_program_unload(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  uint32_t id = cleave_wire_u32(in);
  worker_program_t *program = find(worker, id);
  if (program == NULL) {
    (void)snprintf(message->text, sizeof message->text, "there is no program %u", (unsigned)id);
    return CLEAVE_ERROR_INTERNAL;
  }
  worker_program_t **place = worker->programs.items + find_index(worker, id);
  memmove(place, place + 1,
          (size_t)(worker->programs.items + worker->programs.count - place - 1) * sizeof *place);
  worker->programs.count--;
  worker_fault_watch(NULL, 0);
  destroy(worker, program);
  return CLEAVE_OK;
}

void worker_program_unload_all(worker_t *worker) {
  worker_fault_watch(NULL, 0);
  for (size_t k = 0; k < worker->programs.count; k++) {
    destroy(worker, worker->programs.items[k]);
  }
  worker->programs.count = 0;
}

/* ---- running ---- */

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

static cleave_status_t copy_to_device(worker_t *worker, const worker_program_t *program, bool has_requests,
                                      cleave_message_t *message) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  for (uint32_t k = 0; k < program->region.input_count; k++) {
    CLEAVE_TRY(devices->copy_to(worker->state, program->device, &program->device_inputs[k],
                                &program->inputs[k], NULL, message));
  }
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    if (has_requests && program->requests[k] == CLEAVE_REQUEST_ADD) {
      CLEAVE_TRY(devices->copy_to(worker->state, program->device, &program->device_outputs[k],
                                  &program->outputs[k], NULL, message));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_from_device(worker_t *worker, const worker_program_t *program,
                                        cleave_message_t *message) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    CLEAVE_TRY(devices->copy_from(worker->state, program->device, &program->outputs[k],
                                  &program->device_outputs[k], NULL, message));
  }
  return CLEAVE_OK;
}

/* Faults are looked up among the buffers, and in the scratch memory. */
static void watch(const worker_t *worker, worker_program_t *program) {
  uint32_t count = program->area.count;
  const worker_scratch_t *scratch = &worker->scratch;
  if (scratch->memory != NULL) {
    program->area.ranges[count++] = (worker_range_t){.guard = scratch->memory,
                                                     .data = scratch->data,
                                                     .bytes = scratch->part.bytes,
                                                     .end = scratch->memory + scratch->reserved,
                                                     .place = CLEAVE_PLACE_WORKSPACE};
  }
  worker_fault_watch(program->area.ranges, count);
}

/* Bytes that were written beyond the workspace, on which side; 0: none. */
static size_t check_scratch(const worker_t *worker, bool *out_behind) {
  const worker_scratch_t *scratch = &worker->scratch;
  *out_behind = false;
  return scratch->memory == NULL
             ? 0
             : cleave_area_check(&scratch->part, scratch->data - scratch->part.lead, out_behind);
}

static void put_steps(worker_t *worker, const worker_program_t *program) {
  const cleave_step_time_t *steps = NULL;
  uint32_t count =
      program->profile && worker->table.profile != NULL ? worker->table.profile(program->program, &steps) : 0;
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

/* At the end of the scratch memory, so that what is beyond it is noticed. */
static void *workspace_of(const worker_t *worker, const worker_program_t *program) {
  size_t bytes = (program->workspace_bytes + 63) / 64 * 64;
  return worker->scratch.data + (worker->scratch.part.span - worker->scratch.part.lead - bytes);
}

static cleave_status_t run(worker_t *worker, worker_program_t *program, bool has_requests,
                           cleave_run_args_t *args, cleave_message_t *message) {
  args->size = sizeof *args;
  args->inputs = program->has_device ? program->device_inputs : program->inputs;
  args->outputs = program->has_device ? program->device_outputs : program->outputs;
  args->workspace = program->has_device ? program->workspace : workspace_of(worker, program);
  args->requests = has_requests ? program->requests : NULL;
  if (program->has_device) {
    CLEAVE_TRY(copy_to_device(worker, program, has_requests, message));
  }
  for (uint32_t k = 0; k < program->region.output_count && !program->has_device; k++) {
    program->outputs[k].data = program->area.data[program->region.input_count + k];
  }
  watch(worker, program);
  cleave_status_t status = worker->table.run(program->program, args, message);
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
    CLEAVE_TRY(copy_from_device(worker, program, message));
  }
  put_steps(worker, program);
  return CLEAVE_OK;
}

cleave_status_t worker_program_run(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_program_t *program = find(worker, cleave_wire_u32(in));
  cleave_run_args_t args = {.size = sizeof args};
  bool has_requests = false;
  if (program == NULL || !worker_read_pairs(worker, in, &args.options, &args.option_count) ||
      !read_requests(program, in, &has_requests)) {
    (void)snprintf(message->text, sizeof message->text, "a request cannot be read");
    return CLEAVE_ERROR_INTERNAL;
  }
  return run(worker, program, has_requests, &args, message);
}
