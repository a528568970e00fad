// null_big: what the kernel costs for SET and GET of one big string. Receives values 64 KiB at a time into the same 4 MiB
// and keeps nothing; answers GET with as many bytes as the last value had. One request per connection at a time.
// usage: null_big port unixsock [low water: bytes that a socket gathers before it is received from]
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#define CHUNK (64 << 10)
#define SPAN (4 << 20)
static struct { size_t in, out, at; int low; } conns[1024]; // bytes to receive, to send, sent; SO_RCVLOWAT
static char *memory;
static size_t size = 1 << 20;
static int ep, low = 1;
static void watch(int op, int fd, int events) { struct epoll_event e = {.events = events, .data.fd = fd}; epoll_ctl(ep, op, fd, &e); }
static void low_water(int c, int bytes) { if (low > 1 && conns[c].low != bytes) { conns[c].low = bytes; setsockopt(c, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes); } }
static void push(int c) {
    ssize_t n = send(c, memory + conns[c].at, conns[c].out, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) { conns[c].out -= n; conns[c].at += n; }
    watch(EPOLL_CTL_MOD, c, conns[c].out ? EPOLLOUT : EPOLLIN);
}
// The header of a request: SET's value follows, GET is answered.
static int header(int c) {
    char h[200], *p; ssize_t n = recv(c, h, sizeof h - 1, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0) return n < 0 && errno == EAGAIN ? 1 : 0;
    h[n] = 0;
    if (!strncmp(h, "*3", 2)) {
        if (!(p = strstr(h, "big\r\n")) || !strchr(p + 5, '\n')) return 1;
        size = atol(p + 6); recv(c, h, strchr(p + 5, '\n') + 1 - h, 0); conns[c].in = size + 2;
    } else {
        recv(c, h, n, 0);
        int k = sprintf(h, "$%zu\r\n", size); memcpy(memory, h, k); memcpy(memory + k + size, "\r\n", 2);
        conns[c].out = k + size + 2; conns[c].at = 0; push(c);
    }
    return 1;
}
int main(int ac, char **av) {
    if (ac > 3) low = atoi(av[3]);
    memory = mmap(0, 512 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memset(memory, 'x', 128 << 20);
    int one = 1, tcp = socket(AF_INET, SOCK_STREAM, 0), un = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(av[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un u = {.sun_family = AF_UNIX}; strncpy(u.sun_path, av[2], 100); unlink(av[2]);
    setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(tcp, (void *)&a, sizeof a) || listen(tcp, 10) || bind(un, (void *)&u, sizeof u) || listen(un, 10)) { perror("listen"); return 1; }
    ep = epoll_create1(0); watch(EPOLL_CTL_ADD, tcp, EPOLLIN); watch(EPOLL_CTL_ADD, un, EPOLLIN);
    for (;;) {
        struct epoll_event events[64]; int n = epoll_wait(ep, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int c = events[i].data.fd, open = 1; size_t at = 0;
            if (c == tcp || c == un) {
                int f = accept4(c, 0, 0, SOCK_NONBLOCK); memset(&conns[f], 0, sizeof conns[f]);
                if (c == tcp) setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                watch(EPOLL_CTL_ADD, f, EPOLLIN); continue;
            }
            if (conns[c].out) { push(c); continue; }
            if (!conns[c].in) open = header(c);
            for (int k = 0; k < 8 && open && conns[c].in; k++) {
                ssize_t r = recv(c, memory + at, conns[c].in < CHUNK ? conns[c].in : CHUNK, 0);
                if (r < 0 && errno == EAGAIN) break;
                if (!(open = r > 0)) break;
                conns[c].in -= r; at = (at + r) % (SPAN - CHUNK);
                if (!conns[c].in) send(c, "+OK\r\n", 5, MSG_NOSIGNAL);
                if (r < CHUNK) break;
            }
            if (!open) close(c); else low_water(c, conns[c].in > (size_t)low ? low : conns[c].in ? conns[c].in : 1);
        }
    }
}
