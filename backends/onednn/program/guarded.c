// SPDX-License-Identifier: Apache-2.0
// Guarded programs. The exact form shares packed weights with the fast one; its workspace is its own.
#include "onednn/program/guarded.h"

#include <stdlib.h>

#include "onednn/plan/care.h"
#include "onednn/program/copy.h"

struct onednn_guarded {
  const onednn_base_t *base;
  onednn_program_t *fast;
  onednn_program_t *exact;            /* NULL until it is needed */
  const cleave_region_view_t *region; /* NULL: no step of `fast` raises the flag */
  kernel_arena_t arena;               /* of the region */
  int32_t threads;
  void *workspace; /* of `exact` */
};

static cleave_status_t out_of_memory(cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while making a program");
}

cleave_status_t onednn_guarded_create(const onednn_base_t *base, const onednn_known_t *known,
                                      const cleave_region_view_t *region,
                                      const cleave_compile_options_t *options, onednn_guarded_t **out,
                                      cleave_message_t *message) {
  onednn_base_t own = *base;
  onednn_guarded_t *guarded = calloc(1, sizeof(*guarded));
  *out = NULL;
  if (guarded == NULL) {
    return out_of_memory(message);
  }
  own.image = known->image;
  own.tuning = known->tuning;
  guarded->base = base;
  guarded->threads = options->threads < 1 ? 1 : options->threads;
  cleave_status_t status =
      onednn_program_create(&own, region, onednn_care_of(region), options, &guarded->fast, message);
  if (status == CLEAVE_OK && onednn_program_raises(guarded->fast)) {
    guarded->region = onednn_copy_region(region, &guarded->arena);
    status = guarded->region != NULL ? CLEAVE_OK : out_of_memory(message);
  }
  if (status != CLEAVE_OK) {
    onednn_guarded_destroy(guarded);
    return status;
  }
  *out = guarded;
  return CLEAVE_OK;
}

void onednn_guarded_destroy(onednn_guarded_t *guarded) {
  if (guarded != NULL) {
    onednn_program_destroy(guarded->fast);
    onednn_program_destroy(guarded->exact);
    kernel_arena_free(&guarded->arena);
    free(guarded->workspace);
    free(guarded);
  }
}

cleave_status_t onednn_guarded_save(const onednn_guarded_t *guarded,
                                    cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                    void *context, cleave_message_t *message) {
  return onednn_program_save(guarded->fast, write, context, message);
}

const cleave_program_info_t *onednn_guarded_info(const onednn_guarded_t *guarded) {
  return onednn_program_info(guarded->fast);
}

static cleave_status_t make_exact(onednn_guarded_t *guarded, cleave_message_t *message) {
  cleave_compile_options_t options = {.size = sizeof(options), .threads = guarded->threads};
  onednn_program_t *exact = NULL;
  ONEDNN_TRY(
      onednn_program_create(guarded->base, guarded->region, ONEDNN_CARE_EXACT, &options, &exact, message));
  size_t bytes = onednn_round_up(onednn_program_info(exact)->workspace_bytes);
  guarded->workspace = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
  if (bytes > 0 && guarded->workspace == NULL) {
    onednn_program_destroy(exact);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY,
                       "out of memory while repeating a run with special values");
  }
  guarded->exact = exact;
  return CLEAVE_OK;
}

static cleave_status_t run_exact(onednn_guarded_t *guarded, const cleave_run_args_t *args,
                                 cleave_message_t *message) {
  bool right = true;
  if (guarded->exact == NULL) {
    ONEDNN_TRY(make_exact(guarded, message));
  }
  cleave_run_args_t again = *args;
  again.workspace = guarded->workspace;
  return onednn_program_run(guarded->exact, &again, &right, message);
}

cleave_status_t onednn_guarded_run(onednn_guarded_t *guarded, const cleave_run_args_t *args,
                                   cleave_message_t *message) {
  bool right = true;
  onednn_flag_t flag;
  if (guarded->region == NULL) {
    return onednn_program_run(guarded->fast, args, &right, message);
  }
  onednn_flag_lower(&flag, guarded->threads);
  cleave_status_t status = onednn_program_run(guarded->fast, args, &right, message);
  if (status == CLEAVE_OK && !right) {
    status = onednn_program_run_clean(guarded->fast, args, &right, message);
  }
  if (status == CLEAVE_OK && !right) {
    status = run_exact(guarded, args, message);
  }
  onednn_flag_restore(&flag);
  return status;
}

uint32_t onednn_guarded_profile(const onednn_guarded_t *guarded, const cleave_step_time_t **out_steps) {
  return onednn_program_profile(guarded->fast, out_steps);
}
