// SPDX-License-Identifier: Apache-2.0
// Region rules of libraries. While the rule works there is one view of the whole graph, with node
// numbers in topological order, and what `supported` said of all nodes at once. Nothing that a library
// answers is taken as it is: groups, verdicts and names of attributes are checked.
#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate.h"
#include "backend/region/view.h"
#include "backend/registry/registry_entry.h"
#include "graph/order.h"

enum { ATTRIBUTE_LIMIT = 256, ATTRIBUTE_NAME_LIMIT = 63, ATTRIBUTE_TEXT_LIMIT = 65536 };

#define NOT_SUPPORTED ((int64_t)-2)

typedef struct work {
  cleave_library_rule_t rule;
  const cleave_named_rule_use_t *use;
  const cleave_graph_t *graph;
  cleave_view_builder_t builder; /* of the graph's view, and of proposals */
  cleave_arena_t arena;          /* of the graph's view */
  cleave_arena_t scratch;        /* of a proposal's */
  cleave_node_t *order;
  uint32_t *numbers; /* by node: its number in the view */
  cleave_view_t view;
  int64_t *groups; /* by number; NULL with a selector */
  void *state;     /* of the library */
  bool has_begun;
  bool is_over; /* the process is lost, and `cpu` takes over: nothing more is found */
} work_t;

/* ---- the rule at work ---- */

static void destroy(work_t *work) {
  if (work->has_begun && work->rule.partitioner->begin != NULL) {
    work->rule.partitioner->end(work->state);
  }
  cleave_library_rule_leave(&work->rule);
  cleave_view_builder_deinit(&work->builder);
  cleave_arena_deinit(&work->arena);
  cleave_arena_deinit(&work->scratch);
  cleave_free(work->order);
  cleave_free(work->numbers);
  cleave_free(work->groups);
  cleave_free(work);
}

static cleave_status_t view_graph(work_t *work, cleave_error_t *error) {
  size_t count = work->graph->live_node_count;
  work->order = cleave_allocate(count, sizeof *work->order);
  work->numbers = cleave_allocate(cleave_graph_node_bound(work->graph), sizeof *work->numbers);
  CLEAVE_TRY_MEMORY(work->order != NULL && work->numbers != NULL, error);
  CLEAVE_TRY(cleave_graph_topological_order(work->graph, work->order, NULL, error));
  for (size_t k = 0; k < count; k++) {
    work->numbers[work->order[k].index] = (uint32_t)k;
  }
  cleave_view_request_t request = {.nodes = work->order, .node_count = (uint32_t)count};
  return cleave_view_build(&work->builder, &request, &work->arena, &work->view, error);
}

/* ---- libraries in processes of their own ---- */

/* A lost process ends the partitioning, unless `cpu` is to take over: then the rule finds no more. */
static cleave_status_t fail(work_t *work, const char *function, cleave_status_t status,
                            cleave_message_t *message, cleave_error_t *error) {
  bool falls_back = false;
  if (cleave_registry_is_lost(work->rule.library, &falls_back) && falls_back) {
    work->is_over = true;
    return CLEAVE_OK;
  }
  return cleave_library_rule_fail(&work->rule, work->use, function, status, message, error);
}

/* A function that cannot fail says no if its process is lost: fails if that is so. */
static cleave_status_t check_lost(work_t *work, const char *function, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  return work->rule.library->isolate == NULL || work->is_over ||
                 !cleave_isolate_partitioner_is_lost(work->state, &message)
             ? CLEAVE_OK
             : fail(work, function, CLEAVE_ERROR_BACKEND, &message, error);
}

static cleave_status_t call_begin(work_t *work, cleave_error_t *error) {
  const cleave_custom_partitioner_t *partitioner = work->rule.partitioner;
  cleave_message_t message = {.text = ""};
  work->state = partitioner->self;
  if (partitioner->begin != NULL) {
    cleave_status_t status = partitioner->begin(partitioner->self, &work->view.region, work->use->options,
                                                work->use->option_count, &work->state, &message);
    if (status != CLEAVE_OK) {
      return fail(work, "begin", status, &message, error);
    }
  }
  work->has_begun = true;
  return CLEAVE_OK;
}

/* ---- what it says before ---- */

static cleave_status_t ask_supported(work_t *work, cleave_error_t *error) {
  const cleave_custom_partitioner_t *partitioner = work->rule.partitioner;
  uint32_t count = work->view.region.node_count;
  cleave_message_t message = {.text = ""};
  if (partitioner->supported == NULL) {
    return CLEAVE_OK;
  }
  work->groups = cleave_allocate(count, sizeof *work->groups);
  CLEAVE_TRY_MEMORY(work->groups, error);
  for (uint32_t k = 0; k < count; k++) {
    work->groups[k] = NOT_SUPPORTED;
  }
  cleave_status_t status = work->is_over
                               ? CLEAVE_OK
                               : partitioner->supported(work->state, &work->view.region, work->use->options,
                                                        work->use->option_count, work->groups, &message);
  if (status != CLEAVE_OK) {
    return fail(work, "supported", status, &message, error);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (work->groups[k] < NOT_SUPPORTED) {
      char label[128];
      (void)snprintf(message.text, sizeof message.text,
                     "node '%.100s' has group %lld, expected -2 (no), -1 (any) or a group from 0",
                     cleave_node_label(work->graph, work->order[k], label, sizeof label),
                     (long long)work->groups[k]);
      return cleave_library_rule_fail(&work->rule, work->use, "supported", CLEAVE_ERROR_BACKEND, &message,
                                      error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t begin(void *context, const cleave_graph_t *graph, cleave_error_t *error) {
  cleave_named_rule_use_t *use = context;
  work_t *work = cleave_allocate_zeroed(1, sizeof *work);
  CLEAVE_TRY_MEMORY(work, error);
  work->use = use;
  work->graph = graph;
  cleave_view_builder_init(&work->builder, graph);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_library_rule_enter(CLEAVE_RULE_REGION, use, &work->rule, error));
  CLEAVE_TRY_CLEANUP(view_graph(work, error));
  CLEAVE_TRY_CLEANUP(call_begin(work, error));
  CLEAVE_TRY_CLEANUP(ask_supported(work, error));
  use->work = work;
cleanup:
  if (status != CLEAVE_OK) {
    destroy(work);
  }
  return status;
}

static void end(void *context) {
  cleave_named_rule_use_t *use = context;
  destroy(use->work);
  use->work = NULL;
}

/* ---- supported ---- */

static cleave_status_t supported(void *context, const cleave_graph_t *graph, cleave_node_t node,
                                 int64_t *out_group, cleave_error_t *error) {
  const work_t *work = ((const cleave_named_rule_use_t *)context)->work;
  (void)graph;
  (void)error;
  int64_t group = work->groups == NULL ? NOT_SUPPORTED : work->groups[work->numbers[node.index]];
  *out_group = group == NOT_SUPPORTED ? CLEAVE_GROUP_NONE : group;
  return CLEAVE_OK;
}

/* ---- the selector ---- */

typedef struct selector {
  work_t *work;
  void *own; /* the library's */
} selector_t;

static cleave_status_t selector_create(void *context, const cleave_graph_t *graph, void **out_selector,
                                       cleave_error_t *error) {
  work_t *work = ((const cleave_named_rule_use_t *)context)->work;
  cleave_message_t message = {.text = ""};
  (void)graph;
  selector_t *selector = cleave_allocate_zeroed(1, sizeof *selector);
  CLEAVE_TRY_MEMORY(selector, error);
  selector->work = work;
  cleave_status_t status = work->is_over ? CLEAVE_OK
                                         : work->rule.partitioner->create_selector(
                                               work->state, &work->view.region, work->use->options,
                                               work->use->option_count, &selector->own, &message);
  if (status != CLEAVE_OK) {
    selector->own = NULL;
    status = fail(work, "create_selector", status, &message, error);
  }
  CLEAVE_TRY_OR(status, cleave_free(selector));
  *out_selector = selector;
  return CLEAVE_OK;
}

static void selector_destroy(void *context, void *memory) {
  selector_t *selector = memory;
  (void)context;
  if (!selector->work->is_over || selector->own != NULL) {
    selector->work->rule.partitioner->destroy_selector(selector->own);
  }
  cleave_free(selector);
}

static cleave_status_t selector_select(void *memory, cleave_node_t node, bool *out_yes,
                                       cleave_error_t *error) {
  const selector_t *selector = memory;
  work_t *work = selector->work;
  *out_yes = !work->is_over && work->rule.partitioner->select(selector->own, work->numbers[node.index]);
  return check_lost(work, "select", error);
}

static cleave_status_t selector_select_input(void *memory, cleave_node_t node, cleave_node_t input,
                                             bool *out_yes, cleave_error_t *error) {
  const selector_t *selector = memory;
  work_t *work = selector->work;
  const cleave_custom_partitioner_t *partitioner = work->rule.partitioner;
  *out_yes = !work->is_over && partitioner->select_input != NULL &&
             partitioner->select_input(selector->own, work->numbers[node.index], work->numbers[input.index]);
  return check_lost(work, "select_input", error);
}

static cleave_status_t selector_select_output(void *memory, cleave_node_t node, cleave_node_t output,
                                              bool *out_yes, cleave_error_t *error) {
  const selector_t *selector = memory;
  work_t *work = selector->work;
  const cleave_custom_partitioner_t *partitioner = work->rule.partitioner;
  *out_yes =
      !work->is_over && partitioner->select_output != NULL &&
      partitioner->select_output(selector->own, work->numbers[node.index], work->numbers[output.index]);
  return check_lost(work, "select_output", error);
}

static cleave_status_t selector_filter(void *memory, const cleave_node_t *candidates, uint32_t count,
                                       bool *keep, cleave_error_t *error) {
  const selector_t *selector = memory;
  work_t *work = selector->work;
  const cleave_custom_partitioner_t *partitioner = work->rule.partitioner;
  if (partitioner->filter == NULL || work->is_over) {
    return CLEAVE_OK;
  }
  uint32_t *numbers = cleave_allocate(count, sizeof *numbers);
  CLEAVE_TRY_MEMORY(numbers, error);
  for (uint32_t k = 0; k < count; k++) {
    numbers[k] = work->numbers[candidates[k].index];
    keep[k] = true;
  }
  partitioner->filter(selector->own, numbers, count, keep);
  cleave_free(numbers);
  return check_lost(work, "filter", error);
}

static const cleave_selector_functions_t selector_functions = {.create = selector_create,
                                                               .destroy = selector_destroy,
                                                               .select = selector_select,
                                                               .select_input = selector_select_input,
                                                               .select_output = selector_select_output,
                                                               .filter = selector_filter};

/* ---- review ---- */

typedef struct attaching {
  cleave_review_t *review;
  cleave_attribute_t *attributes;
  const char *problem; /* NULL: none so far */
  char key[ATTRIBUTE_NAME_LIMIT + 1];
} attaching_t;

static void attach(void *context, const char *key, const char *value) {
  attaching_t *attaching = context;
  size_t length = key == NULL ? 0 : strlen(key);
  if (attaching->problem != NULL) {
    return;
  }
  (void)snprintf(attaching->key, sizeof attaching->key, "%s", key == NULL ? "" : key);
  size_t value_length = value == NULL ? 0 : strnlen(value, ATTRIBUTE_TEXT_LIMIT + 1);
  attaching->problem = length == 0 || length > ATTRIBUTE_NAME_LIMIT ? "expected a name of 1 to 63 bytes"
                       : value == NULL                              ? "has no value"
                       : value_length > ATTRIBUTE_TEXT_LIMIT        ? "is longer than 65536 bytes"
                       : attaching->review->attribute_count == ATTRIBUTE_LIMIT ? "is more than 256 attributes"
                                                                               : NULL;
  if (attaching->problem != NULL) {
    return;
  }
  cleave_arena_t *arena = attaching->review->arena;
  cleave_attribute_t attribute = {.name = cleave_arena_copy_text(arena, key, length),
                                  .kind = CLEAVE_ATTRIBUTE_STRING,
                                  .count = (uint32_t)value_length,
                                  .s = cleave_arena_copy_text(arena, value, value_length)};
  if (attribute.name == NULL || attribute.s == NULL) {
    attaching->problem = "finds no memory";
    return;
  }
  uint32_t at = 0; /* attached again, the last value counts */
  while (at < attaching->review->attribute_count &&
         strcmp(attaching->attributes[at].name, attribute.name) != 0) {
    at++;
  }
  attaching->attributes[at] = attribute;
  attaching->review->attribute_count += at == attaching->review->attribute_count ? 1 : 0;
}

static cleave_status_t ask_review(work_t *work, const cleave_proposal_t *proposal, attaching_t *attaching,
                                  cleave_error_t *error) {
  cleave_review_t *review = attaching->review;
  cleave_view_t view;
  cleave_view_request_t request = {
      .rule = proposal->rule, .nodes = proposal->nodes, .node_count = proposal->node_count};
  cleave_message_t message = {.text = ""};
  CLEAVE_TRY(cleave_view_build(&work->builder, &request, &work->scratch, &view, error));
  bool *keep = cleave_arena_allocate(&work->scratch, proposal->node_count, sizeof *keep);
  attaching->attributes =
      cleave_arena_allocate(review->arena, ATTRIBUTE_LIMIT, sizeof *attaching->attributes);
  CLEAVE_TRY_MEMORY(keep != NULL && attaching->attributes != NULL, error);
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    keep[k] = true;
  }
  cleave_status_t status = work->is_over ? CLEAVE_OK
                                         : work->rule.partitioner->review(
                                               work->state, &view.region, work->use->options,
                                               work->use->option_count, keep, attach, attaching, &message);
  message.text[sizeof message.text - 1] = '\0';
  if (status != CLEAVE_OK && status != CLEAVE_ERROR_UNSUPPORTED) {
    CLEAVE_TRY(fail(work, "review", status, &message, error));
  }
  if (work->is_over) {
    review->accept = false;
    (void)snprintf(review->reason.text, sizeof review->reason.text, "its library is lost");
    return CLEAVE_OK;
  }
  if (attaching->problem != NULL) {
    (void)snprintf(message.text, sizeof message.text, "attribute '%s' %s", attaching->key,
                   attaching->problem);
    return cleave_library_rule_fail(&work->rule, work->use, "review", CLEAVE_ERROR_BACKEND, &message, error);
  }
  bool any = false;
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    review->keep[k] = ((const unsigned char *)keep)[k] != 0;
    any = any || review->keep[k];
  }
  review->accept = status == CLEAVE_OK && any;
  review->attributes = attaching->attributes;
  const char *fallback = any ? "no reason given" : "the library keeps none of its nodes";
  (void)snprintf(review->reason.text, sizeof review->reason.text, "%s",
                 message.text[0] != '\0' ? message.text : fallback);
  return CLEAVE_OK;
}

static cleave_status_t review(void *context, const cleave_proposal_t *proposal, cleave_review_t *answer,
                              cleave_error_t *error) {
  work_t *work = ((const cleave_named_rule_use_t *)context)->work;
  attaching_t attaching = {.review = answer};
  cleave_status_t status = ask_review(work, proposal, &attaching, error);
  cleave_arena_reset(&work->scratch);
  return status;
}

void cleave_library_partitioner_bind(const cleave_named_rule_t *named, cleave_rule_t *rule) {
  const cleave_custom_partitioner_t *partitioner = named->definition;
  bool selects = partitioner->supported == NULL;
  rule->mode = selects ? CLEAVE_REGION_SELECTOR : CLEAVE_REGION_SUPPORTED;
  rule->begin = begin;
  rule->end = end;
  rule->supported = selects ? NULL : supported;
  rule->selector = selects ? &selector_functions : NULL;
  rule->review = partitioner->review != NULL ? review : NULL;
}
