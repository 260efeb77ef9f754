#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <microhttpd.h>

// Fixed-argument forms of libmicrohttpd's variadic functions, which Swift cannot call.

struct cmhd_configuration {
    unsigned int threads;
    unsigned int connection_limit;
    unsigned int connection_timeout; // seconds
    size_t connection_memory;        // bytes
    MHD_AccessHandlerCallback handler;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback notify;
    void *context;
};

// Keeps percent escapes: libmicrohttpd would decode %2F and cut a path at %00. HTTPServer decodes them per segment.
static inline size_t cmhd_keep_escapes(void *context, struct MHD_Connection *connection, char *string) {
    (void)context;
    (void)connection;
    return strlen(string);
}

static inline struct MHD_Daemon *cmhd_start(const struct cmhd_configuration *c) {
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0,
        NULL, NULL, c->handler, c->context,
        MHD_OPTION_THREAD_POOL_SIZE, c->threads,
        MHD_OPTION_CONNECTION_LIMIT, c->connection_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, c->connection_timeout,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, c->connection_memory,
        MHD_OPTION_UNESCAPE_CALLBACK, cmhd_keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, c->completed, c->context,
        MHD_OPTION_NOTIFY_CONNECTION, c->notify, c->context,
        MHD_OPTION_END);
}

// Adds a connection to the daemon. libmicrohttpd keeps the numeric address `peer` with it for cmhd_peer(). Text that is
// not numeric counts as no address.
static inline enum MHD_Result cmhd_add_connection(struct MHD_Daemon *daemon, int descriptor, const char *peer) {
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;
    struct sockaddr none;
    memset(&v6, 0, sizeof(v6));
    memset(&v4, 0, sizeof(v4));
    memset(&none, 0, sizeof(none));
    if (inet_pton(AF_INET, peer, &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        return MHD_add_connection(daemon, descriptor, (const struct sockaddr *)&v4, sizeof(v4));
    }
    if (inet_pton(AF_INET6, peer, &v6.sin6_addr) == 1) {
        v6.sin6_family = AF_INET6;
        return MHD_add_connection(daemon, descriptor, (const struct sockaddr *)&v6, sizeof(v6));
    }
    return MHD_add_connection(daemon, descriptor, &none, sizeof(none));
}

enum { CMHD_PEER_SIZE = INET6_ADDRSTRLEN };

// Writes the numeric address that the connection was added with to `buffer` of CMHD_PEER_SIZE bytes; empty without one.
static inline void cmhd_peer(struct MHD_Connection *connection, char *buffer) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info == NULL ? NULL : info->client_addr;
    buffer[0] = 0;
    if (address == NULL) return;
    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, buffer, CMHD_PEER_SIZE);
    } else if (address->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, buffer, CMHD_PEER_SIZE);
    }
}

static inline size_t cmhd_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

static inline int cmhd_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

// Keeps libmicrohttpd from sending "100 Continue" for this request, whose answer is already sent. It reads the field after the first
// call of the handler, from memory of the connection, which is writable.
static inline void cmhd_forget_expectation(struct MHD_Connection *connection) {
    char *value = (char *)MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Expect");
    if (value != NULL && *value != 0) *value = '-';
}

// Returns the value that the callback for a new connection has stored in the connection's context.
static inline void *cmhd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

// Iterates once over header fields and query items. The kinds are bits, which the closed enumeration hides from Swift.
static inline void cmhd_examine(struct MHD_Connection *connection, MHD_KeyValueIteratorN iterator, void *context) {
    MHD_get_connection_values_n(
        connection, (enum MHD_ValueKind)(MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND), iterator, context);
}

// Returns whether a field name is a token (RFC 9110, section 5.6.2).
static inline int cmhd_is_token(const char *name, size_t size) {
    for (size_t index = 0; index < size; index++) {
        unsigned char byte = (unsigned char)name[index];
        if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9')) continue;
        if (byte == 0 || strchr("!#$%&'*+-.^_`|~", byte) == NULL) return 0;
    }
    return size > 0;
}
