import Testing

/// A communication pattern between two agents, checked with names that contain dots.
struct Pattern: Sendable {
    /// The name of the pattern, for the list of test cases.
    let name: String
    /// Checks the pattern between agents on the two ends of a route.
    let check: @Sendable (Route) async throws -> Void

    /// All patterns.
    static let all = oneWay + twoWay + raw + ioRouting
}

/// Names of every kind, all of which contain dots.
enum Dotted {
    static let objectType = "com.example.plant.Job"
    static let channel = "com.example.news.today"
    static let operation = "com.example.light.setColor"
    static let context = "plant.north.Temperature"
    static let rawTopic = "plant.a/line.1/temperature"
    static let externalRoute = "plant.b/line.2/temperature"
    static let namespace = "com.example.plant"
}
