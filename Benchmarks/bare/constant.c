/* The upper bound: only libmicrohttpd. Accepts every POST and answers with a constant 202. */
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 2, CONNECTIONS = 1024 };

static struct MHD_Response *accepted;

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *body, size_t *body_size, void **request) {
    static int seen;
    (void)cls, (void)url, (void)method, (void)version, (void)body;
    if (*request == NULL) {
        *request = &seen;
        return MHD_YES;
    }
    if (*body_size > 0) {
        *body_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_ACCEPTED, accepted);
}

int main(void) {
    static char body[] = "{\"deferred\":false}";
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    accepted = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(accepted, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, &answer, NULL, MHD_OPTION_THREAD_POOL_SIZE,
                         (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "constant: the daemon did not start\n");
        return 1;
    }
    printf("constant ready on http://127.0.0.1:%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);

    int signal;
    sigwait(&stop, &signal);
    MHD_stop_daemon(daemon);
    MHD_destroy_response(accepted);
    return 0;
}
