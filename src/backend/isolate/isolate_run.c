// SPDX-License-Identifier: Apache-2.0
// Runs of isolated programs: inputs are copied in, the worker is asked, marks are checked, outputs are copied
// out. Nothing is allocated in a run, unless times of steps are kept or a shape is known only now.
#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_program.h"
#include "backend/region/region_wire.h"

enum { MAX_STEPS = 1 << 16 };

typedef struct running {
  cleave_isolated_program_t *program;
  const cleave_run_args_t *args;
} running_t;

static cleave_request_t request_of(const cleave_run_args_t *args, uint32_t output) {
  bool has_requests = args->size > offsetof(cleave_run_args_t, requests) && args->requests != NULL;
  return has_requests ? args->requests[output] : CLEAVE_REQUEST_WRITE;
}

static cleave_isolated_port_t *output_of(const cleave_isolated_program_t *program, uint32_t output) {
  return &program->ports[program->input_count + output];
}

static unsigned char *buffer_of(const cleave_isolated_program_t *program,
                                const cleave_isolated_port_t *port) {
  unsigned char *pages = port->own != NULL ? port->own : program->area + port->part.offset;
  return pages + port->part.lead;
}

/* ---- shapes ---- */

static bool has_shape(const cleave_isolated_port_t *port, const cleave_tensor_view_t *tensor) {
  return port->rank == tensor->rank &&
         (tensor->rank <= 0 ||
          memcmp(port->dims, tensor->dims, (size_t)tensor->rank * sizeof *port->dims) == 0);
}

static cleave_status_t fail_size(const cleave_isolated_program_t *program, const cleave_isolated_port_t *port,
                                 cleave_message_t *message) {
  uint32_t index = (uint32_t)(port - program->ports);
  bool is_input = index < program->input_count;
  (void)snprintf(message->text, sizeof message->text, "%s %u has another size than the program",
                 is_input ? "input" : "output", (unsigned)(is_input ? index : index - program->input_count));
  return CLEAVE_ERROR_SHAPE;
}

/* Takes over the shape of a run. If it is another one, the program is no longer bound: also if the run fails
 * before its memory is made anew. */
static cleave_status_t take_shape(cleave_isolated_program_t *program, cleave_isolated_port_t *port,
                                  const cleave_tensor_view_t *tensor, cleave_message_t *message) {
  size_t bytes = 0;
  bool is_known = cleave_tensor_view_bytes(tensor, &bytes);
  bool is_output = port >= program->ports + program->input_count;
  if (is_output && !is_known && tensor->data == NULL) {
    program->is_bound = program->is_bound && port->kind == CLEAVE_PORT_OPEN;
    port->kind = CLEAVE_PORT_OPEN;
    return CLEAVE_OK;
  }
  if (!is_known || tensor->dtype != port->dtype || tensor->storage != CLEAVE_STORAGE_DENSE ||
      tensor->rank > CLEAVE_MAX_RANK || (tensor->data == NULL && bytes > 0)) {
    return fail_size(program, port, message);
  }
  if (port->kind == CLEAVE_PORT_BUFFER && has_shape(port, tensor)) {
    return CLEAVE_OK;
  }
  program->is_bound = false;
  port->kind = CLEAVE_PORT_BUFFER;
  port->rank = tensor->rank;
  if (tensor->rank > 0) {
    memcpy(port->dims, tensor->dims, (size_t)tensor->rank * sizeof *port->dims);
  }
  return CLEAVE_OK;
}

/* A program whose shapes were known has these alone. */
static cleave_status_t check_size(const cleave_isolated_program_t *program,
                                  const cleave_isolated_port_t *port, const cleave_tensor_view_t *tensor,
                                  cleave_message_t *message) {
  size_t bytes = 0;
  bool fits = cleave_tensor_view_bytes(tensor, &bytes) && bytes == port->part.bytes &&
              (tensor->data != NULL || bytes == 0);
  return fits ? CLEAVE_OK : fail_size(program, port, message);
}

static cleave_status_t check_port(cleave_isolated_program_t *program, cleave_isolated_port_t *port,
                                  const cleave_tensor_view_t *tensor, cleave_message_t *message) {
  if (port->kind == CLEAVE_PORT_FIXED) {
    if (tensor->version == port->version) {
      return CLEAVE_OK;
    }
    (void)snprintf(message->text, sizeof message->text, "input %u: the constant has changed",
                   (unsigned)(port - program->ports));
    return CLEAVE_ERROR_INVALID_ARGUMENT;
  }
  return program->is_open ? take_shape(program, port, tensor, message)
                          : check_size(program, port, tensor, message);
}

static cleave_status_t check_ports(cleave_isolated_program_t *program, const cleave_run_args_t *args,
                                   cleave_message_t *message) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    CLEAVE_TRY(check_port(program, &program->ports[k], &args->inputs[k], message));
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    if (request_of(args, k) != CLEAVE_REQUEST_NONE) {
      CLEAVE_TRY(check_port(program, output_of(program, k), &args->outputs[k], message));
    }
  }
  return CLEAVE_OK;
}

/* ---- copies ---- */

static void copy_in(const cleave_isolated_program_t *program, const cleave_run_args_t *args) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    const cleave_isolated_port_t *port = &program->ports[k];
    if (port->kind == CLEAVE_PORT_BUFFER && port->part.bytes > 0) {
      memcpy(buffer_of(program, port), args->inputs[k].data, port->part.bytes);
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    const cleave_isolated_port_t *port = output_of(program, k);
    if (request_of(args, k) == CLEAVE_REQUEST_ADD && port->kind == CLEAVE_PORT_BUFFER &&
        port->part.bytes > 0) {
      memcpy(buffer_of(program, port), args->outputs[k].data, port->part.bytes);
    }
  }
}

static void copy_out(const cleave_isolated_program_t *program, const cleave_run_args_t *args) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    const cleave_isolated_port_t *port = output_of(program, k);
    bool has_memory = port->kind == CLEAVE_PORT_BUFFER || port->own != NULL;
    if (has_memory && request_of(args, k) != CLEAVE_REQUEST_NONE && port->part.bytes > 0) {
      memcpy((void *)(uintptr_t)args->outputs[k].data, buffer_of(program, port), port->part.bytes);
    }
  }
}

/* ---- outputs whose shape the run tells ---- */

static cleave_status_t resize(running_t *running, uint32_t output, int32_t rank, const int64_t *dims,
                              cleave_wire_out_t *out, int *out_fd, cleave_message_t *message) {
  const cleave_run_args_t *args = running->args;
  cleave_isolated_port_t *port = output_of(running->program, output);
  size_t bytes = 0;
  if (args->resize_output == NULL) {
    (void)snprintf(message->text, sizeof message->text, "output %u has no memory to request",
                   (unsigned)output);
    return CLEAVE_ERROR_INTERNAL;
  }
  CLEAVE_TRY(args->resize_output(args->session, output, rank, dims));
  if (!cleave_tensor_view_bytes(&args->outputs[output], &bytes)) {
    return CLEAVE_ERROR_INTERNAL;
  }
  cleave_isolate_forget_own(port);
  CLEAVE_TRY(cleave_isolate_make_area(bytes, &port->part, &port->own, out_fd, message));
  cleave_wire_put_u64(out, bytes);
  return CLEAVE_OK;
}

/* RESIZE. */
static cleave_status_t answer(void *context, uint32_t kind, cleave_wire_in_t *in, cleave_wire_out_t *out,
                              int *out_fd, cleave_message_t *message) {
  running_t *running = context;
  const cleave_isolated_program_t *program = running->program;
  uint32_t output = cleave_wire_index(in, program->output_count);
  uint32_t rank = cleave_wire_index(in, CLEAVE_MAX_RANK + 1);
  const int64_t *dims = cleave_wire_take(in, rank, sizeof *dims, sizeof *dims);
  if (kind != CLEAVE_FRAME_RESIZE || in->failed || output_of(program, output)->kind != CLEAVE_PORT_OPEN) {
    in->failed = true;
    return CLEAVE_ERROR_FORMAT;
  }
  return resize(running, output, (int32_t)rank, dims, out, out_fd, message);
}

static void forget_outputs(cleave_isolated_program_t *program) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    cleave_isolate_forget_own(output_of(program, k));
  }
}

/* ---- what came back ---- */

static cleave_status_t lose_for_writing(cleave_isolated_program_t *program, const cleave_worker_call_t *call,
                                        size_t bytes, bool is_behind, const char *what,
                                        cleave_message_t *message) {
  return cleave_worker_lose(program->worker, call, message, "wrote %zu byte%s %s %s", bytes,
                            CLEAVE_PLURAL(bytes), is_behind ? "behind the end of" : "before", what);
}

/* Finds writes beyond outputs that did not reach memory which cannot be touched. */
static cleave_status_t check_marks(cleave_isolated_program_t *program, const cleave_worker_call_t *call,
                                   cleave_message_t *message) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    const cleave_isolated_port_t *port = output_of(program, k);
    bool is_behind = false;
    if (port->kind != CLEAVE_PORT_BUFFER && port->own == NULL) {
      continue;
    }
    size_t bytes = cleave_area_check(&port->part, buffer_of(program, port) - port->part.lead, &is_behind);
    if (bytes > 0) {
      char what[24];
      (void)snprintf(what, sizeof what, "output %u", (unsigned)k);
      return lose_for_writing(program, call, bytes, is_behind, what, message);
    }
  }
  return CLEAVE_OK;
}

/* The workspace is the worker's own: it says what it found there. */
static cleave_status_t check_workspace(cleave_isolated_program_t *program, const cleave_worker_call_t *call,
                                       cleave_wire_in_t *reply, cleave_message_t *message) {
  uint64_t bytes = cleave_wire_u64(reply);
  bool is_behind = cleave_wire_u32(reply) != 0;
  return bytes == 0 || reply->failed
             ? CLEAVE_OK
             : lose_for_writing(program, call, (size_t)bytes, is_behind, "the workspace", message);
}

/* Times of steps, for the next call of `profile`. */
static cleave_status_t take_steps(cleave_isolated_program_t *program, const cleave_worker_call_t *call,
                                  cleave_wire_in_t *reply, cleave_message_t *message) {
  program->step_count = 0;
  uint32_t count = cleave_wire_count(reply, 3 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
  if (count > MAX_STEPS) {
    reply->failed = true;
  }
  if (count == 0 && !reply->failed) {
    return CLEAVE_OK;
  }
  cleave_arena_reset(&program->arena);
  program->steps =
      reply->failed ? NULL : cleave_arena_allocate(&program->arena, count, sizeof *program->steps);
  for (uint32_t k = 0; program->steps != NULL && k < count; k++) {
    cleave_step_time_t *step = &program->steps[k];
    const char *label = cleave_wire_named(reply);
    *step = (cleave_step_time_t){.size = sizeof *step,
                                 .label = cleave_arena_copy_text(&program->arena, label, strlen(label)),
                                 .node = cleave_wire_u32(reply)};
    step->fusion = cleave_wire_u32(reply);
    step->start_ns = cleave_wire_u64(reply);
    step->end_ns = cleave_wire_u64(reply);
    if (step->label == NULL) {
      return CLEAVE_ERROR_OUT_OF_MEMORY;
    }
  }
  if (!reply->failed && program->steps == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (reply->failed) {
    return cleave_worker_answered_nonsense(program->worker, call, message);
  }
  program->step_count = count;
  return CLEAVE_OK;
}

/* ---- the run ---- */

static cleave_status_t ask(running_t *running, cleave_message_t *message) {
  cleave_isolated_program_t *program = running->program;
  const cleave_run_args_t *args = running->args;
  cleave_wire_out_t *request = &program->worker->request;
  cleave_wire_in_t reply;
  cleave_worker_call_t call = cleave_isolate_program_call(program, CLEAVE_FRAME_RUN);
  call.answer = answer;
  call.context = running;
  bool has_options = args->size > offsetof(cleave_run_args_t, options);
  bool has_requests = args->size > offsetof(cleave_run_args_t, requests) && args->requests != NULL;
  cleave_wire_put_u32(request, program->id);
  cleave_wire_put_pairs(request, args->options, has_options ? args->option_count : 0);
  cleave_wire_put_u32(request, has_requests ? program->output_count : 0);
  for (uint32_t k = 0; has_requests && k < program->output_count; k++) {
    cleave_wire_put_u32(request, (uint32_t)args->requests[k]);
  }
  cleave_status_t status = cleave_worker_ask(program->worker, &call, &reply, message);
  if (atomic_load(&program->worker->is_lost)) {
    return status;
  }
  CLEAVE_TRY(check_marks(program, &call, message));
  CLEAVE_TRY(status);
  CLEAVE_TRY(check_workspace(program, &call, &reply, message));
  return take_steps(program, &call, &reply, message);
}

static cleave_status_t run(running_t *running, cleave_message_t *message) {
  if (!running->program->is_bound) {
    CLEAVE_TRY(cleave_isolate_bind(running->program, message));
  }
  copy_in(running->program, running->args);
  return ask(running, message);
}

cleave_status_t cleave_isolate_run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  cleave_isolated_program_t *program = memory;
  running_t running = {.program = program, .args = args};
  CLEAVE_TRY(check_ports(program, args, message));
  CLEAVE_TRY(cleave_worker_begin(program->worker, message));
  cleave_status_t status = run(&running, message);
  cleave_worker_end(program->worker);
  if (status == CLEAVE_OK) {
    copy_out(program, args);
  }
  forget_outputs(program);
  return status;
}

uint32_t cleave_isolate_profile(const void *memory, const cleave_step_time_t **out_steps) {
  const cleave_isolated_program_t *program = memory;
  *out_steps = program->steps;
  return program->step_count;
}
