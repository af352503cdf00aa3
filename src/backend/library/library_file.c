// SPDX-License-Identifier: Apache-2.0
// Libraries as files that nobody has loaded. A wrong one is found out from its headers, before the loader of
// the system sees it: its messages name neither what was expected nor what was found, and it maps segments
// that a copy which was cut off does not have, whose first use is a SIGBUS.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/library/library.h"

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { HOST_MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { HOST_MACHINE = EM_PPC64 };
#elif defined(__i386__)
enum { HOST_MACHINE = EM_386 };
#elif defined(__arm__)
enum { HOST_MACHINE = EM_ARM };
#else
enum { HOST_MACHINE = EM_NONE };
#endif

static const char *machine_name(unsigned machine) {
  switch (machine) {
    case EM_386: return "x86";
    case EM_X86_64: return "x86-64";
    case EM_ARM: return "32-bit ARM";
    case EM_AARCH64: return "AArch64";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "64-bit PowerPC";
    default: return "another machine";
  }
}

/* Reads it all, or nothing that counts. */
static bool read_at(int file, void *data, size_t bytes, uint64_t at) {
  size_t done = 0;
  while (done < bytes && at <= INT64_MAX - bytes) {
    ssize_t got = pread(file, (char *)data + done, bytes - done, (off_t)(at + done));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    done += got > 0 ? (size_t)got : 0;
  }
  return done == bytes;
}

/* A regular file to read: neither a pipe nor a terminal can make the caller wait. Negative: errno says why.
 */
static int open_regular(const char *path, uint64_t *out_size) {
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
    (void)close(file);
    errno = 0;
    return -1;
  }
  *out_size = file < 0 ? 0 : (uint64_t)status.st_size;
  return file;
}

/* ---- checking ---- */

static cleave_status_t check_head(int file, const char *path, ElfW(Ehdr) * out_head, cleave_error_t *error) {
  unsigned char head[sizeof(ElfW(Ehdr))] = {0};
  if (!read_at(file, head, sizeof head, 0) || memcmp(head, ELFMAG, SELFMAG) != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "%s: not a shared library: expected an ELF file",
                            path);
  }
  // e_type and e_machine lie at the same place in files of 32 and 64 bits.
  bool is_little = head[EI_DATA] == ELFDATA2LSB;
  unsigned type = is_little ? (unsigned)(head[16] | head[17] << 8) : (unsigned)(head[16] << 8 | head[17]);
  unsigned machine = is_little ? (unsigned)(head[18] | head[19] << 8) : (unsigned)(head[18] << 8 | head[19]);
  bool is_wide = head[EI_CLASS] == ELFCLASS64;
  if ((HOST_MACHINE != EM_NONE && machine != HOST_MACHINE) || is_wide != (sizeof(void *) == 8)) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "%s: built for %s (%d bits), this is %s", path,
                            machine_name(machine), is_wide ? 64 : 32, machine_name(HOST_MACHINE));
  }
  memcpy(out_head, head, sizeof head);
  if (type != ET_DYN || out_head->e_phentsize != sizeof(ElfW(Phdr))) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "%s: an ELF file, but not a shared library", path);
  }
  return CLEAVE_OK;
}

/* All that is mapped lies in the file. */
static cleave_status_t check_segments(int file, uint64_t size, const char *path, const ElfW(Ehdr) * head,
                                      cleave_error_t *error) {
  uint64_t needed = 0;
  for (unsigned k = 0; k < head->e_phnum; k++) {
    ElfW(Phdr) segment;
    uint64_t at = head->e_phoff < INT64_MAX / 2 ? head->e_phoff + (uint64_t)k * sizeof segment : INT64_MAX;
    if (!read_at(file, &segment, sizeof segment, at)) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "%s: cut off: a file of %llu byte%s without all of its program headers", path,
                              (unsigned long long)size, CLEAVE_PLURAL(size));
    }
    uint64_t end = segment.p_offset + (uint64_t)segment.p_filesz;
    end = end < segment.p_filesz ? UINT64_MAX : end;
    needed = segment.p_type == PT_LOAD && end > needed ? end : needed;
  }
  return needed <= size ? CLEAVE_OK
                        : cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                                           "%s: cut off: expected at least %llu bytes, found %llu", path,
                                           (unsigned long long)needed, (unsigned long long)size);
}

cleave_status_t cleave_library_check_file(const char *path, cleave_error_t *error) {
  uint64_t size = 0;
  int file = open_regular(path, &size);
  if (file < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: %s", path,
                            errno != 0 ? strerror(errno) : "cannot read: not a regular file");
  }
  ElfW(Ehdr) head = {0};
  cleave_status_t status = check_head(file, path, &head, error);
  CLEAVE_THEN(status, check_segments(file, size, path, &head, error));
  (void)close(file);
  return status;
}

/* ---- its digest ---- */

bool cleave_library_digest_notes(cleave_digest_state_t *state, const unsigned char *notes, size_t bytes,
                                 size_t align) {
  static const char OWNER[] = "GNU";
  enum { SHORTEST = 16 };
  size_t mask = align == 8 ? 7 : 3;
  for (size_t at = 0; bytes - at >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) note;
    memcpy(&note, notes + at, sizeof note);
    at += sizeof note;
    size_t name = ((size_t)note.n_namesz + mask) & ~mask;
    size_t content = ((size_t)note.n_descsz + mask) & ~mask;
    if (name > bytes - at || note.n_descsz > bytes - at - name) {
      return false;
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof OWNER && note.n_descsz >= SHORTEST &&
        memcmp(notes + at, OWNER, sizeof OWNER) == 0) {
      cleave_digest_add(state, notes + at + name, note.n_descsz);
      return true;
    }
    at += name + (content < bytes - at - name ? content : bytes - at - name);
  }
  return false;
}

/* The build ID in a segment of notes; false if there is none. */
static bool digest_notes(int file, const ElfW(Phdr) * segment, cleave_digest_state_t *state) {
  unsigned char notes[1024];
  return segment->p_type == PT_NOTE && segment->p_filesz <= sizeof notes &&
         segment->p_offset <= INT64_MAX / 2 && read_at(file, notes, segment->p_filesz, segment->p_offset) &&
         cleave_library_digest_notes(state, notes, segment->p_filesz, segment->p_align);
}

static bool digest_part(int file, const ElfW(Phdr) * segment, cleave_digest_state_t *state) {
  unsigned char piece[8192];
  for (uint64_t at = 0; at < segment->p_filesz; at += sizeof piece) {
    uint64_t left = segment->p_filesz - at;
    size_t count = left < sizeof piece ? (size_t)left : sizeof piece;
    if (!read_at(file, piece, count, segment->p_offset + at)) {
      return false;
    }
    cleave_digest_add(state, piece, count);
  }
  return true;
}

static bool read_segment(int file, const ElfW(Ehdr) * head, unsigned index, ElfW(Phdr) * out_segment) {
  return head->e_phoff <= INT64_MAX / 2 && read_at(file, out_segment, sizeof *out_segment,
                                                   head->e_phoff + (uint64_t)index * sizeof *out_segment);
}

/* All segments together are no longer than the file. */
static bool digest_file(int file, uint64_t size, cleave_digest_state_t *state) {
  ElfW(Ehdr) head;
  if (!read_at(file, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      head.e_phentsize != sizeof(ElfW(Phdr))) {
    return false;
  }
  uint64_t left = size;
  for (unsigned k = 0; k < head.e_phnum; k++) {
    ElfW(Phdr) segment;
    if (!read_segment(file, &head, k, &segment)) {
      return false;
    }
    if (digest_notes(file, &segment, state)) {
      return true;
    }
  }
  for (unsigned k = 0; k < head.e_phnum; k++) {
    ElfW(Phdr) segment;
    if (!read_segment(file, &head, k, &segment)) {
      return false;
    }
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0 || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    if (segment.p_filesz > left || segment.p_offset > INT64_MAX / 2 || !digest_part(file, &segment, state)) {
      return false;
    }
    left -= segment.p_filesz;
  }
  return true;
}

cleave_digest_t cleave_library_digest_file(const char *path) {
  cleave_digest_state_t state;
  uint64_t size = 0;
  int file = open_regular(path, &size);
  cleave_digest_start(&state);
  bool is_read = file >= 0 && digest_file(file, size, &state);
  if (file >= 0) {
    (void)close(file);
  }
  return is_read ? cleave_digest_end(&state) : (cleave_digest_t){{0}};
}
