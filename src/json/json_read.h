// SPDX-License-Identifier: Apache-2.0
/*
 * Reads members of JSON objects by name and type, for plans, regions and logs of changes. Failures name the
 * file, the path of the member, what was expected and what was found.
 */
#ifndef CLEAVE_JSON_JSON_READ_H
#define CLEAVE_JSON_JSON_READ_H

#include <jansson.h>

#include "base/arena.h"
#include "graph/op.h"

typedef struct cleave_json_reader {
  const char *place;     /* the name of the file, for messages */
  cleave_arena_t *arena; /* takes all copies */
  cleave_error_t *error;
  char path[256]; /* of the member at work: "regions[3].fusions[0].rule" */
  size_t path_length;
  size_t *tensor_bytes; /* that the tensors of the file may still take; NULL: it has none */
} cleave_json_reader_t;

/* Appends ".key", or "[index]" if that is not CLEAVE_INDEX_NONE, to the path; returns what `leave` takes
 * to go back. After a failure the path stays where it is. */
size_t cleave_reader_enter(cleave_json_reader_t *reader, const char *key, uint32_t index);
void cleave_reader_leave(cleave_json_reader_t *reader, size_t before);
cleave_status_t cleave_reader_fail(cleave_json_reader_t *reader, const char *format, ...) CLEAVE_PRINTF(2, 3);

/* The text as JSON, for the caller to release; `what` it is for messages: "a plan". Texts of more than 1 GiB
 * are refused, and objects with a key twice. */
CLEAVE_STATUS cleave_reader_parse(const cleave_json_reader_t *reader, const char *what, const char *text,
                                  size_t length, json_t **out_root);

/* "a list": what a JSON value is. */
const char *cleave_reader_type(const json_t *json);

/* `object` is an object, and all its keys are among `keys`, which ends in NULL. */
CLEAVE_STATUS cleave_reader_check_keys(cleave_json_reader_t *reader, json_t *object, const char *const *keys);
CLEAVE_STATUS cleave_reader_get(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                json_type type, const char *expected, json_t **out_json);
/* A copy of a string member; `fallback` if it is missing (NULL: that is an error). */
CLEAVE_STATUS cleave_reader_get_text(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                     const char *fallback, const char **out_text);
/* A whole number from 0 to `most`. */
CLEAVE_STATUS cleave_reader_get_number(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                       uint32_t most, uint32_t *out_number);
/* An index into a list of `count` things called `what`. */
CLEAVE_STATUS cleave_reader_get_index(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                      uint32_t count, const char *what, uint32_t *out_index);

/* Reads one item of a list into the place that was made for it, which is zeroed. */
typedef cleave_status_t (*cleave_reader_item_t)(cleave_json_reader_t *reader, json_t *json, void *item);

/* A list member: *out_items (a pointer to items of `item_size`) gets room in the arena, and each is read. */
CLEAVE_STATUS cleave_reader_get_list(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                     size_t item_size, cleave_reader_item_t read_item, void *out_items,
                                     uint32_t *out_count);

/* Values as cleave_json_real, cleave_json_float and cleave_json_bytes (ends in NUL) write them. */
CLEAVE_STATUS cleave_reader_read_real(cleave_json_reader_t *reader, const json_t *json, double *out_number);
CLEAVE_STATUS cleave_reader_read_float(cleave_json_reader_t *reader, const json_t *json, float *out_number);
CLEAVE_STATUS cleave_reader_read_bytes(cleave_json_reader_t *reader, const json_t *json,
                                       const char **out_bytes, size_t *out_length);

/* A name of whatever bytes but NUL, "" if it is missing and need not be there. */
CLEAVE_STATUS cleave_reader_get_name(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                     bool is_needed, const char **out_name);
/* Reads what cleave_json_hash wrote. */
CLEAVE_STATUS cleave_reader_get_hash(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                     uint64_t *out_hash);

#endif /* CLEAVE_JSON_JSON_READ_H */
