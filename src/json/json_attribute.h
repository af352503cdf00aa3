// SPDX-License-Identifier: Apache-2.0
/* Attributes of nodes, fusions and regions in JSON: {"name", "kind", "value"}, tensors with the members of
 * json_tensor.h in place of "value". */
#ifndef CLEAVE_JSON_JSON_ATTRIBUTE_H
#define CLEAVE_JSON_JSON_ATTRIBUTE_H

#include "json/json_tensor.h"

/* NULL without memory, and for a tensor that is not dense in memory of the host. */
json_t *cleave_json_attribute(const cleave_attribute_t *attribute);
json_t *cleave_json_attributes(const cleave_attribute_t *attributes, uint32_t count);

/* The member "attributes"; none if it is missing. Sorted: in order of their names, each once. The caller
 * releases the tensors that they hold, also after a failure; there are none unless the reader takes tensors.
 */
CLEAVE_MUST_USE cleave_status_t cleave_reader_get_attributes(cleave_json_reader_t *reader,
                                                             const json_t *object, bool is_sorted,
                                                             cleave_attribute_t **out_attributes,
                                                             uint32_t *out_count);

#endif /* CLEAVE_JSON_JSON_ATTRIBUTE_H */
