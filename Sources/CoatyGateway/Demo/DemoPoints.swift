import Coaty

/// The IO sources and actors of the demo.
struct DemoPoints {
    /// Interval of published temperatures, in milliseconds.
    static let temperatureInterval = 1000
    /// Interval of published humidities, in milliseconds.
    static let humidityInterval = 2000

    let temperature = Self.source("Demo temperature source", DemoContext.temperature, temperatureInterval)
    let humidity = Self.source("Demo humidity source", DemoContext.humidity, humidityInterval)
    let dayDisplay = Self.actor("Demo day display", DemoContext.temperature, operatingState: "day")
    let nightDisplay = Self.actor("Demo night display", DemoContext.temperature, operatingState: "night")
    let humidityDisplay = Self.actor("Demo humidity display", DemoContext.humidity)

    /// The agent's contribution to the demo's context.
    var node: IoNodeDefinition {
        IoNodeDefinition(ioSources: [temperature, humidity], ioActors: [dayDisplay, nightDisplay, humidityDisplay])
    }

    private static func source(_ name: String, _ valueType: String, _ interval: Int) -> IoSource {
        IoSource(valueType: valueType, updateStrategy: .None, updateRate: interval, name: name)
    }

    /// - Parameter operatingState: the state of the context in which the actor gets values, for the rule that tests it.
    private static func actor(_ name: String, _ valueType: String, operatingState: String? = nil) -> IoActor {
        let actor = IoActor(valueType: valueType, name: name)
        if let operatingState { actor.custom["operatingState"] = .string(operatingState) }
        return actor
    }
}
