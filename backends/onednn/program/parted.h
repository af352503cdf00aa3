// SPDX-License-Identifier: Apache-2.0
/*
 * A guarded program that computes the rows of a batch in parts (parts.h), one after the other in the same
 * workspace; or all at once, if there is one part.
 */
#ifndef ONEDNN_PARTED_H
#define ONEDNN_PARTED_H

#include "onednn/program/guarded.h"
#include "onednn/program/parts.h"

typedef struct onednn_parted onednn_parted_t;

/* Compiles the region of a part. `base` outlives the result, `parts` need not. */
CLEAVE_MUST_USE cleave_status_t onednn_parted_create(const onednn_base_t *base, const onednn_known_t *known,
                                                     const onednn_parts_t *parts,
                                                     const cleave_compile_options_t *options,
                                                     onednn_parted_t **out, cleave_message_t *message);
void onednn_parted_destroy(onednn_parted_t *parted);

/* As of the program of a part: see onednn_program_save. */
CLEAVE_MUST_USE cleave_status_t onednn_parted_save(const onednn_parted_t *parted,
                                                   cleave_status_t (*write)(void *context, const void *data,
                                                                            size_t bytes),
                                                   void *context, cleave_message_t *message);
const cleave_program_info_t *onednn_parted_info(const onednn_parted_t *parted);

/* Inputs and outputs are those of the whole batch. */
CLEAVE_MUST_USE cleave_status_t onednn_parted_run(onednn_parted_t *parted, const cleave_run_args_t *args,
                                                  cleave_message_t *message);

/* The time of a step is that of all parts together, as if each step had computed the whole batch. */
uint32_t onednn_parted_profile(const onednn_parted_t *parted, const cleave_step_time_t **out_steps);

#endif /* ONEDNN_PARTED_H */
