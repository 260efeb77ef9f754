/// Correlation ids whose responses are subscribed before a request uses them.
///
/// Without it, each request needs a SUBSCRIBE and its acknowledgement: a quarter of the packets of a request, and the
/// broker handles them before the request. The reserve starts empty and grows with the requests, so that an agent
/// with few requests subscribes for each of them. Each id is used once. A lost connection empties the reserve.
struct ResponseReserve: Sendable {
    /// Maximum number of ids for each pattern.
    static let maximumSize = 64
    /// The reserve is given up if no request has used it for as long as this, at most twice as long.
    static let idleTime = Duration.seconds(5)

    private struct Stock {
        /// Number of ids to keep; 0 until a second request follows within ``idleTime``.
        var size = 0
        /// Ids whose subscription is granted.
        var ready: [CoatyUUID] = []
        /// Ids whose subscription the broker has not answered.
        var asked: Set<CoatyUUID> = []
    }

    private var stocks: [CommunicationEventType: Stock] = [:]
    /// Ids that were taken and are not yet observed.
    private var taken: Set<CoatyUUID> = []
    /// The broker has refused a subscription, perhaps because it limits their number: none are requested ahead.
    private var isRefused = false
    private var isUsed = false

    /// Takes an id for the next request; nil if none is ready.
    mutating func take(_ responseType: CommunicationEventType) -> CoatyUUID? {
        isUsed = true
        guard let id = stocks[responseType]?.ready.popLast() else { return nil }
        taken.insert(id)
        return id
    }

    /// Returns whether the subscription of a taken id is granted. The caller is responsible for it from now on.
    mutating func claim(_ selector: EventSelector) -> Bool {
        guard !taken.isEmpty, case .responses(_, let id) = selector else { return false }
        return taken.remove(id) != nil
    }

    /// Returns new ids to subscribe behind a request.
    ///
    /// - Parameter isMissed: whether the request has found no id.
    mutating func refill(_ responseType: CommunicationEventType, isMissed: Bool) -> [CoatyUUID] {
        guard !isRefused else { return [] }
        guard var stock = stocks[responseType] else {
            stocks[responseType] = Stock()
            return []
        }
        if isMissed { stock.size = min(max(1, stock.size * 2), Self.maximumSize) }
        let held = stock.ready.count + stock.asked.count
        // Several ids are requested together.
        guard held <= stock.size / 2 else { return [] }
        let new = (held..<stock.size).map { _ in CoatyUUID() }
        stock.asked.formUnion(new)
        stocks[responseType] = stock
        return new
    }

    /// Handles the broker's answer to a subscription.
    ///
    /// - Returns: the subscriptions to end; nil if it is not one of the reserve.
    mutating func answered(_ selector: EventSelector, isGranted: Bool) -> [EventSelector]? {
        guard case .responses(let type, let id) = selector, stocks[type]?.asked.remove(id) != nil else { return nil }
        guard isGranted, !isRefused else { return giveUp() + [selector] }
        stocks[type]?.ready.append(id)
        return []
    }

    /// Empties the reserve for the rest of the connection, because the broker has refused a subscription.
    ///
    /// - Returns: the subscriptions to end.
    mutating func giveUp() -> [EventSelector] {
        isRefused = true
        return removeUnused()
    }

    /// Whether no request has used the reserve since it was given up.
    var isEmpty: Bool { stocks.isEmpty }

    /// Empties the reserve if no request was made since the last call.
    ///
    /// - Returns: the subscriptions to end.
    mutating func removeIfIdle() -> [EventSelector] {
        guard !isUsed else {
            isUsed = false
            return []
        }
        return removeUnused()
    }

    private mutating func removeUnused() -> [EventSelector] {
        let unused = stocks.flatMap { type, stock in
            stock.ready.map { EventSelector.responses(type, correlationId: $0) }
        }
        // The answers to the others are still to come; a later call removes these.
        stocks = stocks.compactMapValues { $0.asked.isEmpty ? nil : Stock(asked: $0.asked) }
        return unused
    }
}
