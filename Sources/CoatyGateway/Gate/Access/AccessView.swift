/// The part of a stream of events or answers that a principal may see.
struct AccessView: Sendable, Equatable {
    let permissions: Permissions

    /// Returns whether all requests of an event or answer are allowed. An empty list is not allowed.
    func allows(_ requests: [AccessRequest]) -> Bool {
        !requests.isEmpty && requests.allSatisfy { permissions.decide($0).denial == nil }
    }

    static func == (left: AccessView, right: AccessView) -> Bool { left.permissions === right.permissions }
}
