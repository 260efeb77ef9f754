import Coaty
import DequeModule

/// The subscriptions of a session as topic filters: the requests to the broker, its answers, and the next requests.
///
/// This is a value without side effects: its functions return the packets to send and the answers to report. Each
/// request is answered once, unless the connection is lost earlier; a refused request may be answered again, as
/// granted.
///
/// A broker may repeatedly close the connection because of a SUBSCRIBE packet that it does not accept (MQTT 3.1.1,
/// section 4.8). The following rules find the filter that is the cause:
/// - If ``carefulAfter`` consecutive connections are lost before all their initial filters are answered, the next
///   connection sends one packet at a time, and nothing else until these are answered.
/// - If a connection is lost while one packet is unanswered, the filters of that packet are suspects. The next
///   connection sends these last, each separately, and nothing else until it is answered or ``probeTime`` is over.
/// - If that happens again before everything was answered once, packets may be too long: from then on, they contain
///   half as many filters.
/// - If a connection is lost while a suspect is unanswered, that is a strike, and after some strikes the filter is
///   refused (``SuspectFilters``). It is not a strike if a publication was being written, because the broker may not
///   have accepted that.
/// - A refused filter is requested again on an established connection, a few times.
///
/// Some subscriptions are essential for the agent. These are requested first and are never suspects.
struct MQTTSubscriptions {
    /// A filter in the form that the broker compares.
    typealias Key = WireName

    /// Packets to send to the broker.
    enum Command: Equatable {
        case subscribe([String])
        case unsubscribe([String])
    }

    /// The answer to a request.
    struct Answer: Equatable {
        let request: SubscriptionRequest
        let isGranted: Bool
    }

    enum Standing {
        /// Queued for sending.
        case queued
        /// Sent in a packet.
        case asked(packet: Int32)
        case granted
        case refused
    }

    /// The progress of the current connection.
    private enum Progress {
        /// No filter was requested yet.
        case connected
        case asking
        /// All initial filters of the connection are answered.
        case settled
    }

    struct Entry {
        let filter: String
        var standing: Standing
        var isEssential: Bool
        var requests: [SubscriptionRequest]
        /// Whether the filter is queued for sending although the broker knows it, so that the broker sends its retained
        /// messages again.
        var isRepeated = false

        var isQueued: Bool { if case .queued = standing { true } else { isRepeated } }
    }

    private struct Packet {
        let id: Int32
        let keys: [Key]
        let isProbe: Bool
        let sentAt: ContinuousClock.Instant
    }

    static let carefulAfter = 2
    static let probeTime = Duration.seconds(2)
    /// Maximum number of unanswered packets. A broker handles packets in order: after more packets, the answer to a
    /// ping would arrive too late (RabbitMQ takes about 2 ms for each filter).
    static let maximumUnanswered = 64
    /// The time without any answer after which the remaining packets are sent nevertheless, so that publications can
    /// follow. RabbitMQ pauses for seconds while it removes the subscriptions of the previous connection.
    static let stallTime = Duration.seconds(10)

    let topics: MQTTTopics
    /// Maximum number of filters in a packet.
    private(set) var filtersPerPacket: Int
    private let configuredFiltersPerPacket: Int

    private(set) var entries: [Key: Entry] = [:]
    /// Requests with unanswered filters: the number of these filters, and whether one was refused.
    private var open: [SubscriptionRequest: (unanswered: Int, isRefused: Bool)] = [:]
    /// Filters of raw events that have wildcards.
    private(set) var wildcards = TopicTrie()
    /// Filters to send, essential ones first. A key whose entry is no longer queued is skipped.
    private var queue = Deque<Key>()
    /// Suspects and retries, which are sent one by one after the others.
    private var probes = Deque<Key>()
    private var inFlight = Deque<Packet>()
    /// Response filters to unsubscribe. No request uses them again, so they are collected for one packet: without this,
    /// a third of the packets of a request end its subscription.
    private var ended: [String] = []
    /// When the broker last answered, or the only unanswered packet was sent.
    private var answeredAt = ContinuousClock.now
    private var suspects = SuspectFilters()
    /// Number of consecutive connections that were lost before all their initial filters were answered.
    private var lostInARow = 0
    private var progress = Progress.settled
    /// Number of packets with several filters at which connections were lost since everything was answered.
    private var lostPackets = 0

    init(topics: MQTTTopics, filtersPerPacket: Int) {
        self.topics = topics
        configuredFiltersPerPacket = max(1, filtersPerPacket)
        self.filtersPerPacket = configuredFiltersPerPacket
    }

    /// Whether one packet is sent at a time.
    private var isCareful: Bool { progress != .settled && lostInARow >= Self.carefulAfter }

    /// Whether the broker has not answered all initial filters of the connection.
    var isAsking: Bool { progress == .asking }

    // MARK: - Changes

    /// Begins a connection. Nothing is subscribed.
    mutating func connected() {
        progress = .connected
    }

    /// Adds subscriptions.
    ///
    /// - Returns: the answers that are already known.
    mutating func add(_ requests: [SubscriptionRequest]) -> [Answer] {
        if progress == .connected { progress = .asking }
        var answers: [Answer] = []
        for request in requests.filter(\.isEssential) + requests.filter({ !$0.isEssential }) {
            let filters = topics.filters(of: request.selector)
            var (unanswered, isRefused) = (0, false)
            for filter in filters {
                let key = topics.key(filter)
                if entries[key] != nil {
                    if request.isRepeated { queueAgain(key, request.selector) }
                    entries[key]?.requests.append(request)
                } else {
                    add(key, filter, request)
                }
                switch entries[key]?.standing {
                case .queued, .asked: unanswered += 1
                case .refused: isRefused = true
                case .granted: if request.isRepeated { unanswered += 1 }
                case nil: break
                }
            }
            if unanswered == 0 {
                answers.append(Answer(request: request, isGranted: !isRefused))
            } else {
                open[request] = (unanswered, isRefused)
            }
        }
        return answers
    }

    /// Queues a filter that the broker knows. Its earlier requests for the selector are answered already, or are
    /// answered together with the new one.
    private mutating func queueAgain(_ key: Key, _ selector: EventSelector) {
        entries[key]?.requests.removeAll { $0.selector == selector && open[$0] == nil }
        switch entries[key]?.standing {
        case .asked, .granted:
            guard entries[key]?.isRepeated == false else { return }
            entries[key]?.isRepeated = true
            queue.append(key)
        case .queued, .refused, nil: break
        }
    }

    private mutating func add(_ key: Key, _ filter: String, _ request: SubscriptionRequest) {
        var entry = Entry(
            filter: filter,
            standing: .queued,
            isEssential: request.isEssential,
            requests: [request]
        )
        if case .raw = request.selector, TopicTrie.hasWildcards(key) { wildcards.insert(key) }
        switch entry.isEssential ? nil : suspects.isRefused(key) {
        case true?: entry.standing = .refused
        case false?: probes.append(key)
        case nil: queue.append(key)
        }
        entries[key] = entry
    }

    /// Ends the subscription to a selector. Filters of responses are collected (``takeEnded()``).
    ///
    /// - Returns: the packets to send, and an answer to a request that was not sent.
    mutating func remove(_ selector: EventSelector) -> (commands: [Command], answers: [Answer]) {
        var forgotten: [String] = []
        var answers: [Answer] = []
        for filter in topics.filters(of: selector) {
            let key = topics.key(filter)
            guard var entry = entries[key] else { continue }
            for request in entry.requests where request.selector == selector && open.removeValue(forKey: request) != nil
            {
                answers.append(Answer(request: request, isGranted: false))
            }
            entry.requests.removeAll { $0.selector == selector }
            guard entry.requests.isEmpty else {
                entries[key] = entry
                continue
            }
            entries[key] = nil
            wildcards.remove(key)
            switch entry.standing {
            case .asked, .granted: forgotten.append(entry.filter)
            case .queued, .refused: break
            }
        }
        settleIfDone()
        if case .responses = selector {
            ended += forgotten
            return (ended.count < filtersPerPacket ? [] : takeEnded(), answers)
        }
        return (packets(forgotten).map(Command.unsubscribe), answers)
    }

    /// Whether ``remove(_:)`` sends no packet for a selector.
    func collects(_ selector: EventSelector) -> Bool {
        if case .responses = selector { ended.count + 1 < filtersPerPacket } else { false }
    }

    /// Removes and returns the collected filters of responses as packets. Call it about once a second.
    mutating func takeEnded() -> [Command] {
        defer { ended = [] }
        return packets(ended).map(Command.unsubscribe)
    }

    /// Ends all subscriptions.
    ///
    /// - Returns: the packets to send.
    mutating func removeAll() -> [Command] {
        let known = entries.values.compactMap { entry -> String? in
            switch entry.standing {
            case .asked, .granted: entry.filter
            case .queued, .refused: nil
            }
        }
        entries = [:]
        defer { ended = [] }
        return packets(known + ended).map(Command.unsubscribe)
    }

    private func packets(_ filters: [String]) -> [[String]] {
        stride(from: 0, to: filters.count, by: filtersPerPacket).map {
            Array(filters[$0..<min($0 + filtersPerPacket, filters.count)])
        }
    }

    // MARK: - Requesting

    /// Whether filters are queued for sending.
    var hasQueued: Bool { !queue.isEmpty || !probes.isEmpty }

    /// Returns whether publications and other operations are held back.
    func holdsBack(now: ContinuousClock.Instant) -> Bool {
        if let packet = inFlight.first, packet.isProbe { return now < packet.sentAt + Self.probeTime }
        return !queue.isEmpty || isCareful && !inFlight.isEmpty
    }

    /// Returns the packet to send now; nil if there is none. Call ``sent(_:keys:now:)`` after it.
    mutating func nextPacket(now: ContinuousClock.Instant) -> (filters: [String], keys: [Key])? {
        guard !isCareful || inFlight.isEmpty else { return nil }
        guard inFlight.count < Self.maximumUnanswered || now >= answeredAt + Self.stallTime else { return nil }
        var keys: [Key] = []
        while keys.count < filtersPerPacket, let key = queue.popFirst() {
            if entries[key]?.isQueued == true { keys.append(key) }
        }
        // While a suspect is unanswered, no other packet is sent.
        while keys.isEmpty, inFlight.isEmpty, let key = probes.popFirst() {
            if case .queued = entries[key]?.standing { keys = [key] }
        }
        guard !keys.isEmpty else {
            settleIfDone()
            return nil
        }
        return (keys.compactMap { entries[$0]?.filter }, keys)
    }

    /// Records that a packet was sent.
    ///
    /// - Returns: false if an earlier packet with the same identifier is unanswered, which means that the broker does
    ///   not answer.
    mutating func sent(_ id: Int32, keys: [Key], now: ContinuousClock.Instant) -> Bool {
        let isProbe = keys.count == 1 && suspects.isRefused(keys[0]) != nil
        if inFlight.isEmpty { answeredAt = now }
        for key in keys {
            entries[key]?.standing = .asked(packet: id)
            entries[key]?.isRepeated = false
        }
        let isNew = !inFlight.contains { $0.id == id }
        inFlight.append(Packet(id: id, keys: keys, isProbe: isProbe, sentAt: now))
        return isNew
    }

    /// Gives up a packet that can't be sent: its filters are refused.
    mutating func refuse(_ keys: [Key]) -> [Answer] {
        let answers = keys.flatMap { settle($0, isGranted: false) }
        settleIfDone()
        return answers
    }

    /// Handles the broker's answer to a packet.
    mutating func acknowledged(_ id: Int32, isGranted: [Bool], now: ContinuousClock.Instant) -> [Answer] {
        guard let index = inFlight.firstIndex(where: { $0.id == id }) else { return [] }
        answeredAt = now
        let packet = inFlight.remove(at: index)
        var answers: [Answer] = []
        for (key, isGranted) in zip(packet.keys, isGranted) {
            // The filter may have been subscribed again since.
            guard case .asked(id) = entries[key]?.standing else { continue }
            suspects.acquit(key)
            answers += settle(key, isGranted: isGranted)
        }
        settleIfDone()
        return answers
    }

    private mutating func settle(_ key: Key, isGranted: Bool) -> [Answer] {
        guard let entry = entries[key] else { return [] }
        entries[key]?.standing = isGranted ? .granted : .refused
        return entry.requests.compactMap { request in
            guard var state = open[request] else {
                // It was answered before: this is a retry.
                return isGranted ? Answer(request: request, isGranted: true) : nil
            }
            state.unanswered -= 1
            state.isRefused = state.isRefused || !isGranted
            open[request] = state.unanswered > 0 ? state : nil
            return state.unanswered > 0 ? nil : Answer(request: request, isGranted: !state.isRefused)
        }
    }

    private mutating func settleIfDone() {
        guard progress == .asking, queue.isEmpty, probes.isEmpty, inFlight.isEmpty else { return }
        progress = .settled
        lostInARow = 0
        lostPackets = 0
    }

    // MARK: - Lost connections

    /// Ends a connection.
    ///
    /// - Parameters:
    ///   - isWriting: whether a publication was handed over and not yet written.
    ///   - isLeaving: whether the connection was closed by the agent rather than lost.
    /// - Returns: the filters that are refused from now on.
    mutating func lost(isWriting: Bool, isLeaving: Bool, now: ContinuousClock.Instant) -> [String] {
        var refused: [String] = []
        if !isLeaving, let packet = inFlight.first {
            if packet.isProbe, let key = packet.keys.first {
                if !isWriting, inFlight.count == 1, strike(key, now), let entry = entries[key] {
                    refused.append(entry.filter)
                }
            } else if inFlight.count == 1, !isWriting {
                suspect(packet.keys)
            }
            lostInARow += 1
        }
        entries = [:]
        open = [:]
        wildcards = TopicTrie()
        queue = []
        probes = []
        inFlight = []
        ended = []
        return refused
    }

    private mutating func suspect(_ keys: [Key]) {
        if keys.count > 1 { lostPackets += 1 }
        guard lostPackets < 2 || filtersPerPacket == 1 else {
            // No filter is the cause if the packet was too long.
            filtersPerPacket = max(1, filtersPerPacket / 2)
            suspects.acquitAllThatAreNotRefused()
            return
        }
        for key in keys where entries[key]?.isEssential == false { suspects.suspect(key) }
    }

    /// - Returns: whether the filter is refused from now on.
    private mutating func strike(_ key: Key, _ now: ContinuousClock.Instant) -> Bool {
        guard suspects.strike(key, now) else { return false }
        // This filter explains the packets at which connections were lost.
        filtersPerPacket = configuredFiltersPerPacket
        lostPackets = 0
        return true
    }

    /// Requests refused filters again whose time has come. Call it about once a second while the connection is up.
    mutating func retry(now: ContinuousClock.Instant) {
        guard progress == .settled else { return }
        for key in suspects.due(now) {
            guard case .refused = entries[key]?.standing else { continue }
            entries[key]?.standing = .queued
            probes.append(key)
        }
    }
}
