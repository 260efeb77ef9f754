import Coaty
import HTTPServer
import Synchronization
import WebSocketServer

/// One subscription or request of a client: selects events of a feed and appends them to the client's outbound queue.
final class ClientSubscription: Sendable {
    /// A number that is unique on the connection.
    let serial: UInt64
    /// The id that the client chose; nil on a connection with a single subscription or request.
    let id: String?
    let options: SubscriptionOptions
    /// The observation; nil for a request.
    let wanted: Observation?
    /// The kind of objects to deliver if the feed covers all kinds; nil for all.
    let kind: Observation.ObjectKind?
    private let outbound: OutboundQueue
    /// What the client may see of the events; nil for all of them.
    private let view: Mutex<AccessView?>
    /// Held while the subscription is judged by a changed access policy. Taken before the lock of the outbound queue.
    let judging = Mutex(())
    /// Whether there is a view. Read for each event without a lock.
    private let isJudged: Atomic<Bool>
    private let holdings = Mutex<[any AnyObject & Sendable]>([])

    init(
        serial: UInt64,
        id: String?,
        options: SubscriptionOptions,
        wanted: Observation?,
        view: AccessView?,
        outbound: OutboundQueue
    ) {
        self.view = Mutex(view)
        isJudged = Atomic(view != nil)
        self.serial = serial
        self.id = id
        self.options = options
        self.wanted = wanted
        kind = wanted?.objectKind
        self.outbound = outbound
    }

    /// Queues a record of the feed if the client wants it.
    ///
    /// - Parameter shared: the cache for the frame, shared by the subscriptions that receive the same bytes.
    func take(_ record: EventRecord, _ shared: SharedFrame) {
        guard let item = item(record) else { return }
        // A record that was reduced for a view is not what others receive.
        outbound.append(item, to: self, item.isOf(record) ? shared : SharedFrame())
    }

    /// Keeps the client's places until the subscription is released.
    func hold(_ holdings: [any AnyObject & Sendable]) { self.holdings.withLock { $0 += holdings } }

    /// Starts delivery. Called when the feed has added the subscription: from then on, the feed passes every record to it.
    func begin(_ start: SubscriptionStart) { outbound.begin(self, start) }

    /// Ends the subscription after its queued events.
    func end(_ reason: ServerFrame.EndReason) { outbound.end(self, reason) }

    /// Ends the subscription at once with an `error` frame, and discards its queued events.
    func refuse(_ problem: Problem) { outbound.refuse(self, problem) }

    /// Returns the item to queue for a record; nil if the client does not want it.
    func item(_ record: EventRecord) -> QueuedItem? {
        guard case .event(let event) = record.content else { return .gap(nil, record.cursor) }
        guard let view = currentView else { return item(record, event, .init(before: true, after: true)) }
        switch record.visible(event, to: view) {
        case .nothing: return nil
        case .whole: return item(record, event, .init(before: true, after: true))
        case .change(let visibility): return item(record, event, visibility)
        case .part(let record):
            guard case .event(let event) = record.content else { return nil }
            return item(record, event, .init(before: true, after: true))
        }
    }

    private func item(
        _ record: EventRecord,
        _ event: ObservedEvent,
        _ visibility: ObservedChange.Visibility
    ) -> QueuedItem? {
        guard let change = event.change else { return wants(event) ? .event(record, event, nil) : nil }
        guard let kind = visibleKind(change, visibility) else { return nil }
        guard kind == .removed, change.kind != .removed, !visibility.after else { return .event(record, event, kind) }
        // The client must not see the new version, not even as the last of an object that is gone for it.
        guard let departure = change.departure(from: event) else { return nil }
        return .event(EventRecord(.event(departure), cursor: record.cursor), departure, kind)
    }

    /// Whether the client receives every event of the feed.
    var wantsAll: Bool { options.filter == nil && kind == nil && currentView == nil }

    // MARK: - Access

    /// What the client may see of the events; nil for all of them.
    var currentView: AccessView? { isJudged.load(ordering: .acquiring) ? view.withLock(\.self) : nil }

    /// Changes what the client may see. Events that are queued already are not judged again.
    func change(_ view: AccessView?) {
        self.view.withLock { $0 = view }
        isJudged.store(view != nil, ordering: .releasing)
    }

    /// Returns whether the client may see an object of the registry.
    func maySee(_ object: AliveObject) -> Bool {
        currentView?.allows([object.request(.observe, .advertise)]) ?? true
    }

    /// Returns whether an event matches the client's filter.
    func wants(_ event: ObservedEvent) -> Bool {
        options.filter?.holds(forOneOf: event.subjects) ?? true
    }

    /// Translates a change into what a filtered view sees: an object that starts to match is added, one that stops is removed.
    ///
    /// - Returns: nil if the object matched neither before nor after the change.
    private func visibleKind(
        _ change: ObservedChange,
        _ visibility: ObservedChange.Visibility
    ) -> ObjectChange.Kind? {
        let matches = visibility.after && change.kind != .removed && includes(change.object)
        let before = change.kind == .removed ? change.object : change.previous
        let matched = visibility.before && before.map(includes) ?? false
        return switch (matched, matches) {
        case (false, true): .added
        case (true, true): .changed
        case (true, false): .removed
        case (false, false): nil
        }
    }

    private func includes(_ object: (object: AliveObject, view: JSONView)) -> Bool {
        kind?.includes(object.object) ?? true && options.filter?.holds(forOneOf: [object.view]) ?? true
    }
}

/// A cache for the WebSocket frame of one event, for subscriptions that receive the same bytes. The first one creates it.
final class SharedFrame: Sendable {
    private let frame = Mutex<WebSocketFrame?>(nil)

    /// Returns the frame. Calls `make` if there is none yet, with the lock held.
    func get(_ make: () -> WebSocketFrame) -> WebSocketFrame {
        frame.withLock { frame in
            if let frame { return frame }
            let made = make()
            frame = made
            return made
        }
    }
}
