// SPDX-License-Identifier: Apache-2.0
// The log as JSON and back. A step has only the members of its kind, which one table lists for both
// directions. What is read is hostile: the type and range of every member and the size of every constant are
// checked, and the total size of constants is bounded.
#include "partition/plan/edits_json.h"

#include <string.h>

#include "json/json_attribute.h"

#define MAX_ID (CLEAVE_INDEX_NONE - 1)

typedef enum member_type {
  MEMBER_NONE,
  MEMBER_TEXT,
  MEMBER_OPTIONAL_TEXT, /* missing: "" */
  MEMBER_NUMBER,        /* up to `most` */
  MEMBER_VALUE,         /* a value's id, or null for none */
  MEMBER_INPUTS,        /* values */
  MEMBER_ATTRIBUTES,    /* missing: none */
  MEMBER_TENSOR,        /* its three members */
  MEMBER_DTYPE,
  MEMBER_SHAPE
} member_type_t;

typedef struct member {
  const char *key;
  member_type_t type;
  size_t offset; /* in cleave_edit_t, of all types that are one field */
  uint32_t most;
} member_t;

#define FIELD(name) offsetof(cleave_edit_t, name)
#define NAME \
  { "name", MEMBER_TEXT, FIELD(name), 0 }
#define NODE \
  { "node", MEMBER_NUMBER, FIELD(node), MAX_ID }
#define VALUE \
  { "value", MEMBER_NUMBER, FIELD(value), MAX_ID }
#define ATTRIBUTES \
  { "attributes", MEMBER_ATTRIBUTES, 0, 0 }

static const member_t MEMBERS[CLEAVE_EDIT_KIND_COUNT][8] = {
    [CLEAVE_EDIT_ADD_NODE] = {{"op", MEMBER_TEXT, FIELD(op), 0},
                              {"domain", MEMBER_OPTIONAL_TEXT, FIELD(domain), 0},
                              NAME,
                              {"inputs", MEMBER_INPUTS, 0, 0},
                              {"outputs", MEMBER_NUMBER, FIELD(output_count), UINT16_MAX},
                              ATTRIBUTES,
                              NODE},
    [CLEAVE_EDIT_ADD_CONSTANT] = {NAME, {"data", MEMBER_TENSOR, 0, 0}, VALUE},
    [CLEAVE_EDIT_ADD_INPUT] = {NAME, {"dtype", MEMBER_DTYPE, 0, 0}, {"shape", MEMBER_SHAPE, 0, 0}, VALUE},
    [CLEAVE_EDIT_REPLACE_USES] = {{"from", MEMBER_NUMBER, FIELD(other), MAX_ID},
                                  VALUE,
                                  {"since", MEMBER_NUMBER, FIELD(index), MAX_ID}},
    [CLEAVE_EDIT_SET_INPUT] = {NODE,
                               {"input", MEMBER_NUMBER, FIELD(index), UINT16_MAX},
                               {"value", MEMBER_VALUE, FIELD(value), 0}},
    [CLEAVE_EDIT_SET_ATTRIBUTE] = {NODE, ATTRIBUTES},
    [CLEAVE_EDIT_SET_OUTPUT] = {{"output", MEMBER_NUMBER, FIELD(index), MAX_ID}, VALUE},
    [CLEAVE_EDIT_REMOVE_NODE] = {NODE},
    [CLEAVE_EDIT_NAME_NODE] = {NODE, NAME},
    [CLEAVE_EDIT_NAME_VALUE] = {VALUE, NAME},
    [CLEAVE_EDIT_READ_CONSTANT] = {VALUE},
    [CLEAVE_EDIT_READ_SIZES] = {VALUE},
};

// ---- steps, written ----

static json_t *id_json(uint32_t id) {
  return id == CLEAVE_INDEX_NONE ? json_null() : cleave_json_number(id);
}

static json_t *inputs_json(const cleave_edit_t *edit) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < edit->input_count; k++) {
    cleave_json_append(&list, id_json(edit->inputs[k].index));
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

static void set_member(json_t **json, const member_t *member, const cleave_edit_t *edit) {
  const char *field = (const char *)edit + member->offset;
  const char *text = NULL;
  uint32_t number = 0;
  switch (member->type) {
    case MEMBER_TEXT:
    case MEMBER_OPTIONAL_TEXT:
      memcpy(&text, field, sizeof text);
      if (member->type == MEMBER_TEXT || text[0] != '\0') {
        cleave_json_set(json, member->key, cleave_json_text(text));
      }
      break;
    case MEMBER_NUMBER:
    case MEMBER_VALUE:
      memcpy(&number, field, sizeof number);
      cleave_json_set(json, member->key, id_json(number));
      break;
    case MEMBER_INPUTS: cleave_json_set(json, member->key, inputs_json(edit)); break;
    case MEMBER_ATTRIBUTES:
      if (edit->attribute_count > 0) {
        cleave_json_set(json, member->key, cleave_json_attributes(edit->attributes, edit->attribute_count));
      }
      break;
    case MEMBER_TENSOR: cleave_json_set_tensor(json, edit->tensor); break;
    case MEMBER_DTYPE:
      cleave_json_set(json, member->key, cleave_json_text(cleave_dtype_name(edit->dtype)));
      break;
    case MEMBER_SHAPE: cleave_json_set(json, member->key, shape_json(edit)); break;
    case MEMBER_NONE: break;
  }
}

static json_t *step_json(const cleave_edit_t *edit) {
  json_t *json = json_object();
  cleave_json_set(&json, "do", cleave_json_text(cleave_edit_kind_name(edit->kind)));
  for (const member_t *member = MEMBERS[edit->kind]; member->type != MEMBER_NONE; member++) {
    set_member(&json, member, edit);
  }
  if (edit->line > 0) {
    cleave_json_set(&json, "line", json_integer(edit->line));
  }
  return json;
}

// ---- the log, written ----

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

// ---- steps, read ----

typedef struct log_reader {
  cleave_json_reader_t base; /* first: items of lists are read through it */
  cleave_edits_t *edits;
} log_reader_t;

/* Calls `read` for every item of the list under `key`. */
static cleave_status_t for_each(log_reader_t *reader, const json_t *object, const char *key,
                                cleave_status_t (*read)(log_reader_t *reader, json_t *json)) {
  json_t *list = NULL;
  CLEAVE_TRY(cleave_reader_get(&reader->base, object, key, JSON_ARRAY, "a list", &list));
  size_t before = cleave_reader_enter(&reader->base, key, CLEAVE_INDEX_NONE);
  for (size_t k = 0; k < json_array_size(list); k++) {
    size_t inside = cleave_reader_enter(&reader->base, "", (uint32_t)k);
    CLEAVE_TRY(read(reader, json_array_get(list, k)));
    cleave_reader_leave(&reader->base, inside);
  }
  cleave_reader_leave(&reader->base, before);
  return CLEAVE_OK;
}

static cleave_status_t read_input(cleave_json_reader_t *reader, json_t *json, void *item) {
  cleave_value_t *value = item;
  json_int_t index = json_is_integer(json) ? json_integer_value(json) : -1;
  value->index = json_is_null(json) ? CLEAVE_INDEX_NONE : (uint32_t)index;
  return json_is_null(json) || (index >= 0 && index <= (json_int_t)MAX_ID)
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "expected a value's number, or null");
}

static cleave_status_t read_dim(cleave_json_reader_t *reader, json_t *json, void *item) {
  cleave_edit_dim_t *dim = item;
  dim->size = json_is_integer(json) ? (int64_t)json_integer_value(json) : -1;
  dim->symbol = json_string_value(json);
  return json_is_null(json) || dim->symbol != NULL || dim->size >= 0
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "expected a size, a name, or null for one that is not known");
}

/* A list of at most `most` items; none if it is missing. */
static cleave_status_t check_length(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                    size_t most) {
  return json_array_size(json_object_get(object, key)) <= most
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "%s: expected at most %zu", key, most);
}

static cleave_status_t read_inputs(cleave_json_reader_t *reader, const json_t *json, cleave_edit_t *edit) {
  cleave_value_t *inputs = NULL;
  CLEAVE_TRY(check_length(reader, json, "inputs", UINT16_MAX));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "inputs", sizeof *inputs, read_input, &inputs,
                                    &edit->input_count));
  edit->inputs = inputs;
  return CLEAVE_OK;
}

/* The tensors among them are the caller's to release, also after a failure. */
static cleave_status_t read_attributes(cleave_json_reader_t *reader, const json_t *json,
                                       cleave_edit_t *edit) {
  cleave_attribute_t *attributes = NULL;
  CLEAVE_TRY(check_length(reader, json, "attributes", UINT16_MAX));
  cleave_status_t status =
      cleave_reader_get_attributes(reader, json, false, &attributes, &edit->attribute_count);
  edit->attributes = attributes;
  return status;
}

static cleave_status_t read_shape(cleave_json_reader_t *reader, const json_t *json, cleave_edit_t *edit) {
  cleave_edit_dim_t *dims = NULL;
  uint32_t rank = 0;
  edit->rank = -1;
  if (json_is_null(json_object_get(json, "shape"))) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(check_length(reader, json, "shape", CLEAVE_MAX_RANK));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "shape", sizeof *dims, read_dim, &dims, &rank));
  edit->rank = (int32_t)rank;
  edit->dims = dims;
  return CLEAVE_OK;
}

static cleave_status_t read_member(cleave_json_reader_t *reader, const json_t *json, const member_t *member,
                                   cleave_edit_t *edit) {
  void *field = (char *)edit + member->offset;
  const char *fallback = member->type == MEMBER_OPTIONAL_TEXT ? "" : NULL;
  switch (member->type) {
    case MEMBER_TEXT:
    case MEMBER_OPTIONAL_TEXT: return cleave_reader_get_text(reader, json, member->key, fallback, field);
    case MEMBER_NUMBER: return cleave_reader_get_number(reader, json, member->key, member->most, field);
    case MEMBER_VALUE: /* NONE already */
      return json_is_null(json_object_get(json, member->key))
                 ? CLEAVE_OK
                 : cleave_reader_get_number(reader, json, member->key, MAX_ID, field);
    case MEMBER_INPUTS: return read_inputs(reader, json, edit);
    case MEMBER_ATTRIBUTES: return read_attributes(reader, json, edit);
    case MEMBER_TENSOR: return cleave_reader_read_tensor(reader, json, &edit->tensor);
    case MEMBER_DTYPE: return cleave_reader_get_dtype(reader, json, &edit->dtype);
    case MEMBER_SHAPE: return read_shape(reader, json, edit);
    case MEMBER_NONE: break;
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

static cleave_status_t read_step(log_reader_t *reader, json_t *json) {
  static const char *const keys[] = {"do",    "op",   "domain", "name",  "inputs",     "outputs",
                                     "node",  "from", "value",  "since", "input",      "output",
                                     "dtype", "line", "shape",  "data",  "attributes", NULL};
  uint32_t line = 0;
  cleave_edit_t edit = {.node = CLEAVE_NODE_NONE, .value = CLEAVE_VALUE_NONE, .other = CLEAVE_VALUE_NONE};
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  CLEAVE_TRY(read_kind(reader, json, &edit));
  if (json_object_get(json, "line") != NULL) {
    CLEAVE_TRY(cleave_reader_get_number(&reader->base, json, "line", INT32_MAX, &line));
  }
  edit.line = (int32_t)line;
  cleave_status_t status = CLEAVE_OK;
  for (const member_t *member = MEMBERS[edit.kind]; status == CLEAVE_OK && member->type != MEMBER_NONE;
       member++) {
    status = read_member(&reader->base, json, member, &edit);
  }
  CLEAVE_THEN(status, cleave_edits_add(reader->edits, &edit, reader->base.error));
  for (uint32_t k = 0; k < edit.attribute_count; k++) {
    cleave_tensor_release(edit.attributes[k].held);
  }
  cleave_tensor_release(edit.tensor);
  return status;
}

// ---- the log, read ----

static cleave_status_t read_rule(log_reader_t *reader, json_t *json) {
  static const char *const keys[] = {"kind",  "name",    "file",    "line", "number",
                                     "tries", "matches", "refused", NULL};
  cleave_json_reader_t *base = &reader->base;
  cleave_edit_rule_t rule = {.line = 0};
  uint32_t number = 0;
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

static cleave_status_t read_group(log_reader_t *reader, json_t *json) {
  static const char *const keys[] = {"rule", "place", "steps", NULL};
  uint32_t rule = CLEAVE_INDEX_NONE;
  const char *place = NULL;
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, json, keys));
  if (json_object_get(json, "rule") != NULL) {
    CLEAVE_TRY(get_rule(reader, json, &rule));
  }
  CLEAVE_TRY(cleave_reader_get_text(&reader->base, json, "place", "", &place));
  CLEAVE_TRY(cleave_edits_begin(reader->edits, rule, place, reader->base.error));
  CLEAVE_TRY(for_each(reader, json, "steps", read_step));
  cleave_edits_end(reader->edits);
  return CLEAVE_OK;
}

static cleave_status_t read_refusal(log_reader_t *reader, json_t *json) {
  static const char *const keys[] = {"rule", "place", "reason", NULL};
  uint32_t rule = 0;
  const char *place = NULL;
  const char *reason = NULL;
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
  CLEAVE_TRY(cleave_reader_get_hash(base, part, "hash", &edits->source_hash));
  CLEAVE_TRY(cleave_reader_get_number(base, part, "nodes", MAX_ID, &edits->source_nodes));
  CLEAVE_TRY(cleave_reader_get_number(base, part, "values", MAX_ID, &edits->source_values));
  CLEAVE_TRY(cleave_reader_get(base, json, "result", JSON_OBJECT, "an object", &part));
  CLEAVE_TRY(cleave_reader_check_keys(base, part, result_keys));
  CLEAVE_TRY(cleave_reader_get_hash(base, part, "hash", &edits->result_hash));
  CLEAVE_TRY(for_each(reader, json, "rules", read_rule));
  CLEAVE_TRY(for_each(reader, json, "groups", read_group));
  return for_each(reader, json, "refusals", read_refusal);
}

cleave_status_t cleave_edits_from_json(const char *place, const json_t *json, cleave_edits_t **out_edits,
                                       cleave_error_t *error) {
  cleave_arena_t arena = {0};
  cleave_error_t own = CLEAVE_ERROR_INIT; /* the reader reports its errors; the member is required */
  size_t tensor_bytes = CLEAVE_EDITS_JSON_DATA_LIMIT;
  log_reader_t reader = {.base = {.place = place,
                                  .arena = &arena,
                                  .error = error != NULL ? error : &own,
                                  .tensor_bytes = &tensor_bytes}};
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
