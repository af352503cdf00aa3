// SPDX-License-Identifier: Apache-2.0
// What if one more operator were supported? For every operator outside of regions at a boundary, the rules
// run again as if it were supported, and the two plans are compared node by node.

#include <string.h>

#include "partition/report/boundary_report.h"

enum { MAX_CANDIDATES = 64 };

typedef struct candidate {
  const cleave_op_t *op;
  uint32_t edge_count;
  uint32_t first; /* edge at which it was found */
} candidate_t;

static int compare_candidates(const void *a, const void *b) {
  const candidate_t *x = a;
  const candidate_t *y = b;
  if (x->edge_count != y->edge_count) {
    return x->edge_count > y->edge_count ? -1 : 1;
  }
  return (x->first > y->first) - (x->first < y->first);
}

static int compare_what_ifs(const void *a, const void *b) {
  const cleave_what_if_t *x = a;
  const cleave_what_if_t *y = b;
  if (x->merged_count != y->merged_count) {
    return x->merged_count > y->merged_count ? -1 : 1;
  }
  if (x->bytes_less != y->bytes_less) {
    return x->bytes_less > y->bytes_less ? -1 : 1;
  }
  if (x->region_count != y->region_count) {
    return x->region_count < y->region_count ? -1 : 1;
  }
  int order = strcmp(x->op->name, y->op->name);
  return order != 0 ? order : strcmp(x->op->domain, y->op->domain);
}

/* Does the value cross between two parts of the plan, one of them a region? */
static bool crosses(const cleave_plan_t *plan, cleave_value_t value) {
  const cleave_graph_t *graph = plan->graph;
  cleave_node_t maker = cleave_value_producer(graph, value);
  if (!cleave_node_exists(maker)) {
    return false;
  }
  uint32_t region = plan->node_region[maker.index];
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t reader = cleave_use_node(graph, use);
    if (cleave_node_exists(reader) && plan->node_region[reader.index] != region) {
      return true;
    }
  }
  return false;
}

static double crossing_bytes(const cleave_plan_t *plan, uint32_t *out_unknown) {
  double total = 0.0;
  *out_unknown = 0;
  for (uint32_t v = 0; v < cleave_graph_value_bound(plan->graph); v++) {
    cleave_value_t value = {v};
    if (!cleave_graph_value(plan->graph, value)->is_removed && crosses(plan, value)) {
      double bytes = cleave_value_bytes(plan->graph, value);
      *out_unknown += bytes < 0.0;
      total += bytes > 0.0 ? bytes : 0.0;
    }
  }
  return total;
}

/* Counts the regions of `base` that share a region of `plan` with another region of `base`. */
static cleave_status_t count_merged(const cleave_plan_t *base, const cleave_plan_t *plan, uint32_t *out_count,
                                    cleave_error_t *error) {
  enum { NOBODY = 0, MANY = 1, FIRST = 2 };
  uint32_t *owners = cleave_allocate_zeroed((size_t)plan->region_count + 1, sizeof *owners);
  bool *merged = cleave_allocate_zeroed((size_t)base->region_count + 1, sizeof *merged);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(owners != NULL && merged != NULL, error);
  for (uint32_t r = 0; r < base->region_count; r++) {
    for (uint32_t k = 0; k < base->regions[r].node_count; k++) {
      uint32_t now = plan->node_region[base->regions[r].nodes[k].index];
      if (now != CLEAVE_INDEX_NONE) {
        owners[now] = owners[now] == NOBODY || owners[now] == FIRST + r ? FIRST + r : MANY;
      }
    }
  }
  *out_count = 0;
  for (uint32_t r = 0; r < base->region_count; r++) {
    for (uint32_t k = 0; k < base->regions[r].node_count && !merged[r]; k++) {
      uint32_t now = plan->node_region[base->regions[r].nodes[k].index];
      merged[r] = now != CLEAVE_INDEX_NONE && owners[now] == MANY;
    }
    *out_count += merged[r];
  }
cleanup:
  cleave_free(owners);
  cleave_free(merged);
  return status;
}

static uint32_t count_outside(const cleave_plan_t *plan, const cleave_op_t *op) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < plan->step_count; s++) {
    count +=
        plan->steps[s].region == CLEAVE_INDEX_NONE && cleave_node_op(plan->graph, plan->steps[s].node) == op;
  }
  return count;
}

static cleave_status_t try_operator(cleave_boundary_report_t *report, const cleave_op_t *op,
                                    const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                    const cleave_partition_options_t *options, cleave_error_t *error) {
  cleave_partition_options_t own = *options;
  cleave_plan_t *plan = NULL;
  uint32_t unknown = 0;
  cleave_what_if_t what_if = {.op = op, .node_count = count_outside(report->plan, op)};
  own.assume = op;
  own.max_notes = 1;
  CLEAVE_TRY(cleave_partition(report->plan->graph, rulesets, ruleset_count, &own, &plan, error));
  what_if.region_count = plan->region_count;
  what_if.bytes_less = report->bytes - crossing_bytes(plan, &unknown);
  cleave_status_t status = count_merged(report->plan, plan, &what_if.merged_count, error);
  cleave_plan_destroy(plan);
  if (status == CLEAVE_OK) {
    CLEAVE_ARRAY_PUSH(&report->what_ifs, what_if, error);
  }
  return status;
}

cleave_status_t cleave_boundary_report_assume(cleave_boundary_report_t *report,
                                              const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                              const cleave_partition_options_t *options,
                                              cleave_error_t *error) {
  CLEAVE_ARRAY(candidate_t) candidates = {0};
  cleave_status_t status = CLEAVE_OK;
  report->bytes = crossing_bytes(report->plan, &report->unknown_count);
  for (size_t e = 0; e < report->edges.count; e++) {
    const cleave_boundary_edge_t *edge = &report->edges.items[e];
    if (!cleave_node_exists(edge->outside) || edge->other != CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_op_t *op = cleave_node_op(report->plan->graph, edge->outside);
    size_t k = 0;
    while (k < candidates.count && candidates.items[k].op != op) {
      k++;
    }
    if (k == candidates.count) {
      CLEAVE_TRY_CLEANUP(cleave_array_reserve(&candidates, 1, error));
      cleave_array_push_reserved(&candidates, ((candidate_t){.op = op, .first = (uint32_t)e}));
    }
    candidates.items[k].edge_count++;
  }
  cleave_array_sort(&candidates, compare_candidates);
  for (size_t k = 0; k < candidates.count && k < MAX_CANDIDATES; k++) {
    CLEAVE_TRY_CLEANUP(try_operator(report, candidates.items[k].op, rulesets, ruleset_count, options, error));
  }
  cleave_array_sort(&report->what_ifs, compare_what_ifs);
cleanup:
  cleave_array_free(&candidates);
  return status;
}
