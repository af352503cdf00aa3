// SPDX-License-Identifier: Apache-2.0
#include "onednn/program/parted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An input or output: a part of it is `bytes` long. */
typedef struct slice {
  int64_t rows; /* of the whole */
  size_t bytes;
  int64_t dims[CLEAVE_MAX_RANK];
} slice_t;

struct onednn_parted {
  onednn_guarded_t *guarded;
  int64_t count;
  kernel_arena_t arena; /* of what follows, all for several parts */
  uint32_t input_count;
  uint32_t output_count;
  slice_t *slices;               /* inputs, then outputs */
  cleave_tensor_view_t *tensors; /* of the part at work, in the same order */
  cleave_step_time_t *times;
  uint32_t time_count;
  cleave_program_info_t info;
};

static cleave_status_t out_of_memory(cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while making a program");
}

static cleave_status_t make_slices(onednn_parted_t *parted, const cleave_region_view_t *region,
                                   cleave_message_t *message) {
  size_t count = (size_t)region->input_count + region->output_count;
  parted->input_count = region->input_count;
  parted->output_count = region->output_count;
  parted->slices = kernel_arena_allocate(&parted->arena, count, sizeof(*parted->slices));
  parted->tensors = kernel_arena_allocate(&parted->arena, count, sizeof(*parted->tensors));
  if (parted->slices == NULL || parted->tensors == NULL) {
    return out_of_memory(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    uint32_t value = k < region->input_count ? region->inputs[k] : region->outputs[k - region->input_count];
    const cleave_tensor_view_t *part = &region->values[value].tensor;
    slice_t *slice = &parted->slices[k];
    slice->rows = part->dims[0] * parted->count;
    slice->bytes = (size_t)cleave_view_element_count(part) * cleave_dtype_size(part->dtype);
    memcpy(slice->dims, part->dims, (size_t)part->rank * sizeof(*part->dims));
  }
  return CLEAVE_OK;
}

/* What the program says of itself, and into how many parts the batch is cut. */
static cleave_status_t note_parts(onednn_parted_t *parted, cleave_message_t *message) {
  char note[320];
  const cleave_program_info_t *info = onednn_guarded_info(parted->guarded);
  int64_t rows = parted->slices[0].rows;
  parted->info = *info;
  (void)snprintf(note, sizeof(note), "%lld rows are computed %lld at a time, which stay in the caches%s%s",
                 (long long)rows, (long long)(rows / parted->count), info->note != NULL ? "; " : "",
                 info->note != NULL ? info->note : "");
  parted->info.note = kernel_arena_text(&parted->arena, note);
  return parted->info.note != NULL ? CLEAVE_OK : out_of_memory(message);
}

static cleave_status_t make_times(onednn_parted_t *parted, cleave_message_t *message) {
  const cleave_step_time_t *steps = NULL;
  parted->time_count = onednn_guarded_profile(parted->guarded, &steps);
  parted->times = kernel_arena_allocate(&parted->arena, parted->time_count, sizeof(*parted->times));
  if (parted->time_count > 0 && parted->times == NULL) {
    return out_of_memory(message);
  }
  for (uint32_t k = 0; k < parted->time_count; k++) {
    parted->times[k] = steps[k];
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_parted_create(const onednn_base_t *base, const onednn_known_t *known,
                                     const onednn_parts_t *parts, const cleave_compile_options_t *options,
                                     onednn_parted_t **out, cleave_message_t *message) {
  onednn_parted_t *parted = calloc(1, sizeof(*parted));
  *out = NULL;
  if (parted == NULL) {
    return out_of_memory(message);
  }
  parted->count = parts->count;
  cleave_status_t status =
      onednn_guarded_create(base, known, parts->region, options, &parted->guarded, message);
  if (status == CLEAVE_OK && parted->count > 1) {
    status = make_slices(parted, parts->region, message);
    status = status == CLEAVE_OK ? note_parts(parted, message) : status;
    status = status == CLEAVE_OK ? make_times(parted, message) : status;
  }
  if (status != CLEAVE_OK) {
    onednn_parted_destroy(parted);
    return status;
  }
  *out = parted;
  return CLEAVE_OK;
}

void onednn_parted_destroy(onednn_parted_t *parted) {
  if (parted != NULL) {
    onednn_guarded_destroy(parted->guarded);
    kernel_arena_free(&parted->arena);
    free(parted);
  }
}

cleave_status_t onednn_parted_save(const onednn_parted_t *parted,
                                   cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                   void *context, cleave_message_t *message) {
  return onednn_guarded_save(parted->guarded, write, context, message);
}

const cleave_program_info_t *onednn_parted_info(const onednn_parted_t *parted) {
  return parted->count > 1 ? &parted->info : onednn_guarded_info(parted->guarded);
}

/* The first part of a tensor of the whole batch. */
static cleave_status_t begin_slice(onednn_parted_t *parted, uint32_t index, const cleave_tensor_view_t *whole,
                                   const char *what, cleave_message_t *message) {
  slice_t *slice = &parted->slices[index];
  int64_t rows = whole->rank > 0 ? whole->dims[0] : 0;
  if (rows != slice->rows) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s %u: expected %lld row%s, found %lld", what,
                       (unsigned)index, (long long)slice->rows, KERNEL_PLURAL(slice->rows), (long long)rows);
  }
  memcpy(slice->dims, whole->dims, (size_t)whole->rank * sizeof(*whole->dims));
  slice->dims[0] = slice->rows / parted->count;
  parted->tensors[index] = *whole;
  parted->tensors[index].dims = slice->dims;
  return CLEAVE_OK;
}

static cleave_status_t begin_slices(onednn_parted_t *parted, const cleave_run_args_t *args,
                                    cleave_message_t *message) {
  for (uint32_t k = 0; k < parted->input_count; k++) {
    ONEDNN_TRY(begin_slice(parted, k, &args->inputs[k], "input", message));
  }
  for (uint32_t k = 0; k < parted->output_count; k++) {
    ONEDNN_TRY(begin_slice(parted, parted->input_count + k, &args->outputs[k], "output", message));
  }
  return CLEAVE_OK;
}

static void next_slices(onednn_parted_t *parted) {
  for (uint32_t k = 0; k < parted->input_count + parted->output_count; k++) {
    cleave_tensor_view_t *tensor = &parted->tensors[k];
    tensor->data = tensor->data != NULL ? (char *)(uintptr_t)tensor->data + parted->slices[k].bytes : NULL;
  }
}

/* Adds the times of the part that has run: `end_ns` holds the sum until all have. */
static void add_times(onednn_parted_t *parted, bool is_first) {
  const cleave_step_time_t *steps = NULL;
  (void)onednn_guarded_profile(parted->guarded, &steps);
  for (uint32_t k = 0; k < parted->time_count; k++) {
    cleave_step_time_t *time = &parted->times[k];
    time->start_ns = is_first ? steps[k].start_ns : time->start_ns;
    time->end_ns = (is_first ? 0 : time->end_ns) + (steps[k].end_ns - steps[k].start_ns);
  }
}

static void finish_times(onednn_parted_t *parted) {
  uint64_t at = parted->time_count > 0 ? parted->times[0].start_ns : 0;
  for (uint32_t k = 0; k < parted->time_count; k++) {
    parted->times[k].start_ns = at;
    at += parted->times[k].end_ns;
    parted->times[k].end_ns = at;
  }
}

cleave_status_t onednn_parted_run(onednn_parted_t *parted, const cleave_run_args_t *args,
                                  cleave_message_t *message) {
  if (parted->count == 1) {
    return onednn_guarded_run(parted->guarded, args, message);
  }
  ONEDNN_TRY(begin_slices(parted, args, message));
  cleave_run_args_t part = *args;
  part.inputs = parted->tensors;
  part.outputs = parted->tensors + parted->input_count;
  for (int64_t k = 0; k < parted->count; k++) {
    if (k > 0) {
      next_slices(parted);
    }
    ONEDNN_TRY(onednn_guarded_run(parted->guarded, &part, message));
    add_times(parted, k == 0);
  }
  finish_times(parted);
  return CLEAVE_OK;
}

uint32_t onednn_parted_profile(const onednn_parted_t *parted, const cleave_step_time_t **out_steps) {
  if (parted->count == 1) {
    return onednn_guarded_profile(parted->guarded, out_steps);
  }
  *out_steps = parted->times;
  return parted->time_count;
}
