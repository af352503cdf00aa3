// SPDX-License-Identifier: Apache-2.0
#include "distributed/communicator.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"

static const int64_t CHUNK = INT64_C(1) << 30; /* bytes of a broadcast */

cleave_status_t cleave_communicator_check(const cleave_communicator_t *communicator, cleave_error_t *error) {
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_communicator_t, communicator, error));
  bool is_whole = communicator->start != NULL && communicator->wait != NULL && communicator->abort != NULL;
  bool fits = communicator->rank >= 0 && communicator->rank < communicator->count;
  return is_whole && fits
             ? CLEAVE_OK
             : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "communicator: %s",
                                fits ? "a function is missing" : "its rank is not one of its processes");
}

static cleave_status_t fail(cleave_status_t status, cleave_message_t *message, cleave_error_t *error) {
  message->text[sizeof message->text - 1] = '\0';
  return cleave_error_set(error, status, "%s", message->text);
}

cleave_status_t cleave_communicator_start(const cleave_communicator_t *communicator,
                                          const cleave_transfer_t *transfer, uint64_t *out_number,
                                          cleave_error_t *error) {
  cleave_message_t message = {.text = "a transfer does not start"};
  cleave_status_t status = communicator->start(communicator->self, transfer, out_number, &message);
  return status == CLEAVE_OK ? CLEAVE_OK : fail(status, &message, error);
}

cleave_status_t cleave_communicator_wait(const cleave_communicator_t *communicator, uint64_t number,
                                         cleave_transfer_times_t *out_times, cleave_error_t *error) {
  cleave_message_t message = {.text = "a transfer failed"};
  cleave_status_t status = communicator->wait(communicator->self, number, out_times, &message);
  return status == CLEAVE_OK ? CLEAVE_OK : fail(status, &message, error);
}

static cleave_status_t transfer_now(const cleave_communicator_t *communicator,
                                    const cleave_transfer_t *transfer, cleave_error_t *error) {
  uint64_t number = 0;
  CLEAVE_TRY(cleave_communicator_start(communicator, transfer, &number, error));
  return cleave_communicator_wait(communicator, number, NULL, error);
}

cleave_status_t cleave_communicator_sum(const cleave_communicator_t *communicator, cleave_dtype_t dtype,
                                        void *data, int64_t count, cleave_error_t *error) {
  const cleave_transfer_t transfer = {
      .size = sizeof transfer, .kind = CLEAVE_TRANSFER_SUM, .dtype = dtype, .data = data, .count = count};
  return transfer_now(communicator, &transfer, error);
}

cleave_status_t cleave_communicator_broadcast(const cleave_communicator_t *communicator, int32_t root,
                                              void *data, size_t bytes, cleave_error_t *error) {
  for (size_t done = 0; done < bytes;) {
    int64_t count = (int64_t)(bytes - done) < CHUNK ? (int64_t)(bytes - done) : CHUNK;
    const cleave_transfer_t transfer = {.size = sizeof transfer,
                                        .kind = CLEAVE_TRANSFER_BROADCAST,
                                        .dtype = CLEAVE_DTYPE_U8,
                                        .data = (unsigned char *)data + done,
                                        .count = count,
                                        .peer = root};
    CLEAVE_TRY(transfer_now(communicator, &transfer, error));
    done += (size_t)count;
  }
  return CLEAVE_OK;
}

// ---- agreement ----

/* The report of a process that failed. */
typedef struct report {
  int32_t status;
  char message[512];
} report_t;

static cleave_status_t spread(const cleave_communicator_t *communicator, int32_t from, bool all_failed,
                              const report_t *mine, cleave_error_t *error) {
  report_t report = *mine;
  cleave_error_t other = CLEAVE_ERROR_INIT;
  CLEAVE_TRY(cleave_communicator_broadcast(communicator, from, &report, sizeof report, error));
  report.message[sizeof report.message - 1] = '\0';
  if (all_failed) {
    (void)cleave_error_set(&other, (cleave_status_t)report.status, "%s", report.message);
  } else {
    (void)cleave_error_set(&other, (cleave_status_t)report.status, "process %d of %d: %s", (int)from,
                           (int)communicator->count, report.message);
  }
  if (error != NULL) {
    cleave_hint_t hint = all_failed ? error->hint : CLEAVE_HINT_NONE;
    *error = other;
    error->hint = hint;
  }
  return other.status;
}

cleave_status_t cleave_communicator_agree(const cleave_communicator_t *communicator, cleave_status_t status,
                                          cleave_error_t *error) {
  int64_t *failed = cleave_allocate_zeroed((size_t)communicator->count, sizeof *failed);
  report_t mine = {.status = (int32_t)status};
  int32_t first = -1;
  int64_t count = 0;
  if (failed == NULL) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    (void)snprintf(mine.message, sizeof mine.message, "%.500s",
                   error != NULL && error->message[0] != '\0' ? error->message : cleave_status_text(status));
    failed[communicator->rank] = 1;
  }
  cleave_error_t lost = CLEAVE_ERROR_INIT;
  cleave_status_t summed =
      cleave_communicator_sum(communicator, CLEAVE_DTYPE_I64, failed, communicator->count, &lost);
  for (int32_t k = communicator->count; k > 0; k--) {
    first = failed[k - 1] != 0 ? k - 1 : first;
    count += failed[k - 1];
  }
  cleave_free(failed);
  if (summed != CLEAVE_OK) {
    return status != CLEAVE_OK ? status : cleave_error_take(error, &lost);
  }
  return first < 0 ? CLEAVE_OK : spread(communicator, first, count == communicator->count, &mine, error);
}
