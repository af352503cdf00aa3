// SPDX-License-Identifier: Apache-2.0
// Names with one * on each side of the =. The text that the * of the input stands for takes the place of the
// * of the output.
#include "cli/generate/states.h"

#include <string.h>

#include "base/text.h"
#include "runtime/session/session.h"

static uint32_t find_output(const cleave_graph_t *graph, const char *name) {
  for (uint32_t k = 0; k < graph->outputs.count; k++) {
    if (strcmp(cleave_graph_output_name(graph, k), name) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* The part of the name that the * of the pattern stands for; without a *, the names must be equal. */
static bool fits(const char *pattern, size_t length, const char *name, size_t *out_from, size_t *out_length) {
  const char *star = memchr(pattern, '*', length);
  size_t before = star == NULL ? length : (size_t)(star - pattern);
  size_t after = star == NULL ? 0 : length - before - 1;
  size_t size = strlen(name);
  *out_from = before;
  *out_length = size >= before + after ? size - before - after : 0;
  return size >= before + after && (star != NULL || size == length) && memcmp(name, pattern, before) == 0 &&
         (after == 0 || memcmp(name + size - after, star + 1, after) == 0);
}

/* The name of the output, with `length` bytes of `text` for its *. */
static void fill(const char *pattern, const char *text, size_t length, cleave_text_t *out) {
  const char *star = strchr(pattern, '*');
  out->length = 0;
  if (star == NULL) {
    cleave_text_add(out, pattern);
    return;
  }
  cleave_text_format(out, "%.*s%.*s%s", (int)(star - pattern), pattern, (int)length, text, star + 1);
}

static cleave_status_t add_pairs(const cleave_graph_t *graph, const char *text, bool optional,
                                 cleave_state_pairs_t *pairs, cleave_text_t *name, cleave_error_t *error) {
  const char *equals = strchr(text, '=');
  bool found = false;
  if (equals == NULL || equals == text || equals[1] == '\0') {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "option '--state': expected INPUT=OUTPUT, found '%s'", text);
  }
  for (uint32_t k = 0; k < graph->inputs.count; k++) {
    const char *input = cleave_value_name(graph, graph->inputs.items[k]);
    size_t from = 0;
    size_t length = 0;
    if (!fits(text, (size_t)(equals - text), input, &from, &length) || cleave_states_have_input(pairs, k)) {
      continue;
    }
    fill(equals + 1, input + from, length, name);
    uint32_t output = find_output(graph, cleave_text_get(name));
    if (output == CLEAVE_INDEX_NONE) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "option '--state': input '%s' has no output '%s'", input,
                              cleave_text_get(name));
    }
    CLEAVE_ARRAY_PUSH(&pairs->list, ((cleave_state_pair_t){.input = k, .output = output}), error);
    found = true;
  }
  return found || optional ? CLEAVE_OK
                           : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                              "option '--state': the model has no input '%.*s'",
                                              (int)(equals - text), text);
}

cleave_status_t cleave_states_find(const cleave_graph_t *graph, const cleave_text_list_t *texts,
                                   bool optional, cleave_state_pairs_t *out_pairs, cleave_error_t *error) {
  cleave_text_t name = {0};
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; k < texts->count && status == CLEAVE_OK; k++) {
    status = add_pairs(graph, texts->items[k], optional, out_pairs, &name, error);
  }
  cleave_text_deinit(&name);
  return status;
}

bool cleave_states_have_input(const cleave_state_pairs_t *pairs, uint32_t input) {
  for (size_t k = 0; k < pairs->list.count; k++) {
    if (pairs->list.items[k].input == input) {
      return true;
    }
  }
  return false;
}

bool cleave_states_have_output(const cleave_state_pairs_t *pairs, uint32_t output) {
  for (size_t k = 0; k < pairs->list.count; k++) {
    if (pairs->list.items[k].output == output) {
      return true;
    }
  }
  return false;
}

void cleave_states_deinit(cleave_state_pairs_t *pairs) {
  cleave_array_free(&pairs->list);
}

cleave_status_t cleave_states_feed(const cleave_state_pairs_t *pairs, cleave_session_t *session,
                                   cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_session_graph(session);
  for (size_t k = 0; k < pairs->list.count; k++) {
    cleave_state_pair_t pair = pairs->list.items[k];
    cleave_error_t cause = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_session_feed(session, pair.output, pair.input, &cause);
    if (status != CLEAVE_OK) {
      return cleave_error_set(error, status, "state '%s': %s",
                              cleave_value_name(graph, graph->inputs.items[pair.input]), cause.message);
    }
  }
  return CLEAVE_OK;
}
