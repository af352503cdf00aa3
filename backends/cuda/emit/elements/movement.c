// SPDX-License-Identifier: Apache-2.0
// Operators that move elements and compute nothing: all of them are strided copies, or no work at all.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"

enum { BLOCK = 256 };

static cuda_pointer_t pointer(uint32_t slot) {
  return (cuda_pointer_t){slot, 0};
}

/* A copy of the whole of output 0, from dense to dense: strides are changed by the caller. */
static cuda_move_t whole(const cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t from, uint32_t to,
                         const cleave_tensor_view_t *shape) {
  cuda_move_t move = {.label = node->op, .dtype = cuda_tensor(plan, to)->dtype, .rank = shape->rank};
  move.from = pointer(from);
  move.to = pointer(to);
  if (shape->rank > 0) {
    memcpy(move.dims, shape->dims, (size_t)shape->rank * sizeof *move.dims);
  }
  cuda_dense_strides(shape->rank, shape->dims, move.from_strides);
  cuda_dense_strides(shape->rank, shape->dims, move.to_strides);
  return move;
}

/* ---- no work ---- */

cleave_status_t cuda_emit_view(cuda_plan_t *plan, const cleave_node_view_t *node) {
  if (cuda_output(plan, node, 0) == NULL) {
    return CLEAVE_OK;
  }
  if (plan->slots[node->inputs[0]].bytes != plan->slots[node->outputs[0]].bytes) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its result has another size");
  }
  return cuda_plan_view(plan, node->outputs[0], node->inputs[0]);
}

cleave_status_t cuda_emit_dropout(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *mode = cuda_input(plan, node, 2);
  const unsigned char *trains = mode == NULL ? NULL : cuda_plan_data(plan, node->inputs[2]);
  const cleave_tensor_view_t *mask = cuda_output(plan, node, 1);
  if (mode != NULL && (trains == NULL || *trains != 0)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "it trains, or may do so");
  }
  if (mask != NULL) { /* all is kept */
    int64_t count = cleave_view_element_count(mask);
    const cuda_kernel_call_t ones = {.text = "fill",
                                     .label = "Dropout: mask",
                                     .defines = cuda_word_type(1),
                                     .is_wide = cuda_is_wide(count),
                                     .pointer_count = 1,
                                     .pointers = {{node->outputs[1], 0}},
                                     .number_count = 3,
                                     .numbers = {count, 1},
                                     .threads = count,
                                     .block = BLOCK};
    CUDA_TRY(cuda_plan_kernel(plan, &ones));
  }
  return cuda_emit_view(plan, node);
}

/* ---- strides ---- */

cleave_status_t cuda_emit_transpose(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  uint32_t count = 0;
  const int64_t *order = cleave_view_ints(node, "perm", &count);
  int64_t strides[CLEAVE_MAX_RANK];
  cuda_move_t move = whole(plan, node, node->inputs[0], node->outputs[0], y);
  cuda_dense_strides(x->rank, x->dims, strides);
  for (int32_t d = 0; d < x->rank; d++) {
    int64_t axis = count == (uint32_t)x->rank ? order[d] : x->rank - 1 - d;
    if (axis < 0 || axis >= x->rank) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "perm is not an order of the axes");
    }
    move.from_strides[d] = strides[axis];
  }
  return cuda_emit_move(plan, &move);
}

/* Begin and step along each axis, from four inputs, or from attributes of old operator sets. */
static cleave_status_t read_slice(cuda_plan_t *plan, const cleave_node_view_t *node, int64_t *begins,
                                  int64_t *steps) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t lists[3][CLEAVE_MAX_RANK];
  uint32_t counts[3];
  static const uint32_t inputs[3] = {1, 3, 4}; /* starts, axes, steps */
  static const char *const names[3] = {"starts", "axes", "steps"};
  for (uint32_t k = 0; k < 3; k++) {
    CUDA_TRY(cuda_read_ints(plan, node, inputs[k], lists[k], CLEAVE_MAX_RANK, &counts[k]));
    uint32_t given = 0;
    const int64_t *attribute = counts[k] == 0 ? cleave_view_ints(node, names[k], &given) : NULL;
    for (uint32_t i = 0; i < given && i < CLEAVE_MAX_RANK; i++) {
      lists[k][i] = attribute[i];
      counts[k] = i + 1;
    }
  }
  for (int32_t d = 0; d < x->rank; d++) {
    begins[d] = 0;
    steps[d] = 1;
  }
  for (uint32_t k = 0; k < counts[0]; k++) {
    int64_t axis = counts[1] > k ? lists[1][k] : (int64_t)k;
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis >= x->rank) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "an axis is outside of the shape");
    }
    int64_t size = x->dims[axis];
    int64_t step = counts[2] > k ? lists[2][k] : 1;
    int64_t begin = lists[0][k] < 0 ? lists[0][k] + size : lists[0][k];
    begin = begin < 0 ? 0 : begin > (step < 0 ? size - 1 : size) ? (step < 0 ? size - 1 : size) : begin;
    begins[axis] = begin;
    steps[axis] = step;
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_slice(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t begins[CLEAVE_MAX_RANK];
  int64_t steps[CLEAVE_MAX_RANK];
  int64_t strides[CLEAVE_MAX_RANK];
  CUDA_TRY(read_slice(plan, node, begins, steps));
  cuda_move_t move = whole(plan, node, node->inputs[0], node->outputs[0], y);
  cuda_dense_strides(x->rank, x->dims, strides);
  for (int32_t d = 0; d < x->rank; d++) {
    move.from_strides[d] = strides[d] * steps[d];
    move.from.offset += begins[d] * strides[d] * (int64_t)cleave_dtype_size(x->dtype);
  }
  return cuda_emit_move(plan, &move);
}

cleave_status_t cuda_emit_expand(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t strides[CLEAVE_MAX_RANK];
  cuda_move_t move = whole(plan, node, node->inputs[0], node->outputs[0], y);
  cuda_dense_strides(x->rank, x->dims, strides);
  for (int32_t d = 0; d < y->rank; d++) {
    int32_t own = d - (y->rank - x->rank);
    move.from_strides[d] = own < 0 || x->dims[own] == 1 ? 0 : strides[own];
  }
  return cuda_emit_move(plan, &move);
}

/* Each axis as one of repeats and one of its own. */
cleave_status_t cuda_emit_tile(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t from[CLEAVE_MAX_RANK];
  int64_t to[CLEAVE_MAX_RANK];
  cuda_move_t move = {.label = node->op, .dtype = x->dtype, .rank = 2 * x->rank};
  move.from = pointer(node->inputs[0]);
  move.to = pointer(node->outputs[0]);
  cuda_dense_strides(x->rank, x->dims, from);
  cuda_dense_strides(y->rank, y->dims, to);
  for (int32_t d = 0; d < x->rank; d++) {
    if (y->rank != x->rank || (x->dims[d] > 0 && y->dims[d] % x->dims[d] != 0)) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its result has another shape");
    }
    move.dims[2 * d] = x->dims[d] > 0 ? y->dims[d] / x->dims[d] : 0;
    move.dims[2 * d + 1] = x->dims[d];
    move.to_strides[2 * d] = to[d] * x->dims[d];
    move.to_strides[2 * d + 1] = to[d];
    move.from_strides[2 * d + 1] = from[d];
  }
  return cuda_emit_move(plan, &move);
}

/* ---- parts ---- */

static cleave_status_t read_axis(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t rank,
                                 int64_t otherwise, int32_t *out_axis) {
  int64_t axis = cleave_view_int(node, "axis", otherwise);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its axis is outside of the shape");
  }
  *out_axis = (int32_t)axis;
  return CLEAVE_OK;
}

/* Images with channels last, one beside the other in each place. */
static cleave_status_t concat_last(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t size = (int64_t)cleave_dtype_size(y->dtype);
  int64_t at = 0;
  uint32_t to = 0;
  CUDA_TRY(cuda_layout_write_last(plan, node->outputs[0], y->dtype, y->dims, &to));
  for (uint32_t k = 0; k < node->input_count; k++) {
    const int64_t *dims = cuda_input(plan, node, k)->dims;
    uint32_t from = 0;
    CUDA_TRY(cuda_layout_read_last(plan, node->inputs[k], y->dtype, dims, &from));
    const cuda_move_t move = {.label = node->op,
                              .dtype = y->dtype,
                              .rank = 2,
                              .dims = {dims[0] * dims[2] * dims[3], dims[1]},
                              .from_strides = {dims[1], 1},
                              .to_strides = {y->dims[1], 1},
                              .from = {from, 0},
                              .to = {to, at * size}};
    at += dims[1];
    CUDA_TRY(cuda_emit_move(plan, &move));
  }
  return CLEAVE_OK;
}

static bool has_lacking_input(const cuda_plan_t *plan, const cleave_node_view_t *node) {
  bool has = false;
  for (uint32_t k = 0; k < node->input_count; k++) {
    has = has || cuda_layout_is_lacking(plan, node->inputs[k]);
  }
  return has;
}

cleave_status_t cuda_emit_concat(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int32_t axis = 0;
  int64_t at = 0;
  CUDA_TRY(read_axis(plan, node, y->rank, 0, &axis));
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_tensor_view_t *x = cuda_input(plan, node, k);
    if (x == NULL || x->rank != y->rank) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "an input has another rank");
    }
  }
  if (axis == 1 && y->rank == 4 && has_lacking_input(plan, node)) {
    return concat_last(plan, node);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_tensor_view_t *x = cuda_input(plan, node, k);
    CUDA_TRY(cuda_layout_need(plan, node->inputs[k]));
    cuda_move_t move = whole(plan, node, node->inputs[k], node->outputs[0], x);
    cuda_dense_strides(y->rank, y->dims, move.to_strides);
    move.to.offset = at * move.to_strides[axis] * (int64_t)cleave_dtype_size(y->dtype);
    at += x->dims[axis];
    CUDA_TRY(cuda_emit_move(plan, &move));
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_split(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t sizes[256];
  uint32_t count = 0;
  int32_t axis = 0;
  int64_t at = 0;
  CUDA_TRY(read_axis(plan, node, x->rank, 0, &axis));
  CUDA_TRY(cuda_read_ints(plan, node, 1, sizes, 256, &count));
  const int64_t *listed = count > 0 ? sizes : cleave_view_ints(node, "split", &count);
  int64_t each = (x->dims[axis] + node->output_count - 1) / node->output_count;
  for (uint32_t k = 0; k < node->output_count; k++) {
    const cleave_tensor_view_t *y = cuda_output(plan, node, k);
    int64_t size = count > k ? listed[k] : each;
    if (y != NULL) {
      cuda_move_t move = whole(plan, node, node->inputs[0], node->outputs[k], y);
      cuda_dense_strides(x->rank, x->dims, move.from_strides);
      move.from.offset = at * move.from_strides[axis] * (int64_t)cleave_dtype_size(x->dtype);
      CUDA_TRY(cuda_emit_move(plan, &move));
    }
    at += size;
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_fill(cuda_plan_t *plan, const cleave_node_view_t *node, const void *element) {
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  size_t size = cleave_dtype_size(y->dtype);
  uint64_t bits = 0;
  if (element != NULL) {
    memcpy(&bits, element, size);
  }
  cuda_kernel_call_t call = {.text = "fill",
                             .label = node->op,
                             .defines = cuda_word_type((int64_t)size),
                             .threads = cleave_view_element_count(y),
                             .pointer_count = 1,
                             .pointers = {pointer(node->outputs[0])},
                             .number_count = 3,
                             .block = 256};
  call.is_wide = call.threads > INT32_MAX - 1024;
  call.numbers[0] = call.threads;
  call.numbers[1] = (int64_t)(int32_t)(uint32_t)bits;
  call.numbers[2] = (int64_t)(int32_t)(uint32_t)(bits >> 32);
  return cuda_plan_kernel(plan, &call);
}

/* Pads of all axes, those before and those after. */
static cleave_status_t read_pads(cuda_plan_t *plan, const cleave_node_view_t *node, int64_t *before,
                                 int64_t *after) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t pads[2 * CLEAVE_MAX_RANK];
  int64_t axes[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  uint32_t axis_count = 0;
  memset(before, 0, CLEAVE_MAX_RANK * sizeof *before);
  memset(after, 0, CLEAVE_MAX_RANK * sizeof *after);
  CUDA_TRY(cuda_read_ints(plan, node, 1, pads, 2 * CLEAVE_MAX_RANK, &count));
  CUDA_TRY(cuda_read_ints(plan, node, 3, axes, CLEAVE_MAX_RANK, &axis_count));
  uint32_t half = count / 2;
  for (uint32_t k = 0; k < half; k++) {
    int64_t axis = axis_count > k ? axes[k] : (int64_t)k;
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis >= x->rank) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "an axis is outside of the shape");
    }
    before[axis] = pads[k];
    after[axis] = pads[half + k];
  }
  return CLEAVE_OK;
}

/* The size that is left of an axis if negative pads cut off. */
static int64_t kept_of(int64_t size, int64_t before, int64_t after) {
  int64_t kept = size + (before < 0 ? before : 0) + (after < 0 ? after : 0);
  return kept < 0 ? 0 : kept;
}

/* Pads with elements of the tensor itself, by a kernel. */
static cleave_status_t pad_from_itself(cuda_plan_t *plan, const cleave_node_view_t *node, int mode,
                                       const int64_t *before, const int64_t *after) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t strides[CLEAVE_MAX_RANK];
  char defines[96];
  (void)snprintf(defines, sizeof defines, "%s#define MODE %d\n#define RANK %d\n",
                 cuda_word_type((int64_t)cleave_dtype_size(x->dtype)), mode, (int)x->rank);
  cuda_kernel_call_t call = {.text = "pad",
                             .label = node->op,
                             .defines = defines,
                             .threads = cleave_view_element_count(y),
                             .pointer_count = 2,
                             .pointers = {pointer(node->inputs[0]), pointer(node->outputs[0])},
                             .block = 256};
  cuda_dense_strides(x->rank, x->dims, strides);
  call.is_wide = call.threads > INT32_MAX - 1024 || cleave_view_element_count(x) > INT32_MAX - 1024;
  call.numbers[0] = call.threads;
  call.number_count = 1 + 5 * (uint32_t)x->rank;
  for (int32_t d = 0; d < x->rank; d++) {
    int64_t *numbers = &call.numbers[1 + d];
    numbers[0] = y->dims[d];
    numbers[x->rank] = before[d] > 0 ? before[d] : 0;
    numbers[2 * x->rank] = kept_of(x->dims[d], before[d], after[d]);
    numbers[3 * x->rank] = before[d] < 0 ? -before[d] : 0;
    numbers[4 * x->rank] = strides[d];
    if (numbers[2 * x->rank] == 0 && call.threads > 0) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "there are no elements to fill the border from");
    }
  }
  return cuda_plan_kernel(plan, &call);
}

/* Pads with a constant, or zeros: writes the value everywhere, then the tensor inside. */
static cleave_status_t pad_with(cuda_plan_t *plan, const cleave_node_view_t *node, const void *element,
                                const int64_t *before, const int64_t *after) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  cuda_move_t move = whole(plan, node, node->inputs[0], node->outputs[0], x);
  cuda_dense_strides(x->rank, cuda_output(plan, node, 0)->dims, move.to_strides);
  int64_t size = (int64_t)cleave_dtype_size(x->dtype);
  for (int32_t d = 0; d < x->rank; d++) {
    move.from.offset += before[d] < 0 ? -before[d] * move.from_strides[d] * size : 0;
    move.to.offset += before[d] > 0 ? before[d] * move.to_strides[d] * size : 0;
    move.dims[d] = kept_of(move.dims[d], before[d], after[d]);
  }
  CUDA_TRY(emit_fill(plan, node, element));
  return cuda_emit_move(plan, &move);
}

cleave_status_t cuda_emit_pad(cuda_plan_t *plan, const cleave_node_view_t *node) {
  static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
  enum { MODES = sizeof modes / sizeof modes[0] };
  const cleave_tensor_view_t *value = cuda_input(plan, node, 2);
  const void *element = value == NULL ? NULL : cuda_plan_data(plan, node->inputs[2]);
  const char *name = cleave_view_string(node, "mode", "constant");
  int64_t before[CLEAVE_MAX_RANK];
  int64_t after[CLEAVE_MAX_RANK];
  int mode = 0;
  while (mode < MODES && strcmp(modes[mode], name) != 0) {
    mode++;
  }
  if (mode == MODES || node->input_count < 2) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its mode is unknown, or its pads are attributes");
  }
  CUDA_TRY(read_pads(plan, node, before, after));
  if (mode != 0 && cuda_input(plan, node, 0)->rank > 0) {
    return pad_from_itself(plan, node, mode, before, after);
  }
  if (value != NULL && element == NULL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_CONSTANT, "its value is not a constant");
  }
  return pad_with(plan, node, element, before, after);
}

/* The sizes of the result say what is cut off or added; the odd element of either goes to the end. */
cleave_status_t cuda_emit_center_crop_pad(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t before[CLEAVE_MAX_RANK];
  int64_t after[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < x->rank; d++) {
    before[d] = (y->dims[d] - x->dims[d]) / 2;
    after[d] = y->dims[d] - x->dims[d] - before[d];
  }
  return pad_with(plan, node, NULL, before, after);
}

/* ---- blocks of images ---- */

/* Six axes, in an order: N, C', b, b, H, W of the deep tensor against N, C', H, b, W, b of the wide one. */
static cleave_status_t move_blocks(cuda_plan_t *plan, const cleave_node_view_t *node, bool to_space) {
  const cleave_tensor_view_t *deep = to_space ? cuda_input(plan, node, 0) : cuda_output(plan, node, 0);
  bool is_column_first = to_space && strcmp(cleave_view_string(node, "mode", "DCR"), "CRD") == 0;
  int64_t size = cleave_view_int(node, "blocksize", 1);
  if (deep->rank != 4 || size < 1 || deep->dims[1] % (size * size) != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its channels are not a multiple of the block");
  }
  int64_t channels = deep->dims[1] / (size * size);
  int64_t height = deep->dims[2];
  int64_t width = deep->dims[3];
  int64_t place = height * width;
  cuda_move_t move = {.label = node->op, .dtype = deep->dtype, .rank = 6};
  const int64_t dims[6] = {deep->dims[0], channels, height, size, width, size};
  int64_t wide[6];
  int64_t block = is_column_first ? place : channels * place; /* of the deep tensor, per step in a block */
  int64_t channel = is_column_first ? size * size * place : place;
  const int64_t deeply[6] = {deep->dims[1] * place, channel, width, size * block, 1, block};
  cuda_dense_strides(6, dims, wide);
  memcpy(move.dims, dims, sizeof dims);
  memcpy(move.from_strides, to_space ? deeply : wide, sizeof wide);
  memcpy(move.to_strides, to_space ? wide : deeply, sizeof wide);
  move.from = pointer(node->inputs[0]);
  move.to = pointer(node->outputs[0]);
  return cuda_emit_move(plan, &move);
}

cleave_status_t cuda_emit_depth_to_space(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return move_blocks(plan, node, true);
}

cleave_status_t cuda_emit_space_to_depth(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return move_blocks(plan, node, false);
}
