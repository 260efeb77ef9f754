public import Coaty
import Foundation

/// A time interval: a start and an end, a start or an end with a duration, or only a duration. All in milliseconds.
///
/// Values are not negative; the rules are those of `isValidTimeInterval` of coaty-js.
public struct CoatyTimeInterval: Sendable, Hashable {
    /// The start.
    public let start: CoatyTimestamp?
    /// The end.
    public let end: CoatyTimestamp?
    /// The duration, in milliseconds.
    public let duration: Double?

    /// Creates an interval from one point in time to another.
    public init(start: CoatyTimestamp, end: CoatyTimestamp) {
        self.init(start, end, nil)
    }

    /// Creates an interval with a duration, starting at a point in time.
    public init(start: CoatyTimestamp, duration: Double) {
        self.init(start, nil, duration)
    }

    /// Creates an interval with a duration, ending at a point in time.
    public init(duration: Double, end: CoatyTimestamp) {
        self.init(nil, end, duration)
    }

    /// Creates an interval with only a duration.
    public init(duration: Double) {
        self.init(nil, nil, duration)
    }

    private init(_ start: CoatyTimestamp?, _ end: CoatyTimestamp?, _ duration: Double?) {
        self.start = start
        self.end = end
        self.duration = duration
    }

    private var isValid: Bool {
        guard [start, end, duration].allSatisfy({ $0 ?? 0 >= 0 }) else { return false }
        return duration == nil ? start != nil && end != nil : start == nil || end == nil
    }
}

extension CoatyTimeInterval: Codable {
    private enum Keys: String, CodingKey {
        case start, end, duration
    }

    /// Decodes an interval.
    ///
    /// - Throws: `DecodingError` if the parts are not a valid combination, or one is negative.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        start = try container.decodeIfPresent(CoatyTimestamp.self, forKey: .start)
        end = try container.decodeIfPresent(CoatyTimestamp.self, forKey: .end)
        duration = try container.decodeIfPresent(Double.self, forKey: .duration)
        guard isValid else {
            let context = DecodingError.Context(codingPath: container.codingPath, debugDescription: "not an interval")
            throw DecodingError.dataCorrupted(context)
        }
    }

    /// Encodes the interval. An absent part is an absent key.
    ///
    /// - Throws: `EncodingError` if a part is negative or not a number.
    public func encode(to encoder: any Encoder) throws {
        guard isValid else {
            let context = EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "not an interval")
            throw EncodingError.invalidValue(self, context)
        }
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(start, forKey: .start)
        try container.encodeIfPresent(end, forKey: .end)
        try container.encodeIfPresent(duration, forKey: .duration)
    }
}

extension CoatyTimeInterval {
    /// Returns the interval as ISO 8601 text, with times in the local time zone: `2020-01-01T12:00:00+01:00/PT1.5S`.
    public func toLocalIntervalIsoString(includeMillis: Bool = false) -> String {
        let times = Date.ISO8601FormatStyle(
            timeZoneSeparator: .colon,
            includingFractionalSeconds: includeMillis,
            timeZone: .current
        )
        func text(_ time: CoatyTimestamp) -> String {
            // The format style truncates to milliseconds, and a double may be slightly too small. Therefore the middle
            // of the intended millisecond is formatted.
            Date(timeIntervalSince1970: (time.rounded(.down) + 0.5) / 1000).formatted(times)
        }
        let seconds = FloatingPointFormatStyle<Double>(locale: Locale(identifier: "en_US_POSIX"))
            .grouping(.never).precision(.fractionLength(0...3))
        let length = duration.map { "PT" + ($0 / 1000).formatted(seconds) + "S" }
        return [start.map(text), start == nil ? length : nil, end.map(text), start == nil ? nil : length]
            .compactMap(\.self).joined(separator: "/")
    }
}
