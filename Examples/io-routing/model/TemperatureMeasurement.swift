/// Definitions that the agents and the router of the temperature scenario share.
public enum TemperatureMeasurement {
    /// The namespace. `gateway.yaml` must have the same.
    public static let namespace = "com.iorouting"
    /// The name of the IO context. `gateway.yaml` must have the same.
    public static let ioContextName = "TemperatureMeasurement"
    /// The type of the values: numbers, in degrees Celsius.
    public static let valueType = "coaty.test.Temperature[Celsius]"
    /// The time between two values of a source in milliseconds, for strategies that use it.
    public static let updateRate = 5000
}
