// SPDX-License-Identifier: Apache-2.0
// Layouts by the one flag of spatial operators, and the names of their ports.
#include "ops/layout.h"

#include <string.h>

#include "ops/ops.h"

enum { MIN_RANK = 3, MAX_RANK = 5 };

static const char *spatial(const char *const names[MAX_RANK - MIN_RANK + 1], int32_t rank) {
  return rank < MIN_RANK || rank > MAX_RANK ? NULL : names[rank - MIN_RANK];
}

static const char *data_layout(int32_t rank) {
  static const char *const names[] = {"NCW", "NCHW", "NCDHW"};
  return spatial(names, rank);
}

const char *cleave_op_input_layout(const cleave_op_t *op, uint32_t input, int32_t rank) {
  static const char *const weights[] = {"OIW", "OIHW", "OIDHW"};
  static const char *const transposed[] = {"IOW", "IOHW", "IODHW"};
  if ((op->flags & CLEAVE_OP_SPATIAL) == 0 || input >= op->input_count) {
    return NULL;
  }
  if (input == 0) {
    return data_layout(rank);
  }
  if (strcmp(op->inputs[input].name, "W") != 0 && strcmp(op->inputs[input].name, "w") != 0) {
    return NULL;
  }
  return spatial(op->id == CLEAVE_OP_ConvTranspose ? transposed : weights, rank);
}

const char *cleave_op_output_layout(const cleave_op_t *op, uint32_t output, int32_t rank) {
  return (op->flags & CLEAVE_OP_SPATIAL) != 0 && output == 0 ? data_layout(rank) : NULL;
}
