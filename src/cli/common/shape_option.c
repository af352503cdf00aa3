// SPDX-License-Identifier: Apache-2.0
// What --shape says: a size by its name, or the shape of an input.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/sizes.h"

/* A size, or `?`; the end of it in *out_end. */
static bool read_size(const char *text, int64_t *out_size, const char **out_end) {
  char *end = NULL;
  if (text[0] == '?') {
    *out_size = CLEAVE_DIM_UNKNOWN;
    *out_end = text + 1;
    return true;
  }
  errno = 0;
  long long size = strtoll(text, &end, 10);
  *out_size = size;
  *out_end = end;
  return errno == 0 && end != text && size >= 0;
}

cleave_status_t cleave_shape_option_list(const cleave_text_list_t *shapes, cleave_open_size_t *out_sizes,
                                         size_t *out_count, cleave_error_t *error) {
  *out_count = 0;
  for (size_t k = 0; k < shapes->count; k++) {
    const char *equals = strrchr(shapes->items[k], '=');
    const char *end = NULL;
    int64_t size = 0;
    if (equals != NULL && read_size(equals + 1, &size, &end) && *end == '\0' && size >= 0) {
      const char *name = cleave_copy_text(shapes->items[k], (size_t)(equals - shapes->items[k]));
      CLEAVE_TRY_MEMORY(name, error);
      out_sizes[(*out_count)++] = (cleave_open_size_t){.name = name, .size = size};
    }
  }
  return CLEAVE_OK;
}

/* "1x3x224x?"; "" or "scalar" is rank 0. */
static cleave_status_t read_shape(const char *text, int32_t *out_rank, int64_t *dims, cleave_error_t *error) {
  const char *at = strcmp(text, "scalar") == 0 ? "" : text;
  bool is_valid = true;
  *out_rank = 0;
  while (is_valid && *at != '\0') {
    const char *end = at;
    is_valid = *out_rank < CLEAVE_MAX_RANK && read_size(at, &dims[*out_rank], &end) &&
               (*end == '\0' || ((*end == 'x' || *end == ',') && end[1] != '\0'));
    ++*out_rank;
    at = *end == '\0' ? end : end + 1;
  }
  return is_valid ? CLEAVE_OK
                  : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                     "--shape: expected sizes like 1x3x224x224, found '%s'", text);
}

/* Number of the input called by the first `length` characters; the count of inputs: none. */
static size_t find_input(const cleave_size_finder_t *finder, const char *text, size_t length) {
  size_t index = 0;
  while (index < finder->graph->inputs.count &&
         (strncmp(cleave_size_input_name(finder, index), text, length) != 0 ||
          cleave_size_input_name(finder, index)[length] != '\0')) {
    index++;
  }
  return index;
}

static bool is_known_elsewhere(const cleave_size_finder_t *finder, const char *text, size_t length) {
  const cleave_sizes_t *known = finder->request->known;
  for (size_t k = 0; known != NULL && k < known->items.count; k++) {
    if (strncmp(known->items.items[k].name, text, length) == 0 &&
        known->items.items[k].name[length] == '\0') {
      return true;
    }
  }
  return false;
}

static cleave_status_t fail_unknown(const cleave_size_finder_t *finder, const char *text,
                                    cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  cleave_text_t names = {0};
  char name[256];
  (void)snprintf(name, sizeof name, "%.*s", (int)(strcspn(text, "=") < 250 ? strcspn(text, "=") : 250), text);
  for (size_t k = 0; k < finder->graph->inputs.count; k++) {
    cleave_nearest_offer(&nearest, name, cleave_size_input_name(finder, k));
    cleave_text_format(&names, "%s%s", k == 0 ? "" : ", ", cleave_size_input_name(finder, k));
  }
  for (size_t k = 0; k < finder->symbol_count; k++) {
    cleave_nearest_offer(&nearest, name, cleave_dims_symbol_name(finder->graph->dims, k));
    cleave_text_format(&names, "%s%s", k == 0 ? "; its open sizes: " : ", ",
                       cleave_dims_symbol_name(finder->graph->dims, k));
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "--shape: the model has no input or open size '%s'%s; its inputs are: %s", name,
                       cleave_nearest_hint(&nearest), cleave_text_get(&names));
  cleave_text_deinit(&names);
  return status;
}

static cleave_status_t set_symbol(cleave_size_finder_t *finder, size_t symbol, const char *text,
                                  const char *value, cleave_error_t *error) {
  const char *end = value;
  int64_t size = 0;
  if (!read_size(value, &size, &end) || *end != '\0') {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "--shape: expected a size, or ? to leave it open, found '%s'", text);
  }
  finder->symbols[symbol] = size;
  finder->sources[symbol] = size < 0 ? CLEAVE_SIZE_OPEN : CLEAVE_SIZE_GIVEN;
  return CLEAVE_OK;
}

cleave_status_t cleave_size_take_option(cleave_size_finder_t *finder, size_t index, cleave_error_t *error) {
  const char *text = finder->request->shapes->items[index];
  bool found = false;
  for (const char *equals = strchr(text, '='); equals != NULL && !found; equals = strchr(equals + 1, '=')) {
    size_t length = (size_t)(equals - text);
    size_t input = find_input(finder, text, length);
    size_t symbol = cleave_dims_find_symbol(finder->graph->dims, text, length);
    found = true;
    if (input < finder->graph->inputs.count) {
      finder->shape_of[input] = (uint32_t)index;
    } else if (symbol < finder->symbol_count) {
      CLEAVE_TRY(set_symbol(finder, symbol, text, equals + 1, error));
    } else {
      found = is_known_elsewhere(finder, text, length);
    }
  }
  if (strchr(text, '=') == NULL || text[0] == '=') {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--shape: expected NAME=VALUE, found '%s'",
                            text);
  }
  if (finder->request->used != NULL) {
    finder->request->used[index] = finder->request->used[index] || found;
  }
  return found || finder->request->may_be_added ? CLEAVE_OK : fail_unknown(finder, text, error);
}

cleave_status_t cleave_size_given_shape(const cleave_size_finder_t *finder, size_t input, int32_t *out_rank,
                                        int64_t *dims, cleave_error_t *error) {
  const char *text = finder->request->shapes->items[finder->shape_of[input]] +
                     strlen(cleave_size_input_name(finder, input)) + 1;
  const cleave_value_record_t *origin = cleave_size_origin(finder, input);
  if (strcmp(text, "?") != 0) {
    return read_shape(text, out_rank, dims, error);
  }
  *out_rank = origin->rank;
  for (int32_t d = 0; d < origin->rank; d++) {
    dims[d] = cleave_dim_is_known(origin->dims[d]) ? origin->dims[d] : CLEAVE_DIM_UNKNOWN;
  }
  return CLEAVE_OK;
}
