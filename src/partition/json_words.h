/* SPDX-License-Identifier: Apache-2.0 */
/* Values of JSON from texts, numbers and attributes: what plans and logs of changes are written with. NULL is
 * a failure, and cleave_json_set carries it on, so that it is enough to look at the whole. */
#ifndef CLEAVE_PARTITION_JSON_WORDS_H
#define CLEAVE_PARTITION_JSON_WORDS_H

#include <jansson.h>

#include "graph/op.h"

/* Text from outside may not be UTF-8: bytes that are not become '?'. */
json_t *cleave_json_text(const char *text);
json_t *cleave_json_number(uint64_t number);
/* JSON has no words for what is not finite: "nan", "inf", "-inf". */
json_t *cleave_json_real(double number);
/* Bytes as they are; those that are no UTF-8 text, or have a NUL, as {"hex": "..."}. */
json_t *cleave_json_bytes(const char *bytes, size_t length);
/* {"name", "kind", "value"}. NULL for tensors. */
json_t *cleave_json_attribute(const cleave_attribute_t *attribute);

/* Sets a member, and takes `value` over; a failure makes *object NULL. */
void cleave_json_set(json_t **object, const char *key, json_t *value);

#endif /* CLEAVE_PARTITION_JSON_WORDS_H */
