// SPDX-License-Identifier: Apache-2.0
/*
 * The order of nodes in a model that a plan was written into. A file has the nodes of a region one after the
 * other; the graph of the plan had them elsewhere, and the plan speaks of their positions there.
 */
#include <string.h>

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"

bool cleave_onnx_bytes_are(cleave_bytes_t bytes, const char *text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

cleave_status_t cleave_onnx_entry_parse(const cleave_protobuf_t *parent, const cleave_protobuf_field_t *field,
                                        cleave_bytes_t *out_key, cleave_bytes_t *out_value,
                                        cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  *out_key = (cleave_bytes_t){.data = (const void *)""};
  *out_value = *out_key;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "StringStringEntryProto", &reader, error));
  while (cleave_protobuf_next(&reader, &part, error)) {
    if (part.number == ONNX_ENTRY_KEY || part.number == ONNX_ENTRY_VALUE) {
      CLEAVE_TRY(cleave_protobuf_expect(&reader, &part, CLEAVE_WIRE_BYTES, error));
      *(part.number == ONNX_ENTRY_KEY ? out_key : out_value) = part.bytes;
    }
  }
  return reader.status;
}

cleave_status_t cleave_onnx_find_metadata(const void *data, size_t size, const char *name, const char *key,
                                          const char **out_value, size_t *out_length, cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t field;
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  *out_value = NULL;
  *out_length = 0;
  cleave_protobuf_init(&reader, data, size, "ModelProto");
  while (status == CLEAVE_OK && cleave_protobuf_next(&reader, &field, &reason)) {
    if (field.number == ONNX_MODEL_METADATA_PROPS) {
      cleave_bytes_t found;
      cleave_bytes_t value;
      status = cleave_onnx_entry_parse(&reader, &field, &found, &value, &reason);
      if (status == CLEAVE_OK && cleave_onnx_bytes_are(found, key)) {
        *out_value = (const char *)value.data;
        *out_length = value.size;
      }
    }
  }
  CLEAVE_THEN(status, reader.status);
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_set_at(error, status, name, 0, "%s", reason.message);
}

/* The next number of the text at *at; false at its end, and for anything else than digits between spaces. */
static bool next_number(cleave_bytes_t text, size_t *at, size_t *out_number) {
  const char *data = (const char *)text.data;
  size_t start = *at;
  *out_number = 0;
  for (; *at < text.size && data[*at] >= '0' && data[*at] <= '9' && *at - start < 10; ++*at) {
    *out_number = 10 * *out_number + (size_t)(data[*at] - '0');
  }
  bool found = *at > start && (*at == text.size || data[*at] == ' ');
  *at += found && *at < text.size ? 1 : 0;
  return found;
}

cleave_status_t cleave_onnx_model_order(cleave_onnx_model_t *model, cleave_error_t *error) {
  size_t count = model->nodes.count;
  size_t given = 0;
  size_t position = 0;
  size_t at = 0;
  if (model->order.size == 0 || count == 0) {
    return CLEAVE_OK;
  }
  cleave_onnx_nodes_t nodes = {0};
  bool *is_taken = cleave_allocate_zeroed(count, sizeof *is_taken);
  cleave_status_t status = cleave_array_reserve(&nodes, count, error);
  if (is_taken == NULL || status != CLEAVE_OK) {
    cleave_free(is_taken);
    cleave_array_free(&nodes);
    return cleave_error_out_of_memory(error);
  }
  memcpy(nodes.items, model->nodes.items, count * sizeof *nodes.items);
  nodes.count = count;
  while (given < count && next_number(model->order, &at, &position) && position < count &&
         !is_taken[position]) {
    is_taken[position] = true;
    nodes.items[position] = model->nodes.items[given++];
  }
  bool is_order = at == model->order.size;
  for (size_t k = 0; k < given; k++) {
    is_order = is_order && is_taken[k];
  }
  if (is_order) {
    memcpy(model->nodes.items, nodes.items, count * sizeof *nodes.items);
  }
  cleave_array_free(&nodes);
  cleave_free(is_taken);
  return CLEAVE_OK;
}
