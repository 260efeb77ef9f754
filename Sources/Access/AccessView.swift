/// The part of a stream of events or answers that a principal may see.
package struct AccessView: Sendable, Equatable {
    package let permissions: Permissions

    package init(permissions: Permissions) { self.permissions = permissions }

    /// Returns whether all requests of an event or answer are allowed. An empty list is not allowed.
    package func allows(_ requests: [AccessRequest]) -> Bool {
        !requests.isEmpty && requests.allSatisfy { permissions.decide($0).denial == nil }
    }

    package static func == (left: AccessView, right: AccessView) -> Bool { left.permissions === right.permissions }
}
