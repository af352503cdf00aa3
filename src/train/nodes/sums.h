// SPDX-License-Identifier: Apache-2.0
/* The loss, running statistics and gradients are summed over processes between backward and update. */
#ifndef CLEAVE_TRAIN_NODES_SUMS_H
#define CLEAVE_TRAIN_NODES_SUMS_H

#include "distributed/exchange.h"
#include "train/nodes/update.h"

typedef struct cleave_train_sum {
  cleave_value_t before; /* of this process: made by a node, and read by nothing but the one of `after` */
  cleave_value_t after;  /* the sum: made by an Identity, which no part of the step runs */
} cleave_train_sum_t;

typedef struct cleave_train_sums {
  int32_t processes;
  cleave_exchange_t *exchange; /* gets an item for each sum */
  /* replaced by sums, which the rest of the graph is to read: */
  cleave_value_t *loss;
  cleave_value_t *norms; /* means over the processes */
  size_t norm_count;
  cleave_train_weight_t *weights; /* their gradients */
  size_t weight_count;
  /* made here: */
  uint32_t *buckets; /* by weight: of its gradient */
  CLEAVE_ARRAY(cleave_train_sum_t) items;
} cleave_train_sums_t;

/* Adds the sums: loss and statistics first, then the gradients as backward finishes them, that is those of
 * weights which forward reads last first. */
CLEAVE_MUST_USE cleave_status_t cleave_train_add_sums(cleave_graph_t *graph, cleave_train_sums_t *sums,
                                                      cleave_error_t *error);

#endif /* CLEAVE_TRAIN_NODES_SUMS_H */
