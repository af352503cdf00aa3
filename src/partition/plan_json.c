// SPDX-License-Identifier: Apache-2.0
// A plan as JSON, format "cleave-plan" version 1. Nodes are named by their position in topological order,
// with operator and name beside it for people; a value by its producer and output, or its number among the
// graph's inputs. One node, value, rule or note a line, so that plans can be compared line by line; each line
// is written by jansson, and no tree of the whole is built.

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "graph/order.h"
#include "partition/plan.h"

typedef struct writer {
  const cleave_plan_t *plan;
  cleave_text_t *text;
  uint32_t *positions; /* per node */
  uint32_t *inputs;    /* per value: number among the graph's inputs */
} writer_t;

/* Text from outside may not be UTF-8: bytes that are not become '?'. */
static json_t *text_json(const char *text) {
  json_t *json = json_string(text);
  if (json != NULL) {
    return json;
  }
  size_t length = strlen(text);
  char *copy = cleave_copy_text(text, length);
  if (copy == NULL) {
    return NULL;
  }
  for (size_t k = 0; k < length; k++) {
    copy[k] = (unsigned char)copy[k] < 0x80 ? copy[k] : '?';
  }
  json = json_string(copy);
  cleave_free(copy);
  return json;
}

/* Sets a member; a failure makes the object unusable, which add_line finds. */
static void set(json_t **object, const char *key, json_t *value) {
  if (*object == NULL || value == NULL || json_object_set(*object, key, value) != 0) {
    json_decref(*object);
    *object = NULL;
  }
  json_decref(value);
}

static json_t *number_json(uint64_t number) {
  return json_integer((json_int_t)number);
}

/* Writes and frees `json`; NULL is a failure. */
static void add_json(writer_t *writer, json_t *json) {
  char *line = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
  if (line == NULL) {
    writer->text->failed = true;
  } else {
    cleave_text_add(writer->text, line);
  }
  free(line);
  json_decref(json);
}

static void add_member(writer_t *writer, const char *indent, const char *key, json_t *value, bool more) {
  cleave_text_format(writer->text, "%s\"%s\": ", indent, key);
  add_json(writer, value);
  cleave_text_add(writer->text, more ? ",\n" : "\n");
}

static void open_list(writer_t *writer, const char *indent, const char *key) {
  cleave_text_format(writer->text, "%s\"%s\": [", indent, key);
}

static void add_item(writer_t *writer, const char *indent, bool first, json_t *item) {
  cleave_text_add(writer->text, first ? "\n" : ",\n");
  cleave_text_add(writer->text, indent);
  add_json(writer, item);
}

static void close_list(writer_t *writer, const char *indent, bool empty, bool more) {
  if (!empty) {
    cleave_text_format(writer->text, "\n%s", indent);
  }
  cleave_text_add(writer->text, more ? "],\n" : "]\n");
}

static json_t *node_json(const writer_t *writer, cleave_node_t node) {
  const cleave_graph_t *graph = writer->plan->graph;
  const char *name = cleave_node_name(graph, node);
  json_t *json = json_object();
  set(&json, "position", number_json(writer->positions[node.index]));
  set(&json, "op", text_json(cleave_node_op(graph, node)->name));
  if (name[0] != '\0') {
    set(&json, "name", text_json(name));
  }
  return json;
}

static json_t *value_json(const writer_t *writer, cleave_value_t value) {
  const cleave_graph_t *graph = writer->plan->graph;
  cleave_node_t producer = cleave_value_producer(graph, value);
  const char *name = cleave_value_name(graph, value);
  json_t *json = json_object();
  if (cleave_node_exists(producer)) {
    set(&json, "position", number_json(writer->positions[producer.index]));
    set(&json, "output", number_json(cleave_graph_value(graph, value)->output_index));
  } else {
    set(&json, "input", number_json(writer->inputs[value.index]));
  }
  if (name[0] != '\0') {
    set(&json, "name", text_json(name));
  }
  return json;
}

static void add_rules(writer_t *writer) {
  const cleave_plan_t *plan = writer->plan;
  open_list(writer, "  ", "rules");
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &plan->rules[k];
    json_t *json = json_object();
    set(&json, "kind", text_json(cleave_rule_kind_name(rule->kind)));
    set(&json, "name", text_json(rule->name));
    set(&json, "ruleset", text_json(rule->ruleset));
    set(&json, "backend", text_json(rule->backend));
    set(&json, "file", text_json(rule->file));
    set(&json, "line", json_integer(rule->line));
    set(&json, "tries", number_json(rule->tries));
    set(&json, "matches", number_json(rule->matches));
    set(&json, "refused", number_json(rule->refused));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", plan->rule_count == 0, true);
}

static void add_values(writer_t *writer, const char *key, const cleave_value_t *values, uint32_t count) {
  open_list(writer, "      ", key);
  for (uint32_t k = 0; k < count; k++) {
    add_item(writer, "        ", k == 0, value_json(writer, values[k]));
  }
  close_list(writer, "      ", count == 0, true);
}

static void add_fusion(writer_t *writer, const cleave_plan_fusion_t *fusion, bool first) {
  const char *indent = "          ";
  cleave_text_add(writer->text, first ? "\n        {\n" : ",\n        {\n");
  add_member(writer, indent, "rule", number_json(fusion->rule), true);
  open_list(writer, indent, "nodes");
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    json_t *json = node_json(writer, fusion->nodes[k]);
    if (fusion->labels[k][0] != '\0') {
      set(&json, "label", text_json(fusion->labels[k]));
    }
    add_item(writer, "            ", k == 0, json);
  }
  close_list(writer, indent, fusion->node_count == 0, false);
  cleave_text_add(writer->text, "        }");
}

static void add_region(writer_t *writer, const cleave_plan_region_t *region, bool first) {
  const char *indent = "      ";
  cleave_text_add(writer->text, first ? "\n    {\n" : ",\n    {\n");
  add_member(writer, indent, "name", text_json(region->name), true);
  add_member(writer, indent, "backend", text_json(region->backend), true);
  add_member(writer, indent, "rule", number_json(region->rule), true);
  add_values(writer, "inputs", region->inputs, region->input_count);
  add_values(writer, "outputs", region->outputs, region->output_count);
  open_list(writer, indent, "fusions");
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    add_fusion(writer, &writer->plan->fusions[region->fusions[k]], k == 0);
  }
  close_list(writer, indent, region->fusion_count == 0, true);
  open_list(writer, indent, "nodes");
  for (uint32_t k = 0; k < region->node_count; k++) {
    add_item(writer, "        ", k == 0, node_json(writer, region->nodes[k]));
  }
  close_list(writer, indent, region->node_count == 0, false);
  cleave_text_add(writer->text, "    }");
}

static void add_steps(writer_t *writer) {
  const cleave_plan_t *plan = writer->plan;
  open_list(writer, "  ", "steps");
  for (uint32_t s = 0; s < plan->step_count; s++) {
    json_t *json = NULL;
    if (plan->steps[s].region == CLEAVE_INDEX_NONE) {
      json = node_json(writer, plan->steps[s].node);
    } else {
      json = json_object();
      set(&json, "region", text_json(plan->regions[plan->steps[s].region].name));
    }
    add_item(writer, "    ", s == 0, json);
  }
  close_list(writer, "  ", plan->step_count == 0, true);
}

static void add_notes(writer_t *writer) {
  const cleave_plan_t *plan = writer->plan;
  open_list(writer, "  ", "notes");
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    json_t *json = json_object();
    set(&json, "kind", text_json(cleave_plan_note_name(note->kind)));
    set(&json, "rule", number_json(note->rule));
    set(&json, "node", node_json(writer, note->node));
    set(&json, "reason", text_json(note->reason));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", plan->note_count == 0, false);
}

static void add_plan(writer_t *writer) {
  const cleave_plan_t *plan = writer->plan;
  const cleave_graph_t *graph = plan->graph;
  char hash[17];
  (void)snprintf(hash, sizeof hash, "%016" PRIx64, plan->graph_hash);
  cleave_text_add(writer->text, "{\n");
  add_member(writer, "  ", "format", text_json("cleave-plan"), true);
  add_member(writer, "  ", "version", number_json(1), true);
  json_t *json = json_object();
  set(&json, "name", text_json(cleave_strings_text(&graph->strings, graph->name)));
  set(&json, "hash", text_json(hash));
  set(&json, "nodes", number_json(graph->live_node_count));
  add_member(writer, "  ", "graph", json, true);
  add_rules(writer);
  open_list(writer, "  ", "regions");
  for (uint32_t r = 0; r < plan->region_count; r++) {
    add_region(writer, &plan->regions[r], r == 0);
  }
  close_list(writer, "  ", plan->region_count == 0, true);
  add_steps(writer);
  add_notes(writer);
  cleave_text_add(writer->text, "}\n");
}

cleave_status_t cleave_plan_print_json(const cleave_plan_t *plan, cleave_text_t *text,
                                       cleave_error_t *error) {
  const cleave_graph_t *graph = plan->graph;
  writer_t writer = {.plan = plan, .text = text};
  cleave_status_t status = CLEAVE_OK;
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  writer.positions = cleave_allocate((size_t)cleave_graph_node_bound(graph) + 1, sizeof *writer.positions);
  writer.inputs = cleave_allocate((size_t)cleave_graph_value_bound(graph) + 1, sizeof *writer.inputs);
  if (order == NULL || writer.positions == NULL || writer.inputs == NULL) {
    status = cleave_error_out_of_memory(error);
    goto cleanup;
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, order, writer.positions, error));
  memset(writer.inputs, 0xff, ((size_t)cleave_graph_value_bound(graph) + 1) * sizeof *writer.inputs);
  for (size_t k = 0; k < graph->inputs.count; k++) {
    writer.inputs[graph->inputs.items[k].index] = (uint32_t)k;
  }
  add_plan(&writer);
  status = cleave_text_check(text, error);
cleanup:
  cleave_free(order);
  cleave_free(writer.positions);
  cleave_free(writer.inputs);
  return status;
}
