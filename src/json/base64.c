// SPDX-License-Identifier: Apache-2.0
// Three bytes are four characters; what is left of the last three is filled with '='. Reading takes only what
// writing gives: no white space, no other alphabet, no bits that are not used.
#include "json/base64.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t cleave_base64_length(size_t size) {
  return size > SIZE_MAX / 4 * 3 - 2 ? SIZE_MAX : (size + 2) / 3 * 4;
}

void cleave_base64_encode(const void *data, size_t size, char *out_text) {
  const unsigned char *bytes = data;
  for (size_t k = 0; k < size; k += 3) {
    size_t count = size - k < 3 ? size - k : 3;
    uint32_t bits = (uint32_t)bytes[k] << 16;
    bits |= count > 1 ? (uint32_t)bytes[k + 1] << 8 : 0;
    bits |= count > 2 ? bytes[k + 2] : 0;
    for (size_t c = 0; c < 4; c++) {
      *out_text++ = c <= count ? ALPHABET[bits >> (18 - 6 * c) & 63] : '=';
    }
  }
}

static int value_of(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool cleave_base64_decode(const char *text, size_t length, void *out_data, size_t size) {
  unsigned char *bytes = out_data;
  if (length != cleave_base64_length(size)) {
    return false;
  }
  for (size_t k = 0; k < size; k += 3, text += 4) {
    size_t count = size - k < 3 ? size - k : 3;
    uint32_t bits = 0;
    for (size_t c = 0; c < 4; c++) {
      int value = c <= count ? value_of(text[c]) : text[c] == '=' ? 0 : -1;
      if (value < 0) {
        return false;
      }
      bits |= (uint32_t)value << (18 - 6 * c);
    }
    if ((bits & ((UINT32_C(1) << (8 * (3 - count))) - 1)) != 0) {
      return false;
    }
    for (size_t b = 0; b < count; b++) {
      bytes[k + b] = (unsigned char)(bits >> (16 - 8 * b) & 255);
    }
  }
  return true;
}
