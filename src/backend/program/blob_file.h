// SPDX-License-Identifier: Apache-2.0
/*
 * One compiled region as a file:
 *
 *   bytes   what
 *   0-7     "CLVBLOB\n"
 *   8-11    version of this format: 1
 *   12-15   0x01020304, in the byte order of the machine
 *   16-23   length of the key
 *   24-31   length of the content
 *   32-47   digest (system/digest.h) of the 32 bytes before, the key, and the digest of the content
 *   48-     the key, a text; zeros up to a multiple of 64; the content, up to the end
 *
 * A file is written beside its place, under a name that begins with CLEAVE_BLOB_TEMPORARY, for the user's
 * eyes alone, and renamed: readers see whole files. Nothing that is found in the place of one is trusted.
 */
#ifndef CLEAVE_BACKEND_PROGRAM_BLOB_FILE_H
#define CLEAVE_BACKEND_PROGRAM_BLOB_FILE_H

#include <stdio.h>

#include "base/text.h"
#include "system/digest.h"

#define CLEAVE_BLOB_TEMPORARY ".writing-"

typedef struct cleave_blob {
  const void *data; /* aligned to 64 bytes */
  size_t bytes;
  void *memory; /* owned: the whole file */
} cleave_blob_t;

/* Reads a file that has this key, and at most `limit` bytes. *out_exists: there is something of this name;
 * if it cannot be used, the error says why. Without it, the error is empty. */
CLEAVE_MUST_USE cleave_status_t cleave_blob_read(const char *path, const char *key, uint64_t limit,
                                                 cleave_blob_t *out_blob, bool *out_exists,
                                                 cleave_error_t *error);
void cleave_blob_deinit(cleave_blob_t *blob);

/* The key of a file, without a look at its content; free with cleave_free. */
CLEAVE_MUST_USE cleave_status_t cleave_blob_read_key(const char *path, char **out_key, cleave_error_t *error);

/* A file on its way. */
typedef struct cleave_blob_writer {
  FILE *file;
  char *temporary;
  const char *key; /* borrowed */
  uint64_t limit;  /* of the whole file */
  uint64_t start;  /* of the content */
  uint64_t content;
  cleave_digest_state_t digest; /* of the content */
  cleave_error_t error;         /* the first one: nothing is written after it */
} cleave_blob_writer_t;

/* Begins a file in `folder`. A failure is in writer->error, and comes out where the writer is ended. */
void cleave_blob_writer_start(cleave_blob_writer_t *writer, const char *folder, const char *key,
                              uint64_t limit);
/* For `save` of backends; `context` is the writer. */
cleave_status_t cleave_blob_writer_write(void *context, const void *data, size_t bytes);
/* Gives the file its name, in the place of what is there; or, for `path` NULL and after a failure, removes
 * it. *out_bytes is the size of the file. */
CLEAVE_MUST_USE cleave_status_t cleave_blob_writer_end(cleave_blob_writer_t *writer, const char *path,
                                                       uint64_t *out_bytes, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_PROGRAM_BLOB_FILE_H */
