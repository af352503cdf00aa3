// SPDX-License-Identifier: Apache-2.0
// Running a program: as it is, timed, or step by step to find those that trip over dirty scratch memory.
#include <string.h>
#include <time.h>

#include "onednn/plan/care.h"
#include "onednn/program/program_internal.h"

static cleave_status_t point(onednn_program_t *program, uint32_t index, const void *at,
                             cleave_message_t *message) {
  program_group_t *group = &program->groups[index];
  if (group->at == at) {
    return CLEAVE_OK;
  }
  group->at = NULL;
  for (uint32_t k = group->first; k < group->first + group->count; k++) {
    const program_memory_t *memory = &program->memories[k];
    // Handles are written to only if a step has the object as its result.
    void *handle = (char *)(uintptr_t)at + memory->offset;
    ONEDNN_TRY(onednn_check(dnnl_memory_set_data_handle(memory->memory, handle), "a memory object", message));
  }
  group->at = at;
  return CLEAVE_OK;
}

static cleave_status_t check_tensor(const onednn_program_t *program, uint32_t index,
                                    const cleave_tensor_view_t *tensor, bool needed, const char *what,
                                    cleave_message_t *message) {
  int64_t count = cleave_view_element_count(tensor);
  size_t bytes = count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
  if (needed && (tensor->data == NULL || bytes != program->bytes[index])) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s %u: expected %zu byte%s, found %zu", what,
                       (unsigned)index, program->bytes[index], KERNEL_PLURAL(program->bytes[index]),
                       tensor->data == NULL ? (size_t)0 : bytes);
  }
  return CLEAVE_OK;
}

static cleave_status_t point_all(onednn_program_t *program, const cleave_run_args_t *args,
                                 cleave_message_t *message) {
  if (program->info.workspace_bytes > 0) {
    if (args->workspace == NULL) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "expected a workspace of %zu byte%s, found none", program->info.workspace_bytes,
                         KERNEL_PLURAL(program->info.workspace_bytes));
    }
    ONEDNN_TRY(point(program, 0, args->workspace, message));
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    ONEDNN_TRY(check_tensor(program, k, &args->inputs[k], program->needed[k], "input", message));
    ONEDNN_TRY(point(program, 1 + k, args->inputs[k].data, message));
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    uint32_t index = program->input_count + k;
    ONEDNN_TRY(check_tensor(program, index, &args->outputs[k], true, "output", message));
    ONEDNN_TRY(point(program, 1 + index, args->outputs[k].data, message));
  }
  return CLEAVE_OK;
}

static uint64_t now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static dnnl_status_t clean(const program_step_t *step) {
  void *scratch = NULL;
  dnnl_status_t status = dnnl_memory_get_data_handle(step->scratch, &scratch);
  if (status == dnnl_success) {
    memset(scratch, 0, step->scratch_bytes);
  }
  return status;
}

static dnnl_status_t execute(onednn_program_t *program, const program_step_t *step, bool *right) {
  int32_t threads = step->serial ? 1 : program->threads;
  onednn_program_set_threads(threads);
  if (step->cleaning != CLEANS_NEVER) {
    dnnl_status_t status = clean(step);
    if (status != dnnl_success) {
      return status;
    }
  }
  if (step->loop == NULL) {
    return dnnl_primitive_execute(step->primitive, program->stream, step->argument_count, step->arguments);
  }
  const onednn_crew_t crew = {.host = program->host, .threads = threads};
  float *data[ONEDNN_LOOP_ARGUMENTS] = {NULL};
  dnnl_status_t status = dnnl_stream_wait(program->stream);
  for (int k = 0; k < step->argument_count && status == dnnl_success; k++) {
    void *handle = NULL;
    status = dnnl_memory_get_data_handle(step->arguments[k].memory, &handle);
    data[k] = handle;
  }
  if (status == dnnl_success) {
    *right = step->loop->run(step->loop, &crew, data) && *right;
  }
  return status;
}

static dnnl_status_t execute_timed(onednn_program_t *program, uint32_t k, bool *right) {
  program->times[k].start_ns = now_ns();
  dnnl_status_t status = execute(program, &program->steps[k], right);
  if (status == dnnl_success) {
    status = dnnl_stream_wait(program->stream);
  }
  program->times[k].end_ns = now_ns();
  return status;
}

// All steps. `*right` becomes false when a flag of a thread was raised that may have ended since. The first
// run finds out which steps end threads; that is what oneDNN decides by shapes, and the same in every run.
static dnnl_status_t execute_all(onednn_program_t *program, bool *right) {
  bool probes = program->raises && program->threads > 1 && !program->probed;
  dnnl_status_t status = dnnl_success;
  if (probes) {
    onednn_crew_mark(program->threads);
  }
  for (uint32_t k = 0; k < program->step_count && status == dnnl_success; k++) {
    program_step_t *step = &program->steps[k];
    if (step->shrinks || probes) {
      *right = !onednn_flag_raised(program->threads) && *right;
    }
    status = program->profile ? execute_timed(program, k, right) : execute(program, step, right);
    step->shrinks = probes ? onednn_crew_changed(program->threads) : step->shrinks;
  }
  onednn_program_set_threads(program->threads);
  if (status == dnnl_success) {
    status = dnnl_stream_wait(program->stream);
    program->probed = true;
  }
  return status;
}

cleave_status_t onednn_program_run(onednn_program_t *program, const cleave_run_args_t *args, bool *right,
                                   cleave_message_t *message) {
  *right = true;
  onednn_program_set_threads(program->threads);
  ONEDNN_TRY(point_all(program, args, message));
  ONEDNN_TRY(onednn_check(execute_all(program, right), "run", message));
  *right = (!program->raises || !onednn_flag_raised(program->threads)) && *right;
  return CLEAVE_OK;
}

// Executes a step, and says whether it raised the flag.
static dnnl_status_t execute_watched(onednn_program_t *program, const program_step_t *step, bool *raised) {
  onednn_flag_t unused;
  bool right = true;
  onednn_flag_lower(&unused, program->threads);
  dnnl_status_t status = execute(program, step, &right);
  if (status == dnnl_success) {
    status = dnnl_stream_wait(program->stream);
  }
  *raised = !right || onednn_flag_raised(program->threads);
  return status;
}

// Puts the steps on trial whose scratch memory may be why they raise the flag. `*possible` becomes false if
// another step raises it.
static dnnl_status_t find_untidy(onednn_program_t *program, bool *possible) {
  dnnl_status_t status = dnnl_success;
  for (uint32_t k = 0; k < program->step_count && status == dnnl_success && *possible; k++) {
    program_step_t *step = &program->steps[k];
    bool raised = false;
    status = execute_watched(program, step, &raised);
    if (raised && step->scratch != NULL && step->cleaning == CLEANS_NEVER) {
      step->cleaning = CLEANS_ON_TRIAL;
    } else if (raised) {
      *possible = false;
    }
  }
  onednn_program_set_threads(program->threads);
  return status;
}

cleave_status_t onednn_program_run_clean(onednn_program_t *program, const cleave_run_args_t *args,
                                         bool *right, cleave_message_t *message) {
  onednn_flag_t unused;
  *right = program->untidy;
  if (!program->untidy) {
    return CLEAVE_OK;
  }
  cleave_status_t status = onednn_check(find_untidy(program, right), "run", message);
  if (status == CLEAVE_OK && *right) {
    onednn_flag_lower(&unused, program->threads);
    status = onednn_program_run(program, args, right, message);
  }
  for (uint32_t k = 0; k < program->step_count; k++) {
    program_step_t *step = &program->steps[k];
    if (step->cleaning == CLEANS_ON_TRIAL) {
      step->cleaning = status == CLEAVE_OK && *right ? CLEANS_ALWAYS : CLEANS_NEVER;
    }
  }
  return status;
}

uint32_t onednn_program_profile(const onednn_program_t *program, const cleave_step_time_t **out_steps) {
  *out_steps = program->times;
  return program->profile ? program->step_count : 0;
}
