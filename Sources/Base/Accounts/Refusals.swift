package import Coaty
import Logging
import Synchronization

/// Counts and logs refusals and delays of clients because of a limit.
package final class Refusals: Sendable {
    /// The kind of a refusal.
    package enum Kind: Hashable, Sendable, CustomStringConvertible {
        case memory
        case resource(Resource)
        case rate(Rate.Kind)
        /// Requests from one address.
        case addressRate
        /// Subscriptions and pending requests of one WebSocket connection.
        case connection

        package var description: String {
            switch self {
            case .memory: "memory"
            case .resource(let resource): resource.name
            case .rate(let kind): "rate of \(kind.name)"
            case .addressRate: "rate of address"
            case .connection: "subscriptions per connection"
            }
        }
    }

    /// A kind, and whether the client or all clients together reached the limit.
    package struct Reason: Hashable, Sendable {
        package let kind: Kind
        package let exhaustion: Tally.Exhaustion
    }

    private let logger: Logger
    private let counts = Mutex<[Reason: Int]>([:])
    private let onBrokerRefusal = Mutex<(@Sendable (RefusedPublication, ClientKey) -> Void)?>(nil)

    init(logger: Logger) { self.logger = logger }

    /// Number of times that clients reached each limit since the gateway started.
    package var all: [Reason: Int] { counts.withLock(\.self) }

    func count(_ kind: Kind, _ exhaustion: Tally.Exhaustion, _ client: ClientKey) {
        let message: Logger.Message =
            exhaustion == .own
            ? "refused a request: the client has used up its share"
            : "refused a request: all clients together have used up the resource"
        count(Reason(kind: kind, exhaustion: exhaustion), client, message)
    }

    /// Counts that the events and responses for a client are held back. Nothing is refused.
    func countWait(_ kind: Rate.Kind, _ client: ClientKey) {
        let message: Logger.Message = "delayed events and responses for a client: it received more than its rate allows"
        count(Reason(kind: .rate(kind), exhaustion: .own), client, message)
    }

    /// Sets the handler that reports a refused publication to its client. It must not block.
    package func setBrokerRefusalHandler(_ handler: @escaping @Sendable (RefusedPublication, ClientKey) -> Void) {
        onBrokerRefusal.withLock { $0 = handler }
    }

    /// Reports that the broker has refused a publication.
    func brokerRefused(_ publication: RefusedPublication, of client: ClientKey) {
        onBrokerRefusal.withLock(\.self)?(publication, client)
    }

    private func count(_ reason: Reason, _ client: ClientKey, _ message: Logger.Message) {
        counts.withLock { $0[reason, default: 0] += 1 }
        logger.notice(message, metadata: ["limit": "\(reason.kind)", "client": "\(client)"])
    }
}

extension Refusals.Kind {
    /// The name in metrics and in the status.
    package var label: String { description.lowercased().replacing(" ", with: "_").replacing("-", with: "_") }
}
