// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of one node, from the types that inference left in the graph. Counts are for
// people and for rules that weigh regions: a multiply-add is two, a transcendental function one. An unknown
// size is not a number in here, and so is what depends on it.

#include <math.h>

#include "ops/context/einsum.h"

double cleave_value_bytes(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  size_t element = cleave_dtype_size((cleave_dtype_t)record->dtype);
  int64_t count = 0;
  bool known = element > 0 && cleave_shape_element_count(record->rank, record->dims, &count);
  return known ? (double)count * (double)element : -1.0;
}

static const cleave_value_record_t *record_of(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_value_exists(value) ? cleave_graph_value(graph, value) : NULL;
}

static const cleave_value_record_t *input_of(const cleave_graph_t *graph, uint32_t node, uint32_t index) {
  return record_of(graph, cleave_node_input(graph, (cleave_node_t){node}, index));
}

static const cleave_value_record_t *output_of(const cleave_graph_t *graph, uint32_t node, uint32_t index) {
  return record_of(graph, cleave_node_output(graph, (cleave_node_t){node}, index));
}

/* Size of an axis (negative: from the end); 0 for inputs that are left out, and for axes that are not there.
 */
static double size_of(const cleave_value_record_t *record, int32_t axis) {
  if (record == NULL || record->rank < 0) {
    return record == NULL ? 0.0 : NAN;
  }
  axis += axis < 0 ? record->rank : 0;
  if (axis < 0 || axis >= record->rank) {
    return 0.0;
  }
  return cleave_dim_is_known(record->dims[axis]) ? (double)record->dims[axis] : NAN;
}

/* Number of elements, from axis `first` on; 0 for inputs that are left out. */
static double count_of(const cleave_value_record_t *record, int32_t first) {
  if (record == NULL || record->rank < 0) {
    return record == NULL ? 0.0 : NAN;
  }
  double count = 1.0;
  for (int32_t d = first; d < record->rank; d++) {
    count *= size_of(record, d);
  }
  return count;
}

/* An operator whose count is one expression. */
#define FLOPS(name, count)                                                 \
  double cleave_flops_##name(const cleave_graph_t *graph, uint32_t node) { \
    (void)graph, (void)node;                                               \
    return count;                                                          \
  }

FLOPS(zero, 0.0)
FLOPS(element, count_of(output_of(graph, node, 0), 0))
FLOPS(input, count_of(input_of(graph, node, 0), 0))

double cleave_flops_variadic(const cleave_graph_t *graph, uint32_t node) {
  uint32_t operands = cleave_node_input_count(graph, (cleave_node_t){node});
  return count_of(output_of(graph, node, 0), 0) * (operands > 1 ? (double)(operands - 1) : 1.0);
}

FLOPS(matmul, 2.0 * count_of(output_of(graph, node, 0), 0) * size_of(input_of(graph, node, 0), -1))

double cleave_flops_gemm(const cleave_graph_t *graph, uint32_t node) {
  bool transposes = cleave_op_int(graph, (cleave_node_t){node}, "transA", 0) != 0;
  double inner = size_of(input_of(graph, node, 0), transposes ? 0 : 1);
  double bias = input_of(graph, node, 2) != NULL ? 1.0 : 0.0;
  return count_of(output_of(graph, node, 0), 0) * (2.0 * inner + bias);
}

/* Counts both matrix products and the softmax between them. */
double cleave_flops_attention(const cleave_graph_t *graph, uint32_t node) {
  const cleave_value_record_t *q = input_of(graph, node, 0);
  const cleave_value_record_t *k = input_of(graph, node, 1);
  double keys = size_of(k, k != NULL && k->rank == 3 ? 1 : 2);
  if (input_of(graph, node, 4) != NULL) {
    keys += size_of(input_of(graph, node, 4), 2);
  }
  bool is_flat = q != NULL && q->rank == 3;
  double heads =
      is_flat ? (double)cleave_op_int(graph, (cleave_node_t){node}, "q_num_heads", 0) : size_of(q, 1);
  double scores = size_of(q, 0) * heads * size_of(q, is_flat ? 1 : 2) * keys;
  return 2.0 * keys * (count_of(q, 0) + count_of(output_of(graph, node, 0), 0)) + 5.0 * scores;
}

double cleave_flops_det(const cleave_graph_t *graph, uint32_t node) {
  const cleave_value_record_t *input = input_of(graph, node, 0);
  return count_of(input, 0) * size_of(input, -1) * 2.0 / 3.0;
}

double cleave_flops_einsum(const cleave_graph_t *graph, uint32_t node) {
  cleave_einsum_t einsum;
  double sizes[CLEAVE_EINSUM_LETTERS] = {0};
  double product = 2.0;
  double wild = 1.0;
  const char *equation = cleave_op_text(graph, (cleave_node_t){node}, "equation", "");
  uint32_t operands = cleave_node_input_count(graph, (cleave_node_t){node});
  if (!cleave_einsum_parse(equation, operands, &einsum) || einsum.term_count != operands) {
    return 0.0;
  }
  for (uint32_t t = 0; t < einsum.term_count; t++) {
    const cleave_value_record_t *operand = input_of(graph, node, t);
    const cleave_einsum_term_t *term = &einsum.terms[t];
    double covered = 1.0;
    for (int32_t k = 0; k < term->count; k++) {
      bool after = term->ellipsis >= 0 && k >= term->ellipsis;
      double size = size_of(operand, after ? k - term->count : k);
      double *letter = &sizes[cleave_einsum_letter(term->letters[k])];
      *letter = size > *letter ? size : *letter;
      covered *= size;
    }
    double elements = count_of(operand, 0);
    if (isnan(elements) || elements <= 0.0) {
      return elements;
    }
    wild = elements / covered > wild ? elements / covered : wild;
  }
  for (uint32_t k = 0; k < CLEAVE_EINSUM_LETTERS; k++) {
    product *= sizes[k] > 0.0 ? sizes[k] : 1.0;
  }
  return product * wild;
}

/* Per output element: one multiply-add for each of C / group * kernel weights, and the bias. */
double cleave_flops_conv(const cleave_graph_t *graph, uint32_t node) {
  uint16_t id = cleave_node_op(graph, (cleave_node_t){node})->id;
  const cleave_value_record_t *weight = input_of(graph, node, id == CLEAVE_OP_QLinearConv ? 3 : 1);
  uint32_t bias_port = id == CLEAVE_OP_QLinearConv ? 8 : id == CLEAVE_OP_DeformConv ? 3 : 2;
  bool has_bias = id != CLEAVE_OP_ConvInteger && input_of(graph, node, bias_port) != NULL;
  return count_of(output_of(graph, node, 0), 0) * (2.0 * count_of(weight, 1) + (has_bias ? 1.0 : 0.0));
}

double cleave_flops_conv_transpose(const cleave_graph_t *graph, uint32_t node) {
  double bias = input_of(graph, node, 2) != NULL ? count_of(output_of(graph, node, 0), 0) : 0.0;
  return 2.0 * count_of(input_of(graph, node, 0), 0) * count_of(input_of(graph, node, 1), 1) + bias;
}

/* Costs what the convolution does: a multiply-add per element of dY and weight that it was made with. */
FLOPS(conv_grad_weight, 2.0 * count_of(input_of(graph, node, 1), 0) * count_of(output_of(graph, node, 0), 1))

static double window_of(const cleave_graph_t *graph, uint32_t node) {
  uint32_t count = 0;
  const int64_t *kernel = cleave_op_ints(graph, (cleave_node_t){node}, "kernel_shape", &count);
  double window = 1.0;
  for (uint32_t k = 0; k < count; k++) {
    window *= (double)kernel[k];
  }
  return window;
}

FLOPS(pool, count_of(output_of(graph, node, 0), 0) * window_of(graph, node))
FLOPS(pool_grad, count_of(input_of(graph, node, 0), 0) * window_of(graph, node))

/* A scale and a shift: what is left of it when the statistics are constants. */
FLOPS(batch_normalization, 2.0 * count_of(input_of(graph, node, 0), 0))

/* Two passes for statistics, one to apply them. */
FLOPS(normalization, 5.0 * count_of(input_of(graph, node, 0), 0))

/* Matrix products of all gates for every step, direction and batch entry, and the pointwise rest. */
double cleave_flops_recurrent(const cleave_graph_t *graph, uint32_t node) {
  const cleave_value_record_t *data = input_of(graph, node, 0);
  const cleave_value_record_t *weight = input_of(graph, node, 1);
  const cleave_value_record_t *recurrence = input_of(graph, node, 2);
  double steps = size_of(data, 0) * size_of(data, 1);
  double gates = size_of(weight, 0) * size_of(weight, 1);
  return steps * gates * (2.0 * size_of(weight, 2) + 2.0 * size_of(recurrence, 2) + 4.0);
}

/* 5 n log2 n, as fast transforms are counted. */
double cleave_flops_dft(const cleave_graph_t *graph, uint32_t node) {
  double count = count_of(output_of(graph, node, 0), 0);
  return 2.5 * count * log2(count + 1.0);
}
