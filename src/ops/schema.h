// SPDX-License-Identifier: Apache-2.0
/* The table of operators as it is built once from op_list.inc. Private to src/ops; all else uses ops.h. */
#ifndef CLEAVE_OPS_SCHEMA_H
#define CLEAVE_OPS_SCHEMA_H

#include "ops/ops.h"

/* The table, parsed on the first call; thread-safe. CLEAVE_OP_COUNT entries, by id. Allocates nothing: the
 * pools behind it are static, and the list is small enough for them (a unit test says so). */
const cleave_op_t *cleave_op_table(void);

#endif /* CLEAVE_OPS_SCHEMA_H */
