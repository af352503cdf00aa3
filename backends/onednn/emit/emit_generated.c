// SPDX-License-Identifier: Apache-2.0
// Programs of kernels/ as loops. Without reductions a program runs in the layout of its largest operand, if
// that has no padding: its space gets the axes of the memory, blocks of channels among them, and other
// operands are read through strides. Rows are read and written plain.
#include <string.h>

#include "kernels/execute/execute.h"
#include "kernels/lower/lower.h"
#include "onednn/emit/emit.h"

typedef struct operand {
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t strides[CLEAVE_MAX_RANK];
} operand_t;

typedef struct context {
  const kernel_plan_t *plan;
  uint32_t input_count;
  uint32_t output_count;
  int64_t dims[CLEAVE_MAX_RANK];  // of the space
  operand_t inputs[ONEDNN_LOOP_ARGUMENTS];
} context_t;

// The axes of the space, from outer to inner: axis `axis` of the result, or one of the two parts of an axis
// that is in blocks.
typedef struct space {
  onednn_layout_t layout;  // of the result
  int32_t rank;
  int32_t axes[CLEAVE_MAX_RANK];
  int64_t block;  // 1: no axis is in blocks
  int32_t blocked;
} space_t;

static bool run_generated(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const context_t *context = loop->context;
  kernel_tensor_t inputs[ONEDNN_LOOP_ARGUMENTS];
  void *outputs[ONEDNN_LOOP_ARGUMENTS];
  kernel_call_t call = {.host = crew->host,
                        .threads = crew->threads,
                        .inputs = inputs,
                        .outputs = outputs,
                        .scratch = data[context->input_count]};
  memcpy(call.dims, context->dims, sizeof(call.dims));
  for (uint32_t k = 0; k < context->input_count; k++) {
    const operand_t *operand = &context->inputs[k];
    inputs[k] = (kernel_tensor_t){
        .data = data[k], .rank = operand->rank, .dims = operand->dims, .strides = operand->strides};
  }
  for (uint32_t k = 0; k < context->output_count; k++) {
    outputs[k] = data[context->input_count + 1 + k];
  }
  kernel_run(context->plan, &call);
  return true;
}

static void release_generated(const void *opaque) {
  const context_t *context = opaque;
  kernel_plan_destroy((kernel_plan_t *)(uintptr_t)context->plan);
}

// May the space follow this layout: dense axes in some order, or one of them in blocks?
static bool follows(const onednn_layout_t *layout, space_t *space) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  if (!onednn_layout_is_dense(layout) || blocking->inner_nblks > 1) {
    return false;
  }
  space->layout = *layout;
  space->block = blocking->inner_nblks == 1 ? (int64_t)blocking->inner_blks[0] : 1;
  space->blocked = blocking->inner_nblks == 1 ? (int32_t)blocking->inner_idxs[0] : -1;
  space->rank = layout->ndims;
  for (int32_t d = 0; d < space->rank; d++) {
    int32_t at = d;
    while (at > 0 && blocking->strides[space->axes[at - 1]] < blocking->strides[d]) {
      space->axes[at] = space->axes[at - 1];
      at--;
    }
    space->axes[at] = d;
  }
  if (space->blocked >= 0) {
    space->axes[space->rank++] = space->blocked;
  }
  return space->rank <= CLEAVE_MAX_RANK;
}

// The layout of the first operand that has the shape of the space; plain, if that has gaps, or rows are
// reduced.
static cleave_status_t choose_space(onednn_plan_t *plan, const kernel_lowered_t *lowered,
                                    const onednn_argument_t *arguments, const onednn_shape_t *shape,
                                    space_t *out_space) {
  onednn_layout_t plain = onednn_layout_plain(shape);
  for (uint32_t k = 0; k < lowered->program->input_count && lowered->program->reduced == 0; k++) {
    const onednn_tensor_t *tensor = &arguments[k].tensor;
    onednn_shape_t own = onednn_layout_shape(&tensor->layout);
    if (onednn_shape_equal(&own, shape) && !lowered->views[k].is_part &&
        !onednn_plan_is_constant(plan, tensor) && follows(&tensor->layout, out_space)) {
      return CLEAVE_OK;
    }
  }
  return follows(&plain, out_space) ? CLEAVE_OK
                                    : kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL,
                                                  "region '%s': a plain tensor has gaps", plan->region->name);
}

// Can strides say where the elements of this layout are, along the axes of the space, and are they next to
// each other along the last one?
static bool is_readable(const onednn_layout_t *layout, const kernel_input_t *input, const space_t *space) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  if (layout->format_kind != dnnl_blocked || onednn_layout_has_extra(layout)) {
    return false;
  }
  if (blocking->inner_nblks == 0) {
    int32_t last = input->axes[space->axes[space->rank - 1]];
    return last < 0 || layout->dims[last] == 1 || blocking->strides[last] == 1;
  }
  int32_t own = space->blocked < 0 ? -1 : input->axes[space->blocked];
  return blocking->inner_nblks == 1 && own >= 0 && blocking->inner_idxs[0] == own &&
         blocking->inner_blks[0] == space->block && layout->dims[own] % space->block == 0;
}

// Sizes and strides of an operand along the axes of the space that it has. `input` is of the program as it
// was.
static void read_operand(const onednn_layout_t *layout, const kernel_input_t *input, const space_t *space,
                         operand_t *out) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  out->rank = 0;
  for (int32_t k = 0; k < space->rank; k++) {
    int32_t axis = space->axes[k];
    int32_t own = input->axes[axis];
    if (own < 0) {
      continue;
    }
    int64_t size = layout->dims[own];
    int64_t stride = blocking->strides[own];
    bool is_split = axis == space->blocked && size > 1;
    bool is_inner = is_split && k + 1 == space->rank;
    bool has_blocks = blocking->inner_nblks > 0;
    if (is_inner) {
      size = space->block;
      stride = has_blocks ? 1 : stride;
    } else if (is_split) {
      size /= space->block;
      stride = has_blocks ? stride : stride * space->block;
    }
    out->dims[out->rank] = size;
    out->strides[out->rank++] = stride;
  }
}

// A part of a plain tensor, along the axes of the space.
static void read_part(const kernel_view_t *view, const kernel_input_t *input, const space_t *space,
                      operand_t *out) {
  out->rank = 0;
  for (int32_t k = 0; k < space->rank; k++) {
    int32_t axis = space->axes[k];
    int32_t own = input->axes[axis];
    if (own < 0) {
      continue;
    }
    bool is_split = axis == space->blocked && view->dims[own] > 1;
    bool is_inner = is_split && k + 1 == space->rank;
    out->dims[out->rank] = is_inner   ? space->block
                           : is_split ? view->dims[own] / space->block
                                      : view->dims[own];
    out->strides[out->rank++] = view->strides[own] * (is_split && !is_inner ? space->block : 1);
  }
}

// Operands where they are, or copies of those that the program cannot read.
static cleave_status_t read_operands(onednn_plan_t *plan, kernel_lowered_t *lowered,
                                     const onednn_shape_t *shape, onednn_argument_t *arguments,
                                     space_t *space, context_t *context) {
  kernel_program_t *program = lowered->program;
  for (uint32_t k = 0; k < program->input_count; k++) {
    ONEDNN_TRY(onednn_plan_fetch(plan, lowered->inputs[k], &arguments[k].tensor));
  }
  ONEDNN_TRY(choose_space(plan, lowered, arguments, shape, space));
  for (uint32_t k = 0; k < program->input_count; k++) {
    const kernel_input_t *input = &program->inputs[k];
    const kernel_view_t *view = &lowered->views[k];
    onednn_tensor_t *tensor = &arguments[k].tensor;
    onednn_shape_t own = onednn_layout_shape(&tensor->layout);
    bool is_whole = !view->is_part && program->reduced == 0;
    if (!is_whole) {
      ONEDNN_TRY(onednn_plan_plain(plan, tensor, tensor));
      tensor->offset += (size_t)view->offset * sizeof(float);
      read_part(view, input, space, &context->inputs[k]);
      continue;
    }
    if (input->rank > 0 && !is_readable(&tensor->layout, input, space)) {
      ONEDNN_TRY(onednn_shape_equal(&own, shape) ? onednn_plan_convert(plan, tensor, &space->layout, tensor)
                                                 : onednn_plan_plain(plan, tensor, tensor));
    }
    if (input->rank > 0) { /* a scalar has a dimension in oneDNN, and none here */
      read_operand(&tensor->layout, input, space, &context->inputs[k]);
    }
  }
  bool stays = program->reduced > 0 || program->rank == 0;
  return stays ? CLEAVE_OK : kernel_program_relay(program, space->rank, space->axes, plan->message);
}

// Memory for the results: those of elements in the layout of the space, those of rows plain.
static cleave_status_t make_results(onednn_plan_t *plan, const kernel_lowered_t *lowered,
                                    const space_t *space, onednn_argument_t *arguments) {
  for (uint32_t k = 0; k < lowered->program->output_count; k++) {
    onednn_shape_t shape = onednn_plan_shape(plan, lowered->outputs[k]);
    onednn_layout_t plain = onednn_layout_plain(&shape);
    const kernel_value_t *value = &lowered->program->values[lowered->program->outputs[k].value];
    ONEDNN_TRY(onednn_plan_make(plan, lowered->outputs[k], value->per_row ? &plain : &space->layout,
                                &arguments[k].tensor));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel, kernel_lowered_t *lowered,
                                const onednn_shape_t *shape) {
  onednn_argument_t arguments[ONEDNN_LOOP_ARGUMENTS] = {0};
  kernel_program_t *program = lowered->program;
  space_t space;
  kernel_plan_t *made = NULL;
  context_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  context->input_count = program->input_count;
  context->output_count = program->output_count;
  onednn_argument_t *scratch = &arguments[program->input_count];
  ONEDNN_TRY(read_operands(plan, lowered, shape, arguments, &space, context));
  for (int32_t k = 0; k < program->rank; k++) {
    int64_t size = program->reduced > 0 ? shape->dims[k] : shape->dims[space.axes[k]];
    bool is_inner = space.blocked >= 0 && k + 1 == space.rank;
    bool is_outer = space.blocked >= 0 && !is_inner && space.axes[k] == space.blocked;
    context->dims[k] = is_inner ? space.block : is_outer ? size / space.block : size;
  }
  ONEDNN_TRY(make_results(plan, lowered, &space, scratch + 1));
  ONEDNN_TRY(kernel_plan_create(program, kernel_loops_choose(2), &made, plan->message));
  context->plan = made;
  onednn_plan_scratch(plan, kernel_scratch_bytes(made, context->dims, plan->threads), &scratch->tensor);
  const onednn_loop_t loop = {.run = run_generated,
                              .context = context,
                              .context_bytes = sizeof(*context),
                              .release = release_generated};
  uint32_t count = program->input_count + 1 + program->output_count;
  cleave_status_t status = onednn_plan_loop(plan, &loop, arguments, count, kernel->node, "generated loop");
  if (status != CLEAVE_OK) {
    kernel_plan_destroy(made);
    return status;
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    ONEDNN_TRY(onednn_plan_bind(plan, lowered->outputs[k], &scratch[1 + k].tensor));
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_emit_generated(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  kernel_lowered_t lowered = {.fast_math = kernel->fast_math};
  onednn_shape_t shape = {.rank = 1, .dims = {1}};
  const cleave_fusion_view_t *fusion =
      kernel->fusion != CLEAVE_INDEX_NONE ? &plan->region->fusions[kernel->fusion] : NULL;
  ONEDNN_TRY(kernel_lower(plan->analysis->lowerer, fusion != NULL ? fusion->node_count : 1,
                          fusion != NULL ? fusion->nodes : &kernel->node, &lowered, plan->message));
  kernel_texts_add_lowered(plan->texts, &lowered);
  if (lowered.program->rank > 0) {
    shape = (onednn_shape_t){.rank = lowered.program->rank};
    memcpy(shape.dims, lowered.dims, (size_t)shape.rank * sizeof(int64_t));
  }
  cleave_status_t status = add_loop(plan, kernel, &lowered, &shape);
  kernel_program_destroy(lowered.program);
  return status;
}
