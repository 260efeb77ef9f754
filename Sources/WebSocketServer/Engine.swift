import CWebSockets
import Logging

/// The one callback of libwebsockets: connection, reason, per-session data (unused), input and its length.
typealias LibraryCallback =
    @convention(c) (
        OpaquePointer?, lws_callback_reasons, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
    ) -> Int32

/// The context of libwebsockets and the event loop it runs in. Made, run and destroyed on the service thread.
final class Engine {
    let context: OpaquePointer
    let vhost: OpaquePointer
    private let protocols: Protocols
    private let logger: Logger
    /// Nil where poll(2) serves.
    private let loop: UnsafeMutablePointer<cws_loop>?

    /// Nil when libwebsockets cannot set itself up; it has logged why. `user` is what lws_context_user() returns.
    init?(
        configuration: WebSocketServer.Configuration,
        logger: Logger,
        callback: @escaping LibraryCallback,
        user: UnsafeMutableRawPointer
    ) {
        let protocols = Protocols(configuration: configuration, callback: callback)
        // libwebsockets has timers of its own for a handshake; this one is to be the later.
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

    /// The last call. No connection may be left.
    func destroy() {
        guard let loop else {
            lws_context_destroy(context)
            return
        }
        if cws_destroy_context_in_loop(context, loop) == 0 {
            // The context still points to them.
            _ = Unmanaged.passRetained(protocols)
            logger.warning("the context of libwebsockets could not be destroyed: its memory is not freed")
        }
    }
}
