public import Coaty

/// Whether the observations of a sensor are published by themselves, and how.
public enum ObservationPublicationType: String, Sendable {
    /// They are published on demand only.
    case none
    /// They are advertised, one in each sampling interval.
    case advertise
    /// They are delivered through the sensor's channel, one in each sampling interval.
    case channel
}

/// A sensor in the options of a ``SensorSourceController``: `sensors` is an array of these.
public struct SensorDefinition {
    /// What the ``SensorIo`` is created with.
    public let parameters: AnyCodable?
    /// The sensor.
    public let sensor: Sensor
    /// The class that reads the hardware.
    public let io: any SensorIo.Type
    /// How often the sensor is read, in milliseconds.
    public let samplingInterval: Int?
    /// Whether observations are published by themselves. If so, there must be a sampling interval above 0.
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

/// Why a ``SensorSourceController`` refuses.
public enum SensorSourceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// No sensor of this id is registered.
    case notRegistered(CoatyUUID)
    /// A sensor that publishes by itself needs a sampling interval above 0.
    case invalidSamplingInterval(Int?)

    /// The error in words.
    public var description: String {
        switch self {
        case .notRegistered(let id): "no sensor \(id) is registered"
        case .invalidSamplingInterval(let interval):
            "\(interval.map(String.init) ?? "none") is no sampling interval: it must be above 0 ms"
        }
    }
}
