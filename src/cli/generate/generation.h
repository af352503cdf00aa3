// SPDX-License-Identifier: Apache-2.0
/*
 * Generation token by token. The model has one input of integers [batch, length], the tokens; perhaps a mask
 * and positions of them (inputs.h); states, whose outputs are inputs of the next run; and an output of
 * scores, [batch, length, tokens] or [batch, tokens], the first that is no state. Open sizes of states and of
 * the mask, except the batch, are the capacity: rules/generation.lua makes such states of caches that grow,
 * and adds the input `past_length`, int64 of one element, which is the number of tokens so far.
 */
#ifndef CLEAVE_CLI_GENERATE_GENERATION_H
#define CLEAVE_CLI_GENERATE_GENERATION_H

#include "cli/common/job.h"
#include "cli/generate/inputs.h"
#include "cli/generate/sample.h"
#include "tools/profile/profile.h"

typedef struct cleave_generation {
  /* what is asked for */
  cleave_job_options_t job_options;
  cleave_text_list_t states; /* --state */
  bool has_states;           /* given by the user: each must be there */
  const char *mask;          /* names of inputs, or NULL: those of exporters */
  const char *positions;
  const char *prompt; /* "1,2,3", or a file (.npy, .pb) */
  int64_t steps;      /* tokens to generate, at least 1 */
  int64_t capacity;   /* 0: the prompt and the steps */
  int64_t stop;       /* token that ends it, or -1 */
  cleave_sampler_t sampler;
  const char *scores_path;  /* file for the scores of each token that was drawn, or NULL */
  const char *profile_path; /* or NULL */
  /* the model */
  cleave_job_t job;
  cleave_model_t *loaded; /* as it was loaded: `job` has it with a batch of one */
  cleave_state_pairs_t pairs;
  cleave_generation_inputs_t inputs;
  uint32_t scores_output;
  /* the run */
  cleave_tensor_t *prompt_tokens; /* int64 [count] */
  int64_t *tokens;                /* that were drawn */
  int64_t token_count;
  cleave_tensor_t *scores; /* [steps, tokens] of `scores_path`, or NULL */
  cleave_tensor_t *row;    /* scores of one token, converted; or NULL */
  double compile_ms;
  double first_ms; /* from the prompt to the first token */
  double *times;   /* ms of each later token */
  uint32_t program_count;
  cleave_profile_t profile;
} cleave_generation_t;

/* Loads, partitions, compiles and generates. */
CLEAVE_MUST_USE cleave_status_t cleave_generation_run(cleave_generation_t *generation, cleave_error_t *error);
void cleave_generation_deinit(cleave_generation_t *generation);

#endif /* CLEAVE_CLI_GENERATE_GENERATION_H */
