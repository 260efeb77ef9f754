// Shifts the wall clock of a program in which it is preloaded by a number of seconds, which is the content of a file (FAULTS_CLOCK) and
// may change at any time. The monotonic clock is not changed.
//
// The kernel's clock is not shifted. Waits until a time of the wall clock are therefore divided, and compared with the shifted clock in
// between: as with the kernel's clock, a wait takes an hour longer if the clock is set back by an hour meanwhile.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
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

// The longest part of a wait, in nanoseconds.
static const long part = 20 * 1000 * 1000;

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

// Returns the end of the next part of a wait, by the kernel's clock.
static struct timespec next_end(const struct timespec *end) {
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_nsec += part;
    if (next.tv_nsec >= 1000000000) next = (struct timespec){next.tv_sec + 1, next.tv_nsec - 1000000000};
    if (end->tv_sec < next.tv_sec || (end->tv_sec == next.tv_sec && end->tv_nsec < next.tv_nsec)) next = *end;
    next.tv_sec -= shift();
    return next;
}

static int is_over(const struct timespec *end) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
    static __typeof__(&sem_timedwait) next;
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "sem_timedwait");
    while (1) {
        struct timespec real = next_end(end);
        int code = next(semaphore, &real);
        if (code == 0 || errno != ETIMEDOUT || is_over(end)) return code;
    }
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    static __typeof__(&pthread_cond_timedwait) next;
    // Without a version, dlsym may return the function of old programs.
    if (!next) next = (__typeof__(next))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    // The monotonic clock begins with the start of the machine: 1,000,000,000 seconds are 31 years.
    if (end->tv_sec < 1000000000) return next(condition, mutex, end);
    struct timespec real = next_end(end);
    int code = next(condition, mutex, &real);
    // The caller must expect to be woken without a reason.
    return code == ETIMEDOUT && !is_over(end) ? 0 : code;
}
