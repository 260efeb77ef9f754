/* Shared by the load generators: clock, latencies, connections. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Latencies in classes that are 1/128 of a power of two wide, so that a percentile is exact to 1 %. */
enum { FINE_BITS = 7, FINE = 1 << FINE_BITS, CLASSES = 64 * FINE };

struct latencies {
    uint64_t count, classes[CLASSES];
};

static inline void record(struct latencies *all, int64_t ns) {
    uint64_t value = ns < FINE ? FINE : (uint64_t)ns;
    int power = 63 - __builtin_clzll(value);
    all->classes[power * FINE + (value >> (power - FINE_BITS)) % FINE]++;
    all->count++;
}

/* Returns the latency in microseconds below which this share of all lies. */
static inline double percentile(const struct latencies *all, double share) {
    uint64_t rank = (uint64_t)((double)all->count * share), seen = 0;
    for (int index = 0; index < CLASSES; index++) {
        seen += all->classes[index];
        if (seen > rank) {
            int power = index / FINE;
            return (double)(1ULL << power) * (1 + (index % FINE + 0.5) / FINE) / 1000;
        }
    }
    return 0;
}

static inline int connect_to(int port) {
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&server, sizeof server) < 0)
        FAIL("no connection to port %d: %s", port, strerror(errno));
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* For handshakes, which wait. */
    struct timeval patience = {.tv_sec = 20};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return descriptor;
}

static inline void send_all(int descriptor, const char *bytes, size_t size) {
    if (send(descriptor, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        FAIL("a request could not be sent: %s", strerror(errno));
}

static inline void set_nonblocking(int descriptor) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}
