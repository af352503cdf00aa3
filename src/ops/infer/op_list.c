// SPDX-License-Identifier: Apache-2.0
// The lines of op_list.inc as data: the only place where operators meet their functions.

#include "ops/context/infer_context.h"
#include "ops/schema.h"

/* Flags as the list writes them. */
enum {
  NONE = 0,
  COMMUTATIVE = CLEAVE_OP_COMMUTATIVE,
  POINTWISE = CLEAVE_OP_POINTWISE,
  VIEW = CLEAVE_OP_VIEW,
  RANDOM = CLEAVE_OP_RANDOM,
  DATA_SHAPE = CLEAVE_OP_DATA_SHAPE,
  SPATIAL = CLEAVE_OP_SPATIAL
};

const cleave_op_line_t cleave_op_lines[CLEAVE_OP_COUNT] = {
#define CLEAVE_OP(name, domain, since, inputs, outputs, attributes, infer, flops, flags) \
  {#name, domain, since, inputs, outputs, attributes, cleave_infer_##infer, cleave_flops_##flops, flags},
#include "ops/op_list.inc"
#undef CLEAVE_OP
};
