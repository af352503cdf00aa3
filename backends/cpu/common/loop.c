// SPDX-License-Identifier: Apache-2.0
// Strided loops. Work is counted in units: one row, or a piece of one if rows are long. A thread decodes
// the position of its first unit and then counts on like an odometer.
#include "cpu/common/loop.h"

#include <string.h>

void cpu_dense_strides(int32_t rank, const int64_t *dims, size_t element_size, int64_t *out_strides) {
  int64_t stride = (int64_t)element_size;
  for (int32_t d = rank - 1; d >= 0; d--) {
    out_strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
}

int64_t cpu_count(int32_t rank, const int64_t *dims) {
  int64_t count = 1;
  for (int32_t d = 0; d < rank; d++) {
    count *= dims[d];
  }
  return count;
}

cleave_status_t cpu_broadcast_shape(const cpu_tensor_t *const *inputs, uint32_t count, int32_t *out_rank,
                                    int64_t *out_dims, cleave_message_t *message) {
  int32_t rank = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (inputs[k] != NULL && inputs[k]->rank > rank) {
      rank = inputs[k]->rank;
    }
  }
  for (int32_t d = 0; d < rank; d++) {
    out_dims[d] = 1;
  }
  for (uint32_t k = 0; k < count; k++) {
    for (int32_t d = 0; inputs[k] != NULL && d < inputs[k]->rank; d++) {
      int64_t *dim = &out_dims[d + rank - inputs[k]->rank];
      int64_t own = inputs[k]->dims[d];
      if (own != 1 && *dim != 1 && own != *dim) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                           "input %u does not broadcast: dim %d is %lld, expected %lld", (unsigned)k, (int)d,
                           (long long)own, (long long)*dim);
      }
      *dim = own != 1 ? own : *dim;
    }
  }
  *out_rank = rank;
  return CLEAVE_OK;
}

void cpu_loop_broadcast(cpu_loop_t *loop, const cpu_tensor_t *output, const cpu_tensor_t *const *inputs,
                        uint32_t count) {
  *loop = (cpu_loop_t){.rank = output->rank, .operand_count = (int32_t)count + 1};
  memcpy(loop->dims, output->dims, sizeof output->dims);
  cpu_dense_strides(output->rank, output->dims, cleave_dtype_size(output->dtype), loop->strides[0]);
  loop->bases[0] = output->data;
  for (uint32_t k = 0; k < count; k++) {
    const cpu_tensor_t *input = inputs[k];
    int64_t strides[CLEAVE_MAX_RANK];
    cpu_dense_strides(input->rank, input->dims, cleave_dtype_size(input->dtype), strides);
    int32_t shift = output->rank - input->rank;
    for (int32_t d = 0; d < input->rank; d++) {
      loop->strides[k + 1][d + shift] = input->dims[d] == 1 ? 0 : strides[d];
    }
    loop->bases[k + 1] = input->data;
  }
}

void cpu_loop_merge(cpu_loop_t *loop) {
  int32_t rank = 0;
  for (int32_t d = 0; d < loop->rank; d++) {
    if (loop->dims[d] == 1) {
      continue;
    }
    bool mergeable = rank > 0;
    for (int32_t k = 0; k < loop->operand_count && mergeable; k++) {
      mergeable = loop->strides[k][rank - 1] == loop->strides[k][d] * loop->dims[d];
    }
    int32_t to = mergeable ? rank - 1 : rank;
    loop->dims[to] = mergeable ? loop->dims[to] * loop->dims[d] : loop->dims[d];
    for (int32_t k = 0; k < loop->operand_count; k++) {
      loop->strides[k][to] = loop->strides[k][d];
    }
    rank = to + 1;
  }
  loop->rank = rank;
}

typedef struct row_work {
  const cpu_loop_t *loop;
  cpu_row_fn_t row;
  void *context;
  int32_t outer_rank;
  int64_t row_length;
  int64_t piece; /* elements of a row per unit */
  int64_t pieces_per_row;
  int64_t row_strides[CPU_MAX_OPERANDS];
} row_work_t;

static void run_units(void *context, int64_t begin, int64_t end) {
  const row_work_t *work = context;
  const cpu_loop_t *loop = work->loop;
  int64_t index[CPU_LOOP_RANK] = {0};
  unsigned char *rows[CPU_MAX_OPERANDS] = {0};
  unsigned char *pointers[CPU_MAX_OPERANDS] = {0};
  int32_t operands = loop->operand_count;
  int64_t piece = begin % work->pieces_per_row;
  int64_t rest = begin / work->pieces_per_row;
  for (int32_t k = 0; k < operands; k++) {
    rows[k] = loop->bases[k];
  }
  for (int32_t d = work->outer_rank - 1; d >= 0; d--) {
    index[d] = rest % loop->dims[d];
    rest /= loop->dims[d];
    for (int32_t k = 0; k < operands; k++) {
      rows[k] += index[d] * loop->strides[k][d];
    }
  }
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t start = piece * work->piece;
    int64_t count = work->row_length - start < work->piece ? work->row_length - start : work->piece;
    for (int32_t k = 0; k < operands; k++) {
      pointers[k] = rows[k] + start * work->row_strides[k];
    }
    work->row(work->context, pointers, work->row_strides, count);
    if (++piece < work->pieces_per_row) {
      continue;
    }
    piece = 0;
    for (int32_t d = work->outer_rank - 1; d >= 0; d--) {
      if (++index[d] < loop->dims[d]) {
        for (int32_t k = 0; k < operands; k++) {
          rows[k] += loop->strides[k][d];
        }
        break;
      }
      index[d] = 0;
      for (int32_t k = 0; k < operands; k++) {
        rows[k] -= (loop->dims[d] - 1) * loop->strides[k][d];
      }
    }
  }
}

static bool is_empty(const cpu_loop_t *loop) {
  for (int32_t d = 0; d < loop->rank; d++) {
    if (loop->dims[d] <= 0) {
      return true;
    }
  }
  return false;
}

void cpu_loop_run(const cpu_call_t *call, cpu_loop_t *loop, cpu_row_fn_t row, void *context, int64_t cost) {
  if (is_empty(loop)) {
    return;
  }
  cpu_loop_merge(loop);
  row_work_t work = {.loop = loop, .row = row, .context = context};
  work.outer_rank = loop->rank > 0 ? loop->rank - 1 : 0;
  work.row_length = loop->rank > 0 ? loop->dims[loop->rank - 1] : 1;
  for (int32_t k = 0; k < loop->operand_count; k++) {
    work.row_strides[k] = loop->rank > 0 ? loop->strides[k][loop->rank - 1] : 0;
  }
  int64_t grain = CPU_WORK_GRAIN / (cost < 1 ? 1 : cost > 4096 ? 4096 : cost);
  work.piece = work.row_length > 2 * grain ? grain : work.row_length;
  work.pieces_per_row = (work.row_length + work.piece - 1) / work.piece;
  int64_t units = cpu_count(work.outer_rank, loop->dims) * work.pieces_per_row;
  cpu_parallel(call, units, grain / work.piece + 1, run_units, &work);
}
