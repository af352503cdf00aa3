// SPDX-License-Identifier: Apache-2.0
// Writes the log as JSON. A step has only the members of its kind.
#include "partition/plan/edits_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json_tensor.h"

static json_t *value_json(cleave_value_t value) {
  return cleave_value_exists(value) ? cleave_json_number(value.index) : json_null();
}

// ---- steps ----

static json_t *attribute_json(const cleave_attribute_t *attribute) {
  if (attribute->kind != CLEAVE_ATTRIBUTE_TENSOR) {
    return cleave_json_attribute(attribute);
  }
  json_t *json = json_object();
  cleave_json_set(&json, "name", cleave_json_text(attribute->name));
  cleave_json_set(&json, "kind", cleave_json_text("tensor"));
  cleave_json_set_tensor(&json, attribute->tensor);
  return json;
}

static json_t *attributes_json(const cleave_edit_t *edit) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < edit->attribute_count; k++) {
    cleave_json_append(&list, attribute_json(&edit->attributes[k]));
  }
  return list;
}

static json_t *shape_json(const cleave_edit_t *edit) {
  if (edit->rank < 0) {
    return json_null();
  }
  json_t *list = json_array();
  for (int32_t d = 0; d < edit->rank; d++) {
    const cleave_edit_dim_t *dim = &edit->dims[d];
    cleave_json_append(&list, dim->symbol != NULL ? cleave_json_text(dim->symbol)
                              : dim->size >= 0    ? json_integer(dim->size)
                                                  : json_null());
  }
  return list;
}

static void set_node_step(json_t **json, const cleave_edit_t *edit) {
  json_t *inputs = json_array();
  for (uint32_t k = 0; k < edit->input_count; k++) {
    cleave_json_append(&inputs, value_json(edit->inputs[k]));
  }
  cleave_json_set(json, "op", cleave_json_text(edit->op));
  if (edit->domain[0] != '\0') {
    cleave_json_set(json, "domain", cleave_json_text(edit->domain));
  }
  cleave_json_set(json, "name", cleave_json_text(edit->name));
  cleave_json_set(json, "inputs", inputs);
  cleave_json_set(json, "outputs", cleave_json_number(edit->output_count));
  if (edit->attribute_count > 0) {
    cleave_json_set(json, "attributes", attributes_json(edit));
  }
  cleave_json_set(json, "node", cleave_json_number(edit->node.index));
}

static json_t *step_json(const cleave_edit_t *edit) {
  json_t *json = json_object();
  cleave_json_set(&json, "do", cleave_json_text(cleave_edit_kind_name(edit->kind)));
  switch (edit->kind) {
    case CLEAVE_EDIT_ADD_NODE: set_node_step(&json, edit); break;
    case CLEAVE_EDIT_ADD_CONSTANT:
      cleave_json_set(&json, "name", cleave_json_text(edit->name));
      cleave_json_set_tensor(&json, edit->tensor);
      cleave_json_set(&json, "value", cleave_json_number(edit->value.index));
      break;
    case CLEAVE_EDIT_ADD_INPUT:
      cleave_json_set(&json, "name", cleave_json_text(edit->name));
      cleave_json_set(&json, "dtype", cleave_json_text(cleave_dtype_name(edit->dtype)));
      cleave_json_set(&json, "shape", shape_json(edit));
      cleave_json_set(&json, "value", cleave_json_number(edit->value.index));
      break;
    case CLEAVE_EDIT_REPLACE_USES:
      cleave_json_set(&json, "from", value_json(edit->other));
      cleave_json_set(&json, "value", value_json(edit->value));
      cleave_json_set(&json, "since", cleave_json_number(edit->index));
      break;
    case CLEAVE_EDIT_SET_INPUT:
      cleave_json_set(&json, "node", cleave_json_number(edit->node.index));
      cleave_json_set(&json, "input", cleave_json_number(edit->index));
      cleave_json_set(&json, "value", value_json(edit->value));
      break;
    case CLEAVE_EDIT_SET_ATTRIBUTE:
      cleave_json_set(&json, "node", cleave_json_number(edit->node.index));
      cleave_json_set(&json, "attributes", attributes_json(edit));
      break;
    case CLEAVE_EDIT_SET_OUTPUT:
      cleave_json_set(&json, "output", cleave_json_number(edit->index));
      cleave_json_set(&json, "value", value_json(edit->value));
      break;
    case CLEAVE_EDIT_REMOVE_NODE: cleave_json_set(&json, "node", cleave_json_number(edit->node.index)); break;
    case CLEAVE_EDIT_NAME_NODE:
      cleave_json_set(&json, "node", cleave_json_number(edit->node.index));
      cleave_json_set(&json, "name", cleave_json_text(edit->name));
      break;
    case CLEAVE_EDIT_NAME_VALUE:
      cleave_json_set(&json, "value", cleave_json_number(edit->value.index));
      cleave_json_set(&json, "name", cleave_json_text(edit->name));
      break;
    case CLEAVE_EDIT_READ_CONSTANT:
    case CLEAVE_EDIT_READ_SIZES:
      cleave_json_set(&json, "value", cleave_json_number(edit->value.index));
      break;
    case CLEAVE_EDIT_FOLD: break;
  }
  if (edit->line > 0) {
    cleave_json_set(&json, "line", json_integer(edit->line));
  }
  return json;
}

// ---- the log ----

static json_t *rules_json(const cleave_edits_t *edits) {
  json_t *list = json_array();
  for (size_t k = 0; k < edits->rules.count; k++) {
    const cleave_edit_rule_t *rule = &edits->rules.items[k];
    json_t *json = json_object();
    cleave_json_set(&json, "kind", cleave_json_text(rule->kind));
    cleave_json_set(&json, "name", cleave_json_text(rule->name));
    cleave_json_set(&json, "file", cleave_json_text(rule->file));
    cleave_json_set(&json, "line", json_integer(rule->line));
    cleave_json_set(&json, "number", cleave_json_number(rule->number));
    cleave_json_set(&json, "tries", cleave_json_number(rule->tries));
    cleave_json_set(&json, "matches", cleave_json_number(rule->matches));
    cleave_json_set(&json, "refused", cleave_json_number(rule->refused));
    cleave_json_append(&list, json);
  }
  return list;
}

static json_t *groups_json(const cleave_edits_t *edits) {
  json_t *list = json_array();
  for (size_t k = 0; k < edits->groups.count; k++) {
    const cleave_edit_group_t *group = &edits->groups.items[k];
    json_t *json = json_object();
    json_t *steps = json_array();
    for (uint32_t s = 0; s < group->edit_count; s++) {
      cleave_json_append(&steps, step_json(&edits->items.items[group->first_edit + s]));
    }
    if (group->rule != CLEAVE_INDEX_NONE) {
      cleave_json_set(&json, "rule", cleave_json_number(group->rule));
    }
    if (group->place[0] != '\0') {
      cleave_json_set(&json, "place", cleave_json_text(group->place));
    }
    cleave_json_set(&json, "steps", steps);
    cleave_json_append(&list, json);
  }
  return list;
}

static json_t *refusals_json(const cleave_edits_t *edits) {
  json_t *list = json_array();
  for (size_t k = 0; k < edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &edits->refusals.items[k];
    json_t *json = json_object();
    cleave_json_set(&json, "rule", cleave_json_number(refusal->rule));
    cleave_json_set(&json, "place", cleave_json_text(refusal->place));
    cleave_json_set(&json, "reason", cleave_json_text(refusal->reason));
    cleave_json_append(&list, json);
  }
  return list;
}

static cleave_status_t check_size(const cleave_edits_t *edits, cleave_error_t *error) {
  size_t bytes = 0;
  for (size_t k = 0; k < edits->tensors.count; k++) {
    bytes += edits->tensors.items[k]->bytes;
    if (bytes > CLEAVE_EDITS_JSON_DATA_LIMIT) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                              "the constants that rules made have more than %d MiB: too much for a plan file "
                              "(folding them from the model's own keeps them out)",
                              (int)(CLEAVE_EDITS_JSON_DATA_LIMIT >> 20));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_edits_to_json(const cleave_edits_t *edits, json_t **out_json, cleave_error_t *error) {
  *out_json = NULL;
  CLEAVE_TRY(check_size(edits, error));
  json_t *source = json_object();
  cleave_json_set(&source, "hash", cleave_json_hash(edits->source_hash));
  cleave_json_set(&source, "nodes", cleave_json_number(edits->source_nodes));
  cleave_json_set(&source, "values", cleave_json_number(edits->source_values));
  json_t *result = json_object();
  cleave_json_set(&result, "hash", cleave_json_hash(edits->result_hash));
  json_t *json = json_object();
  cleave_json_set(&json, "source", source);
  cleave_json_set(&json, "result", result);
  cleave_json_set(&json, "rules", rules_json(edits));
  cleave_json_set(&json, "groups", groups_json(edits));
  cleave_json_set(&json, "refusals", refusals_json(edits));
  *out_json = json;
  return json == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}
