import Coaty
import HTTPServer
import Synchronization
import WebSocketServer

/// One subscription of a client: what of a source it wants, and where that goes.
final class Lane: Sendable {
    /// Which one it is on its connection.
    let serial: UInt64
    /// The client's own name for it; nil where the connection has one alone.
    let id: String?
    let options: StreamOptions
    /// What is observed; nil where the lane is that of a request.
    let wanted: StreamRequest?
    /// The objects that are wanted, where a source tells of all.
    let kind: StreamRequest.ObjectKind?
    private let outlet: Outlet

    init(serial: UInt64, id: String?, options: StreamOptions, wanted: StreamRequest?, outlet: Outlet) {
        self.serial = serial
        self.id = id
        self.options = options
        self.wanted = wanted
        kind = wanted?.objectKind
        self.outlet = outlet
    }

    /// Takes what the source says, if the client wants it.
    ///
    /// - Parameter shared: what all who get the same frame share.
    func take(_ record: EventRecord, _ shared: SharedFrame) {
        guard let item = item(record) else { return }
        outlet.append(item, to: self, shared)
    }

    /// The source has taken the subscription: from here on nothing is missed.
    func begin(_ beginning: LaneBeginning) { outlet.begin(self, beginning) }

    func end(_ reason: StreamFrame.EndReason) { outlet.end(self, reason) }

    func refuse(_ problem: Problem) { outlet.refuse(self, problem) }

    /// What a record is to the client; nil where it does not want it.
    func item(_ record: EventRecord) -> LaneItem? {
        guard case .event(let event) = record.content else { return .gap(nil, record.cursor) }
        if let change = event.change {
            guard let change = described(change) else { return nil }
            return .event(record, event, change)
        }
        return wants(event) ? .event(record, event, nil) : nil
    }

    /// Whether the client gets each event of the source.
    var wantsAll: Bool { options.filter == nil && kind == nil }

    /// Whether an event passes the client's filter.
    func wants(_ event: ObservedEvent) -> Bool {
        options.filter?.holds(forOneOf: event.subjects) ?? true
    }

    /// How a change looks to whom objects beyond the filter are not there.
    private func described(_ change: ObservedChange) -> ObjectChange.Kind? {
        let isHere = change.kind != .removed && includes(change.object)
        let wasHere = (change.kind == .removed ? change.object : change.previous).map(includes) ?? false
        return switch (wasHere, isHere) {
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

/// A frame that is the same for all who observe a source without options, made by the first of them.
final class SharedFrame: Sendable {
    private let frame = Mutex<WebSocketFrame?>(nil)

    func get(_ make: () -> WebSocketFrame) -> WebSocketFrame {
        frame.withLock { frame in
            if let frame { return frame }
            let made = make()
            frame = made
            return made
        }
    }
}
