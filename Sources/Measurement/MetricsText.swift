/// Writes metrics in the text format of Prometheus, version 0.0.4.
///
/// A family is written once with all its samples, even if there are none yet. Names get the prefix `coaty_gateway_`,
/// unless they begin with `process_`.
package struct MetricsText {
    /// Names and values of labels. No value contains text from clients.
    package typealias Labels = [(name: String, value: String)]
    package typealias Sample = (labels: Labels, value: Double)

    package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    package private(set) var bytes: [UInt8] = []

    /// Adds a count that only increases. Its name ends in `_total`.
    package mutating func counter(_ name: String, _ help: String, _ samples: [Sample]) {
        write(name, "counter", help, samples)
    }

    /// Adds a value that increases and decreases.
    package mutating func gauge(_ name: String, _ help: String, _ samples: [Sample]) {
        write(name, "gauge", help, samples)
    }

    package mutating func counter(_ name: String, _ help: String, _ value: Int) {
        counter(name, help, [([], Double(value))])
    }

    package mutating func gauge(_ name: String, _ help: String, _ value: Int) {
        gauge(name, help, [([], Double(value))])
    }

    /// Adds durations in seconds. The name ends in `_seconds`.
    package mutating func histogram(
        _ name: String,
        _ help: String,
        _ samples: [(labels: Labels, durations: DurationHistogram.Snapshot)]
    ) {
        let name = head(name, "histogram", help)
        for (labels, durations) in samples {
            var count = 0
            for (index, next) in durations.counts.enumerated() {
                count += next
                let bounds = DurationHistogram.bounds
                let bound = index < bounds.count ? Self.text(Double(bounds[index]) / 1_000_000) : "+Inf"
                line(name + "_bucket", labels + [("le", bound)], Double(count))
            }
            line(name + "_sum", labels, durations.sum / .seconds(1))
            line(name + "_count", labels, Double(count))
        }
    }

    private mutating func write(_ name: String, _ type: String, _ help: String, _ samples: [Sample]) {
        let name = head(name, type, help)
        for sample in samples { line(name, sample.labels, sample.value) }
    }

    private mutating func head(_ name: String, _ type: String, _ help: String) -> String {
        let name = name.hasPrefix("process_") ? name : "coaty_gateway_" + name
        bytes += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n".utf8
        return name
    }

    private mutating func line(_ name: String, _ labels: Labels, _ value: Double) {
        bytes += name.utf8
        if !labels.isEmpty {
            let texts = labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
            bytes += "{\(texts.joined(separator: ","))}".utf8
        }
        bytes += " \(Self.text(value))\n".utf8
    }

    private static func text(_ value: Double) -> String { Int(exactly: value).map(String.init) ?? "\(value)" }

    private static func escaped(_ value: String) -> String {
        guard value.contains(where: { $0 == "\\" || $0 == "\"" || $0 == "\n" }) else { return value }
        return value.reduce(into: "") { text, character in
            switch character {
            case "\\", "\"": text += "\\\(character)"
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
    }
}
