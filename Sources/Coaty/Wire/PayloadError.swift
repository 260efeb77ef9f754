/// Why a payload is not that of its event.
public enum PayloadError: Error, Sendable, Equatable {
    /// The text is no JSON.
    case malformed(JSONSyntaxError)
    /// A value is not what the event's payload has in its place.
    ///
    /// - Parameters:
    ///   - pointer: JSON Pointer (RFC 6901) to the offending value, or to where a missing one belongs.
    ///   - reason: what is expected there.
    case invalid(pointer: String, reason: String)
}

extension PayloadError: CustomStringConvertible {
    /// The reason with its place.
    public var description: String {
        switch self {
        case .malformed(let error): error.description
        case .invalid(let pointer, let reason): "\(reason) at \"\(pointer)\""
        }
    }
}

extension PayloadError {
    /// Whether the payload may be that of its event, but has more values than accepted.
    var isTooLarge: Bool {
        if case .malformed(let error) = self { error.hasTooManyValues } else { false }
    }

    static func invalid(_ view: JSONView, _ reason: String) -> PayloadError {
        .invalid(pointer: view.pointer, reason: reason)
    }

    /// Texts up to this size, in bytes, are repeated in errors.
    fileprivate static let maximumExcerpt = 1024

    static func missing(_ name: StaticString, in view: JSONView) -> PayloadError {
        .invalid(pointer: view.pointer + "/\(name)", reason: "missing")
    }
}

extension JSONView {
    /// The value as it was written, for an error that shows how to correct it; nil if it is too long for that.
    var shortText: String? {
        bytes.count <= PayloadError.maximumExcerpt ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
