// SPDX-License-Identifier: Apache-2.0
// Programs of isolated libraries. The buffers of a program lie in memory that the worker maps too, each with
// marks around it; a run copies inputs in, asks, checks the marks, and copies outputs out. Nothing is
// allocated in a run, unless times of steps are kept.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/isolate_internal.h"
#include "backend/region_wire.h"

enum { MOST_PORTS = 1 << 16, MOST_STEPS = 1 << 16 };

#define MOST_PERSISTENT ((size_t)1 << 46)

typedef struct isolated_program {
  cleave_isolate_t *isolate;
  cleave_worker_t *worker; /* retained */
  uint32_t id;
  char region[64]; /* its name */
  uint32_t input_count;
  uint32_t output_count;
  cleave_area_part_t *parts; /* of inputs, then outputs */
  unsigned char *area;
  size_t area_bytes;
  uint32_t *constants; /* ids that it keeps */
  uint32_t constant_count;
  cleave_program_info_t info;
  cleave_step_time_t *steps; /* of the last run, in `arena` */
  uint32_t step_count;
  cleave_arena_t arena;
} isolated_program_t;

static cleave_worker_call_t call_about(const isolated_program_t *program, uint32_t kind, uint32_t limit_ms,
                                       const char *doing) {
  return (cleave_worker_call_t){
      .kind = kind, .limit_ms = limit_ms, .doing = doing, .region = program->region, .fd = -1};
}

/* ---- buffers ---- */

/* The size of a value at the border, which lies in shared memory. */
static cleave_status_t measure(const cleave_value_view_t *value, size_t *out_bytes,
                               cleave_message_t *message) {
  const cleave_tensor_view_t *tensor = &value->tensor;
  const char *reason = tensor->dtype == CLEAVE_DTYPE_STRING           ? "texts"
                       : tensor->storage != CLEAVE_STORAGE_DENSE      ? "sparse tensors"
                       : !cleave_tensor_view_bytes(tensor, out_bytes) ? "shapes that are known only in a run"
                                                                      : NULL;
  if (reason == NULL) {
    return CLEAVE_OK;
  }
  (void)snprintf(message->text, sizeof message->text, "value '%.80s': an isolated library gets no %s",
                 value->name == NULL ? "" : value->name, reason);
  message->code = CLEAVE_REASON_SHAPE;
  return CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t make_area(isolated_program_t *program, const cleave_region_view_t *region, int *out_fd,
                                 size_t *bytes, cleave_message_t *message) {
  uint32_t count = region->input_count + region->output_count;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t value = k < region->input_count ? region->inputs[k] : region->outputs[k - region->input_count];
    CLEAVE_TRY(measure(&region->values[value], &bytes[k], message));
  }
  if (!cleave_area_place(bytes, count, program->parts, &program->area_bytes)) {
    (void)snprintf(message->text, sizeof message->text, "its inputs and outputs are too large");
    return CLEAVE_ERROR_LIMIT;
  }
  if (program->area_bytes == 0) {
    return CLEAVE_OK;
  }
  *out_fd = cleave_worker_make_memory("cleave buffers", program->area_bytes);
  void *area = *out_fd < 0 ? MAP_FAILED
                           : mmap(NULL, program->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *out_fd, 0);
  if (area == MAP_FAILED) {
    (void)snprintf(message->text, sizeof message->text, "no %zu bytes of memory to share",
                   program->area_bytes);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->area = area;
  for (uint32_t k = 0; k < count; k++) {
    cleave_area_mark(&program->parts[k], program->area + program->parts[k].offset);
  }
  return CLEAVE_OK;
}

static unsigned char *buffer_of(const isolated_program_t *program, uint32_t part) {
  return program->area + program->parts[part].offset + program->parts[part].lead;
}

/* ---- compiling ---- */

static void destroy(isolated_program_t *program) {
  if (program->area != NULL) {
    (void)munmap(program->area, program->area_bytes);
  }
  cleave_worker_release(program->worker);
  cleave_free(program->parts);
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

static cleave_status_t ask_compile(isolated_program_t *program, const cleave_region_view_t *region,
                                   const cleave_compile_options_t *options, const size_t *sizes, int fd,
                                   cleave_message_t *message) {
  cleave_worker_t *worker = program->worker;
  cleave_wire_out_t *request = &worker->request;
  cleave_wire_in_t reply;
  cleave_worker_call_t call =
      call_about(program, CLEAVE_FRAME_COMPILE, program->isolate->options.compile_ms, "compiling region");
  call.fd = fd;
  cleave_worker_constants_begin(worker);
  cleave_wire_put_u32(request, program->id);
  put_options(request, options);
  cleave_wire_put_u32(request, program->input_count);
  cleave_wire_put_u32(request, program->output_count);
  for (uint32_t k = 0; k < program->input_count + program->output_count; k++) {
    cleave_wire_put_u64(request, sizes[k]);
  }
  CLEAVE_TRY(cleave_isolate_put_region(worker, region, message));
  CLEAVE_TRY(cleave_worker_constants_keep(worker, &program->constants, &program->constant_count));
  CLEAVE_TRY(cleave_worker_ask(worker, &call, &reply, message));
  size_t persistent = (size_t)cleave_wire_u64(&reply);
  if (reply.failed) {
    return cleave_worker_answered_nonsense(worker, &call, message);
  }
  /* Scratch memory is the worker's own, and what shares memory there need not here. */
  program->info = (cleave_program_info_t){
      .size = sizeof program->info,
      .persistent_bytes =
          (persistent > MOST_PERSISTENT ? MOST_PERSISTENT : persistent) + program->area_bytes};
  return CLEAVE_OK;
}

static cleave_status_t compile(isolated_program_t *program, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, cleave_message_t *message) {
  uint32_t count = program->input_count + program->output_count;
  int fd = -1;
  size_t *sizes = cleave_allocate_zeroed(count, sizeof *sizes);
  program->parts = cleave_allocate_zeroed(count, sizeof *program->parts);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  if (sizes != NULL && program->parts != NULL) {
    status = make_area(program, region, &fd, sizes, message);
  }
  if (status == CLEAVE_OK) {
    status = cleave_worker_begin(program->worker, message);
    if (status == CLEAVE_OK) {
      status = ask_compile(program, region, options, sizes, fd, message);
      if (status != CLEAVE_OK) {
        cleave_worker_constants_release(program->worker, program->constants, program->constant_count);
      }
      cleave_worker_end(program->worker);
    }
  }
  if (fd >= 0) {
    (void)close(fd);
  }
  cleave_free(sizes);
  return status;
}

cleave_status_t cleave_isolate_compile(void *state, const cleave_region_view_t *region,
                                       const cleave_compile_options_t *options, void **out_program,
                                       cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  *out_program = NULL;
  if (region->input_count > MOST_PORTS || region->output_count > MOST_PORTS) {
    (void)snprintf(message->text, sizeof message->text, "too many inputs or outputs");
    return CLEAVE_ERROR_LIMIT;
  }
  isolated_program_t *program = cleave_allocate_zeroed(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->isolate = isolate;
  program->worker = cleave_isolate_worker(isolate);
  program->id = atomic_fetch_add(&isolate->last_program, 1) + 1;
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  (void)snprintf(program->region, sizeof program->region, "%s", region->name == NULL ? "" : region->name);
  cleave_status_t status = compile(program, region, options, message);
  if (status != CLEAVE_OK) {
    destroy(program);
    return status;
  }
  *out_program = program;
  return CLEAVE_OK;
}

void cleave_isolate_unload(void *memory) {
  isolated_program_t *program = memory;
  cleave_worker_t *worker = program->worker;
  cleave_message_t message = {.text = ""};
  cleave_worker_call_t call =
      call_about(program, CLEAVE_FRAME_UNLOAD, program->isolate->options.ask_ms, "unloading region");
  cleave_wire_in_t reply;
  if (cleave_worker_begin(worker, &message) == CLEAVE_OK) {
    cleave_wire_put_u32(&worker->request, program->id);
    if (cleave_worker_ask(worker, &call, &reply, &message) == CLEAVE_OK) {
      cleave_worker_constants_release(worker, program->constants, program->constant_count);
    }
    cleave_worker_end(worker);
  }
  destroy(program);
}

const cleave_program_info_t *cleave_isolate_info(const void *program) {
  return &((const isolated_program_t *)program)->info;
}

/* ---- running ---- */

static cleave_request_t request_of(const cleave_run_args_t *args, uint32_t output) {
  bool has_requests = args->size > offsetof(cleave_run_args_t, requests) && args->requests != NULL;
  return has_requests ? args->requests[output] : CLEAVE_REQUEST_WRITE;
}

/* A tensor has the size that the program was compiled for. */
static cleave_status_t check_size(const isolated_program_t *program, const cleave_tensor_view_t *tensor,
                                  uint32_t part, cleave_message_t *message) {
  size_t bytes = 0;
  if (cleave_tensor_view_bytes(tensor, &bytes) && bytes == program->parts[part].bytes &&
      (tensor->data != NULL || bytes == 0)) {
    return CLEAVE_OK;
  }
  bool is_input = part < program->input_count;
  (void)snprintf(message->text, sizeof message->text, "%s %u has another size than the program",
                 is_input ? "input" : "output", (unsigned)(is_input ? part : part - program->input_count));
  return CLEAVE_ERROR_SHAPE;
}

static cleave_status_t copy_in(isolated_program_t *program, const cleave_run_args_t *args,
                               cleave_message_t *message) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    CLEAVE_TRY(check_size(program, &args->inputs[k], k, message));
    if (program->parts[k].bytes > 0) {
      memcpy(buffer_of(program, k), args->inputs[k].data, program->parts[k].bytes);
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    uint32_t part = program->input_count + k;
    cleave_request_t request = request_of(args, k);
    if (request != CLEAVE_REQUEST_NONE) {
      CLEAVE_TRY(check_size(program, &args->outputs[k], part, message));
    }
    if (request == CLEAVE_REQUEST_ADD && program->parts[part].bytes > 0) {
      memcpy(buffer_of(program, part), args->outputs[k].data, program->parts[part].bytes);
    }
  }
  return CLEAVE_OK;
}

static void copy_out(const isolated_program_t *program, const cleave_run_args_t *args) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    uint32_t part = program->input_count + k;
    if (request_of(args, k) != CLEAVE_REQUEST_NONE && program->parts[part].bytes > 0) {
      memcpy((void *)(uintptr_t)args->outputs[k].data, buffer_of(program, part), program->parts[part].bytes);
    }
  }
}

static cleave_status_t lose_for_writing(isolated_program_t *program, const cleave_worker_call_t *call,
                                        size_t bytes, bool is_behind, const char *what,
                                        cleave_message_t *message) {
  return cleave_worker_lose(program->worker, call, message, "wrote %zu byte%s %s %s", bytes,
                            bytes == 1 ? "" : "s", is_behind ? "behind the end of" : "before", what);
}

/* Finds writes beyond outputs that did not reach memory which cannot be touched. */
static cleave_status_t check_marks(isolated_program_t *program, const cleave_worker_call_t *call,
                                   cleave_message_t *message) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    const cleave_area_part_t *part = &program->parts[program->input_count + k];
    bool is_behind = false;
    size_t bytes = cleave_area_check(part, program->area + part->offset, &is_behind);
    if (bytes > 0) {
      char what[24];
      (void)snprintf(what, sizeof what, "output %u", (unsigned)k);
      return lose_for_writing(program, call, bytes, is_behind, what, message);
    }
  }
  return CLEAVE_OK;
}

/* The workspace is the worker's own: it says what it found there. */
static cleave_status_t check_workspace(isolated_program_t *program, const cleave_worker_call_t *call,
                                       cleave_wire_in_t *reply, cleave_message_t *message) {
  uint64_t bytes = cleave_wire_u64(reply);
  bool is_behind = cleave_wire_u32(reply) != 0;
  return bytes == 0 || reply->failed
             ? CLEAVE_OK
             : lose_for_writing(program, call, (size_t)bytes, is_behind, "the workspace", message);
}

/* Times of steps, for the next call of `profile`. */
static cleave_status_t take_steps(isolated_program_t *program, const cleave_worker_call_t *call,
                                  cleave_wire_in_t *reply, cleave_message_t *message) {
  program->step_count = 0;
  uint32_t count = cleave_wire_count(reply, 3 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
  if (count > MOST_STEPS) {
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

static cleave_status_t ask_run(isolated_program_t *program, const cleave_run_args_t *args,
                               cleave_message_t *message) {
  cleave_wire_out_t *request = &program->worker->request;
  cleave_wire_in_t reply;
  cleave_worker_call_t call =
      call_about(program, CLEAVE_FRAME_RUN, program->isolate->options.run_ms, "running region");
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

cleave_status_t cleave_isolate_run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  isolated_program_t *program = memory;
  CLEAVE_TRY(copy_in(program, args, message));
  CLEAVE_TRY(cleave_worker_begin(program->worker, message));
  cleave_status_t status = ask_run(program, args, message);
  cleave_worker_end(program->worker);
  if (status == CLEAVE_OK) {
    copy_out(program, args);
  }
  return status;
}

uint32_t cleave_isolate_profile(const void *memory, const cleave_step_time_t **out_steps) {
  const isolated_program_t *program = memory;
  *out_steps = program->steps;
  return program->step_count;
}
