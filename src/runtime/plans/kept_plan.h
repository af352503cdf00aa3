// SPDX-License-Identifier: Apache-2.0
/*
 * Plans that are kept in the folder of compiled regions (backend/program/blob_store.h), so that a process
 * that runs the same rules over the same graph as one before runs no Lua. Only for rule files that come with
 * cleave: everything that they can look at is part of what a plan is known by. A kept plan is read, checked
 * and shown to its backends like one that people saved; if anything about it is wrong, the rules run.
 */
#ifndef CLEAVE_RUNTIME_PLANS_KEPT_PLAN_H
#define CLEAVE_RUNTIME_PLANS_KEPT_PLAN_H

#include "runtime/model/rule_list.h"

typedef struct cleave_plan_keeping {
  const char *folder; /* NULL: nothing is kept */
  uint64_t limit;     /* of the folder, in bytes; 0: CLEAVE_BLOB_LIMIT */
  bool was_kept;      /* out: the plan is one that was kept */
} cleave_plan_keeping_t;

/* cleave_graph_partition, or what it would give: counts of rules that did nothing are those of the run that
 * was kept, and there are no times by rule. Nothing is wrong with a folder that cannot be used. */
CLEAVE_STATUS cleave_graph_partition_kept(const cleave_graph_t *graph,
                                          const cleave_partition_request_t *request,
                                          const cleave_rule_list_options_t *options,
                                          cleave_plan_keeping_t *keeping, cleave_plan_t **out_plan,
                                          double *out_script_ms, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_PLANS_KEPT_PLAN_H */
