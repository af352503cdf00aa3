// SPDX-License-Identifier: Apache-2.0
// What processes that train together tell each other beside the sums of a step.
#include <string.h>

#include "system/digest.h"
#include "train/trainer_internal.h"

/* The digest of a run and its buckets, which must be equal in all processes. */
static cleave_digest_t digest_of(const cleave_trainer_t *trainer) {
  cleave_digest_state_t state;
  cleave_train_number_t numbers[CLEAVE_TRAIN_NUMBERS];
  cleave_digest_start(&state);
  size_t count = cleave_train_describe(&trainer->options, trainer->samples->count, numbers);
  for (size_t k = 0; k < count; k++) {
    cleave_digest_add(&state, &numbers[k].value, sizeof numbers[k].value);
  }
  for (size_t k = 0; k < trainer->carried.count; k++) {
    const cleave_tensor_t *tensor = trainer->carried.items[k].buffers[trainer->now];
    cleave_digest_add(&state, tensor->data, tensor->bytes);
  }
  for (size_t k = 0; k < trainer->exchange.buckets.count; k++) {
    cleave_digest_add(&state, &trainer->exchange.buckets.items[k].bytes, sizeof(size_t));
  }
  return cleave_digest_end(&state);
}

static cleave_status_t compare(const cleave_trainer_t *trainer, cleave_error_t *error) {
  cleave_digest_t mine = digest_of(trainer);
  cleave_digest_t first = mine;
  CLEAVE_TRY(cleave_communicator_broadcast(trainer->options.communicator, 0, &first, sizeof first, error));
  return cleave_digest_equal(mine, first)
             ? CLEAVE_OK
             : cleave_error_set(
                   error, CLEAVE_ERROR_INVALID_ARGUMENT,
                   "model, samples or options differ from those of process 0: all that train together "
                   "need the same");
}

cleave_status_t cleave_train_agree(const cleave_trainer_t *trainer, cleave_status_t status,
                                   cleave_error_t *error) {
  const cleave_communicator_t *communicator = trainer->options.communicator;
  CLEAVE_TRY(cleave_communicator_agree(communicator, status, error));
  return cleave_communicator_agree(communicator, compare(trainer, error), error);
}

static cleave_status_t spread(cleave_trainer_t *trainer, cleave_error_t *error) {
  const cleave_communicator_t *communicator = trainer->options.communicator;
  int64_t steps = trainer->steps_done;
  CLEAVE_TRY(cleave_communicator_broadcast(communicator, 0, &steps, sizeof steps, error));
  size_t known = trainer->history.count;
  CLEAVE_TRY(
      cleave_array_reserve(&trainer->history, (size_t)steps > known ? (size_t)steps - known : 0, error));
  CLEAVE_TRY(cleave_communicator_broadcast(communicator, 0, trainer->history.items,
                                           (size_t)steps * sizeof *trainer->history.items, error));
  trainer->history.count = (size_t)steps;
  trainer->steps_done = steps;
  cleave_train_replay_scaling(trainer);
  trainer->now = 0;
  for (size_t k = 0; k < trainer->carried.count; k++) {
    cleave_tensor_t *tensor = trainer->carried.items[k].buffers[0];
    CLEAVE_TRY(cleave_communicator_broadcast(communicator, 0, tensor->data, tensor->bytes, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_train_share_state(cleave_trainer_t *trainer, cleave_status_t status,
                                         cleave_error_t *error) {
  CLEAVE_TRY(cleave_communicator_agree(trainer->options.communicator, status, error));
  return spread(trainer, error);
}
