/*
 * The baseline of fan-out: only libwebsockets and libmosquitto. Sends each message of a topic unparsed to all WebSockets. A thread of
 * libmosquitto receives; the thread of libwebsockets sends, one message for each writable callback, as its documentation advises.
 * Arguments: the broker's port on 127.0.0.1, and the topic.
 */
#include <libwebsockets.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of messages that a slow client may be behind; it is disconnected if it is further behind. */
enum { KEPT = 65536 };

struct message {
    size_t size;
    /* LWS_PRE bytes of room for the frame's head, then the payload. */
    unsigned char *bytes;
};

struct client {
    unsigned long next;
};

static struct message ring[KEPT];
static unsigned long tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lws_context *context;
static const char *topic;

static void on_connect(struct mosquitto *client, void *cls, int code) {
    (void)cls, (void)code;
    mosquitto_subscribe(client, NULL, topic, 0);
}

static void on_message(struct mosquitto *client, void *cls, const struct mosquitto_message *received) {
    (void)client, (void)cls;
    struct message message = {(size_t)received->payloadlen, malloc(LWS_PRE + (size_t)received->payloadlen)};
    memcpy(message.bytes + LWS_PRE, received->payload, message.size);
    pthread_mutex_lock(&lock);
    free(ring[tail % KEPT].bytes);
    ring[tail++ % KEPT] = message;
    pthread_mutex_unlock(&lock);
    lws_cancel_service(context);
}

static int serve(struct lws *connection, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
    struct client *client = user;
    (void)in, (void)size;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        pthread_mutex_lock(&lock);
        client->next = tail;
        pthread_mutex_unlock(&lock);
        break;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        lws_callback_on_writable_all_protocol(context, lws_get_protocol(connection));
        break;
    case LWS_CALLBACK_SERVER_WRITEABLE: {
        pthread_mutex_lock(&lock);
        unsigned long last = tail, is_behind = last - client->next;
        struct message message = ring[client->next % KEPT];
        pthread_mutex_unlock(&lock);
        if (is_behind == 0)
            break;
        /* Half of the ring is left, so that the message is not freed while it is sent. */
        if (is_behind > KEPT / 2 || lws_write(connection, message.bytes + LWS_PRE, message.size, LWS_WRITE_TEXT) < 0)
            return -1;
        if (++client->next != last)
            lws_callback_on_writable(connection);
        break;
    }
    default:
        break;
    }
    return 0;
}

/* libwebsockets handles signals with libuv, and then lws_service does not return. */
static void end(void *handle, int number) {
    (void)handle, (void)number;
    _exit(0);
}

int main(int argc, char **argv) {
    static const struct lws_protocols protocols[] = {{.name = "fanout", .callback = serve, .per_session_data_size = sizeof(struct client)},
                                                     {0}};
    if (argc != 3) {
        fprintf(stderr, "usage: fanout BROKER_PORT TOPIC\n");
        return 2;
    }
    topic = argv[2];
    lws_set_log_level(LLL_ERR, NULL);
    struct lws_context_creation_info info = {.port = 0, .iface = "lo", .protocols = protocols, .vhost_name = "fanout",
                                             .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_DISABLE_IPV6};
    info.options |= LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    info.signal_cb = end;
    context = lws_create_context(&info);
    struct lws_vhost *host = context == NULL ? NULL : lws_create_vhost(context, &info);
    if (host == NULL) {
        fprintf(stderr, "fanout: the server did not start\n");
        return 1;
    }

    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_message_callback_set(client, on_message);
    if (mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60) != MOSQ_ERR_SUCCESS ||
        mosquitto_loop_start(client) != MOSQ_ERR_SUCCESS) {
        fprintf(stderr, "fanout: no broker on port %s\n", argv[1]);
        return 1;
    }
    printf("fanout ready on http://127.0.0.1:%d\n", lws_get_vhost_listen_port(host));
    fflush(stdout);
    while (lws_service(context, 0) >= 0)
        ;
    return 0;
}
