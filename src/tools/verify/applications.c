// SPDX-License-Identifier: Apache-2.0
// Applications are known by their rule and the names of their nodes, since every test runs the rules anew.
// With an application allowed, what a rule makes of a part of its nodes is allowed too: a region falls into
// pieces when fusions inside of it are left out. Rewrites and passes are one application a rule: with some of
// them left out, others would meet another graph.
#include "tools/verify/applications.h"

#include <stdlib.h>
#include <string.h>

#include "backend/region/view.h"
#include "base/hash.h"

static uint64_t rule_hash(const cleave_plan_rule_t *rule) {
  uint64_t hash = cleave_hash_bytes(CLEAVE_HASH_SEED, rule->file, strlen(rule->file));
  hash = cleave_hash_bytes(hash, rule->name, strlen(rule->name));
  return cleave_hash_combine(hash, (uint64_t)rule->line);
}

static uint64_t node_hash(uint64_t rule, const cleave_graph_t *graph, cleave_node_t node) {
  char buffer[128];
  const char *label = cleave_node_label(graph, node, buffer, sizeof buffer);
  return cleave_hash_bytes(rule, label, strlen(label));
}

static int compare_keys(const void *a, const void *b) {
  uint64_t x = ((const cleave_application_key_t *)a)->key;
  uint64_t y = ((const cleave_application_key_t *)b)->key;
  return (x > y) - (x < y);
}

static bool is_graph_rule(const cleave_plan_rule_t *rule) {
  return rule->kind == CLEAVE_RULE_REWRITE || rule->kind == CLEAVE_RULE_PASS;
}

/* The application-th graph rule that changed something; NONE beyond the last. */
static uint32_t find_graph_rule(const cleave_plan_t *plan, uint32_t application) {
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    if (is_graph_rule(&plan->rules[k]) && plan->rules[k].matches > 0 && application-- == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* Describes an application, and lists its nodes (none for a graph rule). */
static cleave_bisect_culprit_t describe(const cleave_plan_t *plan, uint32_t application,
                                        const cleave_node_t **out_nodes, uint32_t *out_count) {
  *out_nodes = NULL;
  *out_count = 0;
  if (application < plan->fusion_count) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[application];
    *out_nodes = fusion->nodes;
    *out_count = fusion->node_count;
    return (cleave_bisect_culprit_t){
        .kind = CLEAVE_BISECT_FUSION, .index = application, .rule = fusion->rule};
  }
  application -= plan->fusion_count;
  if (application < plan->region_count) {
    const cleave_plan_region_t *region = &plan->regions[application];
    *out_nodes = region->nodes;
    *out_count = region->node_count;
    return (cleave_bisect_culprit_t){
        .kind = CLEAVE_BISECT_REGION, .index = application, .rule = region->rule};
  }
  uint32_t rule = find_graph_rule(plan, application - plan->region_count);
  return (cleave_bisect_culprit_t){.kind = CLEAVE_BISECT_GRAPH_RULE, .index = rule, .rule = rule};
}

cleave_status_t cleave_applications_list(const cleave_plan_t *plan, cleave_applications_t *out_applications,
                                         cleave_error_t *error) {
  cleave_applications_t *list = out_applications;
  const cleave_node_t *nodes = NULL;
  uint32_t count = 0;
  *list = (cleave_applications_t){.plan = plan, .count = plan->fusion_count + plan->region_count};
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    list->count += is_graph_rule(&plan->rules[k]) && plan->rules[k].matches > 0 ? 1 : 0;
  }
  for (uint32_t a = 0; a < list->count; a++) {
    (void)describe(plan, a, &nodes, &count);
    list->key_count += count == 0 ? 1 : count;
  }
  list->keys = cleave_allocate(list->key_count + 1, sizeof *list->keys);
  list->allowed = cleave_allocate_zeroed((size_t)list->count + 1, sizeof *list->allowed);
  CLEAVE_TRY_MEMORY(list->keys != NULL && list->allowed != NULL, error);
  size_t next = 0;
  for (uint32_t a = 0; a < list->count; a++) {
    cleave_bisect_culprit_t application = describe(plan, a, &nodes, &count);
    uint64_t hash = rule_hash(&plan->rules[application.rule]);
    if (application.kind == CLEAVE_BISECT_GRAPH_RULE) {
      list->keys[next++] = (cleave_application_key_t){hash, a};
    }
    for (uint32_t k = 0; k < count; k++) {
      list->keys[next++] = (cleave_application_key_t){node_hash(hash, plan->graph, nodes[k]), a};
    }
  }
  qsort(list->keys, list->key_count, sizeof *list->keys, compare_keys);
  return CLEAVE_OK;
}

void cleave_applications_deinit(cleave_applications_t *applications) {
  cleave_free(applications->keys);
  cleave_free(applications->allowed);
  *applications = (cleave_applications_t){0};
}

cleave_bisect_culprit_t cleave_applications_describe(const cleave_applications_t *applications,
                                                     uint32_t application) {
  const cleave_node_t *nodes = NULL;
  uint32_t count = 0;
  return describe(applications->plan, application, &nodes, &count);
}

static uint32_t find_application(const cleave_applications_t *applications, uint64_t key) {
  cleave_application_key_t wanted = {key, 0};
  const cleave_application_key_t *found =
      bsearch(&wanted, applications->keys, applications->key_count, sizeof *applications->keys, compare_keys);
  return found == NULL ? CLEAVE_INDEX_NONE : found->application;
}

bool cleave_applications_is_allowed(void *context, const cleave_graph_t *graph,
                                    const cleave_plan_rule_t *rule, const cleave_node_t *nodes,
                                    uint32_t node_count) {
  const cleave_applications_t *applications = context;
  uint64_t hash = rule_hash(rule);
  uint32_t application = CLEAVE_INDEX_NONE;
  if (is_graph_rule(rule)) {
    application = find_application(applications, hash);
  }
  for (uint32_t k = 0; !is_graph_rule(rule) && k < node_count; k++) {
    uint32_t found = find_application(applications, node_hash(hash, graph, nodes[k]));
    if (found == CLEAVE_INDEX_NONE || (k > 0 && found != application)) {
      return false;
    }
    application = found;
  }
  return application != CLEAVE_INDEX_NONE && applications->allowed[application];
}

void cleave_applications_allow_all(cleave_applications_t *applications, bool yes) {
  for (uint32_t a = 0; a < applications->count; a++) {
    applications->allowed[a] = yes;
  }
}
