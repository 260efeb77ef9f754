/// One configurable bound of ``Limits``.
///
/// Names: `maximum-<things>` for all clients together, `maximum-<things>-per-client` for one client,
/// `maximum-<thing>-size` for the bytes of one thing, `minimum-<things>-per-client` for the guaranteed amount of one
/// client, `<kind>-threads` for threads, `<thing>-timeout`, `<thing>-delay` and `<thing>-spread` for times.
struct Bound: Sendable {
    enum Unit: String, Sendable {
        case bytes, seconds, milliseconds, number
    }

    /// The name of the setting.
    let name: String
    /// The earlier name of the setting.
    var formerName: String?
    let unit: Unit
    let range: ClosedRange<Int>
    /// The limited amount.
    let help: String
    /// The derivation of the default; nil if it is a number.
    var derivation: String?
    /// The behaviour at the bound.
    let atTheBound: String
    /// Whether a reload applies a change.
    var isReloadable = false
    let value: @Sendable (Limits) -> Int?
    let set: @Sendable (inout Limits, Int) -> Void
}

extension Bound {
    init<Value: BoundValue>(
        _ name: String,
        formerly formerName: String? = nil,
        _ unit: Unit,
        in range: ClosedRange<Int>,
        _ help: String,
        derivation: String? = nil,
        atTheBound: String,
        _ path: any WritableKeyPath<Limits, Value> & Sendable
    ) {
        self.init(
            name: name,
            formerName: formerName,
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
    var defaultText: String { value(Limits()).map(String.init) ?? derivation ?? "" }

    /// The setting of this bound.
    var setting: Setting {
        Setting(
            name: name,
            formerName: formerName,
            placeholder: unit.rawValue,
            help: "\(help) (\(defaultText)).",
            defaultText: derivation == nil ? defaultText : nil,
            isReloadable: isReloadable
        ) { settings, text throws(SettingError) in
            guard let value = Int(text), range.contains(value) else {
                throw SettingError(reason: "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            set(&settings.limits, value)
        }
    }
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
