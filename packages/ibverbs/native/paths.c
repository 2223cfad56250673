// Functions of libc that programs and libraries call with paths of RDMA devices. All other calls are passed on.
#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CM_PATH "/dev/infiniband/rdma_cm"
#define CM_MAJOR 10 // a miscellaneous device

// The next definition of a function; it is looked up once.
#define NEXT(name) ((__typeof__(&name))next_of(&next_##name, #name))
#define DECLARE(name) static _Atomic(void *) next_##name

static void *next_of(_Atomic(void *) *cached, const char *name) {
  void *found = *cached;
  if (found == NULL) *cached = found = dlsym(RTLD_NEXT, name);
  return found;
}

DECLARE(open);
DECLARE(open64);
DECLARE(close);
DECLARE(write);
DECLARE(fstat);
DECLARE(fstat64);

int real_close(int fd) { return NEXT(close)(fd); }

static mode_t mode_of(int flags, va_list *args) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(*args, int) : 0;
}

static int is_cm(const char *path) { return path != NULL && strcmp(path, CM_PATH) == 0; }

EXPORT int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  return is_cm(path) ? rdma_cm_open() : NEXT(open)(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  return is_cm(path) ? rdma_cm_open() : NEXT(open64)(path, flags, mode);
}

EXPORT int close(int fd) {
  if (rdma_cm_is_open(fd)) rdma_cm_close(fd);
  return NEXT(close)(fd);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t length) {
  return rdma_cm_is_open(fd) ? rdma_cm_write(fd, bytes, length) : NEXT(write)(fd, bytes, length);
}

EXPORT int fstat(int fd, struct stat *stat) {
  if (!rdma_cm_is_open(fd)) return NEXT(fstat)(fd, stat);
  *stat = (struct stat){.st_mode = S_IFCHR | 0666, .st_rdev = makedev(CM_MAJOR, 0)};
  return 0;
}

EXPORT int fstat64(int fd, struct stat64 *stat) {
  if (!rdma_cm_is_open(fd)) return NEXT(fstat64)(fd, stat);
  *stat = (struct stat64){.st_mode = S_IFCHR | 0666, .st_rdev = makedev(CM_MAJOR, 0)};
  return 0;
}
