// SPDX-License-Identifier: Apache-2.0
// Watching by inotify. Every file has a folder that is watched, its own or the nearest one above that exists;
// events mark files and start a timer, and when the timer runs out the marked files are looked at. One epoll
// descriptor stands for both, so that an event loop needs no timeouts of its own.
#include "tools/watch/watch_files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/containers/array.h"
#include "system/clock.h"
#include "system/file.h"

/* A burst is reported at the latest after MAX_QUIET times the quiet time. A file that is gone gets GONE_MS to
 * come back. A file whose time of change is RACY_MS old when it is looked at may change again within the same
 * tick. */
enum { MAX_QUIET = 25, GONE_MS = 250, RACY_MS = 1000 };

static const uint32_t folder_events = IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM |
                                      IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/* The state of a file when its last change was reported. */
typedef struct look {
  bool exists;
  bool is_racy;
  dev_t device;
  ino_t inode;
  off_t bytes;
  mode_t mode;
  struct timespec changed;
} look_t;

typedef struct watched {
  char *path;
  char *target; /* where symbolic links lead, if elsewhere; or NULL */
  look_t look;
  bool is_marked;
  bool is_told_gone;
  uint64_t gone_since; /* 0: it is there */
} watched_t;

struct cleave_watch_files {
  int notify;
  int timer;
  int both;
  int32_t quiet_ms;
  uint64_t burst_start; /* 0: no burst */
  uint64_t last_event;
  CLEAVE_ARRAY(watched_t) items;
};

static cleave_status_t fail(const char *what, cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_IO, "watching files: %s: %s", what, strerror(errno));
}

/* ---- making ---- */

static cleave_status_t open_all(cleave_watch_files_t *files, cleave_error_t *error) {
  files->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (files->notify < 0) {
    return fail("inotify", error);
  }
  files->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (files->timer < 0) {
    return fail("a timer", error);
  }
  files->both = epoll_create1(EPOLL_CLOEXEC);
  if (files->both < 0) {
    return fail("epoll", error);
  }
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(files->both, EPOLL_CTL_ADD, files->notify, &event) != 0 ||
      epoll_ctl(files->both, EPOLL_CTL_ADD, files->timer, &event) != 0) {
    return fail("epoll", error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_watch_files_create(int32_t quiet_ms, cleave_watch_files_t **out_files,
                                          cleave_error_t *error) {
  *out_files = NULL;
  cleave_watch_files_t *files = cleave_allocate_zeroed(1, sizeof *files);
  CLEAVE_TRY_MEMORY(files, error);
  files->notify = -1;
  files->timer = -1;
  files->both = -1;
  files->quiet_ms = quiet_ms < 1 ? 1 : quiet_ms;
  CLEAVE_TRY_OR(open_all(files, error), cleave_watch_files_destroy(files));
  *out_files = files;
  return CLEAVE_OK;
}

void cleave_watch_files_destroy(cleave_watch_files_t *files) {
  if (files == NULL) {
    return;
  }
  const int descriptors[] = {files->both, files->timer, files->notify};
  for (size_t k = 0; k < sizeof descriptors / sizeof descriptors[0]; k++) {
    if (descriptors[k] >= 0) {
      (void)close(descriptors[k]);
    }
  }
  for (size_t k = 0; k < files->items.count; k++) {
    cleave_free(files->items.items[k].path);
    free(files->items.items[k].target); /* of realpath */
  }
  cleave_array_free(&files->items);
  cleave_free(files);
}

int cleave_watch_files_descriptor(const cleave_watch_files_t *files) {
  return files->both;
}

/* ---- folders and looks ---- */

/* Watches the folder of a path, or the nearest one above it that there is. */
static cleave_status_t watch_folder(cleave_watch_files_t *files, const char *path, cleave_error_t *error) {
  char folder[PATH_MAX];
  size_t length = 0;
  (void)cleave_path_folder(path, &length);
  if (length >= sizeof folder - 1) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "%.80s...: the path is too long to be watched", path);
  }
  memcpy(folder, path, length);
  folder[length] = '\0';
  for (;;) {
    const char *name = length == 0 ? "." : folder;
    if (inotify_add_watch(files->notify, name, folder_events) >= 0) {
      return CLEAVE_OK;
    }
    if ((errno != ENOENT && errno != ENOTDIR) || length == 0 || strcmp(folder, "/") == 0) {
      int reason = errno;
      return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: the folder cannot be watched: %s", name,
                              strerror(reason));
    }
    while (length > 0 && folder[length - 1] == '/') {
      length--;
    }
    while (length > 0 && folder[length - 1] != '/') {
      length--;
    }
    folder[length] = '\0';
  }
}

static look_t look_at(const char *path) {
  struct stat found;
  look_t look = {.exists = stat(path, &found) == 0};
  if (look.exists) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_ms =
        (int64_t)(now.tv_sec - found.st_mtim.tv_sec) * 1000 + (now.tv_nsec - found.st_mtim.tv_nsec) / 1000000;
    look.is_racy = age_ms < RACY_MS;
    look.device = found.st_dev;
    look.inode = found.st_ino;
    look.bytes = found.st_size;
    look.mode = found.st_mode;
    look.changed = found.st_mtim;
  }
  return look;
}

static bool same_look(const look_t *a, const look_t *b) {
  return a->exists == b->exists && !a->is_racy && a->device == b->device && a->inode == b->inode &&
         a->bytes == b->bytes && a->mode == b->mode && a->changed.tv_sec == b->changed.tv_sec &&
         a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Folders may have come, gone, or be others under the old name; adding one that is watched changes nothing.
 */
static cleave_status_t arm(cleave_watch_files_t *files, watched_t *item, cleave_error_t *error) {
  CLEAVE_TRY(watch_folder(files, item->path, error));
  free(item->target);
  item->target = realpath(item->path, NULL);
  if (item->target != NULL && strcmp(item->target, item->path) == 0) {
    free(item->target);
    item->target = NULL;
  }
  return item->target == NULL ? CLEAVE_OK : watch_folder(files, item->target, error);
}

cleave_status_t cleave_watch_files_add(cleave_watch_files_t *files, const char *path, cleave_error_t *error) {
  for (size_t k = 0; k < files->items.count; k++) {
    if (strcmp(files->items.items[k].path, path) == 0) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&files->items, 1, error));
  watched_t item = {.path = cleave_copy_text(path, strlen(path))};
  CLEAVE_TRY_MEMORY(item.path, error);
  cleave_status_t status = arm(files, &item, error);
  if (status != CLEAVE_OK) {
    cleave_free(item.path);
    free(item.target);
    return status;
  }
  item.look = look_at(path);
  cleave_array_push_reserved(&files->items, item);
  return CLEAVE_OK;
}

/* ---- events ---- */

static void set_timer(cleave_watch_files_t *files, int64_t ms) {
  struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000}};
  if (ms <= 0) {
    when.it_value.tv_nsec = 1;
  }
  (void)timerfd_settime(files->timer, 0, &when, NULL);
}

static bool has_name(const watched_t *item, const char *name) {
  return strcmp(cleave_path_name(item->path), name) == 0 ||
         (item->target != NULL && strcmp(cleave_path_name(item->target), name) == 0);
}

/* Marks the files that an event may be about: those of its name; all, if it is about a folder. */
static bool mark(cleave_watch_files_t *files, const struct inotify_event *event) {
  bool is_folder = event->len == 0 || (event->mask & (IN_ISDIR | IN_Q_OVERFLOW)) != 0;
  bool any = false;
  for (size_t k = 0; k < files->items.count; k++) {
    watched_t *item = &files->items.items[k];
    if (is_folder || has_name(item, event->name)) {
      item->is_marked = true;
      any = true;
    }
  }
  return any;
}

static cleave_status_t read_events(cleave_watch_files_t *files, cleave_error_t *error) {
  _Alignas(struct inotify_event) char buffer[16384];
  bool any = false;
  for (;;) {
    ssize_t length = read(files->notify, buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) {
      continue;
    }
    if (length < 0 && errno != EAGAIN) {
      return fail("reading events", error);
    }
    if (length <= 0) {
      break;
    }
    for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= length;) {
      struct inotify_event event;
      memcpy(&event, buffer + at, sizeof event);
      any = mark(files, (const struct inotify_event *)(const void *)(buffer + at)) || any;
      at += (ssize_t)(sizeof event + event.len);
    }
  }
  if (any) {
    uint64_t now = cleave_clock_now();
    files->last_event = now;
    files->burst_start = files->burst_start == 0 ? now : files->burst_start;
    double so_far = cleave_clock_ms(files->burst_start, now);
    bool is_long = so_far > (double)files->quiet_ms * MAX_QUIET;
    set_timer(files, is_long ? 0 : files->quiet_ms);
  }
  return CLEAVE_OK;
}

static bool timer_ran_out(const cleave_watch_files_t *files) {
  uint64_t times = 0;
  return read(files->timer, &times, sizeof times) == (ssize_t)sizeof times;
}

/* When a file was saved: its own time of change, if that lies within the burst; otherwise (it was moved
 * here) the last event. */
static uint64_t saved_at(const cleave_watch_files_t *files, const look_t *look) {
  struct timespec now;
  uint64_t monotonic = cleave_clock_now();
  (void)clock_gettime(CLOCK_REALTIME, &now);
  int64_t age =
      (int64_t)(now.tv_sec - look->changed.tv_sec) * 1000000000 + (now.tv_nsec - look->changed.tv_nsec);
  int64_t burst = (int64_t)(monotonic - files->burst_start) + INT64_C(50000000);
  if (!look->exists || age < 0 || age > burst) {
    return files->last_event;
  }
  return monotonic - (uint64_t)age;
}

/* Looks at a marked file. Does it count as changed? *out_again: look once more in that many milliseconds. */
static bool examine(watched_t *item, int64_t *out_again) {
  look_t look = look_at(item->path);
  item->is_marked = false;
  if (look.exists) {
    bool changed = !same_look(&item->look, &look) || item->gone_since != 0;
    item->look = look;
    item->gone_since = 0;
    item->is_told_gone = false;
    return changed;
  }
  uint64_t now = cleave_clock_now();
  item->gone_since = item->gone_since == 0 ? now : item->gone_since;
  if (item->is_told_gone || !item->look.exists) {
    return false;
  }
  int64_t left = GONE_MS - (int64_t)cleave_clock_ms(item->gone_since, now);
  if (left > 0) {
    item->is_marked = true;
    *out_again = *out_again < 0 || left < *out_again ? left : *out_again;
    return false;
  }
  item->look = look;
  item->is_told_gone = true;
  return true;
}

cleave_status_t cleave_watch_files_poll(cleave_watch_files_t *files, const char **out_path,
                                        uint64_t *out_saved_ns, cleave_error_t *error) {
  *out_path = NULL;
  *out_saved_ns = 0;
  CLEAVE_TRY(read_events(files, error));
  if (!timer_ran_out(files)) {
    return CLEAVE_OK;
  }
  int64_t again = -1;
  for (size_t k = 0; k < files->items.count; k++) {
    watched_t *item = &files->items.items[k];
    if (!item->is_marked) {
      continue;
    }
    CLEAVE_TRY(arm(files, item, error));
    if (examine(item, &again)) {
      uint64_t saved = saved_at(files, &item->look);
      *out_path = *out_path == NULL ? item->path : *out_path;
      *out_saved_ns = saved > *out_saved_ns ? saved : *out_saved_ns;
    }
  }
  if (again >= 0) {
    set_timer(files, again + 1);
  } else {
    files->burst_start = 0;
  }
  return CLEAVE_OK;
}
