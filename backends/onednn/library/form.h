// SPDX-License-Identifier: Apache-2.0
/*
 * Forms of kernels: what tuning chooses. Without one, a kernel has the default form, which emit/ knows. The
 * form of a convolution says in which layout it reads and writes images, and which of oneDNN's
 * implementations computes it; any kernel may be computed by one thread, although the program has more.
 */
#ifndef ONEDNN_FORM_H
#define ONEDNN_FORM_H

#include <stdint.h>

typedef enum onednn_form_layout {
  ONEDNN_FORM_DEFAULT,
  ONEDNN_FORM_ANY, /* what oneDNN's implementation likes */
  ONEDNN_FORM_CHANNELS_LAST,
  ONEDNN_FORM_BLOCKS_16,
  ONEDNN_FORM_BLOCKS_8,
  ONEDNN_FORM_PLAIN,
  ONEDNN_FORM_WINOGRAD, /* blocks of 16, by Winograd's algorithm */
  ONEDNN_FORM_LAYOUTS
} onednn_form_layout_t;

typedef struct onednn_form {
  uint8_t layout;  /* onednn_form_layout_t */
  uint8_t skipped; /* implementations that are passed over, in oneDNN's order */
  uint8_t serial;  /* 1: by one thread */
  uint8_t unused;
} onednn_form_t;

/* Implementations that may be passed over. */
enum { ONEDNN_FORM_SKIPS = 2 };

/* The forms of all kernels of a region, as they were measured; also bytes of an image (image.h), as it is. */
typedef struct onednn_tuning {
  uint64_t processor; /* digest of its name */
  uint32_t threads;
  uint32_t kernel_count;
  uint32_t changed; /* convolutions that do not have the default form */
  uint32_t serial;  /* kernels for one thread */
  double before_ms; /* of a run, in the default form and in this one */
  double after_ms;
  onednn_form_t forms[];
} onednn_tuning_t;

#endif /* ONEDNN_FORM_H */
