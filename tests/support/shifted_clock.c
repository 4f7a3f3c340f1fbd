/* A machine whose clock is wrong: preloaded, it shifts the time of day by $SHIFTED_CLOCK seconds. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    static const char *said;
    if (said == NULL) {
        said = getenv("SHIFTED_CLOCK");
        if (said == NULL) said = "0";
    }
    return atol(said);
}

#define REAL(name) (real = real ? real : dlsym(RTLD_NEXT, name))

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    REAL("clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    REAL("gettimeofday");
    int failed = real(now, zone);
    if (!failed) now->tv_sec += shift();
    return failed;
}

time_t time(time_t *now) {
    struct timespec said;
    clock_gettime(CLOCK_REALTIME, &said);
    if (now != NULL) *now = said.tv_sec;
    return said.tv_sec;
}
