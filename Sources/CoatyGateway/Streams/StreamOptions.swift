import Coaty

/// How a client wants what it observes.
struct StreamOptions: Sendable {
    /// What happens where events wait for a reader that is behind, and there are as many as its buffer holds.
    enum Overflow: String, Sendable, CaseIterable {
        /// The oldest goes.
        case dropOldest
        /// Of each object the newest stays.
        case latest
        /// The subscription ends.
        case close
    }

    /// The most events that may wait for a reader that is behind.
    static let maximumBuffer = 4096
    static let defaultBuffer = 256
    /// The longest interval of throttling, in milliseconds.
    static let maximumThrottle = 3_600_000

    /// The names of all options.
    static let parameters: Set = ["filter", "fields", "throttle", "buffer", "overflow", "since", "encoding"]

    /// Only events about which this holds; nil for all.
    var filter: ObjectFilterCondition?
    /// The properties of objects that are wanted; nil for all.
    var fields: FieldTree?
    /// At most one event of an object in this time; nil for each.
    var throttle: Duration?
    var buffer = Self.defaultBuffer
    var overflow = Overflow.dropOldest
    /// Where to resume; nil begins now.
    var since: StreamCursor?
    var encoding = EventText.Encoding.base64

    init() {}

    /// Reads the options of a subscription.
    ///
    /// - Throws: what says which parameter can't be used.
    init(_ parameters: some ClientParameters, of request: StreamRequest) throws {
        if let filter = try parameters.condition("filter") {
            guard request.carriesJSON else { throw parameters.invalid("filter", "does not apply to octets") }
            self.filter = filter
        }
        if let properties = try parameters.properties("fields") {
            guard request.carriesJSON else { throw parameters.invalid("fields", "does not apply to octets") }
            guard (1...FieldTree.maximumFields).contains(properties.count),
                properties.allSatisfy({ !$0.names.contains("") && 1...FieldTree.maximumDepth ~= $0.names.count })
            else {
                throw parameters.invalid(
                    "fields",
                    "must be 1 to \(FieldTree.maximumFields) properties, nested no deeper than \(FieldTree.maximumDepth)"
                )
            }
            fields = FieldTree(properties)
        }
        if let milliseconds = try parameters.integer("throttle", in: 1...Self.maximumThrottle) {
            guard request.hasValues else {
                throw parameters.invalid("throttle", "does not apply to events that nothing replaces")
            }
            throttle = .milliseconds(milliseconds)
        }
        buffer = try parameters.integer("buffer", in: 1...Self.maximumBuffer) ?? Self.defaultBuffer
        overflow = try parameters.choice("overflow") ?? .dropOldest
        if let text = try parameters.text("since") {
            guard request.isResumable else { throw parameters.invalid("since", "does not apply to a state") }
            guard let cursor = StreamCursor(text) else { throw parameters.invalid("since", "must be a cursor") }
            since = cursor
        }
        encoding = try parameters.choice("encoding") ?? .base64
    }
}
