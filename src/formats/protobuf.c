// SPDX-License-Identifier: Apache-2.0
/* A reader never moves past `end`, and every range it hands out lies between `next` and `end`. */
#include "formats/protobuf.h"

#include <string.h>

void cleave_protobuf_init(cleave_protobuf_t *reader, const void *data, size_t size, const char *kind) {
  static const unsigned char nothing = 0;
  const unsigned char *start = size > 0 ? data : &nothing;
  *reader = (cleave_protobuf_t){.next = start, .end = start + size, .kind = kind};
}

static cleave_status_t truncated(const cleave_protobuf_t *reader, cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                          "protobuf: %s is malformed: it ends in the middle of a field", reader->kind);
}

static cleave_status_t read_varint(cleave_protobuf_t *reader, uint64_t *out_value, cleave_error_t *error) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 70; shift += 7) {
    if (reader->next == reader->end) {
      return truncated(reader, error);
    }
    unsigned char byte = *reader->next++;
    if (shift == 63 && byte > 1) {
      break;
    }
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out_value = value;
      return CLEAVE_OK;
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                          "protobuf: %s is malformed: a number is longer than 64 bits", reader->kind);
}

static cleave_status_t read_fixed(cleave_protobuf_t *reader, size_t size, uint64_t *out_value,
                                  cleave_error_t *error) {
  if ((size_t)(reader->end - reader->next) < size) {
    return truncated(reader, error);
  }
  uint64_t value = 0;
  for (size_t k = 0; k < size; k++) {
    value |= (uint64_t)reader->next[k] << (8 * k);
  }
  reader->next += size;
  *out_value = value;
  return CLEAVE_OK;
}

static cleave_status_t read_bytes(cleave_protobuf_t *reader, cleave_bytes_t *out_bytes,
                                  cleave_error_t *error) {
  uint64_t size = 0;
  CLEAVE_TRY(read_varint(reader, &size, error));
  if (size > (uint64_t)(reader->end - reader->next)) {
    return cleave_error_set(
        error, CLEAVE_ERROR_FORMAT, "protobuf: %s is malformed: a field of %llu byte%s, but %zu are left",
        reader->kind, (unsigned long long)size, CLEAVE_PLURAL(size), (size_t)(reader->end - reader->next));
  }
  *out_bytes = (cleave_bytes_t){reader->next, (size_t)size};
  reader->next += size;
  return CLEAVE_OK;
}

static cleave_status_t read_field(cleave_protobuf_t *reader, cleave_protobuf_field_t *out_field,
                                  cleave_error_t *error) {
  uint64_t tag = 0;
  CLEAVE_TRY(read_varint(reader, &tag, error));
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "protobuf: %s is malformed: field number %llu",
                            reader->kind, (unsigned long long)(tag >> 3));
  }
  uint32_t number = (uint32_t)(tag >> 3);
  switch (tag & 7) {
    case CLEAVE_WIRE_VARINT: CLEAVE_TRY(read_varint(reader, &out_field->value, error)); break;
    case CLEAVE_WIRE_FIXED64: CLEAVE_TRY(read_fixed(reader, 8, &out_field->value, error)); break;
    case CLEAVE_WIRE_BYTES: CLEAVE_TRY(read_bytes(reader, &out_field->bytes, error)); break;
    case CLEAVE_WIRE_FIXED32: CLEAVE_TRY(read_fixed(reader, 4, &out_field->value, error)); break;
    default:
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "protobuf: %s is malformed: field %u has wire type %u", reader->kind, number,
                              (unsigned)(tag & 7));
  }
  out_field->wire = (cleave_wire_t)(tag & 7);
  out_field->number = number;
  return CLEAVE_OK;
}

bool cleave_protobuf_next(cleave_protobuf_t *reader, cleave_protobuf_field_t *out_field,
                          cleave_error_t *error) {
  *out_field = (cleave_protobuf_field_t){0};
  bool is_there = reader->next < reader->end;
  reader->status = is_there ? read_field(reader, out_field, error) : CLEAVE_OK;
  return is_there && reader->status == CLEAVE_OK;
}

cleave_status_t cleave_protobuf_expect(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                       cleave_wire_t wire, cleave_error_t *error) {
  if (field->wire == wire) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                          "protobuf: %s is malformed: field %u has wire type %d, expected %d", reader->kind,
                          field->number, (int)field->wire, (int)wire);
}

cleave_status_t cleave_protobuf_enter(const cleave_protobuf_t *parent, const cleave_protobuf_field_t *field,
                                      const char *kind, cleave_protobuf_t *out_reader,
                                      cleave_error_t *error) {
  CLEAVE_TRY(cleave_protobuf_expect(parent, field, CLEAVE_WIRE_BYTES, error));
  if (parent->depth + 1 >= CLEAVE_PROTOBUF_MAX_DEPTH) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "protobuf: messages nest more than %d deep",
                            CLEAVE_PROTOBUF_MAX_DEPTH);
  }
  cleave_protobuf_init(out_reader, field->bytes.data, field->bytes.size, kind);
  out_reader->depth = parent->depth + 1;
  return CLEAVE_OK;
}

cleave_status_t cleave_protobuf_int(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                    int64_t *out_value, cleave_error_t *error) {
  CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_VARINT, error));
  memcpy(out_value, &field->value, sizeof *out_value);
  return CLEAVE_OK;
}

cleave_status_t cleave_protobuf_float(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                      float *out_value, cleave_error_t *error) {
  CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_FIXED32, error));
  uint32_t bits = (uint32_t)field->value;
  memcpy(out_value, &bits, sizeof *out_value);
  return CLEAVE_OK;
}

cleave_status_t cleave_protobuf_bytes(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                      cleave_bytes_t *out_bytes, cleave_error_t *error) {
  CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_BYTES, error));
  *out_bytes = field->bytes;
  return CLEAVE_OK;
}

cleave_status_t cleave_protobuf_count(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                      cleave_wire_t wire, size_t *out_count, cleave_error_t *error) {
  if (field->wire != CLEAVE_WIRE_BYTES) {
    CLEAVE_TRY(cleave_protobuf_expect(reader, field, wire, error));
    *out_count = 1;
    return CLEAVE_OK;
  }
  size_t count = 0;
  if (wire == CLEAVE_WIRE_VARINT) {
    for (size_t k = 0; k < field->bytes.size; k++) {
      count += field->bytes.data[k] < 0x80;
    }
  } else {
    size_t width = wire == CLEAVE_WIRE_FIXED32 ? 4 : 8;
    if (field->bytes.size % width != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "protobuf: %s is malformed: packed field %u has %zu byte%s, not a multiple "
                              "of %zu",
                              reader->kind, field->number, field->bytes.size,
                              CLEAVE_PLURAL(field->bytes.size), width);
    }
    count = field->bytes.size / width;
  }
  *out_count = count;
  return CLEAVE_OK;
}

cleave_status_t cleave_protobuf_numbers(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                        cleave_wire_t wire, uint64_t *out, cleave_error_t *error) {
  if (field->wire != CLEAVE_WIRE_BYTES) {
    CLEAVE_TRY(cleave_protobuf_expect(reader, field, wire, error));
    *out = field->value;
    return CLEAVE_OK;
  }
  cleave_protobuf_t packed;
  cleave_protobuf_init(&packed, field->bytes.data, field->bytes.size, reader->kind);
  while (packed.next != packed.end) {
    if (wire == CLEAVE_WIRE_VARINT) {
      CLEAVE_TRY(read_varint(&packed, out, error));
    } else {
      CLEAVE_TRY(read_fixed(&packed, wire == CLEAVE_WIRE_FIXED32 ? 4 : 8, out, error));
    }
    out++;
  }
  return CLEAVE_OK;
}

static void put_varint(cleave_text_t *out, uint64_t value) {
  char bytes[10];
  size_t count = 0;
  while (value >= 0x80) {
    bytes[count++] = (char)(unsigned char)(0x80 | (value & 0x7f));
    value >>= 7;
  }
  bytes[count++] = (char)value;
  cleave_text_append(out, bytes, count);
}

static void put_tag(cleave_text_t *out, uint32_t number, cleave_wire_t wire) {
  put_varint(out, ((uint64_t)number << 3) | (uint64_t)wire);
}

void cleave_protobuf_put_int(cleave_text_t *out, uint32_t number, int64_t value) {
  put_tag(out, number, CLEAVE_WIRE_VARINT);
  put_varint(out, (uint64_t)value);
}

void cleave_protobuf_put_float(cleave_text_t *out, uint32_t number, float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  char bytes[4];
  for (size_t k = 0; k < sizeof bytes; k++) {
    bytes[k] = (char)(unsigned char)(bits >> (8 * k));
  }
  put_tag(out, number, CLEAVE_WIRE_FIXED32);
  cleave_text_append(out, bytes, sizeof bytes);
}

void cleave_protobuf_put_header(cleave_text_t *out, uint32_t number, uint64_t size) {
  put_tag(out, number, CLEAVE_WIRE_BYTES);
  put_varint(out, size);
}

void cleave_protobuf_put_bytes(cleave_text_t *out, uint32_t number, const void *data, size_t size) {
  cleave_protobuf_put_header(out, number, size);
  if (size > 0) {
    cleave_text_append(out, data, size);
  }
}

void cleave_protobuf_put_text(cleave_text_t *out, uint32_t number, const char *text) {
  cleave_protobuf_put_bytes(out, number, text, strlen(text));
}

/* The length is unknown yet: room for the longest is left, and closed at the end. */
enum { LENGTH_ROOM = 10 };

size_t cleave_protobuf_begin(cleave_text_t *out, uint32_t number) {
  put_tag(out, number, CLEAVE_WIRE_BYTES);
  static const char room[LENGTH_ROOM] = {0};
  cleave_text_append(out, room, sizeof room);
  return out->length;
}

void cleave_protobuf_end(cleave_text_t *out, size_t mark) {
  if (out->failed) {
    return;
  }
  size_t size = out->length - mark;
  unsigned char length[LENGTH_ROOM];
  size_t count = 0;
  for (uint64_t rest = size; count == 0 || rest > 0; rest >>= 7) {
    length[count++] = (unsigned char)((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
  }
  char *start = out->data + mark - LENGTH_ROOM;
  memcpy(start, length, count);
  memmove(start + count, out->data + mark, size);
  out->length = mark - LENGTH_ROOM + count + size;
  out->data[out->length] = '\0';
}
