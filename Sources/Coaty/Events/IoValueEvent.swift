/// A value that an IO source sends to IO actors.
public struct IoValueEvent: Sendable {
    /// The value as sent: JSON, or any bytes if the points use raw values.
    public let bytes: [UInt8]
    /// Whether the bytes are raw.
    public let isRaw: Bool
    /// The source; nil if the value was received on an external route.
    public let ioSourceId: CoatyUUID?

    /// The value of a JSON text; nil for raw bytes.
    public var value: AnyCodable? {
        guard !isRaw, let document = try? JSONDocument(bytes) else { return nil }
        return AnyCodable(document.root)
    }

    /// Creates an event with a JSON value.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses raw values; `EncodingError`.
    public static func with(ioSource: IoSource, value: AnyCodable) throws -> IoValueEvent {
        guard ioSource.useRawIoValues != true else { throw CommunicationError.incompatibleIoValue }
        return IoValueEvent(
            bytes: try PayloadCoder.encodeBytes(value),
            isRaw: false,
            ioSourceId: ioSource.objectId
        )
    }

    /// Creates an event with raw bytes.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses JSON values.
    public static func with(ioSource: IoSource, value: [UInt8]) throws(CommunicationError) -> IoValueEvent {
        guard ioSource.useRawIoValues == true else { throw .incompatibleIoValue }
        return IoValueEvent(bytes: value, isRaw: true, ioSourceId: ioSource.objectId)
    }

    /// Creates an event with an unchanged JSON text, so that all digits are kept.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses raw values;
    ///   ``PayloadError/malformed(_:)`` if the text is not JSON.
    public static func with(ioSource: IoSource, json: [UInt8]) throws -> IoValueEvent {
        guard ioSource.useRawIoValues != true else { throw CommunicationError.incompatibleIoValue }
        return IoValueEvent(bytes: try Payload(json).bytes, isRaw: false, ioSourceId: ioSource.objectId)
    }

    init(bytes: [UInt8], isRaw: Bool, ioSourceId: CoatyUUID?) {
        self.bytes = bytes
        self.isRaw = isRaw
        self.ioSourceId = ioSourceId
    }
}

/// The current association state of an IO source or IO actor.
public struct IoStateEvent: Sendable, Hashable {
    /// Whether there is at least one association.
    public let hasAssociations: Bool
    /// The rate that is recommended to a source, in milliseconds; nil if there is none, and for actors.
    public let updateRate: Int?

    init(hasAssociations: Bool, updateRate: Int? = nil) {
        self.hasAssociations = hasAssociations
        self.updateRate = updateRate
    }
}
