// SPDX-License-Identifier: Apache-2.0
// Base64: the examples of RFC 4648, all bytes there and back, and texts that are none.
#include "json/base64.h"
#include "unit.h"

static void check(const char *bytes, const char *text) {
  char encoded[64] = "";
  unsigned char decoded[64];
  size_t size = strlen(bytes);
  ck_assert_uint_eq(cleave_base64_length(size), strlen(text));
  cleave_base64_encode(bytes, size, encoded);
  ck_assert_str_eq(encoded, text);
  ck_assert(cleave_base64_decode(text, strlen(text), decoded, size));
  ck_assert_int_eq(memcmp(decoded, bytes, size), 0);
}

UNIT_TEST(writes_the_examples_of_the_standard) {
  check("", "");
  check("f", "Zg==");
  check("fo", "Zm8=");
  check("foo", "Zm9v");
  check("foob", "Zm9vYg==");
  check("fooba", "Zm9vYmE=");
  check("foobar", "Zm9vYmFy");
}

UNIT_TEST(all_bytes_come_back) {
  unsigned char bytes[256];
  unsigned char back[256];
  char text[344];
  for (size_t size = 0; size <= sizeof bytes; size++) {
    for (size_t k = 0; k < size; k++) {
      bytes[k] = (unsigned char)(255 - k);
    }
    size_t length = cleave_base64_length(size);
    cleave_base64_encode(bytes, size, text);
    memset(back, 0, sizeof back);
    ck_assert(cleave_base64_decode(text, length, back, size));
    ck_assert_int_eq(memcmp(bytes, back, size), 0);
  }
}

UNIT_TEST(refuses_what_it_does_not_write) {
  unsigned char out[8];
  ck_assert(!cleave_base64_decode("Zg==", 4, out, 2));
  ck_assert(!cleave_base64_decode("Zg=", 3, out, 1));
  ck_assert(!cleave_base64_decode("Zh==", 4, out, 1));  // bits that are not used
  ck_assert(!cleave_base64_decode("Zg=a", 4, out, 1));
  ck_assert(!cleave_base64_decode("Zm-v", 4, out, 3));
  ck_assert(!cleave_base64_decode("Zm 9", 4, out, 3));
  ck_assert(!cleave_base64_decode("=m9v", 4, out, 3));
  ck_assert_uint_eq(cleave_base64_length(SIZE_MAX), SIZE_MAX);
}

UNIT_SUITE("base64")
