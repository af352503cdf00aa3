// SPDX-License-Identifier: Apache-2.0
/*
 * Tuned regions: those with the attribute `tune = 1` (`--set tune=true` of rules/onednn.lua). The forms of
 * their kernels are measured once: in later processes they come with the packed weights, and in this one a
 * region has the same forms whatever number of threads a program has, so that results are the same to the
 * bit.
 */
#ifndef ONEDNN_TUNE_H
#define ONEDNN_TUNE_H

#include "onednn/plan/plan.h"

/* Tunings of a backend state, which live as long as it. Thread-safe. */
typedef struct onednn_tunings onednn_tunings_t;

/* NULL without memory. */
onednn_tunings_t *onednn_tunings_create(void);
void onednn_tunings_destroy(onednn_tunings_t *tunings);

/* The tuning of a region: one that is known, else that of `image` (or NULL), else by measuring. NULL in
 * `*out` if the region asks for none. An image that was measured on another processor or for another number
 * of threads is CLEAVE_ERROR_UNSUPPORTED. */
CLEAVE_MUST_USE cleave_status_t onednn_tune(onednn_tunings_t *tunings, const onednn_base_t *base,
                                            const onednn_image_t *image, const cleave_region_view_t *region,
                                            int32_t threads, const onednn_tuning_t **out,
                                            cleave_message_t *message);

#endif /* ONEDNN_TUNE_H */
