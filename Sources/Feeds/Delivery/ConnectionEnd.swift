import Base
import ProblemDetails

/// The reason why a connection with a single subscription or request ends, or why any connection was ended.
package enum ConnectionEnd: Equatable, Sendable {
    /// After the frame `done`.
    case done(ServerFrame.EndReason)
    /// After the frame `error`, because the client's token has expired.
    case expired
    /// After the frame `error` with a problem of this status.
    case refused(status: Int)
    /// An operator has disconnected the client.
    case disconnected

    /// Returns the end because of a problem.
    init(_ problem: Problem) { self = problem.isExpiry ? .expired : .refused(status: problem.status) }

    /// The reason in the close frame.
    package var text: String {
        switch self {
        case .done(.overflow): "the client reads too slowly"
        case .done(let reason): reason.rawValue
        case .expired: "token expired"
        case .refused: "refused"
        case .disconnected: "disconnected by an operator"
        }
    }
}

extension Problem {
    /// Whether the client's token has expired: with a new one it may continue.
    package var isExpiry: Bool { type == Problems.tokenExpired.type }
}
