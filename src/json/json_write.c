// SPDX-License-Identifier: Apache-2.0
// Values of JSON that plans and logs of changes are written with.
#include "json/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

/* Text from outside may not be UTF-8: bytes that are not become '?'. */
json_t *cleave_json_text(const char *text) {
  json_t *json = json_string(text);
  if (json != NULL) {
    return json;
  }
  size_t length = strlen(text);
  char *copy = cleave_copy_text(text, length);
  if (copy == NULL) {
    return NULL;
  }
  for (size_t k = 0; k < length; k++) {
    copy[k] = (unsigned char)copy[k] < 0x80 ? copy[k] : '?';
  }
  json = json_string(copy);
  cleave_free(copy);
  return json;
}

/* Sets a member; a failure makes the object unusable, which writing it finds. */
void cleave_json_set(json_t **object, const char *key, json_t *value) {
  if (*object == NULL || value == NULL || json_object_set(*object, key, value) != 0) {
    json_decref(*object);
    *object = NULL;
  }
  json_decref(value);
}

json_t *cleave_json_number(uint64_t number) {
  return json_integer((json_int_t)number);
}

static json_t *not_finite(double number, uint64_t bits, uint64_t usual, int digits) {
  char text[32];
  if (!isnan(number)) {
    return json_string(number > 0 ? "inf" : "-inf");
  }
  (void)snprintf(text, sizeof text, "nan:%0*" PRIx64, digits, bits);
  return json_string(bits == usual ? "nan" : text);
}

json_t *cleave_json_real(double number) {
  uint64_t bits = 0;
  memcpy(&bits, &number, sizeof bits);
  return isfinite(number) ? json_real(number) : not_finite(number, bits, UINT64_C(0x7ff8000000000000), 16);
}

json_t *cleave_json_float(float number) {
  uint32_t bits = 0;
  memcpy(&bits, &number, sizeof bits);
  return isfinite(number) ? json_real((double)number) : not_finite((double)number, bits, 0x7fc00000, 8);
}

/* Bytes as they are; those that are not UTF-8 text as {"hex": "..."}. */
json_t *cleave_json_bytes(const char *bytes, size_t length) {
  static const char digits[] = "0123456789abcdef";
  json_t *json = memchr(bytes, '\0', length) == NULL ? json_stringn(bytes, length) : NULL;
  if (json != NULL) {
    return json;
  }
  char *hex = cleave_allocate(length + 1, 2);
  for (size_t k = 0; hex != NULL && k < length; k++) {
    hex[2 * k] = digits[(unsigned char)bytes[k] >> 4];
    hex[2 * k + 1] = digits[(unsigned char)bytes[k] & 15];
  }
  json = json_object();
  cleave_json_set(&json, "hex", hex == NULL ? NULL : json_stringn(hex, 2 * length));
  cleave_free(hex);
  return json;
}

void cleave_json_append(json_t **list, json_t *item) {
  if (*list == NULL || item == NULL || json_array_append(*list, item) != 0) {
    json_decref(*list);
    *list = NULL;
  }
  json_decref(item);
}

json_t *cleave_json_hash(uint64_t hash) {
  char text[17];
  (void)snprintf(text, sizeof text, "%016" PRIx64, hash);
  return json_string(text);
}

cleave_status_t cleave_json_print(json_t *json, size_t flags, cleave_text_t *text, cleave_error_t *error) {
  char *dump = json == NULL ? NULL : json_dumps(json, flags);
  if (dump == NULL) {
    text->failed = true;
  } else {
    cleave_text_add(text, dump);
  }
  free(dump);
  json_decref(json);
  return cleave_text_check(text, error);
}

/* ---- an item a line ---- */

/* Writes compactly, and frees `json`; NULL makes the text fail. */
static void write_json(cleave_text_t *text, json_t *json) {
  if (cleave_json_print(json, JSON_COMPACT | JSON_ENCODE_ANY, text, NULL) != CLEAVE_OK) {
    text->failed = true; /* found when the whole is written */
  }
}

void cleave_json_write_member(cleave_text_t *text, const char *indent, const char *key, json_t *value,
                              bool more) {
  cleave_text_format(text, "%s\"%s\": ", indent, key);
  write_json(text, value);
  cleave_text_add(text, more ? ",\n" : "\n");
}

void cleave_json_open_list(cleave_text_t *text, const char *indent, const char *key) {
  cleave_text_format(text, "%s\"%s\": [", indent, key);
}

void cleave_json_write_item(cleave_text_t *text, const char *indent, bool first, json_t *item) {
  cleave_text_add(text, first ? "\n" : ",\n");
  cleave_text_add(text, indent);
  write_json(text, item);
}

void cleave_json_close_list(cleave_text_t *text, const char *indent, bool empty, bool more) {
  if (!empty) {
    cleave_text_format(text, "\n%s", indent);
  }
  cleave_text_add(text, more ? "],\n" : "]\n");
}
