import Coaty
import ProblemDetails

/// An invalid query parameter, path parameter or header field.
struct InvalidParameter: Error {
    /// The reason for an invalid name of a channel, an object type or another topic level.
    static let level =
        "must have 1 to \(WireName.maximumLength) bytes, without / + # and control characters"

    let name: String
    let reason: String

    var problem: Problem { Problems.invalidParameter(name, reason) }
}
