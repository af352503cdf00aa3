// SPDX-License-Identifier: Apache-2.0
/* The protobuf reader and writer: known bytes, and everything that hostile bytes may try. */
#include "formats/protobuf.h"

#include "unit.h"

static cleave_protobuf_t reader_on(const void *data, size_t size) {
  cleave_protobuf_t reader;
  cleave_protobuf_init(&reader, data, size, "Test");
  return reader;
}

/* First field of the bytes. */
static cleave_status_t first(const void *data, size_t size, cleave_protobuf_field_t *field,
                             cleave_error_t *error) {
  cleave_protobuf_t reader = reader_on(data, size);
  (void)cleave_protobuf_next(&reader, field, error);
  return reader.status;
}

UNIT_TEST(writes_the_bytes_of_the_specification) {
  cleave_text_t out = {0};
  cleave_protobuf_put_int(&out, 1, 150);
  cleave_protobuf_put_text(&out, 2, "testing");
  cleave_protobuf_put_float(&out, 3, 1.0f);
  cleave_protobuf_put_int(&out, 4, -1);
  static const unsigned char expected[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',  'i',
                                           'n',  'g',  0x1d, 0x00, 0x00, 0x80, 0x3f, 0x20, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  ck_assert_uint_eq(out.length, sizeof expected);
  ck_assert_mem_eq(out.data, expected, sizeof expected);
  cleave_text_deinit(&out);
}

UNIT_TEST(reads_back_what_it_writes) {
  cleave_text_t out = {0};
  cleave_protobuf_put_int(&out, 1, INT64_MIN);
  cleave_protobuf_put_int(&out, 536870911, INT64_MAX);
  cleave_protobuf_put_float(&out, 2, -0.5f);
  cleave_protobuf_put_bytes(&out, 3, NULL, 0);
  cleave_protobuf_t reader = reader_on(out.data, out.length);
  cleave_protobuf_field_t field;
  int64_t number = 0;
  float real = 0;
  cleave_bytes_t bytes;
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_ok(cleave_protobuf_int(&reader, &field, &number, e));
  ck_assert_int_eq(number, INT64_MIN);
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  ck_assert_uint_eq(field.number, 536870911);
  unit_ok(cleave_protobuf_int(&reader, &field, &number, e));
  ck_assert_int_eq(number, INT64_MAX);
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_ok(cleave_protobuf_float(&reader, &field, &real, e));
  ck_assert_float_eq(real, -0.5f);
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_ok(cleave_protobuf_bytes(&reader, &field, &bytes, e));
  ck_assert_uint_eq(bytes.size, 0);
  ck_assert(!cleave_protobuf_next(&reader, &field, NULL) && reader.status == CLEAVE_OK);
  ck_assert(!cleave_protobuf_next(&reader, &field, NULL) && reader.status == CLEAVE_OK);
  cleave_text_deinit(&out);
}

UNIT_TEST(nested_messages_have_the_shortest_length) {
  cleave_text_t out = {0};
  size_t outer = cleave_protobuf_begin(&out, 1);
  size_t inner = cleave_protobuf_begin(&out, 2);
  cleave_protobuf_put_int(&out, 3, 7);
  cleave_protobuf_end(&out, inner);
  cleave_protobuf_end(&out, outer);
  static const unsigned char expected[] = {0x0a, 0x04, 0x12, 0x02, 0x18, 0x07};
  ck_assert_uint_eq(out.length, sizeof expected);
  ck_assert_mem_eq(out.data, expected, sizeof expected);
  cleave_text_deinit(&out);
}

UNIT_TEST(a_long_message_has_a_long_length) {
  cleave_text_t out = {0};
  char block[300];
  memset(block, 'x', sizeof block);
  size_t mark = cleave_protobuf_begin(&out, 1);
  cleave_protobuf_put_bytes(&out, 2, block, sizeof block);
  cleave_protobuf_end(&out, mark);
  ck_assert_uint_eq(out.length, 1 + 2 + 1 + 2 + 300);
  cleave_protobuf_field_t field;
  unit_ok(first(out.data, out.length, &field, e));
  ck_assert_uint_eq(field.bytes.size, 303);
  cleave_text_deinit(&out);
}

UNIT_TEST(an_empty_message_ends_at_once) {
  cleave_protobuf_field_t field;
  unit_ok(first(NULL, 0, &field, e));
  ck_assert_uint_eq(field.number, 0);
}

UNIT_TEST(refuses_every_truncation) {
  cleave_protobuf_field_t field;
  const char *message = "protobuf: Test is malformed: it ends in the middle of a field";
  unit_fails(first("\x80", 1, &field, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(first("\x08", 1, &field, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(first("\x08\xff", 2, &field, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(first("\x0d\x00\x00\x00", 4, &field, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(first("\x09\x00\x00\x00\x00\x00\x00\x00", 8, &field, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(first("\x0a\x03yo", 4, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: a field of 3 bytes, but 2 are left");
  unit_fails(first("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: a field of 18446744073709551615 bytes, but 0 are left");
}

UNIT_TEST(refuses_numbers_beyond_64_bits) {
  cleave_protobuf_field_t field;
  const char *message = "protobuf: Test is malformed: a number is longer than 64 bits";
  unit_fails(first("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, &field, e), CLEAVE_ERROR_FORMAT,
             message);
  unit_fails(first("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, &field, e), CLEAVE_ERROR_FORMAT,
             message);
}

UNIT_TEST(refuses_groups_and_wrong_field_numbers) {
  cleave_protobuf_field_t field;
  unit_fails(first("\x0b\x0c", 2, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: field 1 has wire type 3");
  unit_fails(first("\x0e", 1, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: field 1 has wire type 6");
  unit_fails(first("\x00\x00", 2, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: field number 0");
  unit_fails(first("\xf8\xff\xff\xff\x1f\x00", 6, &field, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: field number 1073741823");
}

UNIT_TEST(tells_a_wrong_wire_type) {
  cleave_protobuf_t reader = reader_on("\x08\x01", 2);
  cleave_protobuf_field_t field;
  cleave_bytes_t bytes;
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_fails(cleave_protobuf_bytes(&reader, &field, &bytes, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: field 1 has wire type 0, expected 2");
}

UNIT_TEST(reads_packed_and_single_numbers_alike) {
  static const char bytes[] = "\x0a\x04\x01\xac\x02\x03\x08\x07";
  cleave_protobuf_t reader = reader_on(bytes, sizeof bytes - 1);
  cleave_protobuf_field_t field;
  uint64_t numbers[4] = {0};
  size_t count = 0;
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_ok(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_VARINT, &count, e));
  ck_assert_uint_eq(count, 3);
  unit_ok(cleave_protobuf_numbers(&reader, &field, CLEAVE_WIRE_VARINT, numbers, e));
  ck_assert_uint_eq(numbers[0], 1);
  ck_assert_uint_eq(numbers[1], 300);
  ck_assert_uint_eq(numbers[2], 3);
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_ok(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_VARINT, &count, e));
  ck_assert_uint_eq(count, 1);
  unit_ok(cleave_protobuf_numbers(&reader, &field, CLEAVE_WIRE_VARINT, numbers, e));
  ck_assert_uint_eq(numbers[0], 7);
}

UNIT_TEST(refuses_packed_numbers_that_are_cut) {
  cleave_protobuf_t reader = reader_on("\x0a\x03\x00\x00\x80", 5);
  cleave_protobuf_field_t field;
  uint64_t numbers[3];
  size_t count = 0;
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  unit_fails(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_FIXED32, &count, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: packed field 1 has 3 bytes, not a multiple of 4");
  unit_ok(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_VARINT, &count, e));
  ck_assert_uint_eq(count, 2);
  unit_fails(cleave_protobuf_numbers(&reader, &field, CLEAVE_WIRE_VARINT, numbers, e), CLEAVE_ERROR_FORMAT,
             "protobuf: Test is malformed: it ends in the middle of a field");
}

UNIT_TEST(refuses_messages_that_nest_too_deep) {
  cleave_protobuf_t reader = reader_on("\x0a\x00", 2);
  cleave_protobuf_field_t field;
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  for (int depth = 1; depth < CLEAVE_PROTOBUF_MAX_DEPTH; depth++) {
    cleave_protobuf_t inner;
    unit_ok(cleave_protobuf_enter(&reader, &field, "Test", &inner, e));
    reader.depth = inner.depth;
  }
  unit_fails(cleave_protobuf_enter(&reader, &field, "Test", &reader, e), CLEAVE_ERROR_LIMIT,
             "protobuf: messages nest more than 64 deep");
}

UNIT_SUITE("protobuf")
