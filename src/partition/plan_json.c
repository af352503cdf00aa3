// SPDX-License-Identifier: Apache-2.0
// A plan as JSON, format "cleave-plan" version 1. Nodes are named by their position in topological order,
// with operator and name beside it for people; a value by its producer and output, or its number among the
// graph's inputs. One node, value, rule or note a line, so that plans can be compared line by line; each line
// is written by jansson, and no tree of the whole is built.

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition/edits_json.h"
#include "partition/json_words.h"
#include "partition/plan_document.h"

typedef struct writer {
  const cleave_plan_document_t *document;
  cleave_text_t *text;
} writer_t;

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

/* Nothing where there are none, so that plans without attributes look as they always did. */
static void add_attributes(writer_t *writer, const char *indent, const cleave_attribute_t *attributes,
                           uint32_t count) {
  if (count == 0) {
    return;
  }
  char inner[32];
  (void)snprintf(inner, sizeof inner, "%s  ", indent);
  open_list(writer, indent, "attributes");
  for (uint32_t k = 0; k < count; k++) {
    add_item(writer, inner, k == 0, cleave_json_attribute(&attributes[k]));
  }
  close_list(writer, indent, false, true);
}

static void add_rules(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "rules");
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
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->rule_count == 0, true);
}

static void add_values(writer_t *writer, const char *key, const cleave_document_value_t *values,
                       uint32_t count) {
  open_list(writer, "      ", key);
  for (uint32_t k = 0; k < count; k++) {
    add_item(writer, "        ", k == 0, value_json(&values[k]));
  }
  close_list(writer, "      ", count == 0, true);
}

static void add_fusion(writer_t *writer, const cleave_document_fusion_t *fusion, bool first) {
  const char *indent = "          ";
  cleave_text_add(writer->text, first ? "\n        {\n" : ",\n        {\n");
  add_member(writer, indent, "rule", cleave_json_number(fusion->rule), true);
  add_attributes(writer, indent, fusion->attributes, fusion->attribute_count);
  open_list(writer, indent, "nodes");
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    add_item(writer, "            ", k == 0, node_json(&fusion->nodes[k]));
  }
  close_list(writer, indent, fusion->node_count == 0, false);
  cleave_text_add(writer->text, "        }");
}

static void add_region(writer_t *writer, const cleave_document_region_t *region, bool first) {
  const char *indent = "      ";
  cleave_text_add(writer->text, first ? "\n    {\n" : ",\n    {\n");
  add_member(writer, indent, "name", cleave_json_text(region->name), true);
  add_member(writer, indent, "backend", cleave_json_text(region->backend), true);
  add_member(writer, indent, "rule", cleave_json_number(region->rule), true);
  add_attributes(writer, indent, region->attributes, region->attribute_count);
  add_values(writer, "inputs", region->inputs, region->input_count);
  add_values(writer, "outputs", region->outputs, region->output_count);
  open_list(writer, indent, "fusions");
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    add_fusion(writer, &region->fusions[k], k == 0);
  }
  close_list(writer, indent, region->fusion_count == 0, true);
  open_list(writer, indent, "nodes");
  for (uint32_t k = 0; k < region->node_count; k++) {
    add_item(writer, "        ", k == 0, node_json(&region->nodes[k]));
  }
  close_list(writer, indent, region->node_count == 0, false);
  cleave_text_add(writer->text, "    }");
}

static void add_steps(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "steps");
  for (uint32_t s = 0; s < document->step_count; s++) {
    json_t *json = NULL;
    if (document->steps[s].region == CLEAVE_INDEX_NONE) {
      json = node_json(&document->steps[s].node);
    } else {
      json = json_object();
      cleave_json_set(&json, "region", cleave_json_text(document->regions[document->steps[s].region].name));
    }
    add_item(writer, "    ", s == 0, json);
  }
  close_list(writer, "  ", document->step_count == 0, true);
}

static void add_notes(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "notes");
  for (uint32_t k = 0; k < document->note_count; k++) {
    const cleave_document_note_t *note = &document->notes[k];
    json_t *json = json_object();
    cleave_json_set(&json, "kind", cleave_json_text(cleave_plan_note_name(note->kind)));
    cleave_json_set(&json, "rule", cleave_json_number(note->rule));
    cleave_json_set(&json, "node", node_json(&note->node));
    cleave_json_set(&json, "reason", cleave_json_text(note->reason));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->note_count == 0, false);
}

static json_t *graph_json(const cleave_plan_document_t *document) {
  char hash[17];
  (void)snprintf(hash, sizeof hash, "%016" PRIx64, document->graph_hash);
  json_t *json = json_object();
  cleave_json_set(&json, "name", cleave_json_text(document->graph_name));
  cleave_json_set(&json, "hash", cleave_json_text(hash));
  cleave_json_set(&json, "nodes", cleave_json_number(document->node_count));
  return json;
}

static void add_settings(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "inputs");
  for (uint32_t k = 0; k < document->graph_input_count; k++) {
    json_t *json = json_object();
    cleave_json_set(&json, "name", cleave_json_text(document->graph_inputs[k].name));
    cleave_json_set(&json, "type", cleave_json_text(document->graph_inputs[k].type));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->graph_input_count == 0, true);
  open_list(writer, "  ", "settings");
  for (uint32_t k = 0; k < document->setting_count; k++) {
    json_t *json = json_object();
    cleave_json_set(&json, "name", cleave_json_text(document->settings[k].name));
    cleave_json_set(&json, "value", cleave_json_text(document->settings[k].value));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->setting_count == 0, true);
}

static void add_edit_list(writer_t *writer, json_t *edits, const char *key, bool more) {
  json_t *list = json_object_get(edits, key);
  open_list(writer, "    ", key);
  for (size_t k = 0; k < json_array_size(list); k++) {
    add_item(writer, "      ", k == 0, json_incref(json_array_get(list, k)));
  }
  close_list(writer, "    ", json_array_size(list) == 0, more);
}

/* What rewrites and passes did: an application a line. Nothing where they did nothing. */
static cleave_status_t add_edits(writer_t *writer, cleave_error_t *error) {
  json_t *edits = NULL;
  if (writer->document->edits == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_edits_to_json(writer->document->edits, &edits, error));
  cleave_text_add(writer->text, "  \"edits\": {\n");
  add_member(writer, "    ", "source", json_incref(json_object_get(edits, "source")), true);
  add_member(writer, "    ", "result", json_incref(json_object_get(edits, "result")), true);
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
  add_member(&writer, "  ", "format", cleave_json_text("cleave-plan"), true);
  add_member(&writer, "  ", "version", cleave_json_number(1), true);
  add_member(&writer, "  ", "cleave", cleave_json_text(document->version), true);
  add_member(&writer, "  ", "graph", graph_json(document), true);
  add_settings(&writer);
  add_rules(&writer);
  CLEAVE_TRY(add_edits(&writer, error));
  open_list(&writer, "  ", "regions");
  for (uint32_t r = 0; r < document->region_count; r++) {
    add_region(&writer, &document->regions[r], r == 0);
  }
  close_list(&writer, "  ", document->region_count == 0, true);
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
