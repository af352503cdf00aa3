// SPDX-License-Identifier: Apache-2.0
#include "imperative/operators.h"

#include <string.h>

#include "base/hash.h"
#include "imperative/compile.h"

enum { FIRST_BUCKETS = 64, MAX_KEPT = 8192 };

/* ---- keys ---- */

static cleave_status_t add(cleave_imperative_t *imperative, const void *data, size_t bytes,
                           cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&imperative->key, bytes, error));
  if (bytes > 0) {
    memcpy(imperative->key.items + imperative->key.count, data, bytes);
    imperative->key.count += bytes;
  }
  return CLEAVE_OK;
}

static cleave_status_t add_number(cleave_imperative_t *imperative, int64_t number, cleave_error_t *error) {
  return add(imperative, &number, sizeof number, error);
}

static cleave_status_t add_attribute(cleave_imperative_t *imperative, const cleave_attribute_t *attribute,
                                     cleave_error_t *error) {
  CLEAVE_TRY(add(imperative, attribute->name, strlen(attribute->name) + 1, error));
  CLEAVE_TRY(add_number(imperative, (int64_t)attribute->kind << 32 | attribute->count, error));
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    return add_number(imperative, (int64_t)attribute->held->version, error);
  }
  for (uint32_t k = 0; attribute->kind == CLEAVE_ATTRIBUTE_STRINGS && k < attribute->count; k++) {
    CLEAVE_TRY(add(imperative, attribute->strings[k], strlen(attribute->strings[k]) + 1, error));
  }
  size_t bytes = 0;
  const void *content = cleave_attribute_bytes(attribute, &bytes);
  return add(imperative, content, bytes, error);
}

/* Everything but the content of inputs, exactly. */
static cleave_status_t make_key(cleave_imperative_t *imperative, const imperative_request_t *request,
                                cleave_error_t *error) {
  imperative->key.count = 0;
  CLEAVE_TRY(add(imperative, &request->op, sizeof request->op, error));
  CLEAVE_TRY(add_number(imperative, (int64_t)request->input_count << 32 | request->output_count, error));
  for (uint32_t k = 0; k < request->input_count; k++) {
    const cleave_array_t *array = request->inputs[k];
    if (array == NULL) {
      CLEAVE_TRY(add_number(imperative, -1, error));
      continue;
    }
    CLEAVE_TRY(add_number(imperative, (int64_t)array->dtype << 32 | (uint32_t)array->rank, error));
    CLEAVE_TRY(add(imperative, array->dims, (size_t)array->rank * sizeof array->dims[0], error));
  }
  for (uint32_t k = 0; k < request->attribute_count; k++) {
    CLEAVE_TRY(add_attribute(imperative, &request->attributes[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_content(cleave_imperative_t *imperative, const imperative_request_t *request,
                                   const bool *is_constant, cleave_error_t *error) {
  for (uint32_t k = 0; k < request->input_count; k++) {
    if (is_constant[k]) {
      CLEAVE_TRY(add(imperative, request->inputs[k]->data, request->inputs[k]->bytes, error));
    }
  }
  return CLEAVE_OK;
}

/* ---- table ---- */

/* The entry of the key, or NULL. */
static imperative_operator_t *find(const cleave_imperative_t *imperative, uint64_t hash) {
  const imperative_table_t *table = &imperative->table;
  if (table->bucket_count == 0) {
    return NULL;
  }
  imperative_operator_t *entry = table->buckets[hash & (table->bucket_count - 1)];
  while (entry != NULL && (entry->hash != hash || entry->key_bytes != imperative->key.count ||
                           memcmp(entry->key, imperative->key.items, entry->key_bytes) != 0)) {
    entry = entry->next;
  }
  return entry;
}

static cleave_status_t grow(imperative_table_t *table, cleave_error_t *error) {
  size_t count = table->bucket_count == 0 ? FIRST_BUCKETS : 2 * table->bucket_count;
  imperative_operator_t **buckets = cleave_allocate_zeroed(count, sizeof(imperative_operator_t *));
  if (buckets == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < table->bucket_count; k++) {
    while (table->buckets[k] != NULL) {
      imperative_operator_t *entry = table->buckets[k];
      table->buckets[k] = entry->next;
      entry->next = buckets[entry->hash & (count - 1)];
      buckets[entry->hash & (count - 1)] = entry;
    }
  }
  cleave_free(table->buckets);
  table->buckets = buckets;
  table->bucket_count = count;
  return CLEAVE_OK;
}

void imperative_table_clear(cleave_imperative_t *imperative) {
  imperative_table_t *table = &imperative->table;
  for (size_t k = 0; k < table->bucket_count; k++) {
    while (table->buckets[k] != NULL) {
      imperative_operator_t *entry = table->buckets[k];
      table->buckets[k] = entry->next;
      imperative_operator_release(entry);
    }
  }
  cleave_free(table->buckets);
  *table = (imperative_table_t){0};
}

/* Takes the reference of the caller over. */
static cleave_status_t insert(cleave_imperative_t *imperative, imperative_operator_t *entry,
                              cleave_error_t *error) {
  imperative_table_t *table = &imperative->table;
  if (table->count >= MAX_KEPT) {
    imperative_table_clear(imperative); /* a program with ever new shapes: it starts anew */
  }
  if (table->count >= table->bucket_count) {
    CLEAVE_TRY(grow(table, error));
  }
  imperative_operator_t **bucket = &table->buckets[entry->hash & (table->bucket_count - 1)];
  entry->next = *bucket;
  *bucket = entry;
  table->count++;
  return CLEAVE_OK;
}

/* ---- entries ---- */

/* An entry for the key, without types and session. */
static cleave_status_t create(const cleave_imperative_t *imperative, const imperative_request_t *request,
                              uint64_t hash, imperative_operator_t **out_entry, cleave_error_t *error) {
  imperative_operator_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
  if (entry == NULL) {
    return cleave_error_out_of_memory(error);
  }
  pthread_mutex_init(&entry->running, NULL);
  atomic_init(&entry->references, 1);
  entry->hash = hash;
  entry->key_bytes = imperative->key.count;
  entry->key = cleave_allocate(entry->key_bytes, 1);
  entry->input_count = request->input_count;
  entry->output_count = request->output_count;
  entry->is_constant = cleave_allocate_zeroed(request->input_count, sizeof(bool));
  entry->outputs = cleave_allocate_zeroed(request->output_count, sizeof *entry->outputs);
  if (entry->key == NULL || entry->is_constant == NULL || entry->outputs == NULL) {
    imperative_operator_release(entry);
    return cleave_error_out_of_memory(error);
  }
  memcpy(entry->key, imperative->key.items, entry->key_bytes);
  *out_entry = entry;
  return CLEAVE_OK;
}

/* ---- lookup ---- */

static uint64_t hash_key(const cleave_imperative_t *imperative) {
  return cleave_hash_bytes(CLEAVE_HASH_SEED, imperative->key.items, imperative->key.count);
}

/* Waits for the inputs that are marked. */
static cleave_status_t wait_for(const imperative_request_t *request, const bool *is_wanted,
                                cleave_error_t *error) {
  for (uint32_t k = 0; k < request->input_count; k++) {
    const void *data = NULL;
    if (is_wanted != NULL ? is_wanted[k] : imperative_may_tell(request, k)) {
      CLEAVE_TRY(cleave_array_data(request->inputs[k], &data, error));
    }
  }
  return CLEAVE_OK;
}

/* With the lock held: the entry of the key, compiled now if there is none, with these inputs constant. */
static cleave_status_t find_or_compile(cleave_imperative_t *imperative, const imperative_request_t *request,
                                       const bool *is_constant, imperative_operator_t **out_entry,
                                       cleave_error_t *error) {
  uint64_t hash = hash_key(imperative);
  *out_entry = find(imperative, hash);
  if (*out_entry != NULL) {
    return CLEAVE_OK;
  }
  imperative_operator_t *entry = NULL;
  bool is_known = false;
  CLEAVE_TRY(create(imperative, request, hash, &entry, error));
  memcpy(entry->is_constant, is_constant, request->input_count * sizeof(bool));
  cleave_status_t status =
      imperative_infer(imperative, request, is_constant, entry->outputs, &is_known, error);
  CLEAVE_THEN(status, imperative_compile(imperative, request, entry, error));
  CLEAVE_THEN(status, insert(imperative, entry, error));
  CLEAVE_TRY_OR(status, imperative_operator_release(entry));
  imperative->compiled_count++;
  *out_entry = entry;
  return CLEAVE_OK;
}

/* With the lock held, and the key without content: notes which inputs' content the operator is looked up
 * with. */
static cleave_status_t note_constants(cleave_imperative_t *imperative, const imperative_request_t *request,
                                      const bool *is_constant, cleave_error_t *error) {
  uint64_t hash = hash_key(imperative);
  if (find(imperative, hash) != NULL) {
    return CLEAVE_OK;
  }
  imperative_operator_t *entry = NULL;
  CLEAVE_TRY(create(imperative, request, hash, &entry, error));
  memcpy(entry->is_constant, is_constant, request->input_count * sizeof(bool));
  cleave_status_t status = insert(imperative, entry, error);
  if (status != CLEAVE_OK) {
    imperative_operator_release(entry);
  }
  return status;
}

/* With the lock held: what is known of the call. *out_entry is NULL if nothing is; then *out_known says
 * whether shapes are told without content. */
static cleave_status_t look(cleave_imperative_t *imperative, const imperative_request_t *request,
                            bool *is_constant, imperative_type_t *outputs, imperative_operator_t **out_entry,
                            bool *out_known, cleave_error_t *error) {
  CLEAVE_TRY(make_key(imperative, request, error));
  *out_entry = find(imperative, hash_key(imperative));
  if (*out_entry != NULL) {
    memcpy(is_constant, (*out_entry)->is_constant, request->input_count * sizeof(bool));
    return CLEAVE_OK;
  }
  memset(is_constant, 0, request->input_count * sizeof(bool));
  return imperative_infer(imperative, request, is_constant, outputs, out_known, error);
}

/* The lookup of an operator whose shapes need content, `is_constant` if that is known. */
static cleave_status_t get_by_content(cleave_imperative_t *imperative, const imperative_request_t *request,
                                      bool *is_constant, imperative_type_t *outputs, bool has_marks,
                                      imperative_operator_t **out_entry, cleave_error_t *error) {
  CLEAVE_TRY(wait_for(request, has_marks ? is_constant : NULL, error));
  if (!has_marks) {
    CLEAVE_TRY(imperative_find_constants(imperative, request, is_constant, outputs, error));
  }
  pthread_mutex_lock(&imperative->lock);
  bool is_any = memchr(is_constant, true, request->input_count * sizeof(bool)) != NULL;
  cleave_status_t status = make_key(imperative, request, error);
  if (status == CLEAVE_OK && is_any) {
    status = note_constants(imperative, request, is_constant, error);
  }
  CLEAVE_THEN(status, add_content(imperative, request, is_constant, error));
  CLEAVE_THEN(status, find_or_compile(imperative, request, is_constant, out_entry, error));
  if (status == CLEAVE_OK) {
    atomic_fetch_add(&(*out_entry)->references, 1);
  }
  pthread_mutex_unlock(&imperative->lock);
  return status;
}

cleave_status_t imperative_operator_get(cleave_imperative_t *imperative, const imperative_request_t *request,
                                        imperative_operator_t **out_operator, cleave_error_t *error) {
  enum { FEW = 16 };
  bool few_constants[FEW];
  imperative_type_t few_outputs[FEW];
  bool is_few = request->input_count <= FEW && request->output_count <= FEW;
  bool *is_constant = is_few ? few_constants : cleave_allocate(request->input_count, sizeof(bool));
  imperative_type_t *outputs = is_few ? few_outputs : cleave_allocate(request->output_count, sizeof *outputs);
  imperative_operator_t *entry = NULL;
  bool is_known = false;
  cleave_status_t status =
      is_constant == NULL || outputs == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  if (status == CLEAVE_OK) {
    pthread_mutex_lock(&imperative->lock);
    status = look(imperative, request, is_constant, outputs, &entry, &is_known, error);
    if (status == CLEAVE_OK && entry == NULL && is_known) {
      status = find_or_compile(imperative, request, is_constant, &entry, error);
    }
    bool is_done = status != CLEAVE_OK || (entry != NULL && entry->session != NULL);
    if (status == CLEAVE_OK && is_done) {
      atomic_fetch_add(&entry->references, 1);
      *out_operator = entry;
    }
    pthread_mutex_unlock(&imperative->lock);
    if (!is_done) {
      status = get_by_content(imperative, request, is_constant, outputs, entry != NULL, out_operator, error);
    }
  }
  if (!is_few) {
    cleave_free(is_constant);
    cleave_free(outputs);
  }
  return status;
}
