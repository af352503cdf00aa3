// SPDX-License-Identifier: Apache-2.0
// The step that runs a program of kernels/. Shapes are known when it is made, so that its scratch memory is
// planned with the workspace.
#include "cpu/fused.h"

#include "kernels/execute/execute.h"

typedef struct fused_state {
  const kernel_plan_t *plan;
  const kernel_view_t *views; /* per input */
} fused_state_t;

bool cpu_fused_says(const cleave_region_view_t *region, uint32_t fusion, const char *name) {
  const cleave_attribute_view_t *said = cleave_view_fusion_attribute(region, fusion, name);
  return said != NULL && said->kind == CLEAVE_ATTRIBUTE_INT && said->i != 0;
}

static void view_inputs(const cpu_call_t *call, kernel_tensor_t *inputs) {
  const fused_state_t *state = call->state;
  for (uint32_t k = 0; k < call->input_count; k++) {
    const cpu_tensor_t *tensor = call->inputs[k];
    const kernel_view_t *view = &state->views[k];
    const unsigned char *data = tensor->data;
    int64_t offset = view->offset * (int64_t)cleave_dtype_size(tensor->dtype);
    inputs[k] = (kernel_tensor_t){.data = data != NULL ? data + offset : NULL,
                                  .rank = view->rank,
                                  .dims = view->dims,
                                  .strides = view->strides};
  }
}

static size_t fused_scratch(const cpu_call_t *call) {
  const fused_state_t *state = call->state;
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  int64_t dims[CLEAVE_MAX_RANK];
  cleave_message_t message;
  view_inputs(call, inputs);
  bool fits = kernel_space(state->plan, inputs, dims, &message) == CLEAVE_OK;
  return fits ? kernel_scratch_bytes(state->plan, dims, call->threads) : 0;
}

static cleave_status_t fused_run(const cpu_call_t *call, cleave_message_t *message) {
  const fused_state_t *state = call->state;
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  void *outputs[KERNEL_MAX_TENSORS];
  kernel_call_t run = {.host = call->host,
                       .threads = call->threads,
                       .inputs = inputs,
                       .outputs = outputs,
                       .scratch = call->scratch};
  view_inputs(call, inputs);
  for (uint32_t k = 0; k < call->output_count; k++) {
    outputs[k] = call->outputs[k]->data;
  }
  cleave_status_t status = kernel_space(state->plan, inputs, run.dims, message);
  if (status == CLEAVE_OK) {
    kernel_run(state->plan, &run);
  }
  return status;
}

static const cpu_kernel_t fused_kernel = {.op = "kernel", .scratch = fused_scratch, .run = fused_run};

static cleave_status_t wire(cpu_program_t *program, const kernel_lowered_t *lowered,
                            const kernel_plan_t *plan, cpu_step_t *step, cleave_message_t *message) {
  uint32_t input_count = lowered->program->input_count;
  uint32_t output_count = lowered->program->output_count;
  fused_state_t *state = kernel_arena_allocate(&program->arena, 1, sizeof *state);
  const cpu_tensor_t **inputs = kernel_arena_allocate(&program->arena, input_count, sizeof *inputs);
  cpu_tensor_t **outputs = kernel_arena_allocate(&program->arena, output_count, sizeof *outputs);
  uint32_t *input_values = kernel_arena_allocate(&program->arena, input_count, sizeof *input_values);
  uint32_t *output_values = kernel_arena_allocate(&program->arena, output_count, sizeof *output_values);
  kernel_view_t *views = kernel_arena_allocate(&program->arena, input_count, sizeof *views);
  if (state == NULL || views == NULL || inputs == NULL || outputs == NULL || input_values == NULL ||
      output_values == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  state->views = views;
  for (uint32_t k = 0; k < input_count; k++) {
    views[k] = lowered->views[k];
    inputs[k] = &program->tensors[lowered->inputs[k]];
    input_values[k] = lowered->inputs[k];
  }
  for (uint32_t k = 0; k < output_count; k++) {
    outputs[k] = &program->tensors[lowered->outputs[k]];
    output_values[k] = lowered->outputs[k];
  }
  state->plan = plan;
  step->kernel = &fused_kernel;
  step->is_static = true;
  step->input_values = input_values;
  step->output_values = output_values;
  step->name = "";
  step->call.state = state;
  step->call.inputs = inputs;
  step->call.outputs = outputs;
  step->call.input_count = input_count;
  step->call.output_count = output_count;
  kernel_tensor_t tensors[KERNEL_MAX_TENSORS];
  view_inputs(&step->call, tensors);
  step->inplace = kernel_inplace(plan, lowered->dims, tensors);
  return CLEAVE_OK;
}

cleave_status_t cpu_fused_check(kernel_lowerer_t *lowerer, uint32_t count, const uint32_t *nodes,
                                cleave_message_t *message) {
  kernel_lowered_t lowered = {0};
  cleave_status_t status = kernel_lower(lowerer, count, nodes, &lowered, message);
  kernel_program_destroy(lowered.program);
  return status;
}

/* The program owns the plan from here on. */
static cleave_status_t keep_plan(cpu_program_t *program, kernel_plan_t *plan, cleave_message_t *message) {
  cpu_fused_plan_t *kept = kernel_arena_allocate(&program->arena, 1, sizeof *kept);
  if (kept == NULL) {
    kernel_plan_destroy(plan);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  *kept = (cpu_fused_plan_t){.plan = plan, .next = program->fused};
  program->fused = kept;
  return CLEAVE_OK;
}

cleave_status_t cpu_fused_compile(cpu_program_t *program, kernel_lowerer_t *lowerer, const cpu_unit_t *unit,
                                  cpu_step_t *step, cleave_message_t *message) {
  kernel_lowered_t lowered = {.fast_math = unit->fast_math};
  kernel_plan_t *plan = NULL;
  cleave_status_t status = kernel_lower(lowerer, unit->count, unit->nodes, &lowered, message);
  if (status == CLEAVE_OK) {
    kernel_texts_add_lowered(program->texts, &lowered);
    status = kernel_plan_create(lowered.program, kernel_loops_choose(2), &plan, message);
  }
  if (status == CLEAVE_OK) {
    status = keep_plan(program, plan, message);
  }
  if (status == CLEAVE_OK) {
    status = wire(program, &lowered, plan, step, message);
  }
  kernel_program_destroy(lowered.program);
  return status;
}

void cpu_fused_destroy(cpu_program_t *program) {
  for (const cpu_fused_plan_t *plan = program->fused; plan != NULL; plan = plan->next) {
    kernel_plan_destroy(plan->plan);
  }
}
