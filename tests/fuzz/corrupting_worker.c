// SPDX-License-Identifier: Apache-2.0
// Stands between cleave and a worker, and changes some of what the worker says: bytes, kinds, lengths, frames
// that are left out or said twice. CLEAVE_TEST_WORKER is the worker, CLEAVE_TEST_SEED says what is changed,
// CLEAVE_TEST_HONEST how many frames are let through first.
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/process/worker_protocol.h"

static uint32_t state;
static uint32_t honest;

static uint32_t draw(uint32_t limit) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % limit;
}

static uint32_t number_of(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

/* Hands one frame on. False where one side is gone. */
static bool hand_on(const cleave_channel_t *from, const cleave_channel_t *to, bool lies) {
  static const unsigned char EXTREMES[] = {0, 1, 2, 0x7f, 0x80, 0xff};
  cleave_frame_t frame = {.fd = -1};
  if (cleave_channel_receive(from, &frame) != CLEAVE_FRAME_OK) {
    return false;
  }
  lies = lies && (honest == 0 || honest-- == 0) && draw(8) == 0;
  uint32_t changes = lies ? 1 + draw(3) : 0;
  for (uint32_t k = 0; k < changes && frame.length > 0; k++) {
    unsigned char *at = &frame.data[draw((uint32_t)frame.length)];
    *at = draw(2) == 0 ? (unsigned char)draw(256) : EXTREMES[draw(6)];
  }
  frame.kind = lies && draw(8) == 0 ? draw(CLEAVE_FRAME_COUNT + 2) : frame.kind;
  frame.length -= lies && draw(8) == 0 ? draw((uint32_t)frame.length + 1) : 0;
  uint32_t times = lies && draw(16) == 0 ? draw(3) : 1;
  bool is_sent = true;
  for (uint32_t k = 0; k < times && is_sent; k++) {
    is_sent = cleave_channel_send(to, frame.kind, frame.data, frame.length, frame.fd) == CLEAVE_FRAME_OK;
  }
  if (frame.fd >= 0) {
    (void)close(frame.fd);
  }
  cleave_free(frame.data);
  return is_sent;
}

int main(int argc, char **argv) {
  int ends[2];
  const char *worker = getenv("CLEAVE_TEST_WORKER");
  state = number_of("CLEAVE_TEST_SEED");
  honest = number_of("CLEAVE_TEST_HONEST");
  if (argc != 2 || worker == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return EXIT_FAILURE;
  }
  pid_t child = fork();
  if (child == 0) {
    (void)dup2(ends[1], CLEAVE_WORKER_SOCKET);
    (void)execl(worker, "cleave_worker", argv[1], (char *)NULL);
    _exit(EXIT_FAILURE);
  }
  (void)close(ends[1]);
  const cleave_channel_t parent = {.socket = CLEAVE_WORKER_SOCKET, .limit = SIZE_MAX};
  const cleave_channel_t own = {.socket = ends[0], .limit = SIZE_MAX};
  for (;;) {
    struct pollfd pollers[2] = {{.fd = parent.socket, .events = POLLIN},
                                {.fd = own.socket, .events = POLLIN}};
    if (poll(pollers, 2, -1) < 0) {
      return EXIT_FAILURE;
    }
    if ((pollers[0].revents != 0 && !hand_on(&parent, &own, false)) ||
        (pollers[1].revents != 0 && !hand_on(&own, &parent, true))) {
      return EXIT_SUCCESS;
    }
  }
}
