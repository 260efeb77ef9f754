import Foundation
import Testing

/// The environment variables that `Tests/Brokers/run` sets.
enum Bench {
    private static let environment = ProcessInfo.processInfo.environment

    /// Whether the tests were started by `Tests/Brokers/run`.
    static let isAvailable = environment["COATY_BROKERS"] != nil

    /// Returns the path of a program of `Tests/Brokers`.
    static func program(_ name: String) throws -> String {
        try #require(environment["COATY_BROKERS"], "set COATY_BROKERS to the folder Tests/Brokers") + "/" + name
    }

    /// Returns the path of a file created by `make-certificates`.
    static func certificate(_ name: String) throws -> String {
        try #require(environment["COATY_BROKERS_CERTIFICATES"], "set COATY_BROKERS_CERTIFICATES") + "/" + name
    }

    /// The file to write the report to; nil for no report.
    static let reportFile = environment["COATY_BROKERS_REPORT"]

    /// Returns the MQTT port of a RabbitMQ node.
    ///
    /// - Parameter node: 1, 2 or 3.
    static func port(ofNode node: Int) throws -> UInt16 {
        try #require(UInt16(word(node, of: "RABBITMQ_PORTS")))
    }

    /// Returns the process id of a RabbitMQ node.
    ///
    /// - Parameter node: 1, 2 or 3.
    static func pid(ofNode node: Int) throws -> pid_t {
        try #require(pid_t(word(node, of: "RABBITMQ_PIDS")))
    }

    private static func word(_ number: Int, of variable: String) throws -> String {
        let words = try #require(environment[variable], "set \(variable)").split(separator: " ")
        try #require(words.indices.contains(number - 1), "\(variable) needs a word for each node")
        return String(words[number - 1])
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips tests that were not started by `Tests/Brokers/run`.
    static var needsBrokers: Self { .enabled(if: Bench.isAvailable, "needs make test-brokers") }
}
