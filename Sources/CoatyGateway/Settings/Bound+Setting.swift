import Base

extension Bound {
    /// The setting of this limit.
    var setting: Setting {
        Setting(
            name: name,
            isLimit: true,
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
