// SPDX-License-Identifier: Apache-2.0
// DFT and STFT as products with the matrix of the transform, which is a constant; complex numbers are pairs
// of rows and columns. For the lengths of speech, a few hundred elements, that is little work for a GPU, and
// one call for all frames; transforms whose matrix would have more than MOST elements stay with `cpu`, which
// has a fast one.
#include <math.h>
#include <string.h>

#include "emit.h"
#include "kernels/convert.h"

enum { MOST = 1 << 24, NUMBERS = 2 /* of a complex one */ };

typedef struct transform {
  cleave_dtype_t dtype;
  int64_t length;
  int64_t given; /* elements that there are; those behind are 0 */
  int64_t parts; /* numbers of an element, 1 or 2, and of a bin */
  int64_t bins;
  int64_t bin_parts;
  bool is_inverse;
  bool is_mirrored;     /* only the first half of a spectrum is given */
  const double *window; /* of each element, or NULL */
} transform_t;

static int64_t rows_of(const transform_t *transform) {
  return transform->given * transform->parts;
}

static int64_t columns_of(const transform_t *transform) {
  return transform->bins * transform->bin_parts;
}

/* What element `from` adds to a bin, with the unit at `turn` of the circle. */
static void add_turn(const transform_t *transform, double *row, int64_t bin, const double *unit,
                     double conjugated) {
  int64_t columns = columns_of(transform);
  double *to = row + bin * transform->bin_parts;
  to[0] += unit[0];
  if (transform->bin_parts > 1) {
    to[1] += unit[1];
  }
  if (transform->parts > 1) {
    to[columns] -= conjugated * unit[1];
    if (transform->bin_parts > 1) {
      to[columns + 1] += conjugated * unit[0];
    }
  }
}

static void fill_matrix(const transform_t *transform, double *units, double *matrix) {
  int64_t length = transform->length;
  double scale = transform->is_inverse ? 1.0 / (double)length : 1.0;
  for (int64_t k = 0; k < length; k++) {
    double angle = 2.0 * 3.14159265358979323846 * (double)k / (double)length;
    units[2 * k] = scale * cos(angle);
    units[2 * k + 1] = scale * (transform->is_inverse ? sin(angle) : -sin(angle));
  }
  for (int64_t k = 0; k < length; k++) {
    bool is_mirrored = transform->is_mirrored && k > length / 2;
    int64_t from = is_mirrored ? length - k : k;
    double weight = transform->window == NULL ? 1.0 : transform->window[k];
    for (int64_t bin = 0; from < transform->given && bin < transform->bins; bin++) {
      const double *at = units + 2 * (k * bin % length);
      const double unit[2] = {weight * at[0], weight * at[1]};
      add_turn(transform, matrix + from * transform->parts * columns_of(transform), bin, unit,
               is_mirrored ? -1.0 : 1.0);
    }
  }
}

static cleave_status_t make_matrix(cuda_plan_t *plan, const transform_t *transform, uint32_t *out_slot) {
  if (rows_of(transform) > MOST / columns_of(transform) || transform->length > MOST) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SIZE, "its matrix has more than %d elements", MOST);
  }
  size_t count = (size_t)(rows_of(transform) * columns_of(transform));
  size_t size = cleave_dtype_size(transform->dtype);
  void *numbers = NULL;
  if (!plan->options.is_dry) {
    double *units = cuda_plan_allocate(plan, (size_t)transform->length, 2 * sizeof *units);
    double *matrix = cuda_plan_allocate(plan, count, sizeof *matrix);
    numbers = transform->dtype == CLEAVE_DTYPE_F64 ? matrix : cuda_plan_allocate(plan, count, size);
    if (units == NULL || matrix == NULL || numbers == NULL) {
      return cuda_plan_no_memory(plan);
    }
    fill_matrix(transform, units, matrix);
    if (numbers != matrix) {
      cpu_convert(CLEAVE_DTYPE_F64, matrix, transform->dtype, numbers, (int64_t)count);
    }
  }
  return cuda_plan_constant(plan, numbers, (int64_t)(count * size), out_slot);
}

/* Rows of `pitch` numbers times the matrix. */
static cleave_status_t multiply(cuda_plan_t *plan, const transform_t *transform, int64_t rows, int64_t pitch,
                                const cuda_pointer_t *operands) {
  const cuda_product_t product = {.dtype = transform->dtype,
                                  .rows = rows,
                                  .columns = columns_of(transform),
                                  .inner = rows_of(transform),
                                  .strides = {pitch, columns_of(transform), columns_of(transform)},
                                  .batches = 1,
                                  .alpha = 1.0};
  const char *label = plan->region->nodes[plan->node].op;
  return cuda_emit_product(plan, label, &product, operands[0], operands[1], operands[2],
                           (cuda_pointer_t){CUDA_NO_SLOT, 0});
}

static bool has_parts(const cleave_tensor_view_t *tensor) {
  return tensor->rank >= 2 && (tensor->dims[tensor->rank - 1] == 1 || tensor->dims[tensor->rank - 1] == 2);
}

static cleave_status_t check_dtype(cuda_plan_t *plan, const cleave_node_view_t *node) {
  cleave_dtype_t dtype = cuda_input(plan, node, 0)->dtype;
  bool is_known = dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64;
  return is_known && cuda_output(plan, node, 0)->dtype == dtype
             ? CLEAVE_OK
             : cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "it is neither of float32 nor of float64");
}

/* ---- DFT ---- */

/* [outer, axis, inner, parts] with the axes turned, or turned back. */
static cleave_status_t turn(cuda_plan_t *plan, cleave_dtype_t dtype, const int64_t *dims, cuda_pointer_t from,
                            cuda_pointer_t to) {
  int64_t outer = dims[0];
  int64_t axis = dims[1];
  int64_t inner = dims[2];
  int64_t parts = dims[3];
  const cuda_move_t move = {.label = "DFT",
                            .dtype = dtype,
                            .rank = 4,
                            .dims = {outer, inner, axis, parts},
                            .from_strides = {axis * inner * parts, parts, inner * parts, 1},
                            .to_strides = {axis * inner * parts, axis * parts, parts, 1},
                            .from = from,
                            .to = to};
  return cuda_emit_move(plan, &move);
}

static cleave_status_t emit_along(cuda_plan_t *plan, const transform_t *transform, int64_t outer,
                                  int64_t elements, int64_t inner) {
  const cleave_node_view_t *node = &plan->region->nodes[plan->node];
  int64_t size = (int64_t)cleave_dtype_size(transform->dtype);
  int64_t pitch = elements * transform->parts;
  cuda_pointer_t operands[3] = {{node->inputs[0], 0}, {0, 0}, {node->outputs[0], 0}};
  CUDA_TRY(make_matrix(plan, transform, &operands[1].slot));
  if (inner == 1) {
    return multiply(plan, transform, outer, pitch, operands);
  }
  const int64_t x_dims[4] = {outer, elements, inner, transform->parts};
  const int64_t y_dims[4] = {outer, inner, transform->bins, transform->bin_parts};
  const cuda_pointer_t y = operands[2];
  CUDA_TRY(cuda_plan_scratch(plan, outer * inner * pitch * size, &operands[0].slot));
  CUDA_TRY(cuda_plan_scratch(plan, outer * inner * columns_of(transform) * size, &operands[2].slot));
  CUDA_TRY(turn(plan, transform->dtype, x_dims, (cuda_pointer_t){node->inputs[0], 0}, operands[0]));
  CUDA_TRY(multiply(plan, transform, outer * inner, pitch, operands));
  return turn(plan, transform->dtype, y_dims, operands[2], y);
}

cleave_status_t cuda_emit_dft(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t length = 0;
  int64_t axis = cleave_view_int(node, "axis", -2);
  uint32_t count = 0;
  bool is_onesided = cleave_view_int(node, "onesided", 0) != 0;
  CUDA_TRY(check_dtype(plan, node));
  CUDA_TRY(cuda_read_ints(plan, node, 2, &axis, 1, &count));
  CUDA_TRY(cuda_read_ints(plan, node, 1, &length, 1, &count));
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank - 1 || !has_parts(x) || !has_parts(y) || y->rank != x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axis or its tensors of complex numbers do not fit");
  }
  transform_t transform = {.dtype = x->dtype,
                           .is_inverse = cleave_view_int(node, "inverse", 0) != 0,
                           .parts = x->dims[x->rank - 1],
                           .bins = y->dims[axis],
                           .bin_parts = y->dims[y->rank - 1]};
  transform.is_mirrored = is_onesided && transform.is_inverse;
  int64_t elements = x->dims[axis];
  transform.length = count > 0 ? length : transform.is_mirrored ? 2 * (elements - 1) : elements;
  transform.given = elements < transform.length ? elements : transform.length;
  int64_t expected = is_onesided && !transform.is_inverse ? transform.length / 2 + 1 : transform.length;
  if (cleave_view_element_count(y) == 0) {
    return CLEAVE_OK;
  }
  if (transform.length < 1 || expected != transform.bins || transform.given < 1) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its length does not fit the data or the result");
  }
  return emit_along(plan, &transform, cuda_product_of(x->dims, (int32_t)axis), elements,
                    cuda_product_of(x->dims + axis + 1, x->rank - (int32_t)axis - 2));
}

/* ---- STFT ---- */

/* The matrix, with rows times a window that is not known yet. */
static cleave_status_t multiply_window(cuda_plan_t *plan, const transform_t *transform, uint32_t window,
                                       uint32_t *matrix) {
  static const int8_t all[3] = {0, 1, 2};
  static const int8_t rows[3] = {0, -1, -1};
  const int64_t dims[3] = {transform->length, transform->parts, columns_of(transform)};
  cuda_builder_t builder;
  uint32_t value = 0;
  uint32_t other = 0;
  uint32_t made = 0;
  CUDA_TRY(cuda_plan_scratch(plan, plan->slots[*matrix].bytes, &made));
  cleave_status_t status = cuda_builder_init(&builder, plan, "STFT: window", 3, 0);
  if (status == CLEAVE_OK) {
    status =
        cuda_builder_load(&builder, transform->dtype, (cuda_pointer_t){*matrix, 0}, all, 3, dims, &value);
  }
  if (status == CLEAVE_OK) {
    status =
        cuda_builder_load(&builder, transform->dtype, (cuda_pointer_t){window, 0}, rows, 1, dims, &other);
  }
  if (status == CLEAVE_OK) {
    status = cuda_builder_apply(&builder, KERNEL_Mul, value, other, &value);
  }
  if (status == CLEAVE_OK) {
    status = cuda_builder_store(&builder, transform->dtype, value, (cuda_pointer_t){made, 0});
  }
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  *matrix = made;
  return status;
}

/* Frames overlap, so that they are copied, one behind the other. */
static cleave_status_t emit_frames(cuda_plan_t *plan, const transform_t *transform, int64_t step,
                                   uint32_t window) {
  const cleave_node_view_t *node = &plan->region->nodes[plan->node];
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const int64_t *frames = cuda_output(plan, node, 0)->dims;
  int64_t row = rows_of(transform);
  cuda_pointer_t operands[3] = {{0, 0}, {0, 0}, {node->outputs[0], 0}};
  int64_t bytes = frames[0] * frames[1] * row * (int64_t)cleave_dtype_size(transform->dtype);
  CUDA_TRY(make_matrix(plan, transform, &operands[1].slot));
  CUDA_TRY(window == CUDA_NO_SLOT ? CLEAVE_OK : multiply_window(plan, transform, window, &operands[1].slot));
  CUDA_TRY(cuda_plan_scratch(plan, bytes, &operands[0].slot));
  const cuda_move_t move = {.label = "STFT: frames",
                            .dtype = transform->dtype,
                            .rank = 3,
                            .dims = {frames[0], frames[1], row},
                            .from_strides = {x->dims[1] * transform->parts, step * transform->parts, 1},
                            .to_strides = {frames[1] * row, row, 1},
                            .from = {node->inputs[0], 0},
                            .to = operands[0]};
  CUDA_TRY(cuda_emit_move(plan, &move));
  return multiply(plan, transform, frames[0] * frames[1], row, operands);
}

cleave_status_t cuda_emit_stft(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *window = cuda_input(plan, node, 2);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t step = 0;
  uint32_t count = 0;
  int64_t length = window == NULL ? 0 : cleave_view_element_count(window);
  bool is_onesided = cleave_view_int(node, "onesided", 1) != 0;
  CUDA_TRY(check_dtype(plan, node));
  CUDA_TRY(cuda_read_ints(plan, node, 3, &length, 1, &count));
  CUDA_TRY(cuda_read_ints(plan, node, 1, &step, 1, &count));
  bool fits = y->rank == 4 && y->dims[3] == NUMBERS && x->rank >= 2 && x->rank <= 3 &&
              (x->rank == 2 || has_parts(x)) && x->dims[0] == y->dims[0] && count == 1 && step >= 1 &&
              length >= 1 && length <= x->dims[1] && y->dims[2] == (is_onesided ? length / 2 + 1 : length) &&
              y->dims[1] - 1 <= (x->dims[1] - length) / step &&
              (window == NULL || cleave_view_element_count(window) == length);
  if (!fits || (window != NULL && window->dtype != x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its frames do not fit the signal or the window, or that has another dtype");
  }
  transform_t transform = {.dtype = x->dtype,
                           .length = length,
                           .given = length,
                           .parts = x->rank == 3 ? x->dims[2] : 1,
                           .bins = y->dims[2],
                           .bin_parts = NUMBERS};
  if (cleave_view_element_count(y) == 0) {
    return CLEAVE_OK;
  }
  const void *known = window == NULL ? NULL : cuda_plan_data(plan, node->inputs[2]);
  if (known != NULL) {
    double *numbers = cuda_plan_allocate(plan, (size_t)length, sizeof *numbers);
    if (numbers == NULL) {
      return cuda_plan_no_memory(plan);
    }
    cpu_convert(x->dtype, known, CLEAVE_DTYPE_F64, numbers, length);
    transform.window = numbers;
  }
  return emit_frames(plan, &transform, step,
                     window != NULL && known == NULL ? node->inputs[2] : CUDA_NO_SLOT);
}
