// SPDX-License-Identifier: Apache-2.0
// Plans as files. For pictures and ONNX a plan becomes groups of nodes: regions, and fusions inside of them.
#include <inttypes.h>
#include <stdio.h>

#include "formats/dot.h"
#include "formats/onnx/onnx.h"
#include "partition/plan/plan_document.h"
#include "system/file.h"

typedef struct plan_groups {
  cleave_arena_t arena;
  cleave_group_t *groups;
  uint32_t count;
} plan_groups_t;

static const char *describe(plan_groups_t *list, const cleave_plan_rule_t *rule, const char *kind) {
  return rule->file == NULL || rule->file[0] == '\0'
             ? cleave_arena_format(&list->arena, "%s by rule '%s', backend %s", kind, rule->name,
                                   rule->backend)
             : cleave_arena_format(&list->arena, "%s by rule '%s' (%s:%d), backend %s", kind, rule->name,
                                   cleave_path_name(rule->file), (int)rule->line, rule->backend);
}

/* Fusions have no names of their own: the rule's, and their number in the plan. */
static cleave_status_t make_groups(const cleave_plan_t *plan, plan_groups_t *list, cleave_error_t *error) {
  size_t most = (size_t)plan->region_count + plan->fusion_count;
  list->groups = cleave_arena_allocate(&list->arena, most, sizeof *list->groups);
  CLEAVE_TRY_MEMORY(list->groups, error);
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    uint32_t parent = list->count;
    cleave_group_t *group = &list->groups[list->count++];
    *group = (cleave_group_t){.domain = CLEAVE_ONNX_REGION_DOMAIN,
                              .name = region->name,
                              .doc = describe(list, &plan->rules[region->rule], "region"),
                              .parent = CLEAVE_INDEX_NONE,
                              .node_count = region->node_count,
                              .nodes = region->nodes};
    bool is_complete = group->doc != NULL;
    for (uint32_t f = 0; f < region->fusion_count && is_complete; f++) {
      const cleave_plan_fusion_t *fusion = &plan->fusions[region->fusions[f]];
      const cleave_plan_rule_t *rule = &plan->rules[fusion->rule];
      group = &list->groups[list->count++];
      *group = (cleave_group_t){
          .domain = CLEAVE_ONNX_FUSION_DOMAIN,
          .name = cleave_arena_format(&list->arena, "%s_%u", rule->name, (unsigned)region->fusions[f]),
          .doc = describe(list, rule, "fusion"),
          .parent = parent,
          .node_count = fusion->node_count,
          .nodes = fusion->nodes};
      is_complete = group->name != NULL && group->doc != NULL;
    }
    if (!is_complete) {
      return cleave_error_out_of_memory(error);
    }
  }
  return CLEAVE_OK;
}

/* The order in which the nodes stand in the file, as positions in the graph's own. */
static cleave_status_t print_order(cleave_groups_t *groups, uint32_t group, cleave_text_t *text,
                                   cleave_error_t *error) {
  cleave_group_items_t items = {0};
  cleave_status_t status = cleave_groups_items(groups, group, &items, error);
  for (size_t k = 0; k < items.count && status == CLEAVE_OK; k++) {
    if (items.items[k].is_group) {
      status = print_order(groups, items.items[k].index, text, error);
    } else {
      cleave_text_format(text, "%s%u", text->length > 0 ? " " : "",
                         (unsigned)groups->position[items.items[k].index]);
    }
  }
  cleave_array_free(&items);
  return status;
}

/* Writes what a reader needs to have the plan again: the plan for the graph that is written, and the order of
 * its nodes. */
static cleave_status_t describe_plan(const cleave_plan_t *plan, const plan_groups_t *list,
                                     cleave_text_t *out_json, cleave_text_t *out_order,
                                     cleave_error_t *error) {
  cleave_groups_t groups;
  cleave_plan_document_t *document = NULL;
  cleave_status_t status = cleave_groups_init(&groups, plan->graph, list->groups, list->count, error);
  CLEAVE_THEN(status, print_order(&groups, CLEAVE_INDEX_NONE, out_order, error));
  cleave_groups_deinit(&groups);
  CLEAVE_THEN(status, cleave_plan_document_create(plan, &document, error));
  if (status == CLEAVE_OK) {
    document->edits = NULL;  // the graph in the file is what they made
    status = cleave_plan_document_print(document, out_json, error);
  }
  cleave_plan_document_destroy(document);
  CLEAVE_THEN(status, cleave_text_check(out_json, error));
  return status == CLEAVE_OK ? cleave_text_check(out_order, error) : status;
}

static cleave_status_t save_onnx(const cleave_plan_t *plan, const char *path, int32_t opset_version,
                                 const plan_groups_t *list, cleave_error_t *error) {
  char hash[32];
  char regions[16];
  char fusions[16];
  (void)snprintf(hash, sizeof hash, "%016" PRIx64, plan->graph_hash);
  (void)snprintf(regions, sizeof regions, "%u", (unsigned)plan->region_count);
  (void)snprintf(fusions, sizeof fusions, "%u", (unsigned)plan->fusion_count);
  cleave_text_t json = {0};
  cleave_text_t order = {0};
  cleave_status_t status = describe_plan(plan, list, &json, &order, error);
  const cleave_onnx_entry_t metadata[] = {{"cleave.version", cleave_version()},
                                          {"cleave.graph_hash", hash},
                                          {"cleave.regions", regions},
                                          {"cleave.fusions", fusions},
                                          {CLEAVE_ONNX_ORDER_KEY, cleave_text_get(&order)},
                                          {CLEAVE_ONNX_PLAN_KEY, cleave_text_get(&json)}};
  cleave_onnx_write_options_t options = {.opset_version = opset_version,
                                         .group_count = list->count,
                                         .groups = list->groups,
                                         .metadata_count = sizeof metadata / sizeof metadata[0],
                                         .metadata = metadata,
                                         .doc = "partitioned by cleave"};
  CLEAVE_THEN(status, cleave_onnx_write(path, plan->graph, &options, error));
  cleave_text_deinit(&json);
  cleave_text_deinit(&order);
  return status;
}

static cleave_status_t print(const cleave_plan_t *plan, const char *path, const plan_groups_t *list,
                             cleave_text_t *text, cleave_error_t *error) {
  if (cleave_path_has_extension(path, ".json")) {
    return cleave_plan_print_json(plan, text, error);
  }
  if (cleave_path_has_extension(path, ".dot")) {
    cleave_dot_options_t options = {.group_count = list->count, .groups = list->groups};
    return cleave_dot_print(plan->graph, &options, text, error);
  }
  return cleave_plan_print_text(plan, text, error);
}

cleave_status_t cleave_plan_save(const cleave_plan_t *plan, const char *path, int32_t opset_version,
                                 cleave_error_t *error) {
  static const char *const extensions[] = {".txt", ".json", ".dot", ".onnx"};
  bool is_known = false;
  for (size_t k = 0; k < sizeof extensions / sizeof extensions[0]; k++) {
    is_known = is_known || cleave_path_has_extension(path, extensions[k]);
  }
  if (!is_known) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s: expected a name that ends in .txt, .json, .dot or .onnx", path);
  }
  plan_groups_t list = {0};
  cleave_text_t text = {0};
  cleave_status_t status = make_groups(plan, &list, error);
  if (status == CLEAVE_OK && cleave_path_has_extension(path, ".onnx")) {
    status = save_onnx(plan, path, opset_version, &list, error);
  } else if (status == CLEAVE_OK) {
    status = print(plan, path, &list, &text, error);
    CLEAVE_THEN(status, cleave_text_check(&text, error));
    status =
        status == CLEAVE_OK ? cleave_file_write(path, cleave_text_get(&text), text.length, error) : status;
  }
  cleave_text_deinit(&text);
  cleave_arena_deinit(&list.arena);
  return status;
}
