// SPDX-License-Identifier: Apache-2.0
// UnpackBits: numbers of 2, 4 or 8 bits, packed in bytes, as a byte each.
#include "cpu/common/loop.h"

enum { BLOCK = 64 /* rows at a time, so that what is written transposed lies side by side */ };

typedef struct unpack_state {
  int64_t axis;
  int64_t bits;
  int64_t count;
  bool is_signed;
  bool is_transposed;
} unpack_state_t;

typedef struct unpack_work {
  const unpack_state_t *state;
  const uint8_t *from;
  uint8_t *to;
  int64_t bytes; /* of a row */
  int64_t rows;  /* of a matrix */
  int64_t blocks;
} unpack_work_t;

static cleave_status_t prepare_unpack(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  unpack_state_t *state = opaque;
  *state = (unpack_state_t){.axis = cleave_view_int(prepare->node, "axis", 1),
                            .bits = cleave_view_int(prepare->node, "bits", 0),
                            .count = cleave_view_int(prepare->node, "count", 0),
                            .is_signed = cleave_view_int(prepare->node, "signed", 0) != 0,
                            .is_transposed = cleave_view_int(prepare->node, "transposed", 0) != 0};
  cleave_dtype_t wanted = state->is_signed ? CLEAVE_DTYPE_I8 : CLEAVE_DTYPE_U8;
  if (cpu_input_dtype(prepare, 0) != CLEAVE_DTYPE_U8 || cpu_output_dtype(prepare, 0) != wanted) {
    return cpu_fail_types(prepare, message);
  }
  if ((state->bits != 2 && state->bits != 4 && state->bits != 8) || state->count < 1) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "expected 2, 4 or 8 bits and a count, found %lld and %lld", (long long)state->bits,
                       (long long)state->count);
  }
  return CLEAVE_OK;
}

// Blocks of rows of all matrices.
static void unpack_blocks(void *opaque, int64_t begin, int64_t end) {
  const unpack_work_t *work = opaque;
  const unpack_state_t *state = work->state;
  const unsigned mask = (1U << state->bits) - 1U;
  const unsigned least = state->is_signed ? 1U << (state->bits - 1) : 0;
  const int64_t next = state->is_transposed ? work->rows : 1;     // number of a row
  const int64_t below = state->is_transposed ? 1 : state->count;  // row
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t matrix = unit / work->blocks;
    int64_t first = unit % work->blocks * BLOCK;
    int64_t last = first + BLOCK < work->rows ? first + BLOCK : work->rows;
    const uint8_t *from = work->from + matrix * work->rows * work->bytes;
    uint8_t *to = work->to + matrix * work->rows * state->count;
    for (int64_t k = 0; k < state->count; k++) {
      const uint8_t *byte = from + k * state->bits / 8;
      const unsigned shift = (unsigned)(k * state->bits % 8);
      for (int64_t row = first; row < last; row++) {
        to[k * next + row * below] = (uint8_t)(((unsigned)byte[row * work->bytes] >> shift & mask) - least);
      }
    }
  }
}

static cleave_status_t run_unpack(const cpu_call_t *call, cleave_message_t *message) {
  const unpack_state_t *state = call->state;
  const cpu_tensor_t *from = call->inputs[0];
  int64_t dims[CLEAVE_MAX_RANK];
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, from->rank, &axis, message));
  int64_t bytes = cpu_count(from->rank - axis, from->dims + axis);
  if ((state->count - 1) / (8 / state->bits) >= bytes) {
    return kernel_fail(
        message, CLEAVE_ERROR_SHAPE, "expected at most %lld numbers for each of %lld byte%s, found %lld",
        (long long)(8 / state->bits), (long long)bytes, KERNEL_PLURAL(bytes), (long long)state->count);
  }
  if (state->is_transposed && axis == 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "expected rows to transpose, found axis 0");
  }
  for (int32_t d = 0; d < axis; d++) {
    dims[d] = from->dims[d];
  }
  int64_t rows = axis > 0 ? dims[axis - 1] : 1;
  int64_t matrices = axis > 0 ? cpu_count(axis - 1, dims) : 1;
  dims[axis] = state->is_transposed ? rows : state->count;
  if (state->is_transposed) {
    dims[axis - 1] = state->count;
  }
  CPU_TRY(cpu_output_shape(call, 0, axis + 1, dims, message));
  unpack_work_t work = {.state = state,
                        .from = from->data,
                        .to = call->outputs[0]->data,
                        .bytes = bytes,
                        .rows = rows,
                        .blocks = (rows + BLOCK - 1) / BLOCK};
  cpu_parallel(call, matrices * work.blocks, CPU_WORK_GRAIN / BLOCK / state->count + 1, unpack_blocks, &work);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_unpack[] = {
    CPU_KERNEL("UnpackBits", 1, .domain = "cleave", .state_size = sizeof(unpack_state_t),
               .prepare = prepare_unpack, .run = run_unpack, .unaligned = 1),
    {0},
};
