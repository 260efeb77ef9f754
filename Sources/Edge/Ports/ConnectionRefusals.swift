import Base
import Dispatch
import Glibc
package import Logging
import ProblemDetails
import Synchronization

/// Answers connections that no server accepts: 503, or 400 if the client does not use TLS. The answer is sent without
/// blocking, then the connection ends.
package final class ConnectionRefusals: Sendable {
    /// Maximum time for which a refused connection stays open, and is read until the client closes it. If it were closed
    /// while the client is still sending, the client would not receive the answer.
    static let lingerTime = Duration.seconds(1)
    /// Number of bytes that are discarded at a time.
    private static let pieceSize = 64 << 10
    /// Maximum number of refused connections that stay open; further ones are closed immediately.
    static let maximumLingering = 64

    private let logger: Logger
    private let tooMany: [UInt8]
    private let plainText: [UInt8]
    /// The number of connections that stay open.
    private let lingering = Mutex(0)

    package init(logger: Logger) {
        self.logger = logger
        tooMany = Self.message(
            "503 Service Unavailable\r\nRetry-After: 1",
            Problem(
                type: Problems.typePrefix + "too-many-connections",
                title: "Too many connections",
                status: 503,
                detail: "The maximum number of connections is in use."
            )
        )
        plainText = Self.message(
            "400 Bad Request",
            Problem(
                type: Problems.typePrefix + "tls-required",
                title: "TLS required",
                status: 400,
                detail: "This port requires TLS. Use https:// or wss:// in the URL."
            )
        )
    }

    private static func message(_ status: String, _ problem: Problem) -> [UInt8] {
        let body = problem.body
        let head = """
            HTTP/1.1 \(status)\r
            Content-Type: application/problem+json\r
            Content-Length: \(body.count)\r
            Connection: close\r
            \r

            """
        return Array(head.utf8) + body
    }

    /// Refuses a connection, and closes its descriptor. Does not block.
    package func refuse(_ descriptor: Int32) {
        logger.warning("refused a connection: too many are open")
        end(descriptor, with: tooMany)
    }

    /// Answers a request without TLS on a port with TLS, and closes its descriptor. Does not block.
    package func refusePlainText(_ descriptor: Int32) { end(descriptor, with: plainText) }

    private func end(_ descriptor: Int32, with message: [UInt8]) {
        let lingers = lingering.withLock { lingering in
            guard lingering < Self.maximumLingering else { return false }
            lingering += 1
            return true
        }
        // Unread bytes would reset the connection when it is closed.
        _ = Self.discard(descriptor)
        _ = message.withUnsafeBytes { bytes in
            send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        shutdown(descriptor, Int32(SHUT_WR))
        guard lingers else {
            close(descriptor)
            return
        }
        let queue = DispatchQueue.global()
        // Safe: Dispatch sources may be used from any thread. Cancelling releases the handlers.
        nonisolated(unsafe) let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { if Self.discard(descriptor) { source.cancel() } }
        source.setCancelHandler { [self] in
            close(descriptor)
            lingering.withLock { $0 -= 1 }
        }
        source.activate()
        let milliseconds = Int(Self.lingerTime / .milliseconds(1))
        queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { source.cancel() }
    }

    /// Discards a piece of the bytes that have arrived.
    ///
    /// - Returns: whether the client sends no more.
    private static func discard(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: pieceSize, alignment: 1) { buffer in
            let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)
        }
    }
}
