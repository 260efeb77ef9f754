/// A rate limit of a client: a bucket of ``burst`` that is filled at a constant rate.
///
/// In the configuration, it is a text such as `100/s`, `10/min burst 50` or `1MB/s burst 4MB`.
package struct Rate: Sendable, Equatable {
    /// The counted amount.
    package enum Kind: Int, CaseIterable, Sendable {
        /// HTTP requests, WebSocket handshakes and frames.
        case requests
        /// Events that a client makes the gateway publish.
        case publications
        case subscriptions
        /// The bytes of request bodies and WebSocket messages.
        case bytesIn
        /// The bytes of response bodies and of data sent on connections.
        case bytesOut

        /// The name in the configuration and in header fields.
        package var name: String { "\(key)" }

        package var key: StaticString {
            switch self {
            case .requests: "requests"
            case .publications: "publications"
            case .subscriptions: "subscriptions"
            case .bytesIn: "bytes-in"
            case .bytesOut: "bytes-out"
            }
        }

        /// Whether bytes are counted. Their number is known only after the transfer, so a client may have a debt.
        var isBytes: Bool { self == .bytesIn || self == .bytesOut }
    }

    package struct Malformed: Error {
        package let reason: String
    }

    private static let maximumAmount = 1_000_000_000_000
    /// Maximum time in which a bucket is filled, in seconds.
    private static let maximumFilling = 86_400.0

    /// Maximum number of nanoseconds. A few of these can be added to the clock's time without overflow.
    private static let maximumNanoseconds = 1e18

    let perSecond: Double
    /// Maximum amount at one moment.
    let burst: Int

    /// Creates a rate from valid parts.
    package init(perSecond: Double, burst: Int) {
        self.perSecond = perSecond
        self.burst = burst
    }

    /// Reads the text of a configuration.
    package init(_ text: String, of kind: Kind) throws(Malformed) {
        let example = kind.isBytes ? "1MB/s or 500kB/s burst 2MB" : "100/s or 10/min burst 50"
        let malformed = Malformed(reason: "must be a rate such as \(example)")
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 1 || words.count == 3 && words[1] == "burst" else { throw malformed }
        let parts = words[0].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let amount = Self.amount(parts[0], of: kind), let seconds = Self.seconds(parts[1])
        else { throw malformed }
        perSecond = Double(amount) / seconds
        if words.count == 3 {
            guard let amount = Self.amount(words[2], of: kind) else { throw malformed }
            burst = amount
        } else {
            burst = max(1, Int(perSecond))
        }
        guard Double(burst) / perSecond <= Self.maximumFilling else {
            throw Malformed(reason: "must be a rate at which the burst takes at most a day")
        }
    }

    private static func amount(_ text: Substring, of kind: Kind) -> Int? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let factor: Int
        switch text.dropFirst(digits.count) {
        case "" where !kind.isBytes: factor = 1
        case "B" where kind.isBytes: factor = 1
        case "kB" where kind.isBytes: factor = 1_000
        case "MB" where kind.isBytes: factor = 1_000_000
        case "GB" where kind.isBytes: factor = 1_000_000_000
        default: return nil
        }
        guard let number = Int(digits), (1...maximumAmount / factor).contains(number) else { return nil }
        return number * factor
    }

    private static func seconds(_ text: Substring) -> Double? {
        switch text {
        case "s": 1
        case "min": 60
        case "h": 3600
        default: nil
        }
    }

    /// Returns the time in which a bucket is filled by an amount, in nanoseconds, at most 31 years. Rounded down, so
    /// that a burst takes as long as its parts.
    func nanoseconds(_ amount: Int) -> Int64 {
        Int64(min(Double(amount) / perSecond * 1e9, Self.maximumNanoseconds))
    }

    /// The time in which an empty bucket is filled, in seconds.
    var filling: Int { max(1, Int((Double(burst) / perSecond).rounded(.up))) }

    /// Returns the larger of two rates.
    func larger(_ other: Rate) -> Rate {
        (perSecond, burst) < (other.perSecond, other.burst) ? other : self
    }
}

/// The rates of one client.
package struct Rates: Sendable, Equatable {
    /// By kind; nil for no limit.
    private var rates: [Rate?] = Rate.Kind.allCases.map { _ in nil }

    package init() {}

    package subscript(kind: Rate.Kind) -> Rate? {
        get { rates[kind.rawValue] }
        set { rates[kind.rawValue] = newValue }
    }

    /// Replaces each rate by the other one if that is larger or this one is missing.
    package mutating func formUnion(_ others: Rates) {
        for kind in Rate.Kind.allCases {
            guard let other = others[kind] else { continue }
            self[kind] = self[kind]?.larger(other) ?? other
        }
    }
}
