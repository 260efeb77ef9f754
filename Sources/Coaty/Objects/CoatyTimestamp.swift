import Foundation

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
public typealias CoatyTimestamp = Double

extension CoatyTimestamp {
    /// Returns the current time, in whole milliseconds.
    public static func nowMillis() -> CoatyTimestamp {
        (Date().timeIntervalSince1970 * 1000).rounded(.down)
    }
}
