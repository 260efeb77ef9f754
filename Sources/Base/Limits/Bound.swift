/// One configurable bound of ``Limits``.
///
/// Names: `maximum-<things>` for all clients together, `maximum-<things>-per-client` for one client,
/// `maximum-<thing>-size` for the bytes of one thing, `minimum-<things>-per-client` for the guaranteed amount of one
/// client, `<kind>-threads` for threads, `<thing>-timeout`, `<thing>-delay` and `<thing>-spread` for times.
package struct Bound: Sendable {
    package enum Unit: String, Sendable {
        case bytes, seconds, milliseconds, number
    }

    /// The name of the limit.
    package let name: String
    package let unit: Unit
    package let range: ClosedRange<Int>
    /// The limited amount.
    package let help: String
    /// The derivation of the default; nil if it is a number.
    package var derivation: String?
    /// The behaviour at the bound.
    package let atTheBound: String
    /// Whether a reload applies a change.
    package var isReloadable = false
    let value: @Sendable (Limits) -> Int?
    package let set: @Sendable (inout Limits, Int) -> Void
}

extension Bound {
    init<Value: BoundValue>(
        _ name: String,
        _ unit: Unit,
        in range: ClosedRange<Int>,
        _ help: String,
        derivation: String? = nil,
        atTheBound: String,
        _ path: any WritableKeyPath<Limits, Value> & Sendable
    ) {
        self.init(
            name: name,
            unit: unit,
            range: range,
            help: help,
            derivation: derivation,
            atTheBound: atTheBound,
            value: { $0[keyPath: path].number },
            set: { $0[keyPath: path] = Value($1) }
        )
    }

    /// The default as text.
    package var defaultText: String { value(Limits()).map(String.init) ?? derivation ?? "" }
}

/// The type of a bound in ``Limits``: a number, or an optional one if its default is derived from other bounds.
protocol BoundValue: SendableMetatype {
    init(_ number: Int)
    var number: Int? { get }
}

extension Int: BoundValue {
    var number: Int? { self }
}

extension Int?: BoundValue {
    var number: Int? { self }
}
