// SPDX-License-Identifier: Apache-2.0
/*
 * Which algorithm a call of cuBLASLt or cuDNN takes: the fastest of the library's candidates, or its first
 * one. Kept in memory and on disk by a text of all that determines it.
 */
#ifndef CLEAVE_CUDA_CHOICES_H
#define CLEAVE_CUDA_CHOICES_H

#include "cuda/device/state.h"
#include "cuda/store/store.h"

typedef struct cuda_choices cuda_choices_t;

enum { CUDA_MAX_CANDIDATES = 8, CUDA_MAX_OPERANDS = 8, CUDA_MAX_CALL_TEXT = 640 };

/* An algorithm; all bytes count. */
typedef struct cuda_choice {
  uint64_t data[8]; /* the library's */
  uint64_t workspace_bytes;
} cuda_choice_t;

typedef struct cuda_operand {
  int64_t bytes; /* 0: it has no address */
  int64_t skew;  /* of its address, in bytes behind CUDA_ALIGNMENT */
} cuda_operand_t;

/* A call of a library on a device. Functions get `context`. */
typedef struct cuda_call {
  uint32_t device;
  bool is_tuned;                 /* measured; otherwise the library's first one */
  char text[CUDA_MAX_CALL_TEXT]; /* the library with its version, and what the call is */
  cuda_operand_t operands[CUDA_MAX_OPERANDS];
  uint32_t workspace; /* the operand that is one; its size depends on the choice */
  void *context;
  /* At most CUDA_MAX_CANDIDATES, the library's best one first. */
  cleave_status_t (*list)(void *context, cuda_choice_t *out_choices, uint32_t *out_count,
                          cleave_message_t *message);
  /* Whether a choice of another process can be called. */
  bool (*check)(void *context, const cuda_choice_t *choice);
  /* Puts the call on the stream; the library's status, 0 for success. */
  int32_t (*start)(void *context, const cuda_choice_t *choice, void *const *addresses, cuda_stream_t stream);
} cuda_call_t;

CLEAVE_MUST_USE cleave_status_t cuda_choices_create(cuda_state_t *state, cuda_choices_t **out_choices,
                                                    cleave_message_t *message);
void cuda_choices_destroy(cuda_choices_t *choices);

/* CLEAVE_ERROR_UNSUPPORTED: the library has no candidate, or none that runs. Without memory for the operands
 * the library's first one is taken, and not kept. Thread-safe, in the context of the device; the functions
 * are called one at a time. */
CLEAVE_MUST_USE cleave_status_t cuda_choices_get(cuda_choices_t *choices, const cuda_call_t *call,
                                                 cuda_choice_t *out_choice, cleave_message_t *message);

typedef struct cuda_choices_counts {
  uint64_t timed; /* calls whose candidates were tried */
  uint64_t from_disk;
  uint64_t in_memory; /* found there */
} cuda_choices_counts_t;

cuda_choices_counts_t cuda_choices_count(cuda_choices_t *choices);

/* ---- trial.c ---- */

typedef enum cuda_trial_result {
  CUDA_TRIAL_DONE,
  CUDA_TRIAL_NO_ROOM, /* for the operands, or no stream or events */
  CUDA_TRIAL_NONE     /* of the candidates runs */
} cuda_trial_result_t;

/* Measures candidates; a single one may turn out not to run. *out_best is one of them, *out_gain its time as
 * a part of the first one's (0: that one does not run). */
CLEAVE_MUST_USE cuda_trial_result_t cuda_trial(cuda_state_t *state, const cuda_call_t *call,
                                               const cuda_choice_t *candidates, uint32_t count,
                                               uint32_t *out_best, double *out_gain);

#endif /* CLEAVE_CUDA_CHOICES_H */
