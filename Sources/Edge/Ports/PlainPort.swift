import Base
import Coordination
package import HTTPServer
package import Logging

/// A port on 127.0.0.1 without TLS and without tokens, for probes on the same machine. Its connections serve one
/// request each.
package struct PlainPort: Component {
    static let host = "127.0.0.1"

    private let server: HTTPServer
    private let listener: PortListener
    private let logger: Logger

    /// - Parameters:
    ///   - configuration: the configuration of the health check server.
    ///   - router: the routes of the port. They have no admission: every user of the machine may call them.
    package init(
        port: UInt16,
        configuration: HTTPServer.Configuration,
        router: Router,
        refuse: @escaping @Sendable (Int32) -> Void,
        logger: Logger
    ) {
        let server = HTTPServer(configuration: configuration, router: router, logger: logger)
        self.server = server
        self.logger = logger
        listener = PortListener(
            host: Self.host,
            port: port,
            maximumUndecided: 16,
            decisionTimeout: .seconds(10),
            receive: .serve { _, descriptor, origin in
                server.adopt(descriptor, peer: origin.peer, context: origin)
            },
            refuse: refuse,
            logger: logger
        )
    }

    func start() async throws {
        try await listener.start()
        do {
            try server.start()
        } catch {
            await listener.stop()
            throw error
        }
        logger.info("plain port", metadata: ["url": "http://\(Self.host):\(listener.port ?? 0)"])
    }

    func stop() async {
        await listener.stop()
        await onBlockingThread { server.stop() }
    }
}
