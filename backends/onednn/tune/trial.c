// SPDX-License-Identifier: Apache-2.0
// Times are the least of several runs: what other processes do on the machine only adds to them.
#include "onednn/tune/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onednn/plan/care.h"

enum { MIN_RUNS = 3, MAX_RUNS = 40, REORDER_RUNS = 4 };

static double now_ms(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// ---- memory ----

// Numbers in [-0.5, 0.5), the same in every process.
static void fill_numbers(float *data, size_t count) {
  uint32_t state = 12345;
  for (size_t k = 0; k < count; k++) {
    state = state * 1664525U + 1013904223U;
    data[k] = (float)(state >> 8) / 16777216.0F - 0.5F;
  }
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, onednn_round_up(bytes + 1));
  if (memory != NULL) {
    memset(memory, 0, onednn_round_up(bytes + 1));
  }
  return memory;
}

static cleave_status_t make_tensors(onednn_ground_t *ground, const uint32_t *values, uint32_t count,
                                    cleave_tensor_view_t **out) {
  cleave_tensor_view_t *tensors = kernel_arena_allocate(&ground->arena, count, sizeof(cleave_tensor_view_t));
  *out = tensors;
  for (uint32_t k = 0; tensors != NULL && k < count; k++) {
    const cleave_tensor_view_t *view = &ground->region->values[values[k]].tensor;
    int64_t elements = cleave_view_element_count(view);
    size_t bytes = elements < 0 ? 0 : (size_t)elements * cleave_dtype_size(view->dtype);
    void *data = allocate(bytes);
    tensors[k] = *view;
    tensors[k].data = data;
    if (data == NULL) {
      return kernel_fail(ground->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
    }
    if (view->dtype == CLEAVE_DTYPE_F32) {
      fill_numbers(data, bytes / sizeof(float));
    }
  }
  return tensors != NULL
             ? CLEAVE_OK
             : kernel_fail(ground->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
}

cleave_status_t onednn_ground_init(onednn_ground_t *ground, const onednn_base_t *base,
                                   const cleave_region_view_t *region, int32_t threads,
                                   cleave_message_t *message) {
  memset(ground, 0, sizeof(*ground));
  ground->base = base;
  ground->region = region;
  ground->threads = threads;
  ground->message = message;
  ONEDNN_TRY(make_tensors(ground, region->inputs, region->input_count, &ground->inputs));
  return make_tensors(ground, region->outputs, region->output_count, &ground->outputs);
}

static void free_tensors(cleave_tensor_view_t *tensors, uint32_t count) {
  for (uint32_t k = 0; tensors != NULL && k < count; k++) {
    free((void *)(uintptr_t)tensors[k].data);
  }
}

void onednn_ground_deinit(onednn_ground_t *ground) {
  free_tensors(ground->inputs, ground->region->input_count);
  free_tensors(ground->outputs, ground->region->output_count);
  free(ground->workspace);
  kernel_arena_free(&ground->arena);
}

// ---- programs ----

cleave_status_t onednn_trial_create(onednn_ground_t *ground, const onednn_tuning_t *tuning,
                                    onednn_survey_t *survey, onednn_program_t **out) {
  const cleave_compile_options_t options = {
      .size = sizeof(options), .threads = ground->threads, .profile = survey != NULL};
  onednn_base_t base = *ground->base;
  base.tuning = tuning;
  base.survey = survey;
  return onednn_program_create(&base, ground->region, onednn_care_of(ground->region), &options, out,
                               ground->message);
}

static cleave_status_t reserve_workspace(onednn_ground_t *ground, size_t bytes) {
  if (bytes > ground->workspace_bytes) {
    free(ground->workspace);
    ground->workspace = allocate(bytes);
    ground->workspace_bytes = ground->workspace != NULL ? bytes : 0;
  }
  return bytes <= ground->workspace_bytes
             ? CLEAVE_OK
             : kernel_fail(ground->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
}

cleave_status_t onednn_trial_run(onednn_ground_t *ground, onednn_program_t *program, double *out_ms) {
  ONEDNN_TRY(reserve_workspace(ground, onednn_program_info(program)->workspace_bytes));
  const cleave_run_args_t arguments = {.size = sizeof(arguments),
                                       .inputs = ground->inputs,
                                       .outputs = ground->outputs,
                                       .workspace = ground->workspace};
  bool right = true;
  double start = now_ms();
  ONEDNN_TRY(onednn_program_run(program, &arguments, &right, ground->message));
  *out_ms = now_ms() - start;
  return CLEAVE_OK;
}

// The times of one run, kernel by kernel, where they are less than those before.
static cleave_status_t take_times(const onednn_program_t *program, const onednn_survey_t *survey,
                                  double *sums, double *kernel_ms) {
  const cleave_step_time_t *steps = NULL;
  uint32_t count = onednn_program_profile(program, &steps);
  memset(sums, 0, survey->kernel_count * sizeof(double));
  for (uint32_t k = 0; k < count && k < survey->step_count; k++) {
    sums[survey->kernel_of_step[k]] += (double)(steps[k].end_ns - steps[k].start_ns) * 1e-6;
  }
  for (uint32_t k = 0; k < survey->kernel_count; k++) {
    kernel_ms[k] = sums[k] < kernel_ms[k] ? sums[k] : kernel_ms[k];
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_trial_measure(onednn_ground_t *ground, onednn_program_t *program,
                                     const onednn_survey_t *survey, double budget_ms, double *kernel_ms) {
  double *sums = kernel_arena_allocate(&ground->arena, survey->kernel_count, sizeof(double));
  double spent = 0;
  double ms = 0;
  if (sums == NULL) {
    return kernel_fail(ground->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
  }
  for (uint32_t k = 0; k < survey->kernel_count; k++) {
    kernel_ms[k] = HUGE_VAL;
  }
  ONEDNN_TRY(onednn_trial_run(ground, program, &ms));
  for (int k = 0; k < MIN_RUNS || (k < MAX_RUNS && spent < budget_ms); k++) {
    ONEDNN_TRY(onednn_trial_run(ground, program, &ms));
    ONEDNN_TRY(take_times(program, survey, sums, kernel_ms));
    spent += ms;
  }
  return CLEAVE_OK;
}

// ---- conversions ----

static double time_reorder(dnnl_primitive_t primitive, dnnl_stream_t stream, dnnl_memory_t *memories) {
  const dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, memories[0]}, {DNNL_ARG_TO, memories[1]}};
  double least = HUGE_VAL;
  for (int k = 0; k < REORDER_RUNS; k++) {
    double start = now_ms();
    if (dnnl_primitive_execute(primitive, stream, 2, arguments) != dnnl_success ||
        dnnl_stream_wait(stream) != dnnl_success) {
      return HUGE_VAL;
    }
    double time = now_ms() - start;
    least = k > 0 && time < least ? time : least;
  }
  return least;
}

double onednn_trial_reorder(onednn_ground_t *ground, const onednn_layout_t *from, const onednn_layout_t *to) {
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_memory_t memories[2] = {NULL, NULL};
  void *data[2] = {allocate(onednn_md_bytes(from)), allocate(onednn_md_bytes(to))};
  const onednn_maker_t maker = {.engine = ground->base->engine, .out = &description};
  bool works = data[0] != NULL && data[1] != NULL && onednn_make_reorder(&maker, from, to) == dnnl_success &&
               dnnl_primitive_create(&primitive, description) == dnnl_success &&
               dnnl_stream_create(&stream, ground->base->engine, dnnl_stream_default_flags) == dnnl_success &&
               onednn_memory_create(&memories[0], from, ground->base->engine, data[0]) == dnnl_success &&
               onednn_memory_create(&memories[1], to, ground->base->engine, data[1]) == dnnl_success;
  double time = works ? time_reorder(primitive, stream, memories) : HUGE_VAL;
  for (int k = 0; k < 2; k++) {
    if (memories[k] != NULL) {
      (void)dnnl_memory_destroy(memories[k]);
    }
    free(data[k]);
  }
  if (stream != NULL) {
    (void)dnnl_stream_destroy(stream);
  }
  if (primitive != NULL) {
    (void)dnnl_primitive_destroy(primitive);
  }
  if (description != NULL) {
    (void)dnnl_primitive_desc_destroy(description);
  }
  return time;
}
