// SPDX-License-Identifier: Apache-2.0
// Choices by key. The text of a call is kept with its choice and compared, so that no other call's choice is
// taken for it.
#include "choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/program.h"

enum { MAX_TEXT = CUDA_MAX_CALL_TEXT + 160 };

typedef struct kept {
  cuda_entry_t entry;
  cuda_choice_t choice;
  char text[MAX_TEXT];
} kept_t;

/* On disk. */
typedef struct record {
  cuda_choice_t choice;
  char text[MAX_TEXT]; /* up to its end */
} record_t;

struct cuda_choices {
  cuda_state_t *state;
  pthread_mutex_t lock;
  cuda_table_t table;
  char folder[CUDA_STORE_MAX_FOLDER]; /* "": none */
  cuda_choices_counts_t counts;
};

cleave_status_t cuda_choices_create(cuda_state_t *state, cuda_choices_t **out_choices,
                                    cleave_message_t *message) {
  *out_choices = NULL;
  cuda_choices_t *choices = calloc(1, sizeof *choices);
  if (choices == NULL || pthread_mutex_init(&choices->lock, NULL) != 0) {
    free(choices);
    return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for choices");
  }
  choices->state = state;
  if (!cuda_store_folder(choices->folder, sizeof choices->folder)) {
    choices->folder[0] = '\0';
  }
  *out_choices = choices;
  return CLEAVE_OK;
}

void cuda_choices_destroy(cuda_choices_t *choices) {
  if (choices == NULL) {
    return;
  }
  for (cuda_entry_t *entry = cuda_table_take(&choices->table); entry != NULL;
       entry = cuda_table_take(&choices->table)) {
    free(entry);
  }
  (void)pthread_mutex_destroy(&choices->lock);
  free(choices);
}

cuda_choices_counts_t cuda_choices_count(cuda_choices_t *choices) {
  (void)pthread_mutex_lock(&choices->lock);
  cuda_choices_counts_t counts = choices->counts;
  (void)pthread_mutex_unlock(&choices->lock);
  return counts;
}

/* ---- keys ---- */

/* All that an algorithm depends on beside the call: devices of one kind share choices. */
static void describe(const cuda_state_t *state, const cuda_call_t *call, char *out_text) {
  const cuda_device_state_t *device = &state->devices[call->device];
  (void)snprintf(out_text, MAX_TEXT, "%s, %d.%d, %d multiprocessors; driver %d; %s; %s", device->name,
                 (int)device->capability / 10, (int)device->capability % 10, device->multiprocessors,
                 state->driver_version, call->is_tuned ? "measured" : "first", call->text);
}

static cuda_key_t key_of(const char *text) {
  return cuda_key_add((cuda_key_t){{0, 0}}, text, strlen(text) + 1);
}

/* ---- keeping ---- */

static void keep(cuda_choices_t *choices, const char *text, const cuda_choice_t *choice) {
  kept_t *kept = calloc(1, sizeof *kept);
  if (kept == NULL) {
    return; /* the next one asks again */
  }
  kept->entry.key = key_of(text);
  kept->choice = *choice;
  memcpy(kept->text, text, strlen(text) + 1);
  if (!cuda_table_add(&choices->table, &kept->entry)) {
    free(kept);
  }
}

static bool find_in_memory(cuda_choices_t *choices, const char *text, cuda_choice_t *out_choice) {
  const kept_t *kept = (const kept_t *)cuda_table_find(&choices->table, key_of(text));
  if (kept == NULL || strcmp(kept->text, text) != 0) {
    return false;
  }
  *out_choice = kept->choice;
  choices->counts.in_memory++;
  return true;
}

static bool find_on_disk(cuda_choices_t *choices, const cuda_call_t *call, const char *text,
                         cuda_choice_t *out_choice) {
  cuda_image_t image = {NULL, 0};
  size_t length = strlen(text);
  record_t record;
  if (choices->folder[0] == '\0' ||
      !cuda_store_read(choices->folder, CUDA_STORE_CHOICE, key_of(text), &image)) {
    return false;
  }
  bool is_ours = image.count == offsetof(record_t, text) + length;
  if (is_ours) {
    memcpy(&record, image.bytes, image.count);
    is_ours = memcmp(record.text, text, length) == 0 && call->check(call->context, &record.choice);
  }
  free(image.bytes);
  if (is_ours) {
    *out_choice = record.choice;
    choices->counts.from_disk++;
    keep(choices, text, out_choice);
  }
  return is_ours;
}

static void write(cuda_choices_t *choices, const char *text, const cuda_choice_t *choice) {
  record_t record = {.choice = *choice};
  size_t length = strlen(text);
  memcpy(record.text, text, length);
  if (choices->folder[0] != '\0') {
    cuda_store_write(choices->folder, CUDA_STORE_CHOICE, key_of(text),
                     (cuda_image_t){(char *)&record, offsetof(record_t, text) + length});
  }
}

/* ---- choosing ---- */

/* *out_is_final: it is worth keeping. */
static cleave_status_t choose(cuda_choices_t *choices, const cuda_call_t *call, cuda_choice_t *out_choice,
                              bool *out_is_final, cleave_message_t *message) {
  cuda_choice_t candidates[CUDA_MAX_CANDIDATES];
  char line[CUDA_MAX_CALL_TEXT + 160];
  uint32_t count = 0;
  uint32_t best = 0;
  double gain = 1.0;
  CUDA_TRY(call->list(call->context, candidates, &count, message));
  *out_choice = candidates[0];
  *out_is_final = true;
  if (!call->is_tuned) {
    return CLEAVE_OK;
  }
  switch (cuda_trial(choices->state, call, candidates, count, &best, &gain)) {
    case CUDA_TRIAL_DONE: break;
    case CUDA_TRIAL_NO_ROOM:
      *out_is_final = false;
      (void)snprintf(line, sizeof line, "cuda: no memory to measure %s: the first algorithm is taken",
                     call->text);
      cuda_log(choices->state, 2, line);
      return CLEAVE_OK;
    case CUDA_TRIAL_NONE:
      return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE,
                       "none of %u algorithm%s runs for %.150s", (unsigned)count, KERNEL_PLURAL(count),
                       call->text);
  }
  choices->counts.timed++;
  *out_choice = candidates[best];
  (void)snprintf(line, sizeof line, "cuda: algorithm %u of %u, %.2f of the first one's time: %s",
                 (unsigned)best + 1, (unsigned)count, gain, call->text);
  cuda_log(choices->state, 3, line);
  return CLEAVE_OK;
}

static cleave_status_t get(cuda_choices_t *choices, const cuda_call_t *call, cuda_choice_t *out_choice,
                           cleave_message_t *message) {
  char text[MAX_TEXT];
  bool is_final = false;
  describe(choices->state, call, text);
  if (find_in_memory(choices, text, out_choice) || find_on_disk(choices, call, text, out_choice)) {
    return CLEAVE_OK;
  }
  CUDA_TRY(choose(choices, call, out_choice, &is_final, message));
  if (is_final) {
    keep(choices, text, out_choice);
    write(choices, text, out_choice);
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_choices_get(cuda_choices_t *choices, const cuda_call_t *call, cuda_choice_t *out_choice,
                                 cleave_message_t *message) {
  (void)pthread_mutex_lock(&choices->lock);
  cleave_status_t status = get(choices, call, out_choice, message);
  (void)pthread_mutex_unlock(&choices->lock);
  return status;
}
