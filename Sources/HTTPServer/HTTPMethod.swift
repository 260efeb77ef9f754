import Glibc

/// A request method that a route can be registered for (RFC 9110, section 9, and PATCH of RFC 5789).
public enum HTTPMethod: String, Sendable, CaseIterable {
    /// Transfers a representation of the resource.
    case get = "GET"
    /// Like ``get``, without the body.
    case head = "HEAD"
    /// Transfers a body to the resource.
    case post = "POST"
    /// Replaces the resource.
    case put = "PUT"
    /// Changes part of the resource.
    case patch = "PATCH"
    /// Removes the resource.
    case delete = "DELETE"
    /// Requests the allowed operations of the resource.
    case options = "OPTIONS"

    /// Creates the method with a name, which is case-sensitive. `nil` for any other name.
    init?(name: UnsafePointer<CChar>) {
        let found = Self.allCases.first { strcmp(name, $0.rawValue) == 0 }
        guard let found else { return nil }
        self = found
    }
}
