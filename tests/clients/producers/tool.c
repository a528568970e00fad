/* The C producer as the tests drive it; tool.py tells the commands. */
#define SHEAFDB_PRODUCER_IMPLEMENTATION
#include "../../../clients/c/sheafdb_producer.h"

static long made;

static void tell_error(const sheafdb_producer *p, int status) {
    static const char *const kinds[] = {"", "timeout", "would-block", "too-large", "closed", "protocol", "disagree"};
    const char *kind = status > 0 ? "server" : status >= -6 ? kinds[-status] : "other";
    printf("error %s %d %s\n", kind, status > 0 ? status : 0, sheafdb_producer_error(p, NULL));
}

static int send_one(sheafdb_producer *p, const char *prefix, size_t size, int timeout_ms) {
    static char payload[4 << 20];
    int head = snprintf(payload, sizeof payload, "%s%ld", prefix, made);
    int status;
    if (size < (size_t)head) size = (size_t)head;
    memset(payload + head, '.', size - (size_t)head);
    status = sheafdb_producer_send(p, payload, size, timeout_ms, NULL);
    made += status != SHEAFDB_WOULD_BLOCK;
    return status;
}

static void tell_left(const sheafdb_producer *p) {
    uint64_t cursor = 0, id, first = 0, count = 0;
    const void *payload, *text = "-";
    size_t size, text_size = 1;
    while (sheafdb_producer_unacknowledged(p, &cursor, &id, &payload, &size)) {
        if (count++ == 0) first = id, text = payload, text_size = size;
    }
    printf("left %llu %llu %.*s\n", (unsigned long long)count, (unsigned long long)first, (int)text_size, (const char *)text);
}

static int work_for(sheafdb_producer *p, int ms) {
    int64_t until = sheafdb__now() + ms;
    int status = SHEAFDB_OK;
    while (!status && sheafdb__now() < until) status = sheafdb_producer_poll(p, 2);
    return status;
}

static void command(sheafdb_producer *p, const char *line) {
    char word[16] = "", prefix[64] = "";
    long first = 0;
    int size = 0, ms = 0, status = SHEAFDB_OK;
    int words = sscanf(line, "%15s %ld %d %63s %d", word, &first, &size, prefix, &ms);
    if (strcmp(word, "send") == 0 && words == 5) {
        while (!status && first-- > 0) status = send_one(p, prefix, (size_t)size, ms);
        if (!status) printf("sent %llu\n", (unsigned long long)sheafdb_producer_last(p));
    } else if (strcmp(word, "try") == 0) {
        sheafdb_producer_poll(p, 0);
        while (!status) status = send_one(p, "", (size_t)first, 0);
        if (status == SHEAFDB_WOULD_BLOCK) printf("full %llu\n", (unsigned long long)sheafdb_producer_last(p));
        status = status == SHEAFDB_WOULD_BLOCK ? SHEAFDB_OK : status;
    } else if (strcmp(word, "state") == 0) {
        printf("state %llu %llu %llu\n", (unsigned long long)sheafdb_producer_last(p), (unsigned long long)sheafdb_producer_acknowledged(p),
               (unsigned long long)sheafdb_producer_reconnects(p));
    } else if (strcmp(word, "left") == 0) {
        tell_left(p);
    } else {
        if (strcmp(word, "flush") == 0) status = sheafdb_producer_flush(p, (int)first);
        else if (strcmp(word, "close") == 0) status = sheafdb_producer_close(p, (int)first);
        else status = work_for(p, (int)first);
        if (!status) printf("ok %llu\n", (unsigned long long)sheafdb_producer_acknowledged(p));
    }
    if (status) tell_error(p, status);
    fflush(stdout);
}

static uint8_t among(const char *value, const char *const *names) {
    uint8_t i = 0;
    while (names[i] && strcmp(names[i], value) != 0) i++;
    return i;
}

static void option(sheafdb_options *o, const char *name, const char *value) {
    static const char *const levels[] = {"received", "memory", "fsynced", NULL}, *const sinks[] = {"listener", "null", "list", "stream", NULL},
                             *const strategies[] = {"adaptive", "synchronous", "batched", NULL};
    uint64_t n = strtoull(value, NULL, 10);
    if (!strcmp(name, "key")) o->key = value;
    else if (!strcmp(name, "user")) o->user = value;
    else if (!strcmp(name, "password")) o->password = value;
    else if (!strcmp(name, "level")) o->level = among(value, levels);
    else if (!strcmp(name, "strategy")) o->strategy = among(value, strategies);
    else if (!strcmp(name, "sink")) o->sink = among(value, sinks);
    else if (!strcmp(name, "exact")) o->exact = (uint8_t)n;
    else if (!strcmp(name, "resume")) o->resume = (uint8_t)n;
    else if (!strcmp(name, "ack_messages")) o->ack_messages = (uint32_t)n;
    else if (!strcmp(name, "ack_micros")) o->ack_micros = (uint32_t)n;
    else if (!strcmp(name, "db")) o->db = (uint32_t)n;
    else if (!strcmp(name, "maxlen")) o->maxlen = n;
    else if (!strcmp(name, "buffer_bytes")) o->buffer_bytes = (size_t)n;
    else if (!strcmp(name, "buffer_messages")) o->buffer_messages = n;
    else if (!strcmp(name, "frame_bytes")) o->frame_bytes = (size_t)n;
    else if (!strcmp(name, "connect_timeout_ms")) o->connect_timeout_ms = (int)n;
    else if (!strcmp(name, "attempt_timeout_ms")) o->attempt_timeout_ms = (int)n;
    else if (!strcmp(name, "backoff_min_ms")) o->backoff_min_ms = (int)n;
    else if (!strcmp(name, "backoff_max_ms")) o->backoff_max_ms = (int)n;
    else if (!strcmp(name, "stall_timeout_ms")) o->stall_timeout_ms = (int)n;
    else fprintf(stderr, "no option %s\n", name), exit(2);
}

/* Commands as they come; while none comes the producer does its work. */
static void serve(sheafdb_producer *p) {
    static char line[4096];
    size_t size = 0;
    for (;;) {
        struct pollfd two[2];
        char *end;
        ssize_t got;
        int ms = sheafdb_producer_interest(p, &two[0].fd, &two[0].events);
        two[1].fd = 0, two[1].events = POLLIN, two[1].revents = 0;
        if (poll(two, 2, ms) < 0) return;
        sheafdb_producer_poll(p, 0);
        if (!two[1].revents) continue;
        got = read(0, line + size, sizeof line - 1 - size);
        if (got <= 0) return;
        size += (size_t)got;
        line[size] = 0;
        while ((end = strchr(line, '\n')) != NULL) {
            *end = 0;
            command(p, line);
            size -= (size_t)(end + 1 - line);
            memmove(line, end + 1, size + 1);
        }
    }
}

int main(int count, char **words) {
    sheafdb_producer *p;
    sheafdb_options o;
    int i, status;
    if (count < 4) return 2;
    sheafdb_options_init(&o);
    o.host = words[1], o.port = (uint16_t)atoi(words[2]), o.producer = words[3];
    for (i = 4; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (!value) return 2;
        *value = 0;
        option(&o, words[i], value + 1);
    }
    status = sheafdb_producer_open(&o, &p);
    if (!p) return 3;
    if (status) tell_error(p, status);
    else printf("open %llu\n", (unsigned long long)sheafdb_producer_last(p));
    fflush(stdout);
    if (!status) serve(p);
    sheafdb_producer_free(p);
    return 0;
}
