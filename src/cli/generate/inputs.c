// SPDX-License-Identifier: Apache-2.0
// The mask has the capacity as its length, with zeros for tokens that are still to come, so that no run has
// another size than the one before.
#include "cli/generate/inputs.h"

#include <string.h>

#include "ops/attribute_view.h"
#include "runtime/session/session.h"

static const char MASK_INPUT[] = "attention_mask";
static const char POSITIONS_INPUT[] = "position_ids";

static const cleave_value_record_t *input_of(const cleave_graph_t *graph, uint32_t input) {
  return cleave_graph_value(graph, graph->inputs.items[input]);
}

static bool is_rows_of_integers(const cleave_value_record_t *value) {
  return (value->dtype == CLEAVE_DTYPE_I64 || value->dtype == CLEAVE_DTYPE_I32) && value->rank == 2;
}

/* The input of this name, NONE if there is none and it is the name of exporters. */
static cleave_status_t find_named(const cleave_graph_t *graph, const char *option, const char *given,
                                  const char *usual, uint32_t *out_input, cleave_error_t *error) {
  const char *name = given != NULL ? given : usual;
  *out_input = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < graph->inputs.count; k++) {
    if (strcmp(cleave_value_name(graph, graph->inputs.items[k]), name) != 0) {
      continue;
    }
    if (!is_rows_of_integers(input_of(graph, k)) || input_of(graph, k)->dims[1] >= 0) {
      return cleave_error_set(
          error, CLEAVE_ERROR_UNSUPPORTED,
          "option '%s': expected integers [1, an open size], found %s of rank %d for input '%s'", option,
          cleave_dtype_name(input_of(graph, k)->dtype), (int)input_of(graph, k)->rank, name);
    }
    *out_input = k;
    return CLEAVE_OK;
  }
  return given == NULL ? CLEAVE_OK
                       : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                          "option '%s': the model has no input '%s'", option, given);
}

static cleave_status_t find_tokens(const cleave_graph_t *graph, const cleave_state_pairs_t *pairs,
                                   const char *model, cleave_generation_inputs_t *inputs,
                                   cleave_error_t *error) {
  inputs->tokens = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < graph->inputs.count; k++) {
    const char *name = cleave_value_name(graph, graph->inputs.items[k]);
    if (cleave_states_have_input(pairs, k) || k == inputs->mask || k == inputs->positions ||
        strcmp(name, CLEAVE_GENERATION_LENGTH) == 0) {
      continue;
    }
    if (!is_rows_of_integers(input_of(graph, k)) || inputs->tokens != CLEAVE_INDEX_NONE) {
      return cleave_error_set(
          error, CLEAVE_ERROR_UNSUPPORTED,
          "%s: input '%s' is neither the tokens (integers of rank 2, one input), nor their "
          "mask (--mask) or positions (--positions), nor a state (--state INPUT=OUTPUT)",
          model, name);
    }
    inputs->tokens = k;
  }
  if (inputs->tokens == CLEAVE_INDEX_NONE) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s: expected an input of tokens, found none",
                            model);
  }
  const cleave_dim_t *dims = input_of(graph, inputs->tokens)->dims;
  inputs->batch = dims[0];
  return (dims[0] < 0 || dims[0] == 1) && dims[1] < 0
             ? CLEAVE_OK
             : cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                                "%s: expected tokens of shape [1, an open size], found [%lld, %lld]", model,
                                (long long)dims[0], (long long)dims[1]);
}

cleave_status_t cleave_generation_inputs_find(const cleave_graph_t *graph, const cleave_state_pairs_t *pairs,
                                              const char *mask, const char *positions, const char *model,
                                              cleave_generation_inputs_t *out_inputs, cleave_error_t *error) {
  out_inputs->length = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(find_named(graph, "--mask", mask, MASK_INPUT, &out_inputs->mask, error));
  CLEAVE_TRY(find_named(graph, "--positions", positions, POSITIONS_INPUT, &out_inputs->positions, error));
  return find_tokens(graph, pairs, model, out_inputs, error);
}

int64_t cleave_generation_inputs_dim(const cleave_generation_inputs_t *inputs, const cleave_graph_t *graph,
                                     uint32_t input, int32_t d, int64_t length, int64_t capacity) {
  cleave_dim_t own = input_of(graph, input)->dims[d];
  bool is_row = input == inputs->tokens || input == inputs->positions;
  bool is_batch = d == 0 && (is_row || input == inputs->mask);
  if (own >= 0) {
    return own;
  }
  return is_batch ? 1 : (is_row ? length : capacity);
}

/* Zeros for an input that there is, which the session reads from now on. */
static cleave_status_t make(cleave_session_t *session, uint32_t input, int32_t rank, int64_t count,
                            cleave_tensor_t **out_tensor, cleave_error_t *error) {
  const int64_t dims[2] = {1, count};
  if (input == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_tensor_create(input_of(cleave_session_graph(session), input)->dtype, rank,
                                  rank == 1 ? &count : dims, out_tensor, error));
  const cleave_tensor_view_t view = cleave_tensor_view(*out_tensor);
  return cleave_session_set_input(session, input, &view, error);
}

cleave_status_t cleave_generation_feed_init(cleave_generation_feed_t *feed,
                                            const cleave_generation_inputs_t *inputs,
                                            cleave_session_t *session, int64_t length, int64_t capacity,
                                            cleave_error_t *error) {
  *feed = (cleave_generation_feed_t){.inputs = inputs};
  CLEAVE_TRY(make(session, inputs->tokens, 2, length, &feed->tokens, error));
  CLEAVE_TRY(make(session, inputs->mask, 2, capacity, &feed->mask, error));
  CLEAVE_TRY(make(session, inputs->positions, 2, length, &feed->positions, error));
  return make(session, inputs->length, 1, 1, &feed->length, error);
}

void cleave_generation_feed_deinit(cleave_generation_feed_t *feed) {
  cleave_tensor_release(feed->tokens);
  cleave_tensor_release(feed->mask);
  cleave_tensor_release(feed->positions);
  cleave_tensor_release(feed->length);
}

void cleave_generation_feed_set(cleave_generation_feed_t *feed, const int64_t *tokens, int64_t past) {
  for (int64_t k = 0; k < feed->tokens->count; k++) {
    cleave_tensor_set_float(feed->tokens, k, (double)tokens[k]);
    if (feed->positions != NULL) {
      cleave_tensor_set_float(feed->positions, k, (double)(past + k));
    }
  }
  if (feed->mask != NULL) {
    for (int64_t k = past + feed->tokens->count; k-- > 0 && cleave_tensor_get_int(feed->mask, k) == 0;) {
      cleave_tensor_set_float(feed->mask, k, 1.0);
    }
  }
  if (feed->length != NULL) {
    cleave_tensor_set_float(feed->length, 0, (double)past);
  }
}
