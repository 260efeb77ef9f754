/// What the agents and the router of the temperature scenario agree on.
public enum TemperatureMeasurement {
    /// The namespace; the gateway has it in `gateway.yaml`.
    public static let namespace = "com.iorouting"
    /// The name of the IO context; likewise.
    public static let ioContextName = "TemperatureMeasurement"
    /// What flows: a number, degrees Celsius.
    public static let valueType = "coaty.test.Temperature[Celsius]"
    /// Milliseconds between two values of a source, where its strategy heeds that.
    public static let updateRate = 5000
}
