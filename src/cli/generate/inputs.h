// SPDX-License-Identifier: Apache-2.0
/*
 * What a model reads in each run besides its states: tokens, how many there have been, a mask of them, and
 * their positions. Exporters (Optimum, ONNX Runtime's model builder) call the last two `attention_mask`,
 * [batch, past and new tokens], 1 for each token that is there, and `position_ids`, [batch, new tokens].
 */
#ifndef CLEAVE_CLI_GENERATE_INPUTS_H
#define CLEAVE_CLI_GENERATE_INPUTS_H

#include "cli/generate/states.h"
#include "tensor/tensor.h"

/* The input that rules/generation.lua adds: int64[1], how many tokens there have been. */
#define CLEAVE_GENERATION_LENGTH "past_length"

typedef struct cleave_generation_inputs {
  uint32_t tokens;    /* integers [1, length] */
  uint32_t mask;      /* integers [1, capacity], or NONE */
  uint32_t positions; /* integers [1, length], or NONE */
  uint32_t length;    /* CLEAVE_GENERATION_LENGTH, or NONE */
  cleave_dim_t batch; /* of the tokens, as the model has it */
} cleave_generation_inputs_t;

/* Finds them in a model that has `pairs` of states. `mask` and `positions` are names that a user gave, or
 * NULL: those of exporters. Each input must be one of these or a state, and lengths must be open. */
CLEAVE_STATUS cleave_generation_inputs_find(const cleave_graph_t *graph, const cleave_state_pairs_t *pairs,
                                            const char *mask, const char *positions, const char *model,
                                            cleave_generation_inputs_t *out_inputs, cleave_error_t *error);

/* The size of dimension `d` of an input in a session that reads `length` tokens at a time. */
int64_t cleave_generation_inputs_dim(const cleave_generation_inputs_t *inputs, const cleave_graph_t *graph,
                                     uint32_t input, int32_t d, int64_t length, int64_t capacity);

/* The tensors that a session reads. */
typedef struct cleave_generation_feed {
  const cleave_generation_inputs_t *inputs;
  cleave_tensor_t *tokens;
  cleave_tensor_t *mask;
  cleave_tensor_t *positions;
  cleave_tensor_t *length;
} cleave_generation_feed_t;

/* Makes them and gives them to the session, which must not outlive them. */
CLEAVE_STATUS cleave_generation_feed_init(cleave_generation_feed_t *feed,
                                          const cleave_generation_inputs_t *inputs, cleave_session_t *session,
                                          int64_t length, int64_t capacity, cleave_error_t *error);
void cleave_generation_feed_deinit(cleave_generation_feed_t *feed);

/* The next run reads these tokens, as many as the session takes, behind `past` others; `past` never goes
 * back. */
void cleave_generation_feed_set(cleave_generation_feed_t *feed, const int64_t *tokens, int64_t past);

#endif /* CLEAVE_CLI_GENERATE_INPUTS_H */
