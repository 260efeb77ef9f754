import Base
import Coaty

/// Delivery options of a subscription.
package struct SubscriptionOptions: Sendable {
    /// Policy for events that do not fit into the queue of a slow client.
    package enum Overflow: String, Sendable, CaseIterable {
        /// Drops the oldest events.
        case dropOldest
        /// Keeps only the newest event of each object.
        case latest
        /// Ends the subscription.
        case close
    }

    static let defaultBuffer = 256
    /// Maximum value of the `throttle` parameter, in milliseconds.
    static let maximumThrottle = 3_600_000

    /// Parameter names of all options.
    package static let parameters: Set = [
        "filter", "fields", "throttle", "buffer", "overflow", "since", "latest", "encoding",
    ]

    /// Condition on the objects of an event; nil for all events.
    var filter: ClientCondition?
    /// Object properties to deliver; nil for all.
    var fields: FieldTree?
    /// Delivers at most one event of an object in an interval; nil to deliver every event.
    var throttle: Throttle?
    /// Maximum number of events queued while the client is slow.
    var buffer = Self.defaultBuffer
    var overflow = Overflow.dropOldest
    /// Cursor after which to resume; nil to start now.
    var since: ClientCursor?
    /// Whether to begin with the last event of each object or IO source.
    var latest = false
    package var encoding = EventText.Encoding.base64

    /// The memory of the options, in bytes.
    package var footprint: Int { (filter?.condition.footprint ?? 0) + (fields?.footprint ?? 0) }

    init() {}

    /// Reads the options of a subscription.
    ///
    /// - Throws: an error that names the invalid parameter.
    package init(_ parameters: some ClientParameters, of observation: Observation) throws {
        if let filter = try parameters.condition("filter") {
            guard observation.carriesJSON else { throw parameters.invalid("filter", "does not apply to octets") }
            self.filter = filter
        }
        if let properties = try parameters.properties("fields") {
            guard observation.carriesJSON else { throw parameters.invalid("fields", "does not apply to octets") }
            let maximum = parameters.limits.fields
            guard (1...maximum).contains(properties.count),
                properties.allSatisfy({ !$0.names.contains("") && 1...FieldTree.maximumDepth ~= $0.names.count })
            else {
                throw parameters.invalid(
                    "fields",
                    "must be 1 to \(maximum) properties, nested no deeper than \(FieldTree.maximumDepth)"
                )
            }
            fields = FieldTree(properties)
        }
        if let milliseconds = try parameters.milliseconds("throttle", in: 1...Self.maximumThrottle) {
            guard observation.hasValues else {
                throw parameters.invalid("throttle", "does not apply to events that nothing replaces")
            }
            throttle = Throttle(
                interval: .milliseconds(milliseconds),
                maximumObjects: parameters.limits.throttledObjects,
                maximumBytes: parameters.limits.queuedBytes
            )
        }
        let maximumBuffer = parameters.limits.buffer
        buffer = try parameters.integer("buffer", in: 1...maximumBuffer) ?? min(Self.defaultBuffer, maximumBuffer)
        overflow = try parameters.choice("overflow") ?? .dropOldest
        if let text = try parameters.text("since") {
            guard observation.isResumable else { throw parameters.invalid("since", "does not apply to a state") }
            guard let cursor = ClientCursor(text) else { throw parameters.invalid("since", "must be a cursor") }
            since = cursor
        }
        latest = try parameters.boolean("latest") ?? false
        guard !latest || observation.keepsLatest else {
            throw parameters.invalid("latest", "applies only to channel and iovalue")
        }
        encoding = try parameters.choice("encoding") ?? .base64
    }
}
