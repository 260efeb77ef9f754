import HTTPServer
import TestSupport
import Testing

@testable import Access
@testable import Feeds
@testable import Measurement

/// The text format of Prometheus, version 0.0.4.
@Suite(.exclusive) struct MetricsTextTests {
    private func lines(_ write: (inout MetricsText) -> Void) -> [Substring] {
        var text = MetricsText()
        write(&text)
        return String(decoding: text.bytes, as: UTF8.self).split(separator: "\n")
    }

    @Test func familiesHaveHelpAndType() {
        let counter = lines { $0.counter("things_total", "Things.", 3) }
        #expect(
            counter == [
                "# HELP coaty_gateway_things_total Things.", "# TYPE coaty_gateway_things_total counter",
                "coaty_gateway_things_total 3",
            ]
        )
        #expect(lines { $0.gauge("process_threads", "Threads.", [([], 0.5)]) }.last == "process_threads 0.5")
        #expect(lines { $0.gauge("none", "None.", []) }.count == 2)
    }

    @Test func labelsAreEscaped() {
        let line = lines { $0.gauge("g", "G.", [([("a", "x\"y\\z\n"), ("b", "ü")], 1)]) }.last
        #expect(line == #"coaty_gateway_g{a="x\"y\\z\n",b="ü"} 1"#)
    }

    @Test func bucketsAreCumulative() {
        let durations = DurationHistogram()
        for milliseconds in [0, 1, 2, 20, 20_000] { durations.record(nanoseconds: milliseconds * 1_000_000) }
        let found = lines { $0.histogram("h_seconds", "H.", [([("r", "x")], durations.snapshot)]) }
        let name = "coaty_gateway_h_seconds"
        #expect(found.count == 2 + 14 + 2)
        #expect(found.contains { $0 == #"\#(name)_bucket{r="x",le="0.001"} 2"# })
        #expect(found.contains { $0 == #"\#(name)_bucket{r="x",le="0.0025"} 3"# })
        #expect(found.contains { $0 == #"\#(name)_bucket{r="x",le="10"} 4"# })
        #expect(found.contains { $0 == #"\#(name)_bucket{r="x",le="+Inf"} 5"# })
        #expect(found.suffix(2) == [#"\#(name)_sum{r="x"} 20.023"#, #"\#(name)_count{r="x"} 5"#])
    }

    @Test func operationsAreCountedByKindAndOutcome() {
        let counts = OperationCounts()
        for (verb, pattern) in zip(Verb.allCases, AccessPattern.allCases) {
            counts.count(OperationKind(verb: verb, pattern: pattern), .done)
        }
        counts.count(OperationKind(verb: .administer, pattern: .clients), .limited)
        let all = counts.all.map { "\($0.kind.verb) \($0.kind.pattern) \($0.outcome) \($0.count)" }
        #expect(
            all == zip(Verb.allCases, AccessPattern.allCases).map { "\($0) \($1) done 1" }
                + ["administer clients limited 1"]
        )
    }
}
