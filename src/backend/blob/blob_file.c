// SPDX-License-Identifier: Apache-2.0
// Sizes are checked against the file before anything is allocated or followed.
#include "backend/blob/blob_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/blob/blob_seen.h"
#include "system/threads.h"

/* Files are written in pieces of this size: file systems then keep them in memory in large pages, which a
 * process maps, and lets go of, in a twentieth of the time that small ones take. */
enum { LARGE_PAGE = 2 << 20 };

enum { FORMAT_VERSION = 2, BYTE_ORDER_MARK = 0x01020304, ALIGNMENT = 64, MAX_KEY = 1 << 20 };

static const char MAGIC[8] = {'C', 'L', 'V', 'B', 'L', 'O', 'B', '\n'};

typedef struct header {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t key_length;
  uint64_t content_length;
  cleave_digest_t digest;
} header_t;

enum { HEADER_BYTES = 48, HEADER_DIGESTED = 32 };
_Static_assert(sizeof(header_t) == HEADER_BYTES, "the header has no gaps");

static uint64_t content_start(uint64_t key_length) {
  return (HEADER_BYTES + key_length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static cleave_digest_t digest_file(const header_t *header, const char *key, cleave_digest_t content) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  cleave_digest_add(&state, header, HEADER_DIGESTED);
  cleave_digest_add(&state, key, (size_t)header->key_length);
  cleave_digest_add(&state, &content, sizeof content);
  return cleave_digest_end(&state);
}

/* ---- reading ---- */

static cleave_status_t fail(cleave_error_t *error, const char *reason) {
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "%s", reason);
}

static cleave_status_t check_header(const header_t *header, uint64_t size, cleave_error_t *error) {
  if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0) {
    return fail(error, "it is not a compiled region");
  }
  if (header->byte_order != BYTE_ORDER_MARK) {
    return fail(error, "it is of a machine with another byte order");
  }
  if (header->version != FORMAT_VERSION) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "format version %u, expected %u",
                            (unsigned)header->version, (unsigned)FORMAT_VERSION);
  }
  if (header->key_length > MAX_KEY || content_start(header->key_length) > size ||
      header->content_length != size - content_start(header->key_length)) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "%" PRIu64 " byte%s, which is not what it says it has", size,
                            CLEAVE_PLURAL(size));
  }
  return CLEAVE_OK;
}

typedef struct pieces {
  const char *content;
  uint64_t length;
  cleave_digest_t *digests;
} pieces_t;

static void digest_pieces(void *context, int64_t begin, int64_t end) {
  const pieces_t *pieces = context;
  for (int64_t k = begin; k < end; k++) {
    uint64_t start = (uint64_t)k * CLEAVE_BLOB_PIECE;
    uint64_t rest = pieces->length - start;
    pieces->digests[k] = cleave_digest_bytes(pieces->content + start,
                                             (size_t)(rest < CLEAVE_BLOB_PIECE ? rest : CLEAVE_BLOB_PIECE));
  }
}

/* The digest of the content, and with it all of its pages: by several threads. */
static cleave_status_t digest_content(const char *content, uint64_t length, int32_t threads,
                                      cleave_digest_t *out_digest, cleave_error_t *error) {
  uint64_t count = length / CLEAVE_BLOB_PIECE + (length % CLEAVE_BLOB_PIECE != 0 ? 1 : 0);
  pieces_t pieces = {content, length, cleave_allocate((size_t)count + 1, sizeof(cleave_digest_t))};
  CLEAVE_TRY_MEMORY(pieces.digests, error);
  cleave_parallel_for(threads, (int64_t)count, 4, digest_pieces, &pieces);
  *out_digest = cleave_digest_bytes(pieces.digests, (size_t)count * sizeof *pieces.digests);
  cleave_free(pieces.digests);
  return CLEAVE_OK;
}

static cleave_status_t check_content(const char *file, const header_t *header, int32_t threads,
                                     cleave_error_t *error) {
  cleave_digest_t content;
  const char *found = file + HEADER_BYTES;
  uint64_t start = content_start(header->key_length);
  CLEAVE_TRY(digest_content(file + start, header->content_length, threads, &content, error));
  bool is_whole = cleave_digest_equal(digest_file(header, found, content), header->digest);
  for (uint64_t k = HEADER_BYTES + header->key_length; k < start; k++) {
    is_whole = is_whole && file[k] == 0;
  }
  return is_whole ? CLEAVE_OK : fail(error, "its content was changed after it was written");
}

/* It was used now. If it may be known again by `seen`, that is kept; NULL: it may not. */
static void note_use(const char *path, int descriptor, const cleave_blob_seen_t *seen) {
  if (seen == NULL || !cleave_blob_seen_write(path, seen)) {
    (void)futimens(descriptor, NULL);
  }
}

/* Checks the file that is mapped at `blob->memory`. */
static cleave_status_t check_file(const char *path, int descriptor, const cleave_blob_reading_t *reading,
                                  cleave_blob_t *blob, cleave_error_t *error) {
  const char *file = blob->memory;
  header_t header;
  cleave_blob_seen_t seen;
  memcpy(&header, file, sizeof header);
  CLEAVE_TRY(check_header(&header, blob->size, error));
  bool has_key = header.key_length == strlen(reading->key) &&
                 memcmp(file + HEADER_BYTES, reading->key, (size_t)header.key_length) == 0;
  bool is_known =
      blob->size >= CLEAVE_BLOB_SEEN_BYTES && cleave_blob_seen_describe(descriptor, header.digest, &seen);
  if (has_key && is_known && cleave_blob_seen_find(path, &seen)) {
    blob->is_known = true;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(check_content(file, &header, reading->threads, error));
  if (!has_key) {
    return fail(error, "it is another region");
  }
  note_use(path, descriptor, is_known ? &seen : NULL);
  return CLEAVE_OK;
}

cleave_status_t cleave_blob_read(const char *path, const cleave_blob_reading_t *reading,
                                 cleave_blob_t *out_blob, bool *out_exists, cleave_error_t *error) {
  int descriptor = -1;
  uint64_t size = 0;
  cleave_blob_t blob = {0};
  cleave_status_t status = CLEAVE_OK;
  *out_blob = (cleave_blob_t){0};
  CLEAVE_TRY(cleave_blob_open_own(path, &descriptor, &size, out_exists, error));
  if (size > reading->limit || size > SIZE_MAX / 2) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                                        "%" PRIu64 " byte%s, expected at most %" PRIu64, size,
                                        CLEAVE_PLURAL(size), reading->limit));
  }
  if (size < HEADER_BYTES) {
    CLEAVE_TRY_CLEANUP(fail(error, "it is truncated"));
  }
  void *mapped = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_IO, "cannot map: %s", strerror(errno)));
  }
  blob = (cleave_blob_t){.memory = mapped, .size = (size_t)size};
#ifdef MADV_HUGEPAGE
  if (size >= LARGE_PAGE) {
    (void)madvise(mapped, (size_t)size, MADV_HUGEPAGE); /* helps if it is read from the disk */
  }
#endif
  CLEAVE_TRY_CLEANUP(check_file(path, descriptor, reading, &blob, error));
  uint64_t start = content_start(strlen(reading->key));
  *out_blob = blob;
  out_blob->data = (const char *)mapped + start;
  out_blob->bytes = (size_t)(size - start);
  blob = (cleave_blob_t){0};
cleanup:
  cleave_blob_deinit(&blob);
  (void)close(descriptor);
  return status;
}

void cleave_blob_deinit(cleave_blob_t *blob) {
  if (blob->memory != NULL) {
    (void)munmap(blob->memory, blob->size);
  }
  *blob = (cleave_blob_t){0};
}

cleave_status_t cleave_blob_read_key(const char *path, char **out_key, cleave_error_t *error) {
  int descriptor = -1;
  uint64_t size = 0;
  bool exists = false;
  char *key = NULL;
  header_t header;
  cleave_status_t status = CLEAVE_OK;
  *out_key = NULL;
  CLEAVE_TRY(cleave_blob_open_own(path, &descriptor, &size, &exists, error));
  CLEAVE_TRY_CLEANUP(cleave_blob_read_all(descriptor, &header, sizeof header, error));
  CLEAVE_TRY_CLEANUP(check_header(&header, size, error));
  key = cleave_allocate_zeroed((size_t)header.key_length + 1, 1);
  CLEAVE_TRY_MEMORY_CLEANUP(key, error);
  CLEAVE_TRY_CLEANUP(cleave_blob_read_all(descriptor, key, (size_t)header.key_length, error));
  *out_key = key;
  key = NULL;
cleanup:
  cleave_free(key);
  (void)close(descriptor);
  return status;
}

/* ---- writing ---- */

static cleave_status_t write_piece(cleave_blob_writer_t *writer, const void *data, size_t bytes,
                                   uint64_t end) {
  if (end > writer->limit) {
    return cleave_error_set(&writer->error, CLEAVE_ERROR_LIMIT, "it is larger than %" PRIu64 " bytes",
                            writer->limit);
  }
  if (!cleave_blob_fits_process(end)) {
    return cleave_error_set(&writer->error, CLEAVE_ERROR_IO,
                            "the file would exceed the file size limit of the process");
  }
  if (bytes > 0 && fwrite(data, 1, bytes, writer->file) != bytes) {
    return cleave_error_set(&writer->error, CLEAVE_ERROR_IO, "%s", strerror(errno));
  }
  return CLEAVE_OK;
}

void cleave_blob_writer_start(cleave_blob_writer_t *writer, const char *folder, const char *key,
                              uint64_t limit) {
  static const char ZEROS[HEADER_BYTES + ALIGNMENT] = {0};
  size_t length = strlen(key);
  *writer = (cleave_blob_writer_t){.temporary = cleave_blob_temporary_path(folder),
                                   .key = key,
                                   .limit = limit,
                                   .start = content_start(length),
                                   .error = CLEAVE_ERROR_INIT};
  cleave_digest_start(&writer->piece);
  cleave_digest_start(&writer->digest);
  cleave_status_t status = CLEAVE_OK;
  if (writer->temporary == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(&writer->error));
  }
  int descriptor = open(writer->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  writer->file = descriptor < 0 ? NULL : fdopen(descriptor, "w+");
  if (writer->file == NULL) {
    int reason = errno;
    if (descriptor >= 0) {
      (void)close(descriptor);
    }
    CLEAVE_TRY_CLEANUP(cleave_error_set(&writer->error, CLEAVE_ERROR_IO, "%s", strerror(reason)));
  }
  writer->buffer = cleave_allocate(LARGE_PAGE, 1);
  if (writer->buffer != NULL) {
    (void)setvbuf(writer->file, writer->buffer, _IOFBF, LARGE_PAGE);
  }
  CLEAVE_TRY_CLEANUP(write_piece(writer, ZEROS, HEADER_BYTES, writer->start));
  CLEAVE_TRY_CLEANUP(write_piece(writer, key, length, writer->start));
  CLEAVE_TRY_CLEANUP(
      write_piece(writer, ZEROS, (size_t)writer->start - HEADER_BYTES - length, writer->start));
cleanup:
  (void)status; /* in writer->error */
}

static void end_piece(cleave_blob_writer_t *writer) {
  cleave_digest_t digest = cleave_digest_end(&writer->piece);
  cleave_digest_add(&writer->digest, &digest, sizeof digest);
  cleave_digest_start(&writer->piece);
}

static void add_content(cleave_blob_writer_t *writer, const char *data, size_t bytes) {
  while (bytes > 0) {
    size_t room = CLEAVE_BLOB_PIECE - (size_t)(writer->content % CLEAVE_BLOB_PIECE);
    size_t count = bytes < room ? bytes : room;
    cleave_digest_add(&writer->piece, data, count);
    writer->content += count;
    data += count;
    bytes -= count;
    if (count == room) {
      end_piece(writer);
    }
  }
}

cleave_status_t cleave_blob_writer_write(void *context, const void *data, size_t bytes) {
  cleave_blob_writer_t *writer = context;
  uint64_t end = 0;
  if (writer->error.status != CLEAVE_OK || bytes == 0) {
    return writer->error.status;
  }
  if (data == NULL || __builtin_add_overflow(writer->start + writer->content, bytes, &end)) {
    return cleave_error_set(&writer->error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the backend gave %zu byte%s at a NULL pointer", bytes, CLEAVE_PLURAL(bytes));
  }
  CLEAVE_TRY(write_piece(writer, data, bytes, end));
  add_content(writer, data, bytes);
  return CLEAVE_OK;
}

static cleave_status_t write_header(cleave_blob_writer_t *writer) {
  header_t header = {.version = FORMAT_VERSION,
                     .byte_order = BYTE_ORDER_MARK,
                     .key_length = strlen(writer->key),
                     .content_length = writer->content};
  memcpy(header.magic, MAGIC, sizeof MAGIC);
  if (writer->content % CLEAVE_BLOB_PIECE != 0) {
    end_piece(writer);
  }
  header.digest = digest_file(&header, writer->key, cleave_digest_end(&writer->digest));
  if (fseek(writer->file, 0, SEEK_SET) != 0) {
    return cleave_error_set(&writer->error, CLEAVE_ERROR_IO, "%s", strerror(errno));
  }
  return write_piece(writer, &header, sizeof header, writer->start);
}

cleave_status_t cleave_blob_writer_end(cleave_blob_writer_t *writer, const char *path, uint64_t *out_bytes,
                                       cleave_error_t *error) {
  bool is_kept = path != NULL && writer->error.status == CLEAVE_OK && write_header(writer) == CLEAVE_OK;
  if (writer->file != NULL && fclose(writer->file) != 0) {
    (void)cleave_error_set(&writer->error, CLEAVE_ERROR_IO, "%s", strerror(errno));
  }
  if (is_kept && writer->error.status == CLEAVE_OK && rename(writer->temporary, path) != 0) {
    (void)cleave_error_set(&writer->error, CLEAVE_ERROR_IO, "%s", strerror(errno));
  }
  if ((!is_kept || writer->error.status != CLEAVE_OK) && writer->temporary != NULL) {
    (void)unlink(writer->temporary);
  }
  *out_bytes = writer->start + writer->content;
  cleave_free(writer->temporary);
  cleave_free(writer->buffer);
  writer->temporary = NULL;
  writer->buffer = NULL;
  return writer->error.status == CLEAVE_OK
             ? CLEAVE_OK
             : cleave_error_set(error, writer->error.status, "%s", writer->error.message);
}
