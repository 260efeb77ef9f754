/*
 * The baseline of a discover: only libmosquitto. Subscribes to the responses, publishes a Discover event for com.example.Job, waits for
 * the Resolve event and unsubscribes, one after the other. Prints the number of requests and their latencies as JSON.
 */
#include "load.h"
#include <mosquitto.h>
#include <poll.h>

static const char payload[] = "{\"objectTypes\":[\"com.example.Job\"]}";
static int answered, connected;

static void on_connect(struct mosquitto *client, void *context, int code) {
    (void)client, (void)context;
    connected = code == 0;
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *message) {
    (void)client, (void)context, (void)message;
    answered = 1;
}

/* Waits until `done`. The broker sends the SUBACK by itself, so a delayed acknowledgement would delay the response by 40 ms. */
static void wait_for(struct mosquitto *client, const int *done) {
    int64_t deadline = now_ns() + 5000000000LL;
    while (!*done) {
        int quick = 1, descriptor = mosquitto_socket(client);
        struct pollfd poller = {.fd = descriptor, .events = POLLIN | (mosquitto_want_write(client) ? POLLOUT : 0)};
        setsockopt(descriptor, IPPROTO_TCP, TCP_QUICKACK, &quick, sizeof quick);
        poll(&poller, 1, 1000);
        if (poller.revents & POLLOUT)
            mosquitto_loop_write(client, 1);
        if (poller.revents & POLLIN && mosquitto_loop_read(client, 1) != MOSQ_ERR_SUCCESS)
            FAIL("the broker closed the connection");
        if (now_ns() > deadline)
            FAIL("no agent responded");
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        FAIL("usage: roundtrip BROKER_PORT SECONDS");
    static struct latencies latencies;
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_message_callback_set(client, on_message);
    if (mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60) != MOSQ_ERR_SUCCESS)
        FAIL("no broker on port %s", argv[1]);
    wait_for(client, &connected);

    int64_t start = now_ns(), end = start + (int64_t)(atof(argv[2]) * 1e9);
    for (unsigned number = 0; now_ns() < end; number++) {
        char responses[128], topic[128];
        snprintf(responses, sizeof responses, "coaty/3/-/RSV/+/%08x-0000-4000-8000-000000000000", number);
        snprintf(topic, sizeof topic, "coaty/3/-/DSC/8f2b6c4e-5d17-4a39-9c10-7e6a2b91d3f4/%08x-0000-4000-8000-000000000000", number);
        int64_t sent = now_ns();
        answered = 0;
        mosquitto_subscribe(client, NULL, responses, 0);
        mosquitto_publish(client, NULL, topic, sizeof payload - 1, payload, 0, false);
        wait_for(client, &answered);
        record(&latencies, now_ns() - sent);
        mosquitto_unsubscribe(client, NULL, responses);
    }
    printf("{\"requests\": %lu, \"seconds\": %.6f, \"p50\": %.1f, \"p99\": %.1f}\n", latencies.count, (double)(now_ns() - start) / 1e9,
           percentile(&latencies, 0.5), percentile(&latencies, 0.99));
    return 0;
}
