import Coaty
import HTTPServer
import Synchronization

/// What all requests together have collected and not yet handed over.
final class CollectorMemory: Sendable {
    /// How many bytes may be collected; then the request that would take more ends as at its limit.
    static let limit = 256 << 20

    private let used = Atomic(0)

    /// - Returns: whether there is room for more after this.
    func take(_ bytes: Int) -> Bool { used.add(bytes, ordering: .relaxed).newValue < Self.limit }

    func release(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}

/// Gathers the responses to one request, and answers the client once: at the limit, at the timeout, or when the
/// communication manager stops.
final class ResponseCollector: Sendable {
    /// How many bytes of responses are collected at most for one request; then it ends as at its limit.
    static let maximumBytes = 16 << 20

    /// Why collecting ended.
    enum Reason: String {
        case limit, timeout
    }

    private struct State {
        var body: [UInt8] = Array(#"{"responses":["#.utf8)
        var isEmpty = true
        /// Bytes of the body that count against the shared memory.
        var taken = 0
        /// Responses that count for the limit.
        var counted = 0
        var isDone = false
        var subscription: Subscription?
        var timer: Task<Void, Never>?
    }

    private let pending: PendingResponse
    private let limit: Int
    private let ownId: CoatyUUID
    private let memory: CollectorMemory
    private let state = Mutex(State())

    private init(_ pending: PendingResponse, limit: Int, ownId: CoatyUUID, memory: CollectorMemory) {
        self.pending = pending
        self.limit = limit
        self.ownId = ownId
        self.memory = memory
    }

    /// Publishes a request and answers `pending` with what comes.
    ///
    /// - Parameters:
    ///   - limit: after how many responses of others to end; 0 waits for the timeout.
    ///   - ownId: the identity whose responses are collected but not counted.
    ///   - memory: what all requests share.
    ///   - publish: publishes the request, and hands over its responses until the subscription is released.
    static func collect<Event: CommunicationEvent>(
        _ pending: PendingResponse,
        limit: Int,
        timeout: Duration,
        ownId: CoatyUUID,
        memory: CollectorMemory,
        publish: (
            _ onEnd: @escaping @Sendable () -> Void,
            _ handler: @escaping @Sendable (Event) -> Void
        ) throws(CommunicationError) -> Subscription
    ) {
        let collector = ResponseCollector(pending, limit: limit, ownId: ownId, memory: memory)
        do throws(CommunicationError) {
            let subscription = try publish({ collector.fail() }) { event in
                collector.add(event.payload.bytes, from: event.sourceId)
            }
            let timer = Task {
                do {
                    try await Task.sleep(for: timeout)
                    collector.finish(.timeout)
                } catch {
                    // Cancelled: it has ended before.
                }
            }
            collector.hold(subscription, timer)
        } catch {
            pending.complete(Problems.response(error))
        }
    }

    /// Keeps what has to be released at the end, which may already have come.
    private func hold(_ subscription: Subscription, _ timer: Task<Void, Never>) {
        let isDone = state.withLock { state in
            if !state.isDone { (state.subscription, state.timer) = (subscription, timer) }
            return state.isDone
        }
        if isDone {
            subscription.cancel()
            timer.cancel()
        }
    }

    private func add(_ payload: [UInt8], from sourceId: CoatyUUID?) {
        let isFull = state.withLock { state in
            guard !state.isDone else { return false }
            let size = state.body.count
            if !state.isEmpty { state.body.append(UInt8(ascii: ",")) }
            state.isEmpty = false
            state.body += #"{"sourceId":"#.utf8
            JSONText.append(sourceId?.string ?? "", to: &state.body)
            state.body += #","data":"#.utf8
            state.body += payload
            state.body.append(UInt8(ascii: "}"))
            if sourceId != ownId { state.counted += 1 }
            let hasRoom = memory.take(state.body.count - size)
            state.taken += state.body.count - size
            return limit > 0 && state.counted >= limit || state.body.count >= Self.maximumBytes || !hasRoom
        }
        if isFull { finish(.limit) }
    }

    private func finish(_ reason: Reason) {
        guard var body = end() else { return }
        body += #"],"reason":"\#(reason.rawValue)"}"#.utf8
        pending.complete(
            HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body)
        )
    }

    private func fail() {
        guard end() != nil else { return }
        pending.complete(Problems.brokerUnavailable)
    }

    /// Ends collecting, once.
    ///
    /// - Returns: the body so far, for the one caller that ended it.
    private func end() -> [UInt8]? {
        let (body, subscription, timer) = state.withLock {
            state -> ([UInt8]?, Subscription?, Task<Void, Never>?) in
            guard !state.isDone else { return (nil, nil, nil) }
            state.isDone = true
            memory.release(state.taken)
            defer { state.body = [] }
            return (state.body, state.subscription.take(), state.timer.take())
        }
        // Outside of the lock: cancelling unsubscribes.
        subscription?.cancel()
        timer?.cancel()
        return body
    }
}
