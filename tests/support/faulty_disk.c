/* A disk that fails when it is told to: preloaded under SQLite, it fails the n-th call of a kind.

   Only the calls that SQLite makes on its files, on files whose name contains ".db". */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, READ = 4, REMOVE = 8, CUT = 16 };

static int armed, left, error, sticky, calls;

/* From now on the n-th call of these kinds fails with `error`, and the later ones too if `lasting`.
   An error of 0 kills the process, in the middle of a write. */
void faulty_disk(int kinds, int nth, int with, int lasting) {
    armed = kinds;
    left = nth;
    error = with;
    sticky = lasting;
    calls = 0;
}

int faulty_disk_calls(void) { return calls; }

static int is_ours(int fd, const char *path) {
    char link[32], name[4096];
    if (path == NULL) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, name, sizeof name - 1);
        if (length < 0) return 0;
        name[length] = 0;
        path = name;
    }
    return strstr(path, ".db") != NULL;
}

static int fails(int kind, int fd, const char *path) {
    if (!(armed & kind) || !is_ours(fd, path)) return 0;
    calls++;
    left--;
    if (left == 0 || (left < 0 && sticky)) {
        if (error == 0 && kind != WRITE) kill(getpid(), SIGKILL);
        errno = error;
        return 1;
    }
    return 0;
}

#define REAL(name) (real = real ? real : dlsym(RTLD_NEXT, name))

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    REAL("pwrite64");
    if (fails(WRITE, fd, NULL)) {
        if (error == 0) {
            real(fd, data, size / 2, at);
            kill(getpid(), SIGKILL);
        }
        return -1;
    }
    return real(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    REAL("pread64");
    return fails(READ, fd, NULL) ? -1 : real(fd, data, size, at);
}

int fsync(int fd) {
    static int (*real)(int);
    REAL("fsync");
    return fails(SYNC, fd, NULL) ? -1 : real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    REAL("fdatasync");
    return fails(SYNC, fd, NULL) ? -1 : real(fd);
}

int ftruncate64(int fd, off64_t size) {
    static int (*real)(int, off64_t);
    REAL("ftruncate64");
    return fails(CUT, fd, NULL) ? -1 : real(fd, size);
}

int unlink(const char *path) {
    static int (*real)(const char *);
    REAL("unlink");
    return fails(REMOVE, -1, path) ? -1 : real(path);
}
