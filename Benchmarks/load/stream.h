/* The protocols of subscribers.c: requests, and the bytes inside of WebSocket frames and HTTP chunks. */
#include "load.h"

enum slice_kind { TEXT, PING, OTHER };

/* A part of the bytes that the server has sent. */
struct slice {
    enum slice_kind kind;
    char *start;
    size_t size;
};

/* Where a connection is in its frames or chunks. */
struct stream {
    int chunked;
    enum slice_kind kind;
    /* Bytes of the frame or chunk that have not arrived. */
    uint64_t remaining;
    /* The bytes of a head that have arrived. */
    unsigned char head[16];
    unsigned head_size;
};

/* Returns whether the head of a frame is complete after its next byte. */
static inline int take_frame_head(struct stream *stream, unsigned char byte) {
    unsigned char *head = stream->head;
    head[stream->head_size++] = byte;
    if (stream->head_size < 2)
        return 0;
    unsigned length = head[1] & 127, extra = length == 127 ? 8 : length == 126 ? 2 : 0;
    if (stream->head_size < 2 + extra)
        return 0;
    stream->remaining = extra ? 0 : length;
    for (unsigned index = 0; index < extra; index++)
        stream->remaining = stream->remaining << 8 | head[2 + index];
    stream->kind = (head[0] & 15) < 8 ? TEXT : (head[0] & 15) == 9 ? PING : OTHER;
    stream->head_size = 0;
    return 1;
}

/* Returns whether the head of a chunk is complete after its next byte. The line end of the previous chunk counts as a part of it. */
static inline int take_chunk_head(struct stream *stream, unsigned char byte) {
    if (byte == '\n') {
        int is_complete = stream->head_size > 0;
        stream->head[stream->head_size] = 0;
        stream->remaining = strtoull((char *)stream->head, NULL, 16);
        stream->kind = TEXT;
        stream->head_size = 0;
        return is_complete;
    }
    if (byte != '\r' && stream->head_size < sizeof stream->head - 1)
        stream->head[stream->head_size++] = byte;
    return 0;
}

/* Finds the next part between `at` and `end`, and moves `at` behind it. Returns whether there is one. */
static inline int next_slice(struct stream *stream, char **at, char *end, struct slice *slice) {
    while (stream->remaining == 0) {
        if (*at == end)
            return 0;
        unsigned char byte = (unsigned char)*(*at)++;
        int is_complete = stream->chunked ? take_chunk_head(stream, byte) : take_frame_head(stream, byte);
        if (is_complete && stream->kind == PING && stream->remaining == 0) {
            *slice = (struct slice){PING, *at, 0};
            return 1;
        }
    }
    if (*at == end)
        return 0;
    size_t size = (size_t)(end - *at) < stream->remaining ? (size_t)(end - *at) : stream->remaining;
    *slice = (struct slice){stream->kind, *at, size};
    *at += size;
    stream->remaining -= size;
    return 1;
}

static inline void send_request(int descriptor, const char *kind, const char *target) {
    char text[1024];
    int is_plain = strcmp(kind, "ws") == 0, size;
    if (strcmp(kind, "sse") == 0)
        size = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n", target);
    else
        size = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n%s"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                        is_plain ? target : strcmp(kind, "mqtt") == 0 ? "/mqtt" : "/v1/ws",
                        strcmp(kind, "mqtt") == 0 ? "Sec-WebSocket-Protocol: mqtt\r\n" : "");
    send_all(descriptor, text, (size_t)size);
}

/* Sends a WebSocket frame. Its mask is 0, so that the content is sent as it is. */
static inline void send_frame(int descriptor, int opcode, const char *content, size_t size) {
    char frame[512] = {(char)(0x80 | opcode)};
    size_t head = size < 126 ? 6 : 8;
    frame[1] = (char)(0x80 | (size < 126 ? size : 126));
    if (size >= 126)
        frame[2] = (char)(size >> 8), frame[3] = (char)size;
    memcpy(frame + head, content, size);
    send_all(descriptor, frame, head + size);
}

/* Sends what a kind of connection needs to subscribe after the handshake. */
static inline void subscribe(int descriptor, const char *kind, const char *target) {
    char text[400];
    if (strcmp(kind, "mux") == 0) {
        int size = snprintf(text, sizeof text, "{\"op\":\"subscribe\",\"id\":\"s1\",\"event\":\"channel\",\"channelId\":\"%s\"}", target);
        send_frame(descriptor, 1, text, (size_t)size);
    } else if (strcmp(kind, "mqtt") == 0) {
        /* The broker gives the client an id. */
        send_frame(descriptor, 2, "\x10\x0c\0\4MQTT\4\2\0\0\0\0", 14);
        size_t length = strlen(target);
        char packet[300] = {(char)0x82, (char)(length + 5), 0, 1, 0, (char)length};
        memcpy(packet + 6, target, length);
        send_frame(descriptor, 2, packet, length + 7);
    }
}

/* Whether the server confirms the subscription with a frame: only the gateway does, whose targets begin with /v1/. */
static inline int has_ok(const char *kind, const char *target) {
    return strcmp(kind, "mux") == 0 || (strcmp(kind, "mqtt") != 0 && strcmp(kind, "idle") != 0 && strncmp(target, "/v1/", 4) == 0);
}

/* Receives until a text has arrived behind `from`. Returns its end. */
static inline char *receive_until(int descriptor, char *from, size_t *size, size_t room, const char *text, size_t length) {
    static char *start;
    if (*size == 0)
        start = from;
    for (;;) {
        char *found = memmem(from, (size_t)(start + *size - from), text, length);
        if (found != NULL)
            return found + length;
        ssize_t count = recv(descriptor, start + *size, room - *size, 0);
        if (count <= 0)
            FAIL("the server closed a connection during its handshake: %.*s", (int)*size, start);
        *size += (size_t)count;
    }
}
