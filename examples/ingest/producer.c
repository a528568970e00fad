/* Measured values into a stream, each once and in order, whatever happens to the connection:
 * cc -I clients/c examples/ingest/producer.c -o producer && ./producer [PORT] [COUNT] */
#define SHEAFDB_PRODUCER_IMPLEMENTATION
#include "sheafdb_producer.h"

int main(int argc, char **argv) {
    unsigned long long n, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    char text[64];
    sheafdb_producer *p;
    sheafdb_options o;
    sheafdb_options_init(&o);
    o.host = "127.0.0.1", o.port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 9100);
    o.producer = "example-c", o.sink = SHEAFDB_SINK_STREAM, o.key = "example:ingest";
    int status = sheafdb_producer_open(&o, &p);
    /* A program that was killed goes on where the server says: numbers never start again. */
    for (n = status ? count : sheafdb_producer_last(p); !status && n < count; n++) {
        int size = snprintf(text, sizeof text, "value %llu", n + 1);
        status = sheafdb_producer_send(p, text, (size_t)size, 30000, NULL); /* waits if too much is unacknowledged */
    }
    if (!status) status = sheafdb_producer_close(p, 30000);
    if (status) fprintf(stderr, "%d: %s\n", status, p ? sheafdb_producer_error(p, NULL) : "no memory");
    else printf("%llu are in the stream\n", (unsigned long long)sheafdb_producer_acknowledged(p));
    sheafdb_producer_free(p);
    return status != 0;
}
