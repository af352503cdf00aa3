// SPDX-License-Identifier: Apache-2.0
/*
 * A compiled region. Every memory object and argument list exists before the first run; a run points the
 * objects of an input, an output or the workspace at new memory if that has moved since the last run,
 * and executes the primitives in order.
 */
#ifndef ONEDNN_PROGRAM_H
#define ONEDNN_PROGRAM_H

#include "onednn/plan/plan.h"

typedef struct onednn_program onednn_program_t;

/* Compiles a region with this care for special values (care.h). `base` outlives the program. */
CLEAVE_MUST_USE cleave_status_t onednn_program_create(const onednn_base_t *base,
                                                      const cleave_region_view_t *region, onednn_care_t care,
                                                      const cleave_compile_options_t *options,
                                                      onednn_program_t **out, cleave_message_t *message);
void onednn_program_destroy(onednn_program_t *program);

/* Writes the packed weights (image.h). CLEAVE_ERROR_UNSUPPORTED if there are none. */
CLEAVE_MUST_USE cleave_status_t onednn_program_save(const onednn_program_t *program,
                                                    cleave_status_t (*write)(void *context, const void *data,
                                                                             size_t bytes),
                                                    void *context, cleave_message_t *message);

const cleave_program_info_t *onednn_program_info(const onednn_program_t *program);

/* May a step raise the flag "invalid"? If so, the caller lowers the flag before a run. */
bool onednn_program_raises(const onednn_program_t *program);

/* `*right` becomes false if the flag was raised: outputs may then be wrong. */
CLEAVE_MUST_USE cleave_status_t onednn_program_run(onednn_program_t *program, const cleave_run_args_t *args,
                                                   bool *right, cleave_message_t *message);

/* After a run that was not right: runs again, with clean scratch memory for the steps that may have raised
 * the flag because of what lay in it. If nothing raises the flag now, `*right` is true, outputs are right,
 * and later runs clean the scratch memory of these steps, too. */
CLEAVE_MUST_USE cleave_status_t onednn_program_run_clean(onednn_program_t *program,
                                                         const cleave_run_args_t *args, bool *right,
                                                         cleave_message_t *message);
uint32_t onednn_program_profile(const onednn_program_t *program, const cleave_step_time_t **out_steps);

#endif /* ONEDNN_PROGRAM_H */
