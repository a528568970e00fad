/* A producer for ingest protocol 2 of SheafDB (docs/formats/ingest.md): one header, C99 or C++, POSIX sockets, no threads.
 *
 *     #define SHEAFDB_PRODUCER_IMPLEMENTATION      in one source file, before everything else that it includes
 *     #include "sheafdb_producer.h"
 *
 * Each message is in the key once and in order, whatever happens to connections. It is numbered and kept until the server
 * acknowledges it; a lost connection is made again, and what the server does not hold is sent again. All of that happens inside
 * calls: a program that has nothing to send calls sheafdb_producer_poll() now and then, or waits for sheafdb_producer_interest() in
 * a loop of its own. A message leaves when `frame_bytes` wait, or at the next poll, flush or close. One handle belongs to one
 * thread at a time. Only looking up a host's name may block for longer than a call was allowed to.
 */
#ifndef SHEAFDB_PRODUCER_H
#define SHEAFDB_PRODUCER_H

#if defined(SHEAFDB_PRODUCER_IMPLEMENTATION) && !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE) && !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return: 0, one of these, or the code of an Error frame, which is above 0. */
enum {
    SHEAFDB_OK = 0,
    SHEAFDB_TIMEOUT = -1,     /* not done in time; nothing is lost, repeat the call */
    SHEAFDB_WOULD_BLOCK = -2, /* too much is unacknowledged: the message was not taken */
    SHEAFDB_TOO_LARGE = -3,   /* more than the server or the buffer takes: the message was not taken */
    SHEAFDB_CLOSED = -4,      /* the handle was closed */
    SHEAFDB_PROTOCOL = -5,    /* the server sent what is none of this protocol */
    SHEAFDB_DISAGREE = -6,    /* the server holds other messages than were sent: somebody else uses the name, or some were lost */
    SHEAFDB_NO_MEMORY = -7,
    SHEAFDB_INVALID = -8,     /* options that cannot be */
    SHEAFDB_NUMBERS_END = -9, /* 2^64 - 1 was given out */

    SHEAFDB_NO_HELLO = 1, SHEAFDB_VERSION, SHEAFDB_MALFORMED, SHEAFDB_FRAME_TOO_LARGE, SHEAFDB_AUTHENTICATION, SHEAFDB_DATABASE,
    SHEAFDB_LEVEL, SHEAFDB_SINK, SHEAFDB_UNKNOWN_PRODUCER, SHEAFDB_TAKEN_OVER, SHEAFDB_WRONG_TYPE, SHEAFDB_CREDIT, SHEAFDB_GAP,
    SHEAFDB_LIMIT, SHEAFDB_SHUTDOWN, SHEAFDB_IDLE, SHEAFDB_FULL
};

enum { SHEAFDB_RECEIVED, SHEAFDB_IN_MEMORY, SHEAFDB_FSYNCED };               /* level */
enum { SHEAFDB_ADAPTIVE, SHEAFDB_SYNCHRONOUS, SHEAFDB_BATCHED };             /* strategy */
enum { SHEAFDB_SINK_LISTENER, SHEAFDB_SINK_NULL, SHEAFDB_SINK_LIST, SHEAFDB_SINK_STREAM }; /* sink */

/* Filled by sheafdb_options_init(); `host`, `port` and `producer` must be set. Sizes of 0 mean strlen(). Everything is copied. */
typedef struct {
    const char *host;
    uint16_t port;
    const void *producer; size_t producer_size;
    const void *key; size_t key_size;
    const void *user; size_t user_size;
    const void *password; size_t password_size;
    uint8_t level, strategy, sink, exact;
    uint8_t resume; /* the server must know this producer already */
    uint32_t ack_messages, ack_micros, db;
    uint64_t maxlen;
    size_t buffer_bytes;       /* unacknowledged at most, 4 for each message included: 4 MiB */
    uint64_t buffer_messages;  /* and so many: 65536 */
    size_t frame_bytes;        /* a Data frame is closed when it is so long: 16 KiB */
    int connect_timeout_ms;    /* for the first connection: 10 s */
    int attempt_timeout_ms;    /* for each try: 5 s */
    int backoff_min_ms, backoff_max_ms; /* pause between tries, doubling until something is acknowledged: 20 ms, 2 s */
    int stall_timeout_ms;      /* a connection that owes acknowledgements and says nothing for so long is made anew: 60 s; -1: never */
} sheafdb_options;

typedef struct sheafdb_producer sheafdb_producer;

void sheafdb_options_init(sheafdb_options *options);

/* Connects and waits for the Welcome. *producer is set, for sheafdb_producer_error(), also if that failed (unless memory was missing);
 * it must be freed in any case. Numbers go on behind what the server holds. */
int sheafdb_producer_open(const sheafdb_options *options, sheafdb_producer **producer);

/* Takes a message; *id (may be NULL) is its number. Waits for room, so long; 0 does not wait, -1 waits for ever. */
int sheafdb_producer_send(sheafdb_producer *p, const void *payload, size_t size, int timeout_ms, uint64_t *id);

/* Sends, reads, connects: whatever can be done, waiting so long for something to do. 0 unless the producer has ended. */
int sheafdb_producer_poll(sheafdb_producer *p, int timeout_ms);

/* What to wait for before the next sheafdb_producer_poll(p, 0): the descriptor (-1: none) and events of poll(2). Returns for how many
 * milliseconds at most, -1 without a limit. */
int sheafdb_producer_interest(const sheafdb_producer *p, int *fd, short *events);

/* Waits until everything that was sent is acknowledged. */
int sheafdb_producer_flush(sheafdb_producer *p, int timeout_ms);

/* Flushes, takes leave and ends; a timeout ends it too. What is not acknowledged can still be looked at. */
int sheafdb_producer_close(sheafdb_producer *p, int timeout_ms);

/* Ends at once, whatever is not acknowledged, and frees everything. NULL is fine. */
void sheafdb_producer_free(sheafdb_producer *p);

uint64_t sheafdb_producer_last(const sheafdb_producer *p);         /* the number of the last message that was taken */
uint64_t sheafdb_producer_acknowledged(const sheafdb_producer *p); /* everything up to it is in the key */
uint64_t sheafdb_producer_reconnects(const sheafdb_producer *p);

/* Why it ended, or why the last connection did; for people. *id (may be NULL): the highest number that the server holds, of an Error frame. */
const char *sheafdb_producer_error(const sheafdb_producer *p, uint64_t *id);

/* What is kept, one by one, for a new producer after an error has ended this one. 0 when there is no more. *cursor is 0 at first; it
 * and *id carry on from call to call. The payload is valid until the next call of another function. */
int sheafdb_producer_unacknowledged(const sheafdb_producer *p, uint64_t *cursor, uint64_t *id, const void **payload, size_t *size);

#ifdef __cplusplus
}
#endif
#endif

#ifdef SHEAFDB_PRODUCER_IMPLEMENTATION
#ifndef SHEAFDB_PRODUCER_IMPLEMENTED
#define SHEAFDB_PRODUCER_IMPLEMENTED

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SO_NOSIGPIPE is set instead */
#endif

enum { SHEAFDB__HELLO = 1, SHEAFDB__DATA, SHEAFDB__FLUSH, SHEAFDB__BYE, SHEAFDB__WELCOME = 0x81, SHEAFDB__ACK, SHEAFDB__CREDIT, SHEAFDB__ERROR };
enum { SHEAFDB__PAUSED, SHEAFDB__CONNECTING, SHEAFDB__GREETING, SHEAFDB__OPEN, SHEAFDB__ENDED };
enum { SHEAFDB__HEADER = 8, SHEAFDB__HELLO_FIXED = 32, SHEAFDB__HELLO_MAX = 8192, SHEAFDB__IN = 8 + 16 + 65535, SHEAFDB__FLAGS_AT = 8 + 16 };

/* What the server says, decoded. Fields are those of its type. */
typedef struct {
    unsigned type, flags, version, level, strategy, code;
    uint32_t max_message, max_frame, idle_ms, skipped;
    uint64_t id, memory, durable, credit; /* id: last id of Welcome too; credit: limit of Credit too */
    const unsigned char *text;
    size_t text_size;
} sheafdb__frame;

struct sheafdb_producer {
    sheafdb_options options;
    char *host;
    unsigned char hello[SHEAFDB__HEADER + SHEAFDB__HELLO_MAX];
    size_t hello_size;

    int state, fd, status;
    int write_ended;          /* nothing can be sent any more; what the server still says is read */
    int bye, bye_said;
    uint64_t connections, error_id;
    int64_t until_ms;         /* PAUSED: the next try; CONNECTING, GREETING: the end of this one */
    int64_t heard_ms;
    unsigned tried, address;  /* tries without success; which of the host's addresses is next */
    uint64_t random;
    char text[256];

    /* Messages as they lie in Data frames (size, payload), from the first that is not acknowledged. Places in them are counted from
     * the beginning of time: the byte at place x is buffer[x - base]. head <= body_at <= body_end <= tail; a frame ends at body_end. */
    unsigned char *buffer;
    size_t capacity;
    uint64_t base, head, body_at, body_end, tail, pushed;
    uint64_t acknowledged, framed, last; /* numbers: of head - 1, of what lies before body_end, of what lies before tail */
    uint64_t total, credit;              /* bytes of Data frames on this connection, and allowed */
    uint32_t max_message, max_frame;
    uint64_t flush, flushed;             /* until which number somebody waits, and the server was told on this connection */

    const unsigned char *front;          /* goes out before the bytes from body_at to body_end */
    size_t front_size;
    unsigned char small_frame[16];
    size_t in_size;
    unsigned char in[SHEAFDB__IN];
};

static void sheafdb__put(unsigned char *to, uint64_t value, int bytes) {
    int i;
    for (i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t sheafdb__get(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | from[bytes];
    return value;
}

static void sheafdb__header(unsigned char *to, size_t length, int type) {
    sheafdb__put(to, length, 4);
    sheafdb__put(to + 4, (uint64_t)type, 4);
}

static size_t sheafdb__size(const void *text, size_t size) {
    return size || !text ? size : strlen((const char *)text);
}

/* Writes the Hello frame; its size, or 0 if it would be too long. */
static size_t sheafdb__write_hello(unsigned char *to, const sheafdb_options *o) {
    const void *texts[4];
    size_t sizes[4], at = SHEAFDB__HEADER + SHEAFDB__HELLO_FIXED, i;
    texts[0] = o->producer, sizes[0] = sheafdb__size(o->producer, o->producer_size);
    texts[1] = o->key, sizes[1] = sheafdb__size(o->key, o->key_size);
    texts[2] = o->user, sizes[2] = sheafdb__size(o->user, o->user_size);
    texts[3] = o->password, sizes[3] = sheafdb__size(o->password, o->password_size);
    memcpy(to + 8, "SHFI", 4);
    sheafdb__put(to + 12, 2, 2);
    to[14] = o->level, to[15] = o->strategy;
    sheafdb__put(to + 16, o->ack_messages, 4);
    sheafdb__put(to + 20, o->ack_micros, 4);
    sheafdb__put(to + SHEAFDB__FLAGS_AT, (o->resume ? 1u : 0u) | (o->exact ? 2u : 0u), 2);
    to[26] = o->sink, to[27] = 0;
    sheafdb__put(to + 28, o->db, 4);
    sheafdb__put(to + 32, o->maxlen, 8);
    for (i = 0; i < 4; i++) {
        if (sizes[i] + 2 > SHEAFDB__HEADER + SHEAFDB__HELLO_MAX - at) return 0;
        sheafdb__put(to + at, sizes[i], 2);
        if (sizes[i]) memcpy(to + at + 2, texts[i], sizes[i]);
        at += 2 + sizes[i];
    }
    sheafdb__header(to, at - SHEAFDB__HEADER, SHEAFDB__HELLO);
    return at;
}

/* The frame at the front of what was received: its size, 0 if it is not whole, -1 if it is none of a server. */
static long sheafdb__read(const unsigned char *from, size_t size, sheafdb__frame *f) {
    const unsigned char *body = from + SHEAFDB__HEADER;
    size_t length, fixed;
    memset(f, 0, sizeof *f);
    if (size < SHEAFDB__HEADER) return 0;
    length = (size_t)sheafdb__get(from, 4), f->type = from[4], f->flags = from[5];
    fixed = f->type == SHEAFDB__WELCOME ? 40 : f->type == SHEAFDB__ACK ? 32 : f->type == SHEAFDB__CREDIT ? 8 : f->type == SHEAFDB__ERROR ? 16 : 0;
    if (!fixed || from[6] || from[7] || f->flags > (f->type == SHEAFDB__ACK)) return -1;
    if (length < fixed || length > fixed + (f->type == SHEAFDB__ERROR ? 65535u : 0u)) return -1;
    if (size < SHEAFDB__HEADER + length) return 0;
    if (f->type == SHEAFDB__WELCOME) {
        f->version = (unsigned)sheafdb__get(body, 2), f->level = body[2], f->strategy = body[3];
        f->max_message = (uint32_t)sheafdb__get(body + 4, 4), f->max_frame = (uint32_t)sheafdb__get(body + 8, 4);
        f->idle_ms = (uint32_t)sheafdb__get(body + 12, 4), f->id = sheafdb__get(body + 16, 8);
        f->durable = sheafdb__get(body + 24, 8), f->credit = sheafdb__get(body + 32, 8);
        if (f->version != 2 || f->level > SHEAFDB_FSYNCED || f->strategy > SHEAFDB_BATCHED || f->max_frame < 12) return -1;
    } else if (f->type == SHEAFDB__ACK) {
        f->id = sheafdb__get(body, 8), f->skipped = (uint32_t)sheafdb__get(body + 8, 4);
        f->memory = sheafdb__get(body + 16, 8), f->durable = sheafdb__get(body + 24, 8);
        if (sheafdb__get(body + 12, 4) || (f->flags && f->skipped)) return -1;
    } else if (f->type == SHEAFDB__CREDIT) {
        f->credit = sheafdb__get(body, 8);
    } else {
        f->code = (unsigned)sheafdb__get(body, 2), f->text_size = (size_t)sheafdb__get(body + 2, 2);
        f->id = sheafdb__get(body + 8, 8), f->text = body + 16;
        if (sheafdb__get(body + 4, 4) || f->text_size != length - 16 || !f->code) return -1;
    }
    return (long)(SHEAFDB__HEADER + length);
}

static int64_t sheafdb__now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sheafdb__hang_up(sheafdb_producer *p) {
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
}

/* The producer ends, for good. */
static void sheafdb__fail(sheafdb_producer *p, int status, const char *text) {
    sheafdb__hang_up(p);
    p->state = SHEAFDB__ENDED;
    p->status = status;
    if (text) snprintf(p->text, sizeof p->text, "%s", text);
}

/* The connection ended: another try after a pause, unless the farewell was all that was left to say. */
static void sheafdb__lose(sheafdb_producer *p, const char *what, int error) {
    int64_t pause = p->options.backoff_min_ms;
    unsigned i;
    sheafdb__hang_up(p);
    if (p->bye) {
        sheafdb__fail(p, SHEAFDB_CLOSED, "closed");
        return;
    }
    if (what) snprintf(p->text, sizeof p->text, "%s%s%s", what, error ? ": " : "", error ? strerror(error) : "");
    for (i = 0; i < p->tried && pause < p->options.backoff_max_ms; i++) pause *= 2;
    if (pause > p->options.backoff_max_ms) pause = p->options.backoff_max_ms;
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    pause -= (int64_t)((p->random >> 33) % (uint64_t)(pause / 2 + 1)); /* so that many do not come at once */
    p->tried++;
    p->state = SHEAFDB__PAUSED;
    p->until_ms = sheafdb__now() + pause;
}

static void sheafdb__send_next(sheafdb_producer *p, const unsigned char *front, size_t size) {
    p->front = front, p->front_size = size;
}

/* The TCP connection stands: Hello. */
static void sheafdb__greet(sheafdb_producer *p) {
    p->state = SHEAFDB__GREETING;
    p->write_ended = 0, p->in_size = 0;
    p->body_at = p->body_end = p->head, p->framed = p->acknowledged;
    if (p->connections) p->hello[SHEAFDB__FLAGS_AT] |= 1; /* a server that does not know it any more has lost what it acknowledged */
    sheafdb__send_next(p, p->hello, p->hello_size);
}

static void sheafdb__connect(sheafdb_producer *p) {
    struct addrinfo hints, *all = NULL, *one;
    char port[8];
    unsigned skip;
    int on = 1, error;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    snprintf(port, sizeof port, "%u", (unsigned)p->options.port);
    error = getaddrinfo(p->host, port, &hints, &all);
    if (error || !all) {
        sheafdb__lose(p, error ? gai_strerror(error) : "no address", 0);
        return;
    }
    for (one = all, skip = p->address; skip--;) one = one->ai_next ? one->ai_next : all;
    p->fd = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (p->fd < 0 || fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(p->fd, F_SETFD, FD_CLOEXEC) < 0) {
        sheafdb__lose(p, "socket", errno);
    } else {
        setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(p->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef SO_NOSIGPIPE
        setsockopt(p->fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
        p->state = SHEAFDB__CONNECTING;
        p->until_ms = sheafdb__now() + p->options.attempt_timeout_ms;
        if (connect(p->fd, one->ai_addr, one->ai_addrlen) == 0) {
            sheafdb__greet(p);
        } else if (errno != EINPROGRESS) {
            p->address++;
            sheafdb__lose(p, "connect", errno);
        }
    }
    freeaddrinfo(all);
}

static void sheafdb__connected(sheafdb_producer *p) {
    struct pollfd one;
    int error = 0;
    socklen_t size = sizeof error;
    one.fd = p->fd, one.events = POLLOUT, one.revents = 0;
    if (poll(&one, 1, 0) <= 0) return;
    if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    if (error) {
        p->address++; /* perhaps another of the host's */
        sheafdb__lose(p, "connect", error);
    } else {
        sheafdb__greet(p);
    }
}

/* Frees what is covered up to `id`. Only what was sent wholly can be: 0 if the server claims more. */
static int sheafdb__cover(sheafdb_producer *p, uint64_t id, uint64_t end) {
    uint64_t head = p->head, number = p->acknowledged;
    while (number < id) {
        if (end - head < 4) return 0;
        head += 4 + sheafdb__get(p->buffer + (head - p->base), 4);
        if (head > end) return 0;
        number++;
    }
    if (number != id) return 0;
    if (number > p->acknowledged) p->tried = 0;
    p->head = head, p->acknowledged = number;
    return 1;
}

/* Is everything that is kept small enough for what the server takes now? */
static int sheafdb__fits(const sheafdb_producer *p, uint32_t max) {
    uint64_t at = p->head;
    while (at < p->tail) {
        uint64_t size = sheafdb__get(p->buffer + (at - p->base), 4);
        if (size > max) return 0;
        at += 4 + size;
    }
    return 1;
}

static void sheafdb__welcome(sheafdb_producer *p, const sheafdb__frame *f) {
    if (!p->connections) p->acknowledged = p->last = f->id;
    if (f->id > p->last || !sheafdb__cover(p, f->id, p->tail)) {
        sheafdb__fail(p, SHEAFDB_DISAGREE, "the server holds other messages than were sent");
        return;
    }
    p->max_frame = f->max_frame;
    p->max_message = f->max_message < f->max_frame - 12 ? f->max_message : f->max_frame - 12;
    if (!sheafdb__fits(p, p->max_message)) {
        sheafdb__fail(p, SHEAFDB_TOO_LARGE, "a kept message is larger than the server takes now");
        return;
    }
    p->body_at = p->body_end = p->pushed = p->head, p->framed = p->acknowledged;
    p->total = 0, p->credit = f->credit, p->flushed = 0;
    p->connections++;
    p->state = SHEAFDB__OPEN;
}

static void sheafdb__server_error(sheafdb_producer *p, const sheafdb__frame *f) {
    char text[sizeof p->text];
    snprintf(text, sizeof text, "%.*s", (int)(f->text_size < sizeof text ? f->text_size : sizeof text - 1), (const char *)f->text);
    p->error_id = f->id;
    if (f->code == SHEAFDB_SHUTDOWN || f->code == SHEAFDB_IDLE || (f->code == SHEAFDB_LIMIT && p->connections))
        sheafdb__lose(p, text, 0); /* it may be otherwise next time */
    else
        sheafdb__fail(p, (int)f->code, text);
}

static void sheafdb__take(sheafdb_producer *p, const sheafdb__frame *f) {
    if (f->type == SHEAFDB__ERROR) {
        sheafdb__server_error(p, f);
    } else if ((f->type == SHEAFDB__WELCOME) != (p->state == SHEAFDB__GREETING)) {
        sheafdb__fail(p, SHEAFDB_PROTOCOL, "a frame that does not belong here");
    } else if (f->type == SHEAFDB__WELCOME) {
        sheafdb__welcome(p, f);
    } else if (f->type == SHEAFDB__CREDIT) {
        if (f->credit > p->credit) p->credit = f->credit;
    } else if (f->id < p->acknowledged || !sheafdb__cover(p, f->id, p->body_at)) {
        sheafdb__fail(p, SHEAFDB_PROTOCOL, "an acknowledgement of what was not sent");
    }
}

/* Reads all that has come. */
static void sheafdb__receive(sheafdb_producer *p) {
    while (p->state == SHEAFDB__GREETING || p->state == SHEAFDB__OPEN) {
        sheafdb__frame f;
        size_t at = 0;
        long size = 1;
        ssize_t got = recv(p->fd, p->in + p->in_size, sizeof p->in - p->in_size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) {
            sheafdb__lose(p, got ? "receive" : "the server closed the connection", got ? errno : 0);
            return;
        }
        p->in_size += (size_t)got;
        p->heard_ms = sheafdb__now();
        while (p->state == SHEAFDB__GREETING || p->state == SHEAFDB__OPEN) {
            size = sheafdb__read(p->in + at, p->in_size - at, &f);
            if (size <= 0) break;
            sheafdb__take(p, &f);
            at += (size_t)size;
        }
        if (size < 0) sheafdb__fail(p, SHEAFDB_PROTOCOL, "no frame of a server");
        p->in_size -= at;
        memmove(p->in, p->in + at, p->in_size);
    }
}

/* The next Data frame: as many messages as credit and limits allow; 0 if none. */
static int sheafdb__next_data(sheafdb_producer *p) {
    uint64_t end = p->body_end, count = 0, size = 8, most = p->max_frame;
    uint64_t left = p->credit > p->total + SHEAFDB__HEADER ? p->credit - p->total - SHEAFDB__HEADER : 0;
    if (most > left) most = left;
    while (end < p->tail && (!count || size < p->options.frame_bytes)) {
        uint64_t one = 4 + sheafdb__get(p->buffer + (end - p->base), 4);
        if (size + one > most) break;
        size += one, end += one, count++;
    }
    if (!count) return 0;
    if (p->framed == p->acknowledged) p->heard_ms = sheafdb__now(); /* only from now on it owes an acknowledgement */
    sheafdb__header(p->small_frame, (size_t)size, SHEAFDB__DATA);
    sheafdb__put(p->small_frame + 8, p->framed + 1, 8);
    sheafdb__send_next(p, p->small_frame, 16);
    p->body_end = end, p->framed += count, p->total += SHEAFDB__HEADER + size;
    return 1;
}

/* What is to be sent next; 0 if nothing is. */
static int sheafdb__next_output(sheafdb_producer *p) {
    int type;
    if (p->front_size || p->body_at < p->body_end) return 1;
    if (p->state != SHEAFDB__OPEN) return 0;
    if (sheafdb__next_data(p)) return 1;
    if (p->body_end < p->tail) return 0;
    if (p->flush > p->acknowledged && p->flush > p->flushed) {
        p->flushed = p->last;
        type = SHEAFDB__FLUSH;
    } else if (p->bye && !p->bye_said && p->acknowledged == p->last) {
        p->bye_said = 1;
        type = SHEAFDB__BYE;
    } else {
        return 0;
    }
    sheafdb__header(p->small_frame, 0, type);
    sheafdb__send_next(p, p->small_frame, SHEAFDB__HEADER);
    return 1;
}

/* Sends all that can be sent now. */
static void sheafdb__transmit(sheafdb_producer *p) {
    while (!p->write_ended && sheafdb__next_output(p)) {
        struct iovec parts[2];
        struct msghdr message;
        size_t n, done;
        ssize_t sent;
        memset(&message, 0, sizeof message);
        parts[0].iov_base = (void *)p->front, parts[0].iov_len = p->front_size;
        parts[1].iov_base = p->buffer + (p->body_at - p->base), parts[1].iov_len = (size_t)(p->body_end - p->body_at);
        message.msg_iov = parts, message.msg_iovlen = 2;
        sent = sendmsg(p->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (sent < 0) {
            p->write_ended = 1; /* why, the server may have said: receive() finds it, or the end */
            p->until_ms = sheafdb__now() + p->options.attempt_timeout_ms;
            return;
        }
        done = (size_t)sent;
        n = done < p->front_size ? done : p->front_size;
        p->front += n, p->front_size -= n;
        p->body_at += done - n;
    }
}

/* Everything that can be done without waiting. */
static void sheafdb__step(sheafdb_producer *p) {
    int64_t now = sheafdb__now();
    if (p->state == SHEAFDB__PAUSED && now >= p->until_ms) sheafdb__connect(p);
    if (p->state == SHEAFDB__CONNECTING) sheafdb__connected(p);
    if (p->state == SHEAFDB__GREETING || p->state == SHEAFDB__OPEN) {
        sheafdb__transmit(p);
        sheafdb__receive(p);
        if (p->state == SHEAFDB__OPEN) sheafdb__transmit(p); /* credit, or the Welcome, may have come */
    }
    p->pushed = p->tail;
    if ((p->state == SHEAFDB__CONNECTING || p->state == SHEAFDB__GREETING || (p->state == SHEAFDB__OPEN && p->write_ended)) && now >= p->until_ms)
        sheafdb__lose(p, "no answer in time", 0);
    else if (p->state == SHEAFDB__OPEN && p->options.stall_timeout_ms >= 0 && p->framed > p->acknowledged
             && now - p->heard_ms > p->options.stall_timeout_ms)
        sheafdb__lose(p, "no acknowledgement for too long", 0);
}

int sheafdb_producer_interest(const sheafdb_producer *p, int *fd, short *events) {
    int64_t until = p->until_ms, left;
    *fd = p->fd;
    *events = p->state == SHEAFDB__CONNECTING ? POLLOUT : POLLIN;
    if ((p->state == SHEAFDB__GREETING || p->state == SHEAFDB__OPEN) && !p->write_ended && (p->front_size || p->body_at < p->body_end))
        *events = POLLIN | POLLOUT;
    if (p->state == SHEAFDB__ENDED) return -1;
    if (p->state == SHEAFDB__OPEN && !p->write_ended) {
        if (p->options.stall_timeout_ms < 0 || p->framed == p->acknowledged) return -1;
        until = p->heard_ms + p->options.stall_timeout_ms + 1;
    }
    left = until - sheafdb__now();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Waits for something to do, until then at most (-1: without a limit). */
static void sheafdb__wait(sheafdb_producer *p, int64_t until) {
    struct pollfd one;
    int most = sheafdb_producer_interest(p, &one.fd, &one.events);
    if (until >= 0) {
        int64_t left = until - sheafdb__now();
        if (left < 0) left = 0;
        if (most < 0 || left < most) most = left > INT_MAX ? INT_MAX : (int)left;
    }
    one.revents = 0;
    poll(&one, one.fd >= 0, most);
}

typedef int (*sheafdb__reached)(const sheafdb_producer *p, uint64_t what);

/* Works until something is reached; `late` if it is not in time. */
static int sheafdb__until(sheafdb_producer *p, sheafdb__reached reached, uint64_t what, int timeout_ms, int late) {
    int64_t until = timeout_ms < 0 ? -1 : sheafdb__now() + timeout_ms;
    for (;;) {
        sheafdb__step(p);
        if (reached(p, what)) return SHEAFDB_OK;
        if (p->status) return p->status;
        if (until >= 0 && sheafdb__now() >= until) return late;
        sheafdb__wait(p, until);
    }
}

static int sheafdb__is_connected(const sheafdb_producer *p, uint64_t what) { return p->connections >= what; }
static int sheafdb__is_covered(const sheafdb_producer *p, uint64_t what) { return p->acknowledged >= what; }
static int sheafdb__is_ended(const sheafdb_producer *p, uint64_t what) { return what && p->state == SHEAFDB__ENDED; }

static int sheafdb__has_room(const sheafdb_producer *p, uint64_t size) {
    return p->last - p->acknowledged < p->options.buffer_messages && p->tail - p->head + 4 + size <= p->options.buffer_bytes;
}

/* Room in memory for so many bytes behind the tail; 0 if there is none. What is acknowledged is dropped once it is half of the buffer, so that each byte is moved once at most. */
static int sheafdb__reserve(sheafdb_producer *p, uint64_t size) {
    uint64_t live = p->tail - p->head;
    if (p->tail - p->base + size <= p->capacity) return 1;
    if (p->head - p->base >= live && live + size <= p->capacity) {
        memmove(p->buffer, p->buffer + (p->head - p->base), (size_t)live);
        p->base = p->head;
    } else {
        size_t capacity = (size_t)(2 * (live + size) + 4096);
        unsigned char *buffer = (unsigned char *)malloc(capacity);
        if (!buffer) return 0;
        if (live) memcpy(buffer, p->buffer + (p->head - p->base), (size_t)live);
        free(p->buffer);
        p->buffer = buffer, p->capacity = capacity, p->base = p->head;
    }
    return 1;
}

void sheafdb_options_init(sheafdb_options *o) {
    memset(o, 0, sizeof *o);
    o->buffer_bytes = 4u << 20, o->buffer_messages = 1u << 16, o->frame_bytes = 16u << 10;
    o->connect_timeout_ms = 10000, o->attempt_timeout_ms = 5000;
    o->backoff_min_ms = 20, o->backoff_max_ms = 2000, o->stall_timeout_ms = 60000;
}

int sheafdb_producer_open(const sheafdb_options *options, sheafdb_producer **producer) {
    sheafdb_producer *p = *producer = (sheafdb_producer *)calloc(1, sizeof *p);
    int status;
    if (!p) return SHEAFDB_NO_MEMORY;
    p->fd = -1, p->options = *options;
    p->random = (uint64_t)(uintptr_t)p ^ (uint64_t)sheafdb__now() << 20;
    p->hello_size = options->host && options->producer ? sheafdb__write_hello(p->hello, options) : 0;
    if (!p->hello_size || options->backoff_min_ms < 1 || options->attempt_timeout_ms < 1) {
        sheafdb__fail(p, SHEAFDB_INVALID, "options that cannot be");
        return SHEAFDB_INVALID;
    }
    p->host = (char *)malloc(strlen(options->host) + 1);
    if (!p->host || !sheafdb__reserve(p, 1)) {
        sheafdb__fail(p, SHEAFDB_NO_MEMORY, "no memory");
        return SHEAFDB_NO_MEMORY;
    }
    memcpy(p->host, options->host, strlen(options->host) + 1);
    p->state = SHEAFDB__PAUSED; /* until_ms is 0: the pause is over */
    status = sheafdb__until(p, sheafdb__is_connected, 1, options->connect_timeout_ms, SHEAFDB_TIMEOUT);
    if (status == SHEAFDB_TIMEOUT) sheafdb__fail(p, status, NULL);
    return status;
}

int sheafdb_producer_send(sheafdb_producer *p, const void *payload, size_t size, int timeout_ms, uint64_t *id) {
    int status;
    if (p->status) return p->status;
    if (size > p->max_message || size + 4 > p->options.buffer_bytes) return SHEAFDB_TOO_LARGE;
    if (p->last == UINT64_MAX) return SHEAFDB_NUMBERS_END;
    if (!sheafdb__has_room(p, size)) {
        status = sheafdb__until(p, sheafdb__has_room, size, timeout_ms, SHEAFDB_WOULD_BLOCK);
        if (status || p->status) return status ? status : p->status;
        if (size > p->max_message) return SHEAFDB_TOO_LARGE; /* another server may have answered */
    }
    if (!sheafdb__reserve(p, 4 + (uint64_t)size)) return SHEAFDB_NO_MEMORY;
    sheafdb__put(p->buffer + (p->tail - p->base), size, 4);
    if (size) memcpy(p->buffer + (p->tail - p->base) + 4, payload, size);
    p->tail += 4 + (uint64_t)size;
    p->last++;
    if (id) *id = p->last;
    if (p->tail - p->pushed >= p->options.frame_bytes) sheafdb__step(p);
    return SHEAFDB_OK; /* taken; if the producer ended in this step, the next call tells */
}

int sheafdb_producer_poll(sheafdb_producer *p, int timeout_ms) {
    sheafdb__step(p);
    if (!p->status && timeout_ms) {
        sheafdb__wait(p, timeout_ms < 0 ? -1 : sheafdb__now() + timeout_ms);
        sheafdb__step(p);
    }
    return p->status;
}

int sheafdb_producer_flush(sheafdb_producer *p, int timeout_ms) {
    p->flush = p->last;
    return sheafdb__until(p, sheafdb__is_covered, p->last, timeout_ms, SHEAFDB_TIMEOUT);
}

int sheafdb_producer_close(sheafdb_producer *p, int timeout_ms) {
    int status = sheafdb_producer_flush(p, timeout_ms);
    if (p->state == SHEAFDB__OPEN && !status) {
        p->bye = 1; /* everything is safe: nobody needs to wait longer for a farewell */
        sheafdb__until(p, sheafdb__is_ended, 1, p->options.attempt_timeout_ms, SHEAFDB_TIMEOUT);
    }
    if (!p->status) sheafdb__fail(p, SHEAFDB_CLOSED, NULL);
    return status;
}

void sheafdb_producer_free(sheafdb_producer *p) {
    if (!p) return;
    sheafdb__hang_up(p);
    free(p->buffer);
    free(p->host);
    free(p);
}

uint64_t sheafdb_producer_last(const sheafdb_producer *p) { return p->last; }
uint64_t sheafdb_producer_acknowledged(const sheafdb_producer *p) { return p->acknowledged; }
uint64_t sheafdb_producer_reconnects(const sheafdb_producer *p) { return p->connections ? p->connections - 1 : 0; }

const char *sheafdb_producer_error(const sheafdb_producer *p, uint64_t *id) {
    if (id) *id = p->error_id;
    return p->text;
}

int sheafdb_producer_unacknowledged(const sheafdb_producer *p, uint64_t *cursor, uint64_t *id, const void **payload, size_t *size) {
    /* The cursor is the distance from the head. */
    const unsigned char *one;
    if (p->head + *cursor >= p->tail) return 0;
    one = p->buffer + (p->head + *cursor - p->base);
    *id = *cursor ? *id + 1 : p->acknowledged + 1;
    *payload = one + 4, *size = (size_t)sheafdb__get(one, 4);
    *cursor += 4 + (uint64_t)*size;
    return 1;
}

#endif
#endif
