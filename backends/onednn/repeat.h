// SPDX-License-Identifier: Apache-2.0
/*
 * The exact form of a program, for runs in which special values turned up. It is compiled when it is first
 * needed: in the steady state of finite values there is none.
 */
#ifndef ONEDNN_REPEAT_H
#define ONEDNN_REPEAT_H

#include "program.h"

typedef struct onednn_repeat onednn_repeat_t;

/* Keeps, in `arena`, what compiling the region again takes. `base` outlives it. */
CLEAVE_MUST_USE cleave_status_t onednn_repeat_create(const onednn_base_t *base,
                                                     const cleave_region_view_t *region, int32_t threads,
                                                     onednn_arena_t *arena, onednn_repeat_t **out,
                                                     cleave_message_t *message);
void onednn_repeat_deinit(onednn_repeat_t *repeat);

/* Computes the outputs of a run again, exactly. */
CLEAVE_MUST_USE cleave_status_t onednn_repeat_run(onednn_repeat_t *repeat, const cleave_run_args_t *args,
                                                  cleave_message_t *message);

#endif /* ONEDNN_REPEAT_H */
