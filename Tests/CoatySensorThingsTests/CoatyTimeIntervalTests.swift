import Coaty
import CoatySensorThings
import Foundation
import TestSupport
import Testing

@Suite(.exclusive) struct CoatyTimeIntervalTests {
    @Test(
        arguments: [
            (CoatyTimeInterval(start: 1, end: 2), #"{"end":2,"start":1}"#),
            (CoatyTimeInterval(start: 1, duration: 2), #"{"duration":2,"start":1}"#),
            (CoatyTimeInterval(duration: 1, end: 2), #"{"duration":1,"end":2}"#),
            (CoatyTimeInterval(duration: 0.5), #"{"duration":0.5}"#),
        ]
    )
    func hasFourForms(_ interval: CoatyTimeInterval, _ text: String) throws {
        #expect(try PayloadCoder.encode(interval) == text)
        #expect(try PayloadCoder.decode(CoatyTimeInterval.self, from: text) == interval)
    }

    @Test(arguments: [
        "{}", #"{"start":1}"#, #"{"end":1}"#, #"{"start":1,"end":2,"duration":1}"#, #"{"duration":-1}"#,
        #"{"start":-1,"end":2}"#, #"{"start":1,"end":-2}"#, #"{"start":"1","end":2}"#, "1", "null",
    ])
    func refusesInvalidIntervals(_ text: String) {
        #expect(throws: DecodingError.self) { try PayloadCoder.decode(CoatyTimeInterval.self, from: text) }
    }

    @Test(arguments: [
        CoatyTimeInterval(duration: -1), CoatyTimeInterval(start: -1, end: 2), CoatyTimeInterval(duration: .nan),
        CoatyTimeInterval(start: .infinity, duration: 1),
    ])
    func refusesToEncodeInvalidIntervals(_ interval: CoatyTimeInterval) {
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(interval) }
    }

    @Test func isWrittenAsISO8601() throws {
        let start = 1_700_000_000_123.0
        let end = 1_700_000_001_000.0
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        func parts(_ interval: CoatyTimeInterval) -> [String] {
            interval.toLocalIntervalIsoString(includeMillis: true).split(separator: "/").map(String.init)
        }
        // Parse the text again, because it depends on the local time zone.
        func millis(_ text: String?) throws -> Double {
            (try style.parse(#require(text)).timeIntervalSince1970 * 1000).rounded()
        }
        let both = parts(CoatyTimeInterval(start: start, end: end))
        #expect(both.count == 2)
        #expect(try millis(both.first) == start)
        #expect(try millis(both.last) == end)
        let onwards = parts(CoatyTimeInterval(start: start, duration: 1500))
        #expect(try millis(onwards.first) == start)
        #expect(onwards.last == "PT1.5S")
        let upTo = parts(CoatyTimeInterval(duration: 4_200_012, end: end))
        #expect(upTo.first == "PT4200.012S")
        #expect(try millis(upTo.last) == end)
        #expect(parts(CoatyTimeInterval(duration: 3000)) == ["PT3S"])
        let whole = CoatyTimeInterval(start: start, end: end).toLocalIntervalIsoString()
        #expect(!whole.contains("."))
        #expect(whole.utf8.count == both.joined(separator: "/").utf8.count - 8)
    }

    @Test func writesHugeTimes() {
        let text = CoatyTimeInterval(start: 1e300, duration: 1e300).toLocalIntervalIsoString()
        #expect(text.contains("/PT1000"))
    }
}
