// SPDX-License-Identifier: Apache-2.0
// A table of a few backends with a few options each: looked through, not hashed. Items of a backend stay in
// order of their keys, so that the same options in another order make the same programs.
#include "backend/program/backend_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

cleave_status_t cleave_backend_check_device(const cleave_backend_handle_t *handle, uint64_t device,
                                            cleave_error_t *error) {
  const cleave_backend_devices_t *devices = handle->backend->devices;
  uint32_t count = devices != NULL && devices->count != NULL ? devices->count(handle->state) : 1;
  if (device < count) {
    return CLEAVE_OK;
  }
  if (count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s' has no device", handle->backend->name);
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "backend '%s' has %u device%s, there is no device %llu", handle->backend->name,
                          (unsigned)count, CLEAVE_PLURAL(count), (unsigned long long)device);
}

static cleave_status_t parse_device(const char *text, uint64_t *out_device, cleave_error_t *error) {
  char *end = NULL;
  *out_device = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0') {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "expected the number of a device, found '%s'", text);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_read_device(const cleave_backend_handle_t *handle, const char *text,
                                           uint32_t *out_device, cleave_error_t *error) {
  uint64_t number = 0;
  CLEAVE_TRY(parse_device(text, &number, error));
  CLEAVE_TRY(cleave_backend_check_device(handle, number, error));
  *out_device = (uint32_t)number;
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_device_of(const cleave_attribute_view_t *attribute, uint32_t *out_device,
                                         cleave_error_t *error) {
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  uint64_t number = (uint64_t)attribute->i;
  bool is_text = attribute->kind == CLEAVE_ATTRIBUTE_STRING;
  if (!is_text && (attribute->kind != CLEAVE_ATTRIBUTE_INT || attribute->i < 0)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "attribute 'device': expected the number of a device");
  }
  if (is_text && parse_device(attribute->s, &number, &reason) != CLEAVE_OK) {
    return cleave_error_set(error, reason.status, "attribute 'device': %s", reason.message);
  }
  *out_device = number > CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : (uint32_t)number;
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_check_option(const cleave_backend_handle_t *handle, const char *key,
                                            cleave_error_t *error) {
  const cleave_backend_t *backend = handle->backend;
  for (uint32_t k = 0; k < backend->option_key_count; k++) {
    if (strcmp(backend->option_keys[k], key) == 0) {
      return CLEAVE_OK;
    }
  }
  cleave_text_t known = {0};
  cleave_nearest_t nearest = {0};
  cleave_nearest_offer(&nearest, key, "device");
  for (uint32_t k = 0; k < backend->option_key_count; k++) {
    cleave_nearest_offer(&nearest, key, backend->option_keys[k]);
    cleave_text_format(&known, ", %s", backend->option_keys[k]);
  }
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend '%s' has no such option%s; there are: device%s",
      backend->name, cleave_nearest_hint(&nearest), cleave_text_get(&known));
  cleave_text_deinit(&known);
  return status;
}

static cleave_backend_options_t *find(const cleave_backend_option_table_t *table, const char *backend) {
  for (uint32_t k = 0; k < table->count; k++) {
    if (strcmp(table->items[k].backend, backend) == 0) {
      return &table->items[k];
    }
  }
  return NULL;
}

/* "option 'mirror.device': <message>" */
static cleave_status_t fail(const cleave_backend_option_t *option, const cleave_error_t *reason,
                            cleave_error_t *error) {
  cleave_status_t status = cleave_error_set(error, reason->status, "option '%s.%s': %s", option->backend,
                                            option->key, reason->message);
  cleave_error_hint(error, reason->hint);
  return status;
}

static cleave_status_t set_item(cleave_backend_options_t *options, const cleave_backend_option_t *option,
                                cleave_arena_t *arena, cleave_error_t *error) {
  cleave_key_value_t item = {.key = cleave_arena_copy_text(arena, option->key, strlen(option->key)),
                             .value = cleave_arena_copy_text(arena, option->value, strlen(option->value))};
  CLEAVE_TRY_MEMORY(item.key != NULL && item.value != NULL, error);
  uint32_t at = 0;
  while (at < options->count && strcmp(options->items[at].key, item.key) < 0) {
    at++;
  }
  if (at == options->count || strcmp(options->items[at].key, item.key) != 0) {
    memmove(options->items + at + 1, options->items + at, (options->count - at) * sizeof item);
    options->count++;
  }
  options->items[at] = item;
  return CLEAVE_OK;
}

static cleave_status_t add(cleave_context_t *context, cleave_backend_option_table_t *table,
                           const cleave_backend_option_t *option, uint32_t most, cleave_arena_t *arena,
                           cleave_error_t *error) {
  if (option->backend == NULL || option->key == NULL || option->key[0] == '\0' || option->value == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "an option of a backend has no backend, key or value");
  }
  if (strchr(option->key, '=') != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "option '%s.%s': there is '=' in its key",
                            option->backend, option->key);
  }
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  if (cleave_registry_find(context, option->backend, &handle, &reason) != CLEAVE_OK) {
    return fail(option, &reason, error);
  }
  if (strcmp(option->key, "device") != 0 &&
      cleave_backend_check_option(handle, option->key, &reason) != CLEAVE_OK) {
    return fail(option, &reason, error);
  }
  cleave_backend_options_t *options = find(table, option->backend);
  if (options == NULL) {
    options = &table->items[table->count];
    options->backend = cleave_arena_copy_text(arena, option->backend, strlen(option->backend));
    options->items = cleave_arena_allocate(arena, most, sizeof *options->items);
    CLEAVE_TRY_MEMORY(options->backend != NULL && options->items != NULL, error);
    table->count++;
  }
  if (strcmp(option->key, "device") != 0) {
    return set_item(options, option, arena, error);
  }
  return cleave_backend_read_device(handle, option->value, &options->device, &reason) == CLEAVE_OK
             ? CLEAVE_OK
             : fail(option, &reason, error);
}

cleave_status_t cleave_backend_option_table_build(cleave_context_t *context,
                                                  const cleave_backend_option_t *options, uint32_t count,
                                                  cleave_arena_t *arena,
                                                  cleave_backend_option_table_t *out_table,
                                                  cleave_error_t *error) {
  *out_table = (cleave_backend_option_table_t){0};
  if (count == 0) {
    return CLEAVE_OK;
  }
  out_table->items = cleave_arena_allocate(arena, count, sizeof *out_table->items);
  CLEAVE_TRY_MEMORY(out_table->items, error);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(add(context, out_table, &options[k], count - k, arena, error));
  }
  return CLEAVE_OK;
}

void cleave_backend_option_table_apply(cleave_backend_option_table_t *table, const char *backend,
                                       cleave_compile_options_t *compile) {
  cleave_backend_options_t *options = find(table, backend);
  compile->device = options == NULL ? 0 : options->device;
  compile->option_count = options == NULL ? 0 : options->count;
  compile->options = options == NULL ? NULL : options->items;
  if (options != NULL) {
    options->is_used = true;
  }
}

uint64_t cleave_compile_options_hash(const cleave_compile_options_t *options) {
  uint64_t hash = cleave_hash_combine(CLEAVE_HASH_SEED, (uint64_t)(uint32_t)options->threads);
  hash = cleave_hash_combine(hash, options->profile ? 1 : 0);
  hash = cleave_hash_combine(hash, options->device);
  hash = cleave_hash_combine(hash, options->option_count);
  for (uint32_t k = 0; k < options->option_count; k++) {
    const cleave_key_value_t *item = &options->options[k];
    hash = cleave_hash_bytes(hash, item->key, strlen(item->key));
    hash = cleave_hash_bytes(hash, item->value, strlen(item->value));
  }
  return hash;
}
