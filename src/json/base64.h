// SPDX-License-Identifier: Apache-2.0
/* Bytes as text: base64 of RFC 4648, with padding and without line breaks. */
#ifndef CLEAVE_JSON_BASE64_H
#define CLEAVE_JSON_BASE64_H

#include "base/memory.h"

/* Characters that `size` bytes become, without a NUL; SIZE_MAX if that overflows. */
size_t cleave_base64_length(size_t size);
/* Writes that many characters. */
void cleave_base64_encode(const void *data, size_t size, char *out_text);

/* Reads exactly `size` bytes out of a text of `length` characters; false if it is not the text of so many
 * bytes. */
bool cleave_base64_decode(const char *text, size_t length, void *out_data, size_t size);

#endif /* CLEAVE_JSON_BASE64_H */
