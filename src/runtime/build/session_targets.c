// SPDX-License-Identifier: Apache-2.0
// What steps run on: backends, and their devices with streams and memory. A target is made when the first
// step wants it and lives as long as the session.
#include <string.h>

#include "runtime/build/session_internal.h"

/* ---- targets ---- */

static cleave_status_t start_target(cleave_session_t *session, cleave_target_t *target, uint32_t number,
                                    cleave_error_t *error) {
  const char *backend = target->handle->backend->name;
  target->compile_options = session->compile_options;
  cleave_backend_option_table_apply(&session->options, backend, &target->compile_options);
  target->compile_options.device = target->device == NULL ? 0 : target->device->number;
  const char *label = target->device == NULL ? backend : target->device->label;
  target->label = cleave_arena_copy_text(&session->arena, label, strlen(label));
  CLEAVE_TRY_MEMORY(target->label, error);
  target->statistics.name = target->label;
  target->place = CLEAVE_PLACE_HOST;
  target->memory = CLEAVE_MEMORY_HOST;
  if (cleave_device_has_memory(target->device)) {
    target->place = number;
    target->memory = target->device->number + 1;
    target->stage.device = target->device;
    CLEAVE_TRY(cleave_device_stream_create(target->device, &target->stream, error));
    session->has_streams = session->has_streams || target->stream != NULL;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_target(cleave_session_t *session, const cleave_backend_handle_t *handle,
                                      uint32_t device, uint32_t *out_target, cleave_error_t *error) {
  for (uint32_t k = 0; k < session->targets.count; k++) {
    const cleave_target_t *target = &session->targets.items[k];
    if (target->handle == handle && (target->device == NULL ? 0 : target->device->number) == device) {
      *out_target = k;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&session->targets, 1, error));
  cleave_target_t target = {.handle = handle};
  cleave_status_t status = cleave_backend_check_device(handle, device, error);
  bool is_mistake = status == CLEAVE_ERROR_INVALID_ARGUMENT; /* of whoever named the device */
  CLEAVE_THEN(status, cleave_device_acquire(handle, device, &target.device, error));
  if (status == CLEAVE_OK) {
    *out_target = (uint32_t)session->targets.count;
    cleave_array_push_reserved(&session->targets, target);
    status = start_target(session, &session->targets.items[*out_target], *out_target, error);
  }
  if (status != CLEAVE_OK && !is_mistake && handle->backend->devices != NULL) {
    session->failed = handle;
  }
  return status;
}

cleave_status_t cleave_session_region_target(cleave_session_t *session, const cleave_plan_region_t *region,
                                             uint32_t *out_target, cleave_error_t *error) {
  const cleave_backend_handle_t *handle = NULL;
  CLEAVE_TRY(cleave_registry_find(session->graph->context, region->backend, &handle, error));
  cleave_compile_options_t options = {.device = 0};
  cleave_backend_option_table_apply(&session->options, region->backend, &options);
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < region->attribute_count && handle->backend->devices != NULL; k++) {
    if (strcmp(region->attributes[k].name, "device") == 0) {
      CLEAVE_THEN(status, cleave_backend_device_of(&region->attributes[k], &options.device, &reason));
    }
  }
  CLEAVE_THEN(status, cleave_session_target(session, handle, options.device, out_target, &reason));
  return status == CLEAVE_OK
             ? CLEAVE_OK
             : cleave_error_set(error, status, "region '%s': %s", region->name, reason.message);
}

/* ---- libraries that are lost ---- */

bool cleave_session_is_lost(const cleave_session_t *session, uint32_t target) {
  bool falls_back = false;
  return cleave_registry_is_lost(session->targets.items[target].handle, &falls_back) && !falls_back;
}

/* ---- streams ---- */

void cleave_session_drain(cleave_session_t *session) {
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    if (target->stream != NULL && target->is_busy) {
      cleave_message_t message;
      message.text[0] = '\0';
      (void)!cleave_device_stream_wait(target->device, target->stream, &message);
      target->is_busy = false;
    }
  }
}

cleave_status_t cleave_session_renew_streams(cleave_session_t *session, cleave_error_t *error) {
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    if (target->place != CLEAVE_PLACE_HOST && !target->is_abandoned) {
      cleave_device_stream_destroy(target->device, target->stream);
      target->stream = NULL;
      CLEAVE_TRY_OR(cleave_device_stream_create(target->device, &target->stream, error),
                    session->broken = (uint32_t)k);
    }
  }
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    const cleave_target_t *target = &session->targets.items[step->target];
    step->args.stream = step->kind == CLEAVE_STEP_DYNAMIC ? NULL : target->stream;
  }
  session->has_failed_streams = false;
  return CLEAVE_OK;
}

/* ---- the end ---- */

static void free_pair(const cleave_key_value_t *pair) {
  cleave_free((void *)(uintptr_t)pair->key);
  cleave_free((void *)(uintptr_t)pair->value);
}

void cleave_session_destroy_targets(cleave_session_t *session) {
  for (size_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    if (step->event != NULL) {
      cleave_device_event_destroy(session->targets.items[step->target].device, step->event);
    }
  }
  for (size_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    for (size_t o = 0; o < target->run_options.count; o++) {
      free_pair(&target->run_options.items[o]);
    }
    cleave_array_free(&target->run_options);
    cleave_stage_deinit(&target->stage);
    cleave_free(target->host_blocks);
    if (target->device != NULL) {
      cleave_device_free(target->device, target->memory_blocks);
      cleave_device_free(target->device, target->constants);
      cleave_device_stream_destroy(target->device, target->stream);
      cleave_device_release(target->device);
    }
  }
  cleave_array_free(&session->targets);
}

/* ---- options of runs ---- */

/* The arguments of a target's steps show its options as they are now. */
static void show_options(cleave_session_t *session, uint32_t index) {
  const cleave_target_t *target = &session->targets.items[index];
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (step->target == index && step->kind != CLEAVE_STEP_COPY) {
      step->args.option_count = (uint32_t)target->run_options.count;
      step->args.options = target->run_options.items;
    }
  }
}

static cleave_status_t set_option(cleave_target_t *target, const char *key, const char *value,
                                  cleave_error_t *error) {
  size_t at = 0;
  while (at < target->run_options.count && strcmp(target->run_options.items[at].key, key) != 0) {
    at++;
  }
  if (value == NULL) {
    if (at < target->run_options.count) {
      cleave_key_value_t *pair = &target->run_options.items[at];
      free_pair(pair);
      memmove(pair, pair + 1, (target->run_options.count - at - 1) * sizeof *pair);
      target->run_options.count--;
    }
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_array_reserve(&target->run_options, 1, error));
  cleave_key_value_t pair = {.key = cleave_copy_text(key, strlen(key)),
                             .value = cleave_copy_text(value, strlen(value))};
  if (pair.key == NULL || pair.value == NULL) {
    free_pair(&pair);
    return cleave_error_out_of_memory(error);
  }
  if (at < target->run_options.count) {
    free_pair(&target->run_options.items[at]);
    target->run_options.items[at] = pair;
  } else {
    cleave_array_push_reserved(&target->run_options, pair);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_set_run_option(cleave_session_t *session, const char *backend, const char *key,
                                              const char *value, cleave_error_t *error) {
  bool found = false;
  for (uint32_t k = 0; k < session->targets.count; k++) {
    cleave_target_t *target = &session->targets.items[k];
    if (strcmp(target->handle->backend->name, backend) == 0) {
      cleave_error_t reason = CLEAVE_ERROR_INIT;
      if (cleave_backend_check_option(target->handle, key, &reason) != CLEAVE_OK) {
        return cleave_error_set(error, reason.status, "option '%s.%s': %s", backend, key, reason.message);
      }
      found = true;
      cleave_status_t status = set_option(target, key, value, error);
      show_options(session, k);
      CLEAVE_TRY(status);
    }
  }
  if (!found) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the session runs nothing on backend '%s': option '%s' has no effect", backend,
                            key);
  }
  return CLEAVE_OK;
}
