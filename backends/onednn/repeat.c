// SPDX-License-Identifier: Apache-2.0
// Repeated runs. The exact program shares packed weights with the fast one; its workspace is its own.
#include "repeat.h"

#include <stdlib.h>

#include "copy.h"

struct onednn_repeat {
  const onednn_base_t *base;
  const cleave_region_view_t *region;
  int32_t threads;
  onednn_program_t *exact; /* NULL until it is needed */
  void *workspace;
};

cleave_status_t onednn_repeat_create(const onednn_base_t *base, const cleave_region_view_t *region,
                                     int32_t threads, onednn_arena_t *arena, onednn_repeat_t **out,
                                     cleave_message_t *message) {
  onednn_repeat_t *repeat = onednn_arena_allocate(arena, 1, sizeof(*repeat));
  *out = repeat;
  if (repeat != NULL) {
    repeat->base = base;
    repeat->threads = threads;
    repeat->region = onednn_copy_region(region, arena);
  }
  return repeat != NULL && repeat->region != NULL
             ? CLEAVE_OK
             : onednn_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while making a program");
}

void onednn_repeat_deinit(onednn_repeat_t *repeat) {
  if (repeat != NULL) {
    onednn_program_destroy(repeat->exact);
    free(repeat->workspace);
  }
}

static cleave_status_t prepare(onednn_repeat_t *repeat, cleave_message_t *message) {
  cleave_compile_options_t options = {.size = sizeof(options), .threads = repeat->threads};
  onednn_program_t *exact = NULL;
  ONEDNN_TRY(
      onednn_program_create(repeat->base, repeat->region, ONEDNN_CARE_EXACT, &options, &exact, message));
  size_t bytes = onednn_round_up(onednn_program_info(exact)->workspace_bytes);
  repeat->workspace = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
  if (bytes > 0 && repeat->workspace == NULL) {
    onednn_program_destroy(exact);
    return onednn_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY,
                       "out of memory while repeating a run with special values");
  }
  repeat->exact = exact;
  return CLEAVE_OK;
}

cleave_status_t onednn_repeat_run(onednn_repeat_t *repeat, const cleave_run_args_t *args,
                                  cleave_message_t *message) {
  if (repeat->exact == NULL) {
    ONEDNN_TRY(prepare(repeat, message));
  }
  cleave_run_args_t again = *args;
  again.workspace = repeat->workspace;
  return onednn_program_run(repeat->exact, &again, message);
}
