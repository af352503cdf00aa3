// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes, softmax over any axis, normalizations by group.
#include <string.h>

#include "emit.h"
#include "kernels/convert.h"

/* ---- reductions ---- */

/* `axes` as bits. The space has the axes that stay before those that are reduced; a scalar is a row of one.
 */
static cleave_status_t reduce_axes(cuda_plan_t *plan, const cleave_node_view_t *node, const char *reduction,
                                   uint32_t axes) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  static const int64_t one = 1;
  int8_t order[CLEAVE_MAX_RANK] = {0};
  int32_t count = 0;
  int32_t reduced = x->rank == 0 ? 1 : 0;
  int32_t rank = x->rank == 0 ? 1 : x->rank;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t d = 0; d < x->rank; d++) {
      bool is_reduced = (axes >> d & 1u) != 0;
      if (is_reduced == (pass == 1)) {
        order[count++] = (int8_t)d;
        reduced += is_reduced;
      }
    }
  }
  cuda_builder_t builder;
  uint32_t value = 0;
  cleave_status_t status = cuda_builder_init(&builder, plan, node->op, rank, reduced);
  if (status == CLEAVE_OK) {
    status = cuda_builder_load(&builder, x->dtype, (cuda_pointer_t){node->inputs[0], 0}, order, rank,
                               x->rank == 0 ? &one : x->dims, &value);
  }
  if (status == CLEAVE_OK) {
    status = kernel_lower_reduction(builder.program, reduction, value, &value, plan->message);
  }
  if (status == CLEAVE_OK) {
    status = cuda_builder_store(&builder, y->dtype, value, (cuda_pointer_t){node->outputs[0], 0});
  }
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status == CLEAVE_ERROR_OUT_OF_MEMORY || status == CLEAVE_OK ? status : CLEAVE_ERROR_UNSUPPORTED;
}

cleave_status_t cuda_emit_reduce(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t given[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  uint32_t axes = 0;
  CUDA_TRY(cuda_read_ints(plan, node, 1, given, CLEAVE_MAX_RANK, &count));
  const int64_t *listed = given;
  if (count == 0) {
    listed = cleave_view_ints(node, "axes", &count);
  }
  for (uint32_t k = 0; k < count; k++) {
    int64_t axis = listed[k] < 0 ? listed[k] + x->rank : listed[k];
    if (axis < 0 || axis >= x->rank) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "an axis is outside of the shape");
    }
    axes |= 1u << axis;
  }
  if (count == 0 && cleave_view_int(node, "noop_with_empty_axes", 0) != 0) {
    return cuda_emit_view(plan, node);
  }
  return reduce_axes(plan, node, node->op, count == 0 ? (1u << x->rank) - 1u : axes);
}

cleave_status_t cuda_emit_argument(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t axis = cleave_view_int(node, "axis", 0);
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank || x->dims[axis] == 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "nothing is along its axis");
  }
  if (cleave_view_int(node, "select_last_index", 0) != 0) {
    return cuda_emit_last_argument(plan, node, (int32_t)axis);
  }
  return reduce_axes(plan, node, node->op, 1u << axis);
}

cleave_status_t cuda_emit_global_pool(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  if (x->rank < 3) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "rank %d, expected at least 3", (int)x->rank);
  }
  const char *reduction = strcmp(node->op, "GlobalMaxPool") == 0 ? "ReduceMax" : "ReduceMean";
  return reduce_axes(plan, node, reduction, ((1u << x->rank) - 1u) & ~3u);
}

/* ---- softmax ---- */

/* Over another axis than the last ones: moved there and back. Long: one chain of kernels. */
static cleave_status_t softmax_inside(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t axis) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t size = (int64_t)cleave_dtype_size(x->dtype) * cleave_view_element_count(x);
  int64_t outer = cuda_product_of(x->dims, axis);
  int64_t inner = cuda_product_of(x->dims + axis + 1, x->rank - axis - 1);
  int64_t own = x->dims[axis];
  uint32_t moved = 0;
  uint32_t done = 0;
  CUDA_TRY(cuda_plan_scratch(plan, size, &moved));
  CUDA_TRY(cuda_plan_scratch(plan, size, &done));
  cuda_move_t move = {.label = node->op,
                      .dtype = x->dtype,
                      .rank = 3,
                      .dims = {outer, inner, own},
                      .from_strides = {own * inner, 1, inner},
                      .to_strides = {own * inner, own, 1},
                      .from = {node->inputs[0], 0},
                      .to = {moved, 0}};
  CUDA_TRY(cuda_emit_move(plan, &move));
  const int64_t dims[2] = {outer * inner, own};
  const cleave_tensor_view_t flat = {.size = sizeof flat, .dtype = x->dtype, .rank = 2, .dims = dims};
  const cleave_value_view_t values[2] = {{.size = sizeof values[0], .name = "", .tensor = flat},
                                         {.size = sizeof values[0], .name = "", .tensor = flat}};
  static const uint32_t zero = 0;
  static const uint32_t one = 1;
  cleave_attribute_view_t last = {.size = sizeof last, .name = "axis", .kind = CLEAVE_ATTRIBUTE_INT, .i = -1};
  cleave_node_view_t rows = *node;
  rows.inputs = &zero;
  rows.outputs = &one;
  rows.attributes = &last;
  rows.attribute_count = 1;
  rows.opset_version = 13;
  const cleave_region_view_t region = {.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED,
                                       .value_count = 2,
                                       .node_count = 1,
                                       .values = values,
                                       .nodes = &rows,
                                       .output_count = 1,
                                       .outputs = &one};
  cuda_program_call_t *call = cuda_plan_allocate(plan, 1, sizeof *call);
  kernel_lowered_t lowered = {0};
  if (call == NULL) {
    return cuda_plan_no_memory(plan);
  }
  CUDA_TRY(cuda_lower(plan, &region, &zero, 1, &lowered));
  call->program = lowered.program;
  call->label = node->op;
  call->inputs[0] = (kernel_tensor_t){.rank = 2, .dims = dims};
  call->input_pointers[0] = (cuda_pointer_t){moved, 0};
  call->output_pointers[0] = (cuda_pointer_t){done, 0};
  cleave_status_t status = cuda_plan_program(plan, call);
  kernel_program_destroy(lowered.program);
  CUDA_TRY(status);
  cuda_move_t back = {.label = node->op,
                      .dtype = x->dtype,
                      .rank = 3,
                      .dims = {outer, own, inner},
                      .from_strides = {own * inner, 1, own},
                      .to_strides = {own * inner, inner, 1},
                      .from = {done, 0},
                      .to = {node->outputs[0], 0}};
  return cuda_emit_move(plan, &back);
}

cleave_status_t cuda_emit_softmax(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t axis = cleave_view_int(node, "axis", -1);
  axis = axis < 0 ? axis + x->rank : axis;
  if (x->rank > 0 && axis >= 0 && axis < x->rank - 1 && node->opset_version >= 13) {
    return softmax_inside(plan, node, (int32_t)axis);
  }
  return cuda_emit_lowered(plan, plan->region, &plan->node, 1, NULL);
}

/* ---- normalizations by group ---- */

/* Over the space batch x groups x channels of a group x places, the last two of which are a row. */
static cleave_status_t build_group_norm(cuda_builder_t *builder, const cleave_node_view_t *node,
                                        const int64_t *dims, const int64_t *scale_dims) {
  static const int8_t all[4] = {0, 1, 2, 3};
  static const int8_t channel[4] = {-1, 0, 1, -1};
  const cuda_plan_t *plan = builder->plan;
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  cleave_dtype_t dtype = kernel_compute_dtype(x->dtype);
  uint32_t value = 0;
  uint32_t mean = 0;
  uint32_t other = 0;
  CUDA_TRY(cuda_builder_load(builder, x->dtype, (cuda_pointer_t){node->inputs[0], 0}, all, 4, dims, &value));
  CUDA_TRY(kernel_lower_normalize(builder->program, value, cleave_view_float(node, "epsilon", 1e-5), &mean,
                                  &other, &value, plan->message));
  for (uint32_t k = 1; k < 3; k++) {
    CUDA_TRY(cuda_builder_load(builder, cuda_input(plan, node, k)->dtype,
                               (cuda_pointer_t){node->inputs[k], 0}, channel, 2, scale_dims, &other));
    CUDA_TRY(kernel_program_cast(builder->program, dtype, other, &other, plan->message));
    CUDA_TRY(cuda_builder_apply(builder, k == 1 ? KERNEL_Mul : KERNEL_Add, value, other, &value));
  }
  return cuda_builder_store(builder, x->dtype, value, (cuda_pointer_t){node->outputs[0], 0});
}

cleave_status_t cuda_emit_group_norm(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *scale = cuda_input(plan, node, 1);
  if (x->rank < 2 || scale == NULL || cuda_input(plan, node, 2) == NULL || !cpu_dtype_is_float(x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "it has no channels");
  }
  int64_t channels = x->dims[1];
  int64_t groups =
      strcmp(node->op, "GroupNormalization") == 0 ? cleave_view_int(node, "num_groups", 1) : channels;
  if (groups < 1 || channels % groups != 0 || cleave_view_element_count(x) == 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its groups are not of one size");
  }
  bool per_group =
      node->opset_version < 21 && groups != channels && scale->rank == 1 && scale->dims[0] == groups;
  const int64_t dims[4] = {x->dims[0], groups, channels / groups, cuda_product_of(x->dims + 2, x->rank - 2)};
  const int64_t scale_dims[2] = {groups, per_group ? 1 : channels / groups};
  cuda_builder_t builder;
  cleave_status_t status = cuda_builder_init(&builder, plan, node->op, 4, 2);
  status = status == CLEAVE_OK ? build_group_norm(&builder, node, dims, scale_dims) : status;
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}
