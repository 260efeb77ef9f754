/// The reason why a payload does not match its event.
public enum PayloadError: Error, Sendable, Equatable {
    /// The text is not JSON.
    case malformed(JSONSyntaxError)
    /// A value does not match the event's payload.
    ///
    /// - Parameters:
    ///   - pointer: JSON Pointer (RFC 6901) to the invalid value, or to the place of a missing one.
    ///   - reason: the expected value.
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
    /// Whether the payload may match its event, but has too many values.
    public var isTooLarge: Bool {
        if case .malformed(let error) = self { error.hasTooManyValues } else { false }
    }

    static func invalid(_ view: JSONView, _ reason: String) -> PayloadError {
        .invalid(pointer: view.pointer, reason: reason)
    }

    /// Maximum size, in bytes, of texts that are quoted in errors.
    fileprivate static let maximumExcerpt = 1024

    static func missing(_ name: some CustomStringConvertible, in view: JSONView) -> PayloadError {
        .invalid(pointer: view.pointer + "/\(name)", reason: "missing")
    }
}

extension JSONView {
    /// The value as written, for an error that shows how to correct it; nil if it is too long.
    var shortText: String? {
        bytes.count <= PayloadError.maximumExcerpt ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
