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

#include "partition/plan_document.h"

typedef struct writer {
  const cleave_plan_document_t *document;
  cleave_text_t *text;
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

/* Sets a member; a failure makes the object unusable, which add_json finds. */
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

static json_t *node_json(const cleave_document_node_t *node) {
  json_t *json = json_object();
  set(&json, "position", number_json(node->position));
  set(&json, "op", text_json(node->op));
  if (node->name[0] != '\0') {
    set(&json, "name", text_json(node->name));
  }
  if (node->label != NULL && node->label[0] != '\0') {
    set(&json, "label", text_json(node->label));
  }
  return json;
}

static json_t *value_json(const cleave_document_value_t *value) {
  json_t *json = json_object();
  if (value->position != CLEAVE_INDEX_NONE) {
    set(&json, "position", number_json(value->position));
    set(&json, "output", number_json(value->index));
  } else {
    set(&json, "input", number_json(value->index));
  }
  if (value->name[0] != '\0') {
    set(&json, "name", text_json(value->name));
  }
  return json;
}

/* JSON has no words for what is not finite. */
static json_t *real_json(double number) {
  if (isfinite(number)) {
    return json_real(number);
  }
  return json_string(isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

/* Bytes as they are; those that are no UTF-8 text as {"hex": "..."}. */
static json_t *bytes_json(const char *bytes, size_t length) {
  static const char digits[] = "0123456789abcdef";
  json_t *json = memchr(bytes, '\0', length) == NULL ? json_stringn(bytes, length) : NULL;
  if (json != NULL) {
    return json;
  }
  char *hex = cleave_allocate(length + 1, 2);
  for (size_t k = 0; hex != NULL && k < length; k++) {
    hex[2 * k] = digits[(unsigned char)bytes[k] >> 4];
    hex[2 * k + 1] = digits[(unsigned char)bytes[k] & 15];
  }
  json = json_object();
  set(&json, "hex", hex == NULL ? NULL : json_stringn(hex, 2 * length));
  cleave_free(hex);
  return json;
}

static json_t *attribute_json(const cleave_attribute_t *attribute) {
  static const char *const kinds[] = {
      [CLEAVE_ATTRIBUTE_INT] = "int",       [CLEAVE_ATTRIBUTE_FLOAT] = "float",
      [CLEAVE_ATTRIBUTE_STRING] = "string", [CLEAVE_ATTRIBUTE_INTS] = "ints",
      [CLEAVE_ATTRIBUTE_FLOATS] = "floats", [CLEAVE_ATTRIBUTE_STRINGS] = "strings",
  };
  if (attribute->kind < CLEAVE_ATTRIBUTE_INT || attribute->kind > CLEAVE_ATTRIBUTE_STRINGS) {
    return NULL;
  }
  json_t *list = json_array();
  json_t *value = NULL;
  for (uint32_t k = 0; k < attribute->count; k++) {
    json_t *item = attribute->kind == CLEAVE_ATTRIBUTE_INTS     ? json_integer(attribute->ints[k])
                   : attribute->kind == CLEAVE_ATTRIBUTE_FLOATS ? real_json((double)attribute->floats[k])
                   : attribute->kind == CLEAVE_ATTRIBUTE_STRINGS
                       ? bytes_json(attribute->strings[k], strlen(attribute->strings[k]))
                       : NULL;
    if (item != NULL) {
      (void)json_array_append_new(list, item);
    }
  }
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: value = json_integer(attribute->i); break;
    case CLEAVE_ATTRIBUTE_FLOAT: value = real_json(attribute->f); break;
    case CLEAVE_ATTRIBUTE_STRING: value = bytes_json(attribute->s, attribute->count); break;
    default: value = json_array_size(list) == attribute->count ? json_incref(list) : NULL; break;
  }
  json_decref(list);
  json_t *json = json_object();
  set(&json, "name", text_json(attribute->name));
  set(&json, "kind", json_string(kinds[attribute->kind]));
  set(&json, "value", value);
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
    add_item(writer, inner, k == 0, attribute_json(&attributes[k]));
  }
  close_list(writer, indent, false, true);
}

static void add_rules(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "rules");
  for (uint32_t k = 0; k < document->rule_count; k++) {
    const cleave_plan_rule_t *rule = &document->rules[k];
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
  add_member(writer, indent, "rule", number_json(fusion->rule), true);
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
  add_member(writer, indent, "name", text_json(region->name), true);
  add_member(writer, indent, "backend", text_json(region->backend), true);
  add_member(writer, indent, "rule", number_json(region->rule), true);
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
      set(&json, "region", text_json(document->regions[document->steps[s].region].name));
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
    set(&json, "kind", text_json(cleave_plan_note_name(note->kind)));
    set(&json, "rule", number_json(note->rule));
    set(&json, "node", node_json(&note->node));
    set(&json, "reason", text_json(note->reason));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->note_count == 0, false);
}

static json_t *graph_json(const cleave_plan_document_t *document) {
  char hash[17];
  (void)snprintf(hash, sizeof hash, "%016" PRIx64, document->graph_hash);
  json_t *json = json_object();
  set(&json, "name", text_json(document->graph_name));
  set(&json, "hash", text_json(hash));
  set(&json, "nodes", number_json(document->node_count));
  return json;
}

static void add_settings(writer_t *writer) {
  const cleave_plan_document_t *document = writer->document;
  open_list(writer, "  ", "inputs");
  for (uint32_t k = 0; k < document->graph_input_count; k++) {
    json_t *json = json_object();
    set(&json, "name", text_json(document->graph_inputs[k].name));
    set(&json, "type", text_json(document->graph_inputs[k].type));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->graph_input_count == 0, true);
  open_list(writer, "  ", "settings");
  for (uint32_t k = 0; k < document->setting_count; k++) {
    json_t *json = json_object();
    set(&json, "name", text_json(document->settings[k].name));
    set(&json, "value", text_json(document->settings[k].value));
    add_item(writer, "    ", k == 0, json);
  }
  close_list(writer, "  ", document->setting_count == 0, true);
}

cleave_status_t cleave_plan_document_print(const cleave_plan_document_t *document, cleave_text_t *text,
                                           cleave_error_t *error) {
  writer_t writer = {.document = document, .text = text};
  cleave_text_add(text, "{\n");
  add_member(&writer, "  ", "format", text_json("cleave-plan"), true);
  add_member(&writer, "  ", "version", number_json(1), true);
  add_member(&writer, "  ", "cleave", text_json(document->version), true);
  add_member(&writer, "  ", "graph", graph_json(document), true);
  add_settings(&writer);
  add_rules(&writer);
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
