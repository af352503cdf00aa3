// SPDX-License-Identifier: Apache-2.0
// Compiling a program. Memory objects are grouped by what they point into: group 0 is the workspace, then one
// group per region input and output; constants need no group. Objects are shared by all steps that see the
// same place in the same layout.
#include <stdlib.h>
#include <string.h>

#include "onednn/convolution/convolution.h"
#include "onednn/emit/emit.h"
#include "onednn/plan/care.h"
#include "onednn/plan/preferred.h"
#include "onednn/plan/weights_memory.h"
#include "onednn/product/product.h"
#include "onednn/program/memory_plan.h"
#include "onednn/program/program_internal.h"
#include "onednn/program/survey.h"
#include "onednn/quantized/quantized.h"
#include "onednn/weights/tuning.h"

static cleave_status_t out_of_memory(cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while making a program");
}

static cleave_status_t emit_kernel(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  bool done = false;
  ONEDNN_TRY(onednn_emit_dequantize(plan, kernel));
  ONEDNN_TRY(onednn_emit_quantized(plan, kernel, &done));
  if (!done) {
    ONEDNN_TRY(onednn_emit_narrow(plan, kernel, &done));
  }
  if (done) {
    return CLEAVE_OK;
  }
  switch (kernel->kind) {
    case ONEDNN_CONVOLUTION:
    case ONEDNN_DECONVOLUTION: return onednn_emit_convolution(plan, kernel);
    case ONEDNN_PRODUCT: return onednn_emit_product(plan, kernel);
    case ONEDNN_POOLING: return onednn_emit_pooling(plan, kernel);
    case ONEDNN_POINTWISE: return onednn_emit_pointwise(plan, kernel);
    case ONEDNN_LAYER_NORMALIZATION: return onednn_emit_layer_normalization(plan, kernel);
    case ONEDNN_SOFTMAX: return onednn_emit_softmax(plan, kernel);
    case ONEDNN_LRN: return onednn_emit_lrn(plan, kernel);
    case ONEDNN_REDUCTION: return onednn_emit_reduction(plan, kernel);
    case ONEDNN_RESAMPLING: return onednn_emit_resampling(plan, kernel);
    case ONEDNN_PRELU: return onednn_emit_prelu(plan, kernel);
    case ONEDNN_CONCAT: return onednn_emit_concat(plan, kernel);
    case ONEDNN_RESHAPE: return onednn_emit_reshape(plan, kernel);
    case ONEDNN_TRANSPOSE: return onednn_emit_transpose(plan, kernel);
    case ONEDNN_SLICE: return onednn_emit_slice(plan, kernel);
    case ONEDNN_GATHER: return onednn_emit_gather(plan, kernel);
    case ONEDNN_SPLIT: return onednn_emit_split(plan, kernel);
    case ONEDNN_SHUFFLE: return onednn_emit_shuffle(plan, kernel);
    case ONEDNN_RECURRENT: return onednn_emit_recurrent(plan, kernel);
    case ONEDNN_ATTENTION: return onednn_emit_attention(plan, kernel);
    case ONEDNN_GENERATED: return onednn_emit_generated(plan, kernel);
    case ONEDNN_GRADIENT: return onednn_emit_gradient(plan, kernel);
    case ONEDNN_STATISTICS: return onednn_emit_statistics(plan, kernel);
    case ONEDNN_DEQUANTIZE: return CLEAVE_OK;
  }
  return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "a kernel of no kind");
}

// Outputs that are inputs or constants themselves are made by no kernel.
static cleave_status_t copy_through(onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->region->output_count; k++) {
    uint32_t value = plan->region->outputs[k];
    if (plan->region->values[value].producer == CLEAVE_INDEX_NONE) {
      onednn_tensor_t tensor;
      ONEDNN_TRY(onednn_plan_fetch(plan, value, &tensor));
      ONEDNN_TRY(onednn_plan_bind(plan, value, &tensor));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_all(onednn_plan_t *plan, const onednn_analysis_t *analysis) {
  bool low = onednn_precision_is_low(&plan->precision);
  plan->blocked = !low && onednn_blocks_pay(plan); /* products of other types like channels last */
  plan->channels_last = !plan->blocked && onednn_keeps_channels_last(plan);
  for (uint32_t k = 0; k < analysis->kernel_count; k++) {
    plan->kernel = k;
    // oneDNN shares the work of a primitive among as many threads as there are when it is made.
    onednn_program_set_threads(onednn_plan_form(plan).serial != 0 ? 1 : plan->threads);
    ONEDNN_TRY(emit_kernel(plan, &analysis->kernels[k]));
  }
  onednn_program_set_threads(plan->threads);
  plan->forms = NULL; /* what is copied has none */
  return copy_through(plan);
}

static uint32_t group_of(const onednn_program_t *program, const onednn_buffer_t *buffer) {
  switch (buffer->place) {
    case ONEDNN_WORKSPACE: return 0;
    case ONEDNN_INPUT: return 1 + buffer->index;
    case ONEDNN_OUTPUT: return 1 + program->input_count + buffer->index;
    case ONEDNN_CONSTANT: break;
  }
  return CLEAVE_INDEX_NONE;
}

// An object for the tensor: one that exists already, or a new one. `heads` chains objects by buffer.
static cleave_status_t find_memory(onednn_program_t *program, const onednn_plan_t *plan,
                                   const onednn_tensor_t *tensor, uint32_t *heads, uint32_t *chain,
                                   dnnl_memory_t *out) {
  for (uint32_t k = heads[tensor->buffer]; k != 0; k = chain[k - 1]) {
    program_memory_t *known = &program->memories[k - 1];
    if (known->tensor_offset == tensor->offset && onednn_md_equal(known->layout, &tensor->layout)) {
      *out = known->memory;
      return CLEAVE_OK;
    }
  }
  const onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  program_memory_t *memory = &program->memories[program->memory_count];
  bool constant = buffer->place == ONEDNN_CONSTANT;
  void *data = constant ? (void *)((char *)buffer->data + tensor->offset) : DNNL_MEMORY_NONE;
  ONEDNN_TRY(onednn_check(onednn_memory_create(&memory->memory, &tensor->layout, plan->engine, data),
                          "a memory object", plan->message));
  memory->group = group_of(program, buffer);
  memory->offset = buffer->offset + tensor->offset;
  memory->buffer = tensor->buffer;
  memory->layout = &tensor->layout;
  memory->tensor_offset = tensor->offset;
  chain[program->memory_count] = heads[tensor->buffer];
  heads[tensor->buffer] = ++program->memory_count;
  *out = memory->memory;
  return CLEAVE_OK;
}

static int by_group(const void *left, const void *right) {
  const program_memory_t *a = left;
  const program_memory_t *b = right;
  return a->group == b->group ? 0 : (a->group < b->group ? -1 : 1);
}

static cleave_status_t make_groups(onednn_program_t *program, cleave_message_t *message) {
  program->group_count = 1 + program->input_count + program->output_count;
  program->groups = kernel_arena_allocate(&program->arena, program->group_count, sizeof(program_group_t));
  if (program->groups == NULL) {
    return out_of_memory(message);
  }
  if (program->memory_count > 0) {
    qsort(program->memories, program->memory_count, sizeof(program_memory_t), by_group);
  }
  for (uint32_t k = program->memory_count; k-- > 0;) {
    if (program->memories[k].group != CLEAVE_INDEX_NONE) {
      program_group_t *group = &program->groups[program->memories[k].group];
      group->first = k;
      group->count++;
    }
  }
  return CLEAVE_OK;
}

// The node or fusion of the region given.
static uint32_t given(const uint32_t *origins, uint32_t index) {
  return origins != NULL && index != CLEAVE_INDEX_NONE ? origins[index] : index;
}

static cleave_status_t take_loop(onednn_program_t *program, onednn_step_t *from, program_step_t *to,
                                 cleave_message_t *message) {
  if (from->loop == NULL) {
    return CLEAVE_OK;
  }
  onednn_loop_t *loop = kernel_arena_allocate(&program->arena, 1, sizeof(*loop));
  if (loop == NULL) {
    return out_of_memory(message);
  }
  *loop = *from->loop;
  if (loop->context != NULL) {
    void *context = kernel_arena_allocate(&program->arena, 1, loop->context_bytes);
    if (context == NULL) {
      return out_of_memory(message);
    }
    memcpy(context, from->loop->context, loop->context_bytes);
    loop->context = context;
  }
  to->loop = loop;
  from->loop = NULL;
  return CLEAVE_OK;
}

static cleave_status_t take_steps(onednn_program_t *program, onednn_plan_t *plan) {
  size_t total = 0;
  for (uint32_t k = 0; k < plan->step_count; k++) {
    total += plan->steps[k].argument_count;
  }
  uint32_t *heads = kernel_arena_allocate(plan->arena, plan->buffer_count, sizeof(uint32_t));
  uint32_t *chain = kernel_arena_allocate(plan->arena, total, sizeof(uint32_t));
  program->steps = kernel_arena_allocate(&program->arena, plan->step_count, sizeof(program_step_t));
  program->memories = kernel_arena_allocate(&program->arena, total, sizeof(program_memory_t));
  program->times = kernel_arena_allocate(&program->arena, plan->step_count, sizeof(cleave_step_time_t));
  dnnl_exec_arg_t *arguments = kernel_arena_allocate(&program->arena, total, sizeof(dnnl_exec_arg_t));
  if (heads == NULL || chain == NULL || program->steps == NULL || program->memories == NULL ||
      program->times == NULL || arguments == NULL) {
    return out_of_memory(plan->message);
  }
  for (uint32_t k = 0; k < plan->step_count; k++) {
    onednn_step_t *from = &plan->steps[k];
    program_step_t *to = &program->steps[k];
    to->arguments = arguments;
    to->argument_count = (int)from->argument_count;
    for (uint32_t a = 0; a < from->argument_count; a++) {
      arguments[a].arg = from->arguments[a].name;
      ONEDNN_TRY(find_memory(program, plan, &from->arguments[a].tensor, heads, chain, &arguments[a].memory));
    }
    arguments += from->argument_count;
    to->primitive = from->made != CLEAVE_INDEX_NONE ? onednn_making_take(&plan->making, from->made) : NULL;
    to->serial = from->serial;
    if (from->untidy) {
      to->scratch = to->arguments[to->argument_count - 1].memory; /* append_step adds it last */
      to->scratch_bytes = onednn_md_bytes(&from->arguments[from->argument_count - 1].tensor.layout);
      program->untidy = true;
    }
    program->step_count++;
    ONEDNN_TRY(take_loop(program, from, to, plan->message));
    char *label = kernel_arena_text(&program->arena, from->label);
    if (label == NULL) {
      return out_of_memory(plan->message);
    }
    program->times[k] =
        (cleave_step_time_t){.size = sizeof(cleave_step_time_t),
                             .label = label,
                             .node = given(plan->analysis->expansion.node_of, from->node),
                             .fusion = given(plan->analysis->expansion.fusion_of, from->fusion)};
  }
  return CLEAVE_OK;
}

static cleave_status_t note_shapes(onednn_program_t *program, const onednn_plan_t *plan) {
  const cleave_region_view_t *region = plan->region;
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  program->bytes = kernel_arena_allocate(&program->arena, (size_t)region->input_count + region->output_count,
                                         sizeof(size_t));
  program->needed = kernel_arena_allocate(&program->arena, region->input_count, sizeof(bool));
  if (program->bytes == NULL || program->needed == NULL) {
    return out_of_memory(plan->message);
  }
  for (uint32_t k = 0; k < region->input_count + region->output_count; k++) {
    uint32_t value = k < region->input_count ? region->inputs[k] : region->outputs[k - region->input_count];
    const cleave_tensor_view_t *tensor = &region->values[value].tensor;
    int64_t count = cleave_view_element_count(tensor);
    program->bytes[k] = count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
  }
  return CLEAVE_OK;
}

static cleave_status_t note_packed(onednn_program_t *program, const onednn_plan_t *plan,
                                   const onednn_tuning_t *tuning) {
  program->packed =
      kernel_arena_allocate(&program->arena, (size_t)plan->packing_count + 1, sizeof(onednn_packed_t));
  if (program->packed == NULL) {
    return out_of_memory(plan->message);
  }
  program->packed_count = plan->packing_count;
  for (uint32_t k = 0; k < plan->packing_count; k++) {
    const onednn_buffer_t *buffer = &plan->buffers[plan->packings[k].buffer];
    bool is_read = buffer->first_step != CLEAVE_INDEX_NONE;
    program->packed[k] = (onednn_packed_t){.identity = plan->packings[k].identity,
                                           .data = is_read ? buffer->data : NULL,
                                           .bytes = buffer->bytes};
  }
  if (tuning != NULL) {
    program->packed[program->packed_count++] = onednn_tuning_packed(tuning);
  }
  return CLEAVE_OK;
}

static cleave_status_t note_tuning(onednn_program_t *program, const onednn_tuning_t *tuning,
                                   cleave_message_t *message) {
  char text[256];
  if (tuning == NULL) {
    return CLEAVE_OK;
  }
  onednn_tuning_text(tuning, text, sizeof(text));
  program->info.note = kernel_arena_text(&program->arena, text);
  return program->info.note != NULL ? CLEAVE_OK : out_of_memory(message);
}

static cleave_status_t finish_primitives(onednn_plan_t *plan) {
  dnnl_status_t status = onednn_making_finish(&plan->making);
  onednn_program_set_threads(plan->threads);
  return onednn_check(status, plan->making.failed == NULL ? "a primitive" : plan->making.failed,
                      plan->message);
}

static cleave_status_t finish(onednn_program_t *program, onednn_plan_t *plan, const onednn_base_t *base,
                              const cleave_compile_options_t *options) {
  program->info.size = sizeof(program->info);
  program->raises = plan->raises;
  program->profile = options->profile;
  ONEDNN_TRY(onednn_plan_gather(plan));
  ONEDNN_TRY(note_tuning(program, base->tuning, plan->message));
  ONEDNN_TRY(note_packed(program, plan, base->tuning));
  ONEDNN_TRY(onednn_plan_memory(plan, &program->info.workspace_bytes));
  ONEDNN_TRY(note_shapes(program, plan));
  ONEDNN_TRY(finish_primitives(plan));
  ONEDNN_TRY(take_steps(program, plan));
  ONEDNN_TRY(make_groups(program, plan->message));
  for (uint32_t k = 0; k < program->input_count; k++) {
    program->needed[k] = program->groups[1 + k].count > 0;
  }
  program->info.persistent_bytes = plan->persistent_bytes;
  program->slabs = plan->slabs;
  program->slab_count = plan->slab_count;
  plan->slabs = NULL;
  plan->slab_count = 0;
  return CLEAVE_OK;
}

cleave_status_t onednn_program_create(const onednn_base_t *base, const cleave_region_view_t *region,
                                      onednn_care_t care, const cleave_compile_options_t *options,
                                      onednn_program_t **out, cleave_message_t *message) {
  onednn_analysis_t analysis;
  onednn_plan_t plan;
  kernel_arena_t arena = {0};
  bool planned = false;
  onednn_program_t *program = calloc(1, sizeof(*program));
  *out = NULL;
  if (program == NULL) {
    return out_of_memory(message);
  }
  program->threads = options->threads < 1 ? 1 : options->threads;
  program->host = base->host;
  onednn_program_set_threads(program->threads);
  cleave_status_t status = onednn_check(
      dnnl_stream_create(&program->stream, base->engine, dnnl_stream_default_flags), "a stream", message);
  if (status == CLEAVE_OK) {
    status = onednn_analyse(region, &arena, message, &analysis);
  }
  if (status == CLEAVE_OK) {
    planned = true;
    status = onednn_plan_init(&plan, &analysis, base, program->stream, program->threads, care);
  }
  // A program that repeats a run exactly is float32 throughout.
  if (status == CLEAVE_OK && care != ONEDNN_CARE_EXACT) {
    status = onednn_precision_choose(&analysis, region, &plan.precision);
  }
  if (status == CLEAVE_OK) {
    status = onednn_plan_preferred(&plan);
  }
  if (status == CLEAVE_OK) {
    status = emit_all(&plan, &analysis);
  }
  if (status == CLEAVE_OK && base->survey != NULL) {
    status = onednn_survey_take(&plan, base->survey);
  }
  if (status == CLEAVE_OK) {
    status = finish(program, &plan, base, options);
  }
  if (planned) {
    onednn_plan_deinit(&plan);
  }
  kernel_arena_free(&arena);
  if (status != CLEAVE_OK) {
    onednn_program_destroy(program);
    return status;
  }
  *out = program;
  return CLEAVE_OK;
}

void onednn_program_destroy(onednn_program_t *program) {
  if (program == NULL) {
    return;
  }
  for (uint32_t k = 0; k < program->step_count; k++) {
    if (program->steps[k].primitive != NULL) {
      (void)dnnl_primitive_destroy(program->steps[k].primitive);
    }
    onednn_loop_release(program->steps[k].loop);
  }
  for (uint32_t k = 0; k < program->memory_count; k++) {
    if (program->memories[k].memory != NULL) {
      (void)dnnl_memory_destroy(program->memories[k].memory);
    }
  }
  for (uint32_t k = 0; k < program->slab_count; k++) {
    onednn_slab_release(program->slabs[k]);
  }
  if (program->stream != NULL) {
    (void)dnnl_stream_destroy(program->stream);
  }
  free(program->slabs);
  kernel_arena_free(&program->arena);
  free(program);
}

const cleave_program_info_t *onednn_program_info(const onednn_program_t *program) {
  return &program->info;
}

cleave_status_t onednn_program_save(const onednn_program_t *program,
                                    cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                    void *context, cleave_message_t *message) {
  if (program->packed_count == 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "it has no packed weights");
  }
  return onednn_image_write(program->packed, program->packed_count, write, context);
}

bool onednn_program_raises(const onednn_program_t *program) {
  return program->raises;
}
