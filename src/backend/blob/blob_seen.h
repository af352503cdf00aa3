// SPDX-License-Identifier: Apache-2.0
/*
 * Large files whose content was looked through since the machine started, and that nobody has written to
 * since: they need no second look. Beside such a file lies a small one of its name with
 * CLEAVE_BLOB_SEEN_EXTENSION behind it, which holds what the file was known by when it was looked through:
 * its digest, device, inode, size and times, and the machine's boot. A file that was changed in the last two
 * seconds before it was opened gets none, because it may change again within a tick of the clock. The time of
 * that small file is when the large one was used last.
 */
#ifndef CLEAVE_BACKEND_BLOB_BLOB_SEEN_H
#define CLEAVE_BACKEND_BLOB_BLOB_SEEN_H

#include "system/digest.h"
#include "system/file.h"

#define CLEAVE_BLOB_SEEN_EXTENSION ".seen"
enum { CLEAVE_BLOB_SEEN_BYTES = 4 << 20 }; /* smaller files are looked through each time */

/* The identity of a file; its bytes are the content of the small file. */
typedef struct cleave_blob_seen {
  char magic[8];
  cleave_digest_t digest;
  cleave_file_identity_t identity;
  char boot[40];
} cleave_blob_seen_t;

/* Describes an open file with this digest; false if it cannot be known for sure. */
bool cleave_blob_seen_describe(int descriptor, cleave_digest_t digest, cleave_blob_seen_t *out_seen);

/* Was the file at `path` looked through as it is described here? If so, it counts as used now. */
bool cleave_blob_seen_find(const char *path, const cleave_blob_seen_t *seen);

/* Keeps that it was looked through. False without room for it, or leave to write it. */
bool cleave_blob_seen_write(const char *path, const cleave_blob_seen_t *seen);

#endif /* CLEAVE_BACKEND_BLOB_BLOB_SEEN_H */
