// SPDX-License-Identifier: Apache-2.0
// Runs, and graphs of them.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program.h"

enum { ALIGNMENT = 16 };

/* ---- addresses ---- */

static cleave_status_t check_tensor(const cuda_program_t *program, const cleave_tensor_view_t *tensor,
                                    const char *what, uint32_t index, cleave_message_t *message) {
  bool is_empty = cleave_view_element_count(tensor) == 0;
  if (!is_empty && (tensor->memory != program->device + 1 || (uintptr_t)tensor->data % ALIGNMENT != 0)) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_DEVICE,
                     "%s %u: expected memory of device %u, aligned to %d bytes, found memory %u", what,
                     (unsigned)index, (unsigned)program->device, ALIGNMENT, (unsigned)tensor->memory);
  }
  return CLEAVE_OK;
}

static cleave_status_t find_addresses(cuda_program_t *program, const cleave_run_args_t *args,
                                      cleave_message_t *message) {
  cuda_address_t *key = program->key;
  for (uint32_t k = 0; k < program->input_count; k++) {
    CUDA_TRY(check_tensor(program, &args->inputs[k], "input", k, message));
    *key++ = (cuda_address_t)(uintptr_t)args->inputs[k].data;
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    CUDA_TRY(check_tensor(program, &args->outputs[k], "output", k, message));
    *key++ = (cuda_address_t)(uintptr_t)args->outputs[k].data;
  }
  *key = (cuda_address_t)(uintptr_t)args->workspace;
  for (uint32_t k = 0; k < program->plan.slot_count; k++) {
    const cuda_slot_t *slot = &program->plan.slots[k];
    switch (slot->kind) {
      case CUDA_SLOT_INPUT: program->addresses[k] = program->key[slot->index]; break;
      case CUDA_SLOT_OUTPUT: program->addresses[k] = program->key[program->input_count + slot->index]; break;
      case CUDA_SLOT_CONSTANT:
        program->addresses[k] = program->constants + (cuda_address_t)slot->offset;
        break;
      case CUDA_SLOT_MEMORY: program->addresses[k] = *key + (cuda_address_t)slot->offset; break;
      case CUDA_SLOT_NONE:
      case CUDA_SLOT_VIEW: break;
    }
  }
  return CLEAVE_OK;
}

/* ---- steps ---- */

static cleave_status_t launch(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                              cleave_message_t *message) {
  const cuda_step_t *step = &program->plan.steps[index];
  _Alignas(16) unsigned char arguments[KERNEL_CUDA_ARGUMENT_BYTES];
  void *parameters[1] = {arguments};
  memcpy(arguments, step->arguments, step->argument_bytes);
  for (uint32_t k = 0; k < step->pointer_count; k++) {
    cuda_address_t address = cuda_address_of(program, step->pointers[k]);
    memcpy(arguments + sizeof address * k, &address, sizeof address);
  }
  return cuda_check(program->state,
                    program->state->libraries.driver.launch(program->ready[index].function, step->grid, 1, 1,
                                                            step->block, 1, 1, 0, stream, parameters, NULL),
                    "launch a kernel", message);
}

static cleave_status_t do_step(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                               cleave_message_t *message) {
  const cuda_step_t *step = &program->plan.steps[index];
  switch (step->kind) {
    case CUDA_STEP_KERNEL: return launch(program, index, stream, message);
    case CUDA_STEP_PRODUCT: return cuda_run_product(program, index, stream, message);
    case CUDA_STEP_CONVOLUTION:
    case CUDA_STEP_POOL_BACK:
    case CUDA_STEP_NORM_BACK: return cuda_run_dnn(program, index, stream, message);
    case CUDA_STEP_COPY: break;
  }
  return cuda_check(program->state,
                    program->state->libraries.driver.copy_async(cuda_address_of(program, step->pointers[1]),
                                                                cuda_address_of(program, step->pointers[0]),
                                                                (size_t)step->bytes, stream),
                    "copy on the device", message);
}

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static cleave_status_t do_steps(cuda_program_t *program, cuda_stream_t stream, cleave_message_t *message) {
  for (uint32_t k = 0; k < program->plan.step_count; k++) {
    uint64_t start = program->profiles ? now() : 0;
    CUDA_TRY(do_step(program, k, stream, message));
    if (program->profiles) {
      CUDA_TRY(cuda_check(program->state, program->state->libraries.driver.stream_wait(stream),
                          "finish a step", message));
      program->times[k].start_ns = start;
      program->times[k].end_ns = now();
    }
  }
  return CLEAVE_OK;
}

/* ---- graphs ---- */

static bool same_key(const cuda_program_t *program, const cuda_address_t *key) {
  return memcmp(program->key, key, program->key_count * sizeof *key) == 0;
}

void cuda_program_drop_graphs(cuda_program_t *program) {
  for (uint32_t k = 0; k < CUDA_MAX_GRAPHS; k++) {
    if (program->graphs[k].exec != NULL) {
      (void)program->state->libraries.driver.graph_exec_destroy(program->graphs[k].exec);
      program->graphs[k].exec = NULL;
    }
  }
}

/* NULL: the work cannot be captured; then it never is again. */
static cuda_graph_exec_t capture(cuda_program_t *program, cuda_stream_t stream) {
  const cuda_driver_t *driver = &program->state->libraries.driver;
  cleave_message_t message = {.text = ""};
  cuda_graph_t graph = NULL;
  cuda_graph_exec_t exec = NULL;
  if (driver->stream_begin_capture(stream, CUDA_CAPTURE_RELAXED) != CUDA_SUCCESS_) {
    program->uses_graphs = false;
    return NULL;
  }
  cleave_status_t status = do_steps(program, stream, &message);
  bool is_captured = driver->stream_end_capture(stream, &graph) == CUDA_SUCCESS_ && graph != NULL;
  if (status == CLEAVE_OK && is_captured && driver->graph_instantiate(&exec, graph, 0) != CUDA_SUCCESS_) {
    exec = NULL;
  }
  if (graph != NULL) {
    (void)driver->graph_destroy(graph);
  }
  program->uses_graphs = exec != NULL;
  return exec;
}

/* The graph of these addresses: found, or captured when they come for the second time in a row. */
static cuda_graph_exec_t find_graph(cuda_program_t *program, cuda_stream_t stream) {
  cuda_graph_entry_t *oldest = &program->graphs[0];
  for (uint32_t k = 0; k < CUDA_MAX_GRAPHS; k++) {
    cuda_graph_entry_t *entry = &program->graphs[k];
    if (entry->exec != NULL && same_key(program, entry->key)) {
      entry->used = program->runs;
      return entry->exec;
    }
    oldest = entry->exec == NULL || (oldest->exec != NULL && entry->used < oldest->used) ? entry : oldest;
  }
  if (program->runs < 2 || !same_key(program, program->last_key)) {
    return NULL;
  }
  cuda_graph_exec_t exec = capture(program, stream);
  if (exec != NULL) {
    if (oldest->exec != NULL) { /* it may still be at work */
      (void)program->state->libraries.driver.stream_wait(stream);
      (void)program->state->libraries.driver.graph_exec_destroy(oldest->exec);
    }
    oldest->exec = exec;
    oldest->used = program->runs;
    memcpy(oldest->key, program->key, program->key_count * sizeof *program->key);
  }
  return exec;
}

static cleave_status_t run_on(cuda_program_t *program, cuda_stream_t stream, cleave_message_t *message) {
  bool is_worth = program->uses_graphs && program->plan.step_count > 1;
  cuda_graph_exec_t exec = is_worth ? find_graph(program, stream) : NULL;
  memcpy(program->last_key, program->key, program->key_count * sizeof *program->key);
  return exec == NULL
             ? do_steps(program, stream, message)
             : cuda_check(program->state, program->state->libraries.driver.graph_launch(exec, stream),
                          "launch a graph", message);
}

cleave_status_t cuda_program_run(cuda_program_t *program, const cleave_run_args_t *args,
                                 cleave_message_t *message) {
  bool has_stream = args->size > offsetof(cleave_run_args_t, stream) && args->stream != NULL;
  cuda_stream_state_t *stream = has_stream ? args->stream : program->own_stream;
  program->runs++;
  CUDA_TRY(find_addresses(program, args, message));
  if (stream == NULL) {
    CUDA_TRY(cuda_stream_make(program->state, program->device, &program->own_stream, message));
    stream = program->own_stream;
  }
  if (cuda_stream_device(stream) != program->device) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_DEVICE,
                     "the stream is of device %u, the program of device %u",
                     (unsigned)cuda_stream_device(stream), (unsigned)program->device);
  }
  CUDA_TRY(cuda_enter(program->state, program->device, message));
  cleave_status_t status = run_on(program, cuda_stream_of(stream), message);
  cuda_leave(program->state);
  return status != CLEAVE_OK || has_stream ? status : cuda_stream_finish(program->state, stream, message);
}
