/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operators as it is built once from op_list.inc. Private to src/ops; all else uses ops.h.
 */
#ifndef CLEAVE_OPS_SCHEMA_H
#define CLEAVE_OPS_SCHEMA_H

#include "ops/ops.h"

/* One line of op_list.inc. */
typedef struct cleave_op_line {
  const char *name;
  const char *domain;
  int32_t since_version;
  const char *inputs;
  const char *outputs;
  const char *attributes;
  cleave_status_t (*infer)(cleave_infer_t *infer, cleave_error_t *error);
  double (*flops)(const cleave_graph_t *graph, uint32_t node);
  uint32_t flags;
} cleave_op_line_t;

/* The lines of op_list.inc, by id. */
extern const cleave_op_line_t cleave_op_lines[CLEAVE_OP_COUNT];

/* The table, parsed on the first call; thread-safe. CLEAVE_OP_COUNT entries, by id. Allocates nothing: the
 * pools behind it are static, and the list is small enough for them (a unit test says so). */
const cleave_op_t *cleave_op_table(void);

#endif /* CLEAVE_OPS_SCHEMA_H */
