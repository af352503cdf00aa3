// SPDX-License-Identifier: Apache-2.0
// Making programs of isolated libraries, and memory for their inputs and outputs. What a program reads again
// and again, its constants, the worker has already; all else is bound before the first run if its shape is
// known, so that a run allocates nothing.
#include "backend/isolate/isolate_program.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/region/region_wire.h"

enum { MAX_PORTS = 1 << 16 };

#define MAX_PERSISTENT ((size_t)1 << 46)

static bool is_operator(const cleave_isolated_program_t *program) {
  return program->way == CLEAVE_WAY_EXECUTOR || program->way == CLEAVE_WAY_KERNEL;
}

cleave_worker_call_t cleave_isolate_program_call(const cleave_isolated_program_t *program, uint32_t kind) {
  cleave_worker_call_t call = cleave_isolate_call(program->isolate, kind, program->name);
  if (is_operator(program)) {
    call.doing = kind == CLEAVE_FRAME_RUN      ? "running operator"
                 : kind == CLEAVE_FRAME_UNLOAD ? "ending operator"
                                               : "preparing operator";
  } else if (program->way == CLEAVE_WAY_LOAD && kind == CLEAVE_FRAME_COMPILE) {
    call.doing = "loading region";
  }
  return call;
}

/* ---- inputs and outputs ---- */

static bool is_known(const cleave_isolated_port_t *port) {
  bool known = port->rank >= 0;
  for (int32_t d = 0; d < port->rank; d++) {
    known = known && port->dims[d] >= 0;
  }
  return known;
}

/* Describes a value on the boundary. An input of an operator may be a constant, which the worker has. */
static cleave_status_t describe_port(const cleave_isolated_program_t *program,
                                     const cleave_value_view_t *value, bool is_input,
                                     cleave_isolated_port_t *port, cleave_message_t *message) {
  const cleave_tensor_view_t *tensor = &value->tensor;
  bool is_fixed = is_input && is_operator(program) && tensor->data != NULL;
  const char *reason = is_fixed                                  ? NULL
                       : tensor->dtype == CLEAVE_DTYPE_STRING    ? "texts"
                       : tensor->storage != CLEAVE_STORAGE_DENSE ? "sparse tensors"
                       : cleave_dtype_size(tensor->dtype) == 0   ? "values without a type"
                       : tensor->rank > CLEAVE_MAX_RANK          ? "values with so many dimensions"
                                                                 : NULL;
  if (reason != NULL) {
    (void)snprintf(message->text, sizeof message->text, "value '%.80s': isolated libraries do not support %s",
                   value->name == NULL ? "" : value->name, reason);
    message->code = CLEAVE_REASON_DTYPE;
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  *port = (cleave_isolated_port_t){.kind = is_fixed ? CLEAVE_PORT_FIXED : CLEAVE_PORT_BUFFER,
                                   .dtype = tensor->dtype,
                                   .rank = tensor->rank,
                                   .version = tensor->version};
  if (tensor->rank > 0) {
    memcpy(port->dims, tensor->dims, (size_t)tensor->rank * sizeof *port->dims);
  }
  if (port->kind == CLEAVE_PORT_BUFFER && !is_input && !is_known(port)) {
    port->kind = CLEAVE_PORT_OPEN;
  }
  return CLEAVE_OK;
}

static cleave_status_t describe_ports(cleave_isolated_program_t *program, const cleave_region_view_t *region,
                                      cleave_message_t *message) {
  uint32_t count = program->input_count + program->output_count;
  program->ports = cleave_allocate_zeroed(count, sizeof *program->ports);
  if (program->ports == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  for (uint32_t k = 0; k < count; k++) {
    bool is_input = k < program->input_count;
    uint32_t value = is_input ? region->inputs[k] : region->outputs[k - program->input_count];
    CLEAVE_TRY(describe_port(program, &region->values[value], is_input, &program->ports[k], message));
    program->is_open = program->is_open || !is_known(&program->ports[k]);
  }
  return CLEAVE_OK;
}

static bool has_known_inputs(const cleave_isolated_program_t *program) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    if (!is_known(&program->ports[k])) {
      return false;
    }
  }
  return true;
}

/* ---- memory ---- */

static cleave_status_t map_memory(const char *name, size_t bytes, unsigned char **out_memory, int *out_fd,
                                  cleave_message_t *message) {
  *out_memory = NULL;
  *out_fd = cleave_worker_make_memory(name, bytes);
  void *memory = *out_fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *out_fd, 0);
  if (memory == MAP_FAILED) {
    (void)snprintf(message->text, sizeof message->text, "no %zu byte%s of memory to share", bytes,
                   CLEAVE_PLURAL(bytes));
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *out_memory = memory;
  return CLEAVE_OK;
}

static void leave_area(cleave_isolated_program_t *program) {
  if (program->area != NULL) {
    (void)munmap(program->area, program->area_bytes);
  }
  program->area = NULL;
  program->area_bytes = 0;
  program->is_bound = false;
}

static cleave_status_t place(cleave_isolated_program_t *program, cleave_message_t *message) {
  uint32_t count = program->input_count + program->output_count;
  size_t total = 0;
  for (uint32_t k = 0; k < count; k++) {
    cleave_isolated_port_t *port = &program->ports[k];
    cleave_tensor_view_t type = {.dtype = port->dtype, .rank = port->rank, .dims = port->dims};
    size_t bytes = 0;
    size_t span = 0;
    if (port->kind != CLEAVE_PORT_BUFFER) {
      continue;
    }
    if (!cleave_tensor_view_bytes(&type, &bytes) || !cleave_area_place(&bytes, 1, &port->part, &span) ||
        !cleave_size_add(total, span, &span) || span > SIZE_MAX / 4) {
      (void)snprintf(message->text, sizeof message->text, "its inputs and outputs are too large");
      return CLEAVE_ERROR_LIMIT;
    }
    port->part.offset = total;
    total = span;
  }
  program->area_bytes = total;
  return CLEAVE_OK;
}

static void put_ports(const cleave_isolated_program_t *program, cleave_wire_out_t *out) {
  uint32_t count = program->input_count + program->output_count;
  cleave_wire_put_u32(out, program->id);
  cleave_wire_put_u32(out, count);
  for (uint32_t k = 0; k < count; k++) {
    const cleave_isolated_port_t *port = &program->ports[k];
    cleave_wire_put_u32(out, (uint32_t)port->kind);
    if (port->kind == CLEAVE_PORT_BUFFER) {
      cleave_wire_put_u32(out, (uint32_t)port->rank);
      cleave_wire_put(out, port->dims, (size_t)port->rank * sizeof *port->dims, sizeof *port->dims);
    }
  }
}

cleave_status_t cleave_isolate_bind(cleave_isolated_program_t *program, cleave_message_t *message) {
  cleave_worker_call_t call = cleave_isolate_program_call(program, CLEAVE_FRAME_BIND);
  cleave_wire_in_t reply;
  leave_area(program);
  CLEAVE_TRY(place(program, message));
  cleave_status_t status = CLEAVE_OK;
  if (program->area_bytes > 0) {
    status = map_memory("cleave buffers", program->area_bytes, &program->area, &call.fd, message);
  }
  for (uint32_t k = 0; status == CLEAVE_OK && k < program->input_count + program->output_count; k++) {
    if (program->ports[k].kind == CLEAVE_PORT_BUFFER) {
      cleave_area_mark(&program->ports[k].part, program->area + program->ports[k].part.offset);
    }
  }
  if (status == CLEAVE_OK) {
    cleave_wire_reset(&program->worker->request);
    put_ports(program, &program->worker->request);
    status = cleave_worker_ask(program->worker, &call, &reply, message);
  }
  cleave_wire_reset(&program->worker->request);
  if (call.fd >= 0) {
    (void)close(call.fd);
  }
  program->is_bound = status == CLEAVE_OK;
  return status;
}

cleave_status_t cleave_isolate_make_area(size_t bytes, cleave_area_part_t *out_part, unsigned char **out_area,
                                         int *out_fd, cleave_message_t *message) {
  size_t total = 0;
  *out_area = NULL;
  *out_fd = -1;
  if (!cleave_area_place(&bytes, 1, out_part, &total)) {
    (void)snprintf(message->text, sizeof message->text, "an output of %zu byte%s is too large", bytes,
                   CLEAVE_PLURAL(bytes));
    return CLEAVE_ERROR_LIMIT;
  }
  CLEAVE_TRY(map_memory("cleave output", total, out_area, out_fd, message));
  cleave_area_mark(out_part, *out_area);
  return CLEAVE_OK;
}

void cleave_isolate_forget_own(cleave_isolated_port_t *port) {
  if (port->own != NULL) {
    (void)munmap(port->own, port->part.span);
  }
  port->own = NULL;
}

/* ---- making and ending ---- */

static void destroy(cleave_isolated_program_t *program) {
  leave_area(program);
  for (uint32_t k = 0; program->ports != NULL && k < program->input_count + program->output_count; k++) {
    cleave_isolate_forget_own(&program->ports[k]);
  }
  cleave_worker_release(program->worker);
  cleave_free(program->ports);
  cleave_free(program->constants);
  cleave_arena_deinit(&program->arena);
  cleave_free(program);
}

static void put_options(cleave_wire_out_t *out, const cleave_compile_options_t *options) {
  bool has_more = options->size > offsetof(cleave_compile_options_t, device);
  cleave_wire_put_u32(out, (uint32_t)options->threads);
  cleave_wire_put_u32(out, options->profile);
  cleave_wire_put_u32(out, has_more ? options->device : 0);
  cleave_wire_put_pairs(out, options->options, has_more ? options->option_count : 0);
}

static cleave_status_t ask(cleave_isolated_program_t *program, const cleave_region_view_t *region,
                           const cleave_compile_options_t *options, cleave_message_t *message) {
  cleave_worker_t *worker = program->worker;
  cleave_wire_in_t reply;
  cleave_worker_call_t call = cleave_isolate_program_call(program, CLEAVE_FRAME_COMPILE);
  put_options(&worker->request, options);
  CLEAVE_TRY(cleave_isolate_put_region(worker, region, message));
  CLEAVE_TRY(cleave_worker_constants_keep(worker, &program->constants, &program->constant_count));
  CLEAVE_TRY(cleave_worker_ask(worker, &call, &reply, message));
  size_t persistent = (size_t)cleave_wire_u64(&reply);
  const char *note = cleave_wire_text(&reply);
  (void)snprintf(program->note, sizeof program->note, "%s", note == NULL ? "" : note);
  CLEAVE_TRY(cleave_isolate_check_reply(worker, &call, &reply, message));
  program->is_made = true;
  if (has_known_inputs(program)) {
    CLEAVE_TRY(cleave_isolate_bind(program, message));
  }
  /* Scratch memory is the worker's own, and what shares memory there need not here. */
  program->info = (cleave_program_info_t){
      .size = sizeof program->info,
      .persistent_bytes = (persistent > MAX_PERSISTENT ? MAX_PERSISTENT : persistent) + program->area_bytes,
      .note = note == NULL ? NULL : program->note};
  return CLEAVE_OK;
}

/* Unloads the worker's part of the program. The caller has begun a call. */
static void unmake(cleave_isolated_program_t *program) {
  cleave_worker_call_t call = cleave_isolate_program_call(program, CLEAVE_FRAME_UNLOAD);
  cleave_worker_t *worker = program->worker;
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  cleave_status_t status = CLEAVE_OK;
  if (program->is_made && !atomic_load(&worker->is_lost)) {
    cleave_wire_reset(&worker->request);
    cleave_wire_put_u32(&worker->request, program->id);
    status = cleave_worker_ask(worker, &call, &reply, &message);
  }
  if (status == CLEAVE_OK) {
    cleave_worker_constants_release(worker, program->constants, program->constant_count);
  }
}

cleave_status_t cleave_isolate_make(cleave_isolate_t *isolate, const cleave_isolate_request_t *request,
                                    void **out_program, cleave_message_t *message) {
  const cleave_region_view_t *region = request->region;
  *out_program = NULL;
  if (region->input_count > MAX_PORTS || region->output_count > MAX_PORTS) {
    (void)snprintf(message->text, sizeof message->text, "too many inputs or outputs");
    return CLEAVE_ERROR_LIMIT;
  }
  cleave_isolated_program_t *program = cleave_allocate_zeroed(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->isolate = isolate;
  program->worker = cleave_isolate_worker(isolate);
  program->id = cleave_isolate_next_id(isolate);
  program->way = request->way;
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  (void)snprintf(program->name, sizeof program->name, "%s", request->name == NULL ? "" : request->name);
  cleave_status_t status = describe_ports(program, region, message);
  if (status == CLEAVE_OK) {
    status = cleave_isolate_begin(program->worker, (uint32_t[]){program->id, request->way, request->number},
                                  3, message);
    if (status == CLEAVE_OK) {
      status = ask(program, region, request->options, message);
      if (status != CLEAVE_OK) {
        unmake(program);
      }
      cleave_worker_end(program->worker);
    }
  }
  CLEAVE_TRY_OR(status, destroy(program));
  *out_program = program;
  return CLEAVE_OK;
}

cleave_status_t cleave_isolate_compile(void *state, const cleave_region_view_t *region,
                                       const cleave_compile_options_t *options, void **out_program,
                                       cleave_message_t *message) {
  cleave_isolate_request_t request = {
      .way = CLEAVE_WAY_COMPILE, .name = region->name, .region = region, .options = options};
  return cleave_isolate_make(state, &request, out_program, message);
}

void cleave_isolate_unload(void *memory) {
  cleave_isolated_program_t *program = memory;
  cleave_message_t message = {.text = ""};
  if (cleave_worker_begin(program->worker, &message) == CLEAVE_OK) {
    unmake(program);
    cleave_worker_end(program->worker);
  }
  destroy(program);
}

const cleave_program_info_t *cleave_isolate_info(const void *program) {
  return &((const cleave_isolated_program_t *)program)->info;
}
