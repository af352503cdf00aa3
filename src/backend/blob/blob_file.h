// SPDX-License-Identifier: Apache-2.0
/*
 * One compiled region as a file:
 *
 *   bytes   what
 *   0-7     "CLVBLOB\n"
 *   8-11    version of this format: 2
 *   12-15   0x01020304, in the byte order of the machine
 *   16-23   length of the key
 *   24-31   length of the content
 *   32-47   digest (system/digest.h) of the 32 bytes before, the key, and the digests of the content's pieces
 *           of CLEAVE_BLOB_PIECE bytes
 *   48-     the key, a text; zeros up to a multiple of 64; the content, up to the end
 *
 * A file is written beside its place, under a name that begins with CLEAVE_BLOB_TEMPORARY, for the user's
 * eyes alone, and renamed: readers see whole files. Nothing that is found in the place of one is trusted.
 */
#ifndef CLEAVE_BACKEND_BLOB_BLOB_FILE_H
#define CLEAVE_BACKEND_BLOB_BLOB_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "backend/blob/blob_own.h"
#include "base/text.h"
#include "system/digest.h"

#define CLEAVE_BLOB_PIECE (1U << 20)

typedef struct cleave_blob {
  const void *data; /* aligned to 64 bytes; mapped, so that processes share it */
  size_t bytes;
  void *memory; /* owned: the whole file, `size` bytes */
  size_t size;
  bool is_known; /* to be whole, so that nobody looked through it (blob_seen.h) */
} cleave_blob_t;

/* How a file is read. */
typedef struct cleave_blob_reading {
  const char *key;
  uint64_t limit;  /* bytes, at most */
  int32_t threads; /* that look through the content, unless that is known to be whole (blob_seen.h) */
} cleave_blob_reading_t;

/* Maps a file that has this key. *out_exists: there is something of this name; if it cannot be used, the
 * error says why. Without it, the error is empty. */
CLEAVE_STATUS cleave_blob_read(const char *path, const cleave_blob_reading_t *reading,
                               cleave_blob_t *out_blob, bool *out_exists, cleave_error_t *error);
void cleave_blob_deinit(cleave_blob_t *blob);

/* The key of a file, without a look at its content; free with cleave_free. */
CLEAVE_STATUS cleave_blob_read_key(const char *path, char **out_key, cleave_error_t *error);

/* A file on its way. */
typedef struct cleave_blob_writer {
  FILE *file;
  char *buffer; /* of the file; NULL: the system's */
  char *temporary;
  const char *key; /* borrowed */
  uint64_t limit;  /* of the whole file */
  uint64_t start;  /* of the content */
  uint64_t content;
  cleave_digest_state_t piece;  /* of the content's last piece */
  cleave_digest_state_t digest; /* of the digests of the pieces before it */
  cleave_error_t error;         /* the first one: nothing is written after it */
} cleave_blob_writer_t;

/* Begins a file in `folder`. A failure is in writer->error, and comes out where the writer is ended. */
void cleave_blob_writer_start(cleave_blob_writer_t *writer, const char *folder, const char *key,
                              uint64_t limit);
/* For `save` of backends; `context` is the writer. */
cleave_status_t cleave_blob_writer_write(void *context, const void *data, size_t bytes);
/* Gives the file its name, in the place of what is there; or, for `path` NULL and after a failure, removes
 * it. *out_bytes is the size of the file. */
CLEAVE_STATUS cleave_blob_writer_end(cleave_blob_writer_t *writer, const char *path, uint64_t *out_bytes,
                                     cleave_error_t *error);

#endif /* CLEAVE_BACKEND_BLOB_BLOB_FILE_H */
