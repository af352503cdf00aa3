// SPDX-License-Identifier: Apache-2.0
// Started by cleave with a socket and a page of memory. The process never outlives its parent: a thread of
// its own waits for the end of the socket, whatever the library is doing then.
#define _GNU_SOURCE  // close_range
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/worker.h"

enum { LONGEST_REQUEST = 2000000000, EXIT_WRONG_START = 2 };

/* Ends this process and all that the library started in its group. */
static void *wait_for_parent(void *context) {
  (void)context;
  struct pollfd poller = {.fd = CLEAVE_WORKER_SOCKET, .events = POLLRDHUP};
  for (;;) {
    if (poll(&poller, 1, -1) > 0 && (poller.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0) {
      worker_end();
    }
  }
  return NULL;
}

static bool watch_parent(void) {
  pthread_t thread;
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0) {
    return false;
  }
  bool is_started = pthread_create(&thread, NULL, wait_for_parent, NULL) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_started && pthread_detach(thread) == 0;
}

static bool is_started_by_cleave(void) {
  struct stat socket_status;
  struct stat record_status;
  return fstat(CLEAVE_WORKER_SOCKET, &socket_status) == 0 && S_ISSOCK(socket_status.st_mode) &&
         fstat(CLEAVE_WORKER_RECORD, &record_status) == 0 && S_ISREG(record_status.st_mode) &&
         record_status.st_size >= (off_t)sizeof(cleave_fault_record_t);
}

static void close_others(void) {
  if (close_range(CLEAVE_WORKER_RECORD + 1, ~0U, 0) != 0) {
    long most = sysconf(_SC_OPEN_MAX);
    for (long fd = CLEAVE_WORKER_RECORD + 1; fd < (most > 0 && most < 65536 ? most : 65536); fd++) {
      (void)close((int)fd);
    }
  }
}

int main(int argc, char **argv) {
  static worker_t worker = {.channel = {.socket = CLEAVE_WORKER_SOCKET, .limit = LONGEST_REQUEST},
                            .sending = PTHREAD_MUTEX_INITIALIZER,
                            .request = {.fd = -1}};
  if (argc != 2 || strcmp(argv[1], CLEAVE_VERSION) != 0 || !is_started_by_cleave()) {
    (void)fprintf(
        stderr,
        "cleave_worker %s runs isolated libraries for cleave, which starts it; do not start it by hand\n",
        CLEAVE_VERSION);
    return EXIT_WRONG_START;
  }
  close_others();
  struct rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  void *record =
      mmap(NULL, sizeof(cleave_fault_record_t), PROT_READ | PROT_WRITE, MAP_SHARED, CLEAVE_WORKER_RECORD, 0);
  (void)close(CLEAVE_WORKER_RECORD);
  if (record == MAP_FAILED || !watch_parent()) {
    (void)fprintf(stderr, "cleave_worker: no memory or thread to start with\n");
    return EXIT_WRONG_START;
  }
  worker_fault_install(record);
  worker_log_through(&worker);
  while (worker_serve(&worker)) {
  }
  return 0;
}
