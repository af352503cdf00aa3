// SPDX-License-Identifier: Apache-2.0
// The driver's state: creation and destruction, notes, and a cache of what backends answered about single
// nodes.

#include "partition/grow/partitioner.h"
#include "partition/pattern/pattern_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_NOTES 10000

enum { ANSWER_UNKNOWN = 0, ANSWER_YES = 1, ANSWER_NO = 2 };

cleave_status_t cleave_partitioner_create(const cleave_graph_t *graph,
                                          const cleave_partition_options_t *options,
                                          cleave_partitioner_t **out_partitioner, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_partitioner_t *partitioner = cleave_allocate_zeroed(1, sizeof *partitioner);
  CLEAVE_TRY_MEMORY(partitioner, error);
  partitioner->graph = graph;
  partitioner->options = options;
  partitioner->max_notes =
      options != NULL && options->max_notes != 0 ? options->max_notes : DEFAULT_MAX_NOTES;
  CLEAVE_TRY_CLEANUP(cleave_contraction_create(graph, &partitioner->contraction, error));
  size_t slots = (size_t)partitioner->contraction->node_count + 1;
  partitioner->plan = cleave_allocate_zeroed(1, sizeof *partitioner->plan);
  partitioner->states = cleave_allocate_zeroed(slots, sizeof *partitioner->states);
  partitioner->fusion_of = cleave_allocate(slots, sizeof *partitioner->fusion_of);
  partitioner->region_of = cleave_allocate(slots, sizeof *partitioner->region_of);
  partitioner->value_marks =
      cleave_allocate_zeroed((size_t)cleave_graph_value_bound(graph) + 1, sizeof *partitioner->value_marks);
  CLEAVE_TRY_MEMORY_CLEANUP(partitioner->plan != NULL && partitioner->states != NULL &&
                                partitioner->fusion_of != NULL && partitioner->region_of != NULL &&
                                partitioner->value_marks != NULL,
                            error);
  memset(partitioner->fusion_of, 0xff, slots * sizeof *partitioner->fusion_of);
  memset(partitioner->region_of, 0xff, slots * sizeof *partitioner->region_of);
  partitioner->plan->source = graph;
  partitioner->plan->graph = graph;
  *out_partitioner = partitioner;
  partitioner = NULL;
cleanup:
  cleave_partitioner_destroy(partitioner);
  return status;
}

void cleave_partitioner_destroy(cleave_partitioner_t *partitioner) {
  if (partitioner == NULL) {
    return;
  }
  cleave_contraction_destroy(partitioner->contraction);
  cleave_matcher_destroy(partitioner->matcher);
  cleave_plan_destroy(partitioner->plan);
  cleave_free(partitioner->states);
  cleave_free(partitioner->fusion_of);
  cleave_free(partitioner->region_of);
  cleave_free(partitioner->stages);
  cleave_free(partitioner->value_marks);
  cleave_array_free(&partitioner->fusions);
  cleave_array_free(&partitioner->fusion_nodes);
  cleave_array_free(&partitioner->fusion_labels);
  cleave_array_free(&partitioner->regions);
  cleave_array_free(&partitioner->region_nodes);
  cleave_array_free(&partitioner->notes);
  cleave_array_free(&partitioner->inputs);
  cleave_array_free(&partitioner->outputs);
  cleave_array_free(&partitioner->scratch);
  cleave_free(partitioner->set_numbers);
  cleave_free(partitioner->set_parents);
  cleave_free(partitioner->set_levels);
  cleave_free(partitioner->set_marks);
  while (partitioner->support != NULL) {
    cleave_support_cache_t *next = partitioner->support->next;
    cleave_free(partitioner->support->answers);
    cleave_free(partitioner->support);
    partitioner->support = next;
  }
  cleave_free(partitioner);
}

cleave_status_t cleave_partitioner_note(cleave_partitioner_t *partitioner, cleave_plan_note_kind_t kind,
                                        uint32_t position, uint32_t rule, cleave_error_t *error,
                                        const char *format, ...) {
  if (partitioner->notes.count >= partitioner->max_notes) {
    return CLEAVE_OK;
  }
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t kept = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
  cleave_plan_note_t note = {kind, partitioner->contraction->nodes[position], rule,
                             cleave_arena_copy_text(&partitioner->plan->arena, text, kept)};
  CLEAVE_TRY_MEMORY(note.reason, error);
  CLEAVE_ARRAY_PUSH(&partitioner->notes, note, error);
  return CLEAVE_OK;
}

const char *cleave_partitioner_label(const cleave_partitioner_t *partitioner, uint32_t position, char *buffer,
                                     size_t size) {
  return cleave_node_label(partitioner->graph, partitioner->contraction->nodes[position], buffer, size);
}

static cleave_status_t find_cache(cleave_partitioner_t *partitioner, const char *backend,
                                  cleave_support_cache_t **out_cache, cleave_error_t *error) {
  for (cleave_support_cache_t *cache = partitioner->support; cache != NULL; cache = cache->next) {
    if (strcmp(cache->backend, backend) == 0) {
      *out_cache = cache;
      return CLEAVE_OK;
    }
  }
  cleave_support_cache_t *cache = cleave_allocate_zeroed(1, sizeof *cache);
  CLEAVE_TRY_MEMORY(cache, error);
  cache->backend = backend;
  cache->answers = cleave_allocate_zeroed((size_t)partitioner->contraction->node_count + 1, 1);
  if (cache->answers == NULL) {
    cleave_free(cache);
    return cleave_error_out_of_memory(error);
  }
  cache->next = partitioner->support;
  partitioner->support = cache;
  *out_cache = cache;
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_stop(cleave_partitioner_t *partitioner, uint32_t position, uint32_t rule,
                                        cleave_stop_cause_t cause, const char *text, cleave_error_t *error) {
  if (partitioner->options == NULL || partitioner->options->log == NULL) {
    return CLEAVE_OK;
  }
  return cleave_boundary_log_stop(partitioner->options->log, partitioner->contraction->nodes[position], rule,
                                  cause, text, error);
}

cleave_status_t cleave_partitioner_stop_taken(cleave_partitioner_t *partitioner, uint32_t position,
                                              uint32_t rule, cleave_error_t *error) {
  bool in_region = partitioner->states[position] == CLEAVE_NODE_TAKEN;
  return cleave_partitioner_stop(partitioner, position, rule, CLEAVE_STOP_REGION,
                                 in_region ? "in a region already" : "in a fusion already", error);
}

bool cleave_partitioner_assumes(const cleave_partitioner_t *partitioner, uint32_t position) {
  const cleave_op_t *assumed = partitioner->options == NULL ? NULL : partitioner->options->assume;
  return assumed != NULL &&
         cleave_pattern_same_op(
             assumed, cleave_node_op(partitioner->graph, partitioner->contraction->nodes[position]));
}

/* Logs a refusal by the backend, new (with `text`) or known: each rule that asks gets an entry. */
static cleave_status_t log_refusal(cleave_partitioner_t *partitioner, uint32_t position, uint32_t rule,
                                   const char *text, cleave_error_t *error) {
  const cleave_boundary_log_t *log = partitioner->options->log;
  const char *backend = partitioner->ruleset->backend;
  if (log == NULL) {
    return CLEAVE_OK;
  }
  uint32_t node = partitioner->contraction->nodes[position].index;
  for (uint32_t k = log->first[node]; text == NULL && k != CLEAVE_INDEX_NONE; k = log->stops.items[k].next) {
    const cleave_stop_t *stop = &log->stops.items[k];
    if (stop->cause == CLEAVE_STOP_BACKEND &&
        strcmp(partitioner->plan->rules[stop->rule].backend, backend) == 0) {
      text = stop->rule == rule ? "" : stop->text;
    }
  }
  return text == NULL || text[0] == '\0'
             ? CLEAVE_OK
             : cleave_partitioner_stop(partitioner, position, rule, CLEAVE_STOP_BACKEND, text, error);
}

bool cleave_partitioner_allows(const cleave_partitioner_t *partitioner, uint32_t rule,
                               const cleave_node_t *nodes, uint32_t count) {
  const cleave_partition_options_t *options = partitioner->options;
  return options == NULL || options->allow == NULL ||
         options->allow(options->allow_context, partitioner->graph, &partitioner->plan->rules[rule], nodes,
                        count);
}

cleave_status_t cleave_partitioner_supports_fusion(const cleave_partitioner_t *partitioner,
                                                   const cleave_fusion_set_t *set, bool *out_yes,
                                                   cleave_reason_t *reason, cleave_error_t *error) {
  const cleave_partition_options_t *options = partitioner->options;
  *out_yes = true;
  return options == NULL || options->supports == NULL
             ? CLEAVE_OK
             : options->supports(options->backend_context, partitioner->ruleset->backend, partitioner->graph,
                                 set, out_yes, reason, error);
}

cleave_status_t cleave_partitioner_supports_node(cleave_partitioner_t *partitioner, uint32_t position,
                                                 uint32_t rule, bool *out_yes, cleave_error_t *error) {
  const cleave_partition_options_t *options = partitioner->options;
  *out_yes = true;
  if (options == NULL || options->supports == NULL || cleave_partitioner_assumes(partitioner, position)) {
    return CLEAVE_OK;
  }
  const char *backend = partitioner->ruleset->backend;
  cleave_support_cache_t *cache = NULL;
  CLEAVE_TRY(find_cache(partitioner, backend, &cache, error));
  if (cache->answers[position] == ANSWER_UNKNOWN) {
    cleave_reason_t reason = {""};
    cleave_fusion_set_t set = {
        .rule = "", .nodes = &partitioner->contraction->nodes[position], .node_count = 1};
    CLEAVE_TRY(options->supports(options->backend_context, backend, partitioner->graph, &set, out_yes,
                                 &reason, error));
    cache->answers[position] = *out_yes ? ANSWER_YES : ANSWER_NO;
    if (!*out_yes) {
      const char *text = reason.text[0] == '\0' ? "not supported" : reason.text;
      CLEAVE_TRY(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_BACKEND, position, rule, error,
                                         "%s: %s", backend, text));
      return log_refusal(partitioner, position, rule, text, error);
    }
  }
  *out_yes = cache->answers[position] == ANSWER_YES;
  return *out_yes ? CLEAVE_OK : log_refusal(partitioner, position, rule, NULL, error);
}
