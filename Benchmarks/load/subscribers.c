/*
 * Receives events on many connections, checks that each connection receives every event in order, and measures the time from `sentAt` in
 * the event to its arrival. Prints `ready` when all connections are subscribed, then answers commands on standard input:
 *
 *   reset                starts a new count
 *   expect COUNT SECONDS waits until COUNT events have arrived, or none for SECONDS; prints the counts and latencies as JSON
 *
 * Kinds of connections: ws, mux (a WebSocket that subscribes with a frame), idle (one without a subscription), sse, and mqtt (MQTT over
 * WebSocket). The bytes inside of frames and chunks are one stream for each connection, and events are found in it by their last members.
 */
#include "stream.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum { READ_SIZE = 256 * 1024, EVENTS = 256, LAST = 64 };

struct connection {
    int descriptor;
    struct stream stream;
    long next;
    size_t kept;
    char *rest;
};

static struct latencies latencies;
static struct connection *connections;
static long count, closed, deliveries, missing, gaps, bytes;
static int64_t opened, first_arrival, last_arrival;
static int epoll;

/* The longest text that may be cut at the end of a read: from `"sequence"` to the end of `sentAt`. */
static char scratch[READ_SIZE + LAST + 1];

static void take_event(struct connection *connection, long number, int64_t sent_at, int64_t now) {
    if (connection->next >= 0 && number != connection->next)
        missing++;
    connection->next = number + 1;
    record(&latencies, now - sent_at);
    if (deliveries++ == 0)
        first_arrival = now;
    last_arrival = now;
}

static void scan(struct connection *connection, const char *text, size_t size, int64_t now) {
    bytes += (long)size;
    memcpy(scratch, connection->rest, connection->kept);
    memcpy(scratch + connection->kept, text, size);
    size += connection->kept;
    scratch[size] = 0;
    char *from = scratch, *end = scratch + size, *found;
    for (char *gap = scratch; (gap = memmem(gap, (size_t)(end - gap), "\"op\":\"gap\"", 10)) != NULL; gap += 10)
        gaps++;
    while ((found = memmem(from, (size_t)(end - from), "\"sequence\":", 11)) != NULL) {
        char *tail = memchr(found, '}', (size_t)(end - found));
        if (tail == NULL)
            break;
        char *sent_at;
        long number = strtol(found + 11, &sent_at, 10);
        if (memcmp(sent_at, ",\"sentAt\":", 10) != 0)
            FAIL("unexpected event: %.*s", (int)(tail - found), found);
        take_event(connection, number, strtoll(sent_at + 10, NULL, 10), now);
        from = tail;
    }
    if (found == NULL)
        found = end - from > 10 ? end - 10 : from;
    connection->kept = (size_t)(end - found);
    if (connection->kept > LAST)
        FAIL("unexpected event: %.*s", LAST, found);
    memcpy(connection->rest, found, connection->kept);
}

static void receive(struct connection *connection) {
    static char buffer[READ_SIZE];
    ssize_t size = recv(connection->descriptor, buffer, READ_SIZE, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        closed++;
        epoll_ctl(epoll, EPOLL_CTL_DEL, connection->descriptor, NULL);
        return;
    }
    int64_t now = now_ns();
    char *at = buffer, *end = buffer + size;
    struct slice slice;
    while (next_slice(&connection->stream, &at, end, &slice)) {
        if (slice.kind == PING)
            send_all(connection->descriptor, "\x8a\x80\0\0\0\0", 6);
        else if (slice.kind == TEXT)
            scan(connection, slice.start, slice.size, now);
    }
}

/* Receives for at most this time. */
static void receive_all(int milliseconds) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(epoll, events, EVENTS, milliseconds);
    for (int index = 0; index < ready; index++)
        if (events[index].data.ptr != NULL)
            receive(events[index].data.ptr);
}

static char answer[READ_SIZE];

static void begin(struct connection *connection, const char *kind, int port, const char *target) {
    connection->descriptor = connect_to(port);
    connection->next = -1;
    connection->rest = malloc(LAST);
    connection->stream.chunked = strcmp(kind, "sse") == 0;
    send_request(connection->descriptor, kind, target);
}

/* Waits for the response to the handshake, and subscribes. Returns the end of the response. */
static char *shake_hands(struct connection *connection, const char *kind, const char *target, size_t *size) {
    *size = 0;
    char *body = receive_until(connection->descriptor, answer, size, sizeof answer, "\r\n\r\n", 4);
    if (strncmp(answer, "HTTP/1.1 101", 12) != 0 && strncmp(answer, "HTTP/1.1 200", 12) != 0)
        FAIL("connection refused: %.*s", (int)*size, answer);
    subscribe(connection->descriptor, kind, target);
    return body;
}

static void add_to_epoll(struct connection *connection) {
    set_nonblocking(connection->descriptor);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connection->descriptor, &event);
}

/* Opens a connection, and waits until it is subscribed. */
static void open_connection(struct connection *connection, const char *kind, int port, const char *target) {
    size_t size;
    begin(connection, kind, port, target);
    char *body = shake_hands(connection, kind, target, &size);
    if (has_ok(kind, target))
        receive_until(connection->descriptor, body, &size, sizeof answer, "\"op\":\"ok\"", 9);
    add_to_epoll(connection);
    /* What came with the head is a part of the stream. */
    char *end = answer + size;
    struct slice slice;
    while (next_slice(&connection->stream, &body, end, &slice))
        if (slice.kind == TEXT)
            scan(connection, slice.start, slice.size, now_ns());
}

/* Opens connections to mosquitto, step by step for all, because it takes 200 ms for the steps of one. */
static void open_together(int port, const char *topic) {
    size_t size;
    for (long index = 0; index < count; index++)
        begin(&connections[index], "mqtt", port, topic);
    for (long index = 0; index < count; index++)
        shake_hands(&connections[index], "mqtt", topic, &size);
    for (long index = 0; index < count; index++) {
        size = 0;
        receive_until(connections[index].descriptor, answer, &size, sizeof answer, "\x90\x03\x00\x01\x00", 5);
        add_to_epoll(&connections[index]);
    }
}

static void reset(void) {
    deliveries = missing = gaps = bytes = 0;
    first_arrival = last_arrival = 0;
    memset(&latencies, 0, sizeof latencies);
    for (long index = 0; index < count; index++)
        connections[index].next = -1;
}

static void expect(long expected, double seconds) {
    int64_t deadline = now_ns() + (int64_t)(seconds * 1e9);
    for (long before = deliveries; deliveries < expected && now_ns() < deadline; before = deliveries) {
        receive_all(100);
        if (deliveries > before)
            deadline = now_ns() + (int64_t)(seconds * 1e9);
    }
    printf("{\"deliveries\": %ld, \"missing\": %ld, \"gaps\": %ld, \"closed\": %ld, \"bytes\": %ld, \"p50\": %.1f, \"p99\": %.1f, "
           "\"first\": %.1f, \"last\": %.1f}\n",
           deliveries, missing, gaps, closed, bytes, percentile(&latencies, 0.5), percentile(&latencies, 0.99),
           (double)(first_arrival - opened) / 1000, (double)(last_arrival - opened) / 1000);
}

int main(int argc, char **argv) {
    if (argc != 5)
        FAIL("usage: subscribers ws|mux|idle|sse|mqtt PORT TARGET COUNT");
    count = atol(argv[4]);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    connections = calloc((size_t)count, sizeof *connections);
    epoll = epoll_create1(0);
    opened = now_ns();
    if (strcmp(argv[1], "mqtt") == 0)
        open_together(atoi(argv[2]), argv[3]);
    else
        for (long index = 0; index < count; index++)
            open_connection(&connections[index], argv[1], atoi(argv[2]), argv[3]);
    printf("ready\n");
    fflush(stdout);

    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input);
    setvbuf(stdin, NULL, _IONBF, 0);
    char command[64];
    for (;;) {
        struct pollfd asked = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&asked, 1, 0) == 0) {
            receive_all(1000);
            continue;
        }
        if (fgets(command, sizeof command, stdin) == NULL)
            return 0;
        long expected;
        double seconds;
        if (sscanf(command, "expect %ld %lf", &expected, &seconds) == 2) {
            expect(expected, seconds);
        } else {
            reset();
            printf("ok\n");
        }
        fflush(stdout);
    }
}
