// SPDX-License-Identifier: Apache-2.0
/*
 * Between which numbers the values of a graph lie: it runs in float32 on given inputs, and every float32
 * value that is no constant is looked at after each run. All of them are in memory at the same time.
 */
#ifndef CLEAVE_TOOLS_CALIBRATE_CALIBRATE_H
#define CLEAVE_TOOLS_CALIBRATE_CALIBRATE_H

#include "runtime/session/session.h"
#include "tools/calibrate/histogram.h"

typedef enum cleave_calibration_method {
  CLEAVE_CALIBRATION_MINMAX,
  CLEAVE_CALIBRATION_PERCENTILE,
  CLEAVE_CALIBRATION_ENTROPY
} cleave_calibration_method_t;

typedef struct cleave_calibration_options {
  cleave_calibration_method_t method;
  double percentile;                       /* above 0, up to 100: of CLEAVE_CALIBRATION_PERCENTILE */
  const char *backend;                     /* runs what it supports; NULL: all on `cpu` */
  const cleave_session_options_t *session; /* or NULL */
} cleave_calibration_options_t;

/* One thread at a time. */
typedef struct cleave_calibration cleave_calibration_t;

/* Compiles the graph, which is borrowed and must outlive the calibration, for inputs of these types, one per
 * input; data is not looked at. */
CLEAVE_STATUS cleave_calibration_create(const cleave_graph_t *graph, const cleave_tensor_view_t *inputs,
                                        size_t count, const cleave_calibration_options_t *options,
                                        cleave_calibration_t **out_calibration, cleave_error_t *error);
/* Runs once on inputs of those types, and looks at the values. */
CLEAVE_STATUS cleave_calibration_run(cleave_calibration_t *calibration, const cleave_tensor_view_t *inputs,
                                     cleave_error_t *error);
/* Sets the ranges of `graph`: the one that was given, or a copy with the same values. Values without a finite
 * number get none. Returns how many got one. */
uint32_t cleave_calibration_set(const cleave_calibration_t *calibration, cleave_graph_t *graph);
/* NaN and infinities that were left out, and the first value that had some (NONE: none had). */
uint64_t cleave_calibration_skipped(const cleave_calibration_t *calibration, cleave_value_t *out_value);
void cleave_calibration_destroy(cleave_calibration_t *calibration);

#endif /* CLEAVE_TOOLS_CALIBRATE_CALIBRATE_H */
