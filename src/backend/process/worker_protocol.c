// SPDX-License-Identifier: Apache-2.0
// Frames over a socket that may be slow, closed or full of nonsense, and the places of buffers in memory that
// two processes share.
#include "backend/process/worker_protocol.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- buffers ---- */

enum { ALIGNMENT = 64 };

static size_t round_to(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

bool cleave_area_place(const size_t *bytes, uint32_t count, cleave_area_part_t *out_parts,
                       size_t *out_total) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t total = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (bytes[k] > SIZE_MAX / 4) {
      return false;
    }
    size_t used = round_to(bytes[k], ALIGNMENT);
    size_t span = used == 0 ? page : round_to(used, page);
    out_parts[k] =
        (cleave_area_part_t){.offset = total, .span = span, .lead = span - used, .bytes = bytes[k]};
    if (!cleave_size_add(total, span, &total) || total > SIZE_MAX / 4) {
      return false;
    }
  }
  *out_total = total;
  return true;
}

void cleave_area_mark(const cleave_area_part_t *part, unsigned char *pages) {
  memset(pages, CLEAVE_AREA_MARK, part->lead);
  size_t end = part->lead + part->bytes;
  memset(pages + end, CLEAVE_AREA_MARK, part->span - end);
}

/* Returns how many bytes lie from the first mark that is gone in [from, to) to the last. */
static size_t check_marks(const unsigned char *pages, size_t from, size_t to) {
  while (from < to && pages[from] == CLEAVE_AREA_MARK) {
    from++;
  }
  while (to > from && pages[to - 1] == CLEAVE_AREA_MARK) {
    to--;
  }
  return to - from;
}

size_t cleave_area_check(const cleave_area_part_t *part, const unsigned char *pages, bool *out_behind) {
  size_t behind = check_marks(pages, part->lead + part->bytes, part->span);
  *out_behind = behind > 0;
  return behind > 0 ? behind : check_marks(pages, 0, part->lead);
}

/* ---- frames ---- */

enum { MAGIC = 0x57564c43 };

bool cleave_frame_is_callback(uint32_t kind) {
  switch (kind) {
#define CLEAVE_REMARK(kind)
#define CLEAVE_REQUEST(kind, function, limit, words)
#define CLEAVE_NOTICE(kind, function)
#define CLEAVE_CALLBACK(kind) case CLEAVE_FRAME_##kind:
#include "backend/process/worker_messages.inc"
    return true;
    default: return false;
  }
}

typedef struct header {
  uint32_t magic;
  uint32_t kind;
  uint64_t length;
} header_t;

static bool wait_for(const cleave_channel_t *channel, short events) {
  if (channel->wait != NULL) {
    return channel->wait(channel->context, events);
  }
  struct pollfd poller = {.fd = channel->socket, .events = events};
  (void)poll(&poller, 1, -1);
  return true;
}

static bool is_transient(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

static cleave_frame_status_t send_all(const cleave_channel_t *channel, struct iovec *parts, size_t count,
                                      int fd) {
  union {
    struct cmsghdr header;
    unsigned char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  size_t first = 0;
  while (first < count) {
    struct msghdr message = {.msg_iov = parts + first, .msg_iovlen = count - first};
    if (fd >= 0) {
      memset(&control, 0, sizeof control);
      message.msg_control = control.bytes;
      message.msg_controllen = sizeof control.bytes;
      struct cmsghdr *entry = CMSG_FIRSTHDR(&message);
      entry->cmsg_level = SOL_SOCKET;
      entry->cmsg_type = SCM_RIGHTS;
      entry->cmsg_len = CMSG_LEN(sizeof fd);
      memcpy(CMSG_DATA(entry), &fd, sizeof fd);
    }
    ssize_t sent = sendmsg(channel->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && is_transient(errno)) {
      if (!wait_for(channel, POLLOUT)) {
        return CLEAVE_FRAME_GIVEN_UP;
      }
    } else if (sent < 0 && errno != EINTR) {
      return CLEAVE_FRAME_CLOSED;
    } else if (sent > 0) {
      fd = -1;
      size_t left = (size_t)sent;
      while (first < count && left >= parts[first].iov_len) {
        left -= parts[first++].iov_len;
      }
      if (first < count) {
        parts[first].iov_base = (char *)parts[first].iov_base + left;
        parts[first].iov_len -= left;
      }
    }
  }
  return CLEAVE_FRAME_OK;
}

cleave_frame_status_t cleave_channel_send(const cleave_channel_t *channel, uint32_t kind, const void *data,
                                          size_t length, int fd) {
  header_t header = {.magic = MAGIC, .kind = kind, .length = length};
  struct iovec parts[2] = {{.iov_base = &header, .iov_len = sizeof header},
                           {.iov_base = (void *)(uintptr_t)data, .iov_len = length}};
  return send_all(channel, parts, length == 0 ? 1 : 2, fd);
}

/* Takes the descriptor that came with a message; more than one are closed. */
static void take_descriptors(struct msghdr *message, cleave_frame_t *frame) {
  for (struct cmsghdr *entry = CMSG_FIRSTHDR(message); entry != NULL; entry = CMSG_NXTHDR(message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t k = 0; k < count; k++) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(entry) + k * sizeof fd, sizeof fd);
      if (frame->fd < 0) {
        frame->fd = fd;
      } else {
        (void)close(fd);
      }
    }
  }
}

static cleave_frame_status_t receive_some(const cleave_channel_t *channel, cleave_frame_t *frame, void *data,
                                          size_t length) {
  union {
    struct cmsghdr header;
    unsigned char bytes[CMSG_SPACE(4 * sizeof(int))];
  } control;
  size_t at = 0;
  while (at < length) {
    struct iovec part = {.iov_base = (char *)data + at, .iov_len = length - at};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(channel->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && is_transient(errno)) {
      if (!wait_for(channel, POLLIN)) {
        return CLEAVE_FRAME_GIVEN_UP;
      }
    } else if (got == 0 || (got < 0 && errno != EINTR)) {
      return CLEAVE_FRAME_CLOSED;
    } else if (got > 0) {
      take_descriptors(&message, frame);
      at += (size_t)got;
    }
  }
  return CLEAVE_FRAME_OK;
}

/* The memory grows with what arrives: a header alone takes none. */
static cleave_frame_status_t receive_data(const cleave_channel_t *channel, cleave_frame_t *frame,
                                          size_t length) {
  enum { STEP = 1 << 20 };
  frame->length = 0;
  while (frame->length < length) {
    size_t step = length - frame->length < STEP ? length - frame->length : STEP;
    if (frame->length + step > frame->capacity) {
      size_t doubled = frame->capacity > SIZE_MAX / 2 ? SIZE_MAX : frame->capacity * 2;
      size_t capacity = frame->length + step > doubled ? frame->length + step : doubled;
      capacity = capacity > length && length > 4096 ? length : capacity < 4096 ? 4096 : capacity;
      unsigned char *grown = cleave_reallocate(frame->data, capacity, 1);
      if (grown == NULL) {
        return CLEAVE_FRAME_NO_MEMORY;
      }
      frame->data = grown;
      frame->capacity = capacity;
    }
    cleave_frame_status_t status = receive_some(channel, frame, frame->data + frame->length, step);
    if (status != CLEAVE_FRAME_OK) {
      return status;
    }
    frame->length += step;
  }
  return CLEAVE_FRAME_OK;
}

cleave_frame_status_t cleave_channel_receive(const cleave_channel_t *channel, cleave_frame_t *frame) {
  header_t header;
  frame->fd = -1;
  frame->length = 0;
  cleave_frame_status_t status = receive_some(channel, frame, &header, sizeof header);
  if (status == CLEAVE_FRAME_OK && (header.magic != MAGIC || header.length > channel->limit)) {
    status = CLEAVE_FRAME_BROKEN;
  }
  if (status == CLEAVE_FRAME_OK) {
    frame->kind = header.kind;
    status = receive_data(channel, frame, (size_t)header.length);
  }
  if (status != CLEAVE_FRAME_OK && frame->fd >= 0) {
    (void)close(frame->fd);
    frame->fd = -1;
  }
  return status;
}
