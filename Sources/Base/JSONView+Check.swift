package import Coaty

extension JSONView {
    package func invalid(_ reason: String) -> PayloadError { .invalid(pointer: pointer, reason: reason) }

    /// Returns the member of an object; throws if it is missing.
    package func required(_ name: StaticString) throws(PayloadError) -> JSONView {
        guard let member = self[name] else { throw .invalid(pointer: "\(pointer)/\(name)", reason: "missing") }
        return member
    }

    /// Returns the whole number; throws if it is not one or not in `range`.
    package func integer(in range: ClosedRange<Int>) throws(PayloadError) -> Int {
        guard let number = number.flatMap({ Int(exactly: $0) }), range.contains(number) else {
            throw invalid("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Checks that this is an object with no other members than these, so that misspelled members are reported.
    package func refuseMembers(besides names: Set<String>) throws(PayloadError) {
        guard kind == .object else { throw invalid("must be an object") }
        for (key, value) in members {
            let name = key.string ?? ""
            guard names.contains(name) else { throw value.invalid(NearestName.refusal(of: name, known: names)) }
        }
    }

    /// Checks that arrays and objects are nested at most `depth` levels deep, and that numbers are finite.
    package func checkValues(depth: Int = JSONDocument.maximumDepth) throws(PayloadError) {
        switch kind {
        case .array, .object:
            guard depth > 0 else { throw invalid("is nested too deeply") }
            for element in elements { try element.checkValues(depth: depth - 1) }
            for (_, value) in members { try value.checkValues(depth: depth - 1) }
        case .number:
            guard number?.isFinite ?? false else { throw invalid("is a number that is too large") }
        case .null, .bool, .string: break
        }
    }
}

extension PayloadError {
    /// Returns the error with its pointer prefixed by that of `view`, for text that is part of another document.
    package func within(_ view: JSONView) -> PayloadError {
        guard case .invalid(let pointer, let reason) = self else { return self }
        return .invalid(pointer: view.pointer + pointer, reason: reason)
    }
}
