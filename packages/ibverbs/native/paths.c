// Functions of libc that programs and libraries call with paths of RDMA devices. All other calls are passed on.
#define _GNU_SOURCE
#include "shim.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SYSFS_PATH "/sys/class/infiniband/"
#define VERBS_PATH "/dev/infiniband/uverbs"
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
DECLARE(faccessat);
DECLARE(statx);
DECLARE(fstatat64);
DECLARE(fstatat);
DECLARE(openat64);
DECLARE(openat);
DECLARE(realpath);
DECLARE(readlink);
DECLARE(access);
DECLARE(lstat64);
DECLARE(lstat);
DECLARE(stat64);
DECLARE(stat);
DECLARE(opendir);
DECLARE(fopen64);
DECLARE(fopen);

int real_close(int fd) { return NEXT(close)(fd); }

static mode_t mode_of(int flags, va_list *args) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(*args, int) : 0;
}

static int is_cm(const char *path) { return path != NULL && strcmp(path, CM_PATH) == 0; }

// The attributes of a device are in a folder of its NIC process; its character device must exist, and is not used.
static const char *redirect(const char *path, char *buffer) {
  if (path == NULL || path[0] != '/') return path;
  if (strncmp(path, VERBS_PATH, strlen(VERBS_PATH)) == 0) return "/dev/null";
  size_t prefix = strlen(SYSFS_PATH);
  if (strncmp(path, SYSFS_PATH, prefix) != 0) return path;
  int count;
  struct device **devices = all_devices(&count);
  for (int i = 0; i < count; i++) {
    size_t length = strlen(devices[i]->base.name);
    const char *rest = path + prefix + length;
    if (strncmp(path + prefix, devices[i]->base.name, length) != 0 || (*rest != '/' && *rest != 0)) continue;
    return snprintf(buffer, PATH_MAX, "%s.sys%s", devices[i]->socket, rest) < PATH_MAX ? buffer : path;
  }
  return path;
}

EXPORT int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  char buffer[PATH_MAX];
  return is_cm(path) ? rdma_cm_open() : NEXT(open)(redirect(path, buffer), flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  char buffer[PATH_MAX];
  return is_cm(path) ? rdma_cm_open() : NEXT(open64)(redirect(path, buffer), flags, mode);
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

// Functions with one path, which is redirected.
#define REDIRECTED(type, name, parameters, arguments) \
  EXPORT type name parameters { \
    char buffer[PATH_MAX]; \
    path = redirect(path, buffer); \
    return NEXT(name) arguments; \
  }

REDIRECTED(FILE *, fopen, (const char *path, const char *mode), (path, mode))
REDIRECTED(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
REDIRECTED(DIR *, opendir, (const char *path), (path))
REDIRECTED(int, stat, (const char *path, struct stat *to), (path, to))
REDIRECTED(int, stat64, (const char *path, struct stat64 *to), (path, to))
REDIRECTED(int, lstat, (const char *path, struct stat *to), (path, to))
REDIRECTED(int, lstat64, (const char *path, struct stat64 *to), (path, to))
REDIRECTED(int, fstatat, (int fd, const char *path, struct stat *to, int flags), (fd, path, to, flags))
REDIRECTED(int, fstatat64, (int fd, const char *path, struct stat64 *to, int flags), (fd, path, to, flags))
REDIRECTED(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *to),
           (fd, path, flags, mask, to))
REDIRECTED(int, access, (const char *path, int mode), (path, mode))
REDIRECTED(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
REDIRECTED(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size))
REDIRECTED(char *, realpath, (const char *path, char *to), (path, to))

EXPORT int openat(int fd, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  char buffer[PATH_MAX];
  return NEXT(openat)(fd, redirect(path, buffer), flags, mode);
}

EXPORT int openat64(int fd, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = mode_of(flags, &args);
  va_end(args);
  char buffer[PATH_MAX];
  return NEXT(openat64)(fd, redirect(path, buffer), flags, mode);
}
