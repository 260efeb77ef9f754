package import Logging

/// The part of the gateway that a log line is about. Each can have a separate level.
package enum LogLabel: Int, CaseIterable, Sendable {
    /// The gateway as a whole: start, stop, reload, pause.
    case gateway
    /// The connections to the broker, and the embedded broker.
    case broker
    /// The port and the HTTP server.
    case http
    /// The WebSocket server.
    case websocket
    /// Certificates, and TLS connections of clients.
    case tls
    /// Authentication, keys of identity providers, the audit log.
    case access
    /// Feeds, and the object registry.
    case feeds
    /// IO routing and the state directory.
    case routing
    /// Refusals because of limits, and memory.
    case limits
    /// Single requests.
    case requests

    /// The name in log lines and settings.
    package var name: String { "\(self)" }

    /// Returns the label for a logger of a library.
    init(ofLogger label: String) {
        self = label.hasPrefix("coaty.") ? .broker : .gateway
    }
}

extension Logger {
    /// Returns a logger for a part of the gateway. Loggers that were not created by ``LogControl/handler(label:)`` stay
    /// unchanged.
    package func labelled(_ label: LogLabel) -> Logger { changing { $0.label = label } }

    /// Returns a logger whose messages are all written, even if they repeat: for the results of an operator's commands.
    package func writingAll() -> Logger { changing { $0.countsRepetitions = false } }

    private func changing(_ change: (inout GatewayLogHandler) -> Void) -> Logger {
        guard var handler = handler as? GatewayLogHandler else { return self }
        change(&handler)
        var logger = self
        logger.handler = handler
        return logger
    }
}
