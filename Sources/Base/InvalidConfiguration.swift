/// The reason why the configuration can't be used, and the place of the error. Values are not repeated, because they
/// may be secrets.
public struct InvalidConfiguration: Error, Sendable, Equatable, CustomStringConvertible {
    /// The place and the reason.
    public let description: String

    package init(description: String) { self.description = description }
}
