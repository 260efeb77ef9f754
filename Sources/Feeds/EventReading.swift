import Access
import Base
import Coaty
import Network

/// The evaluation of one event for subscriptions, which shares work between them.
///
/// A reading lives as long as a record is being delivered, in the turn of one job.
struct EventReading: Sendable {
    /// The result of a subscription's filter and kind.
    enum Verdict: Sendable {
        case doesNotMatch
        case matches
        /// A change in the object registry, and whether the object matched before and matches after it.
        case change(before: Bool, after: Bool)
        /// The filter takes too many steps for this event.
        case tooExpensive
    }

    /// The part of the event that a view sees.
    private enum Visible {
        case nothing
        case whole
        /// The visible part of the event.
        case part(ObservedEvent)
        case change(ObservedChange.Visibility)
    }

    /// Selects the text of an event.
    private struct Projection: Hashable {
        /// The event, its form for clients that no longer see the object, or the part that some permissions allow.
        let variant: Variant
        let fields: FieldTree?
        let encoding: EventText.Encoding
    }

    private enum Variant: Hashable {
        case whole, departure
        case part(permissions: UInt64)
    }

    /// Maximum bytes of texts with selected fields that are kept for other subscriptions. They are not charged to a
    /// client.
    private static let maximumKeptBytes = 1 << 20
    /// Number of objects of an event whose values are kept for other filters.
    private static let maximumCaches = 4

    let record: EventRecord
    let event: ObservedEvent
    /// The objects that filters test.
    private let subjects: [JSONView]
    /// The values of the first subjects that filters have read.
    private var caches: [ValueCache]
    /// The visible parts, by the serial numbers of the views' permissions.
    private var visible: [UInt64: Visible] = [:]
    /// The text for most subscriptions.
    private var plain: EventBody?
    private var bodies: [Projection: EventBody] = [:]
    private var keptBytes = 0
    /// The steps since the last ``takeSteps()``.
    private var steps = 0
    /// The steps for texts that other clients also receive, since the last ``takeSharedSteps()``.
    private var sharedSteps = 0

    init(_ record: EventRecord, _ event: ObservedEvent) {
        self.record = record
        self.event = event
        if let change = event.change {
            subjects = [change.object.view] + (change.previous.map { [$0.view] } ?? [])
        } else {
            subjects = event.subjects
        }
        caches = Array(repeating: ValueCache(), count: min(subjects.count, Self.maximumCaches))
    }

    /// The objects of which at least one must match a filter for the event to be selected. Nil if the event may match
    /// although none of them does.
    var indexedObjects: [JSONView]? {
        // A view may see only a part of a Deadvertise event, and the filter then tests that part.
        if case .deadvertise = event.access { return nil }
        return subjects
    }

    /// Returns the number of steps since the last call.
    mutating func takeSteps() -> Int {
        defer { steps = 0 }
        return steps
    }

    /// Returns the number of steps since the last call for texts that other subscriptions also receive.
    mutating func takeSharedSteps() -> Int {
        defer { sharedSteps = 0 }
        return sharedSteps
    }

    /// Evaluates a filter and a kind of objects.
    mutating func verdict(_ filter: ClientCondition?, _ kind: ObjectKind?) -> Verdict {
        guard let change = event.change else {
            guard let filter else { return .matches }
            let holds = evaluate(filter) { (reading, budget) throws(WorkExceeded) in
                for index in reading.subjects.indices where try reading.holds(filter, index, &budget) { return true }
                return false
            }
            return holds.map { $0 ? .matches : .doesNotMatch } ?? .tooExpensive
        }
        // The subjects are the object, and its previous version if there is one.
        let (isRemoved, hasPrevious) = (change.kind == .removed, change.previous != nil)
        let before = isRemoved ? includes(change.object, 0, filter, kind) : false
        let previous = change.previous.map { includes($0, 1, filter, kind) } ?? false
        let after = isRemoved ? false : includes(change.object, 0, filter, kind)
        guard let before, let previous, let after else { return .tooExpensive }
        return .change(before: isRemoved ? before : hasPrevious && previous, after: after)
    }

    /// Returns whether a filter and a kind include a version of an object; nil if that takes too many steps.
    private mutating func includes(
        _ object: (object: AliveObject, view: JSONView),
        _ subject: Int,
        _ filter: ClientCondition?,
        _ kind: ObjectKind?
    ) -> Bool? {
        guard kind?.includes(object.object) ?? true else { return false }
        guard let filter else { return true }
        return evaluate(filter) { (reading, budget) throws(WorkExceeded) in
            try reading.holds(filter, subject, &budget)
        }
    }

    private mutating func holds(
        _ filter: ClientCondition,
        _ subject: Int,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        guard subject < caches.count else { return try filter.condition.holds(for: subjects[subject], &budget) }
        return try filter.condition.holds(for: subjects[subject], &caches[subject], &budget)
    }

    /// Returns whether a filter holds; nil if that takes too many steps.
    private mutating func evaluate(
        _ filter: ClientCondition,
        _ body: (inout EventReading, inout WorkBudget) throws(WorkExceeded) -> Bool
    ) -> Bool? {
        let (holds, taken) = filter.evaluate { (budget) throws(WorkExceeded) in try body(&self, &budget) }
        steps += taken
        return holds
    }

    /// Returns whether no subscription with this verdict receives the event. A view may see only a part of a
    /// Deadvertise event, and the filter then tests that part.
    func isNothing(_ verdict: Verdict) -> Bool {
        switch verdict {
        case .doesNotMatch: if case .deadvertise = event.access { false } else { true }
        case .change(before: false, after: false): true
        case .matches, .change, .tooExpensive: false
        }
    }

    /// Returns the item for a subscription; nil if it receives nothing.
    ///
    /// - Parameters:
    ///   - verdict: the verdict on the subscription's filter and kind.
    ///   - view: the part of the events that the client may see; nil for all of them.
    mutating func item(_ verdict: Verdict, _ options: SubscriptionOptions, _ view: AccessView?) -> QueuedItem? {
        guard let view else { return item(verdict, options, event, .whole) }
        switch visible(to: view) {
        case .nothing: return nil
        case .whole: return item(verdict, options, event, .whole)
        case .part(let part):
            // Few events are partly visible, so nothing is cached for them.
            var reading = EventReading(record, part)
            let verdict = reading.verdict(options.filter, nil)
            steps += reading.takeSteps() + reading.takeSharedSteps()
            return item(verdict, options, part, .part(permissions: view.permissions.serial))
        case .change(let visibility): return item(verdict, options, visibility)
        }
    }

    private mutating func item(
        _ verdict: Verdict,
        _ options: SubscriptionOptions,
        _ event: ObservedEvent,
        _ variant: Variant
    ) -> QueuedItem? {
        switch verdict {
        case .doesNotMatch: return nil
        case .tooExpensive: return .leftOut(record.cursor)
        case .matches: return .event(queued(event, variant, nil, options))
        case .change(let before, let after):
            return Self.kind(before, after).map { .event(queued(event, variant, $0, options)) }
        }
    }

    /// Returns the item for a view that may not see all versions of an object.
    private mutating func item(
        _ verdict: Verdict,
        _ options: SubscriptionOptions,
        _ visibility: ObservedChange.Visibility
    ) -> QueuedItem? {
        guard case .change(let before, let after) = verdict else {
            return visibility.before || visibility.after ? .leftOut(record.cursor) : nil
        }
        guard let kind = Self.kind(before && visibility.before, after && visibility.after), let change = event.change
        else { return nil }
        guard kind == .removed, change.kind != .removed, !visibility.after else {
            return .event(queued(event, .whole, kind, options))
        }
        // The client must not see the new version, not even as the last version of a removed object.
        return change.departure(from: event).map { .event(queued($0, .departure, kind, options)) }
    }

    /// Translates a change into what a filtered view sees: an object that starts to match is added, one that stops is
    /// removed.
    ///
    /// - Returns: nil if the object matched neither before nor after the change.
    private static func kind(_ before: Bool, _ after: Bool) -> ObjectChange.Kind? {
        switch (before, after) {
        case (false, true): .added
        case (true, true): .changed
        case (true, false): .removed
        case (false, false): nil
        }
    }

    private mutating func visible(to view: AccessView) -> Visible {
        let key = view.permissions.serial
        if let known = visible[key] { return known }
        let judged: Visible
        if let change = event.change {
            judged = .change(change.visibility(to: view))
        } else {
            judged =
                switch event.visibility(to: view) {
                case .nothing: .nothing
                case .everything: .whole
                case .part(let part): .part(part)
                }
        }
        visible[key] = judged
        return judged
    }

    private mutating func queued(
        _ event: ObservedEvent,
        _ variant: Variant,
        _ change: ObjectChange.Kind?,
        _ options: SubscriptionOptions
    ) -> QueuedEvent {
        QueuedEvent(
            cursor: record.cursor,
            change: change,
            key: event.key,
            request: event.request,
            body: body(of: event, variant, options)
        )
    }

    private mutating func body(
        of event: ObservedEvent,
        _ variant: Variant,
        _ options: SubscriptionOptions
    ) -> EventBody {
        let text = EventText(event: event, fields: options.fields, encoding: options.encoding)
        if variant == .whole, options.fields == nil, options.encoding == .base64 {
            if let plain { return plain }
            let body = text.body()
            plain = body
            return body
        }
        let projection = Projection(variant: variant, fields: options.fields, encoding: options.encoding)
        if let known = bodies[projection] { return known }
        let body = text.body()
        let taken = WorkRate.steps(toPass: event.data.length)
        if keptBytes + body.count <= Self.maximumKeptBytes {
            keptBytes += body.count
            bodies[projection] = body
            sharedSteps += taken
        } else {
            steps += taken
        }
        return body
    }
}
