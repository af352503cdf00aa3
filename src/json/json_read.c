// SPDX-License-Identifier: Apache-2.0
// Members of JSON objects by name and type, and the one line that says what is wrong with one.

#include "json/json_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 1 << 16, MAX_BYTES = 1 << 30 };

/* ---- places and messages ---- */

size_t cleave_reader_enter(cleave_json_reader_t *reader, const char *key, uint32_t index) {
  size_t before = reader->path_length;
  size_t left = sizeof reader->path - before;
  int length = index != CLEAVE_INDEX_NONE
                   ? snprintf(reader->path + before, left, "[%u]", (unsigned)index)
                   : snprintf(reader->path + before, left, "%s%s", before == 0 ? "" : ".", key);
  reader->path_length += length < 0 ? 0 : (size_t)length < left ? (size_t)length : left - 1;
  return before;
}

void cleave_reader_leave(cleave_json_reader_t *reader, size_t before) {
  reader->path_length = before;
  reader->path[before] = '\0';
}

cleave_status_t cleave_reader_fail(cleave_json_reader_t *reader, const char *format, ...) {
  char what[384];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  for (char *c = what; *c != '\0'; c++) {
    *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
  }
  return cleave_error_set(reader->error, CLEAVE_ERROR_FORMAT, "%s: %s%s%s", reader->place, reader->path,
                          reader->path_length == 0 ? "" : ": ", what);
}

const char *cleave_reader_type(const json_t *json) {
  switch (json_typeof(json)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
  }
  return "something else";
}

cleave_status_t cleave_reader_parse(const cleave_json_reader_t *reader, const char *what, const char *text,
                                    size_t length, json_t **out_root) {
  json_error_t broken;
  if (length > MAX_BYTES) {
    return cleave_error_set(reader->error, CLEAVE_ERROR_LIMIT, "%s: %s of %zu byte%s is too large",
                            reader->place, what, length, CLEAVE_PLURAL(length));
  }
  *out_root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &broken);
  if (*out_root != NULL) {
    return CLEAVE_OK;
  }
  for (char *c = broken.text; *c != '\0'; c++) {
    *c = (unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f ? '?' : *c;
  }
  return cleave_error_set_at(reader->error, CLEAVE_ERROR_FORMAT, reader->place, broken.line, "not JSON: %s",
                             broken.text);
}

/* ---- members ---- */

/* All keys of an object are among `keys`, which ends in NULL. */
cleave_status_t cleave_reader_check_keys(cleave_json_reader_t *reader, json_t *object,
                                         const char *const *keys) {
  if (!json_is_object(object)) {
    return cleave_reader_fail(reader, "expected an object, found %s", cleave_reader_type(object));
  }
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach(object, key, value) {
    bool is_known = false;
    for (const char *const *known = keys; *known != NULL && !is_known; known++) {
      is_known = strcmp(*known, key) == 0;
    }
    if (!is_known) {
      cleave_nearest_t nearest = {0};
      for (const char *const *known = keys; *known != NULL; known++) {
        cleave_nearest_offer(&nearest, key, *known);
      }
      return cleave_reader_fail(reader, "member '%.80s' is unknown%s", key, cleave_nearest_hint(&nearest));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_reader_get(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                  json_type type, const char *expected, json_t **out_json) {
  json_t *json = json_object_get(object, key);
  if (json == NULL) {
    return cleave_reader_fail(reader, "member '%s' is missing", key);
  }
  if (json_typeof(json) != type) {
    (void)cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
    return cleave_reader_fail(reader, "expected %s, found %s", expected, cleave_reader_type(json));
  }
  *out_json = json;
  return CLEAVE_OK;
}

/* A copy of a string member; `fallback` if it is missing (NULL: that is an error). */
cleave_status_t cleave_reader_get_text(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                       const char *fallback, const char **out_text) {
  json_t *json = NULL;
  if (fallback != NULL && json_object_get(object, key) == NULL) {
    *out_text = fallback;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_reader_get(reader, object, key, JSON_STRING, "a string", &json));
  *out_text = cleave_arena_copy_text(reader->arena, json_string_value(json), json_string_length(json));
  return *out_text == NULL ? cleave_error_out_of_memory(reader->error) : CLEAVE_OK;
}

/* A whole number from 0 to `most`. */
cleave_status_t cleave_reader_get_number(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                         uint32_t most, uint32_t *out_number) {
  json_t *json = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, object, key, JSON_INTEGER, "a whole number", &json));
  json_int_t number = json_integer_value(json);
  if (number < 0 || number > (json_int_t)most) {
    (void)cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
    return cleave_reader_fail(reader, "expected 0 to %u, found %" JSON_INTEGER_FORMAT, (unsigned)most,
                              number);
  }
  *out_number = (uint32_t)number;
  return CLEAVE_OK;
}

/* An index into a list of `count`. */
cleave_status_t cleave_reader_get_index(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                        uint32_t count, const char *what, uint32_t *out_index) {
  CLEAVE_TRY(cleave_reader_get_number(reader, object, key, UINT32_MAX - 1, out_index));
  if (*out_index >= count) {
    (void)cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
    return cleave_reader_fail(reader, "there is no %s %u: the plan has %u", what, (unsigned)*out_index,
                              (unsigned)count);
  }
  return CLEAVE_OK;
}

/* A list member: room for its items, and each read into it. */
// Wide: a list and its length, where it is and how its items are read.
cleave_status_t cleave_reader_get_list(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                       size_t item_size, cleave_reader_item_t read_item, void *out_items,
                                       uint32_t *out_count) {
  json_t *json = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, object, key, JSON_ARRAY, "a list", &json));
  size_t count = json_array_size(json);
  if (count >= UINT32_MAX) {
    return cleave_reader_fail(reader, "member '%s' has too many items", key);
  }
  char *items = cleave_arena_allocate(reader->arena, count, item_size);
  CLEAVE_TRY_MEMORY(items, reader->error);
  memcpy(out_items, &items, sizeof items);
  *out_count = (uint32_t)count;
  size_t before = cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
  for (uint32_t k = 0; k < (uint32_t)count; k++) {
    size_t inside = cleave_reader_enter(reader, "", k);
    CLEAVE_TRY(read_item(reader, json_array_get(json, k), items + k * item_size));
    cleave_reader_leave(reader, inside);
  }
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

/* ---- values ---- */

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "nan:" and `digits` hexadecimal digits. */
static bool read_nan(const char *text, int digits, uint64_t *out_bits) {
  *out_bits = 0;
  if (strncmp(text, "nan:", 4) != 0 || strlen(text) != (size_t)digits + 4) {
    return false;
  }
  for (text += 4; *text != '\0'; text++) {
    if (hex_digit(*text) < 0) {
      return false;
    }
    *out_bits = *out_bits << 4 | (uint64_t)hex_digit(*text);
  }
  return true;
}

cleave_status_t cleave_reader_read_real(cleave_json_reader_t *reader, const json_t *json,
                                        double *out_number) {
  const char *text = json_string_value(json);
  uint64_t bits = UINT64_C(0x7ff8000000000000);
  if (json_is_number(json)) {
    *out_number = json_number_value(json);
  } else if (text != NULL && (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0)) {
    *out_number = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
  } else if (text != NULL && (strcmp(text, "nan") == 0 || read_nan(text, 16, &bits))) {
    memcpy(out_number, &bits, sizeof bits);
    return isnan(*out_number) ? CLEAVE_OK : cleave_reader_fail(reader, "'%s' is not a NaN", text);
  } else {
    return cleave_reader_fail(reader, "expected a number, found %s", cleave_reader_type(json));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_reader_read_float(cleave_json_reader_t *reader, const json_t *json,
                                         float *out_number) {
  const char *text = json_string_value(json);
  double number = 0.0;
  uint64_t bits = 0x7fc00000;
  if (text != NULL && (strcmp(text, "nan") == 0 || read_nan(text, 8, &bits))) {
    uint32_t half = (uint32_t)bits;
    memcpy(out_number, &half, sizeof half);
    return isnan(*out_number) ? CLEAVE_OK : cleave_reader_fail(reader, "'%s' is not a NaN", text);
  }
  CLEAVE_TRY(cleave_reader_read_real(reader, json, &number));
  *out_number = (float)number;
  return !isfinite(number) || isfinite(*out_number)
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "a float32 cannot hold %g", number);
}

/* Text, or {"hex": "..."}; ends in NUL. */
cleave_status_t cleave_reader_read_bytes(cleave_json_reader_t *reader, const json_t *json,
                                         const char **out_bytes, size_t *out_length) {
  cleave_arena_t *arena = reader->arena;
  if (json_is_string(json)) {
    *out_length = json_string_length(json);
    *out_bytes = cleave_arena_copy_text(arena, json_string_value(json), *out_length);
    return *out_bytes == NULL ? cleave_error_out_of_memory(reader->error) : CLEAVE_OK;
  }
  const json_t *hex = json_object_get(json, "hex");
  if (!json_is_string(hex) || json_object_size(json) != 1 || json_string_length(hex) % 2 != 0) {
    return cleave_reader_fail(reader, "expected a string, or {\"hex\": \"...\"}");
  }
  const char *digits = json_string_value(hex);
  *out_length = json_string_length(hex) / 2;
  char *bytes = cleave_arena_allocate(arena, *out_length + 1, 1);
  CLEAVE_TRY_MEMORY(bytes, reader->error);
  for (size_t k = 0; k < *out_length; k++) {
    int high = hex_digit(digits[2 * k]);
    int low = hex_digit(digits[2 * k + 1]);
    if (high < 0 || low < 0) {
      return cleave_reader_fail(reader, "expected digits 0 to 9 and a to f");
    }
    bytes[k] = (char)(unsigned char)(high * 16 + low);
  }
  *out_bytes = bytes;
  return CLEAVE_OK;
}

cleave_status_t cleave_reader_get_name(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                       bool is_needed, const char **out_name) {
  const json_t *json = json_object_get(object, key);
  size_t length = 0;
  *out_name = "";
  if (json == NULL) {
    return is_needed ? cleave_reader_fail(reader, "member '%s' is missing", key) : CLEAVE_OK;
  }
  size_t before = cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
  CLEAVE_TRY(cleave_reader_read_bytes(reader, json, out_name, &length));
  if (length > MAX_NAME || memchr(*out_name, '\0', length) != NULL) {
    return cleave_reader_fail(reader, "expected a name of at most %d bytes, none of them zero", MAX_NAME);
  }
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

cleave_status_t cleave_reader_get_hash(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                       uint64_t *out_hash) {
  const char *text = NULL;
  CLEAVE_TRY(cleave_reader_get_text(reader, object, key, NULL, &text));
  *out_hash = 0;
  bool is_hash = strlen(text) == 16;
  for (size_t k = 0; is_hash && k < 16; k++) {
    is_hash = hex_digit(text[k]) >= 0;
    *out_hash = *out_hash << 4 | (uint64_t)(is_hash ? hex_digit(text[k]) : 0);
  }
  return is_hash ? CLEAVE_OK
                 : cleave_reader_fail(reader, "%s: expected 16 digits 0 to 9 and a to f, found '%.40s'", key,
                                      text);
}
