// SPDX-License-Identifier: Apache-2.0
/* Outputs that are inputs of the next run, by name: --state. */
#ifndef CLEAVE_CLI_GENERATE_STATES_H
#define CLEAVE_CLI_GENERATE_STATES_H

#include "base/containers/array.h"
#include "cli/common/arguments.h"
#include "graph/graph.h"

/* The help text of --state. */
#define CLEAVE_STATES_HELP                                                                            \
  "the output of this name is the input of the next run; a * in both stands for the same text, like " \
  "past_*=present_*; may be given many times"

typedef struct cleave_state_pair {
  uint32_t input;
  uint32_t output;
} cleave_state_pair_t;

typedef struct cleave_state_pairs {
  CLEAVE_ARRAY(cleave_state_pair_t) list;
} cleave_state_pairs_t;

/* Finds the inputs and outputs of `graph` that texts like "past_*=present_*" name, in the order of the
 * inputs. An input without its output is an error; so is a text that fits no input, unless it is `optional`.
 */
CLEAVE_STATUS cleave_states_find(const cleave_graph_t *graph, const cleave_text_list_t *texts, bool optional,
                                 cleave_state_pairs_t *out_pairs, cleave_error_t *error);
bool cleave_states_have_input(const cleave_state_pairs_t *pairs, uint32_t input);
bool cleave_states_have_output(const cleave_state_pairs_t *pairs, uint32_t output);
void cleave_states_deinit(cleave_state_pairs_t *pairs);

/* cleave_session_feed for each pair; errors have the names. */
CLEAVE_STATUS cleave_states_feed(const cleave_state_pairs_t *pairs, cleave_session_t *session,
                                 cleave_error_t *error);

#endif /* CLEAVE_CLI_GENERATE_STATES_H */
