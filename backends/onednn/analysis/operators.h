// SPDX-License-Identifier: Apache-2.0
/*
 * The operators that are a primitive or a view of their own. Pointwise ones are in pointwise.h.
 */
#ifndef ONEDNN_OPERATORS_H
#define ONEDNN_OPERATORS_H

#include "onednn/units/unit.h"

typedef struct onednn_operator {
  const char *name;
  onednn_kind_t kind;
  bool takes_posts;
  bool moves; /* elements as they are, of any type */
  /* Refuses what the primitive cannot do; fills the fields of its kind. NULL: nothing to check. */
  cleave_status_t (*check)(const onednn_analysis_t *analysis, const cleave_node_view_t *node,
                           onednn_kernel_t *kernel);
} onednn_operator_t;

/* The entry, or NULL for an operator the backend does not know. */
const onednn_operator_t *onednn_operator_find(const char *name);

#endif /* ONEDNN_OPERATORS_H */
