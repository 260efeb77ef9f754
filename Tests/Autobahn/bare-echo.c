// An echo server that uses only libwebsockets, with the options of WebSocketServer. WebSocketServer may fail the cases that it fails.
// usage: bare-echo port

#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECEIVE_BYTES = 4096, SEND_BYTES = 64 * 1024 };

struct message {
    struct message *next;
    unsigned char *buffer;
    size_t length;
    enum lws_write_protocol kind;
};

struct session {
    struct message *inbound, *first, *last;
};

static void release(struct message *message) {
    if (message) free(message->buffer);
    free(message);
}

static int received(struct lws *wsi, struct session *session, const void *bytes, size_t length) {
    struct message *message = session->inbound;
    if (!message) {
        if (!(message = session->inbound = calloc(1, sizeof(*message)))) return -1;
        message->kind = lws_frame_is_binary(wsi) ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
    }
    unsigned char *buffer = realloc(message->buffer, LWS_PRE + message->length + length);
    if (!buffer) return -1;
    message->buffer = buffer;
    if (length) memcpy(buffer + LWS_PRE + message->length, bytes, length);
    message->length += length;
    if (!lws_is_final_fragment(wsi)) return 0;
    if (session->last) session->last->next = message;
    else session->first = message;
    session->last = message;
    session->inbound = NULL;
    lws_callback_on_writable(wsi);
    return 0;
}

static int writable(struct lws *wsi, struct session *session) {
    struct message *message = session->first;
    if (!message) return 0;
    if (!(session->first = message->next)) session->last = NULL;
    int result = lws_write(wsi, message->buffer + LWS_PRE, message->length, message->kind);
    release(message);
    if (session->first) lws_callback_on_writable(wsi);
    return result < 0 ? -1 : 0;
}

static int handle(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *input, size_t length) {
    struct session *session = user;
    switch (reason) {
    case LWS_CALLBACK_RECEIVE:
        return received(wsi, session, input, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return writable(wsi, session);
    case LWS_CALLBACK_CLOSED:
        release(session->inbound);
        while (session->first) {
            struct message *next = session->first->next;
            release(session->first);
            session->first = next;
        }
        return 0;
    default:
        return 0;
    }
}

static const struct lws_protocols protocols[] = {
    {"(none)", handle, sizeof(struct session), RECEIVE_BYTES, 0, NULL, SEND_BYTES},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};

int main(int count, char **arguments) {
    struct lws_context_creation_info info = {0};
    lws_set_log_level(0, NULL);
    info.port = count > 1 ? atoi(arguments[1]) : 0;
    info.iface = "lo";
    info.protocols = protocols;
    info.options = LWS_SERVER_OPTION_VALIDATE_UTF8;
    struct lws_context *context = lws_create_context(&info);
    if (!context) return 1;
    while (lws_service(context, 0) >= 0) continue;
    return 0;
}
