/*
 * Publishes events of 270 bytes at an even rate, with consecutive numbers and the time at which each was sent. Each event has the
 * id of another object. Fails if the broker closes the connection.
 */
#include "load.h"
#include <mosquitto.h>

/* Every number has ten digits, so that all events have the same size. */
static const long base = 1000000000;
static const char format[] =
    "{\"object\":{\"coreType\":\"CoatyObject\",\"objectType\":\"coaty.CoatyObject\",\"objectId\":\"3d6fd1c0-0c56-4f0e-9f1a-00%ld\","
    "\"name\":\"Reading of soil moisture\",\"percent\":41.5,\"quality\":\"ok\",\"unit\":\"%%\",\"bed\":\"north 3\",\"crop\":\"peas\","
    "\"sequence\":%ld,\"sentAt\":%lld}}";
static volatile int connected, lost;

static void on_connect(struct mosquitto *client, void *context, int code) {
    (void)client, (void)context;
    connected = code == 0;
}

static void on_disconnect(struct mosquitto *client, void *context, int code) {
    (void)client, (void)context;
    lost = code != 0;
}

static void wait_until(int64_t time) {
    struct timespec until = {time / 1000000000, time % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv) {
    if (argc != 6)
        FAIL("usage: publisher BROKER_PORT TOPIC RATE COUNT FIRST");
    double rate = atof(argv[3]);
    long count = atol(argv[4]), first = base + atol(argv[5]);
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_disconnect_callback_set(client, on_disconnect);
    if (mosquitto_connect(client, "127.0.0.1", atoi(argv[1]), 60) != MOSQ_ERR_SUCCESS)
        FAIL("no broker on port %s", argv[1]);
    mosquitto_loop_start(client);
    for (int tries = 0; !connected; tries++) {
        if (tries == 5000)
            FAIL("the broker did not accept the connection");
        wait_until(now_ns() + 1000000);
    }

    int64_t start = now_ns();
    for (long number = 0; number < count && !lost; number++) {
        int64_t due = start + (int64_t)((double)number / rate * 1e9);
        /* The shortest sleep takes 60 us, so events up to then go out together. */
        if (due > now_ns() + 60000)
            wait_until(due);
        char payload[512];
        int size = snprintf(payload, sizeof payload, format, first + number, first + number, (long long)now_ns());
        if (mosquitto_publish(client, NULL, argv[2], size, payload, 0, false) != MOSQ_ERR_SUCCESS)
            lost = 1;
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    for (int tries = 0; mosquitto_want_write(client) && tries < 10000; tries++)
        wait_until(now_ns() + 1000000);
    if (lost || mosquitto_want_write(client))
        FAIL("the broker does not take the events");
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, false);
    printf("{\"published\": %ld, \"seconds\": %.6f}\n", count, seconds);
    return 0;
}
