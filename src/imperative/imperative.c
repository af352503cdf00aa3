// SPDX-License-Identifier: Apache-2.0
#include "imperative/imperative.h"

#include <string.h>

#include "backend/registry/registry.h"
#include "base/sized.h"
#include "imperative/operators.h"
#include "imperative/record.h"

enum { DEFAULT_POOL_BYTES = 512 << 20 };

static cleave_status_t copy_options(cleave_imperative_t *imperative,
                                    const cleave_imperative_options_t *options, cleave_error_t *error) {
  imperative->options = (cleave_session_options_t){
      .size = sizeof imperative->options, .threads = options->threads, .programs = imperative->programs};
  if (options->backend_option_count == 0) {
    return CLEAVE_OK;
  }
  cleave_backend_option_t *copy = cleave_allocate_zeroed(options->backend_option_count, sizeof *copy);
  imperative->options.backend_options = copy;
  if (copy == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < options->backend_option_count; k++) {
    const cleave_backend_option_t *from = &options->backend_options[k];
    copy[k].backend = cleave_copy_text(from->backend, strlen(from->backend));
    copy[k].key = cleave_copy_text(from->key, strlen(from->key));
    copy[k].value = cleave_copy_text(from->value, strlen(from->value));
    imperative->options.backend_option_count++;
    if (copy[k].backend == NULL || copy[k].key == NULL || copy[k].value == NULL) {
      return cleave_error_out_of_memory(error);
    }
  }
  return CLEAVE_OK;
}

static void free_options(cleave_session_options_t *options) {
  for (uint32_t k = 0; k < options->backend_option_count; k++) {
    const cleave_backend_option_t *option = &options->backend_options[k];
    cleave_free((void *)(uintptr_t)option->backend);
    cleave_free((void *)(uintptr_t)option->key);
    cleave_free((void *)(uintptr_t)option->value);
  }
  cleave_free((void *)(uintptr_t)options->backend_options);
}

static cleave_status_t start(cleave_imperative_t *imperative, const cleave_imperative_options_t *options,
                             cleave_error_t *error) {
  const char *backend = options->backend != NULL ? options->backend : "cpu";
  const cleave_backend_handle_t *handle = NULL;
  CLEAVE_TRY(cleave_registry_find(imperative->context, backend, &handle, error));
  imperative->backend = cleave_copy_text(backend, strlen(backend));
  if (imperative->backend == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY(cleave_program_cache_create(&imperative->programs, error));
  CLEAVE_TRY(copy_options(imperative, options, error));
  const cleave_engine_device_t device = {
      .size = sizeof device, .name = "host", .workers = options->workers > 0 ? options->workers : 1};
  const cleave_engine_options_t engine = {
      .size = sizeof engine, .is_serial = options->is_serial, .devices = &device, .device_count = 1};
  return cleave_engine_create(&engine, &imperative->engine, error);
}

cleave_status_t cleave_imperative_create(cleave_context_t *context,
                                         const cleave_imperative_options_t *options,
                                         cleave_imperative_t **out_imperative, cleave_error_t *error) {
  cleave_imperative_options_t known = {.size = sizeof known};
  *out_imperative = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_imperative_options_t, options, &known, error));
  CLEAVE_TRY(cleave_list_check("backend_options", known.backend_options, known.backend_option_count, error));
  cleave_imperative_t *imperative = cleave_allocate_zeroed(1, sizeof *imperative);
  if (imperative == NULL) {
    return cleave_error_out_of_memory(error);
  }
  imperative->context = cleave_context_retain(context);
  pthread_mutex_init(&imperative->lock, NULL);
  pthread_cond_init(&imperative->caught_up, NULL);
  memory_pool_init(&imperative->pool, known.pool_bytes > 0 ? known.pool_bytes : (size_t)DEFAULT_POOL_BYTES);
  CLEAVE_TRY_OR(start(imperative, &known, error), cleave_imperative_destroy(imperative));
  *out_imperative = imperative;
  return CLEAVE_OK;
}

void cleave_imperative_destroy(cleave_imperative_t *imperative) {
  if (imperative == NULL) {
    return;
  }
  cleave_engine_destroy(imperative->engine);
  record_forms_clear(imperative);
  imperative_table_clear(imperative);
  imperative_calls_free(imperative);
  cleave_array_free(&imperative->key);
  free_options(&imperative->options);
  if (imperative->programs != NULL) {
    cleave_program_cache_release(imperative->programs);
  }
  cleave_free(imperative->backend);
  memory_pool_deinit(&imperative->pool);
  pthread_cond_destroy(&imperative->caught_up);
  pthread_mutex_destroy(&imperative->lock);
  cleave_context_release(imperative->context);
  cleave_free(imperative);
}

cleave_engine_t *cleave_imperative_engine(cleave_imperative_t *imperative) {
  return imperative->engine;
}

cleave_status_t cleave_imperative_wait(cleave_imperative_t *imperative, cleave_error_t *error) {
  return cleave_engine_wait(imperative->engine, error);
}

void cleave_imperative_count(cleave_imperative_t *imperative, cleave_imperative_counters_t *out_counters) {
  cleave_imperative_counters_t counters = {0};
  pthread_mutex_lock(&imperative->lock);
  counters.calls = imperative->call_count;
  counters.compiled = imperative->compiled_count;
  counters.kept = imperative->table.count;
  pthread_mutex_unlock(&imperative->lock);
  memory_pool_count(&imperative->pool, &counters.array_bytes, &counters.pool_bytes);
  CLEAVE_SIZED_OUT(cleave_imperative_counters_t, &counters, out_counters);
}
