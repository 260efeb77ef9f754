/// The common base of IO sources and IO actors.
///
/// Its properties are those of ``IoPointContent``.
open class IoPoint: ContentObject<IoPointContent> {
    init(
        coreType: CoreType,
        valueType: String,
        useRawIoValues: Bool?,
        updateRate: Int?,
        externalRoute: String?,
        name: String,
        objectType: String,
        objectId: CoatyUUID
    ) {
        let content = IoPointContent(
            valueType: valueType,
            useRawIoValues: useRawIoValues,
            updateRate: updateRate.map(Double.init),
            externalRoute: externalRoute
        )
        super.init(content, coreType: coreType, objectType: objectType, objectId: objectId, name: name)
    }

    override class var wireExceptions: [PropertyRule] {
        super.wireExceptions + [
            .required("valueType", .nonEmptyString),
            .optional("updateRate", .nonNegativeNumber),
        ]
    }

    /// Decodes the properties that sources and actors have in common. A fractional rate is rounded up.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
        content.updateRate = updateRate.map(Double.init)
    }

    /// The update rate as an interval in whole milliseconds, rounded up: the shortest interval between produced values,
    /// or the wanted interval.
    public var updateRate: Int? {
        get { content.updateRate.flatMap { Int(exactly: $0.rounded(.up)) } }
        set { content.updateRate = newValue.map(Double.init) }
    }
}

/// The properties of an ``IoPoint``.
public struct IoPointContent: Codable, Sendable, Hashable {
    /// The type of the values, such as `com.example.Temperature[Celsius]`; not empty. Only equal types are associated.
    public var valueType: String
    /// Whether values are raw bytes; absent means JSON.
    public var useRawIoValues: Bool?
    /// The update rate as an interval in milliseconds: the shortest interval between produced values, or the wanted
    /// interval.
    public var updateRate: Double?
    /// A topic outside Coaty that the values are sent on.
    public var externalRoute: String?
}

/// A producer of IO values.
open class IoSource: IoPoint {
    /// `coaty.IoSource`
    open override class var objectType: String { CoreType.IoSource.objectType }

    /// The strategy for values that are produced faster than the update rate.
    public var updateStrategy: IoSourceBackpressureStrategy?

    /// Creates an IO source.
    public init(
        valueType: String,
        updateStrategy: IoSourceBackpressureStrategy? = nil,
        useRawIoValues: Bool? = nil,
        updateRate: Int? = nil,
        externalRoute: String? = nil,
        name: String,
        objectType: String = CoreType.IoSource.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.updateStrategy = updateStrategy
        super.init(
            coreType: .IoSource,
            valueType: valueType,
            useRawIoValues: useRawIoValues,
            updateRate: updateRate,
            externalRoute: externalRoute,
            name: name,
            objectType: objectType,
            objectId: objectId
        )
    }

    private enum Keys: String, CodingKey {
        case updateStrategy
    }

    /// Decodes an IO source.
    public required init(from decoder: any Decoder) throws {
        updateStrategy = try decoder.container(keyedBy: Keys.self)
            .decodeIfPresent(IoSourceBackpressureStrategy.self, forKey: .updateStrategy)
        try super.init(from: decoder)
    }

    /// Encodes the IO source.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(updateStrategy, forKey: .updateStrategy)
    }
}

/// The strategies of an IO source for values that are produced faster than its update rate. Cases as in the developer
/// guide.
public enum IoSourceBackpressureStrategy: Int, Codable, Sendable, CaseIterable {
    case Default, None, Sample, Throttle
}

/// A consumer of IO values.
open class IoActor: IoPoint {
    /// `coaty.IoActor`
    open override class var objectType: String { CoreType.IoActor.objectType }

    /// Creates an IO actor.
    public init(
        valueType: String,
        useRawIoValues: Bool? = nil,
        updateRate: Int? = nil,
        externalRoute: String? = nil,
        name: String,
        objectType: String = CoreType.IoActor.objectType,
        objectId: CoatyUUID = .init()
    ) {
        super.init(
            coreType: .IoActor,
            valueType: valueType,
            useRawIoValues: useRawIoValues,
            updateRate: updateRate,
            externalRoute: externalRoute,
            name: name,
            objectType: objectType,
            objectId: objectId
        )
    }

    /// Decodes an IO actor.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

extension IoSourceBackpressureStrategy: WireValue {}
