public import Coaty
import Synchronization

/// The hardware of a sensor.
///
/// Reading and writing run outside the `ControllerActor`, so they may take long.
public protocol SensorIo: Sendable {
    /// Creates access to the hardware.
    ///
    /// - Parameter parameters: the parameters of the ``SensorDefinition``, for example the number of a pin.
    init(parameters: AnyCodable?)

    /// Reads the value.
    ///
    /// - Throws: errors of the hardware; then nothing is published.
    func read() async throws -> AnyCodable

    /// Writes a value.
    ///
    /// - Throws: errors of the hardware.
    func write(value: AnyCodable) async throws
}

/// A sensor without hardware. It reads the last written value, initially 0.
public final class MockSensorIo: SensorIo {
    private let value = Mutex<AnyCodable>(0)

    /// Creates a sensor that reads 0. It has no parameters.
    public init(parameters: AnyCodable? = nil) {}

    /// Returns the last written value.
    public func read() -> AnyCodable { value.withLock(\.self) }

    /// Writes the value to be read.
    public func write(value: AnyCodable) { self.value.withLock { $0 = value } }
}
