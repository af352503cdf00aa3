// SPDX-License-Identifier: Apache-2.0
// Two sessions side by side: they run by turns, so that whatever else the machine does falls on both alike,
// and their outputs are compared. Which of them goes first changes from turn to turn.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tensor/tensor.h"
#include "tools/watch.h"

enum { MOST_RUNS = 200 };

static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median(double *times, uint32_t count) {
  if (count == 0) {
    return 0.0;
  }
  qsort(times, count, sizeof *times, compare_times);
  return count % 2 == 1 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2.0;
}

/* A tensor over the memory of a view, for comparing. */
static cleave_status_t borrow(const cleave_tensor_view_t *view, cleave_tensor_t **out_tensor,
                              cleave_error_t *error) {
  int64_t count = cleave_view_element_count(view);
  return cleave_tensor_create_borrowed(view->dtype, view->rank, view->dims, view->data,
                                       (size_t)count * cleave_dtype_size(view->dtype), NULL, out_tensor,
                                       error);
}

static bool same_type(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  bool same = a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; d++) {
    same = a->dims[d] == b->dims[d];
  }
  return same;
}

static cleave_status_t compare_output(const cleave_watch_measure_t *measure, uint32_t index,
                                      cleave_reload_t *reload, cleave_error_t *error) {
  cleave_tensor_view_t views[2];
  cleave_tensor_t *tensors[2] = {NULL, NULL};
  double difference = (double)INFINITY;
  double relative = (double)INFINITY;
  CLEAVE_TRY(cleave_session_output(measure->before, index, &views[0], error));
  CLEAVE_TRY(cleave_session_output(measure->after, index, &views[1], error));
  if (views[0].dtype == CLEAVE_DTYPE_STRING) {
    return CLEAVE_OK;
  }
  if (same_type(&views[0], &views[1])) {
    cleave_difference_t found;
    cleave_status_t status = borrow(&views[0], &tensors[0], error);
    if (status == CLEAVE_OK) {
      status = borrow(&views[1], &tensors[1], error);
    }
    if (status == CLEAVE_OK) {
      cleave_tensor_compare(tensors[1], tensors[0], 0.0, 0.0, &found);
      difference = found.max_absolute;
      relative = difference / (found.max_expected > 0.0 ? found.max_expected : 1.0);
    }
    cleave_tensor_release(tensors[0]);
    cleave_tensor_release(tensors[1]);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  if (index == 0 || !(difference <= reload->largest_difference)) {
    reload->largest_difference = difference;
    reload->relative_difference = relative;
    reload->largest_output =
        cleave_strings_text(&measure->graph->strings, measure->graph->output_names.items[index]);
  }
  return CLEAVE_OK;
}

static cleave_status_t timed_run(cleave_session_t *session, double *out_ms, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(session, error));
  *out_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

/* The first pair. A first run of the session after pays for memory that is new and is not measured, unless
 * there is no time left for it: then the memory is touched before. */
static cleave_status_t first_pair(const cleave_watch_measure_t *measure, double *before, double *after,
                                  cleave_error_t *error) {
  CLEAVE_TRY(timed_run(measure->before, before, error));
  if ((double)cleave_clock_now() + 2.0 * *before * 1e6 > (double)measure->deadline_ns) {
    cleave_session_touch(measure->after);
  } else {
    CLEAVE_TRY(timed_run(measure->after, after, error));
  }
  return timed_run(measure->after, after, error);
}

cleave_status_t cleave_watch_measure(const cleave_watch_measure_t *measure, cleave_reload_t *reload,
                                     cleave_error_t *error) {
  double before[MOST_RUNS];
  double after[MOST_RUNS];
  uint32_t count = 1;
  CLEAVE_TRY(first_pair(measure, &before[0], &after[0], error));
  while (count < MOST_RUNS && (double)cleave_clock_now() + (before[count - 1] + after[count - 1]) * 1e6 <
                                  (double)measure->deadline_ns) {
    bool turn = count % 2 == 0;
    CLEAVE_TRY(
        timed_run(turn ? measure->before : measure->after, turn ? &before[count] : &after[count], error));
    CLEAVE_TRY(
        timed_run(turn ? measure->after : measure->before, turn ? &after[count] : &before[count], error));
    count++;
  }
  reload->largest_output = "";
  for (uint32_t k = 0; k < (uint32_t)measure->graph->outputs.count; k++) {
    CLEAVE_TRY(compare_output(measure, k, reload, error));
  }
  reload->compared = true;
  reload->runs = count;
  reload->before_ms = median(before, count);
  reload->after_ms = median(after, count);
  return CLEAVE_OK;
}
