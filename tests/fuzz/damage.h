// SPDX-License-Identifier: Apache-2.0
/* Texts that are broken on purpose, for tests and fuzzers. The generator is seeded, so that a failure
 * comes again. */
#ifndef CLEAVE_TESTS_DAMAGE_H
#define CLEAVE_TESTS_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

/* The numbers that follow depend on `seed` alone. */
void damage_seed(uint64_t seed);
/* 0 to bound - 1; 0 for a bound of 0. */
size_t damage_random(size_t bound);

/* Changes, removes or inserts bytes, replaces a number or text, or repeats a line, in a JSON text with room
 * for `room` bytes. Returns the new length. */
size_t damage_json(char *text, size_t length, size_t room);
/* Changes, removes or inserts bytes in whatever is not empty. */
size_t damage_bytes(char *data, size_t size, size_t room);

#endif /* CLEAVE_TESTS_DAMAGE_H */
