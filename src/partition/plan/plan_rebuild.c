// SPDX-License-Identifier: Apache-2.0
// Makes a plan of a graph from a document, or reports the first difference between that graph and the
// document's. Statements of the document about the graph are not trusted: cleave_plan_check checks the
// result, and this file checks only what that assumes.

#include "partition/plan/plan_read.h"

#include <inttypes.h>
#include <string.h>

#include "base/strings.h"
#include "graph/compare/structural_hash.h"
#include "graph/order.h"

typedef struct rebuilding {
  cleave_plan_document_t *document;
  const cleave_graph_t *graph;
  cleave_error_t *error;
  cleave_plan_t *plan;
  cleave_node_t *order; /* by position */
  uint32_t *fusion_of;  /* per node: a fusion whose nodes so far are in topological order */
} rebuilding_t;

static cleave_status_t mismatch(const cleave_plan_document_t *document, cleave_error_t *error,
                                const char *what) {
  return cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "%s: the plan is of another model: %s",
                          document->place, what);
}

/* ---- is it this graph? ---- */

static void add_node(cleave_text_t *text, const char *op, const char *name) {
  cleave_text_format(text, "%s", op);
  if (name[0] != '\0') {
    cleave_text_format(text, " '%.80s'", name);
  }
}

void cleave_plan_document_list(const cleave_plan_document_t *document, const cleave_document_node_t **nodes) {
  for (uint32_t s = 0; s < document->step_count; s++) {
    const cleave_document_step_t *step = &document->steps[s];
    if (step->region == CLEAVE_INDEX_NONE) {
      nodes[step->node.position] = &step->node;
      continue;
    }
    const cleave_document_region_t *region = &document->regions[step->region];
    for (uint32_t k = 0; k < region->node_count; k++) {
      nodes[region->nodes[k].position] = &region->nodes[k];
    }
  }
}

/* The first position at which operators (or, with `by_name`, names) differ. */
static uint32_t find_difference(const cleave_document_node_t *const *nodes, uint32_t count,
                                const cleave_graph_t *graph, const cleave_node_t *order, bool by_name) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(nodes[k]->op, cleave_node_op(graph, order[k])->name) != 0 ||
        (by_name && strcmp(nodes[k]->name, cleave_node_name(graph, order[k])) != 0)) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static void explain_node(const cleave_document_node_t *found, uint32_t position, const cleave_graph_t *graph,
                         const cleave_node_t *order, cleave_text_t *text) {
  cleave_text_format(text, "node %u is ", (unsigned)position);
  add_node(text, cleave_node_op(graph, order[position])->name, cleave_node_name(graph, order[position]));
  cleave_text_add(text, ", the plan has ");
  add_node(text, found->op, found->name);
}

static cleave_status_t explain_inputs(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                                      cleave_text_t *text, cleave_error_t *error) {
  cleave_arena_t arena = {0};
  cleave_document_input_t *inputs = NULL;
  cleave_status_t status = CLEAVE_OK;
  if (document->graph_input_count != graph->inputs.count) {
    cleave_text_format(text, "it has %zu input%s, the plan %u", graph->inputs.count,
                       CLEAVE_PLURAL(graph->inputs.count), (unsigned)document->graph_input_count);
    return CLEAVE_OK;
  }
  CLEAVE_TRY_CLEANUP(cleave_document_inputs(graph, &arena, &inputs, error));
  for (uint32_t k = 0; k < document->graph_input_count && text->length == 0; k++) {
    if (strcmp(inputs[k].type, document->graph_inputs[k].type) != 0) {
      cleave_text_format(text, "input '%.80s' is %.80s, the plan was made for %.80s", inputs[k].name,
                         inputs[k].type, document->graph_inputs[k].type);
    }
  }
cleanup:
  cleave_arena_deinit(&arena);
  return status;
}

/* Appends to `text` what differs; nothing if all nodes and inputs are the same. */
static cleave_status_t explain(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                               const cleave_node_t *order, bool hashes_agree, cleave_text_t *text,
                               cleave_error_t *error) {
  const cleave_document_node_t **nodes =
      cleave_allocate_zeroed((size_t)document->node_count + 1, sizeof *nodes);
  CLEAVE_TRY_MEMORY(nodes, error);
  cleave_plan_document_list(document, nodes);
  cleave_status_t status = CLEAVE_OK;
  uint32_t live = (uint32_t)graph->live_node_count;
  uint32_t both = document->node_count < live ? document->node_count : live;
  uint32_t at = find_difference(nodes, both, graph, order, false);
  if (document->node_count != live) {
    cleave_text_format(text, "it has %u node%s, the plan %u", (unsigned)live, CLEAVE_PLURAL(live),
                       (unsigned)document->node_count);
    if (at != CLEAVE_INDEX_NONE) {
      cleave_text_add(text, "; ");
    }
  }
  if (at != CLEAVE_INDEX_NONE) {
    explain_node(nodes[at], at, graph, order, text);
  }
  if (text->length == 0 && !hashes_agree) {
    status = explain_inputs(document, graph, text, error);
    at = find_difference(nodes, both, graph, order, true);
    if (status == CLEAVE_OK && text->length == 0 && at != CLEAVE_INDEX_NONE) {
      explain_node(nodes[at], at, graph, order, text);
    }
  }
  cleave_free((void *)nodes);
  return status;
}

static cleave_status_t match(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                             const cleave_node_t *order, cleave_error_t *error) {
  uint64_t hash = 0;
  cleave_text_t text = {0};
  cleave_status_t status = cleave_graph_hash(graph, &hash, error);
  bool agree = hash == document->graph_hash;
  CLEAVE_THEN(status, explain(document, graph, order, agree, &text, error));
  if (status == CLEAVE_OK && text.length == 0 && !agree) {
    cleave_text_format(&text,
                       "its nodes are the same, but their attributes, edges or constants are not (hash "
                       "%016" PRIx64 ", the plan has %016" PRIx64 ")",
                       hash, document->graph_hash);
  }
  CLEAVE_THEN(status, cleave_text_check(&text, error));
  if (status == CLEAVE_OK && text.length > 0) {
    status = mismatch(document, error, cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t make_order(const cleave_graph_t *graph, cleave_node_t **out_order,
                                  cleave_error_t *error) {
  *out_order = cleave_allocate(graph->live_node_count + 1, sizeof **out_order);
  return *out_order == NULL ? cleave_error_out_of_memory(error)
                            : cleave_graph_topological_order(graph, *out_order, NULL, error);
}

cleave_status_t cleave_plan_document_match(const cleave_plan_document_t *document,
                                           const cleave_graph_t *graph, cleave_error_t *error) {
  cleave_node_t *order = NULL;
  if (document->edits != NULL) {
    uint64_t hash = 0;
    CLEAVE_TRY(cleave_graph_hash(graph, &hash, error));
    return hash == document->edits->source_hash
               ? CLEAVE_OK
               : mismatch(document, error, "its rewrites were made to another graph");
  }
  cleave_status_t status = make_order(graph, &order, error);
  CLEAVE_THEN(status, match(document, graph, order, error));
  cleave_free(order);
  return status;
}

/* ---- its plan ---- */

static void *allocate(rebuilding_t *r, size_t count, size_t size) {
  return cleave_arena_allocate(&r->document->arena, count, size);
}

static cleave_status_t fail(const rebuilding_t *r, const char *region, const char *what) {
  return cleave_error_set(r->error, CLEAVE_ERROR_FORMAT, "%s: region '%.80s': %s", r->document->place, region,
                          what);
}

static cleave_status_t make_values(rebuilding_t *r, const cleave_document_region_t *region,
                                   const cleave_document_value_t *from, uint32_t count,
                                   const cleave_value_t **out_values) {
  cleave_value_t *values = allocate(r, count, sizeof *values);
  CLEAVE_TRY_MEMORY(values, r->error);
  for (uint32_t k = 0; k < count; k++) {
    values[k] = from[k].position == CLEAVE_INDEX_NONE
                    ? r->graph->inputs.items[from[k].index]
                    : cleave_node_output(r->graph, r->order[from[k].position], from[k].index);
    if (!cleave_value_exists(values[k])) {
      return fail(r, region->name, "an input or output is an output that its node does not have");
    }
  }
  *out_values = values;
  return CLEAVE_OK;
}

/* Checks that the nodes of a fusion are in topological order. */
static cleave_status_t make_fusion(rebuilding_t *r, const cleave_document_region_t *region, uint32_t index,
                                   const cleave_document_fusion_t *from, cleave_plan_fusion_t *to) {
  cleave_node_t *nodes = allocate(r, from->node_count, sizeof *nodes);
  const char **labels = allocate(r, from->node_count, sizeof *labels);
  CLEAVE_TRY_MEMORY(nodes != NULL && labels != NULL, r->error);
  for (uint32_t k = 0; k < from->node_count; k++) {
    nodes[k] = r->order[from->nodes[k].position];
    labels[k] = from->nodes[k].label;
    if (r->fusion_of[nodes[k].index] != CLEAVE_INDEX_NONE) {
      return fail(r, region->name, "a node is in two fusions");
    }
    for (uint32_t o = 0; o < cleave_node_output_count(r->graph, nodes[k]); o++) {
      cleave_value_t value = cleave_node_output(r->graph, nodes[k], o);
      for (cleave_use_t use = cleave_value_first_use(r->graph, value); cleave_use_exists(use);
           use = cleave_use_next(r->graph, use)) {
        cleave_node_t user = cleave_use_node(r->graph, use);
        if (cleave_node_exists(user) && r->fusion_of[user.index] == index) {
          return fail(r, region->name, "the nodes of a fusion are not in topological order");
        }
      }
    }
    r->fusion_of[nodes[k].index] = index;
  }
  to->node_count = from->node_count;
  to->nodes = nodes;
  to->labels = labels;
  to->rule = from->rule;
  to->attribute_count = from->attribute_count;
  to->attributes = from->attributes;
  return CLEAVE_OK;
}

static cleave_status_t make_region(rebuilding_t *r, uint32_t index, cleave_plan_region_t *to,
                                   uint32_t *node_region, cleave_plan_fusion_t *fusions) {
  const cleave_document_region_t *from = &r->document->regions[index];
  cleave_node_t *nodes = allocate(r, from->node_count, sizeof *nodes);
  uint32_t *list = allocate(r, from->fusion_count, sizeof *list);
  CLEAVE_TRY_MEMORY(nodes != NULL && list != NULL, r->error);
  for (uint32_t k = 0; k < from->node_count; k++) {
    nodes[k] = r->order[from->nodes[k].position];
    node_region[nodes[k].index] = index;
  }
  for (uint32_t k = 0; k < from->fusion_count; k++) {
    list[k] = r->plan->fusion_count;
    fusions[list[k]].region = index;
    CLEAVE_TRY(make_fusion(r, from, list[k], &from->fusions[k], &fusions[list[k]]));
    r->plan->fusion_count++;
  }
  to->name = from->name;
  to->backend = from->backend;
  to->rule = from->rule;
  to->node_count = from->node_count;
  to->nodes = nodes;
  to->fusion_count = from->fusion_count;
  to->fusions = list;
  to->input_count = from->input_count;
  to->output_count = from->output_count;
  to->attribute_count = from->attribute_count;
  to->attributes = from->attributes;
  CLEAVE_TRY(make_values(r, from, from->inputs, from->input_count, &to->inputs));
  return make_values(r, from, from->outputs, from->output_count, &to->outputs);
}

static cleave_status_t make_regions(rebuilding_t *r) {
  const cleave_plan_document_t *document = r->document;
  cleave_plan_t *plan = r->plan;
  size_t fusion_count = 0;
  for (uint32_t k = 0; k < document->region_count; k++) {
    fusion_count += document->regions[k].fusion_count;
  }
  size_t bound = (size_t)cleave_graph_node_bound(r->graph) + 1;
  cleave_plan_region_t *regions = allocate(r, document->region_count, sizeof *regions);
  cleave_plan_fusion_t *fusions = allocate(r, fusion_count, sizeof *fusions);
  uint32_t *node_region = allocate(r, bound, sizeof *node_region);
  r->fusion_of = allocate(r, bound, sizeof *r->fusion_of);
  CLEAVE_TRY_MEMORY(regions != NULL && fusions != NULL && node_region != NULL && r->fusion_of != NULL,
                    r->error);
  memset(node_region, 0xff, bound * sizeof *node_region);
  memset(r->fusion_of, 0xff, bound * sizeof *r->fusion_of);
  for (uint32_t k = 0; k < document->region_count; k++) {
    CLEAVE_TRY(make_region(r, k, &regions[k], node_region, fusions));
  }
  plan->region_count = document->region_count;
  plan->regions = regions;
  plan->fusions = fusions;
  plan->node_region = node_region;
  plan->node_fusion = r->fusion_of;
  return CLEAVE_OK;
}

static cleave_status_t make_lists(rebuilding_t *r) {
  const cleave_plan_document_t *document = r->document;
  cleave_plan_t *plan = r->plan;
  cleave_plan_step_t *steps = allocate(r, document->step_count, sizeof *steps);
  cleave_plan_note_t *notes = allocate(r, document->note_count, sizeof *notes);
  CLEAVE_TRY_MEMORY(steps != NULL && notes != NULL, r->error);
  uint32_t *stages = NULL;
  if (document->stage_count > 0) {
    stages = allocate(r, (size_t)cleave_graph_node_bound(r->graph) + 1, sizeof *stages);
    CLEAVE_TRY_MEMORY(stages != NULL, r->error);
    plan->stage_count = document->stage_count;
    plan->node_stage = stages;
  }
  for (uint32_t k = 0; k < document->step_count; k++) {
    const cleave_document_step_t *from = &document->steps[k];
    bool is_region = from->region != CLEAVE_INDEX_NONE;
    const cleave_document_region_t *region = is_region ? &document->regions[from->region] : NULL;
    for (uint32_t n = 0; stages != NULL && n < (is_region ? region->node_count : 1); n++) {
      stages[r->order[is_region ? region->nodes[n].position : from->node.position].index] = from->stage;
    }
    steps[k].region = from->region;
    steps[k].node = is_region ? CLEAVE_NODE_NONE : r->order[from->node.position];
  }
  for (uint32_t k = 0; k < document->note_count; k++) {
    const cleave_document_note_t *from = &document->notes[k];
    notes[k] = (cleave_plan_note_t){.kind = from->kind,
                                    .node = r->order[from->node.position],
                                    .rule = from->rule,
                                    .reason = from->reason};
  }
  plan->step_count = document->step_count;
  plan->steps = steps;
  plan->note_count = document->note_count;
  plan->notes = notes;
  plan->setting_count = document->setting_count;
  plan->settings = document->settings;
  plan->rule_count = document->rule_count;
  plan->rules = document->rules;
  return CLEAVE_OK;
}

/* Names must be unique, because saved models refer to regions by name. */
static cleave_status_t check_names(const rebuilding_t *r) {
  cleave_strings_t names = {0};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < r->plan->region_count && status == CLEAVE_OK; k++) {
    cleave_string_t id;
    const char *name = r->plan->regions[k].name;
    if (cleave_strings_find(&names, name, strlen(name)).index != CLEAVE_STRING_NONE.index) {
      status = fail(r, name, "two regions have this name");
    } else {
      status = cleave_strings_add(&names, name, strlen(name), &id, r->error);
    }
  }
  cleave_strings_deinit(&names);
  return status;
}

static cleave_status_t check(const rebuilding_t *r) {
  cleave_error_t found = CLEAVE_ERROR_INIT;
  CLEAVE_TRY(check_names(r));
  cleave_status_t status = cleave_plan_check(r->plan, &found);
  if (status == CLEAVE_ERROR_INTERNAL) {
    return cleave_error_set(r->error, CLEAVE_ERROR_FORMAT, "%s: no plan of this model: %s",
                            r->document->place, found.message);
  }
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_set(r->error, status, "%s", found.message);
}

static cleave_status_t rebuild(rebuilding_t *r) {
  CLEAVE_TRY(match(r->document, r->graph, r->order, r->error));
  if (r->document->graph_input_count != r->graph->inputs.count) {
    return mismatch(r->document, r->error, "it has another number of inputs");
  }
  CLEAVE_TRY(make_regions(r));
  CLEAVE_TRY(make_lists(r));
  return check(r);
}

cleave_status_t cleave_plan_rebuild(cleave_plan_document_t *document, const cleave_graph_t *graph,
                                    cleave_plan_t **out_plan, cleave_error_t *error) {
  *out_plan = NULL;
  rebuilding_t r = {.document = document, .graph = graph, .error = error};
  r.plan = cleave_allocate_zeroed(1, sizeof *r.plan);
  CLEAVE_TRY_MEMORY(r.plan, error);
  r.plan->source = graph;
  r.plan->graph = graph;
  r.plan->graph_hash = document->graph_hash;
  cleave_status_t status = make_order(graph, &r.order, error);
  CLEAVE_THEN(status, rebuild(&r));
  cleave_free(r.order);
  CLEAVE_TRY_OR(status, cleave_free(r.plan));
  r.plan->arena = document->arena;
  document->arena = (cleave_arena_t){0};
  *out_plan = r.plan;
  return CLEAVE_OK;
}
