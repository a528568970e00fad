/* The codec of sheafdb_producer.h against the test vectors: test_vectors docs/formats/ingest2-vectors.txt. Also compiled as C++. */
#define SHEAFDB_PRODUCER_IMPLEMENTATION
#include "sheafdb_producer.h"

enum { LINE = 40000 };

static int faults, counted[9];

#define CHECK(condition) ((condition) ? (void)0 : fault(#condition, line_number))

static void fault(const char *what, int line_number) {
    fprintf(stderr, "line %d: %s\n", line_number, what);
    faults++;
}

static size_t unhex(const char *from, unsigned char *to) {
    size_t size = 0;
    unsigned value;
    for (; sscanf(from, "%2x", &value) == 1 && from[0] > ' ' && from[1] > ' '; from += 2) to[size++] = (unsigned char)value;
    return size;
}

/* The value of `name=` among the words; NULL if it is left out. */
static const char *field(const char *words, const char *name) {
    size_t size = strlen(name);
    const char *at = words;
    while ((at = strchr(at, ' ')) != NULL) {
        at++;
        if (strncmp(at, name, size) == 0 && at[size] == '=') return at + size + 1;
    }
    return NULL;
}

static uint64_t number(const char *words, const char *name) {
    const char *value = field(words, name);
    return value ? strtoull(value, NULL, 10) : 0;
}

static unsigned char text_bytes[4][LINE];

static size_t text(const char *words, const char *name, int which, const void **to) {
    const char *value = field(words, name);
    *to = text_bytes[which];
    return value ? unhex(value, text_bytes[which]) : 0;
}

static void hello(const char *words, const unsigned char *wanted, size_t size, int line_number) {
    static unsigned char got[SHEAFDB__HEADER + SHEAFDB__HELLO_MAX];
    sheafdb_options o;
    sheafdb_options_init(&o);
    o.level = (uint8_t)number(words, "level"), o.strategy = (uint8_t)number(words, "strategy"), o.sink = (uint8_t)number(words, "sink");
    o.ack_messages = (uint32_t)number(words, "ack_messages"), o.ack_micros = (uint32_t)number(words, "ack_micros");
    o.resume = number(words, "flags") & 1, o.exact = (number(words, "flags") & 2) != 0;
    o.db = (uint32_t)number(words, "db"), o.maxlen = number(words, "maxlen");
    o.producer_size = text(words, "producer", 0, &o.producer), o.key_size = text(words, "key", 1, &o.key);
    o.user_size = text(words, "user", 2, &o.user), o.password_size = text(words, "password", 3, &o.password);
    if (!o.key_size) o.key = NULL;
    if (!o.user_size) o.user = NULL;
    if (!o.password_size) o.password = NULL;
    CHECK(sheafdb__write_hello(got, &o) == size && memcmp(got, wanted, size) == 0);
}

/* A producer that has no connection, about to send number `first`. */
static sheafdb_producer *unconnected(uint64_t first) {
    sheafdb_producer *p = (sheafdb_producer *)calloc(1, sizeof *p);
    sheafdb_options_init(&p->options);
    p->fd = -1, p->state = SHEAFDB__ENDED;
    p->acknowledged = p->framed = p->last = first - 1;
    p->max_message = p->max_frame = UINT32_MAX, p->credit = UINT64_MAX;
    return p;
}

static void data(const char *words, const unsigned char *wanted, size_t size, int line_number) {
    static unsigned char payload[LINE];
    sheafdb_producer *p = unconnected(number(words, "first_id"));
    const char *at = field(words, "messages");
    for (;; at++) {
        size_t bytes = *at == '-' ? 0 : unhex(at, payload);
        CHECK(sheafdb_producer_send(p, payload, bytes, 0, NULL) == SHEAFDB_OK);
        at += *at == '-' ? 1 : 2 * bytes;
        if (*at != ',') break;
    }
    CHECK(sheafdb__next_data(p) && p->front_size == 16 && memcmp(p->front, wanted, 16) == 0);
    CHECK(p->body_end - p->body_at == size - 16 && memcmp(p->buffer + (p->body_at - p->base), wanted + 16, size - 16) == 0);
    CHECK(p->total == size && !sheafdb__next_data(p));
    sheafdb_producer_free(p);
}

static void from_server(unsigned type, const char *words, const unsigned char *octets, size_t size, int line_number) {
    sheafdb__frame f;
    size_t cut;
    for (cut = 0; cut < size; cut++) CHECK(sheafdb__read(octets, cut, &f) == 0);
    CHECK(sheafdb__read(octets, size, &f) == (long)size && f.type == type && f.flags == number(words, "flags"));
    CHECK(f.version == number(words, "version") && f.level == number(words, "level") && f.strategy == number(words, "strategy"));
    CHECK(f.max_message == number(words, "max_message") && f.max_frame == number(words, "max_frame") && f.idle_ms == number(words, "idle_ms"));
    CHECK(f.id == (type == SHEAFDB__WELCOME ? number(words, "last_id") : number(words, "id")));
    CHECK(f.skipped == number(words, "skipped") && f.memory == number(words, "memory") && f.durable == number(words, "durable"));
    CHECK(f.credit == (type == SHEAFDB__WELCOME ? number(words, "credit") : number(words, "limit")));
    CHECK(f.code == number(words, "code"));
    if (type == SHEAFDB__ERROR) {
        const void *wanted;
        size_t bytes = text(words, "text", 0, &wanted);
        CHECK(f.text_size == bytes && memcmp(f.text, wanted, bytes) == 0);
    }
}

static void empty(int type, const unsigned char *wanted, size_t size, int line_number) {
    sheafdb_producer *p = unconnected(1);
    p->state = SHEAFDB__OPEN;
    if (type == SHEAFDB__FLUSH) p->flush = 1;
    else p->bye = 1;
    CHECK(sheafdb__next_output(p) && p->front_size == size && memcmp(p->front, wanted, size) == 0);
    sheafdb_producer_free(p);
}

static void one(char *line, int line_number) {
    static unsigned char octets[LINE];
    static const char *const names[] = {"hello", "data", "flush", "bye", "welcome", "ack", "credit", "error"};
    char *right = strstr(line, " = ");
    sheafdb__frame f;
    size_t size;
    int i;
    if (!right) return;
    *right = 0;
    size = unhex(right + 3, octets);
    if (strncmp(line, "bad s ", 6) == 0) {
        counted[8]++;
        CHECK(sheafdb__read(octets, size, &f) == -1);
    }
    if (strncmp(line, "frame ", 6) != 0) return;
    for (i = 0; i < 8; i++) {
        const char *words = line + 6;
        size_t name = strlen(names[i]);
        if (strncmp(words, names[i], name) != 0 || (words[name] && words[name] != ' ')) continue;
        counted[i]++;
        if (i == 0) hello(words, octets, size, line_number);
        else if (i == 1) data(words, octets, size, line_number);
        else if (i < 4) empty(i + 1, octets, size, line_number);
        else from_server((unsigned)(0x81 + i - 4), words, octets, size, line_number);
    }
}

int main(int count, char **words) {
    static char line[LINE];
    FILE *file = count == 2 ? fopen(words[1], "r") : NULL;
    int line_number = 0, i, all = 0;
    if (!file) {
        fprintf(stderr, "test_vectors FILE\n");
        return 2;
    }
    while (fgets(line, sizeof line, file)) one(line, ++line_number);
    fclose(file);
    for (i = 0; i < 9; i++) {
        all += counted[i];
        if (!counted[i]) fault("no vector of one kind", i);
    }
    printf("%d vectors, %d faults\n", all, faults);
    return faults != 0;
}
