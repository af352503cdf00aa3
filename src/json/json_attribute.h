// SPDX-License-Identifier: Apache-2.0
/* Attributes of nodes, fusions and regions in JSON: {"name", "kind", "value"}, tensors with the members of
 * json_tensor.h in place of "value". */
#ifndef CLEAVE_JSON_JSON_ATTRIBUTE_H
#define CLEAVE_JSON_JSON_ATTRIBUTE_H

#include "json/json_read.h"
#include "json/json_write.h"

/* json_tensor.c: Tensors in JSON, for logs of changes and for regions: members "dtype", "shape" and "data".
 * Data of a few elements is a list of numbers, if these say all; more of it is base64 of the bytes (little
 * endian). Texts are a list always. */

/* Fills in a tensor for as long as `view` stays: of known dtype and shape, its data dense in memory of the
 * host. False if there is no data, or it has no size. */
bool cleave_tensor_borrow(const cleave_tensor_view_t *view, cleave_tensor_t *out_tensor);

/* The value of "data"; NULL without memory. */
json_t *cleave_json_tensor_data(const cleave_tensor_t *tensor);
/* Sets the three members. */
void cleave_json_set_tensor(json_t **object, const cleave_tensor_t *tensor);

/* The member "dtype": "unknown", or one that cleave knows. */
CLEAVE_STATUS cleave_reader_get_dtype(cleave_json_reader_t *reader, const json_t *object,
                                      cleave_dtype_t *out_dtype);
/* A new tensor out of the three members. Its bytes are taken from *reader->tensor_bytes, which bounds all
 * tensors of a file: CLEAVE_ERROR_FORMAT if they are more. */
CLEAVE_STATUS cleave_reader_read_tensor(cleave_json_reader_t *reader, const json_t *object,
                                        cleave_tensor_t **out_tensor);

/* NULL without memory, and for a tensor that is not dense in memory of the host. */
json_t *cleave_json_attribute(const cleave_attribute_t *attribute);
json_t *cleave_json_attributes(const cleave_attribute_t *attributes, uint32_t count);

/* The member "attributes"; none if it is missing. Sorted: in order of their names, each once. The caller
 * releases the tensors that they hold, also after a failure; there are none unless the reader takes tensors.
 */
CLEAVE_STATUS cleave_reader_get_attributes(cleave_json_reader_t *reader, const json_t *object, bool is_sorted,
                                           cleave_attribute_t **out_attributes, uint32_t *out_count);

#endif /* CLEAVE_JSON_JSON_ATTRIBUTE_H */
