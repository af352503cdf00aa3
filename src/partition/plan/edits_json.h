// SPDX-License-Identifier: Apache-2.0
/*
 * The log of changes as JSON, for plan files: what rewrites and passes did, so that it can be replayed
 * without them (cleave_transform_replay).
 *
 *   { "source": {"hash", "nodes", "values"}, "result": {"hash"},
 *     "rules": [{"kind", "name", "file", "line", "number", "tries", "matches", "refused"}],
 *     "groups": [{"rule", "place", "steps": [{"do": "add_node", ...}]}],    "rule" is missing for folding
 *     "refusals": [{"rule", "place", "reason"}] }
 *
 * Steps have the members of their kind (cleave_edit_kind_name), by these names: op domain name inputs outputs
 * attributes node value from since input output dtype shape data line. Values and nodes are their ids; null
 * is a value that is left out. Small constants are lists of numbers, larger ones base64 of their bytes
 * (little endian).
 */
#ifndef CLEAVE_PARTITION_PLAN_EDITS_JSON_H
#define CLEAVE_PARTITION_PLAN_EDITS_JSON_H

#include <jansson.h>

#include "graph/edits.h"

/* Bytes of all constants in one log. */
#define CLEAVE_EDITS_JSON_DATA_LIMIT ((size_t)64 << 20)

/* CLEAVE_ERROR_LIMIT if the constants are larger than the limit. The caller releases the value. */
CLEAVE_STATUS cleave_edits_to_json(const cleave_edits_t *edits, json_t **out_json, cleave_error_t *error);

/* Reads what cleave_edits_to_json wrote; CLEAVE_ERROR_FORMAT names `place`, the member, what was expected and
 * what was found. After success every index into the log itself is in range; only performing the steps shows
 * if they are possible. */
CLEAVE_STATUS cleave_edits_from_json(const char *place, const json_t *json, cleave_edits_t **out_edits,
                                     cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PLAN_EDITS_JSON_H */
