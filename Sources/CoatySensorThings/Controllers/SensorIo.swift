public import Coaty
import Synchronization

/// The hardware of a sensor.
///
/// Reading and writing run outside of the ``ControllerActor``, so they may take their time.
public protocol SensorIo: Sendable {
    /// Creates access to the hardware.
    ///
    /// - Parameter parameters: what a ``SensorDefinition`` says: the number of a pin, say.
    init(parameters: AnyCodable?)

    /// Reads the value.
    ///
    /// - Throws: what the hardware has to report; then nothing is published.
    func read() async throws -> AnyCodable

    /// Writes a value.
    ///
    /// - Throws: what the hardware has to report.
    func write(value: AnyCodable) async throws
}

/// A sensor without hardware: reads what was written last, 0 at first.
public final class MockSensorIo: SensorIo {
    private let value = Mutex<AnyCodable>(0)

    /// Creates a sensor that reads 0. It has no parameters.
    public init(parameters: AnyCodable? = nil) {}

    /// Reads the value that was written last.
    public func read() -> AnyCodable { value.withLock(\.self) }

    /// Writes the value that is to be read.
    public func write(value: AnyCodable) { self.value.withLock { $0 = value } }
}
