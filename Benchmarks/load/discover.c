/*
 * Sends POST /v1/discover for com.example.Job on keep-alive connections, each with one request at a time. Prints the number of
 * requests and their latencies as JSON. Fails if a request has no response from an agent, or if a connection is closed.
 */
#include "load.h"
#include <strings.h>
#include <sys/epoll.h>

enum { ROOM = 16 * 1024, EVENTS = 64 };

static const char request[] = "POST /v1/discover?timeout=5000 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                              "Content-Length: 35\r\n\r\n{\"objectTypes\":[\"com.example.Job\"]}";

struct connection {
    int descriptor;
    int64_t sent;
    size_t size;
    char text[ROOM + 1];
};

static void send_request(struct connection *connection) {
    connection->size = 0;
    connection->sent = now_ns();
    send_all(connection->descriptor, request, sizeof request - 1);
}

/* Returns whether the response is complete. */
static int receive(struct connection *connection) {
    ssize_t count = recv(connection->descriptor, connection->text + connection->size, ROOM - connection->size, 0);
    if (count <= 0)
        FAIL("a connection was closed after %zu bytes", connection->size);
    connection->size += (size_t)count;
    connection->text[connection->size] = 0;
    char *end = strstr(connection->text, "\r\n\r\n");
    if (end == NULL)
        return 0;
    char *length = strcasestr(connection->text, "\r\ncontent-length:");
    if (length == NULL || length > end)
        FAIL("a response has no length: %s", connection->text);
    if (connection->size < (size_t)(end + 4 - connection->text) + strtoul(length + 17, NULL, 10))
        return 0;
    if (strncmp(connection->text, "HTTP/1.1 200", 12) != 0 || strstr(end, "\"responses\":[{") == NULL)
        FAIL("no agent responded: %s", connection->text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4)
        FAIL("usage: discover PORT CONNECTIONS SECONDS");
    int count = atoi(argv[2]), epoll = epoll_create1(0);
    static struct latencies latencies;
    struct connection *connections = calloc((size_t)count, sizeof *connections);
    int64_t start = now_ns(), end = start + (int64_t)(atof(argv[3]) * 1e9);
    for (int index = 0; index < count; index++) {
        connections[index].descriptor = connect_to(atoi(argv[1]));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[index]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connections[index].descriptor, &event);
        send_request(&connections[index]);
    }
    for (int pending = count; pending > 0;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, 10000);
        if (ready <= 0)
            FAIL("no response for ten seconds");
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            if (!receive(connection))
                continue;
            int64_t now = now_ns();
            record(&latencies, now - connection->sent);
            if (now < end)
                send_request(connection);
            else
                pending--;
        }
    }
    printf("{\"requests\": %lu, \"seconds\": %.6f, \"p50\": %.1f, \"p99\": %.1f}\n", latencies.count, (double)(now_ns() - start) / 1e9,
           percentile(&latencies, 0.5), percentile(&latencies, 0.99));
    return 0;
}
