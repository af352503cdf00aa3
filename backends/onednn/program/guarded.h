// SPDX-License-Identifier: Apache-2.0
/*
 * A program whose runs come out right for special values, too: one in which they turned up (care.h) is
 * computed again by the exact form of the program. That form is compiled when it is first needed: in the
 * steady state of finite values there is none.
 */
#ifndef ONEDNN_GUARDED_H
#define ONEDNN_GUARDED_H

#include "onednn/program/program.h"

typedef struct onednn_guarded onednn_guarded_t;

/* Knowledge of a region before it is compiled; both outlive the program. */
typedef struct onednn_known {
  const onednn_image_t *image;   /* constants that an earlier process has packed, or NULL */
  const onednn_tuning_t *tuning; /* forms of the kernels, or NULL */
} onednn_known_t;

/* Compiles a region with the care that its attributes ask for. `base` outlives the result. */
CLEAVE_MUST_USE cleave_status_t onednn_guarded_create(const onednn_base_t *base, const onednn_known_t *known,
                                                      const cleave_region_view_t *region,
                                                      const cleave_compile_options_t *options,
                                                      onednn_guarded_t **out, cleave_message_t *message);
void onednn_guarded_destroy(onednn_guarded_t *guarded);

/* See onednn_program_save. */
CLEAVE_MUST_USE cleave_status_t onednn_guarded_save(const onednn_guarded_t *guarded,
                                                    cleave_status_t (*write)(void *context, const void *data,
                                                                             size_t bytes),
                                                    void *context, cleave_message_t *message);

const cleave_program_info_t *onednn_guarded_info(const onednn_guarded_t *guarded);
CLEAVE_MUST_USE cleave_status_t onednn_guarded_run(onednn_guarded_t *guarded, const cleave_run_args_t *args,
                                                   cleave_message_t *message);
uint32_t onednn_guarded_profile(const onednn_guarded_t *guarded, const cleave_step_time_t **out_steps);

#endif /* ONEDNN_GUARDED_H */
