// SPDX-License-Identifier: Apache-2.0
// Copies between strided tensors. Axes are merged where both sides run through them in one go; where the last
// one is dense on both sides, several elements move at once; where two axes change places, they do so through
// shared memory.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"

enum { BLOCK = 256, TILE = 32, MAX_BYTES = 16 };

static bool reaches_far(const cuda_move_t *move) {
  const int64_t limit = (INT64_C(1) << 31) - 1 - 1024 * TILE;
  int64_t from = 0;
  int64_t to = 0;
  for (int32_t d = 0; d < move->rank; d++) {
    int64_t a = move->from_strides[d] < 0 ? -move->from_strides[d] : move->from_strides[d];
    int64_t b = move->to_strides[d] < 0 ? -move->to_strides[d] : move->to_strides[d];
    from += a * move->dims[d];
    to += b * move->dims[d];
  }
  return from >= limit || to >= limit || cuda_product_of(move->dims, move->rank) >= limit;
}

static void remove_axis(cuda_move_t *move, int32_t axis) {
  for (int32_t d = axis; d + 1 < move->rank; d++) {
    move->dims[d] = move->dims[d + 1];
    move->from_strides[d] = move->from_strides[d + 1];
    move->to_strides[d] = move->to_strides[d + 1];
  }
  move->rank--;
}

/* Removes axes of size 1, and merges neighbours. */
static void simplify(cuda_move_t *move) {
  for (int32_t d = move->rank - 1; d >= 0; d--) {
    if (move->dims[d] == 1) {
      remove_axis(move, d);
    }
  }
  for (int32_t d = move->rank - 1; d > 0; d--) {
    if (move->from_strides[d - 1] == move->from_strides[d] * move->dims[d] &&
        move->to_strides[d - 1] == move->to_strides[d] * move->dims[d]) {
      move->dims[d - 1] *= move->dims[d];
      move->from_strides[d - 1] = move->from_strides[d];
      move->to_strides[d - 1] = move->to_strides[d];
      remove_axis(move, d);
    }
  }
}

/* Moves as many bytes at once as every stride and offset allows. */
static int64_t widen_elements(cuda_move_t *move) {
  int64_t size = (int64_t)cleave_dtype_size(move->dtype);
  int32_t last = move->rank - 1;
  while (move->rank > 0 && size < MAX_BYTES && move->from_strides[last] == 1 && move->to_strides[last] == 1 &&
         move->dims[last] % 2 == 0 && move->from.offset % (2 * size) == 0 &&
         move->to.offset % (2 * size) == 0) {
    for (int32_t d = 0; d < last; d++) {
      if (move->from_strides[d] % 2 != 0 || move->to_strides[d] % 2 != 0) {
        return size;
      }
    }
    for (int32_t d = 0; d < last; d++) {
      move->from_strides[d] /= 2;
      move->to_strides[d] /= 2;
    }
    move->dims[last] /= 2;
    size *= 2;
  }
  return size;
}

const char *cuda_word_type(int64_t size) {
  return size == 1   ? "typedef u8 element;\n"
         : size == 2 ? "typedef u16 element;\n"
         : size == 4 ? "typedef u32 element;\n"
         : size == 8 ? "typedef u64 element;\n"
                     : "struct alignas(16) element {\n  u32 words[4];\n};\n";
}

static void add_numbers(cuda_kernel_call_t *call, const int64_t *numbers, int32_t count) {
  memcpy(call->numbers + call->number_count, numbers, (size_t)count * sizeof *numbers);
  call->number_count += (uint32_t)count;
}

static cleave_status_t emit_copy(cuda_plan_t *plan, const cuda_move_t *move, int64_t size) {
  char defines[128];
  cuda_kernel_call_t call = {.text = "copy",
                             .label = move->label,
                             .defines = defines,
                             .is_wide = reaches_far(move),
                             .pointer_count = 2,
                             .pointers = {move->from, move->to},
                             .block = BLOCK};
  (void)snprintf(defines, sizeof defines, "%s#define RANK %d\n", cuda_word_type(size), (int)move->rank);
  call.threads = cuda_product_of(move->dims, move->rank);
  add_numbers(&call, &call.threads, 1);
  add_numbers(&call, move->dims, move->rank);
  add_numbers(&call, move->from_strides, move->rank);
  add_numbers(&call, move->to_strides, move->rank);
  return cuda_plan_kernel(plan, &call);
}

/* The axis along which the source is dense, if that is another one than the last of the result. */
static int32_t find_turned(const cuda_move_t *move) {
  int32_t last = move->rank - 1;
  if (move->rank < 2 || move->to_strides[last] != 1 || move->from_strides[last] == 1 ||
      move->dims[last] < TILE / 2) {
    return -1;
  }
  for (int32_t d = 0; d < last; d++) {
    if (move->from_strides[d] == 1 && move->dims[d] >= TILE / 2) {
      return d;
    }
  }
  return -1;
}

static cleave_status_t emit_transposed(cuda_plan_t *plan, const cuda_move_t *move, int32_t turned,
                                       int64_t size) {
  char defines[128];
  cuda_move_t rest = *move;
  int32_t last = move->rank - 1;
  cuda_kernel_call_t call = {.text = "transpose",
                             .label = move->label,
                             .defines = defines,
                             .is_wide = reaches_far(move),
                             .pointer_count = 2,
                             .pointers = {move->from, move->to},
                             .block = BLOCK};
  const int64_t sizes[4] = {move->dims[turned], move->dims[last], move->from_strides[last],
                            move->to_strides[turned]};
  add_numbers(&call, sizes, 4);
  remove_axis(&rest, last);
  remove_axis(&rest, turned);
  if (rest.rank == 0) {
    rest.rank = 1;
    rest.dims[0] = 1;
    rest.from_strides[0] = 0;
    rest.to_strides[0] = 0;
  }
  add_numbers(&call, rest.dims, rest.rank);
  add_numbers(&call, rest.from_strides, rest.rank);
  add_numbers(&call, rest.to_strides, rest.rank);
  (void)snprintf(defines, sizeof defines, "%s#define BATCH %d\n", cuda_word_type(size), (int)rest.rank);
  call.threads = ((sizes[0] + TILE - 1) / TILE) * ((sizes[1] + TILE - 1) / TILE) *
                 cuda_product_of(rest.dims, rest.rank) * BLOCK;
  return cuda_plan_kernel(plan, &call);
}

cleave_status_t cuda_emit_move(cuda_plan_t *plan, const cuda_move_t *wanted) {
  cuda_move_t move = *wanted;
  int64_t count = cuda_product_of(move.dims, move.rank);
  if (count == 0) {
    return CLEAVE_OK;
  }
  simplify(&move);
  int64_t size = (int64_t)cleave_dtype_size(move.dtype);
  bool is_whole = move.rank == 0 || (move.rank == 1 && move.from_strides[0] == 1 && move.to_strides[0] == 1);
  if (is_whole) {
    return cuda_plan_copy(plan, move.from, move.to, count * size);
  }
  int32_t turned = find_turned(&move);
  if (turned >= 0) {
    return emit_transposed(plan, &move, turned, size);
  }
  size = widen_elements(&move);
  return emit_copy(plan, &move, size);
}

cleave_status_t cuda_emit_zeros(cuda_plan_t *plan, const char *label, cuda_pointer_t to, int64_t bytes) {
  int64_t size = 1;
  while (size < 8 && bytes % (2 * size) == 0 && to.offset % (2 * size) == 0) {
    size *= 2;
  }
  const cuda_kernel_call_t call = {.text = "fill",
                                   .label = label,
                                   .defines = cuda_word_type(size),
                                   .is_wide = cuda_is_wide(bytes / size),
                                   .pointer_count = 1,
                                   .pointers = {to},
                                   .number_count = 3,
                                   .numbers = {bytes / size},
                                   .threads = bytes / size,
                                   .block = BLOCK};
  return cuda_plan_kernel(plan, &call);
}
