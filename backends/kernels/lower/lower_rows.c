// SPDX-License-Identifier: Apache-2.0
// Operators that reduce rows, in terms of reductions and pointwise operators.
#include "kernels/convert.h"
#include "lowering.h"

static const struct {
  const char *op;
  kernel_op_t before; /* of each element; KERNEL_OP_COUNT: nothing */
  kernel_op_t reduce;
  kernel_op_t after; /* of each row */
} reductions[] = {
    {"ReduceSum", KERNEL_OP_COUNT, KERNEL_ReduceSum, KERNEL_OP_COUNT},
    {"ReduceMean", KERNEL_OP_COUNT, KERNEL_ReduceMean, KERNEL_OP_COUNT},
    {"ReduceMax", KERNEL_OP_COUNT, KERNEL_ReduceMax, KERNEL_OP_COUNT},
    {"ReduceMin", KERNEL_OP_COUNT, KERNEL_ReduceMin, KERNEL_OP_COUNT},
    {"ReduceProd", KERNEL_OP_COUNT, KERNEL_ReduceProd, KERNEL_OP_COUNT},
    {"ReduceSumSquare", KERNEL_OP_COUNT, KERNEL_ReduceSumSquare, KERNEL_OP_COUNT},
    {"ReduceL1", KERNEL_Abs, KERNEL_ReduceSum, KERNEL_OP_COUNT},
    {"ReduceL2", KERNEL_OP_COUNT, KERNEL_ReduceSumSquare, KERNEL_Sqrt},
    {"ReduceLogSum", KERNEL_OP_COUNT, KERNEL_ReduceSum, KERNEL_Log},
    {"ArgMax", KERNEL_OP_COUNT, KERNEL_ArgMax, KERNEL_OP_COUNT},
    {"ArgMin", KERNEL_OP_COUNT, KERNEL_ArgMin, KERNEL_OP_COUNT},
};

enum { REDUCTION_COUNT = sizeof reductions / sizeof reductions[0] };

static size_t find_reduction(const char *op) {
  size_t k = 0;
  while (k < REDUCTION_COUNT && !cleave_view_text_equal(reductions[k].op, op)) {
    k++;
  }
  return k;
}

static bool is_softmax(const char *op) {
  return cleave_view_text_equal(op, "Softmax") || cleave_view_text_equal(op, "LogSoftmax");
}

static bool is_log_sum(const char *op) {
  return cleave_view_text_equal(op, "ReduceLogSumExp");
}

static bool is_argument(const char *op) {
  return cleave_view_text_equal(op, "ArgMax") || cleave_view_text_equal(op, "ArgMin");
}

static bool is_norm(const char *op) {
  return cleave_view_text_equal(op, "LayerNormalization") || cleave_view_text_equal(op, "RMSNormalization");
}

static bool is_instance_norm(const char *op) {
  return cleave_view_text_equal(op, "InstanceNormalization");
}

static bool is_group_norm(const char *op) {
  return cleave_view_text_equal(op, "GroupNormalization");
}

/* Axes of a reduction, from its attribute or its second input, as bits. */
static cleave_status_t reduction_axes(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                      int32_t rank, uint32_t *out_axes, cleave_message_t *message) {
  uint32_t count = 0;
  const int64_t *listed = cleave_view_ints(node, "axes", &count);
  const cleave_value_view_t *input = cleave_view_input(region, node, 1);
  int64_t copied[CLEAVE_MAX_RANK] = {0};
  if (input != NULL) {
    int64_t size = cleave_view_element_count(&input->tensor);
    if (input->tensor.data == NULL || input->tensor.dtype != CLEAVE_DTYPE_I64 || size < 0 ||
        size > CLEAVE_MAX_RANK || input->tensor.storage != CLEAVE_STORAGE_DENSE) {
      return kernel_lower_refuse(node, "its axes are not constant", message);
    }
    cpu_convert(CLEAVE_DTYPE_I64, input->tensor.data, CLEAVE_DTYPE_I64, copied, size);
    listed = copied;
    count = (uint32_t)size;
  }
  *out_axes = 0;
  for (uint32_t k = 0; k < count; k++) {
    int64_t axis = listed[k] < 0 ? listed[k] + rank : listed[k];
    if (axis < 0 || axis >= rank) {
      return kernel_lower_refuse(node, "an axis is outside of the shape", message);
    }
    *out_axes |= 1u << axis;
  }
  if (count == 0) {
    if (cleave_view_int(node, "noop_with_empty_axes", 0) != 0) {
      return kernel_lower_refuse(node, "it reduces nothing", message);
    }
    *out_axes = (1u << rank) - 1u;
  }
  return CLEAVE_OK;
}

/* Channels are axis 1; a row has those of one group, and their pixels. */
static cleave_status_t group_axes(const cleave_node_view_t *node, const cleave_tensor_view_t *x,
                                  int32_t *out_reduced, int64_t *out_groups, cleave_message_t *message) {
  int64_t groups = cleave_view_int(node, "num_groups", 0);
  if (x->rank < 3 || x->dims[1] < 1 || groups < 1 || x->dims[1] % groups != 0) {
    return kernel_lower_refuse(node, "its channels do not divide into its groups", message);
  }
  *out_groups = groups;
  *out_reduced = x->rank - 1;
  return CLEAVE_OK;
}

cleave_status_t kernel_lower_axes(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                  int32_t *out_reduced, int64_t *out_groups, cleave_message_t *message) {
  *out_reduced = 0;
  *out_groups = 0;
  bool reduces = find_reduction(node->op) < REDUCTION_COUNT || is_log_sum(node->op);
  bool is_grouped = is_group_norm(node->op);
  if (!reduces && !is_softmax(node->op) && !is_norm(node->op) && !is_instance_norm(node->op) && !is_grouped) {
    return CLEAVE_OK;
  }
  const cleave_value_view_t *input = cleave_view_input(region, node, 0);
  int32_t rank = input == NULL ? -1 : input->tensor.rank;
  if (rank < 1) {
    return kernel_lower_refuse(node, "its input has no axes", message);
  }
  if (is_grouped) {
    return group_axes(node, &input->tensor, out_reduced, out_groups, message);
  }
  if (is_instance_norm(node->op)) {
    *out_reduced = rank - 2;
    return rank > 2 ? CLEAVE_OK : kernel_lower_refuse(node, "its input has no spatial axes", message);
  }
  if (!reduces || is_argument(node->op)) {
    bool is_many =
        is_norm(node->op) || (is_softmax(node->op) && node->opset_version < 13); /* from `axis` on */
    int64_t axis = cleave_view_int(node, "axis",
                                   is_argument(node->op)           ? 0
                                   : is_norm(node->op) || !is_many ? -1
                                                                   : 1);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank || (!is_many && axis != rank - 1)) {
      return kernel_lower_refuse(node, "it is not over the last axis", message);
    }
    if (cleave_view_int(node, "select_last_index", 0) != 0) {
      return kernel_lower_refuse(node, "select_last_index is set", message);
    }
    *out_reduced = rank - (int32_t)axis;
    return CLEAVE_OK;
  }
  uint32_t axes = 0;
  KERNEL_TRY(reduction_axes(region, node, rank, &axes, message));
  for (int32_t d = rank - 1; d >= 0 && (axes >> d & 1u) != 0; d--) {
    ++*out_reduced;
    axes &= ~(1u << d);
  }
  if (axes != 0) {
    return kernel_lower_refuse(node, "it is not over the last axes alone", message);
  }
  return CLEAVE_OK;
}

static cleave_status_t lower_softmax(lowering_t *lowering, const cleave_node_view_t *node) {
  uint32_t x = 0;
  uint32_t largest = 0;
  uint32_t e = 0;
  uint32_t sum = 0;
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &x));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_ReduceMax, x, &largest));
  KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Sub, x, largest, &x));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Exp, x, &e));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_ReduceSum, e, &sum));
  if (cleave_view_text_equal(node->op, "Softmax")) {
    KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Reciprocal, sum, &sum));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Mul, e, sum, &x));
  } else {
    KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Log, sum, &sum));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Sub, x, sum, &x));
  }
  return kernel_lower_result(lowering, node, 0, x);
}

/* log(sum(exp(x))) without overflow: the largest element is taken out, unless it is infinite. */
static cleave_status_t add_log_sum(lowering_t *lowering, uint32_t x, uint32_t *out_value) {
  uint32_t zero = 0;
  uint32_t shift = 0;
  uint32_t finite = 0;
  cleave_dtype_t dtype = lowering->program->values[x].dtype;
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_ReduceMax, x, &shift));
  KERNEL_TRY(kernel_lower_number(lowering, dtype, 0, &zero));
  /* 0 x infinity is NaN, as it is for NaN: neither equals 0. */
  KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Mul, shift, zero, &finite));
  KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Equal, finite, zero, &finite));
  const uint32_t choice[] = {finite, shift, zero};
  KERNEL_TRY(kernel_program_apply(lowering->program, KERNEL_WHERE, choice, 0, 0, &shift, lowering->message));
  KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Sub, x, shift, &x));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Exp, x, &x));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_ReduceSum, x, &x));
  KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Log, x, &x));
  return kernel_lower_binary(lowering, KERNEL_Add, x, shift, out_value);
}

cleave_status_t kernel_lower_reduction(kernel_program_t *program, const char *op, uint32_t value,
                                       uint32_t *out_value, cleave_message_t *message) {
  lowering_t lowering = {.program = program, .message = message};
  if (is_log_sum(op)) {
    return add_log_sum(&lowering, value, out_value);
  }
  size_t k = find_reduction(op);
  if (k == REDUCTION_COUNT) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%.60s is not a reduction", op);
  }
  if (reductions[k].before != KERNEL_OP_COUNT) {
    KERNEL_TRY(kernel_lower_unary(&lowering, reductions[k].before, value, &value));
  }
  KERNEL_TRY(kernel_lower_unary(&lowering, reductions[k].reduce, value, &value));
  if (reductions[k].after != KERNEL_OP_COUNT) {
    KERNEL_TRY(kernel_lower_unary(&lowering, reductions[k].after, value, &value));
  }
  *out_value = value;
  return CLEAVE_OK;
}

cleave_status_t kernel_lower_normalize(kernel_program_t *program, uint32_t x, double epsilon,
                                       uint32_t *out_mean, uint32_t *out_inverse, uint32_t *out_value,
                                       cleave_message_t *message) {
  lowering_t lowering = {.program = program, .message = message};
  uint32_t number = 0;
  uint32_t inverse = 0;
  if (out_mean != NULL) {
    KERNEL_TRY(kernel_lower_unary(&lowering, KERNEL_ReduceMean, x, out_mean));
    KERNEL_TRY(kernel_lower_binary(&lowering, KERNEL_Sub, x, *out_mean, &x));
  }
  KERNEL_TRY(kernel_lower_unary(&lowering, KERNEL_MeanSquare, x, &inverse));
  KERNEL_TRY(kernel_lower_number(&lowering, program->values[x].dtype, epsilon, &number));
  KERNEL_TRY(kernel_lower_binary(&lowering, KERNEL_Add, inverse, number, &inverse));
  KERNEL_TRY(kernel_lower_unary(&lowering, KERNEL_Sqrt, inverse, &inverse));
  KERNEL_TRY(kernel_lower_unary(&lowering, KERNEL_Reciprocal, inverse, out_inverse));
  return kernel_lower_binary(&lowering, KERNEL_Mul, x, *out_inverse, out_value);
}

/* y = (x - mean) / sqrt(mean square of that + epsilon) * scale + bias; RMSNormalization subtracts nothing,
 * InstanceNormalization and GroupNormalization have scale and bias per channel, which is axis 1. */
static cleave_status_t lower_norm(lowering_t *lowering, const cleave_node_view_t *node) {
  bool is_layer = cleave_view_text_equal(node->op, "LayerNormalization");
  bool is_instance = is_instance_norm(node->op) || is_group_norm(node->op);
  uint32_t x = 0;
  uint32_t mean = 0;
  uint32_t inverse = 0;
  uint32_t operand = 0;
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &x));
  cleave_dtype_t dtype = lowering->program->values[x].dtype;
  KERNEL_TRY(kernel_lower_normalize(lowering->program, x, cleave_view_float(node, "epsilon", 1e-5),
                                    is_layer || is_instance ? &mean : NULL, &inverse, &x, lowering->message));
  for (uint32_t k = 1; k < 3 && cleave_view_input(lowering->region, node, k) != NULL; k++) {
    KERNEL_TRY(is_instance ? kernel_lower_vector(lowering, node, k, 1, &operand)
                           : kernel_lower_operand(lowering, node, k, &operand));
    KERNEL_TRY(kernel_program_cast(lowering->program, dtype, operand, &operand, lowering->message));
    KERNEL_TRY(kernel_lower_binary(lowering, k == 1 ? KERNEL_Mul : KERNEL_Add, x, operand, &x));
  }
  KERNEL_TRY(kernel_lower_result(lowering, node, 0, x));
  if (is_layer) {
    KERNEL_TRY(kernel_lower_result(lowering, node, 1, mean));
    return kernel_lower_result(lowering, node, 2, inverse);
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_lower_rows(lowering_t *lowering, const cleave_node_view_t *node, bool *out_done) {
  uint32_t value = 0;
  *out_done = true;
  if (is_softmax(node->op)) {
    return lower_softmax(lowering, node);
  }
  if (is_norm(node->op) || is_instance_norm(node->op) || is_group_norm(node->op)) {
    return lower_norm(lowering, node);
  }
  if (find_reduction(node->op) == REDUCTION_COUNT && !is_log_sum(node->op)) {
    *out_done = false;
    return CLEAVE_OK;
  }
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &value));
  KERNEL_TRY(kernel_lower_reduction(lowering->program, node->op, value, &value, lowering->message));
  return kernel_lower_result(lowering, node, 0, value);
}
