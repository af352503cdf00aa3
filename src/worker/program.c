// SPDX-License-Identifier: Apache-2.0
// Programs of the library: compiled, loaded from a blob, executors and kernels alike. They are bound to the
// buffers of the parent before they run: views of the buffers, of memory on the device where the library has
// one, and scratch memory that all programs share, since one runs at a time.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/region/region_wire.h"
#include "worker/worker.h"

enum { MAX_PORTS = 1 << 17 };

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

worker_program_t *worker_program_find(const worker_t *worker, uint32_t id) {
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

/* ---- ending ---- */

static void leave_binding(const worker_t *worker, worker_program_t *program) {
  worker_fault_watch(NULL, 0);
  for (uint32_t k = 0; program->open != NULL && k < program->region.output_count; k++) {
    if (program->open[k] != NULL) {
      worker_area_unmap(&program->open[k]->area);
    }
  }
  worker_device_leave(worker, program);
  worker_area_unmap(&program->area);
  cleave_arena_reset(&program->binding);
  program->open = NULL;
  program->is_bound = false;
}

static void end_program(const worker_t *worker, worker_program_t *program) {
  switch (program->way) {
    case CLEAVE_WAY_EXECUTOR: worker->table.imperative->release_executor(program->program); break;
    case CLEAVE_WAY_KERNEL: program->definition->destroy(program->program); break;
    default: worker->table.unload(program->program); break;
  }
}

static void destroy(const worker_t *worker, worker_program_t *program) {
  if (program->program != NULL) {
    end_program(worker, program);
  }
  if (program->blob != NULL) {
    (void)munmap(program->blob, program->blob_bytes);
  }
  leave_binding(worker, program);
  cleave_arena_deinit(&program->binding);
  cleave_arena_deinit(&program->arena);
  cleave_free(program->message);
  cleave_free(program);
}

cleave_status_t worker_program_unload(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  uint32_t id = cleave_wire_u32(in);
  worker_program_t *program = worker_program_find(worker, id);
  if (program == NULL) {
    (void)snprintf(message->text, sizeof message->text, "there is no program %u", (unsigned)id);
    return CLEAVE_ERROR_INTERNAL;
  }
  worker_program_t **place = worker->programs.items + find_index(worker, id);
  memmove(place, place + 1,
          (size_t)(worker->programs.items + worker->programs.count - place - 1) * sizeof *place);
  worker->programs.count--;
  destroy(worker, program);
  return CLEAVE_OK;
}

void worker_program_unload_all(worker_t *worker) {
  for (size_t k = 0; k < worker->programs.count; k++) {
    destroy(worker, worker->programs.items[k]);
  }
  worker->programs.count = 0;
}

/* ---- compiling ---- */

/* Replies with what the planner must know. Executors and kernels need only their inputs and outputs. */
static cleave_status_t take_info(worker_t *worker, worker_program_t *program, cleave_message_t *message) {
  bool has_info = program->way == CLEAVE_WAY_COMPILE || program->way == CLEAVE_WAY_LOAD;
  const cleave_program_info_t none = {.size = sizeof none};
  const cleave_program_info_t *info = has_info ? worker->table.info(program->program) : &none;
  if (info == NULL || info->size < offsetof(cleave_program_info_t, inplace_count)) {
    (void)snprintf(message->text, sizeof message->text, "compiled, but does not describe the program");
    return CLEAVE_ERROR_BACKEND;
  }
  program->workspace_bytes = info->workspace_bytes;
  cleave_wire_put_u64(&worker->reply, info->persistent_bytes);
  bool has_note =
      info->size >= offsetof(cleave_program_info_t, note) + sizeof info->note && info->note != NULL;
  char note[CLEAVE_PROGRAM_NOTE_BYTES] = "";
  (void)snprintf(note, sizeof note, "%s", has_note ? info->note : "");
  cleave_wire_put_text(&worker->reply, has_note ? note : NULL);
  bool is_on_host =
      program->way == CLEAVE_WAY_KERNEL || worker_device_functions(worker, program->device) == NULL;
  if (is_on_host && worker_scratch_reserve(&worker->scratch, info->workspace_bytes) != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "wants %zu byte%s of workspace: there is no memory",
                   info->workspace_bytes, CLEAVE_PLURAL(info->workspace_bytes));
    return CLEAVE_ERROR_BACKEND;
  }
  return CLEAVE_OK;
}

static cleave_status_t load(worker_t *worker, worker_program_t *program, uint32_t number,
                            const cleave_compile_options_t *options, cleave_message_t *message) {
  size_t bytes = 0;
  const void *data = worker_constants_get(&worker->constants, number, &bytes);
  if (worker->table.blobs == NULL || (data == NULL && number != CLEAVE_INDEX_NONE)) {
    return worker_fail_request(message);
  }
  CLEAVE_TRY(worker->table.blobs->load(worker->state, &program->region, options, data, bytes,
                                       &program->program, message));
  program->blob = worker_constants_take(&worker->constants, number, &program->blob_bytes);
  return CLEAVE_OK;
}

static cleave_status_t make(worker_t *worker, worker_program_t *program, uint32_t number,
                            const cleave_compile_options_t *options, cleave_message_t *message) {
  switch (program->way) {
    case CLEAVE_WAY_COMPILE:
      return worker->table.compile(worker->state, &program->region, options, &program->program, message);
    case CLEAVE_WAY_LOAD: return load(worker, program, number, options, message);
    case CLEAVE_WAY_EXECUTOR:
      return worker->table.imperative == NULL
                 ? worker_fail_request(message)
                 : worker->table.imperative->get_executor(worker->state, &program->region, options,
                                                          &program->program, message);
    case CLEAVE_WAY_KERNEL:
      program->definition = worker_operator(worker, number);
      return program->definition == NULL || program->definition->create == NULL
                 ? worker_fail_request(message)
                 : program->definition->create(program->definition->self, &program->region, options,
                                               &program->program, message);
    default: return worker_fail_request(message);
  }
}

static cleave_status_t compile(worker_t *worker, worker_program_t *program, cleave_wire_in_t *in,
                               cleave_message_t *message) {
  cleave_compile_options_t options = {.size = sizeof options};
  program->id = cleave_wire_u32(in);
  program->way = (cleave_program_way_t)cleave_wire_index(in, CLEAVE_WAY_COUNT);
  uint32_t number = cleave_wire_u32(in);
  options.threads = (int32_t)cleave_wire_u32(in);
  options.profile = cleave_wire_index(in, 2) == 1;
  options.device = cleave_wire_u32(in);
  bool is_read = worker_read_pairs(&program->arena, in, &options.options, &options.option_count);
  if (!is_read || in->failed || worker_program_find(worker, program->id) != NULL) {
    return worker_fail_request(message);
  }
  program->profile = options.profile;
  program->device = options.device;
  CLEAVE_TRY(worker_read_region(worker, in, &program->arena, &program->region, message));
  if (program->way != CLEAVE_WAY_KERNEL) {
    CLEAVE_TRY(worker_device_start(worker, program->device, message));
  }
  CLEAVE_TRY_OR(make(worker, program, number, &options, message), program->program = NULL);
  if (program->program == NULL) {
    (void)snprintf(message->text, sizeof message->text, "the backend made no program and gave no reason");
    return CLEAVE_ERROR_BACKEND;
  }
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
  program->message = worker_take_request(worker);
  if (status != CLEAVE_OK) {
    destroy(worker, program);
  }
  return status;
}

/* ---- binding ---- */

static bool allocate_binding(worker_program_t *program) {
  const cleave_region_view_t *region = &program->region;
  cleave_arena_t *arena = &program->binding;
  size_t count = (size_t)region->input_count + region->output_count;
  program->inputs = cleave_arena_allocate(arena, region->input_count, sizeof *program->inputs);
  program->is_fixed = cleave_arena_allocate(arena, region->input_count, sizeof *program->is_fixed);
  program->outputs = cleave_arena_allocate(arena, region->output_count, sizeof *program->outputs);
  program->open = cleave_arena_allocate(arena, region->output_count, sizeof *program->open);
  program->requests = cleave_arena_allocate(arena, region->output_count, sizeof *program->requests);
  program->ranges = cleave_arena_allocate(arena, count + 1, sizeof *program->ranges);
  return program->inputs != NULL && program->is_fixed != NULL && program->outputs != NULL &&
         program->open != NULL && program->requests != NULL && program->ranges != NULL;
}

/* Reads one port into its view; a buffer has its size in *out_bytes. False if it makes no sense. */
static bool read_port(worker_program_t *program, cleave_wire_in_t *in, uint32_t port,
                      cleave_port_kind_t *out_kind, size_t *out_bytes) {
  const cleave_region_view_t *region = &program->region;
  bool is_input = port < region->input_count;
  uint32_t index = is_input ? port : port - region->input_count;
  cleave_tensor_view_t *view = is_input ? &program->inputs[index] : &program->outputs[index];
  *view = region->values[is_input ? region->inputs[index] : region->outputs[index]].tensor;
  *out_kind = (cleave_port_kind_t)cleave_wire_index(in, CLEAVE_PORT_COUNT);
  if (*out_kind == CLEAVE_PORT_FIXED) {
    return is_input && view->data != NULL;
  }
  if (*out_kind == CLEAVE_PORT_OPEN) {
    view->data = NULL;
    view->rank = -1;
    return !is_input;
  }
  view->rank = (int32_t)cleave_wire_index(in, CLEAVE_MAX_RANK + 1);
  const int64_t *dims = cleave_wire_take(in, (size_t)view->rank, sizeof *dims, sizeof *dims);
  int64_t *own = cleave_arena_allocate(&program->binding, CLEAVE_MAX_RANK, sizeof *own);
  if (dims == NULL || own == NULL) {
    return false;
  }
  memcpy(own, dims, (size_t)view->rank * sizeof *own);
  view->dims = own;
  view->data = NULL;
  view->storage = CLEAVE_STORAGE_DENSE;
  return cleave_tensor_view_bytes(view, out_bytes);
}

/* Reads the ports, and lists the buffers among them. */
static bool read_ports(worker_program_t *program, cleave_wire_in_t *in, worker_buffer_t *buffers,
                       uint32_t *out_count) {
  const cleave_region_view_t *region = &program->region;
  uint32_t count = region->input_count + region->output_count;
  *out_count = 0;
  for (uint32_t k = 0; k < region->output_count; k++) {
    program->open[k] = NULL;
  }
  for (uint32_t k = 0; k < count; k++) {
    bool is_input = k < region->input_count;
    uint32_t index = is_input ? k : k - region->input_count;
    cleave_port_kind_t kind = CLEAVE_PORT_BUFFER;
    size_t bytes = 0;
    if (!read_port(program, in, k, &kind, &bytes)) {
      return false;
    }
    if (is_input) {
      program->is_fixed[index] = kind == CLEAVE_PORT_FIXED;
    }
    if (kind == CLEAVE_PORT_BUFFER) {
      buffers[(*out_count)++] = (worker_buffer_t){.bytes = bytes, .is_input = is_input, .index = index};
    } else if (kind == CLEAVE_PORT_OPEN) {
      program->open[index] = cleave_arena_allocate(&program->binding, 1, sizeof **program->open);
      if (program->open[index] == NULL) {
        return false;
      }
      *program->open[index] = (worker_open_output_t){0};
    }
  }
  return cleave_wire_is_done(in);
}

static void give_memory(worker_program_t *program, const worker_buffer_t *buffers, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_view_t *views = buffers[k].is_input ? program->inputs : program->outputs;
    views[buffers[k].index].data = program->area.data[k];
    program->ranges[k] = program->area.ranges[k];
  }
}

static cleave_status_t bind(worker_t *worker, worker_program_t *program, cleave_wire_in_t *in,
                            worker_buffer_t *buffers, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint32_t count = 0;
  if (!allocate_binding(program)) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (!read_ports(program, in, buffers, &count)) {
    return worker_fail_request(message);
  }
  if (count > 0) {
    if (worker->request.fd < 0) {
      return worker_fail_request(message);
    }
    if (worker_area_map(&program->area, worker->request.fd, buffers, count, &error) != CLEAVE_OK) {
      return worker_fail(&error, message);
    }
  }
  give_memory(program, buffers, count);
  if (program->way != CLEAVE_WAY_KERNEL && worker_device_functions(worker, program->device) != NULL) {
    CLEAVE_TRY(worker_device_use(worker, program, message));
  }
  program->is_bound = true;
  return CLEAVE_OK;
}

cleave_status_t worker_program_bind(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  worker_program_t *program = worker_program_find(worker, cleave_wire_u32(in));
  uint32_t count = cleave_wire_u32(in);
  if (program == NULL || count > MAX_PORTS ||
      count != program->region.input_count + program->region.output_count) {
    return worker_fail_request(message);
  }
  leave_binding(worker, program);
  worker_buffer_t *buffers = cleave_arena_allocate(&worker->arena, count, sizeof *buffers);
  cleave_status_t status =
      buffers == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : bind(worker, program, in, buffers, message);
  if (status != CLEAVE_OK) {
    leave_binding(worker, program);
  }
  return status;
}
