// SPDX-License-Identifier: Apache-2.0
// Compiling: a plan, descriptors, memory, constants, kernels. If a library does not have what a plan wants of
// it, the plan is made again without the library; if that is cuDNN, first with bare convolutions, and then
// with channels first.
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MMA_CAPABILITY = 80 };

static bool is_true(const char *text) {
  return text != NULL && (strcmp(text, "1") == 0 || strcmp(text, "true") == 0);
}

static cleave_status_t read_options(const cleave_compile_options_t *options, cuda_program_t *program,
                                    cuda_plan_options_t *out_options, cleave_message_t *message) {
  bool has_more = options->size > offsetof(cleave_compile_options_t, options);
  program->device = has_more ? options->device : 0;
  program->profiles = options->profile;
  program->uses_graphs = !options->profile;
  program->is_tuned = true;
  for (uint32_t k = 0; has_more && k < options->option_count; k++) {
    const cleave_key_value_t *option = &options->options[k];
    bool is_set = is_true(option->value);
    if (!is_set &&
        (option->value == NULL || (strcmp(option->value, "0") != 0 && strcmp(option->value, "false") != 0))) {
      return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_NONE,
                       "option '%.60s': expected 0 or 1, found '%.60s'", option->key,
                       option->value == NULL ? "" : option->value);
    }
    if (strcmp(option->key, "tf32") == 0) {
      out_options->tf32 = is_set;
    } else if (strcmp(option->key, "fast_math") == 0) {
      out_options->fast_math = is_set;
    } else if (strcmp(option->key, "graphs") == 0) {
      program->uses_graphs = program->uses_graphs && is_set;
    } else if (strcmp(option->key, "cublaslt") == 0) {
      out_options->has_blas = is_set;
    } else if (strcmp(option->key, "channels_last") == 0) {
      out_options->channels = is_set ? CUDA_CHANNELS_LAST : CUDA_CHANNELS_FIRST;
    } else if (strcmp(option->key, "cudnn") == 0) {
      out_options->has_dnn = is_set;
    } else if (strcmp(option->key, "tune") == 0) {
      program->is_tuned = is_set;
    } else {
      return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_NONE,
                       "option '%.60s' is unknown", option->key);
    }
  }
  return CLEAVE_OK;
}

/* Reads the attributes that a rule gives the region: tf32, fast_math and tune. */
static void read_attributes(const cleave_region_view_t *region, cuda_program_t *program,
                            cuda_plan_options_t *out_options) {
  const cleave_attribute_view_t *tf32 = cleave_view_region_attribute(region, "tf32");
  const cleave_attribute_view_t *fast = cleave_view_region_attribute(region, "fast_math");
  const cleave_attribute_view_t *tune = cleave_view_region_attribute(region, "tune");
  program->is_tuned = program->is_tuned && (tune == NULL || tune->i != 0);
  out_options->tf32 = out_options->tf32 || (tf32 != NULL && tf32->i != 0);
  out_options->fast_math = out_options->fast_math || (fast != NULL && fast->i != 0);
}

/* ---- parts of compiling ---- */

static cleave_status_t no_memory(cleave_message_t *message) {
  return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a program");
}

static void drop_plan(cuda_program_t *program) {
  for (uint32_t k = 0; program->ready != NULL && k < program->plan.step_count; k++) {
    cuda_product_free(program, &program->ready[k]);
    cuda_dnn_free(program, &program->ready[k]);
  }
  free(program->ready);
  program->ready = NULL;
  cuda_plan_deinit(&program->plan);
}

/* CUDA_LIBRARY_COUNT: none. */
static cuda_library_id_t library_of(cuda_step_kind_t kind) {
  switch (kind) {
    case CUDA_STEP_PRODUCT: return CUDA_LIBRARY_BLAS;
    case CUDA_STEP_CONVOLUTION:
    case CUDA_STEP_POOL_BACK:
    case CUDA_STEP_NORM_BACK: return CUDA_LIBRARY_DNN;
    case CUDA_STEP_KERNEL:
    case CUDA_STEP_COPY: break;
  }
  return CUDA_LIBRARY_COUNT;
}

/* *out_lacks: the library that has no algorithm for a step. */
static cleave_status_t make_plan(cuda_program_t *program, const cleave_region_view_t *region,
                                 cuda_plan_options_t options, cuda_library_id_t *out_lacks,
                                 cleave_message_t *message) {
  *out_lacks = CUDA_LIBRARY_COUNT;
  CUDA_TRY(cuda_plan_init(&program->plan, region, options, message));
  CUDA_TRY(cuda_emit_region(&program->plan));
  program->ready = calloc((size_t)program->plan.step_count + 1, sizeof *program->ready);
  if (program->ready == NULL) {
    return no_memory(message);
  }
  for (uint32_t k = 0; k < program->plan.step_count; k++) {
    cuda_library_id_t library = library_of(program->plan.steps[k].kind);
    cleave_status_t status = library == CUDA_LIBRARY_BLAS  ? cuda_ready_product(program, k, message)
                             : library == CUDA_LIBRARY_DNN ? cuda_ready_dnn(program, k, message)
                                                           : CLEAVE_OK;
    if (status != CLEAVE_OK) {
      *out_lacks = library;
      return status;
    }
  }
  return cuda_plan_share_memory(&program->plan);
}

static cleave_status_t plan_with_libraries(cuda_program_t *program, const cleave_region_view_t *region,
                                           cuda_plan_options_t options, cleave_message_t *message) {
  cuda_library_id_t lacks = CUDA_LIBRARY_COUNT;
  for (;;) {
    cleave_status_t status = make_plan(program, region, options, &lacks, message);
    if (status != CLEAVE_ERROR_UNSUPPORTED || lacks == CUDA_LIBRARY_COUNT) {
      return status;
    }
    drop_plan(program);
    options.has_blas = options.has_blas && lacks != CUDA_LIBRARY_BLAS;
    if (lacks == CUDA_LIBRARY_DNN) {
      options.has_dnn = options.has_whole || options.channels != CUDA_CHANNELS_FIRST;
      options.channels = options.has_whole ? options.channels : CUDA_CHANNELS_FIRST;
      options.has_whole = false;
    }
  }
}

static cleave_status_t upload(cuda_program_t *program, cleave_message_t *message) {
  const cuda_plan_t *plan = &program->plan;
  if (plan->constant_bytes == 0) {
    return CLEAVE_OK;
  }
  CUDA_TRY(cuda_memory_alloc(program->state, program->device, (size_t)plan->constant_bytes, true,
                             &program->constants, message));
  for (uint32_t k = 0; k < plan->slot_count; k++) {
    const cuda_slot_t *slot = &plan->slots[k];
    if (slot->kind == CUDA_SLOT_CONSTANT && slot->is_used && slot->bytes > 0) {
      CUDA_TRY(
          cuda_check(program->state,
                     program->state->libraries.driver.copy_to(
                         program->constants + (cuda_address_t)slot->offset, slot->data, (size_t)slot->bytes),
                     "copy a constant to the device", message));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t get_kernels(cuda_program_t *program, const cleave_region_view_t *region,
                                   cleave_message_t *message) {
  static const char *const options[] = {"--std=c++17", "--use_fast_math"};
  char nodes[400];
  for (uint32_t k = 0; k < program->plan.step_count; k++) {
    const cuda_step_t *step = &program->plan.steps[k];
    if (step->kind == CUDA_STEP_KERNEL) {
      bool is_fused = step->fusion != CLEAVE_INDEX_NONE;
      const cleave_fusion_view_t *fusion = is_fused ? &region->fusions[step->fusion] : NULL;
      kernel_texts_nodes(region, is_fused ? fusion->node_count : 1, is_fused ? fusion->nodes : &step->node,
                         nodes, sizeof nodes);
      const cuda_source_t source = {.text = step->text,
                                    .entry = KERNEL_CUDA_ENTRY,
                                    .options = options,
                                    .option_count = step->fast_math ? 2 : 1,
                                    .nodes = nodes};
      CUDA_TRY(cuda_compiler_get(program->state->compiler, program->device, &source,
                                 &program->ready[k].function, message));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_tables(cuda_program_t *program, cleave_message_t *message) {
  const cuda_plan_t *plan = &program->plan;
  program->key_count = program->input_count + program->output_count + 1;
  program->addresses = calloc((size_t)plan->slot_count + 1, sizeof *program->addresses);
  program->key = calloc(program->key_count, sizeof *program->key);
  program->last_key = calloc(program->key_count, sizeof *program->last_key);
  program->times = calloc((size_t)plan->step_count + 1, sizeof *program->times);
  for (uint32_t k = 0; k < CUDA_MAX_GRAPHS; k++) {
    program->graphs[k].key = calloc(program->key_count, sizeof *program->key);
    if (program->graphs[k].key == NULL) {
      return no_memory(message);
    }
  }
  if (program->addresses == NULL || program->key == NULL || program->last_key == NULL ||
      program->times == NULL) {
    return no_memory(message);
  }
  for (uint32_t k = 0; k < plan->step_count; k++) {
    program->times[k] = (cleave_step_time_t){.size = sizeof program->times[k],
                                             .label = plan->steps[k].label,
                                             .node = plan->steps[k].node,
                                             .fusion = plan->steps[k].fusion};
  }
  return CLEAVE_OK;
}

static cleave_status_t compile(cuda_program_t *program, const cleave_region_view_t *region,
                               cuda_plan_options_t options, cleave_message_t *message) {
  cleave_status_t status = cuda_enter(program->state, program->device, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  status = plan_with_libraries(program, region, options, message);
  status = status == CLEAVE_OK ? get_kernels(program, region, message) : status;
  status = status == CLEAVE_OK ? upload(program, message) : status;
  status = status == CLEAVE_OK ? make_tables(program, message) : status;
  cuda_leave(program->state);
  return status;
}

cleave_status_t cuda_program_create(cuda_state_t *state, const cleave_region_view_t *region,
                                    const cleave_compile_options_t *options, cuda_program_t **out_program,
                                    cleave_message_t *message) {
  *out_program = NULL;
  cuda_program_t *program = calloc(1, sizeof *program);
  cuda_plan_options_t plan_options = {.has_blas = true, .has_dnn = true, .has_whole = true};
  if (program == NULL) {
    return no_memory(message);
  }
  program->state = state;
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  cleave_status_t status = read_options(options, program, &plan_options, message);
  read_attributes(region, program, &plan_options);
  plan_options.has_mma = status == CLEAVE_OK && program->device < state->device_count &&
                         state->devices[program->device].capability >= MMA_CAPABILITY;
  status = status == CLEAVE_OK ? compile(program, region, plan_options, message) : status;
  if (status != CLEAVE_OK) {
    cuda_program_destroy(program);
    return status;
  }
  program->info = (cleave_program_info_t){.size = sizeof program->info,
                                          .workspace_bytes = (size_t)program->plan.workspace_bytes,
                                          .persistent_bytes = (size_t)program->plan.constant_bytes};
  *out_program = program;
  return CLEAVE_OK;
}

void cuda_program_destroy(cuda_program_t *program) {
  cleave_message_t message = {.text = ""};
  if (program == NULL) {
    return;
  }
  if (program->own_stream != NULL) {
    cuda_stream_free(program->state, program->own_stream);
  }
  if (cuda_enter(program->state, program->device, &message) == CLEAVE_OK) {
    cuda_program_drop_graphs(program);
    drop_plan(program);
    cuda_leave(program->state);
  } else {
    free(program->ready);
    cuda_plan_deinit(&program->plan);
  }
  cuda_memory_free(program->state, program->device, program->constants);
  for (uint32_t k = 0; k < CUDA_MAX_GRAPHS; k++) {
    free(program->graphs[k].key);
  }
  free(program->addresses);
  free(program->key);
  free(program->last_key);
  free(program->times);
  free(program);
}
