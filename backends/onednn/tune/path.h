// SPDX-License-Identifier: Apache-2.0
/*
 * The shortest path through kernels that have several forms each: every kernel takes its time in the form
 * that is chosen, and going over from one form to another in front of a kernel takes the time of converting
 * what lives there.
 */
#ifndef ONEDNN_PATH_H
#define ONEDNN_PATH_H

#include <stdbool.h>
#include <stdint.h>

/* The time of going over from form `from` of kernel `kernel` - 1 to form `to` of `kernel`; 0 if they are the
 * same. */
typedef double (*onednn_switch_fn_t)(void *context, uint32_t kernel, uint32_t from, uint32_t to);

typedef struct onednn_path {
  uint32_t kernels;
  uint32_t forms;
  const double *times; /* forms of the first kernel, forms of the second one, ... */
  onednn_switch_fn_t switches;
  void *context;
} onednn_path_t;

/* Writes a form per kernel to `out`; of several shortest paths, one that has low numbers at the end. False
 * without memory. Linear in the kernels, quadratic in the forms. */
bool onednn_path_find(const onednn_path_t *path, uint32_t *out);

#endif /* ONEDNN_PATH_H */
