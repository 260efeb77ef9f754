/// A value that an IO source sends to IO actors.
public struct IoValueEvent: Sendable {
    private enum Content: Sendable {
        case json(JSONDocument)
        case raw([UInt8])
    }

    /// The source; nil if the value was received on an external route.
    public let ioSourceId: CoatyUUID?
    private let content: Content

    /// The value as sent: JSON, or any bytes if the points use raw values.
    public var bytes: [UInt8] {
        switch content {
        case .json(let document): document.bytes
        case .raw(let bytes): bytes
        }
    }

    /// The approximate number of bytes that the event uses in memory.
    var footprint: Int {
        switch content {
        case .json(let document): document.footprint
        case .raw(let bytes): bytes.count
        }
    }

    /// Whether the bytes are raw.
    public var isRaw: Bool { json == nil }

    /// The value in its checked text; nil for raw bytes.
    private var json: JSONView? {
        if case .json(let document) = content { document.root } else { nil }
    }

    /// The value of a JSON text; nil for raw bytes.
    public var value: AnyCodable? { json.map { AnyCodable($0) } }

    /// Creates an event with a JSON value.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses raw values; `EncodingError`.
    public static func with(ioSource: IoSource, value: AnyCodable) throws -> IoValueEvent {
        guard ioSource.useRawIoValues != true else { throw CommunicationError.incompatibleIoValue }
        return IoValueEvent(.json(try JSONDocument(encoding: value)), ioSourceId: ioSource.objectId)
    }

    /// Creates an event with raw bytes.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses JSON values.
    public static func with(ioSource: IoSource, value: [UInt8]) throws(CommunicationError) -> IoValueEvent {
        guard ioSource.useRawIoValues == true else { throw .incompatibleIoValue }
        return IoValueEvent(.raw(value), ioSourceId: ioSource.objectId)
    }

    /// Creates an event with an unchanged JSON text, so that all digits are kept.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses raw values;
    ///   ``PayloadError/malformed(_:)`` if the text is not JSON.
    public static func with(ioSource: IoSource, json: [UInt8]) throws -> IoValueEvent {
        guard ioSource.useRawIoValues != true else { throw CommunicationError.incompatibleIoValue }
        return try IoValueEvent(json, isRaw: false, ioSourceId: ioSource.objectId)
    }

    private init(_ content: Content, ioSourceId: CoatyUUID?) {
        self.content = content
        self.ioSourceId = ioSourceId
    }

    /// Creates an event with bytes that are checked unless they are raw.
    ///
    /// - Throws: ``PayloadError/malformed(_:)``
    init(_ bytes: [UInt8], isRaw: Bool, ioSourceId: CoatyUUID?) throws(PayloadError) {
        self.init(isRaw ? .raw(bytes) : .json(try Payload(bytes).document), ioSourceId: ioSourceId)
    }
}
