#ifndef CWEBSOCKETS_SHIM_H
#define CWEBSOCKETS_SHIM_H

#include <dlfcn.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#ifdef __linux__
#include <linux/sockios.h>
#include <sys/ioctl.h>
#endif

// The event loop.
//
// By default, libwebsockets creates its own libuv loop and watches SIGINT, SIGTERM and other signals with it. A loop
// that is passed to it ("foreign") gets no signal watchers. libuv itself is opened when it is needed: only the event
// library plugin of libwebsockets depends on it. If the plugin is not installed, poll(2) is used.

struct cws_loop {
    void *library;
    void *loop;
    int (*run)(void *loop, int mode);
    int (*close)(void *loop);
    void (*walk)(void *loop, void (*visit)(void *handle, void *argument), void *argument);
    int (*fileno)(const void *handle, int *descriptor);
    /// The only descriptor among the loop's handles when no connections are left.
    int wake_descriptor;
};

// Values of uv_run_mode in uv.h, which are part of libuv's ABI.
enum { CWS_RUN_DEFAULT = 0, CWS_RUN_ONCE = 1 };

static inline void cws_loop_free(struct cws_loop *loop) {
    if (!loop) return;
    if (loop->loop && loop->close) loop->close(loop->loop);
    free(loop->loop);
    if (loop->library) dlclose(loop->library);
    free(loop);
}

/// Returns a new loop; NULL if libuv is not installed.
static inline struct cws_loop *cws_loop_new(void) {
    struct cws_loop *loop = (struct cws_loop *)calloc(1, sizeof(*loop));
    if (!loop) return NULL;
#ifdef __APPLE__
    loop->library = dlopen("libuv.1.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    loop->library = dlopen("libuv.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    if (loop->library) {
        size_t (*size)(void) = (size_t (*)(void))dlsym(loop->library, "uv_loop_size");
        int (*init)(void *) = (int (*)(void *))dlsym(loop->library, "uv_loop_init");
        loop->run = (int (*)(void *, int))dlsym(loop->library, "uv_run");
        loop->walk = (void (*)(void *, void (*)(void *, void *), void *))dlsym(loop->library, "uv_walk");
        loop->fileno = (int (*)(const void *, int *))dlsym(loop->library, "uv_fileno");
        if (size && init && loop->run && loop->walk && loop->fileno && (loop->loop = calloc(1, size())) && init(loop->loop) == 0) {
            loop->close = (int (*)(void *))dlsym(loop->library, "uv_loop_close");
            return loop;
        }
    }
    cws_loop_free(loop);
    return NULL;
}

static inline int cws_loop_run(struct cws_loop *loop, int mode) { return loop->run(loop->loop, mode); }

// The context.

/// Returns a context with one vhost and no listening socket. `protocols`, `extensions` and `retry` must live as long as
/// the context; `loop` may be NULL for poll(2). Without `extensions`, which change the payload, libwebsockets checks
/// that text and close reasons are UTF-8.
static inline struct lws_context *cws_create_context(
    const struct lws_protocols *protocols, const struct lws_extension *extensions, const lws_retry_bo_t *retry,
    struct cws_loop *loop, void *user, unsigned int timeout, unsigned int header_bytes
) {
    struct lws_context_creation_info info;
    void *loops[1] = {loop ? loop->loop : NULL};
    memset(&info, 0, sizeof(info));
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.protocols = protocols;
    info.user = user;
    info.uid = (uid_t)-1;
    info.gid = (gid_t)-1;
    info.timeout_secs = timeout;
    info.timeout_secs_ah_idle = timeout;
    info.max_http_header_data2 = header_bytes;
    info.retry_and_idle_policy = retry;
    info.extensions = extensions;
    if (!extensions) info.options = LWS_SERVER_OPTION_VALIDATE_UTF8;
    if (loop) {
        info.options |= LWS_SERVER_OPTION_LIBUV;
        info.foreign_loops = loops;
    }
    return lws_create_context(&info);
}

static inline void cws_note_descriptor(void *handle, void *argument) {
    struct cws_loop *loop = (struct cws_loop *)argument;
    int descriptor;
    if (loop->fileno(handle, &descriptor) == 0) loop->wake_descriptor = descriptor;
}

/// Destroys a context that has no connections left, and its loop. Returns false if that could not be done safely; then
/// both stay allocated, unused.
///
/// libwebsockets destroys a context in two calls. Between them, the loop must run the closing of its handles. With
/// libuv, version 4.1.6 closes the descriptor that lws_cancel_service() writes to twice: in the first call and in that
/// run. By then, another thread may have got the same descriptor number. Therefore one end of a pipe takes the number
/// at once; the other end shows whether the second close has happened. Version 4.3.5 closes it only in that run.
static inline int cws_destroy_context_in_loop(struct lws_context *context, struct cws_loop *loop) {
#if LWS_LIBRARY_VERSION_NUMBER >= 4003005
    lws_context_destroy(context);
    cws_loop_run(loop, CWS_RUN_DEFAULT);
#else
    int ends[2];
    char byte;
    loop->wake_descriptor = -1;
    loop->walk(loop->loop, cws_note_descriptor, loop);
    if (loop->wake_descriptor < 0 || pipe(ends) != 0) return 0;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    lws_context_destroy(context);
    int taken = fcntl(ends[1], F_DUPFD_CLOEXEC, loop->wake_descriptor);
    close(ends[1]);
    if (taken != loop->wake_descriptor) {
        if (taken >= 0) close(taken);
        close(ends[0]);
        return 0;
    }
    cws_loop_run(loop, CWS_RUN_DEFAULT);
    if (read(ends[0], &byte, 1) != 0) close(taken);
    close(ends[0]);
#endif
    lws_context_destroy(context);
    cws_loop_free(loop);
    return 1;
}

// Maximum number of bytes that the kernel buffers for a peer beyond those already sent, at first. The server cannot drop
// old events among these bytes, and pings wait behind them. Linux buffers up to 4 MiB by default.
enum { CWS_UNSENT_BYTES = 16 * 1024 };

/// Changes that number.
static inline void cws_limit_unsent(struct lws *wsi, int bytes) {
    setsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

/// Returns a number that grows while the peer of a socket, to which `passed` bytes were passed, takes bytes. Sets
/// `unsent` to the number of bytes that wait in the kernel: that could not be sent yet, or, if the socket is not a TCP
/// socket, that the peer has not read.
static inline int64_t cws_taken_bytes(int descriptor, int64_t passed, int *unsent) {
    // Offset of tcpi_bytes_acked in the kernel's struct tcp_info, of which glibc declares only the first part.
    enum { BYTES_ACKED = 120 };
    unsigned char info[256];
    socklen_t size = sizeof(info);
    int outstanding = 0;
    *unsent = 0;
#ifdef __linux__
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, &size) == 0 && size >= BYTES_ACKED + sizeof(uint64_t)) {
        uint64_t acknowledged;
        memcpy(&acknowledged, info + BYTES_ACKED, sizeof(acknowledged));
        ioctl(descriptor, SIOCOUTQNSD, unsent);
        return (int64_t)acknowledged;
    }
#endif
    if (ioctl(descriptor, TIOCOUTQ, &outstanding) == 0) *unsent = outstanding;
    return passed - outstanding;
}

/// Adopts a descriptor, and owns it in every case. lws_get_opaque_user_data() returns `opaque` from the first callback
/// on.
static inline struct lws *cws_adopt(struct lws_vhost *vhost, int descriptor, void *opaque) {
    int unsent = CWS_UNSENT_BYTES, on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    // libwebsockets sets this only for sockets that it accepts itself. Without it, a frame that follows another one waits
    // for the acknowledgement of that one, which takes up to 40 ms. Descriptors that are not TCP sockets refuse both.
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    lws_adopt_desc_t description;
    memset(&description, 0, sizeof(description));
    description.vh = vhost;
    description.type = (lws_adoption_type)(LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP);
    description.fd.sockfd = descriptor;
    description.opaque = opaque;
    return lws_adopt_descriptor_vhost_via_info(&description);
}

/// Begins the closing handshake. Call it only from LWS_CALLBACK_SERVER_WRITEABLE while no frame is partly sent. The
/// connection is not freed inside this call.
///
/// The documented way is to return -1 from the callback. Debian builds libwebsockets with additional checks, one of
/// which closes such a connection twice with libuv; the second close cuts the connection before the close frame is
/// sent.
static inline void cws_close(struct lws *wsi, uint16_t code, unsigned char *reason, size_t length) {
    lws_close_reason(wsi, (enum lws_close_status)code, reason, length);
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_SYNC);
}

/// Ends a connection without a close frame and lets the kernel drop the bytes it still buffers for the peer. The event
/// loop frees the connection later, never inside this call.
static inline void cws_cut(struct lws *wsi) {
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(lws_get_socket_fd(wsi), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

/// Answers LWS_EXT_CB_CONSTRUCT, whose input is `options`: libwebsockets must read no parameters of the extension.
static inline void cws_take_no_options(void *options) {
    static const struct lws_ext_options none[] = {{NULL, EXTARG_NONE}};
    if (options) *(const struct lws_ext_options **)options = none;
}

/// Appends to the last line of a response head. Call it only from LWS_CALLBACK_ADD_HEADERS, whose input is `arguments`.
static inline void cws_extend_header(const void *arguments, const char *text) {
    struct lws_process_html_args *head = (struct lws_process_html_args *)arguments;
    size_t length = strlen(text);
    if (!head || (size_t)head->max_len < length) return;
    memcpy(head->p - 2, text, length);
    memcpy(head->p - 2 + length, "\r\n", 2);
    head->p += length;
}

/// Returns the number of bytes that must be free before the payload in every buffer passed to lws_write().
static inline size_t cws_headroom(void) { return LWS_PRE; }

// Functions for zlib's macros. The negative window size selects a stream without a header, of the usual size.

static inline int cws_deflate_begin(z_stream *stream) {
    return deflateInit2(stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
}

static inline int cws_inflate_begin(z_stream *stream) { return inflateInit2(stream, -MAX_WBITS); }

static inline void cws_set_log(void (*emit)(int level, const char *line)) {
    lws_set_log_level(LLL_ERR | LLL_WARN, emit);
}

static inline int cws_log_is_error(int level) { return (level & LLL_ERR) != 0; }

#endif
