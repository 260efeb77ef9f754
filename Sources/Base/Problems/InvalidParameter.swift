import Coaty
package import ProblemDetails

/// An invalid query parameter, path parameter or header field.
package struct InvalidParameter: ProblemError {
    /// The reason for an invalid name of a channel, an object type or another topic level.
    package static let level =
        "must have 1 to \(WireName.maximumLength) bytes, without / + # and control characters"

    let name: String
    let reason: String

    package init(name: String, reason: String) {
        self.name = name
        self.reason = reason
    }

    package var problem: Problem { Problems.invalidParameter(name, reason) }
}
