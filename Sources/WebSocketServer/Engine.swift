import CWebSockets
import Logging

/// The callback of libwebsockets: connection, reason, per-session data (unused), input and its length.
typealias LibraryCallback =
    @convention(c) (
        OpaquePointer?, lws_callback_reasons, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
    ) -> Int32

/// The context of libwebsockets and its event loop. Created, run and destroyed on the service thread.
final class Engine {
    let context: OpaquePointer
    let vhost: OpaquePointer
    private let protocols: Protocols
    private let logger: Logger
    /// Nil if poll(2) is used.
    private let loop: UnsafeMutablePointer<cws_loop>?

    /// Returns nil if libwebsockets cannot be initialized; it has logged the reason. `user` is what lws_context_user()
    /// returns.
    init?(
        configuration: WebSocketServer.Configuration,
        logger: Logger,
        callback: @escaping LibraryCallback,
        user: UnsafeMutableRawPointer
    ) {
        let protocols = Protocols(configuration: configuration, callback: callback)
        // libwebsockets has its own timers for a handshake; this one must be later.
        let timeout =
            UInt32(WebSocketServer.Configuration.wholeSeconds(configuration.handshakeTimeout)) + 1
        func create(_ loop: UnsafeMutablePointer<cws_loop>?) -> OpaquePointer? {
            cws_create_context(
                protocols.table,
                protocols.extensions,
                protocols.retry,
                loop,
                user,
                timeout,
                WebSocketServer.Configuration.maximumHeaderBytes
            )
        }

        var loop = cws_loop_new()
        var context = loop.flatMap(create)
        if context == nil {
            logger.notice("no libuv event library for libwebsockets: poll(2) serves, slowly with many connections")
            cws_loop_free(loop)
            loop = nil
            context = create(nil)
        }
        guard let context, let vhost = lws_get_vhost_by_name(context, "default") else {
            if let context {
                lws_context_destroy(context)
            }
            cws_loop_free(loop)
            return nil
        }
        self.context = context
        self.vhost = vhost
        self.protocols = protocols
        self.logger = logger
        self.loop = loop
    }

    /// Waits for events and handles them.
    func step() {
        if let loop {
            cws_loop_run(loop, Int32(CWS_RUN_ONCE))
        } else {
            lws_service(context, 0)
        }
    }

    /// Destroys the context. Must be the last call, when no connections are left.
    func destroy() {
        guard let loop else {
            lws_context_destroy(context)
            return
        }
        if cws_destroy_context_in_loop(context, loop) == 0 {
            // The context still references them.
            _ = Unmanaged.passRetained(protocols)
            logger.warning("the context of libwebsockets could not be destroyed: its memory is not freed")
        }
    }
}
