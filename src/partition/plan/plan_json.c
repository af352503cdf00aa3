// SPDX-License-Identifier: Apache-2.0
// A plan as JSON, format "cleave-plan" version 1. Nodes are named by their position in topological order,
// with operator and name beside it for people; a value by its producer and output, or its number among the
// graph's inputs. One node, value, rule or note a line, so that plans can be compared line by line; each line
// is written by jansson, and no tree of the whole is built.

#include <jansson.h>

#include "json/json_attribute.h"
#include "partition/plan/edits_json.h"
#include "partition/plan/plan_document.h"

typedef struct writer {
  const cleave_plan_document_t *document;
  cleave_text_t *text;
} writer_t;

static json_t *node_json(const cleave_document_node_t *node) {
  json_t *json = json_object();
  cleave_json_set(&json, "position", cleave_json_number(node->position));
  cleave_json_set(&json, "op", cleave_json_text(node->op));
  if (node->name[0] != '\0') {
    cleave_json_set(&json, "name", cleave_json_text(node->name));
  }
  if (node->label != NULL && node->label[0] != '\0') {
    cleave_json_set(&json, "label", cleave_json_text(node->label));
  }
  return json;
}

static json_t *value_json(const cleave_document_value_t *value) {
  json_t *json = json_object();
  if (value->position != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "position", cleave_json_number(value->position));
    cleave_json_set(&json, "output", cleave_json_number(value->index));
  } else {
    cleave_json_set(&json, "input", cleave_json_number(value->index));
  }
  if (value->name[0] != '\0') {
    cleave_json_set(&json, "name", cleave_json_text(value->name));
  }
  return json;
}

/* Writes nothing if there are none. */
static void add_attributes(writer_t *writer, const char *indent, const cleave_attribute_t *attributes,
                           uint32_t count) {
  if (count == 0) {
    return;
  }
  char inner[32];
  (void)snprintf(inner, sizeof inner, "%s  ", indent);
  cleave_json_open_list(writer->text, indent, "attributes");
  for (uint32_t k = 0; k < count; k++) {
    cleave_json_write_item(writer->text, inner, k == 0, cleave_json_attribute(&attributes[k]));
  }
  cleave_json_close_list(writer->text, indent, false, true);
}

static void add_rules(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  cleave_json_open_list(writer->text, "  ", "rules");
  for (uint32_t k = 0; k < document->rule_count; k++) {
    const cleave_plan_rule_t *rule = &document->rules[k];
    json_t *json = json_object();
    cleave_json_set(&json, "kind", cleave_json_text(cleave_rule_kind_name(rule->kind)));
    cleave_json_set(&json, "name", cleave_json_text(rule->name));
    cleave_json_set(&json, "ruleset", cleave_json_text(rule->ruleset));
    cleave_json_set(&json, "backend", cleave_json_text(rule->backend));
    cleave_json_set(&json, "file", cleave_json_text(rule->file));
    cleave_json_set(&json, "line", json_integer(rule->line));
    cleave_json_set(&json, "tries", cleave_json_number(rule->tries));
    cleave_json_set(&json, "matches", cleave_json_number(rule->matches));
    cleave_json_set(&json, "refused", cleave_json_number(rule->refused));
    cleave_json_write_item(writer->text, "    ", k == 0, json);
  }
  cleave_json_close_list(writer->text, "  ", document->rule_count == 0, true);
}

static void add_values(writer_t *writer, const char *key, const cleave_document_value_t *values,
                       uint32_t count) {
  cleave_json_open_list(writer->text, "      ", key);
  for (uint32_t k = 0; k < count; k++) {
    cleave_json_write_item(writer->text, "        ", k == 0, value_json(&values[k]));
  }
  cleave_json_close_list(writer->text, "      ", count == 0, true);
}

static void add_fusion(writer_t *writer, const cleave_document_fusion_t *fusion, bool first) {
  const char *indent = "          ";
  cleave_text_add(writer->text, first ? "\n        {\n" : ",\n        {\n");
  cleave_json_write_member(writer->text, indent, "rule", cleave_json_number(fusion->rule), true);
  add_attributes(writer, indent, fusion->attributes, fusion->attribute_count);
  cleave_json_open_list(writer->text, indent, "nodes");
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    cleave_json_write_item(writer->text, "            ", k == 0, node_json(&fusion->nodes[k]));
  }
  cleave_json_close_list(writer->text, indent, fusion->node_count == 0, false);
  cleave_text_add(writer->text, "        }");
}

static void add_region(writer_t *writer, const cleave_document_region_t *region, bool first) {
  const char *indent = "      ";
  cleave_text_add(writer->text, first ? "\n    {\n" : ",\n    {\n");
  cleave_json_write_member(writer->text, indent, "name", cleave_json_text(region->name), true);
  cleave_json_write_member(writer->text, indent, "backend", cleave_json_text(region->backend), true);
  cleave_json_write_member(writer->text, indent, "rule", cleave_json_number(region->rule), true);
  add_attributes(writer, indent, region->attributes, region->attribute_count);
  add_values(writer, "inputs", region->inputs, region->input_count);
  add_values(writer, "outputs", region->outputs, region->output_count);
  cleave_json_open_list(writer->text, indent, "fusions");
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    add_fusion(writer, &region->fusions[k], k == 0);
  }
  cleave_json_close_list(writer->text, indent, region->fusion_count == 0, true);
  cleave_json_open_list(writer->text, indent, "nodes");
  for (uint32_t k = 0; k < region->node_count; k++) {
    cleave_json_write_item(writer->text, "        ", k == 0, node_json(&region->nodes[k]));
  }
  cleave_json_close_list(writer->text, indent, region->node_count == 0, false);
  cleave_text_add(writer->text, "    }");
}

static void add_steps(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  cleave_json_open_list(writer->text, "  ", "steps");
  for (uint32_t s = 0; s < document->step_count; s++) {
    json_t *json = NULL;
    if (document->steps[s].region == CLEAVE_INDEX_NONE) {
      json = node_json(&document->steps[s].node);
    } else {
      json = json_object();
      cleave_json_set(&json, "region", cleave_json_text(document->regions[document->steps[s].region].name));
    }
    if (document->stage_count > 0) {
      cleave_json_set(&json, "stage", cleave_json_number(document->steps[s].stage));
    }
    cleave_json_write_item(writer->text, "    ", s == 0, json);
  }
  cleave_json_close_list(writer->text, "  ", document->step_count == 0, true);
}

static void add_notes(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  cleave_json_open_list(writer->text, "  ", "notes");
  for (uint32_t k = 0; k < document->note_count; k++) {
    const cleave_document_note_t *note = &document->notes[k];
    json_t *json = json_object();
    cleave_json_set(&json, "kind", cleave_json_text(cleave_plan_note_name(note->kind)));
    cleave_json_set(&json, "rule", cleave_json_number(note->rule));
    cleave_json_set(&json, "node", node_json(&note->node));
    cleave_json_set(&json, "reason", cleave_json_text(note->reason));
    cleave_json_write_item(writer->text, "    ", k == 0, json);
  }
  cleave_json_close_list(writer->text, "  ", document->note_count == 0, false);
}

static json_t *graph_json(const cleave_plan_document_t *document) {
  json_t *json = json_object();
  cleave_json_set(&json, "name", cleave_json_text(document->graph_name));
  cleave_json_set(&json, "hash", cleave_json_hash(document->graph_hash));
  cleave_json_set(&json, "nodes", cleave_json_number(document->node_count));
  return json;
}

static void add_settings(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  cleave_json_open_list(writer->text, "  ", "inputs");
  for (uint32_t k = 0; k < document->graph_input_count; k++) {
    json_t *json = json_object();
    cleave_json_set(&json, "name", cleave_json_text(document->graph_inputs[k].name));
    cleave_json_set(&json, "type", cleave_json_text(document->graph_inputs[k].type));
    cleave_json_write_item(writer->text, "    ", k == 0, json);
  }
  cleave_json_close_list(writer->text, "  ", document->graph_input_count == 0, true);
  cleave_json_open_list(writer->text, "  ", "settings");
  for (uint32_t k = 0; k < document->setting_count; k++) {
    json_t *json = json_object();
    cleave_json_set(&json, "name", cleave_json_text(document->settings[k].name));
    cleave_json_set(&json, "value", cleave_json_text(document->settings[k].value));
    cleave_json_write_item(writer->text, "    ", k == 0, json);
  }
  cleave_json_close_list(writer->text, "  ", document->setting_count == 0, true);
}

static void add_edit_list(writer_t *writer, json_t *edits, const char *key, bool more) {
  json_t *list = json_object_get(edits, key);
  cleave_json_open_list(writer->text, "    ", key);
  for (size_t k = 0; k < json_array_size(list); k++) {
    cleave_json_write_item(writer->text, "      ", k == 0, json_incref(json_array_get(list, k)));
  }
  cleave_json_close_list(writer->text, "    ", json_array_size(list) == 0, more);
}

/* Writes what rewrites and passes did, one application per line; nothing if they did nothing. */
static cleave_status_t add_edits(writer_t *writer, cleave_error_t *error) {
  json_t *edits = NULL;
  if (writer->document->edits == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_edits_to_json(writer->document->edits, &edits, error));
  cleave_text_add(writer->text, "  \"edits\": {\n");
  cleave_json_write_member(writer->text, "    ", "source", json_incref(json_object_get(edits, "source")),
                           true);
  cleave_json_write_member(writer->text, "    ", "result", json_incref(json_object_get(edits, "result")),
                           true);
  add_edit_list(writer, edits, "rules", true);
  add_edit_list(writer, edits, "groups", true);
  add_edit_list(writer, edits, "refusals", false);
  cleave_text_add(writer->text, "  },\n");
  json_decref(edits);
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_document_print(const cleave_plan_document_t *document, cleave_text_t *text,
                                           cleave_error_t *error) {
  writer_t writer = {.document = document, .text = text};
  cleave_text_add(text, "{\n");
  cleave_json_write_member(text, "  ", "format", cleave_json_text("cleave-plan"), true);
  cleave_json_write_member(text, "  ", "version", cleave_json_number(1), true);
  cleave_json_write_member(text, "  ", "cleave", cleave_json_text(document->version), true);
  cleave_json_write_member(text, "  ", "graph", graph_json(document), true);
  add_settings(&writer);
  add_rules(&writer);
  CLEAVE_TRY(add_edits(&writer, error));
  cleave_json_open_list(text, "  ", "regions");
  for (uint32_t r = 0; r < document->region_count; r++) {
    add_region(&writer, &document->regions[r], r == 0);
  }
  cleave_json_close_list(text, "  ", document->region_count == 0, true);
  add_steps(&writer);
  add_notes(&writer);
  cleave_text_add(text, "}\n");
  return cleave_text_check(text, error);
}

cleave_status_t cleave_plan_print_json(const cleave_plan_t *plan, cleave_text_t *text,
                                       cleave_error_t *error) {
  cleave_plan_document_t *document = NULL;
  CLEAVE_TRY(cleave_plan_document_create(plan, &document, error));
  cleave_status_t status = cleave_plan_document_print(document, text, error);
  cleave_plan_document_destroy(document);
  return status;
}
