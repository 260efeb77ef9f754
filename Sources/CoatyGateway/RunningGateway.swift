import Coaty

/// A gateway that serves clients.
public struct RunningGateway: Sendable {
    /// The URL that it listens at.
    public let url: String
    /// The broker's address, without credentials.
    public let broker: String
    let manager: CommunicationManager

    /// The reason why it is not ready, such as `unreachable: connection refused`, for output after the broker's
    /// address; nil if it is ready.
    public var brokerProblem: String? {
        if manager.isOnline { return nil }
        if let error = manager.connectionError {
            return "\(error.reason.isReachable ? "not connected" : "unreachable"): \(error.reason.words)"
        }
        return manager.isConnected ? "has not answered the gateway's subscriptions yet" : "has not answered yet"
    }

    /// Waits until the gateway is online.
    ///
    /// - Returns: false if the task is cancelled earlier.
    public func becomesReady() async -> Bool {
        for await state in manager.getCommunicationState() where state == .online { return true }
        return false
    }
}

extension ConnectionError.Reason {
    /// The cause in a few words; the error's message contains the details.
    fileprivate var words: String { rawValue.replacing("-", with: " ").replacing("tls", with: "TLS") }

    /// Whether a server answers at the broker's address.
    fileprivate var isReachable: Bool {
        switch self {
        case .connectionRefused, .timedOut, .hostNotFound, .network, .noBrokerFound: false
        default: true
        }
    }
}
