import Coaty
import HTTPServer
import Synchronization

/// Gathers the responses to one request, and answers the client once:
/// `{"responses":[{"sourceId":…,"ms":…,"data":…},…],"reason":…}`.
final class CollectedResponses: ResponseSink {
    /// How many bytes of responses are collected at most for one request; then it ends.
    static let maximumBytes = 16 << 20

    private struct State {
        var body: [UInt8] = Array(#"{"responses":["#.utf8)
        /// Bytes of the body that count against the shared memory.
        var taken = 0
    }

    private let pending: PendingResponse
    private let memory: WaitingMemory
    private let unanswered: @Sendable () -> HTTPResponse?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - memory: what all requests share.
    ///   - unanswered: answers the client where nobody has responded in time; nil for a list of none.
    init(
        _ pending: PendingResponse,
        memory: WaitingMemory,
        unanswered: @autoclosure @escaping @Sendable () -> HTTPResponse?
    ) {
        self.pending = pending
        self.memory = memory
        self.unanswered = unanswered
    }

    func take(_ frame: StreamFrame) -> Bool {
        state.withLock { state in
            let size = state.body.count
            if state.taken > 0 { state.body.append(UInt8(ascii: ",")) }
            state.body.append(UInt8(ascii: "{"))
            // All are the same event, which the client knows: the first member goes without saying.
            state.body += frame.members.drop { $0 != UInt8(ascii: ",") }.dropFirst()
            state.body.append(UInt8(ascii: "}"))
            state.taken += state.body.count - size
            let hasRoom = memory.add(state.body.count - size)
            return state.body.count < Self.maximumBytes && (hasRoom || state.taken < Outlet.guaranteedBytes)
        }
    }

    func end(_ reason: StreamFrame.EndReason) {
        var (body, taken) = state.withLock { state in
            defer { state.body = [] }
            return (state.body, state.taken)
        }
        memory.add(-taken)
        if taken == 0, reason == .offline {
            pending.complete(Problems.brokerUnavailable)
        } else if taken == 0, reason == .timeout, let unanswered = unanswered() {
            pending.complete(unanswered)
        } else {
            body += #"],"reason":"\#(reason.rawValue)"}"#.utf8
            pending.complete(HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body))
        }
    }
}
