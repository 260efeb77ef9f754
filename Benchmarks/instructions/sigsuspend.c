/* valgrind 3.19 writes to the mask that sigsuspend(2) gets. The mask of libdispatch is in read-only memory, so this passes a copy. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
    sigset_t copy = *mask;
    return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}
