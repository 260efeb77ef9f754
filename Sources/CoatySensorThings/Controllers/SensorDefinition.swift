public import Coaty

/// The way in which the observations of a sensor are published automatically.
public enum ObservationPublicationType: String, Sendable {
    /// They are published only on demand.
    case none
    /// They are advertised, one per sampling interval.
    case advertise
    /// They are delivered through the sensor's channel, one per sampling interval.
    case channel
}

/// A sensor in the options of a ``SensorSourceController``: `sensors` is an array of these.
public struct SensorDefinition {
    /// The parameters for creating the ``SensorIo``.
    public let parameters: AnyCodable?
    /// The sensor.
    public let sensor: Sensor
    /// The class that reads the hardware.
    public let io: any SensorIo.Type
    /// The sampling interval of the sensor, in milliseconds.
    public let samplingInterval: Int?
    /// The way in which observations are published automatically. Unless it is `none`, the sampling interval must be
    /// above 0.
    public let observationPublicationType: ObservationPublicationType

    /// Creates a definition.
    public init(
        parameters: AnyCodable? = nil,
        sensor: Sensor,
        io: any SensorIo.Type,
        samplingInterval: Int? = nil,
        observationPublicationType: ObservationPublicationType
    ) {
        self.parameters = parameters
        self.sensor = sensor
        self.io = io
        self.samplingInterval = samplingInterval
        self.observationPublicationType = observationPublicationType
    }
}

/// A registered sensor and its hardware.
public struct SensorContainer {
    /// The sensor.
    public let sensor: Sensor
    /// Its hardware.
    public let io: any SensorIo
}

/// The reason why a ``SensorSourceController`` refuses an operation.
public enum SensorSourceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// No sensor with this id is registered.
    case notRegistered(CoatyUUID)
    /// A sensor that publishes automatically needs a sampling interval above 0.
    case invalidSamplingInterval(Int?)

    /// The error as text.
    public var description: String {
        switch self {
        case .notRegistered(let id): "no sensor \(id) is registered"
        case .invalidSamplingInterval(let interval):
            "\(interval.map(String.init) ?? "none") is no sampling interval: it must be above 0 ms"
        }
    }
}
