// Shifts the wall clock of a program in which it is preloaded by a number of seconds, which is the content of a file (FAULTS_CLOCK) and may
// change at any time. The monotonic clock is not changed.
//
// The kernel's clock is not shifted. A wait until a time of the wall clock would therefore take another time than after a real shift. It is
// converted, and reported in a line on standard error, because a real shift would prolong it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void start(void) {
    int file = open(getenv("FAULTS_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *content = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (content == MAP_FAILED) abort();
    offset = content;
}

static int64_t shift(void) { return offset ? *offset : 0; }

static void report(const char *call) {
    char line[100] = "clock.c: waits by the wall clock: ";
    strcat(strcat(line, call), "\n");
    if (write(STDERR_FILENO, line, strlen(line)) < 0) abort();
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static __typeof__(&clock_gettime) next;
    if (!next) next = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(clock, time);
    if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += shift();
    return code;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
    report("sem_timedwait");
    struct timespec real = {end->tv_sec - shift(), end->tv_nsec};
    return ((__typeof__(&sem_timedwait))dlsym(RTLD_NEXT, "sem_timedwait"))(semaphore, &real);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    static __typeof__(&pthread_cond_timedwait) next;
    // Without a version, dlsym may return the function of old programs.
    if (!next) next = (__typeof__(next))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec real = *end;
    // The monotonic clock begins with the start of the machine: 1,000,000,000 seconds are 31 years.
    if (end->tv_sec > 1000000000) {
        report("pthread_cond_timedwait");
        real.tv_sec -= shift();
    }
    return next(condition, mutex, &real);
}

int timerfd_create(int clock, int flags) {
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM) report("timerfd_create");
    return ((__typeof__(&timerfd_create))dlsym(RTLD_NEXT, "timerfd_create"))(clock, flags);
}
