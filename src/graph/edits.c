// SPDX-License-Identifier: Apache-2.0
// The log of changes: everything that a step points to is copied into the log's arena, tensors are retained,
// so that the log outlives the script and the graph that it came from.
#include "graph/edits.h"

#include <string.h>

#include "base/hash.h"

cleave_status_t cleave_edits_create(cleave_edits_t **out_edits, cleave_error_t *error) {
  *out_edits = cleave_allocate_zeroed(1, sizeof **out_edits);
  return *out_edits != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

void cleave_edits_destroy(cleave_edits_t *edits) {
  if (edits == NULL) {
    return;
  }
  for (size_t k = 0; k < edits->tensors.count; k++) {
    cleave_tensor_release(edits->tensors.items[k]);
  }
  cleave_array_free(&edits->tensors);
  cleave_array_free(&edits->rules);
  cleave_array_free(&edits->items);
  cleave_array_free(&edits->groups);
  cleave_array_free(&edits->refusals);
  cleave_arena_deinit(&edits->arena);
  cleave_free(edits);
}

// ---- copies ----

static cleave_status_t copy_text(cleave_edits_t *edits, const char *text, const char **out_copy,
                                 cleave_error_t *error) {
  *out_copy = text;
  if (text == NULL || text[0] == '\0') {
    *out_copy = "";
    return CLEAVE_OK;
  }
  *out_copy = cleave_arena_copy_text(&edits->arena, text, strlen(text));
  return *out_copy != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static cleave_status_t keep_tensor(cleave_edits_t *edits, cleave_tensor_t *tensor, cleave_error_t *error) {
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_ARRAY_PUSH(&edits->tensors, tensor, error);
  (void)cleave_tensor_retain(tensor);
  return CLEAVE_OK;
}

static cleave_status_t copy_list(cleave_edits_t *edits, const void **list, size_t bytes,
                                 cleave_error_t *error) {
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  *list = cleave_arena_copy(&edits->arena, *list, bytes);
  return *list != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static cleave_status_t copy_attribute(cleave_edits_t *edits, cleave_attribute_t *attribute,
                                      cleave_error_t *error) {
  CLEAVE_TRY(copy_text(edits, attribute->name, &attribute->name, error));
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    attribute->tensor = NULL;
    return keep_tensor(edits, attribute->held, error);
  }
  return cleave_attribute_copy_content(attribute, &edits->arena) ? CLEAVE_OK
                                                                 : cleave_error_out_of_memory(error);
}

static cleave_status_t copy_lists(cleave_edits_t *edits, cleave_edit_t *edit, cleave_error_t *error) {
  const void *list = edit->inputs;
  CLEAVE_TRY(copy_list(edits, &list, edit->input_count * sizeof *edit->inputs, error));
  edit->inputs = list;
  if (edit->attribute_count > 0) {
    cleave_attribute_t *attributes =
        cleave_arena_copy(&edits->arena, edit->attributes, edit->attribute_count * sizeof *edit->attributes);
    CLEAVE_TRY_MEMORY(attributes, error);
    for (uint32_t k = 0; k < edit->attribute_count; k++) {
      CLEAVE_TRY(copy_attribute(edits, &attributes[k], error));
    }
    edit->attributes = attributes;
  }
  if (edit->rank > 0) {
    cleave_edit_dim_t *dims =
        cleave_arena_copy(&edits->arena, edit->dims, (size_t)edit->rank * sizeof *edit->dims);
    CLEAVE_TRY_MEMORY(dims, error);
    for (int32_t d = 0; d < edit->rank; d++) {
      if (dims[d].symbol != NULL) {
        CLEAVE_TRY(copy_text(edits, dims[d].symbol, &dims[d].symbol, error));
      }
    }
    edit->dims = dims;
  }
  return CLEAVE_OK;
}

// ---- the log ----

cleave_status_t cleave_edits_add(cleave_edits_t *edits, const cleave_edit_t *edit, cleave_error_t *error) {
  cleave_edit_t own = *edit;
  CLEAVE_TRY(copy_text(edits, edit->name, &own.name, error));
  CLEAVE_TRY(copy_text(edits, edit->op, &own.op, error));
  CLEAVE_TRY(copy_text(edits, edit->domain, &own.domain, error));
  CLEAVE_TRY(copy_lists(edits, &own, error));
  CLEAVE_TRY(keep_tensor(edits, edit->tensor, error));
  CLEAVE_ARRAY_PUSH(&edits->items, own, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_edits_add_rule(cleave_edits_t *edits, const cleave_edit_rule_t *rule,
                                      uint32_t *out_rule, cleave_error_t *error) {
  cleave_edit_rule_t own = *rule;
  CLEAVE_TRY(copy_text(edits, rule->kind, &own.kind, error));
  CLEAVE_TRY(copy_text(edits, rule->name, &own.name, error));
  CLEAVE_TRY(copy_text(edits, rule->file, &own.file, error));
  if (rule->mistake != NULL) {
    CLEAVE_TRY(copy_text(edits, rule->mistake, &own.mistake, error));
  }
  *out_rule = (uint32_t)edits->rules.count;
  CLEAVE_ARRAY_PUSH(&edits->rules, own, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_edits_begin(cleave_edits_t *edits, uint32_t rule, const char *place,
                                   cleave_error_t *error) {
  cleave_edit_group_t group = {.rule = rule, .first_edit = (uint32_t)edits->items.count};
  CLEAVE_TRY(copy_text(edits, place, &group.place, error));
  CLEAVE_ARRAY_PUSH(&edits->groups, group, error);
  return CLEAVE_OK;
}

void cleave_edits_end(cleave_edits_t *edits) {
  cleave_edit_group_t *group = &edits->groups.items[edits->groups.count - 1];
  group->edit_count = (uint32_t)edits->items.count - group->first_edit;
  group->nodes_made = 0;
  group->nodes_taken = 0;
  for (uint32_t k = 0; k < group->edit_count; k++) {
    const cleave_edit_t *edit = &edits->items.items[group->first_edit + k];
    group->nodes_made += edit->kind == CLEAVE_EDIT_ADD_NODE;
    group->nodes_taken += edit->kind == CLEAVE_EDIT_REMOVE_NODE;
  }
  if (group->edit_count == 0) {
    edits->groups.count--;
  }
}

void cleave_edits_truncate(cleave_edits_t *edits, size_t count) {
  if (count < edits->items.count) {
    edits->items.count = count;
  }
}

cleave_status_t cleave_edits_refuse(cleave_edits_t *edits, uint32_t rule, const char *place,
                                    const char *reason, cleave_error_t *error) {
  if (edits->refusals.count >= CLEAVE_EDITS_MAX_REFUSALS) {
    return CLEAVE_OK;
  }
  cleave_edit_refusal_t refusal = {.rule = rule};
  CLEAVE_TRY(copy_text(edits, place, &refusal.place, error));
  CLEAVE_TRY(copy_text(edits, reason, &refusal.reason, error));
  CLEAVE_ARRAY_PUSH(&edits->refusals, refusal, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_edits_note_mistake(cleave_edits_t *edits, uint32_t rule, const char *place,
                                          const char *reason, cleave_error_t *error) {
  cleave_edit_rule_t *entry = &edits->rules.items[rule];
  entry->mistakes++;
  if (entry->mistake == NULL) {
    entry->mistake = cleave_arena_format(&edits->arena, "at '%s': %s", place, reason);
    CLEAVE_TRY_MEMORY(entry->mistake, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_all(const cleave_edits_t *edits, cleave_edits_t *copy, cleave_error_t *error) {
  copy->source_hash = edits->source_hash;
  copy->source_nodes = edits->source_nodes;
  copy->source_values = edits->source_values;
  copy->result_hash = edits->result_hash;
  for (size_t k = 0; k < edits->rules.count; k++) {
    uint32_t rule = 0;
    CLEAVE_TRY(cleave_edits_add_rule(copy, &edits->rules.items[k], &rule, error));
  }
  for (size_t k = 0; k < edits->items.count; k++) {
    CLEAVE_TRY(cleave_edits_add(copy, &edits->items.items[k], error));
  }
  for (size_t k = 0; k < edits->groups.count; k++) {
    cleave_edit_group_t group = edits->groups.items[k];
    CLEAVE_TRY(copy_text(copy, group.place, &group.place, error));
    CLEAVE_ARRAY_PUSH(&copy->groups, group, error);
  }
  for (size_t k = 0; k < edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &edits->refusals.items[k];
    CLEAVE_TRY(cleave_edits_refuse(copy, refusal->rule, refusal->place, refusal->reason, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_edits_copy(const cleave_edits_t *edits, cleave_edits_t **out_edits,
                                  cleave_error_t *error) {
  cleave_edits_t *copy = NULL;
  *out_edits = NULL;
  CLEAVE_TRY(cleave_edits_create(&copy, error));
  CLEAVE_TRY_OR(copy_all(edits, copy, error), cleave_edits_destroy(copy));
  *out_edits = copy;
  return CLEAVE_OK;
}

/* A rule that is asked again after a change nearby refuses again, which must not count. True: the hash is
 * new. */
static bool add_hash(uint64_t *table, size_t size, uint64_t hash) {
  size_t slot = (size_t)(hash % size);
  hash = hash == 0 ? 1 : hash;
  while (table[slot] != 0 && table[slot] != hash) {
    slot = (slot + 1) % size;
  }
  bool is_new = table[slot] == 0;
  table[slot] = hash;
  return is_new;
}

cleave_status_t cleave_edits_group_refusals(const cleave_edits_t *edits, cleave_edit_refusals_t *groups,
                                            uint32_t size, uint32_t *out_count, uint32_t *out_more,
                                            cleave_error_t *error) {
  size_t table_size = 2 * edits->refusals.count + 1;
  uint64_t *table = cleave_allocate_zeroed(table_size, sizeof *table);
  uint32_t count = 0;
  *out_count = *out_more = 0;
  CLEAVE_TRY_MEMORY(table, error);
  for (size_t k = 0; k < edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &edits->refusals.items[k];
    uint64_t hash = cleave_hash_combine(CLEAVE_HASH_SEED, refusal->rule);
    hash = cleave_hash_bytes(hash, refusal->place, strlen(refusal->place) + 1);
    hash = cleave_hash_bytes(hash, refusal->reason, strlen(refusal->reason));
    if (!add_hash(table, table_size, hash)) {
      continue;
    }
    uint32_t known = 0;
    while (known < count &&
           (groups[known].rule != refusal->rule || strcmp(groups[known].reason, refusal->reason) != 0)) {
      known++;
    }
    if (known < count) {
      groups[known].count++;
    } else if (count < size) {
      groups[count++] = (cleave_edit_refusals_t){
          .rule = refusal->rule, .count = 1, .place = refusal->place, .reason = refusal->reason};
    } else {
      ++*out_more;
    }
  }
  cleave_free(table);
  *out_count = count;
  return CLEAVE_OK;
}

uint32_t cleave_edits_nodes_taken(const cleave_edits_t *edits, uint32_t number) {
  uint32_t count = 0;
  for (size_t k = 0; k < edits->groups.count; k++) {
    const cleave_edit_group_t *group = &edits->groups.items[k];
    bool is_its = group->rule < edits->rules.count && edits->rules.items[group->rule].number == number;
    count += is_its ? group->nodes_taken : 0;
  }
  return count;
}

const char *cleave_edit_kind_name(cleave_edit_kind_t kind) {
  switch (kind) {
    case CLEAVE_EDIT_ADD_NODE: return "add_node";
    case CLEAVE_EDIT_ADD_CONSTANT: return "add_constant";
    case CLEAVE_EDIT_ADD_INPUT: return "add_input";
    case CLEAVE_EDIT_REPLACE_USES: return "replace_uses";
    case CLEAVE_EDIT_SET_INPUT: return "set_input";
    case CLEAVE_EDIT_SET_ATTRIBUTE: return "set_attribute";
    case CLEAVE_EDIT_SET_OUTPUT: return "set_output";
    case CLEAVE_EDIT_REMOVE_NODE: return "remove_node";
    case CLEAVE_EDIT_NAME_NODE: return "name_node";
    case CLEAVE_EDIT_NAME_VALUE: return "name_value";
    case CLEAVE_EDIT_READ_CONSTANT: return "read_constant";
    case CLEAVE_EDIT_READ_SIZES: return "read_sizes";
    case CLEAVE_EDIT_FOLD: return "fold";
  }
  return "unknown";
}
