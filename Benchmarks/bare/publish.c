/*
 * The baseline: only libmicrohttpd and libmosquitto. Collects the body of a POST, passes it unparsed to mosquitto_publish
 * with QoS 0, and responds with 202. Argument: the broker's port on 127.0.0.1.
 */
#include <microhttpd.h>
#include <mosquitto.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, CONNECTIONS = 1024, BODY_LIMIT = 8 * 1024 };

static const char topic[] = "coaty/3/-/ADV:CoatyObject/8f2b6c4e-5d17-4a39-9c10-7e6a2b91d3f4";

struct body {
    size_t size;
    char bytes[BODY_LIMIT];
};

static struct MHD_Response *accepted, *failed;
static struct mosquitto *client;

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *chunk, size_t *chunk_size, void **request) {
    (void)cls, (void)url, (void)method, (void)version;
    struct body *body = *request;
    if (body == NULL) {
        body = malloc(sizeof *body);
        if (body == NULL)
            return MHD_NO;
        body->size = 0;
        *request = body;
        return MHD_YES;
    }
    if (*chunk_size > 0) {
        if (*chunk_size > BODY_LIMIT - body->size)
            return MHD_NO;
        memcpy(body->bytes + body->size, chunk, *chunk_size);
        body->size += *chunk_size;
        *chunk_size = 0;
        return MHD_YES;
    }
    if (mosquitto_publish(client, NULL, topic, (int)body->size, body->bytes, 0, false) != MOSQ_ERR_SUCCESS)
        return MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, failed);
    return MHD_queue_response(connection, MHD_HTTP_ACCEPTED, accepted);
}

static void completed(void *cls, struct MHD_Connection *connection, void **request,
                      enum MHD_RequestTerminationCode reason) {
    (void)cls, (void)connection, (void)reason;
    free(*request);
}

int main(int argc, char **argv) {
    static char yes[] = "{\"deferred\":false}";
    static char no[] = "{\"status\":503}";
    if (argc != 2) {
        fprintf(stderr, "usage: publish BROKER_PORT\n");
        return 2;
    }
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    mosquitto_lib_init();
    client = mosquitto_new(NULL, true, NULL);
    if (client == NULL || mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60) != MOSQ_ERR_SUCCESS ||
        mosquitto_loop_start(client) != MOSQ_ERR_SUCCESS) {
        fprintf(stderr, "publish: no broker on port %s\n", argv[1]);
        return 1;
    }

    accepted = MHD_create_response_from_buffer(strlen(yes), yes, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(accepted, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    failed = MHD_create_response_from_buffer(strlen(no), no, MHD_RESPMEM_PERSISTENT);
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, &answer, NULL, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_NOTIFY_COMPLETED, &completed, NULL,
        MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "publish: the daemon did not start\n");
        return 1;
    }
    printf("publish ready on http://127.0.0.1:%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);

    int signal;
    sigwait(&stop, &signal);
    MHD_stop_daemon(daemon);
    MHD_destroy_response(accepted);
    MHD_destroy_response(failed);
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, true);
    mosquitto_destroy(client);
    mosquitto_lib_cleanup();
    return 0;
}
