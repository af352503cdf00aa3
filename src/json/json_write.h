// SPDX-License-Identifier: Apache-2.0
/* Values of JSON from texts and numbers: what plans, regions and logs of changes are written
 * with. NULL is a failure, and cleave_json_set carries it on, so that it is enough to look at the whole. */
#ifndef CLEAVE_JSON_JSON_WRITE_H
#define CLEAVE_JSON_JSON_WRITE_H

#include <jansson.h>

#include "graph/op.h"

/* Text from outside may not be UTF-8: bytes that are not become '?'. */
json_t *cleave_json_text(const char *text);
json_t *cleave_json_number(uint64_t number);
/* JSON has no words for what is not finite: "nan", "inf", "-inf"; a NaN other than the usual one has its bits
 * behind it, "nan:7ff8000000000001", 8 digits of a float. All others come back bit by bit from the number. */
json_t *cleave_json_real(double number);
json_t *cleave_json_float(float number);
/* Bytes as they are; those that are not UTF-8 text, or have a NUL, as {"hex": "..."}. */
json_t *cleave_json_bytes(const char *bytes, size_t length);

/* Appends, and takes `item` over; a failure makes *list NULL. */
void cleave_json_append(json_t **list, json_t *item);
/* "0123456789abcdef". */
json_t *cleave_json_hash(uint64_t hash);

/* Appends `json` as text with jansson's `flags`, and releases it; NULL is CLEAVE_ERROR_OUT_OF_MEMORY. */
CLEAVE_STATUS cleave_json_print(json_t *json, size_t flags, cleave_text_t *text, cleave_error_t *error);

/* Sets a member, and takes `value` over; a failure makes *object NULL. */
void cleave_json_set(json_t **object, const char *key, json_t *value);

/* ---- files with an item a line, of which no tree is built ---- */

/* `<indent>"key": value`; `more`: a comma follows. */
void cleave_json_write_member(cleave_text_t *text, const char *indent, const char *key, json_t *value,
                              bool more);
void cleave_json_open_list(cleave_text_t *text, const char *indent, const char *key);
void cleave_json_write_item(cleave_text_t *text, const char *indent, bool first, json_t *item);
void cleave_json_close_list(cleave_text_t *text, const char *indent, bool empty, bool more);

#endif /* CLEAVE_JSON_JSON_WRITE_H */
