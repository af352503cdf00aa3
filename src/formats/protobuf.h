// SPDX-License-Identifier: Apache-2.0
/*
 * Protocol buffers (https://protobuf.dev/programming-guides/encoding): a pull reader over bytes that stay
 * where they are, and a writer. The reader copies nothing and allocates nothing: a length-delimited field is
 * a range inside the message, so fields that nobody asks for cost a few instructions however long they are.
 *
 * All input is hostile: every length is checked against the range that holds it, group wire types are
 * refused, messages nest at most CLEAVE_PROTOBUF_MAX_DEPTH deep.
 */
#ifndef CLEAVE_FORMATS_PROTOBUF_H
#define CLEAVE_FORMATS_PROTOBUF_H

#include "base/text.h"

#define CLEAVE_PROTOBUF_MAX_DEPTH 64

typedef enum cleave_wire {
  CLEAVE_WIRE_VARINT = 0,
  CLEAVE_WIRE_FIXED64 = 1,
  CLEAVE_WIRE_BYTES = 2,
  CLEAVE_WIRE_FIXED32 = 5
} cleave_wire_t;

/* A range of bytes; `data` may be NULL if size is 0. */
typedef struct cleave_bytes {
  const unsigned char *data;
  size_t size;
} cleave_bytes_t;

/* A message being read. `kind` names it in errors ("NodeProto"). */
typedef struct cleave_protobuf {
  const unsigned char *next;
  const unsigned char *end;
  const char *kind;
  uint32_t depth;
  cleave_status_t status; /* of the last cleave_protobuf_next */
} cleave_protobuf_t;

typedef struct cleave_protobuf_field {
  uint32_t number; /* from 1 */
  cleave_wire_t wire;
  uint64_t value;       /* of a varint or fixed field */
  cleave_bytes_t bytes; /* of a BYTES field, inside the message */
} cleave_protobuf_field_t;

/* Starts on the bytes of an outermost message. `kind` must be static. */
void cleave_protobuf_init(cleave_protobuf_t *reader, const void *data, size_t size, const char *kind);

/* Reads the next field. False at the end, or with an error in reader->status: CLEAVE_ERROR_FORMAT names the
 * message and what is wrong. */
bool cleave_protobuf_next(cleave_protobuf_t *reader, cleave_protobuf_field_t *out_field,
                          cleave_error_t *error);

/* Starts on the message that `field` of `parent` holds. */
CLEAVE_STATUS cleave_protobuf_enter(const cleave_protobuf_t *parent, const cleave_protobuf_field_t *field,
                                    const char *kind, cleave_protobuf_t *out_reader, cleave_error_t *error);

/* CLEAVE_ERROR_FORMAT unless the field has the wire type. */
CLEAVE_STATUS cleave_protobuf_expect(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                     cleave_wire_t wire, cleave_error_t *error);

/* The field as a signed number (varint), a binary32 (fixed32), or bytes. */
CLEAVE_STATUS cleave_protobuf_int(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                  int64_t *out_value, cleave_error_t *error);
CLEAVE_STATUS cleave_protobuf_float(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                    float *out_value, cleave_error_t *error);
CLEAVE_STATUS cleave_protobuf_bytes(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                    cleave_bytes_t *out_bytes, cleave_error_t *error);

/* How many numbers of the wire type a repeated field holds here: 1 if it is not packed, else as many as
 * its bytes are. */
CLEAVE_STATUS cleave_protobuf_count(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                    cleave_wire_t wire, size_t *out_count, cleave_error_t *error);
/* Writes those numbers as raw 64-bit words (fixed32 zero-extended) to `out`, which has room for the count. */
CLEAVE_STATUS cleave_protobuf_numbers(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                      cleave_wire_t wire, uint64_t *out, cleave_error_t *error);

/* ---- writer: appends to a text; a failed allocation shows in cleave_text_check ---- */

void cleave_protobuf_put_int(cleave_text_t *out, uint32_t number, int64_t value);
void cleave_protobuf_put_float(cleave_text_t *out, uint32_t number, float value);
void cleave_protobuf_put_bytes(cleave_text_t *out, uint32_t number, const void *data, size_t size);
void cleave_protobuf_put_text(cleave_text_t *out, uint32_t number, const char *text);
/* Only the tag and length of a BYTES field whose content follows by other means. */
void cleave_protobuf_put_header(cleave_text_t *out, uint32_t number, uint64_t size);
/* A message: begin, put its fields, end. The length is filled in at the end. Nests. */
size_t cleave_protobuf_begin(cleave_text_t *out, uint32_t number);
void cleave_protobuf_end(cleave_text_t *out, size_t mark);

#endif /* CLEAVE_FORMATS_PROTOBUF_H */
