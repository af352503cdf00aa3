// SPDX-License-Identifier: Apache-2.0
// What may happen to a file or a message between two programs, and what somebody may do to it.
#include "damage.h"

#include <string.h>

static uint64_t random_state = 88172645463325252U;

void damage_seed(uint64_t seed) {
  random_state = (seed + 1) * 0x9e3779b97f4a7c15U | 1;
}

size_t damage_random(size_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return bound == 0 ? 0 : (size_t)(random_state % bound);
}

static const char *const WORDS[] = {
    "0",     "-1",    "1",    "4294967295", "4294967296", "9223372036854775807",
    "1e300", "null",  "true", "\"\"",       "[]",         "{}",
    "[[[[",  "\"x\"", "0.5",  "\"ops\"",    "\"cpu\"",    "99999999999999999999"};

static size_t change_byte(char *text, size_t length) {
  if (length > 0) {
    text[damage_random(length)] = (char)damage_random(256);
  }
  return length;
}

static size_t remove_part(char *text, size_t length) {
  size_t at = damage_random(length);
  size_t count = damage_random(40);
  count = count > length - at ? length - at : count;
  memmove(text + at, text + at + count, length - at - count);
  return length - count;
}

static size_t insert_word(char *text, size_t length, size_t room, size_t at, size_t removed) {
  const char *word = WORDS[damage_random(sizeof WORDS / sizeof WORDS[0])];
  size_t count = strlen(word);
  if (length + count > room) {
    return length;
  }
  memmove(text + at + count, text + at + removed, length - at - removed);
  memcpy(text + at, word, count);
  return length - removed + count;
}

/* A number, text or word after a colon becomes another one. */
static size_t change_value(char *text, size_t length, size_t room) {
  size_t at = damage_random(length);
  while (at < length && text[at] != ':') {
    at++;
  }
  at++;
  size_t end = at;
  while (end < length && strchr(",]}\n", text[end]) == NULL) {
    end++;
  }
  return at >= length ? length : insert_word(text, length, room, at, end - at);
}

/* A line is there twice. */
static size_t repeat_line(char *text, size_t length, size_t room) {
  size_t at = damage_random(length);
  while (at > 0 && text[at - 1] != '\n') {
    at--;
  }
  size_t end = at;
  while (end < length && text[end] != '\n') {
    end++;
  }
  size_t count = end < length ? end + 1 - at : 0;
  if (count == 0 || length + count > room) {
    return length;
  }
  memmove(text + at + count, text + at, length - at);
  return length + count;
}

size_t damage_json(char *text, size_t length, size_t room) {
  switch (damage_random(6)) {
    case 0: return change_byte(text, length);
    case 1: return remove_part(text, length);
    case 2: return insert_word(text, length, room, damage_random(length + 1), 0);
    case 3: return repeat_line(text, length, room);
    default: return change_value(text, length, room);
  }
}

static size_t insert_noise(char *data, size_t size, size_t room) {
  size_t at = damage_random(size);
  size_t count = 1 + damage_random(24);
  if (size + count > room) {
    return size;
  }
  memmove(data + at + count, data + at, size - at);
  for (size_t k = 0; k < count; k++) {
    data[at + k] = (char)damage_random(256);
  }
  return size + count;
}

size_t damage_bytes(char *data, size_t size, size_t room) {
  static const unsigned char EXTREMES[] = {0, 1, 2, 0x7f, 0x80, 0xff};
  size_t at = damage_random(size);
  switch (damage_random(6)) {
    case 0: data[at] = (char)EXTREMES[damage_random(sizeof EXTREMES)]; return size;
    case 1: data[at] = (char)(data[at] + 1); return size;
    case 2: return remove_part(data, size);
    case 3: return insert_noise(data, size, room);
    default: return change_byte(data, size);
  }
}
