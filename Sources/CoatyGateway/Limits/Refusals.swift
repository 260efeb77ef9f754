import Logging
import Synchronization

/// Counts what clients were refused because a limit was reached, and logs it.
final class Refusals: Sendable {
    /// What was refused.
    enum Kind: Hashable, Sendable, CustomStringConvertible {
        case memory
        case resource(Resource)
        case rate(Rate.Kind)
        /// Requests from one address.
        case addressRate

        var description: String {
            switch self {
            case .memory: "memory"
            case .resource(let resource): resource.name
            case .rate(let kind): "rate of \(kind.name)"
            case .addressRate: "rate of address"
            }
        }
    }

    /// A kind, and whether the client or all clients together reached the limit.
    struct Reason: Hashable, Sendable {
        let kind: Kind
        let exhaustion: Tally.Exhaustion
    }

    private let logger: Logger
    private let counts = Mutex<[Reason: Int]>([:])

    init(logger: Logger) { self.logger = logger }

    /// How often each kind was refused since the gateway started.
    var all: [Reason: Int] { counts.withLock(\.self) }

    func count(_ kind: Kind, _ exhaustion: Tally.Exhaustion, _ client: ClientKey) {
        counts.withLock { $0[Reason(kind: kind, exhaustion: exhaustion), default: 0] += 1 }
        logger.notice(
            exhaustion == .own ? "refused a client more than its share" : "refused a client: a limit is reached",
            metadata: ["limit": "\(kind)", "client": "\(client)"]
        )
    }
}
