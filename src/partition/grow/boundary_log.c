// SPDX-License-Identifier: Apache-2.0
// The log of stops: per node a list of entries, newest first, so that the last word of a rule is found first.

#include "partition/grow/boundary_log.h"

#include <string.h>

const char *cleave_stop_cause_name(cleave_stop_cause_t cause) {
  switch (cause) {
    case CLEAVE_STOP_MODEL: return "model";
    case CLEAVE_STOP_OPS: return "ops";
    case CLEAVE_STOP_SUPPORTED: return "supported";
    case CLEAVE_STOP_GROUP: return "group";
    case CLEAVE_STOP_BACKEND: return "backend";
    case CLEAVE_STOP_REGION: return "region";
    case CLEAVE_STOP_CYCLE: return "cycle";
    case CLEAVE_STOP_LIMIT: return "limit";
    case CLEAVE_STOP_SELECTOR: return "selector";
    case CLEAVE_STOP_FILTER: return "filter";
    case CLEAVE_STOP_REVIEW: return "review";
    case CLEAVE_STOP_THRESHOLD: return "threshold";
    case CLEAVE_STOP_CALLER: return "left out";
    case CLEAVE_STOP_STAGE: return "stage";
    case CLEAVE_STOP_NO_RULE: return "no rule";
  }
  return "unknown";
}

cleave_status_t cleave_boundary_log_create(const cleave_graph_t *graph, cleave_boundary_log_t **out_log,
                                           cleave_error_t *error) {
  size_t bound = (size_t)cleave_graph_node_bound(graph) + 1;
  cleave_boundary_log_t *log = cleave_allocate_zeroed(1, sizeof *log);
  CLEAVE_TRY_MEMORY(log, error);
  log->first = cleave_allocate(bound, sizeof *log->first);
  if (log->first == NULL) {
    cleave_free(log);
    return cleave_error_out_of_memory(error);
  }
  memset(log->first, 0xff, bound * sizeof *log->first);
  *out_log = log;
  return CLEAVE_OK;
}

void cleave_boundary_log_destroy(cleave_boundary_log_t *log) {
  if (log == NULL) {
    return;
  }
  cleave_arena_deinit(&log->arena);
  cleave_free(log->first);
  cleave_array_free(&log->stops);
  cleave_array_free(&log->cuts);
  cleave_free(log);
}

cleave_status_t cleave_boundary_log_stop(cleave_boundary_log_t *log, cleave_node_t node, uint32_t rule,
                                         cleave_stop_cause_t cause, const char *text, cleave_error_t *error) {
  if (log == NULL) {
    return CLEAVE_OK;
  }
  cleave_stop_t stop = {cause, rule, log->first[node.index],
                        cleave_arena_copy_text(&log->arena, text, strlen(text))};
  CLEAVE_TRY_MEMORY(stop.text, error);
  uint32_t index = (uint32_t)log->stops.count;
  CLEAVE_ARRAY_PUSH(&log->stops, stop, error);
  log->first[node.index] = index;
  return CLEAVE_OK;
}

cleave_status_t cleave_boundary_log_cut(cleave_boundary_log_t *log, const cleave_cut_t *cut,
                                        cleave_error_t *error) {
  if (log != NULL) {
    CLEAVE_ARRAY_PUSH(&log->cuts, *cut, error);
  }
  return CLEAVE_OK;
}

const cleave_stop_t *cleave_boundary_log_find(const cleave_boundary_log_t *log, cleave_node_t node,
                                              uint32_t rule) {
  for (uint32_t k = log->first[node.index]; k != CLEAVE_INDEX_NONE; k = log->stops.items[k].next) {
    const cleave_stop_t *stop = &log->stops.items[k];
    if (rule == CLEAVE_INDEX_NONE || stop->rule == rule) {
      return stop;
    }
  }
  return NULL;
}
