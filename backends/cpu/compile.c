// SPDX-License-Identifier: Apache-2.0
// From a region to a program: kernels are looked up and prepared, constants aligned, tensors wired to steps,
// memory planned. After this a run only fills in pointers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/common/blas.h"
#include "cpu/fused.h"
#include "cpu/program.h"
#include "cpu/units.h"

static void *prepare_allocate(cpu_prepare_t *prepare, size_t bytes) {
  return kernel_arena_allocate(prepare->owner, 1, bytes);
}

static cleave_status_t check_operands(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                      const cpu_kernel_t *kernel, cleave_message_t *message) {
  for (uint32_t k = 0; k < kernel->required_inputs; k++) {
    if (cleave_view_input(region, node, k) == NULL) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s: input %u is missing", node->op, (unsigned)k);
    }
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (node->inputs[k] != CLEAVE_INDEX_NONE && node->inputs[k] >= region->value_count) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: input %u is not a value", node->op,
                         (unsigned)k);
    }
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE && node->outputs[k] >= region->value_count) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: output %u is not a value", node->op,
                         (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_prepare_node(const cpu_backend_t *backend, const cleave_region_view_t *region,
                                 uint32_t node_index, kernel_arena_t *arena, const cpu_kernel_t **out_kernel,
                                 void **out_state, cleave_message_t *message) {
  const cleave_node_view_t *node = &region->nodes[node_index];
  const cpu_kernel_t *kernel = cpu_backend_kernel(backend, node);
  if (kernel == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s%s%s: no kernel for this operator",
                       node->domain == NULL ? "" : node->domain,
                       node->domain == NULL || node->domain[0] == '\0' ? "" : ".", node->op);
  }
  cleave_status_t status = check_operands(region, node, kernel, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  void *state = kernel_arena_allocate(arena, 1, kernel->state_size);
  if (state == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "%s: no memory for its state", node->op);
  }
  if (kernel->prepare != NULL) {
    cpu_prepare_t prepare = {.region = region,
                             .node = node,
                             .variant = kernel->variant,
                             .allocate = prepare_allocate,
                             .owner = arena};
    cleave_message_t detail = {.text = "no reason given"};
    status = kernel->prepare(&prepare, state, &detail);
    if (status != CLEAVE_OK) {
      return kernel_fail(message, status, "%s: %s", node->op,
                         status == CLEAVE_ERROR_OUT_OF_MEMORY ? "no memory left" : detail.text);
    }
  }
  *out_kernel = kernel;
  *out_state = state;
  return CLEAVE_OK;
}

/* Takes over dtype and shape of a value; *out_known whether every dim is there. */
static cleave_status_t describe_value(const cleave_value_view_t *value, cpu_tensor_t *tensor, bool *out_known,
                                      cleave_message_t *message) {
  const cleave_tensor_view_t *view = &value->tensor;
  *tensor = (cpu_tensor_t){.dtype = view->dtype, .rank = view->rank, .count = -1};
  *out_known = view->rank >= 0;
  if (view->rank > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "value '%s': rank %d, at most %d", value->name,
                       (int)view->rank, CLEAVE_MAX_RANK);
  }
  int64_t count = 1;
  for (int32_t d = 0; d < view->rank; d++) {
    tensor->dims[d] = view->dims[d];
    if (view->dims[d] < 0) {
      *out_known = false;
    } else if (__builtin_mul_overflow(count, view->dims[d], &count) || count > INT64_MAX / 16) {
      return kernel_fail(message, CLEAVE_ERROR_LIMIT, "value '%s': too many elements", value->name);
    }
  }
  if (*out_known) {
    tensor->count = count;
  }
  return CLEAVE_OK;
}

/* Constants are used where they lie, unless a step needs them at an address that suits their elements. */
static cleave_status_t place_constant(const cleave_value_view_t *value, cpu_tensor_t *tensor,
                                      cleave_message_t *message) {
  if (tensor->count < 0 || cleave_dtype_size(tensor->dtype) == 0) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "constant '%s' has no known shape or dtype",
                       value->name);
  }
  tensor->data = (void *)(uintptr_t)value->tensor.data;
  return CLEAVE_OK;
}

/* A value that a step reads: a constant is copied if its address does not suit its elements. */
static cleave_status_t align_constant(cpu_program_t *program, const cleave_region_view_t *region,
                                      uint32_t index, cleave_message_t *message) {
  const cleave_value_view_t *value = &region->values[index];
  cpu_tensor_t *tensor = &program->tensors[index];
  size_t element = cleave_dtype_size(tensor->dtype);
  if (value->tensor.data == NULL || (uintptr_t)tensor->data % element == 0) {
    return CLEAVE_OK;
  }
  size_t bytes = (size_t)tensor->count * element;
  void *copy = kernel_arena_allocate(&program->arena, 1, bytes);
  if (copy == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for constant '%s'", value->name);
  }
  memcpy(copy, tensor->data, bytes);
  if (program->host != NULL && program->host->constant_packed != NULL) {
    program->host->constant_packed(tensor->data, bytes);
  }
  tensor->data = copy;
  return CLEAVE_OK;
}

static cleave_status_t describe_values(cpu_program_t *program, const cleave_region_view_t *region,
                                       cleave_message_t *message) {
  program->value_count = region->value_count;
  program->tensors = kernel_arena_allocate(&program->arena, region->value_count, sizeof *program->tensors);
  bool *known = kernel_arena_allocate(&program->arena, region->value_count, sizeof *known);
  uint32_t *value_outputs =
      kernel_arena_allocate(&program->arena, region->value_count, sizeof *value_outputs);
  uint32_t *inputs = kernel_arena_allocate(&program->arena, region->input_count, sizeof *inputs);
  uint32_t *outputs = kernel_arena_allocate(&program->arena, region->output_count, sizeof *outputs);
  program->input_copies =
      kernel_arena_allocate(&program->arena, region->input_count, sizeof *program->input_copies);
  program->input_copy_sizes =
      kernel_arena_allocate(&program->arena, region->input_count, sizeof *program->input_copy_sizes);
  if (program->tensors == NULL || known == NULL || value_outputs == NULL || inputs == NULL ||
      outputs == NULL || program->input_copies == NULL || program->input_copy_sizes == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  program->known = known;
  program->value_outputs = value_outputs;
  program->inputs = inputs;
  program->outputs = outputs;
  for (uint32_t v = 0; v < region->value_count; v++) {
    value_outputs[v] = CLEAVE_INDEX_NONE;
    cleave_status_t status = describe_value(&region->values[v], &program->tensors[v], &known[v], message);
    if (status == CLEAVE_OK && region->values[v].tensor.data != NULL) {
      status = place_constant(&region->values[v], &program->tensors[v], message);
    }
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  program->input_count = region->input_count;
  for (uint32_t k = 0; k < region->input_count; k++) {
    inputs[k] = region->inputs[k];
  }
  program->output_count = region->output_count;
  for (uint32_t k = 0; k < region->output_count; k++) {
    outputs[k] = region->outputs[k];
    value_outputs[region->outputs[k]] = k;
    if (region->values[region->outputs[k]].producer == CLEAVE_INDEX_NONE) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "output '%s' is not computed in the region",
                         region->values[region->outputs[k]].name);
    }
  }
  return CLEAVE_OK;
}

/* Tensors of one node. An output that nothing uses is left out; so is one that is neither an output of the
 * region nor read in it. */
static cleave_status_t wire_step(cpu_program_t *program, const cleave_region_view_t *region,
                                 const bool *is_read, cpu_step_t *step, cleave_message_t *message) {
  const cleave_node_view_t *node = &region->nodes[step->node];
  const cpu_tensor_t **inputs = kernel_arena_allocate(&program->arena, node->input_count, sizeof *inputs);
  cpu_tensor_t **outputs = kernel_arena_allocate(&program->arena, node->output_count, sizeof *outputs);
  uint32_t *input_values = kernel_arena_allocate(&program->arena, node->input_count, sizeof *input_values);
  uint32_t *output_values = kernel_arena_allocate(&program->arena, node->output_count, sizeof *output_values);
  if (inputs == NULL || outputs == NULL || input_values == NULL || output_values == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  step->is_static = true;
  for (uint32_t k = 0; k < node->input_count; k++) {
    uint32_t value = node->inputs[k];
    input_values[k] = value;
    if (value != CLEAVE_INDEX_NONE) {
      inputs[k] = &program->tensors[value];
      step->is_static = step->is_static && program->known[value];
      if (k >= 32 || (step->kernel->unaligned >> k & 1u) == 0) {
        CPU_TRY(align_constant(program, region, value, message));
      }
    }
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    uint32_t value = node->outputs[k];
    output_values[k] = CLEAVE_INDEX_NONE;
    if (value == CLEAVE_INDEX_NONE ||
        (program->value_outputs[value] == CLEAVE_INDEX_NONE && !is_read[value])) {
      continue;
    }
    if (program->value_outputs[value] == CLEAVE_INDEX_NONE && !program->known[value]) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s: the shape of intermediate value '%s' is known only at run time", node->op,
                         region->values[value].name);
    }
    output_values[k] = value;
    outputs[k] = &program->tensors[value];
    step->is_static = step->is_static && program->known[value];
  }
  step->input_values = input_values;
  step->output_values = output_values;
  step->call.inputs = inputs;
  step->call.outputs = outputs;
  step->call.input_count = node->input_count;
  step->call.output_count = node->output_count;
  return CLEAVE_OK;
}

static cleave_status_t resize(const cpu_call_t *call, uint32_t output, int32_t rank, const int64_t *dims) {
  const cpu_step_t *step = call->owner;
  cpu_program_t *program = step->program;
  uint32_t value = output < call->output_count ? step->output_values[output] : CLEAVE_INDEX_NONE;
  uint32_t index = value == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : program->value_outputs[value];
  const cleave_run_args_t *args = program->args;
  if (index == CLEAVE_INDEX_NONE || args->resize_output == NULL || rank < 0 || rank > CLEAVE_MAX_RANK) {
    return CLEAVE_ERROR_INTERNAL;
  }
  CPU_TRY(args->resize_output(args->session, index, rank, dims));
  return cpu_program_bind(&program->tensors[value], rank, dims, args->outputs[index].data);
}

static void *allocate_packed(void *owner, size_t bytes) {
  return kernel_arena_allocate(owner, 1, bytes);
}

static cleave_status_t pack_constants(cpu_program_t *program, cpu_step_t *step, void *state,
                                      cleave_message_t *message) {
  const cpu_allocator_t allocator = {.allocate = allocate_packed, .owner = &program->arena};
  cleave_message_t detail = {.text = "no reason given"};
  if (step->kernel->pack == NULL) {
    return CLEAVE_OK;
  }
  cleave_status_t status = step->kernel->pack(&step->call, state, &allocator, &detail);
  return status == CLEAVE_OK ? status : kernel_fail(message, status, "%s: %s", step->kernel->op, detail.text);
}

/* Sets what every step of a program has. */
static void finish_step(cpu_step_t *step, const cpu_backend_t *backend,
                        const cleave_compile_options_t *options) {
  step->call.host = backend->host;
  step->call.threads = options->threads < 1 ? 1 : options->threads;
  step->call.resize = resize;
  step->call.owner = step;
}

static void prepare_run(cpu_step_t *step) {
  const cpu_kernel_t *kernel = step->kernel;
  step->inplace |= kernel->inplace;
  if (kernel->multiplies != NULL && (!step->is_static || kernel->multiplies(&step->call))) {
    cpu_blas_load();
  }
  if (step->is_static) {
    step->scratch_bytes = cpu_kernel_scratch(step->kernel, &step->call);
  }
}

/* A fusion as one step; *out_done false: it has to run node by node, which the log gets the reason of.
 * Wide: all that a fusion is compiled with. */
static cleave_status_t make_kernel(cpu_program_t *program, const cpu_backend_t *backend,
                                   const cleave_region_view_t *region, kernel_lowerer_t *lowerer,
                                   const cpu_unit_t *unit, const cleave_compile_options_t *options,
                                   bool *out_done, cleave_message_t *message) {
  cpu_step_t *step = &program->steps[program->step_count];
  *step = (cpu_step_t){.program = program, .node = unit->nodes[0]};
  *out_done = false;
  for (uint32_t n = 0; n < unit->count; n++) {
    const cleave_node_view_t *node = &region->nodes[unit->nodes[n]];
    for (uint32_t k = 0; k < node->input_count; k++) {
      if (node->inputs[k] != CLEAVE_INDEX_NONE) {
        CPU_TRY(align_constant(program, region, node->inputs[k], message));
      }
    }
  }
  cleave_status_t status = cpu_fused_compile(program, lowerer, unit, step, message);
  if (status == CLEAVE_ERROR_UNSUPPORTED) {
    char line[sizeof message->text + 128];
    snprintf(line, sizeof line, "cpu: a kernel runs node by node: %s", message->text);
    if (backend->host != NULL && backend->host->log != NULL) {
      backend->host->log(backend->host, 2, line);
    }
    return CLEAVE_OK;
  }
  if (status == CLEAVE_OK) {
    finish_step(step, backend, options);
    prepare_run(step);
    program->step_count++;
    *out_done = true;
  }
  return status;
}

static cleave_status_t make_step(cpu_program_t *program, const cpu_backend_t *backend,
                                 const cleave_region_view_t *region, uint32_t node_index,
                                 const cleave_compile_options_t *options, const bool *is_read,
                                 cleave_message_t *message) {
  const cleave_node_view_t *node = &region->nodes[node_index];
  cpu_step_t *step = &program->steps[program->step_count];
  void *state = NULL;
  *step = (cpu_step_t){.program = program, .node = node_index};
  cleave_status_t status =
      cpu_prepare_node(backend, region, node_index, &program->arena, &step->kernel, &state, message);
  if (status == CLEAVE_OK) {
    status = wire_step(program, region, is_read, step, message);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  bool is_used = false;
  for (uint32_t o = 0; o < step->call.output_count; o++) {
    is_used = is_used || step->call.outputs[o] != NULL;
  }
  if (!is_used) {
    return CLEAVE_OK;
  }
  step->name = kernel_arena_text(&program->arena, node->name == NULL ? "" : node->name);
  if (step->name == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  step->call.state = state;
  finish_step(step, backend, options);
  CPU_TRY(pack_constants(program, step, state, message));
  prepare_run(step);
  program->step_count++;
  return CLEAVE_OK;
}

static cleave_status_t make_steps(cpu_program_t *program, const cpu_backend_t *backend,
                                  const cleave_region_view_t *region, const cleave_compile_options_t *options,
                                  const bool *is_read, cleave_message_t *message) {
  kernel_arena_t arena = {0};
  cpu_unit_t *units = NULL;
  uint32_t unit_count = 0;
  kernel_lowerer_t *lowerer = NULL;
  cleave_status_t status = cpu_units_list(region, &arena, &units, &unit_count, message);
  if (status == CLEAVE_OK) {
    status = kernel_lowerer_create(region, &arena, &lowerer, message);
  }
  for (uint32_t u = 0; u < unit_count && status == CLEAVE_OK; u++) {
    bool is_done = false;
    if (units[u].is_kernel) {
      status = make_kernel(program, backend, region, lowerer, &units[u], options, &is_done, message);
    }
    for (uint32_t k = 0; k < units[u].count && !is_done && status == CLEAVE_OK; k++) {
      status = make_step(program, backend, region, units[u].nodes[k], options, is_read, message);
    }
  }
  kernel_arena_free(&arena);
  return status;
}

/* Which values a node of the region reads. */
static bool *find_read_values(cpu_program_t *program, const cleave_region_view_t *region) {
  bool *is_read = kernel_arena_allocate(&program->arena, region->value_count, sizeof *is_read);
  for (uint32_t k = 0; is_read != NULL && k < region->node_count; k++) {
    for (uint32_t i = 0; i < region->nodes[k].input_count; i++) {
      uint32_t value = region->nodes[k].inputs[i];
      if (value != CLEAVE_INDEX_NONE && value < region->value_count) {
        is_read[value] = true;
      }
    }
  }
  return is_read;
}

/* A program of one step may write its output over an input if the step allows it and the bytes agree. */
static cleave_status_t report_inplace(cpu_program_t *program, const cleave_region_view_t *region,
                                      cleave_message_t *message) {
  const cpu_step_t *step = &program->steps[0];
  if (program->step_count != 1 || step->call.output_count == 0 ||
      step->output_values[0] == CLEAVE_INDEX_NONE ||
      program->value_outputs[step->output_values[0]] == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  uint32_t output = program->value_outputs[step->output_values[0]];
  const cpu_tensor_t *to = &program->tensors[step->output_values[0]];
  cleave_inplace_pair_t *pairs = kernel_arena_allocate(&program->arena, region->input_count, sizeof *pairs);
  if (pairs == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  for (uint32_t k = 0; k < region->input_count && to->count >= 0; k++) {
    const cpu_tensor_t *from = &program->tensors[region->inputs[k]];
    bool allowed = from->count == to->count && cleave_dtype_size(from->dtype) == cleave_dtype_size(to->dtype);
    for (uint32_t i = 0; i < step->call.input_count && allowed; i++) {
      if (step->input_values[i] == region->inputs[k]) {
        allowed = i < 32 && (step->inplace >> i & 1u) != 0;
      }
    }
    if (allowed) {
      pairs[program->info.inplace_count++] = (cleave_inplace_pair_t){.input = k, .output = output};
    }
  }
  program->info.inplace = pairs;
  return CLEAVE_OK;
}

static cleave_status_t make_times(cpu_program_t *program, const cleave_region_view_t *region,
                                  cleave_message_t *message) {
  program->times = kernel_arena_allocate(&program->arena, program->step_count, sizeof *program->times);
  if (program->times == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  for (uint32_t k = 0; k < program->step_count; k++) {
    program->times[k] = (cleave_step_time_t){.size = sizeof(cleave_step_time_t),
                                             .label = program->steps[k].kernel->op,
                                             .node = program->steps[k].node,
                                             .fusion = region->nodes[program->steps[k].node].fusion};
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_program_compile(const cpu_backend_t *backend, const cleave_region_view_t *region,
                                    const cleave_compile_options_t *options, cpu_program_t **out_program,
                                    cleave_message_t *message) {
  *out_program = NULL;
  cpu_program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  program->host = backend->host;
  program->texts = backend->texts;
  program->info.size = sizeof program->info;
  cleave_status_t status = describe_values(program, region, message);
  const bool *is_read = find_read_values(program, region);
  program->steps = kernel_arena_allocate(&program->arena, region->node_count, sizeof *program->steps);
  if (status == CLEAVE_OK && (is_read == NULL || program->steps == NULL)) {
    status = kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  if (status == CLEAVE_OK) {
    status = make_steps(program, backend, region, options, is_read, message);
  }
  if (status == CLEAVE_OK) {
    status = cpu_program_plan(program, region, message);
  }
  if (status == CLEAVE_OK) {
    status = report_inplace(program, region, message);
  }
  if (status == CLEAVE_OK && options->profile) {
    status = make_times(program, region, message);
  }
  if (status != CLEAVE_OK) {
    cpu_program_destroy(program);
    return status;
  }
  program->info.persistent_bytes = program->arena.total;
  *out_program = program;
  return CLEAVE_OK;
}

void cpu_program_destroy(cpu_program_t *program) {
  if (program == NULL) {
    return;
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    free(program->input_copies[k]);
  }
  free(program->scratch);
  cpu_fused_destroy(program);
  kernel_arena_free(&program->arena);
  free(program);
}
