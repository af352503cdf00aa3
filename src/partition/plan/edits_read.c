// SPDX-License-Identifier: Apache-2.0
// Reads the log from JSON. Nothing is trusted: the type and range of every member and the size of every
// constant are checked, and the total size of constants is bounded.
#include <math.h>
#include <string.h>

#include "json/json_tensor.h"
#include "partition/plan/edits_json.h"

typedef struct log_reader {
  cleave_json_reader_t base;
  cleave_edits_t *edits;
  size_t data_left; /* of CLEAVE_EDITS_JSON_DATA_LIMIT */
} log_reader_t;

#define MAX_ID (CLEAVE_INDEX_NONE - 1)

// ---- members ----

/* Calls `read` for every item of the list under `key`. */
static cleave_status_t for_each(log_reader_t *reader, const json_t *object, const char *key,
                                cleave_status_t (*read)(log_reader_t *reader, json_t *json, void *context),
                                void *context) {
  json_t *list = NULL;
  CLEAVE_TRY(cleave_reader_get(&reader->base, object, key, JSON_ARRAY, "a list", &list));
  size_t before = cleave_reader_enter(&reader->base, key, CLEAVE_INDEX_NONE);
  for (size_t k = 0; k < json_array_size(list); k++) {
    size_t inside = cleave_reader_enter(&reader->base, "", (uint32_t)k);
    CLEAVE_TRY(read(reader, json_array_get(list, k), context));
    cleave_reader_leave(&reader->base, inside);
  }
  cleave_reader_leave(&reader->base, before);
  return CLEAVE_OK;
}

static cleave_status_t get_hash(log_reader_t *reader, const json_t *object, uint64_t *out_hash) {
  const char *text = NULL;
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, object, "hash", NULL, &text));
  *out_hash = 0;
  for (size_t k = 0; k < 16; k++) {
    int digit = text[k] == '\0' ? -1 : cleave_reader_hex_digit(text[k]);
    if (digit < 0) {
      return cleave_reader_fail(&reader->base, "hash: expected 16 digits 0 to 9 and a to f");
    }
    *out_hash = *out_hash << 4 | (uint64_t)digit;
  }
  return text[16] == '\0' ? CLEAVE_OK
                          : cleave_reader_fail(&reader->base, "hash: expected 16 digits 0 to 9 and a to f");
}

/* An id; null is NONE. */
static cleave_status_t get_value(log_reader_t *reader, const json_t *object, const char *key,
                                 cleave_value_t *out_value) {
  out_value->index = CLEAVE_INDEX_NONE;
  return json_is_null(json_object_get(object, key))
             ? CLEAVE_OK
             : cleave_reader_get_number(&reader->base, object, key, MAX_ID, &out_value->index);
}

// ---- steps ----

static cleave_status_t read_attribute(log_reader_t *reader, json_t *json, void *context) {
  static const char *const keys[] = {"name", "kind", "dtype", "shape", "data", NULL};
  cleave_attribute_t *attribute = context;
  const json_t *kind = json_object_get(json, "kind");
  if (!json_is_string(kind) || strcmp(json_string_value(kind), "tensor") != 0) {
    return cleave_reader_read_attribute(&reader->base, json, attribute);
  }
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "name", NULL, &attribute->name));
  attribute->kind = CLEAVE_ATTRIBUTE_TENSOR;
  return cleave_reader_read_tensor(&reader->base, json, &reader->data_left, &attribute->tensor);
}

typedef struct attribute_list {
  cleave_attribute_t *items;
  uint32_t count;
} attribute_list_t;

static cleave_status_t read_next_attribute(log_reader_t *reader, json_t *json, void *context) {
  attribute_list_t *list = context;
  cleave_attribute_t *attribute = &list->items[list->count];
  *attribute = (cleave_attribute_t){.kind = CLEAVE_ATTRIBUTE_INT};
  CLEAVE_TRY(read_attribute(reader, json, attribute));
  list->count++;
  return CLEAVE_OK;
}

/* The tensors among the attributes are the caller's to release, also after a failure. */
static cleave_status_t get_attributes(log_reader_t *reader, const json_t *object, attribute_list_t *list) {
  const json_t *json = json_object_get(object, "attributes");
  if (json == NULL) {
    return CLEAVE_OK;
  }
  size_t count = json_array_size(json);
  if (count > UINT16_MAX) {
    return cleave_reader_fail(&reader->base, "attributes: expected at most %d", UINT16_MAX);
  }
  list->items = cleave_arena_allocate(reader->base.arena, count + 1, sizeof *list->items);
  if (list->items == NULL) {
    return cleave_error_out_of_memory(reader->base.error);
  }
  return for_each(reader, object, "attributes", read_next_attribute, list);
}

static void release_attributes(const attribute_list_t *list) {
  for (uint32_t k = 0; k < list->count; k++) {
    if (list->items[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      cleave_tensor_release(list->items[k].tensor);
    }
  }
}

static cleave_status_t read_node_inputs(log_reader_t *reader, const json_t *object, cleave_edit_t *edit) {
  json_t *list = NULL;
  CLEAVE_TRY(cleave_reader_get(&reader->base, object, "inputs", JSON_ARRAY, "a list", &list));
  size_t count = json_array_size(list);
  cleave_value_t *inputs = cleave_arena_allocate(reader->base.arena, count + 1, sizeof *inputs);
  if (inputs == NULL) {
    return cleave_error_out_of_memory(reader->base.error);
  }
  for (size_t k = 0; k < count; k++) {
    const json_t *item = json_array_get(list, k);
    json_int_t index = json_is_integer(item) ? json_integer_value(item) : -1;
    if (!json_is_null(item) && (index < 0 || index > (json_int_t)MAX_ID)) {
      return cleave_reader_fail(&reader->base, "inputs[%zu]: expected a value's number, or null", k);
    }
    inputs[k].index = json_is_null(item) ? CLEAVE_INDEX_NONE : (uint32_t)index;
  }
  if (count > UINT16_MAX) {
    return cleave_reader_fail(&reader->base, "inputs: expected at most %d", UINT16_MAX);
  }
  edit->inputs = inputs;
  edit->input_count = (uint32_t)count;
  return CLEAVE_OK;
}

static cleave_status_t read_shape(log_reader_t *reader, const json_t *object, cleave_edit_t *edit) {
  json_t *list = NULL;
  edit->rank = -1;
  if (json_is_null(json_object_get(object, "shape"))) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_reader_get(&reader->base, object, "shape", JSON_ARRAY, "a list", &list));
  size_t rank = json_array_size(list);
  cleave_edit_dim_t *dims = cleave_arena_allocate(reader->base.arena, rank + 1, sizeof *dims);
  if (dims == NULL) {
    return cleave_error_out_of_memory(reader->base.error);
  }
  for (size_t d = 0; d < rank; d++) {
    const json_t *item = json_array_get(list, d);
    dims[d].size = json_is_integer(item) ? (int64_t)json_integer_value(item) : -1;
    dims[d].symbol = json_string_value(item);
    if (rank > CLEAVE_MAX_RANK || (!json_is_null(item) && dims[d].symbol == NULL && dims[d].size < 0)) {
      return cleave_reader_fail(&reader->base,
                                "shape: expected at most %d sizes, names, or null for unknown ones",
                                CLEAVE_MAX_RANK);
    }
  }
  edit->rank = (int32_t)rank;
  edit->dims = dims;
  return CLEAVE_OK;
}

/* The members of a kind. */
static cleave_status_t read_members(log_reader_t *reader, const json_t *json, cleave_edit_t *edit,
                                    attribute_list_t *attributes) {
  cleave_json_reader_t *base = &reader->base;
  switch (edit->kind) {
    case CLEAVE_EDIT_ADD_NODE:
      CLEAVE_TRY(cleave_reader_get_text(base, json, "op", NULL, &edit->op));
      CLEAVE_TRY(cleave_reader_get_text(base, json, "domain", "", &edit->domain));
      CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &edit->name));
      CLEAVE_TRY(read_node_inputs(reader, json, edit));
      CLEAVE_TRY(cleave_reader_get_number(base, json, "outputs", UINT16_MAX, &edit->output_count));
      CLEAVE_TRY(get_attributes(reader, json, attributes));
      return cleave_reader_get_number(base, json, "node", MAX_ID, &edit->node.index);
    case CLEAVE_EDIT_ADD_CONSTANT:
      CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &edit->name));
      CLEAVE_TRY(cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index));
      return cleave_reader_read_tensor(&reader->base, json, &reader->data_left, &edit->tensor);
    case CLEAVE_EDIT_ADD_INPUT:
      CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &edit->name));
      CLEAVE_TRY(cleave_reader_get_dtype(&reader->base, json, &edit->dtype));
      CLEAVE_TRY(read_shape(reader, json, edit));
      return cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index);
    case CLEAVE_EDIT_REPLACE_USES:
      CLEAVE_TRY(cleave_reader_get_number(base, json, "from", MAX_ID, &edit->other.index));
      CLEAVE_TRY(cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index));
      return cleave_reader_get_number(base, json, "since", MAX_ID, &edit->index);
    case CLEAVE_EDIT_SET_INPUT:
      CLEAVE_TRY(cleave_reader_get_number(base, json, "node", MAX_ID, &edit->node.index));
      CLEAVE_TRY(cleave_reader_get_number(base, json, "input", UINT16_MAX, &edit->index));
      return get_value(reader, json, "value", &edit->value);
    case CLEAVE_EDIT_SET_ATTRIBUTE:
      CLEAVE_TRY(cleave_reader_get_number(base, json, "node", MAX_ID, &edit->node.index));
      return get_attributes(reader, json, attributes);
    case CLEAVE_EDIT_SET_OUTPUT:
      CLEAVE_TRY(cleave_reader_get_number(base, json, "output", MAX_ID, &edit->index));
      return cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index);
    case CLEAVE_EDIT_REMOVE_NODE:
      return cleave_reader_get_number(base, json, "node", MAX_ID, &edit->node.index);
    case CLEAVE_EDIT_NAME_NODE:
      CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &edit->name));
      return cleave_reader_get_number(base, json, "node", MAX_ID, &edit->node.index);
    case CLEAVE_EDIT_NAME_VALUE:
      CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &edit->name));
      return cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index);
    case CLEAVE_EDIT_READ_CONSTANT:
    case CLEAVE_EDIT_READ_SIZES:
      return cleave_reader_get_number(base, json, "value", MAX_ID, &edit->value.index);
    case CLEAVE_EDIT_FOLD: return CLEAVE_OK;
  }
  return CLEAVE_OK;
}

static cleave_status_t read_kind(log_reader_t *reader, const json_t *json, cleave_edit_t *edit) {
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "do", NULL, &name));
  for (int k = 0; k < CLEAVE_EDIT_KIND_COUNT; k++) {
    if (strcmp(name, cleave_edit_kind_name((cleave_edit_kind_t)k)) == 0) {
      edit->kind = (cleave_edit_kind_t)k;
      return CLEAVE_OK;
    }
  }
  return cleave_reader_fail(&reader->base, "do: '%.40s' is not a kind of change", name);
}

static cleave_status_t read_step(log_reader_t *reader, json_t *json, void *context) {
  static const char *const keys[] = {"do",    "op",   "domain", "name",  "inputs",     "outputs",
                                     "node",  "from", "value",  "since", "input",      "output",
                                     "dtype", "line", "shape",  "data",  "attributes", NULL};
  attribute_list_t attributes = {NULL, 0};
  uint32_t line = 0;
  cleave_edit_t edit = {.node = CLEAVE_NODE_NONE, .value = CLEAVE_VALUE_NONE, .other = CLEAVE_VALUE_NONE};
  (void)context;
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  CLEAVE_TRY(read_kind(reader, json, &edit));
  if (json_object_get(json, "line") != NULL) {
    CLEAVE_TRY(cleave_reader_get_number(&reader->base, json, "line", INT32_MAX, &line));
  }
  edit.line = (int32_t)line;
  cleave_status_t status = read_members(reader, json, &edit, &attributes);
  edit.attributes = attributes.items;
  edit.attribute_count = attributes.count;
  if (status == CLEAVE_OK) {
    status = cleave_edits_add(reader->edits, &edit, reader->base.error);
  }
  release_attributes(&attributes);
  cleave_tensor_release(edit.tensor);
  return status;
}

// ---- the log ----

static cleave_status_t read_rule(log_reader_t *reader, json_t *json, void *context) {
  static const char *const keys[] = {"kind",  "name",    "file",    "line", "number",
                                     "tries", "matches", "refused", NULL};
  cleave_json_reader_t *base = &reader->base;
  cleave_edit_rule_t rule = {.line = 0};
  uint32_t number = 0;
  (void)context;
  CLEAVE_TRY(cleave_reader_check_keys(base, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(base, json, "kind", NULL, &rule.kind));
  CLEAVE_TRY(cleave_reader_get_text(base, json, "name", NULL, &rule.name));
  CLEAVE_TRY(cleave_reader_get_text(base, json, "file", NULL, &rule.file));
  CLEAVE_TRY(cleave_reader_get_number(base, json, "line", INT32_MAX, &number));
  rule.line = (int32_t)number;
  CLEAVE_TRY(cleave_reader_get_number(base, json, "number", MAX_ID, &rule.number));
  CLEAVE_TRY(cleave_reader_get_number(base, json, "tries", UINT32_MAX, &rule.tries));
  CLEAVE_TRY(cleave_reader_get_number(base, json, "matches", UINT32_MAX, &rule.matches));
  CLEAVE_TRY(cleave_reader_get_number(base, json, "refused", UINT32_MAX, &rule.refused));
  return cleave_edits_add_rule(reader->edits, &rule, &number, base->error);
}

static cleave_status_t get_rule(log_reader_t *reader, const json_t *json, uint32_t *out_rule) {
  return cleave_reader_get_index(&reader->base, json, "rule", (uint32_t)reader->edits->rules.count,
                                 "rule that changes graphs", out_rule);
}

static cleave_status_t read_group(log_reader_t *reader, json_t *json, void *context) {
  static const char *const keys[] = {"rule", "place", "steps", NULL};
  uint32_t rule = CLEAVE_INDEX_NONE;
  const char *place = NULL;
  (void)context;
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  if (json_object_get(json, "rule") != NULL) {
    CLEAVE_TRY(get_rule(reader, json, &rule));
  }
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "place", "", &place));
  CLEAVE_TRY(cleave_edits_begin(reader->edits, rule, place, reader->base.error));
  CLEAVE_TRY(for_each(reader, json, "steps", read_step, NULL));
  cleave_edits_end(reader->edits);
  return CLEAVE_OK;
}

static cleave_status_t read_refusal(log_reader_t *reader, json_t *json, void *context) {
  static const char *const keys[] = {"rule", "place", "reason", NULL};
  uint32_t rule = 0;
  const char *place = NULL;
  const char *reason = NULL;
  (void)context;
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  CLEAVE_TRY(get_rule(reader, json, &rule));
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "place", NULL, &place));
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "reason", NULL, &reason));
  return cleave_edits_refuse(reader->edits, rule, place, reason, reader->base.error);
}

static cleave_status_t read_log(log_reader_t *reader, json_t *json) {
  static const char *const keys[] = {"source", "result", "rules", "groups", "refusals", NULL};
  static const char *const source_keys[] = {"hash", "nodes", "values", NULL};
  static const char *const result_keys[] = {"hash", NULL};
  cleave_json_reader_t *base = &reader->base;
  cleave_edits_t *edits = reader->edits;
  json_t *part = NULL;
  CLEAVE_TRY(cleave_reader_check_keys(base, json, keys));
  CLEAVE_TRY(cleave_reader_get(base, json, "source", JSON_OBJECT, "an object", &part));
  CLEAVE_TRY(cleave_reader_check_keys(base, part, source_keys));
  CLEAVE_TRY(get_hash(reader, part, &edits->source_hash));
  CLEAVE_TRY(cleave_reader_get_number(base, part, "nodes", MAX_ID, &edits->source_nodes));
  CLEAVE_TRY(cleave_reader_get_number(base, part, "values", MAX_ID, &edits->source_values));
  CLEAVE_TRY(cleave_reader_get(base, json, "result", JSON_OBJECT, "an object", &part));
  CLEAVE_TRY(cleave_reader_check_keys(base, part, result_keys));
  CLEAVE_TRY(get_hash(reader, part, &edits->result_hash));
  CLEAVE_TRY(for_each(reader, json, "rules", read_rule, NULL));
  CLEAVE_TRY(for_each(reader, json, "groups", read_group, NULL));
  return for_each(reader, json, "refusals", read_refusal, NULL);
}

cleave_status_t cleave_edits_from_json(const char *place, const json_t *json, cleave_edits_t **out_edits,
                                       cleave_error_t *error) {
  cleave_arena_t arena = {0};
  cleave_error_t own = CLEAVE_ERROR_INIT; /* the reader reports its errors; the member is required */
  log_reader_t reader = {.base = {.place = place, .arena = &arena, .error = error != NULL ? error : &own},
                         .data_left = CLEAVE_EDITS_JSON_DATA_LIMIT};
  *out_edits = NULL;
  cleave_status_t status = cleave_edits_create(&reader.edits, error);
  if (status == CLEAVE_OK) {
    size_t before = cleave_reader_enter(&reader.base, "edits", CLEAVE_INDEX_NONE);
    status = read_log(&reader, (json_t *)(uintptr_t)json);
    cleave_reader_leave(&reader.base, before);
  }
  if (status == CLEAVE_OK) {
    *out_edits = reader.edits;
  } else {
    cleave_edits_destroy(reader.edits);
  }
  cleave_arena_deinit(&arena);
  return status;
}
